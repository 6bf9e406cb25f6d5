"""Budget of a search, in designs, and the designs to count."""

from __future__ import annotations

from typing import Any

import attrs

from ..errors import SearchError, shortened, unknown

COUNTS = ("all", "valid")
"""Designs counted against a budget: all evaluated designs, or the valid designs."""
RACED = 500
"""Designs of a search in the usual sizes of the dimensions, before it may try others (`race.py`)."""
AUTO, MOST = "auto", 200_000
"""A budget that ends once the search has converged, and its largest number of designs."""
PROPOSALS = 1000
"""With only valid designs counted, largest number of proposals per design of the budget; then the search ends."""


def _whole(budget: Any, field: Any, value: Any) -> None:
    if not hasattr(value, "__index__") or value < 1:
        raise SearchError(f"the budget is {shortened(value)} designs, expected a whole number, at least 1")


def _known(budget: Any, field: Any, value: Any) -> None:
    if value not in COUNTS:
        raise SearchError(unknown("count", str(value), COUNTS))


@attrs.define
class Budget:
    """Number of designs a search may evaluate, and the number evaluated; read-only for searchers.

    With `count = "valid"`, the number of valid designs. Invalid designs are then free, up to `PROPOSALS` designs of
    either kind per design of the budget, so a hopeless search ends."""

    total: int = attrs.field(validator=_whole, on_setattr=attrs.setters.frozen)
    count: str = attrs.field(default="all", validator=_known, on_setattr=attrs.setters.frozen, kw_only=True)
    auto: bool = attrs.field(default=False, on_setattr=attrs.setters.frozen, kw_only=True)
    """Whether the search ends before, once it has converged (`convergence.py`)."""
    _spent: int = attrs.field(default=0, init=False)
    _proposed: int = attrs.field(default=0, init=False)

    @property
    def spent(self) -> int:
        """Designs counted so far."""
        return self._spent

    @property
    def proposed(self) -> int:
        """Designs evaluated, counted or not."""
        return self._proposed

    def spend(self, designs: int, valid: int | None = None) -> None:
        """Counts evaluated designs, `valid` of them valid: for the driver of a searcher.

        Without `valid` all designs count."""
        self._proposed += designs
        self._spent += designs if self.count == "all" or valid is None else valid

    @property
    def left(self) -> int:
        return 0 if self.hopeless else max(self.total - self.spent, 0)

    @property
    def proposals_left(self) -> int:
        """Largest number of designs still to evaluate if none is valid."""
        return min(self.left, 1) * (PROPOSALS * self.total - self.proposed) if self.count == "valid" else self.left

    @property
    def hopeless(self) -> bool:
        """Whether the search ends before its budget is spent because too few designs are valid."""
        return self.count == "valid" and self.proposed >= PROPOSALS * self.total

    @property
    def progress(self) -> float:
        """Share of the budget spent, 0..1: g/G of the paper's annealing schedule (Eq. 6)."""
        return min(self.spent / self.total, 1.0)


def budget_of(given: Budget | int | str, **more: Any) -> Budget:
    """A budget from a budget, a number of designs or `auto`; `SearchError` for anything else."""
    if isinstance(given, Budget):
        return given
    return Budget(MOST, auto=True, **more) if given == AUTO else Budget(given, **more)  # type: ignore[arg-type]
