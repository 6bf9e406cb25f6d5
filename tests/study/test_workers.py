"""Cells over processes and over a cluster: the same results, and what happens when a worker dies."""

import json
import logging
import os
import subprocess
import sys
from concurrent.futures import CancelledError
from pathlib import Path

import forking
import pytest
from click.testing import CliRunner

from sparsemap import SearchError
from sparsemap.cli.main import cli
from sparsemap.extras import install
from sparsemap.pieces.study_spec import Study
from sparsemap.spec import toml_text
from sparsemap.study.cells import cells_of, running
from sparsemap.study.study import run_study

DEADLY = '''
"""A searcher that kills its process in one cell: always, or only the first time."""
import os, signal
from pathlib import Path
from sparsemap import Searcher, hookimpl

class Deadly(Searcher):
    type_name = "deadly"
    def search(self, space, budget, rng):
        yield space.sample(100, rng)
        spared = Path(MARKER)
        if space.problem.workload.name == "c" and not spared.exists():
            if spared.name == "once":
                spared.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        while True:
            yield space.sample(100, rng)

@hookimpl
def register_searchers():
    return [Deadly]
'''


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def deadly(marker):
    """A plugin folder with the searcher, which spares its process if the file `marker` exists."""
    folder = Path(f"plugins-{marker}/deadly")
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(DEADLY.replace("MARKER", repr(str(Path(marker).absolute()))))
    return folder.parent


def study(workloads="abcd", **keys):
    for name, m in zip("abcd", (8, 4, 16, 2), strict=True):
        small = {"kind": "workload", "name": name, "extends": "small-sparse", "dims": {"m": m, "k": 8, "n": 4}}
        toml_text.write(f"{name}.toml", small)
    table = {
        "kind": "study",
        "name": "s",
        "workloads": [f"{name}.toml" for name in workloads],
        "hardware": ["small"],
        "searchers": ["random"],
        "budget": 200,
        "space": "paper",
        **keys,
    }
    toml_text.write("study.toml", table)
    return Study(**{key: tuple(v) if isinstance(v, list) else v for key, v in table.items() if key != "kind"})


def run(*args, code=0):
    done = CliRunner().invoke(cli, ["run", "study.toml", *map(str, args)])
    assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr, done.exception)
    return done


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The folder of what a single process finds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("alone"))
        study()
        run("--out", "one")
        return Path("one").absolute()


@pytest.fixture
def table(alone):
    study()
    return (alone / "table.csv").read_text()


def test_results_and_their_order_do_not_depend_on_workers_and_progress_comes_from_all(table):
    heard = []
    outcomes = run_study(study(), jobs=2, out="many", progress=lambda *args: heard.append(args))
    assert Path("many/table.csv").read_text() == table
    assert [done for done, _, _ in heard] == [1, 2, 3, 4]
    assert {outcome.cell.workload for _, _, outcome in heard} == set("abcd")
    assert [outcome.cell.workload for outcome in outcomes] == list("abcd")


def test_progress_knows_of_the_designs_in_all_cells_that_are_running():
    from toy_problem import toy_problem

    from sparsemap import search
    from sparsemap.searching.journal import JOURNAL_FILE

    cells = cells_of(study(), Path("out").absolute())
    assert running(cells) == (0, 0)
    a_layer = Path(cells[1].folder, "layer", JOURNAL_FILE)
    for journal, budget in ((Path(cells[0].folder, JOURNAL_FILE), 1500), (a_layer, 2500)):
        search(toy_problem(), budget, journal=journal)
    count, designs = running(cells)
    assert count == 2 and 4000 <= designs < 4400  # by the size of the files


@pytest.mark.slow
def test_a_worker_that_dies_once_costs_nothing():
    study(searchers=["deadly"])
    plugins = deadly("once")
    run("--out", "two", "--plugin-dir", plugins, "--jobs", 2)
    assert Path("once").exists()
    run("--out", "one", "--plugin-dir", plugins)
    assert Path("one/table.csv").read_text() == Path("two/table.csv").read_text()
    assert json.loads(Path("two/c--small--deadly--seed0/result.json").read_text())["evaluations"] == 200


def test_a_cell_whose_workers_keep_dying_fails_and_the_others_are_kept():
    study(searchers=["deadly"], workloads="acd")
    done = run("--out", "out", "--plugin-dir", deadly("never"), "--jobs", 2, code=2)
    assert "c on small with deadly, seed 0: the process that ran it died again and again" in done.stderr
    assert "1 of 3 cells failed" in done.stderr
    rows = Path("out/table.csv").read_text().splitlines()[1:]
    assert [row.split(",")[4] != "" for row in rows] == [True, False, True]


# ---------------------------------------------------------------------------------------------------------- a cluster


@pytest.fixture(scope="module")
def cluster():
    """The address of a Dask cluster of a process on this machine."""
    pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    import dask
    from distributed import LocalCluster

    given = {"n_workers": 1, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}), LocalCluster(processes=True, **given) as found:
        yield found.scheduler_address.replace("tcp://", "dask://")


def test_a_cluster_finds_what_a_single_process_finds(cluster, table, alone):
    done = run("--out", "far", "--cluster", cluster)
    assert "4 cells" in done.stderr
    assert Path("far/table.csv").read_text() == table
    for cell in alone.glob("?--small--*"):
        for name in ("design.toml", "history.csv"):
            assert Path("far", cell.name, name).read_text() == (cell / name).read_text()


