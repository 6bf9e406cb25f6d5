"""Property: `encode` inverts `decode` for any sizes and genomes, and every segment keeps the contract."""

import math

import numpy as np
import pytest
from encoding_problems import problem, product, space
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sparsemap import EvaluationError, Search, load_problem, search
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


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda g: g[:, 1:], r"genomes have shape \(4, \d+\), expected \(B, \d+\)"),
        (lambda g: g[None], r"genomes have shape \(1, 4, \d+\), expected"),
        (lambda g: g[0, 0], r"genomes have shape \(.*\), expected"),
        (lambda g: g + 10**6, r"genome 0: gene '.+' is 100\d+, expected \d\.\.\d"),
        (lambda g: g - 10**6, r"genome 0: gene '.+' is -99\d+, expected \d\.\.\d"),
        (lambda g: g + 0.9, "genomes have type float64, expected integers"),
        (lambda g: g * np.nan, "genomes have type float64, expected integers"),
    ],
)
def test_wrong_genomes_are_told_in_the_same_words_wherever_they_are_given(wrong, text):
    made, rng = load_problem("mm1", "mobile"), np.random.default_rng(0)
    here = made.space
    genomes = wrong(here.guess(4, rng))
    doors = [made.evaluator.evaluate, here.check, here.decode, here.canonical]
    doors += [lambda g: here.repair(g, rng), lambda g: here.repaired(g, rng)]
    doors += [lambda g, name=name: here.vary(g, name, rng) for name in here.segments]
    doors += [lambda g: search(made, 10, start=np.asarray(g)), Search(made).evaluate]
    for door in doors:
        with pytest.raises(EvaluationError, match=text):
            door(genomes)


def test_one_genome_is_a_batch_of_one():
    made, rng = load_problem("mm1", "mobile"), np.random.default_rng
    genome = made.space.guess(1, rng(0))
    assert np.array_equal(made.space.repair(genome[0], rng(1)), made.space.repair(genome, rng(1)))
    assert np.array_equal(made.space.canonical(genome[0]), made.space.canonical(genome))


def test_what_is_no_generator_or_no_count_is_named():
    here = load_problem("mm1", "mobile").space
    genomes, rng = here.low[None], np.random.default_rng(0)
    for door in (
        lambda: here.repair(genomes, 0),
        lambda: here.vary(genomes, next(iter(here.segments)), 0),
        lambda: here.sample(3, 0),
        lambda: here.guess(3, 0),
    ):
        with pytest.raises(EvaluationError, match="rng is 0, expected a Generator, as np"):
            door()
    for draw in (here.sample, here.guess):
        for count in (-1, 1.5):
            with pytest.raises(EvaluationError, match=f"count is {count}, expected a whole number, at least 0"):
                draw(count, rng)
