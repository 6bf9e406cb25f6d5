"""Finished work stays where another search, network or study is written to its folder."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sparsemap import Search, SearchError, load_problem, search, search_network
from sparsemap.cli.main import cli
from sparsemap.searching.written import read_result
from sparsemap.spec import toml_text

LAYERS = [{"name": name, "type": "linear", "k": k, "n": n} for name, k, n in (("a", 16, 12), ("b", 12, 20))]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    toml_text.write("net.toml", {"kind": "network", "name": "net", "input": [16], "layers": LAYERS})
    for name, clock in (("slow", "1 GHz"), ("quick", "2 GHz")):
        toml_text.write(f"{name}.toml", {"kind": "hardware", "name": name, "extends": "mobile", "clock": clock})


def command(*words, code=0):
    done = CliRunner().invoke(cli, list(map(str, words)))
    assert done.exit_code == code, (done.exit_code, done.output, done.exception)
    return done.stderr


def files(folder):
    return {str(path): path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}


@pytest.mark.parametrize("fuse", [[], ["--fuse"]])
def test_a_network_is_not_written_over_that_of_other_hardware_or_of_a_larger_budget(fuse):
    def run(hardware, budget, *more, code=0):
        words = ("--hardware", f"{hardware}.toml", "--space", "paper", "--budget", budget, *fuse, "--out", "F", *more)
        return command("run", "net.toml", *words, code=code)

    run("slow", 60)
    before = files("F")
    assert "F/a/result.json is of another search, a on slow; hardware.clock is" in run("quick", 60, code=2)
    assert "Choose another folder, or overwrite it (--overwrite" in run("slow", 40, code=2)
    assert files("F") == before
    run("slow", 60)
    assert files("F") == before
    run("slow", 80)
    assert json.loads(Path("F/network.json").read_text())["budget"] == 80
    run("quick", 40, "--overwrite")
    assert read_result("F/a")["hardware"] == "quick"


@pytest.mark.parametrize("fuse", [[], ["--fuse"]])
def test_a_network_is_not_written_over_another_one(fuse):
    words = ("--hardware", "slow.toml", "--space", "paper", "--budget", 60, *fuse, "--out", "F")
    command("run", "net.toml", *words)
    before = files("F")
    other = {"kind": "network", "name": "other", "input": [16], "layers": [{**LAYERS[0], "name": "c"}]}
    toml_text.write("other.toml", other)
    told = command("run", "other.toml", *words, code=2)
    assert "F/network.json is of another search, net on slow; layers is" in told and 'network is "net"' in told
    toml_text.write("other.toml", other | {"name": "net"})
    assert "; layers is" in command("run", "other.toml", *words, code=2)
    found = search_network("other.toml", "slow.toml", budget=60, space="paper")
    with pytest.raises(SearchError, match=r"F/network\.json is of another search"):
        found.write("F")
    assert files("F") == before
    command("run", "other.toml", *words, "--overwrite")
    assert [row["layer"] for row in json.loads(Path("F/network.json").read_text())["layers"]] == ["c"]


def test_the_searches_of_a_paper_stay_too():
    words = ("paper", "fig-10", "--scale", 0.01, "--seeds", 1, "--work", "work", "--out", "pages")
    command(*words)
    (place, *_) = sorted(Path("work").glob("*/*/result.json"))
    before = place.read_text()
    table = json.loads(before)
    table["identity"]["seed"] = 99
    place.write_text(json.dumps(table))
    assert "seed is 99 there" in command(*words, code=2)
    command(*words, "--overwrite")
    assert json.loads(place.read_text())["identity"] == json.loads(before)["identity"]


def test_what_a_network_starts_from_counts_where_it_is_known():
    words = ("run", "net.toml", "--space", "paper", "--budget", 60, "--hardware")
    for name in ("one", "two"):
        command(*words, "slow.toml", "--out", name)
    command(*words, "quick.toml", "--out", "F", "--start", "one")
    assert "start is" in command(*words, "quick.toml", "--out", "F", code=2)


def test_a_result_is_not_written_over_another_one():
    first, second = (search(load_problem(name, "mobile"), 60) for name in ("mm1", "mm2"))
    first.write("best")
    before = files("best")
    with pytest.raises(SearchError, match="is of another search, mm1 on mobile; "):
        second.write("best")
    assert "is of another search" in command("search", "mm2", "mobile", "--budget", 60, "--out", "best", code=2)
    assert files("best") == before
    first.write("best")
    search(load_problem("mm1", "mobile"), 80).write("best")
    second.write("best", overwrite=True)
    assert read_result("best")["workload"] == "mm2"


def test_an_interrupted_result_is_not_written_over_by_that_of_another_search():
    def stop(snapshot):
        raise KeyboardInterrupt

    first, other = (load_problem(name, "mobile") for name in ("mm1", "mm2"))
    stopped = search(first, 5000, progress=stop)
    part = stopped.evaluations
    stopped.write("best")
    before = files("best")
    for result in (search(first, part), search(first, 5000, 1, progress=stop), search(other, 60)):
        with pytest.raises(SearchError, match="is of another search, mm1 on mobile; "):
            result.write("best")
    assert "is of another search" in command("search", "mm2", "mobile", "--budget", 60, "--out", "best", code=2)
    assert files("best") == before
    stopped.write("best")
    search(other, 60).write("best", overwrite=True)
    stopped.write("best")
    assert (read_result("best")["workload"], read_result("best/partial")["workload"]) == ("mm2", "mm1")
    with pytest.raises(SearchError, match=r"partial/result\.json is of another search"):
        search(other, 60).write("best")
    with pytest.raises(SearchError, match=r"partial/result\.json is of another search"):
        search(other, 5000, progress=stop).write("best")


def test_designs_that_a_program_proposed_are_no_search_of_the_searcher():
    problem = load_problem("mm1", "mobile")
    run = Search(problem, budget=20)
    run.evaluate(problem.space.sample(20, np.random.default_rng(0)))
    run.result().write("own")
    assert "own is" in command("search", "mm1", "mobile", "--budget", 20, "--out", "own", code=2)


# ------------------------------------------------------------------------------------------- what a run without a design says


def test_a_network_without_designs_says_why_and_each_reason_once():
    levels = [{"name": "DRAM", "class": "dram"}, {"name": "PE", "class": "regfile", "capacity": "4 B"}]
    toml_text.write("tiny.toml", {"kind": "hardware", "name": "tiny", "levels": levels})
    told = command("run", "net.toml", "--hardware", "tiny.toml", "--budget", 30, code=2).splitlines()
    assert told == [
        "nothing was kept; --out DIR keeps designs and tables",
        "a, b: no valid design was found: PE: needs 6 B, has 4 B",
        "2 of 2 searches ended without a design: a, b",
    ]
    told = command("run", "net.toml", "--hardware", "tiny.toml,slow.toml", "--budget", 30, "--out", "both")
    assert told.startswith("net on tiny with sparsemap, seed 0: no valid design was found: PE: needs 6 B")


def test_a_wrong_chip_is_told_once_and_options_of_plans_need_one():
    levels = [{"name": "DRAM", "class": "dram", "bandwidth": "12 Gb/s"}, {"name": "PE", "class": "regfile"}]
    toml_text.write("wrong.toml", {"kind": "hardware", "name": "wrong", "levels": levels})
    (told,) = command("run", "net.toml", "--hardware", "wrong.toml", code=2).splitlines()
    assert told.endswith("unknown unit 'Gb'; did you mean 'Gbit', or 'GB', eight times as much?")
    told = command("run", "net.toml", "--hardware", "slow.toml", "--no-fuse", "--formats", "free", code=2)
    assert "which --no-fuse (fuse=False) excludes" in told
