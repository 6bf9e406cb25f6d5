"""Expected bits of fibers coded by lists of positions (docs/model.md, section 6.2).

A fiber lists its positions as nothing, a bit for each, a coordinate for each, or a run before each. With groups, a
first list has the groups and a second list the positions of each group. `codec.py` of a format writes the expected bits
of these sums. Quantities are per point, for N points: (ROWS, N) with a row for each; quantities common to all points
are separate arguments."""

from __future__ import annotations

from .primitives import ceil, floor, two_to
from .run_tokens import best_width, tokens
from .types import Real, Reals2, Whole

__all__ = [
    "CODE", "COMPRESSED", "COUNTED", "COUNT_BITS", "GROUPS_OF", "INNER", "NAMES", "OFFSET_BITS", "PROGRAMS",
    "PROGRAM_STEPS", "ROWS", "TOLD", "UPPER_BITS", "UPPER_NAMES", "UPPER_WIDTH", "WIDTHS",
    "code_bits_of_each",
]  # fmt: skip

MASK = 1
COORDINATES = 2
RUNS = 3
"""Kinds of lists; 0: all positions are stored."""
MARKER = 1
SAME = 2
EVEN = 3
COUNT = 4
"""Marks of the end of a fiber: an entry of the list, one count for all fibers, a count unless groups are equally full,
a count, or (5) a count in the rank above; 0: no mark."""

GROUPED = 0
UPPER = 1
UPPER_END = 2
UPPER_ALL_FILLED = 3
LIST = 4
END = 5
ALL_FILLED = 6
ENDED = 7
PADDED = 8
COMPRESSED = 9
CHOOSES = 10
COUNTED = 11
PROGRAMS = 12
PROGRAM_STEPS = 16
CODE = PROGRAMS + 4 * PROGRAM_STEPS
"""Numbers of a code. With groups: a flag, the kind of their list, its end, and whether every fiber has a non-empty
group. The same for the list of positions in a fiber or group. Then: whether ends are known from outside; flags of the
format; whether the entry width is chosen for the shortest runs; whether two programs, stored behind, count metadata and
payload."""

UPPER_WIDTH = 0
UPPER_BITS = 1
UPPER_NAMES = 2
GROUPS_OF = 3
INNER = 4
NAMES = 5
COUNT_BITS = 6
OFFSET_BITS = 7
WIDTHS = 8
TOLD = WIDTHS + 6
"""Numbers for a code from a fiber of some length. For the list of groups: bits of an entry (-1: width for the shortest
runs), bits of the count, bits to name a group. Then: number of groups; positions of a group, bits to name a position;
bits of the count; bits to name a place in the tile below; bits of an entry, for shortest runs with 1, 2, 4, 8, 16 or 32
bits. For a counted format `WIDTHS` and `COUNT_BITS` are the bits of a unit of metadata and payload."""

FIBERS_AT = 0
OCCUPIED_AT = 1
GROUPS_AT = 2
CHANCE_AT = 3
BITS_AT = 4
PAYLOAD_AT = 5
OFFSETS_AT = 6
EVEN_AT = 7
ENTRIES_AT = 8
THERE_AT = 9
SOME_AT = 10
STACK = 11
ROWS = STACK + PROGRAM_STEPS
"""Rows of points: stored fibers, non-empty positions per fiber, non-empty groups per fiber, the probability of the
point; bits or units of metadata, of payload, and offsets; whether groups are equally full; entries, lists and groups
stored; and the stack of a program."""


def header(end: Real, fibers: Real, width: Real, count_bits: Real, even: Real) -> Real:
    """Bits of the marks for the ends of fibers."""
    if end == MARKER:
        return fibers * width
    if end == SAME:
        return min(fibers, 1.0) * count_bits
    if end >= COUNT or (end == EVEN and even == 0.0):
        return fibers * count_bits
    return 0.0


def readable(
    kind: Real, end: Real, filled: Real, length: Real, width: Real, count_bits: Real, even: Real
) -> Whole:  # fmt: skip
    """Whether the fields of a list are wide enough for every fiber of this length."""
    if end >= SAME and not (end == EVEN and even != 0.0) and not power_of_two(count_bits) > length - filled:
        return 0
    if kind == COORDINATES:
        return 1 if power_of_two(width) >= length + (1.0 if end == MARKER else 0.0) else 0
    return 1 if kind == 0 or width >= 1.0 else 0


def power_of_two(bits: Real) -> Real:
    """2^bits for bits from 0 on."""
    return two_to(min(bits, 1023.0))


def list_bits(
    kind: Real, end: Real, ended: Real, slots: Real, length: Real, width: Real, count_bits: Real, x: Reals2,
    fibers: Whole, entries: Whole, first: Whole, stop: Whole,
) -> None:  # fmt: skip
    """Adds the bits of the lists of all fibers, from rows `fibers` and `entries` of the points `first` to `stop`."""
    if kind == MASK:
        for i in range(first, stop):
            x[BITS_AT, i] += x[fibers, i] * length * width
    elif kind == COORDINATES:
        for i in range(first, stop):
            x[BITS_AT, i] += x[entries, i] * width + header(end, x[fibers, i], width, count_bits, x[EVEN_AT, i])
    elif kind == RUNS:
        most = two_to(min(max(width, 1.0), 1023.0)) - 1.0
        of_none = 0.0 if ended != 0.0 else ceil(length / most)
        for i in range(first, stop):
            filled = min(max(x[entries, i] / (slots * length), 0.0), 1.0)
            each = tokens(length, filled, most, ended, slots * length)
            own = max(slots * each - (slots - x[fibers, i]) * of_none, 0.0) * width
            x[BITS_AT, i] += own + header(end, x[fibers, i], width, count_bits, x[EVEN_AT, i])


