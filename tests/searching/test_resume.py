"""A search that is killed, at whatever moment, goes on with the same command and ends with the same result."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import crashes
import numpy as np
import pytest
from crashes import in_process, outcome, search_quietly
from toy_problem import ToyModel, toy_problem

from sparsemap import Search, Searcher, SearchError, load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.problem.evaluator import Evaluator
from sparsemap.searching.folder import search_into, unfinished
from sparsemap.searching.journal import JOURNAL_FILE, Journal, JournalMismatch
from sparsemap.spec import toml_io

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")

BUDGET = 3000


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.fixture
def problem(registry):
    return load_problem("mm1", "cloud", registry=registry)


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
def undisturbed(registry, tmp_path_factory):
    """The files of a search that nothing disturbs."""
    folder = tmp_path_factory.mktemp("undisturbed")
    search_quietly(folder, load_problem("mm1", "cloud", registry=registry), BUDGET)
    return outcome(folder)


@pytest.mark.parametrize("evaluations", [1, 400, 1500, 2700, BUDGET])
def test_killed_after_any_batch_it_ends_with_the_same_result(evaluations, undisturbed, problem, tmp_path):
    killed_search(tmp_path, problem, evaluations)
    search_quietly(tmp_path, problem, BUDGET)
    assert outcome(tmp_path) == undisturbed
    assert not unfinished(tmp_path)


def test_killed_again_and_again_it_gets_there(undisturbed, problem, tmp_path):
    for evaluations in (300, 900, 900, 2000):
        killed_search(tmp_path, problem, evaluations)
    search_quietly(tmp_path, problem, BUDGET)
    assert outcome(tmp_path) == undisturbed


WRITES = ((Journal, "_write"), (os, "replace"), (os, "unlink"))


def test_dying_before_or_after_any_write_loses_nothing(tmp_path, monkeypatch):
    search_quietly(tmp_path / "whole", toy_problem(), 600)
    expected = outcome(tmp_path / "whole")
    with monkeypatch.context() as patched:
        count = crashes.dying(patched, WRITES, after=10**6)
        search_quietly(tmp_path / "counted", toy_problem(), 600)
    writes = count[0]
    assert writes >= 8
    for write in range(1, writes + 1):
        for moment in (-write, write):
            folder = tmp_path / f"at{moment}"
            with monkeypatch.context() as patched:
                crashes.dying(patched, WRITES, after=moment)
                process = in_process(search_quietly, folder, toy_problem(), 600)
                process.join()
            assert process.exitcode == 9
            search_quietly(folder, toy_problem(), 600)
            assert outcome(folder) == expected, moment
            assert not list(folder.glob("*.bin"))


def stopped(folder, problem, budget=600, after=250, **options):
    """Leaves a search that was interrupted, with its journal."""

    def interrupt(snapshot):
        if snapshot.evaluations >= after:
            raise KeyboardInterrupt

    result = search_quietly(folder, problem, budget, progress=interrupt, **options)
    assert result.interrupted
    return Path(folder, JOURNAL_FILE)


def test_a_torn_journal_is_good_up_to_the_tear(tmp_path):
    search_quietly(tmp_path / "whole", toy_problem(), 600)
    data = stopped(tmp_path / "torn", toy_problem()).read_bytes()
    sizes = [*range(60), *random.Random(0).sample(range(60, len(data)), 60), len(data) - 1]
    for size in sizes:
        folder = tmp_path / f"torn{size}"
        folder.mkdir(exist_ok=True)
        (folder / JOURNAL_FILE).write_bytes(data[:size])
        search_quietly(folder, toy_problem(), 600)
        assert outcome(folder) == outcome(tmp_path / "whole"), size


def test_damage_in_the_journal_costs_what_comes_after_it_but_is_never_believed(tmp_path):
    search_quietly(tmp_path / "whole", toy_problem(), 600)
    data = stopped(tmp_path / "good", toy_problem()).read_bytes()
    start = data.index(b"}}", 20)
    draw = random.Random(0)
    for place in draw.sample(range(start + 10, len(data)), 60):
        folder = tmp_path / f"bad{place}"
        folder.mkdir(exist_ok=True)
        changed = bytearray(data)
        changed[place] ^= 1 << draw.randrange(8)
        (folder / JOURNAL_FILE).write_bytes(changed)
        search_quietly(folder, toy_problem(), 600)
        assert outcome(folder) == outcome(tmp_path / "whole"), place


def test_recorded_designs_are_not_evaluated_again(tmp_path, monkeypatch):
    stopped(tmp_path, toy_problem(), 3000, after=2500)
    counts = []
    evaluate = Evaluator.evaluate_designs

    def counted(self, designs, detail=False):
        counts.append(len(designs))
        return evaluate(self, designs, detail)

    monkeypatch.setattr(Evaluator, "evaluate_designs", counted)
    result = search_quietly(tmp_path, toy_problem(), 3000)
    assert result.evaluations == 3000
    assert sum(counts) < 1000


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
    problem = load_problem("mm1", "cloud", objective="pareto:energy,delay", registry=registry)
    search_quietly(tmp_path / "whole", problem, 1200, None)
    stopped(tmp_path / "torn", problem, 1200, 700, searcher=None)
    search_quietly(tmp_path / "torn", problem, 1200, None)
    assert outcome(tmp_path / "torn") == outcome(tmp_path / "whole")
    fronts = [(tmp_path / name / "front.csv").read_text() for name in ("whole", "torn")]
    assert fronts[0] == fronts[1]


def test_the_time_of_a_search_is_that_of_all_its_parts(tmp_path):
    stopped(tmp_path, toy_problem())
    journal = tmp_path / JOURNAL_FILE
    with Journal(journal, _identity(toy_problem())) as record:
        run = Search(toy_problem(), "sparsemap", 600, 7)
        genomes = run.ask()
        evaluation = record.recorded(genomes)
    journal.unlink()
    with Journal(journal, _identity(toy_problem())) as record:
        record.append(genomes, evaluation, 1000.0)
    assert search_quietly(tmp_path, toy_problem(), 600).seconds > 1000


def _identity(problem, budget=600, seed=7, searcher="sparsemap"):
    from sparsemap.searching.identity import identity_of

    return identity_of(problem, Search(problem, searcher, budget).searcher, budget, seed)


# -------------------------------------------------------------------------------------------- journals that do not fit


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"budget": 700}, "budget is 600 there, 700 here"),
        ({"seed": 8}, "seed is 7 there, 8 here"),
        ({"searcher": "random"}, 'searcher.name is "sparsemap" there, "random" here'),
        ({"searcher": {"type": "memetic", "name": "sparsemap", "population": 48}}, "searcher.population is nothing"),
    ],
)
def test_another_search_in_the_folder_is_an_error_that_says_what_differs(arguments, text, tmp_path):
    before = stopped(tmp_path, toy_problem()).read_bytes()
    arguments = {"budget": 600, "seed": 7, "searcher": "sparsemap", **arguments}
    with pytest.raises(JournalMismatch) as caught:
        search_into(tmp_path, toy_problem(), **arguments)
    assert text in str(caught.value)
    assert "--overwrite" in str(caught.value) and JOURNAL_FILE in str(caught.value)
    assert (tmp_path / JOURNAL_FILE).read_bytes() == before
    assert search_into(tmp_path, toy_problem(), **arguments, overwrite=True).evaluations == arguments["budget"]
    assert not unfinished(tmp_path)


def test_another_problem_is_another_search(registry, tmp_path):
    stopped(tmp_path, load_problem("mm1", "cloud", registry=registry))
    with pytest.raises(JournalMismatch, match='clock is nothing there, "2 GHz" here'):
        search_quietly(tmp_path, load_problem("mm1", {"extends": "cloud", "clock": "2 GHz"}, registry=registry), 600)


def test_a_piece_that_changed_behind_its_name_is_noticed(tmp_path):
    class Dearer(ToyModel):
        def evaluate(self, designs, problem, detail=False):
            found = super().evaluate(designs, problem, detail)
            return type(found)(found.energy_pj * 1.001, found.cycles, found.reasons, found.reason_names, found.detail)

    stopped(tmp_path, toy_problem())
    problem = toy_problem()
    problem.cost_model = Dearer(name="toy-model")
    with pytest.raises(JournalMismatch, match="no longer worth what they were"):
        search_quietly(tmp_path, problem, 600)


def test_a_searcher_that_does_not_repeat_itself_is_noticed(tmp_path):
    class Fickle(Searcher):
        type_name = "fickle"

        def search(self, space, budget, rng):
            while True:
                yield space.sample(100, np.random.default_rng())

    stopped(tmp_path, toy_problem(), searcher=Fickle(name="fickle"))
    with pytest.raises(JournalMismatch, match="proposes other designs in batch 1 than"):
        search_quietly(tmp_path, toy_problem(), 600, Fickle(name="fickle"))


def test_a_file_that_is_no_journal_is_not_touched(tmp_path):
    (tmp_path / JOURNAL_FILE).write_bytes(b"the only copy of my thesis")
    with pytest.raises(JournalMismatch, match="is not the journal of a search"):
        search_quietly(tmp_path, toy_problem(), 600)
    assert (tmp_path / JOURNAL_FILE).read_bytes() == b"the only copy of my thesis"


def test_two_searches_in_one_folder_at_a_time_are_refused(tmp_path, monkeypatch):
    pytest.importorskip("fcntl")
    monkeypatch.setattr("sparsemap.searching.journal.WAIT_SECONDS", 0.2)
    with (
        Journal(tmp_path / JOURNAL_FILE, _identity(toy_problem())),
        pytest.raises(SearchError, match="another search is writing it"),
    ):
        search_quietly(tmp_path, toy_problem(), 600)


def test_memory_does_not_grow_with_the_journal(tmp_path):
    """A journal of 48 MB is replayed within a few."""
    import tracemalloc

    class Wide(Searcher):
        type_name = "wide"

        def search(self, space, budget, rng):
            while True:
                yield space.sample(20_000, rng)

    path = tmp_path / JOURNAL_FILE
    search(toy_problem(), 2_000_000, 0, Wide(name="wide"), journal=path)
    assert path.stat().st_size > 48e6
    tracemalloc.start()
    search(toy_problem(), 2_000_000, 0, Wide(name="wide"), journal=path)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


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
        words = [sys.executable, "-m", "sparsemap", *map(str, args)]
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout

    return run


def test_the_same_command_goes_on_after_kill_9(command, tmp_path):
    args = ("search", "mm3", "cloud", "--budget", 6000, "--seed", 3, "--quiet")
    expected = command(*args, "--out", tmp_path / "whole")
    torn = tmp_path / "torn"
    command(*args, "--out", torn, code=-signal.SIGKILL, KILL_AT="4000")
    assert unfinished(torn)
    assert command(*args, "--out", torn) == expected
    assert outcome(torn) == outcome(tmp_path / "whole")


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_study_goes_on_and_ends_with_the_same_table(jobs, command, tmp_path):
    study = tmp_path / "study.toml"
    toml_io.write(study, {"kind": "study", "name": "s", "workloads": ["mm1", "mm3"], "hardware": ["cloud"],
                          "seeds": [0, 1], "budget": 2000})  # fmt: skip
    args = ("run", study, "--quiet", "--out")
    command(*args, tmp_path / "whole")
    torn = tmp_path / "torn"
    victim = {"KILL_PARENT": "1"} if jobs > 1 else {}
    for evaluations in ("500", "1500"):
        command(*args, torn, "--jobs", jobs, code=-signal.SIGKILL, KILL_AT=evaluations, **victim)
    command(*args, torn, "--jobs", jobs)
    assert (torn / "table.csv").read_text() == (tmp_path / "whole/table.csv").read_text()
    for cell in (tmp_path / "whole").glob("mm*"):
        assert outcome(torn / cell.name) == outcome(cell)
    assert not list(torn.rglob("*.bin")) and not list(torn.rglob("*.tmp"))
