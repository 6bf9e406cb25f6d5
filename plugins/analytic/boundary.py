"""The boundary to formats: what they return is checked, and a format that breaks its contract is named."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemap import Fiber, Format, Units
from sparsemap.problem.evaluation import BadPiece

FIELDS = ("metadata", "metadata_bits", "payload", "payload_bits")


class Checked:
    """A format whose units are finite, not negative, and as many as there are fibers; `BadPiece` otherwise."""

    def __init__(self, piece: Format) -> None:
        self._piece = piece

    def __getattr__(self, name: str) -> Any:
        return getattr(self._piece, name)

    def units(self, fiber: Fiber) -> Units:
        try:
            units = self._piece.units(fiber)
        except Exception as error:
            raise self._bad(f"raised {type(error).__name__}: {error}") from error
        for field in FIELDS:
            try:
                column = np.asarray(getattr(units, field), dtype=np.float64)
            except (AttributeError, TypeError, ValueError):
                raise self._bad(f"returned {type(units).__name__} without numbers for '{field}'") from None
            if column.ndim and column.shape != fiber.fibers.shape:
                raise self._bad(f"returned '{field}' of shape {column.shape}, expected {fiber.fibers.shape}")
            if column.size and not (column.min() >= 0.0 and column.max() < np.inf):
                raise self._bad(f"returned '{field}' that is negative, infinite or not a number")
        return units

    def _bad(self, text: str) -> BadPiece:
        return BadPiece("format", self._piece.name or self._piece.type_name, text)
