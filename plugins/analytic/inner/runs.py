"""`intersection`: runs of empty positions, longer where an operand's empty word stays for several steps."""

from __future__ import annotations

from sparsemap.inner.numbers import power
from sparsemap.inner.primitives import floor, inf, whole
from sparsemap.inner.types import Real, Whole

from .design import OneDesign
from .facts import Facts
from .records import FigureTables
from .sharing import couple_words, own_extents, some_work
from .stored import positive

TERMS = 16.0
"""Lengths of runs beyond two blocks taken one by one; further lengths are a geometric series."""
MOST_TERMS = 1024.0


def passed(positions: Real, taken: Real, width: Real) -> Real:
    """Cycles of a unit passing `positions`: one per position taken, and one per `width` empty positions in a run.

    With a share x taken, each with the same probability: positions x / (1 - (1 - x)^width), at least positions / width."""
    if not width < inf or not positions > 0.0:
        return taken
    x = min(1.0, taken / positions)
    seen = x * width if x * width < 1e-6 else 1.0 - power(1.0 - x, width)  # the difference would be noise
    each = x / positive(seen) if x > 0.0 else 1.0 / width
    return max(taken, positions * each)


def passed_runs(positions: Real, taken: Real, width: Real, stay: Real, chance: Real) -> Real:
    """As `passed`, for positions in blocks of `stay`, a share `chance` of the blocks with any work. At least as long as
    without blocks."""
    least = passed(positions, taken, width)
    if not (width < inf and positions > 0.0 and taken > 0.0 and stay > 1.0 and chance < 1.0):
        return least
    x = min(1.0, taken / positions)
    chance = max(chance, x)
    empty = 1.0 - x / chance
    block = 1.0 - chance + chance * power(empty, stay)
    runs = 0.0
    longer = 0.0
    for j in range(whole(min(TERMS + 2.0 * stay / width, MOST_TERMS))):
        length = (j + 1.0) * width
        if length > positions:
            longer = 0.0
            break
        longer = as_long(length, stay, chance, empty, block)
        runs += longer
    ratio = power(block, width / stay)
    if longer > 0.0 and ratio < 1.0:
        runs += longer * ratio / (1.0 - ratio)
    return min(max(least, taken * (1.0 + runs)), positions)


def as_long(length: Real, stay: Real, chance: Real, empty: Real, block: Real) -> Real:
    """Probability that `length` empty positions or more follow a position with work, wherever this lies in its block.
    `empty`: of a position in a block with work; `block`: of a whole block."""
    blocks = floor(length / stay)
    rest = length - blocks * stay
    near = power(empty, rest)
    turn = 1.0 if not empty > 0.0 else (1.0 - near * empty) / positive(1.0 - empty)
    if blocks == 0.0:
        return ((1.0 - chance) * turn + chance * (rest + 1.0) * near + (stay - 1.0 - rest) * near) / stay
    far = power(empty, stay)
    over = 0.0 if not empty > 0.0 else (near * empty - far) / positive(1.0 - empty)
    first = (1.0 - chance) * turn + chance * (rest + 1.0) * near
    second = (1.0 - chance) * over + chance * (stay - 1.0 - rest) * far * near
    return power(block, blocks - 1.0) * (block * first + second) / stay


def steps_of_word(m: Facts, x: OneDesign, t: Whole) -> Real:
    """Steps over which a word of tensor t stays at the units."""
    found = 1.0
    for p in range(x.loops):
        if x.loop_spatial[p]:
            continue
        if m.relevant[t, x.loop_dim[p]]:
            return found
        found *= x.loop_bound[p]
    return found


def find_blocks(m: Facts, k: FigureTables, x: OneDesign) -> None:
    """`stay` and `stay_share`: steps of blocks over which some thinning operands stay, and the share of these blocks with
    a nonzero of all of them, for any of the units stepping together."""
    x.stay = inf
    x.stay_share = 1.0
    if couple_words(m, x) > 0.0:
        for a in range(x.alongs):
            x.along_bound[a] = 1.0
    own_extents(m, x)
    for i in range(m.operand.shape[0]):
        steps = steps_of_word(m, x, m.operand[i])
        if x.looks[i] < inf and steps > 1.0:
            x.stay = min(x.stay, steps)
            x.stay_share *= some_work(m, k, x, i)
