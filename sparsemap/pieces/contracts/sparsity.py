"""The sparse strategy: compression formats of ranks, and skip/gate mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import numpy as np

from ...errors import unknown
from .base import Array, Piece

if TYPE_CHECKING:
    from ...problem.levels import Place
    from .codec import BitReader, Code, RankShape


_BITS = np.array([1.0, *(float(1 << (bits - 1).bit_length()) for bits in range(1, 1025))])


def name_bits(positions: Array | float) -> Array:
    """Bits to name one of `positions` positions, rounded up to a power of two to divide a metadata word."""
    from ...inner.arrays import log2s  # with the compiled unit, which a start does without

    return _BITS[np.ceil(log2s(np.maximum(positions, 2.0))).astype(np.int64)]


@attrs.frozen
class Fiber:
    """Ranks of tiles for formats: 1-D arrays of equal length N, an entry per (rank, occupancy) to encode.

    A format that stores `block` positions together sees blocks as positions."""

    fibers: Array
    """Expected non-empty fibers in the tile at its occupancy; for `encoded`, all fibers written."""
    length: Array
    """Positions per fiber."""
    occupied: Array
    """Expected non-empty positions of a fiber, a mean over all `slots`: `slots * occupied` in the tile."""
    coord_bits: Array
    """Bits of a coordinate in the fiber, rounded up to a power of two."""
    offset_bits: Array
    """Bits of an offset into the tile below, rounded up to a power of two."""
    slots: Array
    """Fibers of the rank, including empty fibers and fibers left out by ranks outside."""
    longest: Array = attrs.field(default=attrs.Factory(lambda self: self.length, takes_self=True))
    """Expected non-empty positions of the fullest fiber of the whole tensor; only for `padded` formats."""
    usual: Array = attrs.field(default=attrs.Factory(lambda self: self.occupied / self.length, takes_self=True))
    """Probability of a non-empty position of the rank, anywhere in the tensor; for `encoded`."""
    groups: Array = attrs.field(default=attrs.Factory(lambda self: self.occupied, takes_self=True))
    """Expected non-empty groups of a fiber, also a mean over `slots`, for a format with a `group` above one."""

    @classmethod
    def of(cls, fibers: Array, length: float, occupied: Array, words: float, slots: Array | float = 1.0) -> Fiber:
        """Fibers of one length, each with `words` words below; the other figures are (N,)."""
        ones = np.ones(len(fibers))
        bits = ones * name_bits(length), ones * name_bits(words + 1.0)
        return cls(np.asarray(fibers, np.float64), ones * length, np.asarray(occupied, np.float64), *bits, ones * slots)


@attrs.frozen
class Units:
    """Metadata of a rank: counts and bits per unit. Payloads link a rank to the next; the innermost rank has none."""

    metadata: Array
    metadata_bits: Array | float
    payload: Array | float = 0.0
    payload_bits: Array | float = 0.0
    readable: Array | bool = True
    """For `encoded`: whether the code's fields are wide enough for all positions of a fiber of this `length`."""


@attrs.frozen
class Outer:
    """Facts about the fibers of a rank known from the ranks outside, before a decoder reads any bit."""

    ends: bool = False
    """Whether the end of each fiber is known: the rank above has offsets."""
    filled: bool = False
    """Whether no fiber is empty: the rank above lists non-empty positions only."""


@attrs.frozen(kw_only=True)
class Format(Piece):
    """A one-dimensional compression format, chosen per tensor rank.

    `units` or `metadata_bits` gives the metadata in a plain model (Timeloop's). The *codec* defines the stored bits:
    `encode` turns positions into bits, `decode` bits into positions, and `encoded` is the expected size of `encode`'s
    output."""

    kind: ClassVar[str] = "format"

    symbol: str = ""
    """A short name for loop nests, such as "CP"; absent: the initials."""
    compressed: bool = False
    """Whether empty positions are left out, so the data below shrinks with the density."""
    block: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Positions of a compressed rank stored whole or left out together."""
    padded: bool = False
    """Whether every fiber of a compressed rank is padded to the positions of the tensor's fullest fiber."""
    below_compressed: bool = False
    """Whether an uncompressed rank may lie below a compressed rank: all positions are then stored, zeros too."""

    group: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Positions listed together by the code, such as under a bit of the upper level of a bitmap; `Fiber.groups`."""
    offsets: bool = False
    """Whether every stored position, and the end of each fiber, has an offset into the data below. The offsets follow
    the code of the rank and mark the ends of the fibers below."""

    of_one_word: bool = False
    """Whether a tile of one word also has metadata, as for a fiber of one position: its own place travels with it."""
    flattened: bool = False
    """Whether the rank has no fibers of its own: its loop joins the rank inside, in that rank's format."""
    unit_macs: float = attrs.field(default=0.0, validator=attrs.validators.ge(0))
    """Area per decoder, in 16-bit multiply-accumulate units; for chips with a list of `units`."""

    @property
    def needs_ends(self) -> bool:
        """Whether decoding a fiber requires its end from the rank above."""
        return False

    @property
    def decodable(self) -> bool:
        """Whether the format has a codec."""
        return type(self).decode is not Format.decode

    def metadata_bits(self, fiber: Fiber) -> Array:
        """Metadata bits of the rank, shape (N,)."""
        raise NotImplementedError

    def units(self, fiber: Fiber) -> Units:
        """Metadata and payload units, shape (N,). Widths may depend on the shape of the fiber, not on the occupancy."""
        return Units(metadata=self.metadata_bits(fiber), metadata_bits=1.0)

    def encoded(self, fiber: Fiber, outer: Outer) -> Units:
        """Expected units of `encode`'s output, shape (N,), without offsets; `fiber.fibers` counts all written fibers,
        empty fibers too. By default `units`, enough for formats with units that are sums over written fibers."""
        return self.units(fiber)

    def heeded(self, outer: Outer) -> Outer:
        """The part of `outer` with an effect on `encoded`: outer facts without effect share a single evaluation."""
        return Outer() if type(self).encoded is Format.encoded else outer

    def encode(self, rows: Array, rank: RankShape, tiles: Array) -> Code:
        """Bits of n > 0 fibers; `rows` (n, L) bool, the stored positions, `tiles` (n,) the tile of each fiber,
        ascending."""
        raise NotImplementedError

    def decode(self, bits: BitReader, rank: RankShape, tiles: Array, ends: Array | None) -> Array:
        """Inverse of `encode`: `rows`. `ends`: (n,) entries of each fiber, if known from the rank above."""
        raise NotImplementedError


