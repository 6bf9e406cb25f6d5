"""What happens to results in a folder when what they depend on has changed, or when somebody else writes there."""

import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from crashes import outcome, search_quietly
from toy_problem import toy_problem

from sparsemap import SearchError
from sparsemap.cli.main import cli
from sparsemap.searching import journal
from sparsemap.searching.journal import JOURNAL_FILE, Journal
from sparsemap.searching.run import search_into
from sparsemap.spec import toml_io
from sparsemap.study import study

STUDY = {"kind": "study", "name": "s", "workloads": ["mm1"], "hardware": ["cloud"], "searchers": ["random"],
         "seeds": [0, 1], "budget": 300}  # fmt: skip
WORKLOAD = {"kind": "workload", "name": "layer", "einsum": "Z[m, n] = P[m, k] * Q[k, n]",
            "dims": {"m": 16, "k": 16, "n": 16}, "density": {"P": 0.5, "Q": {"type": "data", "file": "q.npy"}}}  # fmt: skip
FORMAT = {"kind": "format", "name": "mine", "compressed": True, "bits": "fibers * length", "lists": "mask"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(code=0, **changes):
    """Runs the study with changes; how many of its cells were kept."""
    plugins = ["--plugin-dir", "plugins"] if Path("plugins").exists() else []
    toml_io.write("study.toml", {**STUDY, **changes})
    done = CliRunner().invoke(cli, ["run", "study.toml", "--out", "out", *plugins])
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
    toml_io.write("layer.toml", {**WORKLOAD, "density": {"P": 0.5, "Q": 0.5}})
    run(workloads=["layer.toml"])
    toml_io.write("elsewhere/layer.toml", {**WORKLOAD, "density": {"P": 0.5, "Q": 0.5}, "description": "a layer"})
    assert run(workloads=["elsewhere/layer.toml"]) == 2


@pytest.mark.parametrize(("name", "value"), [("dims", {"m": 16, "k": 16, "n": 32}), ("density", {"P": 0.5, "Q": 0.4})])
def test_a_changed_spec_file_is_searched_again(name, value):
    toml_io.write("layer.toml", {**WORKLOAD, "density": {"P": 0.5, "Q": 0.5}})
    run(workloads=["layer.toml"])
    toml_io.write("layer.toml", {**WORKLOAD, "density": {"P": 0.5, "Q": 0.5}, name: value})
    assert run(workloads=["layer.toml"]) == 0
    assert run(workloads=["layer.toml"]) == 2


def test_a_changed_data_file_is_searched_again():
    toml_io.write("layer.toml", WORKLOAD)
    np.save("q.npy", np.eye(16))
    run(workloads=["layer.toml"])
    assert run(workloads=["layer.toml"]) == 2
    np.save("q.npy", np.eye(16)[::-1])
    assert run(workloads=["layer.toml"]) == 0


@pytest.mark.parametrize("file", ["mine.toml", "__init__.py"])
def test_cells_are_searched_again_with_a_changed_plugin(file):
    toml_io.write("plugins/formats/mine.toml", FORMAT)
    Path("plugins/formats/__init__.py").write_text('"""My formats."""\n')
    space = {"extends": "paper", "formats": {"candidates": ["uncompressed", "mine"]}}
    run(space=space)
    assert run(space=space) == 2
    with Path("plugins/formats", file).open("a") as text:
        text.write("# changed\n")
    assert run(space=space) == 0
    assert run(space=space) == 2


def test_a_search_goes_on_only_with_the_plugins_and_data_that_it_began_with():
    toml_io.write("layer.toml", WORKLOAD)
    np.save("q.npy", np.eye(16))

    def search(code):
        done = CliRunner().invoke(cli, ["search", "layer.toml", "cloud", "--budget", "300", "-q", "--out", "one"])
        assert done.exit_code == code
        return done.stderr

    search(0)
    toml_io.write("layer.toml", WORKLOAD)
    from sparsemap import load_problem
    from sparsemap.searching.identity import identity_of

    problem = load_problem("layer.toml", "cloud")
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
            search_into("out", toy_problem(), 400, 8, "random")
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


def test_a_study_leaves_a_cell_alone_that_another_process_is_searching(monkeypatch):
    pytest.importorskip("fcntl")
    monkeypatch.setattr(journal, "WAIT_SECONDS", 0)
    run(seeds=[1])
    before = outcome("out/mm1--cloud--random--seed1")
    with Journal(Path("out/mm1--cloud--random--seed0", JOURNAL_FILE), {"search": "of another process"}):
        assert run(code=2) == 1
    assert outcome("out/mm1--cloud--random--seed1") == before
    assert run() == 1
