"""Calibration: Eq. 2-5 on examples computed by hand, and its cost."""

import numpy as np
import pytest
from sparsemap_plugins.searchers.calibration import (
    Calibration,
    high_genes,
    mean_sensitivity,
    trial_cost,
    trial_genomes,
    trial_sensitivity,
)
from toy_problem import HIGH, run, toy_problem, toy_scores

from sparsemap import Budget, Scored

INF = np.inf


def test_sensitivity_of_a_hand_made_trial():
    # Gene 0 takes 1, 2, 4 with scores 10, 20, 5; the pairs give |10-20|/(1*10) = 1, |10-5|/(3*5) = 1/3 and
    # |20-5|/(2*5) = 3/2, their mean is 17/18. Gene 1 has one valid value only.
    genomes = np.array([[1, 1], [2, 1], [4, 1], [1, 1], [1, 3]])
    scored = Scored(genomes, np.array([10.0, 20.0, 5.0, 10.0, INF]))
    sensitivity = trial_sensitivity(scored, np.array([0, 0, 0, 1, 1]), 2)
    assert sensitivity[0] == pytest.approx(17 / 18)
    assert np.isnan(sensitivity[1])


def test_invalid_values_of_a_gene_are_left_out():
    genomes = np.array([[1], [2], [4]])
    sensitivity = trial_sensitivity(Scored(genomes, np.array([10.0, INF, 5.0])), np.zeros(3, int), 1)
    assert sensitivity[0] == pytest.approx(1 / 3)


def test_trials_that_say_nothing_about_a_gene_do_not_lower_its_mean():
    by_trial = np.array([[1.0, np.nan, np.nan], [3.0, 2.0, np.nan]])
    assert mean_sensitivity(by_trial).tolist() == [2.0, 2.0, 0.0]


def test_genes_above_three_quarters_of_the_range_are_high():
    # S_min = 1 and S_max = 5: the threshold is 3/4 * 4 + 1 = 4, and equality is low (Eq. 5).
    assert high_genes(np.array([1.0, 5.0, 4.0, 4.01, 3.0])).tolist() == [False, True, False, True, False]


def test_equal_sensitivities_leave_no_gene_high():
    assert not high_genes(np.full(4, 2.0)).any()
    assert high_genes(np.zeros(0)).shape == (0,)


def test_a_trial_varies_one_gene_at_a_time_over_distinct_values():
    space = toy_problem().space
    base = np.array([3, 1, 5, 2, 2, 7, 1, 1])
    genomes, genes = trial_genomes(base, 4, space, np.random.default_rng(0))
    assert len(genomes) == trial_cost(space, 4) == 7 * 4
    assert set(genes) == set(range(7))  # the last gene has a single value
    for gene in range(7):
        rows = genomes[genes == gene]
        assert len(np.unique(rows[:, gene])) == 4
        assert base[gene] in rows[:, gene]
        assert (np.delete(rows, gene, axis=1) == np.delete(base, gene)).all()
    assert ((genomes >= 1) & (genomes <= HIGH)).all()


def test_the_most_sensitive_gene_of_the_toy_problem_is_found():
    problem = toy_problem()
    notes, _ = run(Calibration().measure(problem.space, Budget(20_000), np.random.default_rng(1)), toy_scores(problem))
    assert notes["sensitivity"].argmax() == 0
    assert notes["high_sensitivity"].tolist() == [True] + [False] * 7
    assert notes["sensitivity"][7] == 0.0


def test_the_pool_holds_distinct_valid_designs():
    problem = toy_problem(limit=5.0)
    notes, batches = run(
        Calibration().measure(problem.space, Budget(5000), np.random.default_rng(1)), toy_scores(problem)
    )
    pool = notes["pool"]
    assert len(pool) > 100
    assert np.isfinite(pool.scores).all()
    assert len(np.unique(pool.genomes, axis=0)) == len(pool)
    assert len(pool) <= sum(map(len, batches))


@pytest.mark.parametrize("total", [1, 20, 100, 300, 1000, 5000, 20_000, 200_000])
@pytest.mark.parametrize("share", [0.05, 0.15])
def test_calibration_stays_within_its_share_of_the_budget(total, share):
    problem = toy_problem()
    generator = Calibration(share=share).measure(problem.space, Budget(total), np.random.default_rng(0))
    _, batches = run(generator, toy_scores(problem))
    assert sum(map(len, batches)) <= share * total


def test_a_budget_too_small_for_a_trial_calibrates_nothing():
    problem = toy_problem()
    generator = Calibration().measure(problem.space, Budget(50), np.random.default_rng(0))
    notes, batches = run(generator, toy_scores(problem))
    assert batches == []
    assert not notes


def test_probes_go_on_until_one_is_valid_and_only_then_are_genes_varied():
    problem = toy_problem()
    left = [7]

    def score(genomes):
        left[0] -= 1
        return np.full(len(genomes), INF) if left[0] > 0 else toy_scores(problem)(genomes)

    notes, batches = run(Calibration().measure(problem.space, Budget(3000), np.random.default_rng(0)), score)
    assert notes["sensitivity"][:2].min() > notes["sensitivity"][2:].max()
    assert all(len(np.unique(batch[:, 0])) == 6 for batch in batches[:7])
    assert len(notes["pool"]) > 0
