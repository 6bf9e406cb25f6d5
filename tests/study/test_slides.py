"""How much of a tensor lives while it slides by: the formula against a walk that keeps sets of rows."""

from __future__ import annotations

import random

import pytest

from sparsemap.errors import SpecError
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.load import load_problem
from sparsemap.problem.network import Node, nodes_of
from sparsemap.study.slides import Slide, outermost, sliced, slides


def walked(rows: int, steps: int, stride: int, reach: int, made: int, taken: int) -> int:
    """Both run in turns; a row is given up as soon as no later step needs it."""
    padding, there, most, done = max(0, stride * (steps - 1) + reach - rows) // 2, set[int](), 0, 0
    needs = [
        {r for r in range(stride * i - padding, stride * i - padding + reach) if 0 <= r < rows} for i in range(steps)
    ]
    for first in range(0, steps, taken):
        while True:
            there = {row for row in there if row >= stride * first - padding}
            if set().union(*needs[first : first + taken]) <= there:
                break
            there |= set(range(done, done + made))
            done += made
            most = max(most, len(there))
    return most


@pytest.mark.parametrize("seed", range(200))
def test_what_lives_is_what_a_walk_keeps(seed: int) -> None:
    rng = random.Random(seed)
    stride, reach, taken, turns = rng.randint(1, 3), rng.randint(1, 5), rng.randint(1, 4), rng.randint(1, 5)
    steps = taken * turns
    made = rng.randint(1, 5)
    rows = made * max(1, (stride * (steps - 1) + reach - rng.randint(0, max(reach - stride, 0))) // made)
    slide = Slide("p", "p", rows, steps, stride, reach, 1)
    assert slide.live(made, taken) == walked(rows, steps, stride, reach, made, taken)


def node(table: dict) -> Node:
    problem = load_problem(table, "small")
    return Node("layer", problem.workload, problem.loops, (), 1)


CHAIN = {"type": "conv2d", "k": 8, "c": 4, "p": 8, "q": 8, "r": 3, "s": 3, "padding": 1}


def test_rows_columns_and_channels_slide_by() -> None:
    first, second = (node({**CHAIN, "k": k, "c": c}) for k, c in ((8, 4), (4, 8)))
    assert [(s.made, s.taken, s.rows, s.reach, s.across) for s in slides(first, second, "P")] == [
        ("k", "c", 8, 1, 64),
        ("p", "p", 8, 3, 64),
        ("q", "q", 8, 3, 64),
    ]
    assert [s.made for s in slides(first, second, "P", sums=False)] == ["p", "q"]  # sums of channels have no place
    depthwise = node({"type": "depthwise", "c": 8, "p": 8, "q": 8})
    assert [s.made for s in slides(first, depthwise, "P")] == ["k", "p", "q"]
    assert slides(second, second, "P") == ()  # four channels are not eight


def test_pools_and_sums_let_tensors_slide_by() -> None:
    def operation(table: dict, shape: tuple[int, ...]) -> Node:
        return Node("o", load().build("operation", table), None, (), 1, (), shape)

    first, after = (node({**CHAIN, "k": k, "c": c, "p": p, "q": p}) for k, c, p in ((8, 4, 8), (4, 8, 4)))
    pool = operation({"type": "max-pool", "r": 2, "s": 2, "stride": 2}, (8, 4, 4))
    assert [(s.made, s.taken, s.steps, s.live(2, 1)) for s in slides(first, pool)] == [
        ("k", "0", 8, 2),
        ("p", "1", 4, 2),
        ("q", "2", 4, 2),
    ]
    assert [(s.made, s.taken) for s in slides(pool, after, "P")] == [("0", "c"), ("1", "p"), ("2", "q")]
    total = operation({"type": "add"}, (8, 8, 8))
    assert [(s.taken, s.live(4, 4)) for s in slides(first, total)] == [("0", 4), ("1", 4), ("2", 4)]
    mean = operation({"type": "global-average"}, (8, 1, 1))
    assert slides(first, mean) == ()


def test_scores_of_a_single_head_slide_by_their_rows() -> None:
    """A single product has no rank of heads, neither in its loops nor in the network."""
    attention = [
        {"name": "scores", "type": "matmul", "m": 8, "k": 4, "n": 16, "inputs": ["input", "keys"]},
        {"name": "softmax", "type": "softmax"},
        {"name": "context", "type": "matmul", "m": 8, "k": 16, "n": 4, "inputs": ["softmax", "values"]},
    ]
    outside = [{"name": name, "type": "outside", "shape": [16, 4], "inputs": []} for name in ("keys", "values")]
    registry = load()
    table = {"name": "head", "input": [8, 4], "layers": [*outside, *attention]}
    *_, scores, softmax, context = nodes_of(registry.build("network", table), registry)
    assert scores.shape == (8, 16)
    assert [slide.name for slide in slides(scores, softmax)] == ["rows"]
    assert "rows" in [slide.name for slide in slides(softmax, context, "P")]


def test_designs_that_walk_along_a_dimension_first() -> None:
    problem = load_problem(CHAIN, "small", "paper")
    import numpy as np

    genomes = [tuple(g) for g in problem.space.guess(20, np.random.default_rng(0)).tolist()]
    found = problem.space.decode(np.array(sliced(problem, genomes, ["p", "q"])))
    loops = outermost(problem, found)
    assert {loop[0] for loop in loops if loop} == {"p", "q"} and {loop[1] for loop in loops if loop} == {2, 4, 8}
    assert np.array_equal(found.columns["bounds"].prod(axis=0), np.full((6, len(found)), 1.0) * np.array(
        [[problem.sizes[d]] for d in problem.dims]
    ))  # fmt: skip


def table(order: list[str], **workload: object) -> dict:
    return {
        "cost_model": "timeloop",
        "workload": {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 8, "k": 4, "n": 4},
                     "density": {"P": 1.0, "Q": 1.0}, "resides": {"P": "Buffer"}, **workload},
        "hardware": "small",
        "mapping": {"L1_T": order, "L2_T": ["m=2", "n=2", "k=4"]},
        "formats": {t: ["uncompressed"] * 5 for t in "PQZ"},
        "beyond_format": "uncompressed",
        "gate_skip": {"Buffer": "none", "MAC": "none"},
    }  # fmt: skip


def test_the_outermost_loop_walks_along_what_slides_by_and_one_turn_of_it_takes_room() -> None:
    def evaluated(order: list[str], **workload: object):
        design = design_file.structure(table(order, **workload), load())
        return design.problem.evaluator.evaluate_designs(design.batch, detail=True)

    right, wrong = (evaluated(order, slides={"P": "m"}) for order in (["m=4", "n=2"], ["n=2", "m=4"]))
    assert right.valid[0] and not wrong.valid[0]
    assert wrong.reasons_of(0) == ("slides:P",)
    whole = evaluated(["m=4", "n=2"])
    assert (right.energy_pj[0], right.cycles[0]) == (whole.energy_pj[0], whole.cycles[0])
    assert (whole.detail.data_words_max - right.detail.data_words_max)[0, 1, 0] == 32 - 2 * 4
    with pytest.raises(SpecError, match=r"slides.P: .*'n'"):
        evaluated(["m=4", "n=2"], slides={"P": "n"})
    with pytest.raises(SpecError, match="'Q' resides in no level"):
        evaluated(["m=4", "n=2"], slides={"Q": "n"})
