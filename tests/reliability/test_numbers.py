"""Numbers at the edges: what can be counted is searched to a finite result, the rest is a clear error at load."""

import math

import numpy as np
import pytest
from calls import at_most

from sparsemap import SpecError, load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.primes import divisors, prime_factors

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def registry():
    return load()


def matmul(m=64, k=64, n=64, p=0.5, q=0.5):
    return {
        "name": "layer",
        "einsum": "Z[m, n] = P[m, k] * Q[k, n]",
        "dims": {"m": m, "k": k, "n": n},
        "density": {"P": p, "Q": q},
    }


def chip(glb=None, **keys):
    middle = {"name": "GLB", "class": "sram", "capacity": "1 MB", "fanout": 16, "gate_skip": True, **(glb or {})}
    inner = {"name": "PE", "class": "sram", "capacity": "64 KB", "fanout": 4, "gate_skip": True}
    levels = [{"name": "DRAM", "class": "dram"}, middle, inner]
    return {"name": "chip", "levels": levels, "compute": {"gate_skip": True}, **keys}


def found(registry, workload, hardware="cloud", budget=60):
    """The result of a small search, which must not have met anything that is not a number."""
    problem = load_problem(workload, hardware, registry=registry)
    genomes = problem.space.sample(60, np.random.default_rng(0))
    evaluation = problem.evaluator.evaluate(genomes)
    assert np.isfinite(evaluation.energy_pj[evaluation.valid]).all()
    assert (evaluation.energy_pj[evaluation.valid] >= 0).all() and (evaluation.cycles[evaluation.valid] >= 0).all()
    return search(problem, budget, searcher="sparsemap")  # stops if the cost model returns NaN, infinities or worse


