"""Full disks, folders that cannot be written, plugins that raise: a clear error, and what was found is kept."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import forking
import pytest
from click.testing import CliRunner
from crashes import outcome, search_quietly
from toy_problem import toy_problem

from sparsemap import PluginError, Searcher, SearchError, load_problem, search
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.searching import journal
from sparsemap.searching.driver import Search
from sparsemap.searching.folder import search_into, unfinished
from sparsemap.searching.journal import JOURNAL_FILE, Journal
from sparsemap.searching.run import SearchStopped
from sparsemap.searching.start import given_designs
from sparsemap.spec import toml_text


@pytest.fixture(scope="module")
def registry():
    return load()


TIMELOOP_PROBLEM = """
problem:
  shape:
    dimensions: [M, K]
    data-spaces:
    - {name: A, projection: [[[M]], [[K]]]}
    - {name: B, projection: [[[K]]]}
    - {name: Z, projection: [[[M]]], read-write: true}
  instance: {M: 4, K: 8}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*args, code=0):
    done = CliRunner().invoke(cli, [*map(str, args)])
    assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr, done.exception)
    return done


# ---------------------------------------------------------------------------------------------------------- full disks


def full(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device", "somewhere")


def fails_after(function, calls, error=full):
    """The function, which fails from some call on."""
    count = [0]

    def call(*args, **kwargs):
        count[0] += 1
        return (error if count[0] > calls else function)(*args, **kwargs)

    return call


def test_a_disk_that_fills_up_in_the_middle_stops_the_search_and_keeps_all_until_then(tmp_path, monkeypatch):
    search_quietly(tmp_path / "whole", toy_problem(), 1500)
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "_write", fails_after(Journal._write, 4))
        with pytest.raises(SearchStopped) as caught:
            search_quietly(tmp_path / "torn", toy_problem(), 1500)
    text = str(caught.value)
    assert JOURNAL_FILE in text and "No space left on device; the search stopped after" in text
    assert caught.value.result.best is not None
    assert json.loads((tmp_path / "torn/result.json").read_text())["interrupted"] is True
    search_quietly(tmp_path / "torn", toy_problem(), 1500)
    assert outcome(tmp_path / "torn") == outcome(tmp_path / "whole")


def test_half_a_record_on_a_full_disk_is_taken_back(tmp_path, monkeypatch):
    def half(self, data):
        self._file.write(data[: len(data) // 2])
        full()

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "_write", fails_after(Journal._write, 3, half))
        with pytest.raises(SearchStopped):
            search_quietly(tmp_path / "torn", toy_problem(), 1500)
    search_quietly(tmp_path / "whole", toy_problem(), 1500)
    search_quietly(tmp_path / "torn", toy_problem(), 1500)
    assert outcome(tmp_path / "torn") == outcome(tmp_path / "whole")


@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_result_that_cannot_be_written_is_not_lost(function, registry, tmp_path, monkeypatch):
    problem = load_problem("mm1", "cloud", registry=registry)
    with monkeypatch.context() as patched:
        patched.setattr(os, function, full)
        with pytest.raises(SearchStopped, match="No space left on device") as caught:
            search_quietly(tmp_path, problem, 600)
    assert caught.value.result.best is not None
    assert not list(tmp_path.glob(".*.tmp"))
    assert unfinished(tmp_path)
    evaluated = []
    monkeypatch.setattr(Search, "evaluate", lambda self: evaluated.append(1))
    monkeypatch.setattr(journal, "CHECKED", 0)
    assert search_quietly(tmp_path, problem, 600).evaluations == 600
    assert not evaluated
    assert not unfinished(tmp_path)


def test_the_command_tells_of_the_full_disk_and_of_the_best_design(registry, monkeypatch):
    monkeypatch.setattr(os, "replace", full)
    done = command("search", "mm1", "cloud", "--budget", 600, "--out", "out", code=2)
    assert "best so far, mm1 on cloud: EDP" in done.stderr
    assert "No space left on device; the search is over and its journal is kept" in done.stderr


def test_a_full_disk_under_a_study_fails_its_cells_and_keeps_those_that_are_finished(monkeypatch):
    toml_text.write("study.toml", {"kind": "study", "name": "s", "workloads": ["mm1", "small-sparse"], "hardware": ["cloud"],
                                 "searchers": ["random"], "budget": 300})  # fmt: skip
    command("run", "study.toml", "--out", "out")
    Path("out/small-sparse--cloud--random--seed0/result.json").unlink()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        done = command("run", "study.toml", "--out", "out", code=2)
    assert "No space left on device" in done.stderr
    done = command("run", "study.toml", "--out", "out")
    assert "2 cells, 1 kept from earlier" in done.stderr


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="mounts a small file system, as root")
def test_a_disk_that_is_really_full(tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(place)], capture_output=True).returncode:
        pytest.skip("this machine does not let tests mount")
    try:
        words = ["search", "mm1", "cloud", "--searcher", "random", "--budget", "6000", "--quiet", "--out"]
        args = ["-m", "sparsemap", *words]
        done = forking.run([*args, place / "out"])
        assert done.returncode == 2
        assert "No space left on device; the search stopped after" in done.stderr and "best so far" in done.stderr
        assert "Traceback" not in done.stderr
        subprocess.run(["mount", "-o", "remount,size=8m", str(place)], check=True)
        again, whole = (forking.run([*args, folder]) for folder in (place / "out", tmp_path / "whole"))
        assert again.stdout == whole.stdout
        assert outcome(place / "out") == outcome(tmp_path / "whole")
    finally:
        subprocess.run(["umount", str(place)], check=True)


