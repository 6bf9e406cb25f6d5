"""Searches that start from designs: of this problem or similar ones, counted, repeatable, and never worse than them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from sparsemap import DesignError, Result, Search, SearchError, load_problem, search, start_of
from sparsemap.cli.main import cli
from sparsemap.pieces.contracts import Scored
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.problem.problem import Problem
from sparsemap.searching.folder import finished, search_into
from sparsemap.searching.start import mixed, nearest, transferred

REGISTRY = load()
LAYER: dict[str, Any] = {
    "type": "conv2d",
    "k": 16,
    "c": 8,
    "p": 8,
    "q": 8,
    "r": 3,
    "s": 3,
    "density": {"P": 0.5, "Q": 0.3},
}


def problem(**changes: Any) -> Problem:
    return load_problem({"name": "layer", **LAYER, **changes}, "edge-16gbps", registry=REGISTRY)


HERE, NEAR, FAR = problem(), problem(c=16, name="near"), problem(k=64, c=32, p=4, q=4, name="far")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of three problems, each in a folder."""
    folder = tmp_path_factory.mktemp("results")
    for of in (HERE, NEAR, FAR):
        search(of, 300).write(folder / of.workload.name)
    return folder


def score(folder: Path, name: str) -> float:
    return json.loads((folder / name / "result.json").read_text())["score"]


@pytest.mark.parametrize("searcher", ["sparsemap", "sparsemap-paper", "gamma", "islands", "nsga2"])
def test_a_search_is_never_worse_than_the_design_that_it_starts_from(folder: Path, searcher: str):
    result = search(HERE, 60, searcher=searcher, start=[folder / "layer"])
    assert result.found.score <= score(folder, "layer") and result.evaluations == 60
    assert result.start[0]["score"] <= score(folder, "layer") and result.start[0]["distance"] == 0


def test_a_design_of_the_same_problem_comes_first_and_as_it_was(folder: Path):
    run = Search(HERE, budget=10, start=[folder / "layer"])
    genomes = run.ask()
    assert genomes is not None
    found = HERE.evaluator.evaluate(genomes[:1])
    assert HERE.evaluator.score(found)[0] == score(folder, "layer")


def test_the_nearest_designs_of_a_folder_are_chosen(folder: Path):
    start = start_of(HERE, [folder], count=2)
    assert start is not None and [(x.workload, x.distance) for x in start.sources] == [("layer", 0), ("near", 1)]
    assert len(np.unique(start.genomes, axis=0)) == len(start.genomes) <= 16
    scaled = start_of(HERE, [folder], count=2, fill=False)
    assert scaled is not None and len(scaled.genomes) <= 4


@pytest.mark.parametrize("space", ["full", "small", "paper", "sage-like"])
def test_a_design_that_is_kept_starts_the_same_search_as_its_file(space: str):
    """The layers of a network begin with designs of earlier ones: kept in this process, or read after a stop."""
    one, other = (
        load_problem({"name": "layer", **LAYER, **changes}, "edge-16gbps", space, registry=REGISTRY)
        for changes in ({}, {"c": 16, "k": 24})
    )
    for row in one.space.sample(6, np.random.default_rng(3)):
        design = Design.of(one, one.space.decode(row[None]))
        read = design_file.structure(design_file.dump(design), REGISTRY)
        kept = design_file.as_read(design)
        ways = [transferred(other, x.batch, x.problem, np.random.default_rng(5), fill=True) for x in (kept, read)]
        assert np.array_equal(*ways)


def test_results_and_genomes_may_be_given_as_well(folder: Path):
    near = search(NEAR, 100)
    result = search(HERE, 60, start=[near])
    assert [row["workload"] for row in result.start] == ["near"] and result.start[0]["file"] == ""
    found = result.found
    assert search(HERE, 20, start=found.genome[None, :]).found.score <= found.score


def test_a_search_without_start_designs_is_what_it_was():
    plain = search(HERE, 50, seed=4)
    assert plain.start == () and "start" not in plain.to_dict()


