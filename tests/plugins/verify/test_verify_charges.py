"""What execution pays for with each charge, on designs whose numbers can be counted: the examples of docs/model.md."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from sparsemap_plugins.verify import verify
from sparsemap_plugins.verify.charges import ChargedTrial
from sparsemap_plugins.verify.leaders import comparisons
from sparsemap_plugins.verify.simulate import Simulation
from verify_designs import build, registry

from sparsemap import Charge

WIDE = {"capacity": "1 MB", "fanout": 64, "gate_skip": True}
LEVELS = [{"name": "DRAM", "class": "dram"}, {"name": "Buffer", "class": "sram", **WIDE}]
REGISTERS = [*LEVELS, {"name": "Registers", "class": "regfile", "capacity": "1 KB"}]
ALL = frozenset(
    {
        "gate-time",
        "positions",
        "drains",
        "sums",
        "filter-metadata",
        "stay",
        "run-lengths",
        "pointers",
        "overlap",
        "imbalance",
        "vectors",
    }
)
P, Q, Z = 0, 1, 2


def product(p, q, mapping, formats=None, gate_skip=None, levels=LEVELS, **sizes):
    """Z[m,n] = P[m,k] * Q[k,n], unlimited bandwidth unless the levels say otherwise."""
    sizes = {"m": 1, "k": 1, "n": 1, **sizes}
    groups = ["L1_T", *(f"L{i + 1}_{part}" for i in range(1, len(levels)) for part in "TS" if part == "T" or i == 1)]
    loops = {group: list(mapping.get(group, [])) for group in groups}
    for own in loops.values():
        listed = {loop.split("=")[0] for loop in own}
        own[:0] = [f"{dim}=1" for dim in sizes if dim not in listed]
    own = {t: ["uncompressed"] for t in "PQZ"} | (formats or {})
    return {
        "workload": {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": sizes, "density": {"P": p, "Q": q}},
        "hardware": {"levels": levels, "compute": {"gate_skip": True}},
        "mapping": loops,
        "beyond_format": "offset-pair",
        "formats": {t: [*["uncompressed"] * (4 - len(own[t])), *own[t]] for t in "PQZ"},
        "gate_skip": {"Buffer": "none", "MAC": "none"} | (gate_skip or {}),
    }


def pay(table, *charges, seed=0):
    """Counts of one trial, by quantity, level and tensor."""
    sim = Simulation(*build(table))
    trial = sim.trial(np.random.default_rng(seed), charged=True)
    assert trial.energy.tally.correct and trial.time.tally.correct
    return (
        ChargedTrial(sim, trial)
        .pay([registry().build("charge", x) if isinstance(x, str) else x for x in charges])
        .values
    )


def test_the_cycle_of_a_gate_passes_and_its_energy_does_not() -> None:
    lane = {"L2_T": ["m=4", "n=4", "k=4"]}
    gated = product(0.5, 0.5, lane, gate_skip={"Buffer": "gate-q-by-p"}, m=4, k=4, n=4)
    free, charged = pay(gated), pay(gated, "gate-time")
    assert (free["cycles", None, None], charged["cycles", None, None]) == (32, 64)
    assert charged["compute", None, None] == 32 and charged["energy_pj", None, None] == free["energy_pj", None, None]
    both = product(
        0.5,
        0.5,
        lane,
        {"P": ["bitmask"], "Q": ["bitmask"]},
        {"Buffer": "gate-q-by-p", "MAC": "skip-both"},
        m=4,
        k=4,
        n=4,
    )
    found = pay(both, "gate-time")
    assert found["cycles", None, None] == found["compute", None, None]


def test_results_are_read_where_they_leave() -> None:
    table = product(1.0, 1.0, {"L2_T": ["m=4", "k=8"]}, m=4, k=8)
    assert pay(table)["read", 1, Z] == 28
    found = pay(table, "drains")
    assert (found["read", 1, Z], found["update", 1, Z], found["update", 0, Z]) == (28 + 4, 32, 4)


def test_what_a_filter_looks_at_is_read() -> None:
    formats = {"P": ["bitmask"], "Q": ["bitmask"]}
    table = product(
        0.5, 0.5, {"L2_T": ["m=8", "n=8", "k=8"]}, formats, {"Buffer": "skip-both", "MAC": "skip-both"}, m=8, k=8, n=8
    )
    assert pay(table)["metadata_read", 1, P] < 512
    assert pay(table, "filter-metadata")["metadata_read", 1, P] == 512


def test_a_tile_that_stays_is_sent_if_any_leader_needs_it() -> None:
    """P, 4 words, stays while 16 words of Q come; one of these is not zero: the tile is sent with it, and once."""
    loops, gate = {"L1_T": ["k=4", "n=16"], "L2_T": []}, {"Buffer": "skip-p-by-q"}
    table = product(1.0, 1 / 16, loops, {}, gate, [*LEVELS, REGISTERS[2]], k=4, n=16)
    sent = [pay(table, "stay", seed=seed)["fill", 2, P] for seed in range(20)]
    assert max(sent) <= 4 and 2.0 < np.mean(sent) < 3.2  # 4 * (1 - (15/16)^16) = 2.6 where Q's words are independent


def test_run_lengths_have_whole_tokens() -> None:
    table = product(0.1, 1.0, {"L2_T": ["k=8"]}, {"P": ["run-length"]}, k=8)
    written = [pay(table, "run-lengths", seed=seed)["metadata_fill", 1, P] for seed in range(20)]
    assert {bits % 2 for bits in written} == {0}  # tokens of two bits


def test_empty_fibers_are_written_unless_a_rank_outside_leaves_them_out() -> None:
    rows = {"L2_T": ["m=10", "k=8"]}
    below_plain = product(0.1, 1.0, rows, {"P": ["uncompressed", "bitmask"]}, m=10, k=8)
    assert pay(below_plain)["metadata_fill", 1, P] < 80
    assert pay(below_plain, "run-lengths")["metadata_fill", 1, P] == 80
    below_bitmask = product(0.1, 1.0, rows, {"P": ["bitmask", "bitmask"]}, m=10, k=8)
    assert pay(below_bitmask, "run-lengths")["metadata_fill", 1, P] == pay(below_bitmask)["metadata_fill", 1, P]


def test_offsets_are_stored_and_read_where_rows_are_left_out() -> None:
    table = product(
        0.25,
        1.0,
        {"L2_T": ["m=8"], "L3_T": ["k=16"]},
        {"P": ["uncompressed", "coordinate"]},
        levels=REGISTERS,
        m=8,
        k=16,
    )
    assert pay(table, "pointers")["metadata_fill", 1, P] == pay(table)["metadata_fill", 1, P]  # streams in order
    jumping = table | {"gate_skip": {"Buffer": "gate-p-by-q", "MAC": "none"}}
    for action, level in (("metadata_fill", 1), ("metadata_read", 1), ("metadata_read", 0)):
        added = pay(jumping, "pointers")[action, level, P] - pay(jumping)[action, level, P]
        assert added == (8 + 1) * 8


def test_a_single_buffer_waits_for_its_transfers_and_a_second_one_hides_them_but_for_the_first() -> None:
    """Four tiles of P of 100 words at a word per cycle; two lanes take 50 cycles for each."""
    for double, cycles in ((False, 600), (["role:P"], 450)):
        buffer = LEVELS[1] | {
            "bypass": ["role:Q", "role:Z"],
            "write_bandwidth": "1 words/cycle",
            "double_buffered": double,
        }
        table = product(
            1.0, 1.0, {"L1_T": ["m=4"], "L2_T": ["k=50"], "L2_S": ["k=2"]}, levels=[LEVELS[0], buffer], m=4, k=100
        )
        assert pay(table)["cycles", None, None] == 400
        assert pay(table, "overlap")["cycles", None, None] == cycles
        assert pay(table, "overlap", "imbalance")["cycles", None, None] == cycles


@pytest.mark.parametrize("charges", [("overlap",), ("overlap", "imbalance")])
def test_lanes_with_parts_of_their_own_wait_for_their_transfers(charges) -> None:
    """Four times 50 words of P for each of two lanes, at half a word per cycle; 50 cycles for each."""
    for double, cycles in ((False, 4 * 150), (["role:P"], 4 * 100 + 50)):
        registers = REGISTERS[2] | {"bypass": ["role:Q", "role:Z"], "write_bandwidth": "0.5 words/cycle"}
        levels = [*LEVELS, registers | {"double_buffered": double}]
        mapping = {"L2_T": ["m=4"], "L2_S": ["k=2"], "L3_T": ["k=50"]}
        assert pay(product(1.0, 1.0, mapping, levels=levels, m=4, k=100), *charges)["cycles", None, None] == cycles


def test_results_leave_while_the_next_tile_is_computed() -> None:
    """Two tiles of a word of P, with 50 of Q that stay and 50 results each, four cycles a word; 50 cycles for each."""
    for double, cycles in ((False, 4 * 152 + 100), (True, 4 * 51 + 50 + 200 + 200)):
        levels = [LEVELS[0] | {"bandwidth": "0.25 words/cycle"}, LEVELS[1] | {"double_buffered": double}]
        table = product(1.0, 1.0, {"L1_T": ["m=2"], "L2_T": ["n=50"]}, levels=levels, m=2, n=50)
        assert pay(table, "overlap", "imbalance")["cycles", None, None] == cycles


def columns(**level):
    """Every lane has its rows of Q, and all reduce into the column of Z that the buffer holds."""
    formats, mapping = {"P": ["bitmask"], "Q": ["bitmask"]}, {"L1_T": ["n=32"], "L2_T": ["m=32"], "L2_S": ["k=32"]}
    levels = [LEVELS[0], LEVELS[1] | level]
    return product(0.125, 0.125, mapping, formats, {"MAC": "skip-both"}, levels, m=32, k=32, n=32)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_lanes_that_reduce_together_wait_for_the_fullest(depth) -> None:
    table = columns(double_buffered=depth > 1, buffer_depth=max(2, depth))
    sim = Simulation(*build(table))
    trial = sim.trial(np.random.default_rng(3), charged=True)
    work = trial.time.done.work.astype(float)
    ends, finished = np.zeros(32), [0.0] * depth
    for column in work:
        ends = np.maximum(ends, finished[-depth]) + column
        finished.append(ends.max())
    found = ChargedTrial(sim, trial).pay([registry().build("charge", "imbalance")]).values
    assert found["cycles", None, None] == finished[-1]
    assert work.shape == (32, 32) and work.sum() == found["compute", None, None]


def test_lanes_that_share_their_work_do_not_wait() -> None:
    mean = pay(columns())["cycles", None, None]
    assert pay(columns(), "imbalance")["cycles", None, None] > 4 * mean
    assert pay(columns(work_stealing=True), "imbalance")["cycles", None, None] == pytest.approx(mean, abs=32)


def test_the_report_tells_executed_over_analytic_of_both_fidelities_and_of_each_charge() -> None:
    table = columns()
    table["gate_skip"] = {"Buffer": "gate-q-by-p", "MAC": "skip-both"}
    table["cost_model"] = {"extends": "physical"}
    found = verify(*build(table), trials=3, compare=True)
    assert {one.name for one in found.fidelities} == {"timeloop", "physical"}
    effects = {effect.name: effect for effect in found.effects}
    assert set(effects) >= ALL
    assert effects["drains"].analytic[0] != 0 and effects["shared-words"].executed[1] > 0
    text = found.text()
    assert "Executed over analytic" in text and "gate-time" in text and "nan" not in text
    assert [x["cost_model"] for x in found.table()["cost_models"]] == ["timeloop", "physical"]


@attrs.frozen(kw_only=True)
class Rows(Charge):
    """Energy of all words at the outermost level, and a cycle for every tenth of a compute."""

    type_name = "rows"

    def pj(self, counts, chip):
        return 3.0 * (counts.read + counts.filled + counts.updated)[:, 0].sum(axis=0) + 0.5 * counts.cycles

    def cycles(self, counts, chip):
        return 10.0 * counts.computes


def test_a_charge_of_a_plugin_is_executed() -> None:
    table = product(1.0, 1.0, {"L2_T": ["m=4", "k=8"]}, m=4, k=8)
    free, found = pay(table), pay(table, Rows())
    assert found["cycles", None, None] == 320
    words = sum(free[action, 0, t] for action in ("read", "fill", "update") for t in (P, Q, Z))
    assert words == 4 * 8 + 8 + 4
    assert found["energy_pj", None, None] - free["energy_pj", None, None] == 3 * words + 160


def test_a_design_with_a_charge_of_a_plugin_is_verified_with_it() -> None:
    problem, designs = build(columns())
    problem = problem.variant(cost_model=attrs.evolve(problem.cost_model, charges=(Rows(),)))
    found = verify(problem, designs, trials=3)
    assert not any("not executed" in note for note in found.notes)
    rows = {row.quantity: row for row in found.rows if not row.level}
    assert rows["cycles"].mean == pytest.approx(rows["cycles"].expected, rel=0.1)
    assert rows["energy_pj"].mean == pytest.approx(rows["energy_pj"].expected, rel=0.1)


@pytest.mark.parametrize("charges", [("leakage",), "every"])
def test_the_report_has_the_model_and_the_charge_of_a_plugin(charges) -> None:
    problem, designs = build(columns())
    registry, model = problem.registry, problem.cost_model
    every = registry.resolve("cost-model", "physical").charges
    given = every if charges == "every" else tuple(registry.resolve("charge", name) for name in charges)
    problem = problem.variant(cost_model=attrs.evolve(model, charges=(*given, Rows()), name="mine"))
    found = verify(problem, designs, trials=3, compare=True)
    own = next(one for one in found.fidelities if one.name == "mine")
    rows = {row.quantity: row for row in found.rows if not row.level}
    assert own.analytic[0] == pytest.approx(rows["energy_pj"].expected) and own.ratios[0] == pytest.approx(1, rel=0.1)
    (charge,) = (one for one in found.effects if one.name == "rows")
    assert charge.analytic[0] > 0 and charge.ratios[0] == pytest.approx(1, rel=0.1)
    assert found.text().count("\nrows ") == 1 and found.text().count("\nmine ") == 1


@pytest.mark.parametrize("charges", [("overlap",), ("overlap", "imbalance")])
@pytest.mark.parametrize("double, cycles", [(False, 4 * 150), (["role:P"], 4 * 100 + 50)])
def test_what_goes_to_several_at_once_takes_the_time_of_one_transfer(charges, double, cycles) -> None:
    """Four times 50 words of P for four lanes that all use them, at half a word per cycle at each; 50 cycles for each."""
    registers = REGISTERS[2] | {"bypass": ["role:Q", "role:Z"], "write_bandwidth": "0.5 words/cycle"}
    levels = [*LEVELS, registers | {"double_buffered": double}]
    mapping = {"L2_T": ["m=4"], "L2_S": ["n=4"], "L3_T": ["k=50"]}
    assert pay(product(1.0, 1.0, mapping, levels=levels, m=4, k=50, n=4), *charges)["cycles", None, None] == cycles


BITMASKS = {"P": ["bitmask"], "Q": ["bitmask"]}
SUMS = product(1.0, 1.0, {"L2_T": ["m=4"], "L2_S": ["k=16"]}, m=4, k=16)
COPIES = product(1.0, 1.0, {"L2_T": ["m=2"], "L2_S": ["n=8"], "L3_T": ["k=4"]}, levels=REGISTERS, m=2, k=4, n=8)
GATED = product(0.5, 0.5, {"L2_T": ["m=4", "n=4", "k=4"]}, gate_skip={"Buffer": "gate-q-by-p"}, m=4, k=4, n=4)
LOOKED = product(
    1.0, 1.0, {"L2_T": ["m=4", "n=4", "k=4"]}, BITMASKS, {"Buffer": "skip-both", "MAC": "skip-both"}, m=4, k=4, n=4
)
FANNED = [LEVELS[0] | {"fanout": 3}, LEVELS[1] | {"leakage_mw": 2.0}]
LEAKING = product(1.0, 1.0, {"L2_T": ["m=4"], "L2_S": ["k=16"]}, levels=FANNED, m=4, k=16)
OFF = product(
    1.0, 1.0, {"L2_T": ["m=4"], "L2_S": ["k=16"]}, levels=[FANNED[0], FANNED[1] | {"power_gated": 0.3}], m=4, k=16
)
TILES = [LEVELS[0], LEVELS[1] | {"lookahead": 1}, REGISTERS[2]]
LOOKING = product(
    1.0, 1.0, {"L2_T": ["m=4", "k=8"], "L2_S": ["n=2"]}, BITMASKS, {"Buffer": "skip-q-by-p"}, TILES, m=4, k=8, n=2
)
LEAVING = product(
    1.0, 1.0, {"L1_T": ["n=4"], "L2_T": ["m=4"], "L2_S": ["k=8"]}, {}, levels=[LEVELS[0] | {"fanout": 2}, LEVELS[1]],
    m=4, k=8, n=4,
)  # fmt: skip

VECTORS = [LEVELS[0], LEVELS[1] | {"vectors": True}]
FIVE_OF_EIGHT = product(
    1.0, {"type": "n-of-m", "n": 5, "m": 8}, {"L1_T": ["k=16"], "L2_T": ["n=2"], "L2_S": ["n=4"]}, BITMASKS,
    {"MAC": "skip-both"}, VECTORS, k=16, n=8,
)  # fmt: skip
"""16 rows of five nonzeros on four lanes: two steps each, not 1.25."""


@pytest.mark.parametrize(
    "table, charges",
    [
        (SUMS, ["network"]), (COPIES, ["network"]), (LEAVING, ["network", "drains"]), (LEAKING, ["leakage"]), (OFF, ["leakage"]),
        (GATED, ["gated"]), (LOOKED, ["intersection"]), (LOOKED, ["intersection", "filter-metadata"]),
        (LOOKING, ["intersection"]), (LOOKING, ["intersection", "imbalance"]), (FIVE_OF_EIGHT, ["vectors"]),
    ],
)  # fmt: skip
def test_where_nothing_varies_a_charge_is_what_an_execution_pays(table, charges) -> None:
    def modelled(*names):
        problem, designs = build(table | {"cost_model": {"type": "analytic", "charges": list(names)}})
        found = problem.evaluator.evaluate_designs(designs)
        assert found.valid[0]
        return np.array([found.energy_pj[0], found.cycles[0]])

    def executed(*names):
        found = pay(table, *names)
        return np.array([found["energy_pj", None, None], found["cycles", None, None]])

    expected, added = (pays(*charges) - pays(*charges[1:]) for pays in (modelled, executed))
    assert expected.any()
    assert added == pytest.approx(expected, rel=1e-6)


def test_operands_without_metadata_that_gate_each_other_are_both_read() -> None:
    table = product(0.5, 0.5, {"L2_T": ["m=8", "n=8", "k=8"]}, {}, {"Buffer": "gate-both"}, m=8, k=8, n=8)
    assert pay(table)["read", 1, P] < 512
    assert [pay(table, "filter-metadata")["read", 1, t] for t in (P, Q)] == [512, 512]


@pytest.mark.parametrize("lookahead", [1, 1024])
def test_units_wait_for_the_longer_of_looking_and_of_each_other(lookahead) -> None:
    table = columns()
    table["hardware"]["compute"] = {"gate_skip": True, "lookahead": lookahead}
    both, waiting, looking = (
        pay(table, *charges)["cycles", None, None]
        for charges in (("imbalance", "intersection"), ("imbalance",), ("intersection",))
    )
    assert both == max(waiting, looking)
    assert looking > waiting if lookahead == 1 else waiting > looking


def test_transfers_that_nothing_hides_come_on_top_of_the_waiting() -> None:
    table = columns(write_bandwidth="8 words/cycle")
    both, waiting, moving = (
        pay(table, *charges)["cycles", None, None]
        for charges in (("overlap", "imbalance"), ("imbalance",), ("overlap",))
    )
    assert both > 1.05 * max(waiting, moving)


@pytest.mark.parametrize("p, q", [(1.0, 0.4), (0.3, 0.4), (0.1, 0.1)])
def test_lanes_that_step_together_take_whole_steps(p: float, q: float) -> None:
    """8 x 16 lanes take the nonzeros of 32 words of P and 32 of Q, as in dual-side tensor cores."""
    loops = {"L1_T": ["m=2", "n=2", "k=16"], "L2_T": ["m=4", "n=2"], "L2_S": ["m=8", "n=16"]}
    levels = [LEVELS[0], LEVELS[1] | {"vectors": True, "fanout": 128}]
    table = product(p, q, loops, BITMASKS, {"MAC": "skip-both"}, levels, m=64, k=16, n=64)
    assert _modelled(table, "vectors", "imbalance") == pytest.approx(_executed(table, "vectors", "imbalance"), rel=0.03)
    assert _executed(table, "vectors") > 1.3 * _executed(table)


@pytest.mark.parametrize("place", ["Buffer", "MAC"])
@pytest.mark.parametrize("loops", [["m=16", "n=16", "k=64"], ["k=64", "m=16", "n=16"]], ids=["lists", "rows"])
@pytest.mark.parametrize("width", [1, 4])
def test_comparators_pay_for_entries(place: str, loops: list[str], width: int) -> None:
    table = product(0.05, 0.05, {"L2_T": loops}, BITMASKS, {place: "comparing"}, m=16, k=64, n=16)
    table["pieces"] = {"mechanism": {"comparing": {"extends": "skip-both", "width": width, "entries": True}}}
    assert _modelled(table, "intersection") == pytest.approx(_executed(table, "intersection"), rel=0.05)
    assert _executed(table, "intersection") > (10 if loops[-1] == "k=64" else 1.4) * _executed(table)


@pytest.mark.parametrize("density", [0.2, 0.05])
@pytest.mark.parametrize("buffer, unit", [("skip-q-by-p", "skip-q-by-p"), ("skip-p-by-q", "skip-both")])
def test_skips_in_series_pass_positions_at_the_rate_of_the_slower_stage(density: float, buffer: str, unit: str) -> None:
    table = product(
        density,
        density,
        {"L2_T": ["m=16", "n=16", "k=64"]},
        BITMASKS,
        {"Buffer": buffer, "MAC": unit},
        m=16,
        k=64,
        n=16,
    )
    assert _modelled(table, "intersection") == pytest.approx(_executed(table, "intersection"), rel=0.05)
    assert _executed(table, "intersection") >= 16 * 16 * 64 / 128


@pytest.mark.parametrize("lanes", [2, 8])
def test_lanes_go_through_blocks_together(lanes: int) -> None:
    """Blocks of P have 8 columns: lanes side by side are in the same one, and go on to the next ones."""
    outer, inner = ["m=6", "n=4", f"k={lanes}"], ["n=4", "m=8", f"k={64 // lanes // lanes}"]
    table = product(
        {"type": "block", "density": 0.25, "block": [8, 8]}, 0.5,
        {"L1_T": outer, "L2_T": inner, "L2_S": [f"k={lanes}"]}, BITMASKS, {"MAC": "skip-both"}, m=48, k=64, n=16,
    )  # fmt: skip
    assert _modelled(table, "imbalance") == pytest.approx(_executed(table, "imbalance"), rel=0.1)


def _modelled(table, *names):
    problem, designs = build(table | {"cost_model": {"type": "analytic", "charges": list(names)}})
    return problem.evaluator.evaluate_designs(designs).cycles[0]


def _executed(table, *names):
    return np.mean([pay(table, *names, seed=seed)["cycles", None, None] for seed in range(4)])


def test_a_list_that_ends_ends_the_others() -> None:
    """Entries at 0, 3 and 5, and at 1, 2, 3 and 7: three comparisons before the pair, one after it, none at 7."""
    lists = [np.isin(np.arange(8), some)[:, None] for some in ([0, 3, 5], [1, 2, 3, 7])]
    assert np.flatnonzero(comparisons(lists, (8, 1), 1)).tolist() == [0, 1, 2, 5]
    assert np.flatnonzero(comparisons(lists, (8, 1), 2)).tolist() == [0, 1, 5]
    assert not comparisons(lists, (1, 8), 1).any() and comparisons(lists, (2, 4), 1).sum() == 1


EVERY_POSITION = {"L2_T": ["m=16", "n=16", "k=64"]}


def test_positions_that_no_skip_covers_take_their_cycles() -> None:
    plain = product(0.1, 0.1, EVERY_POSITION, BITMASKS, m=16, k=64, n=16)
    assert pay(plain, "positions")["cycles", None, None] == 16 * 64 * 16
    assert pay(plain)["cycles", None, None] < 16 * 64 * 16
    for place in ("Buffer", "MAC"):
        skipped = product(0.1, 0.1, EVERY_POSITION, BITMASKS, {place: "skip-both"}, m=16, k=64, n=16)
        assert pay(skipped, "positions")["cycles", None, None] == pay(skipped)["cycles", None, None]


@pytest.mark.parametrize("place", ["Buffer", "MAC"])
def test_empty_positions_pass_no_faster_than_a_skip_is_wide(place: str) -> None:
    """One lane, 256 of 16,384 positions taken: 16 at a time the model says 1,150 cycles, 128 at a time 296."""
    table = product(1.0, 1 / 64, EVERY_POSITION, BITMASKS, {place: "skip-both"}, m=16, k=64, n=16)
    executed = [pay(table, "intersection", seed=seed)["cycles", None, None] for seed in range(4)]
    assert np.mean(executed) == pytest.approx(296, rel=0.03)
    narrow = [LEVELS[0], LEVELS[1] | {"lookahead": 16}]
    table = product(1.0, 1 / 64, EVERY_POSITION, BITMASKS, {"Buffer": "skip-both"}, levels=narrow, m=16, k=64, n=16)
    executed = [pay(table, "intersection", seed=seed)["cycles", None, None] for seed in range(4)]
    assert np.mean(executed) == pytest.approx(1150, rel=0.02)


def test_tiles_that_are_empty_pass_no_faster_than_a_skip_is_wide() -> None:
    """Rows of P of 8 words go to registers unless the word of Q is empty: of 512 of them 1 in 64 is there."""
    mapping = {"L2_T": ["n=8", "k=64"], "L3_T": ["m=8"]}
    levels = [LEVELS[0], LEVELS[1] | {"lookahead": 4}, REGISTERS[2]]
    table = product(1.0, 1 / 64, mapping, BITMASKS, {"Buffer": "skip-p-by-q"}, levels=levels, m=8, k=64, n=8)
    executed = [pay(table, "intersection", seed=seed)["cycles", None, None] for seed in range(6)]
    busy = 8 * 8
    assert np.mean(executed) == pytest.approx(busy + 8 * (1 / (1 - (63 / 64) ** 4) - 1), rel=0.05)
