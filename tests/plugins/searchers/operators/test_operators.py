"""Operators one by one: shapes, bounds, and the property that each is there for."""

import math

import numpy as np
import pytest
from sparsemap_plugins.searchers.operators.common import part_starts, unique
from sparsemap_plugins.searchers.operators.crossover import OnePoint, SensitivityAware, UniformCrossover
from sparsemap_plugins.searchers.operators.inits import Hypercube, LatinHypercube, UniformInit, cubes
from sparsemap_plugins.searchers.operators.mutation import AnnealingMutation, RandomReset, high_probability
from sparsemap_plugins.searchers.operators.selection import Ranking
from toy_problem import HIGH, run, toy_problem, toy_scores

from sparsemap import Context, Scored
from sparsemap.pieces.loading import load

SPACE = toy_problem().space
MANY = 20_000


def context(progress=0.0, high=None, seed=0):
    notes = {} if high is None else {"high_sensitivity": np.isin(np.arange(8), high)}
    return Context(SPACE, np.random.default_rng(seed), progress, notes)


def genomes(count, seed=1):
    return SPACE.sample(count, np.random.default_rng(seed))


def within_bounds(values):
    return values.dtype == np.int64 and ((values >= 1) & (values <= HIGH)).all()


# ----------------------------------------------------------------------------------------------------------- mutation


@pytest.mark.parametrize(
    ("progress", "expected"), [(0.0, 0.8), (0.5, 0.8 * math.exp(-0.5) * 0.5), (1.0, 0.0)], ids=["start", "half", "end"]
)
def test_the_chance_of_high_sensitivity_genes_follows_equation_6(progress, expected):
    assert high_probability(progress) == pytest.approx(expected)
    before = genomes(MANY)
    after = AnnealingMutation(rate=1.0, genes=1.0).mutate(before, context(progress, high=[0, 1]))
    share = (before != after)[:, :2].any(axis=1).mean()
    assert share == pytest.approx(expected, abs=0.015)
    assert ((before != after).sum(axis=1) == 1).all()  # one gene, of one of the two segments


@pytest.mark.parametrize("mutation", [AnnealingMutation, RandomReset])
@pytest.mark.parametrize(("rate", "genes"), [(0.0, 1.0), (0.3, 1.0), (1.0, 2.5)])
def test_a_share_of_the_offspring_mutates_in_about_as_many_genes_as_asked(mutation, rate, genes):
    before = genomes(MANY)
    changed = before != mutation(rate=rate, genes=genes).mutate(before, context(0.5))
    assert changed.any(axis=1).mean() == pytest.approx(rate, abs=0.015)
    if rate:
        assert changed.sum(axis=1)[changed.any(axis=1)].mean() == pytest.approx(genes, abs=0.05)


@pytest.mark.parametrize("mutation", [AnnealingMutation(), AnnealingMutation(step=1.0), RandomReset(genes=8.0)])
def test_mutation_stays_within_bounds_and_leaves_its_input_alone(mutation):
    before = genomes(500)
    copy = before.copy()
    after = mutation.mutate(before, context(0.2, high=[0]))
    assert within_bounds(after)
    assert (before == copy).all()
    assert (after[:, 7] == 1).all()  # a gene with a single value


def test_steps_go_to_neighbouring_values():
    before = genomes(MANY)
    after = AnnealingMutation(rate=1.0, genes=3.0, step=1.0).mutate(before, context())
    assert set(np.unique(np.abs(after - before))) == {0, 1}


def test_a_reset_reaches_every_other_value_alike():
    before = np.ones((MANY, 8), np.int64)
    after = RandomReset(rate=1.0, genes=1.0).mutate(before, context())
    counts = np.bincount(after[after[:, 0] != 1, 0])[2:]
    assert len(counts) == 5
    assert counts.min() > 0.85 * counts.max()


@pytest.mark.parametrize("high", [None, [], list(range(8))])
def test_with_a_single_segment_annealing_still_mutates(high):
    before = genomes(1000)
    after = AnnealingMutation(rate=1.0).mutate(before, context(1.0, high=high))
    assert (before != after).any(axis=1).all()


# ---------------------------------------------------------------------------------------------------------- crossover


