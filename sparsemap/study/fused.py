"""Searches for a network with tensors on chip: searches per layer, and per set of resident tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise, product

import attrs
import numpy as np

from ..errors import SearchError
from ..files import grouped
from ..pieces.contracts import Operation
from ..pieces.contracts.base import Array
from ..problem.chip import Chip
from ..problem.designs import NUMBERS
from ..problem.evaluation import Evaluation
from ..problem.network import INPUT, distinct
from ..problem.problem import Problem
from .cells import Cell
from .graph import GraphNode, WordChips, consumers, graph_of, stuck
from .plan import Plan
from .slides import Slide, slides

SHARE = 4
"""Divisor of the budget for a layer with tensors on chip: such a search starts from designs of the layer's own search.
With pinned weights the divisor is twice as large."""
BOUNDED = 250
"""Least budget, in designs, for a lower bound in such a search; a bound takes the time of some hundred designs."""
LARGE = 0.25
"""Least share of the level on chip for a tensor to slide; smaller tensors stay as a whole."""
Kept = tuple[str, ...]
"""Tensors of a layer on chip."""
Key = tuple[tuple[str, ...], str]
"""Levels of a node's inputs, without the network's input, and the level of its output."""


def whole_of(
    make: Callable[[bool], Plan], fuse: bool | None, operations: str = "fused", formats: str = "matched",
    pins: bool = False,
) -> Plan | FusedPlan:  # fmt: skip
    """The searches of a network, with a plan of tensors on chip if `fuse`, or by default if possible.

    `make` makes the searches of the layers alone, by whether tensors have the density of the next layer."""
    plan = make(fuse is not False and formats == "matched")
    if fuse is None and (why := unplanned(plan)):
        return attrs.evolve(make(False), unplanned=why)
    return plan if fuse is False else FusedPlan.of(plan, operations, formats == "matched", pins)


def unplanned(plan: Plan) -> str:
    """Reason against a plan of a network with tensors on chip; empty if possible."""
    problem = plan.widest
    if not any(one.words for one in graph_of(plan.graph, plan.batch)):
        return f"'{plan.network}' is a list of layers, which does not say its shapes (key `input`)"
    if all(level.instances > 1 for level in problem.levels[1:]):
        return f"no level of '{plan.hardware}' on chip is there once"
    if problem.space.provides(NUMBERS):
        return "the number formats of tensors between layers are left to the genes of each layer"
    if problem.scenarios or len(problem.objective.names) > 1:
        return f"objective '{problem.objective.name}' has several values for a design"
    told = problem.evaluator.evaluate_designs(problem.space.decode(problem.space.low[None]), detail=True).detail
    if told is None or told.data_words_max is None or told.cells is None:
        return f"cost model '{problem.cost_model.name}' does not tell the room of a design"
    return ""


@attrs.frozen(kw_only=True, slots=False)
class FusedPlan:
    """Searches for a network, and the inputs of the join.

    Tensors live in the outermost level, or in `home`: the outermost level on chip with a single instance."""

    plan: Plan
    graph: tuple[GraphNode, ...]
    operations: str = "fused"
    """Cost of operations between layers, see `search_network`."""
    matched: bool = False
    """Whether a tensor is read in its producer's packets; otherwise formats change at no cost."""
    pins: bool = False
    """Whether layers are searched for pinned weights too."""
    _variants: dict[tuple[str, Kept], Problem] = attrs.field(factory=dict, init=False)

    @classmethod
    def of(cls, plan: Plan, operations: str = "fused", matched: bool = False, pins: bool = False) -> FusedPlan:
        """Its layers keep one choice of sizes, since their genomes are designs of all searches of the layer."""
        if plan.widest.space.provides(NUMBERS):
            raise SearchError(f"{unplanned(plan)}; --no-fuse gives the layers alone")
        plan = attrs.evolve(plan, cells=tuple(attrs.evolve(cell, raced=False) for cell in plan.cells))
        graph = graph_of(plan.graph, plan.batch)
        return cls(plan=plan, graph=graph, operations=operations, matched=matched, pins=pins)

    @cached_property
    def problem(self) -> Problem:
        return self.plan.widest

    @cached_property
    def words_in(self) -> WordChips:
        return self.plan.words_in(self.graph)

    def unlike(self, name: str, one: GraphNode) -> bool:
        """Whether an input of a node has words of another width."""
        chips = self.words_in
        made, taken = chips.made[name].word_bits, chips.taken.get((one.name, name), chips.made[one.name]).word_bits
        return any(made[level] != taken[level] for level in self.levels.values())

    @cached_property
    def levels(self) -> dict[str, int]:
        """Level numbers of the `places`."""
        return {self.places[0]: 0, self.places[1]: self.home}

    @cached_property
    def held(self) -> dict[str, float]:
        """By node, words of its output that fit on chip; "" is for the machine's widest words, the unit of all room."""
        return {name: self._fit(chip) for name, chip in {**self.words_in.made, "": self.problem.chip}.items()}

    def _fit(self, chip: Chip) -> float:
        return float(chip.capacity_bits[self.home] / chip.word_bits[self.home])

    def share(self, chip: Chip) -> float:
        """The room of a word of a chip."""
        count = self._fit(chip)
        return 1.0 if count == math.inf else self.held[""] / count

    @cached_property
    def shares(self) -> dict[str, float]:
        """By node, the room of a word of its output."""
        return {name: self.share(chip) for name, chip in {**self.words_in.made, "": self.problem.chip}.items()}

    @cached_property
    def home(self) -> int:
        found = next((level.index for level in self.problem.levels[1:] if level.instances == 1), None)
        if found is None:
            text = f"no level of '{self.problem.hardware.name}' on chip is there once"
            raise SearchError(f"{text}, so that no tensor can stay in one; --no-fuse gives the layers alone")
        return found

    @cached_property
    def places(self) -> tuple[str, str]:
        """Names of the levels for tensors between layers, the outermost first."""
        return self.problem.levels[0].name, self.problem.levels[self.home].name

    @cached_property
    def capacity(self) -> float:
        """Capacity of the level on chip in the network's widest words."""
        return float(np.floor(self.held[""]))

    @cached_property
    def stuck(self) -> dict[str, str]:
        """By node, the reason against keeping its output on chip; empty if possible."""
        how = {one.name: (self.takers[one.name], self.places[1], self.held[one.name]) for one in self.graph}
        return {one.name: self.barred.get(one.name) or stuck(one, *how[one.name]) for one in self.graph}

    @cached_property
    def barred(self) -> dict[str, str]:
        """By node, the layer that does not store its output or input, made by the node, in the level on chip."""
        found: dict[str, str] = {}
        for one in self.graph:
            for tensor, name in [*zip(one.operands, one.inputs, strict=False), ("", one.name)]:
                if self._passes_by(one, tensor):
                    found.setdefault(name, f"{self.places[1]} does not store it for {one.name} (bypass)")
        return found

    def _passes_by(self, one: GraphNode, tensor: str) -> bool:
        """Whether a tensor of a layer ("": the output) passes by the level on chip."""
        if one.node.loops is None or not self.problem.levels[self.home].memory.bypass:
            return False
        problem = self.plan.problem(self.own[one.node.content])
        names = [t.name if not t.output or tensor else "" for t in problem.tensors]
        return not problem.stores(names.index(tensor), self.home)

    @cached_property
    def own(self) -> dict[str, Cell]:
        """By content, the cell of a layer alone."""
        return dict(zip(distinct(self.plan.nodes), self.plan.cells, strict=True))

    @cached_property
    def takers(self) -> dict[str, list[GraphNode]]:
        """Consumers of each node's output."""
        return consumers(self.graph)

    @cached_property
    def fused_into(self) -> dict[str, str]:
        """By fused operation, the node before it; this node writes the operation's output directly."""
        found: dict[str, str] = {}
        for before, one in pairwise(self.graph if self.operations == "fused" else ()):
            single = list(one.inputs).count(before.name) == 1 and self.takers[before.name] == [one]
            # what is broadcast, or becomes wider, is not made where it was written
            single = single and before.words == one.words and not self.unlike(before.name, one)
            if single and isinstance(one.node.piece, Operation) and one.node.piece.wordwise:
                found[one.name] = before.name
        return found

    @cached_property
    def named(self) -> dict[str, GraphNode]:
        return {one.name: one for one in self.graph}

    @cached_property
    def sliding(self) -> dict[str, tuple[Slide, ...]]:
        """By node, ranks for its output to slide along into the next layer, its only reader, of equal width."""
        found: dict[str, tuple[Slide, ...]] = {}
        if not all(map(self.problem.space.provides, ("bounds", "order"))):
            return found
        for one, after in zip(self.graph, self.graph[1:], strict=False):
            operands = after.operands if after.node.loops else ("",) * len(after.inputs)
            takes = [tensor for tensor, name in zip(operands, after.inputs, strict=False) if name == one.name]
            large = one.live * self.shares[one.name] > LARGE * self.capacity
            if (
                large
                and one.name not in self.barred
                and not self.unlike(one.name, after)
                and self.takers[one.name] == [after]
                and len(takes) == 1
            ):
                sums = after.words * self.shares[after.name] <= self.capacity
                every = slides(one.node, after.node, takes[0], sums)
                # columns are no better than rows
                alike = {(s.rows, s.steps, s.stride, s.reach): s for s in reversed(every)}
                found[one.name] = tuple(alike.values())
        return {name: some for name, some in found.items() if some}

    def keys(self, one: GraphNode, sliding: bool = False) -> list[Key]:
        """Levels of a node's inputs (without the network's) and output, each resident as a whole, or `sliding`."""
        found = []
        for name in (*one.inputs, one.name):
            stays = name != INPUT and (not self.stuck[name] or (sliding and name in self.sliding))
            found.append(self.places if stays else self.places[:1])
        given = [places for name, places in zip(one.inputs, found, strict=False) if name != INPUT]
        return [(key[:-1], key[-1]) for key in product(*given, found[-1])]

    def kept(self, one: GraphNode, key: Key) -> Kept:
        """Tensors of a layer on chip."""
        if one.node.loops is None:
            return ()
        given = iter(key[0])
        named = zip(one.operands, one.inputs, strict=False)
        found = [tensor for tensor, name in named if name != INPUT and next(given) == self.places[1]]
        output = next(t.name for t in one.node.loops.tensors if t.output)
        return tuple(dict.fromkeys([*found, *([output] if key[1] == self.places[1] else [])]))

    @cached_property
    def layers(self) -> dict[str, list[GraphNode]]:
        """By content, the nodes of equal layers."""
        return grouped((one for one in self.graph if one.node.loops is not None), lambda one: one.node.content)

    @cached_property
    def wanted(self) -> dict[str, list[Kept]]:
        """By content, the sets of tensors that may stay for any of the layers, fewest first."""
        found = {
            content: {self.kept(one, key) for one in group for key in self.keys(one, sliding=True)}
            for content, group in self.layers.items()
        }
        return {content: sorted(sets, key=lambda kept: (len(kept), kept)) for content, sets in found.items()}

    @property
    def weights(self) -> dict[str, Kept]:
        """By content, the tensor of trained weights that may stay on chip across inferences, if any."""
        return self.trained if self.pins else dict.fromkeys(self.layers, ())

    @cached_property
    def trained(self) -> dict[str, Kept]:
        """By content, the tensor of trained weights, if the level on chip stores it; only in a graph, in which all other
        tensors are known."""
        found = dict[str, Kept]()
        for content, group in self.layers.items():
            name, loops = getattr(group[0].node.piece, "weights", ""), group[0].node.loops
            there = loops is not None and any(t.name == name for t in loops.tensors)
            there = there and not self._passes_by(group[0], name)
            found[content] = (name,) if there and all(one.words for one in group) else ()
        return found

    def _words(self, content: str) -> dict[str, int]:
        """By tensor of a layer, its words on chip: the whole tensor, or the least live part of a larger one."""
        found: dict[str, int] = {}
        for one in self.layers[content]:
            mine = {tensor: self._least(name) for tensor, name in zip(one.operands, one.inputs, strict=False)}
            tensors = one.node.loops.tensors if one.node.loops else ()
            mine |= {t.name: self._least(one.name) for t in tensors if t.output}
            found |= {tensor: max(found.get(tensor, 0), count) for tensor, count in mine.items()}
        return found | dict.fromkeys(self.weights[content], self.layers[content][0].node.weights)

    def _least(self, name: str) -> int:
        if name == INPUT:
            return 0
        if self.stuck[name] and name in self.sliding:
            return min(slide.live(1, 1) * slide.across for slide in self.sliding[name])
        return self.named[name].live

    @cached_property
    def searched(self) -> dict[str, dict[Kept, Cell]]:
        """Cells by content and tensors on chip; without tensors on chip, the cells of the plan."""
        found: dict[str, dict[Kept, Cell]] = {}
        for content, own in self.own.items():
            cell, name = own, self.layers[content][0].node.name
            words, cells = self._words(content), dict[Kept, Cell]({(): cell})
            node = self.layers[content][0].node
            room = {t: count * self.share(self.plan.words_of(node, t)) for t, count in words.items()}
            some = [kept for kept in self.wanted[content] if kept and sum(room[t] for t in kept) < self.capacity]
            most = max(reversed(some), key=lambda one: sum(room[t] for t in one), default=())
            pinned = (*most, *self.weights[content])
            # their designs are tried with other tensors on chip as well
            for kept in dict.fromkeys(
                one for one in (most, pinned) if one and sum(room[t] for t in one) < self.capacity
            ):
                there = {tensor: words[tensor] for tensor in kept}
                workload = {"resides": dict.fromkeys(kept, self.places[1]), "resident_words": there}
                budget = max(1, cell.budget // (SHARE if kept == most else 2 * SHARE))
                cells[kept] = attrs.evolve(
                    cell, workload=f"{name} with {' and '.join(kept)} in {self.places[1]}", budget=budget,
                    bounded=budget >= BOUNDED, folder=f"{cell.folder}--{'-'.join(kept)}",
                    after=tuple(one.folder for one in cells.values()), start=(),
                    parts={**cell.parts, "workload": {**cell.parts["workload"], **workload}},
                )  # fmt: skip
            found[content] = cells
        return found

    @property
    def cells(self) -> list[Cell]:
        """All cells: the cells of the plan first, as possible starts for the others."""
        return [*self.plan.cells, *(c for some in self.searched.values() for kept, c in some.items() if kept)]

    # -- problems

    def loaded(self, cell: Cell) -> Problem:
        """Problem of a cell; the problem of a layer by itself is cached for later use by the plan."""
        return self.plan.loaded(cell) if "resides" in cell.parts["workload"] else self.plan.problem(cell)

    def variant(self, content: str, kept: Kept = ()) -> Problem:
        """A layer with tensors on chip, which take no room here: the join accounts for resident tensors."""
        base = self.plan.problem(self.searched[content][()])
        if kept and (content, kept) not in self._variants:
            resides, none = dict.fromkeys(kept, self.places[1]), dict.fromkeys(kept, 0)
            workload = attrs.evolve(base.workload, resides=resides, resident_words=none)
            self._variants[content, kept] = base.variant(workload=workload)
        return self._variants[content, kept] if kept else base

    def value(self, energy_pj: float, cycles: float) -> float:
        """Objective of the sums of pJ and cycles."""
        return float(self.values(np.array([[energy_pj, cycles]]))[0])

    def values(self, sums: Array) -> Array:
        """(n,) objective of sums (n, 2) of pJ and cycles."""
        costs = {"energy_pj": sums[:, 0], "cycles": sums[:, 1]}
        return self.problem.evaluator.score(Evaluation(costs, np.zeros(len(sums), np.uint64), ()).on(self.problem.chip))