# --------------------------------------------------------------------------------------- folders that cannot be written


def unwritable(tmp_path):
    """A folder in which nobody can make anything, not even root: it is a file."""
    (tmp_path / "taken").write_text("a file")
    return tmp_path / "taken" / "out"


def test_a_folder_that_cannot_be_made_is_told_before_the_search(tmp_path, monkeypatch):
    monkeypatch.setattr(Search, "evaluate", lambda self: pytest.fail("the search has begun"))
    with pytest.raises(SearchError, match="taken"):
        search_quietly(unwritable(tmp_path), toy_problem(), 600)


def test_the_command_says_which_folder(tmp_path):
    for verb in (("search", "mm1", "cloud", "--budget", 300), ("run", "study.toml")):
        toml_text.write("study.toml", {"kind": "study", "name": "s", "workloads": ["mm1"], "hardware": ["cloud"]})
        done = command(*verb, "--out", unwritable(tmp_path), code=2)
        assert "taken" in done.stderr and "Not a directory" in done.stderr


def test_other_verbs_say_which_file_they_cannot_write(tmp_path):
    problem = "problem.yaml"
    Path(problem).write_text(TIMELOOP_PROBLEM)
    done = command("import", problem, "-o", unwritable(tmp_path) / "x.toml", code=2)
    assert done.stderr == f"{Path('taken', 'out')}: Not a directory\n"
    search(load_problem("mm1", "cloud"), 300).write("found")
    done = command("export", Path("found", "design.toml"), "--to", "csv", "-o", unwritable(tmp_path), code=2)
    assert done.stderr == f"{Path('taken', 'out')}: Not a directory\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
@pytest.mark.parametrize("args", [("list", "workload"), ("--help",), ("--version",)])
def test_an_output_that_takes_no_more_is_told_in_one_line(args):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "sparsemap", *args], stdout=full, stderr=subprocess.PIPE, text=True, env=environment
        )
    assert (done.returncode, done.stderr) == (2, "standard output: No space left on device\n")


