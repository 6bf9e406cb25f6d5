"""Specs in YAML: the same keys as TOML, nested tables in place of dotted keys."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from sparsemap import load_problem, search
from sparsemap.cli.main import cli
from sparsemap.errors import SpecError
from sparsemap.spec import toml_io

WORKLOAD = """
kind: workload
name: mine
einsum: Z[m, n] = P[m, k] * Q[k, n]
dims: {m: 16, k: 32, n: 8}
density: {P: 0.5, Q: {type: n-of-m, n: 2, m: 4}}
"""
HARDWARE = """
kind: hardware
name: chip
extends: edge
clock: 500 MHz
levels:
  GLB: {capacity: 64 KB}
"""
STUDY = """
kind: study
name: st
workloads: [mine.yaml]
hardware: [chip.yml]
budget: 30
out: out
axes:
  hardware.clock: [500 MHz, 1 GHz]
"""


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("mine.yaml", WORKLOAD), ("chip.yml", HARDWARE), ("st.yaml", STUDY)):
        Path(name).write_text(text)


def test_a_search_of_yaml_files_is_that_of_the_tables():
    workload = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 16, "k": 32, "n": 8}, "name": "mine"}
    workload["density"] = {"P": 0.5, "Q": {"type": "n-of-m", "n": 2, "m": 4}}
    chip = {"extends": "edge", "name": "chip", "clock": "500 MHz", "levels": {"GLB": {"capacity": "64 KB"}}}
    found = [search(load_problem(*both), budget=60).best for both in (("mine.yaml", "chip.yml"), (workload, chip))]
    assert found[0].score == found[1].score


def test_commands_take_yaml():
    done = CliRunner().invoke(cli, ["check", "mine.yaml", "chip.yml", "st.yaml"])
    assert done.exit_code == 0 and done.output.count(": fine") == 3, done.output
    done = CliRunner().invoke(cli, ["run", "st.yaml", "-q"])
    assert done.exit_code == 0, done.output
    assert Path("out/table.csv").read_text().count("mine,chip") == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: workload\ndims: {m: 4", "is not YAML"),
        ("- 1", "expected a table"),
        ("kind: !!python/object:os.system x", "tag"),
        ("kind: workload\nname: x\neinsm: Z[m] = P[m]\ndims: {m: 4}", "einsm"),
    ],
)
def test_mistakes_name_the_file(text, message):
    Path("bad.yaml").write_text(text)
    with pytest.raises(SpecError) as refused:
        load_problem("bad.yaml", "edge")
    assert "bad.yaml" in str(refused.value) and message in str(refused.value)


def test_keys_keep_hyphens():
    Path("a.yaml").write_text("kind: space\npadding-more: {a-b: 1}\n")
    assert toml_io.read("a.yaml") == {"kind": "space", "padding-more": {"a-b": 1}}
