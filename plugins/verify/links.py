"""What moves between two storage levels: which words each child gets at each step, and who shares them.

A child holds the tile of the step before, and only if that was sent; nothing else is remembered. Children whose tiles
start at the same place share what they get.
"""

from __future__ import annotations

import math
from functools import cached_property

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

from .nest import Boxes, Nest, box_words, flat

CHUNK = 1 << 22
"""Words that are looked at one by one in one go."""


@attrs.frozen(eq=False)
class Sent:
    """Which tiles are sent: at some steps, to some receivers (children, or groups of children that share)."""

    rows: Array
    """(n,) steps of the child level."""
    receivers: Array
    """(x,) child instances that stand for the receivers."""
    owners: Array
    """(x,) whatever the receivers' words are counted for: the parent instance, or the child itself."""
    first: Array
    """(n, x) bool: the tile is sent here."""
    joined: Array
    """(n, x) bool: the tile of the step before is still there, so that only what it lacks is sent."""


class Link:
    """One tensor between a level that stores it and the next inner one that does."""

    def __init__(self, nest: Nest, tensor: int, parent: int, child: int) -> None:
        self.nest, self.tensor, self.parent, self.child = nest, tensor, parent, child
        move = nest.access[tensor].T
        self.shape, self.widths = nest.shape(tensor), nest.tile(tensor, child)
        self.tile_words = math.prod(self.widths)
        self.steps = nest.offsets(child, spatial=False) @ move
        self.places = nest.offsets(child, spatial=True) @ move
        self.parents = nest.instances(parent)
        self.fan = len(self.places) // self.parents
        distinct, groups = np.unique(self.places[: self.fan], axis=0, return_inverse=True)
        self.groups = len(distinct)
        self.order = np.argsort(groups.reshape(-1), kind="stable")
        self.members = np.bincount(groups.reshape(-1), minlength=self.groups)
        self.begins = np.concatenate([[0], np.cumsum(self.members)[:-1]])
        self.leads = (np.arange(self.parents)[:, None] * self.fan + self.order[self.begins]).reshape(-1)
        self.overlapping = self._overlapping(distinct)
        moved = np.diff(self.steps, axis=0, prepend=self.steps[:1])
        self.starts = np.any(moved != 0, axis=1)
        self.starts[0] = True
        self.common = np.maximum(0, np.array(self.widths) - np.abs(moved))
        self.common[0] = 0
        self.common[(self.common == 0).any(axis=1)] = 0

    def _overlapping(self, distinct: Array) -> bool:
        """Whether tiles of different children share words."""
        if self.nest.plain(self.tensor) or self.groups > 2048:
            return not self.nest.plain(self.tensor) and self.groups > 1
        apart = np.abs(distinct[:, None] - distinct[None])
        shared = (apart < np.array(self.widths)).all(axis=2)
        return int(shared.sum()) > self.groups

    def by_group(self, active: Array) -> Array:
        """(n, children) bool -> (n, parents * groups): whether any child of the group is active."""
        split = active.reshape(len(active), self.parents, self.fan)[:, :, self.order]
        return np.logical_or.reduceat(split, self.begins, axis=2).reshape(len(active), -1)

    def to_groups(self, active: Array | None) -> Sent:
        """What the parent reads: one tile for all children of a group."""
        owners = np.repeat(np.arange(self.parents), self.groups)
        return self._sent(None if active is None else self.by_group(active), self.leads, owners)

    def to_children(self, active: Array | None) -> Sent:
        """What each child is filled with."""
        every = np.arange(len(self.places))
        return self._sent(active, every, every)

    def _sent(self, active: Array | None, receivers: Array, owners: Array) -> Sent:
        begins = np.flatnonzero(self.starts)
        if active is None:
            shape = (len(begins), len(receivers))
            joined = np.broadcast_to((begins > 0)[:, None], shape)
            return Sent(begins, receivers, owners, np.ones(shape, dtype=bool), joined)
        run = np.cumsum(self.starts) - 1
        so_far = np.cumsum(active, axis=0, dtype=np.int64)
        outside = (so_far - active)[begins]  # active steps before the run
        first = active & (so_far - active == outside[run])
        ends = np.concatenate([begins[1:], [len(active)]]) - 1
        held = so_far[ends] > outside
        before = np.concatenate([np.zeros((1, active.shape[1]), dtype=bool), held[:-1]])[run]
        return Sent(np.arange(len(active)), receivers, owners, first, first & self.starts[:, None] & before)

    def kept(self, sent: Sent, active: Array) -> Sent:
        """Those of the tiles that are sent while they stay, (n, receivers) bool; what they bring remains the same.

        What a filter holds back is what is lacking here: without a tile the next one may bring more words than with it.
        """
        begins = np.flatnonzero(self.starts)
        stays = np.logical_or.reduceat(active, begins, axis=0)
        first = sent.first & stays[(np.cumsum(self.starts) - 1)[sent.rows]]
        return attrs.evolve(sent, first=first, joined=sent.joined & first)

    def run_ends(self, rows: Array) -> Array:
        """The last step at which the tile of each of these steps stays."""
        begins = np.flatnonzero(self.starts)
        ends = np.concatenate([begins[1:], [len(self.starts)]]) - 1
        return ends[np.searchsorted(begins, rows, side="right") - 1]

    def amounts(self, sent: Sent, boxes: Boxes | None = None) -> Array:
        """(n, x) words sent, or with `boxes` the nonzeros among them."""
        places = self.places[sent.receivers]
        full: Array | int = self.tile_words
        if boxes is not None:
            full = boxes.count(self.widths, self.steps[sent.rows], places)
        found = np.where(sent.first, full, 0)
        common = self.common[sent.rows]
        sliding = np.flatnonzero(common.any(axis=1) & self.starts[sent.rows])
        if not sliding.size:
            return found
        kinds, kind_of = np.unique(common[sliding], axis=0, return_inverse=True)
        for kind, widths in enumerate(map(tuple, kinds.tolist())):
            here = sliding[kind_of.reshape(-1) == kind]
            rows = sent.rows[here]
            kept: Array | int = math.prod(widths)
            if boxes is not None:
                kept = boxes.count(widths, np.maximum(self.steps[rows], self.steps[rows - 1]), places)
            found[here] -= np.where(sent.joined[here], kept, 0)
        return found

    def words(self, sent: Sent) -> tuple[Array, Array, Array]:
        """Every word sent, one by one: step, receiver (position in `sent.receivers`), number in the tensor."""
        offsets = box_words(self.widths)
        events, receivers = np.nonzero(sent.first)
        parts: list[tuple[Array, Array, Array]] = []
        size = max(1, CHUNK // len(offsets))
        for start in range(0, len(events), size):
            event, receiver = events[start : start + size], receivers[start : start + size]
            rows = sent.rows[event]
            index = (self.steps[rows] + self.places[sent.receivers[receiver]])[:, None, :] + offsets
            moved = self.steps[rows] - self.steps[np.maximum(rows - 1, 0)]
            old = offsets + moved[:, None, :]  # place in the tile of the step before
            held = ((old >= 0) & (old < np.array(self.widths))).all(axis=2) & sent.joined[event, receiver][:, None]
            new = ~held
            shape = new.shape
            parts.append(
                (
                    np.broadcast_to(rows[:, None], shape)[new],
                    np.broadcast_to(receiver[:, None], shape)[new],
                    flat(index, self.shape)[new],
                )
            )
        if not parts:
            return _nothing()
        steps, owners, words = (np.concatenate(column) for column in zip(*parts, strict=True))
        return steps, owners, words

    def union(self, sent: Sent) -> Array:
        """Numbers of the words that the owners handle: what several receivers need at one step is listed once."""
        rows, receivers, words = self.words(sent)
        size = math.prod(self.shape)
        key = (rows * (int(sent.owners.max(initial=0)) + 1) + sent.owners[receivers]) * size + words
        return np.unique(key) % size

    @cached_property
    def dense_union(self) -> Array:
        return self.union(self.to_groups(None))

    def read_words(self, sent: Sent, boxes: Boxes | None, everything: bool) -> float:
        """Words (nonzeros with `boxes`) that the parents read; `everything`: no tile is held back."""
        if not self.overlapping:
            return float(self.amounts(sent, boxes).sum())
        words = self.dense_union if everything else self.union(sent)
        return float(len(words) if boxes is None else boxes.values.reshape(-1)[words].sum())

    def distinct(self, sent: Sent, boxes: Boxes | None = None) -> float:
        """Different words (nonzeros with `boxes`) that each owner ever handles, all owners together."""
        size = math.prod(self.shape)
        if self.nest.plain(self.tensor):
            events, receivers = np.nonzero(sent.first)
            at = self.steps[sent.rows[events]] + self.places[sent.receivers[receivers]]
            key = np.unique(sent.owners[receivers] * size + flat(at, self.shape)) % size
            if boxes is None:
                return float(len(key) * self.tile_words)
            origins = np.stack(np.unravel_index(key, self.shape), axis=1)
            return float(boxes.count(self.widths, origins, np.zeros((1, len(self.shape)), dtype=np.int64)).sum())
        _, receivers, words = self.words(sent)
        key = np.unique(sent.owners[receivers] * size + words) % size
        return float(len(key) if boxes is None else boxes.values.reshape(-1)[key].sum())


def _nothing() -> tuple[Array, Array, Array]:
    empty = np.zeros(0, dtype=np.int64)
    return empty, empty, empty
