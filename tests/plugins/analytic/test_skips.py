"""What skipping costs by hand: positions that no skip covers, and runs of empty ones that a unit passes (docs/model.md)."""

from __future__ import annotations

import numpy as np
import pytest
from charged import LEVELS, REGISTRY, cost, product
from hypothesis import given, settings
from hypothesis import strategies as st
from sparsemap_plugins.analytic.inner.runs import passed, passed_runs

from sparsemap import load_problem

LANE = {"L2_T": ["m=16", "n=16", "k=64"]}
BITMASKS = {"P": ["bitmask"], "Q": ["bitmask"]}


@pytest.mark.parametrize("density", [0.5, 0.1, 0.01])
def test_hardware_that_cannot_skip_saves_no_cycle(density: float) -> None:
    table = {"workload": product(density, m=16, k=64, n=16), "mapping": LANE, "formats": BITMASKS}
    assert cost(table, "positions").cycles[0] == 16 * 64 * 16
    assert cost(table).cycles[0] < 16 * 64 * 16


def test_a_unit_that_passes_an_empty_position_is_clocked_like_a_gated_one() -> None:
    table = {"workload": product(0.1, m=16, k=64, n=16), "mapping": LANE, "formats": BITMASKS}
    found, free = cost(table, "positions", "gated"), cost(table, "gated")
    empty = 16 * 64 * 16 - float(found.detail.computes[0])
    compute_pj = 0.1 * float(found.detail.compute_energy_pj[0] / found.detail.computes[0])
    assert found.energy_pj[0] - free.energy_pj[0] == pytest.approx(compute_pj * empty, rel=1e-6)


def test_a_skip_covers_the_positions_at_which_it_acts() -> None:
    table = {"workload": product(0.1, m=16, k=64, n=16), "mapping": LANE, "formats": BITMASKS}
    for place in ("Buffer", "MAC"):
        skipped = table | {"gate_skip": {place: "skip-both"}}
        assert cost(skipped, "positions").cycles[0] == cost(skipped).cycles[0] == pytest.approx(164, abs=4)


def test_a_run_of_empty_positions_takes_a_cycle_for_each_width_of_them() -> None:
    """1 of 64 positions is taken; a unit of 16 finds none in (63/64)^16 of the places that it looks at."""
    table = {
        "workload": product((1.0, 1 / 64), m=16, k=64, n=16), "mapping": LANE, "formats": BITMASKS,
        "gate_skip": {"MAC": "skip-both"},
    }  # fmt: skip
    narrow = {"compute": {"gate_skip": True, "lookahead": 16}}
    assert cost(table).cycles[0] == 16384 / 64
    assert cost(table, "intersection", **narrow).cycles[0] == np.ceil(256 / (1 - (63 / 64) ** 16)) == 1150
    assert cost(table, "intersection").cycles[0] == np.ceil(256 / (1 - (63 / 64) ** 128)) == 296


def test_widths_of_mechanism_and_hardware_are_both_obeyed() -> None:
    table = {
        "workload": product((1.0, 1 / 64), m=16, k=64, n=16), "mapping": LANE, "formats": BITMASKS,
        "gate_skip": {"Buffer": "skip-both"},
    }  # fmt: skip
    levels = [LEVELS[0], LEVELS[1] | {"lookahead": 16}]
    own, both = cost(table, "intersection"), cost(table, "intersection", levels=levels)
    assert (own.cycles[0], both.cycles[0]) == (296, 1150)


@pytest.mark.parametrize("density", [0.1, 0.03, 0.01])
@pytest.mark.parametrize("buffer", ["none", "skip-p-by-q", "skip-q-by-p", "skip-both"])
@pytest.mark.parametrize("unit", ["none", "skip-p-by-q", "skip-q-by-p", "skip-both"])
def test_no_stage_passes_more_positions_in_a_cycle_than_its_width(density: float, buffer: str, unit: str) -> None:
    """One lane with 262,144 positions and skips that pass 128 positions per cycle."""
    table = {
        "workload": product(density, m=64, k=64, n=64), "mapping": {"L2_T": ["m=64", "n=64", "k=64"]},
        "formats": BITMASKS, "gate_skip": {"Buffer": buffer, "MAC": unit},
    }  # fmt: skip
    found = cost(table, "positions", "intersection")
    assert found.cycles[0] >= max(64**3 / 128, float(found.detail.computes[0]))
    if "none" not in (buffer, unit):
        alone = [
            cost(table | {"gate_skip": {place: "skip-both"}}, "positions", "intersection")
            for place in ("Buffer", "MAC")
        ]
        assert found.cycles[0] >= min(float(one.cycles[0]) for one in alone)


