"""The innermost steps: every multiply-accumulate of the nest on real operands, in the order of the nest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

from .leaders import SKIP, Guard, Unit
from .links import Link
from .nest import Nest, flat
from .stored import Contents

CHUNK = 1 << 19
"""Multiply-accumulates in one go."""
NEVER = np.iinfo(np.int64).max


@attrs.define(eq=False)
class Done:
    """What happened at the compute units, and between them and the innermost level that stores each tensor."""

    actual: int = 0
    gated: int = 0
    skipped: int = 0
    left: int = 0
    """Computes that filters at storage leave."""
    busy: Array = attrs.field(factory=lambda: np.zeros(0))
    """(computes,) cycles in which each unit was occupied."""
    work: Array = attrs.field(factory=lambda: np.zeros((0, 0)))
    """(parts, computes) the same, between two steps of `begins`."""
    read: dict[int, float] = attrs.field(factory=dict)
    held_back: dict[int, float] = attrs.field(factory=dict)
    """Operand reads that a guard removed."""
    accesses: dict[int, Array] = attrs.field(factory=dict)
    """(steps, instances) of the innermost storing level: accesses of all words, zeros included, that took place."""
    accesses_held_back: dict[int, Array] = attrs.field(factory=dict)
    updates: float = 0
    updates_wanted: float = 0
    """With those that a guard removed."""
    updates_of_all: float = 0
    """As if every compute left a product in each word that ends up nonzero (Q13)."""
    updates_of_all_wanted: float = 0
    reductions: float = 0
    """Updates that find a partial sum and have to read it."""
    reductions_wanted: float = 0
    output: Array = attrs.field(factory=lambda: np.zeros(0))
    first: dict[int, Array] = attrs.field(factory=dict)
    """By storage level, (instances, words): step at which an output word first gets a product there."""


class Products:
    """Walks all steps of the compute units; geometry is made once, `run` is called per trial."""

    def __init__(self, nest: Nest, packed: Sequence[bool], guards: Mapping[tuple[int, int], Guard], unit: Unit) -> None:
        self.nest, self.packed, self.unit = nest, packed, unit
        self.inner = [nest.stored(t)[-1] for t in range(len(packed))]
        self.links = [Link(nest, t, level, nest.levels) for t, level in enumerate(self.inner)]
        self.all_guards = guards
        self.guards = [guards.get((t, level)) for t, level in enumerate(self.inner)]
        self.step_words = [flat(link.steps, link.shape) for link in self.links]
        self.place_words = [flat(link.places, link.shape) for link in self.links]
        self.steps, self.units = nest.steps(nest.levels), nest.instances(nest.levels)
        self.first_levels = nest.stored(nest.output) if packed[nest.output] else ()

    def run(
        self, values: Sequence[Array], contents: Sequence[Contents], active: Sequence[Array | None],
        rng: np.random.Generator, begins: Array | None = None,
    ) -> Done:  # fmt: skip
        """One trial. `values` of the operands are flat; `contents` has the finished output, too.

        `active` per tensor: (steps, instances) of its innermost level, the accesses that guards further out leave;
        `begins`: steps at which a part of the `work` begins, the first of them 0.
        """
        nest, out = self.nest, self.nest.output
        words = math.prod(nest.shape(out))
        done = Done(busy=np.zeros(self.units, dtype=np.int64), output=np.zeros(words))
        for t in nest.operands:
            shape = (nest.steps(self.inner[t]), nest.instances(self.inner[t]))
            done.read[t] = done.held_back[t] = 0.0
            done.accesses[t], done.accesses_held_back[t] = np.zeros(shape), np.zeros(shape)
        for level in self.first_levels:
            done.first[level] = np.full((nest.instances(level), words), NEVER)
        touched = [np.zeros(self.links[out].parents * words, dtype=bool) for _ in range(2)]
        stored = [part.stored.values.reshape(-1) > 0 for part in contents]
        size = max(1, CHUNK // self.units)
        if begins is not None:
            done.work = np.zeros((len(begins), self.units), dtype=np.int32)
        for start in range(0, self.steps, size):
            rows = slice(start, min(start + size, self.steps))
            self._chunk(done, rows, values, contents, stored, active, touched, rng, begins)
        done.reductions = done.updates - int(touched[0].sum())
        done.reductions_wanted = done.updates_wanted - int(touched[1].sum())
        return done

    def _chunk(self, done, rows, values, contents, stored, active, touched, rng, begins) -> None:
        nest, out = self.nest, self.nest.output
        words = [s[rows, None] + p for s, p in zip(self.step_words, self.place_words, strict=True)]
        shape = words[out].shape
        wanted: list[Array | None] = []
        allowed: list[Array | None] = []
        for t, link in enumerate(self.links):
            before = self._outer(active[t], link, rows)
            guard = self.guards[t]
            after = before
            if guard is not None:
                required = guard.required(contents, rows, rng)
                after = required if before is None else before & required
            wanted.append(before)
            allowed.append(after)
        alive = np.ones(shape, dtype=bool)
        for t in nest.operands:
            if allowed[t] is not None:
                alive &= allowed[t]
            self._reads(done, t, rows, words[t], stored[t], wanted[t], allowed[t])
        result = math.prod((values[t][words[t]] for t in nest.operands), start=np.ones(shape))
        there = [stored[t][words[t]] if self.packed[t] else np.ones_like(alive) for t in nest.operands]
        computed, occupied = self._compute(done, alive, result != 0, there, rng)
        if begins is not None:
            first = int(np.searchsorted(begins, rows.start, side="right")) - 1
            last = int(np.searchsorted(begins, rows.stop))
            at = np.maximum(begins[first:last] - rows.start, 0)
            done.work[first:last] += np.add.reduceat(occupied, at, axis=0, dtype=np.int32)
        done.output += np.bincount(words[out][computed], result[computed], len(done.output))
        product = computed & (result != 0)
        happens = product if self.packed[out] else computed
        self._updates(done, happens, words[out], stored[out], wanted[out], allowed[out], touched)
        if self.first_levels:
            step, unit = np.nonzero(product)
            word, step = words[out][step, unit], step + rows.start
            for first in done.first.values():
                key = unit // (self.units // len(first)) * first.shape[1] + word
                view = first.reshape(-1)
                new = view[key] == NEVER
                view[key[new][::-1]] = step[new][::-1]  # the earliest is written last

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

    def _reads(self, done, t, rows, words, stored, wanted, allowed) -> None:
        link = self.links[t]
        held = stored[words[:, link.leads]]
        if not self.packed[t]:
            held = np.ones_like(held)
        want = None if wanted is None else link.by_group(wanted)
        take = None if allowed is None else link.by_group(allowed)
        asked = held if want is None else held & want
        taken = held if take is None else held & take
        done.read[t] += int(taken.sum())
        done.held_back[t] += int(asked.sum()) - int(taken.sum())
        if self.packed[t]:
            of = np.arange(rows.start, rows.stop) // (self.steps // len(done.accesses[t]))
            every = np.ones_like(held)
            per = (every if take is None else take).reshape(len(words), link.parents, -1).sum(axis=2)
            asked_per = (every if want is None else want).reshape(len(words), link.parents, -1).sum(axis=2)
            begins = np.flatnonzero(np.diff(of, prepend=-1))
            done.accesses[t][of[begins]] += np.add.reduceat(per, begins, axis=0)
            done.accesses_held_back[t][of[begins]] += np.add.reduceat(asked_per - per, begins, axis=0)

    def _compute(
        self, done: Done, alive: Array, effectual: Array, there: Sequence[Array], rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Computes that are carried out (7.3), and those that take a cycle; operands that are not `there` are absent."""
        done.left += int(alive.sum())
        complete = np.logical_and.reduce(there)
        exists = alive & np.logical_or.reduce(there)
        absent, zero = exists & ~complete, exists & complete & ~effectual
        idle = absent if self.unit.kind == SKIP else absent | zero
        left_out = self.unit.left_out(idle, alive, rng)
        computed = exists & ~left_out
        done.actual += int(computed.sum())
        if self.unit.kind == SKIP:
            done.skipped += int(left_out.sum())
            occupied = computed
        else:
            done.gated += int(left_out.sum())
            occupied = computed | left_out
        done.busy += occupied.sum(axis=0)
        return computed, occupied

    def _updates(self, done, happens, words, final, wanted, allowed, touched) -> None:
        """Products of units that work on the same output word at the same step are added before they are stored."""
        link = self.links[self.nest.output]
        lead = words[:, link.leads]
        key = np.repeat(np.arange(link.parents), link.groups) * len(final) + lead
        every = np.ones_like(happens)
        counted = final[lead] if self.packed[self.nest.output] else np.ones_like(lead, dtype=bool)
        cases = (
            link.by_group(happens if allowed is None else happens & allowed),
            link.by_group(happens if wanted is None else happens & wanted),
        )
        done.updates += int(cases[0].sum())
        done.updates_wanted += int(cases[1].sum())
        done.updates_of_all += int((link.by_group(every if allowed is None else allowed) & counted).sum())
        done.updates_of_all_wanted += int((link.by_group(every if wanted is None else wanted) & counted).sum())
        for flags, case in zip(touched, cases, strict=True):
            flags[key[case]] = True


def reference_output(nest: Nest, values: Sequence[Array]) -> Array:
    """The dense product in plain order of the dimensions, flat; it knows nothing of the nest."""
    total = np.zeros(math.prod(nest.shape(nest.output)))
    rest = nest.sizes[1:]
    inner = np.indices(rest).reshape(len(rest), -1).T if rest else np.zeros((1, 0), dtype=np.int64)
    block = max(1, CHUNK // max(1, len(inner)))
    for start in range(0, nest.sizes[0], block):
        outer = np.arange(start, min(start + block, nest.sizes[0]))
        first = np.repeat(outer, len(inner))[:, None]
        points = np.concatenate([first, np.tile(inner, (len(outer), 1))], axis=1)
        word = [flat(points @ nest.access[t].T, nest.shape(t)) for t in range(len(nest.access))]
        result = math.prod((values[t][word[t]] for t in nest.operands), start=np.ones(len(points)))
        total += np.bincount(word[nest.output], result, len(total))
    return total
