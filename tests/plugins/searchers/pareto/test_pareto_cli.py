"""Several objectives from the command line, on shipped specs."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sparsemap import load_problem, search
from sparsemap.cli.main import cli
from sparsemap.extras import install
from sparsemap.searching.folder import search_into
from sparsemap.searching.front import non_dominated

SEARCH = ("search", "mm1", "edge", "--budget", "400", "--objective", "pareto:energy,delay")


def run(*args):
    return CliRunner().invoke(cli, [str(arg) for arg in args])


def test_a_search_writes_its_front_each_design_complete(tmp_path):
    pytest.importorskip("matplotlib")
    found = run(*SEARCH, "--out", tmp_path)
    assert found.exit_code == 0, found.output
    table = json.loads((tmp_path / "result.json").read_text("utf-8"))
    assert table["searcher"] == "nsga2"
    assert table["objective"] == "pareto:energy,delay"
    assert (tmp_path / "front.png").exists() and (tmp_path / "front.svg").exists()
    designs = sorted((tmp_path / "front").glob("*.toml"))
    assert len(designs) == len(table["front"]) > 0
    for path, point in zip(designs, table["front"], strict=True):
        numbers = json.loads(run("show", path, "--json").stdout)
        assert numbers["valid"] is True
        assert (numbers["energy_pj"], numbers["cycles"]) == (point["energy_pj"], point["cycles"])
        assert (numbers["score"], numbers["edp"]) == (point["score"], point["edp"])


def test_without_matplotlib_the_search_ends_well_and_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = run(*SEARCH, "--out", tmp_path)
    assert found.exit_code == 0, found.output
    assert install("plots") in found.stderr
    assert (tmp_path / "front.csv").exists()
    assert not (tmp_path / "front.png").exists()


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("pareto:energy,dellay", "no objective 'dellay'; did you mean 'delay'?"),
        ("paretto:energy,delay", "no type of objective 'paretto'; did you mean 'pareto'?"),
    ],
)
def test_a_slip_of_the_pen_is_told_with_the_nearest_name(objective, message):
    found = run("search", "mm1", "edge", "--objective", objective)
    assert found.exit_code == 2
    assert message in found.stderr


def test_a_study_may_have_several_objectives(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(
        'kind = "study"\nname = "two"\nworkloads = ["mm1"]\nhardware = ["edge"]\nsearchers = ["nsga2"]\nbudget = 200\n'
        'objective = { type = "pareto", objectives = ["energy", "cycles"] }\n',
        "utf-8",
    )
    found = run("run", study, "--out", tmp_path / "out", "--quiet")
    assert found.exit_code == 0, found.output
    assert len(list((tmp_path / "out").rglob("front.csv"))) == 1


def test_a_search_that_was_stopped_goes_on_to_the_same_front(tmp_path):
    problem = load_problem("mm1", "edge", objective="pareto:energy,delay")
    seen = []

    def stop(snapshot):
        seen.append(snapshot)
        if len(seen) == 4:
            raise KeyboardInterrupt

    assert search_into(tmp_path, problem, 900, 3, progress=stop).interrupted
    whole, resumed = search(problem, 900, 3), search_into(tmp_path, problem, 900, 3)
    assert [best.values for best in resumed.front] == [best.values for best in whole.front]
    assert [best.genome.tolist() for best in resumed.front] == [best.genome.tolist() for best in whole.front]
    assert not (Path(tmp_path) / "journal.bin").exists()


def test_the_front_of_a_real_problem_is_non_dominated_and_has_the_best_score():
    result = search(load_problem("conv4", "edge-16gbps", objective="pareto:energy,delay"), 2000)
    values = np.array([best.values for best in result.front])
    assert len(values) > 1
    assert non_dominated(values).all()
    assert result.best.edp == min(best.edp for best in result.front)
