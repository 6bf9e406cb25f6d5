"""Searches one after another in one process leave nothing behind: neither objects nor arrays."""

import gc
import tracemalloc

import numpy as np

from sparsemap import load_problem, search
from sparsemap.pieces.loading import load

REGISTRY = load()
PAIRS = [("mm1", "cloud"), ("mm3", "mobile"), ("conv4", "edge-16gbps")]


def objects_after(searches, same=None):
    for seed in range(searches):
        problem = same or load_problem(*PAIRS[seed % len(PAIRS)], registry=REGISTRY)
        search(problem, 20, seed)
    gc.collect()
    return len(gc.get_objects())


def test_searches_of_many_problems_leave_no_objects():
    before = objects_after(12)  # caches of texts and of imports fill
    assert objects_after(36) - before < 20


def test_searches_of_one_problem_keep_no_more_than_its_tables():
    problem = load_problem("mm1", "cloud", registry=REGISTRY)
    before = objects_after(5, problem)
    assert objects_after(30, problem) - before < 20


def test_searches_of_many_problems_leave_no_arrays():
    """NumPy's arrays, which the collector does not know."""

    def kib():
        traces = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)])
        return sum(trace.size for trace in traces.traces) / 1024

    tracemalloc.start()
    try:
        objects_after(12)  # caches fill
        before = kib()
        objects_after(24)
        assert kib() - before < 12 * 30  # of each new search less than the tables of a problem have (300 KiB and more)
    finally:
        tracemalloc.stop()
