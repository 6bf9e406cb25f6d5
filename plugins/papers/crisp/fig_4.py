"""Fig. 4, right: metadata of CRISP's storage format against CSR, ELLPACK and others, over the layers of ResNet-50."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..rows import Row, Rows
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


def page(runner: Runner, name: str) -> dict[str, Any]:
    layers = products(runner.registry, runner.workloads)
    rows = Rows(row(layers, n, block, sparsity) for sparsity in SPARSITIES for n in PATTERNS for block in BLOCKS)
    ranges = {label: f"{rows[key].lowest:.1f}x to {rows[key].highest:.1f}x" for key, label in FORMATS.items()}
    near = min(
        ("ellpack", "ellpack on mask"), key=lambda key: max(abs(value - PAPER["ellpack"]) for value in rows[key])
    )
    less = sum(one["bitmask"] < min(one["csr"], one["ellpack"]) for one in rows)
    bars = [
        {
            "label": label,
            "value": one[key],
            "name": f"{one['n']}:{M}\nB{one['block']}",
            "about": f"{100 * sparsity:.0f}",
        }
        for place, one in enumerate(rows)
        for sparsity in [SPARSITIES[place * len(SPARSITIES) // len(rows)]]
        for key, label in FORMATS.items()
    ]
    about = {
        "count": sum(layers.values()),
        "less": 100 * (1 - rows.paper.lowest),
        "below": f"in {less} of {len(rows)} rows",
    }
    about |= {"near": "random mask" if near == "ellpack" else "mask of CRISP", "blocked": rows.bcsr.highest}
    return {"rows": rows, "ranges": ranges, "bars": bars, "paper": PAPER, "M": M, **about}


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
