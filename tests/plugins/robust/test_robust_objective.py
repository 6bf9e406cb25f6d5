"""`robust:edp`: the score over densities is what separate evaluations add up to, and is searched, bounded and kept."""

import json
import os
import signal
from typing import ClassVar

import attrs
import numpy as np
import pytest
from crashes import in_process, outcome, search_quietly

from sparsemap import SpecError, load_problem, search
from sparsemap.pieces.contracts import Searcher
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.searching.folder import search_into
from sparsemap.searching.journal import JOURNAL_FILE, designs_in

EINSUM = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 64, "k": 128, "n": 32}}
POINTS = (1.0, 0.8, 0.5, 0.2, 0.1)
RANGE = {"type": "range", "low": 0.1, "high": 1.0, "points": POINTS, "nominal": 0.5}
SMALL = {"extends": "edge-16gbps", "levels": {"GLB": {"capacity": "12 KB"}}}
"""A buffer that the tiles of some designs fit at some densities only."""


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.fixture(scope="module")
def problem_of(registry):
    def make(density=RANGE, objective="robust:edp", hardware=SMALL, other=0.3):
        workload = {**EINSUM, "density": {"P": density, "Q": other}}
        return load_problem(workload, hardware, objective=objective, cost_model="timeloop", registry=registry)

    return make


@pytest.fixture(scope="module")
def genomes(problem_of):
    space, rng = problem_of(0.1, "edp").space, np.random.default_rng(0)
    return space.repair(space.guess(1000, rng), rng)


@pytest.fixture(scope="module")
def separate(problem_of, genomes):
    """By density, what a problem with that density alone says of the designs."""
    return {density: problem_of(density, "edp").evaluator.evaluate(genomes) for density in (*POINTS, 0.3)}


def robust(**keys):
    return {"type": "robust", "objective": "edp", **keys}


def scores_of(problem, genomes):
    evaluation = problem.evaluator.evaluate(genomes)
    return evaluation, problem.evaluator.score(evaluation)


def test_the_score_is_the_weighted_sum_of_separate_evaluations(problem_of, genomes, separate):
    evaluation, scores = scores_of(problem_of(), genomes)
    valid = np.all([separate[density].valid for density in POINTS], axis=0)
    assert 0 < valid.sum() < separate[0.1].valid.sum()  # some fit at low densities only
    assert np.array_equal(evaluation.valid, valid)
    expected = sum(separate[density].edp[valid] / density for density in POINTS)
    assert np.allclose(scores[valid], expected, rtol=1e-12, atol=0)
    assert np.isinf(scores[~valid]).all()
    assert np.array_equal(evaluation.energy_pj[valid], separate[0.5].energy_pj[valid])  # the nominal density
    assert np.array_equal(evaluation.scenarios["P=0.1"].cycles[valid], separate[0.1].cycles[valid])


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"weights": "equal"}, lambda edp: edp.sum(axis=0)),
        ({"weights": [4, 0, 0, 0, 1]}, lambda edp: 4 * edp[0] + edp[4]),
        ({"weights": "equal", "reduce": "geomean"}, lambda edp: np.exp(np.log(edp).mean(axis=0))),
        ({"reduce": "max"}, lambda edp: (edp / np.array(POINTS)[:, None]).max(axis=0)),
    ],
)
def test_other_weights_and_reductions(keys, expected, problem_of, genomes, separate):
    evaluation, scores = scores_of(problem_of(objective=robust(**keys)), genomes)
    rows = evaluation.valid
    edp = np.array([separate[density].edp[rows] for density in POINTS])
    assert rows.any()
    assert np.allclose(scores[rows], expected(edp), rtol=1e-12, atol=0)


