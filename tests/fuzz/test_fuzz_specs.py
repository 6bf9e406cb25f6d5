"""Files from strangers: whatever is in them, reading them ends soon, and with nothing but an error that SparseMap tells.

These are the first inputs of `python tests/fuzz/fuzz.py 200000`; `SPARSEMAP_FUZZ=20000` tries more of them here, those
beyond the first thousand as slow tests.
"""

import os
from pathlib import Path

import pytest
from fuzz import KINDS, TURNS, Attempts, attempt, bound_memory, kind_of, limited_time

from sparsemap import SparseMapError, load_problem

INPUTS = int(os.environ.get("SPARSEMAP_FUZZ", "3000"))
FEW = 1000


@pytest.fixture(scope="module")
def attempts():
    return Attempts()


@pytest.fixture(scope="module")
def registry(attempts):
    return attempts.registry


@pytest.fixture(autouse=True, scope="module")
def bounded_memory(attempts):
    unbound = bound_memory()
    yield
    unbound()


@pytest.mark.parametrize("inputs", [range(FEW), pytest.param(range(FEW, INPUTS), marks=pytest.mark.slow)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_odd_inputs_are_taken_or_told(kind, inputs, attempts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = 0
    for number in (number for number in inputs if kind_of(number) == kind):
        try:
            told += bool(attempt(attempts, number))
        except Exception as error:
            again = f"python tests/fuzz/fuzz.py --first {number} --only"
            raise AssertionError(f"input {number}: {type(error).__name__}: {str(error)[:300]}; {again}") from error
    assert told >= len(inputs) // len(TURNS) // 4  # or the inputs are not odd


@pytest.mark.parametrize("name", ["expression", "einsum"])
def test_long_texts_are_refused_at_once(name, registry):
    for text in ("1+" * 10**6 + "1", "(" * 10**6, "a" * 10**6, "*" * 10**6, "Z[" + "m," * 10**6):
        with limited_time(), pytest.raises(SparseMapError):
            if name == "expression":
                registry.build("objective", {"score": text})
            else:
                registry.build("workload", {"einsum": text, "dims": {"m": 1}, "density": {}})


@pytest.mark.parametrize(
    "name", ["a/\x00", "x" * 5000 + ".toml", "/", "a/" * 3000, "~nobody-of-that-name/x.toml", "\ud800/x"]
)
def test_paths_that_are_none(name, registry):
    with limited_time(), pytest.raises(SparseMapError):
        load_problem(name, "cloud", registry=registry)


def test_files_that_are_no_specs(tmp_path: Path, registry):
    for data in (b"", b"\xff\xfe", b"a = " + b"[" * 100_000, b"a = " + b"9" * 100_000, b"=" * 1000, b"\x00" * 1000):
        (tmp_path / "x.toml").write_bytes(data)
        with limited_time(), pytest.raises(SparseMapError):
            load_problem(str(tmp_path / "x.toml"), "cloud", registry=registry)
