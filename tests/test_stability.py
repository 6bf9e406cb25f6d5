"""The lists of docs/stability.md are those of the code."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparsemap.cli.group import GROUPS, INTERRUPTED
from sparsemap.cli.main import cli
from sparsemap.pieces import hookspecs
from sparsemap.pieces.loading import load

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "stability.md").read_text("utf-8")


def row(name):
    """Names in code style of a row of the first table."""
    line = next(line for line in PAGE.splitlines() if line.replace("[", "").startswith(f"| {name}"))
    return re.findall(r"`([\w.*-]+)`", line.split("|")[2])


def run(*words):
    return CliRunner().invoke(cli, list(words))


def test_stable_kinds_of_specs_exist():
    assert set(row("keys of specs")) <= set(load(env={}).kinds())


def test_hooks_with_the_stable_beginning_are_most_hooks():
    hooks = [name for name in vars(hookspecs) if name.startswith("register_")]
    assert row("hooks") == ["register_*"] and len(hooks) > 15


@pytest.mark.installed
def test_results_have_the_stable_fields(tmp_path):
    network = tmp_path / "tiny.toml"
    layer = '{ name = "one", type = "linear", m = 4, k = 8, n = 4 }'
    network.write_text(f'kind = "network"\nname = "tiny"\nlayers = [{layer}]\n', "utf-8")
    out = tmp_path / "out"
    assert run("run", str(network), "--hardware", "mobile", "--budget", "20", "--out", str(out), "-q").exit_code == 0
    found = json.loads((out / "network.json").read_text("utf-8"))
    assert found.keys() >= set(row("fields of `network.json`"))
    result = json.loads(next(out.glob("*/result.json")).read_text("utf-8"))
    assert result.keys() >= set(row("fields of `result.json`"))


@pytest.mark.installed
def test_exit_codes_are_as_listed():
    listed = {int(code) for code in re.findall(r"^\| `(\d+)` \|", PAGE, re.M)}
    assert listed == {0, 1, 2, INTERRUPTED}
    assert run("list").exit_code == 0
    assert run("search", "no-such", "mobile").exit_code == 2 and run("search", "--no-such").exit_code == 2
    words = "search mm12 edge --space paper --searcher sparsemap-paper --budget 60 --seed 11"
    assert run(*words.split()).exit_code == 1


def test_help_lists_the_stable_verbs_alone():
    verbs = [verb for group in GROUPS.values() for verb in group]
    assert row("verbs and options") == [] and len(verbs) == len(set(verbs)) <= 19
