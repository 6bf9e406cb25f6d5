"""Fig. 4, right: metadata of CRISP's storage format against CSR, ELLPACK and others, over the layers of ResNet-50."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparsemap.plots import Figure, Panel, figure

from ..report import Report, page
from ..runs import Runner
from .designs import BLOCKS, PATTERNS, M, Product, products
from .storage import other_formats

SPARSITIES = (0.8, 0.9)
PAPER = {"csr": 5.0, "ellpack": 7.0}
"""The paper's ratios."""
FORMATS = {
    "csr": "CSR",
    "ellpack": "ELLPACK, random mask",
    "ellpack on mask": "ELLPACK, CRISP's mask",
    "bitmask": "bitmask",
}
SEED = 0

Row = dict[str, Any]


def report(runner: Runner, name: str) -> Report:
    layers = products(runner.registry, runner.workloads)
    rows = [row(layers, n, block, sparsity) for sparsity in SPARSITIES for n in PATTERNS for block in BLOCKS]
    table = [["pattern", "block", "sparsity", "bits per nonzero", "paper's formula", *FORMATS.values(), "blocked CSR"]]
    for one in rows:
        line = [
            f"{one['n']}:{M}",
            str(one["block"]),
            f"{100 * one['sparsity']:.1f} %",
            f"{one['bits per nonzero']:.3f}",
        ]
        ratios = (f"{one[key]:.2f}x" for key in FORMATS)
        table.append([*line, f"{one['paper']:.3f}x", *ratios, f"{one['bcsr']:.4f}x"])
    csr, ellpack, on_mask, bitmask = (
        f"{min(column):.1f}x to {max(column):.1f}x" for column in ([one[key] for one in rows] for key in FORMATS)
    )
    paper = min(one["paper"] for one in rows)
    near = min(("ellpack", "ellpack on mask"), key=lambda key: max(abs(one[key] - PAPER["ellpack"]) for one in rows))
    less = sum(one["bitmask"] < min(one["csr"], one["ellpack"]) for one in rows)
    text = page(
        __file__, name, table=table, csr=csr, ellpack=ellpack, on_mask=on_mask, bitmask=bitmask, paper=PAPER, M=M,
        count=sum(layers.values()), less=100 * (1 - paper), below=f"in {less} of {len(rows)} rows",
        near="random mask" if near == "ellpack" else "mask of CRISP", blocked=max(x["bcsr"] for x in rows),
    )  # fmt: skip
    headline = (
        f"metadata over CRISP's: CSR {csr} (paper {PAPER['csr']:g}x), ELLPACK of a random mask {ellpack} "
        f"(paper {PAPER['ellpack']:g}x), of CRISP's {on_mask}"
    )
    return Report(name, headline, text, rows, lambda: draw(rows))


def row(layers: Mapping[Product, int], n: int, block: int, sparsity: float) -> Row:
    """Totals over the layers at about this sparsity, as multiples of CRISP's metadata."""
    bits, words, nonzeros, rng = Counter[str](), 0, 0, np.random.default_rng(SEED)
    for product, count in layers.items():
        shape = product.pruned(n, block, sparsity)
        rows = np.full(shape.rows, shape.words // shape.rows)  # CRISP: all rows alike
        random = rng.multivariate_hypergeometric(np.full(shape.rows, shape.columns), shape.words, method="marginals")
        mine = {"crisp": sum(shape.metadata_bits()), "paper": sum(shape.metadata_bits("paper"))}
        mine |= other_formats(shape, rows)
        mine |= {"ellpack on mask": mine["ellpack"], "ellpack": other_formats(shape, random)["ellpack"]}
        bits.update({key: count * value for key, value in mine.items()})
        words, nonzeros = words + count * shape.rows * shape.columns, nonzeros + count * shape.words
    crisp = bits.pop("crisp")
    found = {"n": n, "block": block, "sparsity": 1 - nonzeros / words, "bits per nonzero": crisp / nonzeros}
    return {**found, **{key: value / crisp for key, value in bits.items()}}


def draw(rows: Sequence[Row]) -> Figure:
    panels, size = [], len(PATTERNS) * len(BLOCKS)
    for place, sparsity in enumerate(SPARSITIES):
        some = rows[place * size : (place + 1) * size]
        bars = {label: [one[key] for one in some] for key, label in FORMATS.items()}
        names, title = [f"{one['n']}:{M}\nB{one['block']}" for one in some], f"about {100 * sparsity:.0f} % sparsity"
        panels.append(Panel("", "metadata over CRISP's", bars=bars, names=names, title=title, levels=[*PAPER.values()]))
    return figure(panels, (9.2, 3.7), title="lines: 5x and 7x, as the paper has it", sharey=True)
