"""Errors: one family, one line per mistake, and the nearest known name."""

import json
import pickle
from importlib.metadata import PackageNotFoundError

import pytest

from sparsemap import errors
from sparsemap.errors import (
    Mistake,
    PluginError,
    SparseMapError,
    SpecError,
    listed,
    nearest,
    readable,
    shortened,
    unknown,
)
from sparsemap.extras import install


def test_a_problem_reads_as_file_path_and_message():
    mistake = Mistake("edge.toml", "levels[1].fanoot", "unknown key; did you mean 'fanout'?")
    assert str(mistake) == "edge.toml: levels[1].fanoot: unknown key; did you mean 'fanout'?"


def test_a_problem_without_file_or_path_leaves_no_stray_colon():
    assert str(Mistake("", "clock", "missing")) == "clock: missing"
    assert str(Mistake("edge.toml", "", "not found")) == "edge.toml: not found"


def test_a_spec_error_has_one_line_per_problem():
    error = SpecError([Mistake("a.toml", "x", "missing"), Mistake("b.toml", "y", "unknown key")])
    assert str(error) == "a.toml: x: missing\nb.toml: y: unknown key"
    assert [mistake.path for mistake in error.mistakes] == ["x", "y"]
    assert SpecError([*error.mistakes, *error.mistakes]).mistakes == error.mistakes  # none twice


@pytest.mark.parametrize("name", ["SpecError", "PluginError", "DesignError", "SearchError", "EvaluationError"])
def test_every_error_belongs_to_one_family(name):
    assert issubclass(getattr(errors, name), SparseMapError)


@pytest.mark.parametrize("cls", [SpecError, PluginError])
def test_errors_survive_the_way_back_from_a_worker_process(cls):
    error = cls([Mistake("a.toml", "x", "missing")])
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) and copy.mistakes == error.mistakes


def test_nearest_finds_a_typo_and_a_wrong_case_but_does_not_guess_wildly():
    assert nearest("fanoot", ["capacity", "fanout"]) == "fanout"
    assert nearest("GLB", ["glb", "dram"]) == "glb"
    assert nearest("mesh", ["capacity", "fanout"]) is None


def test_unknown_suggests_a_name_or_lists_those_that_exist():
    assert unknown("workload", "mm33", ["mm3", "conv1"]) == "no workload 'mm33'; did you mean 'mm3'?"
    assert unknown("workload", "zzz", ["mm3", "conv1"]) == "no workload 'zzz'; known: conv1, mm3"
    assert unknown("workload", "zzz", []) == "no workload 'zzz'; none is known"


def test_a_long_list_of_names_is_cut():
    assert listed(["a", "b", "c", "d"], limit=2) == "a, b and 2 more"


def test_long_values_lose_their_middle_and_control_characters_are_spelled():
    assert shortened("short") == "'short'"
    assert shortened("x" * 1000) == "'" + "x" * 39 + "..." + "x" * 16 + "'"
    assert shortened(10**5000) == "a number of thousands of digits"
    assert readable("\x1b]0;title\x07 é\n") == r"\x1b]0;title\x07 é" + "\n"
    assert len(str(Mistake("f" * 9999, "p" * 9999, "expected text, found " + "v" * 9999))) < 3100


@pytest.fixture
def installed(monkeypatch):
    """Sets what the installation records about where SparseMap came from; None: it is not installed at all."""

    def record(source):
        def distribution(name):
            if source is None:
                raise PackageNotFoundError(name)
            return type("Found", (), {"read_text": lambda self, file: json.dumps(source) if source else None})()

        monkeypatch.setattr("importlib.metadata.distribution", distribution)

    return record


def test_an_extra_is_installed_from_where_sparsemap_came_from(installed, tmp_path, monkeypatch):
    clone = tmp_path / "a clone"
    clone.mkdir()
    installed({"url": clone.as_uri(), "dir_info": {"editable": True}})
    assert install("plots") == f"pip install -e '{clone}[plots]'"
    installed({"url": clone.as_uri(), "dir_info": {}})
    assert install("plots") == f"pip install '{clone}[plots]'"
    monkeypatch.chdir(clone)
    assert install("plots") == "pip install '.[plots]'"


@pytest.mark.parametrize("source", [None, {}, {"url": "file:///gone", "dir_info": {}}])
def test_without_such_a_folder_an_extra_is_installed_by_its_name(installed, source):
    installed(source)
    assert install("plots") == "pip install 'sparsemap[plots]'"
