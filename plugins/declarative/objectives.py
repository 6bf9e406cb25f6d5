"""Objectives as expressions, such as `"energy_pj * cycles**2"`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import attrs

from sparsemap.pieces.contracts import Array, Objective
from sparsemap.problem.costs import ALIASES, FALLING, UNITS
from sparsemap.problem.evaluation import Evaluation
from sparsemap.spec.expressions import FUNCTIONS, Expression, grows

QUANTITIES = (*UNITS, *ALIASES)
"""Quantities allowed in an expression, besides other costs of the cost model."""
NAME = r"[A-Za-z_]\w*"
PRODUCT = re.compile(rf"{NAME}(\*\*\d+)?(\*{NAME}(\*\*\d+)?)*")
"""An expression with a unit, without blanks."""


def _parsed(text: str) -> Expression:
    """Parse an expression; every name except function names is a cost."""
    names = {*re.findall(NAME, text)} - {*FUNCTIONS} if isinstance(text, str) else ()
    return Expression.parse(text, {*QUANTITIES, *names})


def _expression(instance: Any, attribute: attrs.Attribute, value: str) -> None:
    if not _parsed(value).names:
        raise ValueError(f"{value!r} is the same for every design; expected an expression of {', '.join(QUANTITIES)}")


@attrs.frozen(kw_only=True)
class ExpressionObjective(Objective):
    """Any arithmetic of costs by name; lower is better.

    Every problem has `energy_pj` (pJ), `cycles`, `edp` (their product), `seconds`, `power_w` (W, the mean), `edp_js` (J
    * s) and `area_mm2` (mm2, of the whole chip); a cost model may have others. `energy`, `delay`, `power` and `area`,
    the names of objectives, stand for `energy_pj`, `cycles`, `power_w` and `area_mm2`."""

    type_name: ClassVar[str] = "expression"

    score_: str = attrs.field(alias="score", validator=_expression)
    """Key `score`: the expression."""

    @classmethod
    def from_text(cls, text: str) -> Mapping[str, Any] | None:
        """Spec from any text except possible names; a cost in parentheses is this cost."""
        cost = re.fullmatch(rf"\(({NAME})\)", text)
        if cost is None and text not in QUANTITIES and re.fullmatch(r"[\w-]+", text):
            return None
        return {"score": cost[1] if cost else text}

    @property
    def costs(self) -> tuple[str, ...]:
        return tuple(sorted(_parsed(self.score_).names))

    @property
    def units(self) -> tuple[str, ...]:
        if not PRODUCT.fullmatch(self.score_.replace(" ", "")) or not {*self.costs} <= {*QUANTITIES}:
            return ("",)
        known = {name: unit if " " not in unit else f"({unit})" for name, unit in UNITS.items()}
        unit = re.sub(NAME, lambda name: known[ALIASES.get(name[0], name[0])], self.score_)
        whole = unit[1:-1] if unit in known.values() and unit.startswith("(") else unit
        return (whole,)

    @property
    def monotone(self) -> bool:
        return grows(self.score_) and not {ALIASES.get(name, name) for name in self.costs} & {*FALLING}

    @cached_property
    def _expression(self) -> Expression:
        return _parsed(self.score_)

    def score(self, evaluation: Evaluation) -> Array:
        expression = self._expression
        return expression({name: evaluation.costs[name] for name in expression.names})
