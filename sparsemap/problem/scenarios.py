"""Scenarios: variants of a problem, such as other densities, on which the same designs are evaluated as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from .problem import Problem


@attrs.frozen
class Scenario:
    """One variant of a problem."""

    problem: Problem
    """A `Problem.variant`, whose objective scores a design in this scenario alone."""
    must_fit: bool = True
    """Whether a design that is invalid in this scenario is invalid."""
    weight: float = 1.0
    """How much the scenario counts; 0: not at all, but designs may have to fit it."""
