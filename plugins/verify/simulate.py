"""Exact walk of a design's loop nest over random tensors, with the counts of every level.

Nothing here is an expectation. Tiles move unless they are already held; only present words count; an access is held
back if the leader's words are zero; the output is computed. Counts are totals over all instances.

* Operands: a parent reads the words missing in the children, once for all children at the same place. Where tiles
  overlap, a word for several children is read once.
* Outputs: a word leaving a child is an update of the parent. An update reads the earlier partial sum, except the first
  update of a word in the instance. A child gets a tile back, except the first time. Words without metadata travel with
  their tile; with metadata, only nonzero partial sums do. An instance gets back its own partial sums.
* A format may store zeros: they move like nonzeros, and reach the compute units.
* A gated, skipped or eliminated compute leaves its output word alone.

`charges.py` adds the charges of a cost model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise

import attrs
import numpy as np

from sparsemap.errors import DesignError
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.designs import Designs, Loop
from sparsemap.problem.problem import Problem

from .leaders import GATE, HELD_BACK, SKIP, Guard, comparisons, fiber, filters, guards, looked_at, out_of_sight
from .links import Link
from .metadata import ExecutedRanks, is_packed
from .nest import Boxes, ExecutedNest, flat
from .outputs import count_outputs, count_products, dense_counts
from .products import NEVER, Done, Products, reference_output
from .stored import Contents, store_zeros, units_of
from .tally import Tally
from .waiting import LaneWaiting

Guards = Mapping[tuple[int, int], Guard]
"""Guards by tensor and level."""
Activity = dict[tuple[int, int], tuple[Array | None, Array | None]]
"""(wanted, executed) accesses by tensor and child level, each (steps, instances) bool; None: all."""


@attrs.frozen(eq=False)
class Walk:
    """A walk through the nest with the filters `guards`."""

    tally: Tally
    outside: Tally
    """Part of `tally` outside the data: padding, and holes between windows."""
    contents: Sequence[Contents]
    active: Activity
    inner: Sequence[Array | None]
    """Per operand, (steps, instances) bool of the innermost storing level: accesses left by filters further out."""
    done: Done
    guards: Guards
    unit_cycles: dict[int, int] = attrs.field(factory=dict)
    """By storage level, cycles of the units of a skip of tiles, over all children."""


@attrs.frozen(eq=False)
class Trial:
    """Execution of one draw of the tensors."""

    energy: Walk
    """With all filters."""
    time: Walk
    """Without filters that let the time of removed accesses pass, if that time is charged."""


@attrs.define(eq=False, slots=False)
class Simulation:
    """Everything about a design that is independent of the data; `trial` draws the data and counts."""

    problem: Problem
    designs: Designs

    def __attrs_post_init__(self) -> None:
        nest = self.nest = ExecutedNest(self.problem, self.designs)
        for t, s in np.ndindex(len(nest.access), nest.levels):
            if self.problem.streams(t, s):
                names = self.problem.tensors[t].name, self.problem.levels[s].name
                raise DesignError(f"verify does not execute words of {names[0]} that stream through {names[1]}")
        if linked := [tensor.name for t, tensor in enumerate(self.problem.tensors) if self.problem.links(t)]:
            raise DesignError(f"verify does not execute words of {', '.join(linked)} that neighbours hand on")
        self.packed = tuple(is_packed(nest, t) for t in range(len(nest.access)))
        self.guards = guards(nest)
        pairs = [(t, *both) for t in range(len(nest.access)) for both in pairwise(nest.stored(t))]
        self.links = {(t, child): Link(nest, t, parent, child) for t, parent, child in pairs}
        """Links by tensor and child level."""
        self.products = Products(nest, self._packed_inside, self.guards)
        kept = [(t, s) for t in np.flatnonzero(self.packed).tolist() for s in nest.stored(t) if s <= nest.decoded(t)]
        self.ranks = {(t, s): ExecutedRanks(nest, t, s) for t, s in kept}
        """Ranks by tensor and level, including tiles decoded on their way."""
        for (t, s), ranks in self.ranks.items():
            if s == nest.stored(t)[0] and not ranks.built and store_zeros(ranks.formats):
                name = self.problem.tensors[t].name
                raise DesignError(f"verify stores no whole blocks of {name}: its tiles overlap or have holes")

    @cached_property
    def word_bits(self) -> dict[tuple[int, int], float]:
        """Bits per word, by tensor and storing level. A sum that comes back is as wide as further inside."""
        return {place: bits for place, (bits, _) in self.held.items()}

    @cached_property
    def held(self) -> dict[tuple[int, int], tuple[float, int]]:
        """Bits per word, and the level with the number format, by tensor and storing level."""
        found = dict[tuple[int, int], tuple[float, int]]()
        for t, own in enumerate(self.problem.tensor_bits.tolist()):
            inside = 0.0, -1
            for s in reversed(self.nest.stored(t)):
                again = t == self.nest.output and any(own) and self.dense["read", s, t][0] > 0.0
                bits = own[s] or self.problem.levels[s].word_bits
                inside = found[t, s] = inside if again and inside[0] > bits else (bits, s)
        return found

    def words_per_word(self, tensor: int, level: int) -> float:
        """Words of a level per word of a tensor."""
        return self.word_bits[tensor, level] / self.problem.levels[level].word_bits

    def packed_at(self, tensor: int, level: int) -> bool:
        """Whether the tensor has metadata at a level that stores it."""
        return self.packed[tensor] and level < self.nest.decoded(tensor)

    @property
    def _packed_inside(self) -> tuple[bool, ...]:
        return tuple(self.packed_at(t, chain[-2]) for t, chain in enumerate(self.nest.chains))

    @cached_property
    def timed_products(self) -> Products | None:
        """Products without filters that let the time of removed accesses pass; None: the design has no such filter."""
        if not any(found.rule.passes for found in filters(self.nest)):
            return None
        return Products(self.nest, self._packed_inside, guards(self.nest, timed=True))

    @cached_property
    def waiting(self) -> LaneWaiting:
        return LaneWaiting(self)

    @cached_property
    def looked_at(self) -> frozenset[tuple[int, int]]:
        """(tensor, level) of all tensors read by a filter."""
        return looked_at(self.nest, GATE, SKIP)

    @cached_property
    def skipped_by(self) -> frozenset[tuple[int, int]]:
        """(tensor, level) of all tensors that lead a skip."""
        return looked_at(self.nest, SKIP)

    def filtered(self, tensor: int, level: int) -> int:
        """Number of filters on a tensor's accesses at a level or further out."""
        return sum(t == tensor and s <= level for t, s in self.guards)

    @cached_property
    def jumps(self) -> tuple[set[Loop], ...]:
        """Per tensor, the loops of ranks with offsets for jumps of the hardware (docs/model.md, `pointers`)."""
        found: tuple[set[Loop], ...] = tuple(set() for _ in self.packed)
        for (t, child), link in self.links.items():
            if self.packed_at(t, link.parent):
                ranks, inner = self.ranks[t, link.parent].ranks, self.ranks[t, child].ranks
                variable = any(rank.format.compressed for rank in inner)
                if len(ranks) > len(inner) and variable and (link.groups > 1 or (t, link.parent) in self.guards):
                    found[t].add(ranks[-len(inner) - 1].loop)
        return found

    def also_pay(self, charges: frozenset[str]) -> None:
        """Later trials to be compared can be charged under these charges too."""
        for products in filter(None, (self.products, self.timed_products)):
            products.also_pay(charges)

    @cached_property
    def dense(self) -> dict[tuple[str, int, int], tuple[float, float]]:
        """See `dense_counts`."""
        return dense_counts(self)

    @cached_property
    def tiles(self) -> dict[tuple[int, int], tuple[Array, Array]]:
        """By tensor and level: origins of the different tiles (U, ranks), and tile numbers (steps, instances)."""
        found = {}
        for t, s in self.ranks:
            move, shape = self.nest.access[t].T, self.nest.shape(t)
            still = self.nest.spans(t, s) != s  # the whole tensor is where it is
            begins = (self.nest.offsets(s, spatial) * (not still) for spatial in (False, True))
            steps, places = (flat(begin @ move, shape) for begin in begins)
            origins, at = np.unique(steps[:, None] + places, return_inverse=True)
            index = np.stack(np.unravel_index(origins, shape), axis=1)
            found[t, s] = index, at.reshape(len(steps), len(places))
        return found

    def trial(
        self, rng: np.random.Generator, charged: bool = False, given: Mapping[int, Array] | None = None,
        compared: bool = False,
    ) -> Trial:  # fmt: skip
        """Draw tensors and execute the design.

        `charged`: also record the data of charges on time; `compared`: also under the charges of `also_pay`; `given`: words
        (n,) by operand, instead of a draw."""
        nest, out = self.nest, self.nest.output
        masks: list[Array] = [np.zeros(0, dtype=bool)] * len(self.packed)
        values: list[Array] = [np.zeros(0)] * len(self.packed)
        for t in nest.operands:
            if given is not None:
                values[t], masks[t] = given[t], (given[t] != 0).reshape(nest.shape(t))
                continue
            masks[t] = nest.drawn(t, rng)
            # positive, so that no sum cancels; whole numbers, so that sums are exact
            values[t] = np.where(masks[t], rng.integers(1, 10, masks[t].shape), 0).reshape(-1).astype(np.float64)
        expected = reference_output(nest, values)
        masks[out] = (expected != 0).reshape(nest.shape(out))
        contents = []
        for t, mask in enumerate(masks):
            ranks = self.ranks.get((t, nest.stored(t)[0]))
            contents.append(Contents(mask, ranks.formats, ranks.order) if ranks and ranks.built else Contents(mask))
        begins = self.waiting.begins if charged else np.zeros(1, dtype=np.int64)

        def walk(products: Products) -> Walk:
            return self._walk(products, values, contents, expected, rng, begins, compared)

        energy = walk(self.products)
        return Trial(energy, walk(self.timed_products) if charged and self.timed_products else energy)

    def _walk(
        self, products: Products, values: Sequence[Array], contents: Sequence[Contents], expected: Array,
        rng: np.random.Generator, begins: Array, compared: bool,
    ) -> Walk:  # fmt: skip
        tally, outside, guards = Tally(), Tally(), products.all_guards
        active, inner = self._walk_storage(tally, outside, contents, rng, guards)
        done = products.run(values, contents, inner, rng, begins, compared)
        walk = Walk(tally, outside, contents, active, inner, done, guards)
        done.tiles += self._empty_tiles(walk, begins)
        tally.correct = bool(np.array_equal(done.output, expected))
        if contents[self.nest.output].layout is not None:
            self._store_together(contents[self.nest.output], done)
        count_products(self, walk)
        count_outputs(self, walk)
        return walk

    def _empty_tiles(self, walk: Walk, begins: Array) -> Array:
        """(parts, units) cycles in which skips of tiles found nothing within their width, in the part of the absent
        tile; records the cycles of the skips' units."""
        nest, places = self.nest, dict[int, Array]()
        active, contents, guards = walk.active, walk.contents, walk.guards
        shape = len(begins), nest.instances(nest.levels)
        for (t, level), guard in guards.items():
            child = nest.child(t, level)
            if guard.kind != SKIP or t == nest.output or (t, child) not in self.links:
                continue
            link, (want, now) = self.links[t, child], active[t, child]
            assert now is not None  # a guard says what takes place
            rows = link.run_begins
            taken = link.of_any(np.logical_or.reduceat(now, rows, axis=0))
            wanted = np.ones_like(taken) if want is None else np.logical_or.reduceat(want, rows, axis=0)
            if guard.width is None:
                idle = np.zeros_like(taken)
            elif guard.entries:
                here = {x.tensor: x for one in guards.values() if one.place == guard.place for x in one.leaders}
                every = slice(0, len(now))
                lists = [x.present(contents[c].seen, every) for c, x in here.items()]
                there = [link.of_any(np.logical_or.reduceat(one, rows, axis=0)) & wanted for one in lists]
                idle = comparisons(there, fiber(nest, level, [*here]), guard.width)
            else:
                idle = out_of_sight(wanted & ~taken, wanted, guard.width)
            walk.unit_cycles[guard.place] = max(walk.unit_cycles.get(guard.place, 0), int(taken.sum() + idle.sum()))
            part = np.searchsorted(begins, rows * (nest.steps(nest.levels) // len(link.starts)), side="right") - 1
            found = np.zeros((shape[0], idle.shape[1]), dtype=np.int32)
            np.add.at(found, part, idle)
            mine = np.repeat(found, shape[1] // idle.shape[1], axis=1)
            places[guard.place] = np.maximum(places.get(guard.place, 0), mine)
        return sum(places.values(), start=np.zeros(shape, dtype=np.int32))

    def _store_together(self, contents: Contents, done: Done) -> None:
        """Store a partial sum of the output as soon as any word of its unit is stored.

        Padding of a unit without nonzeros is stored from the first step at which a compute unit works on its word."""
        units = np.empty(contents.mask.size, dtype=np.int64)
        units[contents.order] = units_of(contents.order.shape, contents.formats)
        stored = contents.kept
        padding = stored & (np.bincount(units, contents.mask.reshape(-1)) == 0)[units]
        for first in done.first.values():
            together = np.full((len(first), units.max() + 1), NEVER)
            for instance, row in zip(together, first, strict=True):
                np.minimum.at(instance, units, row)
            first[:] = np.where(stored, together[:, units], NEVER)
            if padding.any():
                first[:, padding] = self.products.first_visits(len(first))[:, padding]

    def _walk_storage(
        self, tally: Tally, outside: Tally, contents: Sequence[Contents], rng: np.random.Generator, guards: Guards
    ) -> tuple[Activity, list[Array | None]]:
        """Apply the guards of all storage levels, and count the operands' reads and fills between the levels.

        Returns the wanted and the executed accesses by tensor and child level, and the executed accesses of the
        innermost levels."""
        active: Activity = {}
        inner: list[Array | None] = []
        for t, part in enumerate(contents):
            now: Array | None = None
            for parent, level in pairwise(self.nest.stored(t)):
                link, guard = self.links[t, level], guards.get((t, parent))
                want = now if now is None else self._spread(now, parent, level)
                if self.nest.ragged:
                    want = self.nest.exists(level) if want is None else want & self.nest.exists(level)
                now = want if guard is None else guard.leave(want, contents, slice(None), rng)
                active[t, level] = want, now
                if t != self.nest.output:
                    sent, held = (part.stored if self.packed_at(t, s) else None for s in (parent, level))
                    count_operand(tally, link, sent, held, want, now, guard)
                    gaps = self.nest.gaps[t]
                    if gaps is not None:
                        sent, held = (Boxes(gaps if box is None else gaps & (box.values > 0)) for box in (sent, held))
                        count_operand(outside, link, sent, held, want, now, guard)
                if self.packed_at(t, level):  # instances in use: empty tiles are not sent
                    some = part.stored.count(link.widths, link.steps, link.places) > 0
                    tally.add("instances", level, t, float(some.mean() * some.shape[1]))
            inner.append(now)
        return active, inner

    def _spread(self, active: Array, parent: int, child: int) -> Array:
        """(steps, instances) of a level -> (steps, instances) of a level further in."""
        rows = np.repeat(active, self.nest.steps(child) // self.nest.steps(parent), axis=0)
        return np.repeat(rows, self.nest.instances(child) // self.nest.instances(parent), axis=1)


def count_operand(
    tally: Tally, link: Link, boxes: Boxes | None, held: Boxes | None, want: Array | None, take: Array | None,
    guard: Guard | None,
) -> None:  # fmt: skip
    """Count reads of the `boxes` stored by the parent and fills of the `held` boxes, None: all words.

    Without the charge `stay`, the model removes the share of steps with an empty leader."""
    t, parent = link.tensor, link.parent
    groups, children = link.sent(take)
    read = groups.read_words(boxes)
    tally.add("read", parent, t, read)
    tally.add("fill", link.child, t, children.total(held))
    if link.overlapping:
        tally.add("read", parent, t, 0.0, Q2=read - groups.total(boxes))
    if take is None or (link.nest.ragged and guard is None and take is want):
        return
    more = link.more_often(link.by_group(take))
    all_groups, all_children = link.sent(None)
    every = all_groups.read_words(boxes)
    tally.add("read", parent, t, 0.0, stay=every * more)
    tally.add("fill", link.child, t, 0.0, stay=link.more_often(take) * all_children.total(held))
    if guard is not None:
        gone = link.sent(want)[0].read_words(boxes) - link.kept(want, take)[0].read_words(boxes)
        wanted = 0.0 if want is None else link.more_often(link.by_group(want))
        tally.add(HELD_BACK[guard.kind] + "read", parent, t, gone, stay=every * (wanted - more))
