"""The referee without its peers: the page follows from the figures, and figures of ours from the model of today."""

import csv
import sys
from pathlib import Path

import attrs
import pytest

from sparsemap.pieces.loading import load

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
FAKE = """
import json, pathlib, sys
what, folder = sys.argv[1:]
if what == "search":
    (pathlib.Path(folder) / "searched").touch()
print(json.dumps({"energy_pj": 2e9, "cycles": 5e4, "counts": {}, "bits": {}}))
"""


@pytest.fixture(scope="module", autouse=True)
def modules():
    """The folders of the command on the path, as when it runs."""
    added = [str(ROOT / "benchmarks" / "peers"), str(ROOT / "benchmarks")]
    sys.path[:0] = added
    yield
    for path in added:
        sys.path.remove(path)


@pytest.fixture(scope="module")
def rows():
    from rendering import read_rows

    return read_rows(RESULTS / "peers.csv")


def test_the_page_is_that_of_the_figures(rows, tmp_path):
    from rendering import render

    render(rows, tmp_path / "peers.md")
    assert (tmp_path / "peers.md").read_text("utf-8") == (RESULTS / "peers.md").read_text("utf-8")


def test_every_count_of_a_peer_is_equal_or_has_a_reason(rows):
    counts = [row for row in rows if row["part"] == "count"]
    reasons = [row["reason"] for row in counts if "/" in row["quantity"] and row["tool"] != "SparseMap"]
    assert reasons and all(reasons) and "none" not in reasons
    designs = {(row["origin"], row["problem"]) for row in counts if not row["error"]}
    for origin in ("SparseMap", "accelforge", "ZigZag"):
        assert sum(own == origin for own, _ in designs) >= 3, origin


def test_searches_cover_kinds_and_chips(rows):
    searched = [row for row in rows if row["part"] == "search" and row["setting"] == "default"]
    assert len({row["problem"] for row in searched}) >= 12 and len({row["chip"] for row in searched}) == 2
    assert {row["kind"] for row in searched} == {"square", "skinny", "odd", "convolution"}
    assert {row["tool"] for row in rows if row["part"] == "fused"} >= {"SparseMap", "accelforge", "ZigZag"}


def test_figures_of_committed_cases_are_those_of_the_model(rows):
    from replays import CASES, COMMITTED, cases, of_nest, ours, reference_case, timeloop_figures

    registry = load()
    for case in cases(CASES, COMMITTED):
        found = ours(of_nest(*reference_case(case), registry))
        timeloop = timeloop_figures(case)
        assert (found.energy_pj, found.cycles) == pytest.approx((timeloop.energy_pj, timeloop.cycles))
        assert found.counts == pytest.approx(timeloop.counts)
        given = {row["quantity"]: float(row["value"]) for row in rows
                 if row["part"] == "count" and row["tool"] == "SparseMap" and row["problem"] == case["id"]}  # fmt: skip
        assert {**found.counts, "energy_pj": found.energy_pj, "cycles": found.cycles} == pytest.approx(given)


def test_reasons_are_figures():
    from explain import Facts, reason_for

    facts = Facts({"PE": 500.0}, {"PE": 200.0}, {"P": 4, "Q": 1, "Z": 1}, frozenset({"Q"}), "Z")

    def why(tool, key, ours, theirs, *losses):
        return reason_for(tool, key, ours, theirs, facts, losses)

    assert why("accelforge", "PE/Z/read", 300.0, 500.0) == "drain"
    assert why("ZigZag", "PE/Z/read", 300.0, 700.0) == "first"
    assert why("ZigZag", "PE/P/read", 400.0, 100.0) == "pins"
    assert why("ZigZag", "PE/P/write", 10_000.0, 9_984.0) == "port"
    assert why("ZigZag", "PE/Q/read", 10.0, 40.0) == "windows" and why("ZigZag", "PE/Q/read", 40.0, 10.0) == "shared"
    assert why("accelforge", "PE/P/read", 10.0, 40.0, "Z in PE goes back in every step of k") == "place"
    assert why("accelforge", "PE/P/read", 10.0, 40.0, "P stays in PE where accelforge fetches again") == "again"
    assert why("accelforge", "PE/P/read", 400.0, 100.0) == "none"


def test_rows_of_a_missing_peer_read_not_installed(tmp_path):
    from rendering import read_rows, render, write_rows

    write_rows(tmp_path / "peers.csv", [{"part": "tool", "tool": "ZigZag", "error": "needs Python 3.12; found 3.11"}])
    render(read_rows(tmp_path / "peers.csv"), tmp_path / "peers.md")
    page = (tmp_path / "peers.md").read_text("utf-8")
    assert "not installed: needs Python 3.12; found 3.11" in page and page.count("not installed") >= 3


def test_a_peer_that_lacks_its_python_or_program_is_not_installed(tmp_path):
    from harness import PEERS, installed

    old = attrs.evolve(PEERS[0], python=(99, 0))
    assert installed(old, tmp_path, sys.executable).startswith("needs Python 99.0; found 3.")
    (tmp_path / old.package / "bin").mkdir(parents=True)
    (tmp_path / old.package / "bin" / "python").symlink_to(sys.executable)
    assert installed(attrs.evolve(old, commands=("no-such-program",)), tmp_path, sys.executable) == (
        "needs the program no-such-program")  # fmt: skip


def test_a_cell_measures_every_tool_and_replays_its_designs(tmp_path, monkeypatch):
    import searches
    from harness import Environment, Peer

    script = tmp_path / "fake.py"
    script.write_text(FAKE)
    peer = Environment(Peer("accelforge", "accelforge", str(script)), Path(sys.executable), "1")
    monkeypatch.setitem(searches.OWN, "default", ("--cost-model", "timeloop", "--budget", "60"))
    settings = {"SparseMap": ["default"], "accelforge": ["default"]}
    mine, theirs = searches.cell("square-256", "wide", settings, [peer], tmp_path / "work", load())
    assert (mine["error"], mine["edp accelforge"]) == ("", 1e14) and mine["edp SparseMap"] > 1e12
    assert mine["seconds"] > 0.3 and mine["lines"] > 20
    assert theirs["edp accelforge"] == 1e14 and theirs["edp SparseMap"] is None  # the script wrote no mapping
    assert (tmp_path / "work" / "wide" / "square-256" / "accelforge-default" / "searched").exists()


def test_a_process_that_fails_tells_its_last_line(tmp_path):
    from harness import run

    done = run([sys.executable, "-c", "raise ValueError('no loops')"], tmp_path)
    assert done.error == "ValueError: no loops" and done.figures is None
    done = run([sys.executable, "-c", "while True: pass"], tmp_path, 1.0)
    assert done.error == "stopped: a process used 1 s"


def test_the_table_of_figures_has_a_column_per_value(rows):
    from rendering import COLUMNS

    with (RESULTS / "peers.csv").open(encoding="utf-8") as file:
        assert tuple(next(csv.reader(file))) == COLUMNS
