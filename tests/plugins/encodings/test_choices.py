import tomllib

import numpy as np
import pytest
from encoding_problems import matmul, problem

from sparsemap import load_problem, search
from sparsemap.errors import DesignError, SpecError
from sparsemap.problem import design_file
from sparsemap.problem.designs import Designs
from sparsemap.spec import toml_text


def changed(**tables):
    return problem(matmul(4, 8, 4), "edge", {"extends": "paper", **tables})


def test_candidates_set_the_range_of_the_genes():
    made = changed(formats={"slots": 2, "candidates": ["bitmask", "coordinate"]})
    genes = made.space.segment_genes["formats"]
    assert genes.names == ("P.1", "P.2", "Q.1", "Q.2", "Z.1", "Z.2")
    assert genes.high.tolist() == [1] * 6 and not genes.ordered
    designs = made.space.decode(made.space.sample(10, np.random.default_rng(0)))
    assert designs.formats.shape == (10, 3, 2) and designs.formats.dtype == np.int8
    assert designs.mechanisms.shape == (10, 3) and designs.mechanisms.dtype == np.int8


def test_an_unknown_candidate_is_told_with_its_place_and_the_nearest_name():
    made = changed(formats={"candidates": ["uncompressed", "bitmaks"]})
    with pytest.raises(SpecError, match=r"space\.toml: formats\.candidates\[1\]: no format 'bitmaks'; .*'bitmask'"):
        made.candidates("format")


def test_no_candidates():
    made = problem(matmul(4, 8, 4), "edge", {"extends": "paper", "gate-skip": {"candidates": []}})
    with pytest.raises(SpecError, match=r"space\.toml: gate-skip\.candidates"):
        made.space.segments  # noqa: B018


def test_an_index_without_candidate_cannot_be_encoded():
    made = changed()
    mechanisms = np.array([[0], [7], [0]], np.int8)
    with pytest.raises(DesignError, match=r"design 0: 'gate-skip\.PEB' is 7, expected 0\.\.6 \(none, gate-p-by-q"):
        made.space.segments["gate-skip"].encode(Designs({"mechanisms": mechanisms}), made)


def test_hardware_without_places_has_no_gate_skip_genes():
    hardware = {"levels": [{"name": "DRAM", "class": "dram"}, {"name": "PEB", "class": "sram", "capacity": "8 KB"}]}
    made = problem(matmul(4, 8, 4), hardware)
    assert made.space.segment_genes["gate-skip"].names == ()
    designs = made.space.decode(made.space.sample(3, np.random.default_rng(0)))
    assert designs.mechanisms.shape == (3, 0)


WIDE = {"extends": "coordinate", "metadata_bits": "16"}
FOUR = {"extends": "coordinate", "metadata_bits": "4"}


def test_a_table_in_place_of_a_name_sweeps_a_parameter_and_comes_back_from_a_design_file():
    made = load_problem(
        "mm1", "edge-16gbps", {"extends": "paper", "formats": {"candidates": [WIDE, FOUR, "coordinate"]}}
    )
    names = [piece.name for piece in made.candidates("format")]
    assert names == ["coordinate(metadata_bits=16)", "coordinate(metadata_bits=4)", "coordinate"]
    best = search(made, budget=2000, seed=1).best
    used = {piece.name for tensor in range(3) for piece in best.design.slots(tensor)}
    table = design_file.dump(best.design)
    assert used == {name for slots in table["formats"].values() for name in slots} and len(used) > 1
    again = design_file.structure(tomllib.loads(toml_text.dumps(table)), made.registry)
    evaluation = again.problem.evaluator.evaluate(np.zeros((1, 0), np.int64))
    assert (evaluation.energy_pj[0], evaluation.cycles[0]) == (best.energy_pj, best.cycles)
    assert [piece.name for piece in again.slots(0)] == [piece.name for piece in best.design.slots(0)]


def test_mechanisms_may_be_tables_too():
    mine = {"name": "mine", "action": "gate", "filters": [{"target": "P", "leader": "Q"}]}
    made = changed(**{"gate-skip": {"candidates": ["none", mine]}})
    assert [piece.name for piece in made.candidates("mechanism")] == ["none", "mine"]


def test_some_of_three_operands_lead_where_a_candidate_is_led_by_all():
    three = {
        "name": "three",
        "einsum": "Z[m, n] = P[m, k] * Q[k, n] * R[n]",
        "dims": {"m": 4, "k": 4, "n": 4},
        "density": {"P": 0.5, "Q": 0.5, "R": 0.5},
    }
    for names, count in ((["none"], 1), (["none", "skip-p-by-q"], 2), (["none", "skip-both"], 8)):
        made = load_problem(three, "edge", {"extends": "paper", "gate-skip": {"candidates": names}})
        found = [piece.name for piece in made.candidates("mechanism")]
        assert len(found) == count and found[: len(names)] == names
        assert all(name.startswith("skip-by-") for name in found[len(names) :])


def test_a_table_with_the_name_of_another_candidate_is_refused():
    made = changed(formats={"candidates": ["coordinate", {"name": "coordinate", **WIDE}]})
    text = r"^space\.toml: formats\.candidates\[1\]: 'coordinate' is the name of another candidate"
    with pytest.raises(SpecError, match=text):
        made.candidates("format")
