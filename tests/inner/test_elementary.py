"""Exponentials, logarithms and powers: against 60 digits, the same compiled and as they stand."""

import math
import os
import subprocess
import sys
from decimal import Decimal, localcontext
from types import SimpleNamespace

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
    assert [primitives.two_to(k) for k in (-1022.0, 0.0, 1023.0)] == [2.0**-1022, 1.0, 2.0**1023]
