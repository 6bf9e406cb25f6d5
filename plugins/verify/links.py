"""Transfers between two storage levels: the words of each child at each step, and the children that share them.

A child remembers only the tile of the step before, and only if that tile was sent. Children with tiles at the same
place share the words."""

from __future__ import annotations

import math
from functools import cached_property

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

from .nest import Boxes, ExecutedNest, box_words, flat

CHUNK = 1 << 22
"""Words listed individually per block."""


class Link:
    """A tensor's link between a storing level and the next storing level inwards."""

    def __init__(self, nest: ExecutedNest, tensor: int, parent: int, child: int) -> None:
        self.nest, self.tensor, self.parent, self.child = nest, tensor, parent, child
        move = nest.access[tensor].T
        self.shape, self.widths = nest.shape(tensor), nest.tile(tensor, child)
        self.size, self.tile_words = math.prod(self.shape), math.prod(self.widths)
        self.steps = nest.offsets(child, spatial=False) @ move
        self.places = nest.offsets(child, spatial=True) @ move
        self.parents = nest.instances(parent)
        self.fan = len(self.places) // self.parents
        distinct, groups = np.unique(self.places[: self.fan], axis=0, return_inverse=True)
        if nest.separate(tensor, child):
            distinct, groups = self.places[: self.fan], np.arange(self.fan)
        self.groups = len(distinct)
        self.order = np.argsort(groups.reshape(-1), kind="stable")
        self.members = np.bincount(groups.reshape(-1), minlength=self.groups)
        self.begins = np.concatenate([[0], np.cumsum(self.members)[:-1]])
        self.leads = (np.arange(self.parents)[:, None] * self.fan + self.order[self.begins]).reshape(-1)
        self.overlapping = self._overlapping(distinct)
        moved = np.diff(self.steps, axis=0, prepend=self.steps[:1])
        self.starts = np.any(moved != 0, axis=1)
        self.starts[0] = True
        self.run = np.cumsum(self.starts) - 1
        """(steps,) number of the run of steps over which a tile stays."""
        self.run_begins = np.flatnonzero(self.starts)
        self.run_ends = np.append(self.run_begins[1:], len(self.starts)) - 1
        """Last step of each run."""
        self.common = np.maximum(0, np.array(self.widths) - np.abs(moved))
        self.common[0] = 0
        self.common[(self.common == 0).any(axis=1)] = 0

    def _overlapping(self, distinct: Array) -> bool:
        """Whether tiles of different children share words; assumed for windows with more than 2,048 groups."""
        if self.nest.plain(self.tensor):
            return False
        if self.groups > 2048:
            return True
        apart = np.abs(distinct[:, None] - distinct[None])
        shared = (apart < np.array(self.widths)).all(axis=2)
        return int(shared.sum()) > self.groups

    def by_group(self, active: Array) -> Array:
        """(n, children) bool -> (n, parents * groups): whether any child of the group is active."""
        split = active.reshape(len(active), self.parents, self.fan)[:, :, self.order]
        return np.logical_or.reduceat(split, self.begins, axis=2).reshape(len(active), -1)

    def of_any(self, active: Array) -> Array:
        """(n, children) bool -> (n, children): whether any child with the same words is active."""
        found = np.empty_like(active).reshape(len(active), self.parents, self.fan)
        groups = self.by_group(active).reshape(len(active), self.parents, self.groups)
        found[:, :, self.order] = np.repeat(groups, self.members, axis=2)
        return found.reshape(active.shape)

    def sent(self, active: Array | None) -> tuple[Sent, Sent]:
        """(parent reads, child fills): tiles sent to groups of children, and to each child.

        `active`: (steps, children) bool, or None for all. A group's tile is read once for all children of the group."""
        return self._whole if active is None else self._pair(self.by_group(active), active)

    @cached_property
    def _whole(self) -> tuple[Sent, Sent]:
        return self._pair(None, None)

    def _pair(self, groups: Array | None, children: Array | None) -> tuple[Sent, Sent]:
        every, owners = np.arange(len(self.places)), np.repeat(np.arange(self.parents), self.groups)
        return self._sent(groups, self.leads, owners), self._sent(children, every, every)

    def _sent(self, active: Array | None, receivers: Array, owners: Array) -> Sent:
        if active is None:
            first = np.ones((len(self.run_begins), len(receivers)), dtype=bool)
            joined = np.broadcast_to((self.run_begins > 0)[:, None], first.shape)
            return Sent(self, self.run_begins, receivers, owners, first, joined)
        so_far = np.cumsum(active, axis=0, dtype=np.int64)
        outside = (so_far - active)[self.run_begins]  # active steps before the run
        first = active & (so_far - active == outside[self.run])
        held = so_far[self.run_ends] > outside
        before = np.concatenate([np.zeros((1, active.shape[1]), dtype=bool), held[:-1]])[self.run]
        joined = first & self.starts[:, None] & before
        return Sent(self, np.arange(len(active)), receivers, owners, first, joined)

    def more_often(self, active: Array) -> float:
        """Share of runs with an `active` step minus the share of active steps; `active`: (steps, x) bool."""
        return float(np.logical_or.reduceat(active, self.run_begins, axis=0).mean() - active.mean())

    def kept(self, want: Array | None, take: Array) -> tuple[Sent, Sent]:
        """The tiles in `want` with a step in `take` during their run, each with the words of `sent(want)`.

        The difference from `sent(want)` is the traffic held back by a filter. A tile after a missing tile may bring
        more words, since no overlap remains."""
        groups, children = self.sent(want)
        return groups.kept(self.by_group(take)), children.kept(take)


