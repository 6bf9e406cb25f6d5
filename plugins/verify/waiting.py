"""Waiting of lanes: the steps of all lanes in time, with shared tiles and transfers.

A lane is a compute unit. Lanes below the same parent instance that use the same part of a tensor's tile share the part:
a transfer delivers it to all lanes at once, and the next tile comes when all lanes have finished. A level has room for
`buffer_depth` tiles of a tensor. A transfer begins when the level has room, the words have arrived at the parent, and
the ports are free; tiles needed first go first. Results leave when all sharing lanes have finished, and before the
parent's tile does. (docs/model.md, `overlap` and `imbalance`.)"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

from .links import Link
from .tally import Tally

if TYPE_CHECKING:
    from .simulate import Simulation, Walk

REQUESTS = 200_000
"""Most transfers of a tensor to a level simulated individually; above, all transfers of a step go together."""


class Port:
    """Idle times of a port."""

    def __init__(self) -> None:
        self.begins: list[float] = [0.0]
        self.ends: list[float] = [math.inf]

    def serve(self, ready: float, cycles: float) -> float:
        """Serve a request of `cycles` in the idle time from `ready` on, and return the completion time."""
        at = max(0, bisect_right(self.begins, ready) - 1)
        if self.ends[at] <= ready:
            at += 1
        while True:
            begin = max(self.begins[at], ready)
            end = self.ends[at]
            taken = min(cycles, end - begin)
            cycles -= taken
            parts = [(self.begins[at], begin), (begin + taken, end)]
            kept = [part for part in parts if part[1] > part[0]]
            self.begins[at : at + 1] = [part[0] for part in kept]
            self.ends[at : at + 1] = [part[1] for part in kept]
            if cycles <= 0.0:
                return begin + taken
            at += sum(part[0] < begin for part in kept)


class Lanes:
    """Groups of lanes that share the words of a link."""

    def __init__(self, group: Array, lead: Array) -> None:
        self.group = group
        """(lanes,) group of each lane."""
        self.lead = lead
        """(groups,) a lane of each group."""
        self._order = np.argsort(group, kind="stable")
        self._begins = np.searchsorted(group[self._order], np.arange(len(lead)))

    def latest(self, time: Array) -> Array:
        """(groups,) latest time of a group's lanes, from `time` (lanes,)."""
        return np.maximum.reduceat(time[self._order], self._begins)


@attrs.frozen(eq=False)
class End:
    """Traffic at one end of a link."""

    cycles: float
    """Cycles of the whole traffic, summed over instances."""
    ports: list[Port]
    at: Array
    """(groups,) port of each group."""


@attrs.define(eq=False, kw_only=True)
class LaneTiles:
    """The successive tiles of a tensor at a level."""

    level: int
    parent: LaneTiles | None
    depth: int
    leaves: bool
    """Whether the tensor is the output."""
    starts: Array
    """(parts,) bool: the tile is replaced before this part of the run."""
    lanes: Lanes
    words: Array
    """(tiles, groups) words of a group's part of each tile, as a share of all words of the link."""
    parts: Array | float
    """(groups,) number of groups that divide a tile among themselves."""
    bring: tuple[End, End] | None = None
    """Incoming traffic at the parents and at the level; None: transfers take no time."""
    take: tuple[End, End] | None = None
    """Outgoing traffic at the parents and at the level."""
    free: deque[Array] = attrs.field(factory=deque)
    """Release times of the last `depth` released tiles."""
    freed: int = 0
    """Number of released tiles."""
    arrived: Array = attrs.field(factory=lambda: np.zeros(0))
    waiting: deque[tuple[Array, int]] = attrs.field(factory=deque)
    """Results still to leave: ready time and tile number."""
    count: int = 0
    moved: float = 0.0
    """Arrival time of the last results at the parent."""

    @property
    def shared(self) -> bool:
        return len(self.lanes.lead) < len(self.lanes.group)

    def transfer(self, ready: Array, tile: int, ends: tuple[End, End] | None) -> Array:
        """(groups,) arrival time of a tile's words."""
        most = max(end.cycles for end in ends) if ends else 0.0
        if ends is None or not most:
            return ready
        share = self.words[tile]
        done = ready + share * self.parts * most  # the tile comes as one, though each part goes where there is room
        for end in ends:
            busy = share * end.cycles
            if busy.any():
                done = np.maximum(done, self._served(ready, busy, end))
        return done

    def _served(self, ready: Array, busy: Array, end: End) -> Array:
        done = ready.copy()
        if self.words.size <= REQUESTS:
            for i in np.argsort(ready, kind="stable"):
                if busy[i]:
                    done[i] = end.ports[end.at[i]].serve(float(ready[i]), float(busy[i]))
            return done
        numbers, of = np.unique(end.at, return_inverse=True)
        cycles, first = np.bincount(of, busy), np.full(len(numbers), np.inf)
        np.minimum.at(first, of, ready)
        asked = zip(numbers.tolist(), first.tolist(), cycles.tolist(), strict=True)
        last = np.array([end.ports[number].serve(begin, each) if each else 0.0 for number, begin, each in asked])
        return np.where(cycles[of] > 0.0, np.maximum(ready + busy, last[of]), ready)

    def finish(self, time: Array) -> None:
        """Record a tile as finished by all lanes at `time`."""
        ready = self.lanes.latest(time)
        if self.leaves:
            self.waiting.append((ready, self.count - 1))
        else:
            self._room(ready)

    def _room(self, ready: Array) -> None:
        self.freed += 1
        self.free.append(ready)
        if len(self.free) > self.depth:
            self.free.popleft()

    def leave(self, but: int = 0) -> None:
        """Send the waiting results out, except the last `but` tiles."""
        while len(self.waiting) > but:
            ready, tile = self.waiting.popleft()
            done = self.transfer(ready, tile, self.take)
            self.moved = max(self.moved, float(done.max()))
            self._room(done)

    def begin(self) -> Array:
        """(lanes,) arrival time of the next tile."""
        if self.leaves:
            self.leave(self.depth - 1)
        behind = self.count - self.depth
        ready = np.zeros(len(self.lanes.lead)) if behind < 0 else self.free[behind - self.freed]
        if self.parent is not None and self.parent.count:
            ready = np.maximum(ready, self.parent.arrived[self.parent.lanes.group[self.lanes.lead]])
        self.arrived = self.transfer(ready, self.count, self.bring)
        self.count += 1
        return self.arrived[self.lanes.group]


