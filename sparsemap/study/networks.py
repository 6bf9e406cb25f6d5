"""Searches of whole networks: a cell for every distinct layer, and the totals over all of them.

Layers are evaluated one after the other, without fusion, and nothing stays on chip between them: the energy of a network
is the sum of its layers' energies, its latency the sum of their cycles, and its EDP the product of the two sums, which is
not the sum of the layers' EDPs.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from ..errors import DesignError, SearchError, unknown
from ..files import csv_text, markdown_table, percent, times, write_texts
from ..pieces import defaults
from ..pieces.contracts import Workload
from ..pieces.data_specs import Network
from ..pieces.registry import Registry, is_path
from ..problem.design_file import workload_table
from ..problem.load import load_problem, located
from ..problem.network import Node, distinct, nodes_of
from ..problem.similarity import METRICS, distance
from ..searching.start import COUNT, that_can
from ..spec import units
from ..spec.unstructuring import plain
from .cells import Cell, Outcome, labels_of
from .study import Progress, run_cells

if TYPE_CHECKING:
    from ..problem.load import Reference
    from ..problem.problem import Problem

WARM_STARTS = ("edit", "log", "previous", "off")
WARM_START = "edit"
"""By default, where the searcher takes designs; `benchmarks/warm_start.py` says what it is worth."""
NETWORK_FILES = ("layers.csv", "layers.md", "network.json")


@attrs.frozen(kw_only=True)
class LayerResult:
    """What was found for one layer of a network; numbers are None where there is no design."""

    layer: str
    type: str
    repeat: int
    searched: str
    """The first layer that is equal to it, in whose folder its design is."""
    macs: int
    """Of one repetition, as all numbers here."""
    state: str
    """"done", "kept" from an earlier run, "failed", or "waiting" if the run ended before its turn."""
    edp: float | None = None
    energy_pj: float | None = None
    cycles: float | None = None
    gap: float | None = None
    """Score over its proven bound."""
    evaluations: int | None = None
    valid_fraction: float | None = None
    bound_energy_pj: float | None = None
    """No design of the layer needs less energy."""
    bound_cycles: float | None = None
    start: str = ""
    """The layers whose designs its search started from, the nearest first; equal layers start from the same ones."""
    start_distance: float | None = None
    """Of the nearest one."""
    start_ratio: float | None = None
    """Score of the best design that the search started from, over its best score."""
    error: str = ""


@attrs.frozen(kw_only=True)
class NetworkResult:
    """The layers of a network with their designs, and the totals. A total is None unless every layer has a design."""

    network: str
    hardware: str
    searcher: str
    budget: int
    """Designs per distinct layer."""
    seed: int
    warm_start: str
    clock_hz: float
    layers: tuple[LayerResult, ...]

    @property
    def complete(self) -> bool:
        return all(layer.energy_pj is not None for layer in self.layers)

    @property
    def searches(self) -> int:
        return len({layer.searched for layer in self.layers})

    @property
    def energy_pj(self) -> float | None:
        return self._total("energy_pj")

    @property
    def cycles(self) -> float | None:
        """One layer after the other."""
        return self._total("cycles")

    @property
    def seconds(self) -> float | None:
        return None if self.cycles is None else self.cycles / self.clock_hz

    @property
    def edp(self) -> float | None:
        """Total energy times total cycles, pJ * cycles."""
        return _product(self.energy_pj, self.cycles)

    @property
    def bound(self) -> float | None:
        """The product of the layers' least energies and least cycles, each summed: no designs have a lower EDP."""
        return _product(self._total("bound_energy_pj"), self._total("bound_cycles"))

    @property
    def gap(self) -> float | None:
        return self.edp / self.bound if self.edp is not None and self.bound else None

    def share(self, layer: LayerResult, key: str) -> float | None:
        """What all repetitions of a layer have of the network's `energy_pj` or `cycles`."""
        total, one = self._total(key), getattr(layer, key)
        return layer.repeat * one / total if total and one is not None else None

    def _total(self, key: str) -> float | None:
        found = [getattr(layer, key) for layer in self.layers]
        if any(value is None for value in found):
            return None
        return math.fsum(layer.repeat * value for layer, value in zip(self.layers, found, strict=True))

    # -- as text

    @property
    def totals(self) -> dict[str, Any]:
        keys = ("complete", "energy_pj", "cycles", "seconds", "edp", "bound", "gap", "searches")
        return {key: getattr(self, key) for key in keys}

    def rows(self) -> list[dict[str, Any]]:
        """A row per layer, with its shares."""
        return [
            attrs.asdict(layer) | {f"share_of_{key}": self.share(layer, key) for key in ("energy_pj", "cycles")}
            for layer in self.layers
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        about = {key: getattr(self, key) for key in ("network", "hardware", "searcher", "budget", "seed", "warm_start")}
        return {**about, **self.totals, "layers": self.rows()}

    def markdown(self) -> str:
        """A row per layer and one for the totals."""
        return markdown_table([HEAD, *(_cells(self, [layer]) for layer in self.layers), self._last_row()], "<>")

    def groups(self) -> list[list[str]]:
        """The table for a terminal: like `markdown`, with a row for all layers that are equal."""
        groups: dict[str, list[LayerResult]] = {}
        for layer in self.layers:
            groups.setdefault(layer.searched, []).append(layer)
        return [HEAD, *(_cells(self, group) for group in groups.values()), self._last_row()]

    def _last_row(self) -> list[str]:
        name = "all layers" if self.complete else "incomplete"
        count = str(sum(layer.repeat for layer in self.layers))
        return [name, count, *_numbers(self.edp, self.energy_pj, self.cycles), times(self.gap), "", ""]

    def write(self, folder: Path | str) -> list[Path]:
        """Writes `layers.csv` with full precision, `layers.md`, and `network.json` with the totals; whole or not at all."""
        paths = [Path(folder) / name for name in NETWORK_FILES]
        texts = (csv_text(self.rows()), self.markdown(), json.dumps(self.to_dict(), indent=2) + "\n")
        write_texts(dict(zip(paths, texts, strict=True)))
        return paths


HEAD = ["layer", "times", "EDP", "energy used", "cycles", "gap", "of energy", "of cycles"]


def _cells(result: NetworkResult, layers: Sequence[LayerResult]) -> list[str]:
    """Equal layers in a row: the first one's name and numbers, and the shares of all."""
    first, more = layers[0], len(layers) - 1
    name = f"{first.layer} and {more} more" if more else first.layer
    shares = [[result.share(layer, key) for layer in layers] for key in ("energy_pj", "cycles")]
    numbers = _numbers(first.edp, first.energy_pj, first.cycles) if first.edp is not None else [first.state, "-", "-"]
    told = ["-" if None in share else percent(math.fsum(x for x in share if x), 1) for share in shares]
    return [name, str(sum(layer.repeat for layer in layers)), *numbers, times(first.gap), *told]


def _numbers(edp: float | None, energy_pj: float | None, cycles: float | None) -> list[str]:
    return [
        "-" if edp is None else f"{edp:.4g}",
        "-" if energy_pj is None else units.format_energy(energy_pj),
        "-" if cycles is None else f"{cycles:,.0f}",
    ]


def _product(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a * b


# ------------------------------------------------------------------------------------------------------------ searches


def search_network(
    network: Network | str | os.PathLike[str] | Mapping[str, Any],
    hardware: Reference,
    budget: int = 20_000,
    seed: int = 0,
    searcher: str | Mapping[str, Any] | None = None,
    space: Reference = defaults.SPACE,
    objective: Reference = defaults.OBJECTIVE,
    cost_model: Reference = defaults.COST_MODEL,
    out: str | os.PathLike[str] = "",
    jobs: int = 1,
    cluster: str = "",
    plugin_dirs: Sequence[str | os.PathLike[str]] = (),
    progress: Progress | None = None,
    warm_start: str | None = None,
) -> NetworkResult:
    """Searches every distinct layer of a network on a hardware; `budget` counts designs per layer.

    Parts are names, paths or tables, as those of `load_problem`. With a folder `out` a run that was stopped goes on where
    it was: every layer has a folder there, and the tables are written to it (`NetworkResult.write`). Results do not
    depend on `jobs` or `cluster`, which are those of `run_study`. A layer whose search fails is in the result with its
    error, and does not stop the others. Ctrl-C writes what there is and raises KeyboardInterrupt.

    `warm_start` says which of the earlier layers a search starts from: the three nearest by the metric `edit` or `log`,
    the `previous` one, or none (`off`); by default `edit` if the searcher takes designs. A layer waits for those that it
    starts from.
    """
    from ..pieces.loading import load

    registry = load(plugin_dirs=plugin_dirs)
    place = nullcontext(os.fspath(out)) if out else tempfile.TemporaryDirectory(prefix="sparsemap-")
    with place as folder:
        plan = plan_of(
            registry,
            network,
            hardware,
            Path(folder).expanduser().resolve(),
            budget,
            seed,
            searcher,
            space,
            objective,
            cost_model,
            warm_start,
        )
        outcomes = run_cells(
            plan.cells, partial(_keep, plan, out), {"plugin_dirs": plugin_dirs}, jobs, progress, cluster
        )
        return plan.result(outcomes)


def earlier(layers: Sequence[Node], warm_start: str) -> dict[str, list[str]]:
    """By layer the names of those before it that its search starts from, nearest first; they follow from the shapes alone."""
    found: dict[str, list[str]] = {}
    for place, layer in enumerate(layers):
        known = layers[:place]
        if warm_start in METRICS:
            ranked = sorted(_near(layer, known, warm_start))
            found[layer.name] = [known[-nearness[-1]].name for nearness in ranked[:COUNT]]
        else:
            found[layer.name] = [node.name for node in known[-1:] if warm_start == "previous"]
    return found


def _near(layer: Node, known: Sequence[Node], metric: str) -> Iterator[tuple[Any, ...]]:
    """Distances by the metric and by the others, and minus the place of those whose tensors can be paired."""
    for place, node in enumerate(known):
        if layer.loops and node.loops:
            with suppress(DesignError):
                others = [distance(layer.loops, node.loops, name) for name in METRICS if name != metric]
                yield distance(layer.loops, node.loops, metric), *others, -place


def _started(rows: Sequence[Mapping[str, Any]] | None, score: float | None) -> dict[str, Any]:
    """What a layer's result has of the designs that its search started from."""
    if not rows:
        return {}
    scores = [row["score"] for row in rows if row["score"] is not None]
    ratio = min(scores) / score if scores and score else None
    names = " ".join(row["workload"] for row in rows)
    return {"start": names, "start_distance": rows[0]["distance"], "start_ratio": ratio}


def _table(node: Node, registry: Registry) -> Any:
    """The workload of a layer as plain data."""
    if not isinstance(node.piece, Workload) or node.loops is None:
        raise TypeError(f"layer '{node.name}' has nothing to search")
    return plain(workload_table(node.piece, node.loops, registry))


def _keep(plan: Plan, out: str | os.PathLike[str], outcomes: Sequence[Outcome]) -> None:
    if out:
        plan.result(outcomes).write(plan.folder)


@attrs.frozen(kw_only=True)
class Plan:
    """What is run for a network: a cell per distinct layer."""

    network: str
    hardware: str
    nodes: tuple[Node, ...]
    """Those with loops, in order."""
    cells: tuple[Cell, ...]
    """By content of the nodes, in order."""
    folder: Path
    warm_start: str
    registry: Registry
    _problems: dict[str, Problem] = attrs.field(factory=dict, init=False)
    """By folder of the cell, those asked for."""

    def problem(self, cell: Cell) -> Problem:
        """What a cell searches."""
        if cell.folder not in self._problems:
            parts = {key: value for key, value in cell.parts.items() if key != "searcher"}
            self._problems[cell.folder] = load_problem(**parts, registry=self.registry)
        return self._problems[cell.folder]

    def result(self, outcomes: Sequence[Outcome]) -> NetworkResult:
        """The result of the outcomes that there are; layers without one wait."""
        by_folder = {outcome.cell.folder: outcome for outcome in outcomes}
        layers: dict[str, LayerResult] = {}
        for cell, group in zip(self.cells, distinct(self.nodes).values(), strict=True):
            found = self._numbers(cell, by_folder.get(cell.folder))
            for node in group:
                layers[node.name] = LayerResult(
                    layer=node.name,
                    type=node.piece.type_name,
                    repeat=node.repeat,
                    searched=group[0].name,
                    macs=node.macs,
                    **found,
                )
        first = self.cells[0]
        return NetworkResult(
            network=self.network,
            hardware=self.hardware,
            searcher=first.searcher,
            budget=first.budget,
            seed=first.seed,
            warm_start=self.warm_start,
            clock_hz=units.frequency_hz(self.problem(first).hardware.clock),
            layers=tuple(layers[node.name] for node in self.nodes),
        )

    def _numbers(self, cell: Cell, outcome: Outcome | None) -> dict[str, Any]:
        """What a layer's result has of its cell."""
        if outcome is None:
            return {"state": "waiting"}
        if outcome.state == "failed":
            return {"state": "failed", "error": outcome.error}
        numbers, bound = dict(outcome.numbers), self.problem(cell).lower_bound
        numbers |= _started(numbers.pop("start"), numbers.pop("score"))
        if bound is not None:
            numbers |= {"bound_energy_pj": float(bound.energy_pj[0]), "bound_cycles": float(bound.cycles[0])}
        missing = {"state": "failed", "error": "no valid design was found"} if numbers.get("edp") is None else {}
        return {"state": outcome.state, **numbers, **missing}


def plan_of(
    registry: Registry,
    network: Any,
    hardware: Any,
    folder: Path,
    budget: int,
    seed: int,
    searcher: Any,
    space: Any,
    objective: Any,
    cost_model: Any,
    warm_start: str | None,
) -> Plan:
    """The cells of a network. SpecError for a wrong part, before anything is searched."""
    base, file = Path("."), ""
    if isinstance(network, str | os.PathLike):
        text = os.fspath(network)
        piece, file = registry.resolve("network", text), text if is_path(text) else ""
        base = Path(text).parent if file else base
    else:
        piece = registry.build("network", network)
    nodes = tuple(node for node in nodes_of(piece, registry, base, file) if node.loops)
    if not nodes:
        raise SearchError(f"network '{piece.name}' has no layer to search")
    groups = distinct(nodes)
    parts = {"hardware": hardware, "space": space, "objective": objective, "cost_model": cost_model}
    parts = {key: plain(located(key, value, Path("."))) for key, value in parts.items()}
    sample = load_problem(nodes[0].piece, **parts, registry=registry)
    named = searcher if searcher is not None else sample.objective.searcher or defaults.SEARCHER
    named = plain(located("searcher", named, Path(".")))
    chosen = registry.resolve("searcher", named) if isinstance(named, str) else registry.build("searcher", named)
    labels = labels_of(group[0].name for group in groups.values())
    folders = {group[0].name: str(folder / labels[group[0].name]) for group in groups.values()}
    if warm_start is None:
        warm_start = WARM_START if chosen.takes_migrants else "off"
    if warm_start not in WARM_STARTS:
        raise SearchError(f"warm start: {unknown('choice', warm_start, WARM_STARTS)}")
    if warm_start != "off" and not chosen.takes_migrants:
        name = chosen.name or chosen.type_name
        raise SearchError(
            f"searcher '{name}' cannot start from designs; {that_can(sample)} can. Or switch warm start off"
        )
    before = earlier([group[0] for group in groups.values()], warm_start)
    cells = tuple(
        Cell(
            workload=group[0].name,
            hardware=sample.hardware.name,
            searcher=chosen.name or chosen.type_name,
            seed=seed,
            budget=budget,
            parts={
                **parts,
                "searcher": named,
                "workload": _table(group[0], registry),
            },
            folder=folders[group[0].name],
            after=tuple(folders[name] for name in before[group[0].name]),
        )
        for group in groups.values()
    )
    return Plan(
        network=piece.name,
        hardware=sample.hardware.name,
        nodes=nodes,
        cells=cells,
        folder=folder,
        warm_start=warm_start,
        registry=registry,
    )
