"""Random problems: workloads of many kinds on random chips, to measure searches on problems nobody tuned them on.

Problems are numbered. Even numbers serve tuning, odd numbers reporting only: never look at single odd problems."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sparsemap import Problem, load_problem
from sparsemap.pieces.registry import Registry

KEY = 20_261_130
"""Part of every seed."""
DENSITIES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0)
FANOUTS = (2, 3, 4, 5, 6, 7, 8, 12, 14, 16, 21, 28, 32, 37, 64)
BANDWIDTHS = ("1 GB/s", "4 GB/s", "16 GB/s", "64 GB/s", "256 GB/s")
CAPACITIES_KB = ((128, 65536), (16, 2048), (1, 128), (0.25, 8))
"""Smallest and largest capacity of on-chip levels, outermost first."""
Table = dict[str, Any]


class Draw:
    """Random choices of one problem."""

    def __init__(self, number: int, folder: Path) -> None:
        self.rng, self.folder, self.number = np.random.default_rng([KEY, number]), folder, number

    def of(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def size(self, low: float, high: float) -> int:
        """A size with a uniform logarithm; half of the sizes are multiples of 8."""
        found = max(1, round(math.exp(self.rng.uniform(math.log(low), math.log(high)))))
        return -(-found // 8) * 8 if found > 8 and self.rng.random() < 0.5 else found

    def prime(self, low: int, high: int) -> int:
        found = self.size(low, high)
        while any(found % d == 0 for d in range(2, math.isqrt(found) + 1)):
            found += 1
        return found

    def density(self) -> float:
        return float(self.of(*DENSITIES))

    def weights(self, rows: int, columns: int) -> Any:
        """Density of a matrix of weights or of a sparse operand."""
        kind = self.of("uniform", "uniform", "n-of-m", "block", "mask")
        if kind == "n-of-m" and columns % 4 == 0:
            return {"type": "n-of-m", "n": self.of(1, 2), "m": 4}
        if kind == "block" and rows % 4 == columns % 4 == 0:
            return {"type": "block", "density": self.of(0.1, 0.25, 0.5), "block": [4, 4]}
        if kind == "mask" and rows * columns <= 1 << 20:
            path = self.folder / f"mask-{self.number}.npy"
            share = self.rng.beta(1.0, 4.0, size=(rows, 1))  # uneven rows
            np.save(path, self.rng.random((rows, columns)) < share)
            return {"type": "data", "file": str(path)}
        return self.density()


def product(d: Draw) -> Table:
    m, k, n = (d.size(16, 4096) for _ in range(3))
    return {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": m, "k": k, "n": n},
            "density": {"P": d.density(), "Q": d.weights(k, n)}}  # fmt: skip


def skinny(d: Draw) -> Table:
    return product(d) | {"dims": {"m": d.of(1, 2, 8, 16), "k": d.size(256, 8192), "n": d.size(256, 16384)},
                         "density": {"P": 1.0, "Q": d.density()}}  # fmt: skip


def primes(d: Draw) -> Table:
    sizes = {dim: d.prime(31, 1500) for dim in "mkn"}
    return product(d) | {"dims": sizes, "density": {"P": d.density(), "Q": d.density()}}


def huge(d: Draw) -> Table:
    sizes = {dim: d.size(4096, 65536) for dim in "mkn"}
    return product(d) | {"dims": sizes, "density": {"P": d.density(), "Q": d.density()}}


def banded(d: Draw) -> Table:
    m = d.size(256, 4096)
    band = {"type": "banded", "half_width": d.of(4, 16, 64)}
    return product(d) | {"dims": {"m": m, "k": m, "n": d.size(16, 512)}, "density": {"P": band, "Q": d.density()}}


def batched(d: Draw) -> Table:
    sizes = {"b": d.of(3, 8, 12, 16), "m": d.size(32, 512), "k": d.size(32, 256), "n": d.size(32, 512)}
    return {"einsum": "Z[b, m, n] = P[b, m, k] * Q[b, k, n]", "dims": sizes,
            "density": {"P": d.density(), "Q": d.density()}}  # fmt: skip


def convolution(d: Draw) -> Table:
    r, stride, side = d.of(1, 3, 3, 5), d.of(1, 1, 2), d.of(7, 14, 16, 28, 55, 56)
    step = f"{stride}*" if stride > 1 else ""
    sizes = {"k": d.size(16, 512), "c": d.of(3, 16, 64, 96, 128, 256), "p": side, "q": side, "r": r, "s": r}
    return {"einsum": f"Z[k, p, q] = P[c, {step}p + r, {step}q + s] * Q[k, c, r, s]", "dims": sizes,
            "density": {"P": d.density(), "Q": d.density()}}  # fmt: skip


def depthwise(d: Draw) -> Table:
    side = d.of(7, 14, 28, 56)
    return {"einsum": "Z[c, p, q] = P[c, p + r, q + s] * Q[c, r, s]",
            "dims": {"c": d.size(16, 960), "p": side, "q": side, "r": 3, "s": 3},
            "density": {"P": d.density(), "Q": 1.0}}  # fmt: skip


def three(d: Draw) -> Table:
    sizes = {"i": d.size(64, 1024), "k": d.size(32, 512), "l": d.size(16, 128), "j": d.of(16, 32, 48)}
    return {"einsum": "Z[i, j] = T[i, k, l] * B[k, j] * C[l, j]", "dims": sizes,
            "density": {"T": d.of(0.001, 0.01, 0.1), "B": 1.0, "C": 1.0}}  # fmt: skip


def sampled(d: Draw) -> Table:
    sizes = {"m": d.size(64, 1024), "n": d.size(64, 1024), "k": d.of(32, 64, 100)}
    return {"einsum": "Z[m, n] = S[m, n] * P[m, k] * Q[k, n]", "dims": sizes,
            "density": {"S": d.of(0.01, 0.05, 0.2), "P": 1.0, "Q": 1.0}}  # fmt: skip


def reduction(d: Draw) -> Table:
    return {"einsum": "Z[m] = P[m, k]", "dims": {"m": d.size(64, 4096), "k": d.size(64, 4096)},
            "density": {"P": d.density()}}  # fmt: skip


KINDS: tuple[Callable[[Draw], Table], ...] = (
    product, convolution, skinny, primes, product, huge, batched, convolution, banded, three, depthwise, sampled,
    reduction,
)  # fmt: skip


def chip(d: Draw) -> Table:
    """Two to five levels, odd fan-outs, bypasses, bandwidths that differ by direction, skips with finite look-ahead."""
    inner = int(d.of(1, 2, 2, 3, 3, 4))
    levels: list[Table] = [{"name": "L1", "class": "dram", "standard": "lpddr4", "bandwidth": d.of(*BANDWIDTHS)}]
    capacity, lanes = math.inf, 1
    for place in range(inner):
        low, high = CAPACITIES_KB[place + (inner == 1)]
        capacity = min(capacity / 2, math.exp(d.rng.uniform(math.log(low), math.log(high))))
        level: Table = {"name": f"L{place + 2}", "class": "sram", "capacity": f"{round(capacity * 1024)} B"}
        fanout = d.of(1, *FANOUTS) if lanes < 4096 else 1
        lanes *= fanout
        level |= {"fanout": fanout} if fanout > 1 else {}
        level |= {"gate_skip": True} if d.rng.random() < 0.8 else {}
        level |= {"double_buffered": True} if d.rng.random() < 0.5 else {}
        if d.rng.random() < 0.5:
            level["read_bandwidth"] = f"{d.of(4, 16, 64) * fanout} words/cycle"
            level["write_bandwidth"] = f"{d.of(2, 8, 32) * fanout} words/cycle"
        levels.append(level)
    if inner > 2 and d.rng.random() < 0.4:
        levels[2]["bypass"] = [d.of("P", "Q")]
    if lanes == 1:
        levels[-1]["fanout"] = d.of(*FANOUTS)
    return {"kind": "hardware", "name": f"chip-{d.number}", "technology": "12nm-recommended", "levels": levels,
            "compute": {"name": "MAC", "gate_skip": True}}  # fmt: skip


def tables(number: int, folder: Path) -> tuple[Table, Table]:
    """Workload and hardware of a problem; `folder` receives a mask, if any."""
    d = Draw(number, folder)
    workload = KINDS[number // 2 % len(KINDS)](d)
    return {"name": f"drawn-{number}", **workload}, chip(d)


def problem_of(number: int, folder: Path, registry: Registry, **more: Any) -> Problem:
    workload, hardware = tables(number, folder)
    return load_problem(workload, hardware, registry=registry, **more)


def text_of(number: int, folder: Path) -> str:
    """Sizes and levels in a line."""
    workload, hardware = tables(number, folder)
    sizes: Mapping[str, int] = workload["dims"]
    parts = [
        f"{level.get('capacity', level.get('bandwidth'))} x{level.get('fanout', 1)}" for level in hardware["levels"]
    ]
    return f"{' x '.join(map(str, sizes.values()))}: {', '.join(parts)}"
