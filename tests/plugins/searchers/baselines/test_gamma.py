"""GAMMA: operators that change what they are named after, at the published rates, and only legal designs."""

import numpy as np
import pytest
from sparsemap_plugins.searchers.baselines.gamma import ranking
from sparsemap_plugins.searchers.baselines.gamma_mapping import Operators

from sparsemap import Search, load_problem, search
from sparsemap.pieces.contracts import Scored

CONV = ("resnet-conv3", "accel-b", "sparseloop-mapper")


@pytest.fixture(scope="module")
def problem():
    return load_problem("matmul-32x64x48", "edge")


@pytest.fixture(scope="module")
def conv():
    return load_problem(*CONV)


def individuals(problem, count, seed=0):
    operators = Operators(problem.space, np.random.default_rng(seed))
    mappings = operators.random(count)
    operators.fit(mappings)
    return operators, mappings


def copied(mappings):
    return mappings.take(slice(None))


def changed(before, after):
    names = ("level", "parallel", "order", "rest")
    return {name for name, old, new in zip(names, before.parts, after.parts, strict=True) if (old != new).any()}


@pytest.mark.parametrize(
    ("operator", "parts"),
    [
        ("mutate_tile", {"level"}),
        ("mutate_level", {"level"}),
        ("mutate_order", {"order"}),
        ("mutate_parallelism", {"parallel"}),
        ("mutate_rest", {"rest"}),
    ],
)
def test_a_mutation_changes_what_it_is_named_after(problem, operator, parts):
    operators, before = individuals(problem, 300)
    after = copied(before)
    getattr(operators, operator)(after, 0.0)
    assert changed(before, after) == set()
    getattr(operators, operator)(after, 1.0)
    assert changed(before, after) == parts


@pytest.mark.parametrize("cell", [("matmul-32x64x48", "edge"), ("depthwise-conv-32x16x16", "eyeriss-like"), CONV])
def test_genomes_and_mappings_say_the_same(cell):
    operators, mappings = individuals(load_problem(*cell), 200)
    genomes = operators.genomes(mappings)
    again = operators.mappings(genomes)
    assert (again.level == mappings.level).mean() > 0.5  # equal factors of a dimension may swap levels
    assert (operators.genomes(again) == genomes).all()
    bounds = operators.space.decode(genomes).bounds
    assert (bounds.prod(axis=1) == list(operators.space.problem.sizes.values())).all()


def test_any_genome_can_migrate(problem):
    operators = Operators(problem.space, np.random.default_rng(0))
    genomes = operators.genomes(operators.mappings(problem.space.sample(200, operators.rng)))
    assert (problem.space.check(genomes) == genomes).all()


def test_mutate_tile_draws_dimensions_at_the_published_rates(conv):
    """N .1, K .2, C .2, Y .2, X .2, R .05, S .05; a dimension whose factors all stay by chance is not seen."""
    operators, _ = individuals(conv, 1)
    assert dict(zip(conv.dims, operators.weights.round(6), strict=True)) == {
        "b": 0.1, "k": 0.2, "p": 0.2, "q": 0.2, "c": 0.2, "r": 0.05, "s": 0.05,
    }  # fmt: skip
    before = operators.random(100_000)
    after = copied(before)
    operators.mutate_tile(after, 1.0)
    for dim, chance in enumerate(operators.weights):
        mine = operators.dims == dim
        seen = (before.level != after.level)[:, mine].any(axis=1).mean()
        expected = chance * (1 - operators.S ** -float(mine.sum()))
        assert abs(seen - expected) < 3 * np.sqrt(expected * (1 - expected) / len(before))


@pytest.mark.parametrize(("operator", "part"), [("mutate_order", "order"), ("mutate_level", "level")])
def test_other_mutations_happen_at_their_rate(conv, operator, part):
    operators, _ = individuals(conv, 1)
    before = operators.random(100_000)
    after = copied(before)
    getattr(operators, operator)(after, 0.1)
    old, new = (getattr(mappings, part).reshape(len(before), -1) for mappings in (before, after))
    seen = (old != new).any(axis=1).mean()
    assert abs(seen - 0.1) < 3 * np.sqrt(0.1 * 0.9 / len(before))


