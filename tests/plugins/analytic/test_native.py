"""Modules in C are built from their text, and are left out where they are older."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from sparsemap_plugins.densities import hypergeometric

from sparsemap import native as loading

FOLDER = Path(hypergeometric.__file__).parent
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def built(source: str, folder: Path, name: str, flags: tuple[str, ...] = ("-O2",), load: bool = True):
    """The module of a C text; `load`: as one of this process."""
    (folder / f"{name}.c").write_text(source)
    out = folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    flags = ("-std=c11", *flags, "-ffp-contract=off", "-fPIC", "-shared")
    flags += tuple(f"-I{folder}" for folder in (sysconfig.get_paths()["include"], FOLDER))
    words = [COMPILER, *flags, str(folder / f"{name}.c"), "-o", str(out), "-lm"]
    subprocess.run(words, check=True, capture_output=True)
    if not load:
        return None
    spec = importlib.util.spec_from_loader(name, importlib.machinery.ExtensionFileLoader(name, str(out)))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_older_than_its_sources_is_left_out_and_told(monkeypatch, caplog):
    if hypergeometric.COMPILED is None:
        pytest.skip("not compiled")
    assert loading.loaded(hypergeometric.__package__, "chances") is hypergeometric.COMPILED
    monkeypatch.setattr(loading, "state", lambda folder: "another")
    assert loading.loaded(hypergeometric.__package__, "chances") is None
    assert "is of other sources than those beside it" in caplog.text


def test_the_shared_header_counts_among_the_sources(tmp_path, monkeypatch):
    assert loading.state(tmp_path) == ""
    (tmp_path / "one.c").write_text("int one;\n")
    monkeypatch.setattr(loading, "__file__", str(tmp_path / "apart" / "native.py"))
    header = tmp_path / "apart" / "native.h"
    header.parent.mkdir()
    header.write_text("/* first */\n")
    before = loading.state(tmp_path)
    header.write_text("/* second */\n")
    assert loading.state(tmp_path) != before
