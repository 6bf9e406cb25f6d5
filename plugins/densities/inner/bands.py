"""Occupancies of the blocks of bands together: sums of independent values, as values and probabilities (`atoms.py`)."""

from __future__ import annotations

from sparsemap.inner.numbers import exp
from sparsemap.inner.primitives import inf
from sparsemap.inner.types import Real, Reals, Whole, Wholes, Wholes2

__all__ = ["NEVER", "join", "place", "share_of"]

NEVER = 1e-22
"""A probability counted as zero."""


def join(
    states: Wholes, x: Wholes, p: Reals, draws: Wholes2, chance: Reals, blocks: Wholes, y: Wholes, q: Reals, last: Whole,
    dense: Reals, ends: Wholes, out_x: Wholes, out_p: Reals,
) -> Whole:  # fmt: skip
    """Add one footprint to a band. With j kept blocks so far, a band holds `x` with probability `p`, from `states[j]`
    to `states[j + 1]`. A row of `draws` (j, 3) gives the footprint's first number of kept blocks, and start and end of
    the probabilities in `chance`. A number n of blocks holds `y` with probability `q`, from `blocks[n]` to `blocks[n +
    1]`.

    Results go to `out_x`, `out_p` up to `ends`, by number of kept blocks or, for the `last` footprint, in total.
    Returns -1 if these arrays are too short. Scratch: `dense`, zeros."""
    at = 0
    for target in range(ends.shape[0]):
        least, most = dense.shape[0], -1
        for kept in range(states.shape[0] - 1):
            for j in range(draws[kept, 1], draws[kept, 2]):
                count = draws[kept, 0] + j - draws[kept, 1]
                if last == 0 and kept + count != target:
                    continue
                for m in range(blocks[count], blocks[count + 1]):
                    for i in range(states[kept], states[kept + 1]):
                        value = x[i] + y[m]
                        dense[value] += p[i] * (chance[j] * q[m])
                        least = min(least, value)
                        most = max(most, value)
        if at + most - least + 1 > out_x.shape[0]:
            return -1
        for value in range(least, most + 1):
            if dense[value] > NEVER:
                out_x[at] = value
                out_p[at] = dense[value]
                at += 1
            dense[value] = 0.0
        ends[target] = at
    return at


def place(
    x: Wholes, p: Reals, times: Whole, share: Real, step: Whole, first: Whole, size: Whole, out: Reals, after: Reals
) -> None:
    """Add shares of probabilities at `times` x to the nearest places `step` apart, modulo `size`, from `first` on.

    The lower place goes to `out`, the upper to `after`."""
    for i in range(x.shape[0]):
        held = x[i] * times
        at = held // step
        rest = held - at * step
        chance = p[i] * share
        part = rest / (1.0 * step)
        out[first + (at & (size - 1))] += chance * (1.0 - part)
        after[first + ((at + 1) & (size - 1))] += chance * part


def share_of(whole: Reals, part: Reals) -> Real:
    """The sum of e^part over the sum of e^whole, (n,) each; -1 if all underflow."""
    top = -inf
    for i in range(whole.shape[0]):
        top = max(top, whole[i])
    if top == -inf:
        return -1.0
    over, under = 0.0, 0.0
    for i in range(whole.shape[0]):
        over += exp(part[i] - top)
        under += exp(whole[i] - top)
    return over / under
