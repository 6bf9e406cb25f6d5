"""Expected bits of formats whose fibers are lists, in NumPy: the mean of what `codec.py` writes (section 6.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparsemap.pieces.contracts import Array, Fiber, Outer, Units
from sparsemap.pieces.contracts.sparsity import name_bits

from . import runs
from .codes import Coordinates, Counted, Expected, Mask, PositionList, Runs

if TYPE_CHECKING:
    from .formats import ExpressionFormat


def encoded(form: ExpressionFormat, fiber: Fiber, outer: Outer) -> Units:
    """`Format.encoded` of a format that has a code."""
    slots, length = fiber.slots, fiber.length
    held = slots * fiber.occupied
    if form.padded:
        held = np.maximum(held, fiber.fibers * fiber.longest)
    bits, even = np.zeros(len(length)), np.zeros(len(length), dtype=bool)
    readable: Array | bool = True
    listed, fibers = form._listed(outer), fiber.fibers
    if form.group > 1:
        count, groups = np.ceil(length / form.group), form._group_list(outer)
        some = np.minimum(slots * fiber.groups, fibers * count)
        shape = count, name_bits(count), fiber.offset_bits, fiber.groups / count
        width, count_bits = (form._widths(text, *shape) for text in (form._group_entry, form._count(groups)))
        each, whole = held / np.maximum(slots * count, 1e-300), length % np.minimum(length, form.group) == 0
        even = whole & (fiber.groups >= count * (1.0 - 1e-12)) & (np.abs(each - np.round(each)) < 1e-9)
        known = Expected(fibers, slots, count, some, width, count_bits, even)
        bits, readable = bits_of(groups, known), groups.readable(known)
        fibers = fibers * count if groups.complete else some
        slots, length = slots * count, np.minimum(length, form.group)
    shape = length, name_bits(length) if form.group > 1 else fiber.coord_bits, fiber.offset_bits, fiber.usual
    width, count_bits = (form._widths(text, *shape) for text in (form._entry, form._count(listed)))
    known = Expected(fibers, slots, length, held, width, count_bits, even)
    return Units(bits + bits_of(listed, known), 1.0, readable=readable & listed.readable(known))


def bits_of(listed: PositionList, known: Expected) -> Array:
    """Expected bits of all fibers, (N,)."""
    if isinstance(listed, Mask):
        return known.fibers * known.length * known.width
    if isinstance(listed, Coordinates):
        return known.entries * known.width + _header(listed, known, known.width)
    if not isinstance(listed, Runs):
        return np.zeros(len(known.fibers))
    filled = np.clip(known.entries / (known.slots * known.length), 0.0, 1.0)
    told, width = listed.ended or listed.end != "length", np.maximum(known.width, 1.0)
    each = runs.tokens(known.length, filled, width, told, known.slots * known.length)
    of_none = 0.0 if told else np.ceil(known.length / (2.0**width - 1.0))
    written = np.maximum(known.slots * each - (known.slots - known.fibers) * of_none, 0.0)
    return written * known.width + _header(listed, known, known.width)


def _header(listed: Counted, known: Expected, entry_bits: Array) -> Array:
    """Expected bits of what tells the ends."""
    if not listed.told:
        return np.zeros(len(known.fibers))
    if listed.end == "marker":
        return known.fibers * entry_bits
    counts = known.fibers * known.count_bits
    if listed.end == "same":
        return np.minimum(known.fibers, 1.0) * known.count_bits
    return np.where(known.even, 0.0, counts) if listed.end == "even" else counts
