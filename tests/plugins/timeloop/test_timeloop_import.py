"""Timeloop problem files as workloads."""

import re
from itertools import pairwise

import pytest
from click.testing import CliRunner
from sparsemap_plugins.timeloop.commands import import_problem
from sparsemap_plugins.timeloop.importer import read_problem
from sparsemap_plugins.timeloop.problem import Names, problem_table

from sparsemap.errors import SpecError
from sparsemap.pieces.loading import load
from sparsemap.problem.load import load_problem
from sparsemap.spec import toml_io
from sparsemap.spec.yaml_text import yaml_text


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
    file.write_text(yaml_text(problem_table(problem, Names.of(problem))))
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
    file.write_text(yaml_text(written))
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
    with pytest.raises(
        SpecError, match=r"problem\.shape: line 2: 'conv' is the name of a shape file, and there is none"
    ):
        read_problem(file)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("C: 8", "D: 8", "problem.instance.C: missing"),
        ("C: 8", "C: many", "problem.instance.C: expected a whole number"),
        (
            "hypergeometric",
            "poisson",
            "problem.instance.densities.Inputs.distribution: no distribution 'poisson'; known: .*, fixed,",
        ),
        ("density: 0.3", "nothing: 1", "densities.Inputs.density: missing; expected a number"),
        ("      read-write: True\n", "", "3 read-only and 0 read-write tensors"),
        (
            "[R, Wdilation]",
            "[R, Hdilation]",
            "data_spaces\\[1\\].projection: no coefficient 'Hdilation'; did you mean 'Wdilation'",
        ),
        ("[R, Wdilation]", "[R, Wdilation, 1]", "expected \\[dimension\\] or \\[dimension, coefficient\\], found"),
        ("[R, Wdilation]", "5", "problem.shape.data_spaces\\[1\\].projection: expected \\[dimension\\]"),
        ("[ [[C]], [[M]], [[R]] ]", "3", "data_spaces\\[0\\].projection: expected a list with the terms of every rank"),
        ("[ [[C]], [[M]], [[R]] ]", "[[[C]], []]", "data_spaces\\[0\\].projection: expected a list with the terms"),
        ("[[M]], [[R]]", "[[M]], [[X]]", "data_spaces\\[0\\].projection: no dimension 'X'"),
        (
            "coefficients:",
            "coefficients: 5\n    other:",
            "problem.shape.coefficients: expected a list of tables, found 5",
        ),
        ("default: 1", "default: x", "coefficients\\[0\\].default: expected a whole number .*, found 'x'"),
        ("name: Wstride, ", "", "coefficients\\[0\\].name: missing; expected a name"),
        ("name: Weights", "name: 'A] = x'", "data_spaces\\[0\\].name: expected a name of letters and digits"),
        (
            "name: Weights",
            "name: [s]",
            "data_spaces\\[0\\].name: expected a name of letters and digits, found \\['s'\\]",
        ),
        ("name: Strided-Conv", "name: 7", "problem.shape.name: expected text, found 7"),
        ("M: 16", "M: -5", "problem.instance.M: expected a whole number .*, found -5"),
        ("M: 16", "M: 0", "problem.instance.M: expected a whole number .*, found 0"),
        ("M: 16", "M: " + "9" * 5000, "line 21: .* is no value: Exceeds the limit"),
        (
            "M: 16",
            "M: 0x" + "f" * 4000,
            "problem.instance.M: expected a whole number from 1 to 2\\^63 - 1, found a number of thousands",
        ),
        ("M: 16", "M: !!int x", "line 21: 'x' is no value: invalid literal"),
        ("M: 16", "M: 2020-13-45", "expected a whole number .*, found '2020-13-45'"),
        ("M: 16", "M: !!python/object/apply:os.system [ls]", "line 21: tag .* is not one of Timeloop's"),
        ("Wstride: 3", "Wstride: .inf", "problem.instance.Wstride: expected a whole number .*, found inf"),
        (
            "Weights: 0.5",
            "Weights: .nan",
            "problem.instance.densities.Weights: expected a number from 0 to 1, found nan",
        ),
        ("Weights: 0.5", "Weights: -3", "densities.Weights: expected a number from 0 to 1, found -3"),
        (
            "Weights: 0.5",
            "Weights: {distribution: banded, band_width: x}",
            "Weights.band_width: expected a whole number",
        ),
        ("densities:", "densities: 5\n    other:", "problem.instance.densities: expected a table, found 5"),
        ("  instance:", "  instance: here\n  other:", "problem.instance: expected a table, found 'here'"),
        ("  shape:", "  shape: ../../etc/passwd\n  other:", "is the name of a shape file, and there is none"),
        ("  shape:", "  shape: " + "x" * 5000 + "\n  other:", "is the name of a shape file, and there is none"),
        ("  shape:", "  shape: 5\n  other:", "problem.shape: expected a table, found 5"),
        ("problem:", "a: &a [*a]\nproblem:", "is nested more than 50 deep"),
        ("problem:", "a: " + "[" * 5000 + "\nproblem:", "is nested too deeply"),
        (
            "problem:",
            "a: &a [1, 1, 1, 1]\n"
            + "".join(f"{x}: &{x} [*{y}, *{y}, *{y}, *{y}, *{y}, *{y}]\n" for y, x in pairwise("abcdefghi"))
            + "problem:",
            "holds more than 20,000 values",
        ),
        ("problem:", "{{add_to_path('x')}}\nproblem:", "line 2: is a template; only"),
        ("problem:", "{{include_text('/etc/hostname')}}\nproblem:", "which is no YAML file below"),
        ("problem:", "{{include_text('../../a.yaml')}}\nproblem:", "which is no YAML file below"),
        ("problem:", "{{include_text('" + "x" * 5000 + ".yaml')}}\nproblem:", "cannot be read: File name too long"),
        ("problem:", "{{include_text('none.yaml')}}\nproblem:", "none.yaml: no such file"),
        ("problem:", "layer:", "problem: missing"),
        ("dimensions: [ C, M, P, R ]", "sizes: 3", "problem.shape.dimensions: missing"),
        ("[ C, M, P, R ]", "[ C, M", "is not YAML"),
    ],
)
def test_wrong_files(old, new, message, tmp_path):
    assert old in CONVOLUTION
    with pytest.raises(SpecError) as told:
        read_problem(write(tmp_path, CONVOLUTION.replace(old, new, 1)))
    line = r"line \d+: "
    assert any(re.search(message, text) for text in (str(told.value), re.sub(line, "", str(told.value))))


