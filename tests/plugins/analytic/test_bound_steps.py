"""Steps of the lower bound: the same compiled and as they stand, and what they say by counts of their own."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sparsemap_plugins.analytic import bound, bound_inner, bound_tiles, bound_units
from sparsemap_plugins.analytic.inner import bound_grid, bound_shares, functions

import sparsemap
from sparsemap.pieces.loading import load

REGISTRY = load()
PLAIN = SimpleNamespace(**{name: getattr(part, name) for part in (bound_grid, bound_shares) for name in part.__all__})
FOUR = {
    "einsum": "Z[i,j] = P[i,k] * Q[k,j] * R[i,j] * S[k,i]",
    "dims": {"i": 4, "j": 4, "k": 6},
    "density": {"P": 0.2, "Q": 0.3, "R": 0.5, "S": 0.4},
}
WINDOW = {
    "einsum": "O[n,p] = I[c,p+r] * W[n,c,r]",
    "dims": {"n": 4, "c": 6, "p": 4, "r": 3},
    "density": {"I": 0.1, "W": 0.2},
}
PRODUCT = {"einsum": "Z[m,n] = P[m,k] * Q[k,n]", "dims": {"m": 8, "k": 12, "n": 6}, "density": {"P": 0.02, "Q": 0.3}}


@pytest.mark.parametrize("workload", [FOUR, WINDOW, PRODUCT], ids=["four operands", "window", "product"])
@pytest.mark.parametrize("cost_model", ["physical", "timeloop"])
def test_bounds_are_the_same_compiled_and_as_they_stand(workload, cost_model, monkeypatch):
    """Of blocks of tiles that are full and that are not."""
    found = []
    for steps in (functions, PLAIN):
        for module in (bound_inner, bound_tiles, bound_units):
            monkeypatch.setattr(module, "functions", steps)
        problem = sparsemap.load_problem(workload, "mobile", cost_model=cost_model, registry=REGISTRY)
        made = problem.cost_model._bound(problem)
        parts = *made.by_class(), made.energy_pj, made.cycles, *made.links.promise
        found.append([part.tobytes() for part in parts])
    assert found[0] == found[1]


def test_the_number_of_tiles_tried_together_does_not_matter(monkeypatch):
    found = []
    for block, at_once in ((bound_inner.BLOCK, bound_tiles.AT_ONCE), (7, 10)):
        monkeypatch.setattr(bound_inner, "BLOCK", block)
        for module in (bound_inner, bound_tiles):
            monkeypatch.setattr(module, "AT_ONCE", at_once)
        problem = sparsemap.load_problem(PRODUCT, "mobile", registry=REGISTRY)
        found.append(b"".join(part.tobytes() for part in problem.cost_model._bound(problem).by_class()))
    assert found[0] == found[1]


def test_a_front_has_the_pairs_that_no_other_beats():
    rng = np.random.default_rng(0)
    for n, kinds in ((1, 1), (50, 4), (400, 30), (30, 2)):
        energy, cycles = rng.integers(0, kinds, (2, n)).astype(np.float64)
        energy[rng.random(n) < 0.1], cycles[rng.random(n) < 0.1] = np.inf, np.inf
        some = {(e, c) for e, c in zip(energy.tolist(), cycles.tolist(), strict=True) if c < np.inf}
        left = [one for one in some if not any(o != one and o[0] <= one[0] and o[1] <= one[1] for o in some)]
        assert [*zip(*map(np.ndarray.tolist, bound.front(energy, cycles)), strict=True)] == sorted(left)


def test_neighbours_of_a_long_front_are_merged_to_the_least_of_each(monkeypatch):
    monkeypatch.setattr(bound, "MOST_PAIRS", 3)
    energy = np.arange(8.0)
    found = bound.front(energy, 9.0 - energy)
    assert found[0].tolist() == [0.0, 3.0, 6.0] and found[1].tolist() == [7.0, 4.0, 2.0]


@pytest.mark.parametrize("steps", [functions, PLAIN], ids=["compiled", "plain"])
def test_columns_that_others_beat_are_found(steps):
    rows = np.random.default_rng(1).integers(0, 4, (3, 40)).astype(np.float64)
    found = np.empty(40, np.uint8)
    steps.beaten(rows, found)
    for i, own in enumerate(rows.T):
        others = [(j, other) for j, other in enumerate(rows.T) if (other <= own).all()]
        assert found[i] == any(j < i or (other < own).any() for j, other in others)
