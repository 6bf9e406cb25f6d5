"""Searches one after another in one process leave nothing behind."""

import gc

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
    before = objects_after(9)  # caches of texts and of imports fill
    assert objects_after(24) - before < 20


def test_searches_of_one_problem_keep_no_more_than_its_tables():
    problem = load_problem("mm1", "cloud", registry=REGISTRY)
    before = objects_after(5, problem)
    assert objects_after(20, problem) - before < 20
