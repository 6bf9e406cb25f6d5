"""Files of earlier releases open with unchanged digits, unless `model_versions.toml` lists a change of a model."""

import json
import math
import tomllib
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path

import pytest
from opening import EXPECTED, FILES, HERE, digits, every, kind_of, name_of, own_digits, plugin_dirs
from sparsemap_plugins.reports.compare.sides import sides_of

from sparsemap.csv_files import read_csv
from sparsemap.file_formats import KNOWN
from sparsemap.pieces.loading import load

pytestmark = pytest.mark.installed
ROOMS = sorted(path.name for path in FILES.iterdir())
CHANGES = tomllib.loads((HERE / "model_versions.toml").read_text("utf-8")).get("changes", [])


@pytest.fixture(scope="module")
def registry():
    return load(plugin_dirs())


def changed(name):
    return any(fnmatch(name, pattern) for change in CHANGES for pattern in change["files"])


@pytest.mark.parametrize("room", ROOMS)
def test_every_file_opens_with_its_digits(room, registry):
    expected, moved = json.loads(EXPECTED.read_text("utf-8")), []
    for path in (path for path in every() if name_of(path).startswith(f"{room}/")):
        name, own = name_of(path), own_digits(path)
        found = digits(path, registry)
        wanted = own if own is not None else expected.get(name)
        if json.loads(json.dumps(found)) != json.loads(json.dumps(wanted)) and not changed(name):
            moved.append(f"{name}: {str(found)[:200]}, in the file {str(wanted)[:200]}")
    assert not moved, "\n".join(["list a change of a model in model_versions.toml", *moved])


def test_the_corpus_has_three_hundred_files_of_every_format():
    files = [*every()]
    assert 300 <= len(files) <= 400 and sum(path.stat().st_size for path in files) < 2_000_000
    assert {*map(kind_of, files)} >= {*KNOWN} - {"spec", "toy"}
    kinds = set(load(env={}).kinds())
    assert {path.name.removeprefix("my-") for path in (FILES / "plugins").iterdir()} == kinds


def test_results_and_tables_hold_the_numbers_of_their_designs():
    for path in sorted((FILES / "searches").glob("*/result.json")):
        table = json.loads(path.read_bytes())
        design = path.with_name("design.toml")
        assert (table["edp"] is None) is not design.exists(), path
        if design.exists():
            score = own_digits(design)
            assert [table[key] for key in ("edp", "energy_pj", "cycles")] == [
                score[key] for key in ("edp", "energy_pj", "cycles")
            ]
        last = read_csv(path.with_name("history.csv"))[-1]
        if table["score"] is not None and not table.get("executed"):
            assert math.isclose(float(last["best_score"]), table["score"], rel_tol=1e-12), path


def test_files_from_before_the_key_open_with_their_digits(registry):
    folders = [HERE / "before" / name for name in ("search", "network", "study")]
    assert [len(sides_of(folder)) for folder in folders] == [1, 1, 1]
    for path in sorted((HERE / "before").rglob("design.toml")):
        assert "format" not in path.read_text("utf-8").split("\n")[0] and not changed(path.name)
        assert digits(path, registry) == own_digits(path)


def test_listed_changes_are_in_the_changelog_and_name_files_that_have_moved(registry):
    changelog = Path(__file__).parents[2] / "CHANGELOG.md"
    names = {name_of(path): path for path in every()}
    for change in CHANGES:
        assert change["entry"] in changelog.read_text("utf-8")
        matched = [[name for name in names if fnmatch(name, pattern)] for pattern in change["files"]]
        assert all(matched), change
        assert any(digits(names[x], registry) != own_digits(names[x]) for x in chain(*matched)), change
