"""Einsums with one, three and four operands to and from Timeloop, which takes them dense."""

import json

import pytest

pytest.importorskip("yaml")

from click.testing import CliRunner
from reference_model import evaluate
from sparsemap_plugins.timeloop.importer import read_problem
from timeloop_reader import read_case
from worked_example import HARDWARE

from sparsemap.cli.main import cli
from sparsemap.spec import toml_text

PLAIN = ["uncompressed"] * 3
WORKLOADS = {
    "row-sum": ("Z[i] = P[i, j]", {"L1_T": ["i=2"], "L2_T": ["j=3"], "L2_S": ["i=4"], "L3_T": ["j=4"]}),
    "mttkrp": (
        "Z[i, j] = T[i, k, l] * B[k, j] * C[l, j]",
        {"L1_T": ["i=2", "l=3"], "L2_T": ["k=2"], "L2_S": ["j=4"], "L3_T": ["k=2", "l=2"]},
    ),
    "scaled": (
        "Z[k, p] = X[c, 2*p + r] * W[k, c, r] * S[k] * G[c]",
        {"L1_T": ["k=2"], "L2_T": ["p=3"], "L2_S": ["c=4"], "L3_T": ["r=3", "p=2"]},
    ),
}  # fmt: skip


def sparsemap(*args):
    return CliRunner().invoke(cli, [str(arg) for arg in args])


def design(name, folder, **changes):
    """A design file on the hardware of the worked examples; a density of one half changes nothing of a dense design."""
    einsum, mapping = WORKLOADS[name]
    dims: dict[str, int] = {}
    for loop in (loop for loops in mapping.values() for loop in loops):
        dim, _, bound = loop.partition("=")
        dims[dim] = dims.get(dim, 1) * int(bound)
    tensors = [text.partition("[")[0].strip(" =*") for text in einsum.replace("]", "]\n").splitlines() if "[" in text]
    table = {
        "kind": "design",
        "cost_model": "timeloop",
        "workload": {"name": name, "einsum": einsum, "dims": dims, "density": dict.fromkeys(tensors, 0.5)},
        "hardware": HARDWARE,
        "mapping": mapping,
        "formats": dict.fromkeys(tensors, PLAIN),
        "gate_skip": {"GLB": "none", "PEB": "none", "MAC": "none"},
    }
    for key, change in changes.items():
        table[key] |= change
    path = folder / f"{name}.toml"
    toml_text.write(path, table)
    return path, table


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_dense_design_goes_out_and_comes_back(name, tmp_path):
    path, table = design(name, tmp_path)
    done = sparsemap("export", path, "--to", "timeloop", "--out", tmp_path / "timeloop")
    assert done.exit_code == 0, done.output
    assert not (tmp_path / "timeloop/sparse-opt.yaml").exists()
    found = evaluate(read_case(tmp_path / "timeloop"))
    promised = json.loads((tmp_path / "timeloop/expected.json").read_text())
    assert (found["cycles"], found["energy"]) == (promised["cycles"], pytest.approx(promised["energy_pj"], rel=1e-12))
    problem = read_problem(tmp_path / "timeloop/problem.yaml")
    assert problem["einsum"] == table["workload"]["einsum"]
    assert problem["dims"] == table["workload"]["dims"]
    assert {name: row["density"] for name, row in problem["density"].items()} == table["workload"]["density"]


@pytest.mark.parametrize(
    ("name", "changes", "count"),
    [
        ("mttkrp", {"formats": {"T": ["bitmask"] * 3}}, 3),
        ("mttkrp", {"gate_skip": {"PEB": "gate-both"}}, 3),
        ("scaled", {"gate_skip": {"MAC": "gate-both"}}, 4),
        ("row-sum", {"gate_skip": {"MAC": "gate-both"}}, 1),
    ],
)
def test_timeloop_takes_nothing_sparse_but_with_two_operands(name, changes, count, tmp_path):
    path, _ = design(name, tmp_path, **changes)
    done = sparsemap("export", path, "--to", "timeloop", "--out", tmp_path / "timeloop")
    assert done.exit_code != 0
    assert "Timeloop v3.0.3 takes sparse designs with two operands only" in done.output
    assert f"skips, and has {count}" in done.output


def test_a_problem_with_more_operands_than_there_are_roles_is_refused(tmp_path):
    spaces = [{"name": name, "projection": [[["I"]]]} for name in "ABCDE"]
    shape = {"dimensions": ["I"], "data-spaces": [*spaces, {"name": "Z", "projection": [[["I"]]], "read-write": True}]}
    path = tmp_path / "problem.yaml"
    path.write_text(json.dumps({"problem": {"shape": shape, "instance": {"I": 4}}}))
    done = sparsemap("import", path)
    assert done.exit_code != 0
    assert "5 read-only and 1 read-write tensors; SparseMap takes one to four operands and one output" in done.output