class LaneWaiting:
    """The lanes of one design; `cycles` runs them."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.units, total = sim.products.units, sim.products.steps
        self.links: list[tuple[Link, Array]] = []
        """Links with possible waiting, and the steps at which a tile begins."""
        self.lanes = {link: self._lanes(link) for link in sim.links.values()}
        starts = np.arange(total) == 0
        for link, lanes in self.lanes.items():
            ends = [sim.problem.levels[s] for s in (link.parent, link.child)]
            limits = [x for level in ends for x in (level.bandwidth, level.read_bandwidth, level.write_bandwidth)]
            if any(x is not None for x in limits) or lanes.lead.size < self.units:
                rows = link.run_begins * (total // len(link.starts))
                self.links.append((link, rows))
                starts[rows] = True
        self.begins = np.flatnonzero(starts)
        """Steps at which a part of the run begins and a lane may wait."""

    def _lanes(self, link: Link) -> Lanes:
        nest = self.sim.nest
        places = nest.offsets(nest.levels, spatial=True) @ nest.access[link.tensor].T
        parents = np.arange(len(places)) // (len(places) // link.parents)
        _, lead, group = np.unique(np.column_stack([parents, places]), axis=0, return_index=True, return_inverse=True)
        return Lanes(group.reshape(-1), lead)

    def tiles(self, walk: Walk, counts: Tally, transfers: bool, together: bool) -> list[LaneTiles]:
        """The tiles of all links, outermost level first.

        `transfers`: transfers take time; `together`: lanes wait for each other, else all lanes share the work."""
        sim, nest = self.sim, self.sim.nest
        found: dict[tuple[int, int], LaneTiles] = {}
        ports = {s: self._ports(s, together) for link, _ in self.links for s in (link.parent, link.child)}
        for link, rows in self.links:
            t, h = link.tensor, link.child
            lanes = self.lanes[link] if together else Lanes(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
            starts = np.zeros(len(self.begins), dtype=bool)
            starts[np.searchsorted(self.begins, rows)] = True
            made = found[t, h] = LaneTiles(
                level=h, parent=found.get((t, link.parent)), depth=int(sim.problem.buffers[h, t]),
                leaves=t == nest.output, starts=starts, lanes=lanes, words=np.zeros((0, 0)), parts=1.0,
            )  # fmt: skip
            if transfers:
                spread = 1.0  # the share of a group's words that one instance of the level gets
                made.words, made.parts = self._words(link, walk, self.lanes[link].lead)
                if not together:
                    made.words, made.parts = made.words.sum(axis=1, keepdims=True) / link.parents, 1.0
                    spread = link.parents / len(link.leads)
                at = [lanes.lead // (self.units // instances) for instances in (link.parents, len(link.places))]
                made.bring, made.take = (
                    (End(cycles[0], there, at[0]), End(spread * cycles[1], here, at[1]))
                    for cycles, there, here in zip(self._cycles(link, counts), ports[link.parent], ports[h][::-1], strict=True)
                )  # fmt: skip
        return sorted(found.values(), key=lambda tiles: tiles.level)

    def _ports(self, level: int, together: bool) -> tuple[list[Port], list[Port]]:
        """Read ports and write ports of all instances; the same ports for a shared bandwidth."""
        read, write = ([Port() for _ in range(self.sim.nest.instances(level) if together else 1)] for _ in range(2))
        return read, write if self.sim.problem.levels[level].bandwidth is None else read

    def _words(self, link: Link, walk: Walk, lead: Array) -> tuple[Array, Array]:
        """`words` and `parts` of `LaneTiles`: shares of all words of a link by tile, and the parts of a tile."""
        t = link.tensor
        sent = link.sent(walk.active[t, link.child][1])[0]
        amounts = sent.amounts(walk.contents[t].stored if self.sim.packed_at(t, link.parent) else None)
        summed = np.zeros((len(link.run_begins), amounts.shape[1]))
        np.add.at(summed, link.run[sent.rows], amounts)
        if not summed.any():
            summed[:] = 1.0
        child = lead // (self.units // len(link.places))
        parent, inner = np.divmod(child, link.fan)
        place = np.empty(link.fan, dtype=np.int64)
        place[link.order] = np.repeat(np.arange(link.groups), link.members)
        of = parent * link.groups + place[inner]
        parts = np.bincount(of, minlength=summed.shape[1])[of]
        return summed[:, of] / parts / summed.sum(), parts

    def _cycles(self, link: Link, counts: Tally) -> tuple[tuple[float, float], tuple[float, float]]:
        """Cycles of incoming and of outgoing words, each at the parents and at the children, all instances together."""
        t, p, h = link.tensor, link.parent, link.child
        multicast = len(link.places) / max(1, len(link.leads))

        def cycles(level: int, read: bool, *actions: str) -> float:
            spec = self.sim.problem.levels[level]
            limits = [spec.bandwidth, spec.read_bandwidth if read else spec.write_bandwidth]
            limit = min((x for x in limits if x is not None), default=math.inf)
            words, bits = counts.moved(level, t, *actions)
            return (words * self.sim.word_bits[t, level] + bits) / spec.word_bits / limit

        reads, comes = cycles(p, True, "read", "gated_read"), cycles(h, False, "fill") / multicast
        if t != self.sim.nest.output:
            return (reads, comes), (0.0, 0.0)
        updates, leaves = cycles(p, False, "update", "gated_update"), cycles(h, True, "leave") / multicast
        return ((reads, comes), (updates, leaves)) if comes else ((0.0, 0.0), (updates + reads, leaves))

    def cycles(self, walk: Walk, work: Array, counts: Tally, transfers: bool, together: bool) -> float:
        """Cycles of the run, without transfers to and from the compute units.

        `counts`: tally of the walk with metadata; `work`: (parts, units) cycles of the units."""
        tiles = self.tiles(walk, counts, transfers, together)
        work = self._work(work.astype(np.float64))
        if not together:
            work = work.mean(axis=1, keepdims=True)
        if not transfers:
            tiles = [one for one in tiles if one.shared]
        time = np.zeros(work.shape[1])
        for part in range(len(work)):
            now = [one for one in tiles if one.starts[part]]
            if part:
                self._finish(now, tiles, time)
            for one in now:
                time = np.maximum(time, one.begin())
            time = time + work[part]
        self._finish(tiles, tiles, time)
        for one in reversed(tiles):
            one.leave()
        return max([float(time.max()), *(one.moved for one in tiles)])

    def _finish(self, now: list[LaneTiles], tiles: list[LaneTiles], time: Array) -> None:
        for one in reversed(now):  # inner levels first
            ready = time
            if one.leaves:
                for inner in tiles:
                    if inner.parent is one:
                        inner.leave()
                        if inner.free:
                            ready = np.maximum(ready, inner.free[-1][inner.lanes.group])
            one.finish(ready)

    def _work(self, work: Array) -> Array:
        """(parts, lanes) work; lanes below a level with work stealing get equal shares."""
        nest = self.sim.nest
        for level, spec in enumerate(self.sim.problem.levels):
            if spec.memory.shares_work:
                outer, inner = nest.instances(level), nest.instances(level + 1) // nest.instances(level)
                split = work.reshape(len(work), outer, inner, -1)
                work = np.broadcast_to(split.mean(axis=2, keepdims=True), split.shape).reshape(work.shape)
        return work
