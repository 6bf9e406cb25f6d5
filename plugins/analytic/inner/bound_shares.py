"""Minimum over all ways to share a fan-out among the children of a level: a step of the lower bound (`bound_inner.py`)."""

from __future__ import annotations

from sparsemap.inner.primitives import inf, whole
from sparsemap.inner.types import Flags, Flags2, Real, Reals, Reals2, Reals3, Whole, Wholes, Wholes2

__all__ = [
    "Shares", "filtered_pj", "fitting_tiles", "handed_pj", "kept_share", "least_shared", "least_sums", "operands_pj",
    "widths_pj",
]  # fmt: skip

BITS = 0
CHILD = 1
PJ = 2
EVERY_PJ = 3
EVERY_BITS = 4
EVERY_CHILD = 5
LOG_WORDS = 6
"""Planes of a tensor: bits, words and pJ of another child. With filters also: pJ, bits and words without filters, and
log2 of words."""
WIRES = 0
OTHERS = 1
"""Columns of a tensor's way: pJ per bit for the copies of a word, number of copies minus 1; then log2 of loop bounds."""


class Shares:
    """W ways to share a fan-out, and n tiles held by all children together."""

    tiles: Wholes
    """(n,) indices among all N tiles."""
    possible: Flags2
    """(D, n) whether a loop may be innermost around a tile."""
    base: Reals2
    """(D, n) pJ independent of the way, by innermost loop."""
    log_extents: Reals2
    """(D, n) log2 of the extents."""
    tier: Wholes
    """(W,) row of `least_shared` for a way."""
    rows: Wholes2
    """(W, D) rows of `places` adding up to the tile of a child."""
    places: Wholes2
    """(E, n) contributions to the index of a child's tile."""
    fits: Flags
    """(N,) whether a child can hold the tile."""
    some: Flags
    """(W,) scratch: whether any tile of a block fits."""
    widths: Reals
    """The table `LeastUnits.widths`."""
    sizes: Reals
    """(D,) sizes of this table's axes; (0,) without the table."""
    logs: Reals2
    """(D, n) log2 of extents, rounded down: arguments of the table."""
    each: Reals2
    """(W, D) log2 of the children, to subtract."""
    told_alone: Reals
    """The table `LeastUnits.told_alone`."""
    told: Reals
    """The table `LeastUnits.told`."""
    told_sizes: Reals
    """(2,) sizes of both tables' axes; (0,) without the tables."""
    log_words: Reals2
    """(2, n) log2 of operands' words: arguments of both tables."""
    cut: Reals2
    """(W, 2) log2 of the largest number of parts, to subtract."""
    unit: Reals2
    """(W, block) scratch: pJ of accesses next to the compute units."""
    columns: Reals3
    """(planes, D, n) planes of all tensors received by children, tensor after tensor."""
    planes: Wholes
    """(T,) first plane of each tensor."""
    filtered: Flags
    """(T,) whether filters hold back words for the tiles."""
    moves: Flags2
    """(T, D) whether a loop moves the tensor."""
    ways: Reals2
    """(rows, C) distinct ways, tensor after tensor."""
    ends: Wholes
    """(T,) end of each tensor's rows."""
    alike: Wholes
    """(rows,) the first row with the same share left by filters."""
    which: Wholes2
    """(W, T) row of each way by tensor; padded to (W, 3) with the row of zeros behind all others."""
    plan: Wholes
    """Filters and leaders (`LeastAccesses.plan`), tensor after tensor."""
    chances: Reals
    """Tables of probabilities, tensor after tensor."""
    plans: Wholes2
    """(T, 2) starts of a tensor in `plan` and `chances`."""
    log_computes: Reals
    """(T,) log2 of the accesses if every compute made its own."""
    share: Reals2
    """(rows, block) scratch: share left by filters."""
    term: Reals2
    """(rows + 2, block) scratch: pJ of a tensor."""
    rank: Reals2
    """(3, block) scratch."""
    best: Reals2
    """(K, block) scratch: minimum of a tier."""


