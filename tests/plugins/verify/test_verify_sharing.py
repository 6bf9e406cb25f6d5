"""Lanes that share words: hand-counted runs, and the formulas of `shared-words` against execution."""

from __future__ import annotations

import numpy as np
import pytest
from sparsemap_plugins.verify import verify
from sparsemap_plugins.verify.charges import ChargedTrial
from sparsemap_plugins.verify.simulate import Simulation
from test_verify_charges import BITMASKS, LEVELS, P, Q, product
from verify_designs import build, registry

CHARGES = ("positions", "imbalance", "shared-words", "intersection")


def lanes(shared_words, loops, p=1.0, q=1.0, gate_skip=None, **sizes):
    """A design with all lanes below one buffer, skips of single words, and P and Q as bitmasks."""
    levels = [LEVELS[0], LEVELS[1] | {"shared_words": shared_words, "fanout": 64}]
    where = gate_skip or {"MAC": "skip-both"}
    table = product(p, q, loops, BITMASKS, where, levels, **sizes)
    return table | {"cost_model": {"type": "analytic", "charges": list(CHARGES)}}


def executed(table, given=None, seeds=range(1), name="cycles"):
    """Mean of a quantity over trials; `given`: words of P and Q."""
    sim, found = Simulation(*build(table)), []
    for seed in seeds:
        trial = sim.trial(np.random.default_rng(seed), charged=True, given=given)
        assert trial.energy.tally.correct
        key = (name, None, None) if isinstance(name, str) else name
        found.append(ChargedTrial(sim, trial).pay([registry().build("charge", x) for x in CHARGES]).values[key])
    return float(np.mean(found))


def modelled(table):
    problem, designs = build(table)
    found = problem.evaluator.evaluate_designs(designs)
    assert found.valid[0]
    return float(found.cycles[0])


@pytest.mark.parametrize("shared_words, cycles", [("lock-step", 4), (1, 3), (2, 2), (8, 2), ("separate", 2)])
def test_two_lanes_need_different_words_of_p(shared_words, cycles) -> None:
    """Lane 0 has work at k = 0 and 1, lane 1 at k = 2 and 3, and the words of P come in the order of k. Together, both
    lanes take four steps. With a queue of one word, P[1] waits for the end of P[0], P[2] leaves with P[1], and P[3] waits
    for P[2]: three cycles. With two words all of P leaves at once."""
    table = lanes(shared_words, {"L2_T": ["k=4"], "L2_S": ["n=2"]}, k=4, n=2)
    q = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=float)
    assert executed(table, {P: np.ones(4), Q: q.reshape(-1)}) == cycles


@pytest.mark.parametrize("shared_words, cycles", [("lock-step", 4), (1, 3), (2, 2), ("separate", 2)])
def test_two_lanes_add_to_the_same_sum(shared_words, cycles) -> None:
    """Lanes along k share Z: products of m = 0 and 1 come from lane 0, of m = 2 and 3 from lane 1."""
    table = lanes(shared_words, {"L2_T": ["m=4"], "L2_S": ["k=2"]}, m=4, k=2)
    p = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=float)
    assert executed(table, {P: p.reshape(-1), Q: np.ones(2)}) == cycles


def test_separate_lanes_read_a_word_each() -> None:
    loops, sizes = {"L2_T": ["k=4"], "L2_S": ["n=2"]}, {"k": 4, "n": 2}
    skip = {"Buffer": "skip-p-by-q", "MAC": "skip-both"}
    q = {P: np.ones(4), Q: np.array([1.0, 0, 1, 1, 0, 0, 0, 1])}
    reads = {
        how: executed(lanes(how, loops, gate_skip=skip, **sizes), q, name=("read", 1, P))
        for how in ("lock-step", "separate")
    }
    assert reads == {"lock-step": 3, "separate": 4}  # k = 1 serves both lanes; k = 2 serves none


def test_lanes_without_a_word_in_common_do_not_wait() -> None:
    """Lanes along an index of all tensors."""
    table = lanes("lock-step", {"L2_T": ["k=4"], "L2_S": ["n=2"]}, k=4, n=2)
    table["workload"] = {
        "einsum": "Z[n] = P[n, k] * Q[n, k]",
        "dims": {"k": 4, "n": 2},
        "density": {"P": 1.0, "Q": 1.0},
    }
    for group in table["mapping"].values():
        group[:] = [loop for loop in group if not loop.startswith("m")]
    q = np.array([1.0, 1, 0, 0, 0, 0, 1, 1])
    assert executed(table, {P: np.ones(8), Q: q}) == 2


def test_a_skip_passes_positions_that_no_lane_needs() -> None:
    """Four empty positions before the first product, two per cycle: two cycles, and one for the product of each lane."""
    table = lanes("lock-step", {"L2_T": ["k=6"], "L2_S": ["n=2"]}, k=6, n=2)
    table["hardware"]["compute"]["lookahead"] = 2
    q = np.zeros((6, 2))
    q[4, 0] = q[5, 1] = 1
    assert executed(table, {P: np.ones(6), Q: q.reshape(-1)}) == 4


