"""Searches for a network: a cell per distinct layer, with optional starting designs from other layers."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from ..errors import DesignError, SearchError, unknown
from ..pieces.contracts import Operation, Searcher, Workload
from ..pieces.registry import Registry, is_path
from ..pieces.study_spec import WARM_STARTS, Network, Study
from ..problem.chip import Chip
from ..problem.design_file import workload_table
from ..problem.designs import Design
from ..problem.evaluation import Evaluation
from ..problem.load import load_problem
from ..problem.network import INPUT, Node, distinct, nodes_of
from ..problem.problem import Problem
from ..problem.similarity import METRICS, nearness
from ..searching.driver import default_searcher, searcher_of
from ..searching.start import COUNT, check_takes, given_designs, nearest
from ..spec.unstructuring import plain
from .cells import KEPT, PLAN_FOLDER, WHY, Cell, Outcome, as_data, cells_of, chosen_in, labels_of, no_design
from .graph import GraphNode, WordChips, graph_of, handed_on, passed, rewritten, widest_of
from .network_result import LayerResult, NetworkResult

WARM_START = "edit"
"""Default for searchers with starting designs; `benchmarks/warm_start.py` measures the benefit."""


def earlier(layers: Sequence[Node], warm_start: str) -> dict[str, list[str]]:
    """Earlier layers to start from, by layer, nearest first; depends on the shapes alone."""
    found: dict[str, list[str]] = {}
    for place, layer in enumerate(layers):
        known = layers[:place]
        if warm_start in METRICS:
            ranked: list[tuple[Any, ...]] = []
            for other, node in enumerate(known):
                if layer.loops and node.loops:
                    with suppress(DesignError):  # tensors that cannot be paired
                        ranked.append((nearness(layer.loops, node.loops, warm_start), -other, node.name))
            found[layer.name] = [name for _, _, name in sorted(ranked)[:COUNT]]
        else:
            found[layer.name] = [node.name for node in known[-1:] if warm_start == "previous"]
    return found


def _table(node: Node, registry: Registry) -> Any:
    """The workload of a layer as plain data."""
    if not isinstance(node.piece, Workload) or node.loops is None:
        raise TypeError(f"layer '{node.name}' has nothing to search")
    return plain(workload_table(node.piece, node.loops, registry))


def _unnamed(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a workload as plain data, without its name."""
    return {key: value for key, value in plain(table).items() if key != "name"}


def _same(problem: Problem, designs: Sequence[Design]) -> tuple[tuple[int, ...], ...]:
    """Genomes of the designs of a workload with this workload's sizes and tensors."""
    found: dict[tuple[int, ...], None] = {}
    for design in designs:
        with suppress(DesignError):
            if not any(nearness(design.problem.loops, problem.loops, next(iter(METRICS)))):
                genomes = problem.space.transfer(design.batch, design.problem, np.random.default_rng(0))
                found |= dict.fromkeys(map(tuple, genomes.tolist()))
    return tuple(found)


