"""Steps of the lower bound over all tiles of a problem (`bound_tiles.py`, `bound_inner.py`)."""

from __future__ import annotations

from sparsemap.inner.primitives import inf
from sparsemap.inner.types import Flags, Flags2, Real, Reals, Reals2, Reals3, Whole, Wholes, Wholes2

__all__ = ["beaten", "least_delivered", "least_in_classes", "least_inside"]


def least_inside(
    values: Reals, sizes: Wholes, pairs: Wholes2, ends: Wholes, taken: Flags, smaller: Whole, less: Reals
) -> None:
    """Replace `values` (n,) in place by the minimum over all tiles inside each tile, in C order of `sizes` (D,)
    options.

    For dimension d, rows of `pairs` up to ends[d] hold the place of an option and of an option smaller by a prime
    factor, ascending. `taken` (D,): dimensions allowed to shrink. Dimension `smaller` (-1: none) has to shrink. `less`
    (n,) is scratch."""
    block = values.shape[0]
    first = 0
    for d in range(sizes.shape[0]):
        run = block // sizes[d]
        if taken[d]:
            if d == smaller:
                for i in range(values.shape[0]):
                    less[i] = inf
            for group in range(values.shape[0] // block):
                for i in range(first, ends[d]):
                    own = group * block + pairs[i, 0] * run
                    other = group * block + pairs[i, 1] * run
                    if d == smaller:
                        for k in range(run):
                            less[own + k] = min(less[own + k], values[other + k])
                            values[own + k] = min(values[own + k], less[own + k])
                    else:
                        for k in range(run):
                            values[own + k] = min(values[own + k], values[other + k])
            if d == smaller:
                for i in range(values.shape[0]):
                    values[i] = less[i]
        block = run
        first = ends[d]


def least_in_classes(
    energy: Reals3, tile: Wholes, loop: Wholes, again: Reals2, own: Reals2, still: Reals2, moves: Flags2, sizes: Wholes,
    pairs: Wholes2, ends: Wholes, taken: Flags, values: Reals, less: Reals, best: Reals, found: Reals2,
) -> None:  # fmt: skip
    """Minimum `found` (K, N) by class, a `tile` (N,) with the `loop` innermost around it, of `energy` (K, D, n) of the
    tiles inside.

    For each of T tensors: `again` (T, n) is the pJ if reloaded with every tile of the level, `own` (T, N) the pJ if
    stationary. `still` (D, T) is the part already in `energy` where loop d inside does not move the tensor, by `moves`
    (T, D). Scratch: (D,), and three times (n,)."""
    n = values.shape[0]
    for k in range(found.shape[0]):
        for i in range(n):
            best[i] = inf
        for j in range(tile.shape[0]):
            found[k, j] = energy[k, loop[j], tile[j]]
        for d in range(sizes.shape[0]):
            for e in range(sizes.shape[0]):
                taken[e] = 1
            for i in range(n):
                values[i] = energy[k, d, i]
            least_inside(values, sizes, pairs, ends, taken, d, less)
            for t in range(moves.shape[0]):
                if not moves[t, d]:
                    for i in range(n):
                        values[i] += max(0.0, again[t, i] - still[d, t])
            for i in range(n):
                best[i] = min(best[i], values[i])
            for t in range(moves.shape[0]):
                if not moves[t, d]:
                    for e in range(sizes.shape[0]):
                        taken[e] = 1 - moves[t, e]
                    for i in range(n):
                        values[i] = energy[k, d, i]
                    least_inside(values, sizes, pairs, ends, taken, d, less)
                    for j in range(tile.shape[0]):
                        found[k, j] = min(found[k, j], values[tile[j]] + max(0.0, own[t, j] - still[d, t]))
        for j in range(tile.shape[0]):
            found[k, j] = min(found[k, j], best[tile[j]])


def least_delivered(
    words: Reals, widths: Reals2, extents: Reals2, loops: Reals2, turns: Reals2, ranks: Wholes2, moves: Flags,
    single: Whole, found: Reals2,
) -> None:  # fmt: skip
    """Minimum words delivered (D, n), by innermost loop (`bound_tiles.delivered`).

    `words`, `widths` (R, n) describe tiles with `extents`, inside `loops` with `turns`, (D, n). `ranks` (R, 4):
    dimension and coefficient of two terms, dimension -1 for none. `moves` (D,): dimensions moving the tensor."""
    for i in range(words.shape[0]):
        anew = 1.0
        for r in range(ranks.shape[0]):
            every = loops[ranks[r, 0], i]
            if ranks[r, 2] >= 0:
                other = loops[ranks[r, 2], i]
                idlest = min(every, other)
                alike = ranks[r, 1] * extents[ranks[r, 0], i] == ranks[r, 3] * extents[ranks[r, 2], i]
                every = idlest if idlest > 1.0 and (not single or alike) else every * other
            anew *= every
        steps = 1.0
        for d in range(moves.shape[0]):
            steps *= loops[d, i] if moves[d] else turns[d, i]
        for d in range(moves.shape[0]):
            found[d, i] = words[i] * anew
        for r in range(ranks.shape[0]):
            for term in range(2):
                if ranks[r, 2 * term] >= 0:
                    uncover(words, widths, extents, loops, ranks, single, steps, r, 2 * term, i, found)


def uncover(
    words: Reals, widths: Reals2, extents: Reals2, loops: Reals2, ranks: Wholes2, single: Whole, steps: Real, r: Whole,
    term: Whole, i: Whole, found: Reals2,
) -> None:  # fmt: skip
    """Minimum words of tile i with the loop along a term of rank r innermost: each of the loop's steps delivers only
    the uncovered words."""
    d = ranks[r, term]
    other = ranks[r, 2 - term]
    along = loops[d, i]
    step = ranks[r, term + 1] * extents[d, i]
    if other >= 0 and not (single and along > 1.0 and ranks[r, 3 - term] * extents[other, i] != 2.0 * step):
        along *= loops[other, i]
    uncovered = words[i] * min(1.0, step / widths[r, i])
    found[d, i] = steps / along * (words[i] + (along - 1.0) * uncovered)


def beaten(rows: Reals2, found: Flags) -> None:
    """Flag columns (n,) of `rows` (m, n) dominated by another column: nowhere above, and below in some row or earlier."""
    for i in range(found.shape[0]):
        found[i] = 0
        for j in range(found.shape[0]):
            less = 1 if j < i else 0
            above = 0
            for r in range(rows.shape[0]):
                if rows[r, j] > rows[r, i]:
                    above = 1
                    break
                if rows[r, j] < rows[r, i]:
                    less = 1
            if less and not above:
                found[i] = 1
                break
