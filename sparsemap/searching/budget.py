"""How much a search may spend, and which designs count."""

from __future__ import annotations

from typing import Any

import attrs

from ..errors import SearchError, shortened, unknown

COUNTS = ("all", "valid")
"""Which designs count against a budget: all that are evaluated, or the valid ones."""
PROPOSALS = 1000
"""Designs per valid one of the budget that a search may propose where only valid ones count; then it ends."""


def _whole(budget: Any, field: Any, value: Any) -> None:
    if not hasattr(value, "__index__") or value < 1:
        raise SearchError(f"the budget is {shortened(value)} designs, expected a whole number, at least 1")


def _known(budget: Any, field: Any, value: Any) -> None:
    if value not in COUNTS:
        raise SearchError(unknown("count", str(value), COUNTS))


@attrs.define
class Budget:
    """How many designs a search may evaluate, and how many it has; searchers only read it.

    With `count = "valid"` it is the number of valid designs. Invalid ones cost nothing then, up to `PROPOSALS` designs of
    either kind for each of the budget, so that a search without hope ends.
    """

    total: int = attrs.field(validator=_whole, on_setattr=attrs.setters.frozen)
    count: str = attrs.field(default="all", validator=_known, on_setattr=attrs.setters.frozen, kw_only=True)
    _spent: int = attrs.field(default=0, init=False)
    _proposed: int = attrs.field(default=0, init=False)

    @property
    def spent(self) -> int:
        """Designs that count."""
        return self._spent

    @property
    def proposed(self) -> int:
        """Designs evaluated, whether they count or not."""
        return self._proposed

    def spend(self, designs: int, valid: int | None = None) -> None:
        """Counts designs that were evaluated, and how many of them are valid: for whoever drives a searcher.

        Without `valid` all of them count.
        """
        self._proposed += designs
        self._spent += designs if self.count == "all" or valid is None else valid

    @property
    def left(self) -> int:
        return 0 if self.hopeless else max(self.total - self.spent, 0)

    @property
    def proposals_left(self) -> int:
        """How many designs may still be evaluated, if none of them is valid."""
        return min(self.left, 1) * (PROPOSALS * self.total - self.proposed) if self.count == "valid" else self.left

    @property
    def hopeless(self) -> bool:
        """Whether so few of the designs proposed are valid that the search ends before its budget is spent."""
        return self.count == "valid" and self.proposed >= PROPOSALS * self.total

    @property
    def progress(self) -> float:
        """Share of the budget spent, 0..1: g/G of the paper's annealing schedule (Eq. 6)."""
        return min(self.spent / self.total, 1.0)


def budget_of(given: Budget | int) -> Budget:
    """A budget, or that of so many designs; `SearchError` if it is none."""
    return given if isinstance(given, Budget) else Budget(given)
