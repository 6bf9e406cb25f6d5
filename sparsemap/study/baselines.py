"""Plans without a search, in the tables of a searched plan: layers alone, and common practice.

Both follow the plan's rules for formats, widths and operations. So the searched plan is never worse."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import attrs

from .join import Fitting, JoinedPlan, Step, joined, moves
from .packets import TensorPlace, level_of

Value = Callable[[float, float], float]


def layers_alone(
    steps: Sequence[Step], capacity: float, value: Value, outside: str, known: Fitting
) -> JoinedPlan | None:
    """The plan with every tensor between layers in the level `outside`; None if formats exclude it."""
    return _joined_at(steps, dict.fromkeys((step.name for step in steps), outside), capacity, value, known)


def common_practice(
    steps: Sequence[Step], capacity: float, value: Value, home: str, alone: JoinedPlan, outside: str, known: Fitting
) -> JoinedPlan | None:
    """The plan of a compiler without a search; None if formats exclude it.

    In the order of execution, a tensor stays in `home` where it fits beside the tensors there: always, or only if the
    layers from its producer to its last reader cost no more than with the tensor in `outside`, in shares of the layers
    `alone`. The better of both."""
    last: dict[str, int] = {}
    for i, step in enumerate(steps):
        last |= dict.fromkeys((*step.inputs, step.name), i)
    words = {step.name: step.words for step in steps}
    places = dict.fromkeys(last, outside)

    def cost(i: int, live: Sequence[str]) -> float:
        step, needed = steps[i], {name for name in live if last[name] > i}
        state = tuple((name, TensorPlace(places[name])) for name in live if name != step.name)
        wanted, least = TensorPlace(places[step.name]), math.inf
        for _, _, place, points, _ in moves(step, [state], needed, words, capacity, known):
            if place == wanted:
                shares = ((pj / alone.energy_pj, cycles / alone.cycles) for pj, cycles, _ in points)
                least = min(least, *map(sum, shares))
        return least

    def costs(i: int, live: Sequence[str], level: str) -> float:
        total, places[steps[i].name] = 0.0, level
        for j in range(i, last[steps[i].name] + 1):
            live = [name for name in live if last[name] >= j] + ([steps[j].name] if j > i else [])
            total += cost(j, live)
        return total

    found = list[JoinedPlan]()
    for always in (True, False):
        live: list[str] = []
        for i, step in enumerate(steps):
            live = [name for name in live if last[name] >= i] + [step.name]
            on = costs(i, live, home)
            stays = on < math.inf and (always or on <= costs(i, live, outside))
            places[step.name] = home if stays else outside
        plan = _joined_at(steps, places, capacity, value, known)
        found += [] if plan is None else [plan]
        places |= dict.fromkeys(places, outside)
    return min(found, key=lambda plan: value(plan.energy_pj, plan.cycles), default=None)


def _joined_at(
    steps: Sequence[Step], levels: Mapping[str, str], capacity: float, value: Value, known: Fitting
) -> JoinedPlan | None:
    """The best plan with the output of each step in its level."""
    fixed = []
    for step in steps:
        wanted = [levels[name] for name in (*step.inputs, step.name)]
        tables = {at: some for at, some in step.tables.items() if [level_of(p) for p in (*at[0], at[1])] == wanted}
        fixed.append(attrs.evolve(step, tables=tables))
    return joined(fixed, capacity, value, reorder=False, known=known)
