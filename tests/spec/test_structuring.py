"""Tables to objects, with all mistakes reported at once, and objects to tables."""

import enum
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemap.errors import SpecError
from sparsemap.spec.structuring import Reader
from sparsemap.spec.toml_text import dumps
from sparsemap.spec.units import frequency_hz
from sparsemap.spec.unstructuring import unstructure


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
    return Reader().read(Machine, tomllib.loads(text))


def said(text, cls=Machine):
    """The mistakes of a table, one line each."""
    with pytest.raises(SpecError) as caught:
        Reader().read(cls, tomllib.loads(text))
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
    built = Reader("my/specs/edge.toml").read(Machine, {"trace": "data/a.mtx"})
    assert built.trace == Path("my/specs/data/a.mtx")
    assert Reader("my/specs/edge.toml").read(Machine, {"trace": "/data/a.mtx"}).trace == Path("/data/a.mtx")


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
        ('levels = [{ name = "a", fanout = 0 }]', "levels[0].fanout: is 0, expected at least 1"),
        ("levels = [{ name = 3 }]", "levels[0].name: expected text, found 3"),
        ('levels = ["GLB"]', "levels[0]: expected a table, found text 'GLB'"),
        ('levels = "GLB"', "levels: expected a list, found text 'GLB'"),
        ('clock = "2 Ghz"', "clock: '2 Ghz': unknown unit 'Ghz'; did you mean 'GHz'?"),
        ('order = "iner"', "order: expected 'inner' or 'outer', found text 'iner'; did you mean 'inner'?"),
        ('action = "stop"', "action: expected 'gate' or 'skip', found text 'stop'"),
        ('gated = "yes"', "gated: expected true or false, found text 'yes'"),
        ("gated = 1", "gated: expected true or false, found 1"),
        ('energy = { "read 1" = "2 pJ" }', "energy.'read 1': expected a number, found text '2 pJ'"),
        ('energy = { "a\\u0007" = 2 }', r"energy.'a\x07': holds the control character '\x07'"),
        ("energy = 2", "energy: expected a table, found 2"),
        ("pair = [1]", "pair: expected a list of 2, found one of 1"),
        ("pair = [1, 2]", "pair[1]: expected text, found 2"),
        ("budget = []", "budget: expected a whole number or a number or text, found an empty list"),
        ("trace = 1", "trace: expected a path as text, found 1"),
        ('trace = "a\\u0000"', r"trace: holds the control character '\x00'"),
        (
            "zzz = 1",
            "zzz: unknown key; known: levels, clock, class, action, order, gated, energy, pair, budget, trace, params",
        ),
    ],
)
def test_a_wrong_value_is_reported_with_file_path_and_what_was_expected(text, line):
    assert said(text) == [line]


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
        "clok: unknown key; did you mean 'clock'?",
        "gated: expected true or false, found 1",
        "levels[0].name: missing; expected text",
        "levels[0].fanout: is 0, expected at least 1",
        "levels[1].fanout: expected a whole number, found text 'x'",
        "levels[1].share: is 2.0, expected at most 1",
        "clock: '0 Hz': a frequency must be positive and finite",
    ]


def test_every_failing_validator_of_a_complete_table_speaks():
    assert said('name = "a"\nfanout = 0\nshare = 3', Level) == [
        "fanout: is 0, expected at least 1",
        "share: is 3.0, expected at most 1",
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

    with pytest.raises(SpecError, match=r"^windows\[1\]: 'low' must not be above 'high'$"):
        table = {"windows": [{"low": 1, "high": 2}, {"low": 2, "high": 1}]}
        Reader().read(Windows, table)


def test_a_value_of_the_right_class_is_taken_as_it_is():
    level = Level(name="GLB")
    assert Reader().read(Machine, {"levels": [level]}).levels == (level,)


def test_a_class_may_say_how_its_table_is_written_and_its_mistakes_keep_their_place():
    @attrs.frozen
    class Ratio:
        kept: int
        of: int = attrs.field(validator=attrs.validators.ge(1))

        @classmethod
        def from_table(cls, value):
            if not isinstance(value, str):
                return value
            kept, colon, of = value.partition(":")
            if not colon:
                raise ValueError(f"expected kept:of, found {value!r}")
            return {"kept": int(kept), "of": int(of)}

    @attrs.frozen
    class Sparsity:
        ratios: tuple[Ratio, ...]

    assert Reader().read(Sparsity, {"ratios": ["2:4"]}) == Sparsity((Ratio(2, 4),))
    with pytest.raises(SpecError) as caught:
        Reader().read(Sparsity, {"ratios": ["2", "1:0", {"kept": 1}]})
    assert str(caught.value).splitlines() == [
        "ratios[0]: expected kept:of, found '2'",
        "ratios[1].of: is 0, expected at least 1",
        "ratios[2].of: missing; expected a whole number",
    ]


@given(st.one_of(st.text(), st.integers(), st.lists(st.text()), st.dictionaries(st.text(max_size=2), st.integers())))
def test_a_type_that_toml_does_not_have_is_refused_by_its_name(value):
    @attrs.frozen
    class Odd:
        at: np.random.Generator
        calls: Callable[[int], int] | None = None

    with pytest.raises(SpecError) as caught:
        Reader().read(Odd, {"at": value})
    assert str(caught.value).startswith("at: expected Generator, found ")
    generator = np.random.default_rng(0)
    assert Reader().read(Odd, {"at": generator}).at is generator


@given(st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["levels", "clock", "pair", "energy", "name", "x"]), inner, max_size=3),
    ),
))  # fmt: skip
def test_any_value_is_structured_or_a_spec_error(value):
    try:
        Reader().read(Machine, value)
    except SpecError as error:
        assert all(mistake.message for mistake in error.mistakes)


# ------------------------------------------------------------------------------------------------- objects to tables


def test_unstructure_leaves_out_what_is_default():
    built = Machine(levels=(Level(name="GLB", fanout=4),), class_="wide", action=Action.SKIP, trace=Path("a.mtx"))
    assert unstructure(built) == {
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

    assert unstructure(Special()) == {"type": "special"}


def test_an_object_comes_back_from_its_own_table():
    built = Machine(levels=(Level(name="GLB", share=0.25),), clock="2 GHz", energy={"read": 2.0}, pair=(2, "é\\x"))
    assert machine(dumps(built)) == built
