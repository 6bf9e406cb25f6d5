"""Counts of a trial."""

from __future__ import annotations

from collections import defaultdict

import attrs

Key = tuple[str, int | None, int | None]
"""Quantity, storage level, tensor."""


@attrs.define(eq=False)
class Tally:
    """Totals over all instances."""

    values: dict[Key, float] = attrs.field(factory=lambda: defaultdict(float))
    parts: dict[Key, dict[str, float]] = attrs.field(factory=lambda: defaultdict(dict))
    """By quantity and assumption of the analytic model, the known contribution."""
    correct: bool = False
    """Whether the output equals the dense product."""

    def add(self, quantity: str, level: int | None, tensor: int | None, value: float, **assumptions: float) -> None:
        """Add to a count; `assumptions`: known contributions by name, possibly added later with a value of 0."""
        key = quantity, level, tensor
        self.values[key] += value
        for name, amount in assumptions.items():
            self.parts[key][name] = self.parts[key].get(name, 0.0) + amount

    def copy(self) -> Tally:
        parts = {key: dict(part) for key, part in self.parts.items()}
        return Tally(defaultdict(float, self.values), defaultdict(dict, parts), self.correct)

    def moved(self, level: int, tensor: int, *actions: str) -> tuple[float, float]:
        """Words of the actions, and bits of their metadata."""
        words = sum(self.values.get((action, level, tensor), 0.0) for action in actions)
        return words, sum(self.values.get((metadata_of(action), level, tensor), 0.0) for action in actions)


def energy_action(action: str) -> str:
    """Name of an action's energy: fills and updates are writes, unless gated or skipped."""
    if action.startswith(("gated", "skipped")):
        return action
    return action.replace("fill", "write").replace("update", "write")


ACTIONS = [prefix + action for action in ("read", "fill", "update") for prefix in ("", "gated_", "skipped_")]


def metadata_of(action: str) -> str:
    prefix, _, name = action.rpartition("_")
    return f"{prefix}_metadata_{name}" if prefix else f"metadata_{name}"
