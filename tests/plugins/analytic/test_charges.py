"""Charges by hand: each on a design whose numbers can be counted, as docs/model.md tells it."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from charged import LEVELS, REGISTRY, cost, made, product
from sparsemap_plugins.analytic.charges.alike import rarity
from sparsemap_plugins.analytic.charges.maxima import DEVIATIONS, LANES, NORMAL, NORMAL_MAXIMA
from sparsemap_plugins.analytic.inner import functions
from sparsemap_plugins.analytic.inner import ratios as longest_work
from sparsemap_plugins.analytic.inner.cost import tree_mm
from sparsemap_plugins.analytic.inner.imbalance import together, words_apart
from sparsemap_plugins.analytic.inner.overlap import later
from sparsemap_plugins.analytic.prices import length_mm

from sparsemap import load_problem, search
from sparsemap.testing import check_cost_model

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


def test_a_gate_that_finds_nothing_to_hold_back_costs_what_none_costs() -> None:
    dense = {"workload": product(1.0, m=4, k=8), "mapping": {"L2_T": ["m=4", "k=8"]}, "formats": {"P": ["bitmask"]}}
    gated = dense | {"gate_skip": {"Buffer": "gate-q-by-p"}}
    for charges in ((), ("gate-time",), ("gate-time", "drains", "sums")):
        free, held = cost(dense, *charges), cost(gated, *charges)
        assert (free.cycles[0], free.energy_pj[0]) == (held.cycles[0], held.energy_pj[0])


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
    return found.detail.cells[tensor][level]


def test_results_are_read_where_they_leave_and_updated_where_a_compute_is() -> None:
    table = {"workload": product((1.0, 1.0), m=4, k=8), "mapping": {"L2_T": ["m=4", "k=8"]}}
    dense = cell(cost(table, "drains", "sums"), 2, 1)
    assert (dense.update[0], dense.read[0]) == (32, 28 + 4)
    sparse = {**table, "workload": product((0.5, 1.0), m=4, k=8), "formats": {"P": ["bitmask"]}}
    sparse["gate_skip"] = {"MAC": "skip-q-by-p"}
    found = cell(cost(sparse, "drains", "sums"), 2, 1)
    assert found.update[0] == 16
    assert found.read[0] == pytest.approx(16 - 4 * (1 - 2**-8) + 4)


def test_lanes_that_reduce_together_update_if_any_of_them_has_a_product() -> None:
    table = {
        "workload": product((0.5, 1.0), m=4, k=8), "mapping": {"L2_T": ["m=4"], "L2_S": ["k=8"]},
        "formats": {"P": ["bitmask"]}, "gate_skip": {"MAC": "skip-q-by-p"},
    }  # fmt: skip
    assert cell(cost(table, "drains", "sums"), 2, 1).update[0] == pytest.approx(4 * (1 - 2**-8))


def test_partial_sums_that_are_zero_stay_where_they_are() -> None:
    table = {
        "workload": product((0.5, 0.5), m=4, k=2) | {"density": {"P": 0.5, "Q": 0.5, "Z": 0.75}},
        "mapping": {"L1_T": ["k=2", "m=2"], "L2_T": ["m=2"]}, "formats": {"Z": ["bitmask"]},
    }  # fmt: skip
    found = cost(table, "drains", "sums")
    buffer, dram = cell(found, 2, 1), cell(found, 2, 0)
    # visited twice: half are there after the first visit, three quarters after the second; per instance with a tile
    held = found.detail.instances_active[2, 1, 0]
    assert dram.update[0] == pytest.approx(4 * (0.5 + 0.75))
    assert dram.read[0] == pytest.approx(4 * 0.5)
    assert buffer.fill[0] * held == pytest.approx(4 * 0.5)


def test_instances_that_share_the_products_of_a_word_hold_fewer_sums() -> None:
    """Two buffers have half of the products of every word; what both hold is added on its way to DRAM."""
    table = {
        "groups": ["L1_T", "L1_S", "L2_T", "L2_S"],
        "workload": product((0.5, 0.5), m=4, k=2) | {"density": {"P": 0.5, "Q": 0.5, "Z": 0.75}},
        "mapping": {"L1_S": ["k=2"], "L2_T": ["m=4"]}, "formats": {"Z": ["bitmask"]},
    }  # fmt: skip
    found = cost(table, "drains", "sums", levels=[LEVELS[0] | {"fanout": 2}, LEVELS[1]])
    held = found.detail.instances_active[2, 1, 0]
    assert cell(found, 2, 0).update[0] == pytest.approx(4 * 0.75)
    # nothing is read before the only update of a word, so that all reads are of words that leave
    assert cell(found, 2, 1).read[0] * held == pytest.approx(2 * 4 * 0.5)


def bits(found, tensor, level, action):
    return float(cell(found, tensor, level).bits[action][0])


def test_what_a_filter_looks_at_is_read() -> None:
    table = {
        "workload": product(0.5, m=8, k=8, n=8), "mapping": {"L2_T": ["m=8", "n=8", "k=8"]},
        "formats": {"P": ["bitmask"], "Q": ["bitmask"]}, "gate_skip": {"Buffer": "skip-both", "MAC": "skip-both"},
    }  # fmt: skip
    free, charged = cost(table), cost(table, "filter-metadata")
    # 512 accesses to tiles of 64 words: the bitmap passes eight times
    assert (bits(free, 0, 1, "read"), bits(charged, 0, 1, "read")) == (256, pytest.approx(512, abs=1))
    assert cell(free, 0, 1).read[0] == cell(charged, 0, 1).read[0]  # metadata say which words are there
    plain = {**table, "formats": {}, "gate_skip": {"Buffer": "gate-both"}}
    assert (cell(cost(plain), 0, 1).read[0], cell(cost(plain, "filter-metadata"), 0, 1).read[0]) == (256, 512)


def test_a_tile_that_stays_is_needed_by_all_that_it_meets() -> None:
    """Registers keep 4 words of P while n goes on in DRAM's block: 1 - (15/16)^16 of them meet a word of Q that is not zero;
    computes go by each word of Q."""
    registers = {"name": "Registers", "class": "sram", "capacity": "64 KB"}
    table = {
        "workload": product((1.0, 1 / 16), m=4, k=64, n=16), "groups": ["L1_T", "L2_T", "L2_S", "L3_T"],
        "mapping": {"L1_T": ["k=64", "n=16"], "L3_T": ["m=4"]},
        "formats": {"Q": ["bitmask"]}, "gate_skip": {"Buffer": "skip-p-by-q"},
    }  # fmt: skip
    for charges, share in (((), 1 / 16), (("stay",), 1 - (15 / 16) ** 16)):
        found = cost(table, *charges, levels=[*LEVELS, registers])
        sent = [cell(found, 0, 1).read[0], cell(found, 0, 2).fill[0]]
        assert sent == pytest.approx([256 * share] * 2, abs=2.5)  # Q has exactly 64 words that are not zero
        assert cell(found, 0, 2).read[0] == 4096 / 16


def test_run_lengths_have_the_bits_that_an_encoder_needs() -> None:
    table = {
        "workload": product((0.1, 1.0), m=10, k=8), "mapping": {"L2_T": ["m=10", "k=8"]},
        "formats": {"P": ["uncompressed", "run-length"]},
    }  # fmt: skip
    # ten fibers of about 3.3 tokens of two bits; without the charge 8 runs of 4 bits in the fibers with any
    assert bits(cost(table, "run-lengths"), 0, 1, "fill") == 67
    assert bits(cost(table), 0, 1, "fill") < 4 * 8


def test_bitmaps_of_empty_fibers_are_written_unless_a_rank_outside_leaves_them_out() -> None:
    table = {
        "workload": product((0.1, 1.0), m=10, k=8), "mapping": {"L2_T": ["m=10", "k=8"]},
        "formats": {"P": ["uncompressed", "bitmask"]},
    }  # fmt: skip
    assert bits(cost(table, "run-lengths"), 0, 1, "fill") == 80
    assert bits(cost(table | {"formats": {"P": ["bitmask", "bitmask"]}}, "run-lengths"), 0, 1, "fill") < 10 + 80


@pytest.mark.parametrize("inner", ["bitmask", "run-length", "coordinate"])
@pytest.mark.parametrize("density", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("outer", ["uncompressed", "bitmask", "run-length", "coordinate", "offset-pair"])
def test_no_format_needs_less_than_the_entropy_of_the_mask(inner: str, outer: str, density: float) -> None:
    """Metadata and values of 16 bits, against the entropy of a mask of 64 x 32 words with as many nonzeros."""
    table = {
        "workload": product((density, 1.0), m=64, k=32), "mapping": {"L2_T": ["m=64", "k=32"]},
        "formats": {"P": [outer, inner]},
    }  # fmt: skip
    found = cost(table, "run-lengths", "pointers")
    nonzeros = math.ceil(density * 64 * 32)
    values = 16 * nonzeros
    entropy = math.log2(math.comb(64 * 32, nonzeros))
    metadata = bits(found, 0, 1, "fill")
    assert metadata + values >= entropy
    assert metadata >= entropy * 0.999


REGISTERS = [
    {"name": "DRAM", "class": "dram"},
    {"name": "Buffer", "class": "sram", "capacity": "1 MB", "fanout": 4, "gate_skip": True},
    {"name": "Registers", "class": "regfile", "capacity": "1 KB"},
]
ROWS = {
    "groups": ["L1_T", "L2_T", "L2_S", "L3_T"], "workload": product((0.25, 1.0), m=8, k=16),
    "mapping": {"L2_T": ["m=8"], "L3_T": ["k=16"]}, "formats": {"P": ["uncompressed", "coordinate"]},
}  # fmt: skip


def payload(found, level):
    metadata = cell(found, 0, level).metadata
    return float((metadata.largest[1] * metadata.payload_bits).sum())


def test_offsets_are_stored_where_rows_are_left_out_or_go_to_several_readers() -> None:
    charged = cost(ROWS, "pointers", levels=REGISTERS)
    assert (payload(charged, 0), payload(charged, 1), payload(charged, 2)) == (0, 0, 0)  # streams in order
    by_q = ROWS | {"gate_skip": {"Buffer": "gate-p-by-q"}}
    assert payload(cost(by_q, levels=REGISTERS), 1) == 0
    for table in (by_q, ROWS | {"mapping": {"L2_T": ["m=2"], "L2_S": ["m=4"], "L3_T": ["k=16"]}, "formats": {
        "P": ["uncompressed", "uncompressed", "coordinate"]}}):  # fmt: skip
        charged = cost(table, "pointers", levels=REGISTERS)
        rows = 2 * (4 + 1) if "L2_S" in table["mapping"] else 8 + 1
        place = 8
        assert [payload(charged, level) for level in (0, 1)] == pytest.approx([rows * place] * 2)
        assert payload(charged, 2) == 0


def streamed(**level):
    """Four tiles of 100 words at a word per cycle; two units take 50 cycles for each."""
    levels = [LEVELS[0] | {"bandwidth": "1 words/cycle"}, LEVELS[1] | level]
    table = {"workload": product(1.0, m=4, k=100), "mapping": {"L1_T": ["m=4"], "L2_T": ["k=50"], "L2_S": ["k=2"]}}
    return {"table": table, "levels": levels}


def test_a_single_buffer_waits_for_its_transfers_and_a_second_one_hides_them_but_for_the_first() -> None:
    bypass = {"bypass": ["role:Q", "role:Z"]}
    for level, cycles in (({}, 600), ({"double_buffered": True}, 450), ({"double_buffered": ["role:P"]}, 450)):
        # Q and Z pass by: the words of P are all that the buffer is written
        given = streamed(**level)
        free = [given["levels"][0] | {"bandwidth": "1000000 words/cycle"}, given["levels"][1] | bypass]
        free[1] |= {"write_bandwidth": "1 words/cycle"}
        assert cost(given["table"], levels=free).cycles[0] == 400
        assert cost(given["table"], "overlap", levels=free).cycles[0] == cycles


def test_results_leave_while_the_last_tile_is_computed() -> None:
    """Two tiles of a word of P, with 50 of Q that stay and 50 results each, four cycles a word; 50 cycles for each."""
    table = {"workload": product(1.0, m=2, n=50), "mapping": {"L1_T": ["m=2"], "L2_T": ["n=50"]}}
    for double, cycles in ((False, 4 * 152 + 100), (True, 4 * 51 + 50 + 200 + 200)):
        levels = [LEVELS[0] | {"bandwidth": "0.25 words/cycle"}, LEVELS[1] | {"double_buffered": double}]
        assert cost(table, "overlap", levels=levels).cycles[0] == cycles


def test_two_buffers_have_half_the_room() -> None:
    table = {"workload": product(1.0, m=4, k=100), "mapping": {"L1_T": ["m=4"], "L2_T": ["k=100"]}}
    for words, double, fits in ((201, False, True), (402, True, True), (401, True, False)):
        levels = [LEVELS[0], LEVELS[1] | {"capacity": f"{words} words", "double_buffered": double}]
        design = made(table, "overlap", levels=levels)
        assert design.problem.evaluator.evaluate_designs(design.batch).valid[0] == fits
        assert made(table, levels=levels).problem.evaluator.evaluate_designs(design.batch).valid[0]


COLUMNS = {
    "workload": product(0.125, m=64, k=64, n=64), "formats": {"P": ["bitmask"], "Q": ["bitmask"]},
    "mapping": {"L1_T": ["n=64"], "L2_T": ["m=64"], "L2_S": ["k=64"]}, "gate_skip": {"MAC": "skip-both"},
}  # fmt: skip


def executed(depth: int, seed: int) -> float:
    """Cycles of COLUMNS on random matrices: a unit begins a column when all have finished the one `depth` before it."""
    rng = np.random.default_rng(seed)
    p, q = (rng.permutation(np.arange(4096) < 512).reshape(64, 64) for _ in range(2))
    work, ends, finished = q.T * p.sum(axis=0), np.zeros(64), [0.0] * depth
    for column in work:
        ends = np.maximum(ends, finished[-depth]) + column
        finished.append(ends.max())
    return finished[-1]


def lanes(**level):
    return [LEVELS[0], LEVELS[1] | {"fanout": 64} | level]


def waiting(**level):
    return cost(COLUMNS, "imbalance", levels=lanes(**level)).cycles[0]


def test_units_that_reduce_together_wait_for_the_fullest_column() -> None:
    assert cost(COLUMNS, levels=lanes()).cycles[0] == 64
    single, double = (np.mean([executed(depth, seed) for seed in range(20)]) for depth in (1, 2))
    assert waiting() == pytest.approx(single, rel=0.05)
    assert waiting(double_buffered=True) == pytest.approx(double, rel=0.1)
    assert waiting(double_buffered=True, buffer_depth=8) < 0.7 * double


def test_a_second_copy_of_a_small_tile_makes_no_step_longer() -> None:
    """However unevenly lanes work: executed, these designs take as long with both, and at most as long with two."""
    compute = {"name": "MAC", "gate_skip": True}
    hardware = {"kind": "hardware", "name": "h", "technology": "12nm", "clock": "1 GHz", "compute": compute}
    buffer = {
        "name": "BUF",
        "class": "sram",
        "capacity": "64 KB",
        "gate_skip": True,
        "fanout": 8,
        "double_buffered": True,
    }
    word = {"name": "LRF", "class": "regfile", "capacity": "4 words", "metadata_capacity": "unlimited"}
    workload = {"kind": "workload", "name": "w", "type": "einsum", "einsum": "Z[s, x] = P[x, k] * Q[s, k]"}
    workload |= {"dims": dict.fromkeys("sxk", 16), "density": {"P": 1.0, "Q": 0.3}}
    found = []
    for doubled in (False, True):
        levels = [{"name": "DRAM", "class": "dram", "bandwidth": "64 words/cycle"}]
        levels += [buffer | {"read_bandwidth": "8 words/cycle"}]
        levels += [word | {"double_buffered": doubled, "bypass": ["role:P", "role:Z"]}]
        problem = load_problem(
            workload, hardware | {"levels": levels}, "full", cost_model="physical", registry=REGISTRY
        )
        if not found:
            rng = np.random.default_rng(0)
            genomes = problem.space.repair(problem.space.sample(1000, rng), rng)
        found.append(problem.evaluator.evaluate(genomes).cycles)
    both = np.isfinite(found).all(axis=0)
    assert both.sum() > 300 and (found[1][both] <= 1.02 * found[0][both]).all()


def test_nobody_waits_where_work_is_shared_out_or_nothing_is_skipped() -> None:
    assert waiting(work_stealing=True) == 64
    every = COLUMNS | {"gate_skip": {}, "formats": {}}
    assert cost(every, "imbalance", levels=lanes()).cycles[0] == cost(every, levels=lanes()).cycles[0] == 4096


def test_private_streams_wait_at_the_end_alone() -> None:
    """Rows of Z over the units: each has its own rows of P and Z, and a copy of Q."""
    rows = COLUMNS | {"mapping": {"L2_T": ["n=64", "k=64"], "L2_S": ["m=64"]}}
    assert 64 < cost(rows, "imbalance", levels=lanes()).cycles[0] < 64 * 2.6


def test_all_memories_leak_as_long_as_the_design_runs() -> None:
    levels = [LEVELS[0], LEVELS[1] | {"capacity": "128 KB"}]
    plain, leaky = (cost(DOT, *charges, levels=levels, clock="500 MHz") for charges in ((), ("leakage",)))
    assert leaky.energy_pj[0] - plain.energy_pj[0] == pytest.approx(18.645 * 12 / 22 * plain.cycles[0] * 2)
    own = [LEVELS[0] | {"fanout": 3}, LEVELS[1] | {"leakage_mw": 2.0}]
    assert cost(DOT, "leakage", levels=own).detail.charges_pj["leakage"][0] == 3 * 2 * 48


@pytest.mark.parametrize(("share", "instances"), [(0.0, 1.0), (0.25, 1.5), (1.0, 3.0)])
def test_an_instance_that_is_not_used_and_switched_off_leaks_its_share(share, instances) -> None:
    """One of three buffers has work."""
    levels = [LEVELS[0] | {"fanout": 3}, LEVELS[1] | {"leakage_mw": 2.0, "power_gated": share}]
    assert cost(DOT, "leakage", levels=levels).detail.charges_pj["leakage"][0] == instances * 2 * 48


def test_a_gated_access_costs_what_the_technology_says_remains() -> None:
    table = DOT | {"formats": {}, "gate_skip": {"Buffer": "gate-q-by-p", "MAC": "gate-both"}}
    energy = {"read": 10.0, "gated_read": 0.5}
    levels = [LEVELS[0], LEVELS[1] | {"energy": energy}]
    compute = {"gate_skip": True, "energy": {"compute": 4.0}}
    found = cost(table, "gated", levels=levels, compute=compute)
    # 32 reads of Q gated, for a tenth of 10 pJ less the 0.5 that are stated; of the 32 computes left 16 gated
    assert found.detail.charges_pj["gated"][0] == pytest.approx(32 * 0.5 + 16 * 0.4)


def test_wires_of_a_tree_are_as_long_as_its_square_is_wide() -> None:
    """So say the model and its bound."""
    for length in (tree_mm, length_mm):
        assert [length(copies, 16.0, 1.0) for copies in (1.0, 16.0, 20.0)] == pytest.approx([0.75, 4.5, 4.5])


def test_words_cross_the_tree_of_their_level_and_sums_are_added_on_the_way() -> None:
    technology = {"extends": "12nm", "mac": {"add_pj": [0.0, 0.0], "multiply_um2": [1e8, 1e8], "add_um2": [1e8, 1e8]}}
    technology["mac"]["add_pj"] = [1e-9, 1e-9]
    table = {"workload": product(1.0, m=4, k=16), "mapping": {"L2_T": ["m=4"], "L2_S": ["k=16"]}}
    levels = [LEVELS[0], LEVELS[1] | {"fanout": 16}]
    found = cost(table, "network", levels=levels, technology=technology)
    side = math.sqrt(16 * 200) * 12 / 45
    bit = 0.078125 * (0.8 / 0.75) ** 2
    # 64 words of P and of Q to one unit each; 4 sums from all sixteen; words to the buffer cross no tree
    expected = 16 * bit * side * (2 * 64 * 0.75 + 4 * 4.5)
    assert found.detail.charges_pj["network"][0] == pytest.approx(expected, rel=1e-6)


def test_a_skipping_unit_looks_at_so_many_positions_in_a_cycle() -> None:
    table = {
        "workload": product(0.01, m=100, k=100), "mapping": {"L2_T": ["m=100", "k=100"]},
        "formats": {"P": ["bitmask"], "Q": ["bitmask"]}, "gate_skip": {"MAC": "skip-both"},
    }  # fmt: skip
    compute = {"gate_skip": True, "lookahead": 32}
    assert cost(table, compute=compute).cycles[0] < 5
    assert cost(table, "intersection", compute=compute).cycles[0] == pytest.approx(10_000 / 32, rel=0.02)
    assert cost(table, "intersection").energy_pj[0] > cost(table).energy_pj[0]


@pytest.mark.parametrize("workload, hardware", [("conv11", "mobile"), ("mttkrp", "edge"), ("conv1", "scnn-like")])
def test_charged_designs_cost_the_same_in_any_batch_and_in_detail(workload: str, hardware: str) -> None:
    problem = load_problem(workload, hardware, cost_model="physical", registry=REGISTRY)
    check_cost_model(problem.cost_model, problem, 100)


def test_a_result_tells_its_design_in_the_other_fidelity() -> None:
    problem = load_problem("mm1", "mobile", cost_model="physical", registry=REGISTRY)
    best = search(problem, budget=300, seed=0).found
    assert list(best.fidelities) == ["timeloop"]
    assert best.fidelities["timeloop"]["edp"] < best.edp


@pytest.mark.parametrize("seed", range(5))
def test_a_distribution_of_very_many_equal_values_has_that_value_as_its_maximum(seed: int) -> None:
    """Means of merged values differ by their rounding."""
    p, found = np.random.default_rng(seed).random(1000), np.empty(len(LANES) + 4)
    functions.work(np.full(1000, 0.3), p / p.sum(), np.ones(1), len(LANES), np.empty((3, 256)), found)
    assert np.allclose(found[: len(LANES)], 0.3, rtol=1e-3)


def test_positions_that_a_filter_further_out_removes_are_not_looked_at() -> None:
    """Registers hold a word of P for eight of Q: the buffer leaves it out if all eight are zero, and its positions with it."""
    levels = [*REGISTERS[:2], REGISTERS[2] | {"gate_skip": True, "lookahead": 1}]
    table = {
        "groups": ["L1_T", "L2_T", "L2_S", "L3_T"], "workload": product((1.0, 0.1), m=4, k=8, n=8),
        "mapping": {"L2_T": ["m=4", "k=8"], "L3_T": ["n=8"]}, "formats": {"Q": ["bitmask", "bitmask"]},
    }  # fmt: skip
    found = {}
    for where in ("Buffer", "none"):
        filters = {"Buffer": "skip-p-by-q" if where == "Buffer" else "none", "Registers": "skip-p-by-q"}
        charged = cost(table | {"gate_skip": filters}, "intersection", levels=levels)
        found[where] = float(charged.detail.compute_cycles[0])
    nonzeros = math.ceil(0.1 * 64)
    empty = math.comb(64 - 8, nonzeros) / math.comb(64, nonzeros)
    assert found == {"none": 256, "Buffer": math.ceil(256 * (1 - empty))}


@pytest.mark.parametrize("depth, cycles", [(1, 761), (2, 399), (4, 232), (8, 149)])
def test_units_with_room_for_more_parts_wait_for_the_slowest_of_more_of_them(depth: int, cycles: int) -> None:
    """Eight parts in a row count: with two, a depth of 8 would give 138."""
    assert waiting(**({"double_buffered": True, "buffer_depth": depth} if depth > 1 else {})) == cycles


@pytest.mark.parametrize(
    "depth, count, density", [(1, 2, 0.15), (2, 2, 0.15), (1, 32, 0.05), (2, 32, 0.05), (4, 8, 0.4)]
)
def test_units_that_all_have_the_same_part_of_an_operand_wait_for_the_other_one(depth, count, density) -> None:
    """Units with columns of their own take a column of P, 6 words, times 6 words of a row of Q each."""
    table = {
        "workload": product((density, density), m=6, k=400, n=6 * count), "formats": {"P": ["bitmask"], "Q": ["bitmask"]},
        "mapping": {"L1_T": ["k=400"], "L2_T": ["m=6", "n=6"], "L2_S": [f"n={count}"]}, "gate_skip": {"MAC": "skip-both"},
    }  # fmt: skip
    rng = np.random.default_rng(0)
    work = rng.binomial(6, density, (6000, 1)) * rng.binomial(6, density, (6000, count))
    ends, finished = np.zeros(count), [0.0] * depth
    for part in work:
        ends = np.maximum(ends, finished[-depth]) + part
        finished.append(ends.max())
    level = lanes(**({"double_buffered": True, "buffer_depth": depth} if depth > 1 else {}))
    found, mean = (cost(table, *charges, levels=level).detail.compute_cycles[0] for charges in (("imbalance",), ()))
    assert found / mean == pytest.approx(finished[-1] / work.sum() * count, rel=0.1)


def test_a_tile_without_work_hides_no_transfer() -> None:
    """35 cycles of work for 15 tiles in 100, and 2.4 cycles for each to come."""
    rng = np.random.default_rng(0)
    times = np.where(rng.random(100_000) < 0.15, 35.0, 0.0)
    found = later(times.mean(), 2.4, times.std(), 0.0, 0.15)
    assert found == pytest.approx(np.maximum(times, 2.4).mean(), rel=0.01)


NORMAL_NUMBERS = SimpleNamespace(
    deviations=DEVIATIONS, normal_means=NORMAL_MAXIMA[0], normal_deviations=NORMAL_MAXIMA[1], normal_at=NORMAL[0],
    normal_below=NORMAL[1],
)  # fmt: skip
"""The tables of `Facts` that are of no problem."""


def pace(longest: list[float], depth: int, units: float) -> float:
    """`longest`: work of 1, 2, 4 and 8 consecutive parts, over the mean."""
    design = SimpleNamespace(growth=np.zeros((4, 4)), depth=depth)
    design.growth[longest_work.LONGEST_WORK] = longest
    return longest_work.pace_of(NORMAL_NUMBERS, design, len(longest), units)


@pytest.mark.parametrize(
    ("longest", "depth", "units"),
    [([3.0, 2.2, 1.7, 1.4], 2, 64.0), ([6.0, 4.0, 3.0, 2.0], 3, 1000.0), ([1.5, 1.3, 1.2, 1.1], 8, 4.0)],
)
def test_the_pace_of_units_is_solved_to_the_end(longest, depth, units, monkeypatch: pytest.MonkeyPatch) -> None:
    found = pace(longest, depth, units)
    monkeypatch.setattr(longest_work, "NEWTON", 40)
    assert found == pytest.approx(pace(longest, depth, units), rel=1e-6)


def test_words_of_a_block_are_empty_together() -> None:
    facts = SimpleNamespace(rarity=np.array([rarity(0.25)]))
    tiles = [(4.0, 0.75), (4.0, 0.75**4), (8.0, 0.75**2), (4.0, 0.0), (np.inf, 0.0)]
    assert [words_apart(facts, 0, words, empty) for words, empty in tiles] == [1.0, 4.0, 2.0, 4.0, np.inf]


def simulated_waits(pairs: int, parts: int, columns: int, rng: np.random.Generator) -> float:
    """The end over the mean work, of lanes that come in pairs: both wait for each other after each part, and all lanes after
    each column of `parts`."""
    work = rng.normal(1.0, 0.2, (columns, parts, pairs, 2))
    return float(work.max(axis=3).sum(axis=1).max(axis=1).sum() / work.sum(axis=(0, 1)).mean())


@pytest.mark.parametrize(("pairs", "parts"), [(5, 1), (5, 7), (32, 4)])
def test_groups_that_wait_for_each_other_wait_as_a_whole_at_another_point(pairs: int, parts: int) -> None:
    units = np.array([2.0, 2.0 * pairs])
    mean = np.array([longest_work.by_lanes(NORMAL_MAXIMA[0], count) for count in units])
    ratios = 1.0 + 0.2 * mean / np.array([1.0, math.sqrt(parts)])
    design = SimpleNamespace(
        points=2, point_ratio=ratios, point_turns=np.array([100.0 * parts, 100.0]), point_units=units, alongs=2, stepping=0,
        point_loop=np.array([[1.0, 2.0], [pairs, 2.0]]),
    )  # fmt: skip
    expected = simulated_waits(pairs, parts, 400, np.random.default_rng(0))
    assert together(NORMAL_NUMBERS, design) == pytest.approx(expected, rel=0.01)
    design.point_loop[1, 1] = 1.0  # the pairs are of another loop: neither is within the other
    assert together(NORMAL_NUMBERS, design) == ratios.max()


def test_what_is_gated_costs_no_less_than_the_technology_says() -> None:
    table = DOT | {"formats": {}, "gate_skip": {"Buffer": "gate-q-by-p", "MAC": "gate-both"}}
    levels = [LEVELS[0], LEVELS[1] | {"energy": {"read": 10.0, "gated_read": 5.0}}]
    compute = {"gate_skip": True, "energy": {"compute": 4.0, "gated": 3.0}}
    assert cost(table, "gated", levels=levels, compute=compute).detail.charges_pj["gated"][0] == 0.0


@pytest.mark.parametrize(
    ("layer", "loops", "words"),
    [
        ({"c": 1, "p": 7, "q": 7, "r": 5, "s": 5, "padding": 2}, {"L2_T": ["p=7", "q=7", "r=5", "s=5"]}, 49),
        ({"c": 1, "p": 7, "q": 7, "r": 5, "s": 5, "padding": 2}, {"L1_T": ["p=7"], "L2_T": ["q=7", "r=5", "s=5"]}, 49),
        ({"c": 1, "p": 6, "q": 6, "r": 3, "s": 3, "padding": 1}, {"L1_T": ["p=3"], "L2_T": ["p=2", "q=6", "r=3", "s=3"]}, 36),
        ({"c": 1, "p": 6, "q": 6, "r": 3, "s": 3, "padding": 1},
         {"L1_T": ["p=2", "r=3"], "L2_T": ["p=3", "q=6", "s=3"]}, 6 * (4 + 4)),
        ({"c": 1, "p": 4, "q": 4, "stride": 2}, {"L2_T": ["p=4", "q=4"]}, 16),
        ({"c": 1, "p": 4, "q": 4, "r": 3, "s": 3, "stride": 2, "padding": 1, "image": 8},
         {"L2_T": ["p=4", "q=4", "r=3", "s=3"]}, 64),
    ],
)  # fmt: skip
def test_padding_and_holes_are_no_words(layer: dict, loops: dict, words: int) -> None:
    """From DRAM, rows that are on chip do not come again, and padding and holes never do; units read them not either."""
    dims = {"c": 1, "p": 1, "q": 1, "r": 1, "s": 1, **{key: layer[key] for key in "pqrs" if key in layer}}
    table = {"workload": {"type": "depthwise", "dims": dims, **layer}, "mapping": loops}
    found = cost(table, "holes")
    assert (cell(found, 0, 0).read[0], cell(found, 0, 1).fill[0]) == pytest.approx((words, words))
    stride, first = layer.get("stride", 1), layer.get("padding", 0)
    rows = [stride * a + b - first for a in range(dims["p"]) for b in range(dims["r"])]
    assert cell(found, 0, 1).read[0] == pytest.approx(sum(0 <= row < stride * dims["p"] for row in rows) ** 2)
