"""Every wrong input of `error_cases` gets the message that `docs/errors.md` prints.

`python tests/docs/test_errors_page.py` writes the page anew.
"""

from __future__ import annotations

import copy
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
from click.testing import CliRunner
from error_cases import GROUPS, Case

import sparsemap
from sparsemap.cli.main import cli
from sparsemap.pieces import loading
from sparsemap.pieces.registry import Registry

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "errors.md"
FENCE = "```"
HEAD = """# Errors

What SparseMap says when something is wrong: the file, the key, what was found and expected, and the nearest name that
there is. All mistakes of a file are told at once. Exit status 2 is wrong input, 1 a file that `check` finds fault with or
a search without a valid design. `sparsemap --traceback` adds where in the code an error arose.

`python tests/docs/test_errors_page.py` writes this page; a test holds every message.
"""


@contextmanager
def plugins_loaded_once() -> Iterator[None]:
    """Gives a copy of the built-in registry wherever no other plugins are asked for, for speed."""
    real = loading.load
    base = real(env={})

    def load(plugin_dirs=(), *args, **options) -> Registry:
        if plugin_dirs or args or options:
            return real(plugin_dirs, *args, **options)
        registry = copy.copy(base)
        registry._pieces = {}
        registry._types, registry._specs = (
            {kind: dict(named) for kind, named in table.items()} for table in (base._types, base._specs)
        )
        return registry

    with mock.patch.object(loading, "load", load):
        yield


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


def page() -> str:
    lines = [HEAD]
    for group, cases in GROUPS.items():
        lines += [f"## {group}", ""]
        for case in cases:
            lines += [f"### {case.title}", ""]
            for name, text in case.files.items():
                language = "python" if name.endswith(".py") else "toml"
                lines += [f"`{name}`:", f"{FENCE}{language}", text.rstrip("\n"), FENCE, ""]
            call = f">>> {case.command}" if case.script else f"$ sparsemap {case.command}"
            lines += [f"{FENCE}text", call, message(case), FENCE, ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def test_wrong_inputs_get_the_messages_that_the_page_prints() -> None:
    with plugins_loaded_once():
        fresh = page()
    assert PAGE.read_text("utf-8") == fresh, "run `python tests/docs/test_errors_page.py`, and look at what changed"


def test_the_page_has_many_inputs_of_every_group() -> None:
    assert sum(map(len, GROUPS.values())) >= 40
    titles = [(group, case.title) for group, cases in GROUPS.items() for case in cases]
    assert len(set(titles)) == len(titles)


if __name__ == "__main__":
    os.environ.pop("SPARSEMAP_PLUGIN_DIRS", None)
    with plugins_loaded_once():
        written = page()
    PAGE.write_text(written, "utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}", file=sys.stderr)
