"""What filters at storage remove of the accesses of every tensor at every level (section 7.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap import Mechanism
from sparsemap.pieces.boundary import eliminated_of
from sparsemap.pieces.contracts.base import Array, PerTile, Rows

from .actions import GATE, NONE, SKIP, Action, PlaceTables
from .layout import Layout
from .leaders import leaders_empty
from .nest import DesignChoices, Nest
from .prepared import ModelTables
from .stored import StoredTiles

if TYPE_CHECKING:
    from .lanes import DealtLanes


@attrs.frozen(eq=False)
class FilterEffect:
    """What an action removes in n designs."""

    action: Action
    level: int
    """The storage level that holds the target there."""
    kind: int
    rows: Rows
    share: Array
    """(n,) of the accesses."""
    still: Array
    """(n,) the same of tiles that stay in the next level: `share`, or with `stay` what all the leaders' tiles then allow."""
    empty: tuple[Array, ...]
    """Per leader, (n,): its part in it."""
    words: tuple[Array, ...]
    """Per leader, (n,) words of the tile that has to be empty; infinity: the leader does nothing."""

    def take(self, mine: Array) -> FilterEffect:
        """Some of the designs, (n,) bool."""
        empty, words = (tuple(part[mine] for part in parts) for parts in (self.empty, self.words))
        share, still = self.share[mine], self.still[mine]
        return attrs.evolve(self, rows=self.rows[mine], share=share, still=still, empty=empty, words=words)


@attrs.frozen(eq=False)
class Removal:
    """The accesses that the strongest action of every tensor at every level removes."""

    kind: PerTile
    """int8: none, gate or skip."""
    share: PerTile
    """Probability that an access is removed."""
    still: PerTile
    """The same while the tile stays in the next level; see `FilterEffect`."""
    moves: PerTile
    """bool: the tile in the next level does not stay (`Nest.moves`); nowhere without `stay`."""
    empty: Mapping[int, Array]
    """Per operand, (T, S, B): the part that each leader has in it, the probability that its tile is empty. Only where it is
    needed: with two operands, the other one has all of it, but for tensors of actual data."""
    effects: tuple[FilterEffect, ...] = ()
    """All actions; of those on one tensor at one level the strongest counts."""

    @classmethod
    def of(cls, layout: Layout, batch: int, effects: Iterable[FilterEffect], apart: bool, moves: PerTile) -> Removal:
        """In their order: one takes the place of another where it removes more. `apart`: leader by leader as well."""
        shape = (layout.T, layout.S, batch)
        kind, share, still, effects = np.zeros(shape, dtype=np.int8), np.zeros(shape), np.zeros(shape), tuple(effects)
        empty = {t: np.zeros(shape) for t in layout.operands} if apart else {}
        for some in effects:
            t, s, rows = some.action.target, some.level, some.rows
            better = (kind[t, s][rows] == NONE) | (some.share > share[t, s][rows])
            kind[t, s, rows[better]] = some.kind
            share[t, s, rows[better]] = some.share[better]
            still[t, s, rows[better]] = some.still[better]
            if t in empty:
                parts = dict(zip(some.action.leaders, some.empty, strict=True))
                for c in range(layout.T):
                    empty[t][c, s, rows[better]] = parts[c][better] if c in parts else 0.0
        return cls(kind, share, still, moves, empty, effects)

    def along(self) -> tuple[PerTile, PerTile]:
        """(T, S, C) of the accesses of a tensor to a level, what filters further out remove: of those that its parent sends
        it, and of those that it sends on. Where its child's tile stays, a filter's is what all that it meets allows."""
        comes, goes = np.zeros((2, *self.share.shape))
        above = here = np.zeros(self.share[:, 0].shape)
        acting = self.kind != NONE
        for s in range(self.share.shape[1]):
            comes[:, s] = here
            goes[:, s] = here = np.where(self.moves[:, s], above, here)
            above = np.where(acting[:, s], self.share[:, s], above)
            here = np.where(acting[:, s], self.still[:, s], here)
        return comes, goes

    def innermost(self, t: int, values: Array) -> Array:
        """Of `values` (.., S, B), those at the innermost level that acts on tensor t, (.., B); 0 where none does."""
        found = np.zeros((*values.shape[:-2], values.shape[-1]))
        for s in range(values.shape[-2]):
            found = np.where(self.kind[t, s] != NONE, values[..., s, :], found)
        return found


