"""What `units.c` does with bins in which a format rounds (`bins`), in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsemap.pieces.contracts.base import Array

from .pieces import Pieces, Windows


def edge(windows: Windows, rank: Array, bin: Array) -> Array:
    """The lower end of a bin."""
    return windows.origin[rank] + windows.step[rank] * windows.store[windows.edges[rank] + bin]


def below(windows: Windows, rank: Array, y: Array) -> tuple[Array, Array]:
    """Probability of occupancies below y, and its density per sample there.

    In a sample, with t = -1/2..1/2, the density is taken as P + s t + c (t^2 - 1/12): P is the sample's
    probability, s and 2c are the central differences of first and second order.
    """
    t = (y - windows.origin[rank]) / windows.step[rank]
    i = np.clip(np.floor(t), 0, windows.samples[rank] - 1)
    t = t - i - 0.5
    at = windows.sums[rank] + i.astype(np.int64)
    one, two, three, four = (windows.store[at + j] for j in range(4))
    before, here, after = two - one, three - two, four - three
    slope, bend = (after - before) / 2, (after - 2 * here + before) / 2
    total = two + here * (t + 0.5) + slope * (t * t - 0.25) / 2 + bend * t * (t * t - 0.25) / 3
    return total, here + slope * t


def cut(
    windows: Windows, rank: Array, bin: Array, rises: Array, means: Array, occupied: Array,
    occupied_at: Callable[[Array, Array], Array],
) -> Pieces:  # fmt: skip
    """`pieces.cut`."""
    times = rises.astype(np.int64)
    at = np.repeat(np.arange(len(times)), times)
    step = np.arange(len(at)) - np.repeat(np.cumsum(times) - times, times)
    rank, bin, (k, next_k), (found, next_found) = rank[at], bin[at], means[:, at], occupied[:, at]
    value = np.ceil(found) + step
    grain = windows.grain[rank]
    first = np.floor((k + (value - found) / (next_found - found) * (next_k - k)) / grain) - 1.0
    near = ((first[:, None] + np.arange(4.0)) * grain[:, None]).ravel()
    passed = occupied_at(np.repeat(rank, 4), near).reshape(-1, 4) <= value[:, None]
    y = (first - 0.5 + passed.sum(axis=1)) * grain
    y = np.clip(y, edge(windows, rank, bin), edge(windows, rank, bin + 2))
    bin = bin + (y > edge(windows, rank, bin + 1))
    opens = np.ones(len(at), dtype=bool)
    opens[1:] = (rank[1:] != rank[:-1]) | (bin[1:] != bin[:-1])
    closes = np.append(opens[1:], True)
    left = np.append(0.0, y[:-1])
    left[opens] = edge(windows, rank[opens], bin[opens])
    left, right = np.append(left, y[closes]), np.append(y, edge(windows, rank[closes], bin[closes] + 1))
    rank, bin = np.append(rank, rank[closes]), np.append(bin, bin[closes])
    (low, low_density), (high, high_density) = below(windows, rank, left), below(windows, rank, right)
    # the center of gravity of a piece with a linear density, within the possible occupancies
    density = low_density + high_density
    tilt = np.where(density > 0.0, (high_density - low_density) / np.where(density > 0.0, density, 1.0), 0.0)
    margin = np.minimum(windows.grain[rank], right - left) / 2
    mean = np.clip((left + right) / 2 + tilt * (right - left) / 6, left + margin, right - margin)
    order = np.argsort(rank, kind="stable")
    return Pieces(*(column[order] for column in (rank, bin, mean, high - low)))
