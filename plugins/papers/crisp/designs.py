"""The designs that Fig. 8 compares, and their best mapping of one matrix product: every one that the dataflow allows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, cast

import attrs

from sparsemap import SparseMapError, load_problem, search
from sparsemap.pieces.loading import load

from .products import BLOCKS, PATTERNS, M, Product
from .storage import CrispShape

SPARSITIES = MILD, SPARSE = (0.8, 0.9)
BANDWIDTHS = (13, 21, 42)
"""Words that SMEM reads per cycle: what 2:4 needs, what 1:4 needs (the spec's), and Sparseloop's for four times the MACs."""
DEFAULT = 21
INPUTS_OF_DSTC = 0.6
"""Density of the inputs that DSTC is given; the others do not use zeros of inputs."""
BUDGET = 20_000
"""Designs for DSTC, whose mappings are too many to try them all."""

Row = dict[str, Any]


@attrs.frozen
class TensorCore:
    """A hardware with its dataflow and the weights that it runs."""

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
        return load_problem(product.workload(weights, inputs), hardware, space, cost_model=model, registry=registry)

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
CRISP = tuple(TensorCore(f"CRISP {n}:{M} B{block}", "crisp-stc", n, block) for n in PATTERNS for block in BLOCKS)


MODELS = ("timeloop", "physical")
"""Cost models, that of the paper's tool first."""


def cells() -> Iterator[tuple[TensorCore, float, float]]:
    """Machines with sparsity and bandwidth: all sparsities at the default bandwidth, the last one at the others too."""
    for bandwidth in (DEFAULT, *(one for one in BANDWIDTHS if one != DEFAULT)):
        for machine in (DENSE, STC):  # their weights do not depend on the sparsity
            yield machine, SPARSE, bandwidth
        for sparsity in SPARSITIES if bandwidth == DEFAULT else (SPARSE,):
            for machine in (*CRISP, DSTC):
                yield machine, sparsity, bandwidth


def rows_of(where: tuple[Product, str], scale: float) -> list[Row]:
    """All cells of a product in a cost model, with this share of the budgets."""
    (product, model), registry = where, _registry()
    return [machine.best(product, sparsity, words, model, registry, scale) for machine, sparsity, words in cells()]


@cache
def _registry() -> Any:
    return load()