def test_fit_says_at_which_densities_a_design_must_be_valid(problem_of, genomes, separate):
    low = {**RANGE, "high": 0.5, "points": (0.5, 0.3, 0.1), "nominal": 0.3}
    found = {fit: scores_of(problem_of(low, robust(fit=fit)), genomes) for fit in ("all", "dense", "nominal")}
    at_all = separate[0.5].valid & separate[0.3].valid & separate[0.1].valid
    assert np.array_equal(found["all"][0].valid, at_all)
    assert np.array_equal(found["dense"][0].valid, at_all & separate[1.0].valid)
    assert np.array_equal(found["nominal"][0].valid, separate[0.3].valid)
    assert len({evaluation.valid.sum() for evaluation, _ in found.values()}) == 3
    dense = found["dense"][0].valid  # being dense is asked for, and not scored
    assert np.array_equal(found["dense"][1][dense], found["all"][1][dense])
    unfit = separate[0.3].valid & separate[0.1].valid & ~separate[0.5].valid
    assert unfit.any()
    left = separate[0.3].edp[unfit] / 0.3 + separate[0.1].edp[unfit] / 0.1
    weights = np.array([1 / 0.5, 1 / 0.3, 1 / 0.1])
    assert np.allclose(found["nominal"][1][unfit], left * weights.sum() / weights[1:].sum(), rtol=1e-12, atol=0)


def test_one_scenario_of_weight_one_is_the_plain_search(problem_of):
    one = {**RANGE, "points": [0.4], "weights": [1.0], "nominal": 0.4}
    blind = {
        "extends": "sparsemap",
        "classes": 0.0,
        "jumps": 0.0,
        "prune": False,
    }  # classes have bounds on plain scores
    robustly, plainly = (search(problem_of(*of), 600, 1, blind) for of in ((one,), (0.4, "edp")))
    assert np.array_equal(robustly.best.genome, plainly.best.genome)
    assert robustly.best.score == plainly.best.score
    rows = [[{**attrs.asdict(row), "seconds": 0.0} for row in result.history] for result in (robustly, plainly)]
    assert repr(rows[0]) == repr(rows[1])  # the mean of a batch without a valid design is nan
    assert robustly.bound == plainly.bound


def test_without_a_range_the_score_is_that_of_the_objective(problem_of):
    problem = problem_of(0.4)
    assert problem.scenarios == {}
    result = search(problem, 300)
    assert result.best.score == result.best.edp


def test_no_design_is_below_the_bound(problem_of):
    problem, rng = problem_of(hardware="edge-16gbps"), np.random.default_rng(1)
    guesses = problem.space.repair(problem.space.guess(4_000, rng), rng)
    _, scores = scores_of(problem, guesses)
    assert np.isfinite(scores).mean() > 0.5
    assert 0 < problem.bound <= scores.min()
    parts = [problem_of(density, "edp", "edge-16gbps").bound / density for density in POINTS]
    assert problem.bound == pytest.approx(sum(parts), rel=1e-12)


def test_several_ranges_make_all_combinations(problem_of):
    other = {**RANGE, "points": [0.5, 0.25], "weights": "equal", "nominal": 0.25}
    scenarios = problem_of(other=other).scenarios
    assert len(scenarios) == 10
    found = scenarios["P=0.1,Q=0.25"]
    assert found.weight == pytest.approx(10)
    shares = [tensor.density.occupancy(tensor.shape(EINSUM["dims"])).density for tensor in found.problem.tensors]
    assert shares[:2] == pytest.approx([0.1, 0.25], rel=1e-2)
    assert shares[2] == pytest.approx(1 - (1 - shares[0] * shares[1]) ** 128, rel=1e-3)  # the output follows


def test_results_do_not_depend_on_the_block(problem_of, genomes):
    problem = problem_of()
    whole = problem.evaluator.evaluate(genomes)
    parts = attrs.evolve(problem.evaluator, block=300).evaluate(genomes)
    assert np.array_equal(whole.reasons, parts.reasons)
    for name, found in whole.scenarios.items():
        assert np.array_equal(found.energy_pj, parts.scenarios[name].energy_pj)


@pytest.mark.parametrize(
    ("objective", "density", "other", "message"),
    [
        (robust(weights=[1, 2]), RANGE, 0.3, "weights.*has 2 weights, expected 5, one per scenario"),
        (robust(reduce="mean"), RANGE, 0.3, "reduce.*'sum' or 'geomean' or 'max'"),
        ("robust:pareto:energy,delay", RANGE, 0.3, "has 2 values"),
        ("robust:robust:edp", RANGE, 0.3, "robust already"),
        ("robust:epd", RANGE, 0.3, "did you mean 'edp'"),
        (
            "robust:edp",
            {**RANGE, "points": (*POINTS, 0.3)},
            RANGE,
            "30 scenarios .6 of P . 5 of Q., expected at most 25",
        ),
    ],
)
def test_what_is_wrong_is_named(objective, density, other, message, problem_of):
    with pytest.raises(SpecError, match=message):
        assert problem_of(density, objective, other=other).bound


