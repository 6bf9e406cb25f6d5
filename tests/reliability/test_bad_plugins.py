"""Plugins that raise or break their contract: the search ends, names piece, method and line, and keeps what it found."""

import inspect
import json
from pathlib import Path

import attrs
import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.analytic.model import AnalyticModel
from sparsemap_plugins.reports.figures import figure_of
from toy_problem import ToyGenes, ToyModel, ToyObjective, toy_problem

from sparsemap import PluginError, Searcher, load_problem, search
from sparsemap.cli.main import cli
from sparsemap.csv_files import read_csv
from sparsemap.pieces.loading import load
from sparsemap.problem.designs import Decoded, Designs
from sparsemap.problem.evaluation import Evaluation
from sparsemap.searching.folder import search_into, unfinished
from sparsemap.spec import toml_text

RANDOM = {"type": "random", "batch": 100}


def line_of(text, function):
    """`FILE, line N` of the only line of a function or class here that holds a text."""
    lines, start = inspect.getsourcelines(function)
    (number,) = [start + i for i, line in enumerate(lines) if text in line]
    return f"{Path(__file__).name}, line {number}"


def named(function, name):
    """The function, as if it had been defined by this name."""
    function.__code__ = function.__code__.replace(co_name=name)
    return function


def refused(problem, searcher=RANDOM, budget=1000, found=200):
    """The message of a search that ends after `found` designs, which it keeps."""
    with pytest.raises(PluginError) as caught:
        search(problem, budget, searcher=searcher)
    result = caught.value.result
    if found:
        assert result.evaluations == found and result.best is not None
    else:
        assert result is None or (result.evaluations == 0 and result.best is None)
    return str(caught.value)


# ---------------------------------------------------------------------------------------------------------- cost models


class Model(ToyModel):
    """The toy model, which changes its results from the third batch on."""

    change = None
    calls = 0

    def evaluate(self, designs, problem, detail=False):
        type(self).calls += 1
        found = super().evaluate(designs, problem, detail)
        return type(self).change(found) if self.calls > 2 else found


def modelled(change):
    """The toy problem with a cost model that changes what it returns from the third batch on."""
    problem = toy_problem(limit=12.0)  # every design is valid
    problem.cost_model = type("Changed", (Model,), {"change": staticmethod(change)})(name="toy-model", limit=12.0)
    return problem


def replaced(found, **fields):
    """An evaluation with other costs, by their names, or with other fields."""
    costs = {name: fields.pop(name, column) for name, column in found.costs.own.items()}
    return attrs.evolve(found, costs=costs, **fields)


def put(name, value):
    """Sets one entry of an array."""

    def changed(found):
        array = getattr(found, name).copy()
        array[7] = value
        return replaced(found, **{name: array})

    return changed


def huge(found):
    return replaced(found, energy_pj=found.energy_pj * 1e300, cycles=found.cycles * 1e300)


def give(**fields):
    return lambda found: replaced(found, **{name: make(found) for name, make in fields.items()})


WRONG_RESULTS = {
    "energy is NaN": (put("energy_pj", np.nan), "returned energy_pj nan and cycles 10 for a valid design"),
    "energy is infinite": (put("energy_pj", np.inf), "energy_pj inf"),
    "energy is negative": (put("energy_pj", -1.0), "energy_pj -1"),
    "cycles are NaN": (put("cycles", np.nan), "cycles nan for a valid design, expected numbers from 0 on"),
    "cycles are infinite": (put("cycles", np.inf), "cycles inf"),
    "cycles are negative": (put("cycles", -2.0), "cycles -2"),
    "their product overflows": (huge, "expected numbers from 0 on with a finite product"),
    "one too few": (give(energy_pj=lambda f: f.energy_pj[:-1]), "an array of shape (99,) for 'energy_pj'"),
    "a column": (give(cycles=lambda f: f.cycles[:, None]), "an array of shape (100, 1) for 'cycles'"),
    "a number": (give(cycles=lambda f: 10.0), "a value of type float for 'cycles'"),
    "texts": (give(cycles=lambda f: f.cycles.astype(str)), "'cycles' of type <U32"),
    "complex": (give(energy_pj=lambda f: f.energy_pj.astype(complex)), "'energy_pj' of type complex128"),
    "objects": (give(energy_pj=lambda f: f.energy_pj.astype(object)), "'energy_pj' of type object"),
    "masked": (give(energy_pj=lambda f: np.ma.masked_less(f.energy_pj, 1e9)), "a masked array of shape (100,)"),
    "reasons are floats": (give(reasons=lambda f: f.reasons.astype(float)), "'reasons' of type float64"),
    "reasons are narrow": (give(reasons=lambda f: f.reasons.astype(np.uint8)), "'reasons' of type uint8"),
    "a bit without a name": (put("reasons", 4), "set a bit of 'reasons' without a name; it names 2 reasons"),
    "no names": (give(reason_names=lambda f: None), "a value of type NoneType for 'reason_names'"),
    "names are numbers": (give(reason_names=lambda f: (1, 2)), "for 'reason_names', expected a tuple of texts"),
    "names are one text": (give(reason_names=lambda f: "ab"), "a value of type str for 'reason_names'"),
    "names twice": (give(reason_names=lambda f: ("a", "a")), "named 2 reasons, expected at most 64, all different"),
    "65 names": (give(reason_names=lambda f: tuple(map(str, range(65)))), "named 65 reasons"),
    "nothing": (lambda found: None, "a value of type NoneType, expected an Evaluation"),
    "a tuple": (lambda found: (found.energy_pj, found.cycles), "a value of type tuple, expected an Evaluation"),
}


