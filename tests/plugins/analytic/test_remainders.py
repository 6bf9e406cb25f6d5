"""Loops that end with the data: counts of the model against those of a walk (docs/model.md, `remainders`)."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest
from charged import cost, made, product
from reference_remainders import walked

WIDE = {"capacity": "1 MB", "gate_skip": True}
THREE = [
    {"name": "DRAM", "class": "dram"},
    {"name": "Shared", "class": "sram", "fanout": 27, **WIDE},
    {"name": "Buffer", "class": "sram", "fanout": 27, **WIDE},
]
DENSE = (1.0, 1.0)


def test_four_lanes_take_two_turns_for_five() -> None:
    table = {"workload": product(DENSE, m=5), "padding": {"m": 8}, "mapping": {"L2_T": ["m=2"], "L2_S": ["m=4"]}}
    found = cost(table, "remainders")
    assert (found.detail.compute_cycles[0], found.detail.computes[0]) == (2, 5)
    padded = cost(table)
    assert (padded.detail.compute_cycles[0], padded.detail.computes[0]) == (2, 8)
    assert found.energy_pj[0] < padded.energy_pj[0]


def test_two_loops_in_time_end_after_five_of_six_steps() -> None:
    table = {"workload": product(DENSE, m=5), "padding": {"m": 6}, "mapping": {"L1_T": ["m=2"], "L2_T": ["m=3"]}}
    assert cost(table, "remainders").cycles[0] == 5
    assert cost(table).cycles[0] == 6


def test_words_behind_the_end_do_not_move_and_a_tile_that_nobody_asks_for_is_not_sent_again() -> None:
    """Q is sent for each of the turns of m that there are: three rows of m = 2, 2 and 1, not four."""
    table = {
        "workload": product(DENSE, m=5, k=4), "padding": {"m": 8}, "mapping": {"L1_T": ["m=4", "k=4"], "L2_T": ["m=2"]},
    }  # fmt: skip
    p, q, z = (cost(table, "remainders").detail.cells[t] for t in range(3))
    assert (p[0].read[0], p[1].fill[0], p[1].read[0]) == (20, 20, 20)
    assert (q[0].read[0], q[1].fill[0], q[1].read[0]) == (12, 12, 20)
    assert (z[0].update[0], z[1].update[0]) == (20, 20) or (z[0].update[0], z[1].update[0]) == (5, 20)


def test_a_size_that_is_not_padded_has_no_remainders() -> None:
    table = {"workload": product(DENSE, m=4, k=4), "mapping": {"L2_T": ["m=4", "k=4"]}}
    assert cost(table, "remainders").energy_pj[0] == cost(table).energy_pj[0]


def random_nest(rng: random.Random) -> tuple[dict[str, int], dict[str, int], dict[str, list[str]], list[Any]]:
    """Ends, padded sizes, the mapping as a design file has it, and as the walk does."""
    ends, sizes, bounds = {}, {}, {}
    for dim in "mkn":
        factors = [rng.choice([1, 2, 3]) for _ in range(5)]
        while math.prod(factors) > 12:
            factors[rng.randrange(5)] = 1
        sizes[dim] = math.prod(factors)
        ends[dim] = rng.randint(max(1, sizes[dim] // 2), sizes[dim])
        bounds[dim] = factors
    mapping, loops = {}, []
    for i, (group, level, spatial) in enumerate(
        (("L1_T", 0, False), ("L2_T", 1, False), ("L2_S", 1, True), ("L3_T", 2, False), ("L3_S", 2, True))
    ):
        order = rng.sample("mkn", 3)
        mapping[group] = [f"{dim}={bounds[dim][i]}" for dim in order]
        loops += [(level, spatial, dim, bounds[dim][i]) for dim in order]
    return ends, sizes, mapping, loops


@pytest.mark.parametrize("seed", range(24))
def test_dense_counts_are_those_of_a_walk(seed: int) -> None:
    ends, sizes, mapping, loops = random_nest(random.Random(seed))
    table = {"workload": product(DENSE, **ends), "padding": sizes, "mapping": mapping, "groups": [*mapping]}
    design = made(table | {"gate_skip": {"Shared": "none"}}, "remainders", levels=THREE)
    found = design.problem.evaluator.evaluate_designs(design.batch, detail=True)
    assert found.valid[0], found.reasons_of(0)
    detail = found.detail
    tensors = {"P": ("m", "k"), "Q": ("k", "n"), "Z": ("m", "n")}
    computes, steps, counts = walked(loops, ends, tensors, "Z", 3)
    assert (detail.computes[0], detail.compute_cycles[0]) == (computes, steps)
    used = [float(n[0]) for n in detail.instances_used]
    for (t, name), s in itertools.product(enumerate(tensors), range(3)):
        cell, here = detail.cells[t][s], f"{name} at {s}"
        sent, came = counts["out", name, s], counts["in", name, s] if s else 0
        if name != "Z":
            assert cell.read[0] * used[s] == pytest.approx(sent), here
            assert cell.fill[0] * used[s] == pytest.approx(came), here
            continue
        assert cell.update[0] * used[s] == pytest.approx(sent), here
        assert cell.read[0] * used[s] == pytest.approx(sent - counts["first out", name, s]), here
        back = came - counts["first in", name, s] if s else 0
        assert cell.fill[0] * used[s] == pytest.approx(back), here


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("level", range(3))
def test_the_fullest_instance_sets_the_time_of_a_level(seed: int, level: int) -> None:
    """With a word in 64 cycles, the time of a level is that of what its fullest instance reads and writes."""
    ends, sizes, mapping, loops = random_nest(random.Random(seed))
    levels = [{**one, **({"bandwidth": "0.015625 words/cycle"} if s == level else {})} for s, one in enumerate(THREE)]
    table = {"workload": product(DENSE, **ends), "padding": sizes, "mapping": mapping, "groups": [*mapping]}
    design = made(table | {"gate_skip": {"Shared": "none"}}, "remainders", levels=levels)
    found = design.problem.evaluator.evaluate_designs(design.batch, detail=True)
    _, _, counts = walked(loops, ends, {"P": ("m", "k"), "Q": ("k", "n"), "Z": ("m", "n")}, "Z", 3)
    words = {t: counts["most out", t, level] + (counts["most in", t, level] if level else 0) for t in "PQZ"}
    operands = words["P"] + words["Q"]
    # a word of the output is an update, and is read before each but the first
    assert 64 * (operands + words["Z"] / 2) <= found.detail.level_cycles[level][0] <= 64 * (operands + 2 * words["Z"])
