"""Wrong inputs of `error_cases` get the messages of `errors.txt`; `python tests/docs/test_error_messages.py` writes it."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

import numpy as np
from click.testing import CliRunner
from error_cases import GROUPS, Case

import sparsemap
from sparsemap.cli.main import cli

ROOT = Path(__file__).parents[2]
TOLD = Path(__file__).with_name("errors.txt")


def message(case: Case) -> str:
    """What a wrong input prints, in an empty folder."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for name, text in case.files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text, "utf-8")
        if case.script:
            names = {name: getattr(sparsemap, name) for name in ("evaluate", "load_problem", "search")}
            try:
                eval(case.command, {"np": np, **names})
            except sparsemap.SparseMapError as error:
                return f"{type(error).__name__}: {error}".replace(str(ROOT), "...")
            raise AssertionError(f"{case.title}: no error")
        done = CliRunner().invoke(cli, shlex.split(case.command), prog_name="sparsemap", color=False)
        assert done.exit_code in (1, 2) and not isinstance(done.exception, AssertionError), (case.title, done.output)
        assert "Traceback" not in done.output, case.title
        return done.output.strip().replace(str(ROOT), "...")


def told() -> str:
    """What every input is told, below its title and the command."""
    lines = []
    for group, cases in GROUPS.items():
        lines += [f"== {group}", ""]
        for case in cases:
            call = f">>> {case.command}" if case.script else f"$ sparsemap {case.command}"
            lines += [f"-- {case.title}", call, message(case), ""]
    return "\n".join(lines)


def test_wrong_inputs_get_the_messages_that_are_recorded() -> None:
    assert TOLD.read_text("utf-8") == told(), "run `python tests/docs/test_error_messages.py`, and look at what changed"


def test_there_are_many_inputs_of_every_group() -> None:
    assert sum(map(len, GROUPS.values())) >= 40
    titles = [(group, case.title) for group, cases in GROUPS.items() for case in cases]
    assert len(set(titles)) == len(titles)


if __name__ == "__main__":
    os.environ.pop("SPARSEMAP_PLUGIN_DIRS", None)
    TOLD.write_text(told(), "utf-8")
    print(f"wrote {TOLD.relative_to(ROOT)}", file=sys.stderr)
