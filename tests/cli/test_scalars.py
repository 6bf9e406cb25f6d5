"""Tensors without indices, such as the single value of a dot product, go through every verb on every hardware."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparsemap.cli.main import cli

CASES = [
    ("Z[] = P[a] * Q[a]", "cloud"), ("Z[] = P[a] * Q[a]", "clustered"), ("Z[a] = P[] * Q[a]", "edge"),
    ("Z[a] = P[a] * Q[]", "mobile"),
]  # fmt: skip


def run(*args):
    done = CliRunner().invoke(cli, [str(arg) for arg in args])
    assert done.exit_code == 0, (done.stdout, done.stderr, done.exception)
    return done.stdout


@pytest.mark.parametrize(("einsum", "hardware"), CASES)
def test_a_tensor_without_indices_is_searched_resumed_evaluated_executed_and_exported(
    einsum, hardware, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    spec = (
        f'kind = "workload"\nname = "w"\neinsum = "{einsum}"\ndims = {{ a = 96 }}\ndensity = {{ P = 0.5, Q = 0.5 }}\n'
    )
    Path("w.toml").write_text(spec)
    search = ["search", "w.toml", hardware, "--budget", 100, "-q", "--out", "out"]
    run(*search)
    first = Path("out/result.json").read_text()
    result = json.loads(first)
    assert result["gap"] >= 1.0
    for name in ("result.json", "design.toml"):
        Path("out", name).unlink()
    run(*search)
    assert json.loads(Path("out/result.json").read_text())["genome"] == result["genome"]
    assert json.loads(run("show", "out/design.toml", "--json"))["edp"] == result["edp"]
    assert "total" in run("show", "breakdown", "out/design.toml")
    assert "w on " in run("verify", "out/design.toml", "--trials", 2)
    run("export", "out/design.toml", "--to", "timeloop", "-o", "exported")
    assert json.loads(Path("exported/expected.json").read_text())["cycles"] > 0
