"""The bridge between a loop that another package owns and a search: turns, errors, and a clean end."""

import threading

import numpy as np
import pytest
from sparsemap_plugins.searchers.baselines.reinforcement import bridge

from sparsemap import Scored


def scored(genomes):
    return Scored(genomes, genomes.sum(axis=1).astype(float))


def test_the_loop_asks_and_is_answered_in_turn():
    heard = []

    def run(score):
        for value in (1, 2, 3):
            heard.extend(score(np.full((2, 3), value)))

    proposals = bridge(run)
    genomes = next(proposals)
    with pytest.raises(StopIteration):
        while True:
            genomes = proposals.send(scored(genomes))
    assert heard == [3, 3, 6, 6, 9, 9]


def test_designs_that_were_not_evaluated_count_as_invalid():
    heard = []
    proposals = bridge(lambda score: heard.extend(score(np.ones((3, 2)))))
    with pytest.raises(StopIteration):
        proposals.send(scored(next(proposals)[:1]))
    assert heard == [2.0, np.inf, np.inf]


def test_an_error_in_the_loop_is_raised_in_the_search():
    def run(score):
        score(np.ones((1, 1)))
        raise ZeroDivisionError("oops")

    proposals = bridge(run)
    with pytest.raises(ZeroDivisionError, match="oops"):
        proposals.send(scored(next(proposals)))


def test_closing_ends_the_loop_where_it_waits_and_its_thread():
    ended = []

    def run(score):
        try:
            while True:
                score(np.ones((1, 1)))
        finally:
            ended.append(True)

    before = threading.active_count()
    proposals = bridge(run)
    proposals.send(scored(next(proposals)))
    proposals.close()
    assert ended == [True]
    assert threading.active_count() == before


def test_a_loop_that_catches_exceptions_is_ended_all_the_same():
    def run(score):
        while True:
            try:
                score(np.ones((1, 1)))
            except Exception:
                continue

    before = threading.active_count()
    proposals = bridge(run)
    next(proposals)
    proposals.close()
    assert threading.active_count() == before
