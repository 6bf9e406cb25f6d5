"""TOML files: reading, writing, and tables to objects with everything that is wrong said at once."""

import enum
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemap.errors import SpecError
from sparsemap.spec import toml_io
from sparsemap.spec.units import frequency_hz


class Action(enum.StrEnum):
    GATE = "gate"
    SKIP = "skip"


@attrs.frozen(kw_only=True)
class Level:
    name: str
    fanout: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    share: float = attrs.field(default=0.5, validator=attrs.validators.le(1))


@attrs.frozen(kw_only=True)
class Machine:
    levels: tuple[Level, ...] = ()
    clock: float = attrs.field(default=1e9, converter=frequency_hz)
    class_: str = "plain"
    action: Action = Action.GATE
    order: Literal["inner", "outer"] = "inner"
    gated: bool = False
    energy: Mapping[str, float] = attrs.field(factory=dict)
    pair: tuple[int, str] = (1, "a")
    budget: int | float | str = 1
    trace: Path | None = None
    params: dict[str, Any] = attrs.field(factory=dict)


def machine(text):
    return toml_io.structure(Machine, tomllib.loads(text), "edge.toml")


def said(text, cls=Machine):
    """What is said about a wrong table, one line per problem."""
    with pytest.raises(SpecError) as caught:
        toml_io.structure(cls, tomllib.loads(text), "edge.toml")
    return str(caught.value).splitlines()


# ------------------------------------------------------------------------------------------------- tables to objects


def test_a_table_becomes_an_object_with_the_types_of_its_fields():
    built = machine(
        """
        clock = "2 GHz"
        class = "wide"
        action = "skip"
        order = "outer"
        gated = true
        energy = { read = 2, write = 2.5 }
        pair = [3, "b"]
        budget = "all"
        params = { block = 8, names = ["x", 1] }
        levels = [{ name = "GLB", fanout = 4 }, { name = "PE", share = 1 }]
        """
    )
    assert built.levels == (Level(name="GLB", fanout=4), Level(name="PE", share=1.0))
    assert built.clock == 2e9 and built.class_ == "wide" and built.action is Action.SKIP
    assert built.energy == {"read": 2.0, "write": 2.5} and isinstance(built.energy["read"], float)
    assert built.pair == (3, "b") and built.budget == "all" and built.params == {"block": 8, "names": ["x", 1]}


def test_a_whole_number_does_for_a_float_but_a_union_keeps_what_is_written():
    assert isinstance(machine('levels = [{ name = "a", share = 1 }]').levels[0].share, float)
    assert [type(machine(f"budget = {value}").budget) for value in ("1", "1.0", "'1'")] == [int, float, str]


def test_a_path_is_relative_to_the_file_that_names_it():
    built = toml_io.structure(Machine, {"trace": "data/a.mtx"}, "my/specs/edge.toml")
    assert built.trace == Path("my/specs/data/a.mtx")
    assert toml_io.structure(Machine, {"trace": "/data/a.mtx"}, "my/specs/edge.toml").trace == Path("/data/a.mtx")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            'levels = [{ name = "a" }, { name = "b", fanoot = 2 }]',
            "levels[1].fanoot: unknown key; did you mean 'fanout'?",
        ),
        ("levels = [{ fanout = 2 }]", "levels[0].name: missing; expected text"),
        ('levels = [{ name = "a", fanout = true }]', "levels[0].fanout: expected a whole number, found true"),
        ('levels = [{ name = "a", fanout = 2.0 }]', "levels[0].fanout: expected a whole number, found 2.0"),
        ('levels = [{ name = "a", fanout = "2" }]', "levels[0].fanout: expected a whole number, found text '2'"),
        ('levels = [{ name = "a", fanout = 0 }]', "levels[0].fanout: 'fanout' must be >= 1: 0"),
        ("levels = [{ name = 3 }]", "levels[0].name: expected text, found 3"),
        ('levels = ["GLB"]', "levels[0]: expected a table, found text 'GLB'"),
        ('levels = "GLB"', "levels: expected a list, found text 'GLB'"),
        ('clock = "2 Ghz"', "clock: '2 Ghz': unknown unit 'Ghz'; did you mean 'GHz'?"),
        ('order = "iner"', "order: expected 'inner' or 'outer', found text 'iner'; did you mean 'inner'?"),
        ('action = "stop"', "action: expected 'gate' or 'skip', found text 'stop'"),
        ('gated = "yes"', "gated: expected true or false, found text 'yes'"),
        ("gated = 1", "gated: expected true or false, found 1"),
        ('energy = { "read 1" = "2 pJ" }', "energy.'read 1': expected a number, found text '2 pJ'"),
        ("energy = 2", "energy: expected a table, found 2"),
        ("pair = [1]", "pair: expected a list of 2, found one of 1"),
        ("pair = [1, 2]", "pair[1]: expected text, found 2"),
        ("budget = []", "budget: expected a whole number or a number or text, found an empty list"),
        ("trace = 1", "trace: expected a path as text, found 1"),
        (
            "zzz = 1",
            "zzz: unknown key; known: levels, clock, class, action, order, gated, energy, pair, budget, trace, params",
        ),
    ],
)
def test_a_wrong_value_is_reported_with_file_path_and_what_was_expected(text, line):
    assert said(text) == [f"edge.toml: {line}"]


