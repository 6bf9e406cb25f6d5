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
    """Bits that name one of so many positions, rounded up to a power of two so that they divide a metadata word."""
    from ...inner.arrays import log2s  # with the compiled unit, which a start does without

    return _BITS[np.ceil(log2s(np.maximum(positions, 2.0))).astype(np.int64)]


@attrs.frozen
class Fiber:
    """Ranks of tiles as formats see them: 1-D arrays of equal length N, one entry per (rank, occupancy) to be encoded.

    A format that stores `block` positions together sees blocks: they are its positions.
    """

    fibers: Array
    """Fibers in the tile, expected at its occupancy: those that hold something; for `encoded` all that are written."""
    length: Array
    """Positions per fiber."""
    occupied: Array
    """Expected positions of a fiber that hold something, a mean over all `slots`: `slots * occupied` in the tile."""
    coord_bits: Array
    """Bits that name a position of the fiber, rounded up to a power of two."""
    offset_bits: Array
    """Bits of an offset into the tile below, rounded up to a power of two."""
    slots: Array
    """Fibers of the rank, empty ones and those that no rank outside keeps included."""
    longest: Array = attrs.field(default=attrs.Factory(lambda self: self.length, takes_self=True))
    """Expected non-empty positions of the fullest fiber of the whole tensor; only `padded` formats get it."""
    usual: Array = attrs.field(default=attrs.Factory(lambda self: self.occupied / self.length, takes_self=True))
    """Probability that a position of the rank holds something, anywhere in the tensor; for `encoded`."""
    groups: Array = attrs.field(default=attrs.Factory(lambda self: self.occupied, takes_self=True))
    """Of a format whose `group` is above one: expected groups of a fiber that hold something, a mean over `slots` as well."""

    @classmethod
    def of(cls, fibers: Array, length: float, occupied: Array, words: float, slots: Array | float = 1.0) -> Fiber:
        """Fibers of one length, each with so many words below; the other figures are (N,)."""
        ones = np.ones(len(fibers))
        bits = ones * name_bits(length), ones * name_bits(words + 1.0)
        return cls(np.asarray(fibers, np.float64), ones * length, np.asarray(occupied, np.float64), *bits, ones * slots)


@attrs.frozen
class Units:
    """Metadata of a rank: counts and the bits of one unit. Payloads link a rank to the next; the innermost has none."""

    metadata: Array
    metadata_bits: Array | float
    payload: Array | float = 0.0
    payload_bits: Array | float = 0.0
    readable: Array | bool = True
    """Of `encoded`: whether the fields of the code tell all positions of a fiber of this `length` apart."""


@attrs.frozen
class Outer:
    """What the ranks outside have told a decoder of the fibers of a rank, before it reads any bit of them."""

    ends: bool = False
    """Where each fiber ends: the rank above has offsets."""
    filled: bool = False
    """That every fiber holds something: the rank above lists only such positions."""


@attrs.frozen(kw_only=True)
class Format(Piece):
    """A one-dimensional compression format, chosen per tensor rank.

    `units` or `metadata_bits` says what a plain model (Timeloop's) charges. The *codec* says what is stored: `encode` makes
    bits of positions, `decode` positions of bits, and `encoded` is the mean of what `encode` writes.
    """

    kind: ClassVar[str] = "format"

    symbol: str = ""
    """A short name for loop nests, such as "CP"; absent: the initials."""
    compressed: bool = False
    """Whether empty positions are left out, so that the data below shrinks with the density."""
    block: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Positions of a compressed rank that are stored whole or left out together."""
    padded: bool = False
    """Whether a compressed rank stores as many positions of every fiber as the fullest one of the tensor has."""
    below_compressed: bool = False
    """Whether an uncompressed rank may lie below a compressed one: all its positions are then stored, zeros too."""

    group: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Positions that the code lists together, such as those of a bit of the upper level of a bitmap; `Fiber.groups`."""
    offsets: bool = False
    """Whether every position that is there, and the end of each fiber, has an offset into what lies below. The offsets
    stand behind the code of the rank, and tell the fibers below where they end."""

    of_one_word: bool = False
    """Whether a tile of one word has metadata as well, those of a fiber of one position: its own place travels with it."""
    flattened: bool = False
    """Whether the rank has no fibers of its own: its loop and the rank inside are one rank, of that one's format."""
    unit_macs: float = attrs.field(default=0.0, validator=attrs.validators.ge(0))
    """Area of one decoder, in 16-bit multiply-accumulate units; of a chip that lists its `units`."""

    @property
    def needs_ends(self) -> bool:
        """Whether its fibers cannot be read unless the rank above tells where they end."""
        return False

    @property
    def decodable(self) -> bool:
        """Whether it has a codec."""
        return type(self).decode is not Format.decode

    def metadata_bits(self, fiber: Fiber) -> Array:
        """Metadata bits of the rank, shape (N,)."""
        raise NotImplementedError

    def units(self, fiber: Fiber) -> Units:
        """Metadata and payload units, shape (N,). Widths may depend on the shape of the fiber, not on its occupancy."""
        return Units(metadata=self.metadata_bits(fiber), metadata_bits=1.0)

    def encoded(self, fiber: Fiber, outer: Outer) -> Units:
        """Expected units of what `encode` writes, shape (N,), without offsets; `fiber.fibers` are all that are there, empty
        ones too. By default `units`, so that formats whose units are sums over such fibers need nothing more."""
        return self.units(fiber)

    def heeded(self, outer: Outer) -> Outer:
        """What of it makes a difference to `encoded`: where nothing does, the format is asked once for all."""
        return Outer() if type(self).encoded is Format.encoded else outer

    def encode(self, rows: Array, rank: RankShape, tiles: Array) -> Code:
        """The bits of n > 0 fibers; `rows` (n, L) bool, the positions stored, `tiles` (n,) the tile of each, ascending."""
        raise NotImplementedError

    def decode(self, bits: BitReader, rank: RankShape, tiles: Array, ends: Array | None) -> Array:
        """`rows` again. `ends`: (n,) entries of each fiber, if the rank above told them."""
        raise NotImplementedError