@attrs.frozen(kw_only=True)
class Plan:
    """Searches for a network: a cell per distinct layer."""

    network: str
    hardware: str
    nodes: tuple[Node, ...]
    """Nodes with loops, in order."""
    graph: tuple[Node, ...] = ()
    batch: int = 1
    input_words: int = 0
    """Words of the network's input; 0 without a shape."""
    cells: tuple[Cell, ...]
    """Cells by content of the nodes, in order."""
    folder: Path
    warm_start: str
    searcher: Searcher
    registry: Registry
    lacks: tuple[str, ...] = ()
    unplanned: str = ""
    """Reason against a plan of tensors on chip; empty if not asked for."""
    given: Mapping[str, tuple[tuple[int, ...], ...]] = attrs.field(factory=dict)
    """By folder of the cell, genomes of an earlier plan for this layer, available to a new plan."""
    _problems: dict[str, Problem] = attrs.field(factory=dict, init=False)
    """Problems loaded so far, by folder of the cell."""

    @property
    def by_width(self) -> dict[int | None, Problem]:
        """A problem per word width of the layers, see `of_widths`."""
        cells = dict(zip(distinct(self.nodes), self.cells, strict=True))
        return of_widths(self.nodes, lambda node: self.problem(cells[node.content]))

    @property
    def widest(self) -> Problem:
        """A layer with the widest words: its chip stands for the network."""
        return next(iter(self.by_width.values()))

    def words_of(self, node: Node, tensor: str = "") -> Chip:
        """The chip in words of a tensor of a layer; "": the output."""
        assert isinstance(node.piece, Workload)
        tables = (node.piece.word_bits, *(level.memory.word_bits for level in self.widest.levels))
        if not any(isinstance(table, Mapping) for table in tables):
            return self.by_width[node.piece.machine_bits].chip
        problem = self.problem(dict(zip(distinct(self.nodes), self.cells, strict=True))[node.content])
        return problem.in_words_of(
            next(i for i, t in enumerate(problem.tensors) if (t.name == tensor if tensor else t.output))
        )

    def words_in(self, graph: Sequence[GraphNode]) -> WordChips:
        """The chip in words of each output and of each input. An operation has words of its widest input; the
        network's input, and operations without inputs, have the widest words of the layers fed."""
        taken = {
            (one.name, name): self.words_of(one.node, one.operands[place] if one.operands else "")
            for one in graph if one.node.loops for place, name in enumerate(one.inputs)
        }  # fmt: skip
        made = {INPUT: widest_of((chip for (_, name), chip in taken.items() if name == INPUT), self.widest.chip)}
        for one in graph:
            read = (chip for (_, name), chip in taken.items() if name == one.name)
            given = widest_of((made[name] for name in one.inputs) if one.inputs else read, self.widest.chip)
            made[one.name] = self.words_of(one.node) if one.node.loops else given
        return WordChips(made, taken)

    def problem(self, cell: Cell) -> Problem:
        """Problem of a cell, cached with its tables."""
        if cell.folder not in self._problems:
            self._problems[cell.folder] = self.loaded(cell)
        return self._problems[cell.folder]

    def loaded(self, cell: Cell) -> Problem:
        """Problem of a cell."""
        parts = {key: value for key, value in cell.parts.items() if key != "searcher"}
        return attrs.evolve(load_problem(**parts, registry=self.registry), raced=cell.raced)

    def started(self, given: Sequence[str | os.PathLike[str]]) -> Plan:
        """The plan with the nearest of these designs as starts of each cell; DesignError if none suits any."""
        check_takes(self.searcher, self.problem(self.cells[0]))
        designs = list(given_designs(given, self.registry))
        if own := [file for _, file, _ in designs if self.folder in Path(file).resolve().parents]:
            raise SearchError(f"{own[0]} is in the folder of this run, which writes it; give another folder with --out")
        metric = self.warm_start if self.warm_start in METRICS else next(iter(METRICS))
        folders = [path / PLAN_FOLDER for path in map(Path, given) if (path / PLAN_FOLDER).is_dir()]
        planned = [design for design, _, _ in given_designs(folders, self.registry)] if folders else []
        tables = [_unnamed(workload_table(d.problem.workload, d.problem.loops, self.registry)) for d, _, _ in designs]
        cells, unfit, known = [], None, {}
        for cell in self.cells:
            known[cell.folder] = _same(self.problem(cell), planned)
            mine = _unnamed(cell.parts["workload"])
            # designs of the very layer last: they come first of equally near ones
            order = sorted(range(len(designs)), key=lambda i: tables[i] == mine)
            files: tuple[str, ...] = ()
            try:
                found = nearest(self.problem(cell), [designs[i] for i in order], metric, COUNT)
                files = tuple(os.path.abspath(file) for _, (_, file, _) in found)
            except DesignError as error:
                unfit = error
            cells.append(attrs.evolve(cell, start=files))
        if unfit is not None and not any(cell.start for cell in cells):
            raise unfit
        return attrs.evolve(self, cells=tuple(cells), given=known)

    def result(self, outcomes: Sequence[Outcome]) -> NetworkResult:
        """The result of the outcomes so far; layers without an outcome are waiting."""
        by_folder = {outcome.cell.folder: outcome for outcome in outcomes}
        layers: dict[str, LayerResult] = {}
        for cell, group in zip(self.cells, distinct(self.nodes).values(), strict=True):
            found = self._numbers(cell, by_folder.get(cell.folder))
            for node in group:
                sizes = (node.loops.sizes if node.loops else {}).items()
                densities = " ".join(f"{name} {density:.3g}" for name, density in node.densities.items())
                layers[node.name] = LayerResult(
                    layer=node.name, type=node.piece.type_name, repeat=node.repeat, searched=group[0].name, macs=node.macs,
                    sizes=" ".join(f"{dim} {size}" for dim, size in sizes), densities=densities, **found,
                )  # fmt: skip
        first, problem = self.cells[0], self.widest
        return NetworkResult(
            network=self.network, hardware=self.hardware, technology=problem.technology.label,
            space=problem.space_spec.name, searcher=first.searcher, budget=first.budget, seed=first.seed,
            warm_start=self.warm_start, chip=problem.chip,
            layers=tuple(layers[node.name] for node in self.nodes), lacks=self.lacks, between=self._between(),
            unplanned=self.unplanned,
        )  # fmt: skip

    def _between(self) -> tuple[int, float, float]:
        """Operations and conversions between layers: count, and pJ and cycles of their off-chip traffic."""
        graph, costs = graph_of(self.graph, self.batch), list[tuple[float, float]]()
        chips = self.words_in(graph)
        words = {one.name: one.words for one in graph} | {INPUT: self.input_words}
        for one in graph:
            given, piece = [(words[name], 0, chips.made[name]) for name in one.inputs], one.node.piece
            if isinstance(piece, Operation) and one.words:
                costs.append(passed(piece, given, (one.words, 0, chips.made[one.name])))
            elif isinstance(piece, Workload) and (
                unfit := chips.unfit(one.name, dict(zip(one.inputs, given, strict=True)))
            ):
                costs.append(rewritten(unfit))
        return len(costs), math.fsum(pj for pj, _ in costs), math.fsum(cycles for _, cycles in costs)

    def outcome(self, cell: Cell, outcomes: Sequence[Outcome], whole: Any) -> Outcome:
        """Outcome of the `whole` network, layer by layer or as planned, in the form of a cell: totals and failures."""
        result = self.result(outcomes)
        layers = {layer.searched: layer for layer in result.layers}.values()
        tried = [(layer.evaluations or 0, layer.valid_fraction or 0.0) for layer in layers]
        evaluations = sum(count for count, _ in tried)
        numbers: dict[str, Any] = dict.fromkeys(KEPT) | {"evaluations": evaluations, "technology": result.technology}
        if whole.complete:
            numbers |= {key: getattr(whole, key) for key in ("edp", "energy_pj", "cycles", "gap", "costs")}
            numbers["score"] = self._score(whole.costs)
            numbers["between"] = getattr(whole, "between", None)  # a plan counts them
        lacking = next((one.numbers for one in outcomes if one.numbers and one.numbers.get("edp") is None), {})
        numbers |= {key: lacking.get(key) for key in WHY}
        numbers["lowest_gap"] = min((gap for one in outcomes if (gap := one.numbers.get("gap"))), default=None)
        numbers["chosen"] = chosen_in(outcome.numbers for outcome in outcomes)
        numbers["valid_fraction"] = sum(count * share for count, share in tried) / max(evaluations, 1)
        failed = [f"{outcome.cell.workload}: {outcome.error}" for outcome in outcomes if outcome.state == "failed"]
        failed += list(filter(None, [getattr(whole, "error", "")]))
        if failed:
            return Outcome(cell, "failed", numbers, "; ".join(failed))
        return Outcome(cell, "kept" if all(outcome.state == "kept" for outcome in outcomes) else "done", numbers)

    def _score(self, costs: Mapping[str, float]) -> float | None:
        """Objective of the totals; None for an objective with scenarios or several values."""
        problem = self.widest
        if problem.scenarios or len(problem.objective.names) > 1:
            return None
        own = {key: np.array([cost]) for key, cost in costs.items() if key in ("energy_pj", "cycles")}
        return float(problem.evaluator.score(Evaluation(own, np.zeros(1, np.uint64), ()))[0])

    def _numbers(self, cell: Cell, outcome: Outcome | None) -> dict[str, Any]:
        """Fields of a layer's result from its cell."""
        if outcome is None:
            return {"state": "waiting"}
        if outcome.state == "failed":
            return {"state": "failed", "error": outcome.error}
        apart = ("technology", "costs", "bound_costs", "chosen", "hull", *WHY)
        numbers = {key: value for key, value in outcome.numbers.items() if key not in apart}
        rows, score = numbers.pop("start"), numbers.pop("score")
        numbers["verdict"] = (numbers.pop("convergence") or {}).get("state", "")
        if rows:
            scores = [row["score"] for row in rows if row["score"] is not None]
            ratio = min(scores) / score if scores and score else None
            names = " ".join(row["workload"] for row in rows)
            numbers |= {"start": names, "start_distance": rows[0]["distance"], "start_ratio": ratio}
        least = outcome.numbers.get("bound_costs")
        if not least and (bound := self.problem(cell).lower_bound) is not None:
            least = {"energy_pj": float(bound.energy_pj.min()), "cycles": float(bound.cycles.min())}
        numbers |= {f"bound_{key}": least[key] for key in ("energy_pj", "cycles") if least and key in least}
        missing = {"state": "failed", "error": no_design(outcome.numbers)} if numbers.get("edp") is None else {}
        return {"state": outcome.state, **numbers, **missing}


