"""Constants instead of genes: a fixed mapping or fixed formats, as in the baselines of Sections V-D and V-E.

```toml
[mapping]                       # a segment named `mapping` of a space spec; two storage levels, one with a fan-out
type = "fixed"
order = { L1_T = ["m", "k", "n"] }
bounds = { L1_T = { m = 4, k = 8 }, L2_T = { n = 4 }, L2_S = { m = 8 } }
```
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import attrs

from sparsemap.errors import Mistake, SpecError
from sparsemap.pieces.contracts import Array, Piece

from .choices import build_candidates
from .constant import Constant
from .constants import bound_column, format_column, mechanism_column, order_column

if TYPE_CHECKING:
    from sparsemap.problem.problem import Problem


@attrs.frozen(kw_only=True)
class Fixed(Constant):
    """No genes; provides the columns that its keys give, the same for every design."""

    type_name: ClassVar[str] = "fixed"
    fits_all: ClassVar[bool] = False

    order: Mapping[str, tuple[str, ...]] | None = None
    """Dimensions from outer to inner, by mapping level. Dimensions left out follow in workload order."""
    bounds: Mapping[str, Mapping[str, int]] | None = None
    """Loop bounds by mapping level and dimension; what is left out is 1. They must multiply up to the sizes."""
    formats: Mapping[str, tuple[str, ...]] | None = None
    """Formats from outer to inner by tensor (names, or roles P, Q, Z): one per rank slot, the same number for each."""
    beyond: str = ""
    """The format of ranks further out than the slots; absent: the first format that `formats` names."""
    mechanisms: Mapping[str, str] | None = None
    """Mechanism by place: a storage level with `gate_skip`, or the compute unit."""
    sizes: Mapping[str, int] = attrs.field(factory=dict)
    """Dimensions to pad, with the sizes that their bounds multiply up to."""

    @property
    def provides(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(name for name in ("order", "bounds", "formats", "mechanisms") if getattr(self, name) is not None)

    def padded_sizes(self, sizes: Mapping[str, int]) -> Mapping[str, int]:
        return {dim: size for dim, size in self.sizes.items() if dim in sizes}

    def choices(self, problem: Problem) -> Mapping[str, tuple[Piece, ...]]:
        found = {}
        if self.formats is not None:
            found["format"] = build_candidates(problem, "format", self._formats, self._path("formats"))
            if self.beyond:
                found["beyond-format"] = build_candidates(problem, "format", (self.beyond,), self._path("beyond"))
        if self.mechanisms is not None:
            found["mechanism"] = build_candidates(problem, "mechanism", self._mechanisms, self._path("mechanisms"))
        return found

    # -- names to indices

    @property
    def _formats(self) -> tuple[str, ...]:
        """Format names without repetition; their positions are the values of column `formats`."""
        return tuple(dict.fromkeys(name for slots in (self.formats or {}).values() for name in slots))

    @property
    def _mechanisms(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.mechanisms or {}).values()))

    def constants(self, problem: Problem) -> dict[str, Array]:
        mistakes: list[Mistake] = []
        file = problem.files.get("space", "")

        def say(path: str, text: str) -> None:
            mistakes.append(Mistake(file, self._path(path), text))

        columns = {}
        if self.order is not None:
            columns["order"] = order_column(self.order, problem, say)
        if self.bounds is not None:
            columns["bounds"] = bound_column(self.bounds, problem, say)
        if self.formats is not None:
            columns["formats"] = format_column(self.formats, self._formats, problem, say)
        if self.mechanisms is not None:
            columns["mechanisms"] = mechanism_column(self.mechanisms, self._mechanisms, problem, say)
        if mistakes:
            raise SpecError(mistakes)
        return columns
