"""Exponentials, logarithms and powers: against 60 digits, the same compiled and as they stand."""

import math
import os
import subprocess
import sys
from decimal import Decimal, localcontext
from types import SimpleNamespace

import building
import numpy as np
import pytest

from sparsemap.inner import arrays, numbers, primitives

RNG = np.random.default_rng(0)
SOME = np.concatenate(
    [RNG.uniform(0.5, 2.0, 200), 10.0 ** RNG.uniform(-300, 300, 200), 1.0 + RNG.uniform(-1e-8, 1e-8, 50)]
)
EDGES = np.array([0.0, 5e-324, 2.3e-308, 0.5, np.nextafter(1.0, 0.0), 1.0, 2.0, 1e308, np.inf, np.nan])


def off(found, exact):
    """By how many units in the last place."""
    return abs(Decimal(found) - exact) / Decimal(math.ulp(float(exact)))


def worst(function, exact, *values):
    with localcontext() as context:
        context.prec = 60
        return max(
            off(function(*one), exact(*map(Decimal, one))) for one in zip(*map(np.ndarray.tolist, values), strict=True)
        )


def test_exponentials_are_exact_to_the_last_place():
    given = np.concatenate(
        [RNG.uniform(-708.0, 709.0, 300), RNG.uniform(-1.0, 1.0, 200), 10.0 ** RNG.uniform(-20, 0, 50)]
    )
    assert worst(numbers.exp, Decimal.exp, given) < 1
    assert worst(numbers.decay, lambda x: (-x).exp(), np.abs(given[given > -700.0][given[given > -700.0] < 700.0])) < 1


def test_logarithms_are_exact_to_the_last_place():
    assert worst(numbers.log, Decimal.ln, SOME[SOME != 1.0]) < 1


@pytest.mark.parametrize("power", [0.5, 3.0, 4.0, 2.7, -1.3, 1e-3, 100.0, 700.0])
def test_powers_are_exact_to_the_last_place(power):
    fits = SOME[np.abs(np.log10(SOME) * power) < 300.0]
    assert worst(numbers.power, lambda x, y: (x.ln() * y).exp(), fits, np.full(len(fits), power)) < 1


def near_zero(count):
    return RNG.choice([-1.0, 1.0], count) * 10.0 ** RNG.uniform(-20.0, -0.3, count)


def test_logarithms_of_what_is_above_one_are_nearly_exact():
    assert worst(numbers.log1p, lambda x: (1 + x).ln(), near_zero(400)) < 4
    assert worst(numbers.log1p, lambda x: (1 + x).ln(), SOME[SOME > 0.5]) < 2
    assert [numbers.log1p(x) for x in (0.0, -1.0, np.inf)] == [0.0, -np.inf, np.inf]
    assert math.isnan(numbers.log1p(-2.0)) and math.isnan(numbers.log1p(np.nan))


def test_exponentials_less_one_are_nearly_exact():
    assert worst(numbers.expm1, lambda x: x.exp() - 1, near_zero(400)) < 4
    assert (
        worst(
            numbers.expm1,
            lambda x: x.exp() - 1,
            np.append(RNG.uniform(0.5, 709.0, 200) * RNG.choice([-1.0, 1.0], 200), 709.7),
        )
        < 2
    )
    assert [numbers.expm1(x) for x in (0.0, -np.inf, np.inf, 1e-300)] == [0.0, -1.0, np.inf, 1e-300]
    assert math.isnan(numbers.expm1(np.nan))


def test_logarithms_to_the_base_two_are_nearly_exact():
    """Of numbers just below one, up to a unit in the last place of one."""
    assert worst(numbers.log2, lambda x: x.ln() / Decimal(2).ln(), SOME[(SOME > 1.0) | (SOME < 0.5)]) < 2
    for x in (0.6, 0.9, 0.999, 1.0 - 1e-9):
        assert numbers.log2(x) == pytest.approx(math.log2(x), rel=0.0, abs=2.3e-16)
    assert [numbers.log2(2.0**k) for k in range(-1074, 1024)] == [*range(-1074, 1024)]
    assert [numbers.log2(x) for x in (0.0, np.inf)] == [-np.inf, np.inf]