# --- what a search hears and keeps


@attrs.frozen
class Listening(Searcher):
    """Proposes guesses, and notes what it hears, a list for each time that it is started."""

    type_name: ClassVar[str] = "listening"
    takes_migrants: ClassVar[bool] = True
    heard: list = attrs.field(factory=list)

    def search(self, space, budget, rng):
        self.heard.append([])
        while True:
            self.heard[-1].append((yield space.repair(space.guess(50, rng), rng)))


def test_a_search_hears_the_nominal_density_first_and_then_starts_from_the_best_designs_of_that(problem_of):
    problem, searcher = problem_of(), Listening()
    result = search(problem, 400, searcher=searcher)
    first, second = searcher.heard
    assert len(first) == 1 and len(second) > 1  # the last batch of a part ends it unheard
    evaluation, scores = scores_of(problem, first[0].genomes)
    assert (first[0].scores == np.where(evaluation.valid, evaluation.edp, np.inf)).all()
    assert min(second[0].scores) <= min(scores) and result.best.score <= min(scores)
    one = Listening()
    search(problem_of(0.3, "edp"), 100, searcher=one)
    assert len(one.heard) == 1  # nothing to begin with where there is no range


@pytest.fixture(scope="module")
def searched(problem_of, tmp_path_factory):
    folder = tmp_path_factory.mktemp("searched")
    return folder, search_into(folder, problem_of(), 800, 7)


def test_the_result_has_the_numbers_of_every_scenario(searched, problem_of):
    folder, result = searched
    for density in POINTS:
        alone = problem_of(density, "edp")
        found = alone.evaluator.evaluate(result.best.genome[None])
        there = result.best.scenarios[f"P={density:g}"]
        assert (there.energy_pj, there.cycles) == (found.energy_pj[0], found.cycles[0])
        assert there.gap == pytest.approx(there.edp / alone.bound)
    assert result.best.score == pytest.approx(sum(result.best.scenarios[f"P={d:g}"].edp / d for d in POINTS), rel=1e-12)
    table = json.loads((folder / "result.json").read_text())["scenarios"]
    assert table["P=0.1"]["edp"] == result.best.scenarios["P=0.1"].edp
    assert set(table["P=0.1"]) == {"edp", "energy_pj", "cycles", "score", "bound", "gap"}
    assert "P=0.1" in result.report("summary")


def test_a_design_file_carries_the_range(searched, registry):
    folder, result = searched
    design = design_file.load(folder / "design.toml", registry)
    evaluation = design.problem.evaluator.evaluate_designs(design.batch)
    assert design.problem.evaluator.score(evaluation)[0] == result.best.score
    assert evaluation.scenarios["P=0.1"].edp[0] == result.best.scenarios["P=0.1"].edp


def test_what_a_design_lacks_in_a_scenario_is_told(problem_of, genomes, separate):
    problem = problem_of()
    row = np.flatnonzero(separate[0.5].valid & ~separate[1.0].valid)[0]
    designs = problem.space.decode(genomes[[row]])
    evaluation = problem.evaluator.evaluate_designs(designs, detail=True)
    assert evaluation.reasons_of(0) == ("capacity:GLB",)
    assert evaluation.detail.needed[0][0][3].endswith("at P=1")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked process")
def test_a_search_that_is_killed_keeps_its_scenarios(searched, problem_of, tmp_path):
    def kill(snapshot):
        if snapshot.evaluations >= 500:
            os.kill(os.getpid(), signal.SIGKILL)

    process = in_process(search_quietly, tmp_path, problem_of(), 800, None, kill)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert 0 < designs_in(tmp_path / JOURNAL_FILE) <= 800
    search_quietly(tmp_path, problem_of(), 800, None)
    assert outcome(tmp_path) == outcome(searched[0])
