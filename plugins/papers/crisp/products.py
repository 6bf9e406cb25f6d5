"""The matrix products that the prunable layers of ResNet-50 are: all convolutions but the first, one image at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs

from sparsemap import SparseMapError
from sparsemap.errors import unknown
from sparsemap.problem.network import nodes_of

from .storage import CrispShape

BLOCKS = (16, 32, 64)
PATTERNS = (1, 2, 3)
"""N of N:4."""
M = 4


@attrs.frozen(order=True)
class Product:
    """`Z[s, x] = P[x, k] * Q[s, k]`: s output channels, k words of a window, x outputs of a channel."""

    s: int
    k: int
    x: int

    @property
    def name(self) -> str:
        return f"{self.s}x{self.k}x{self.x}"

    def workload(self, weights: Any, inputs: float = 1.0) -> dict[str, Any]:
        dims = {"s": self.s, "k": self.k, "x": self.x}
        density = {"P": inputs, "Q": weights, "Z": 1.0}
        return {"name": self.name, "einsum": "Z[s, x] = P[x, k] * Q[s, k]", "dims": dims, "density": density}

    def pruned(self, n: int, block: int, sparsity: float) -> CrispShape:
        """CRISP's weights: as many blocks of each block row as come nearest to the sparsity, at least one."""
        columns = self.k // block
        return CrispShape(self.s, self.k, block, n, M, min(columns, max(1, round((1 - sparsity) * M / n * columns))))


def products(registry: Any, names: Sequence[str] = ()) -> dict[Product, int]:
    """Distinct products and how often each occurs, images large to small; `names`: only these."""
    found: Counter[Product] = Counter()
    layers = [node for node in nodes_of(registry.get("network", "resnet50"), registry) if node.loops]
    for node in layers[1:-1]:  # the first layer and the classifier are not pruned
        layer: Any = node.piece
        found[Product(layer.k, layer.c * layer.r * layer.s, layer.p * layer.q)] += node.repeat
    known = [product.name for product in found]
    for name in names:
        if name not in known:
            raise SparseMapError(f"--workload: {unknown('product of ResNet-50', name, known)}")
    chosen = [product for product in found if not names or product.name in names]
    return {product: found[product] for product in sorted(chosen, key=lambda one: (-one.x, one.s * one.k, one.s))}
