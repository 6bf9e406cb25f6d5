"""The bits of formats in TOML: writing and reading of their lists (`codes.py`, docs/plugins/format.md).

Lists write fields of whole bits. `number` is the number of entries of each fiber, as counted by offsets of the rank
above."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.pieces.contracts import Array
from sparsemap.pieces.contracts.codec import BitReader, Code, RankShape
from sparsemap.pieces.contracts.sparsity import name_bits

from .codes import Coordinates, Counted, Mask, PositionList, Runs

if TYPE_CHECKING:
    from .formats import ExpressionFormat

Fields = list[tuple[Array, Array, int]]
"""Fields for `Code.of`."""


def encode(form: ExpressionFormat, rows: Array, rank: RankShape, tiles: Array) -> Code:
    """Implementation of `Format.encode`."""
    listed = form._listed(rank.outer, rank.even)
    if form.group == 1:
        return _written(form, listed, form._entry, rows, rank, tiles)
    groups, (outside, inside) = form._group_list(rank.outer), _shapes(form, rank)
    rows = np.pad(rows, [(0, 0), (0, outside.length * inside.length - rank.length)])
    parts = rows.reshape(len(rows), outside.length, inside.length)
    there: Array = np.ones(parts.shape[:2], dtype=bool) if groups.complete else np.any(parts, axis=2)
    upper = _written(form, groups, form._group_entry, there, outside, tiles)
    fiber = np.nonzero(there)[0]
    lower = _written(form, listed, form._entry, parts[there], inside, tiles[fiber])
    sizes = upper.sizes + np.bincount(fiber, lower.sizes, len(rows)).astype(np.int64)
    return Code(np.concatenate([upper.bits, lower.bits]), sizes)


def decode(form: ExpressionFormat, bits: BitReader, rank: RankShape, tiles: Array, ends: Array | None) -> Array:
    """Implementation of `Format.decode`."""
    listed = form._listed(rank.outer, rank.even)
    if form.group == 1:
        return _read(form, listed, form._entry, bits, rank, tiles, ends)
    groups, (outside, inside) = form._group_list(rank.outer), _shapes(form, rank)
    there = _read(form, groups, form._group_entry, bits, outside, tiles, None)
    found = np.zeros((len(tiles), outside.length, inside.length), dtype=bool)
    found[there] = _read(form, listed, form._entry, bits, inside, tiles[np.nonzero(there)[0]], None)
    return found.reshape(len(tiles), outside.length * inside.length)[:, : rank.length]


def _shapes(form: ExpressionFormat, rank: RankShape) -> tuple[RankShape, RankShape]:
    """Shapes of the list of groups, and of the list within a group."""
    size = min(form.group, rank.length)
    count = -(-rank.length // size)
    of_groups = attrs.evolve(rank, length=count, coord_bits=int(name_bits(count)))
    return of_groups, attrs.evolve(rank, length=size, coord_bits=int(name_bits(size)))


def _width(form: ExpressionFormat, text: str, rank: RankShape) -> int:
    shape = (np.full(1, float(n)) for n in (rank.length, rank.coord_bits, rank.offset_bits, rank.usual))
    return int(form._widths(text, *shape)[0])


def _written(
    form: ExpressionFormat, listed: PositionList, entry: str, rows: Array, rank: RankShape, tiles: Array
) -> Code:
    """Code of a list of the positions of n fibers, `rows` (n, L) bool."""
    width, count_bits, number = _width(form, entry, rank), _width(form, form._count(listed), rank), None
    fields: Fields = []
    match listed:
        case Mask():
            fiber = np.repeat(np.arange(len(rows)), rows.shape[1])
            fields = [(fiber, rows.reshape(-1).astype(np.int64), width)]
        case Coordinates():
            fiber, at = np.nonzero(rows)
            number = rows.sum(axis=1)
            fields = [*_counted(listed, number, count_bits, tiles), (fiber, at, width)]
            if listed.told == "marker":
                fields.append((np.arange(len(rows)), np.full(len(rows), 2**width - 1), width))
        case Runs():
            fiber, tokens = write_runs(rows, width, listed.ended or listed.end != "length")
            number = np.bincount(fiber, minlength=len(rows))
            fields = [*_counted(listed, number, count_bits, tiles), (fiber, tokens, width)]
    return Code.of(len(rows), fields, number)


def _counted(listed: Counted, number: Array, count_bits: int, tiles: Array) -> Fields:
    """Fields before the entries; ValueError if groups are not equally full as assumed."""
    if listed.told in ("", "marker"):
        return []
    if listed.known:
        if (wrong := number[number != listed.even]).size:
            raise ValueError(f"{wrong[0]} of a group hold something, where all have {listed.even}")
        return []
    begins = np.flatnonzero(np.diff(tiles, prepend=-1)) if listed.end == "same" else np.arange(len(number))
    return [(begins, number[begins] - listed.filled, count_bits)]


def _read(
    form: ExpressionFormat, listed: PositionList, entry: str, bits: BitReader, rank: RankShape, tiles: Array,
    ends: Array | None,
) -> Array:  # fmt: skip
    """Read the positions (n, L) bool of the fibers."""
    width, count_bits = _width(form, entry, rank), _width(form, form._count(listed), rank)
    length = rank.length
    if isinstance(listed, Mask):
        return bits.many(len(tiles) * length, width).reshape(len(tiles), length) > 0
    if not isinstance(listed, Counted):
        return np.ones((len(tiles), length), dtype=bool)
    found = np.zeros((len(tiles), length), dtype=bool)
    numbers = _numbers(listed, bits, count_bits, tiles, ends)
    if isinstance(listed, Coordinates) and listed.known:
        fibers = np.repeat(np.arange(len(tiles)), np.fromiter(numbers, dtype=np.int64))
        found[fibers, bits.many(len(fibers), width)] = True
        return found
    for fiber, number in enumerate(numbers):
        if isinstance(listed, Coordinates) and number is not None:
            found[fiber, bits.many(number, width)] = True
        elif isinstance(listed, Coordinates):
            while (at := bits.take(width)) < 2**width - 1:
                found[fiber, at] = True
        else:
            start, most = bits.at, min(length, (len(bits.bits) - bits.at) // width) if number is None else number
            positions, used = read_runs(bits.many(most, width).tolist(), length, width, number)
            found[fiber, positions] = True
            bits.at = start + used * width
    return found


def _numbers(
    listed: Counted, bits: BitReader, count_bits: int, tiles: Array, ends: Array | None
) -> Iterator[int | None]:
    """Number of entries of each fiber, read in order; None: the entries end the fiber."""
    if listed.ended:
        assert ends is not None
        yield from ends.tolist()
        return
    number = listed.even if listed.known else None
    for fiber, tile in enumerate(tiles):
        first = listed.end == "same" and (fiber == 0 or tile != tiles[fiber - 1])
        if first or listed.end == "count" or (listed.end == "even" and not listed.known):
            number = bits.take(count_bits) + listed.filled
        yield number


def write_runs(rows: Array, bits: int, ended: bool) -> tuple[Array, Array]:
    """(n, L) bool -> (m,) fiber of every token, and the tokens."""
    escape, length = 2**bits - 1, rows.shape[1]
    # the end of a fiber is found as well, unless others tell it
    fiber, at = np.nonzero(rows if ended else np.pad(rows, [(0, 0), (0, 1)], constant_values=True))
    before = np.where(np.diff(fiber, prepend=-1) > 0, -1, np.concatenate([[-1], at[:-1]]))
    escapes, left = np.divmod(at - before - 1, escape)
    named = (at < length) | (left > 0)
    ends = np.cumsum(escapes + named)
    tokens = np.full(int(ends[-1]) if len(ends) else 0, escape, dtype=np.int64)
    tokens[ends[named] - 1] = left[named]
    return np.repeat(fiber, escapes + named), tokens


def read_runs(tokens: list[int], length: int, bits: int, count: int | None) -> tuple[list[int], int]:
    """Positions of a fiber, and tokens read: `count`, or as many as cover `length` positions; ValueError beyond."""
    escape, told, found, at = 2**bits - 1, 0, [], 0
    while told < length if count is None else at < count:
        token = tokens[at]
        at += 1
        told += token
        if token < escape and told < length:
            found.append(told)
            told += 1
    if told > length:
        raise ValueError(f"run lengths tell {told} positions of a fiber of {length}")
    return found, at
