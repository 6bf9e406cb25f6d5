"""Specs from strangers: whatever is in them, reading them ends soon, and with nothing but an error that SparseMap tells.

`SPARSEMAP_FUZZ=100000 python -m pytest tests/fuzz` tries that many inputs; without it there are a few thousand.
"""

import os
import random
import signal
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spec_fuzz import Inputs

from sparsemap import SparseMapError, load_problem
from sparsemap.pieces.loading import load
from sparsemap.spec import toml_io

INPUTS = int(os.environ.get("SPARSEMAP_FUZZ", "3000"))
PER_EXAMPLE = 50
SECONDS = 5
"""What a single input may take, on a busy machine."""

MEMORY = 4 << 30
"""Bytes that the process may have: an input that asks for more fails, and takes nothing else with it."""

registry = load()
inputs = Inputs(registry)


@pytest.fixture(autouse=True, scope="module")
def bounded_memory():
    resource = pytest.importorskip("resource") if os.name == "posix" else None
    if resource is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def fuzz(share):
    """Seeds for a share of the inputs, `PER_EXAMPLE` inputs each; runs are alike."""
    examples = max(1, round(INPUTS * share / PER_EXAMPLE))
    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    given_seed = given(seed=st.integers(0, 2**64 - 1))
    apply = settings(
        max_examples=examples, deadline=None, database=None, derandomize=True, suppress_health_check=checks
    )
    return lambda test: apply(given_seed(test))


@contextmanager
def only_told_errors(what):
    """Fails with the input if anything but a SparseMapError is raised, or if it takes long."""

    def late(*_):
        raise TimeoutError(f"took more than {SECONDS} s")

    alarm = getattr(signal, "SIGALRM", None)
    before = signal.signal(alarm, late) if alarm else None
    if alarm:
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    except SparseMapError as error:
        assert str(error).strip(), f"an error without a text for {what!r}"
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}\nfor {what!r}") from error
    finally:
        if alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(alarm, before)


@fuzz(0.35)
def test_made_up_tables(seed):
    rng = random.Random(seed)
    for _ in range(PER_EXAMPLE):
        kind, table = inputs.made_up(rng)
        with only_told_errors((kind, table)):
            registry.build(kind, table, "spec.toml", "")


@fuzz(0.45)
def test_real_specs_with_odd_changes(seed):
    rng = random.Random(seed)
    for _ in range(PER_EXAMPLE):
        kind, table = inputs.mutated(rng)
        with only_told_errors((kind, table)):
            registry.build(kind, {**table, "name": table.get("name", "x")}, "spec.toml", "")


@fuzz(0.1)
def test_bytes_of_files(seed, tmp_path_factory):
    rng = random.Random(seed)
    path = tmp_path_factory.getbasetemp() / "spec.toml"
    for _ in range(PER_EXAMPLE):
        data = inputs.text(rng)
        path.write_bytes(data)
        with only_told_errors(data):
            table = toml_io.read(path)
            if isinstance(table.get("kind"), str) and table["kind"] in registry.kinds():
                registry.build(table.pop("kind"), table, str(path), "")


@fuzz(0.1)
def test_problems_of_odd_parts(seed):
    """Up to the design space and a few evaluated designs."""
    rng = random.Random(seed)
    for _ in range(PER_EXAMPLE):
        parts = {"workload": "mm1", "hardware": "cloud", "space": "paper"}
        for kind in rng.sample(sorted(parts), rng.choice((1, 1, 2))):
            parts[kind] = inputs.mutated(rng, (kind,))[1]
        with only_told_errors(parts):
            problem = load_problem(**parts, registry=registry)
            genomes = problem.space.sample(3, np.random.default_rng(0))
            evaluation = problem.evaluator.evaluate(genomes)
            assert (evaluation.energy_pj[evaluation.valid] >= 0).all()


@pytest.mark.parametrize("name", ["expression", "einsum"])
def test_long_texts_are_refused_at_once(name):
    for text in ("1+" * 10**6 + "1", "(" * 10**6, "a" * 10**6, "*" * 10**6, "Z[" + "m," * 10**6):
        with only_told_errors(text[:20]), pytest.raises(SparseMapError):
            if name == "expression":
                registry.build("objective", {"score": text})
            else:
                registry.build("workload", {"einsum": text, "dims": {"m": 1}, "density": {}})


@pytest.mark.parametrize(
    "name", ["a/\x00", "x" * 5000 + ".toml", "/", "a/" * 3000, "~nobody-of-that-name/x.toml", "\ud800/x"]
)
def test_paths_that_are_none(name):
    with only_told_errors(name), pytest.raises(SparseMapError):
        load_problem(name, "cloud", registry=registry)


def test_files_that_are_no_specs(tmp_path: Path):
    for data in (b"", b"\xff\xfe", b"a = " + b"[" * 100_000, b"a = " + b"9" * 100_000, b"=" * 1000, b"\x00" * 1000):
        (tmp_path / "x.toml").write_bytes(data)
        with only_told_errors(data[:20]):
            load_problem(str(tmp_path / "x.toml"), "cloud", registry=registry)