def pairs(count):
    """Parents 0 all ones, parents 1 all twos (but for the last gene, always 1): a child shows where a gene came from."""
    mates = np.tile(np.array([[[1] * 8, [2] * 7 + [1]]]), (count, 1, 1))
    return mates.astype(np.int64)


@pytest.mark.parametrize("crossover", [OnePoint(), SensitivityAware(), SensitivityAware(points=3), UniformCrossover()])
def test_children_take_every_gene_from_a_parent(crossover):
    mates = np.stack([genomes(300, 1), genomes(300, 2)], axis=1)
    children = crossover.cross(mates, context(high=[3, 4]))
    assert children.shape == (300, 8)
    assert ((children == mates[:, 0]) | (children == mates[:, 1])).all()


def test_parts_begin_at_segments_dimensions_and_tensors():
    # order.a order.b | m.1 m.2 | k.1 | P.1 P.2 | Q.1
    assert np.flatnonzero(part_starts(SPACE)).tolist() == [0, 2, 4, 5, 7]


def test_cuts_lie_at_borders_of_high_runs_and_of_parts_outside_them():
    assert SensitivityAware(parts=False).cut_points(context(high=[3, 4, 5])).tolist() == [3, 6]
    assert SensitivityAware().cut_points(context(high=[3, 4, 5])).tolist() == [2, 3, 6, 7]  # not 4 and 5
    assert SensitivityAware().cut_points(context()).tolist() == [2, 4, 5, 7]


def test_a_run_of_high_genes_is_never_torn_apart():
    children = SensitivityAware(points=2).cross(pairs(2000), context(high=[1, 2, 3]))
    assert (children[:, 1:4].min(axis=1) == children[:, 1:4].max(axis=1)).all()
    assert len(np.unique(children, axis=0)) > 4


def test_without_a_cut_point_children_are_their_first_parents():
    assert (SensitivityAware(parts=False).cross(pairs(5), context()) == 1).all()


def test_one_point_cuts_everywhere():
    children = OnePoint().cross(pairs(2000), context())[:, :7]
    assert len(np.unique(children, axis=0)) == 7
    assert (np.diff(children, axis=1) >= 0).all()


# ---------------------------------------------------------------------------------------------------------- selection


def scored(scores):
    """Designs whose first two genes say their number."""
    genomes = np.ones((len(scores), 8), np.int64)
    genomes[:, 1], genomes[:, 0] = 1 + np.array(np.divmod(np.arange(len(scores)), 6))
    return Scored(genomes, np.array(scores, dtype=float))


def numbers(mates):
    return mates[..., 0] - 1 + 6 * (mates[..., 1] - 1)


def test_only_the_best_share_mates_and_never_with_itself():
    population = scored([5, 1, 4, 2, 3, 6, 7, 8])
    mates = Ranking(share=0.5).pick(population, 2000, context())
    assert mates.shape == (2000, 2, 8)
    assert np.unique(numbers(mates)).tolist() == [1, 2, 3, 4]
    assert (numbers(mates)[:, 0] != numbers(mates)[:, 1]).all()


def test_invalid_designs_mate_only_if_there_is_no_valid_one():
    mates = Ranking(share=1.0).pick(scored([np.inf, 3.0, np.inf, np.inf]), 50, context())
    assert (numbers(mates) == 1).all()
    assert Ranking().pick(scored([np.inf] * 4), 50, context()).shape == (50, 2, 8)


def test_pressure_prefers_the_best():
    mates = Ranking(share=1.0, pressure=3.0).pick(scored(range(10)), MANY, context())
    counts = np.bincount(numbers(mates)[:, 0], minlength=10)
    assert (np.diff(counts[:9]) < 0).all()


def test_the_best_distinct_designs_of_parents_and_children_survive():
    parents, children = scored([4, 2]), scored([4, 2])  # the same genomes
    children = Scored(np.concatenate([children.genomes, children.genomes[:1] + 1]), np.array([4.0, 2.0, 1.0]))
    survivors = Ranking().survive(parents, children, 10)
    assert survivors.scores.tolist() == [1.0, 2.0, 4.0]
    assert Ranking().survive(parents, children, 2).scores.tolist() == [1.0, 2.0]


