"""`sparsemap search`: what it prints where, what it writes, and how it ends."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparsemap.cli import output as cli_output
from sparsemap.cli.main import cli

SEARCH = ["search", "mm1", "edge-16gbps", "--budget", "500"]
TOO_SMALL = """
kind = "hardware"
name = "tiny"
extends = "edge"
levels = [
  { name = "DRAM", class = "dram", bandwidth = "16 GB/s" },
  { name = "GLB", class = "sram", capacity = "2 B", fanout = 16, gate_skip = true },
  { name = "PEB", class = "sram", capacity = "2 B", fanout = 4, gate_skip = true },
]
"""


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*args, code=0, **more):
    done = CliRunner().invoke(cli, [str(arg) for arg in args], **more)
    assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr, done.exception)
    return done


def test_search_ends_with_the_numbers_and_the_design():
    done = run(*SEARCH)
    for part in (
        "mm1 on edge-16gbps",
        "EDP ",
        "limited by ",
        "DRAM ──",
        "in [0, ",
        "formats, outer to inner",
        "total ",
    ):
        assert part in done.stdout
    assert done.stderr == ""


def test_search_writes_nothing_unasked(tmp_path):
    run(*SEARCH)
    assert list(tmp_path.iterdir()) == []


def test_out_gets_design_history_and_result(tmp_path):
    done = run(*SEARCH, "--out", "here/there")
    assert {path.name for path in Path("here/there").iterdir()} == {
        "command.txt", "design.toml", "history.csv", "timing.csv", "result.json",
    }  # fmt: skip
    assert done.stderr == "wrote design.toml, history.csv, timing.csv, result.json to here/there\n"


def test_json_is_the_result_and_nothing_else():
    table = json.loads(run(*SEARCH, "--json").stdout)
    keys = {
        "edp", "energy_pj", "cycles", "score", "evaluations", "budget", "seed", "valid_fraction", "rejects", "genome",
    }  # fmt: skip
    assert keys <= table.keys()
    assert (table["workload"], table["hardware"], table["evaluations"]) == ("mm1", "edge-16gbps", 500)


def test_quiet_is_one_line():
    done = run(*SEARCH, "--quiet")
    assert done.stdout.startswith("mm1 on edge-16gbps: EDP ") and done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_one_seed_gives_one_design():
    first, again, other = (json.loads(run(*SEARCH, "--json", "--seed", seed).stdout) for seed in (3, 3, 4))
    assert first["genome"] == again["genome"] != other["genome"]


def test_the_objective_may_be_an_expression():
    table = json.loads(run(*SEARCH, "--json", "--objective", "energy_pj * cycles**2").stdout)
    assert table["score"] == pytest.approx(table["energy_pj"] * table["cycles"] ** 2)
    assert table["objective"] == "energy_pj * cycles**2"
    assert "score " in run(*SEARCH, "--objective", "energy_pj").stdout


def test_workload_and_hardware_may_be_files():
    Path("layer.toml").write_text(
        'kind = "workload"\nname = "layer"\neinsum = "Z[m, n] = P[m, k] * Q[k, n]"\n'
        "dims = { m = 8, k = 8, n = 8 }\ndensity = { P = 0.5, Q = 0.5 }\n"
    )
    Path("small.toml").write_text('kind = "hardware"\nname = "small"\nextends = "edge-16gbps"\nclock = "2 GHz"\n')
    assert run("search", "layer.toml", "small.toml", "--budget", 300).stdout.startswith("layer on small\n")


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["mm11x", "edge"], "no workload 'mm11x'; did you mean 'mm11'?"),
        (["mm1", "egde"], "no hardware 'egde'; did you mean 'edge'?"),
        (["mm1", "edge", "--searcher", "sparsmap"], "no searcher 'sparsmap'; did you mean 'sparsemap'?"),
        (["mm1", "edge", "--space", "papper"], "no space 'papper'; did you mean 'paper'?"),
        (["mm1", "edge", "--objective", "edpp"], "no objective 'edpp'; did you mean 'edp'?"),
        (["mm1", "edge", "--objective", "cycels * 2"], "no cost 'cycels'; did you mean 'cycles'?"),
        (["nowhere.toml", "edge"], "nowhere.toml: no such file"),
        (["mm1", "edge", "--plugin-dir", "nowhere"], "nowhere: no such plugin folder"),
    ],
)
def test_mistakes_are_told_in_one_line_without_traceback(args, text):
    done = run("search", *args, code=2)
    assert text in done.stderr and "Traceback" not in done.stderr and done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize("args", [["mm1"], ["mm1", "edge", "--budget", "0"], ["mm1", "edge", "--bugdet", "5"]])
def test_wrong_usage(args):
    assert "Usage: " in run("search", *args, code=2).stderr


def test_without_any_valid_design_it_says_what_is_missing():
    Path("tiny.toml").write_text(TOO_SMALL)
    done = run("search", "mm1", "tiny.toml", "--budget", 300, "--out", "out", code=1)
    assert done.stdout == ""
    assert "mm1 on tiny: none of 300 designs is valid" in done.stderr
    assert "needs " in done.stderr and "has 2 B" in done.stderr
    assert "capacity:GLB" in done.stderr and "%" in done.stderr
    assert json.loads(Path("out/result.json").read_text())["edp"] is None


def test_json_without_any_valid_design_is_still_json():
    Path("tiny.toml").write_text(TOO_SMALL)
    table = json.loads(run("search", "mm1", "tiny.toml", "--budget", 300, "--json", code=1).stdout)
    assert table["edp"] is None and table["shortfalls"]


def interrupted_after(count, monkeypatch):
    """Ctrl-C when so many batches have been evaluated."""
    from sparsemap.problem.evaluator import Evaluator

    evaluate, calls = Evaluator.evaluate_checked, []

    def counted(self, genomes, *more):
        calls.append(len(genomes))
        if len(calls) > count:
            raise KeyboardInterrupt
        return evaluate(self, genomes, *more)

    monkeypatch.setattr(Evaluator, "evaluate_checked", counted)


def test_ctrl_c_keeps_the_best_design_and_its_files(monkeypatch):
    interrupted_after(2, monkeypatch)
    args = ("search", "mm1", "cloud", "--budget", 9000, "--searcher", "random", "--out", "out")
    done = run(*args, code=130)
    assert "interrupted after 2,048 of 9,000 designs" in done.stderr
    assert "EDP " in done.stdout
    assert json.loads(Path("out/result.json").read_text())["interrupted"] is True
    assert Path("out/design.toml").exists()


def test_ctrl_c_before_the_search_ends_quietly(monkeypatch):
    def interrupt(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr("sparsemap.pieces.loading.load", interrupt)
    done = run(*SEARCH, code=130)
    assert done.stderr == "interrupted\n"


def test_files_of_a_search_whose_plugin_fails_are_kept(tmp_path):
    plugin = tmp_path / "plugins" / "broken"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text(
        "import attrs\nfrom sparsemap import Searcher, hookimpl\n"
        "@attrs.frozen(kw_only=True)\nclass Broken(Searcher):\n    type_name = 'broken'\n"
        "    def search(self, space, budget, rng):\n        yield space.sample(400, rng)\n        1 / 0\n"
        "@hookimpl\ndef register_searchers():\n    return [Broken]\n"
    )
    args = ("search", "mm1", "cloud", "--searcher", "broken", "--plugin-dir", "plugins", "--out", "out")
    done = run(*args, code=2)
    assert "searcher 'broken'" in done.stderr and "ZeroDivisionError" in done.stderr
    assert json.loads(Path("out/result.json").read_text())["evaluations"] == 400


# ------------------------------------------------------------------------------------------------------ how it looks


@pytest.mark.parametrize("columns", [80, 120])
def test_the_report_fits_the_terminal(columns):
    lines = run("search", "conv2", "cloud", "--budget", 1500, env={"COLUMNS": str(columns)}).stdout.splitlines()
    assert max(map(len, lines)) == min(columns, 100)


def test_colours_only_where_somebody_sees_them():
    assert "\x1b" not in run(*SEARCH).stdout
    coloured = run(*SEARCH, env={"FORCE_COLOR": "1", "TERM": "xterm-256color"}).stdout
    assert "\x1b[" in coloured
    assert "\x1b" not in run(*SEARCH, env={"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "dumb"}).stdout


def test_streams_without_box_drawing_get_plain_lines(capsysbinary, monkeypatch):
    import io
    import sys

    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    cli_output.show("GLB ── 1 KB ──\n")
    sys.stdout.flush()
    assert raw.getvalue() == b"GLB -- 1 KB --\n"


def test_progress_is_shown_to_a_terminal_and_not_to_a_buffer(monkeypatch):
    import io
    import sys

    from sparsemap.searching.driver import Snapshot

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with cli_output.search_progress(1000, quiet=False) as hear:
        assert hear is None
    monkeypatch.setattr(sys, "stderr", Terminal())
    with cli_output.search_progress(1000, quiet=True) as hear:
        assert hear is None
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    with cli_output.search_progress(1000, quiet=False) as hear:
        hear(Snapshot(100, 1000, float("inf"), 0.0, 1.0))
        hear(Snapshot(500, 1000, 1.25e9, 0.25, 2.0))
    text = sys.stderr.getvalue()
    assert "500/1000" in text and "best 1.250e+09" in text and "25 % valid" in text
