"""The spaces of the baselines: a strategy set by hand under any mapping, an expert's mapping under any format."""

import numpy as np
import pytest

from sparsemap import SpecError, load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.testing import check_segment

REGISTRY = load()
CELLS = [
    ("mm3", "edge"),
    ("mm9", "cloud"),
    ("conv1", "cloud"),
    ("conv4", "mobile"),
    ("batched-matmul-8x64x64x64", "clustered"),
    ("depthwise-conv-32x16x16", "eyeriss-like"),
    ("conv8", "scnn-like"),
]


def problem(workload, hardware, space, **density):
    if density:
        workload = {"extends": workload, "name": workload, "density": density}
    return load_problem(workload, hardware, space=space, registry=REGISTRY)


def strategy(given):
    """Formats by tensor, from outer to inner, and mechanisms by place."""
    designs = given.space.decode(given.space.low[None, :])
    formats, mechanisms = given.candidates("format"), given.candidates("mechanism")
    by_tensor = [[formats[i].name for i in row] for row in designs.formats[0]]
    return by_tensor, {p.name: mechanisms[i].name for p, i in zip(given.places, designs.mechanisms[0], strict=True)}


@pytest.mark.parametrize(("workload", "hardware"), CELLS)
def test_the_manual_strategy_is_valid_with_every_mapping_that_fits(workload, hardware):
    given = problem(workload, hardware, "sparseloop-mapper")
    for segment in given.space.segments.values():
        check_segment(segment, given)
    rejects = given.evaluator.evaluate(given.space.sample(5000, np.random.default_rng(0))).reject_counts()
    assert {reason.partition(":")[0] for reason in rejects} <= {"fanout", "capacity"}


def test_the_manual_strategy_follows_the_densities():
    csr, dense = ["offset-pair"] * 4 + ["coordinate"], ["uncompressed"] * 5
    none = {"GLB": "none", "MAC": "gate-both"}
    for p, q, formats, skip in [
        (0.1, 0.2, [csr, csr, dense], "skip-both"),
        (0.1, 1.0, [csr, dense, dense], "skip-q-by-p"),
        (0.95, 0.5, [dense, csr, dense], "skip-p-by-q"),
        (0.9, 1.0, [dense, dense, dense], "none"),
        (0.001, 0.001, [csr, csr, csr], "skip-both"),  # few enough for the output to have zeros
    ]:
        given = problem("mm3", "cloud", "sparseloop-mapper", P=p, Q=q)
        assert strategy(given) == (formats, {**none, "PEB": skip})


def test_a_tensor_of_one_word_is_not_compressed():
    workload = {"einsum": "Z[m] = P[m, k] * Q[u]", "dims": {"m": 8, "k": 8, "u": 1}, "density": {"P": 0.3, "Q": 0.5}}
    given = load_problem(workload, "edge", space="sparseloop-mapper", registry=REGISTRY)
    assert strategy(given)[0][1] == ["uncompressed"] * 5


@pytest.mark.parametrize("stationary", ["P", "Q", "Z"])
@pytest.mark.parametrize(("workload", "hardware"), CELLS)
def test_an_experts_mapping_is_valid_without_compression(workload, hardware, stationary):
    space = {
        "name": "dense",
        "segments": ["mapping", "rest"],
        "mapping": {"type": "expert-mapping", "stationary": stationary},
        "rest": {"type": "manual-strategy", "dense_from": 0.0},
    }
    given = problem(workload, hardware, space)
    for segment in given.space.segments.values():
        check_segment(segment, given)
    evaluation = given.evaluator.evaluate(np.zeros((1, 0), np.int64))
    assert evaluation.reasons_of(0) == ()


def test_an_experts_mapping_does_not_follow_sparsity():
    mappings = []
    for density in (1.0, 0.3, 0.001):
        given = problem("conv4", "cloud", "sage-like", P=density, Q=density)
        designs = given.space.decode(given.space.low[None, :])
        mappings.append((designs.bounds.tolist(), designs.order.tolist()))
    assert mappings[0] == mappings[1] == mappings[2]


def test_an_experts_mapping_keeps_the_processing_elements_busy_and_partial_sums_in_place():
    given = problem("conv4", "cloud", "sage-like")
    bounds = given.space.decode(given.space.low[None, :]).bounds[0]
    by_level = {level.name: row for level, row in zip(given.mapping_levels, bounds, strict=True)}
    assert by_level["L2_S"].prod() == 1024
    assert by_level["L3_S"].prod() == 64
    reduced = [given.dims.index(dim) for dim in "crs"]
    assert by_level["L2_S"][reduced].prod() == 1
    order = given.space.decode(given.space.low[None, :]).order[0]
    assert all(set(row[-3:]) == set(reduced) for row in order.tolist())


@pytest.mark.parametrize("density", [1.0, 0.5])
def test_an_experts_mapping_is_worth_having_for_dense_tensors(density):
    """Within a factor of three of what a search of mappings finds."""
    rest = {"type": "manual-strategy", "dense_from": 0.0}
    fixed = {"name": "fixed", "segments": ["mapping", "rest"], "mapping": {"type": "expert-mapping"}, "rest": rest}
    free = {
        "name": "free",
        "segments": ["orders", "tiling", "rest"],
        "orders": {"type": "cantor"},
        "tiling": {"type": "prime-factors"},
        "rest": rest,
    }
    expert = search(problem("conv4", "cloud", fixed, P=density, Q=density), 1, searcher="random").best.score
    searched = search(problem("conv4", "cloud", free, P=density, Q=density), 3000, searcher="gamma").best.score
    assert expert < 3 * searched


@pytest.mark.parametrize(("workload", "hardware"), CELLS[:4])
def test_formats_can_be_searched_under_the_experts_mapping(workload, hardware):
    result = search(problem(workload, hardware, "sage-like"), 6000, searcher="sage-like")
    assert result.best is not None


def test_an_unknown_stationary_tensor_is_told():
    space = {"name": "s", "segments": ["m", "r"], "m": {"type": "expert-mapping", "stationary": "W"},
             "r": {"type": "manual-strategy"}}  # fmt: skip
    with pytest.raises(SpecError, match="no tensor 'W'; known: P, Q, Z"):
        problem("mm3", "edge", space).space.names  # noqa: B018
