"""Section IV-C: loop orders as Cantor codes."""

import numpy as np
from encoding_problems import matmul, problem, product

CODES = {1: "MKN", 2: "MNK", 3: "KMN", 4: "KNM", 5: "NMK", 6: "NKM"}


def orders_of(made, codes):
    """Dimension letters from outer to inner, for codes given to the first mapping level."""
    segment = made.space.segments["orders"]
    genes = np.ones((len(made.mapping_levels), len(codes)), int)
    genes[0] = codes
    order = segment.decode(genes, made)["order"][0]
    return ["".join(made.dims[i].upper() for i in row) for row in order.T]


def test_codes_of_three_dimensions():
    made = problem(matmul(4, 8, 4))
    assert dict(zip(CODES, orders_of(made, list(CODES)), strict=True)) == CODES


def test_equation_1_of_every_order():
    made = problem(product({"b": 2, "m": 2, "k": 2, "n": 2}))
    for code, order in enumerate(orders_of(made, range(1, 25)), start=1):
        unused, total = list("BMKN"), 1
        for place, factorial in zip(order, (6, 2, 1, 1), strict=True):
            total += unused.index(place) * factorial  # (a_i - 1) * (d - i)!
            unused.remove(place)
        assert total == code


def test_nearby_codes_share_their_outer_loops():
    made = problem(product({"b": 2, "m": 2, "k": 2, "n": 2}))
    orders = orders_of(made, range(1, 25))
    assert [order[0] for order in orders] == list("B" * 6 + "M" * 6 + "K" * 6 + "N" * 6)


def test_figure_15_a_fourth_dimension_widens_the_range_to_24():
    three, four = problem("matmul-32x64x48"), problem("batched-matmul-8x64x64x64")
    assert three.space.segment_genes["orders"].high.tolist() == [6] * 5
    assert four.space.segment_genes["orders"].high.tolist() == [24] * 5
    added = [name for name in four.space.names if name.startswith("tile.b.")]
    assert len(added) == 3  # 8 = 2 * 2 * 2