DEALING = ("condense", "pack")
"""Actions that deal work out to lanes and remove no access at their own level (docs/model.md, 7.4)."""
ACTIONS = ("gate", "skip", *DEALING)
"""Actions of filters."""
ALL_OPERANDS = "operands"
"""Every operand, in filters. As target, each operand is led by the other operands among the leaders."""


@attrs.frozen
class Filter:
    """Filter of `target` accesses wherever the words of any leader are empty.

    Tensors go by role: P, Q, R, S (operands by position), Z (output), `ALL_OPERANDS`; or by name."""

    target: str
    leaders: tuple[str, ...]
    action: str = attrs.field()
    """"gate": spends the cycle, saves the energy. "skip": saves both. "condense": instances below with an empty leader
    are not needed. "pack": the nonzeros of the target, the only leader, fill the lanes."""
    cycle: str = ""
    """Whether filtered accesses take their time: "passes" or "saved"; empty: by the action."""
    lookahead: int | None = None
    """Positions examined per cycle by a skipping unit; None: unlimited."""
    effectiveness: float = 1.0
    """Share of the empty positions in sight that are caught."""
    width: int | None = None
    """Largest number of positions passed per cycle by a skipping unit: a run of empty positions takes a cycle per
    `width` positions. Affects time only, for the charge `intersection`; None: no limit."""
    entries: bool = False
    """Whether `width` counts entries of any leader, as comparators of coordinates do, in place of positions."""

    @action.validator
    def _is_known(self, _: Any, value: Any) -> None:
        if value not in ACTIONS:
            raise ValueError(unknown("action", str(value), ACTIONS))

    @property
    def limited(self) -> bool:
        """Whether `reached` is less than all empty positions."""
        return self.lookahead is not None or self.effectiveness < 1.0

    @property
    def passes(self) -> bool:
        """Whether the time of filtered accesses passes."""
        return self.cycle == "passes" if self.cycle else self.action == "gate"

    def reached(self, empty: Array) -> Array:
        """Share of positions passed over, at a share `empty` of empty positions, each independent (7.1). Of every run
        of empty positions each `lookahead`-th is not passed over, since no other position was in sight."""
        if self.lookahead is None:
            return empty if self.effectiveness == 1.0 else empty * self.effectiveness
        from ...inner.arrays import powers

        out_of_sight = powers(empty, self.lookahead)
        passed = (empty - out_of_sight) / np.where(out_of_sight < 1.0, 1.0 - out_of_sight, 1.0)
        return np.where(out_of_sight < 1.0, passed, 1.0 - 1.0 / self.lookahead) * self.effectiveness


@attrs.frozen(kw_only=True)
class Mechanism(Piece):
    """A skip/gate mechanism at one place (a storage level or the compute unit)."""

    kind: ClassVar[str] = "mechanism"

    unit_macs: float = attrs.field(default=0.0, validator=attrs.validators.ge(0))
    """Size of a unit, in 16-bit multiply-accumulate units: its area, for chips with a list of `units`, and the energy of
    its cycles (charge `intersection`)."""

    def filters(self, place: Place) -> Sequence[Filter]:
        """Filters at this place; at the compute unit, the action applies to every compute with an empty operand."""
        raise NotImplementedError

    def needs_metadata(self, place: Place) -> bool:
        """Whether each leader must have metadata here (a skipping unit must find the next nonzero)."""
        return False

    def eliminated(self, place: Place, filter: Filter, empty: Array) -> Array:
        """Share of the target's accesses removed, shape (B,), from the probability `empty` of empty leader words.

        By default all, or `reached` for a `limited` filter; never more than `empty`. At the compute unit, `empty` is
        the share of computes open to the action; the remaining computes are carried out. Of several filters at the
        compute unit, the first with the strongest action is asked."""
        return filter.reached(empty)
