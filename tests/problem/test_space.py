"""Property: `encode` inverts `decode` for any sizes and genomes, and every segment keeps the contract."""

import math

import numpy as np
import pytest
from encoding_problems import problem, product, space
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sparsemap.testing import check_segment

SIZES = st.one_of(st.integers(1, 60), st.sampled_from([1, 2, 3, 7, 13, 97, 730, 92378, 12288]))
DIMS = st.lists(SIZES, min_size=1, max_size=5).map(lambda sizes: dict(zip("abcde", sizes, strict=False)))
HARDWARE = ("edge", "clustered", "eyeriss-like")
FORMATS = ["uncompressed", "bitmask", "run-length", "coordinate", "offset-pair"]
MECHANISMS = ["none", "gate-p-by-q", "skip-both"]
ABLATION = space(
    "random-order",
    "direct-tiling",
    "rank-formats",
    "gate-skip",
    rank_formats={"slots": 3, "candidates": FORMATS[:2]},
    gate_skip={"candidates": MECHANISMS},
)


def changed(**tiling):
    """The paper's space with another tiling table."""
    return {"extends": "paper", "tiling": tiling}


@settings(max_examples=60)
@given(
    sizes=DIMS,
    hardware=st.sampled_from(HARDWARE),
    layout=st.sampled_from(["paper", ABLATION, changed(padding="smooth", largest_factor=5), changed(padding="none")]),
    seed=st.integers(0, 2**32 - 1),
)
def test_encode_inverts_decode(sizes, hardware, layout, seed):
    assume(math.prod(sizes.values()) < 2**52)  # beyond, a workload is refused
    made = problem(product(sizes), hardware, layout)
    genomes = made.space.sample(50, np.random.default_rng(seed))
    designs = made.space.decode(genomes)
    encoded = made.space.check(made.space.encode(designs))
    again = made.space.decode(encoded)
    for name, column in designs.columns.items():
        assert (again.columns[name] == column).all(), name
    if layout is not ABLATION:
        assert (designs.bounds.prod(axis=1) == list(made.sizes.values())).all()
    else:
        assert (encoded == genomes).all()  # no two genomes of these encodings are the same design


@pytest.mark.parametrize("layout", ["paper", ABLATION])
@pytest.mark.parametrize("workload", ["mm1", "mm3", "conv1", "attention-scores", "depthwise-conv-32x16x16"])
def test_segments_keep_the_contract(workload, layout):
    made = problem(workload, "edge", layout)
    for segment in made.space.segments.values():
        check_segment(segment, made)
