"""`overlap`: transfers hide behind computing only where there is a second buffer, which takes room."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign, PerLevel, PerTile, Rows
from sparsemap.problem.chip import Chip

from ..layout import Layout, limited
from ..nest import Nest
from ..traffic import Traffic
from .uneven import Uneven, later

if TYPE_CHECKING:
    from ..counts import Counts
    from ..cycles import Demand

NEAR = 0.1
"""Of two times of which the shorter one is less than this share of the longer one, the longer one counts."""


def overlapped(
    transfers: Transfers, depth: Array, compute_cycles: PerDesign, levels: PerLevel, uneven: Uneven | None
) -> PerDesign:
    """(B,) cycles of the whole run; a level that is not double-buffered adds the time of its transfers. `depth`: (S, T)
    tiles of a tensor that a level holds, `levels`: (S, B) cycles of all words at each level."""
    lay, time = transfers.layout, compute_cycles
    for s in range(lay.S):
        to_units = [t for t in range(lay.T) if lay.stored[t, s] and lay.child(t, s) is None]
        time = np.maximum(time, transfers.serving(s, to_units))
    for h in range(lay.S - 1, 0, -1):
        here = [t for t in range(lay.T) if lay.stored[t, h] and lay.parent(t, h) is not None]
        doubled = [t for t in here if depth[h, t] > 1]
        single = [t for t in here if depth[h, t] == 1]
        if doubled:
            time = _pipelined(transfers, h, doubled, time, depth[h], uneven)
        time = np.maximum(time + transfers.stalls(h, single), transfers.exchange(h, single))
        time = np.maximum(time, levels[h])
    return np.ceil(time * (1.0 - 1e-12))


def _pipelined(
    transfers: Transfers, h: int, tensors: list[int], time: PerDesign, depth: Array, uneven: Uneven | None
) -> PerDesign:
    """Cycles of computing for `time` with tiles that come while others are worked on, and results that leave so."""
    output = transfers.layout.output
    operands = [t for t in tensors if t != output]
    results = [t for t in tensors if t == output]
    turns = {t: np.maximum(1.0, transfers.turns(t, h)) for t in tensors}
    most = np.max([turns[t] for t in tensors], axis=0)
    items = np.where(most > 1.0, np.maximum(most, 2.0), 1.0)
    each_of = {t: transfers.exchange(h, [t]) for t in tensors}
    come, leave, moved = (transfers.exchange(h, some) for some in (operands, results, tensors))
    first = np.minimum(come, sum((each_of[t] / turns[t] for t in operands), start=np.zeros(come.shape)))
    last = leave / turns[output] if results else leave
    others = np.maximum(items - 1.0, 1.0)
    loaded, drained, each = (come - first) / others, (leave - last) / others, time / items
    apart = come + leave
    both = (loaded + drained) * moved / np.where(apart > 0.0, apart, 1.0)
    between = np.maximum(each, both)
    if uneven is not None:
        rows = np.flatnonzero((items > 2.0) & (np.minimum(each, both) > NEAR * between))
        if rows.size:
            deviations = _deviations(h, rows, turns, most, each_of, depth, each, uneven)
            one_copy = np.maximum(both, each + transfers.stalls(h, tensors) / items)
            between[rows] = np.minimum(later(each[rows], both[rows], *deviations), one_copy[rows])
    between = np.maximum(each, loaded) + np.maximum(items - 2.0, 0.0) * between
    return first + last + np.where(items > 1.0, between + np.maximum(each, drained), time)


def _deviations(
    h: int,
    rows: Rows,
    turns: Mapping[int, Array],
    most: Array,
    each_of: Mapping[int, Array],
    depth: Array,
    each: PerDesign,
    uneven: Uneven,
) -> tuple[Array, Array, Array]:
    """(n,) in cycles, of the time in which a tile is used, which is `each` (B,) on average, and of that which another one
    takes to come; and the chance that a tile is used at all."""
    square, worked, some = np.zeros(len(rows)), np.zeros(len(rows)), np.ones(len(rows))
    for t in turns:
        turn = np.flatnonzero(turns[t][rows] > 0.99 * most[rows])  # others come bit by bit
        if not turn.size:
            continue
        mine, copies = rows[turn], math.sqrt(depth[t] - 1.0)
        spread, there = uneven.work(t, h, mine)
        worked[turn] = np.maximum(worked[turn], spread / most[mine] / copies)
        working = np.minimum(uneven.cycles[mine] / most[mine] / each[mine], 1.0)  # empty positions are passed always
        some[turn] = np.minimum(some[turn], 1.0 - (1.0 - there) ** (depth[t] - 1.0) * working)
        if t != uneven.nest.layout.output:
            square[turn] += (uneven.words(t, h, mine) * each_of[t][mine] / most[mine] / copies) ** 2
    return worked, np.sqrt(square), some


@attrs.frozen(eq=False)
class Transfers:
    """Words of time of one instance, (T, S, B), by direction."""

    nest: Nest
    traffic: Traffic
    chip: Chip
    filled: PerTile
    """From the parent .."""
    drained: PerTile
    """.. and towards it;"""
    sent: PerTile
    """to the children .."""
    got: PerTile
    """.. and from them."""

    @classmethod
    def of(cls, nest: Nest, traffic: Traffic, counts: Counts, demand: Demand, chip: Chip) -> Transfers:
        lay = nest.layout
        share = counts.active / nest.instances_used[: lay.S]
        filled, drained, sent = share * demand.filled, np.zeros(share.shape), share * demand.read
        leaving, output = traffic.leaving, lay.output
        if counts.leaving is not None:
            reads = counts.read[output]
            part = counts.leaving / np.where(reads > 0.0, reads, 1.0)
            leaving = np.clip(part, 0.0, 1.0) * demand.read[output]
        drained[output] = share[output] * leaving
        if counts.leaving is not None:
            sent[output] -= drained[output]
        got = share * demand.written
        got -= filled
        return cls(nest, traffic, chip, filled, drained, np.maximum(sent, 0.0, out=sent), np.maximum(got, 0.0, out=got))

    @property
    def layout(self) -> Layout:
        return self.nest.layout

    def exchange(self, h: int, tensors: Iterable[int]) -> PerDesign:
        """Cycles of the words between level h and the parents of these tensors."""
        tensors = list(tensors)
        own = self._cycles(h, self.drained, self.filled, tensors)
        parents = {t: self.layout.parent(t, h) for t in tensors}
        for p in {p for p in parents.values() if p is not None}:
            own = np.maximum(own, self.serving(p, [t for t in tensors if parents[t] == p]))
        return own

    def stalls(self, h: int, tensors: Iterable[int]) -> PerDesign:
        """Cycles in which an instance of level h waits for tiles of these tensors: while the parent serves another one, it
        goes on."""
        tensors = list(tensors)
        own = self._cycles(h, self.drained, self.filled, tensors)
        apart = np.zeros(own.shape)
        for t in tensors:
            parent, served = self.layout.parent(t, h), np.ones(own.shape)
            assert parent is not None
            for block in range(parent, h):
                served = served * self.traffic.distinct[t][block]
            apart = apart + self.serving(parent, [t]) / served
        return np.maximum(own, np.minimum(apart, self.exchange(h, tensors)))

    def serving(self, s: int, tensors: Iterable[int]) -> PerDesign:
        """Cycles of the words between level s and the children of these tensors."""
        return self._cycles(s, self.sent, self.got, list(tensors))

    def turns(self, t: int, h: int) -> PerDesign:
        """Tiles of tensor t that level h has in turn."""
        moved = self.traffic.leaving[h] if t == self.layout.output else self.traffic.brought[t, h]
        return moved / self.nest.tile_words[t, h]

    def _cycles(self, s: int, read: PerTile, written: PerTile, tensors: list[int]) -> PerDesign:
        chip, found = self.chip, np.zeros(self.nest.batch)
        limits = chip.read_bandwidth[s], chip.write_bandwidth[s], chip.bandwidth[s]
        some = [limited(limit) for limit in limits]
        if not tensors or not any(some):
            return found
        out, into = (sum((part[t, s] for t in tensors[1:]), start=part[tensors[0], s]) for part in (read, written))
        for words, limit, slows in zip((out, into, out + into), limits, some, strict=True):
            if slows:
                found = np.maximum(found, words / limit)
        return found
