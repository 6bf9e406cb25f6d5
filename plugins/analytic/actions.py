"""Skipping and gating at storage: leader tiles and the share of accesses they remove (section 7.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from sparsemap import Filter, Mechanism
from sparsemap.pieces.boundary import eliminated_of
from sparsemap.pieces.contracts.base import Array, PerTile, Rows
from sparsemap.problem.levels import Place

from .layout import Layout
from .leaders import leaders_empty
from .nest import Nest
from .occupancy import TensorTables
from .stored import Stored

NONE, GATE, SKIP = 0, 1, 2
KINDS = {"none": NONE, "gate": GATE, "skip": SKIP}


@attrs.frozen(eq=False)
class Action:
    """One filter that candidates of a place apply: `kind` and `mechanisms` are indexed by candidate."""

    place: Place
    gene: int
    target: int
    leaders: tuple[int, ...]
    kind: Array
    """(M,) int8: none, gate or skip."""
    filters: dict[int, Filter]
    blind: Array
    """(M,) bool: needs metadata of its leaders, and looks at nothing else."""
    passes: Array
    """(M,) bool: the time of what is filtered passes."""


def _nothing(count: int) -> tuple[Array, dict[int, Filter], Array, Array]:
    """`kind`, `filters`, `blind` and `passes` of an action that no candidate applies."""
    return np.zeros(count, dtype=np.int8), {}, np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)


@attrs.frozen(eq=False)
class PlaceTables:
    """The filters of all places, and per place which leaders a candidate needs metadata of."""

    actions: tuple[Action, ...]
    mechanisms: tuple[Mechanism, ...]
    needs: tuple[tuple[int, int, Array], ...]
    """(gene, tensor, (M,) bool): the candidate needs metadata of the tensor there."""
    compute: Action | None
    """What the compute unit does: the strongest action of a candidate, by the first filter that has it."""

    @classmethod
    def of(cls, problem: Any) -> PlaceTables:
        mechanisms = problem.candidates("mechanism")
        actions: dict[tuple[int, int, tuple[int, ...]], Action] = {}
        needs: dict[tuple[int, int], Array] = {}
        compute: Action | None = None
        count = len(mechanisms)
        for gene, place in enumerate(problem.places):
            if place.storage is None:
                compute = Action(place, gene, -1, (), *_nothing(count))
            for m, mechanism in enumerate(mechanisms):
                if compute is not None and place.storage is None:
                    for rule in mechanism.filters(place):
                        if KINDS[rule.action] > compute.kind[m]:
                            compute.kind[m], compute.filters[m] = KINDS[rule.action], rule
                for rule, target, leaders in problem.filters(mechanism, place):
                    if mechanism.needs_metadata(place):
                        for leader in leaders:
                            needs.setdefault((gene, leader), np.zeros(count, dtype=bool))[m] = True
                    if place.storage is None:
                        continue
                    key = (gene, target, leaders)
                    if key not in actions:
                        actions[key] = Action(place, gene, target, leaders, *_nothing(count))
                    actions[key].kind[m] = KINDS[rule.action]
                    actions[key].filters[m] = rule
                    actions[key].blind[m] = mechanism.needs_metadata(place)
                    actions[key].passes[m] = rule.passes
        return cls(
            tuple(actions.values()), mechanisms, tuple((g, t, flags) for (g, t), flags in needs.items()), compute
        )

    def eliminated(self, action: Action, genes: Array, empty: Array) -> Array:
        """Lets mechanisms with limits of their own say how much of `empty` they remove."""
        for m, rule in action.filters.items():
            mechanism = self.mechanisms[m]
            if type(mechanism).eliminated is Mechanism.eliminated and not rule.limited:
                continue
            rows = np.flatnonzero(genes == m)
            if len(rows):
                share = eliminated_of(mechanism, action.place, rule, empty[rows])
                empty = empty.copy()
                empty[rows] = share
        return empty


@attrs.define(eq=False)
class Removal:
    """What actions remove of the accesses of every tensor at every level."""

    kind: PerTile
    """int8: none, gate or skip."""
    share: PerTile
    """Probability that an access is removed."""
    empty: dict[int, Array]
    """Per operand, (T, S, B): the part that each leader has in it, the probability that its tile is empty. Only with other
    than two operands: where there are two, the other operand has all of it."""
    wanted: list[Wanted] = attrs.field(factory=list)
    """The actions of which these are the strongest."""

    @classmethod
    def nothing(cls, layout: Layout, batch: int) -> Removal:
        shape = (layout.T, layout.S, batch)
        parts = {t: np.zeros(shape) for t in layout.operands} if len(layout.operands) != 2 else {}
        return cls(np.zeros(shape, dtype=np.int8), np.zeros(shape), parts)

    def add(self, some: Wanted) -> None:
        """Puts an action in the place of the one before, where it removes more."""
        t, s, rows = some.action.target, some.level, some.rows
        better = (self.kind[t, s][rows] == NONE) | (some.share > self.share[t, s][rows])
        self.kind[t, s, rows[better]] = some.kind
        self.share[t, s, rows[better]] = some.share[better]
        if t in self.empty:
            parts = dict(zip(some.action.leaders, some.empty, strict=True))
            for c in range(self.share.shape[0]):
                part = parts[c][better] if c in parts else 0.0
                self.empty[t][c, s, rows[better]] = part
        self.wanted.append(some)

    def where(self, layout: Layout, keep: Callable[[Wanted], Array]) -> Removal:
        """What some of the actions remove: those for which `keep` says so, (n,) bool."""
        found = Removal.nothing(layout, self.share.shape[-1])
        for some in self.wanted:
            mine = keep(some)
            if mine.any():
                found.add(some.take(mine))
        return found

    def differs(self, other: Removal) -> Array:
        """(B,) bool: another one leaves other counts. A filter that removes nothing counts only beside another one."""
        acts = (other.kind != NONE).any(axis=1, keepdims=True)
        return ((self.share != other.share) | ((self.kind != other.kind) & acts)).any(axis=(0, 1))

    def changed(self, other: Removal, rows: Rows) -> PerTile:
        """(T, S, n) bool: in the designs `rows`, another one may leave other counts of a tensor at a level: it acts
        otherwise there, or further out."""
        found = (self.share[..., rows] != other.share[..., rows]) | (self.kind[..., rows] != other.kind[..., rows])
        return np.logical_or.accumulate(found, axis=1)

    def join(self, other: Removal, rows: Rows) -> Removal:
        """These, and the designs `rows` of another one as further ones."""

        def both(mine: Array, more: Array) -> Array:
            return np.concatenate([mine, np.take(more, rows, axis=-1)], axis=-1)

        empty = {t: both(part, other.empty[t]) for t, part in self.empty.items()}
        return Removal(both(self.kind, other.kind), both(self.share, other.share), empty)

    def innermost(self, t: int, values: Array) -> Array:
        """Of `values` (.., S, B), those at the innermost level that acts on tensor t, (.., B); 0 where none does."""
        found = np.zeros((*values.shape[:-2], values.shape[-1]))
        for s in range(values.shape[-2]):
            found = np.where(self.kind[t, s] != NONE, values[..., s, :], found)
        return found


@attrs.frozen(eq=False)
class Wanted:
    """What an action removes in n designs."""

    action: Action
    level: int
    """The storage level that holds the target there."""
    kind: int
    rows: Rows
    share: Array
    """(n,) of the accesses."""
    empty: tuple[Array, ...]
    """Per leader, (n,): its part in it."""
    words: tuple[Array, ...]
    """Per leader, (n,) words of the tile that has to be empty; infinity: the leader does nothing."""

    def take(self, mine: Array) -> Wanted:
        """Some of the designs, (n,) bool."""
        empty, words = (tuple(part[mine] for part in parts) for parts in (self.empty, self.words))
        return attrs.evolve(self, rows=self.rows[mine], share=self.share[mine], empty=empty, words=words)


def removals(
    nest: Nest, genes: Array, places: PlaceTables, tables: list[TensorTables], granules: Mapping[int, Stored]
) -> Removal:
    """All actions of a batch; `genes` is (A, B). Gating is processed before skipping; the larger share wins."""
    lay = nest.layout
    found = Removal.nothing(lay, nest.batch)
    many = len(lay.operands) != 2
    wanted: list[tuple[int, int, Wanted]] = []
    for position, action in enumerate(sorted(places.actions, key=lambda a: -(a.place.storage or 0))):
        kind = action.kind[genes[action.gene]]
        rows = np.flatnonzero(kind)
        level = action.place.storage
        if not len(rows) or level is None:
            continue
        level = lay.holder(action.target, level)
        blind = action.blind[genes[action.gene][rows]]
        leaders = leaders_empty(nest, rows, level, action.target, action.leaders, tables, granules, blind)
        tiles = [empty for empty, _ in leaders]
        full = np.ones(len(rows))
        for tile in tiles:
            full = full * (1.0 - tile)
        possible = 1.0 - full
        share = places.eliminated(action, genes[action.gene][rows], possible)
        if many:
            tiles = [_caught(tile, possible, share) for tile in tiles]
        for which in (GATE, SKIP):
            mine = kind[rows] == which
            if mine.any():
                own = Wanted(action, level, which, rows, share, tuple(tiles), tuple(words for _, words in leaders))
                wanted.append((which, position, own.take(mine)))
    for _, _, own in sorted(wanted, key=lambda entry: entry[:2]):
        found.add(own)
    return found


def _caught(empty: Array, possible: Array, share: Array) -> Array:
    """What a mechanism that removes `share` of the `possible` catches of one leader's empty tiles: chances that no leader
    catches one multiply up to 1 - share."""
    limited = (share < possible) & (possible < 1.0)
    whole = np.where(limited, possible, 0.5)
    power = np.log1p(-np.where(limited, share, 0.5)) / np.log1p(-whole)
    caught = np.where(limited, 1.0 - (1.0 - np.where(limited, empty, 0.0)) ** power, np.minimum(empty, share))
    return np.where(share < possible, caught, empty)
