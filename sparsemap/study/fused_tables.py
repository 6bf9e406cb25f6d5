"""What designs of the layers of a network cost, by where their tensors live: the tables that a plan is joined from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from ..errors import SearchError
from ..pieces.contracts import Operation
from ..pieces.contracts.base import Array
from ..primes import divisors
from ..problem.designs import Designs
from ..problem.evaluation import Detail, Evaluation
from ..problem.network import INPUT
from ..problem.passing import by_layout
from ..problem.problem import Problem
from .cells import Outcome
from .fused import FusedPlan, Kept, Key
from .graph import GraphNode, passed
from .interleaved import Member, interleaved
from .join import Fitting, JoinedPlan, Step, TablePoint, joined
from .packets import PLAIN, Packet, TensorPlace, encoded, packets, uncompressed, with_conversions
from .slides import Outermost, made, outermost, sliced

Tables = Mapping[str, Mapping[Kept, Sequence[TablePoint]]]
"""By content and tensors that stay, what designs cost; their `design` is the genome."""


MOST_TARGETS = 4
"""Packets of a tensor that a conversion may write: those of the consumers' best designs."""


def alike(problem: Problem, genomes: Sequence[tuple[int, ...]]) -> Iterator[tuple[list[int], Evaluation]]:
    """Rows in which the same tensors pass by the same levels, and what designs cost, with the details."""
    designs = problem.space.decode(np.array(genomes, dtype=np.int64)) if genomes else Designs({})
    for rows, some in by_layout(designs):
        yield rows.tolist(), problem.evaluator.evaluate_designs(some, detail=True)