@attrs.frozen(eq=False)
class Removals:
    """The filters that save energy and those that save time."""

    energy: Removal
    """All filters."""
    time: Removal
    """The same, or with `gate-time` those that let no cycle pass."""
    lanes: DealtLanes | None = None
    """What is dealt out to lanes (7.4)."""


def removals_of(known: ModelTables, nest: Nest, choices: DesignChoices, stored: StoredTiles) -> Removals:
    """7.1 for a batch. With `gate-time` time is counted as if filters that let cycles pass were not there."""
    lay, genes = known.layout, choices.genes
    effects, apart = _effects(known, nest, choices, stored), known.leader_by_leader
    moves = nest.moves & known.options.stay
    energy, lanes = Removal.of(lay, nest.batch, effects, apart, moves), None
    if known.places.deals:
        from .lanes import lanes_of

        lanes = lanes_of(known, nest, genes)
    if not known.options.gate_time:
        return Removals(energy, energy, lanes)
    passes = [some.action.passes[genes[some.action.gene][some.rows]] for some in effects]
    if not any(mine.any() for mine in passes):
        return Removals(energy, energy, lanes)
    saves = [some.take(~mine) for some, mine in zip(effects, passes, strict=True) if not mine.all()]
    return Removals(energy, Removal.of(lay, nest.batch, saves, apart, moves), lanes)


def _effects(known: ModelTables, nest: Nest, choices: DesignChoices, stored: StoredTiles) -> list[FilterEffect]:
    """All actions. Gating is processed before skipping; the larger share wins."""
    lay, places, genes, apart = known.layout, known.places, choices.genes, known.options.filter_metadata
    found: list[tuple[int, int, FilterEffect]] = []
    for position, action in enumerate(sorted(places.actions, key=lambda a: -(a.place.storage or 0))):
        kind = action.kind[genes[action.gene]]
        rows = np.flatnonzero(kind)
        level = action.place.storage
        if not len(rows) or level is None:
            continue
        level = lay.holder(action.target, level)
        blind = action.blind[genes[action.gene][rows]]
        asked = nest, rows, level, action.target, action.leaders, known.tables, stored.granules, blind, apart
        leaders = leaders_empty(*asked)

        def removed(
            leaders: list[tuple[Array, Array]], action: Action = action, level: int = level, rows: Rows = rows
        ) -> tuple[Array, list[Array]]:
            tiles = [empty for empty, _ in leaders]
            full = np.ones(len(rows))
            for tile in tiles:
                full = full * (1.0 - tile)
            possible = 1.0 - full
            share = eliminated(places, action, genes[action.gene][rows], possible)
            if known.leader_by_leader:
                tiles = [_caught(tile, possible, share) for tile in tiles]
            if known.joint is not None:
                sizes, packed = [words for _, words in leaders], choices.packed[action.target, level][rows]
                met = 1.0 - known.joint.left(action.target, action.leaders, tiles, sizes, packed, full)
                share = np.where(share < possible, np.minimum(share, met), met)
            return share, tiles

        share, tiles = removed(leaders)
        still = share
        if known.options.stay and level and lay.child(action.target, level) is not None:
            still, _ = removed(leaders_empty(*asked, while_it_stays=True))
        for which in (GATE, SKIP):
            mine = kind[rows] == which
            if mine.any():
                own = FilterEffect(
                    action, level, which, rows, share, still, tuple(tiles), tuple(words for _, words in leaders)
                )
                found.append((which, position, own.take(mine)))
    return [own for _, _, own in sorted(found, key=lambda entry: entry[:2])]


def _caught(empty: Array, possible: Array, share: Array) -> Array:
    """What a mechanism that removes `share` of the `possible` catches of one leader's empty tiles: chances that no leader
    catches one multiply up to 1 - share."""
    limited = (share < possible) & (possible < 1.0)
    whole = np.where(limited, possible, 0.5)
    power = np.log1p(-np.where(limited, share, 0.5)) / np.log1p(-whole)
    caught = np.where(limited, 1.0 - (1.0 - np.where(limited, empty, 0.0)) ** power, np.minimum(empty, share))
    return np.where(share < possible, caught, empty)


def eliminated(places: PlaceTables, action: Action, genes: Array, empty: Array) -> Array:
    """Lets mechanisms with limits of their own say how much of `empty` they remove."""
    for m, rule in action.filters.items():
        mechanism = places.mechanisms[m]
        if type(mechanism).eliminated is Mechanism.eliminated and not rule.limited:
            continue
        rows = np.flatnonzero(genes == m)
        if len(rows):
            share = eliminated_of(mechanism, action.place, rule, empty[rows])
            empty = empty.copy()
            empty[rows] = share
    return empty
