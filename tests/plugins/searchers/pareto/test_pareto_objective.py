"""Several objectives as one: by text, by table, and what is wrong with either."""

import numpy as np
import pytest
from trade_offs import registry

from sparsemap import Evaluation, SpecError
from sparsemap.problem.load import objective_of
from sparsemap.spec.unstructuring import unstructure
from sparsemap.testing import check_objective

TWO = Evaluation({"energy_pj": np.array([3.0, 5.0]), "cycles": np.array([2.0, 4.0])}, np.zeros(2, np.uint64), ())


def test_the_text_names_objectives_or_has_expressions():
    piece = objective_of(registry(), "pareto:energy, cycles**2")
    assert piece.name == "pareto:energy, cycles**2"
    assert piece.names == ("energy", "cycles**2")
    assert piece.values(TWO).tolist() == [[3, 4], [5, 16]]
    check_objective(piece)


def test_commas_within_functions_do_not_separate_objectives():
    piece = objective_of(registry(), "pareto:maximum(energy_pj, cycles),minimum(energy_pj, 2 * (cycles + 1)),delay")
    assert piece.names == ("maximum(energy_pj, cycles)", "minimum(energy_pj, 2 * (cycles + 1))", "delay")


def test_the_score_is_the_product_unless_another_is_named():
    assert objective_of(registry(), "pareto:energy,delay").score(TWO).tolist() == [6, 20]
    table = {"type": "pareto", "objectives": ["energy", "delay"], "scalar": "energy_pj + cycles"}
    assert objective_of(registry(), table).score(TWO).tolist() == [5, 9]


def test_the_table_of_an_objective_makes_the_same_objective():
    piece = objective_of(registry(), {"type": "pareto", "objectives": ["energy", "cycles"], "scalar": "delay"})
    again = registry().build("objective", unstructure(piece))
    assert again == piece


def test_an_objective_without_values_of_its_own_has_one():
    piece = registry().get("objective", "energy")
    assert piece.names == ("energy",)
    assert piece.values(TWO).tolist() == [[3], [5]]
    assert piece.searcher == ""
    assert objective_of(registry(), "pareto:energy,delay").searcher == "nsga2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pareto:energy,dellay", r"'pareto:energy,dellay': no objective 'dellay'; did you mean 'delay'\?"),
        ("paretto:energy,delay", r"no type of objective 'paretto'; did you mean 'pareto'\?"),
        ("pareto:energy", "'pareto:energy': expected two objectives or more, found 1"),
        ("pareto:", "'pareto:': expected two objectives or more, found 0"),
        ("pareto:energy,delay,energy", "'pareto:energy,delay,energy': 'energy' is there twice"),
        ("pareto:energy,2 * enrgy_pj", r"objective: no cost 'enrgy_pj'; did you mean 'energy_pj'\?"),
        ("pareto:energy,2 *", r"'pareto:energy,2 \*': '2 \*' is not an expression"),
        ("pareto", "objective 'pareto' is a type that needs objectives; give a table"),
    ],
)
def test_what_is_wrong_is_told(text, message):
    with pytest.raises(SpecError, match=message):
        objective_of(registry(), text)