@attrs.frozen(eq=False, slots=False)
class Sent:
    """Tiles sent over a link, by step and receiver (a child, or a group of sharing children)."""

    link: Link
    rows: Array
    """(n,) steps of the child level."""
    receivers: Array
    """(x,) a child instance for each receiver."""
    owners: Array
    """(x,) instance that counts the receiver's words: the parent, or the child itself."""
    first: Array
    """(n, x) bool: the tile is sent here."""
    joined: Array
    """(n, x) bool: the tile of the step before is still held, so only the missing words are sent."""

    def kept(self, active: Array) -> Sent:
        """The tiles with an active step during their run; `active`: (steps, x) bool."""
        stays = np.logical_or.reduceat(active, self.link.run_begins, axis=0)
        first = self.first & stays[self.link.run[self.rows]]
        return attrs.evolve(self, first=first, joined=self.joined & first)

    def last_steps(self, rows: Array) -> Array:
        """The last step of each tile's run, for the tiles of `rows`."""
        return self.link.run_ends[self.link.run[rows]]

    def amounts(self, boxes: Boxes | None = None) -> Array:
        """(n, x) words sent; with `boxes`, the nonzeros among the words."""
        link, places = self.link, self.link.places[self.receivers]
        full: Array | int = link.tile_words
        if boxes is not None:
            full = boxes.count(link.widths, link.steps[self.rows], places)
        found = np.where(self.first, full, 0)
        common = link.common[self.rows]
        sliding = np.flatnonzero(common.any(axis=1) & link.starts[self.rows])
        if not sliding.size:
            return found
        kinds, kind_of = np.unique(common[sliding], axis=0, return_inverse=True)
        for kind, widths in enumerate(map(tuple, kinds.tolist())):
            here = sliding[kind_of.reshape(-1) == kind]
            rows = self.rows[here]
            kept: Array | int = math.prod(widths)
            if boxes is not None:
                kept = boxes.count(widths, np.maximum(link.steps[rows], link.steps[rows - 1]), places)
            found[here] -= np.where(self.joined[here], kept, 0)
        return found

    def total(self, boxes: Boxes | None = None) -> float:
        """Words sent to all receivers; with `boxes`, the nonzeros among the words."""
        return float(self.amounts(boxes).sum())

    def read_words(self, boxes: Boxes | None = None) -> float:
        """Like `total`, but a word for several receivers of an owner at the same step counts once."""
        if not self.link.overlapping:
            return self.total(boxes)
        return float(len(self._union) if boxes is None else boxes.values.reshape(-1)[self._union].sum())

    @cached_property
    def _union(self) -> Array:
        """Numbers of the words handled by the owners at each step."""
        rows, receivers, words = self.words()
        key = (rows * (int(self.owners.max(initial=0)) + 1) + self.owners[receivers]) * self.link.size + words
        return np.unique(key) % self.link.size

    def words(self) -> tuple[Array, Array, Array]:
        """Step, receiver (position in `receivers`) and number in the tensor of each word sent."""
        link, offsets = self.link, box_words(self.link.widths)
        events, receivers = np.nonzero(self.first)
        parts: list[tuple[Array, Array, Array]] = []
        size = max(1, CHUNK // len(offsets))
        for start in range(0, max(1, len(events)), size):
            event, receiver = events[start : start + size], receivers[start : start + size]
            rows = self.rows[event]
            index = (link.steps[rows] + link.places[self.receivers[receiver]])[:, None, :] + offsets
            moved = link.steps[rows] - link.steps[np.maximum(rows - 1, 0)]
            old = offsets + moved[:, None, :]  # place in the tile of the step before
            held = ((old >= 0) & (old < np.array(link.widths))).all(axis=2) & self.joined[event, receiver][:, None]
            at, word = np.nonzero(~held)
            parts.append((rows[at], receiver[at], flat(index, link.shape)[at, word]))
        steps, owners, words = (np.concatenate(column) for column in zip(*parts, strict=True))
        return steps, owners, words

    def distinct(self, boxes: Boxes | None = None) -> float:
        """Different words handled by each owner, summed over the owners; with `boxes`, the nonzeros among the words."""
        link = self.link
        if link.nest.plain(link.tensor):
            events, receivers = np.nonzero(self.first)
            at = link.steps[self.rows[events]] + link.places[self.receivers[receivers]]
            once = np.unique(self.owners[receivers] * link.size + flat(at, link.shape)) % link.size
            if boxes is None:
                return float(len(once) * link.tile_words)
            sums = boxes.sums(link.widths)
            return float(sums[np.unravel_index(once, link.shape)].sum())
        _, receivers, words = self.words()
        found = np.unique(self.owners[receivers] * link.size + words) % link.size
        return float(len(found) if boxes is None else boxes.values.reshape(-1)[found].sum())
