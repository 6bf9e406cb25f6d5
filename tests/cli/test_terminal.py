"""What a terminal of 80 columns, a pipe, and a user without colours get."""

import os
import pty
import re
import subprocess
import sys

import click
import numpy as np
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from sparsemap.cli import output
from sparsemap.cli.main import cli
from sparsemap.spec import toml_text

COMMAND = [sys.executable, "-m", "sparsemap"]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def on_terminal(*words: str, columns: int = 80, **variables: str) -> str:
    """What a command prints on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    env = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    env |= {"COLUMNS": str(columns), "TERM": "xterm-256color", **variables}
    with subprocess.Popen([*COMMAND, *words], stdout=theirs, stderr=theirs, stdin=theirs, env=env) as running:
        os.close(theirs)
        found = b""
        try:
            while part := os.read(ours, 65536):
                found += part
        except OSError:  # how Linux says that the other end is closed
            pass
        running.wait()
    os.close(ours)
    return found.decode("utf-8").replace("\r\n", "\n")


@pytest.fixture(scope="module")
def searched() -> str:
    return on_terminal("search", "matmul-32x64x48", "edge-16gbps", "--budget", "300")


def test_a_search_fits_80_columns_and_ends_without_leftovers_of_its_progress(searched):
    lines = ESCAPE.sub("", searched.rpartition("\r")[2]).splitlines()
    assert max(map(len, lines)) == 80
    assert "\x1b[" in searched and "MAC" in searched


def test_tables_wrap_on_a_terminal_and_have_a_line_per_row_in_a_pipe():
    shown = ESCAPE.sub("", on_terminal("list", "searcher")).splitlines()
    assert max(map(len, shown)) <= 80 and any(line.startswith(" " * 20) for line in shown)
    piped = CliRunner().invoke(cli, ["list", "searcher"]).output
    rows = piped.partition("\n\n")[0].splitlines()
    assert all(not line.startswith(" ") for line in rows) and max(map(len, rows)) > 100
    assert "\x1b" not in piped


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder with two searches, a design that does not fit, a network with long names, and weights."""
    folder = tmp_path_factory.mktemp("results")
    for name in ("cloud", "edge"):
        words = ["search", "mm3", name, "--budget", "600", "-q", "--out", str(folder / f"{name}-with-seed-0")]
        assert CliRunner().invoke(cli, words).exit_code == 0
    design = (folder / "cloud-with-seed-0" / "design.toml").read_text("utf-8")
    (folder / "invalid.toml").write_text(re.sub(r'capacity = ".*"', 'capacity = "8 B"', design), "utf-8")
    layers = [{"name": f"encoder.block.{i}.attention.output.{i}", "type": "linear", "k": 64, "n": 64} for i in (1, 2)]
    table = {"kind": "network", "name": "net", "input": [64], "layers": layers}
    toml_text.write(folder / "net.toml", table)
    axes = {"hardware": ["edge-16gbps", "cloud"], "cost_models": ["physical", "timeloop"], "spaces": ["paper", "full"]}
    study = {"kind": "study", "name": "axes", "workloads": ["mm1", "mm12"], **axes, "budget": 20, "out": "axes"}
    toml_text.write(folder / "axes.toml", study)
    np.savez(folder / "weights.npz", **{layers[0]["name"]: np.random.default_rng(0).normal(size=(64, 64))})
    return folder


VERBS = {
    "results": "compare cloud-with-seed-0 edge-with-seed-0",
    "run": "run net.toml --hardware edge-16gbps --budget 60",
    "study": "run axes.toml",
    "compare": "compare axes.toml --by cost_model",
    "sweep": "extra sweep cloud-with-seed-0/design.toml invalid.toml --tensor P",
    "explain": "explain edge-with-seed-0",
    "prune": "extra prune weights.npz --method one-shot --sparsity 0.5 --out masks",
    "orders": "show orders cloud-with-seed-0/design.toml",
}


@pytest.mark.parametrize("verb", VERBS)
def test_what_verbs_print_fits_80_columns(verb, results, monkeypatch):
    monkeypatch.chdir(results)
    monkeypatch.setattr(output, "terminal", lambda: 80)
    monkeypatch.setenv("COLUMNS", "80")
    done = CliRunner().invoke(cli, VERBS[verb].split())
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert 60 < max(map(len, lines)) <= 80


def test_in_a_pipe_changes_have_a_row_each_with_all_columns(results, monkeypatch):
    monkeypatch.chdir(results)
    lines = CliRunner().invoke(cli, VERBS["results"].split()).stdout.splitlines()
    assert any(line.split() == ["alone", "in", "turn", "energy", "cycles", "limited", "by"] for line in lines)
    assert sum(line.startswith(" " * 20) for line in lines) == 2, "heads of tables only"


def test_narrow_tables_leave_out_the_columns_that_they_may(monkeypatch):
    rows = [["layer", "EDP", "share"], ["a" * 30, "1" * 12, "2" * 12]]
    shown = {}
    for columns in (None, 60, 50, 40):
        monkeypatch.setattr(output, "terminal", lambda columns=columns: columns)
        shown[columns] = output.table(rows, "<>", less=[2]).splitlines()
    assert len(shown[None]) == len(shown[60]) == 2
    assert [line.split() for line in shown[50][1:]] == [["a" * 22, "1" * 12, "2" * 12], ["a" * 8]]
    assert shown[40] == ["layer" + " " * 32 + "EDP", "a" * 26 + "  " + "1" * 12, "a" * 4]


def test_every_help_page_fits_80_columns():
    ctx = click.Context(cli)
    verbs = [[name] for name in cli.list_commands(ctx)] + [["extra", name] for name in cli.extras(ctx)]
    for words in ([], *verbs):
        text = CliRunner().invoke(cli, [*words, "--help"], terminal_width=80).output
        assert max(map(len, text.splitlines())) <= 80, words


def test_a_user_who_wants_no_colours_gets_none():
    assert on_terminal("list", "format", "bitmsk", NO_COLOR="1") == "no format 'bitmsk'; did you mean 'bitmask'?\n"


def test_names_are_completed_in_shells():
    completed = ShellComplete(cli, {}, "sparsemap", "_SPARSEMAP_COMPLETE").get_completions(["search"], "mm1")
    assert [item.value for item in completed] == ["mm1", "mm10", "mm11", "mm12", "mm13", "mm14", "mm15"]
