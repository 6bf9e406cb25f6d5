"""Formats of TOML as numbers for `sparsemap/inner/fiber_codes.py`: the mean length of `codec.py`'s output (section 6.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparsemap.inner.arrays import UNIT
from sparsemap.pieces.contracts import Array, Fiber, Outer, Units
from sparsemap.pieces.contracts.sparsity import name_bits

from .codes import COUNTS, ENDS, LISTS, PositionList, position_list

if TYPE_CHECKING:
    from .formats import ExpressionFormat

WIDTHS = 1.0, 2.0, 4.0, 8.0, 16.0, 32.0
"""Bits per token of runs available to an encoder."""


def _lists(form: ExpressionFormat, outer: Outer) -> tuple[PositionList, PositionList]:
    """List of groups, and list of the positions of a fiber or group."""
    return form._group_list(outer) if form.group > 1 else position_list("all", "", outer), form._listed(outer)


def code_of(form: ExpressionFormat, outer: Outer) -> Array:
    """(CODE,) description of the lists written by a format."""
    code, (upper, listed) = np.zeros(UNIT.CODE), _lists(form, outer)
    lists, told = list(LISTS.values()), listed.ended or listed.end != "length"
    flags = [float(form.group > 1)]
    for one in (upper, listed):
        flags += [lists.index(type(one)), ENDS.index(one.told), one.filled]
    flags += [told, form.padded, form.compressed, "run_bits" in form._entry]
    code[: len(flags)] = flags
    return code


def told_of(form: ExpressionFormat, outer: Outer, length: Array, coord_bits: Array, offset_bits: Array) -> Array:
    """(TOLD, N) inputs of the lists, for fibers of `length` positions."""
    told = np.zeros((UNIT.TOLD, len(length)))
    count, inner = np.ceil(length / form.group), np.minimum(length, form.group) if form.group > 1 else length
    names = name_bits(count), name_bits(inner) if form.group > 1 else coord_bits
    none, (upper, listed) = np.zeros(len(length)), _lists(form, outer)

    def counts(one: PositionList, *shape: Array) -> Array:
        return form._bits_of(form._count(one), *shape) if one.told in COUNTS else none

    if form.group > 1:
        chosen = form._group_entry == "run_bits"
        told[UNIT.UPPER_WIDTH] = -1.0 if chosen else form._bits_of(form._group_entry, count, names[0], offset_bits)
        told[UNIT.UPPER_BITS] = counts(upper, count, names[0], offset_bits)
    told[UNIT.UPPER_NAMES], told[UNIT.NAMES] = names
    told[UNIT.GROUPS_OF], told[UNIT.INNER], told[UNIT.OFFSET_BITS] = count, inner, offset_bits
    told[UNIT.COUNT_BITS] = counts(listed, inner, names[1], offset_bits)
    for j, bits in enumerate(WIDTHS):
        told[UNIT.WIDTHS + j] = form._bits_of(form._entry, inner, names[1], offset_bits, none + bits)
        if "run_bits" not in form._entry:
            break
    return told


def encoded(form: ExpressionFormat, fiber: Fiber, outer: Outer) -> Units:
    """`Format.encoded` of a format with a code."""
    told = told_of(form, outer, fiber.length, fiber.coord_bits, fiber.offset_bits)
    columns = fiber.fibers, fiber.occupied, fiber.groups, fiber.slots, fiber.length, fiber.longest, fiber.usual
    given = np.stack([np.broadcast_to(column, told.shape[1:]) for column in columns])
    found = np.empty((2, told.shape[1]))
    UNIT.code_bits_of_each(
        code_of(form, outer)[None], np.ascontiguousarray(told.T), given, np.zeros((UNIT.ROWS, 1)), found
    )
    return Units(found[0], 1.0, readable=found[1] > 0.0)


def best_bits(length: Array, filled: Array, most_bits: Array) -> Array:
    """(N,) best bits per token, among `WIDTHS` up to `most_bits`: the fewest total bits for a fiber of this occupancy."""
    found = np.empty(len(length))
    UNIT.best_widths(*(np.ascontiguousarray(column, np.float64) for column in (length, filled, most_bits)), found)
    return found
