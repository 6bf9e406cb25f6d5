"""Several objectives with trade-offs to search, such as `pareto:energy,delay`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Evaluation
from sparsemap.pieces.contracts import Objective, Scores, Values


def split(text: str) -> list[str]:
    """Parts of a text between commas, ignoring commas within parentheses."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]


def _several(instance: Any, attribute: attrs.Attribute, value: tuple[Objective, ...]) -> None:
    if len(value) < 2:
        raise ValueError(f"expected two objectives or more, found {len(value)}")
    names = [name for objective in value for name in objective.names]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ValueError(f"{name!r} is there twice")


@attrs.frozen(kw_only=True)
class ParetoObjective(Objective):
    """Designs are compared in several objectives; a search keeps the non-dominated designs.

    For progress, and for the best design, the score is `scalar`, or else the product of all values: for energy and
    delay, the energy-delay product."""

    type_name: ClassVar[str] = "pareto"
    searcher: ClassVar[str] = "nsga2"

    objectives: tuple[Objective, ...] = attrs.field(validator=_several)
    """Names of objectives, their tables, or expressions: `["energy", "cycles"]`."""
    scalar: Objective | None = None
    """The objective ranking designs for progress and for the best design; absent: the product of all values."""

    @classmethod
    def from_text(cls, text: str) -> Mapping[str, Any] | None:
        """Objectives separated by commas."""
        return {"objectives": split(text)}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for objective in self.objectives for name in objective.names)

    @property
    def costs(self) -> tuple[str, ...]:
        every = (*self.objectives, *(() if self.scalar is None else (self.scalar,)))
        return tuple(dict.fromkeys(name for objective in every for name in objective.costs))

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(unit for objective in self.objectives for unit in objective.units)

    @property
    def unit(self) -> str:
        return self.scalar.unit if self.scalar is not None else super().unit

    def values(self, evaluation: Evaluation) -> Values:
        return np.concatenate([objective.values(evaluation) for objective in self.objectives], axis=1)

    def score(self, evaluation: Evaluation) -> Scores:
        if self.scalar is not None:
            return self.scalar.score(evaluation)
        return reduce(np.multiply, self.values(evaluation).T)