def test_edges_give_what_mathematics_says():
    minus = np.concatenate([-EDGES, EDGES, [709.78, 710.0, -745.1, -746.0]])
    with np.errstate(all="ignore"):
        assert np.allclose(arrays.exps(minus), np.exp(minus), rtol=1e-15, atol=0.0, equal_nan=True)
        assert np.allclose(arrays.logs(minus), np.log(minus), rtol=1e-15, atol=0.0, equal_nan=True)
        for power in (0.0, 0.5, 2.0, -3.0):
            assert np.allclose(arrays.powers(EDGES, power), EDGES**power, rtol=1e-15, atol=0.0, equal_nan=True)


def test_compiled_and_as_it_stands_are_the_same_to_the_last_bit(monkeypatch):
    given = np.concatenate([SOME, EDGES, RNG.uniform(0.0, 700.0, 300)])
    found = [arrays.exps(-given), arrays.logs(given), *(arrays.powers(given, power) for power in (3.0, 0.7, -2.0))]
    plain = SimpleNamespace(exps=numbers.exps, logs=numbers.logs, powers=numbers.powers)
    monkeypatch.setattr(arrays, "UNIT", plain)
    again = [arrays.exps(-given), arrays.logs(given), *(arrays.powers(given, power) for power in (3.0, 0.7, -2.0))]
    assert [one[~np.isnan(one)].tobytes() for one in found] == [one[~np.isnan(one)].tobytes() for one in again]
    assert all(np.array_equal(np.isnan(one), np.isnan(other)) for one, other in zip(found, again, strict=True))


HASHED = """
import hashlib
import numpy as np
from sparsemap.inner.arrays import exps, logs, powers
x = np.random.default_rng(0).random(20_000) * 700.0
print(hashlib.sha256(b"".join(part.tobytes() for part in (exps(-x), logs(x), powers(x, 0.7)))).hexdigest())
"""