def code_bits(
    codes: Reals2, c: Whole, told: Reals2, row: Whole, slots: Real, length: Real, longest: Real, width: Real, x: Reals2,
    count: Whole,
) -> None:  # fmt: skip
    """Bits of metadata by code c for `slots` fibers, at `count` points, with entries of `width` bits."""
    groups = told[row, GROUPS_OF]
    inner = told[row, INNER]
    for i in range(count):
        x[BITS_AT, i] = 0.0
        x[EVEN_AT, i] = 0.0
        x[ENTRIES_AT, i] = slots * x[OCCUPIED_AT, i]
        x[THERE_AT, i] = x[FIBERS_AT, i]
    if codes[c, PADDED] != 0.0:
        for i in range(count):
            x[ENTRIES_AT, i] = max(x[ENTRIES_AT, i], x[FIBERS_AT, i] * longest)
    all_fibers = slots
    if codes[c, GROUPED] != 0.0:
        all_fibers = slots * groups
        equal = length - inner * floor(length / inner) == 0.0
        for i in range(count):
            x[SOME_AT, i] = min(slots * x[GROUPS_AT, i], x[FIBERS_AT, i] * groups)
            each = x[ENTRIES_AT, i] / max(slots * groups, 1e-300)
            if equal and x[GROUPS_AT, i] >= groups * (1.0 - 1e-12) and abs(each - floor(each + 0.5)) < 1e-9:
                x[EVEN_AT, i] = 1.0
            x[THERE_AT, i] = x[FIBERS_AT, i] * groups if codes[c, UPPER] == 0.0 else x[SOME_AT, i]
        upper_bits(codes, c, told, row, slots, x, count)
    kind = codes[c, LIST]
    list_bits(
        kind,
        codes[c, END],
        codes[c, ENDED],
        all_fibers,
        inner,
        width,
        told[row, COUNT_BITS],
        x,
        THERE_AT,
        ENTRIES_AT,
        0,
        count,
    )


def upper_bits(codes: Reals2, c: Whole, told: Reals2, row: Whole, slots: Real, x: Reals2, count: Whole) -> None:
    """Adds the bits of the list of groups."""
    kind, end, bits = codes[c, UPPER], codes[c, UPPER_END], told[row, UPPER_BITS]
    groups = told[row, GROUPS_OF]
    if told[row, UPPER_WIDTH] >= 0.0:
        list_bits(kind, end, 0.0, slots, groups, told[row, UPPER_WIDTH], bits, x, FIBERS_AT, SOME_AT, 0, count)
    else:
        for i in range(count):
            width = two_to(best_width(groups, x[GROUPS_AT, i] / groups, told[row, UPPER_NAMES]))
            list_bits(kind, end, 0.0, slots, groups, width, bits, x, FIBERS_AT, SOME_AT, i, i + 1)


def entry_width(codes: Reals2, c: Whole, told: Reals2, row: Whole, usual: Real) -> Real:
    """Bits of an entry of a list in a tensor with fill `usual`."""
    if codes[c, CHOOSES] == 0.0:
        return told[row, WIDTHS]
    return told[row, WIDTHS + best_width(told[row, INNER], usual, told[row, NAMES])]


def code_readable(codes: Reals2, c: Whole, told: Reals2, row: Whole, width: Real, even: Real) -> Whole:
    """Whether a decoder can read the output of code c."""
    if codes[c, GROUPED] != 0.0:
        upper = max(told[row, UPPER_WIDTH], 1.0 if told[row, UPPER_WIDTH] < 0.0 else 0.0)
        if not readable(
            codes[c, UPPER], codes[c, UPPER_END], codes[c, UPPER_ALL_FILLED], told[row, GROUPS_OF], upper,
            told[row, UPPER_BITS], even,
        ):  # fmt: skip
            return 0
    return readable(
        codes[c, LIST], codes[c, END], codes[c, ALL_FILLED], told[row, INNER], width, told[row, COUNT_BITS], even
    )


def code_bits_of_each(codes: Reals2, told: Reals2, fibers: Reals2, x: Reals2, out: Reals2) -> None:
    """Bits and readability, (2, N), of N fibers of all lengths by the code in row 0. `fibers` (7, N) holds `fibers`,
    `occupied`, `groups`, `slots`, `length`, `longest` and `usual` of `Fiber`; `told` (N, TOLD), x (ROWS, 1)."""
    for i in range(fibers.shape[1]):
        x[FIBERS_AT, 0] = fibers[0, i]
        x[OCCUPIED_AT, 0] = fibers[1, i]
        x[GROUPS_AT, 0] = fibers[2, i]
        width = entry_width(codes, 0, told, i, fibers[6, i])
        code_bits(codes, 0, told, i, fibers[3, i], fibers[4, i], fibers[5, i], width, x, 1)
        out[0, i] = x[BITS_AT, 0]
        out[1, i] = code_readable(codes, 0, told, i, width, x[EVEN_AT, 0])
