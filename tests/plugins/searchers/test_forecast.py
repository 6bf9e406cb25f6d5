"""What a forecast tells of designs that have not been tried."""

import numpy as np
import pytest
from sparsemap_plugins.searchers import forecast as module
from sparsemap_plugins.searchers import plain_forecast, screening
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
def test_a_promise_is_the_same_in_c(names, monkeypatch):
    problem = load_problem(*names, registry=REGISTRY)
    forecast = Forecast.of(problem.space)
    monkeypatch.setattr(plain_forecast, "DIGITS", 14)  # to nearly the last bit
    monkeypatch.setattr(module, "FIGURES", np.append(module.FIGURES[:4], 1e14))
    for known, count in ((200, 43), (1, 1), (60, 1)):
        forecast.receive(*tried(problem, known, known))
        designs, _ = tried(problem, count, 1)
        rows = np.arange(0, count, 2)
        found, told = forecast.promise(designs, rows), forecast._told(designs, rows)
        with monkeypatch.context() as without:
            without.setattr(module, "gaussian", None)
            assert np.array_equal(forecast._told(designs, rows), told)
            assert np.array_equal(forecast.promise(designs, rows), found)


@pytest.mark.skipif(module.gaussian is None, reason="not compiled")
def test_what_does_not_fit_together_is_left_to_numpy():
    problem = load_problem("mm1", "cloud", registry=REGISTRY)
    forecast = Forecast.of(problem.space)
    forecast.receive(*tried(problem, 60, 0))
    designs, _ = tried(problem, 7, 1)
    columns, genomes = designs.designs.columns, designs.genomes
    loops = [np.log2(columns["bounds"]), columns["order"], forecast.moves, forecast.is_spatial]
    known = forecast.features, forecast.genes, forecast.scores
    fine = [np.empty(5), np.arange(2, 7), *known, *loops, genomes, forecast.rest, module.FIGURES, np.exp]
    assert module.gaussian.promise(*fine) == 5
    for place, given in enumerate(fine):
        for other in (None, "", *([given[None], given[..., :-1]] if isinstance(given, np.ndarray) else [np.add])):
            if (place, getattr(other, "ndim", 0)) != (9, 2):  # more genes than are asked for
                assert module.gaussian.promise(*fine[:place], other, *fine[place + 1 :]) is None, place
    for place, beyond in ((10, 1000), (10, -1000), (1, 1), (1, -3), (6, 3)):
        assert (
            module.gaussian.promise(*fine[:place], fine[place] + fine[place].dtype.type(beyond), *fine[place + 1 :])
            is None
        )


@pytest.mark.parametrize("size", [1, 2, 4, 67, 130])
def test_rows_are_divided_by_the_factor_of_a_matrix(size, monkeypatch):
    """In C, to the last bit, as in NumPy."""
    drawn, own = np.random.default_rng(0).normal(size=(2, size, size))
    matrix = drawn @ drawn.T + 0.01 * np.eye(size)
    rows = np.concatenate([matrix, own])
    found = screening.reduced(rows.copy())
    monkeypatch.setattr(screening, "gaussian", None)
    lower, again = np.linalg.cholesky(matrix), screening.reduced(rows.copy())
    assert np.allclose(np.tril(again[:size]), lower) and np.allclose(again[size:] @ lower.T, own)
    assert np.array_equal(np.tril(again[:size]), np.tril(found[:size])) and np.array_equal(again[size:], found[size:])


@pytest.mark.parametrize(("count", "width"), [(1, 1), (37, 0), (60, 9), (130, 3)])
def test_likeness_is_the_same_in_c(count, width, monkeypatch):
    rng = np.random.default_rng(0)
    given = rng.random((count, width)), rng.integers(0, 3, size=(count, 5)), 0.5, 0.04
    found = screening.likeness(*given)
    monkeypatch.setattr(screening, "gaussian", None)
    assert np.array_equal(found, screening.likeness(*given))
