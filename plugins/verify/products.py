"""The innermost steps: every multiply-accumulate on real operands, in the order of the nest."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

from .dealing import Packed, VectorSteps, dealt
from .leaders import SKIP, Guard, Unit, comparisons, fiber, narrower, out_of_sight
from .links import Link
from .metadata import is_packed
from .nest import ExecutedNest, flat
from .sharing import NAME, WAITED, SharedLanes
from .stored import Contents

CHUNK = 1 << 19
"""Multiply-accumulates per block."""
NEVER = np.iinfo(np.int64).max


@attrs.define(eq=False)
class Reads:
    """Reads of an operand at the innermost level that stores it."""

    passes: Array
    """(steps, instances) of the level: reads of all words, zeros included."""
    words: int = 0
    """Reads of stored words."""
    outside: Array = attrs.field(init=False)
    """(steps, instances) like `passes`, of positions outside the data."""
    outside_words: int = 0
    """Reads of stored words outside the data."""

    def __attrs_post_init__(self) -> None:
        self.outside = np.zeros_like(self.passes)


@attrs.define(eq=False)
class Updates:
    """Updates of the output at the innermost level that stores it."""

    touched: Array
    """(instances x words,) bool: the word got a product."""
    count: int = 0
    of_all: int = 0
    """Updates if every compute added to each word with a nonzero final value (Q13)."""

    @property
    def reductions(self) -> int:
        """Updates that find a partial sum and have to read it."""
        return self.count - int(self.touched.sum())


@attrs.define(eq=False)
class SharedTime:
    """Lanes that share words, and their cycles so far."""

    lanes: SharedLanes
    cycles: Array
    """(parts, computes) cycles of each unit with waiting for shared words."""


@attrs.define(eq=False)
class Done:
    """Work of the compute units, and traffic with the innermost level that stores each tensor."""

    work: Array
    """(parts, computes) busy cycles of each unit, between two steps of `begins`."""
    passed: Array
    """(parts, computes) positions with all operands absent and no skip, for `positions`."""
    stages: Array
    """(2, parts, computes) cycles of both stages of skips that pass their width without a product, for `intersection`."""
    tiles: Array
    """(parts, computes) cycles of skips of tiles without a tile within their width, for `intersection`."""
    partly: Array
    """(parts, computes) extra cycles of shared steps with partly filled lanes, for `vectors`."""
    shared: dict[frozenset[str], SharedTime]
    """By the charges of `WAITED` that are paid, cycles with waiting for shared words; empty: no lane waits for a word."""
    output: Array
    reads: dict[int, Reads]
    """By operand, the reads that took place."""
    reads_wanted: dict[int, Reads]
    """By operand, with the reads removed by a guard."""
    updates: Updates
    updates_wanted: Updates
    first: dict[int, Array]
    """By storage level, (instances, words): step of the first product of an output word."""
    actual: int = 0
    left_out: int = 0
    """Computes gated or skipped by the unit."""

    @property
    def looked(self) -> Array:
        """(parts, computes) cycles without a product. Both stages work at once; the slower one sets the rate."""
        return self.stages.max(axis=0) + self.tiles

    def cycles(self, charges: frozenset[str]) -> Array:
        """(parts, computes) cycles of each unit with the charges."""
        if NAME in charges and self.shared:
            waited = self.shared[WAITED.intersection(charges)].cycles
            return waited + self.tiles if "intersection" in charges else waited
        found = self.work + self.passed if "positions" in charges else self.work
        found = found + self.partly if "vectors" in charges else found
        return found + self.looked if "intersection" in charges else found


class Products:
    """Walk over all steps of the compute units; built once per design, `run` once per trial."""

    def __init__(self, nest: ExecutedNest, packed: Sequence[bool], guards: Mapping[tuple[int, int], Guard]) -> None:
        self.nest, self.packed, self.unit = nest, packed, Unit.of(nest)
        self.skips = self.unit is not None and self.unit.rule.action == SKIP
        """Whether the unit skips; otherwise it may gate."""
        self.inner = [chain[-2] for chain in nest.chains]
        self.links = [Link(nest, t, level, nest.levels) for t, level in enumerate(self.inner)]
        self.all_guards, self.dealt = guards, dealt(nest)
        self.vectors = None if self.dealt else VectorSteps.of(nest)
        self.guards = [guards.get((t, level)) for t, level in enumerate(self.inner)]
        skips = [guard for t in nest.operands if (guard := self.guards[t]) is not None and guard.kind == SKIP]
        self.width = narrower(*(guard.width for guard in skips))
        """Most positions per cycle passed by storage skips that choose words for the units; None: any number."""
        rule = self.unit.rule if self.unit is not None and self.skips else None
        self.unit_width = None if rule is None else narrower(rule.width, nest.problem.hardware.compute.lookahead)
        """Most positions per cycle passed by a skip of the units; None: any number."""
        last = nest.levels - 1
        self.lists = {leader.tensor: leader for guard in skips if guard.entries for leader in guard.leaders}
        """Leaders with entries compared by the storage skips; empty: the skips compare positions."""
        self.unit_lists = [t for t in nest.operands if packed[t]] if rule is not None and rule.entries else []
        """Operands with entries compared by the units; empty: the units compare positions."""
        self.fibers = [fiber(nest, last, some) if some else (1, 1) for some in ([*self.lists], self.unit_lists)]
        """Lists of entries of the storage skips and of the units, see `fiber`."""
        self.whole = math.lcm(*map(math.prod, self.fibers), self.vectors.block if self.vectors else 1)
        """Steps of an indivisible block."""
        self.step_words = [flat(link.steps, link.shape) for link in self.links]
        self.place_words = [flat(link.places, link.shape) for link in self.links]
        self.own = {nest.charges & WAITED} if NAME in nest.charges and not self.dealt else set()
        self.waited = set(self.own)
        """Charges of `WAITED` under each of which waiting for shared words is counted."""
        self.steps, self.units = nest.steps(nest.levels), nest.instances(nest.levels)
        self.first_levels = nest.stored(nest.output) if is_packed(nest, nest.output) else ()

    def also_pay(self, charges: frozenset[str]) -> None:
        """Later runs to be compared record what `Done.cycles` needs under the charges."""
        if NAME in charges and not self.dealt:
            self.waited.add(charges & WAITED)

    def run(
        self, values: Sequence[Array], contents: Sequence[Contents], active: Sequence[Array | None],
        rng: np.random.Generator, begins: Array, compared: bool = False,
    ) -> Done:  # fmt: skip
        """Run a trial. `values` of the operands are flat; `contents` includes the finished output.

        `active` per tensor: (steps, instances) bool of the innermost storing level, the accesses left by guards further
        out. `begins`: steps at which a part of the `work` begins, the first being 0. `compared`: record waiting under all
        charges of `also_pay`, not the model's own alone."""
        done = self._nothing(len(begins), self.waited if compared else self.own)
        size = max(1, CHUNK // self.units // self.whole) * self.whole
        for start in range(0, self.steps, size):
            rows = slice(start, min(start + size, self.steps))
            self._chunk(done, rows, values, contents, active, rng, begins)
        return done

    def _nothing(self, parts: int, waited: Set[frozenset[str]]) -> Done:
        nest, link = self.nest, self.links[self.nest.output]

        def reads() -> dict[int, Reads]:
            levels = ((t, self.inner[t]) for t in nest.operands)
            return {t: Reads(np.zeros((nest.steps(level), nest.instances(level)))) for t, level in levels}

        def updates() -> Updates:
            return Updates(np.zeros(link.parents * link.size, dtype=bool))

        work, passed, tiles = (np.zeros((parts, self.units), dtype=np.int32) for _ in range(3))
        stages = np.zeros((2, parts, self.units), dtype=np.int32)
        first = {level: np.full((nest.instances(level), link.size), NEVER) for level in self.first_levels}
        partly = np.zeros((parts, self.units))
        return Done(
            work, passed, stages, tiles, partly, self._waiting(parts, waited), np.zeros(link.size), reads(), reads(),
            updates(), updates(), first,
        )  # fmt: skip

    def _waiting(self, parts: int, waited: Set[frozenset[str]]) -> dict[frozenset[str], SharedTime]:
        several = [(charges, SharedLanes.of(self.links, self.units)) for charges in waited]
        return {
            charges: SharedTime(lanes, np.zeros((parts, self.units))) for charges, lanes in several if lanes is not None
        }

    def _chunk(
        self, done: Done, rows: slice, values: Sequence[Array], contents: Sequence[Contents],
        active: Sequence[Array | None], rng: np.random.Generator, begins: Array,
    ) -> None:  # fmt: skip
        nest, out = self.nest, self.nest.output
        words = [s[rows, None] + p for s, p in zip(self.step_words, self.place_words, strict=True)]
        shape = words[out].shape
        exists = nest.exists(nest.levels, rows) if nest.ragged else np.ones(shape, dtype=bool)
        wanted: list[Array | None] = []
        allowed: list[Array | None] = []
        for t, (link, guard) in enumerate(zip(self.links, self.guards, strict=True)):
            wanted.append(self._outer(active[t], link, rows))
            if nest.ragged:
                wanted[t] = exists if wanted[t] is None else wanted[t] & exists
            allowed.append(wanted[t] if guard is None else guard.leave(wanted[t], contents, rows, rng))
        alive, offered = exists.copy(), exists.copy()
        there = []
        lanes, busy = np.ones(shape, dtype=bool), np.ones(shape, dtype=bool)
        passes = dict[int, Array]()
        for one in self.dealt:
            mine, works = one.deal(contents, rows, words)
            lanes, busy = lanes & mine, busy & works
            if isinstance(one, Packed):
                passes[one.tensor] = works
        for t in nest.operands:
            take = allowed[t]
            for c, works in passes.items():
                take = take if t == c else works if take is None else take & works
            guard = self.guards[t]
            if allowed[t] is not None:
                alive &= allowed[t]
            if (outer := wanted[t] if guard is not None and guard.kind == SKIP else take) is not None:
                offered &= outer
            there.append(contents[t].kept[words[t]] if self.packed[t] else np.ones(shape, dtype=bool))
            leads = self.links[t].leads
            self._read(done.reads[t], t, rows, words[t][:, leads], there[-1][:, leads], take)
            if self.guards[t] is not None:
                self._read(done.reads_wanted[t], t, rows, words[t][:, leads], there[-1][:, leads], wanted[t])
        result = math.prod((values[t][words[t]] for t in nest.operands), start=np.ones(shape))
        computed, occupied, passed = self._compute(done, alive & lanes, result != 0, there, rng)
        if self.dealt:
            occupied, passed = busy & alive, np.zeros_like(passed)
        first_stage, second_stage = self._stages(rows, contents, there, offered, alive, occupied)
        first = int(np.searchsorted(begins, rows.start, side="right")) - 1
        last = int(np.searchsorted(begins, rows.stop))
        at = np.maximum(begins[first:last] - rows.start, 0)
        if done.shared:
            self._wait(done.shared, rows, contents, there, offered, alive, occupied, passed, at, slice(first, last))
        for total, mine in (
            (done.work, occupied), (done.passed, passed), (done.stages[0], first_stage), (done.stages[1], second_stage),
        ):  # fmt: skip
            if mine.any():
                total[first:last] += np.add.reduceat(mine, at, axis=0, dtype=np.int32)
        if self.vectors is not None:
            done.partly[first:last] += np.add.reduceat(self.vectors.more(occupied), at // self.vectors.block, axis=0)
        done.output += np.bincount(words[out][computed], result[computed], len(done.output))
        product = computed & (result != 0)
        happens = product if self.packed[out] else computed
        final = contents[out].kept if self.packed[out] else np.ones(len(done.output), dtype=bool)
        self._update(done.updates, happens, words[out], final, allowed[out])
        if self.guards[out] is not None:
            self._update(done.updates_wanted, happens, words[out], final, wanted[out])
        if self.first_levels:
            step, unit = np.nonzero(product)
            word, step = words[out][step, unit], step + rows.start
            for found in done.first.values():
                key = unit // (self.units // len(found)) * found.shape[1] + word
                view = found.reshape(-1)
                new = view[key] == NEVER
                view[key[new][::-1]] = step[new][::-1]  # the earliest is written last

    def _stages(
        self, rows: slice, contents: Sequence[Contents], there: Sequence[Array], offered: Array, alive: Array, occupied: Array,
        whole: Callable[[Array], Array] = lambda some: some,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Cycles (steps, units) of both stages of skips that pass their width. `whole`: the positions of a set of units."""
        first, second = np.zeros((2, *alive.shape), dtype=np.int8)
        if self.lists and self.width is not None:
            boxes = {t: contents[t].seen for t in self.lists}
            lists = [whole(leader.present(boxes[t], rows) & offered) for t, leader in self.lists.items()]
            first = comparisons(lists, self.fibers[0], self.width) + (whole(alive) & ~occupied)  # a pair takes a cycle
        elif self.width is not None:
            first = out_of_sight(whole(offered) & ~occupied, whole(offered), self.width)
        if self.unit_lists and self.unit_width is not None:
            lists = [whole(there[self.nest.operands.index(t)] & alive) for t in self.unit_lists]
            second = comparisons(lists, self.fibers[1], self.unit_width)
        elif self.unit_width is not None:
            second = out_of_sight(whole(alive) & ~occupied, whole(alive), self.unit_width)
        return first, second

    def _wait(
        self, shared: Mapping[frozenset[str], SharedTime], rows: slice, contents: Sequence[Contents], there: Sequence[Array],
        offered: Array, alive: Array, occupied: Array, passed: Array, at: Array, parts: slice,
    ) -> None:  # fmt: skip
        """Add the cycles with waiting for shared words; the slower stage of skips counts."""
        whole = next(iter(shared.values())).lanes.of_any
        works = whole(occupied)
        more = {"positions": whole(passed) & ~works}
        if any("intersection" in charges for charges in shared):
            first, second = self._stages(rows, contents, there, offered, alive, works, whole)
            more["intersection"] = np.where(first.sum(axis=0) >= second.sum(axis=0), first, second)
        for charges, time in shared.items():
            cycles = sum((more[charge] for charge in charges), start=works.astype(np.float64))
            time.cycles[parts] += time.lanes.advance(cycles, works, at)

    def first_visits(self, instances: int) -> Array:
        """(instances, words) step at which a unit of each instance of a level first works on an output word."""
        steps, places = self.step_words[self.nest.output], self.place_words[self.nest.output]
        found = np.full((instances, math.prod(self.nest.shape(self.nest.output))), NEVER)
        number = np.arange(self.steps)[::-1]
        for unit, place in enumerate(places):
            visits = np.full(found.shape[1], NEVER)
            visits[steps[::-1] + place] = number  # the earliest is written last
            row = found[unit // (self.units // instances)]
            np.minimum(row, visits, out=row)
        return found

    def _outer(self, active: Array | None, link: Link, rows: slice) -> Array | None:
        if active is None:
            return None
        of = np.arange(rows.start, rows.stop) // (self.steps // len(active))
        return np.repeat(active[of], link.fan, axis=1)

    def _read(self, found: Reads, t: int, rows: slice, words: Array, stored: Array, active: Array | None) -> None:
        """Count reads. `stored` (n, groups) bool: the `words` needed by the groups are stored; `active` (n, units),
        None: all."""
        link, gaps = self.links[t], self.nest.gaps[t]
        asked = np.ones_like(stored) if active is None else link.by_group(active)
        outside = None if gaps is None else asked & gaps.reshape(-1)[words]
        found.words += int((stored & asked).sum())
        found.outside_words += 0 if outside is None else int((stored & outside).sum())
        if self.packed[t]:
            of = np.arange(rows.start, rows.stop) // (self.steps // len(found.passes))
            begins = np.flatnonzero(np.diff(of, prepend=-1))
            for passes, mine in ((found.passes, asked), (found.outside, outside)):
                if mine is not None:
                    per = mine.reshape(len(mine), link.parents, -1).sum(axis=2)
                    passes[of[begins]] += np.add.reduceat(per, begins, axis=0)

    def _compute(
        self, done: Done, alive: Array, effectual: Array, there: Sequence[Array], rng: np.random.Generator
    ) -> tuple[Array, Array, Array]:
        """Masks of computes carried out (7.3), of computes that take a cycle, and of empty positions without a skip.

        An operand is absent where its mask in `there` is false."""
        complete = np.logical_and.reduce(there)
        exists = alive & np.logical_or.reduce(there)
        absent, zero = exists & ~complete, exists & complete & ~effectual
        idle = absent if self.skips else absent | zero
        left_out = self.unit.left_out(idle, alive, rng) if self.unit else np.zeros_like(idle)
        computed = exists & ~left_out
        occupied = computed if self.skips else computed | left_out
        done.actual += int(computed.sum())
        done.left_out += int(left_out.sum())
        return computed, occupied, np.zeros_like(alive) if self.skips else alive & ~exists

    def _update(self, found: Updates, happens: Array, words: Array, final: Array, active: Array | None) -> None:
        """Count updates. Products of units for the same output word and step are added before they are stored.

        `final` (words,) bool: the word ends up stored; `active` (n, units), None: all."""
        link = self.links[self.nest.output]
        lead = words[:, link.leads]
        every = np.ones_like(happens) if active is None else active
        done = link.by_group(happens & every)
        found.count += int(done.sum())
        found.of_all += int((link.by_group(every) & final[lead]).sum())
        found.touched[(np.repeat(np.arange(link.parents), link.groups) * link.size + lead)[done]] = True


def reference_output(nest: ExecutedNest, values: Sequence[Array]) -> Array:
    """The dense product in plain order of the dimensions, flat, independent of the nest."""
    found = np.zeros(math.prod(nest.shape(nest.output)))
    computes = math.prod(nest.ends)
    for start in range(0, computes, CHUNK):
        points = np.stack(np.unravel_index(np.arange(start, min(start + CHUNK, computes)), nest.ends), axis=1)
        word = [flat(points @ move.T, nest.shape(t)) for t, move in enumerate(nest.access)]
        result = math.prod((values[t][word[t]] for t in nest.operands), start=np.ones(len(points)))
        found += np.bincount(word[nest.output], result, len(found))
    return found