def test_a_layer_that_includes_what_its_network_shares(tmp_path, registry):
    """As in Timeloop's public exercises: the base is included as text, and merged by `<<<`, tables in tables."""
    (tmp_path / "network").mkdir()
    base = CONVOLUTION.replace("problem:", "problem_base_ignore: &problem_base")
    (tmp_path / "problem_base.yaml").write_text(base)
    layer = tmp_path / "network" / "01.yaml"
    layer.write_text(
        "{{include_text('../problem_base.yaml')}}\nproblem:\n  <<<: *problem_base\n  instance: {M: 32, P: 5}\n\n  "
    )
    table = read_problem(layer)
    assert table["dims"] == {"C": 8, "M": 32, "P": 5, "R": 3}
    assert table["einsum"] == "Outputs[M, P] = Weights[C, M, R] * Inputs[C, 2*R + 3*P]"
    assert table["density"]["Weights"] == {"type": "structured", "density": 0.5}


def test_libconfig_is_named_as_such(tmp_path):
    (tmp_path / "old.cfg").write_text('problem:\n{\n  R = 3;\n  shape = "cnn-layer";\n};\n')
    with pytest.raises(SpecError, match="is libconfig"):
        read_problem(tmp_path / "old.cfg")


def test_what_a_workload_cannot_be_is_told_at_import(tmp_path):
    file = write(tmp_path, CONVOLUTION.replace("C: 8", f"C: {2**60}"))
    done = CliRunner().invoke(import_problem, [str(file)])
    assert isinstance(done.exception, SpecError) and "too large to be counted" in str(done.exception)
    assert "einsum" not in done.output


def test_command(tmp_path, registry):
    file, out = write(tmp_path, CONVOLUTION), tmp_path / "layer.toml"
    printed = CliRunner().invoke(import_problem, [str(file)], catch_exceptions=False)
    written = CliRunner().invoke(import_problem, [str(file), "-o", str(out), "--name", "mine"], catch_exceptions=False)
    assert printed.exit_code == written.exit_code == 0
    assert 'einsum = "Outputs[M, P] = ' in printed.output
    assert registry.resolve("workload", str(out)).name == "mine"
    assert toml_io.read(out)["kind"] == "workload"