@pytest.mark.parametrize(("change", "text"), WRONG_RESULTS.values(), ids=WRONG_RESULTS)
def test_wrong_results_of_a_cost_model_end_the_search_and_name_it(change, text):
    told = refused(modelled(change))
    assert "cost model 'toy-model': evaluate" in told and text in told
    assert line_of("def evaluate", Model) in told


def test_other_names_of_reasons_in_another_block_are_refused():
    problem = modelled(give(reason_names=lambda found: ("one", "other")[:: 1 if len(found) == 60 else -1]))
    problem.evaluator.block = 60
    assert "evaluate named other reasons for another batch" in refused(problem, found=100)


def raising(error):
    def change(found):
        raise error

    return change


@pytest.mark.parametrize(
    "error", [ZeroDivisionError, SystemExit, GeneratorExit, StopIteration, MemoryError, BaseException]
)
def test_a_cost_model_that_raises_ends_the_search_and_not_the_program(error):
    told = refused(modelled(raising(error("oops"))))
    assert f"cost model 'toy-model': evaluate raised {error.__name__}: oops" in told
    assert line_of("raise error", raising) in told


def test_evaluating_names_the_model_as_well():
    problem = modelled(put("energy_pj", np.nan))
    genomes = np.ones((8, 8), dtype=np.int64)
    problem.evaluator.evaluate(genomes), problem.evaluator.evaluate(genomes)
    with pytest.raises(PluginError, match="cost model 'toy-model': evaluate returned energy_pj nan"):
        problem.evaluator.evaluate(genomes)


def test_a_lower_bound_that_raises_is_told_before_anything_is_evaluated():
    class Unbounded(ToyModel):
        def lower_bound(self, problem):
            raise ZeroDivisionError("no bound")

    problem = toy_problem()
    problem.cost_model = Unbounded(name="toy-model")
    problem.objective = type("Monotone", (ToyObjective,), {"monotone": True})(name="toy-edp")
    with pytest.raises(PluginError, match="cost model 'toy-model': lower_bound raised ZeroDivisionError: no bound"):
        search(problem, 1000)


def test_a_lower_bound_that_a_design_beats_stays_in_the_result_which_says_so():
    class Beaten(ToyModel):
        def lower_bound(self, problem):
            return Evaluation({"energy_pj": np.array([least]), "cycles": np.array([10.0])}, np.zeros(1, np.uint64), ())

    problem = toy_problem()
    problem.objective = type("Monotone", (ToyObjective,), {"monotone": True})(name="toy-edp")
    for least, gap in ((0.5, 2.0), (1.0 + 1e-12, 1.0), (1.25, 0.8)):  # the best design takes 1 pJ
        for kept in ("bound", "lower_bound"):
            problem.__dict__.pop(kept, None)
        problem.cost_model = Beaten(name="toy-model")
        found = search(problem, 3000, seed=0)
        assert (found.gap, found.bound, found.best.gap) == (gap, least * 10.0, gap)
        assert bool(found.broken_bound) == (gap < 1) == ("broken_bound" in found.to_dict())
    assert "BROKEN BOUND: the design scores 10, 0.8 times 12.5, below which" in found.broken_bound


