"""The plan of a network whose tensors may stay on chip: searches per layer and per tensors that stay, and their join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from ..errors import DesignError, SearchError
from ..files import write_texts
from ..pieces.contracts import Operation
from ..problem.evaluation import Detail, Evaluation
from ..problem.network import INPUT, distinct
from ..problem.problem import Problem
from ..searching.best import Best
from .cells import Cell, Outcome, labels_of
from .fused_result import PLAN_FOLDER, FusedLayer, FusedResult
from .graph import GraphNode, consumers, graph_of, passed, stuck
from .join import Chosen, JoinedPlan, Step, TablePoint, joined
from .packets import PLAIN, Packet, packets, uncompressed
from .plan import Plan

SHARE = 4
"""The search of a layer with tensors on chip has the budget over this: it starts from what the layer's own search found."""
Kept = tuple[str, ...]
"""The tensors of a layer that live on chip."""
Place = tuple[str, Packet]
"""The level in which a tensor lives, and the packets in which it is written there."""
Key = tuple[tuple[str, ...], str]
"""The levels of a node's inputs that are no input of the network, and that of its output."""


@attrs.frozen(kw_only=True, slots=False)
class FusedPlan:
    """What is run for a network, and what its outcomes join to. Tensors live in the outermost level or in `home`: the
    outermost level on chip that is there once."""

    plan: Plan
    graph: tuple[GraphNode, ...]
    counted: bool = True
    """Whether operations between layers cost what they read and write."""
    matched: bool = False
    """Whether a tensor is read in the packets in which it was written; otherwise formats change at no cost."""
    _variants: dict[tuple[str, Kept], Problem] = attrs.field(factory=dict, init=False)
    _packets: dict[str, dict[Any, dict[int, Packet]]] = attrs.field(factory=dict, init=False)
    """By content and genome, the packets of each tensor that is handed over."""
    _limited: dict[Any, dict[str, Any]] = attrs.field(factory=dict, init=False)

    @classmethod
    def of(cls, plan: Plan, counted: bool = True, matched: bool = False) -> FusedPlan:
        return cls(plan=plan, graph=graph_of(plan.graph, plan.batch), counted=counted, matched=matched)

    @cached_property
    def problem(self) -> Problem:
        return self.plan.problem(self.plan.cells[0])

    @cached_property
    def home(self) -> int:
        levels = self.problem.levels
        found = next((level.index for level in levels[1:] if level.instances == 1), None)
        if found is None:
            text = (
                f"no level of '{self.problem.hardware.name}' on chip is there once, so that no tensor can stay in one"
            )
            raise SearchError(f"{text}; leave --fuse out")
        return found

    @cached_property
    def places(self) -> tuple[str, str]:
        """Names of the levels in which tensors may live, the outermost first."""
        return self.problem.levels[0].name, self.problem.levels[self.home].name

    @cached_property
    def capacity(self) -> float:
        """Words of the level on chip."""
        chip = self.problem.chip
        return float(np.floor(chip.capacity_bits[self.home] / chip.word_bits[self.home]))

    @cached_property
    def stuck(self) -> dict[str, str]:
        """By node, why its output cannot stay on chip; empty: it can."""
        return {one.name: stuck(one, self.takers[one.name], self.places[1], self.capacity) for one in self.graph}

    @cached_property
    def takers(self) -> dict[str, list[GraphNode]]:
        """By node, those that take its output."""
        return consumers(self.graph)

    @cached_property
    def named(self) -> dict[str, GraphNode]:
        return {one.name: one for one in self.graph}

    def keys(self, one: GraphNode) -> list[Key]:
        """Where the inputs of a node that are no input of the network may live, and its output."""
        outside, inside = self.places
        given = [(outside,) if self.stuck[name] else (outside, inside) for name in one.inputs if name != INPUT]
        own = (outside,) if self.stuck[one.name] else (outside, inside)
        return [(key[:-1], key[-1]) for key in product(*given, own)]

    def kept(self, one: GraphNode, key: Key) -> Kept:
        """The tensors of a layer that live on chip."""
        if one.node.loops is None:
            return ()
        given = iter(key[0])
        named = zip(one.operands, one.inputs, strict=False)
        found = [tensor for tensor, name in named if name != INPUT and next(given) == self.places[1]]
        output = next(t.name for t in one.node.loops.tensors if t.output)
        return tuple(dict.fromkeys([*found, *([output] if key[1] == self.places[1] else [])]))

    @cached_property
    def layers(self) -> dict[str, list[GraphNode]]:
        """By content, the nodes that are equal layers."""
        found: dict[str, list[GraphNode]] = {}
        for one in self.graph:
            if one.node.loops is not None:
                found.setdefault(one.node.content, []).append(one)
        return found

    @cached_property
    def wanted(self) -> dict[str, list[Kept]]:
        """By content, the sets of tensors that may stay for any of the layers, fewest first."""
        return {
            content: sorted({self.kept(one, key) for one in group for key in self.keys(one)}, key=lambda k: (len(k), k))
            for content, group in self.layers.items()
        }

    def _words(self, content: str) -> dict[str, int]:
        """By tensor of a layer, what it takes on chip."""
        found: dict[str, int] = {}
        for one in self.layers[content]:
            assert one.node.loops is not None
            given = zip(one.operands, one.inputs, strict=False)
            mine = {tensor: self.named[name].words for tensor, name in given if name != INPUT}
            mine |= {t.name: one.words for t in one.node.loops.tensors if t.output}
            found = {tensor: max(found.get(tensor, 0), count) for tensor, count in mine.items()}
        return found

    @cached_property
    def searched(self) -> dict[str, dict[Kept, Cell]]:
        """By content and tensors that stay, the cells; without any that stays, those of the plan."""
        found: dict[str, dict[Kept, Cell]] = {}
        for (content, group), cell in zip(distinct(self.plan.nodes).items(), self.plan.cells, strict=True):
            words, cells = self._words(content), dict[Kept, Cell]({(): cell})
            some = [kept for kept in self.wanted[content] if kept and sum(words[t] for t in kept) < self.capacity]
            for kept in some:
                if any(set(kept) < set(other) for other in some):
                    continue  # designs for more tensors that stay are tried with fewer as well
                workload = {
                    **cell.parts["workload"],
                    "resides": dict.fromkeys(kept, self.places[1]),
                    "resident_words": {tensor: words[tensor] for tensor in kept},
                }
                cells[kept] = attrs.evolve(
                    cell,
                    workload=f"{group[0].name} with {' and '.join(kept)} in {self.places[1]}",
                    budget=max(1, cell.budget // SHARE),
                    parts={**cell.parts, "workload": workload},
                    folder=f"{cell.folder}--{'-'.join(kept)}",
                    after=(cell.folder,),
                    start=(),
                )
            found[content] = cells
        return found

    @property
    def cells(self) -> list[Cell]:
        """All of them: those of the plan first, each of which may start others."""
        return [*self.plan.cells, *(c for some in self.searched.values() for kept, c in some.items() if kept)]

    # -- tables

    def variant(self, content: str, kept: Kept) -> Problem:
        """A layer with tensors on chip; these take no room in it, as the join knows what lives there."""
        base = self.plan.problem(self.searched[content][()])
        if kept and (content, kept) not in self._variants:
            resides, none = dict.fromkeys(kept, self.places[1]), dict.fromkeys(kept, 0)
            workload = attrs.evolve(base.workload, resides=resides, resident_words=none)
            self._variants[content, kept] = base.variant(workload=workload)
        return self._variants[content, kept] if kept else base

    def tables(self, outcomes: Mapping[str, Outcome]) -> dict[str, dict[Kept, list[TablePoint]]]:
        """By content and tensors that stay, what every design that a search of the layer has kept costs, (n,)."""
        found: dict[str, dict[Kept, list[TablePoint]]] = {}
        for content, cells in self.searched.items():
            genomes: list[tuple[int, ...]] = []
            for cell in cells.values():
                numbers = outcomes[cell.folder].numbers if cell.folder in outcomes else {}
                genomes += [tuple(row["genome"]) for row in numbers.get("hull") or ()]
            if self.matched and genomes:
                edges = self._edges(content)
                genomes += uncompressed(self.plan.problem(cells[()]), genomes, edges)
            genomes = list(dict.fromkeys(genomes))
            found[content] = {}
            for kept in self.wanted[content]:
                found[content][kept] = self._points(self.variant(content, kept), genomes) if genomes else []
            if self.matched and genomes:
                base = self.plan.problem(cells[()])
                told = packets(base, base.space.decode(np.array(genomes, dtype=np.int64)), edges)
                self._packets[content] = {
                    g: dict(zip(edges, p, strict=True)) for g, p in zip(genomes, told, strict=True)
                }
        return found

    def _edges(self, content: str) -> list[int]:
        """The tensors of a layer that another node makes or takes."""
        base, one = self.plan.problem(self.searched[content][()]), self.layers[content]
        taken = {t for node in one for t, name in zip(node.operands, node.inputs, strict=False) if name != INPUT}
        return [t for t, tensor in enumerate(base.tensors) if tensor.output or tensor.name in taken]

    def _points(self, problem: Problem, genomes: Sequence[tuple[int, ...]]) -> list[TablePoint]:
        designs = problem.space.decode(np.array(genomes, dtype=np.int64))
        told = problem.evaluator.evaluate_designs(designs, detail=True)
        room = self._room(problem, told.detail or Detail())
        return [
            TablePoint(float(told.energy_pj[row]), float(told.cycles[row]), float(room[row]), genomes[row])
            for row in np.flatnonzero(told.valid).tolist()
        ]

    def _room(self, problem: Problem, detail: Detail) -> np.ndarray:
        """(n,) words of the level on chip that designs need for what does not live there."""
        s, chip = self.home, problem.chip
        if detail.data_words_max is None or detail.metadata_bits_max is None:
            raise SearchError(
                f"cost model '{problem.cost_model.name}' does not tell the room that designs need: no --fuse"
            )
        copies = problem.cost_model.copies(problem)
        words = detail.data_words_max[:, s] * (1.0 if copies is None else np.asarray(copies)[:, s, None])
        bits = detail.metadata_bits_max[s] if np.all(chip.shared_capacity[s]) else np.zeros(words.shape[1])
        return np.asarray(words.sum(axis=0) + np.ceil(bits / chip.word_bits[s]))

    def steps(self, tables: Mapping[str, Mapping[Kept, Sequence[TablePoint]]]) -> list[Step]:
        """The graph with a table for each place of its tensors."""
        found = []
        for one in self.graph:
            made: dict[Any, list[TablePoint]] = {}
            for key in self.keys(one):
                if one.node.loops is None:
                    made[tuple((level, PLAIN) for level in key[0]), (key[1], PLAIN)] = [self._passed(one, key)]
                    continue
                for point in tables[one.node.content][self.kept(one, key)]:
                    given, own = self._written(one, point)
                    if given is not None and own is not None:
                        made.setdefault((tuple(zip(key[0], given, strict=True)), (key[1], own)), []).append(point)
            before = tuple(name for name in one.inputs if name != INPUT)
            words: dict[Any, float] = {place: float(one.words) for _, place in made if self._inside(place)}
            found.append(Step(name=one.name, inputs=before, tables=made, words=words, in_place=one.node.loops is None))
        return found

    def _inside(self, place: Any) -> bool:
        return bool(place[0] == self.places[1])

    def _written(self, one: GraphNode, point: TablePoint) -> tuple[tuple[Packet, ...] | None, Packet | None]:
        """The packets in which a design reads the inputs of a layer that other nodes make, and writes its output; None where
        nobody can write or read them: operations work word by word, and ranks that are split or merged have no packets."""
        names = [name for name in one.inputs if name != INPUT]
        mine = self._packets.get(one.node.content, {}).get(point.design)
        if mine is None:
            return (PLAIN,) * len(names), PLAIN
        tensors = {t.name: i for i, t in enumerate(self.plan.problem(self.searched[one.node.content][()]).tensors)}
        loops = one.node.loops
        assert loops is not None
        given: list[Packet] = []
        for tensor, name in zip(one.operands, one.inputs, strict=False):
            if name == INPUT:
                continue
            packet, maker = mine[tensors[tensor]], self.named[name].node.loops
            ranks = next(t.ranks for t in loops.tensors if t.name == tensor)
            if packet != PLAIN and (
                maker is None or len(next(t.ranks for t in maker.tensors if t.output)) != len(ranks)
            ):
                return None, None
            given.append(packet)
        if len(given) < len(names):
            given = [PLAIN] * len(names)
        output = next(t.name for t in loops.tensors if t.output)
        return tuple(given), mine[tensors[output]] if self.takers[one.name] else PLAIN

    def _passed(self, one: GraphNode, key: Key) -> TablePoint:
        """What an operation costs."""
        if not self.counted or not one.words or not isinstance(one.node.piece, Operation):
            return TablePoint(0.0, 0.0)
        level, given = {self.places[0]: 0, self.places[1]: self.home}, iter(key[0])
        moved = [(self.named[name].words, level[next(given)]) for name in one.inputs if name != INPUT]
        if INPUT in one.inputs:
            moved.append((self.plan.input_words, 0))
        return TablePoint(*passed(one.node.piece, moved, (one.words, level[key[1]]), self.problem.chip))

    # -- the result

    def value(self, energy_pj: float, cycles: float) -> float:
        """The objective of the sums."""
        costs = {"energy_pj": np.array([energy_pj]), "cycles": np.array([cycles])}
        there = Evaluation(costs, np.zeros(1, np.uint64), ()).on(self.problem.chip)
        return float(self.problem.evaluator.score(there)[0])

    def result(self, outcomes: Sequence[Outcome]) -> FusedResult:
        """The result of the outcomes that there are: of the searches, and once all have a design, of the join."""
        base = self.plan.result([one for one in outcomes if one.cell.folder in {c.folder for c in self.plan.cells}])
        by_folder = {outcome.cell.folder: outcome for outcome in outcomes}
        if not base.complete or len(by_folder) < len(self.cells):
            return FusedResult(base=base, home=self.places[1], outside=self.places[0])
        steps = self.steps(self.tables(by_folder))
        plan = joined(steps, self.capacity, self.value)
        if plan is None:
            return FusedResult(base=base, home=self.places[1], outside=self.places[0], error="no plan fits on the chip")
        return self._told(base, plan, steps)

    def _told(self, base: Any, plan: JoinedPlan, steps: Sequence[Step]) -> FusedResult:
        own = {layer.layer: layer for layer in base.layers}
        alone = [TablePoint(*self._own(self.named[step.name], own)) for step in steps]
        rows, labels, files = [], labels_of(self.named), dict[Any, str]()
        for chosen in plan.steps:
            one = self.named[chosen.step]
            live: dict[str, Any] = dict(chosen.live)
            inputs = tuple(live[name][0] if name != INPUT else self.places[0] for name in one.inputs)
            given = tuple(live[name][0] for name in one.inputs if name != INPUT)
            level, packet = live[one.name]
            kept = self.kept(one, (given, level))
            same = one.node.content, kept, chosen.point.design
            rows.append(
                FusedLayer(
                    layer=one.name,
                    type=one.node.piece.type_name,
                    searched=own[one.node.name].searched if one.node.name in own else "",
                    macs=one.node.macs,
                    inputs=one.inputs,
                    from_places=inputs,
                    place=level,
                    packed=packet != PLAIN,
                    words=one.words,
                    why=self._why(one, chosen, steps, plan),
                    energy_pj=chosen.point.energy_pj,
                    cycles=chosen.point.cycles,
                    live=tuple(name for name, place in live.items() if place[0] == self.places[1]),
                    live_words=chosen.live_words,
                    used_words=chosen.used,
                    kept=kept,
                    design=files.setdefault(same, f"{PLAN_FOLDER}/{labels[one.name]}.toml") if one.node.loops else "",
                    genome=chosen.point.design or (),
                    **self._limits(one, kept, chosen),
                )
            )
        return FusedResult(
            base=base,
            home=self.places[1],
            outside=self.places[0],
            capacity=self.capacity,
            rows=tuple(rows),
            layer_by_layer=(sum(p.energy_pj for p in alone), sum(p.cycles for p in alone)),
            bound=self._bound(),
            counted=self.counted,
            matched=self.matched,
        )

    def _own(self, one: GraphNode, own: Mapping[str, Any]) -> tuple[float, float]:
        """What a node costs layer by layer: its best design for itself, with all tensors outside."""
        if one.node.name in own:
            return own[one.node.name].energy_pj, own[one.node.name].cycles
        point = self._passed(one, self.keys(one)[0])
        return point.energy_pj, point.cycles

    def _why(self, one: GraphNode, chosen: Chosen, steps: Sequence[Step], plan: JoinedPlan) -> str:
        """Why the output of a node is not on chip; empty if it is."""
        if self._inside(dict(chosen.live)[one.name]):
            return ""
        if self.stuck[one.name]:
            return self.stuck[one.name]
        forced = [
            attrs.evolve(step, tables={k: v for k, v in step.tables.items() if self._inside(k[1])})
            if step.name == one.name
            else step
            for step in steps
        ]
        other = joined(forced, self.capacity, self.value, reorder=False)
        if other is None:
            return f"no room beside tiles and what lives ({one.words:,} words)"
        ratio = self.value(other.energy_pj, other.cycles) / self.value(plan.energy_pj, plan.cycles)
        return f"on chip the network is {ratio:.3f}x worse" if ratio > 1 else "nothing gained"

    def _limits(self, one: GraphNode, kept: Kept, chosen: Chosen) -> dict[str, Any]:
        """Utilisation of the compute units, what limits a layer, and its breakdown."""
        if one.node.loops is None:
            return {}
        key = one.node.content, kept, chosen.point.design
        if key not in self._limited:
            best = self.best(one, kept, chosen)
            found, computes = best.breakdown(), best.detail.computes
            share = None if computes is None else float(computes[0]) / (best.cycles * best.problem.compute_instances)
            limit = found.limit.removeprefix("the ")
            self._limited[key] = {"utilisation": share, "limit": limit, "by_level": found.to_dict()}
        return self._limited[key]

    def best(self, one: GraphNode, kept: Kept, chosen: Chosen) -> Best:
        """The design of a layer in the plan, with its tensors where they live."""
        problem = self.variant(one.node.content, kept)
        genome = np.array(chosen.point.design, dtype=np.int64)
        costs = {"energy_pj": chosen.point.energy_pj, "cycles": chosen.point.cycles}
        return Best(problem, genome, costs, self.value(*costs.values()))

    def write_designs(self, result: FusedResult) -> list[Path]:
        """Writes the designs of a plan to the folder `plan`, a file for each different one, as `FusedLayer.design` says."""
        texts: dict[Path, str] = {}
        for row in result.rows:
            one, path = self.named[row.layer], self.plan.folder / row.design
            if row.design and path not in texts:
                own, output = dict(zip(one.operands, one.inputs, strict=False)), one.words
                words = {tensor: self.named[own[tensor]].words if tensor in own else output for tensor in row.kept}
                base = self.variant(one.node.content, row.kept)
                there = base.variant(workload=attrs.evolve(base.workload, resident_words=words))
                numbers = {"energy_pj": row.energy_pj, "cycles": row.cycles}
                best = Best(there, np.array(row.genome, dtype=np.int64), numbers, self.value(row.energy_pj, row.cycles))
                with suppress(DesignError):  # it has columns that no file can hold
                    texts[path] = best.text(path.parent)
        return write_texts(texts)

    def _bound(self) -> float | None:
        """No plan of designs of the space has a lower objective: the join of the layers' bounds, without room."""
        found: dict[str, dict[Kept, list[TablePoint]]] = {}
        for content, sets in self.wanted.items():
            pairs: dict[Kept, list[TablePoint]] = {}
            every = tuple(sorted({tensor for kept in sets for tensor in kept}))
            for kept in ((), every):  # what is in between moves no less than with all that may stay
                bound = self.variant(content, kept).lower_bound
                if bound is None:
                    return None
                both = zip(bound.energy_pj.tolist(), bound.cycles.tolist(), strict=True)
                pairs[kept] = [TablePoint(energy, cycles) for energy, cycles in both]
            found[content] = {kept: pairs[every if kept else ()] for kept in sets}
        self._packets.clear()  # whatever is written: a bound of matched plans as well
        plan = joined(self.steps(found), self.capacity, self.value)
        return None if plan is None else self.value(plan.energy_pj, plan.cycles)
