"""Design files: a design written down evaluates to the same numbers, and mistakes in one written by hand are named."""

import copy
import tomllib
from functools import cache

import numpy as np
import pytest

from sparsemap import DesignError, SpecError, load_problem, search
from sparsemap.pieces.loading import load as load_registry
from sparsemap.problem.design_file import dump, load, structure
from sparsemap.problem.designs import Design, Designs
from sparsemap.spec import toml_io, toml_text

WORKLOAD = {"name": "small", "einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 4, "k": 8, "n": 4}}
WORKLOAD["density"] = {"P": 0.5, "Q": 0.25}
BY_HAND = {
    "kind": "design",
    "workload": WORKLOAD,
    "hardware": "edge",
    "mapping": {"L1_T": ["m=2", "k=4"], "L2_S": ["n=4"], "L3_T": ["k=2", "m=2"]},
    "formats": {tensor: ["uncompressed"] * 5 for tensor in "PQZ"},
    "gate_skip": {"GLB": "none", "PEB": "none", "MAC": "none"},
}


@pytest.fixture(scope="module")
def registry():
    return load_registry()


@pytest.fixture(scope="module")
def found(registry):
    @cache
    def find(workload, hardware):
        table = {**WORKLOAD, "dims": {"m": 31, "k": 97, "n": 53}} if workload == "padded" else workload
        result = search(load_problem(table, hardware, registry=registry), 1500, seed=1, searcher="es-pfce")
        assert result.best is not None
        return result

    return find


def changed(**tables):
    """The hand-written design with other tables; None removes one."""
    table = {**copy.deepcopy(BY_HAND), **tables}
    return {key: value for key, value in table.items() if value is not None}


@pytest.mark.parametrize(
    ("workload", "hardware"),
    [("mm1", "mobile"), ("mm3", "cloud"), ("conv4", "cloud"), ("padded", "edge")],
    ids=["mm1-mobile", "mm3-cloud", "more-ranks-than-slots", "padded"],
)
def test_a_written_design_evaluates_to_the_same_numbers_bit_for_bit(found, registry, tmp_path, workload, hardware):
    result = found(workload, hardware)
    best = result.best
    result.write(tmp_path)
    design = load(tmp_path / "design.toml", registry)
    problem = design.problem
    evaluation = problem.evaluator.evaluate_designs(design.batch)
    assert evaluation.reasons_of(0) == ()
    assert (evaluation.energy_pj[0], evaluation.cycles[0]) == (best.energy_pj, best.cycles)
    assert problem.evaluator.score(evaluation)[0] == best.score
    assert toml_io.read(tmp_path / "design.toml")["score"] == best.numbers
    assert problem.padded == best.problem.padded
    assert bool(problem.padded) == (workload in ("padded", "mm3"))


def test_designs_of_every_hardware_with_a_space_of_its_own_evaluate_the_same_again(registry):
    """Whatever such a space says beside its genes."""
    layer = {"name": "layer", "type": "conv2d", "k": 32, "c": 16, "p": 6, "q": 6, "r": 3, "s": 3}
    own = [name for name in registry.names("hardware") if registry.resolve("hardware", name).space]
    changed = []
    for name in own:
        for density in ({}, {"Q": 0.4}):
            problem = load_problem(layer | {"density": density}, name, registry=registry)
            found = problem.space.decode(problem.space.sample(40, np.random.default_rng(0)))
            before = problem.evaluator.evaluate_designs(found)
            valid = np.flatnonzero(before.valid)[:2]
            assert len(valid), name
            for row in valid:
                text = toml_text.dumps(dump(Design(problem, found.take(np.array([row])))))
                again = structure(tomllib.loads(text), registry)
                costs = again.problem.evaluator.evaluate_designs(again.batch).costs.of(0).own
                if dict(costs) != dict(before.costs.of(row).own):
                    changed.append(name)
    assert own and changed == []


def test_a_written_design_has_the_loops_of_the_loop_nest_and_none_whose_bound_is_one(found, registry):
    best = found("mm1", "mobile").best
    table = dump(best.design)
    names = [level.name for level in best.problem.mapping_levels]
    written = [(level, loop) for level in names for loop in table["mapping"][level]]
    assert written == [(names[loop.group], f"{loop.dim}={loop.bound}") for loop in best.design.loops]
    assert structure(table, registry).loops == best.design.loops


def test_a_file_that_has_loops_of_one_reads_as_before(found, registry):
    best = found("mm1", "mobile").best
    names = [level.name for level in best.problem.mapping_levels]
    whole = {
        name: [f"{loop.dim}={loop.bound}" for loop in loops]
        for name, loops in zip(names, best.design.groups, strict=True)
    }
    assert any(text.endswith("=1") for loops in whole.values() for text in loops)
    assert structure(dump(best.design) | {"mapping": whole}, registry).groups == best.design.groups


def test_a_written_design_needs_no_spec_but_its_own(found, registry):
    best = found("mm1", "mobile").best
    table = dump(best.design)
    for entry in table["pieces"]["format"].values():
        entry["description"] = "mine"
    problem = structure(table, registry).problem
    assert {piece.description for piece in problem.candidates("format")} == {"mine"}
    assert isinstance(table["workload"], dict)
    assert isinstance(table["hardware"]["technology"], dict)


def test_a_written_design_has_the_defaults_of_classes_of_the_user(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "__init__.py").write_text("""import attrs
from sparsemap import Format, hookimpl

@attrs.frozen(kw_only=True)
class Ticks(Format):
    type_name = "ticks"
    compressed: bool = True
    each: float = 3.0
    metadata_bits = lambda self, fiber: fiber.length * self.each

@hookimpl
def register_formats():
    return [Ticks]
""")
    space = {"extends": "paper", "formats": {"candidates": ["uncompressed", "ticks"]}}
    problem = load_problem("mm1", "edge", space, cost_model="timeloop", plugin_dirs=[tmp_path])
    table = search(problem, budget=40).found.text()
    own = tomllib.loads(table)["pieces"]["format"]["ticks"]
    assert own["each"] == 3.0 and own["type"] == "ticks"


def test_writing_a_read_design_gives_the_same_file(found, registry):
    best = found("mm1", "mobile").best
    table = dump(best.design, best.numbers)
    assert toml_text.dumps(dump(structure(table, registry), table["score"])) == toml_text.dumps(table)


def test_a_design_by_hand_may_name_specs_and_leave_out_loops_of_one(registry):
    design = structure(BY_HAND, registry)
    problem = design.problem
    assert problem.hardware.name == "edge"
    assert design.batch.bounds[0].prod(axis=0).tolist() == [4, 8, 4]
    assert [loop.dim for loop in design.groups[0]] == ["m", "k", "n"]
    assert np.isfinite(problem.evaluator.evaluate_designs(design.batch).energy_pj).all()


def test_formats_may_be_given_by_role(registry):
    workload = {**WORKLOAD, "einsum": "C[m, n] = A[m, k] * B[k, n]", "density": {"A": 0.5, "B": 0.5}}
    design = structure(changed(workload=workload), registry)
    assert [tensor.name for tensor in design.problem.tensors] == ["A", "B", "C"]
    assert [len(design.slots(tensor)) for tensor in range(3)] == [5, 5, 5]


@pytest.mark.parametrize(
    ("tables", "path", "text"),
    [
        ({"kind": "workload"}, "kind", "expected 'design'"),
        ({"mapping": None}, "mapping", "missing"),
        ({"workload": None}, "workload", "missing"),
        ({"formats": None}, "formats", "cost model 'physical' needs it"),
        ({"gate_skip": None}, "gate_skip", "cost model 'physical' needs it"),
        ({"gateskip": {}}, "gateskip", "did you mean 'gate_skip'"),
        ({"formats": ["bitmask"]}, "formats", "expected a table"),
        ({"mapping": {"L1_T": "m=2"}}, "mapping.L1_T", "expected a list of loops"),
        ({"mapping": {"L1_T": ["m:2"]}}, "mapping.L1_T[0]", "expected a loop such as"),
        ({"mapping": {"L1_T": ["m=4", "k=8", "x=4"]}}, "mapping.L1_T", "no dimension 'x'"),
        ({"mapping": {"L1_T": ["m=4", "k=8"]}}, "mapping", "'n' multiply up to 1, expected 4"),
        ({"mapping": {"L9_T": ["m=4", "k=8", "n=4"]}}, "mapping.L9_T", "no mapping level 'L9_T'"),
        ({"mapping": {"L1_T": ["m=2", "m=2", "k=8", "n=4"]}}, "mapping.L1_T", "twice"),
        ({"mapping": {"L1_T": ["m=0", "k=8", "n=4"]}}, "mapping.L1_T", "bound of at least 1"),
        ({"gate_skip": {"GLB": "none", "MAC": "none"}}, "gate_skip", "no mechanism for place 'PEB'"),
        ({"gate_skip": {"GBL": "none", "GLB": "none", "PEB": "none", "MAC": "none"}}, "gate_skip.GBL", "'GLB'"),
        ({"formats": {"P": ["uncompressed"], "Q": ["uncompressed"]}}, "formats", "no formats for tensor 'Z'"),
        ({"workload": "mm33"}, "", "did you mean"),
        ({"pieces": {"format": 1.5}}, "pieces.format", "expected a table"),
        ({"pieces": {"format": {"bitmask": True}}}, "pieces.format.bitmask", "expected a table"),
    ],
)
def test_mistakes_are_named_with_the_path_that_they_have_in_the_file(registry, tables, path, text):
    with pytest.raises(SpecError) as caught:
        structure(changed(**tables), registry, "mine.toml")
    mistakes = [mistake for mistake in caught.value.mistakes if mistake.path == path]
    assert any(text in mistake.message for mistake in mistakes), str(caught.value)
    if path:
        assert {mistake.file for mistake in mistakes} == {"mine.toml"}


def test_an_unknown_format_is_told_with_the_nearest_one(registry):
    formats = {**BY_HAND["formats"], "P": ["bitmaks"] * 5}
    with pytest.raises(SpecError, match="did you mean 'bitmask'") as caught:
        structure(changed(formats=formats), registry, "mine.toml")
    assert caught.value.mistakes[0].path == "formats.P[0]"


def test_columns_that_the_file_cannot_hold_are_refused(registry):
    design = structure(BY_HAND, registry)
    columns = {**design.batch.columns, "bypass": np.zeros((3, 1))}
    with pytest.raises(DesignError, match="column 'bypass'"):
        dump(Design(design.problem, Designs(columns)))


def test_a_file_that_is_not_there_is_an_error(registry, tmp_path):
    with pytest.raises(SpecError, match="no such file"):
        load(tmp_path / "none.toml", registry)


def test_a_folder_without_a_design_names_one_that_has_it(tmp_path):
    (tmp_path / "layers" / "first").mkdir(parents=True)
    with pytest.raises(SpecError, match=r"layers: has no design\.toml, as the folder of a search has$"):
        load(tmp_path / "layers", load_registry())
    (tmp_path / "layers" / "first" / "design.toml").write_text("")
    with pytest.raises(SpecError, match=r"name the folder of one of its designs, such as .*layers/first$"):
        load(tmp_path / "layers", load_registry())


def test_pieces_of_a_design_are_its_own_where_another_has_some_of_these_names(registry):
    made = []
    for extended in ("bitmask", "coordinate"):
        pieces = {"format": {"mine": {"extends": extended}}}
        table = BY_HAND | {"formats": {**BY_HAND["formats"], "P": ["mine"] * 5}, "pieces": pieces}
        formats = structure(table, registry).problem.candidates("format")
        made.append(next(form for form in formats if form.name == "mine"))
    assert made[0] != made[1]