def test_a_figure_that_cannot_be_written_leaves_the_results(monkeypatch):
    figure = pytest.importorskip("matplotlib.figure")

    def write_to_a_full_disk(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")  # as the system tells it: without the name

    monkeypatch.setattr(figure.Figure, "savefig", write_to_a_full_disk)
    args = ("search", "mm1", "cloud", "--budget", 500, "--objective", "pareto:energy,delay", "--out", "out", "--quiet")
    done = command(*args)
    assert done.stderr == f"{Path('out', 'front.png')}: No space left on device; the result was written\n"
    assert Path("out", "result.json").exists()
    assert not Path("out", "front.png").exists()


def test_a_study_whose_folder_has_no_possible_name():
    toml_text.write(
        "study.toml", {"kind": "study", "name": "s", "workloads": ["mm1"], "hardware": ["cloud"], "out": "x" * 300}
    )
    done = command("run", "study.toml", code=2)
    assert done.stderr.endswith("xxx': File name too long; give another folder with --out\n")
    assert len(done.stderr) < 150


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    done = command("search", "mm1", "cloud", "--budget", 300, "--out", tmp_path / "locked" / "out", code=2)
    assert "Permission denied" in done.stderr


# --------------------------------------------------------------------------------------------------- plugins that raise


class Failing(Searcher):
    """Searches at random, and raises in the third batch as long as it is told to."""

    type_name = "failing"
    fails = True

    def search(self, space, budget, rng):
        for batch in range(1000):
            if batch == 2 and type(self).fails:
                raise ZeroDivisionError("oops")
            yield space.sample(100, rng)


def test_a_searcher_that_raises_leaves_its_best_design_and_a_journal(registry, tmp_path, monkeypatch):
    problem = load_problem("mm1", "cloud", registry=registry)
    with pytest.raises(PluginError, match=r"searcher 'failing'.*ZeroDivisionError: oops"):
        search_quietly(tmp_path, problem, 600, Failing(name="failing"))
    table = json.loads((tmp_path / "result.json").read_text())
    assert (table["interrupted"], table["evaluations"]) == (True, 200)
    assert unfinished(tmp_path)
    monkeypatch.setattr(Failing, "fails", False)
    assert search_into(tmp_path, problem, 600, 7, Failing(name="failing")).evaluations == 600


def test_an_observer_that_raises_does_not_cost_what_was_found(tmp_path):
    def broken(snapshot):
        if snapshot.evaluations > 300:
            raise RuntimeError("no screen")

    with pytest.raises(RuntimeError, match="no screen"):
        search_quietly(tmp_path, toy_problem(), 600, progress=broken)
    search_quietly(tmp_path / "whole", toy_problem(), 600)
    search_quietly(tmp_path, toy_problem(), 600)
    assert outcome(tmp_path) == outcome(tmp_path / "whole")


# ----------------------------------------------------------------------------------------- complete and partial results


def interrupted_at(count):
    def interrupt(snapshot):
        if snapshot.evaluations >= count:
            raise KeyboardInterrupt

    return interrupt


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def test_an_interrupted_search_leaves_a_complete_result_and_writes_its_own_beside_it():
    search_quietly("out", toy_problem(), 600)
    before = files_of("out")
    search_quietly("out", toy_problem(), 900, progress=interrupted_at(300))
    after = files_of("out")
    assert {name: after[name] for name in before} == before
    assert json.loads(Path("out/partial/result.json").read_text())["interrupted"] is True
    search_quietly("out", toy_problem(), 900)
    assert json.loads(Path("out/result.json").read_text())["evaluations"] == 900
    assert not Path("out/partial").exists()
    assert sorted(files_of("out")) == sorted(before)


def test_a_search_that_fails_leaves_a_complete_result_and_writes_its_own_beside_it():
    class Failing(Searcher):
        type_name = "failing"

        def search(self, space, budget, rng):
            yield space.sample(50, rng)
            raise ValueError("no idea")

    search_quietly("out", toy_problem(), 500)
    before = files_of("out")
    with pytest.raises(PluginError, match="no idea"):
        search_quietly("out", toy_problem(), 500, Failing(), overwrite=True)
    assert {name: text for name, text in files_of("out").items() if name in before} == before
    assert json.loads(Path("out/partial/result.json").read_text())["evaluations"] == 50


def test_the_command_names_the_folder_of_a_partial_result(monkeypatch):
    command("search", "mm1", "cloud", "--budget", 300, "--searcher", "random", "--out", "out")
    evaluate = Search.evaluate
    monkeypatch.setattr(Search, "evaluate", fails_after(evaluate, 1, error=interrupt))
    words = ("search", "small-sparse", "cloud", "--budget", 9000, "--searcher", "random", "--out", "out", "--overwrite")
    done = command(*words, code=130)
    assert "what it found is in out/partial, and the complete result in out stays" in done.stderr
    assert json.loads(Path("out/result.json").read_text())["workload"] == "mm1"
    assert json.loads(Path("out/partial/result.json").read_text())["workload"] == "small-sparse"


def test_a_search_does_not_take_the_place_of_another_one():
    words = ["--searcher", "random", "--out", "out"]
    command("search", "mm1", "cloud", "--budget", 100, *words)
    before = Path("out/result.json").read_bytes()
    other = {
        "workload.": ("small-sparse", "cloud", 100),
        "hardware.": ("mm1", "edge", 100),
        "budget is 100 there, 60 here": ("mm1", "cloud", 60),
    }
    for differs, (workload, hardware, budget) in other.items():
        done = command("search", workload, hardware, "--budget", budget, *words, code=2)
        assert "is of another search, mm1 on cloud; " in done.stderr and differs in done.stderr
    run = ["run", "mobilebert-50", "--hardware", "cloud", "--out", "out"]
    assert "out holds the result of a search" in command(*run, code=2).stderr
    assert Path("out/result.json").read_bytes() == before
    command("search", "mm1", "cloud", "--budget", 200, *words)
    command("search", "mm1", "cloud", "--budget", 200, "--seed", 1, *words, "--overwrite")
    assert json.loads(Path("out/result.json").read_text())["seed"] == 1


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt


def test_a_search_does_not_start_from_a_partial_design_beside_complete_ones(registry):
    problem = load_problem("mm1", "cloud", registry=registry)
    search_quietly("runs/one", problem, 300, "random")
    search_quietly("runs/one", problem, 9000, "random", progress=interrupted_at(300))
    assert Path("runs/one/partial/design.toml").exists()
    assert [Path(file).as_posix() for _, file, _ in given_designs(["runs"], registry)] == ["runs/one/design.toml"]


STUDY = {"kind": "study", "name": "s", "workloads": ["mm1", "small-sparse"], "hardware": ["cloud"], "searchers": ["random"],
         "budget": 300}  # fmt: skip


def test_tables_of_a_study_that_is_interrupted_do_not_replace_complete_ones(monkeypatch):
    toml_text.write("study.toml", STUDY)
    command("run", "study.toml", "--out", "out")
    before = Path("out/table.csv").read_text()
    toml_text.write("study.toml", {**STUDY, "budget": 400})
    with monkeypatch.context() as patched:
        patched.setattr(Search, "evaluate", fails_after(Search.evaluate, 1, error=interrupt))
        command("run", "study.toml", "--out", "out", code=130)
    assert Path("out/table.csv").read_text() == before
    assert len(Path("out/partial/table.csv").read_text().splitlines()) == 2
    command("run", "study.toml", "--out", "out")
    assert "400" in Path("out/table.csv").read_text()
    assert not Path("out/partial").exists()


def test_tables_of_a_network_that_is_interrupted_do_not_replace_complete_ones(monkeypatch):
    layers = [{"name": name, "type": "linear", "k": size, "n": 12} for name, size in (("a", 16), ("b", 12))]
    toml_text.write("net.toml", {"kind": "network", "name": "net", "input": [16], "layers": layers})
    words = ("run", "net.toml", "--hardware", "cloud", "--searcher", "random", "--out", "out", "--budget")
    command(*words, 300)
    before = {name: Path("out", name).read_text() for name in ("layers.csv", "layers.md", "network.json")}
    with monkeypatch.context() as patched:
        patched.setattr(Search, "evaluate", fails_after(Search.evaluate, 1, error=interrupt))
        command(*words, 400, code=130)
    assert {name: Path("out", name).read_text() for name in before} == before
    assert json.loads(Path("out/partial/network.json").read_text())["complete"] is False
    command(*words, 400)
    assert not Path("out/partial").exists()
