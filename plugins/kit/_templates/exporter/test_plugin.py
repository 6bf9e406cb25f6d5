import math

from sparsemap import load_problem, search
from sparsemap.pieces.loading import load

PROBLEM = load_problem("matmul-32x64x48", "edge-16gbps", registry=load())


def test_the_bounds_multiply_up_to_the_sizes(tmp_path):
    result = search(PROBLEM, budget=500)
    (file,) = PROBLEM.registry.get("exporter", "plugin-name").write(result, PROBLEM, tmp_path)
    head, *rows = file.read_text().splitlines()
    assert head == "level,dimension,bound"
    assert math.prod(int(row.split(",")[2]) for row in rows) == math.prod(PROBLEM.sizes.values())
