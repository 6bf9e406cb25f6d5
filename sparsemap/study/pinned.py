"""Weights pinned on chip across inferences: the plan of an inference in steady state.

Pinned weights take room during all steps, and no layer reads them from off chip. For few layers with weights, all sets
of layers are tried. Otherwise weights with the largest gain per word fill several shares of the level on chip, and for
each share the tensors between layers are planned again beside the pinned weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations

import attrs

from ..problem.network import INPUT
from .fused_tables import FusedTables
from .graph import loaded
from .join import JoinedPlan, Step, joined
from .packets import level_of

FEW = 8
"""Largest number of layers with weights for trying all sets."""
LEAST = 0.01
"""Least share of the cost saved by a set of many layers, by the sum of `gains`, for a plan to be made."""
SHARES = 8
"""Shares of the level on chip to fill with weights, for many layers; then half as many around the best share."""


@attrs.frozen
class Planned:
    """A plan with the steps and groups of its choices, and pinned weights, if any."""

    plan: JoinedPlan
    steps: Sequence[Step]
    groups: Sequence[Step]
    words: Mapping[str, float] = attrs.field(factory=dict)
    """Room of the pinned weights by layer, in the network's widest words."""
    loading: tuple[float, float] = (0.0, 0.0)
    """pJ and cycles of loading the pinned weights, once."""

    @property
    def room(self) -> float:
        return sum(self.words.values())


@attrs.frozen(slots=False)
class Pinning:
    """Search for the layers with pinned weights, beside the `cold` plan of a single inference."""

    tables: FusedTables
    cold: JoinedPlan
    _known: dict[tuple[str, bool], Step] = attrs.field(factory=dict, init=False)

    @cached_property
    def best(self) -> Planned | None:
        """The best plan in steady state; None if no pinned weights gain anything."""
        fused = self.tables.fused
        tried = {frozenset[str](): fused.value(self.cold.energy_pj, self.cold.cycles)}
        for some in self._sets(tried):
            if some not in tried:
                plan = self._plan(some, len(self.words) <= FEW)
                tried[some] = math.inf if plan is None else fused.value(plan.energy_pj, plan.cycles)
        chosen = min(tried, key=lambda some: tried[some])
        if not chosen or (plan := self._plan(chosen, reorder=True)) is None:
            return None
        words = {name: count for name, count in self.words.items() if name in chosen}
        return Planned(plan, *self._steps(chosen), words, self._loading(words))

    @cached_property
    def words(self) -> dict[str, float]:
        """By layer, room of its weights, if these may fit. Layers with the weights of an earlier layer stream these."""
        fused, found = self.tables.fused, dict[str, float]()
        for one in fused.graph:
            words = self.tables.pinned_words.get(one.node.content, 0.0) if one.node.loops else 0.0
            if 0.0 < words < fused.capacity and not one.node.tied:
                found[one.name] = words
        return found

    def _sets(self, tried: Mapping[frozenset[str], float]) -> Iterator[frozenset[str]]:
        """Sets of layers to pin; later ones follow from the cost of the `tried`."""
        names, capacity = [*self.words], self.tables.fused.capacity
        if len(names) <= FEW:
            for count in range(1, len(names) + 1):
                yield from map(frozenset, combinations(names, count))
            return
        shares, some = {frozenset[str](): 0.0}, frozenset[str]()
        for k in range(1, SHARES + 1):
            some = self._filled(capacity * k / SHARES)
            if sum(self.gains[name] for name in some) >= LEAST:
                shares.setdefault(some, k)
                yield some
            if some in tried and tried[some] > min(tried.values()):
                break
        best = shares[min(shares, key=lambda one: tried[one])]
        for k in (-2, -1, 1, 2) if best else ():
            yield self._filled(capacity * (best + k / 3) / SHARES)

    def _filled(self, room: float) -> frozenset[str]:
        """Layers with the largest gain per word, and weights of at most `room` words."""
        found = []
        for name in sorted(self.gains, key=lambda name: -self.gains[name] / self.words[name]):
            if self.words[name] <= room:
                room -= self.words[name]
                found.append(name)
        return frozenset(found)

    @cached_property
    def gains(self) -> dict[str, float]:
        """By layer, share of the cost saved by pinned weights of this layer alone, with all else as in the cold plan."""
        fused, cold, found = self.tables.fused, self.cold, dict[str, float]()
        whole = fused.value(cold.energy_pj, cold.cycles)
        for chosen in cold.steps:
            if chosen.step in self.words:
                one = fused.named[chosen.step]
                there = {name: level_of(place) for name, place in chosen.live}
                given = tuple(there[name] for name in one.inputs if name != INPUT)
                kept, point = fused.kept(one, (given, there[one.name])), chosen.point
                saved = self.tables.points(one.node.content, (*kept, *fused.weights[one.node.content]))
                costs = (
                    (cold.energy_pj - point.energy_pj + p.energy_pj, cold.cycles - point.cycles + p.cycles)
                    for p in saved
                )
                found[chosen.step] = max((1.0 - fused.value(*both) / whole for both in costs), default=0.0)
        return found

    def _plan(self, some: frozenset[str], reorder: bool) -> JoinedPlan | None:
        fused, tables = self.tables.fused, self.tables
        room = sum(self.words[name] for name in some)
        if room > fused.capacity:
            return None
        steps, groups = self._steps(some)
        return joined(steps, fused.capacity - room, fused.value, reorder, groups, tables.fitting)

    def _steps(self, some: frozenset[str]) -> tuple[list[Step], list[Step]]:
        tables, room = self.tables, sum(self.words[name] for name in some)
        for one in tables.fused.graph:
            if (at := (one.name, one.name in some)) not in self._known:
                self._known[at] = tables.step(one, one.name in some)
        steps = [self._known[one.name, one.name in some] for one in tables.fused.graph]
        return steps, tables.groups_with(some, room)

    def _loading(self, words: Mapping[str, float]) -> tuple[float, float]:
        """pJ and cycles of moving weights on chip."""
        fused = self.tables.fused
        chips = {name: fused.variant(fused.named[name].node.content).chip for name in words}
        return loaded([(words[name] / fused.share(chip), chip) for name, chip in chips.items()], fused.home)