DEALING = ("condense", "pack")
"""Actions that deal out lanes, and remove no access where they are (docs/model.md, 7.4)."""
ACTIONS = ("gate", "skip", *DEALING)
"""Of filters."""
ALL_OPERANDS = "operands"
"""In filters: every operand. As target, each is led by the others among the leaders."""


@attrs.frozen
class Filter:
    """Accesses of `target` are filtered where the words of any leader are empty.

    Tensors go by role: P, Q, R, S (operands by position), Z (output), `ALL_OPERANDS`; or by name.
    """

    target: str
    leaders: tuple[str, ...]
    action: str = attrs.field()
    """"gate": the cycle is spent, the energy is not. "skip": neither is. "condense": what would find a leader empty takes no
    place below. "pack": the nonzeros of the target, which has no other leaders, fill the lanes."""
    cycle: str = ""
    """Whether what is filtered takes its time: "passes" or "saved"; empty: as the action says."""
    lookahead: int | None = None
    """Positions that a skipping unit looks at in a cycle; None: all that there are."""
    effectiveness: float = 1.0
    """Share of what is in sight and empty that is caught."""
    width: int | None = None
    """Positions that a skipping unit passes in a cycle at most: a run of empty ones takes a cycle for every `width` of them.
    Time only, for the charge `intersection`; None: no limit of its own."""
    entries: bool = False
    """Whether `width` counts entries, of any leader, as comparators of coordinates do, in place of positions."""

    @action.validator
    def _is_known(self, _: Any, value: Any) -> None:
        if value not in ACTIONS:
            raise ValueError(unknown("action", str(value), ACTIONS))

    @property
    def limited(self) -> bool:
        """Whether `reached` is less than all."""
        return self.lookahead is not None or self.effectiveness < 1.0

    @property
    def passes(self) -> bool:
        """Whether the time of what is filtered passes."""
        return self.cycle == "passes" if self.cycle else self.action == "gate"

    def reached(self, empty: Array) -> Array:
        """Share of the positions that are passed over, of which `empty` are empty, each independently (7.1): of every run
        of empty ones each `lookahead`-th is not, since no other was in sight."""
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
    """Area of one unit, in 16-bit multiply-accumulate units; of a chip that lists its `units`."""

    def filters(self, place: Place) -> Sequence[Filter]:
        """What is filtered at this place; at the compute unit, every compute with an empty operand, as the action says."""
        raise NotImplementedError

    def needs_metadata(self, place: Place) -> bool:
        """Whether each leader must have metadata here (a skipping unit must find the next nonzero)."""
        return False

    def eliminated(self, place: Place, filter: Filter, empty: Array) -> Array:
        """Share of the target's accesses removed, shape (B,), given the probability that the leaders' words are empty.

        By default all, or what a `limited` filter reaches; none may return more than `empty`. At the compute unit `empty`
        is the share of the computes that the action could leave out; the others are carried out. Of several filters the
        first with the strongest action is asked there.
        """
        return filter.reached(empty)
