from sparsemap import load_problem, search
from sparsemap.pieces.loading import load

PROBLEM = load_problem("matmul-32x64x48", "edge-16gbps", "plugin-name", registry=load())


def test_the_genes_choose_among_its_formats():
    assert [piece.name for piece in PROBLEM.candidates("format")] == ["uncompressed", "bitmask", "wide"]


def test_it_is_searched():
    assert search(PROBLEM, budget=500).best is not None