@given(
    share=st.floats(0.0, 1.0), width=st.integers(1, 300), positions=st.floats(1.0, 1e9), more=st.floats(0.0, 1.0)
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_passing_takes_no_less_than_the_positions_over_the_width_and_no_more_than_all(
    share: float, width: int, positions: float, more: float
) -> None:
    taken = share * positions
    found = passed(positions, taken, float(width))
    assert max(taken, positions / width) * (1 - 1e-9) <= found <= positions * (1 + 1e-9)
    fuller = passed(positions, min(positions, taken + more), float(width))
    assert fuller >= found * (1 - 1e-9)


def test_no_design_takes_more_cycles_at_the_units_than_its_loops_have_steps() -> None:
    problem = load_problem("mm11", "cloud")
    rng = np.random.default_rng(1)
    genomes = problem.space.repair(problem.space.guess(300, rng), rng)
    designs = problem.space.decode(genomes)
    found = problem.evaluator.evaluate_designs(designs, detail=True)
    temporal = [i for i, level in enumerate(problem.mapping_levels) if not level.spatial]
    steps = designs.columns["bounds"][temporal].prod(axis=(0, 1))
    assert found.valid.sum() > 100
    assert (found.detail.compute_cycles[found.valid] <= steps[found.valid]).all()


def test_the_space_has_no_skip_of_unlimited_width_but_the_one_that_looks_16_ahead() -> None:
    for mechanism in load_problem("mm1", "mobile", registry=REGISTRY).candidates("mechanism"):
        if mechanism.action == "skip":
            assert mechanism.width is not None or mechanism.lookahead is not None


READS = {1: 40, 2: 65, 4: 87, 8: 96}
"""Words of P read of 96, by the words of an access: what Timeloop v3.0.3 prints, whether n is one dimension or two."""


@pytest.mark.parametrize("words", READS)
@pytest.mark.parametrize("split", [False, True])
def test_words_of_an_access_go_on_beyond_a_dimension_up_to_the_whole_leader(split: bool, words: int) -> None:
    n, outer, inner = ("n1, n0", "n1=3", "n0=2") if split else ("n", "n=3", "n=2")
    sizes = {"m": 4, "k": 4, **({"n1": 3, "n0": 2} if split else {"n": 6})}
    einsum = f"Z[m, {n}] = P[m, k] * Q[k, {n}]"
    table = {
        "workload": {"einsum": einsum, "dims": sizes, "density": {"P": 0.5, "Q": 0.4}},
        "groups": ["L1_T", "L2_T"], "mapping": {"L1_T": [outer, "k=2"], "L2_T": ["m=4", "k=2", inner]},
        "formats": {"Q": ["bitmask"]}, "gate_skip": {"Buffer": "skip-p-by-q"},
    }  # fmt: skip
    levels = [LEVELS[0], {key: value for key, value in LEVELS[1].items() if key != "fanout"} | {"access_words": words}]
    assert cost(table, levels=levels).detail.cells[0][1].read[0] == READS[words]


@pytest.mark.parametrize("width", [4, 32, 128])
@pytest.mark.parametrize("stay", [1, 3, 63, 500])
@pytest.mark.parametrize("block, within", [(0.05, 1.0), (0.05, 0.2), (0.3, 0.05), (0.5, 0.5), (0.02, 0.02)])
def test_blocks_of_empty_positions_lengthen_runs_as_a_walk_does(
    block: float, within: float, stay: int, width: int
) -> None:
    """Positions in blocks of `stay`, a block with work by chance, and a position of it by chance."""
    rng, cycles, taken = np.random.default_rng(0), 0.0, 0.0
    blocks = max(20_000, 400_000 // stay)
    there = np.repeat(rng.random(blocks) < block, stay) & (rng.random(blocks * stay) < within)
    at = np.flatnonzero(there)
    gaps = np.diff(np.append(at, len(there))) - 1
    cycles, taken = float(len(at) + (gaps // width).sum()), float(len(at))
    found = passed_runs(float(len(there)), taken, float(width), float(stay), block)
    assert found == pytest.approx(cycles, rel=0.08)
