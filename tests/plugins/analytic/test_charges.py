"""Charges by hand: each on a design whose numbers can be counted, as docs/model.md tells it."""

from __future__ import annotations

import pytest
from charged import cost, product

# One lane; k of P and Q in the buffer.
DOT = {
    "workload": product(0.5, m=4, k=4, n=4),
    "mapping": {"L2_T": ["m=4", "n=4", "k=4"]},
    "formats": {"P": ["bitmask"], "Q": ["bitmask"]},
}


def test_a_gate_at_storage_lets_the_cycles_pass_and_saves_the_energy() -> None:
    gated = DOT | {"formats": {}, "gate_skip": {"Buffer": "gate-q-by-p"}}
    free, charged = cost(gated), cost(gated, "gate-time")
    assert (free.cycles[0], charged.cycles[0]) == (32, 64)
    assert charged.energy_pj[0] == free.energy_pj[0]
    saved = gated | {"gate_skip": {"Buffer": "saving-gate"}}
    assert cost(saved, "gate-time").cycles[0] == 32


def test_what_a_skip_covers_takes_no_time_though_a_gate_holds_it_back() -> None:
    both = DOT | {"gate_skip": {"Buffer": "gate-q-by-p", "MAC": "skip-both"}}
    assert cost(both, "gate-time").cycles[0] == 16
    assert cost(both).cycles[0] == 16


def test_a_charge_by_two_names_or_none_is_told() -> None:
    from sparsemap.errors import SpecError

    with pytest.raises(SpecError, match="charged twice"):
        cost(DOT, "gate-time", "gate-time")
    with pytest.raises(SpecError, match="did you mean 'gate-time'"):
        cost(DOT, "gate-tme")


def cell(found, tensor, level):
    return found.detail["cells"][tensor][level]


def test_results_are_read_where_they_leave_and_updated_where_a_compute_is() -> None:
    table = {"workload": product((1.0, 1.0), m=4, k=8), "mapping": {"L2_T": ["m=4", "k=8"]}}
    dense = cell(cost(table, "drains"), 2, 1)
    assert (dense.update[0], dense.read[0]) == (32, 28 + 4)
    sparse = {**table, "workload": product((0.5, 1.0), m=4, k=8), "formats": {"P": ["bitmask"]}}
    sparse["gate_skip"] = {"MAC": "skip-q-by-p"}
    found = cell(cost(sparse, "drains"), 2, 1)
    assert found.update[0] == 16
    assert found.read[0] == pytest.approx(16 - 4 * (1 - 2**-8) + 4)


def test_lanes_that_reduce_together_update_if_any_of_them_has_a_product() -> None:
    table = {
        "workload": product((0.5, 1.0), m=4, k=8), "mapping": {"L2_T": ["m=4"], "L2_S": ["k=8"]},
        "formats": {"P": ["bitmask"]}, "gate_skip": {"MAC": "skip-q-by-p"},
    }  # fmt: skip
    assert cell(cost(table, "drains"), 2, 1).update[0] == pytest.approx(4 * (1 - 2**-8))


def test_partial_sums_that_are_zero_stay_where_they_are() -> None:
    table = {
        "workload": product((0.5, 0.5), m=4, k=2) | {"density": {"P": 0.5, "Q": 0.5, "Z": 0.75}},
        "mapping": {"L1_T": ["k=2", "m=2"], "L2_T": ["m=2"]}, "formats": {"Z": ["bitmask"]},
    }  # fmt: skip
    found = cost(table, "drains")
    buffer, dram = cell(found, 2, 1), cell(found, 2, 0)
    # visited twice: half are there after the first visit, three quarters after the second; per instance with a tile
    held = found.detail["instances_active"][2, 1, 0]
    assert dram.update[0] == pytest.approx(4 * (0.5 + 0.75))
    assert dram.read[0] == pytest.approx(4 * 0.5)
    assert buffer.fill[0] * held == pytest.approx(4 * 0.5)
