"""A plugin of every kind passes its own tests as it is written, once it is installed."""

import os
import re
import tomllib
from pathlib import Path

import forking
import pytest
from click.testing import CliRunner
from sparsemap_plugins.kit.generate import files_of, kinds

from sparsemap.cli.main import cli
from sparsemap.errors import SpecError
from sparsemap.pieces.loading import load

ONE_REGISTRY = "from functools import cache\nfrom sparsemap.pieces import loading\nloading.load = cache(loading.load)\n"
"""Loads all plugins once instead of once per test file, for speed."""


@pytest.fixture(scope="module")
def registry():
    return load(env={})


def install(folder: Path) -> None:
    """The metadata that pip would write, beside the package."""
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    entries = [f"{name} = {module}" for name, module in project["entry-points"]["sparsemap"].items()]
    (info / "entry_points.txt").write_text("\n".join(["[sparsemap]", *entries, ""]))


def test_every_kind_has_a_template(registry) -> None:
    assert kinds() == sorted(registry.kinds())


def test_a_plugin_of_every_kind_passes_its_tests_as_it_is_written(registry, tmp_path: Path) -> None:
    folders = []
    for kind in kinds():
        folder = tmp_path / f"my-{kind}"
        for path, text in files_of(folder.name, kind, registry).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8")
        install(folder)
        folders.append(folder)
    (tmp_path / "conftest.py").write_text(ONE_REGISTRY)
    code = f"import sys, pytest\nsys.path[:0] = {[*map(str, folders)]!r}\nsys.exit(pytest.main(sys.argv[1:]))"
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-c", os.devnull, "--rootdir", ".", "."]
    done = forking.run(["-c", code, *options], tmp_path)
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    tests = sum(path.read_text("utf-8").count("\ndef test_") for path in tmp_path.rglob("test_*.py"))
    assert "skipped" not in done.stdout and passed and int(passed[1]) == tests


def test_a_plugin_that_is_not_installed_is_found_in_its_folder(tmp_path: Path) -> None:
    runner = CliRunner()
    made = runner.invoke(cli, ["new-plugin", "wide-bitmask", "--kind", "format", "--out", str(tmp_path)])
    assert made.exit_code == 0, made.output
    folder = tmp_path / "wide-bitmask"
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == {
        "README.md", "pyproject.toml", "tests/test_wide_bitmask.py", "wide_bitmask/__init__.py",
        "wide_bitmask/wide-bitmask.toml",
    }  # fmt: skip
    assert "class WideBitmask(Format)" in (folder / "wide_bitmask" / "__init__.py").read_text("utf-8")
    assert "wide-bitmask" in load(plugin_dirs=[folder], env={}).names("format")
    again = runner.invoke(cli, ["new-plugin", "wide-bitmask", "--kind", "format", "--out", str(tmp_path)])
    assert again.exit_code == 2 and "is not empty" in again.output


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [
        ("Wide", "format", "expected lower-case words with hyphens, such as wide-format; found 'Wide'"),
        ("wide", "formt", "no kind 'formt'; did you mean 'format'?"),
        ("bitmask", "format", "there is a format 'bitmask' already"),
        ("random", "searcher", "there is a module 'random' already"),
        ("class", "format", "'class' is a word of Python's own"),
        ("match", "format", "'match' is a word of Python's own"),
    ],
)
def test_a_name_that_will_not_do_is_told(registry, name: str, kind: str, told: str) -> None:
    with pytest.raises(SpecError) as error:
        files_of(name, kind, registry)
    assert told in str(error.value)
