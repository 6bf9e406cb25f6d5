"""A batch of decoded designs, as a table of columns."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

Array = np.ndarray


@attrs.frozen(eq=False)
class Designs:
    """Decoded designs. `columns[name]` has the batch as its last axis and is contiguous; properties show it batch first.

    Built-in columns: `bounds` (L, D, B) float64, loop bound per mapping level and dimension; `order` (L, D, B) int8,
    dimension index from outer to inner; `formats` (T, R, B) int8, candidate index per rank slot; `mechanisms` (A, B)
    int8, candidate index per skip/gate place. A plugin may add columns of its own.
    """

    columns: Mapping[str, Array]

    def __len__(self) -> int:
        return next(iter(self.columns.values())).shape[-1] if self.columns else 0

    def take(self, rows: Array | slice) -> Designs:
        """The designs at these batch positions."""
        return Designs({name: np.ascontiguousarray(column[..., rows]) for name, column in self.columns.items()})

    def batch_first(self, name: str) -> Array:
        return np.moveaxis(self.columns[name], -1, 0)

    @property
    def bounds(self) -> Array:
        """(B, L, D) float64."""
        return self.batch_first("bounds")

    @property
    def order(self) -> Array:
        """(B, L, D) int8, outer to inner."""
        return self.batch_first("order")

    @property
    def formats(self) -> Array:
        """(B, T, R) int8."""
        return self.batch_first("formats")

    @property
    def mechanisms(self) -> Array:
        """(B, A) int8."""
        return self.batch_first("mechanisms")
