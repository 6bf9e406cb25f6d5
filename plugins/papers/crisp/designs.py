"""The designs of Fig. 8, and their best mapping of a matrix product among all mappings of the dataflow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, cast

import attrs

from sparsemap import SparseMapError, load_problem, search
from sparsemap.errors import unknown
from sparsemap.pieces.loading import load
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
        """CRISP's weights: the number of blocks per block row nearest to the sparsity, at least one."""
        columns = self.k // block
        return CrispShape(self.s, self.k, block, n, M, min(columns, max(1, round((1 - sparsity) * M / n * columns))))


def products(registry: Any, names: Sequence[str] = ()) -> dict[Product, int]:
    """Distinct products with their counts, images large to small; `names`: only these."""
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


SPARSITIES = MILD, SPARSE = (0.8, 0.9)
BANDWIDTHS = (13, 21, 42)
"""Words that SMEM reads per cycle: for 2:4, for 1:4 (the spec's), and Sparseloop's for four times the MACs."""
DEFAULT = 21
INPUTS_OF_DSTC = 0.6
"""Density of DSTC's inputs; the other designs do not use zeros of inputs."""
BUDGET = 20_000
"""Designs for DSTC, with too many mappings to try all."""

Row = dict[str, Any]


@attrs.frozen
class TensorCore:
    """A hardware with its dataflow and its weights."""

    name: str
    kind: str
    """Name of the hardware and of its space."""
    n: int = 0
    block: int = 0

    def shape(self, product: Product, sparsity: float) -> CrispShape | None:
        return product.pruned(self.n, self.block, sparsity) if self.block else None

    def density(self, product: Product, sparsity: float) -> float:
        """Of the weights."""
        shape = self.shape(product, sparsity)
        return shape.density if shape else {"dense-tc": 1.0, "nvidia-stc": 0.5}.get(self.kind, 1 - sparsity)

    def problem(self, product: Product, sparsity: float, bandwidth: float, model: str, registry: Any) -> Any:
        shape, inputs = self.shape(product, sparsity), 1.0
        weights: Any = self.density(product, sparsity)
        space: Any = self.kind
        if shape:
            weights = {"type": "crisp", "n": shape.n, "m": shape.m, "block": shape.block, "keep": shape.kept}
            index = {"group": M, "block_bits": shape.block_bits, "block_nonzeros": shape.block**2 * shape.n // M}
            offsets = {"extends": "crisp-offset", "name": f"crisp-offset-{shape.block}", "params": index}
            formats = {"P": ["uncompressed"], "Q": [offsets], "Z": ["uncompressed"]}
            space = {"extends": self.kind, "formats": {"formats": formats}}
        elif self.kind == "nvidia-stc":
            weights = {"type": "n-of-m", "n": 2, "m": M}
        elif self.kind == "dstc-edge":
            inputs = INPUTS_OF_DSTC
        hardware = {"extends": self.kind, "levels": {"SMEM": {"read_bandwidth": f"{bandwidth:g} words/cycle"}}}
        workload, counted = product.workload(weights, inputs), _cost_model(model, registry)
        return load_problem(workload, hardware, space, cost_model=counted, registry=registry)

    def best(
        self, product: Product, sparsity: float, bandwidth: float, model: str, registry: Any, scale: float = 1.0
    ) -> Row:
        """The mapping with the lowest energy-delay product."""
        problem = self.problem(product, sparsity, bandwidth, model, registry)
        too_many = self.kind == "dstc-edge"
        searcher, budget = ("sparsemap", max(1, round(scale * BUDGET))) if too_many else ("exhaustive", 10**7)
        result = search(problem, searcher=searcher, budget=budget, seed=0)
        if result.best is None:
            raise SparseMapError(f"{self.name} has no valid mapping of {product.name}")
        detail, best = cast(Any, result.best.detail), result.best
        levels = {level.name: float(c) for level, c in zip(problem.levels, detail.level_cycles[:, 0], strict=True)}
        slowest = max(levels, key=lambda name: levels[name])
        compute = float(detail.compute_cycles[0])
        energy_pj = dict(zip(levels, detail.energy_pj[:, :, 0].sum(axis=0).tolist(), strict=True))
        return {
            "model": model, "design": self.name, "layer": product.name, "sparsity": sparsity, "words/cycle": bandwidth,
            "density": self.density(product, sparsity), "cycles": best.cycles, "energy_pj": best.energy_pj,
            "on-chip pJ": best.energy_pj - energy_pj["DRAM"], "RF pJ": energy_pj["RF"],
            "limit": slowest if levels[slowest] > compute else problem.compute_name,
            "designs": result.evaluations,
        }  # fmt: skip


DENSE = TensorCore("dense", "dense-tc")
STC = TensorCore("NVIDIA-STC 2:4", "nvidia-stc")
DSTC = TensorCore("DSTC", "dstc-edge")
LANES = "CRISP 1:4 B64"
"""The sparsest pattern, and blocks shared by all four cores."""
FEW = (DENSE.name, LANES, DSTC.name)
CRISP = tuple(TensorCore(f"CRISP {n}:{M} B{block}", "crisp-stc", n, block) for n in PATTERNS for block in BLOCKS)
MODELS = ("timeloop", "physical")
"""Cost models, the paper's tool first."""
LEFT_OUT = ("vectors", "imbalance", "overlap", "run-lengths", "pointers")
"""Charges of the last model between DSTC and CRISP, in the order of their removal."""
WITHOUT = " without "
REDUCED = tuple(f"{MODELS[-1]}{WITHOUT}{', '.join(LEFT_OUT[: count + 1])}" for count in range(len(LEFT_OUT)))
"""Names of the reduced models."""


def _cost_model(model: str, registry: Any) -> Any:
    """The spec of a name of `MODELS` or `REDUCED`."""
    name, _, without = model.partition(WITHOUT)
    charges = [x.name for x in registry.get("cost-model", name).charges if x.name not in without.split(", ")]
    return {"extends": name, "name": model, "charges": charges} if without else model


def cells(model: str) -> Iterator[tuple[TensorCore, float, float]]:
    """Machines with sparsity and bandwidth: all sparsities at the default bandwidth, the last sparsity at the others too; few
    machines at the widest bandwidth for reduced models."""
    if model in REDUCED:
        yield from ((machine, SPARSE, BANDWIDTHS[-1]) for machine in (DENSE, *CRISP, DSTC) if machine.name in FEW)
        return
    for bandwidth in (DEFAULT, *(one for one in BANDWIDTHS if one != DEFAULT)):
        for machine in (DENSE, STC):  # their weights do not depend on the sparsity
            yield machine, SPARSE, bandwidth
        for sparsity in SPARSITIES if bandwidth == DEFAULT else (SPARSE,):
            for machine in (*CRISP, DSTC):
                yield machine, sparsity, bandwidth


def rows_of(where: tuple[Product, str], scale: float) -> list[Row]:
    """All cells of a product in a cost model, with a share of the budgets."""
    (product, model), registry = where, _loaded()
    return [machine.best(product, sparsity, words, model, registry, scale) for machine, sparsity, words in cells(model)]


_loaded = cache(load)
