"""What a forecast tells of designs that have not been tried."""

import numpy as np
import pytest
from sparsemap_plugins.searchers import forecast as module
from sparsemap_plugins.searchers.forecast import FEWEST, MOST, Forecast
from sparsemap_plugins.searchers.genes import Seen

from sparsemap import load_problem
from sparsemap.pieces.loading import load

REGISTRY = load()


def tried(problem, count, seed):
    """Guesses, and what they score."""
    rng = np.random.default_rng(seed)
    designs = problem.space.repaired(problem.space.guess(count, rng), rng)
    return designs, problem.evaluator.score(problem.evaluator.evaluate(designs.genomes))


@pytest.mark.parametrize(("workload", "hardware"), [("mm7", "mobile"), ("conv4", "edge"), ("mm9", "cloud")])
def test_promising_designs_are_better_than_others(workload, hardware):
    problem = load_problem(workload, hardware, registry=REGISTRY)
    forecast = Forecast.of(problem.space)
    forecast.receive(*tried(problem, 200, 1))
    designs, scores = tried(problem, 300, 2)
    valid = np.flatnonzero(np.isfinite(scores))  # which is no matter of loops alone
    designs, scores = designs.take(valid), scores[valid]
    order = forecast.promise(designs, np.arange(len(designs))).argsort(kind="stable")
    assert np.median(scores[order[:40]]) < 0.3 * np.median(scores)


def test_nothing_is_told_of_few_designs_and_few_are_kept():
    problem = load_problem("mm1", "cloud", registry=REGISTRY)
    forecast = Forecast.of(problem.space)
    designs, scores = tried(problem, 500, 0)
    forecast.receive(designs.take(np.arange(FEWEST - 1)), scores[: FEWEST - 1])
    assert not forecast.knows
    forecast.receive(designs, np.full(500, np.inf))
    assert not forecast.knows
    forecast.receive(designs, scores)
    assert forecast.knows and len(forecast.scores) == MOST and forecast.scores.max() <= np.sort(np.log(scores))[MOST]


def test_designs_whose_loops_bring_the_same_keep_their_order():
    """Such as one design twice, wherever it stands: sums may round differently there."""
    problem = load_problem("mm1", "cloud", registry=REGISTRY)
    forecast = Forecast.of(problem.space)
    forecast.receive(*tried(problem, 300, 0))
    designs, _ = tried(problem, 37, 1)
    told, rows = forecast.promise(designs, np.arange(37)), np.arange(37).repeat(3)
    assert np.array_equal(forecast.promise(designs, rows), told.repeat(3))


class NoLoops:
    """A space whose segments provide none."""

    @staticmethod
    def provides(column):
        return False


def test_a_space_without_loops_has_no_forecast():
    assert Forecast.of(NoLoops()) is None


def test_unseen_genomes_are_not_seen_by_being_asked_for():
    seen, genomes = Seen(), np.array([[1, 2], [1, 2], [3, 4], [1, 2]])
    assert seen.unseen(genomes).tolist() == seen.unseen(genomes).tolist() == [0, 2]
    assert seen.new(genomes).tolist() == [0, 2] and seen.new(genomes).tolist() == []


@pytest.mark.parametrize("names", [("mm1", "cloud"), ("conv4", "mobile"), ("batched-matmul-8x64x64x64", "clustered")])
def test_features_say_what_loops_move(names):
    """Against counts of a loop nest written out."""
    problem = load_problem(*names, registry=REGISTRY)
    forecast, (designs, _) = Forecast.of(problem.space), tried(problem, 5, 0)
    columns, levels = designs.designs.columns, problem.mapping_levels
    for row, told in enumerate(forecast._told(designs, np.arange(5))):
        assert np.allclose(told, [*expected(problem, columns["bounds"][..., row], columns["order"][..., row], levels)])


def expected(problem, bounds, order, levels):
    yield from np.log(bounds).ravel() / 2.0
    yield from (np.log(bounds[place]).sum() for place, level in enumerate(levels) if level.spatial)
    in_time = [place for place, level in enumerate(levels) if not level.spatial]
    for level in [*in_time[1:], len(levels)]:
        moving = [[dim in tensor.dims for dim in problem.dims] for tensor in problem.tensors]
        words = [np.log(bounds[level:, mine]).sum() for mine in moving] if level < len(levels) else [0.0] * len(moving)
        yield from words if level < len(levels) else ()
        for own, mine in zip(words, moving, strict=True):
            nest = [(dim, bounds[place, dim]) for place in in_time if place < level for dim in order[place]]
            while nest and not (mine[nest[-1][0]] and nest[-1][1] > 1):
                nest.pop()
            spread = [bounds[place, mine].prod() for place in range(level) if levels[place].spatial]
            yield own + np.log([bound for _, bound in nest]).sum() + np.log(spread).sum()


@pytest.mark.parametrize("size", [1, 2, 4, 67, 130])
def test_rows_are_divided_by_the_factor_of_a_matrix(size):
    drawn, own = np.random.default_rng(0).normal(size=(2, size, size))
    matrix = drawn @ drawn.T + 0.01 * np.eye(size)
    found, lower = module.reduced(np.concatenate([matrix, own])), np.linalg.cholesky(matrix)
    assert np.allclose(np.tril(found[:size]), lower) and np.allclose(found[size:] @ lower.T, own)


@pytest.mark.parametrize(("count", "width"), [(1, 1), (37, 0), (60, 9), (130, 3)])
def test_designs_are_alike_by_distance_and_by_genes(count, width):
    rng = np.random.default_rng(0)
    features, genes, known = rng.random((count, width)), rng.integers(0, 3, size=(count, 5)), max(count // 2, 1)
    squared = ((features[:, None] - features) ** 2).sum(axis=2) + 0.04 * (genes[:, None] != genes).sum(axis=2)
    far = np.sqrt(squared)[:, :known] / 0.5
    matern = np.exp(-far) * (1.0 + far) + 0.3 * (features @ features[:known].T + 1.0)
    lower = np.tri(count, known, dtype=bool)
    assert np.allclose(module.likeness(features, genes, known, 0.5, 0.04, slope=0.3)[lower], matern[lower])
