import numpy as np
import pytest
from encoding_problems import matmul, problem
from sparsemap_plugins.encodings.inner import functions
from sparsemap_plugins.encodings.padding import next_composite, next_smooth
from sparsemap_plugins.encodings.tile_figures import facts_of

from sparsemap.errors import DesignError, SpecError
from sparsemap.primes import prime_factors
from sparsemap.problem.designs import Designs


def with_tiling(sizes, **table):
    return problem(matmul(*sizes), "edge", {"extends": "paper", "tiling": table})


@pytest.mark.parametrize(
    ("size", "factors"),
    [(1, ()), (2, (2,)), (48, (2, 2, 2, 2, 3)), (730, (2, 5, 73)), (92378, (2, 11, 13, 17, 19)), (124, (2, 2, 31))],
)
def test_prime_factors(size, factors):
    assert prime_factors(size) == factors


def test_next_composite_leaves_small_primes_and_composites():
    assert [next_composite(size, 7) for size in (1, 2, 3, 7, 8, 11, 13, 730)] == [1, 2, 3, 7, 8, 12, 14, 730]
    assert next_composite(2, 1) == 4 and next_composite(3, 1) == 4


@pytest.mark.parametrize("largest", [2, 3, 5, 7, 13])
def test_next_smooth_against_a_search(largest):
    for size in range(1, 600):
        expected = next(n for n in range(size, 2 * size + 1) if max(prime_factors(n), default=1) <= largest)
        assert next_smooth(size, largest) == expected


@pytest.mark.parametrize(
    ("sizes", "table", "padded"),
    [
        ((730, 124, 171), {}, (730, 124, 171)),
        ((730, 124, 171), {"padding": "smooth"}, (735, 125, 175)),
        ((730, 124, 171), {"padding": "smooth", "largest_factor": 31}, (735, 124, 171)),
        ((13, 11, 7), {}, (14, 12, 7)),
        ((13, 11, 7), {"prime_threshold": 12}, (14, 11, 7)),
        ((13, 11, 7), {"padding": "none"}, (13, 11, 7)),
    ],
)
def test_padding(sizes, table, padded):
    made = with_tiling(sizes, **table)
    assert tuple(made.sizes.values()) == padded
    assert made.loops.sizes == dict(zip("mkn", sizes, strict=True))


def test_wrong_padding_is_told_with_the_segment():
    made = with_tiling((4, 4, 4), padding="primes")
    with pytest.raises(SpecError, match=r"space\.toml: tiling\.padding: .*'prime' or 'smooth' or 'none'"):
        made.space.segments  # noqa: B018


def test_encode_gives_equal_factors_ascending_levels():
    made = with_tiling((8, 1, 1))
    segment = made.space.segments["tiling"]
    genes = np.array([[5, 2, 3], [1, 1, 1], [3, 5, 2]]).T
    designs = Designs(segment.decode(genes, made))
    assert segment.encode(designs, made).T.tolist() == [[2, 3, 5], [1, 1, 1], [2, 3, 5]]


def test_bounds_that_do_not_multiply_up_cannot_be_encoded():
    made = with_tiling((4, 13, 4))
    bounds = np.ones((5, 3, 1))
    bounds[0, :, 0] = [4, 13, 4]
    with pytest.raises(DesignError, match=r"dimension 'k' are 13 \* 1 \* 1 \* 1 \* 1 = 13, .* 14 \(padded from 13\)"):
        made.space.segments["tiling"].encode(Designs({"bounds": bounds}), made)
    bounds[:2, 1, 0] = [14 / 4, 4]
    with pytest.raises(DesignError, match="whole numbers"):
        made.space.segments["tiling"].encode(Designs({"bounds": bounds}), made)


def test_direct_tiling():
    made = with_tiling((4, 13, 2), type="direct-tiling")
    genes = made.space.segment_genes["tiling"]
    assert genes.names[:2] == ("bound.m.L1_T", "bound.m.L2_T") and genes.names[5] == "bound.k.L1_T"
    assert genes.high.tolist() == [4] * 5 + [13] * 5 + [2] * 5
    segment = made.space.segments["tiling"]
    bounds = segment.decode(np.arange(15)[:, None], made)["bounds"][..., 0]
    assert bounds[:, 1].tolist() == [5, 6, 7, 8, 9]  # K1..K5
    wide = np.ones((5, 3, 1))
    wide[0, 2] = 10
    with pytest.raises(DesignError, match=r"the bound of 'n' in L1_T is 10, expected a whole number in 1\.\.2"):
        segment.encode(Designs({"bounds": wide}), made)


def test_moves_fill_a_fan_out_and_let_a_tensor_stay():
    made, rng = problem(matmul(64, 64, 64), "mobile"), np.random.default_rng(0)
    dims, primes = np.repeat([0, 1, 2], 6), np.full(18, 2.0)
    genes = rng.integers(1, len(made.mapping_levels) + 1, size=(18, 300))
    fan_out = next(i for i, level in enumerate(made.mapping_levels) if level.spatial)
    away, ways = rng.integers(1, len(made.mapping_levels) + 1, size=300), rng.random((3 + 18, 4 * 300))
    facts, every, filled, held = facts_of(made, dims, primes), np.arange(300), genes.copy(), genes.copy()
    functions.fill_level(facts, filled, every, fan_out + 1, made.mapping_levels[fan_out].limit, away, ways)
    assert (2 ** (filled == fan_out + 1).sum(axis=0) == made.mapping_levels[fan_out].limit).all()
    functions.stay_some(facts, held, every, rng.random((3, 300)))
    moving = np.array([[dim in tensor.dims for dim in made.dims] for tensor in made.tensors])[:, dims]
    times = [i + 1 for i, level in enumerate(made.mapping_levels) if not level.spatial]
    left = [(held == level)[None] & moving[:, :, None] for level in times]
    assert (~np.array([some.any(axis=1) for some in left])).any(axis=(0, 1)).all()
