"""Parts of the lower bound against counts of their own: too low is as wrong as too high, though no design shows it."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from sparsemap_plugins.analytic.bound_filters import LeastAccesses
from sparsemap_plugins.analytic.bound_tiles import TileGrid, delivered
from sparsemap_plugins.analytic.bound_words import code_bits

import sparsemap
from sparsemap.pieces.loading import load

REGISTRY = load()
BEST_KNOWN = {
    ("mm7", "edge"): (3.644e17, 1.28), ("mm12", "mobile"): (2.936e11, 1.028), ("mm7", "mobile"): (1.231e12, 2.01),
    ("conv8", "mobile"): (4.929e14, 1.51), ("mm10", "mobile"): (1.463e20, 1.108), ("mm11", "cloud"): (5.121e7, 1.82),
    ("conv10", "cloud"): (3.284e13, 1.132), ("mm14", "cloud"): (1.203e13, 1.096), ("mm15", "cloud"): (2.028e18, 1.116),
}  # fmt: skip
"""EDP, and how far the bound is below it."""


@pytest.mark.parametrize("cell", BEST_KNOWN)
def test_the_bound_is_as_near_to_the_best_known_design_as_it_has_been(cell) -> None:
    edp, gap = BEST_KNOWN[cell]
    assert edp / gap < sparsemap.load_problem(*cell, registry=REGISTRY).bound <= edp


@pytest.mark.parametrize("innermost", ["m", "k", "n"])
def test_what_a_tile_brings_is_the_least_over_all_orders_of_the_loops_around_it(innermost) -> None:
    """Loops of 2, 3 and 4 steps around a tile of 6 x 2 x 3, walked step by step: a tensor comes when its place changes."""
    sizes, tile = {"m": 12, "k": 6, "n": 12}, {"m": 6, "k": 2, "n": 3}
    problem = sparsemap.load_problem(
        {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": sizes, "density": {"P": 0.5, "Q": 0.5}},
        "edge", registry=REGISTRY,
    )  # fmt: skip
    layout = problem.cost_model._prepared(problem).layout
    grid = TileGrid.of(layout)
    assert grid is not None
    extents = np.array([[float(tile[dim])] for dim in problem.dims])
    loops = layout.sizes[:, None] / extents
    for t, tensor in enumerate(problem.tensors):
        words, own = grid.words(extents)[t], [dim for ((dim, _),) in tensor.ranks]
        found = delivered(layout, t, words, grid.widths(t, extents), extents, loops, single=True)
        walks = []
        for outer in itertools.permutations(d for d in sizes if d != innermost):
            order = (*outer, innermost)
            steps = itertools.product(*(range(sizes[d] // tile[d]) for d in order))
            places = [tuple(step[order.index(d)] for d in own) for step in steps]
            walks.append(sum(a != b for a, b in itertools.pairwise([None, *places])))
        assert found[problem.dims.index(innermost)][0] == words[0] * min(walks)


def test_a_one_to_one_code_is_no_shorter_than_the_bound_and_hardly_longer() -> None:
    """Of so many equally likely values the shortest names are those of 0, 1, 1, 2, 2, 2, 2 .. bits."""
    for bits in range(1, 15):
        mean = np.floor(np.log2(np.arange(1, 2**bits + 1))).mean()
        assert mean - 1.0 - math.log2(1.0 + bits) < code_bits(np.array([float(bits)]))[0] <= mean
    assert code_bits(np.array([-3.0]))[0] == 0.0


@pytest.mark.parametrize(("stride", "taps"), [(1, 3), (2, 3), (3, 2), (2, 1)])
def test_words_that_some_compute_touches(stride, taps) -> None:
    spec = {
        "einsum": f"Z[p, q] = P[{stride}*p + r, q] * Q[r]", "dims": {"p": 5, "q": 2, "r": taps},
        "density": {"P": 0.5, "Q": 0.5},
    }  # fmt: skip
    problem = sparsemap.load_problem(spec, "edge", registry=REGISTRY)
    found = LeastAccesses(*(getattr(problem.cost_model._prepared(problem), name) for name in ("layout", "places")))
    assert found.touched[0] == 2 * len({stride * p + r for p in range(5) for r in range(taps)})


def test_filters_of_several_levels_leave_what_the_strongest_does() -> None:
    """Q waits for P at two levels, and at one for P and the output: what remains is what both together leave, not less."""
    leaders = {"P": 0.5, "Z": 0.25}

    class One(LeastAccesses):
        def __init__(self, actions) -> None:
            self.layout = SimpleNamespace(relevant=np.zeros((3, 1), bool), ranks=[[], [], []], D=1)
            self.densities, self.actions = [leaders["P"], 1.0, leaders["Z"]], actions

        def filters(self, t, level):
            return [SimpleNamespace(leaders=own) for own in self.actions]

        def _there(self, c, words):
            return np.full(words.shape, self.densities[c])

    assert One([(0,), (0,)]).kept(1, 2)[0] == 0.5
    assert One([(0,), (0, 2)]).kept(1, 2)[0] == 0.125
    assert One([]).kept(1, 2)[0] == 1.0