def of_widths(nodes: Sequence[Node], made: Callable[[Node], Problem]) -> dict[int | None, Problem]:
    """Problem of the first layer of each word width, the widest first, on whose chip every width fits."""
    first = {node.piece.machine_bits: node for node in reversed(nodes)}
    found = [(bits, made(node)) for bits, node in first.items()]
    return dict(sorted(found, key=lambda one: -one[1].hardware.word_bits))


def network_of(registry: Registry, network: Any) -> tuple[Network, tuple[Node, ...]]:
    """A network by name, file or table, and its nodes."""
    base, file = Path("."), ""
    if isinstance(network, str | os.PathLike):
        text = os.fspath(network)
        piece, file = registry.resolve("network", text), text if is_path(text) else ""
        base = Path(text).parent if file else base
    else:
        piece = registry.build("network", network)
    return piece, nodes_of(piece, registry, base, file)


def plan_of(
    registry: Registry, network: Any, hardware: Any, folder: Path, budget: int, seed: int, searcher: Any, space: Any,
    objective: Any, cost_model: Any, warm_start: str | None = None, count: str = "all", more: Any = None,
    handed: bool = False, known: tuple[Network, tuple[Node, ...]] | None = None,
) -> Plan:  # fmt: skip
    """The cells of a network; SpecError for a wrong part, before any search.

    `handed`: outputs have the density the next layer reads. `known`: of `network_of`, for plans on many chips."""
    piece, graph = known or network_of(registry, network)
    graph = handed_on(graph, registry) if handed else graph
    nodes = tuple(node for node in graph if node.loops)
    if not nodes:
        raise SearchError(f"network '{piece.name}' has no layer to search")
    parts = {"hardware": hardware, "space": space, "objective": objective, "cost_model": cost_model, "more": more}
    parts = {key: as_data(key, value, Path(".")) for key, value in parts.items() if value is not None}
    sample = load_problem(nodes[0].piece, **parts, registry=registry)
    named = as_data("searcher", searcher, Path(".")) if searcher is not None else default_searcher(sample)
    chosen = searcher_of(sample, named)
    assert sample.chip is not None  # what is wrong with it is told once, not for each layer
    if warm_start is None:
        warm_start = WARM_START if chosen.takes_migrants else "off"
    if warm_start not in WARM_STARTS:
        raise SearchError(f"warm start: {unknown('choice', warm_start, WARM_STARTS)}")
    if warm_start != "off":
        check_takes(chosen, sample)
    layers = [group[0] for group in distinct(nodes).values()]
    before = earlier(layers, warm_start)
    folders = {name: str(folder / label) for name, label in labels_of(layer.name for layer in layers).items()}
    cells = tuple(
        Cell(
            workload=layer.name, hardware=sample.hardware.name, searcher=chosen.name or chosen.type_name, seed=seed,
            budget=budget, count=count, parts={**parts, "searcher": named, "workload": _table(layer, registry)},
            folder=folders[layer.name], after=tuple(folders[name] for name in before[layer.name]),
        )
        for layer in layers
    )  # fmt: skip
    return Plan(
        network=piece.name, hardware=sample.hardware.name, nodes=nodes, graph=graph, batch=piece.batch, cells=cells,
        input_words=piece.batch * math.prod(piece.input) if piece.input else 0, folder=folder, warm_start=warm_start,
        searcher=chosen, registry=registry, lacks=piece.lacks,
    )  # fmt: skip


def plans_of(
    study: Study, folder: Path, base: Path, registry: Registry
) -> Iterator[tuple[Cell, Callable[[bool], Plan]]]:
    """A study's networks as cells, by network, hardware, searcher, seed; each with its plan, made by whether tensors are
    `handed` on in the density of the next layer. Paths are relative to `base`."""
    about: dict[str, Any] = {"warm_start": study.warm_start or None, "budget": study.budget, "count": study.count}
    about |= {"space": None, "cost_model": None}
    for cell in cells_of(study, folder, base, "network"):
        parts = {**about, **cell.parts, "folder": Path(cell.folder), "seed": cell.seed}

        def make(handed: bool, parts: Mapping[str, Any] = parts) -> Plan:
            return plan_of(registry, **parts, handed=handed)

        yield cell, make
