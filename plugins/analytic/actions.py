"""Skipping and gating at storage: leader tiles and the share of accesses they remove (section 7.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from sparsemap import Filter, Mechanism
from sparsemap.backend import Backend
from sparsemap.pieces.boundary import eliminated_of
from sparsemap.pieces.contracts.base import Array, PerTile
from sparsemap.problem.problem import Place

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


def _nothing(count: int) -> tuple[Array, dict[int, Filter], Array]:
    """`kind`, `filters` and `blind` of an action that no candidate applies."""
    return np.zeros(count, dtype=np.int8), {}, np.zeros(count, dtype=bool)


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
                        actions[key] = Action(
                            place,
                            gene,
                            target,
                            leaders,
                            np.zeros(count, dtype=np.int8),
                            {},
                            np.zeros(count, dtype=bool),
                        )
                    actions[key].kind[m] = KINDS[rule.action]
                    actions[key].filters[m] = rule
                    actions[key].blind[m] = mechanism.needs_metadata(place)
        return cls(
            tuple(actions.values()), mechanisms, tuple((g, t, flags) for (g, t), flags in needs.items()), compute
        )

    def eliminated(self, action: Action, genes: Array, empty: Array, xp: Backend) -> Array:
        """Lets mechanisms with limits of their own say how much of `empty` they remove."""
        for m, rule in action.filters.items():
            mechanism = self.mechanisms[m]
            if type(mechanism).eliminated is Mechanism.eliminated:
                continue
            rows = xp.flatnonzero(genes == m)
            if len(rows):
                share = eliminated_of(mechanism, action.place, rule, xp.to_host(empty[rows]))
                empty = xp.put(xp.copy(empty), rows, xp.asarray(share))
        return empty


@attrs.define(eq=False)
class Removal:
    """What actions remove of the accesses of every tensor at every level."""

    kind: PerTile
    """int8: none, gate or skip."""
    share: PerTile
    """Probability that an access is removed."""
    empty: Mapping[int, Array]
    """Per operand, (T, S, B): the part that each leader has in it, the probability that its tile is empty. Only with other
    than two operands: where there are two, the other operand has all of it."""

    def innermost(self, t: int, values: Array, xp: Backend) -> Array:
        """Of `values` (.., S, B), those at the innermost level that acts on tensor t, (.., B); 0 where none does."""
        found = xp.zeros((*values.shape[:-2], values.shape[-1]))
        for s in range(values.shape[-2]):
            found = xp.where(self.kind[t, s] != NONE, values[..., s, :], found)
        return found


def removals(
    nest: Nest, genes: Array, places: PlaceTables, tables: list[TensorTables], granules: Mapping[int, Stored]
) -> Removal:
    """All actions of a batch; `genes` is (A, B). Gating is processed before skipping; the larger share wins."""
    lay, xp = nest.layout, nest.xp
    shape = (lay.T, lay.S, nest.batch)
    kinds, shares = xp.zeros(shape, dtype=xp.int8), xp.zeros(shape)
    many = len(lay.operands) != 2
    empty = {t: xp.zeros(shape) for t in lay.operands} if many else {}
    wanted: list[tuple[int, int, tuple[int, int], Array, Array, dict[int, Array]]] = []
    for position, action in enumerate(sorted(places.actions, key=lambda a: -(a.place.storage or 0))):
        kind = xp.take(xp.constant(action.kind), genes[action.gene])
        rows = xp.flatnonzero(kind)
        level = action.place.storage
        if not len(rows) or level is None:
            continue
        level = lay.holder(action.target, level)
        blind = xp.take(xp.constant(action.blind), genes[action.gene][rows])
        tiles = leaders_empty(nest, rows, level, action.target, action.leaders, tables, granules, blind)
        full = xp.ones(len(rows))
        for tile in tiles:
            full = full * (1.0 - tile)
        possible = 1.0 - full
        share = places.eliminated(action, genes[action.gene][rows], possible, xp)
        if many:
            tiles = [_caught(tile, possible, share, xp) for tile in tiles]
        for which in (GATE, SKIP):
            mine = kind[rows] == which
            if mine.any():
                parts = {c: tile[mine] for c, tile in zip(action.leaders, tiles, strict=True)}
                wanted.append((which, position, (action.target, level), rows[mine], share[mine], parts))
    for which, _, (t, s), rows, share, parts in sorted(wanted, key=lambda entry: entry[:2]):
        better = (kinds[t, s][rows] == NONE) | (share > shares[t, s][rows])
        kinds = xp.put(kinds, (t, s, rows[better]), which)
        shares = xp.put(shares, (t, s, rows[better]), share[better])
        for c in range(lay.T) if t in empty else ():
            part = parts[c][better] if c in parts else 0.0
            empty[t] = xp.put(empty[t], (c, s, rows[better]), part)
    return Removal(kinds, shares, empty)


def _caught(empty: Array, possible: Array, share: Array, xp: Backend) -> Array:
    """What a mechanism that removes `share` of the `possible` catches of one leader's empty tiles: chances that no leader
    catches one multiply up to 1 - share."""
    limited = (share < possible) & (possible < 1.0)
    whole = xp.where(limited, possible, 0.5)
    power = xp.log1p(-xp.where(limited, share, 0.5)) / xp.log1p(-whole)
    caught = xp.where(limited, 1.0 - (1.0 - xp.where(limited, empty, 0.0)) ** power, xp.minimum(empty, share))
    return xp.where(share < possible, caught, empty)
