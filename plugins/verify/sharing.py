"""Lanes that share words: steps taken together, or queues of a few words (docs/model.md, `shared-words`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

from .links import Link

NAME = "shared-words"
WAITED = frozenset({"positions", "intersection"})
"""Charges with cycles that lanes wait for together."""


def owners(link: Link) -> Array:
    """(lanes,) number of the group of lanes receiving the same words as a lane."""
    parent = np.arange(len(link.places)) // link.fan
    found: Array = np.unique(np.column_stack([parent, link.places]), axis=0, return_inverse=True)[1]
    return found.reshape(-1)


@attrs.define(eq=False)
class Queue:
    """A word of a tensor for a group of lanes, sent when all lanes needing the word have room."""

    group: Array
    """(lanes,)"""
    sent: Array
    """(groups,) time of the last word."""

    def send(self, lanes: Array, room: Array) -> Array:
        """(needing lanes,) arrival of the next word at the `lanes` needing it, with `room` from these times on."""
        group = self.group[lanes]
        np.maximum.at(self.sent, group, room)
        return self.sent[group]


@attrs.define(eq=False, slots=False)
class SharedLanes:
    """Times of lanes under shared words; `advance` takes a block of steps."""

    together: Array
    """(lanes,) number of the set of lanes that take every step together."""
    queues: list[tuple[Queue, int]]
    """Queues with their words."""
    time: Array
    """(lanes,) end of the last step."""
    ends: Array
    """(lanes, words) ends of the last steps with work, as a ring."""
    count: Array
    """(lanes,) steps with work so far."""

    @classmethod
    def of(cls, links: Sequence[Link], units: int) -> SharedLanes | None:
        """None: no lane waits for a word. `links` towards the lanes, one per tensor."""
        together, queues, longest = np.arange(units), [], 1
        for link in links:
            memory = link.nest.problem.levels[link.parent].memory
            if memory.shares_work or memory.shared_words == "separate" or not (link.members > 1).any():
                continue
            group = owners(link)
            if isinstance(memory.shared_words, int):
                queues.append((Queue(group, np.zeros(int(group.max()) + 1)), memory.shared_words))
                longest = max(longest, memory.shared_words)
            else:
                together = joined(together, group)
        if not queues and len(np.unique(together)) == units:
            return None
        return cls(together, queues, np.zeros(units), np.zeros((units, longest)), np.zeros(units, dtype=np.int64))

    @cached_property
    def _sets(self) -> tuple[Array, Array, Array]:
        """Lanes set by set, where each set begins, and the set of each of these lanes."""
        order = np.argsort(self.together, kind="stable")
        _, begins, at = np.unique(self.together[order], return_index=True, return_inverse=True)
        return order, begins, at.reshape(-1)

    def of_any(self, some: Array) -> Array:
        """(steps, lanes) bool: some lane of the set."""
        order, begins, at = self._sets
        if len(begins) == len(order):
            return some
        found = np.empty_like(some)
        found[:, order] = np.logical_or.reduceat(some[:, order], begins, axis=1)[:, at]
        return found

    def advance(self, cycles: Array, works: Array, at: Array) -> Array:
        """(parts, lanes) cycles of the parts of a block, from its (steps, lanes) `cycles` of each step.

        `works` (steps, lanes): the step takes a word of each queue; `at`: first steps of the parts."""
        if not self.queues:
            total: Array = np.add.reduceat(cycles, at, axis=0)
            return total
        before, rows = self.time.copy(), []
        for step, (own, working) in enumerate(zip(cycles, works, strict=True)):
            if step in at[1:]:
                rows.append(self.time - before)
                before = self.time.copy()
            self._step(own, working)
        return np.array([*rows, self.time - before])

    def _step(self, cycles: Array, working: Array) -> None:
        lanes = np.flatnonzero(working)
        if len(lanes):
            start = self.time[lanes]
            for queue, words in self.queues:
                room = self.ends[lanes, (self.count[lanes] - words) % self.ends.shape[1]]
                start = np.maximum(start, queue.send(lanes, np.where(self.count[lanes] < words, 0.0, room)))
            self.time[lanes] = start
        self.time += cycles
        if len(lanes):
            self.ends[lanes, self.count[lanes] % self.ends.shape[1]] = self.time[lanes]
            self.count[lanes] += 1


def joined(sets: Array, group: Array) -> Array:
    """Sets of lanes connected by sets or groups."""
    while True:
        found = sets
        for names in (sets, group):
            least = np.full(int(names.max()) + 1, len(sets))
            np.minimum.at(least, names, found)
            found = least[names]
        if (found == sets).all():
            return sets
        sets = found
