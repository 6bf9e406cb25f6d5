"""One problem as the model sees it: its layout, formats, mechanisms and tables."""

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
"""Columns of designs that the model needs."""


@attrs.frozen(eq=False)
class ModelTables:
    """One problem as the model with its quirks and charges sees it."""

    layout: Layout
    quirks: frozenset[str]
    options: ChargeOptions
    strangers: tuple[Charge, ...]
    """Charges of plugins, in the order of their names."""
    formats: FormatTables
    places: PlaceTables
    tables: Sequence[TensorTables]
    """Per tensor, shared by all problems with the same tensor and formats."""
    copies: Array | None
    """(T, S) tiles of a tensor that a level must have room for; None: one of each."""

    joint: JointNonzeros | None
    """What tensors of actual data have in common, if there are several."""
    reasons: Reasons
    chains: list[Chain] = attrs.field(factory=list)
    """The chain for the chip that came last, if there is any."""

    def held(self, largest: PerTile) -> PerLevel:
        """(S, B) what a level must have room for, of what the tile of each tensor has at most."""
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
    """None: there are not two tensors of actual data, or other than two operands."""
    actual = frozenset(t for t in range(layout.T) if layout.occupancies[t].actual)
    if len(actual) < 2 or len(layout.operands) != 2:
        return None
    from .joint import JointNonzeros

    return JointNonzeros(layout, actual)


def copies_of(problem: Problem, options: ChargeOptions) -> Array | None:
    """(T, S) tiles of a tensor that a level must have room for (docs/model.md, `overlap`); None: one of each."""
    return problem.buffers.T.astype(np.float64) if options.overlap else None