def test_a_broken_bound_is_told_by_the_command_and_by_a_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    works = AnalyticModel.lower_bound

    def too_high(self, problem):
        found = works(self, problem)
        return attrs.evolve(found, costs={**found.costs.own, "energy_pj": 1e6 * found.energy_pj})

    monkeypatch.setattr(AnalyticModel, "lower_bound", too_high)
    for more in ((), ("--json",), ("--quiet",)):
        done = CliRunner().invoke(cli, ["search", "mm1", "edge", "--budget", "60", "--out", "out", *more])
        assert done.exit_code == 0 and "BROKEN BOUND: the design scores" in done.stderr
    assert json.loads(Path("out/result.json").read_text())["broken_bound"].startswith("BROKEN BOUND")
    study = {"kind": "study", "name": "s", "workloads": ["mm1"], "hardware": ["edge"], "budget": 60}
    toml_text.write("study.toml", study)
    done = CliRunner().invoke(cli, ["run", "study.toml", "--out", "study", "--quiet"])
    assert "mm1 on edge with sparsemap, seed 0: BROKEN BOUND" in done.stderr
    toml_text.write("study.toml", study | {"formats": [[], ["two-level-bitmask"]], "budget": 60})
    done = CliRunner().invoke(cli, ["compare", "study.toml", "--out", "both"])
    assert done.exit_code == 1 and "2 results are below their proven bound" in done.stderr
    assert "no verdict on two-level-bitmask" in done.stdout and "may be noise" not in done.stdout
    assert all(0 < float(row["broken_bound"]) < 1 for row in read_csv("both/table.csv"))
    assert "broken_bound" in Path("both/table.md").read_text()
    done = CliRunner().invoke(cli, ["report", "both"])
    page = Path("both/report.html").read_text()
    assert "2 of 2 results are below their proven bound" in page and "1 of 1, broken bound" in page
    (axes,) = figure_of(Path("both"), "ratios").axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["two-level-bitmask, broken bound"]


# ----------------------------------------------------------------------------------------------- objectives, segments


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda scores: scores[:-1], "an array of shape (99,) for 'scores'"),
        (lambda scores: scores.astype(complex), "'scores' of type complex128"),
        (lambda scores: np.ma.masked_less(scores, 1e9), "a masked array"),
        (lambda scores: 1 / 0, "score raised ZeroDivisionError"),
    ],
)
def test_an_objective_that_breaks_its_contract_is_named(change, text):
    class Wrong(ToyObjective):
        def score(self, evaluation):
            return change(super().score(evaluation))

    problem = toy_problem()
    problem.objective = Wrong(name="wrong")
    told = refused(problem, found=0)
    assert "objective 'wrong': score" in told and text in told


def test_valid_designs_without_a_finite_score_are_counted():
    class Nothing(ToyObjective):
        def score(self, evaluation):
            return np.where(evaluation.energy_pj < 500, np.nan, np.inf)

    problem = toy_problem(limit=12.0)
    problem.objective = Nothing(name="nothing")
    result = search(problem, 300, searcher=RANDOM)
    assert result.best is None
    assert result.rejects == {"no-score": 300}


@pytest.mark.parametrize(
    ("method", "given", "text"),
    [
        ("decode", lambda self, genes, *_: {"values": genes[:, 1:] * 1.0}, "decode returned columns of batches"),
        ("decode", lambda self, genes, *_: {}, "decode returned columns of batches {}, expected {'values'"),
        ("vary", lambda self, genes, *_: genes[:, :1], "vary returned an array of shape (8, 1) for 'genes'"),
        ("vary", lambda self, genes, *_: genes * 1.5, "vary returned 'genes' of type float64, expected integers"),
        ("guess", lambda self, count, *_: np.ones((count, 8)), "guess returned an array of shape"),
        ("repair", lambda self, genes, *_: genes * 0.5, "repair"),
        ("vary", lambda self, *_: np.random.no_such_name, "vary raised AttributeError"),
    ],
)
def test_a_segment_is_named_and_not_the_searcher_that_calls_it(method, given, text):
    problem = toy_problem()
    segment = type("Wrong", (ToyGenes,), {method: named(given, method)})(name="wrong-genes")
    problem.space.__dict__["segments"] = {"wrong-genes": segment}
    told = refused(problem, "sparsemap", found=0) if method != "vary" else refused_at_all(problem, "sparsemap")
    assert "segment 'wrong-genes'" in told and text in told


def refused_at_all(problem, searcher):
    with pytest.raises(PluginError) as caught:
        search(problem, 1000, searcher=searcher)
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------------ searchers