def test_start_designs_count_and_stand_in_the_history(folder: Path):
    result = search(HERE, 100, start=[folder])
    start = start_of(HERE, [folder])
    assert start is not None and result.history[0].evaluations == len(start.genomes) and result.evaluations == 100
    assert search(HERE, 2, start=[folder]).evaluations == 2


def test_a_stopped_search_goes_on_with_its_start_designs_and_another_start_is_another_search(
    folder: Path, tmp_path: Path
):
    whole = search_into(tmp_path / "whole", HERE, 400, start=[folder / "near"])

    def stop(snapshot: Any) -> None:
        if snapshot.evaluations > 150:
            raise KeyboardInterrupt

    assert search_into(tmp_path / "part", HERE, 400, progress=stop, start=[folder / "near"]).interrupted
    with pytest.raises(SearchError, match="start is"):
        search_into(tmp_path / "part", HERE, 400, start=[folder / "far"])
    part = search_into(tmp_path / "part", HERE, 400, start=[folder / "near"])

    def plain(result: Result) -> dict[str, Any]:
        return {key: value for key, value in result.to_dict().items() if key != "seconds"}

    assert plain(part) == plain(whole)
    assert finished(tmp_path / "part", HERE, None, 400, 0, [folder / "near"])
    assert not finished(tmp_path / "part", HERE, None, 400, 0, [folder / "far"])
    assert not finished(tmp_path / "part", HERE, None, 400, 0)


def test_the_worst_half_of_the_first_batch_at_most_gives_way_to_valid_migrants():
    genomes = np.arange(4)[:, None]
    batch = Scored(genomes, np.array([3.0, np.inf, 1.0, 2.0]))
    migrants = Scored(genomes + 10, np.array([5.0, np.inf, 0.5, 0.7]))
    heard = mixed(batch, migrants)
    assert heard.genomes[:, 0].tolist() == [13, 12, 2, 3] and heard.scores.tolist() == [0.7, 0.5, 1.0, 2.0]
    assert mixed(batch, None) is batch


def test_what_a_search_cannot_start_from_is_said(folder: Path, tmp_path: Path):
    with pytest.raises(SearchError, match=r"searcher 'random' cannot start from designs; .*gamma.*sparsemap.* can"):
        search(HERE, 10, searcher="random", start=[folder])
    with pytest.raises(SearchError, match=r"there is no design in this folder; expected design.toml"):
        search(HERE, 10, start=[tmp_path])
    with pytest.raises(SearchError, match="no metric 'edot'; did you mean 'edit'"):
        start_of(HERE, [folder], metric="edot")
    other = load_problem("mm1", "clustered", registry=REGISTRY)
    with pytest.raises(DesignError, match=r"design.toml: the design does not have L4_T, L4_S"):
        search(other, 10, start=[folder])


def test_the_command_starts_from_files_and_says_from_which(folder: Path):
    args = ["search", "conv4", "edge-16gbps", "--budget", "60", "--start", str(folder), "--start-count", "2"]
    done = CliRunner().invoke(cli, args)
    assert done.exit_code == 0 and "start    " in done.stdout and "x of the end" in done.stdout
    table = json.loads(CliRunner().invoke(cli, [*args, "--no-fill", "--start-metric", "log", "--json"]).stdout)
    assert len(table["start"]) == 2 and {"file", "workload", "distance", "score"} == table["start"][0].keys()
    done = CliRunner().invoke(cli, ["search", "conv4", "edge", "--start", "nowhere.toml"])
    assert done.exit_code == 2 and "nowhere.toml: no such file" in done.stderr


def test_of_designs_that_are_equally_near_the_last_given_comes_first(folder: Path) -> None:
    near, far = (design_file.load(folder / name, REGISTRY) for name in ("near", "far"))
    given: list[Any] = [(near, "one", True), (far, "other", True), (near, "two", True), (near, "three", True)]
    found = nearest(HERE, given, "edit", 3)
    assert [file for _, (_, file, _) in found] == ["three", "two", "one"]
    assert [distance for distance, _ in found] == [found[0][0]] * 3
