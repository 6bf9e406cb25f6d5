"""Without sparsity the model and the simulator must agree on every count, and the simulator with a walk by hand."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sparsemap_plugins.verify import verify
from sparsemap_plugins.verify.nest import ExecutedNest
from sparsemap_plugins.verify.simulate import Simulation
from verify_designs import EINSUMS, build, example, random_design

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=16)


def not_exact(found):
    off = [row for row in found.rows if row.verdict != "exact"]
    return [(row.quantity, row.level, row.tensor, row.expected, row.mean) for row in off]


@few
@given(seeds, st.integers(2, 4), st.sampled_from(["matmul", "batched"]), st.booleans())
def test_counts_cycles_and_energy_are_those_of_the_model(seed, levels, kind, bypass):
    problem, designs = build(random_design(kind, seed, levels=levels, bypass=bypass))
    found = verify(problem, designs, trials=1, seed=seed)
    assert found.correct
    assert not_exact(found) == []


def windows_are_simple(nest):
    """Whether the model is exact for sliding windows; both must hold at every level that feeds another storage level.

    Q1: whenever a loop outside the child's tile advances, and all loops inside it start again, the words that the new
    tile shares with the last one are as many as the model says: those of the innermost loop's step if the model's step
    (each inner loop going back one iteration) is equal to that, else none.
    Q2: no two children of one instance with different tiles share a word.
    """
    for t in range(len(nest.access)):
        if nest.plain(t):
            continue
        stored = nest.stored(t)
        for parent, child in itertools.pairwise(stored):
            widths = np.array(nest.tile(t, child))
            columns = nest.access[t].T

            def shared(step, widths=widths):
                return math.prod(int(x) for x in np.maximum(0, widths - np.abs(step)))

            back = back_in_model = np.zeros(len(widths), dtype=int)
            first = None
            for loop in reversed([loop for loop in nest.block(0, child) if not loop.spatial]):
                step = columns[loop.axis] * loop.stride
                first = step if first is None else first
                kept = shared(first) if np.array_equal(step - back_in_model, first) else 0
                if shared(step - back) != kept:
                    return False
                back, back_in_model = back + (loop.bound - 1) * step, back_in_model + step
            fan = nest.instances(child) // nest.instances(parent)
            places = np.unique(nest.offsets(child, spatial=True)[:fan] @ columns, axis=0)
            if any(shared(a - b) for a, b in itertools.combinations(places, 2)):
                return False
    return True


@few
@given(seeds, st.integers(2, 3), st.sampled_from(["conv", "strided"]))
def test_windows_are_exact_where_the_overlap_is_simple(seed, levels, kind):
    problem, designs = build(random_design(kind, seed, levels=levels))
    found = verify(problem, designs, trials=1)
    assert found.correct
    if windows_are_simple(ExecutedNest(problem, designs)):
        assert not_exact(found) == []
    for row in found.rows:
        if row.tensor and row.verdict != "exact":
            # Q1 errs either way: it misses overlap, and sees some where inner loops go back by several iterations
            parts = dict(row.parts)
            assert parts.keys() <= {"Q1", "Q2"}
            assert parts.get("Q2", 0) <= 0
            assert row.unexplained == pytest.approx(0)


@few
@given(seeds, st.integers(1, 3), st.integers(0, 2), st.sampled_from([0, 1, [[0, 1], [2, 0]]]))
def test_padding_and_holes_do_not_move(seed, rows, columns, padding):
    EINSUMS["conv2d"] = ("Z[k, p, q] = P[c, p + r, q + s] * Q[k, c, r, s]", ("k", "c", "p", "q", "r", "s"))
    table = random_design("conv2d", seed, sizes=(1, 2, 3, 4))
    layer = {"type": "conv2d", "stride": [rows, columns + 1], "padding": padding, "density": {}}
    table["workload"] = {**layer, **table["workload"]["dims"]}
    problem, designs = build(table | {"cost_model": {"type": "analytic", "charges": ["holes"]}})
    found = verify(problem, designs, trials=1)
    assert found.correct
    if windows_are_simple(ExecutedNest(problem, designs)):
        assert [row for row in not_exact(found) if row[3] != pytest.approx(row[4], rel=1e-9)] == []


def test_enough_random_windows_are_simple():
    problems = [build(random_design(kind, seed)) for kind in ("conv", "strided") for seed in range(20)]
    assert sum(windows_are_simple(ExecutedNest(*problem)) for problem in problems) > 5


def walk(nest, t, parent, child):
    """Words read by all parents and filled into all children, with sets, step by step."""
    shape = nest.shape(t)
    steps = nest.offsets(child, spatial=False) @ nest.access[t].T
    places = nest.offsets(child, spatial=True) @ nest.access[t].T
    box = [np.array(i) for i in itertools.product(*map(range, nest.tile(t, child)))]
    held = [set() for _ in places]
    read = filled = 0
    fan = len(places) // nest.instances(parent)
    for step in steps:
        for first in range(0, len(places), fan):
            wanted = set()
            for i in range(first, first + fan):
                tile = {int(np.ravel_multi_index(tuple(step + places[i] + word), shape)) for word in box}
                filled += len(tile - held[i])
                wanted |= tile - held[i]
                held[i] = tile
            read += len(wanted)
    return read, filled


@settings(max_examples=15)
@given(seeds, st.sampled_from(["conv", "strided", "matmul"]), st.booleans())
def test_operand_traffic_is_that_of_a_walk_with_sets(seed, kind, bypass):
    problem, designs = build(random_design(kind, seed, sizes=(1, 2, 3, 4), levels=3, bypass=bypass))
    sim = Simulation(problem, designs)
    for t in sim.nest.operands:
        for parent, child in itertools.pairwise(sim.nest.stored(t)):
            read, filled = walk(sim.nest, t, parent, child)
            assert sim.dense["read", parent, t][0] == read
            assert sim.dense["fill", child, t][0] == filled


def test_example_12_1():
    found = verify(*build(example()), trials=1)
    assert not_exact(found) == []
    counts = {(row.level, row.tensor, row.quantity): row.mean for row in found.rows}
    assert counts["GLB", "Q", "read"] == 128
    assert counts["PEB", "Z", "read"] == 4 * 56
    assert counts["PEB", "Q", "fill"] == 4 * 32
    assert found.row("cycles").mean == 96
    assert found.row("energy_pj").mean == 15344


def sliding(**mapping):
    """Example 12.10: W[k, r], I[p + r], O[k, p] with K = 2, P = 4, R = 3."""
    table = example()
    table["workload"] = {
        "name": "sliding",
        "einsum": "O[k, p] = W[k, r] * I[p + r]",
        "dims": {"k": 2, "p": 4, "r": 3},
        "density": {"W": 1.0, "I": 1.0, "O": 1.0},
    }
    table["hardware"]["levels"][1]["fanout"] = 6
    table["formats"] = dict.fromkeys(("W", "I", "O"), table["formats"]["P"])
    return {**table, "mapping": {"L1_T": ["k=2"], "L3_T": ["p=2"], **mapping}}


def test_example_12_10_shows_how_much_the_windows_cost():
    over_time = verify(*build(sliding(L2_T=["p=2", "r=3"])), trials=1)
    row = over_time.row("read", "GLB", "I")
    # when p advances, r goes back by two: the new tile is the one that is there. The model lets r go back by one
    assert (row.expected, row.mean, row.parts) == (14, 12, (("Q1", -2.0),))
    spread = verify(*build(sliding(L2_S=["p=2", "r=3"])), trials=1)
    row = spread.row("read", "GLB", "I")
    assert (row.expected, row.mean, row.parts) == (10, 6, (("Q2", -4.0),))
    assert row.verdict == "explained"
    assert spread.row("fill", "PEB", "I").verdict == "exact"
