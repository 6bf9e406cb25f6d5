"""Several threads may evaluate on one problem; they get the numbers that one alone gets, and so does who comes after."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError

import numpy as np
import pytest

from sparsemap import load_problem, search
from sparsemap.pieces.loading import load

REGISTRY = load()
THREADS = 4


@pytest.fixture
def eager_threads():
    """Threads that change as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("workload, hardware", [("mm3", "cloud"), ("conv4", "mobile")])
def test_threads_on_one_problem_get_the_numbers_of_one_alone(workload: str, hardware: str, eager_threads: None) -> None:
    def problem():
        return load_problem(workload, hardware, registry=REGISTRY)

    rng = np.random.default_rng(2)
    space = problem().space
    batches = [space.repair(space.guess(60, rng), rng) for _ in range(4)]
    alone = problem()
    expected = [alone.evaluator.evaluate(batch).energy_pj.tolist() for batch in batches]
    for _ in range(3):
        shared, start = problem(), Barrier(THREADS)

        def evaluate(first: int, shared=shared, start=start) -> list[list[float]]:
            start.wait()
            order = np.roll(np.arange(len(batches)), first)
            found = {i: shared.evaluator.evaluate(batches[i]).energy_pj.tolist() for i in order.tolist()}
            return [found[i] for i in range(len(batches))]

        with ThreadPoolExecutor(THREADS) as pool:
            for found in pool.map(evaluate, range(THREADS)):
                assert found == expected
        assert [shared.evaluator.evaluate(batch).energy_pj.tolist() for batch in batches] == expected


def test_threads_search_on_one_problem_as_one_alone(eager_threads: None) -> None:
    def best(seed: int) -> list[int]:
        return search(shared, budget=200, seed=seed).best.genome.tolist()

    shared = load_problem("mm12", "mobile", registry=REGISTRY)
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(best, range(THREADS)))
    assert together == [best(seed) for seed in range(THREADS)]


def test_what_a_problem_remembers_is_made_once() -> None:
    problem, start, made = load_problem("mm1", "mobile", registry=REGISTRY), Barrier(2), []
    waiting = Barrier(2, timeout=0.2)

    def make() -> object:
        made.append(None)
        with suppress(BrokenBarrierError):
            waiting.wait()  # until the other thread makes the same thing, which it must not
        return object()

    def ask(_: int) -> object:
        start.wait()
        return problem.remember((Barrier,), make)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(ask, range(2))
    assert first is second and len(made) == 1
