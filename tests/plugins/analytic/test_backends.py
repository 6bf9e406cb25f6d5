"""Other array libraries than NumPy give the numbers of NumPy, and say what they lack."""

from __future__ import annotations

import importlib.util
import re
import sys
from functools import cache

import attrs
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sparsemap_plugins.analytic.occupancy.lookup import Number, Table, fingerprint

from sparsemap.backend import NAMES, NUMPY, backend, backend_of
from sparsemap.errors import EvaluationError, install
from sparsemap.pieces.loading import load
from sparsemap.problem.evaluation import Evaluation
from sparsemap.problem.evaluator import Evaluator
from sparsemap.problem.load import load_problem

REGISTRY = load()
WORKLOADS = ("mm1", "mm3", "mm8", "conv1", "conv4", "conv11", "depthwise-conv-32x16x16", "batched-matmul-8x64x64x64")
EINSUMS = (
    ("Z[m, n] = P[m, k] * Q[k, n]", "mkn"),
    ("Z[b, m, n] = P[b, m, k] * Q[b, k, n]", "bmkn"),
    ("Z[k, p, q] = P[c, p+r, q+s] * Q[k, c, r, s]", "kpqcrs"),
    ("Z[k, p] = P[c, 2*p+r] * Q[k, c, r]", "kpcr"),
    ("Z[c, 2*p+r] = P[k, p] * Q[k, c, r]", "kpcr"),
    ("Z[i] = P[i, j]", "ij"),
    ("Z[i, j] = P[i, k, l] * Q[k, j] * R[l, j]", "ijkl"),
)
SEEN = settings(max_examples=40, suppress_health_check=list(HealthCheck))


def missing(name: str) -> str:
    return f"{name} is not installed" if importlib.util.find_spec(name) is None else ""


needs_torch = pytest.mark.skipif(bool(missing("torch")), reason=missing("torch") or "torch is there")


@cache
def problem(workload: str, hardware: str, quirks: str = "none", backend: str = "numpy"):
    model = {"type": "analytic", "quirks": quirks}
    return load_problem(workload, hardware, cost_model=model, registry=REGISTRY, backend=backend)