GRIDS = {
    "P is shared": ({"L2_T": ["m=8", "k=64"], "L2_S": ["n=16"]}, {"m": 8, "k": 64, "n": 16}),
    "P and Q are shared": ({"L2_T": ["k=256"], "L2_S": ["m=8", "n=8"]}, {"m": 8, "k": 256, "n": 8}),
    "Z is shared": ({"L2_T": ["n=8", "m=32"], "L2_S": ["k=16"]}, {"m": 32, "k": 16, "n": 8}),
    "all are shared": ({"L2_T": ["m=4", "n=4", "k=16"], "L2_S": ["m=4", "k=4", "n=4"]}, {"m": 16, "k": 64, "n": 16}),
}


@pytest.mark.parametrize("shared_words, within", [("lock-step", 0.06), (2, 0.3), (8, 0.25)])
@pytest.mark.parametrize("p, q", [(1.0, 0.3), (0.5, 0.5), (0.1, 0.2)])
@pytest.mark.parametrize("grid", GRIDS)
def test_lanes_take_as_long_as_in_execution(grid, p, q, shared_words, within) -> None:
    loops, sizes = GRIDS[grid]
    table = lanes(shared_words, loops, p, q, **sizes)
    if p > 0.1 or shared_words == "lock-step":  # the fullest lane of so few products is 12 to 20 cycles
        assert modelled(table) == pytest.approx(executed(table, seeds=range(4)), rel=within)


@pytest.mark.parametrize(
    "inside, pairs",
    [(["m=8", "n=4"], ["k=2"]), (["n=4", "k=8"], ["m=2"]), (["m=4", "k=4"], ["n=2"])],
    ids=["sums", "words of Q", "words of P"],
)
def test_pairs_in_lock_step_wait_for_tiles_as_one(inside, pairs) -> None:
    """Three pairs share tiles of P, and each pair takes its steps together: a pair has the work of both lanes."""
    own = dict.fromkeys("mkn", 1)
    for loop in (*inside, *pairs):
        own[loop[0]] *= int(loop[2:])
    outside = {"m": 48 // own["m"], "n": 16 // own["n"], "k": 48 // own["k"]}
    loops = {"L1_T": [f"{d}={n}" for d, n in outside.items()], "L2_S": ["n=3"], "L3_T": inside, "L3_S": pairs}
    mapping = {name: loops.get(name, []) for name in ("L1_T", "L2_T", "L2_S", "L3_T", "L3_S")}
    for group in mapping.values():
        group[:0] = [f"{d}=1" for d in "mkn" if d not in {loop[0] for loop in group}]
    shared = LEVELS[1] | {"double_buffered": True}
    levels = [LEVELS[0], shared | {"fanout": 3}, shared | {"name": "Registers", "fanout": 2}]
    table = product(0.15, 0.15, {}, BITMASKS, {"Registers": "none", "MAC": "skip-both"}, levels, m=48, k=48, n=48)
    table |= {"mapping": mapping, "cost_model": {"type": "analytic", "charges": list(CHARGES)}}
    assert modelled(table) == pytest.approx(executed(table, seeds=range(3)), rel=0.1)


@pytest.mark.parametrize("shared_words", ["lock-step", 8, "separate"])
def test_energy_and_cycles_of_all_charges_are_those_of_execution(shared_words) -> None:
    loops, sizes = GRIDS["all are shared"]
    table = lanes(shared_words, loops, 0.5, 0.5, {"Buffer": "skip-both", "MAC": "skip-both"}, **sizes)
    found = verify(*build(table | {"cost_model": {"extends": "physical"}}), trials=4, compare=True)
    ratios = next(one for one in found.fidelities if one.name == "physical").ratios
    assert ratios[0] == pytest.approx(1.0, rel=0.03) and ratios[1] == pytest.approx(1.0, rel=0.06)


@pytest.mark.parametrize(
    "charge, unit", [("positions", "none"), ("intersection", "skip-both"), ("shared-words", "skip-both")]
)
@pytest.mark.parametrize("shared_words", ["lock-step", 2])
def test_the_effect_of_a_charge_is_the_difference_of_two_executions(shared_words, charge, unit) -> None:
    """Lanes wait for the positions and steps of skips of other lanes, where these are charged; a model that lacks a charge
    claims too little by as much."""
    loops, sizes = {"L2_T": ["k=64"], "L2_S": ["n=4", "m=2"]}, {"k": 64, "n": 4, "m": 2}
    table = lanes(shared_words, loops, 0.4, 0.3, {"Buffer": "none", "MAC": unit}, **sizes)
    table["hardware"]["compute"] = table["hardware"].get("compute", {}) | {"lookahead": 2}
    charges = [one.type_name for one in registry().resolve("cost-model", "physical").charges]

    def verified(left):
        return verify(*build(table | {"cost_model": {"type": "analytic", "charges": left}}), trials=1, compare=True)

    every, less = verified(charges), verified([one for one in charges if one != charge])
    effect = {one.name: one.executed for one in every.effects}[charge]
    assert effect[1] > 0
    assert effect[1] == every.row("cycles").mean - less.row("cycles").mean
    assert less.missed[charge][1] == pytest.approx(effect[1] / less.row("cycles").expected)
