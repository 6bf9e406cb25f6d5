"""Cost models and formats that break their contract: caught at the boundary, named, and stopped or left out."""

from pathlib import Path

import attrs
import numpy as np
import pytest
from click.testing import CliRunner
from toy_problem import ToyModel, toy_problem

from sparsemap import EvaluationError, load_problem, search
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.problem.evaluation import Evaluation, Evaluator, broken
from sparsemap.searching.driver import SearchFailed


def problem_with(change, when=lambda values: values[5] == 2, **keys):
    """The toy problem with a cost model that `change`s what it returns for some designs."""

    class Broken(ToyModel):
        def evaluate(self, designs, problem, detail=False):
            return change(super().evaluate(designs, problem, detail), when(designs.columns["values"]))

    problem = toy_problem(**keys)
    problem.cost_model = Broken(name="toy-model")
    return problem


def energy(value):
    return lambda found, rows: attrs.evolve(found, energy_pj=np.where(rows, value, found.energy_pj))


def cycles(value):
    return lambda found, rows: attrs.evolve(found, cycles=np.where(rows, value, found.cycles))


def raising(found, rows):
    if rows.any():
        raise ZeroDivisionError("oops")
    return found


NUMBERS = {
    "energy is NaN": energy(np.nan),
    "energy is infinite": energy(np.inf),
    "energy is negative": energy(-1.0),
    "cycles are NaN": cycles(np.nan),
    "cycles are infinite": cycles(np.inf),
    "cycles are negative": cycles(-2.0),
}
SHAPES = {
    "one too few": lambda found, rows: attrs.evolve(found, energy_pj=found.energy_pj[:-1]),
    "a column": lambda found, rows: attrs.evolve(found, cycles=found.cycles[:, None]),
    "a number": lambda found, rows: attrs.evolve(found, cycles=10.0),
    "texts": lambda found, rows: attrs.evolve(found, cycles=found.cycles.astype(str)),
    "complex": lambda found, rows: attrs.evolve(found, energy_pj=found.energy_pj.astype(complex)),
    "reasons are floats": lambda found, rows: attrs.evolve(found, reasons=found.reasons.astype(float)),
    "nothing": lambda found, rows: None,
    "a tuple": lambda found, rows: (found.energy_pj, found.cycles),
}


@pytest.mark.parametrize("change", NUMBERS.values(), ids=NUMBERS)
def test_numbers_that_are_none_stop_the_search_and_name_the_model(change):
    with pytest.raises(SearchFailed, match=r"cost model 'toy-model'.*bad-result:toy-model for .* designs") as caught:
        search(problem_with(change), 2000, searcher="random")
    assert 'on_plugin_error = "continue"' in str(caught.value)
    assert caught.value.result.best is not None
    assert caught.value.result.best.genome[5] != 2


@pytest.mark.parametrize("change", NUMBERS.values(), ids=NUMBERS)
def test_or_their_designs_are_invalid_with_that_reason_and_the_search_goes_on(change):
    result = search(problem_with(change), 2000, searcher="random", on_plugin_error="continue")
    assert result.evaluations == 2000
    assert 100 < result.rejects["bad-result:toy-model"] < 500
    assert result.best.genome[5] != 2
    assert np.isfinite(result.best.score)


@pytest.mark.parametrize("change", SHAPES.values(), ids=SHAPES)
def test_wrong_shapes_and_types_stop_the_search_and_name_the_model(change):
    with pytest.raises(SearchFailed, match=r"cost model 'toy-model'"):
        search(problem_with(change), 500, searcher="random")
    result = search(problem_with(change), 500, searcher="random", on_plugin_error="continue")
    assert result.evaluations == 500


def test_a_model_that_raises_for_some_designs_loses_those_only():
    with pytest.raises(SearchFailed, match=r"cost model 'toy-model'.*ZeroDivisionError: oops"):
        search(problem_with(raising), 500, searcher="random")
    rare = problem_with(raising, lambda values: (values[:2] == 3).all(axis=0))
    result = search(rare, 2000, searcher="random", on_plugin_error="continue")
    counted = search(toy_problem(), 2000, searcher="random")
    assert 0 < result.rejects["plugin-error:toy-model"] < 200
    assert result.best.score == counted.best.score


def test_a_model_that_always_raises_ends_without_a_design_and_in_bounded_time():
    calls = []

    def always(found, rows):
        calls.append(1)
        raise ZeroDivisionError("oops")

    result = search(problem_with(always), 5000, searcher="random", on_plugin_error="continue")
    assert result.best is None
    assert result.rejects == {"plugin-error:toy-model": 5000}
    assert str(result.shortfalls[0]) == "plugin-error:toy-model"
    assert len(calls) < 5000


