from sparsemap import load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.testing import check_memory_level

REGISTRY = load()


def test_it_keeps_the_contract():
    check_memory_level(REGISTRY.build("memory-level", {"type": "plugin-name"}))


def test_half_of_the_capacity_holds_data():
    whole = load_problem("matmul-32x64x48", "edge-16gbps", registry=REGISTRY).levels[1]
    half = load_problem("matmul-32x64x48", "plugin-name", registry=REGISTRY).levels[1]
    assert half.capacity_bits == whole.capacity_bits / 2


def test_a_hardware_with_it_is_searched():
    result = search(load_problem("matmul-32x64x48", "plugin-name", registry=REGISTRY), budget=500)
    assert result.best is not None
