"""Steps for the join of a plan: nodes, and interleaved layers, with costs by the places of their tensors."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs

from ..pieces.contracts import Operation
from ..primes import divisors
from ..problem.network import INPUT
from .fused import Kept, Key
from .graph import GraphNode, Words, by_level, bytes_by_level, converted, passed, rewritten, vector_cost
from .interleaved import Member, interleaved
from .join import Fitting, JoinedPlan, Step, TablePoint, joined
from .layer_tables import LayerTables
from .packets import PLAIN, Packet, TensorPlace, bare, encoded, followed, with_conversions
from .slides import Outermost, made

MOST_TARGETS = 4
"""Largest number of packet layouts of a tensor a conversion may write: the layouts of the consumers' best designs."""


@attrs.frozen(slots=False)
class FusedTables(LayerTables):
    """Tables of a plan by the places of tensors, for single layers and for interleaved layers."""

    fitting: Fitting = attrs.field(factory=dict, init=False)
    """Cache shared by joins of these tables."""
    _read: dict[Any, tuple[tuple[Packet, ...] | None, Packet | None]] = attrs.field(factory=dict, init=False)
    """Results of `_written` by node and genome."""
    _made: dict[Any, Any] = attrs.field(factory=dict, init=False)
    """Tables of nodes by their inputs."""

    # -- steps

    @cached_property
    def steps(self) -> list[Step]:
        """The graph as steps, with a table for each place of the tensors."""
        return [self.step(one) for one in self.fused.graph]

    def step(self, one: GraphNode, pinned: bool = False) -> Step:
        """A node as a step, with `pinned` or streamed weights."""
        step = self._step(one, {key: self._kept(one, key, pinned) for key in self.fused.keys(one)}, pinned)
        return self._rewritten(one, step)

    def _rewritten(self, one: GraphNode, step: Step) -> Step:
        """The step with conversions of the output, if the hardware has a converter."""
        fused = self.fused
        converter = fused.problem.hardware.converter
        if converter is None or not fused.matched or not self.targets[one.name]:
            return step
        output = next((i for i, t in enumerate(one.node.loops.tensors) if t.output), -1) if one.node.loops else -1
        sizes = self.sizes[one.node.content] if one.node.loops else {}

        def stored(genome: Any) -> float:
            return sizes[genome][output] if genome in sizes else float(one.words)

        how = one.words, fused.levels, converter, fused.words_in.made[one.name]
        return with_conversions(step, self.targets[one.name], stored, *how)

    @cached_property
    def targets(self) -> dict[str, dict[Packet, float]]:
        """By node, packets its consumers' best designs read, or none, each with words and metadata."""
        found: dict[str, dict[Packet, float]] = {}
        for one in self.fused.graph:
            mine: dict[Packet, float] = {PLAIN: float(one.words)}
            for taker in self.fused.takers[one.name]:
                loops, content = taker.node.loops, taker.node.content
                if loops is None or one.node.loops is None or not taker.operands or self.fused.unlike(one.name, taker):
                    continue
                place = taker.inputs.index(one.name)
                at, tensor = place - taker.inputs[:place].count(INPUT), taker.operands[place]
                index = next(i for i, t in enumerate(loops.tensors) if t.name == tensor)
                box = math.prod(loops.tensors[index].shape(loops.sizes))
                points = self.points(content, self.fused.wanted[content][0])
                for point in sorted(points, key=lambda p: p.energy_pj * p.cycles):
                    given, _ = self._written(taker, point)
                    if given is None or len(mine) >= MOST_TARGETS:
                        continue
                    mine.setdefault(given[at], self.sizes[content][point.design][index] * one.words / box)
            found[one.name] = mine if self.fused.takers[one.name] else {}
        return found

    def _kept(self, one: GraphNode, key: Key, pinned: bool = False) -> Sequence[TablePoint]:
        content = one.node.content
        if one.node.loops is None:
            return [self.passed(one, key)]
        weights = self.fused.weights[content] if pinned else ()
        points = self.points(content, (*self.fused.kept(one, key), *weights))
        points = [p for p in points if self.stored(content, p) <= self.pinned_words[content]] if pinned else points
        return self.fed(one, key, points)

    @cached_property
    def _alike(self) -> dict[str, Any]:
        """By node, the inputs of `_written` and of the node's tables."""
        fused, found = self.fused, dict[str, Any]()
        for one in fused.graph:
            makers = [None if name == INPUT else fused.named[name].node.loops for name in one.inputs]
            ranks = [len(next(t.ranks for t in loops.tensors if t.output)) if loops else 0 for loops in makers]
            other = [fused.unlike(name, one) and name for name in one.inputs]
            given = *other, *(name == INPUT or count for name, count in zip(one.inputs, ranks, strict=True))
            like = one.node.content, given, bool(fused.takers[one.name]), one.node.activation
            found[one.name] = like if one.node.loops else one.name
        return found

    def _step(self, one: GraphNode, tables: Mapping[Key, Sequence[TablePoint]], pinned: bool = False) -> Step:
        like = self._alike[one.name], tuple(tables), pinned
        if (made := self._made.get(like)) is None:
            made = self._made[like] = dict[Any, list[TablePoint]]()
            for key, points in tables.items():
                for point in points:
                    given, own = self._written(one, point)
                    if given is not None and own is not None:
                        inputs = tuple(TensorPlace(*both) for both in zip(key[0], given, strict=True))
                        made.setdefault((inputs, TensorPlace(key[1], own)), []).append(self.paid(one, point, own))
        before = tuple(name for name in one.inputs if name != INPUT)
        room, home = one.live * self.fused.shares[one.name], self.fused.places[1]
        words: dict[Any, float] = {place: room for _, place in made if place.level == home}
        return Step(name=one.name, inputs=before, tables=made, words=words, in_place=one.node.loops is None)

    def paid(self, one: GraphNode, point: TablePoint, own: Packet | None = None) -> TablePoint:
        """A layer's point plus its activation, and encoding its output in packets (`own`, or the design's) by the
        hardware's converter.

        A level that encodes the output on the way out needs no converter."""
        point = self.activated(one, point)
        converter = self.fused.problem.hardware.converter if one.node.loops else None
        if converter is None or not self.fused.matched or bare(point)[0].design in self.recoded[one.node.content]:
            return point
        own = self._written(one, point)[1] if own is None else own
        return point if not own else encoded(point, one.words, converter)

    def activated(self, one: GraphNode, point: TablePoint) -> TablePoint:
        """A layer's point plus its activation in the vector unit, which works beside the layer."""
        unit = self.fused.problem.hardware.vector
        if one.node.activation is None or unit is None or not one.words or self.fused.operations == "free":
            return point
        energy_pj, busy = vector_cost(unit, one)
        late = max(0.0, busy - bare(point)[0].cycles)
        return followed(point, energy_pj, late, point.room, one.node.activation.type_name)

    def _written(self, one: GraphNode, point: TablePoint) -> tuple[tuple[Packet, ...] | None, Packet | None]:
        """Packets of a design's inputs from other nodes and of its output; None without a matching producer.

        Operations work word by word, and ranks split or merged have no packets."""
        point, _ = bare(point)
        key = self._alike[one.name], point.design
        if key not in self._read:
            self._read[key] = self._packed(one, point)
        return self._read[key]

    def _packed(self, one: GraphNode, point: TablePoint) -> tuple[tuple[Packet, ...] | None, Packet | None]:
        names = [name for name in one.inputs if name != INPUT]
        mine = self.packets.get(one.node.content, {}).get(point.design) if one.node.loops else None
        if mine is None or not any(mine.values()):
            return (PLAIN,) * len(names), PLAIN
        fused, loops = self.fused, one.node.loops
        tensors = {t.name: i for i, t in enumerate(fused.variant(one.node.content).tensors)}
        assert loops is not None
        given: list[Packet] = []
        for tensor, name in zip(one.operands, one.inputs, strict=False):
            if name == INPUT:
                continue
            packet, maker = mine[tensors[tensor]], fused.named[name].node.loops
            ranks = next(t.ranks for t in loops.tensors if t.name == tensor)
            made = next(t.ranks for t in maker.tensors if t.output) if maker else None
            if packet != PLAIN and (made is None or len(made) != len(ranks) or self.fused.unlike(name, one)):
                return None, None
            given.append(packet)
        if len(given) < len(names):
            given = [PLAIN] * len(names)
        output = next(t.name for t in loops.tensors if t.output)
        return tuple(given), mine[tensors[output]] if fused.takers[one.name] else PLAIN

    def passed(self, one: GraphNode, key: Key) -> TablePoint:
        """Cost of an operation."""
        moves = self._moves(one, key)
        energy_pj, cycles = passed(*moves) if moves else (0.0, 0.0)
        vector_pj, busy = self.vector(one, key)
        return TablePoint(energy_pj + vector_pj, max(cycles, busy))

    def vector(self, one: GraphNode, key: Key) -> tuple[float, float]:
        """pJ of the vector unit for an operation, and busy cycles beyond the layer before, if fused into the layer.

        The layer is counted with its fastest design: a slower one hides more."""
        fused = self.fused
        if fused.operations == "free" or not one.words:
            return 0.0, 0.0
        energy_pj, cycles = vector_cost(fused.problem.hardware.vector, one)
        before = fused.fused_into.get(one.name, "")
        if cycles and before and self._where(one, key).get(before) == fused.levels[key[1]]:
            cycles = max(0.0, cycles - self._fastest(fused.named[before]))
        return energy_pj, cycles

    def _fastest(self, one: GraphNode) -> float:
        """Least cycles of the designs of a layer; 0 for an operation."""
        if one.node.loops is None:
            return 0.0
        every = (self.points(one.node.content, kept) for kept in self.fused.wanted[one.node.content])
        return min((point.cycles for points in every for point in points), default=0.0)

    def spent(self, one: GraphNode, key: Key) -> dict[int, tuple[float, float]]:
        """Cost of an operation by level: pJ, and busy cycles."""
        moves = self._moves(one, key)
        return by_level(*moves) if moves else {}

    def bytes_moved(self, one: GraphNode, key: Key) -> dict[int, float]:
        """Bytes read and written by an operation, by level."""
        moves = self._moves(one, key)
        return bytes_by_level(*moves) if moves else {}

    def _moves(self, one: GraphNode, key: Key) -> Any:
        """Reads and writes of an operation, as arguments of `passed`; None if free."""
        fused = self.fused
        free = fused.operations == "free"
        if not one.words or not isinstance(one.node.piece, Operation) or (free and one.node.piece.moves):
            return None
        places, home, own = self._where(one, key), fused.levels[key[1]], fused.words_in.made[one.name]
        at_hand = fused.fused_into.get(one.name, "")
        if places.get(at_hand) != home:
            at_hand = ""  # it lives elsewhere, so that it is read
        moved = [self._words(name, places[name]) for name in one.inputs if name != at_hand]
        moved = [(count, home, own) for count, _, _ in moved] if free else moved
        return one.node.piece, moved, (0 if at_hand else one.words, home, own)

    def _where(self, one: GraphNode, key: Key) -> dict[str, int]:
        """Levels of the inputs of a node."""
        given = iter(key[0])
        return {name: 0 if name == INPUT else self.fused.levels[next(given)] for name in one.inputs}

    def _words(self, name: str, level: int) -> Words:
        """The output of a node, or the network's input, in a level."""
        words = self.fused.plan.input_words if name == INPUT else self.fused.named[name].words
        return words, level, self.fused.words_in.made[name]

    def fed(self, one: GraphNode, key: Key, points: Sequence[TablePoint]) -> Sequence[TablePoint]:
        """A layer's points behind a pass that rewrites inputs of another word width; copies take room."""
        fused = self.fused
        unfit = fused.words_in.unfit(one.name, {at[0]: self._words(*at) for at in self._where(one, key).items()})
        if not unfit:
            return points
        copies = sum(fused.share(chip) * count for (count, level, _), chip in unfit if level == fused.home)
        roomy = [attrs.evolve(point, room=point.room + copies) for point in points]
        return [followed(point, *rewritten(unfit), point.room, "inputs") for point in roomy]

    @cached_property
    def groups(self) -> list[Step]:
        """Interleaved layers, as separate steps."""
        return self.groups_with()

    def groups_with(self, pinned: Collection[str] = (), room: float = 0.0) -> list[Step]:
        """Interleaved layers, some with `pinned` weights, which take `room`."""
        nodes = [self._member(one, one.name in pinned) for one in self.fused.graph]
        fused, converter = self.fused, self.fused.problem.hardware.converter

        def convert(name: str, read: float, written: float) -> tuple[float, float]:
            assert converter is not None
            words, home, chip = self._words(name, fused.home)
            return converted(converter, read, written, words, home, chip)

        how = convert if converter is not None and fused.matched else None
        found = interleaved(nodes, fused.places[1], fused.capacity - room, how)
        return [self._rewritten(self.fused.named[group.name], group) for group in found]

    def _member(self, one: GraphNode, pinned: bool) -> Member:
        fused, before = self.fused, tuple(name for name in one.inputs if name != INPUT)
        if not any(name in fused.sliding for name in (*before, one.name)):
            return Member(name=one.name, inputs=before)
        keys = fused.keys(one, sliding=True)
        like: Any = self._alike[one.name], tuple(keys), "turns", pinned
        if like not in self._made:
            self._made[like] = self._by_turns(one, keys, pinned)
        sizes, tables = self._made[like]
        if one.node.loops is None:
            points = tuple((key, some[None][0]) for key, some in tables.items())
            like = fused.shares[one.name], tuple(sizes.items()), points
        stuck, read = frozenset(name for name in (*before, one.name) if fused.stuck[name]), dict[Packet, float]()
        for name in (name for name in one.inputs if name in fused.sliding):
            read |= self._stored(one, name, fused.named[name].words)
        return Member(
            name=one.name, inputs=before, stuck=stuck, slides=fused.sliding.get(one.name, ()), words=one.live,
            share=fused.shares[one.name], sizes=sizes, tables=tables, written=self._stored(one, one.name, one.words),
            read=read, alike=like,
        )  # fmt: skip

    def _stored(self, one: GraphNode, name: str, words: int) -> dict[Packet, float]:
        """Words plus metadata of a node's output, or input of `words` words, by packets of its designs."""
        found, loops = {PLAIN: float(words)}, one.node.loops
        if loops is None or self.fused.problem.hardware.converter is None or one.node.content not in self.packets:
            return found
        mine = dict(zip(one.inputs, one.operands, strict=False)).get(name)
        t = next(i for i, tensor in enumerate(loops.tensors) if (tensor.name == mine if mine else tensor.output))
        share = words / math.prod(loops.tensors[t].shape(loops.sizes))
        for genome, told in self.packets[one.node.content].items():
            size = self.sizes[one.node.content][genome][t] * share
            found[told[t]] = max(size, found.get(told[t], 0.0)) if told[t] else float(words)
        return found

    def _by_turns(self, one: GraphNode, keys: Sequence[Key], pinned: bool) -> tuple[Mapping[str, int], Any]:
        """Sizes of a node by dimensions of its turns, and the node's points by places and turns."""
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
            for point in self._kept(one, key, pinned):
                given, own = self._written(one, point)
                loop = loops[bare(point)[0].design]
                if given is None or own is None or (loop and sizes[loop[0]] % loop[1]):
                    continue  # nobody can read it, or it walks along a padded dimension
                places = tuple(TensorPlace(*at) for at in zip(key[0], given, strict=True)), TensorPlace(key[1], own)
                tables.setdefault(places, {}).setdefault(loop, []).append(self.paid(one, point, own))
        return sizes, tables

    # -- the bound

    @cached_property
    def bound(self) -> JoinedPlan | None:
        """Lower bound over all plans: the join of the layers' bounds without room; None if a layer has none."""
        fused, found = self.fused, dict[str, dict[Kept, list[TablePoint]]]()
        for content, sets in fused.wanted.items():
            pairs: dict[Kept, list[TablePoint]] = {}
            every = tuple(sorted({tensor for kept in sets for tensor in kept}))
            several = any(len(one.operands) > 1 for one in fused.layers[content])
            # with one input, what is in between moves no less than with all that may stay
            least = {kept: kept if several or not kept else every for kept in sets}
            for kept in dict.fromkeys(least.values()):
                bound = fused.variant(content, kept).lower_bound
                if bound is None:
                    return None
                both = zip(bound.energy_pj.tolist(), bound.cycles.tolist(), strict=True)
                pairs[kept] = [TablePoint(energy, cycles) for energy, cycles in both]
            found[content] = {kept: pairs[same] for kept, same in least.items()}
        steps = []
        for one in fused.graph:
            made: dict[Any, list[TablePoint]] = {}
            for key in fused.keys(one, sliding=True):
                points = found[one.node.content][fused.kept(one, key)] if one.node.loops else [self.passed(one, key)]
                fed = (self.activated(one, point) for point in self.fed(one, key, points))
                points = [attrs.evolve(point, room=0.0) for point in fed]
                made[tuple(map(TensorPlace, key[0])), TensorPlace(key[1])] = points
            before = tuple(name for name in one.inputs if name != INPUT)
            steps.append(Step(name=one.name, inputs=before, tables=made, words={}))
        return joined(steps, fused.capacity, fused.value, reorder=False)  # no order needs less room than none
