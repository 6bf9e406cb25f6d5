"""What happens at the compute units: which computes filters leave, and what the unit does with empty operands (7.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign, PerTensor

from .actions import GATE, NONE, SKIP
from .prepared import ModelTables
from .removal import Removal, eliminated

if TYPE_CHECKING:
    from .granules import Granules

TOLERANCE = 1e-5
"""By how much a probability may exceed one in Timeloop (Q9)."""
NONZERO, ZERO, ABSENT = range(3)
"""States of an operand. A zero that the operand's metadata leaves out is absent."""


@attrs.frozen(eq=False)
class Computes:
    """Computes of the whole chip, each (B,)."""

    actual: PerDesign
    gated: PerDesign
    skipped: PerDesign
    left: PerDesign
    """All that filters at storage leave."""
    passed: PerDesign
    """Those of them at which every operand is absent and no skip of the unit covers it: nothing happens, in a cycle of its
    own with `positions`, else in none."""
    nonzero: PerDesign
    """Those in which no operand is zero, carried out or not."""
    there: list[PerDesign]
    """Per operand, the share of those left at which it is not absent."""
    impossible: list[PerDesign]
    """Per operand, whether rounding makes the probability that it is nonzero exceed one: there Timeloop stops (Q9)."""


@attrs.frozen(eq=False)
class Meetings:
    """Computes by the operands that they meet, each (B,)."""

    absent: PerDesign
    """Some operand is absent, not all are."""
    zero: PerDesign
    """No operand is absent, some are zero."""
    idle: PerDesign
    """Both of these."""
    vanish: PerDesign
    """All operands are absent."""


def computes_of(
    known: ModelTables,
    total: PerDesign,
    packed: PerTensor,
    genes: Array,
    granules: Mapping[int, Granules],
    removal: Removal,
    dealt: Mapping[int, PerDesign],
) -> Computes:
    """7.3. `total` dense computes, `packed` (T, C) tensors with metadata, `genes` (A, C); `dealt`: by leader, the share that
    gets no lane (7.4)."""
    layout, places, quirks = known.layout, known.places, known.quirks
    densities = [occupancy.density for occupancy in layout.occupancies]
    batch = total.shape[0]
    defect = "Q16" in quirks and len(layout.operands) != 2
    left, emptied = _filtered(known, total, removal, defect)
    for c, empty in dealt.items():
        known_empty = emptied.get(c, np.zeros(batch))
        rest = 1.0 - known_empty
        more = 1.0 - (1.0 - empty) / np.where(rest > 0.0, rest, 1.0)
        left = less(left, np.where(known_empty > 0.0, np.maximum(more, 0.0), empty))
        emptied[c] = np.maximum(known_empty, empty)
    states, impossible = [], []
    for t in layout.operands:
        density = float(np.floor(1e6 * densities[t] + 0.5) / 1e6)
        present, reached = np.full(batch, density), np.full(batch, 1.0)
        if known.joint is not None:
            present = known.joint.present(t, sum((share for u, share in emptied.items() if u != t), np.zeros(batch)))
        if t in emptied:
            reached = 1.0 - np.floor(1e6 * emptied[t] + 0.5) / 1e6
            present = np.where(reached > 0.0, present / np.where(reached > 0.0, reached, 1.0), 0.0)
        impossible.append(present > 1.0 + TOLERANCE)
        present = np.clip(present, 0.0, 1.0)
        rest = 1.0 - present
        zero, absent = np.where(packed[t], 0.0, rest), np.where(packed[t], rest, 0.0)
        if t in granules:  # zeros that are stored with a granule are there (6.5)
            mine = granules[t].rows[packed[t, granules[t].rows]]
            more = granules[t].density[packed[t, granules[t].rows]]
            reached = reached[mine]
            held = np.clip(more / np.where(reached > 0.0, reached, 1.0), present[mine], 1.0)
            zero[mine], absent[mine] = held - present[mine], 1.0 - held
        states.append((present, zero, absent))
    nonzero = math.prod((state[NONZERO] for state in states), start=1.0)
    if known.joint is None:
        met = _met(left, states)
    else:
        effectual = total * known.joint.share(layout.operands)  # no filter removes one
        nonzero = np.minimum(1.0, effectual / np.where(left > 0.0, left, 1.0))
        met = Meetings(*known.joint.met(left, states, nonzero))
    if defect:
        from .forgotten import timeloop_met

        met = timeloop_met(layout, left, states, removal, met)
    vanish = np.floor(met.vanish)
    unit = places.compute
    kind = np.full(batch, NONE, dtype=np.int8) if unit is None else unit.kind[genes[unit.gene]]
    saved = np.where(kind == SKIP, met.absent, np.where(kind == GATE, met.idle, 0.0))
    if unit is not None:  # with limits of its own the unit leaves out fewer
        share = saved / np.where(left > 0.0, left, 1.0)
        caught = eliminated(places, unit, genes[unit.gene], share)
        saved = np.where(caught < share, left * caught, saved)
    skipped, gated = (np.where(kind == which, np.floor(saved), 0.0) for which in (SKIP, GATE))
    actual = np.trunc(left - skipped - gated - vanish)
    nonzero = left * nonzero
    passed = np.where(kind == SKIP, 0.0, vanish)
    there = [1.0 - state[ABSENT] for state in states]
    return Computes(actual, gated, skipped, left, passed, nonzero, there, impossible)


