"""The filters of mechanisms, by place (section 7.1)."""

from __future__ import annotations

import attrs
import numpy as np

from sparsemap import Filter, Mechanism
from sparsemap.pieces.boundary import filters_of
from sparsemap.pieces.contracts import DEALING
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.levels import Place
from sparsemap.problem.problem import Problem

NONE, GATE, SKIP = 0, 1, 2
KINDS = {"none": NONE, "gate": GATE, "skip": SKIP}


@attrs.frozen(eq=False)
class Action:
    """One filter applied by candidates of a place; the arrays and `filters` are indexed by candidate."""

    place: Place
    gene: int
    target: int
    leaders: tuple[int, ...]
    kind: Array
    """(M,) int8: none, gate or skip."""
    filters: dict[int, Filter]
    blind: Array
    """(M,) bool: requires metadata of the leaders and looks at nothing else."""
    passes: Array
    """(M,) bool: the cycles of filtered accesses pass."""
    width: Array
    """(M,) largest number of positions passed by a skip per cycle; infinity: any number."""
    entries: Array
    """(M,) bool: walks along entries of the leaders instead of positions."""


@attrs.frozen(eq=False)
class Deal:
    """A filter dealing work out to lanes at a storage level (7.4)."""

    level: int
    gene: int
    target: int
    leaders: tuple[int, ...]
    chosen: Array
    """(M,) bool: the candidate applies the filter."""
    packs: bool


def _nothing(count: int) -> tuple[Array, dict[int, Filter], Array, Array, Array, Array]:
    """`kind`, `filters`, `blind`, `passes`, `width` and `entries` of an action without candidates."""
    blind, passes, entries = np.zeros((3, count), dtype=bool)
    return np.zeros(count, dtype=np.int8), {}, blind, passes, np.full(count, np.inf), entries


@attrs.frozen(eq=False)
class PlaceTables:
    """The filters of all places, and per place the metadata required by each candidate."""

    actions: tuple[Action, ...]
    mechanisms: tuple[Mechanism, ...]
    needs: tuple[tuple[int, int, Array], ...]
    """(gene, tensor, (M,) bool): whether the candidate needs metadata of the tensor at the place."""
    compute: Action | None
    """Action of the compute unit: the strongest action of a candidate, from the first filter with this action."""
    deals: tuple[Deal, ...] = ()
    """Filters dealing work out to lanes."""

    @classmethod
    def of(cls, problem: Problem) -> PlaceTables:
        """Tables of a problem, shared by problems with the same candidates, places, tensor names and homes."""
        mechanisms, tensors = problem.candidates("mechanism"), tuple((t.name, t.output) for t in problem.tensors)
        key = cls, *map(id, mechanisms), problem.places, tensors, problem.homes  # it keeps the mechanisms
        return problem.registry.remember(key, cls._made, problem, mechanisms)

    @classmethod
    def _made(cls, problem: Problem, mechanisms: tuple[Mechanism, ...]) -> PlaceTables:
        actions: dict[tuple[int, int, tuple[int, ...]], Action] = {}
        needs: dict[tuple[int, int], Array] = {}
        deals: dict[tuple[int, int, tuple[int, ...], str], Deal] = {}
        compute: Action | None = None
        count = len(mechanisms)
        for gene, place in enumerate(problem.places):
            if place.storage is None:
                compute = Action(place, gene, -1, (), *_nothing(count))
            for m, mechanism in enumerate(mechanisms):
                if compute is not None and place.storage is None:
                    for rule in filters_of(mechanism, place):
                        if KINDS[rule.action] > compute.kind[m]:
                            compute.kind[m], compute.filters[m] = KINDS[rule.action], rule
                            compute.width[m], compute.entries[m] = rule.width or np.inf, rule.entries
                for rule, target, leaders in problem.filters(mechanism, place):
                    if mechanism.needs_metadata(place):
                        for leader in leaders:
                            needs.setdefault((gene, leader), np.zeros(count, dtype=bool))[m] = True
                    if place.storage is None:
                        continue
                    if rule.action in DEALING:
                        packs, none = rule.action == "pack", np.zeros(count, dtype=bool)
                        deal = Deal(place.storage, gene, target, leaders, none, packs)
                        deals.setdefault((gene, target, leaders, rule.action), deal).chosen[m] = True
                        continue
                    key = (gene, target, leaders)
                    if key not in actions:
                        actions[key] = Action(place, gene, target, leaders, *_nothing(count))
                    actions[key].kind[m] = KINDS[rule.action]
                    actions[key].filters[m] = rule
                    actions[key].blind[m] = mechanism.needs_metadata(place)
                    actions[key].passes[m] = rule.passes
                    actions[key].width[m], actions[key].entries[m] = rule.width or np.inf, rule.entries
        return cls(
            tuple(actions.values()), mechanisms, tuple((g, t, flags) for (g, t), flags in needs.items()), compute,
            tuple(deals.values()),
        )  # fmt: skip