def test_layers_that_wait_for_others_run_on_a_cluster(cluster):
    layer = {"type": "linear", "k": 16, "n": 8}
    layers = [{**layer, "name": name, "m": m} for name, m in (("a", 4), ("b", 6), ("c", 8))]
    toml_text.write("net.toml", {"kind": "network", "name": "net", "layers": layers})
    study(workloads=[], networks=["net.toml"], searchers=["sparsemap"], budget=60, warm_start="previous")
    run("--out", "far", "--cluster", cluster)
    run("--out", "near")
    place = "net--small--sparsemap--seed0/layers.csv"
    assert Path("far", place).read_text() == Path("near", place).read_text()
    assert [row.split(",")[0] for row in Path("near", place).read_text().splitlines()[1:]] == ["a", "b", "c"]


def test_a_cluster_goes_on_with_a_study_that_was_stopped(cluster, table):
    run("--out", "far", "--cluster", cluster)
    Path("far/b--small--random--seed0/result.json").unlink()
    assert "3 kept from earlier" in run("--out", "far", "--cluster", cluster).stderr
    assert Path("far/table.csv").read_text() == table


def test_cells_that_fail_on_a_cluster_are_named(cluster):
    lost = {"density": {"P": 0.5, "Q": {"type": "data", "file": "lost.npy"}}}
    toml_text.write("lost.toml", {"kind": "workload", "name": "lost", "extends": "small-sparse", **lost})
    study(workloads=["a", "lost"])
    done = run("--out", "out", "--cluster", cluster, code=2)
    assert "lost on small with random, seed 0: " in done.stderr and "lost.npy: no such file" in done.stderr
    assert "1 of 2 cells failed" in done.stderr


@pytest.mark.slow
def test_cells_that_fail_on_a_dead_cluster_worker_are_named(cluster):
    """The scheduler gives a cell to other workers a few times; one is started anew for each that died."""
    study(searchers=["deadly"], workloads="ac")
    done = run("--out", "out", "--plugin-dir", deadly("never"), "--cluster", cluster, code=2)
    assert "c on small with deadly, seed 0: the process that ran it died" in done.stderr
    assert "1 of 2 cells failed" in done.stderr


@pytest.mark.parametrize("address", ["127.0.0.1:8786", "dask://127.0.0.1", "ssh://127.0.0.1:1", "dask://"])
def test_addresses_that_are_not_understood(address):
    study()
    assert "expected dask://HOST:PORT" in run("--out", "out", "--cluster", address, code=2).stderr


def test_no_scheduler_at_the_address(monkeypatch):
    pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    from sparsemap.study import workers

    monkeypatch.setattr(workers, "CONNECT_SECONDS", 0.5)
    with pytest.raises(SearchError, match="no Dask scheduler answers at dask:"):
        run_study(study(), out="out", cluster="dask://127.0.0.1:9")


def test_a_scheduler_that_is_gone_is_told_in_one_line(cluster, monkeypatch):
    from sparsemap.study import workers

    log, levels = logging.getLogger("distributed.client"), []
    before = log.level

    def dying(submit, cells):
        levels.append(log.isEnabledFor(logging.ERROR))
        raise CancelledError

    monkeypatch.setattr(workers, "_ended", dying)
    with pytest.raises(
        SearchError, match=r"is gone \(it does not answer\); finished cells are kept, run the study again"
    ):
        run_study(study(), out="out", cluster=cluster)
    assert levels == [False] and log.level == before


def test_a_cluster_without_distributed_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    study()
    assert install("cluster") in run("--out", "out", "--cluster", "dask://127.0.0.1:1", code=2).stderr


def test_jobs_and_a_cluster_exclude_each_other():
    study()
    done = run("--jobs", 2, "--cluster", "dask://127.0.0.1:1", "--out", "out", code=2)
    assert "--jobs is for this machine" in done.stderr


# ------------------------------------------------------------------------------------------------------------- speed-up


@pytest.mark.slow
@pytest.mark.skipif("SPARSEMAP_MEASURE" not in os.environ, reason="set SPARSEMAP_MEASURE=1 on a quiet machine")
def test_two_workers_on_two_cores_are_1_8_times_as_fast(tmp_path):
    import time

    times = {}
    for jobs in (1, 2):
        started = time.perf_counter()
        command = [sys.executable, "-m", "sparsemap", "run", "all-cells", "--jobs", str(jobs), "--quiet"]
        subprocess.run(
            [*command, "--out", tmp_path / str(jobs)], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        times[jobs] = time.perf_counter() - started
    assert (tmp_path / "1/table.csv").read_text() == (tmp_path / "2/table.csv").read_text()
    assert times[1] / times[2] >= 1.8, times


@pytest.mark.parametrize(
    "call", ["run_study(study, out='out', jobs=2)", "search_network('net.toml', 'edge', 50, jobs=2)"]
)
def test_a_script_without_a_guard_is_told_so_at_once(call, tmp_path):
    (tmp_path / "net.toml").write_text(
        'kind = "network"\nname = "n"\nlayers = [{ name = "a", workload = "mm1" }, { name = "b", workload = "mm2" }]\n'
    )
    (tmp_path / "script.py").write_text(
        "from sparsemap import run_study, search_network\n"
        "study = dict(kind='study', name='s', workloads=['mm1', 'mm2'], hardware=['edge'], budget=50)\n"
        f"{call}\n"
    )
    done = forking.run([tmp_path / "script.py"], tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.splitlines()[-1].endswith('has to stand below `if __name__ == "__main__":`')
