"""`--json` of every verb: standard output is one JSON value, with the data of the verb."""

import json
from pathlib import Path

import click
import forking
import pytest
from click.testing import CliRunner

from sparsemap.cli.main import cli

pytestmark = pytest.mark.usefixtures("blank_charts")

NETWORK = 'kind = "network"\nname = "one"\nlayers = [{ name = "a", type = "linear", k = 8, n = 8 }]\n'
LITTLE = 'kind = "workload"\nname = "little"\ntype = "matmul"\nm = 4\nk = 8\nn = 4\ndensity = { P = 0.5, Q = 0.5 }\n'
STUDY = 'kind = "study"\nname = "s"\nworkloads = ["mm1"]\nhardware = ["edge"]\nsearchers = ["random", "sparsemap"]\nbudget = 20\n'
PROBLEM = """problem:
  shape:
    name: p
    dimensions: [M, K]
    data-spaces:
      - {name: A, projection: [[[M]], [[K]]]}
      - {name: B, projection: [[[K]]]}
      - {name: Z, projection: [[[M]]], read-write: true}
  instance: {M: 4, K: 4}
"""
SPACE = 'kind = "hardware"\nname = "tiny"\nextends = "small"\nlevels.Buffer.capacity = { choices = ["64 words", "128 words"] }\n'
VERBS = {
    "search mm1 edge-16gbps --budget 60 --out other --report": "edp",
    "run study.toml --out study": 0,
    "run one.toml --hardware mobile --budget 20 --out network --report": "layers",
    "design one.toml tiny.toml --no-fuse --out chip --budget 1 --layer-budget 10": "edp_js",
    "explain a": "free",
    "report a": "files",
    "compare a b": "changes",
    "compare study.toml --out study": "means",
    "plot a --kind energy -o energy.svg": "files",
    "verify few --trials 2": "rows",
    "show a": "valid",
    "show loop-nest a": "mapping",
    "show space --workload mm1 --hardware edge": "mapping_levels",
    "export a/design.toml --to timeloop -o timeloop": "files",
    "list": "workload",
    "list format bitmask": "fields",
    "check study.toml": "study.toml",
    "import problem.yaml": "name",
    "silicon edge": 0,
    "plugins": 0,
    "new-plugin mine --kind format": "files",
    "extra schema format": "properties",
    "extra sweep a --tensor P --densities 1,0.5": "designs",
}
"""By command a key of the answer, or the index of a row."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("json")
    files = {
        "one.toml": NETWORK,
        "little.toml": LITTLE,
        "study.toml": STUDY,
        "problem.yaml": PROBLEM,
        "tiny.toml": SPACE,
    }
    for name, text in files.items():
        (place / name).write_text(text)
    for name, workload in (("a", "mm1"), ("b", "mm1"), ("few", "little.toml")):
        args = "search", workload, "edge", "--budget", "60", "-q", "--out", str(place / name)
        done = CliRunner().invoke(cli, [str(place / arg) if arg.endswith(".toml") else arg for arg in args])
        assert done.exit_code == 0, done.output
    return place


@pytest.mark.parametrize("command", VERBS)
def test_a_verb_answers_in_json_and_nothing_else(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(cli, [*command.split(), "--json"])
    assert done.exit_code == 0, (done.stderr, done.exception)
    found = json.loads(done.stdout, parse_constant=pytest.fail)
    assert found[VERBS[command]] is not None


def test_init_answers_with_its_files(tmp_path):
    assert len(json.loads(forking.run(["-m", "sparsemap", "init", str(tmp_path), "--json"]).stdout)["files"]) == 3


def test_every_verb_has_the_option():
    with click.Context(cli) as ctx:
        for verb in cli.every(ctx):
            assert isinstance(verb, click.Group) or any("--json" in option.opts for option in verb.params), verb.name


def test_a_verb_of_text_answers_with_its_lines_and_an_error_with_nothing(monkeypatch):
    monkeypatch.setitem(cli.commands, "hello", hello := click.Command("hello", callback=lambda: click.echo("a\nb")))
    cli.add_command(hello)
    assert json.loads(CliRunner().invoke(cli, ["hello", "--json"]).stdout) == {"output": ["a", "b"]}
    done = CliRunner().invoke(cli, ["explain", "nowhere", "--json"])
    assert (done.exit_code, done.stdout) == (2, "") and "nowhere" in done.stderr
    assert not Path("nowhere").exists()
