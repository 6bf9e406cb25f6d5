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
