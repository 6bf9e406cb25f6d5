import attrs
import numpy as np
import pytest
from encoding_problems import registry

from sparsemap import load_problem
from sparsemap.errors import SpecError
from sparsemap.pieces.loading import load
from sparsemap.problem.evaluation import Evaluation
from sparsemap.problem.load import objective_of
from sparsemap.testing import check_objective

TWO = Evaluation({"energy_pj": np.array([3.0, 5.0]), "cycles": np.array([2.0, 4.0])}, np.zeros(2, np.uint64), ())


def build(score):
    return registry().build("objective", {"type": "expression", "score": score}, "o.toml")


@pytest.mark.parametrize(("name", "scores"), [("edp", [6, 20]), ("energy", [3, 5]), ("delay", [2, 4])])
def test_shipped_objectives(name, scores):
    piece = registry().get("objective", name)
    assert piece.score(TWO).tolist() == scores
    check_objective(piece)


def test_an_objective_written_on_the_spot():
    piece = build("energy_pj * cycles**2")
    assert piece.score(TWO).tolist() == [12, 80]
    assert build("edp").score(TWO).tolist() == [6, 20]
    check_objective(piece)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        ("3", "'3' is the same for every design"),
        ("", "the expression is empty"),
    ],
)
def test_what_is_wrong_is_told(score, message):
    with pytest.raises(SpecError, match=rf"o\.toml: score: .*{message}"):
        build(score)


def test_a_cost_that_nothing_gives_is_told_when_the_problem_is_made():
    with pytest.raises(SpecError, match="objective: no cost 'delayy'; did you mean 'delay'"):
        objective_of(registry(), "energy * delayy")
    assert objective_of(registry(), "energy * dollars", costs=("energy_pj", "cycles", "dollars")).costs == (
        "dollars",
        "energy",
    )


def test_time_power_and_area_are_costs_of_every_problem():
    chip = load_problem("mm1", "edge").chip
    one = TWO.on(attrs.evolve(chip, clock_hz=np.array(0.5e9)))
    assert build("seconds").score(one).tolist() == [4e-9, 8e-9]
    assert build("edp_js").score(one) == pytest.approx([12e-21, 40e-21])
    assert build("power").score(one) == pytest.approx([3e-12 / 4e-9, 5e-12 / 8e-9])
    assert build("area").score(one) == pytest.approx([chip.total_area_mm2] * 2)
    assert (build("edp_js").unit, build("seconds * area_mm2").unit) == ("J * s", "s * mm2")
    assert build("edp_js").monotone and build("seconds * area").monotone and not build("power").monotone


def test_an_expression_knows_the_names_of_objectives():
    assert build("energy * delay").score(TWO).tolist() == build("energy_pj * cycles").score(TWO).tolist()


@pytest.mark.parametrize(
    ("score", "unit"),
    [
        ("energy_pj", "pJ"),
        ("edp", "pJ * cycles"),
        ("energy * delay", "pJ * cycles"),
        ("edp**2 * delay", "(pJ * cycles)**2 * cycles"),
        ("energy_pj + cycles", ""),
        ("2 * cycles", ""),
    ],
)
def test_products_have_a_unit(score, unit):
    assert build(score).unit == unit


def test_several_objectives_have_a_unit_each_and_the_score_that_of_their_product():
    piece = objective_of(load(env={}), "pareto:energy,delay")
    assert (piece.units, piece.unit) == (("pJ", "cycles"), "pJ * cycles")


def test_a_name_or_an_expression_on_the_command_line():
    assert objective_of(registry(), "edp") is registry().get("objective", "edp")
    assert objective_of(registry(), "energy_pj").score(TWO).tolist() == [3, 5]
    made = objective_of(registry(), "energy_pj * cycles**2")
    assert made.name == "energy_pj * cycles**2" and made.score(TWO).tolist() == [12, 80]
    with pytest.raises(SpecError, match="no objective 'edpp'; did you mean 'edp'"):
        objective_of(registry(), "edpp")
    with pytest.raises(SpecError, match="no cost 'enrgy'; did you mean 'energy'"):
        objective_of(registry(), "enrgy * cycles")