def test_crossover_swaps_one_item_and_keeps_both_children(conv):
    operators, first = individuals(conv, 20_000)
    second = operators.random(len(first))
    both = operators.crossover(first, second, 1.0)
    one, two = both.take(slice(len(first))), both.take(slice(len(first), None))
    differs = {
        name: (mine != theirs).reshape(len(first), -1).any(axis=1)
        for name, mine, theirs in zip(("level", "parallel", "order"), one.parts, first.parts, strict=False)
    }
    assert sum(rows.astype(int) for rows in differs.values()).max() == 1
    assert differs["order"].mean() == pytest.approx(0.25, abs=0.01)
    assert differs["parallel"].mean() == pytest.approx(0.25, abs=0.015)
    assert differs["level"].mean() == pytest.approx(0.25, abs=0.02)
    for mine, other, a, b in zip(one.parts, two.parts, first.parts, second.parts, strict=True):
        assert ((mine == a) & (other == b) | (mine == b) & (other == a)).all()
    window = np.isin(operators.dims, [conv.dims.index(dim) for dim in "brs"])
    assert (one.level == first.level)[:, window].all()


def test_tiles_and_parallel_dimensions_are_made_to_fit(conv):
    operators = Operators(conv.space, np.random.default_rng(0))
    mappings = operators.random(100)
    assert operators.overflows(mappings.level).mean() > 0.5
    operators.fit(mappings)
    assert not operators.overflows(mappings.level).any()
    assert conv.evaluator.evaluate(operators.genomes(mappings)).valid.all()


@pytest.mark.parametrize(
    "cell",
    [
        CONV,
        ("resnet-conv3", "accel-a", "sparseloop-mapper"),
        ("mm3", "cloud"),
        ("matmul-32x64x48", "mobile", "direct"),
    ],
)
def test_hardly_any_design_that_it_proposes_is_invalid(cell):
    assert search(load_problem(*cell), 120, searcher="gamma").valid_fraction >= 0.95


def test_metadata_beside_data_make_a_few_of_its_designs_too_large():
    """Tiles of dense tensors are made to fit, as published; metadata that share a memory with them come on top."""
    timeloop = load_problem("conv4", "edge-16gbps", cost_model="timeloop")
    assert search(timeloop, 120, searcher="gamma").valid_fraction >= 0.95
    beside = load_problem("conv4", "edge-16gbps")
    genomes = Search(beside, "gamma", 1000).ask()
    found = beside.evaluator.evaluate(genomes)
    reasons = {reason for row in np.flatnonzero(~found.valid) for reason in found.reasons_of(row)}
    assert reasons == {"capacity:PEB"}
    assert search(beside, 120, searcher="gamma").valid_fraction >= 0.85


def test_half_of_the_first_generation_is_the_same_design(conv):
    genomes = Search(conv, "gamma", 1000).ask()
    assert len(genomes) == 100
    assert (genomes[:50] == genomes[0]).all()
    outer = conv.space.decode(genomes[:1]).bounds[0, 0]
    assert outer.tolist() == list(conv.sizes.values())


def test_the_front_of_several_objectives_leads_then_the_first_objective():
    values = np.array([[3.0, 3.0], [2.0, 1.0], [1.0, 2.0], [1.5, 3.0]])
    rows, front = ranking(Scored(np.zeros((4, 1), np.int64), values.sum(axis=1), values))
    assert (rows.tolist(), front) == ([2, 1, 3, 0], 2)


def test_a_space_without_mapping_genes_is_searched_too():
    space = {
        "segments": ["mapping", "formats", "gate-skip"],
        "mapping": {"type": "fixed", "order": {}, "bounds": {"L1_T": {"m": 32, "k": 64, "n": 48}}},
        "formats": {"type": "rank-formats", "slots": 3, "candidates": ["uncompressed", "coordinate"]},
        "gate-skip": {"candidates": ["none", "gate-both"]},
    }
    assert search(load_problem("matmul-32x64x48", "edge", space=space), 200, searcher="gamma").best is not None
