"""Bits of CRISP's storage format (Section III-A): blocked ELLPACK, offsets of N:M, values; and bits of other formats.

`tests/reference_crisp.py` writes the bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from sparsemap.pieces.contracts.base import Array

Accounting = Literal["exact", "paper"]


@attrs.frozen
class CrispShape:
    """A matrix in the format."""

    rows: int
    columns: int
    block: int
    """Rows and columns of a block."""
    n: int
    m: int
    kept: int
    """Blocks of each block row."""

    def __attrs_post_init__(self) -> None:
        sizes = f"{self.rows} x {self.columns} in blocks of {self.block}"
        if self.rows % self.block or self.columns % self.block:
            raise ValueError(f"{sizes}: expected whole blocks")
        if self.block % self.m or not 1 <= self.n <= self.m:
            raise ValueError(f"{sizes}: expected whole groups of m = {self.m} with n = {self.n} of 1..{self.m}")
        if not 1 <= self.kept <= self.block_columns:
            raise ValueError(f"{sizes}: expected 1..{self.block_columns} kept blocks, found {self.kept}")

    @property
    def block_columns(self) -> int:
        return self.columns // self.block

    @property
    def blocks(self) -> int:
        """Kept blocks of the matrix."""
        return self.rows // self.block * self.kept

    @property
    def words(self) -> int:
        """Stored values."""
        return self.blocks * self.block**2 * self.n // self.m

    @property
    def density(self) -> float:
        return self.words / (self.rows * self.columns)

    @property
    def block_bits(self) -> int:
        """Bits of a block column's index."""
        return _log2(self.block_columns)

    @property
    def offset_bits(self) -> int:
        """Bits of a word's index in a group."""
        return _log2(self.m)

    def metadata_bits(self, accounting: Accounting = "exact") -> tuple[int, int]:
        """Bits of block indices, and of offsets.

        `exact` counts the written bits. `paper` is the paper's formula, floor(log2(kept)) bits for an index and
        floor(log2(M)) for an offset: too few for the block columns of a row."""
        if accounting == "exact":
            return self.blocks * self.block_bits, self.words * self.offset_bits
        return self.blocks * (self.kept.bit_length() - 1), self.words * (self.m.bit_length() - 1)


def _log2(positions: int) -> int:
    """Whole bits of an index of positions."""
    return max(positions - 1, 0).bit_length()


def other_formats(shape: CrispShape, row_nonzeros: Array) -> Mapping[str, int]:
    """Bits of metadata of other formats for a matrix of this shape and these nonzeros per row, (rows,).

    `bcsr` has the blocks of CRISP's mask as blocked CSR, zeros included: m/n times the values."""
    nonzeros, width = int(row_nonzeros.sum()), _log2(shape.columns)
    return {
        "csr": nonzeros * width + (shape.rows + 1) * _log2(nonzeros + 1),
        "ellpack": shape.rows * int(row_nonzeros.max(initial=0)) * width,
        "bitmask": shape.rows * shape.columns,
        "bcsr": shape.blocks * shape.block_bits + (shape.rows // shape.block + 1) * _log2(shape.blocks + 1),
    }
