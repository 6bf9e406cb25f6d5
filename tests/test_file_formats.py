"""A file names its format; readers migrate earlier versions with a notice, and refuse others in one line."""

import ast
import logging
import re
from pathlib import Path

import pytest

from sparsemap.errors import SpecError
from sparsemap.file_formats import KNOWN, FileFormat
from sparsemap.spec import toml_io

ROOT = Path(__file__).parents[1]


@pytest.fixture
def form():
    """A format at version 3 that has lost the readers of version 1."""
    made = FileFormat("toy", "toys", 3, {2: lambda table: {"size": table["words"]}}, {1: "0.4"})
    yield made
    del KNOWN["toy"]


def test_a_table_is_stamped_and_opened(form):
    assert form.stamped({"size": 3}) == {"format": "sparsemap toy 3", "size": 3}
    assert form.opened(form.stamped({"size": 3}), "toy.json") == {"size": 3}


def test_an_earlier_version_is_migrated_with_a_notice(form, caplog):
    with caplog.at_level(logging.WARNING, "sparsemap"):
        assert form.opened({"format": "sparsemap toy 2", "words": 3}, "toy.json") == {"size": 3}
    assert caplog.messages == ["toy.json: read as 'sparsemap toy 2', an earlier format"]


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("sparsemap toy 4", "; a release after SparseMap [^ ]+ wrote the file: update SparseMap"),
        ("sparsemap toy 1", "; SparseMap 0.4 reads the file"),
        ("sparsemap result 3", ""),
        ("sparsemap toy 03", ""),
        (3, ""),
        ({"of": "toys"}, ""),
    ],
)
def test_other_versions_and_formats_are_refused_in_one_line(form, value, remedy):
    with pytest.raises(SpecError) as caught:
        form.opened({"format": value, "size": 3}, "toy.json")
    said = str(caught.value)
    assert re.fullmatch(rf"toy.json: format: found {re.escape(repr(value))}, expected 'sparsemap toy 3'{remedy}", said)


def test_a_file_without_the_key_is_version_one():
    made = FileFormat("toy", "toys")
    assert made.opened({"size": 3}, "toy.json") == {"size": 3}
    with pytest.raises(SpecError, match=r"toy.json: found \[3\], expected a table of format 'sparsemap toy 1'"):
        made.opened([3], "toy.json")
    del KNOWN["toy"]


def test_a_spec_may_name_its_format(tmp_path):
    file = tmp_path / "layer.toml"
    file.write_text('format = "sparsemap spec 1"\nkind = "workload"\n', "utf-8")
    assert toml_io.read(file) == {"kind": "workload"}
    file.write_text('format = "sparsemap spec 2"\nkind = "workload"\n', "utf-8")
    with pytest.raises(SpecError, match="found 'sparsemap spec 2', expected 'sparsemap spec 1'; a release after"):
        toml_io.read(file)
    file.write_text('format = "bitmask"\nkind = "mine"\n', "utf-8")
    assert toml_io.read(file) == {"format": "bitmask", "kind": "mine"}


def formats_in_code():
    """Name, text and version of every format in the source."""
    found = {}
    for path in [ROOT / "sparsemap/file_formats.py", *sorted((ROOT / "plugins").rglob("*.py"))]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "FileFormat":
                name, about, *version = (one.value for one in node.args)
                assert name not in found, f"{path}: two formats '{name}'"
                found[name] = f"| `sparsemap {name} {version[0] if version else 1}` | {about} |"
    return found


def test_the_page_on_stability_lists_every_format():
    page = (ROOT / "docs" / "stability.md").read_text("utf-8")
    assert re.findall(r"^\| `sparsemap .*$", page, re.M) == [*formats_in_code().values()]
