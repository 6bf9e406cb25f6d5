"""Defaults of options from a file: `sparsemap.toml`, or `[tool.sparsemap]` of `pyproject.toml`, in the working folder."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparsemap.cli.main import cli

SEARCH = "search", "mm1", "edge-16gbps"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*args, code=0):
    done = CliRunner().invoke(cli, [str(arg) for arg in args])
    assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr, done.exception)
    return done


def of_file(text, *args, name="sparsemap.toml"):
    """Budget, seed and objective of a search beside the file, and the search's notes."""
    Path(name).write_text(text)
    done = run(*SEARCH, *args, "--json")
    table = json.loads(done.stdout)
    return (table["budget"], table["seed"], table["objective"]), done.stderr


def test_a_table_per_verb_sets_its_options():
    found, notes = of_file('[search]\nbudget = 60\nseed = 3\nobjective = "energy"\n[run]\njobs = 2\n')
    assert found == (60, 3, "energy")
    assert "sparsemap.toml: search --budget 60 --seed 3 --objective energy" in notes.splitlines()[0]


def test_the_command_line_wins():
    assert of_file("[search]\nbudget = 60\nseed = 3\n", "--budget", 70)[0][:2] == (70, 3)


def test_pyproject_has_a_table_for_it():
    found, notes = of_file("[tool.sparsemap.search]\nbudget = 60\n", name="pyproject.toml")
    assert found[0] == 60 and notes.startswith("pyproject.toml: search --budget 60")


def test_another_project_s_pyproject_changes_nothing():
    found, notes = of_file("[tool.ruff]\nline-length = 60\n", "--budget", 70, name="pyproject.toml")
    assert found[0] == 70 and "pyproject.toml" not in notes


def test_a_spec_of_that_name_is_no_file_of_defaults():
    found, notes = of_file('kind = "searcher"\nname = "sparsemap"\ntype = "ga"\n', "--budget", 70)
    assert found[0] == 70 and "sparsemap.toml" not in notes


def test_flags_and_options_with_several_values():
    Path("sparsemap.toml").write_text('[search]\nquiet = true\nbudget = 50\nplugin-dir = ["a", "b"]\n')
    for name in "ab":
        Path(name).mkdir()
        Path(name, f"{name}.toml").write_text(f'kind = "workload"\nname = "mine-{name}"\nextends = "mm1"\n')
    assert run("search", "mine-b", "edge-16gbps").stdout.count("\n") == 1


def test_a_verb_below_extra_has_a_table_of_its_own_name():
    Path("sparsemap.toml").write_text("[sweep]\nbudget = true\n")
    assert "sweep.budget" in run("extra", "sweep", "--help", "mm1", code=2).stderr


def test_help_names_the_default_of_the_file():
    Path("sparsemap.toml").write_text("[search]\nbudget = 61\n")
    assert "default: 61" in run("search", "--help").stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[search]\nbudgte = 60", "search.budgte: no option 'budgte'; did you mean 'budget'?"),
        ("[serach]\nbudget = 60", "serach: no verb 'serach'; did you mean 'search'?"),
        ("[search]\nbudget = 0", "search.budget: 0 is not in the range x>=1"),
        ("[search]\nbudget = [1, 2]", "search.budget: expected a single value, found a list"),
        ("[search]\nbudget = true", "search.budget: expected a value, found true"),
        ("[search]\nquiet = 3", "search.quiet: expected true or false, found 3"),
        ("[search]\nstart = {a = 1}", "search.start: expected a value, found a table"),
        ("budget = 60", "budget: expected a table with the name of a verb, such as [search], found 60"),
        ("[search]\nbudget =", "sparsemap.toml"),
    ],
)
def test_a_mistake_names_file_key_and_value(text, message):
    Path("sparsemap.toml").write_text(text)
    error = run(*SEARCH, code=2).stderr
    assert "sparsemap.toml" in error and message in error


def test_options_of_language_models_stand_under_run():
    Path("sparsemap.toml").write_text('[run]\nphase = "decode"\nhardware = "no-such-chip"\n')
    assert "no-such-chip" in run("run", "llama3-8b", code=2).stderr
