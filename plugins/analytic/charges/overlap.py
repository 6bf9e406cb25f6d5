"""`overlap`: transfers hide behind computing only where there is a second buffer, which takes room."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Charge
from sparsemap.pieces.contracts.base import Array, PerDesign, PerTile
from sparsemap.problem.problem import Problem

from ..run import Run


@attrs.frozen(kw_only=True)
class Overlap(Charge):
    """A level that is not double-buffered adds the time of its transfers; one that is has room for fewer words."""

    type_name: ClassVar[str] = "overlap"

    def copies(self, problem: Problem) -> Array:
        return problem.buffers.T.astype(np.float64)

    def timed(self, run: Run) -> None:
        lay, depth = run.layout, run.problem.buffers
        words = _Words(run)
        time = np.asarray(run.compute_cycles)
        for s in range(lay.S):
            to_units = [t for t in range(lay.T) if lay.stored[t, s] and lay.child(t, s) is None]
            time = np.maximum(time, words.serving(s, to_units))
        for h in range(lay.S - 1, 0, -1):
            here = [t for t in range(lay.T) if lay.stored[t, h]]
            doubled = [t for t in here if depth[h, t] > 1]
            single = words.exchange(h, [t for t in here if depth[h, t] == 1])
            if doubled:
                time = _pipelined(words, h, doubled, time, lay.output)
            time = time + single
            assert run.level_cycles is not None
            time = np.maximum(time, run.level_cycles[h])
        run.cycles = np.maximum(run.cycles, np.ceil(time * (1.0 - 1e-12)))


def _pipelined(words: _Words, h: int, tensors: list[int], time: PerDesign, output: int) -> PerDesign:
    """Cycles of computing for `time` with tiles that come while others are worked on, and results that leave so."""
    operands = [t for t in tensors if t != output]
    results = [t for t in tensors if t == output]
    turns = {t: np.maximum(1.0, words.turns(t, h)) for t in tensors}
    most = np.max([turns[t] for t in tensors], axis=0)
    items = np.where(most > 1.0, np.maximum(most, 2.0), 1.0)
    come, leave, moved = (words.exchange(h, some) for some in (operands, results, tensors))
    first = np.minimum(come, sum((words.exchange(h, [t]) / turns[t] for t in operands), start=np.zeros(come.shape)))
    last = leave / turns[output] if results else leave
    others = np.maximum(items - 1.0, 1.0)
    loaded, drained, each = (come - first) / others, (leave - last) / others, time / items
    apart = come + leave
    both = (loaded + drained) * moved / np.where(apart > 0.0, apart, 1.0)
    between = np.maximum(each, loaded) + np.maximum(items - 2.0, 0.0) * np.maximum(each, both)
    return first + last + np.where(items > 1.0, between + np.maximum(each, drained), time)


class _Words:
    """Words of time of one instance, by direction: `up` is towards the parent."""

    def __init__(self, run: Run) -> None:
        self.run, self.layout = run, run.layout
        lay, costs = run.layout, run.time_costs
        counts, used = run.time_counts, run.nest.instances_used[: lay.S]
        assert costs is not None and counts is not None
        share = run.active / used
        width = np.array([float(level.word_bits) for level in lay.levels])[:, None]
        fill = counts.fill + np.floor(costs.bits["fill"] / width) if costs.bits else counts.fill
        self.filled, self.drained, sent = share * fill, np.zeros(share.shape), share * costs.read
        leaving, output = run.traffic.leaving, lay.output
        if run.leaving is not None:
            reads = counts.read[output]
            leaving = np.clip(run.leaving / np.where(reads > 0.0, reads, 1.0), 0.0, 1.0) * costs.read[output]
        self.drained[output] = share[output] * leaving
        if run.leaving is not None:
            sent[output] -= self.drained[output]
        got = share * costs.written
        got -= self.filled
        self.sent, self.got = np.maximum(sent, 0.0, out=sent), np.maximum(got, 0.0, out=got)

    def exchange(self, h: int, tensors: Iterable[int]) -> PerDesign:
        """Cycles of the words between level h and the parents of these tensors."""
        tensors = list(tensors)
        own = self._cycles(h, self.drained, self.filled, tensors)
        for p in {self.layout.parent(t, h) for t in tensors} - {None}:
            mine = [t for t in tensors if self.layout.parent(t, h) == p]
            assert p is not None
            own = np.maximum(own, self.serving(p, mine))
        return own

    def serving(self, s: int, tensors: Iterable[int]) -> PerDesign:
        """Cycles of the words between level s and the children of these tensors."""
        return self._cycles(s, self.sent, self.got, list(tensors))

    def turns(self, t: int, h: int) -> PerDesign:
        """Tiles of tensor t that level h has in turn."""
        run = self.run
        moved = run.traffic.leaving[h] if t == self.layout.output else run.traffic.fills[t, h]
        return moved / run.nest.tile_words[t, h]

    def _cycles(self, s: int, read: PerTile, written: PerTile, tensors: list[int]) -> PerDesign:
        level, found = self.layout.levels[s], np.zeros(self.run.nest.batch)
        limits = level.read_bandwidth, level.write_bandwidth, level.bandwidth
        if not tensors or limits == (None, None, None):
            return found
        out, into = (sum((part[t, s] for t in tensors[1:]), start=part[tensors[0], s]) for part in (read, written))
        for words, limit in zip((out, into, out + into), limits, strict=True):
            if limit is not None:
                found = np.maximum(found, words / limit)
        return found