def test_all_problems_are_reported_at_once_validators_included():
    lines = said(
        """
        clok = 1
        clock = "0 Hz"
        gated = 1
        levels = [{ fanout = 0 }, { name = "b", share = 2, fanout = "x" }]
        """
    )
    assert lines == [
        "edge.toml: clok: unknown key; did you mean 'clock'?",
        "edge.toml: gated: expected true or false, found 1",
        "edge.toml: levels[0].name: missing; expected text",
        "edge.toml: levels[0].fanout: 'fanout' must be >= 1: 0",
        "edge.toml: levels[1].fanout: expected a whole number, found text 'x'",
        "edge.toml: levels[1].share: 'share' must be <= 1: 2.0",
        "edge.toml: clock: '0 Hz': a frequency must be positive and finite",
    ]


def test_every_failing_validator_of_a_complete_table_speaks():
    assert said('name = "a"\nfanout = 0\nshare = 3', Level) == [
        "edge.toml: fanout: 'fanout' must be >= 1: 0",
        "edge.toml: share: 'share' must be <= 1: 3.0",
    ]


def test_a_check_of_the_whole_object_speaks_at_the_table():
    @attrs.frozen
    class Window:
        low: int
        high: int

        def __attrs_post_init__(self):
            if self.low > self.high:
                raise ValueError("'low' must not be above 'high'")

    @attrs.frozen
    class Windows:
        windows: list[Window]

    with pytest.raises(SpecError, match=r"^a.toml: x.windows\[1\]: 'low' must not be above 'high'$"):
        table = {"windows": [{"low": 1, "high": 2}, {"low": 2, "high": 1}]}
        toml_io.structure(Windows, table, "a.toml", "x")


def test_a_value_of_the_right_class_is_taken_as_it_is():
    level = Level(name="GLB")
    assert toml_io.structure(Machine, {"levels": [level]}).levels == (level,)


def test_a_hook_builds_a_class_its_own_way_and_its_problems_keep_their_place():
    @attrs.frozen
    class Ratio:
        kept: int
        of: int = attrs.field(validator=attrs.validators.ge(1))

    @attrs.frozen
    class Sparsity:
        ratios: tuple[Ratio, ...]

    def from_text(value, cls):
        if isinstance(value, str):
            kept, colon, of = value.partition(":")
            if not colon:
                raise ValueError(f"expected kept:of, found {value!r}")
            value = {"kept": int(kept), "of": int(of)}
        return toml_io.fields(cls, value)

    toml_io.structure_hook(Ratio, from_text)
    assert toml_io.structure(Sparsity, {"ratios": ["2:4"]}) == Sparsity((Ratio(2, 4),))
    with pytest.raises(SpecError) as caught:
        toml_io.structure(Sparsity, {"ratios": ["2", "1:0", {"kept": 1}]}, "a.toml")
    assert str(caught.value).splitlines() == [
        "a.toml: ratios[0]: expected kept:of, found '2'",
        "a.toml: ratios[1].of: 'of' must be >= 1: 0",
        "a.toml: ratios[2].of: missing; expected a whole number",
    ]


@given(st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["levels", "clock", "pair", "energy", "name", "x"]), inner, max_size=3),
    ),
))  # fmt: skip
def test_any_value_is_structured_or_a_spec_error(value):
    try:
        toml_io.structure(Machine, value, "edge.toml")
    except SpecError as error:
        assert all(mistake.file == "edge.toml" and mistake.message for mistake in error.mistakes)


# ------------------------------------------------------------------------------------------------- objects to tables


def test_unstructure_leaves_out_what_is_default():
    built = Machine(levels=(Level(name="GLB", fanout=4),), class_="wide", action=Action.SKIP, trace=Path("a.mtx"))
    assert toml_io.unstructure(built) == {
        "levels": [{"name": "GLB", "fanout": 4}],
        "class": "wide",
        "action": "skip",
        "trace": "a.mtx",
    }


def test_unstructure_names_a_type_that_is_not_the_default_of_its_kind():
    @attrs.frozen(kw_only=True)
    class Special:
        type_name: ClassVar[str] = "special"
        default_type: ClassVar[str] = "plain"
        size: int = 1

    assert toml_io.unstructure(Special()) == {"type": "special"}


def test_an_object_comes_back_from_its_own_table():
    built = Machine(levels=(Level(name="GLB", share=0.25),), clock="2 GHz", energy={"read": 2.0}, pair=(2, "é\\x\x7f"))
    assert machine(toml_io.dumps(built)) == built


# ------------------------------------------------------------------------------------------------------------- merge


def test_merge_merges_tables_and_replaces_lists():
    base = {"clock": 1, "formats": {"candidates": ["a", "b"], "slots": 5}, "levels": [{"name": "GLB"}]}
    over = {"formats": {"candidates": ["c"]}, "levels": []}
    assert toml_io.merge(base, over) == {"clock": 1, "formats": {"candidates": ["c"], "slots": 5}, "levels": []}
    assert base["formats"]["candidates"] == ["a", "b"]


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
    assert problem(tmp_path).endswith("is a folder, expected a file")
    assert problem("latin.toml") == "latin.toml: is not UTF-8 text (byte 5)"
    assert problem("deep.toml") == "deep.toml: is nested too deeply"


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
    toml_io.write(tmp_path / "new" / "result.toml", table)
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
        toml_io.dumps({"a": {"b": [1, 1j]}})
    with pytest.raises(TypeError, match="cannot be written as a key"):
        toml_io.dumps({"a": {"b\\c": 1}})
    with pytest.raises(TypeError, match="cannot be written as a key"):
        toml_io.dumps({"": 1})


_KEYS = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="\\"), min_size=1, max_size=5)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), _TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
)


@given(st.dictionaries(_KEYS, _VALUES, max_size=4))
def test_whatever_is_written_reads_back_the_same(table):
    assert tomllib.loads(toml_io.dumps(table)) == table
