"""One problem prepared for the model: layout, formats, mechanisms and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap import Charge
from sparsemap.pieces.contracts.base import Array, PerLevel, PerTile
from sparsemap.problem.problem import Problem

from .actions import PlaceTables
from .charges import ChargeOptions, Option
from .layout import Layout
from .occupancy import TensorTables
from .ranks import FormatTables
from .validity import Reasons

if TYPE_CHECKING:
    from .evaluation import Chain
    from .joint import JointNonzeros


COLUMNS = ("bounds", "order", "formats", "mechanisms")
"""Columns of designs required by the model."""


@attrs.frozen(eq=False)
class ModelTables:
    """One problem prepared for a model with its quirks and charges."""

    layout: Layout
    quirks: frozenset[str]
    options: ChargeOptions
    strangers: tuple[Charge, ...]
    """Charges of plugins, sorted by name."""
    formats: FormatTables
    places: PlaceTables
    tables: Sequence[TensorTables]
    """Per tensor, shared by all problems with the same tensor and formats."""
    copies: Array | None
    """(T, S) tiles of a tensor with reserved room in a level; None: one of each."""

    joint: JointNonzeros | None
    """Joint nonzeros of tensors of actual data, if there are several."""
    reasons: Reasons
    chains: list[Chain] = attrs.field(factory=list)
    """The chain for the most recent chip, if any."""

    def held(self, largest: PerTile) -> PerLevel:
        """(S, B) room required in a level for the largest tile of each tensor, including copies."""
        return (largest if self.copies is None else largest * self.copies[:, :, None]).sum(axis=0)

    @classmethod
    def of(cls, problem: Problem, quirks: frozenset[str], charges: Sequence[Charge]) -> ModelTables:
        options = ChargeOptions.of(charges)
        layout = Layout(problem, options.remainders, options.holes)
        strangers = sorted((c for c in charges if not isinstance(c, Option)), key=lambda charge: charge.type_name)
        formats = FormatTables.of(problem, options.run_lengths)
        tables = [
            TensorTables.shared(
                occupancy, quirks, formats.asked, formats.every_fiber, formats.every_fiber or options.pointers
            )
            for occupancy in layout.occupancies
        ]
        return cls(
            layout, quirks, options, tuple(strangers), formats, PlaceTables.of(problem), tables,
            copies_of(problem, options), joint_of(layout), Reasons.of(layout, quirks, formats.every_fiber),
        )  # fmt: skip


def joint_of(layout: Layout) -> JointNonzeros | None:
    """Joint nonzeros; None with fewer than two tensors of actual data or other than two operands."""
    actual = frozenset(t for t in range(layout.T) if layout.occupancies[t].actual)
    if len(actual) < 2 or len(layout.operands) != 2:
        return None
    from .joint import JointNonzeros

    return JointNonzeros(layout, actual)


def copies_of(problem: Problem, options: ChargeOptions) -> Array | None:
    """(T, S) tiles of a tensor with reserved room in a level (docs/model.md, `overlap`); None: one of each."""
    return problem.buffers.T.astype(np.float64) if options.overlap else None