def test_every_processor_has_the_same_bits():
    """NumPy and the C library choose other variants of their own functions then."""
    others = {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512F", "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA"}
    words = [sys.executable, "-W", "ignore", "-c", HASHED]
    found = [
        subprocess.run(words, check=True, capture_output=True, text=True, env=os.environ | given).stdout
        for given in ({}, others, {"SPARSEMAP_COMPILED": "0"})
    ]
    assert len({*found}) == 1 and len(found[0]) == 65


def test_arrays_of_any_shape_keep_it():
    given = np.arange(1.0, 25.0).reshape(2, 3, 4).transpose(2, 0, 1)
    assert np.allclose(arrays.exps(arrays.logs(given)), given) and arrays.logs(given[:0]).shape == (0, 2, 3)


def test_primitives_are_exact():
    assert [primitives.floor(x) for x in (-1.5, 2.0, np.inf)] == [-2.0, 2.0, np.inf]
    assert [primitives.ceil(x) for x in (-1.5, 2.0, -np.inf)] == [-1.0, 2.0, -np.inf]
    assert primitives.mantissa(12.0) == 0.75 and primitives.exponent(12.0) == 4 and primitives.whole(-2.7) == -2
    assert [math.copysign(1.0, primitives.floor(x)) for x in (-0.0, 0.0, 0.5)] == [-1.0, 1.0, 1.0]
    assert [math.copysign(1.0, primitives.ceil(x)) for x in (-0.0, -0.5, 0.0)] == [-1.0, -1.0, 1.0]
    assert [primitives.two_to(k) for k in (-1022.0, 0.0, 1023.0)] == [2.0**-1022, 1.0, 2.0**1023]


DOORS = """from sparsemap.inner.numbers import exp, expm1, log, log1p, log2, power
from sparsemap.inner.primitives import ceil, exponent, floor, hashed, mantissa, mixed, wrapped
from sparsemap.inner.types import Real, Whole

__all__ = ["ceils", "exponents", "floors", "fully", "keys", "less", "mantissas", "mixes", "more", "places", "twos"]


def mixes(key: Whole, x: Real) -> Whole:
    return mixed(key, x)


def keys(a: Whole, b: Whole, c: Whole) -> Whole:
    return wrapped(a, b, c)


def places(key: Whole, bits: Whole) -> Whole:
    return hashed(key, bits)


def floors(x: Real) -> Real:
    return floor(x)


def ceils(x: Real) -> Real:
    return ceil(x)


def mantissas(x: Real) -> Real:
    return mantissa(x)


def exponents(x: Real) -> Whole:
    return exponent(x)


def less(x: Real) -> Real:
    return expm1(x)


def more(x: Real) -> Real:
    return log1p(x)


def twos(x: Real) -> Real:
    return log2(x)


def fully(x: Real, y: Real) -> Real:
    return power(x, y)
"""
ODD = [0.0, -0.0, 0.5, -0.5, 1.0, -1.5, 3.0, 2.0**53, -1e300, 1.7e308, 5e-324, 1e-310, math.inf, -math.inf, math.nan]
ODD_KEYS = [0, 1, -1, 12345, -(2**63), 2**63 - 1, 0x123456789ABCDEF]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Primitives and functions that only other inner loops call, as a unit has them and as they stand."""
    folder = tmp_path_factory.mktemp("doors")
    (folder / "doors.py").write_text(DOORS)
    plain: dict = {}
    exec(DOORS, plain)
    return building.loaded(building.built(folder, folder)), SimpleNamespace(**plain)


def bits_of(x):
    """Of a number; of all that are none the same."""
    return x if isinstance(x, int) else "nan" if math.isnan(x) else x.hex()


@pytest.mark.slow
def test_keys_are_the_same_compiled_and_as_they_stand(both):
    unit, plain = both
    for key in ODD_KEYS:
        assert [unit.mixes(key, x) for x in ODD] == [plain.mixes(key, x) for x in ODD]
        assert len({plain.mixes(key, x) for x in ODD}) == len(ODD)  # -0.0 is another number than 0.0
        assert [unit.places(key, bits) for bits in (1, 15, 40)] == [plain.places(key, bits) for bits in (1, 15, 40)]
        for other in ODD_KEYS:
            assert [unit.keys(key, other, c) for c in ODD_KEYS] == [plain.keys(key, other, c) for c in ODD_KEYS]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["floors", "ceils", "mantissas", "less", "more", "twos"])
def test_odd_numbers_are_the_same_compiled_and_as_they_stand(both, name):
    unit, plain = (getattr(functions, name) for functions in both)
    given = [*ODD, *SOME.tolist(), *near_zero(100).tolist()]
    if name == "mantissas":
        given = [x for x in given if math.isfinite(x)]
    assert [bits_of(unit(x)) for x in given] == [bits_of(plain(x)) for x in given]


@pytest.mark.slow
def test_exponents_and_powers_of_odd_numbers_are_the_same(both):
    unit, plain = both
    assert [unit.exponents(x) for x in ODD if math.isfinite(x)] == [plain.exponents(x) for x in ODD if math.isfinite(x)]
    pairs = [(x, y) for x in ODD for y in (0.0, 1.0, 0.5, -2.0, 700.0, math.inf, math.nan)]
    assert [bits_of(unit.fully(*pair)) for pair in pairs] == [bits_of(plain.fully(*pair)) for pair in pairs]


def test_products_are_sums_in_order_the_same_compiled_and_as_they_stand():
    x, y = RNG.normal(size=(3, 40)), RNG.normal(size=(40, 5))
    plain = np.zeros((3, 5))
    numbers.products(x, y, plain)
    assert np.array_equal(arrays.product(x, y), plain)
    assert plain[1, 2] == arrays.dot(x[1], y[:, 2])
    assert np.array_equal(arrays.product(x[:, ::2], y[::2]), arrays.product(x[:, ::2].copy(), y[::2].copy()))
