"""An installation that is not editable has every file of the plugins and of the specs."""

import runpy
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_every_data_file_is_in_a_package_that_setup_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    setuptools = pytest.importorskip("setuptools")
    given: dict = {}
    monkeypatch.setattr(setuptools, "setup", given.update)
    monkeypatch.chdir(ROOT)
    runpy.run_path("setup.py")
    packages, data = set(given["packages"]), given["package_data"]
    lost = []
    for top, name in (("plugins", "sparsemap_plugins"), ("specs", "sparsemap_specs")):
        for file in (ROOT / top).rglob("*"):
            if not file.is_file() or file.suffix in (".pyc", ".py") or file.name.startswith("."):
                continue
            package = ".".join([name, *file.parent.relative_to(ROOT / top).parts])
            if package not in packages or not any(fnmatch(file.name, text) for text in data[package]):
                lost.append(str(file.relative_to(ROOT)))
    assert not lost