def genomes(of, count: int, seed: int = 0) -> np.ndarray:
    """Random genomes, half of them repaired."""
    rng = np.random.default_rng(seed)
    found = of.space.sample(count, rng)
    found[: count // 2] = of.space.repair(found[: count // 2], rng)
    return found


def same(expected: Evaluation, found: Evaluation) -> None:
    """Bit for bit: more than the promise of 1e-9, and what arithmetic without rounding differences gives."""
    assert found.reason_names == expected.reason_names
    for name in ("reasons", "energy_pj", "cycles"):
        one, other = getattr(expected, name), getattr(found, name)
        assert isinstance(other, np.ndarray) and other.dtype == one.dtype
        np.testing.assert_array_equal(other, one, err_msg=name)


@needs_torch
@pytest.mark.parametrize("quirks", ["none", "timeloop-v3"])
@pytest.mark.parametrize("hardware", ["edge", "cloud"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_torch_gives_the_numbers_of_numpy(workload: str, hardware: str, quirks: str) -> None:
    plain, other = (problem(workload, hardware, quirks, name) for name in ("numpy", "torch:cpu"))
    batch = genomes(plain, 400)
    expected = plain.evaluator.evaluate(batch)
    assert expected.valid.any()
    same(expected, other.evaluator.evaluate(batch))
    same(expected, other.evaluator.evaluate(batch))  # now from the tables on the device


@needs_torch
@pytest.mark.parametrize("hardware", ["clustered", "eyeriss-like", "scnn-like", "dstc-like", "mobile"])
def test_torch_gives_the_numbers_of_numpy_on_other_hardware(hardware: str) -> None:
    plain, other = (problem("mm3", hardware, "none", name) for name in ("numpy", "torch:cpu"))
    batch = genomes(plain, 300)
    same(plain.evaluator.evaluate(batch), other.evaluator.evaluate(batch))


@needs_torch
@SEEN
@given(data=st.data())
def test_torch_gives_the_numbers_of_numpy_on_random_problems(data: st.DataObject) -> None:
    einsum, dims = data.draw(st.sampled_from(EINSUMS))
    size = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16] if len(dims) < 6 else [1, 2, 3, 4])
    density = st.sampled_from([0.01, 0.1, 0.3, 0.75, 1.0])
    levels = []
    for i in range(data.draw(st.integers(2, 4))):
        level = {"name": f"L{i}", "class": "sram" if i else "dram", "gate_skip": i > 0}
        if i:
            level["capacity"] = f"{data.draw(st.sampled_from([64, 512, 1 << 20]))} B"
        if data.draw(st.booleans()):
            level["fanout"] = data.draw(st.sampled_from([1, 4, 16]))
        if data.draw(st.booleans()):
            level["bandwidth"] = f"{data.draw(st.sampled_from([1, 8, 64]))} GB/s"
        levels.append(level)
    parts = (
        {
            "einsum": einsum,
            "dims": {dim: data.draw(size) for dim in dims},
            "density": {operand: data.draw(density) for operand in re.findall(r"([PQR])\[", einsum)},
        },
        {"extends": "cloud", "levels": levels},
    )
    plain = load_problem(*parts, registry=REGISTRY)
    batch = genomes(plain, 64, data.draw(st.integers(0, 1000)))
    found = Evaluator(plain, backend="torch:cpu").evaluate(batch)
    same(plain.evaluator.evaluate(batch), found)


@needs_torch
def test_sums_in_the_order_of_ranks_are_those_of_bincount(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accelerators add the metadata of a tile rank by rank; here the same on a CPU."""
    plain = problem("conv4", "cloud")
    other = load_problem("conv4", "cloud", registry=REGISTRY, backend="torch:cpu")
    monkeypatch.setattr(other.evaluator.xp, "in_order", False)
    batch = genomes(plain, 400)
    same(plain.evaluator.evaluate(batch), other.evaluator.evaluate(batch))


@needs_torch
def test_genomes_may_be_arrays_of_the_library_and_of_any_integer_type() -> None:
    import torch

    plain, other = (problem("mm3", "cloud", "none", name) for name in ("numpy", "torch:cpu"))
    batch = genomes(plain, 100)
    expected = plain.evaluator.evaluate(batch)
    for given_ in (torch.as_tensor(batch), torch.as_tensor(batch).to(torch.int16), batch.astype(np.uint16)):
        same(expected, other.evaluator.evaluate(given_))
    assert len(other.evaluator.evaluate(batch[:0])) == 0
    batch[3, 0] = 99
    with pytest.raises(EvaluationError, match="genome 3: gene"):
        other.evaluator.evaluate(batch)
    with pytest.raises(EvaluationError, match="shape"):
        other.evaluator.evaluate(torch.as_tensor(batch[:, 1:]))


@needs_torch
def test_segments_that_need_numpy_are_decoded_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    paper = REGISTRY.resolve("space", "paper")
    tables = {**paper.tables, "orders": {"type": "random-order"}}
    plain = load_problem("mm3", "cloud", attrs.evolve(paper, tables=tables), registry=REGISTRY)
    segment = type(plain.space.segments["orders"])
    asked, decode = [], segment.decode

    def checked(self, genes, problem):
        asked.append(type(genes))
        return decode(self, genes, problem)

    monkeypatch.setattr(segment, "decode", checked)
    batch = genomes(plain, 100)
    same(plain.evaluator.evaluate(batch), Evaluator(plain, backend="torch:cpu").evaluate(batch))
    assert set(asked) == {np.ndarray}


@needs_torch
def test_results_do_not_depend_on_the_block_size() -> None:
    of = problem("mm3", "edge")
    batch = genomes(of, 300)
    same(of.evaluator.evaluate(batch), Evaluator(of, block=64, backend="torch:cpu").evaluate(batch))


@needs_torch
def test_a_mechanism_with_limits_of_its_own_is_asked_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = load_problem("mm3", "cloud", registry=REGISTRY)
    batch = genomes(plain, 300)
    before = plain.evaluator.evaluate(batch)

    def eliminated(self, place, rule, empty):
        assert isinstance(empty, np.ndarray)
        return empty / 2

    for mechanism in plain.candidates("mechanism"):
        monkeypatch.setattr(type(mechanism), "eliminated", eliminated)
    expected = plain.evaluator.evaluate(batch)
    assert not np.array_equal(expected.energy_pj, before.energy_pj)
    same(expected, Evaluator(plain, backend="torch:cpu").evaluate(batch))


@needs_torch
def test_a_full_table_starts_afresh() -> None:
    xp, asked = backend("torch:cpu"), []
    table = Table(Number, xp, most=1000)
    for start in (0, 500, 900, 0):
        numbers = xp.asarray(np.repeat(np.arange(start, start + 600.0), 2))

        def ask(rows, numbers=numbers):
            asked.append(len(rows))
            return Number(xp.to_host(numbers[rows]) / 8)

        values = xp.to_host(table.find(fingerprint([numbers], xp), ask).value)
        np.testing.assert_array_equal(values, xp.to_host(numbers) / 8)
    assert asked == [600, 600, 400, 600]  # the second call would have made it 1100 rows, and the last one 1500


@pytest.mark.skipif(bool(missing("jax")), reason=missing("jax") or "jax is there")
def test_jax_gives_the_numbers_of_numpy() -> None:
    plain, other = (problem("mm1", "cloud", "none", name) for name in ("numpy", "jax"))
    batch = genomes(plain, 24)
    same(plain.evaluator.evaluate(batch), other.evaluator.evaluate(batch))


@pytest.mark.skipif(bool(missing("cupy")), reason=missing("cupy") or "cupy is there")
def test_cupy_gives_the_numbers_of_numpy() -> None:
    try:
        backend("cupy")
    except EvaluationError as error:
        pytest.skip(str(error))
    plain, other = (problem("mm3", "cloud", "none", name) for name in ("numpy", "cupy"))
    batch = genomes(plain, 400)
    same(plain.evaluator.evaluate(batch), other.evaluator.evaluate(batch))


# -------------------------------------------------------------------------------------------------------- without torch


def test_numpy_operations_are_those_of_numpy() -> None:
    assert backend() is NUMPY and backend_of(np.zeros(1)) is NUMPY
    assert NUMPY.where is np.where and NUMPY.ceil is np.ceil


@pytest.mark.parametrize("name", [name for name in NAMES if name != "numpy"])
def test_a_missing_library_is_named_with_its_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(EvaluationError, match=re.escape(install(name))):
        backend.__wrapped__(name)


def test_wrong_names_are_told() -> None:
    with pytest.raises(EvaluationError, match=r"no backend 'tensor'.*torch"):
        backend("tensor")
    with pytest.raises(EvaluationError, match="no device"):
        backend("numpy:cuda")
    of = load_problem("mm3", "cloud", registry=REGISTRY, backend="troch")
    with pytest.raises(EvaluationError, match="torch"):
        _ = of.evaluator


@needs_torch
def test_a_cost_model_for_numpy_only_says_so() -> None:
    import toy_problem

    of = toy_problem.toy_problem()
    with pytest.raises(EvaluationError, match="runs on NumPy only"):
        Evaluator(of, backend="torch:cpu")


@needs_torch
def test_an_unknown_device_is_told() -> None:
    with pytest.raises(EvaluationError, match="cannot use device 'warp'"):
        backend("torch:warp")
