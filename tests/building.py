"""Units of inner loops that tests build themselves."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from sparsemap.inner import merging

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
TRANSLATE = """
import sys
from Cython.Compiler.Main import compile
sys.exit(compile("unit.pyx", full_module_name=sys.argv[1]).num_errors)
"""
PLAIN = ("-O0", "-ffp-contract=off")


def built(source: Path, folder: Path, *flags: str, name: str = "unit", checks: bool = False) -> Path:
    """The unit of the modules in `source` as a file in `folder`; `checks`: of each index."""
    if COMPILER is None or importlib.util.find_spec("Cython") is None:
        pytest.skip("no C compiler or no Cython")
    text = merging.merged(source)
    if checks:
        assert text.count("boundscheck=False") == 1
        text = text.replace("boundscheck=False", "boundscheck=True")
    (folder / "unit.pyx").write_text(text, "utf-8")
    _done([sys.executable, "-c", TRANSLATE, name], folder)
    out = folder / f"unit{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = f"-I{sysconfig.get_paths()['include']}"
    _done([COMPILER, *(flags or PLAIN), "-w", "-fPIC", "-shared", include, "unit.c", "-o", str(out), "-lm"], folder)
    return out


def _done(words: list[str], folder: Path) -> None:
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]


def loaded(path: Path, name: str = "unit") -> Any:
    """A module from its file."""
    spec = importlib.util.spec_from_loader(name, importlib.machinery.ExtensionFileLoader(name, str(path)))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
