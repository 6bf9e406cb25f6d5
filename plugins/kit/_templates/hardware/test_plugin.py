from sparsemap import load_problem, search
from sparsemap.pieces.loading import load

PROBLEM = load_problem("matmul-32x64x48", "plugin-name", registry=load())


def test_it_has_256_compute_units_and_two_levels_that_filter():
    assert PROBLEM.compute_instances == 256
    assert [place.name for place in PROBLEM.places] == ["GLB", "Cluster", "MAC"]


def test_it_is_searched():
    assert search(PROBLEM, budget=1000).best is not None
