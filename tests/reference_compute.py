"""Computes with one, three or four operands in scalars, for the reference model: docs/model.md, 7.3."""

from __future__ import annotations

import itertools
import math


def six_decimals(x):
    return math.floor(x * 1e6 + 0.5) / 1e6


def triple(total, operands, compute, defect):
    """[actual, gated, skipped] computes. `operands`: (density, has metadata, action) in the declared order, where the
    action is the innermost one on the operand: (kind, share, {leader: chance that its tile is empty}) or None. Leaders
    are called by the position of the operand; others, such as the output, by name. `defect`: with Q16.
    """
    densities = [six_decimals(density) for density, _, _ in operands]
    actions = [action for _, _, action in operands]
    empty = {}
    for action in actions:
        if action is None:
            continue
        _, share, leaders = action
        if not defect:
            stay = 1.0
            for leader, chance in leaders.items():
                known = empty.get(leader, 0.0)
                empty[leader] = max(known, chance)
                stay *= (1 - empty[leader]) / (1 - known) if known < 1 else 1.0
            share = 1 - stay
        total -= math.floor(total * share)
    states = []
    for position, (density, (_, has_metadata, _)) in enumerate(zip(densities, operands, strict=True)):
        reached = 1 - six_decimals(empty.get(position, 0.0))
        nonzero = min(1.0, density / reached) if reached > 0 else 0.0
        rest = "absent" if has_metadata else "zero"
        states.append({"nonzero": nonzero, "zero": 0.0, "absent": 0.0} | {rest: 1 - nonzero})
    acting = [position for position, action in enumerate(actions) if action is not None]
    chances = forgetful(states, acting) if defect and acting else all_combinations(states)
    gated = skipped = vanishing = 0.0
    for met, chance in chances:
        if all(state == "absent" for state in met):
            vanishing += chance * total
        elif "absent" in met and compute == "skip":
            skipped += chance * total
        elif ("absent" in met or "zero" in met) and compute == "gate":
            gated += chance * total
    gated, skipped = math.floor(gated), math.floor(skipped)
    return [math.trunc(total - skipped - gated - math.floor(vanishing)), gated, skipped]


def all_combinations(states):
    """(states met, chance), the first operand changing fastest."""
    for backwards in itertools.product(("nonzero", "zero", "absent"), repeat=len(states)):
        met = backwards[::-1]
        chance = 1.0
        for state, name in zip(states, met, strict=True):
            chance *= state[name]
        yield met, chance


def forgetful(states, acting):
    """Q16: the combinations that the evaluator counts where operands are filtered."""
    count = len(states)
    if len(acting) == count:
        yield ("absent",) * count, 1 - math.prod(state["nonzero"] for state in states)
        return
    first = acting[0]
    others = [state["nonzero"] for position, state in enumerate(states) if position != first]
    for name in ("zero", "absent"):
        met = ["nonzero"] * count
        met[first] = name
        yield tuple(met), math.prod(others) * states[first][name]
    yield ("absent",) * count, math.prod(1 - nonzero for nonzero in others)
