"""N:M sparsity inside blocks, with equally many blocks kept in every block row: the pattern of CRISP pruning (5.7)."""

from __future__ import annotations

from typing import ClassVar

import attrs

from sparsemap import DensityModel

from .common import need_two_ranks, refused
from .crisp_tiles import CrispOccupancy
from .footprints import Columns


@attrs.frozen(kw_only=True)
class Crisp(DensityModel):
    """`n` of `m` words in the kept blocks, with `keep` blocks kept per block row: CRISP's hybrid sparsity.

    The first rank of the tensor has the rows; columns run over the other ranks, the second one fastest."""

    type_name: ClassVar[str] = "crisp"

    n: int = attrs.field(validator=attrs.validators.ge(1))
    """Nonzeros in each group of a kept block."""
    m: int = attrs.field(default=4, validator=attrs.validators.ge(1))
    """Words of a group."""
    block: int | tuple[int, ...] = attrs.field()
    """Rows and columns of a block: one number, or [rows, columns]. Columns must be a multiple of `m`."""
    keep: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """Kept blocks of every block row."""
    block_density: float | None = attrs.field(default=None)
    """Alternatively, share of kept blocks, rounded to whole blocks, at least one."""

    @property
    def sides(self) -> tuple[int, ...]:
        """Rows and columns of a block."""
        return (self.block, self.block) if isinstance(self.block, int) else self.block

    def __attrs_post_init__(self) -> None:
        if self.n > self.m:
            raise ValueError(f"crisp: n = {self.n} is more than m = {self.m}")
        sides = self.sides
        if len(sides) != 2 or min(sides) < 1:
            raise ValueError(f"crisp: block = {self.block!r}, expected a number from 1 on, or two: [rows, columns]")
        if sides[1] % self.m:
            raise ValueError(f"crisp: a block of {sides[1]} columns does not hold whole groups of m = {self.m}")
        if (self.keep is None) == (self.block_density is None):
            found = "neither" if self.keep is None else "both"
            raise ValueError(f"crisp: expected one of keep and block_density, found {found}")
        if self.block_density is not None and not 0 < self.block_density <= 1:
            raise ValueError(f"crisp: block_density = {self.block_density:g}, expected a share above 0, up to 1")

    def occupancy(self, shape: tuple[int, ...]) -> CrispOccupancy:
        need_two_ranks(self, shape)
        rows, width = self.sides
        ranks = tuple(int(s) for s in (*shape[2:], shape[1]))
        columns = Columns(ranks, width, self.n, self.m)
        blocks = -(-columns.count // width)
        keep = self.keep if self.keep is not None else max(1, round(self.block_density * blocks))  # type: ignore[operator]
        if keep > blocks:
            text = f"keep = {keep}, and a row of {columns.count} columns has {blocks} blocks of {width}"
            raise refused(self, text)
        return CrispOccupancy(tuple(int(s) for s in shape), columns, rows, blocks, keep)
