"""When lanes wait: the steps of all lanes in time, with the tiles that they share and the transfers they need.

A lane is a compute unit. Lanes below one instance of the parent that use the same part of a tensor's tile share it: it is
delivered to all of them at once, and replaced when all have finished with it. A level has room for as many tiles of a
tensor as the hardware says; a transfer begins when there is room, when its words have arrived at the parent, and when
the ports are free; those needed first go first. Results leave when all lanes that share them have finished, and before
the parent's tile does. (docs/model.md, `overlap` and `imbalance`.)
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

from .links import Link
from .tally import Tally, metadata_of

if TYPE_CHECKING:
    from .simulate import Simulation, Walk

REQUESTS = 200_000
"""Transfers that are told apart, of one tensor to one level; more are sent together, all of one step."""


class Port:
    """When a port is idle."""

    def __init__(self) -> None:
        self.begins: list[float] = [0.0]
        self.ends: list[float] = [math.inf]

    def serve(self, ready: float, cycles: float) -> float:
        """When a request of so many cycles is done, if idle cycles from `ready` on are its own."""
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


@attrs.define(eq=False, kw_only=True)
class Tiles:
    """The tiles of one tensor at one level, in turn."""

    tensor: int
    level: int
    parent: Tiles | None
    depth: int
    leaves: bool
    """The tensor is the output."""
    starts: Array
    """(parts,) bool: the tile is replaced before this part of the run."""
    group: Array
    """(lanes,) which lanes share."""
    lead: Array
    """(groups,) one lane of each."""
    order: Array
    begins: Array
    port: Array
    """(groups,) instance of the parent."""
    words: Array
    """(tiles in turn, groups) words of the part of the tile that a group uses, as a share of all words of this link."""
    parts: Array | float
    """(groups,) in how many parts the tile is used."""
    own_port: Array
    """(groups,) instance of the level, the first that gets the tile."""
    spread: float
    """Share of a group's words that one instance of the level gets."""
    bring: tuple[float, float] = (0.0, 0.0)
    """Cycles of all that the tiles bring, at the parents' ports and at the level's own, all instances together."""
    take: tuple[float, float] = (0.0, 0.0)
    """Of all that leaves."""
    ports: tuple[list[Port], list[Port]]
    """The parent's for reading, and the level's own for writing."""
    back: tuple[list[Port], list[Port]]
    """The other two: for what leaves."""
    free: deque[Array] = attrs.field(factory=deque)
    """When the last `depth` tiles that made room were finished with."""
    freed: int = 0
    """Tiles that made room."""
    arrived: Array = attrs.field(factory=lambda: np.zeros(0))
    waiting: deque[tuple[Array, int]] = attrs.field(factory=deque)
    """Results that have not left: when they are ready, and number of the tile."""
    count: int = 0
    moved: float = 0.0
    """When the last results arrived at the parent."""

    @property
    def shared(self) -> bool:
        return len(self.lead) < len(self.group)

    def latest(self, time: Array) -> Array:
        """(groups,) of (lanes,)."""
        return np.maximum.reduceat(time[self.order], self.begins)

    def transfer(
        self, ready: Array, tile: int, cycles: tuple[float, float], ports: tuple[list[Port], list[Port]]
    ) -> Array:
        """(groups,) when the words of a tile are there."""
        if not any(cycles):
            return ready
        share = self.words[tile]
        whole = share * self.parts * max(cycles[0], self.spread * cycles[1])
        done = ready + whole  # the tile comes as one, though each part goes where there is room
        for busy, numbers, at in (
            (share * cycles[0], self.port, ports[0]),
            (share * (self.spread * cycles[1]), self.own_port, ports[1]),
        ):
            if busy.any():
                done = np.maximum(done, self._served(ready, busy, numbers, at))
        return done

    def _served(self, ready: Array, busy: Array, numbers: Array, ports: list[Port]) -> Array:
        done = ready.copy()
        if self.words.size <= REQUESTS:
            for i in np.argsort(ready, kind="stable"):
                if busy[i]:
                    done[i] = ports[numbers[i]].serve(float(ready[i]), float(busy[i]))
            return done
        for number in np.unique(numbers):
            mine = numbers == number
            if busy[mine].any():
                last = ports[number].serve(float(ready[mine].min()), float(busy[mine].sum()))
                done[mine] = np.maximum(ready[mine] + busy[mine], last)
        return done

    def finish(self, time: Array) -> None:
        """All lanes are done with a tile."""
        ready = self.latest(time)
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
        """Results leave, but for the last `but` tiles."""
        while len(self.waiting) > but:
            ready, tile = self.waiting.popleft()
            done = self.transfer(ready, tile, self.take, self.back)
            self.moved = max(self.moved, float(done.max()))
            self._room(done)

    def begin(self) -> Array:
        """(groups,) when the next tile is there."""
        if self.leaves:
            self.leave(self.depth - 1)
        behind = self.count - self.depth
        ready = np.zeros(len(self.lead)) if behind < 0 else self.free[behind - self.freed]
        if self.parent is not None and self.parent.count:
            ready = np.maximum(ready, self.parent.arrived[self.parent.group[self.lead]])
        self.arrived = self.transfer(ready, self.count, self.bring, self.ports)
        self.count += 1
        return self.arrived