def test_blocks_with_different_reasons_are_joined_by_name():
    def mixed(found, rows):
        if len(rows) == 1 and rows[0]:
            raise ZeroDivisionError
        return NUMBERS["energy is NaN"](raising(found, rows), found.cycles == 10.0)

    problem = problem_with(mixed)
    genomes = np.ones((3, 8), dtype=np.int64)
    genomes[1, 5] = 2
    found = problem.evaluator.evaluate(genomes, tolerant=True)
    assert [found.reasons_of(row) for row in range(3)] == [
        ("bad-result:toy-model",),
        ("plugin-error:toy-model",),
        ("bad-result:toy-model",),
    ]
    assert broken(found) == {"bad-result:toy-model": 2, "plugin-error:toy-model": 1}


def test_joining_moves_the_bits_of_other_names():
    one = Evaluation(np.ones(1), np.ones(1), np.array([1], np.uint64), ("b",))
    two = Evaluation(np.ones(1), np.ones(1), np.array([2], np.uint64), ("a", "c"))
    joined = Evaluation.join([one, two])
    assert [joined.reasons_of(row) for row in range(2)] == [("b",), ("c",)]


def test_evaluating_reports_bad_results_as_reasons_and_wrong_shapes_as_errors():
    genomes = np.full((2, 8), 1, dtype=np.int64)
    genomes[0, 5] = 2
    found = Evaluator(problem_with(NUMBERS["energy is NaN"])).evaluate(genomes)
    assert [found.reasons_of(row) for row in range(2)] == [("bad-result:toy-model",), ()]
    with pytest.raises(EvaluationError, match=r"energy_pj has shape \(1,\), expected \(2,\)"):
        Evaluator(problem_with(SHAPES["one too few"])).evaluate(genomes)


# -------------------------------------------------------------------------------------------------------------- formats

FORMAT = '''
import numpy as np
from sparsemap import Format, Units, hookimpl
import attrs

@attrs.frozen(kw_only=True)
class Odd(Format):
    """A format whose metadata is wrong for some fibers."""
    type_name = "odd"
    compressed: bool = True
    def units(self, fiber):
        zero = np.zeros_like(fiber.fibers)
        bits = fiber.fibers * fiber.length
        return CODE

@hookimpl
def register_formats():
    return [Odd]
'''
WRONG = {
    "NaN": "Units(np.where(fiber.length > 4, np.nan, bits), zero, zero + 1, zero)",
    "infinite": "Units(np.where(fiber.length > 4, np.inf, bits), zero, zero + 1, zero)",
    "negative": "Units(np.where(fiber.length > 4, -bits, bits), zero, zero + 1, zero)",
    "wrong shape": "Units(bits[:-1], zero, zero + 1, zero)",
    "raises": "1 / 0",
}


def odd(folder, code):
    """A folder with a plugin that has the format, and the space that uses it."""
    plugin = Path(folder) / "plugins" / "odd"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text(FORMAT.replace("CODE", code))
    return plugin.parent, {"extends": "paper", "formats": {"candidates": ["uncompressed", "bitmask", "odd"]}}


def check_formats(folder, code):
    plugins, space = odd(folder, code)
    return load_problem("mm3", "cloud", space=space, registry=load(plugin_dirs=[plugins]))


@pytest.mark.parametrize("code", WRONG.values(), ids=WRONG)
def test_a_format_that_breaks_its_contract_is_named(code, tmp_path):
    with pytest.raises(SearchFailed, match="odd"):
        search(check_formats(tmp_path, code), 1000, searcher="random")


@pytest.mark.parametrize("code", WRONG.values(), ids=WRONG)
def test_or_the_search_goes_on_without_the_designs_that_use_it(code, tmp_path):
    problem = check_formats(tmp_path, code)
    result = search(problem, 1500, searcher="sparsemap", on_plugin_error="continue")
    assert result.evaluations == 1500
    assert result.best is not None and np.isfinite(result.best.edp)
    assert sum(count for name, count in result.rejects.items() if name == "bad-format:odd") > 10


def test_the_policy_is_an_option_and_a_key_of_studies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plugins, _ = odd(tmp_path, WRONG["negative"])
    Path("space.toml").write_text(
        'kind = "space"\nname = "odd-space"\nextends = "paper"\n'
        'formats = { candidates = ["uncompressed", "bitmask", "odd"] }\n'
    )
    Path("study.toml").write_text(
        'kind = "study"\nname = "s"\nworkloads = ["mm3"]\nhardware = ["cloud"]\nbudget = 500\nspace = "space.toml"\n'
    )
    runner = CliRunner()
    search_args = ["search", "mm3", "cloud", "--space", "space.toml", "--budget", "500", "--plugin-dir", str(plugins)]
    study_args = ["run", "study.toml", "--out", "out", "--plugin-dir", str(plugins)]
    for args in (search_args, study_args):
        done = runner.invoke(cli, args)
        assert done.exit_code == 2 and "odd" in done.stderr, (done.stdout, done.stderr)
    assert runner.invoke(cli, [*search_args, "--on-plugin-error", "continue"]).exit_code == 0
    Path("study.toml").write_text(Path("study.toml").read_text() + 'on_plugin_error = "continue"\n')
    assert runner.invoke(cli, study_args).exit_code == 0
