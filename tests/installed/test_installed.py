"""An installation holds compiled units, data and verbs, and repeats the README's first search at full speed."""

import re
from importlib import import_module
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path

import pytest
import sparsemap_plugins
import sparsemap_specs
from click.testing import CliRunner

import sparsemap
from sparsemap.cli.citing import bibtex, citation
from sparsemap.cli.main import cli
from sparsemap.inner import room

pytestmark = pytest.mark.installed
ROOMS = sorted(path.parent.name for path in Path(sparsemap_plugins.__file__).parent.glob("*/inner"))


def run(*words):
    done = CliRunner().invoke(cli, list(words))
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize("package", ["sparsemap.inner", *(f"sparsemap_plugins.{name}.inner" for name in ROOMS)])
def test_units_are_compiled(package):
    if find_spec(f"{package}.unit") is None and Path(sparsemap.__file__).parents[1].joinpath("setup.py").exists():
        pytest.skip("a clone on a machine without a compiler")
    assert room(package) is import_module(f"{package}.unit")


@pytest.mark.slow
def test_the_first_search_repeats_the_digits_of_the_readme():
    printed = run("search", "mm3", "cloud", "--budget", "20000").stdout
    assert re.search(r"^EDP +1\.981e\+12 ", printed, re.M) and re.search(r"^cycles +10,955 ", printed, re.M)


def test_data_types_and_licence_are_there():
    assert (Path(sparsemap.__file__).parent / "py.typed").is_file()
    assert len([*Path(sparsemap_specs.__file__).parent.glob("*/*.toml")]) > 150
    beside = distributions(name="sparsemap")  # a build in the clone may leave an egg-info there, which has no licence
    assert any(one.read_text("licenses/LICENSE") for one in beside) and "zhao" in bibtex(citation())


def test_pages_and_templates_of_plugins_are_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("new-plugin", "wide-mask", "--kind", "format")
    assert ": fine" in run("check", "wide-mask/wide_mask/wide-mask.toml", "--plugin-dir", "wide-mask").output
