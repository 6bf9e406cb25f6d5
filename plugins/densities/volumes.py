"""Helpers of every density model: shares from 0 to 1, and volumes of tiles."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

share: list[Any] = [attrs.validators.ge(0), attrs.validators.le(1)]


def volume(tile: tuple[int, ...]) -> int:
    return math.prod(int(words) for words in tile)


def volumes(tiles) -> Array:
    """int64 volumes of tiles, given as a sequence of tuples, an array (T, ranks), or volumes."""
    tiles = np.asarray(tiles, np.int64)
    return tiles if tiles.ndim == 1 else tiles.prod(axis=1)