SIZES = {
    "ones": (1, 1, 1),
    "one of many": (1, 64, 1),
    "small primes": (7, 11, 13),
    "primes": (1009, 7, 1013),
    "large primes": (1_000_003, 7, 1_000_033),
    "2^20": (2**20, 2**20, 2**20),
    "a Mersenne prime": (2**31 - 1, 2, 2),
    "the largest prime below 2^53": (2**53 - 111, 1, 1),
    "the square of a large prime": (67_108_859**2, 1, 1),
    "2^52": (2**52, 1, 1),
    "2^62 products": (2**21, 2**21, 2**20),
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("densities", [(0.5, 0.5), (1e-9, 1e-9)], ids=["half", "1e-9"])
def test_sizes(sizes, densities, registry):
    result = found(registry, matmul(*sizes, *densities))
    assert result.best is not None and math.isfinite(result.best.edp)


@pytest.mark.parametrize("densities", [(1e-9, 1e-9), (1e-300, 1.0), (1e-300, 1e-300), (1, 1), (1 - 1e-16, 1 - 1e-12)])
def test_densities(densities, registry):
    result = found(registry, matmul(64, 64, 64, *densities))
    assert result.best is not None and math.isfinite(result.best.edp)


@pytest.mark.parametrize("density", [0, 0.0, -0.1, 1.1, math.nan, math.inf])
def test_densities_that_are_none(density, registry):
    with pytest.raises(SpecError, match="density"):
        assert load_problem(matmul(p=density), "cloud", registry=registry).loops


@pytest.mark.parametrize("capacity", [0, "0 KB"])
def test_a_memory_without_capacity_holds_nothing_and_says_so(capacity, registry):
    result = found(registry, matmul(), chip({"capacity": capacity}))
    assert result.best is None
    assert "capacity:GLB" in {shortfall.reason for shortfall in result.shortfalls}
    assert all(math.isnan(s.available) or s.available == 0 for s in result.shortfalls if s.reason == "capacity:GLB")


@pytest.mark.parametrize("capacity", ["unlimited", "1e300 TB"])
def test_a_memory_of_any_capacity(capacity, registry):
    assert found(registry, matmul(), chip({"capacity": capacity})).valid_fraction > 0.9


@pytest.mark.parametrize("bandwidth", ["0 GB/s", "0 words/cycle", 0, "-1 GB/s", "1e400 GB/s", "1e-300 GB/s", math.inf])
def test_bandwidths_that_are_none(bandwidth, registry):
    with pytest.raises(SpecError, match=r"levels\[1\]\.bandwidth"):
        assert load_problem(matmul(), chip({"bandwidth": bandwidth}), registry=registry).levels


def test_an_unlimited_bandwidth_is_as_if_it_were_left_out(registry):
    results = [found(registry, matmul(), chip(keys)) for keys in ({"bandwidth": "unlimited"}, {})]
    assert results[0].best.edp == results[1].best.edp


@pytest.mark.parametrize("bandwidth", ["1e-9 words/cycle", "1e15 words/cycle"])
def test_extreme_bandwidths(bandwidth, registry):
    assert found(registry, matmul(), chip({"bandwidth": bandwidth})).best is not None


TOO_LARGE = {
    "a size": (matmul(m=2**63), chip(), r"dims\.m: is 2\^63 or more"),
    "a size of many digits": (matmul(m=10**4000), chip(), r"dims\.m: is 2\^63 or more"),
    "a tensor": (matmul(m=2**52), chip(), r"dims: make tensor 'P' 2\^53 words or larger"),
    "the product of the sizes": (matmul(2**21, 2**21, 2**21), chip(), r"dims: multiply up to 2\^63 or more"),
    "a fan-out": (matmul(), chip({"fanout": 2**63}), r"levels\[1\]\.fanout: is 2\^63 or more"),
    "the product of the fan-outs": (matmul(), chip({"fanout": 2**62}), r"levels: fan-outs multiply up to 2\^63"),
    "word bits": (matmul(), chip(word_bits=2**63), r"word_bits: is 2\^63 or more"),
    "a whole number for a float": (matmul(), chip({"energy": {"read": 10**400}}), r"energy\.read: is 2\^63 or more"),
    "an infinite energy": (matmul(), chip({"energy": {"read": math.inf}}), r"energy\.read: expected a number that is"),
    "an energy that is none": (matmul(), chip({"energy": {"read": math.nan}}), r"energy\.read: expected a number"),
    "a negative energy": (matmul(), chip({"energy": {"read": -1.0}}), r"levels\[1\]\.energy"),
    "an infinite clock": (matmul(), chip(clock="1e400 GHz"), r"clock"),
    "positions of a strided rank": (
        {**matmul(m=2**40), "einsum": "Z[m, n] = P[2*m, k] * Q[k, n]"},
        chip(),
        r"tensor 'P' has 2199023255551 positions in rank 0, padding or holes of a stride among them; expected at most 16777216",
    ),
    "a stride": (
        {**matmul(), "einsum": f"Z[m, n] = P[{2**50}*m, k] * Q[k, n]"},
        chip(),
        r"make tensor 'P' 2\^53 words or larger",
    ),
}


@pytest.mark.parametrize(("workload", "hardware", "text"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_numbers_that_cannot_be_counted_are_told_at_load(workload, hardware, text, registry):
    with pytest.raises(SpecError, match=text):
        problem = load_problem(workload, hardware, registry=registry)
        assert problem.levels and problem.loops and problem.bound


def test_energies_of_the_compute_unit_are_checked_too(registry):
    hardware = chip(compute={"gate_skip": True, "energy": {"compute": -1.0}})
    with pytest.raises(SpecError, match=r"compute\.energy\.compute: is -1\.0, expected picojoules"):
        load_problem(matmul(), hardware, registry=registry).mac_pj("compute")


@pytest.mark.parametrize(
    ("compute", "text"),
    [
        ({"gate_skipp": True}, r"compute\.gate_skipp: unknown key; did you mean 'gate_skip'\?"),
        ({"energy": {"computee": 1.0}}, r"compute\.energy\.computee: no action 'computee'; did you mean 'compute'\?"),
    ],
)
def test_a_key_of_the_compute_unit_that_is_unknown_is_told(compute, text, registry):
    with pytest.raises(SpecError, match=text):
        load_problem(matmul(), chip(compute=compute), registry=registry)


# --------------------------------------------------------------------------------------------------------------- primes


@pytest.mark.parametrize(
    "size",
    [
        2**61 - 1,
        3_037_000_493**2,
        3_037_000_493 * 3_037_000_507,
        1_000_003**3,
        2**63 - 25,
        2**62,
        2**63 - 1,
    ],
)
def test_primes_of_any_size_are_found_at_once(size):
    with at_most(1_000_000):  # a search for divisors one by one would take thousands of millions of steps
        factors = prime_factors(size)
    assert math.prod(factors) == size and list(factors) == sorted(factors)
    assert all(prime_factors(factor) == (factor,) for factor in factors)


def test_primes_and_divisors_against_trial_division():
    for size in [*range(1, 300), *range(997 * 997, 997 * 997 + 50), *range(1009 * 1009 - 5, 1009 * 1009 + 5)]:
        expected = [number for number in range(1, size + 1) if size % number == 0] if size < 300 else None
        if expected:
            assert divisors(size) == expected
        rest, factors = size, []
        for prime in range(2, 1100):
            while rest % prime == 0:
                rest //= prime
                factors.append(prime)
        assert prime_factors(size) == (*factors, *([rest] if rest > 1 else []))


def test_energies_beyond_all_numbers_are_an_error_where_they_are_stated(registry):
    with pytest.raises(SpecError, match=r"compute.energy.compute: is 1e\+308, expected picojoules, 0 to 1e\+18"):
        search(load_problem(matmul(), chip(compute={"energy": {"compute": 1e308}}), registry=registry), 200)
