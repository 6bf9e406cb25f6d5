"""Objectives as expressions, such as `"energy_pj * cycles**2"`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from sparsemap.pieces.contracts import Array, Objective
from sparsemap.spec.expressions import Expression, grows

if TYPE_CHECKING:
    from sparsemap.problem.evaluation import Evaluation

NAMES = ("energy_pj", "cycles", "edp")


@lru_cache(maxsize=64)
def _parsed(text: str) -> Expression:
    return Expression.parse(text, NAMES)


def _expression(instance: Any, attribute: attrs.Attribute, value: str) -> None:
    if not _parsed(value).names:
        raise ValueError(f"{value!r} is the same for every design; expected an expression of {', '.join(NAMES)}")


@attrs.frozen(kw_only=True)
class ExpressionObjective(Objective):
    """Any arithmetic of `energy_pj` (pJ), `cycles` and `edp` (their product); lower is better."""

    type_name: ClassVar[str] = "expression"
    searcher: ClassVar[str] = "sparsemap"

    score_: str = attrs.field(alias="score", validator=_expression)
    """Key `score`: the expression."""

    @classmethod
    def from_text(cls, text: str) -> Mapping[str, Any] | None:
        """Any text but one that may be meant as a name."""
        return {"score": text} if text in NAMES or not re.fullmatch(r"[\w-]+", text) else None

    @property
    def monotone(self) -> bool:
        return grows(self.score_)

    def score(self, evaluation: Evaluation) -> Array:
        expression = _parsed(self.score_)
        return expression({name: getattr(evaluation, name) for name in expression.names})
