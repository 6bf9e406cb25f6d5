"""What a chip is worth: the layers of its networks, searched on it, and how long that is worth while."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap import Evaluation, Problem, load_problem, search
from sparsemap.errors import DesignError, SparseMapError
from sparsemap.pieces.contracts import Array
from sparsemap.pieces.loading import load
from sparsemap.pieces.registry import Registry, is_path
from sparsemap.problem.chip import Chip
from sparsemap.problem.designs import Design
from sparsemap.problem.load import objective_of
from sparsemap.problem.network import Node, distinct, nodes_of
from sparsemap.searching.hull import Corner, hull
from sparsemap.searching.result import Result
from sparsemap.searching.start import start_of
from sparsemap.study.cells import KEPT, Cell, Outcome
from sparsemap.study.fused import FusedPlan, Kept
from sparsemap.study.join import joined, sums
from sparsemap.study.plan import Plan, plan_of

COSTS = ("energy_pj", "cycles", "seconds", "area_mm2")
"""What a chip costs, by name."""
GIVEN = 2
"""Designs of a layer that its search takes over from each chip that it starts from."""


@attrs.frozen(kw_only=True)
class Inner:
    """How the layers are searched on every chip, as plain data."""

    networks: tuple[str, ...]
    """Names or TOML files."""
    budget: int
    """Designs per distinct layer."""
    seed: int
    """Of every search."""
    objective: Any
    """What each layer minimises."""
    aim: Any = "edp"
    """What is minimised of the chip."""
    fuse: bool = True
    """Whether tensors between layers may stay on chip: a plan of each network, or its layers one by one."""
    space: Any = None
    """Of the designs of a layer; absent: that of the hardware, or the usual one."""
    cost_model: Any = None
    """Of the designs of a layer; absent: that of the space, or the usual one."""
    searcher: Any = None
    """Of the designs of a layer; absent: the usual one."""
    plugin_dirs: tuple[str, ...] = ()
    """Folders of plugins."""

    @property
    def registry(self) -> Registry:
        return registry_of(self.plugin_dirs)

    def problem(self, node: Node, table: Mapping[str, Any]) -> Problem:
        """A layer on a chip, with all of its tensors outside."""
        parts = (self.space, self.objective, self.cost_model)
        return load_problem(node.piece, table, *parts, registry=self.registry)


@attrs.frozen(kw_only=True)
class Source:
    """A chip whose designs searches start from: its hardware, and by distinct layer some genomes there."""

    table: Mapping[str, Any]
    genomes: Sequence[Sequence[Sequence[int]]]


@lru_cache(maxsize=2)
def registry_of(plugin_dirs: tuple[str, ...]) -> Registry:
    return load(plugin_dirs=list(plugin_dirs))


@lru_cache(maxsize=8)
def layers_of(networks: tuple[str, ...], plugin_dirs: tuple[str, ...]) -> tuple[tuple[Node, int], ...]:
    """The distinct layers of all networks, each with how often it is run."""
    registry = registry_of(plugin_dirs)
    nodes: list[Node] = []
    for name in networks:
        network = registry.resolve("network", name)
        base, file = (Path(name).parent, name) if is_path(name) else (Path("."), "")
        nodes += nodes_of(network, registry, base, file)
    return tuple((group[0], sum(node.repeat for node in group)) for group in distinct(nodes).values())


# ------------------------------------------------------------------------------------------------ plans of the networks


@attrs.frozen(slots=False, eq=False)
class Whole:
    """One network on a chip: its plan, and how tensors stay there if they may."""

    plan: Plan
    fused: FusedPlan | None
    _points: dict[str, Mapping[Kept, Sequence[Any]]] = attrs.field(factory=dict, init=False)

    @cached_property
    def cells(self) -> dict[str, dict[Kept, Cell]]:
        """By content of the layers and the tensors that stay, what is searched; the layer by itself first."""
        if self.fused is not None:
            return self.fused.searched
        return {content: {(): cell} for content, cell in zip(distinct(self.plan.nodes), self.plan.cells, strict=True)}

    def points(self, content: str, outcomes: Mapping[str, Outcome]) -> Mapping[Kept, Sequence[Any]]:
        """By the tensors that stay, what the designs of a layer cost: all that its searches keep, or its best one."""
        if self.fused is None:
            return {(): [outcomes[self.cells[content][()].folder]]}
        if content not in self._points:
            mine = {cell.folder: outcomes[cell.folder] for cell in self.cells[content].values()}
            self._points[content] = self.fused.tables(mine)[content]
        return self._points[content]

    def times(self, content: str) -> int:
        return sum(node.repeat for node in distinct(self.plan.nodes)[content])

    def floor(self, content: str) -> list[Corner[None]]:
        """No design of a layer, whatever stays on chip, is below the lines between these; empty if nobody knows."""
        if self.fused is None:
            problem = self.plan.problem(self.cells[content][()])
        else:
            problem = self.fused.variant(
                content, tuple(sorted({t for kept in self.fused.wanted[content] for t in kept}))
            )
        found = problem.lower_bound
        if found is None:
            return []
        return hull((e, c, None) for e, c in zip(found.energy_pj.tolist(), found.cycles.tolist(), strict=True))


def wholes_on(table: Mapping[str, Any], inner: Inner, folder: str | os.PathLike[str] = "") -> tuple[Whole, ...]:
    """The networks on a chip, each with the folder of its name."""
    return _wholes(json.dumps([table, attrs.asdict(inner)], sort_keys=True, default=str), table, inner, str(folder))


def _wholes(key: str, table: Mapping[str, Any], inner: Inner, folder: str) -> tuple[Whole, ...]:
    if (found := _LAST.get((key, folder))) is not None:
        return found
    made = []
    for name, label in zip(inner.networks, folders_of(inner.networks), strict=True):
        asked = (inner.budget, inner.seed, inner.searcher, inner.space, inner.objective, inner.cost_model, "off")
        plan = plan_of(inner.registry, name, table, Path(folder).resolve() / label, *asked)
        made.append(Whole(plan, FusedPlan.of(plan) if inner.fuse else None))
    _LAST.clear()
    _LAST[key, folder] = tuple(made)
    return tuple(made)


_LAST: dict[tuple[str, str], tuple[Whole, ...]] = {}
"""The networks on the chip at hand: several calls ask for them."""


def folders_of(networks: Sequence[str]) -> list[str]:
    """The folder of each network below that of the chip."""
    names = [Path(name).stem if is_path(name) else name for name in networks]
    return [name if names.count(name) == 1 else f"{name}-{i + 1}" for i, name in enumerate(names)]


# -------------------------------------------------------------------------------------------------- the layers of a chip


def searched_layer(
    index: int, table: Mapping[str, Any], inner: Inner, near: Sequence[Source], folder: str | os.PathLike[str] = ""
) -> dict[str, dict[str, Any]]:
    """What the searches of a distinct layer on a chip have found, by folder of their cells; with a folder their results
    are written. A search starts from the designs of `near`, one with tensors on chip from those of the layer itself too."""
    node, _ = layers_of(inner.networks, inner.plugin_dirs)[index]
    wholes = wholes_on(table, inner, folder)
    mine = next(whole for whole in wholes if node.content in whole.cells)
    problem = mine.plan.problem(mine.cells[node.content][()])
    genomes: Array | None = None
    with suppress(DesignError):  # designs that have no counterpart on this chip
        designs = [_design(source, inner, node, genome) for source in near for genome in source.genomes[index][:GIVEN]]
        start = start_of(problem, designs, count=len(designs), seed=inner.seed) if designs else None
        genomes = None if start is None else start.genomes
    known: dict[str, Any] = {}
    found: dict[str, dict[str, Any]] = {}
    for whole in wholes:
        first = genomes
        for cell in whole.cells.get(node.content, {}).values():
            key = json.dumps(cell.parts, sort_keys=True, default=str)
            if key not in known:
                at = whole.plan.problem(cell)
                known[key] = search(at, cell.budget, inner.seed, cell.parts["searcher"], start=first)
            result = known[key]
            if folder and result.best is not None:
                result.write(cell.folder)
            found[cell.folder] = {
                "numbers": _numbers(result, bool(folder)),
                "genome": result.best.genome.tolist() if result.best else None,
            }
            own = [np.array(corner[2], np.int64)[None] for corner in result.hull]
            first = np.concatenate([*own, *([genomes] if genomes is not None else [])]) if own else genomes
    return found


def _numbers(result: Result, every: bool) -> dict[str, Any]:
    """What an outcome has of a search: for the totals of a chip its costs and hull will do."""
    if every:
        told = result.to_dict()
        return {key: told.get(key) for key in KEPT}
    costs = {key: getattr(result.best, key, None) for key in ("energy_pj", "cycles")}
    return costs | {"hull": [{"genome": genome.tolist()} for _, _, genome in result.hull]}


def _design(source: Source, inner: Inner, node: Node, genome: Sequence[int]) -> Design:
    problem = inner.problem(node, source.table)
    return Design(problem, problem.space.decode(np.array([genome], np.int64)))


def evaluated_chip(
    table: Mapping[str, Any],
    inner: Inner,
    near: Sequence[Source] = (),
    rivals: Array | None = None,
    area_mm2: float = 0.0,
    folder: str | os.PathLike[str] = "",
    run: Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]] = map,
) -> dict[str, Any]:
    """Totals of a chip over all networks, what each distinct layer costs, and the units in use, as plain data.

    `rivals` has the values (n, M) of chips that were tried: the chip is `stopped` once the layers that have been searched
    and the bounds of the others tell that one of these is better. Its totals are then what it costs at least. With a
    folder the results of all layers and plans are written there. `run` may search several layers at a time.
    """
    layers = layers_of(inner.networks, inner.plugin_dirs)
    wholes = wholes_on(table, inner, folder)
    done: dict[str, Outcome] = {}
    genomes: dict[str, Any] = {}
    cells = {cell.folder: cell for whole in wholes for some in whole.cells.values() for cell in some.values()}

    def take(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Outcome]:
        mine = {name: Outcome(cells[name], "done", one["numbers"]) for name, one in found.items()}
        genomes.update({name: one["genome"] for name, one in found.items()})
        done.update(mine)
        return mine

    layer = partial(searched_layer, table=table, inner=inner, near=near, folder=folder)
    try:
        if rivals is None or not len(rivals):
            for found in run(layer, range(len(layers))):
                take(found)
        else:
            judge = _Judge.of(inner, wholes, rivals, area_mm2)
            for count, index in enumerate(judge.order(layers)):
                if (least := judge.beaten()) is not None:
                    return {"reason": "", "stopped": count, **least}
                judge.take(layers[index][0].content, take(layer(index)))
            if (least := judge.beaten()) is not None:
                return {"reason": "", "stopped": len(layers), **least}
        return _totals(wholes, done, genomes, inner, bool(folder))
    except _NoDesign as missing:
        return {"reason": "no-design", "error": str(missing)}
    except SparseMapError as error:
        return {"reason": "layer-failed", "error": str(error)}


class _NoDesign(Exception):
    """A layer has no valid design, or no plan fits."""


@attrs.define
class _Judge:
    """Whether a chip can still be better than those that were tried."""

    wholes: Sequence[Whole]
    values: Callable[[Array, Array], Array]
    """(n, M) of totals: energies and cycles (n,)."""
    rivals: Array
    least: dict[tuple[int, str], list[Corner[None]]]
    """By network and layer, what its designs cost at least; once it is searched, what they cost."""

    @classmethod
    def of(cls, inner: Inner, wholes: Sequence[Whole], rivals: Array, area_mm2: float) -> _Judge:
        objective = objective_of(inner.registry, inner.aim, costs=COSTS)
        chip = wholes[0].plan.problem(wholes[0].plan.cells[0]).chip

        def values(energy: Array, cycles: Array) -> Array:
            seconds = cycles / float(chip.clock_hz)
            return values_of(objective, chip, energy, cycles, seconds, np.full(len(cycles), area_mm2))

        least = {(w, content): whole.floor(content) for w, whole in enumerate(wholes) for content in whole.cells}
        return cls(wholes, values, rivals, least if objective.monotone else {})

    def order(self, layers: Sequence[tuple[Node, int]]) -> list[int]:
        """The layers with most of the energy and the cycles first, as far as bounds tell."""

        def size(content: str) -> float:
            found = [self.least.get((w, content), []) for w in range(len(self.wholes))]
            return sum(math.sqrt(corners[0][0] * corners[0][1]) for corners in found if corners)

        return sorted(range(len(layers)), key=lambda i: -layers[i][1] * size(layers[i][0].content))

    def take(self, content: str, outcomes: Mapping[str, Outcome]) -> None:
        """A layer has been searched."""
        for w, whole in enumerate(self.wholes):
            if (w, content) in self.least:
                tables = whole.points(content, outcomes)
                points = [_costs(point) for some in tables.values() for point in some]
                self.least[w, content] = hull((*point, None) for point in points if point is not None)

    def beaten(self) -> dict[str, float] | None:
        """What the chip costs at least, if a rival is better than that."""
        if not self.least or not all(self.least.values()):
            return None
        total: list[Corner[None]] = [(0.0, 0.0, None)]
        for (w, content), corners in self.least.items():
            times = self.wholes[w].times(content)
            scaled = [(times * e, times * c, None) for e, c, _ in corners]
            total = [(a[0] + b[0], a[1] + b[1], None) for a, b in sums(total, scaled)]
        energy, cycles = (np.array(column) for column in list(zip(*total, strict=True))[:2])
        values = self.values(energy, cycles)
        bound = values.min(axis=0)
        if not ((self.rivals <= bound).all(axis=1) & (self.rivals < bound).any(axis=1)).any():
            return None
        row = int(np.argmin(values[:, 0]))
        return {"energy_pj": float(energy[row]), "cycles": float(cycles[row])}


def values_of(objective: Any, chip: Chip, energy_pj: Array, cycles: Array, seconds: Array, area_mm2: Array) -> Array:
    """(n, M) what an objective says of chips with these costs, (n,) each; `chip` is any of them."""
    costs = dict(zip(COSTS, (energy_pj, cycles, seconds, area_mm2), strict=True))
    return np.asarray(objective.values(Evaluation(costs, np.zeros(len(cycles), np.uint64), ()).on(chip)), np.float64)


def _costs(point: Any) -> tuple[float, float] | None:
    """Energy and cycles of a point of a table, or of an outcome."""
    if isinstance(point, Outcome):
        numbers = point.numbers
        return None if numbers["energy_pj"] is None else (numbers["energy_pj"], numbers["cycles"])
    return point.energy_pj, point.cycles


def _totals(
    wholes: Sequence[Whole], done: Mapping[str, Outcome], genomes: Mapping[str, Any], inner: Inner, write: bool
) -> dict[str, Any]:
    """What a chip costs whose layers have all been searched."""
    layers = layers_of(inner.networks, inner.plugin_dirs)
    of: dict[str, dict[str, Any]] = {
        node.content: {"layer": node.name, "times": times, "energy_pj": [], "cycles": [], "genomes": []}
        for node, times in layers
    }
    energies: list[float] = []
    cycles: list[float] = []
    used: dict[str, dict[str, Counter[str]]] = {"formats": {}, "mechanisms": {}}
    for whole in wholes:
        for content, row in of.items():
            if content in whole.cells and genomes[whole.cells[content][()].folder] is None:
                raise _NoDesign(row["layer"])
        for content, energy, count, genome in _run(whole, done, genomes):
            energies.append(energy)
            cycles.append(count)
            if content:
                of[content]["energy_pj"].append(energy)
                of[content]["cycles"].append(count)
                of[content]["genomes"].append(tuple(genome))
        if write:
            _write(whole, done)
    for node, _ in layers:
        row = of[node.content]
        some: list[tuple[int, ...]] = sorted(
            set(row["genomes"]), key=lambda genome: (-row["genomes"].count(genome), genome)
        )
        plan = next(whole.plan for whole in wholes if node.content in whole.cells)
        problem = plan.problem(next(whole for whole in wholes if whole.plan is plan).cells[node.content][()])
        size = math.sqrt(math.fsum(row["energy_pj"]) * math.fsum(row["cycles"]))
        for genome in some:
            share = size * row["genomes"].count(genome) / len(row["genomes"])
            _note_units(Design(problem, problem.space.decode(np.array([genome], np.int64))), share, used)
        row |= {"energy_pj": math.fsum(row["energy_pj"]), "cycles": math.fsum(row["cycles"])}
        row["genomes"] = [list(genome) for genome in some]
    most = {
        key: {of: [name for name, _ in found[of].most_common()] for of in sorted(found)} for key, found in used.items()
    }
    units = {key: {of: sorted(names) for of, names in found.items()} for key, found in most.items()}
    totals = {"energy_pj": math.fsum(energies), "cycles": math.fsum(cycles)}
    return {"reason": "", "units": units, "used_most": most, "layers": list(of.values()), **totals}


def _run(
    whole: Whole, done: Mapping[str, Outcome], genomes: Mapping[str, Any]
) -> Iterable[tuple[str, float, float, Any]]:
    """What runs one after the other: content (none of an operation), energy, cycles and genome."""
    if whole.fused is None:
        for node in whole.plan.nodes:
            folder = whole.cells[node.content][()].folder
            energy, cycles = _costs(done[folder]) or (math.inf, math.inf)
            yield node.content, node.repeat * energy, node.repeat * cycles, genomes[folder]
        return
    fused = whole.fused
    tables = {content: whole.points(content, done) for content in whole.cells}
    plan = joined(fused.steps(tables), fused.capacity, fused.value)
    if plan is None:
        raise _NoDesign(f"no plan of {whole.plan.network} fits on the chip")
    for chosen in plan.steps:
        node = fused.named[chosen.step].node
        content = node.content if node.loops is not None else ""
        yield content, chosen.point.energy_pj, chosen.point.cycles, chosen.point.design


def _write(whole: Whole, done: Mapping[str, Outcome]) -> None:
    """The tables and plans of a network, as `sparsemap run` writes them."""
    cells = [cell.folder for some in whole.cells.values() for cell in some.values()]
    outcomes = [done[name] for name in cells]
    if whole.fused is None:
        whole.plan.result(outcomes).write(whole.plan.folder)
        return
    result = whole.fused.result(outcomes)
    result.write(whole.plan.folder)
    whole.fused.write_designs(result)


def _note_units(design: Design, share: float, used: dict[str, dict[str, Counter[str]]]) -> None:
    """Adds the formats and mechanisms of a design to those in use, with what it is of all costs."""
    problem = design.problem
    for role, tensor in problem.roles.items():
        for name in {rank.format.name for rank in design.ranks(tensor) if rank.format.compressed}:
            used["formats"].setdefault(role, Counter())[name] += share  # type: ignore[assignment]
    for place in problem.places:
        mechanism = design.mechanism(place)
        if problem.filters(mechanism, place):
            used["mechanisms"].setdefault(place.name, Counter())[mechanism.name] += share  # type: ignore[assignment]