class Waiting:
    """The lanes of one design; `cycles` runs them."""

    def __init__(self, sim: Simulation) -> None:
        self.sim, nest = sim, sim.nest
        total = nest.steps(nest.levels)
        self.links: list[tuple[Link, Array]] = []
        """Those at which something may wait, with the steps at which a tile begins."""
        self.lanes: dict[Link, tuple[Array, Array]] = {}
        """By link, (lanes,) which of them share, and a lane of each."""
        starts = np.zeros(total, dtype=bool)
        starts[0] = True
        for link in sim.links.values():
            self.lanes[link] = self._sharing(link)
            if self._matters(link):
                rows = np.flatnonzero(link.starts) * (total // len(link.starts))
                self.links.append((link, rows))
                starts[rows] = True
        self.begins = np.flatnonzero(starts)
        """Steps at which a part of the run begins: something may wait there."""

    def _matters(self, link: Link) -> bool:
        levels = self.sim.problem.levels
        ends = [levels[s] for s in (link.parent, link.child)]
        limits = [(level.bandwidth, level.read_bandwidth, level.write_bandwidth) for level in ends]
        return any(x is not None for limit in limits for x in limit) or self.lanes[link][1].size < self.units

    @property
    def units(self) -> int:
        return self.sim.nest.instances(self.sim.nest.levels)

    def _sharing(self, link: Link) -> tuple[Array, Array]:
        nest = self.sim.nest
        places = nest.offsets(nest.levels, spatial=True) @ nest.access[link.tensor].T
        parents = np.arange(len(places)) // (len(places) // link.parents)
        _, lead, group = np.unique(np.column_stack([parents, places]), axis=0, return_index=True, return_inverse=True)
        return group.reshape(-1), lead

    def tiles(self, walk: Walk, counts: Tally, transfers: bool, together: bool) -> list[Tiles]:
        """`transfers`: whether they take time; `together`: whether lanes wait for each other, or share all work."""
        sim, nest = self.sim, self.sim.nest
        found: dict[tuple[int, int], Tiles] = {}
        ports: dict[int, tuple[list[Port], list[Port]]] = {}
        for link, rows in self.links:
            t, h, p = link.tensor, link.child, link.parent
            for s in (p, h):
                if s not in ports:
                    one, other = ([Port() for _ in range(nest.instances(s) if together else 1)] for _ in range(2))
                    ports[s] = one, one if sim.problem.levels[s].bandwidth is not None else other
            if together:
                group, lead = self.lanes[link]
            else:
                group, lead = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
            port = lead // (self.units // link.parents) if together else lead
            own_port = lead // (self.units // len(link.places)) if together else lead
            words, parts = self._words(link, walk, lead) if transfers else (np.zeros((0, 0)), 1.0)
            spread = 1.0
            if transfers and not together:
                words, parts = words.sum(axis=1, keepdims=True) / link.parents, 1.0
                spread = link.parents / len(link.leads)
            order = np.argsort(group, kind="stable")
            begins = np.searchsorted(group[order], np.arange(len(lead)))
            starts = np.zeros(len(self.begins), dtype=bool)
            starts[np.searchsorted(self.begins, rows)] = True
            depth = int(sim.problem.buffers[h, t])
            parent = found.get((t, p))
            there, here = ports[p], ports[h]
            made = found[t, h] = Tiles(
                tensor=t, level=h, parent=parent, depth=depth, leaves=t == nest.output, starts=starts, group=group,
                lead=lead, order=order, begins=begins, port=port, words=words, parts=parts, own_port=own_port, spread=spread,
                ports=(there[0], here[1]), back=(there[1], here[0]),
            )  # fmt: skip
            if transfers:
                made.bring, made.take = self._cycles(link, counts)
        return sorted(found.values(), key=lambda tiles: tiles.level)

    def _words(self, link: Link, walk: Walk, lead: Array) -> tuple[Array, Array | float]:
        """See `Tiles`: shares of all words of a link, by the words that tiles have, and parts of a tile."""
        sim, t = self.sim, link.tensor
        sent = sim.sent(t, link.child, walk.active[t, link.child][1])[0]
        boxes = walk.contents[t].stored if sim.packed[t] else None
        amounts = link.amounts(sent, boxes)
        turn = np.cumsum(link.starts) - 1
        summed = np.zeros((int(turn[-1]) + 1, amounts.shape[1]))
        np.add.at(summed, turn[sent.rows], amounts)
        if not summed.any():
            summed[:] = 1.0
        child = lead // (self.units // sim.nest.instances(link.child))
        parent, inner = np.divmod(child, link.fan)
        place = np.empty(link.fan, dtype=np.int64)
        place[link.order] = np.repeat(np.arange(link.groups), link.members)
        of = parent * link.groups + place[inner]
        parts = np.bincount(of, minlength=summed.shape[1])[of]
        return summed[:, of] / parts / summed.sum(), parts

    def _cycles(self, link: Link, counts: Tally) -> tuple[tuple[float, float], tuple[float, float]]:
        sim, t, p, h = self.sim, link.tensor, link.parent, link.child
        multicast = len(link.places) / max(1, len(link.leads))

        def cycles(level: int, actions: tuple[str, ...], read: bool) -> float:
            spec = sim.problem.levels[level]
            limits = [spec.bandwidth, spec.read_bandwidth if read else spec.write_bandwidth]
            limit = min((x for x in limits if x is not None), default=math.inf)
            words = sum(counts.values.get((a, level, t), 0.0) for a in actions)
            bits = sum(counts.values.get((metadata_of(a), level, t), 0.0) for a in actions)
            return (words + bits / spec.word_bits) / limit

        reads = cycles(p, ("read", "gated_read"), True)
        if t != sim.nest.output:
            return (reads, cycles(h, ("fill",), False) / multicast), (0.0, 0.0)
        comes = cycles(h, ("fill",), False) / multicast
        updates = cycles(p, ("update", "gated_update"), False)
        leaves = cycles(h, ("leave",), True) / multicast
        return ((reads, comes), (updates, leaves)) if comes else ((0.0, 0.0), (updates + reads, leaves))

    def cycles(self, walk: Walk, counts: Tally, transfers: bool, together: bool) -> float:
        """Of the whole run, but for what the compute units read and write; `counts` of the walk, with its metadata."""
        tiles = self.tiles(walk, counts, transfers, together)
        work = self._work(walk.done.work.astype(np.float64))
        if not together:
            work = work.mean(axis=1, keepdims=True)
        if not transfers:
            tiles = [one for one in tiles if one.shared]
        time = np.zeros(work.shape[1])
        started = np.array([one.starts for one in tiles]) if tiles else np.zeros((0, len(work)), dtype=bool)
        for part in range(len(work)):
            now = [tiles[i] for i in np.flatnonzero(started[:, part])]
            if part:
                self._finish(now, tiles, time)
            for one in now:
                time = np.maximum(time, one.begin()[one.group])
            time = time + work[part]
        self._finish(tiles, tiles, time)
        for one in reversed(tiles):
            one.leave()
        return max([float(time.max()), *(one.moved for one in tiles)])

    def _finish(self, now: list[Tiles], tiles: list[Tiles], time: Array) -> None:
        for one in reversed(now):  # inner levels first
            if one.leaves:
                for inner in tiles:
                    if inner.parent is one:
                        inner.leave()
                        if inner.free:
                            time = np.maximum(time, inner.free[-1][inner.group])
            one.finish(time)

    def _work(self, work: Array) -> Array:
        """(parts, lanes); lanes that steal from each other share theirs."""
        nest = self.sim.nest
        for level, spec in enumerate(self.sim.problem.levels):
            if spec.memory.work_stealing:
                outer, inner = nest.instances(level), nest.instances(level + 1) // nest.instances(level)
                split = work.reshape(len(work), outer, inner, -1)
                work = np.broadcast_to(split.mean(axis=2, keepdims=True), split.shape).reshape(work.shape)
        return work
