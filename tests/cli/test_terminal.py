"""What a terminal of 80 columns, a pipe, and a user without colours get."""

import os
import pty
import re
import subprocess
import sys

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from sparsemap.cli.main import cli

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


def test_every_help_page_fits_80_columns():
    for name in cli.list_commands(click.Context(cli)):
        text = CliRunner().invoke(cli, [name, "--help"], terminal_width=80).output
        assert max(map(len, text.splitlines())) <= 80, name


def test_a_user_who_wants_no_colours_gets_none():
    assert on_terminal("describe", "format", "bitmsk", NO_COLOR="1") == "no format 'bitmsk'; did you mean 'bitmask'?\n"


def test_names_are_completed_in_shells():
    completed = ShellComplete(cli, {}, "sparsemap", "_SPARSEMAP_COMPLETE").get_completions(["search"], "mm1")
    assert [item.value for item in completed] == ["mm1", "mm10", "mm11", "mm12", "mm13", "mm14", "mm15"]
