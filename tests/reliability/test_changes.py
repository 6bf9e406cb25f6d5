"""What happens to results in a folder when what they depend on has changed, or when somebody else writes there."""

import json
import logging
import os
import shutil
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from crashes import in_process, search_quietly
from toy_problem import toy_problem

from sparsemap import SearchError
from sparsemap.cli.main import cli
from sparsemap.searching import journal
from sparsemap.searching.driver import Search
from sparsemap.searching.folder import search_into
from sparsemap.searching.journal import JOURNAL_FILE, Journal
from sparsemap.spec import toml_text
from sparsemap.study import study

STUDY = {"kind": "study", "name": "s", "workloads": ["small-sparse"], "hardware": ["small"], "searchers": ["random"],
         "seeds": [0, 1], "budget": 300, "space": "paper"}  # fmt: skip
ON = ["small", "--space", "paper"]
WORKLOAD = {"kind": "workload", "name": "layer", "einsum": "Z[m, n] = P[m, k] * Q[k, n]",
            "dims": {"m": 16, "k": 16, "n": 16}, "density": {"P": 0.5, "Q": {"type": "data", "file": "q.npy"}}}  # fmt: skip
FORMAT = {"kind": "format", "name": "mine", "compressed": True, "bits": "fibers * length", "lists": "mask"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(code=0, *options, **changes):
    """Runs the study with changes; how many of its cells were kept."""
    plugins = ["--plugin-dir", "plugins"] if Path("plugins").exists() else []
    toml_text.write("study.toml", {**STUDY, **changes})
    done = CliRunner().invoke(cli, ["run", "study.toml", "--out", "out", *options, *plugins])
    assert done.exit_code == code, (done.exit_code, done.output, done.exception)
    return int(done.stderr.partition(" kept from earlier")[0].split()[-1]) if "kept from" in done.stderr else 0


def files(folder):
    return {path.name: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


# ------------------------------------------------------------------------------------------------------ changed studies


def test_cells_of_an_edited_study_are_kept_where_they_are_the_same_search():
    run()
    assert run(seeds=[1, 2]) == 1
    assert run(seeds=[0, 1, 2]) == 3
    assert run(budget=400) == 0
    assert len(Path("out/table.csv").read_text().splitlines()) == 3


def test_a_description_may_change_and_files_may_move():
    toml_text.write("layer.toml", {**WORKLOAD, "density": {"P": 0.5, "Q": 0.5}})
    run(workloads=["layer.toml"])
    toml_text.write("elsewhere/layer.toml", {**WORKLOAD, "density": {"P": 0.5, "Q": 0.5}, "description": "a layer"})
    assert run(workloads=["elsewhere/layer.toml"]) == 2


@pytest.mark.parametrize(("name", "value"), [("dims", {"m": 16, "k": 16, "n": 32}), ("density", {"P": 0.5, "Q": 0.4})])
def test_a_changed_spec_file_is_searched_again_where_it_may_overwrite(name, value):
    toml_text.write("layer.toml", {**WORKLOAD, "density": {"P": 0.5, "Q": 0.5}})
    run(workloads=["layer.toml"])
    toml_text.write("layer.toml", {**WORKLOAD, "density": {"P": 0.5, "Q": 0.5}, name: value})
    before = files("out")
    run(2, workloads=["layer.toml"])
    assert files("out") == before
    assert run(0, "--overwrite", workloads=["layer.toml"]) == 0
    assert run(workloads=["layer.toml"]) == 2


def test_a_changed_data_file_is_searched_again():
    toml_text.write("layer.toml", WORKLOAD)
    np.save("q.npy", np.eye(16))
    run(workloads=["layer.toml"])
    assert run(workloads=["layer.toml"]) == 2
    np.save("q.npy", np.eye(16)[::-1])
    assert run(workloads=["layer.toml"]) == 0


@pytest.mark.parametrize("file", ["mine.toml", "__init__.py"])
def test_cells_are_searched_again_with_a_changed_plugin(file):
    toml_text.write("plugins/formats/mine.toml", FORMAT)
    Path("plugins/formats/__init__.py").write_text('"""My formats."""\n')
    space = {"extends": "paper", "formats": {"candidates": ["uncompressed", "mine"]}}
    run(space=space)
    assert run(space=space) == 2
    with Path("plugins/formats", file).open("a") as text:
        text.write("# changed\n")
    assert run(space=space) == 0
    assert run(space=space) == 2


def test_a_search_goes_on_only_with_the_plugins_and_data_that_it_began_with():
    toml_text.write("layer.toml", WORKLOAD)
    np.save("q.npy", np.eye(16))

    def search(code):
        done = CliRunner().invoke(cli, ["search", "layer.toml", *ON, "--budget", "300", "-q", "--out", "one"])
        assert done.exit_code == code
        return done.stderr

    search(0)
    toml_text.write("layer.toml", WORKLOAD)
    from sparsemap import load_problem
    from sparsemap.searching.identity import identity_of

    problem = load_problem("layer.toml", "small", "paper")
    with Journal(
        Path("one", JOURNAL_FILE), identity_of(problem, problem.registry.get("searcher", "sparsemap"), 300, 0)
    ):
        pass
    np.save("q.npy", np.eye(16)[::-1])
    assert 'differs from this one: data.q.npy is "' in search(2)


# --------------------------------------------------------------------------------------------------- results are not lost


def test_an_earlier_result_stays_until_the_next_one_is_written(monkeypatch):
    search_quietly("out", toy_problem(), 300)
    before = files("out")

    def full(self, *args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        with pytest.raises(SearchError, match="No space left on device"):
            search_into("out", toy_problem(), 400, 8, "random", overwrite=True)
    after = files("out")
    assert after.pop(JOURNAL_FILE) and after == before


def test_the_result_of_a_cell_stays_when_a_changed_study_fails_there(monkeypatch):
    run()

    def fail(*args, **options):
        raise SearchError("no")

    with monkeypatch.context() as patched:
        patched.setattr(study, "search_into", fail)
        run(budget=400, code=2)
    assert run() == 2


def test_temporary_files_of_a_killed_search_are_removed_also_those_of_its_front():
    for name in ("out/.result.json.0123abcd.tmp", "out/front/.01.toml.0123abcd.tmp"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("torn")
    search_quietly("out", toy_problem(), 300)
    assert not list(Path("out").rglob("*.tmp"))


# ------------------------------------------------------------------------------------------------------- two processes


def test_whoever_waited_for_a_search_to_end_has_a_journal_of_his_own(monkeypatch):
    """The one that ended has removed its file; a record in that would be lost."""
    pytest.importorskip("fcntl")
    first = Journal(Path("out", JOURNAL_FILE), {"search": 1})

    def end_the_first(seconds):
        Path("out", JOURNAL_FILE).unlink()
        first.__exit__()

    monkeypatch.setattr(journal.time, "sleep", end_the_first)
    with Journal(Path("out", JOURNAL_FILE), {"search": 2}) as second:
        assert os.path.samestat(os.fstat(second._file.fileno()), os.stat(Path("out", JOURNAL_FILE)))


class Other(logging.Handler):
    """Another process with a cell's journal, which does something once it hears that somebody waits for it."""

    def __init__(self, folder, then):
        super().__init__()
        self.journal = Journal(Path(folder, JOURNAL_FILE), {"search": "of another process"})
        self.then, self.heard = then, []

    def emit(self, record):
        self.heard.append(record.getMessage())
        self.then()
        self.journal.path.unlink()
        self.journal.__exit__()


def test_a_study_waits_for_the_process_that_searches_a_cell_and_takes_its_result(monkeypatch):
    pytest.importorskip("fcntl")
    monkeypatch.setattr(journal, "WAIT_SECONDS", 0)
    run()
    cell = "small-sparse--small--random--seed0"
    other = Other(f"new/{cell}", lambda: shutil.copytree(f"out/{cell}", f"new/{cell}", dirs_exist_ok=True))
    logging.getLogger("sparsemap").addHandler(other)
    try:
        done = CliRunner().invoke(cli, ["run", "study.toml", "--out", "new"])
    finally:
        logging.getLogger("sparsemap").removeHandler(other)
    assert (done.exit_code, done.stderr.partition(";")[0]) == (0, "2 cells, 1 kept from earlier")
    about = f"small-sparse on small with random, seed 0: waiting for process {os.getpid()} on {socket.gethostname()}"
    assert other.heard == [f"{about}, which is searching it"]
    assert files(f"out/{cell}") == files(f"new/{cell}")


def test_a_cell_that_another_process_has_left_unfinished_is_searched(monkeypatch):
    pytest.importorskip("fcntl")
    monkeypatch.setattr(journal, "WAIT_SECONDS", 0)
    other = Other("out/small-sparse--small--random--seed0", lambda: None)
    logging.getLogger("sparsemap").addHandler(other)
    try:
        assert run() == 0
    finally:
        logging.getLogger("sparsemap").removeHandler(other)
    assert len(other.heard) == 1
    assert run() == 2


def test_two_runs_of_one_study_at_a_time_end_with_the_same_table():
    pytest.importorskip("fcntl")
    toml_text.write("study.toml", {**STUDY, "budget": 3000})

    def runs(told):
        done = CliRunner().invoke(cli, ["run", "study.toml", "--out", "out"])
        Path(told).write_text(done.stderr)
        sys.exit(done.exit_code)

    both = [in_process(runs, name) for name in ("one", "other")]
    for process in both:
        process.join()
    told = [Path(name).read_text() for name in ("one", "other")]
    assert [process.exitcode for process in both] == [0, 0], told
    assert all("2 cells" in text and "failed" not in text for text in told)
    assert not list(Path("out").rglob(JOURNAL_FILE))


# ------------------------------------------------------------------------------------------- the same files every time

NETWORK = {"kind": "network", "name": "net", "input": [16],
           "layers": [{"name": name, "type": "linear", "k": k, "n": n} for name, k, n in
                      (("a", 16, 12), ("b", 12, 12), ("c", 12, 20))]}  # fmt: skip


def test_a_resumed_network_has_the_files_of_an_undisturbed_one_but_for_the_documented_keys(monkeypatch):
    toml_text.write("net.toml", NETWORK)
    words = ["run", "net.toml", "--hardware", *ON, "--budget", "150", "--out"]
    evaluate, calls, layers = Search.evaluate, [0], []

    def counted(self, *args):
        layers.append(self.problem.workload.name)
        return evaluate(self, *args)

    monkeypatch.setattr(Search, "evaluate", counted)
    assert CliRunner().invoke(cli, [*words, "whole"]).exit_code == 0
    last = layers.index("b") + 2  # calls until the second layer is on its way

    def interrupted_once(self, *args):
        calls[0] += 1
        if calls[0] == last:
            raise KeyboardInterrupt
        return evaluate(self, *args)

    monkeypatch.setattr(Search, "evaluate", interrupted_once)
    assert CliRunner().invoke(cli, [*words, "deeper/stopped"]).exit_code == 130
    assert Path("deeper/stopped/a/result.json").exists() and not Path("deeper/stopped/c/result.json").exists()
    assert CliRunner().invoke(cli, [*words, "deeper/stopped"]).exit_code == 0
    assert written("deeper/stopped") == written("whole")


def written(folder):
    """The files of a folder, but for what docs/reliability.md says to differ: `timing.csv`, `command.txt`, and `seconds` of
    results."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and path.name not in ("timing.csv", "command.txt"):
            kept = path.name == "result.json"
            lines = path.read_text().splitlines(keepends=True)
            found[str(path.relative_to(folder))] = "".join(
                line for line in lines if not (kept and line.startswith('  "seconds": '))
            )
    return found


def test_results_hold_no_absolute_paths_and_their_designs_can_be_read(tmp_path, monkeypatch):
    np.save("q.npy", np.eye(16))
    toml_text.write("layer.toml", WORKLOAD)
    toml_text.write("net.toml", NETWORK)
    words = [*ON, "--budget", "150", "--out"]
    for command in (
        ["run", "net.toml", "--hardware", *words, str(tmp_path / "net")],
        ["search", str(tmp_path / "layer.toml"), *words, str(tmp_path / "one")],
        ["search", "layer.toml", *words, "two", "--start", str(tmp_path / "one")],
        ["search", "layer.toml", *words, "front", "--objective", "pareto:energy,delay"],
    ):
        assert CliRunner().invoke(cli, command).exit_code == 0
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and str(tmp_path).encode() in path.read_bytes()]
    assert json.loads(Path("two/result.json").read_text())["start"][0]["file"] == "../one/design.toml"
    for design in (tmp_path / "two/design.toml", tmp_path / "front/front/1.toml"):
        assert CliRunner().invoke(cli, ["show", str(design)]).exit_code == 0
    monkeypatch.chdir("/")
    assert CliRunner().invoke(cli, ["show", str(tmp_path / "two/design.toml")]).exit_code == 0