def less(count: Array, share: Array) -> Array:
    """What remains of a count, as Timeloop rounds it."""
    return count - np.floor(count * share)


def _filtered(
    known: ModelTables, total: PerDesign, removal: Removal, defect: bool
) -> tuple[PerDesign, dict[int, PerDesign]]:
    """The computes that filters on operands leave, and per tensor the share of its words that no compute meets any more.

    Only an operand's innermost filter counts. That a leader's tile is empty removes a compute once, however many operands
    it leads: each operand in turn removes what those before it did not.
    """
    layout, joint = known.layout, known.joint
    left, emptied = total, dict[int, PerDesign]()
    for position, t in enumerate(layout.operands):
        if not removal.kind[t].any():
            continue
        if defect or len(layout.operands) == 2:
            share = removal.innermost(t, removal.share[t])
            if joint is not None:
                share = 1.0 - (1.0 - removal.innermost(t, removal.empty[t])).prod(axis=0)
                share = joint.again(t, share, emptied[t]) if t in emptied else share
            left = less(left, share)
            if not defect:
                emptied[layout.operands[1 - position]] = share
            continue
        stay = np.ones(total.shape[0])
        for c, empty in enumerate(removal.innermost(t, removal.empty[t])):
            before = emptied.get(c, np.zeros(total.shape[0]))
            emptied[c] = np.maximum(before, empty)
            stay = stay * np.where(before < 1.0, (1.0 - emptied[c]) / np.where(before < 1.0, 1.0 - before, 1.0), 1.0)
        left = less(left, 1.0 - stay)
    return left, emptied


def _met(left: PerDesign, states: list[tuple[PerDesign, PerDesign, PerDesign]]) -> Meetings:
    """Sums over all combinations of states, the operands being independent."""
    if len(states) == 2:  # a combination and its mirror image are added before they are multiplied, as Timeloop does
        (np_, zp, ap), (nq, zq, aq) = states
        absent = left * (np_ * aq + ap * nq) + left * (zp * aq + ap * zq)
        zero = left * (np_ * zq + zp * nq) + left * (zp * zq)
        return Meetings(absent, zero, absent + zero, left * (ap * aq))
    absent = zero = idle = vanish = np.zeros(left.shape[0])
    for reversed_combination in product(range(3), repeat=len(states)):
        combination = reversed_combination[::-1]  # the first operand changes fastest
        if set(combination) == {NONZERO}:
            continue
        chance = math.prod((states[i][state] for i, state in enumerate(combination)), start=1.0)
        computes = chance * left
        if set(combination) == {ABSENT}:
            vanish = vanish + computes
            continue
        idle = idle + computes
        if ABSENT in combination:
            absent = absent + computes
        else:
            zero = zero + computes
    return Meetings(absent, zero, idle, vanish)
