"""Counts by programs: steps of an operation and its operand, for a stack of rows of points (`fiber_codes.py`)."""

from __future__ import annotations

from .fiber_codes import FIBERS_AT, NAMES, OCCUPIED_AT, OFFSET_BITS, PROGRAM_STEPS, STACK
from .primitives import ceil, floor, whole
from .types import Real, Reals2, Whole

A_QUANTITY = 1
A_NUMBER = 2
PLUS = 3
MINUS = 4
TIMES = 5
OVER = 6
ROUND_UP = 7
ROUND_DOWN = 8
LESSER = 9
"""Operations: push a quantity or a number, combine the top two, round the top; 0: the end, 10: the greater."""
OF_FIBERS = 0
OF_LENGTH = 1
OF_OCCUPIED = 2
OF_NAMES = 3
OF_OFFSETS = 4
OF_SLOTS = 5
"""Quantities, by the names of `Fiber`; 6: positions of the fullest fiber."""


def run_program(
    codes: Reals2, c: Whole, start: Whole, told: Reals2, row: Whole, slots: Real, length: Real, longest: Real, x: Reals2,
    count: Whole, out: Whole,
) -> None:  # fmt: skip
    """Computes row `out` of points by a program: pairs of an operation and its operand, on a stack."""
    top = STACK - 1
    for step in range(PROGRAM_STEPS):
        kind = whole(codes[c, start + 2 * step])
        if kind == 0:
            break
        value = codes[c, start + 2 * step + 1]
        if kind == A_QUANTITY and (value in (OF_FIBERS, OF_OCCUPIED)):
            top += 1
            known = FIBERS_AT if value == OF_FIBERS else OCCUPIED_AT
            for i in range(count):
                x[top, i] = x[known, i]
        elif kind <= A_NUMBER:
            top += 1
            if kind == A_QUANTITY:
                value = quantity(value, told, row, slots, length, longest)
            for i in range(count):
                x[top, i] = value
        elif kind == ROUND_UP:
            for i in range(count):
                x[top, i] = ceil(x[top, i])
        elif kind == ROUND_DOWN:
            for i in range(count):
                x[top, i] = floor(x[top, i])
        else:
            top -= 1
            combine(kind, x, top, count)
    for i in range(count):
        x[out, i] = x[STACK, i]


def quantity(which: Real, told: Reals2, row: Whole, slots: Real, length: Real, longest: Real) -> Real:
    """A quantity of a program other than fibers and occupied positions."""
    if which == OF_LENGTH:
        return length
    if which == OF_NAMES:
        return told[row, NAMES]
    if which == OF_OFFSETS:
        return told[row, OFFSET_BITS]
    return slots if which == OF_SLOTS else longest


def combine(kind: Whole, x: Reals2, at: Whole, count: Whole) -> None:
    """Combines two rows of the stack, at `at` and above, into row `at`."""
    if kind == PLUS:
        for i in range(count):
            x[at, i] = x[at, i] + x[at + 1, i]
    elif kind == MINUS:
        for i in range(count):
            x[at, i] = x[at, i] - x[at + 1, i]
    elif kind == TIMES:
        for i in range(count):
            x[at, i] = x[at, i] * x[at + 1, i]
    elif kind == OVER:
        for i in range(count):
            x[at, i] = x[at, i] / x[at + 1, i]
    elif kind == LESSER:
        for i in range(count):
            x[at, i] = min(x[at, i], x[at + 1, i])
    else:
        for i in range(count):
            x[at, i] = max(x[at, i], x[at + 1, i])
