"""TOML files: reading, merging and writing."""

import tomllib
from pathlib import Path

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemap.errors import SpecError
from sparsemap.spec import toml_io, toml_text


@attrs.frozen(kw_only=True)
class Level:
    name: str


# ------------------------------------------------------------------------------------------------------------- merge


def test_merge_merges_tables_and_replaces_lists():
    base = {"clock": 1, "formats": {"candidates": ["a", "b"], "slots": 5}, "levels": [{"name": "GLB"}]}
    over = {"formats": {"candidates": ["c"]}, "levels": []}
    assert toml_io.merge(base, over) == {"clock": 1, "formats": {"candidates": ["c"], "slots": 5}, "levels": []}
    assert base["formats"]["candidates"] == ["a", "b"]


def test_three_dots_in_a_list_are_the_items_of_the_list_that_it_extends():
    base = {"charges": ["leakage", "gated"]}
    assert toml_io.merge(base, {"charges": ["...", "mine"]})["charges"] == ["leakage", "gated", "mine"]
    assert toml_io.merge({}, {"charges": ["...", "mine"]}) == {"charges": ["...", "mine"]}  # which names no piece


def test_merge_changes_tables_of_a_list_under_their_names():
    base = {"levels": [{"name": "DRAM", "fanout": 2}, {"name": "GLB", "class": "sram", "capacity": "1 KB"}]}
    over = {"levels": {"GLB": {"capacity": "2 KB"}}}
    assert toml_io.merge(base, over)["levels"] == [base["levels"][0], {**base["levels"][1], "capacity": "2 KB"}]
    other = {"levels": {"GLB": {"class": "regfile"}}}  # what a class has as keys means nothing to another
    assert toml_io.merge(base, other)["levels"][1] == {"name": "GLB", "class": "regfile"}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"GBL": {}}, "levels.GBL: no entry 'GBL'; did you mean 'GLB'?"),
        ({"GLB": "2 KB"}, "levels.GLB: expected a table, found text '2 KB'"),
    ],
)
def test_a_wrong_change_of_a_list_is_reported_with_its_path(change, line):
    with pytest.raises(SpecError) as caught:
        toml_io.merge({"levels": [{"name": "DRAM"}, {"name": "GLB"}]}, {"levels": change})
    assert str(caught.value) == line


# ------------------------------------------------------------------------------------------------------------ reading


def test_read_takes_mixed_lists_and_a_byte_order_mark(tmp_path):
    file = tmp_path / "a.toml"
    file.write_bytes(b'\xef\xbb\xbfa = [1, 0.5]\r\nb = ["M", 4]\r\n')
    assert toml_io.read(file) == {"a": [1, 0.5], "b": ["M", 4]}


def problem(path, kind=""):
    with pytest.raises(SpecError) as caught:
        toml_io.read(path, kind)
    return str(caught.value)


def test_bad_syntax_is_reported_with_line_and_column(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edge.toml").write_text("a = 1\nb 2\n")
    assert problem("edge.toml").startswith("edge.toml: line 2, column 3: is not TOML: Expected '=' after a key")


def test_a_missing_file_suggests_one_that_exists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edge.toml").touch()
    assert problem("egde.toml") == "egde.toml: no such file; did you mean 'edge.toml'?"
    assert problem("nowhere/edge.toml") == "nowhere/edge.toml: no such file"


def test_a_missing_file_suggests_none_of_another_kind_or_of_another_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edge.toml").write_text('kind = "hardware"\n')
    (tmp_path / "other.toml").write_text('kind = "workload"\n')
    assert problem("egde.toml", "hardware") == "egde.toml: no such file; did you mean 'edge.toml'?"
    assert problem("egde.toml", "workload") == "egde.toml: no such file"
    assert problem("no.toml", "workload") == "no.toml: no such file"


def test_a_folder_and_a_file_of_bytes_are_named_as_such(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'a = "\xe9"')
    (tmp_path / "deep.toml").write_text("a = " + "[" * 5000)
    (tmp_path / "dotted.toml").write_text(".".join(["a"] * 3000) + " = 1")
    assert problem(tmp_path).endswith("is a folder, expected a file")
    assert problem("latin.toml") == "latin.toml: is not UTF-8 text (byte 5)"
    assert problem("deep.toml") == "deep.toml: is nested too deeply"
    assert problem("dotted.toml") == "dotted.toml: is nested too deeply"


# ------------------------------------------------------------------------------------------------------------ writing


def test_numpy_values_tuples_paths_and_missing_values_are_written_as_toml_has_them(tmp_path):
    table = {
        "best": np.float64(1.5),
        "count": np.int64(3),
        "valid": np.bool_(True),
        "genome": np.array([1, 2]),
        "pair": (1, "a"),
        "file": Path("a/b"),
        "nothing": None,
        "level": Level(name="GLB"),
        "mixed": [{"a": [{"b": 1}]}, 2],
        "nested": [[{"c d": 1}]],
        "tables": [{"x": [{"y": 1}, [{}]]}, {}],
        "inf": float("inf"),
    }
    toml_text.write(tmp_path / "new" / "result.toml", table)
    assert toml_io.read(tmp_path / "new" / "result.toml") == {
        "best": 1.5,
        "count": 3,
        "valid": True,
        "genome": [1, 2],
        "pair": [1, "a"],
        "file": "a/b",
        "level": {"name": "GLB"},
        "mixed": [{"a": [{"b": 1}]}, 2],
        "nested": [[{"c d": 1}]],
        "tables": [{"x": [{"y": 1}, [{}]]}, {}],
        "inf": float("inf"),
    }


def test_what_toml_cannot_hold_is_named_with_its_path():
    with pytest.raises(TypeError, match=r"^a\.b\[1\]: TOML cannot hold .* of type complex$"):
        toml_text.dumps({"a": {"b": [1, 1j]}})
    with pytest.raises(TypeError, match="cannot be written as a key"):
        toml_text.dumps({"a": {"b\\c": 1}})
    with pytest.raises(TypeError, match="cannot be written as a key"):
        toml_text.dumps({"": 1})


_KEYS = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="\\"), min_size=1, max_size=5)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), _TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
)


@given(st.dictionaries(_KEYS, _VALUES, max_size=4))
def test_whatever_is_written_reads_back_the_same(table):
    assert tomllib.loads(toml_text.dumps(table)) == table
