"""Fig. 1: products of two sparse matrices on this computer's processor, blocks of 8 x 8 beside single words."""

from __future__ import annotations

import timeit
from typing import Any

import numpy as np

from sparsemap.extras import need
from sparsemap.plots import Panel, Report, figure, page

from ..layers import BLOCK
from . import SPARSITY, MeshSchedules

SIZES = (256, 512, 1024)
REPEATS = 5


def measured(size: int, block: int, rng: np.random.Generator) -> dict[str, Any]:
    """A product of two square matrices of which half of the blocks are zero: multiply-adds, and seconds of the best run."""
    sparse = need("scipy.sparse", "products of sparse matrices", "prune")
    factors, kept = [], []
    for _ in range(2):
        mask = rng.random((size // block, size // block)) >= SPARSITY
        words = np.where(np.repeat(np.repeat(mask, block, 0), block, 1), rng.standard_normal((size, size)), 0)
        kept.append(mask.astype(np.int64))
        factors.append(sparse.bsr_array(words, blocksize=(block, block)) if block > 1 else sparse.csr_array(words))
    seconds = min(timeit.repeat(lambda: factors[0] @ factors[1], number=1, repeat=REPEATS))
    macs = int(kept[0].sum(axis=0) @ kept[1].sum(axis=1)) * block**3
    found = {"size": size, "block": f"{block}x{block}", "macs": macs, "seconds": seconds}
    return found | {"gflops": 2e-9 * macs / seconds}


def report(source: MeshSchedules, name: str, quirks: str) -> Report:
    rng = np.random.default_rng(0)
    pairs = [[measured(size, block, rng) for block in (1, BLOCK[0])] for size in SIZES]
    lines = [["size", "1x1, GFLOPS", "8x8, GFLOPS", "times as fast"]]
    gains = [blocks["gflops"] / words["gflops"] for words, blocks in pairs]
    for pair, gain in zip(pairs, gains, strict=True):
        lines.append([str(pair[0]["size"]), *(f"{one['gflops']:.2f}" for one in pair), f"{gain:.1f}"])
    headline = f"blocks of 8 x 8 are {min(gains):.1f} to {max(gains):.1f} times as fast as words"
    bars = {pair[0]["block"]: [one["gflops"] for one in pair] for pair in zip(*pairs, strict=True)}
    panel = Panel("rows and columns", "GFLOPS", bars=bars, names=[str(size) for size in SIZES])
    text = page(__file__, name, share=SPARSITY, repeats=REPEATS, table=lines)
    rows = [row for pair in pairs for row in pair]
    return Report(name, headline, text, rows, lambda: figure([panel], (4.6, 2.8)))
