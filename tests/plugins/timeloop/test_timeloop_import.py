"""Timeloop problem files as workloads."""

import sys

import pytest

pytest.importorskip("yaml")

from click.testing import CliRunner
from sparsemap_plugins.timeloop import yaml_text
from sparsemap_plugins.timeloop.commands import import_problem
from sparsemap_plugins.timeloop.importer import read_problem
from sparsemap_plugins.timeloop.names import Names
from sparsemap_plugins.timeloop.problem import problem_table

from sparsemap.errors import SparseMapError, SpecError
from sparsemap.pieces.loading import load
from sparsemap.problem.load import load_problem
from sparsemap.spec import toml_io


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.mark.parametrize(
    "name",
    ["mm3", "mm1", "conv1", "conv10", "batched-matmul-8x64x64x64", "depthwise-conv-32x16x16", "attention-scores"],
)
def test_round_trip(name, registry, tmp_path):
    """Export and import give the same dimensions, tensors and densities."""
    problem = load_problem(name, "edge", {"name": "none", "segments": ["orders", "tiling", "formats", "gate-skip"],
        "tiling": {"type": "direct-tiling"}, "formats": {"type": "rank-formats", "candidates": ["uncompressed"]},
        "gate-skip": {"candidates": ["none"]}, "orders": {"type": "cantor"}}, registry=registry)  # fmt: skip
    if any(len(dim) > 1 for dim in problem.dims):
        pytest.skip("dimensions of several letters are renamed")
    file = tmp_path / "problem.yaml"
    file.write_text(yaml_text.dumps(problem_table(problem, Names.of(problem))))
    workload = registry.build("workload", read_problem(file))
    assert workload.name == name
    assert workload.loops(registry) == problem.workload.loops(registry)


def test_single_value(registry, tmp_path):
    """Timeloop has no tensor without index: a dimension of size one that nothing else has stands in."""
    table = {"name": "dot", "einsum": "Z[] = A[k] * B[k]", "dims": {"k": 16}, "density": {"A": 0.5, "B": 0.5, "Z": 1.0}}
    problem = load_problem(table, "edge", registry=registry)
    file = tmp_path / "problem.yaml"
    written = problem_table(problem, Names.of(problem))
    assert written["problem"]["shape"]["data-spaces"][2]["projection"] == [[["A"]]]
    assert written["problem"]["instance"]["A"] == 1
    file.write_text(yaml_text.dumps(written))
    assert registry.build("workload", read_problem(file)).loops(registry) == problem.workload.loops(registry)


CONVOLUTION = """
problem:
  shape:
    name: Strided-Conv
    dimensions: [ C, M, P, R ]
    coefficients:
    - {name: Wstride, default: 1}
    - {name: Wdilation, default: 2}
    data-spaces:
    - name: Weights
      projection: [ [[C]], [[M]], [[R]] ]
    - name: Inputs
      projection:
      - [ [C] ]
      - [ [R, Wdilation], [P, Wstride] ]
    - name: Outputs
      projection: [ [[M]], [[P]] ]
      read-write: True
  instance:
    C: 8
    M: 16
    P: 7
    R: 3
    Wstride: 3
    densities:
      Weights: 0.5
      Inputs: {distribution: hypergeometric, density: 0.3}
"""


def write(tmp_path, text):
    file = tmp_path / "layer.yaml"
    file.write_text(text)
    return file


def test_coefficients_and_densities(tmp_path, registry):
    table = read_problem(write(tmp_path, CONVOLUTION))
    assert table["name"] == "strided-conv"
    assert table["einsum"] == "Outputs[M, P] = Weights[C, M, R] * Inputs[C, 2*R + 3*P]"
    assert table["dims"] == {"C": 8, "M": 16, "P": 7, "R": 3}
    assert table["density"] == {
        "Weights": {"type": "structured", "density": 0.5},
        "Inputs": {"type": "uniform", "density": 0.3},
        "Outputs": {"type": "structured", "density": 1.0},  # Timeloop's default
    }
    assert registry.build("workload", table).loops(registry).tensors[2].output


def test_newer_and_older_spellings(tmp_path):
    newer = CONVOLUTION.replace("data-spaces", "data_spaces").replace("read-write", "read_write")
    assert read_problem(write(tmp_path, newer)) == read_problem(write(tmp_path, CONVOLUTION))
    older = """
problem:
  shape:
    dimensions: [M, N, K]
    data-spaces:
    - {name: A, projection: [M, K]}
    - {name: B, projection: [K, N]}
    - {name: Z, projection: [M, N], read-write: true}
  M: 2
  N: 3
  K: 4
  commonDensity: 0.5
"""
    table = read_problem(write(tmp_path, older), name="given")
    assert (table["name"], table["einsum"]) == ("given", "Z[M, N] = A[M, K] * B[K, N]")
    assert table["dims"] == {"M": 2, "N": 3, "K": 4}
    assert set(map(str, table["density"].values())) == {"{'type': 'structured', 'density': 0.5}"}


def test_shape_in_a_file_of_its_own(tmp_path):
    text = CONVOLUTION.replace("problem:\n", "", 1)
    shape, instance = text.split("  instance:")
    (tmp_path / "conv.yaml").write_text(shape)
    file = write(tmp_path, f"problem:\n  shape: conv\n  instance:{instance}")
    assert read_problem(file)["einsum"].startswith("Outputs[M, P]")
    (tmp_path / "conv.yaml").unlink()
    with pytest.raises(SpecError, match=r"there is no conv\.yaml beside"):
        read_problem(file)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("C: 8", "D: 8", "problem.instance.C: missing"),
        ("C: 8", "C: many", "problem.instance.C: expected a whole number"),
        ("hypergeometric", "poisson", "densities.Inputs.distribution: 'poisson' is not supported"),
        ("density: 0.3", "nothing: 1", "densities.Inputs.density: expected a number"),
        ("      read-write: True\n", "", "3 read-only and 0 read-write tensors"),
        ("[R, Wdilation]", "[R, Hdilation]", "expected \\[dimension\\] or \\[dimension, coefficient\\]"),
        ("problem:", "layer:", "problem: missing"),
        ("dimensions: [ C, M, P, R ]", "sizes: 3", "problem.shape.dimensions: missing"),
        ("[ C, M, P, R ]", "[ C, M", "is not YAML"),
    ],
)
def test_wrong_files(old, new, message, tmp_path):
    assert old in CONVOLUTION
    with pytest.raises(SpecError, match=message):
        read_problem(write(tmp_path, CONVOLUTION.replace(old, new, 1)))


def test_without_yaml_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(SparseMapError, match=r'pip install "sparsemap\[timeloop\]"'):
        read_problem(write(tmp_path, CONVOLUTION))


def test_command(tmp_path, registry):
    file, out = write(tmp_path, CONVOLUTION), tmp_path / "layer.toml"
    printed = CliRunner().invoke(import_problem, [str(file)], catch_exceptions=False)
    written = CliRunner().invoke(import_problem, [str(file), "-o", str(out), "--name", "mine"], catch_exceptions=False)
    assert printed.exit_code == written.exit_code == 0
    assert 'einsum = "Outputs[M, P] = ' in printed.output
    assert registry.resolve("workload", str(out)).name == "mine"
    assert toml_io.read(out)["kind"] == "workload"
