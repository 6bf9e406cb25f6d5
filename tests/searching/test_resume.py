"""A search that is killed, at whatever moment, goes on with the same command and ends with the same result."""

import os
import signal

import crashes
import forking
import pytest
from crashes import in_process, outcome, search_quietly, stopped
from toy_problem import toy_problem

from sparsemap import load_problem
from sparsemap.pieces.loading import load
from sparsemap.searching.folder import search_into, unfinished
from sparsemap.searching.journal import Journal
from sparsemap.spec import toml_text

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")

BUDGET = 400


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.fixture(scope="module")
def problem(registry):
    return load_problem("small-sparse", "small", "paper", registry=registry)


def killed_at(evaluations):
    """A `progress` that kills its process once so many designs are evaluated."""

    def kill(snapshot):
        if snapshot.evaluations >= evaluations:
            os.kill(os.getpid(), signal.SIGKILL)

    return kill


def killed_search(folder, problem, evaluations):
    process = in_process(search_quietly, folder, problem, BUDGET, "sparsemap", killed_at(evaluations))
    process.join()
    assert process.exitcode == -signal.SIGKILL


@pytest.fixture(scope="module")
def undisturbed(problem, tmp_path_factory):
    """The files of a search that nothing disturbs."""
    folder = tmp_path_factory.mktemp("undisturbed")
    search_quietly(folder, problem, BUDGET)
    return outcome(folder)


@pytest.mark.parametrize("evaluations", [1, 250, BUDGET])
def test_killed_after_any_batch_it_ends_with_the_same_result(evaluations, undisturbed, problem, tmp_path):
    killed_search(tmp_path, problem, evaluations)
    search_quietly(tmp_path, problem, BUDGET)
    assert outcome(tmp_path) == undisturbed
    assert not unfinished(tmp_path)


def test_killed_again_and_again_it_gets_there(undisturbed, problem, tmp_path):
    for evaluations in (100, 250, 250):
        killed_search(tmp_path, problem, evaluations)
    search_quietly(tmp_path, problem, BUDGET)
    assert outcome(tmp_path) == undisturbed


WRITES = ((Journal, "_write"), (os, "replace"), (os, "unlink"))


def test_dying_before_or_after_any_write_loses_nothing(tmp_path, monkeypatch):
    search_quietly(tmp_path / "whole", toy_problem(), 60)
    expected = outcome(tmp_path / "whole")
    with monkeypatch.context() as patched:
        count = crashes.dying(patched, WRITES, after=10**6)
        search_quietly(tmp_path / "counted", toy_problem(), 60)
    writes = count[0]
    assert writes >= 8
    for write in range(1, writes + 1):
        for moment in (-write, write):
            folder = tmp_path / f"at{moment}"
            with monkeypatch.context() as patched:
                crashes.dying(patched, WRITES, after=moment)
                process = in_process(search_quietly, folder, toy_problem(), 60)
                process.join()
            assert process.exitcode == 9
            ended = (folder / "result.json").exists()  # the last of the files, which says that all are there
            assert ended or unfinished(folder) or moment == -1, moment
            assert not ended or outcome(folder) == expected, moment
            search_quietly(folder, toy_problem(), 60)
            assert outcome(folder) == expected, moment
            assert not list(folder.glob("*.bin"))


@pytest.mark.parametrize("searcher", ["sparsemap", "sparsemap-paper", "es-pfce", "random"])
def test_every_searcher_goes_on(searcher, tmp_path):
    search_quietly(tmp_path / "whole", toy_problem(), 1500, searcher)
    stopped(tmp_path / "torn", toy_problem(), 1500, 600, searcher=searcher)
    search_quietly(tmp_path / "torn", toy_problem(), 1500, searcher)
    assert outcome(tmp_path / "torn") == outcome(tmp_path / "whole")


