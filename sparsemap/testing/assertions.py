"""What every check raises."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..pieces import contracts as of


def expect(piece: of.Piece, holds: Any, what: str, expected: object = "", given: object = "") -> None:
    """Raises AssertionError that names the plugin's class, unless `holds`."""
    if not holds:
        cls = type(piece)
        name = f" '{piece.name}'" if piece.name else ""
        detail = f": expected {expected}, given {given}" if expected != "" else ""
        raise AssertionError(f"{piece.kind}{name} ({cls.__module__}.{cls.__qualname__}): {what}{detail}")


def array_of(piece: of.Piece, value: Any, shape: tuple[int, ...], what: str, kinds: str = "fiu") -> of.Array:
    """`value` as an array of this shape and of a numeric kind without NaN."""
    array = np.asarray(value)
    expect(piece, array.shape == shape, f"{what} has a wrong shape", shape, array.shape)
    expect(piece, array.dtype.kind in kinds, f"{what} has a wrong type", f"a kind of '{kinds}'", array.dtype)
    expect(piece, not np.isnan(array.astype(np.float64)).any(), f"{what} holds NaN")
    return array
