from sparsemap import load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.testing import check_segment

PROBLEM = load_problem("matmul-32x64x48", "edge-16gbps", "plugin-name", registry=load())


def test_it_keeps_the_contract():
    check_segment(PROBLEM.space.segments["orders"], PROBLEM)


def test_three_dimensions_have_six_orders():
    genes = PROBLEM.space.segment_genes["orders"]
    assert (genes.low.tolist(), genes.high.tolist()) == ([0], [5])


def test_the_space_is_searched():
    assert search(PROBLEM, budget=500).best is not None