def searcher(body):
    """A searcher whose generator is given."""
    return type("Hostile", (Searcher,), {"type_name": "hostile", "search": named(body, "search")})(name="hostile")


def raises_when_it_is_closed(self, space, budget, rng):
    try:
        while True:
            yield space.sample(100, rng)
    finally:
        raise ValueError("not yet")


def does_not_end(self, space, budget, rng):
    try:
        while True:
            yield space.sample(100, rng)
    except GeneratorExit:
        yield space.sample(100, rng)


def test_a_searcher_that_raises_when_it_is_closed_is_named_and_all_is_kept(tmp_path):
    with pytest.raises(PluginError) as caught:
        search_into(tmp_path, toy_problem(), 300, searcher=searcher(raises_when_it_is_closed))
    assert "searcher 'hostile': search raised ValueError: not yet" in str(caught.value)
    assert line_of("raise ValueError", raises_when_it_is_closed) in str(caught.value)
    assert json.loads((tmp_path / "result.json").read_text())["evaluations"] == 300
    assert unfinished(tmp_path)


def test_a_searcher_that_does_not_end_is_named_and_all_is_kept():
    told = refused(toy_problem(), searcher(does_not_end), 300, found=300)
    assert "searcher 'hostile': search raised RuntimeError: generator ignored GeneratorExit" in told


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, BaseException, ZeroDivisionError])
def test_a_searcher_that_raises_ends_the_search_and_not_the_program(error):
    def body(self, space, budget, rng):
        yield space.sample(100, rng)
        raise error("oops")

    told = refused(toy_problem(), searcher(body), found=100)
    assert f"searcher 'hostile': search raised {error.__name__}: oops" in told
    assert line_of("raise error", body) in told


@pytest.mark.parametrize("name", ["spent", "total"])
def test_the_budget_is_not_the_searchers_to_set(name):
    def body(self, space, budget, rng):
        yield space.sample(100, rng)
        setattr(budget, name, 10**9)

    assert "searcher 'hostile': search raised" in refused(toy_problem(), searcher(body), found=100)


def test_a_batch_of_billions_is_cut_before_it_is_checked():
    def body(self, space, budget, rng):
        yield np.broadcast_to(np.ones(8, np.int64), (10**9, 8))

    result = search(toy_problem(), 300, searcher=searcher(body))
    assert result.evaluations == 300


def test_a_generator_is_expected():
    told = refused(toy_problem(), searcher(lambda self, *_: [1, 2]), found=0)
    assert "searcher 'hostile': search raised TypeError: 'list' object is not an iterator" in told


def test_decoded_genomes_may_be_yielded_and_stay_what_they_are():
    def body(self, space, budget, rng):
        decoded = space.repaired(space.sample(100, rng), rng)
        with pytest.raises(ValueError, match="read-only"):
            decoded.genomes[0] = 1
        yield decoded
        yield decoded.take(np.arange(5, 70))

    def plain(self, space, budget, rng):
        genomes = space.repair(space.sample(100, rng), rng)
        yield genomes
        yield genomes[5:70]

    results = [search(toy_problem(), 150, searcher=searcher(one)) for one in (body, plain)]
    assert results[0].history_csv() == results[1].history_csv() and results[0].evaluations == 150


def test_decoded_genomes_are_checked_like_others():
    def body(self, space, budget, rng):
        genomes = np.full((3, 8), 9)
        yield Decoded(genomes, Designs({"values": genomes.T * 1.0}))

    assert "yielded wrong genomes: genome 0: gene 'order.a' is 9" in refused(toy_problem(), searcher(body), found=0)


# ------------------------------------------------------------------------------------------ formats, hooks, the command

