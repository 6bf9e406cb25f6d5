"""The sparse strategy: compression formats of ranks, and skip/gate mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import attrs
import numpy as np

from .base import Array, Piece

if TYPE_CHECKING:
    from ...problem.levels import Place


_BITS = np.array([1.0, *(float(1 << (bits - 1).bit_length()) for bits in range(1, 1025))])
WIDTHS = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
"""Bits of a run length, those that its encoder chooses from."""


def name_bits(positions: Array | float) -> Array:
    """Bits that name one of so many positions, rounded up to a power of two so that they divide a metadata word."""
    return _BITS[np.ceil(np.log2(np.maximum(positions, 2.0))).astype(np.int64)]


def tokens(length: Array, filled: Array, bits: Array) -> Array:
    """Expected run lengths of a fiber, each of whose positions holds something with probability `filled` (N,).

    A token r < M = 2^bits - 1 is r empty positions and one that is not; M is M empty positions alone. The last token may
    end with the fiber.
    """
    most = 2.0**bits - 1.0
    with np.errstate(divide="ignore"):
        log_run = most * np.log1p(-filled)  # of the chance that M positions are empty
    whole = np.floor(length / most)
    exact = whole * most == length
    escapes, weighted = _powers(log_run, whole)
    ends, last = escapes.copy(), np.flatnonzero(exact)  # of the escapes before the end of the fiber
    ends[last] = _powers(log_run[last], whole[last] - 1.0)[0]
    empty = np.where(filled < 1.0, np.exp(np.where(filled < 1.0, log_run / most * length, 0.0)), 0.0)
    return (
        length * filled
        + escapes * (1.0 + filled * length)
        - filled * most * weighted
        + (1.0 - filled)
        - filled * ends
        - exact * empty
    )


def _powers(log_x: Array, count: Array) -> tuple[Array, Array]:
    """Sums over j = 1 .. count of x^j and of j x^j, x = exp(log_x) <= 1."""
    gap = -np.expm1(log_x)  # 1 - x
    flat = count * gap < 1e-5
    x, safe = np.exp(log_x), np.where(flat, 1.0, gap)
    with np.errstate(invalid="ignore"):
        last = np.exp(np.where(count > 0.0, log_x * count, 0.0))  # x^count
    plain = np.where(flat, count, x * (1.0 - last) / safe)
    weighted = np.where(
        flat, count * (count + 1.0) / 2.0, x * (1.0 - (count + 1.0) * last + count * last * x) / safe**2
    )
    return plain, weighted


@attrs.frozen
class Fiber:
    """Ranks of tiles as formats see them: 1-D arrays of equal length N, one entry per (rank, occupancy) to be encoded.

    A format that stores `block` positions together sees blocks: they are its positions.
    """

    fibers: Array
    """Non-empty fibers of the rank in the tile (expected number, given the tile's occupancy)."""
    length: Array
    """Positions per fiber."""
    occupied: Array
    """Expected non-empty positions of one fiber."""
    coord_bits: Array
    """Bits that name a position of the fiber, rounded up to a power of two."""
    offset_bits: Array
    """Bits of an offset into the tile below, rounded up to a power of two."""
    slots: Array
    """Fibers of the rank, empty ones included."""
    longest: Array = attrs.field(default=attrs.Factory(lambda self: self.length, takes_self=True))
    """Expected non-empty positions of the fullest fiber of the whole tensor; only `padded` formats get it."""
    usual: Array = attrs.field(default=attrs.Factory(lambda self: self.occupied / self.length, takes_self=True))
    """Probability that a position of the rank holds something, anywhere in the tensor; for `encoded`."""

    @cached_property
    def run_bits(self) -> Array:
        """Bits of a run length: 1, 2, 4 .. up to `coord_bits`, those with the fewest bits for the usual fiber."""
        changes = np.diff(np.stack([self.usual, self.length, self.coord_bits]), prepend=np.nan) != 0.0
        at = np.flatnonzero(changes.any(axis=0))  # entries of a rank are alike, and stand together
        usual, length = np.clip(self.usual[at], 0.0, 1.0), self.length[at]
        width, rank = np.nonzero((WIDTHS[:, None] <= self.coord_bits[at]) | (WIDTHS[:, None] == 1.0))
        written = np.full((len(WIDTHS), len(at)), np.inf)
        written[width, rank] = WIDTHS[width] * tokens(length[rank], usual[rank], WIDTHS[width])
        bits = WIDTHS[written.argmin(axis=0)]
        return np.repeat(bits, np.diff(at, append=len(self.usual)))

    @property
    def runs(self) -> Array:
        """Run lengths of `run_bits` that an encoder writes for the fibers that are there, `fibers` of all `slots`."""
        bits, filled = self.run_bits, np.clip(self.occupied / self.length, 0.0, 1.0)
        of_none = np.ceil(self.length / (2.0**bits - 1.0))
        return np.maximum(self.slots * tokens(self.length, filled, bits) - (self.slots - self.fibers) * of_none, 0.0)

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


@attrs.frozen(kw_only=True)
class Format(Piece):
    """A one-dimensional compression format, chosen per tensor rank. Either method below is enough."""

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

    def metadata_bits(self, fiber: Fiber) -> Array:
        """Metadata bits of the rank, shape (N,)."""
        raise NotImplementedError

    def units(self, fiber: Fiber) -> Units:
        """Metadata and payload units, shape (N,). Widths may depend on the shape of the fiber, not on its occupancy."""
        return Units(metadata=self.metadata_bits(fiber), metadata_bits=1.0)

    def encoded(self, fiber: Fiber) -> Units:
        """Units as an encoder writes them, shape (N,); `fiber.fibers` are all that are there, empty ones too. By default
        `units`, so that formats whose units are sums over such fibers need nothing more."""
        return self.units(fiber)


ALL_OPERANDS = "operands"
"""In filters: every operand. As target, each is led by the others among the leaders."""


@attrs.frozen
class Filter:
    """Accesses of `target` are filtered where the words of any leader are empty.

    Tensors go by role: P, Q, R, S (operands by position), Z (output), `ALL_OPERANDS`; or by name.
    """

    target: str
    leaders: tuple[str, ...]
    action: str
    """"gate": the cycle is spent, the energy is not. "skip": neither is."""
    cycle: str = ""
    """Whether what is filtered takes its time: "passes" or "saved"; empty: as the action says."""
    lookahead: int | None = None
    """Positions that a skipping unit looks at in a cycle; None: all that there are."""
    effectiveness: float = 1.0
    """Share of what is in sight and empty that is caught."""
    width: int | None = None
    """Positions that a skipping unit passes in a cycle at most: a run of empty ones takes a cycle for every `width` of them.
    Time only, for the charge `intersection`; None: no limit of its own."""

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
        out_of_sight = empty**self.lookahead
        passed = (empty - out_of_sight) / np.where(out_of_sight < 1.0, 1.0 - out_of_sight, 1.0)
        return np.where(out_of_sight < 1.0, passed, 1.0 - 1.0 / self.lookahead) * self.effectiveness


@attrs.frozen(kw_only=True)
class Mechanism(Piece):
    """A skip/gate mechanism at one place (a storage level or the compute unit)."""

    kind: ClassVar[str] = "mechanism"

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
