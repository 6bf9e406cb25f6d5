"""Searches one after another in one process leave nothing behind, neither objects nor arrays, but bounded tables of tiles."""

import gc
import tracemalloc

import numpy as np
from sparsemap_plugins.analytic.occupancy.shared import MOST, SHARED

from sparsemap import load_problem, search
from sparsemap.pieces.loading import load

REGISTRY = load()
PAIRS = [("mm1", "cloud"), ("mm1", "edge"), ("conv11", "mobile")]


def objects_after(searches, same=None):
    for seed in range(searches):
        problem = same or load_problem(*PAIRS[seed % len(PAIRS)], registry=REGISTRY)
        search(problem, 20, seed)
    del problem
    SHARED.clear()
    gc.collect()
    return len(gc.get_objects())


def test_searches_of_many_problems_leave_no_objects():
    before = objects_after(6)  # caches of texts and of imports fill
    assert objects_after(15) - before < 12


def test_searches_of_one_problem_keep_no_more_than_its_tables():
    problem = load_problem("mm1", "cloud", registry=REGISTRY)
    before = objects_after(5, problem)
    assert objects_after(20, problem) - before < 20


def test_tables_that_problems_share_are_those_of_their_tensors_and_bounded():
    SHARED.clear()
    for _ in range(3):
        for names in PAIRS:
            search(load_problem(*names, registry=REGISTRY), 20, 0)
    kept, size = len(SHARED), SHARED.size
    for names in PAIRS:
        search(load_problem(*names, registry=REGISTRY), 20, 0)
    assert (len(SHARED), SHARED.size) == (kept, size)
    assert kept <= 4 * len(PAIRS) and 0 < size < MOST


def test_a_search_ends_the_same_after_others_in_its_process():
    """With a padded format over blocks: the units of its ranks depend on the fullest fiber of the tensor."""
    crisp = {"type": "crisp", "n": 1, "m": 2, "block": [2, 4], "keep": 1}
    workload = {"name": "w", "einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 12, "k": 24, "n": 8}}
    workload |= {"density": {"P": crisp, "Q": 0.4}}
    levels = [
        {"name": "D", "gate_skip": True},
        {"name": "B", "capacity": "512 words", "gate_skip": True, "fanout": 4},
        {"name": "C", "capacity": "64 words"},
    ]
    hardware = {"name": "h", "levels": levels, "compute": {"name": "M", "gate_skip": True}}
    space = {"name": "s", "extends": "full", "formats": {"candidates": ["uncompressed", "ellpack"]}}

    def made():
        return load_problem(workload, hardware, space, "energy", registry=REGISTRY)

    def found(seed):
        return search(made(), 100, seed).found.score

    rng = np.random.default_rng(5)
    genomes = made().space.repair(made().space.guess(200, rng), rng)
    costs = []
    for turn in (1, -1):
        SHARED.clear()
        costs.append(made().evaluator.evaluate(genomes[::turn]).energy_pj[::turn])
    assert np.array_equal(*costs, equal_nan=True) and np.isfinite(costs[0]).sum() > 50
    SHARED.clear()
    alone = found(2)
    SHARED.clear()
    assert [found(seed) for seed in range(3)][2] == alone


def test_searches_of_many_problems_leave_no_arrays():
    """NumPy's arrays, which the collector does not know."""

    def kib():
        traces = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)])
        return sum(trace.size for trace in traces.traces) / 1024

    tracemalloc.start()
    try:
        objects_after(len(PAIRS))  # caches fill
        before = kib()
        objects_after(len(PAIRS))
        each = (kib() - before) / len(PAIRS)
        assert each < 30  # of each new search less than the tables of a problem have (300 KiB and more)
    finally:
        tracemalloc.stop()
