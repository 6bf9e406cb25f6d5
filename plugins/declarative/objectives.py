"""Objectives as expressions, such as `"energy_pj * cycles**2"`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from sparsemap.pieces.contracts import Array, Objective
from sparsemap.problem.evaluation import Evaluation
from sparsemap.spec.expressions import Expression, grows

QUANTITIES = {"energy_pj": "energy_pj", "cycles": "cycles", "edp": "edp", "energy": "energy_pj", "delay": "cycles"}
"""What an expression may name, and where an evaluation has it."""
UNITS = {"energy_pj": "pJ", "cycles": "cycles", "edp": "(pJ * cycles)"}
PRODUCT = re.compile(r"[a-z_]+(\*\*\d+)?(\*[a-z_]+(\*\*\d+)?)*")
"""Without blanks: an expression that has a unit."""


def _expression(instance: Any, attribute: attrs.Attribute, value: str) -> None:
    if not Expression.parse(value, QUANTITIES).names:
        raise ValueError(f"{value!r} is the same for every design; expected an expression of {', '.join(QUANTITIES)}")


@attrs.frozen(kw_only=True)
class ExpressionObjective(Objective):
    """Any arithmetic of `energy_pj` (pJ), `cycles` and `edp` (their product); lower is better.

    `energy` and `delay`, as objectives are called, stand for `energy_pj` and `cycles`.
    """

    type_name: ClassVar[str] = "expression"

    score_: str = attrs.field(alias="score", validator=_expression)
    """Key `score`: the expression."""

    @classmethod
    def from_text(cls, text: str) -> Mapping[str, Any] | None:
        """Any text but one that may be meant as a name."""
        return {"score": text} if text in QUANTITIES or not re.fullmatch(r"[\w-]+", text) else None

    @property
    def units(self) -> tuple[str, ...]:
        if not PRODUCT.fullmatch(self.score_.replace(" ", "")):
            return ("",)
        unit = re.sub("[a-z_]+", lambda name: UNITS[QUANTITIES[name[0]]], self.score_)
        return (unit.strip("()") if unit == UNITS["edp"] else unit,)

    @property
    def monotone(self) -> bool:
        return grows(self.score_)

    def score(self, evaluation: Evaluation) -> Array:
        expression = Expression.parse(self.score_, QUANTITIES)
        return expression({name: getattr(evaluation, QUANTITIES[name]) for name in expression.names})
