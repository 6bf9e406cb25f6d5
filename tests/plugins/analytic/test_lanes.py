"""Work that is dealt out to lanes (7.4): instances that are not needed, and lanes that nonzeros fill."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sparsemap_plugins.verify import verify

from sparsemap import load_problem
from sparsemap.errors import SparseMapError
from sparsemap.pieces.loading import load
from sparsemap.pieces.registry import Origin

EINSUM = "Z[m, n] = P[m, k] * Q[k, n]"
SPARSE = {"P": ["uncompressed", "bitmask", "bitmask"]}


def problem(
    mechanism: dict[str, Any],
    loops: dict[str, list[str]],
    fanout: int,
    formats: dict[str, list[str]] = SPARSE,
    density: dict[str, Any] | None = None,
    model: Any = "timeloop",
    place: str = "REG",
) -> tuple[Any, Any]:
    """A product of 16 x 32 x 8 on one buffer with `fanout` units below REG; its only design."""
    registry = load()
    registry.add_spec({"kind": "mechanism", "name": "mine", "type": "filters", **mechanism}, Origin("test"))
    hardware = {
        "name": "lanes",
        "levels": [
            {"name": "DRAM", "class": "dram"},
            {"name": "REG", "class": "sram", "capacity": "64 KB", "gate_skip": True, "fanout": fanout},
        ],
        "compute": {"name": "MAC"},
    }
    bounds = {level: {loop[0]: int(loop[2:]) for loop in row} for level, row in loops.items()}
    order = {level: [*(loop[0] for loop in row), *sorted({"m", "k", "n"} - {loop[0] for loop in row})]
             for level, row in loops.items()}  # fmt: skip
    slots = {f"role:{t}": formats.get(t, ["uncompressed"] * 3) for t in "PQZ"}
    one = {"type": "fixed", "order": order, "bounds": bounds, "formats": slots, "mechanisms": {place: "mine"}}
    space = {"name": "one", "segments": ["one"], "one": one}
    workload = {"name": "product", "einsum": EINSUM, "dims": {"m": 16, "k": 32, "n": 8},
                "density": {"P": 0.5, "Q": 1.0, "Z": 1.0, **(density or {})}}  # fmt: skip
    found = load_problem(workload, hardware, space=space, cost_model=model, registry=registry)
    return found, found.space.decode(np.zeros((1, 0), np.int64))


CONDENSE = {"action": "condense", "filters": [{"target": t, "leader": "P"} for t in ("Q", "Z")]}
SPREAD = {"L1_T": ["n=8"], "L2_T": ["m=16", "k=2"], "L2_S": ["k=16"]}
EVEN = {"P": {"type": "n-of-m", "n": 1, "m": 2}}


def evaluated(found: Any, designs: Any) -> Any:
    return found.evaluator.evaluate_designs(designs, detail=True)


def test_condensed_lanes_fit_where_the_loops_do_not_and_save_no_time():
    """Half of 16 positions of k hold something, always: 8 lanes do the work of 16, and each is busy in every step."""
    found, designs = problem(CONDENSE, SPREAD, 8, density=EVEN)
    evaluation = evaluated(found, designs)
    assert evaluation.valid[0]
    assert evaluation.detail.computes[0] == 16 * 32 * 8 / 2
    assert evaluation.detail.compute_cycles[0] == 16 * 32 * 8 / 16


def test_lanes_that_the_fullest_fiber_needs_must_be_there():
    """At random 16 positions may all hold something."""
    assert evaluated(*problem(CONDENSE, SPREAD, 8)).reasons_of(0) == ("fanout:REG",)
    assert evaluated(*problem({"action": "none"}, SPREAD, 8, density=EVEN)).reasons_of(0) == ("fanout:REG",)


def test_a_tensor_that_goes_to_every_lane_needs_every_lane():
    some = {"action": "condense", "filters": [{"target": "Q", "leader": "P"}]}
    assert evaluated(*problem(some, SPREAD, 8, density=EVEN)).reasons_of(0) == ("fanout:REG",)


def test_condensing_and_packing_need_metadata():
    for mechanism in (CONDENSE, {"action": "pack", "filters": [{"target": "P"}]}):
        evaluation = evaluated(*problem(mechanism, SPREAD, 16, formats={}, density=EVEN))
        assert evaluation.reasons_of(0) == ("mechanism:REG",)


def test_positions_that_both_operands_share_cannot_be_packed():
    """Lanes with nonzeros of P at different k would need different rows of Q."""
    shared = {"L1_T": ["n=2"], "L2_T": ["k=32", "m=4"], "L2_S": ["m=4", "n=4"]}
    assert evaluated(*problem(PACK, shared, 16, formats=BOTH, density=HALF)).reasons_of(0) == ("mechanism:REG",)


PACK = {"action": "pack", "filters": [{"target": "P"}, {"target": "Q"}]}
OUTER = {"L1_T": ["k=32"], "L2_T": ["m=4", "n=2"], "L2_S": ["m=4", "n=4"]}
BOTH = {"P": ["bitmask"] * 3, "Q": ["bitmask"] * 3}
HALF = {"P": 0.5, "Q": 0.3}


def test_packed_lanes_take_as_many_passes_as_the_nonzeros_of_drawn_tensors_need():
    """An outer product: 16 words of P and 8 of Q at a time on 4 x 4 lanes."""
    found, designs = problem(PACK, OUTER, 16, formats=BOTH, density=HALF)
    rng, tensors = np.random.default_rng(0), [found.tensors[t].density for t in (0, 1)]
    drawn = []
    for _ in range(400):
        p, q = (d.occupancy(shape).draw(rng) for d, shape in zip(tensors, ((16, 32), (32, 8)), strict=True))
        drawn.append((np.ceil(p.sum(axis=0) / 4) * np.ceil(q.sum(axis=1) / 4)).sum())
    cycles = evaluated(found, designs).detail.compute_cycles[0]
    assert cycles == pytest.approx(np.mean(drawn), rel=0.02)
    assert cycles < 32 * 4 * 2


def test_one_lane_packs_every_nonzero_by_itself():
    found, designs = problem(PACK, {"L1_T": ["k=32"], "L2_T": ["m=16", "n=8"]}, 1, formats=BOTH, density=HALF)
    detail = evaluated(found, designs).detail
    assert detail.compute_cycles[0] == detail.computes[0]


def test_the_mean_of_shares_claims_less_time_than_the_mean_of_passes():
    quirk = {"extends": "timeloop", "quirks": ["lane-shares"]}
    (one,), (other,) = (
        evaluated(*problem(PACK, OUTER, 16, formats=BOTH, density=HALF, model=model)).cycles
        for model in ("timeloop", quirk)
    )
    assert other < one


@pytest.mark.parametrize(
    ("mechanism", "loops", "fanout", "formats", "density"),
    [
        (CONDENSE, SPREAD, 8, SPARSE, EVEN),
        (CONDENSE, SPREAD, 16, SPARSE, {}),
        (PACK, OUTER, 16, BOTH, HALF),
        ({"action": "pack", "filters": [{"target": "P"}]}, OUTER, 16, BOTH, HALF),
    ],
    ids=["condensed", "condensed at random", "packed", "one operand packed"],
)
def test_execution_counts_what_the_model_says(mechanism, loops, fanout, formats, density):
    found, designs = problem(mechanism, loops, fanout, formats, density)
    report = verify(found, designs, trials=20)
    assert report.correct
    for row in report.rows:
        if row.quantity in ("compute", "compute_cycles", "read") and row.tensor != "Z":  # Z: Q13
            assert row.mean == pytest.approx(row.expected, rel=0.03), row


def test_every_cost_model_keeps_to_the_steps_of_the_nest():
    for mechanism, loops, formats, density in ((CONDENSE, SPREAD, SPARSE, EVEN), (PACK, OUTER, BOTH, HALF)):
        found, designs = problem(mechanism, loops, 16, formats, density, model="physical")
        evaluation = evaluated(found, designs)
        assert evaluation.valid[0]
        assert np.isfinite(evaluation.energy_pj[0])
        assert evaluation.detail.compute_cycles[0] <= 256


def test_a_search_has_no_bound_where_lanes_are_dealt_out():
    found, _ = problem(PACK, OUTER, 16, formats=BOTH, density=HALF)
    assert found.cost_model.lower_bound(found) is None


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"action": "pack", "filters": [{"target": "P", "leader": "Q"}]}, "leader: expected none with action 'pack'"),
        ({"action": "condense", "filters": [{"target": "P"}]}, "leader: expected a tensor with action 'condense'"),
        ({"action": "pack", "filters": [{"target": "P"}], "effectiveness": 0.5}, "neither cycle nor effectiveness"),
    ],
)
def test_tables_that_mean_nothing_say_so(table, message):
    registry = load()
    with pytest.raises(SparseMapError, match=message):
        registry.build("mechanism", {"type": "filters", **table})


def test_designs_of_one_batch_do_not_change_each_others_lanes():
    """Bounds that do not multiply up to the sizes have no tiles to ask for."""
    found, designs = problem(CONDENSE, SPREAD, 8, density=EVEN)
    columns = {name: np.repeat(part, 3, axis=-1) for name, part in designs.columns.items()}
    columns["bounds"] = columns["bounds"].copy()
    columns["bounds"][..., 1] *= 7.0
    several = found.evaluator.evaluate_designs(type(designs)(columns))
    alone = evaluated(found, designs)
    assert several.cycles[0] == several.cycles[2] == alone.cycles[0]
    assert not several.valid[1]