@attrs.frozen(slots=False)
class FusedTables:
    """The tables of a plan, made of the outcomes of its cells by folder."""

    fused: FusedPlan
    outcomes: Mapping[str, Outcome]
    fitting: Fitting = attrs.field(factory=dict, init=False)
    """What joins of these tables share."""
    _read: dict[Any, tuple[tuple[Packet, ...] | None, Packet | None]] = attrs.field(factory=dict, init=False)
    """By node and genome, `_written`."""
    _made: dict[Any, Any] = attrs.field(factory=dict, init=False)
    """Tables of nodes by what they depend on."""

    @cached_property
    def genomes(self) -> dict[str, list[tuple[int, ...]]]:
        """By content, the designs that searches of a layer have kept, and those made of them: with tensors between layers
        uncompressed, and with one loop outside that tensors can slide by."""
        found = {}
        for content, cells in self.fused.searched.items():
            some: list[tuple[int, ...]] = []
            for cell in cells.values():
                numbers = self.outcomes[cell.folder].numbers if cell.folder in self.outcomes else {}
                some += [tuple(row["genome"]) for row in numbers.get("hull") or ()]
            base = self.fused.plan.problem(cells[()])
            if self.fused.matched and some:
                some += uncompressed(base, some, self.edges[content])
            walks = self.walks[content]
            if walks and some:
                some += sliced(base, some, walks)
            found[content] = list(dict.fromkeys(some))
        return found

    @cached_property
    def walks(self) -> dict[str, list[str]]:
        """By content, the dimensions along which tensors may slide by."""
        fused, found = self.fused, dict[str, list[str]]()
        for content, group in fused.layers.items():
            made = [slide.made for one in group for slide in fused.sliding.get(one.name, ())]
            taken = [slide.taken for one in group for name in one.inputs for slide in fused.sliding.get(name, ())]
            base = fused.plan.problem(fused.searched[content][()])
            sizes = fused.layers[content][0].node.loops
            assert sizes is not None
            found[content] = [d for d in dict.fromkeys([*made, *taken]) if base.sizes[d] == sizes.sizes[d]]
        return found

    @cached_property
    def edges(self) -> dict[str, list[int]]:
        """By content, the tensors of a layer that another node makes or takes."""
        found = {}
        for content, group in self.fused.layers.items():
            base = self.fused.plan.problem(self.fused.searched[content][()])
            taken = {t for one in group for t, name in zip(one.operands, one.inputs, strict=False) if name != INPUT}
            found[content] = [t for t, tensor in enumerate(base.tensors) if tensor.output or tensor.name in taken]
        return found

    @cached_property
    def tables(self) -> Tables:
        return {
            content: {kept: self._points(content, kept) for kept in self.fused.wanted[content]}
            for content in self.genomes
        }

    @cached_property
    def packets(self) -> dict[str, dict[Any, dict[int, Packet]]]:
        """By content and genome, the packets of each tensor that is handed over; empty where formats change at no cost."""
        found: dict[str, dict[Any, dict[int, Packet]]] = {}
        for content, genomes in self.genomes.items() if self.fused.matched else ():
            base, edges = self.fused.plan.problem(self.fused.searched[content][()]), self.edges[content]
            told = packets(base, base.space.decode(np.array(genomes, dtype=np.int64)), edges) if genomes else []
            found[content] = {g: dict(zip(edges, p, strict=True)) for g, p in zip(genomes, told, strict=True)}
        return found

    @cached_property
    def outermost(self) -> dict[str, dict[Any, Outermost]]:
        """By content and genome, the first loop outside the level on chip."""
        found = {}
        for content, genomes in self.genomes.items():
            base = self.fused.plan.problem(self.fused.searched[content][()])
            told = outermost(base, base.space.decode(np.array(genomes, dtype=np.int64))) if genomes else []
            found[content] = dict(zip(genomes, told, strict=True))
        return found

    def _points(self, content: str, kept: Kept) -> list[TablePoint]:
        """What the designs of a layer cost with some tensors on chip. What the others need there does not depend on these, so
        that details are asked for once, and where metadata are kept on chip."""
        genomes, problem = self.genomes[content], self.fused.variant(content, kept)
        if not genomes:
            return []
        costs, need = self._own[content]
        if kept:
            designs = problem.space.decode(np.array(genomes, dtype=np.int64))
            told = problem.evaluator.evaluate_designs(designs)
            costs = np.where(told.valid, [told.energy_pj, told.cycles], np.inf)
            home = np.array([tensor.name in kept for tensor in problem.tensors])
            need, packed = need.copy(), np.flatnonzero((need[3, home] > 0.0).any(axis=0))
            need[:2, home] = 0.0
            if packed.size:
                need[..., packed] = self._told(problem, [genomes[row] for row in packed])[1]
        chip, s = problem.chip, self.fused.home
        bits = need[1].sum(axis=0) if np.all(chip.shared_capacity[s]) else 0.0
        room = need[0].sum(axis=0) + np.ceil(bits / chip.word_bits[s])
        found = zip(*costs.tolist(), np.broadcast_to(room, len(genomes)).tolist(), genomes, strict=True)
        return [TablePoint(*one) for one in found if math.isfinite(one[0]) and math.isfinite(one[1])]

    @cached_property
    def _own(self) -> dict[str, tuple[Array, Array]]:
        """By content, `_told` of the designs with all tensors outside."""
        fused = self.fused
        return {content: self._told(fused.variant(content, ()), some) for content, some in self.genomes.items()}

    def _told(self, problem: Problem, genomes: Sequence[tuple[int, ...]]) -> tuple[Array, Array]:
        """(2, n) pJ and cycles, infinite of designs that are not valid; and (4, T, n) words and bits of metadata that tensors
        take of the level on chip, and those of all of a tensor."""
        s, tensors = self.fused.home, len(problem.tensors)
        costs, need = np.full((2, len(genomes)), np.inf), np.zeros((4, tensors, len(genomes)))
        copies = problem.cost_model.copies(problem)
        each = np.ones((tensors, 1)) if copies is None else np.asarray(copies)[:, s, None]
        for rows, told in alike(problem, genomes):
            detail = told.detail or Detail()
            if detail.data_words_max is None or detail.cells is None:
                raise SearchError(
                    f"cost model '{problem.cost_model.name}' does not tell the room that designs need: no --fuse"
                )
            costs[:, rows] = np.where(told.valid, [told.energy_pj, told.cycles], np.inf)
            need[0][:, rows], need[2][:, rows] = detail.data_words_max[:, s] * each, detail.data_words_max[:, 0]
            for t, cells in enumerate(detail.cells):
                for row, cell, count in ((1, cells[s], each[t]), (3, cells[0], 1.0)):
                    if cell is not None and (ranks := cell.metadata) is not None:
                        need[row, t, rows] = ranks.bits(ranks.largest) * count
        return costs, need

    # -- steps

    @cached_property
    def steps(self) -> list[Step]:
        """The graph with a table for each place of its tensors."""
        found = []
        for one in self.fused.graph:
            step = self._step(one, {key: self._kept(one, key) for key in self.fused.keys(one)})
            found.append(self._rewritten(one, step))
        return found

    def _rewritten(self, one: GraphNode, step: Step) -> Step:
        """With conversions of the output, if the hardware has a unit for them."""
        fused = self.fused
        converter = fused.problem.hardware.converter
        if converter is None or not fused.matched or not self.targets[one.name]:
            return step
        output = next((i for i, t in enumerate(one.node.loops.tensors) if t.output), -1) if one.node.loops else -1
        sizes = self.sizes[one.node.content] if one.node.loops else {}
        levels = {fused.places[0]: 0, fused.places[1]: fused.home}
        return with_conversions(
            step,
            self.targets[one.name],
            lambda genome: sizes[genome][output] if genome in sizes else float(one.words),
            one.words,
            levels,
            converter,
            fused.problem.chip,
        )

    @cached_property
    def targets(self) -> dict[str, dict[Packet, float]]:
        """By node, the packets in which layers may want to read its output, with their words and metadata: word by word,
        and those of the best designs."""
        found: dict[str, dict[Packet, float]] = {}
        for one in self.fused.graph:
            mine: dict[Packet, float] = {PLAIN: float(one.words)}
            for taker in self.fused.takers[one.name]:
                loops, content = taker.node.loops, taker.node.content
                if loops is None or one.node.loops is None or not taker.operands:
                    continue
                at = list(taker.inputs).index(one.name) - sum(
                    n == INPUT for n in taker.inputs[: taker.inputs.index(one.name)]
                )
                tensor = taker.operands[list(taker.inputs).index(one.name)]
                index = next(i for i, t in enumerate(loops.tensors) if t.name == tensor)
                box = math.prod(loops.tensors[index].shape(loops.sizes))
                points = min(self.tables[content].items(), key=lambda item: len(item[0]))[1]
                for point in sorted(points, key=lambda p: p.energy_pj * p.cycles):
                    given, _ = self._written(taker, point)
                    if given is None or len(mine) >= MOST_TARGETS:
                        continue
                    mine.setdefault(given[at], self.sizes[content][point.design][index] * one.words / box)
            found[one.name] = mine if self.fused.takers[one.name] else {}
        return found

    @cached_property
    def sizes(self) -> dict[str, dict[Any, list[float]]]:
        """By content and genome, the words of each tensor with its metadata, of all of it."""
        width = float(self.fused.problem.chip.word_bits[0])
        return {
            content: dict(zip(genomes, (need[2] + np.ceil(need[3] / width)).T.tolist(), strict=True))
            for content, genomes in self.genomes.items()
            for _, need in [self._own[content]]
        }

    def _kept(self, one: GraphNode, key: Key) -> Sequence[TablePoint]:
        if one.node.loops is None:
            return [self.passed(one, key)]
        return self.tables[one.node.content][self.fused.kept(one, key)]

    @cached_property
    def _alike(self) -> dict[str, Any]:
        """By node, what `_written` and its tables depend on."""
        fused, found = self.fused, dict[str, Any]()
        for one in fused.graph:
            makers = [None if name == INPUT else fused.named[name].node.loops for name in one.inputs]
            ranks = [len(next(t.ranks for t in loops.tensors if t.output)) if loops else 0 for loops in makers]
            given = tuple(name == INPUT or count for name, count in zip(one.inputs, ranks, strict=True))
            found[one.name] = (one.node.content, given, bool(fused.takers[one.name])) if one.node.loops else one.name
        return found

    def _step(self, one: GraphNode, tables: Mapping[Key, Sequence[TablePoint]]) -> Step:
        like = self._alike[one.name], tuple(tables)
        if (made := self._made.get(like)) is None:
            made = self._made[like] = dict[Any, list[TablePoint]]()
            for key, points in tables.items():
                for point in points:
                    given, own = self._written(one, point)
                    if given is not None and own is not None:
                        inputs = tuple(TensorPlace(*both) for both in zip(key[0], given, strict=True))
                        made.setdefault((inputs, TensorPlace(key[1], own)), []).append(self.paid(one, point, own))
        before = tuple(name for name in one.inputs if name != INPUT)
        words: dict[Any, float] = {place: float(one.words) for _, place in made if place.level == self.fused.places[1]}
        return Step(name=one.name, inputs=before, tables=made, words=words, in_place=one.node.loops is None)

    def paid(self, one: GraphNode, point: TablePoint, own: Packet | None = None) -> TablePoint:
        """A design of a layer with what encoding its output in packets costs, `own` or those that it has: by the unit of the
        hardware, if that has one and no level encodes it on its way out."""
        converter = self.fused.problem.hardware.converter
        if converter is None or not self.fused.matched or point.design in self._recoded[one.node.content]:
            return point
        own = self._written(one, point)[1] if own is None else own
        return point if not own else encoded(point, one.words, converter)

    @cached_property
    def _recoded(self) -> dict[str, set[Any]]:
        """By content, the genomes of designs with levels that hold the output uncompressed."""
        found: dict[str, set[Any]] = {"": set()}
        for content, genomes in self.genomes.items():
            base = self.fused.plan.problem(self.fused.searched[content][()])
            columns = base.space.decode(np.array(genomes, dtype=np.int64)).columns if genomes else {}
            output = next(t for t, tensor in enumerate(base.tensors) if tensor.output)
            levels = columns.get("decoded", np.full((len(base.tensors), len(genomes)), len(base.levels)))[output]
            found[content] = {
                genome for genome, s in zip(genomes, levels.tolist(), strict=True) if s < len(base.levels)
            }
        return found

    def _written(self, one: GraphNode, point: TablePoint) -> tuple[tuple[Packet, ...] | None, Packet | None]:
        """The packets in which a design reads the inputs of a layer that other nodes make, and writes its output; None where
        nobody can write or read them: operations work word by word, and ranks that are split or merged have no packets."""
        key = self._alike[one.name], point.design
        if key not in self._read:
            self._read[key] = self._packed(one, point)
        return self._read[key]

    def _packed(self, one: GraphNode, point: TablePoint) -> tuple[tuple[Packet, ...] | None, Packet | None]:
        names = [name for name in one.inputs if name != INPUT]
        mine = self.packets.get(one.node.content, {}).get(point.design) if one.node.loops else None
        if mine is None:
            return (PLAIN,) * len(names), PLAIN
        fused, loops = self.fused, one.node.loops
        tensors = {t.name: i for i, t in enumerate(fused.plan.problem(fused.searched[one.node.content][()]).tensors)}
        assert loops is not None
        given: list[Packet] = []
        for tensor, name in zip(one.operands, one.inputs, strict=False):
            if name == INPUT:
                continue
            packet, maker = mine[tensors[tensor]], fused.named[name].node.loops
            ranks = next(t.ranks for t in loops.tensors if t.name == tensor)
            if packet != PLAIN and (
                maker is None or len(next(t.ranks for t in maker.tensors if t.output)) != len(ranks)
            ):
                return None, None
            given.append(packet)
        if len(given) < len(names):
            given = [PLAIN] * len(names)
        output = next(t.name for t in loops.tensors if t.output)
        return tuple(given), mine[tensors[output]] if fused.takers[one.name] else PLAIN

    def passed(self, one: GraphNode, key: Key) -> TablePoint:
        """What an operation costs."""
        fused = self.fused
        if fused.operations == "free" or not one.words or not isinstance(one.node.piece, Operation):
            return TablePoint(0.0, 0.0)
        level, given = {fused.places[0]: 0, fused.places[1]: fused.home}, iter(key[0])
        places = {name: level[next(given)] for name in one.inputs if name != INPUT}
        home, at_hand = level[key[1]], fused.fused_into.get(one.name, "")
        if places.get(at_hand) != home:
            at_hand = ""  # it lives elsewhere, so that it is read
        sizes = {INPUT: fused.plan.input_words} | {name: fused.named[name].words for name in places}
        moved = [(sizes[name], places.get(name, 0)) for name in one.inputs if name != at_hand]
        written = 0 if at_hand else one.words
        return TablePoint(*passed(one.node.piece, moved, (written, home), fused.problem.chip))

    @cached_property
    def groups(self) -> list[Step]:
        """Layers that run interleaved, as steps of their own."""
        nodes = [self._member(one) for one in self.fused.graph]
        found = interleaved(nodes, self.fused.places[1], self.fused.capacity)
        return [self._rewritten(self.fused.named[group.name], group) for group in found]

    def _member(self, one: GraphNode) -> Member:
        fused, before = self.fused, tuple(name for name in one.inputs if name != INPUT)
        if not any(name in fused.sliding for name in (*before, one.name)):
            return Member(name=one.name, inputs=before)
        keys = fused.keys(one, sliding=True)
        like: Any = self._alike[one.name], tuple(keys), "turns"
        if like not in self._made:
            self._made[like] = self._by_turns(one, keys)
        sizes, tables = self._made[like]
        if one.node.loops is None:
            like = tuple(sizes.items()), tuple((key, some[None][0]) for key, some in tables.items())
        return Member(
            name=one.name,
            inputs=before,
            stuck=frozenset(name for name in (*before, one.name) if fused.stuck[name]),
            slides=fused.sliding.get(one.name, ()),
            words=one.words,
            sizes=sizes,
            tables=tables,
            alike=like,
        )

    def _by_turns(self, one: GraphNode, keys: Sequence[Key]) -> tuple[Mapping[str, int], Any]:
        """The sizes of a node by what its turns walk along, and its points by places and turns."""
        tables: dict[Any, dict[Outermost, list[TablePoint]]] = {}
        if one.node.loops is None:  # an operation takes turns of any size, along any rank
            walks = {walk.dim: walk.size for walk in made(one.node) if walk.dim}
            turns = [(dim, size // n) for dim, size in walks.items() for n in divisors(size)[:-1]]
            for key in keys:
                places = tuple(map(TensorPlace, key[0])), TensorPlace(key[1])
                tables[places] = {turn: [self.passed(one, key)] for turn in (None, *turns)}
            return walks, tables
        sizes, loops = one.node.loops.sizes, self.outermost[one.node.content]
        for key in keys:
            for point in self.tables[one.node.content][self.fused.kept(one, key)]:
                given, own = self._written(one, point)
                loop = loops[point.design]
                if given is None or own is None or (loop and sizes[loop[0]] % loop[1]):
                    continue  # nobody can read it, or it walks along a padded dimension
                places = tuple(TensorPlace(*at) for at in zip(key[0], given, strict=True)), TensorPlace(key[1], own)
                tables.setdefault(places, {}).setdefault(loop, []).append(self.paid(one, point, own))
        return sizes, tables

    # -- the bound

    @cached_property
    def bound(self) -> JoinedPlan | None:
        """No plan of designs of the space has less: the join of the layers' bounds, without room; None: some have none."""
        fused, found = self.fused, dict[str, dict[Kept, list[TablePoint]]]()
        for content, sets in fused.wanted.items():
            pairs: dict[Kept, list[TablePoint]] = {}
            every = tuple(sorted({tensor for kept in sets for tensor in kept}))
            for kept in ((), every):  # what is in between moves no less than with all that may stay
                bound = fused.variant(content, kept).lower_bound
                if bound is None:
                    return None
                both = zip(bound.energy_pj.tolist(), bound.cycles.tolist(), strict=True)
                pairs[kept] = [TablePoint(energy, cycles) for energy, cycles in both]
            found[content] = {kept: pairs[every if kept else ()] for kept in sets}
        steps = []
        for one in fused.graph:
            made: dict[Any, list[TablePoint]] = {}
            for key in fused.keys(one, sliding=True):
                table = (
                    [self.passed(one, key)] if one.node.loops is None else found[one.node.content][fused.kept(one, key)]
                )
                made[tuple(map(TensorPlace, key[0])), TensorPlace(key[1])] = table
            before = tuple(name for name in one.inputs if name != INPUT)
            steps.append(Step(name=one.name, inputs=before, tables=made, words={}))
        return joined(steps, fused.capacity, fused.value, reorder=False)  # no order needs less room than none