def least_shared(x: Shares, energy: Reals3) -> None:
    """Minimum pJ (K, D, N) over all ways to share the fan-out, for the tiles held by all children of a level together,
    by innermost loop around them."""
    n = x.tiles.shape[0]
    size = x.best.shape[1]
    for block in range((n + size - 1) // size):
        first = block * size
        count = min(size, n - first)
        fitting_tiles(first, count, x.rows, x.places, x.fits, x.some, x.unit)
        if x.sizes.shape[0]:
            widths_pj(first, count, x.some, x.widths, x.sizes, x.logs, x.each, x.unit)
        if x.told_sizes.shape[0]:
            operands_pj(first, count, x.some, x.told_alone, x.told, x.told_sizes, x.log_words, x.cut, x.unit)
        for d in range(x.base.shape[0]):
            start = 0
            for t in range(x.planes.shape[0]):
                if x.filtered[t] and x.moves[t, d]:
                    for q in range(start, x.ends[t]):
                        if x.alike[q] == q:
                            kept_share(
                                first, count, q, x.ways, x.log_extents, x.columns, x.planes[t], d, x.plan, x.plans[t, 0],
                                x.chances, x.plans[t, 1], x.log_computes[t], x.rank, x.share,
                            )  # fmt: skip
                    filtered_pj(
                        first, count, start, x.ends[t], x.ways, x.alike, x.columns, x.planes[t], d, x.share, x.term
                    )
                else:
                    handed_pj(first, count, start, x.ends[t], x.ways, x.columns, x.planes[t], d, x.term)
                start = x.ends[t]
            least_sums(first, count, d, x.tier, x.some, x.which, x.base, x.unit, x.term, x.best)
            for k in range(x.best.shape[0]):
                for b in range(count):
                    if x.possible[d, first + b]:
                        energy[k, d, x.tiles[first + b]] = x.best[k, b]


def fitting_tiles(
    first: Whole, count: Whole, rows: Wholes2, places: Wholes2, fits: Flags, some: Flags, unit: Reals2
) -> None:
    """Set `unit` to 0 where a child can hold its tile of a block, else infinity; set `some` where any tile fits."""
    for w in range(rows.shape[0]):
        some[w] = 0
        for b in range(count):
            tile = 0
            for d in range(rows.shape[1]):
                tile += places[rows[w, d], first + b]
            unit[w, b] = 0.0 if fits[tile] else inf
            some[w] = some[w] | fits[tile]


def widths_pj(
    first: Whole, count: Whole, some: Flags, widths: Reals, sizes: Reals, logs: Reals2, each: Reals2, unit: Reals2
) -> None:
    """Add pJ of accesses next to the units, by the extents of a child's tile."""
    for w in range(some.shape[0]):
        if some[w]:
            for b in range(count):
                at = 0.0
                for d in range(sizes.shape[0]):
                    at = at * sizes[d] + min(max(logs[d, first + b] - each[w, d], 0.0), sizes[d] - 1.0)
                unit[w, b] += widths[whole(at)]


def operands_pj(
    first: Whole, count: Whole, some: Flags, alone: Reals, told: Reals, sizes: Reals, log_words: Reals2, cut: Reals2,
    unit: Reals2,
) -> None:  # fmt: skip
    """Add pJ of accesses next to the units, by the operand words in a child's tile."""
    for w in range(some.shape[0]):
        if some[w]:
            for b in range(count):
                at = 0.0
                for i in range(2):
                    step = 2.0 * (log_words[i, first + b] - cut[w, i] - 1e-9)
                    at = at * sizes[i] + whole(min(max(step, 0.0), sizes[i] - 1.0))
                unit[w, b] = max(unit[w, b] + alone[whole(at)], told[whole(at)])


def handed_pj(
    first: Whole,
    count: Whole,
    start: Whole,
    end: Whole,
    ways: Reals2,
    columns: Reals3,
    plane: Whole,
    d: Whole,
    term: Reals2,
) -> None:
    """pJ of a tensor without filters, for rows `start` to `end` of its ways."""
    for q in range(start, end):
        for b in range(count):
            bits = columns[plane + BITS, d, first + b]
            term[q, b] = bits * ways[q, WIRES] + ways[q, OTHERS] * columns[plane + CHILD, d, first + b]


def kept_share(
    first: Whole, count: Whole, q: Whole, ways: Reals2, log_extents: Reals2, columns: Reals3, plane: Whole, d: Whole,
    plan: Wholes, at: Whole, chances: Reals, table: Whole, log_computes: Real, rank: Reals2, share: Reals2,
) -> None:  # fmt: skip
    """Share of the accesses to words left by filters in way q."""
    for b in range(count):
        share[q, b] = 1.0
    actions = plan[at]
    at += 1
    for _ in range(actions):
        for b in range(count):
            rank[0, b] = 1.0
        leaders = plan[at]
        at += 1
        for _ in range(leaders):
            start = table + plan[at]
            last = plan[at + 1] - 1.0
            ranks = plan[at + 3]
            for b in range(count):
                words = log_computes - columns[plane + LOG_WORDS, d, first + b]
                rank[1, b] = max(0.0, words) if plan[at + 2] else 0.0
            at += 4
            for _ in range(ranks):
                dims = plan[at]
                at += 1
                for b in range(count):
                    rank[2, b] = 0.0
                for _ in range(dims):
                    for b in range(count):
                        rank[2, b] = max(rank[2, b], log_extents[plan[at], first + b] - ways[q, plan[at + 1]])
                    at += 2
                for b in range(count):
                    rank[1, b] += rank[2, b]
            for b in range(count):
                step = whole(min(last, 8.0 * max(0.0, rank[1, b] - 1e-6)))
                rank[0, b] *= chances[start + step]
        for b in range(count):
            share[q, b] = min(share[q, b], rank[0, b])


def filtered_pj(
    first: Whole, count: Whole, start: Whole, end: Whole, ways: Reals2, alike: Wholes, columns: Reals3, plane: Whole,
    d: Whole, share: Reals2, term: Reals2,
) -> None:  # fmt: skip
    """pJ of a tensor with filters, for rows `start` to `end` of its ways. Filters leave at least the share left with
    every word going to one child."""
    for q in range(start, end):
        for b in range(count):
            i = first + b
            every = columns[plane + EVERY_PJ, d, i]
            least = min(1.0, columns[plane + PJ, d, i] / max(every, 1e-300))
            every += (
                columns[plane + EVERY_BITS, d, i] * ways[q, WIRES]
                + ways[q, OTHERS] * columns[plane + EVERY_CHILD, d, i]
            )
            term[q, b] = min(1.0, max(share[alike[q], b], least)) * every


def least_sums(
    first: Whole, count: Whole, d: Whole, tier: Wholes, some: Flags, which: Wholes2, base: Reals2, unit: Reals2,
    term: Reals2, best: Reals2,
) -> None:  # fmt: skip
    """Minimum pJ of every tier with loop d innermost, for a block of tiles."""
    for k in range(best.shape[0]):
        for b in range(count):
            best[k, b] = inf
    for w in range(tier.shape[0]):
        if some[w]:
            k = tier[w]
            third = which[w, 2]
            if which.shape[1] > 3:
                third = term.shape[0] - 1
                for b in range(count):
                    term[third, b] = term[which[w, 2], b]
                for t in range(3, which.shape[1]):
                    for b in range(count):
                        term[third, b] += term[which[w, t], b]
            for b in range(count):
                sum = base[d, first + b] + unit[w, b] + term[which[w, 0], b] + term[which[w, 1], b] + term[third, b]
                best[k, b] = min(best[k, b], sum)
