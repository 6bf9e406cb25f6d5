"""Gaussian processes over loop features and genes: forecasts of a design's score from the designs tried."""

from __future__ import annotations

from sparsemap.inner.numbers import decay
from sparsemap.inner.primitives import sqrt
from sparsemap.inner.types import Flags, Flags2, Real, Reals, Reals2, Reals3, Small3, Whole

__all__ = ["alike", "features", "reduce"]


def features(
    bounds: Reals3, order: Small3, moves: Flags2, spatial: Flags, over: Reals2, words: Reals2, out: Reals2
) -> None:
    """Features (n, F) of designs, see `Forecast`: from logarithms of bounds (L, D, n), orders (L, D, n), dimensions
    moving a tensor (T, D), and spatial levels (L,). Scratch: (T, L) twice."""
    levels, dims, tensors = bounds.shape[0], bounds.shape[1], moves.shape[0]
    for i in range(out.shape[0]):
        at = 0
        for level in range(levels):
            for d in range(dims):
                out[i, at] = bounds[level, d, i] / 2.0
                at += 1
        for level in range(levels):
            if spatial[level]:
                total = 0.0
                for d in range(dims):
                    total += bounds[level, d, i]
                out[i, at] = total
                at += 1
        for t in range(tensors):
            inner = 0.0
            for level in range(levels - 1, -1, -1):
                total = 0.0
                for d in range(dims):
                    if moves[t, d]:
                        total += bounds[level, d, i]
                over[t, level] = total
                inner += total
                words[t, level] = inner
        outermost = 1
        for level in range(levels + 1):
            if level < levels:
                if spatial[level]:
                    continue
                if outermost:
                    outermost = 0
                    continue
                for t in range(tensors):
                    out[i, at] = words[t, level]
                    at += 1
            for t in range(tensors):
                total = brought(bounds, order, moves, spatial, i, t, level, over)
                out[i, at] = total + words[t, level] if level < levels else total
                at += 1


def brought(
    bounds: Reals3, order: Small3, moves: Flags2, spatial: Flags, i: Whole, t: Whole, level: Whole, over: Reals2
) -> Real:
    """Logarithm of the number of deliveries of a tile of tensor t to `level`: over all outer temporal loops except the
    innermost not moving the tensor, and over all instances with different parts."""
    total = 0.0
    goes = 0
    for outside in range(level - 1, -1, -1):
        if spatial[outside]:
            continue
        for place in range(bounds.shape[1] - 1, -1, -1):
            d = order[outside, place, i]
            steps = bounds[outside, d, i]
            if moves[t, d] and steps > 0.0:
                goes = 1
            if goes:
                total += steps
    shared = 0.0
    for outside in range(level):
        if spatial[outside]:
            shared += over[t, outside]
    return total + shared


def alike(
    features: Reals2, columns: Reals2, lengths: Reals, genes: Reals2, reach: Real, apart: Real, slope: Real, scratch: Reals2,
    out: Reals2,
) -> None:  # fmt: skip
    """Similarity of the scores of N designs (N, k) to the first k designs, for these up to the diagonal: a Matern 3/2
    kernel of the distance between features (N, F) over `reach`, plus `slope` times a linear kernel (Rasmussen and
    Williams, 2006).

    Each differing gene (G, N) adds `apart` to the squared distance. `columns` (F, k): features of the first designs;
    `lengths` (N,): squared lengths of features. Scratch: (2, k)."""
    for i in range(features.shape[0]):
        n = min(i + 1, columns.shape[1])
        for j in range(n):
            scratch[0, j] = 0.0
            scratch[1, j] = 0.0
        for f in range(features.shape[1]):
            x = features[i, f]
            for j in range(n):
                scratch[0, j] += x * columns[f, j]
        for g in range(genes.shape[0]):
            own = genes[g, i]
            for j in range(n):
                scratch[1, j] += 1.0 if genes[g, j] != own else 0.0
        for j in range(n):
            squared = lengths[i] + lengths[j] - 2.0 * scratch[0, j] + apart * scratch[1, j]
            far = sqrt(squared if squared > 0.0 else 0.0) / reach
            out[i, j] = decay(far) * (1.0 + far) + slope * (scratch[0, j] + 1.0)


def reduce(rows: Reals2, columns: Reals2) -> None:
    """Multiply rows (m, n), of which the first n form a positive definite matrix L L', by the inverse of L', in place;
    entries above the diagonal are unchanged. Four columns at a time halve the memory traffic. Scratch: (n, n)."""
    for i in range(rows.shape[0]):
        count = min(i, rows.shape[1])
        end = min(i + 1, rows.shape[1])
        for start in range(0, count, 4):
            stop = min(start + 4, count)
            for k in range(start, stop):
                x = rows[i, k] / columns[k, k]
                rows[i, k] = x
                if i < rows.shape[1]:
                    columns[k, i] = x
                for j in range(k + 1, stop if stop == start + 4 else end):
                    rows[i, j] -= x * columns[k, j]
            if stop == start + 4:
                a, b, c, d = rows[i, start], rows[i, start + 1], rows[i, start + 2], rows[i, start + 3]
                for j in range(stop, end):
                    rows[i, j] = (
                        rows[i, j]
                        - a * columns[start, j]
                        - b * columns[start + 1, j]
                        - c * columns[start + 2, j]
                        - d * columns[start + 3, j]
                    )
        if i < rows.shape[1]:
            columns[i, i] = sqrt(rows[i, i])
            rows[i, i] /= columns[i, i]
