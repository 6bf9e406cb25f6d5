"""Fig. 1: products of two sparse matrices on this computer's processor, blocks of 8 x 8 beside single words."""

from __future__ import annotations

import timeit
from typing import Any

import numpy as np

from sparsemap.errors import need
from sparsemap.files import markdown_table
from sparsemap.plots import COLOURS, Figure, Report, subplots

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
    return {
        "size": size,
        "block": f"{block}x{block}",
        "macs": macs,
        "seconds": seconds,
        "gflops": 2e-9 * macs / seconds,
    }


def report(source: MeshSchedules, name: str, quirks: str) -> Report:
    rng = np.random.default_rng(0)
    pairs = [[measured(size, block, rng) for block in (1, BLOCK[0])] for size in SIZES]
    lines = [["size", "1x1, GFLOPS", "8x8, GFLOPS", "times as fast"]]
    gains = [blocks["gflops"] / words["gflops"] for words, blocks in pairs]
    for (words, blocks), gain in zip(pairs, gains, strict=True):
        lines.append([f"{words['size']}", f"{words['gflops']:.2f}", f"{blocks['gflops']:.2f}", f"{gain:.1f}"])
    text = (
        f"# Fig. 1: products of sparse matrices\n\n`sparsemap wbs {name}`: two square matrices, {SPARSITY:.0%} of the blocks of "
        "both zero, multiplied by SciPy, as compressed rows of words and of 8 x 8 blocks; multiply-adds of kept pairs, the "
        f"fastest of {REPEATS} runs on the computer that made this page, which another run does not repeat exactly. The "
        "paper's figure has coordinates of blocks and no numbers; it too has blocks above words.\n\n"
    )
    headline = f"blocks of 8 x 8 are {min(gains):.1f} to {max(gains):.1f} times as fast as words"
    rows = [row for pair in pairs for row in pair]
    return Report(name, headline, text + markdown_table(lines) + "\n", rows, lambda: draw(rows))


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axis = subplots(1, 1, (4.6, 2.8))
    for place, block in enumerate(("1x1", "8x8")):
        mine = [row for row in rows if row["block"] == block]
        at = [number + 0.38 * (place - 0.5) for number in range(len(mine))]
        axis.bar(at, [row["gflops"] for row in mine], 0.38, color=COLOURS[place], label=block)
    axis.set(xlabel="rows and columns", ylabel="GFLOPS", xticks=range(len(SIZES)), xticklabels=SIZES)
    axis.legend()
    return figure
