"""A search that proves ends at the optimum of problems whose every design can be tried, and says what is left of others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sparsemap_plugins.searchers.baselines.exhaustive import Enumeration

import sparsemap
from sparsemap.pieces.loading import load
from sparsemap.searching.folder import search_into

REGISTRY = load()
PRODUCT = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 4, "k": 2, "n": 2}, "density": {"P": 0.5, "Q": 0.5}}
SMALL = {
    "product": PRODUCT,
    "sparse": PRODUCT | {"dims": {"m": 2, "k": 8, "n": 1}, "density": {"P": 0.2, "Q": 0.7}},
    "window": {"einsum": "Z[p] = P[p + r] * Q[r]", "dims": {"p": 4, "r": 3}, "density": {"P": 0.6, "Q": 0.5}},
}
HARDWARE = {
    "technology": "12nm-recommended",
    "levels": [
        {"name": "DRAM", "class": "dram", "bandwidth": "0.5 words/cycle"},
        {"name": "GLB", "class": "sram", "capacity": "32 B", "fanout": 2, "gate_skip": True, "double_buffered": True},
    ],
    "compute": {"name": "MAC", "gate_skip": True},
}
SPACE = {"extends": "small", "gate-skip": {"candidates": ["none", "gate-both", "skip-both"]}}
PROVE = {"type": "prove", "within": 1.0, "searcher": "sparsemap"}


def small(name: str, objective: str = "edp") -> sparsemap.Problem:
    return sparsemap.load_problem(SMALL[name], HARDWARE, SPACE, objective, "physical", registry=REGISTRY)


def optimum(problem: sparsemap.Problem) -> float:
    evaluator, parts = problem.evaluator, Enumeration(problem.space).genomes()
    return min(float(evaluator.score(evaluator.evaluate(part)).min()) for part in parts)


def assert_proves(name: str, seeds: range) -> None:
    problem = small(name)
    best = optimum(problem)
    for seed in seeds:
        result = sparsemap.search(problem, 20_000, seed, PROVE)
        assert result.best is not None and result.best.score == best
        assert result.proof is not None and result.proof.proved and result.gap == 1.0
        assert result.evaluations < 20_000


@pytest.mark.parametrize("name", SMALL)
def test_the_optimum_of_a_small_problem_is_found_and_proved(name) -> None:
    assert_proves(name, range(2))


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_the_optimum_of_a_small_problem_is_found_and_proved_with_more_seeds(name) -> None:
    assert_proves(name, range(2, 12))


def test_only_designs_of_classes_that_are_kept_are_walked() -> None:
    """And all of them: the classes that are kept and those that are not make up the space."""
    problem = small("product")
    classes, space = problem.classes, problem.space
    assert classes is not None
    chosen = np.isin(np.arange(len(classes.least)), classes.ranking[::2])
    counts = []
    for wanted in (chosen, ~chosen):
        tree = Enumeration(space, keep=lambda designs, w=wanted: w[classes.of(designs)], reads=classes.known.reads)
        parts = list(tree.genomes())
        assert all(wanted[classes.of(space.decode(part))].all() for part in parts)
        counts.append(sum(map(len, parts)))
        assert tree.count(np.random.default_rng(0), 2048) == pytest.approx(counts[-1], rel=0.3)
    assert sum(counts) == sum(map(len, Enumeration(space).genomes())) and min(counts) > 0


def test_a_search_that_is_near_enough_to_its_bound_ends_before_its_budget() -> None:
    problem = sparsemap.load_problem("mm12", "edge", registry=REGISTRY)
    result = sparsemap.search(problem, 5000, 0, PROVE | {"within": 1.05})
    assert result.proof is not None and result.proof.proved and result.evaluations < 5000
    assert result.gap <= 1.05 and not len(result.proof.left)
    gaps = [gap for _, gap in result.proof.progress]
    assert gaps == sorted(gaps, reverse=True) and gaps[-1] <= 1.05
    assert "x of the optimum for these sizes: " in result.proof.text


def test_what_a_search_has_not_ruled_out_is_said(tmp_path: Path) -> None:
    problem = sparsemap.load_problem("mm1", "mobile", registry=REGISTRY)
    result = search_into(tmp_path, problem, 600, 0, PROVE)
    proof = result.proof
    assert proof is not None and not proof.proved and len(proof.left) and not proof.tried.any()
    assert f"{len(proof.left):,} of {len(proof.least):,} classes of designs are left" in proof.text
    table = json.loads((tmp_path / "certificate.json").read_text())
    assert not table["proved"] and table["classes"]["by"].count("left") == len(proof.left)
    assert json.loads((tmp_path / "result.json").read_text())["proof"]["left"] == len(proof.left)


def test_several_objectives_have_nothing_to_prove_with() -> None:
    problem = sparsemap.load_problem("mm1", "edge", objective="pareto:energy,delay", registry=REGISTRY)
    with pytest.raises(sparsemap.SearchError, match="nothing to prove with"):
        sparsemap.search(problem, 100, 0, PROVE)
