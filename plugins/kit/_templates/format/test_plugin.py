import numpy as np

from sparsemap import Fiber, load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.testing import check_format

REGISTRY = load()


def test_it_keeps_the_contract():
    parents = [REGISTRY.get("format", name) for name in ("uncompressed", "bitmask", "offset-pair")]
    check_format(REGISTRY.get("format", "plugin-name"), parents=parents)


def test_a_fiber_of_60_positions_takes_eight_bytes():
    fiber = Fiber.of(np.ones(1), 60.0, np.full(1, 8.0), 60.0)
    assert REGISTRY.get("format", "plugin-name").metadata_bits(fiber) == [64.0]


def test_a_search_chooses_among_formats_with_it():
    space = {"extends": "paper", "formats": {"candidates": ["uncompressed", "plugin-name"]}}
    result = search(load_problem("matmul-32x64x48", "edge-16gbps", space, registry=REGISTRY), budget=500)
    assert result.best is not None
