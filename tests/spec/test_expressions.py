"""Expressions in specs: what they may say, what they give for arrays, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemap.spec.expressions import FUNCTIONS, Expression, grows

FIBER = ("fibers", "length", "occupied", "coord_bits", "offset_bits")


def value(text, **arrays):
    """The value of an expression for arrays or numbers given by name."""
    return Expression.parse(text, arrays)({name: np.asarray(array) for name, array in arrays.items()})


def test_a_format_is_one_line_of_arithmetic():
    bits = Expression.parse("fibers * occupied * coord_bits", FIBER)
    assert bits.names == {"fibers", "occupied", "coord_bits"}
    fibers, occupied, coord = np.array([1.0, 4.0]), np.array([2.5, 2.0]), np.array([4.0, 8.0])
    given = {"fibers": fibers, "length": fibers, "occupied": occupied, "coord_bits": coord, "offset_bits": coord}
    assert bits(given).tolist() == [10.0, 64.0]


def test_params_of_a_spec_are_constants():
    bits = Expression.parse("fibers * ceil(length / block)", FIBER, params={"block": 8})
    assert bits.names == {"fibers", "length"}
    assert bits({"fibers": np.array([2.0, 2.0]), "length": np.array([64.0, 65.0])}).tolist() == [16.0, 18.0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("-x ** 2", -9),
        ("7 % 4", 3),
        ("2 ** -1", 0.5),
        ("x / 2", 1.5),
        ("(x > 2) + (x >= 3) + (x < 3)", 2),
        ("1 < x < 3", 0),
        ("1 < x <= 3", 1),
        ("(x == 3) - (x != 3)", 1),
        ("where(x > 2, 10, 20)", 10),
        ("where(x, 1, 2)", 1),
        ("minimum(x, 5, 2)", 2),
        ("maximum(x, 5)", 5),
        ("ceil(x / 2) + floor(x / 2)", 3),
        ("log2(8) + log(exp(1)) + sqrt(16) + abs(-x)", 11),
    ],
)
def test_arithmetic_comparisons_and_functions(text, expected):
    assert value(text, x=np.array([3, 3])).tolist() == pytest.approx([expected, expected])


def test_whole_numbers_become_floats_so_that_they_neither_wrap_nor_refuse():
    assert value("x ** 40 * x ** -40", x=np.array([10])).tolist() == pytest.approx([1.0])
    assert value("x ** 3", x=np.array([2**30])).tolist() == [2.0**90]


def test_a_constant_expression_has_the_shape_of_the_arrays():
    assert value("0", x=np.ones(3)).tolist() == [0.0, 0.0, 0.0]
    assert float(value("2 * 3")) == 6.0


def test_division_by_zero_is_infinity_or_nan_without_a_warning(recwarn):
    assert value("x / 0", x=np.array([1.0, -1.0])).tolist() == [np.inf, -np.inf]
    assert np.isnan(value("0 / 0"))
    assert not recwarn.list


def test_a_text_may_run_over_several_lines():
    assert value("\n  x\n  + 1\n", x=np.array([1.0])).tolist() == [2.0]


def test_a_missing_quantity_is_named():
    with pytest.raises(ValueError, match="'x \\* y' needs y"):
        Expression.parse("x * y", ["x", "y"])({"x": np.ones(2)})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fibers * lenght", "no quantity 'lenght'; did you mean 'length'?"),
        ("cel(length)", r"no function 'cel'; did you mean 'ceil'?"),
        ("ceil", r"'ceil' is a function; write ceil\(...\)"),
        ("ceil(1, 2)", "takes 1 argument, found 2"),
        ("where(1, 2)", "takes 3 arguments, found 2"),
        ("ceil(x=1)", "plain arguments only"),
        ("ceil(*length)", "plain arguments only"),
        ("2 ^ 3", r"a power is written \*\*"),
        ("7 // 2", r"write floor\(a / b\)"),
        ("fibers and length", r"write `and` as minimum\(a, b\)"),
        ("1 if fibers else 2", r"write where\(condition, a, b\)"),
        ("fibers.real", "attributes are not part of expressions"),
        ("fibers[0]", "subscripts are not part of expressions"),
        ("fibers.__class__()", "no function 'fibers.__class__'"),
        ("__import__('os')", "no function '__import__'"),
        ("(lambda: 1)()", "no function"),
        ("[1, 2]", "not understood"),
        ("'text'", "'text' is not a number"),
        ("True", "True is not a number"),
        ("1j", "1j is not a number"),
        ("length +", "is not an expression"),
        ("", "the expression is empty"),
        ("1 # two", "comments are not part"),
        ("1" * 400, "a number is too large"),
        ("+".join(["1"] * 600), "1000 characters"),
        ("minimum(" + ",".join("1" * 450) + ")", "400 terms and operators"),
        ("-" * 150 + "1", "nested 100 deep"),
        ("(" * 900, "is not an expression"),
    ],
)
def test_what_is_not_arithmetic_is_refused_and_says_why(text, message):
    with pytest.raises(ValueError, match=message):
        Expression.parse(text, FIBER)


def test_towers_of_powers_are_infinity_and_not_whole_numbers_of_billions_of_digits():
    assert value("9**9**9**9") == np.inf


def test_what_the_parser_of_python_warns_of_is_not_printed(recwarn):
    with pytest.raises(ValueError, match="write where"):
        Expression.parse("1if 1else 2", [])
    assert not recwarn.list


_ATOMS = st.sampled_from(["x", "y", "1", "0", "2.5", "1e308"])
_EXPRESSIONS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "**", "%", "<", "=="]), inner).map(
            "({0[0]}{0[1]}{0[2]})".format
        ),
        st.tuples(st.sampled_from(sorted(name for name, count in FUNCTIONS.items() if count == 1)), inner).map(
            "{0[0]}({0[1]})".format
        ),
    ),
    max_leaves=12,
)


@given(_EXPRESSIONS)
def test_every_well_formed_expression_gives_one_float_per_design(text):
    result = value(text, x=np.array([0.0, 1.0, 7.0]), y=np.array([3, 2, 1]))
    assert result.shape == (3,) and result.dtype == np.float64


@given(st.one_of(st.text(), st.text(alphabet="xy01.+-*/%()<>=,^&|~ lambda:[]{}'\"_\\\n")))
def test_any_text_is_an_expression_or_a_value_error(text):
    try:
        Expression.parse(text, ["x", "y"])({"x": np.ones(2), "y": np.zeros(2)})
    except ValueError as error:
        assert str(error)


@pytest.mark.parametrize(
    "text, answer",
    [
        ("energy_pj * cycles**2", True),
        ("sqrt(energy_pj) + 3 * maximum(cycles, 10) / 4", True),
        ("energy_pj / cycles", False),
        ("energy_pj - cycles", False),
        ("energy_pj * -1", False),
        ("cycles ** -1", False),
        ("where(cycles > 5, 1, 2)", False),
    ],
)
def test_whether_an_expression_grows_with_its_quantities(text, answer):
    assert grows(text) is answer