def test_a_problem_without_valid_designs_goes_on_too(tmp_path):
    search_into(tmp_path / "whole", toy_problem(limit=1.5), 600, 7)
    stopped(tmp_path / "torn", toy_problem(limit=1.5))
    search_into(tmp_path / "torn", toy_problem(limit=1.5), 600, 7)
    one, two = ((tmp_path / name / "result.json").read_text() for name in ("whole", "torn"))
    assert one.partition('"workload"')[2] == two.partition('"workload"')[2]
    assert "capacity:GLB" in one


def test_several_objectives_go_on_too(registry, tmp_path):
    if "pareto" not in registry.types("objective"):
        pytest.skip("no objective with several values is registered")
    problem = load_problem("small-sparse", "small", "paper", objective="pareto:energy,delay", registry=registry)
    search_quietly(tmp_path / "whole", problem, 1000, None)
    stopped(tmp_path / "torn", problem, 1000, 600, searcher=None)
    search_quietly(tmp_path / "torn", problem, 1000, None)
    assert outcome(tmp_path / "torn") == outcome(tmp_path / "whole")
    fronts = [(tmp_path / name / "front.csv").read_text() for name in ("whole", "torn")]
    assert fronts[0] == fronts[1]


# -------------------------------------------------------------------------------------------------- from the outside


KILLER = '''
"""Kills this process, or the study's, once a search has evaluated KILL_AT designs."""
import os, signal
from sparsemap import hookimpl

@hookimpl
def search_progressed(snapshot):
    if snapshot.evaluations >= int(os.environ.get("KILL_AT", 1e9)):
        os.kill(os.getppid() if "KILL_PARENT" in os.environ else os.getpid(), signal.SIGKILL)
        signal.pause()
'''


@pytest.fixture
def command(tmp_path):
    """Runs the command with a plugin that kills it at a given number of designs."""
    plugin = tmp_path / "plugins/killer"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text(KILLER)

    def run(*args, code=0, **variables):
        env = {**os.environ, "SPARSEMAP_PLUGIN_DIRS": str(plugin.parent), **variables}
        done = forking.run(["-m", "sparsemap", *args], env=env)
        assert done.returncode == code, done.stderr
        return done.stdout

    return run


def test_the_same_command_goes_on_after_kill_9(command, tmp_path):
    args = ("search", "small-sparse", "small", "--space", "paper", "--budget", 200, "--seed", 3, "--quiet")
    expected = command(*args, "--out", tmp_path / "whole")
    torn = tmp_path / "torn"
    command(*args, "--out", torn, code=-signal.SIGKILL, KILL_AT="100")
    assert unfinished(torn)
    assert command(*args, "--out", torn) == expected
    assert outcome(torn) == outcome(tmp_path / "whole")


def test_a_killed_study_goes_on_and_ends_with_the_same_table(command, tmp_path):
    study = tmp_path / "study.toml"
    few = {"kind": "searcher", "name": "few", "type": "random", "batch": 50}
    toml_text.write(tmp_path / "few.toml", few)
    toml_text.write(study, {"kind": "study", "name": "s", "workloads": ["small-sparse"], "hardware": ["small"],
                          "searchers": ["few.toml"], "space": "paper",
                          "seeds": [0, 1, 2], "budget": 400})  # fmt: skip
    args = ("run", study, "--quiet", "--out")
    command(*args, tmp_path / "whole")
    cells = list((tmp_path / "whole").glob("small*"))
    assert len(cells) == 3
    for jobs, victim in ((1, {}), (2, {"KILL_PARENT": "1"})):
        torn = tmp_path / f"torn{jobs}"
        command(*args, torn, "--jobs", jobs, code=-signal.SIGKILL, KILL_AT="150", **victim)
        assert any(unfinished(torn / cell.name) for cell in cells)
        command(*args, torn, "--jobs", jobs)
        assert (torn / "table.csv").read_text() == (tmp_path / "whole/table.csv").read_text()
        for cell in cells:
            assert outcome(torn / cell.name) == outcome(cell)
        assert not list(torn.rglob("*.bin")) and not list(torn.rglob("*.tmp"))
