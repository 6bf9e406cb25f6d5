"""Section IV-B: dimension tiling as the mapping level of every prime factor."""

from itertools import product

import numpy as np
from encoding_problems import matmul, problem

LEVELS = ("L1_T", "L2_T", "L2_S", "L3_T", "L3_S")


def tiling(sizes):
    made = problem(matmul(*sizes))
    return made, made.space.segments["tiling"]


def test_figure_9():
    made, segment = tiling((4, 8, 4))
    genes = np.array([[2, 2, 4, 5, 5, 3, 3]]).T  # 2 and 2 of M; 2, 2 and 2 of K; 2 and 2 of N
    bounds = segment.decode(genes, made)["bounds"][..., 0]
    assert bounds.tolist() == [
        [1, 1, 1],
        [4, 1, 1],  # M2 = 2 * 2
        [1, 1, 4],  # N3 = 2 * 2
        [1, 2, 1],  # K4 = 2
        [1, 4, 1],  # K5 = 2 * 2
    ]
    assert [level.name for level in made.mapping_levels] == list(LEVELS)


def test_one_gene_per_prime_factor_all_of_the_first_dimension_first():
    made, segment = tiling((32, 64, 48))
    genes = segment.genes(made)
    assert [sum(name.startswith(f"tile.{dim}.") for name in genes.names) for dim in "mkn"] == [5, 6, 5]
    assert genes.names[0] == "tile.m.1" and genes.names[-1] == "tile.n.5"
    assert (genes.low == 1).all() and (genes.high == 5).all()
    last = np.ones((16, 1), int)
    last[-1] = 2  # factors of a dimension ascend: 48 = 2 * 2 * 2 * 2 * 3
    assert segment.decode(last, made)["bounds"][1, 2, 0] == 3


def test_7875_tilings_of_4_8_4():
    """All 5^7 genomes decode to the 15 * 35 * 15 combinations that satisfy the constraints, and to no other."""
    made, segment = tiling((4, 8, 4))
    genes = np.array(list(product(range(1, 6), repeat=7))).T
    bounds = segment.decode(genes, made)["bounds"]
    assert (bounds.prod(axis=0) == np.array([[4], [8], [4]])).all()
    assert len(np.unique(bounds.reshape(15, -1), axis=1).T) == 7875
    assert round(100 * 7875 / (4**5 * 8**5 * 4**5), 6) == 0.000023


def test_a_large_prime_becomes_the_next_composite_number():
    made, _ = tiling((13, 5, 127))
    assert made.sizes == {"m": 14, "k": 5, "n": 128}
    assert made.padded == {"m": (13, 14), "n": (127, 128)}