def test_unique_keeps_the_first_of_each():
    kept = unique(Scored(np.array([[3], [1], [3], [2], [1]]), np.arange(5.0)))
    assert kept.genomes[:, 0].tolist() == [3, 1, 2]
    assert kept.scores.tolist() == [0, 1, 3]


# ----------------------------------------------------------------------------------------------------- initialisation


def calibrated(high, pool, problem=None):
    problem = problem or toy_problem()
    scores = problem.evaluator.score(problem.evaluator.evaluate(pool))
    keep = np.isfinite(scores)
    notes = {"high_sensitivity": np.isin(np.arange(8), high), "pool": Scored(pool[keep], scores[keep])}
    return Context(problem.space, np.random.default_rng(0), notes=notes)


@pytest.mark.parametrize("init", [UniformInit(), LatinHypercube(), Hypercube()])
@pytest.mark.parametrize("size", [2, 17, 100])
@pytest.mark.parametrize("made", [context, lambda: calibrated([0], genomes(400))], ids=["plain", "calibrated"])
def test_an_initial_population_has_its_size_and_is_within_bounds(init, size, made):
    population, batches = run(init.fill(size, made()), toy_scores(toy_problem()))
    assert len(population) == len(population.scores) == size
    assert all(within_bounds(batch) for batch in batches)


def test_a_latin_hypercube_hits_every_stratum_of_every_gene_once():
    population, _ = run(LatinHypercube().fill(30, context()), toy_scores(toy_problem()))
    for gene, high in enumerate(HIGH):
        counts = np.bincount(population.genomes[:, gene], minlength=high + 1)[1:]
        assert counts.min() >= 30 // high - 1
        assert counts.max() <= -(-30 // high) + 1


@pytest.mark.parametrize("axes", [[], [0], [0, 1], [0, 2, 5], list(range(8))])
@pytest.mark.parametrize("count", [1, 6, 100])
def test_hypercubes_tile_the_axes_without_gap_or_overlap(axes, count):
    mask = np.isin(np.arange(8), axes)
    low, high = cubes(SPACE, mask, count, np.random.default_rng(0))
    assert low.shape == high.shape == (count, 8)
    assert (low <= high).all()
    assert (low[:, ~mask] == 1).all()
    assert (high[:, ~mask] == HIGH[~mask]).all()
    for gene in axes:
        parts = sorted({(int(a), int(b)) for a, b in zip(low[:, gene], high[:, gene], strict=True)})
        covered = [value for a, b in parts for value in range(a, b + 1)]
        assert len(covered) == len(set(covered))
        if count == 100:
            assert covered == list(range(1, HIGH[gene] + 1))


def test_hypercubes_of_genes_with_huge_ranges_do_not_overflow():
    class Wide:
        low, high = np.ones(2, np.int64), np.full(2, 2**61, np.int64)

        def __len__(self):
            return 2

    low, high = cubes(Wide(), np.array([True, True]), 100, np.random.default_rng(0))
    assert (low >= 1).all()
    assert (high <= 2**61).all()
    assert len(np.unique(low, axis=0)) == 100


def test_hypercube_designs_are_valid_and_differ_in_the_sensitive_genes():
    problem = toy_problem(limit=4.0)
    state = calibrated([0, 1], genomes(400), problem)
    population, batches = run(Hypercube(cubes=36).fill(36, state), toy_scores(problem))
    assert len(batches) == 20
    valid = population.genomes[np.isfinite(population.scores)]
    assert len({tuple(genome[:2]) for genome in valid}) == 6  # all pairs with a sum of at most 4
    assert sum(map(len, batches)) <= 36 * 20


def test_low_sensitivity_genes_come_from_the_pool():
    state = calibrated([0], np.full((1, 8), 1, np.int64))
    _, batches = run(Hypercube().fill(20, state), toy_scores(toy_problem()))
    assert all((batch[:, 1:] == 1).all() for batch in batches)


def test_a_spec_that_extends_the_papers_search_may_take_another_operator():
    """The keys of the operator that is replaced (here the rate and start of the annealing) mean nothing to the new one."""
    searcher = load().build("searcher", {"extends": "sparsemap-paper", "mutation": {"type": "random-reset"}})
    assert searcher.mutation.type_name == "random-reset"
    assert searcher.population == 100