PLUGIN = '''
import sys
import numpy as np
from sparsemap import Code, Format, Units, hookimpl
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
    def encode(self, rows, rank, tiles):
        fiber = np.repeat(np.arange(len(rows)), rank.length)
        return Code.of(len(rows), [(fiber, rows.reshape(-1).astype(np.int64), 1)])
    def decode(self, bits, rank, tiles, ends):
        return bits.many(len(tiles) * rank.length, 1).reshape(len(tiles), rank.length) > 0

@hookimpl
def register_formats():
    return [Odd]
'''
GOOD = "Units(bits, zero, zero + 1, zero)"
WRONG_UNITS = {
    "NaN": ("Units(np.where(fiber.length > 4, np.nan, bits), zero, zero + 1, zero)", "'metadata' that is negative"),
    "negative": ("Units(np.where(fiber.length > 4, -bits, bits), zero, zero + 1, zero)", "infinite or not a number"),
    "wrong shape": ("Units(bits[:-1], zero, zero + 1, zero)", "for 'metadata', expected an array of shape"),
    "complex": ("Units(bits + 0j, zero, zero + 1, zero)", "'metadata' of type complex128, expected numbers"),
    "texts": ("Units(bits.astype(str), zero, zero + 1, zero)", "'metadata' of type <U32"),
    "raises": ("1 / 0", "units raised ZeroDivisionError: division by zero"),
    "exits": ("sys.exit(0)", "units raised SystemExit: 0"),
    "another length": (
        "[object.__setattr__(fiber, 'fibers', zero[1:]), Units(zero[1:], zero, zero, zero)][1]",
        "shape",
    ),
}
SPACE = {"extends": "paper", "formats": {"candidates": ["uncompressed", "bitmask", "odd"]}}


def odd(folder, code):
    """A folder with a plugin that has the format."""
    plugin = Path(folder) / "plugins" / "odd"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text(PLUGIN.replace("CODE", code))
    return plugin.parent


@pytest.mark.parametrize(("code", "text"), WRONG_UNITS.values(), ids=WRONG_UNITS)
def test_a_format_that_breaks_its_contract_is_named_with_its_line(code, text, tmp_path):
    registry = load(plugin_dirs=[odd(tmp_path, code)])
    told = refused(load_problem("mm3", "cloud", space=SPACE, registry=registry), found=0)
    line = 15 if "raised" in text else 12  # of the return, or of the method
    assert f"odd/__init__.py, line {line}: format 'odd': units" in told and text in told


def test_an_observer_that_raises_is_named_and_the_result_is_kept(tmp_path):
    plugins = odd(tmp_path, GOOD)
    with (plugins / "odd" / "__init__.py").open("a") as file:
        file.write("\n@hookimpl\ndef search_finished(result):\n    raise ValueError('no disk')\n")
    registry = load(plugin_dirs=[plugins])
    told = refused(load_problem("mm3", "cloud", registry=registry), found=1000)
    assert "odd/__init__.py, line 28: hook: search_finished raised ValueError: no disk" in told


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Runs the search or the study with the format that exits."""
    monkeypatch.chdir(tmp_path)
    plugins = odd(tmp_path, "sys.exit(0)")
    Path("space.toml").write_text(
        'kind = "space"\nname = "odd-space"\nextends = "paper"\n'
        'formats = { candidates = ["uncompressed", "bitmask", "odd"] }\n'
    )
    Path("study.toml").write_text(
        'kind = "study"\nname = "s"\nworkloads = ["mm3"]\nhardware = ["cloud"]\nbudget = 500\nspace = "space.toml"\n'
    )
    searching = ["search", "mm3", "cloud", "--space", "space.toml", "--budget", "500"]
    verbs = {"search": searching, "run": ["run", "study.toml", "--out", "out"]}
    return lambda verb, *first, **env: CliRunner().invoke(
        cli, [*first, *verbs[verb], "--plugin-dir", str(plugins)], env=env
    )


@pytest.mark.parametrize("verb", ["search", "run"])
def test_the_command_ends_with_an_error_that_has_the_line_and_on_request_the_trace(verb, command):
    done = command(verb)
    assert done.exit_code == 2
    assert "plugins/odd/__init__.py, line 15: format 'odd': units raised SystemExit: 0" in done.stderr
    assert "Traceback" not in done.stderr
    for traced in (command(verb, "--traceback"), command(verb, SPARSEMAP_TRACEBACK="1")):
        assert traced.exit_code == 2
        assert "Traceback" in traced.stderr and "sys.exit(0)" in traced.stderr
    assert "Traceback" not in command(verb).stderr


def test_what_a_piece_raises_outside_of_a_search_is_named_as_well(tmp_path):
    plugins = odd(tmp_path, GOOD)
    with (plugins / "odd" / "__init__.py").open("a") as file:
        file.write(
            "\nfrom sparsemap import Exporter\n@attrs.frozen(kw_only=True)\nclass Leaves(Exporter):\n"
            "    type_name = 'leaves'\n    def write(self, result, problem, folder):\n        sys.exit(0)\n"
            "@hookimpl\ndef register_exporters():\n    return [Leaves]\n"
        )
    search(load_problem("mm3", "cloud"), 300).write(tmp_path / "found")
    args = ["export", tmp_path / "found/design.toml", "--to", "leaves", "-o", tmp_path / "x", "--plugin-dir", plugins]
    done = CliRunner().invoke(cli, [*map(str, args)])
    assert done.exit_code == 2
    assert "exporter 'leaves': write raised SystemExit: 0" in done.stderr


MECHANISM = """
import attrs
from sparsemap import Filter, Mechanism, hookimpl

@attrs.frozen(kw_only=True)
class Odd(Mechanism):
    type_name = "odd"
{methods}
@hookimpl
def register_mechanisms():
    return [Odd]
"""
RIGHT = "    def filters(self, place):\n        return [Filter('P', ('Q',), action='skip')]\n"


@pytest.mark.parametrize(
    ("methods", "text"),
    [
        ("    def filters(self):\n        return []\n", "filters raised TypeError: .*filters"),
        (
            "    def filters(self, place):\n        return None\n",
            "filters returned a value of type NoneType, expected a seq",
        ),
        (
            "    def filters(self, place):\n        return [None]\n",
            "filters returned a value of type NoneType, expected a s",
        ),
        (
            RIGHT + "    def eliminated(self, place, filter, empty):\n        return empty[:1]\n",
            "eliminated returned an array",
        ),
        (RIGHT + "    def eliminated(self, place):\n        return 0\n", "eliminated raised TypeError"),
    ],
)
def test_a_mechanism_that_breaks_its_contract_is_named_with_its_file_and_method(methods, text, tmp_path):
    code = MECHANISM.replace("{methods}", methods)
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd/__init__.py").write_text(code)
    toml_text.write(tmp_path / "own.toml", {"kind": "mechanism", "name": "own", "type": "odd"})
    registry = load(plugin_dirs=[tmp_path])
    for kind in ("physical", "timeloop"):
        problem = load_problem("mm1", "cloud", registry=registry, more={"mechanism": ["own"]}, cost_model=kind)
        with pytest.raises(PluginError, match=rf"odd.__init__\.py, line \d+: mechanism 'own': {text}"):
            search(problem, 300)


# --------------------------------------------------------------------------------------- plugins that write to their input

EVALUATED = ("mm1", "cloud", "paper")


def write_to(value, *keys):
    """Writes to an array in what a piece was given."""
    for key in keys:
        value = value[key] if isinstance(value, dict) else getattr(value, key)
    value[...] = 0


def patched(monkeypatch, cls, method, *path):
    """Makes a method of a built-in piece write to its first array argument, or to a part of it, before it works."""
    works = getattr(cls, method)

    def writes(self, *given, **more):
        arrays = [item for item in given if isinstance(item, np.ndarray)]
        write_to((arrays or given)[0], *path)
        return works(self, *given, **more)

    monkeypatch.setattr(cls, method, writes)


@pytest.mark.parametrize(
    ("kind", "name", "method", "path"),
    [
        ("format", "bitmask", "units", ["fibers"]),
        ("mechanism", "skip-p-by-q", "eliminated", []),
        ("cost-model", "timeloop", "evaluate", ["columns", "bounds"]),
        ("objective", "edp", "score", ["energy_pj"]),
        ("segment", "", "decode", []),
    ],
)
def test_a_piece_cannot_change_what_it_is_given(kind, name, method, path, monkeypatch):
    registry = load()
    problem = load_problem(*EVALUATED, cost_model="timeloop", registry=registry)
    piece = registry.get(kind, name) if name else next(iter(problem.space.segments.values()))
    genomes = problem.space.sample(200, np.random.default_rng(0))
    before = problem.evaluator.evaluate(genomes)
    again = load_problem(*EVALUATED, cost_model="timeloop", registry=load())  # the other one knows what formats say
    with monkeypatch.context() as change:
        patched(change, type(piece), method, *path)
        with pytest.raises(PluginError, match="read-only"):
            again.evaluator.score(again.evaluator.evaluate(genomes))
    after = again.evaluator.evaluate(genomes)
    assert (after.energy_pj == before.energy_pj).all() and (after.cycles == before.cycles).all()


def test_a_searcher_cannot_change_the_scores_it_is_told():
    class Writing(Searcher):
        type_name = "writing"

        def search(self, space, budget, rng):
            scored = yield space.sample(100, rng)
            scored.scores[:] = 0.0

    with pytest.raises(PluginError, match="read-only") as caught:
        search(toy_problem(), 1000, searcher=Writing())
    assert caught.value.result.best.score > 0
