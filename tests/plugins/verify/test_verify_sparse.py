"""Sparse designs: the worked examples within their confidence intervals, the output always right."""

import math

import numpy as np
import pytest
from hypothesis import example as also_with
from hypothesis import given, settings
from hypothesis import strategies as st
from sparsemap_plugins.verify import verify
from sparsemap_plugins.verify.leaders import SKIP, guards
from sparsemap_plugins.verify.nest import ExecutedNest
from verify_designs import BITMASK, CSR, EINSUMS, PIECES, build, example, random_design

EXAMPLES = {
    "12.2": (example(p=0.25, p_formats=CSR), 12584.401171),
    "12.3": (example(p=0.25, p_formats=BITMASK), 12494.444628),
    "12.4": (example(p=0.25, q=0.5, p_formats=BITMASK, GLB="skip-q"), 12425.444628),
    "12.5": (example(p=0.25, q=0.5, p_formats=BITMASK, MAC="gate-q"), 12292.844628),
    "12.6": (example(p=0.25, q=0.5, p_formats=BITMASK, PEB="gate-q", MAC="gate-q"), 12187.244628),
    "12.8": (example(p=0.25, q=0.5, p_formats=BITMASK, q_formats=BITMASK, PEB="skip-pq"), 8602.495257),
    "12.9": (example(p=0.25, q=0.5, p_formats=BITMASK, GLB="skip-q", PEB="skip-q"), 12164.444628),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_worked_examples(name):
    table, energy = EXAMPLES[name]
    found = verify(*build(table), trials=25, seed=1)
    assert found.correct
    assert found.row("energy_pj").expected == pytest.approx(energy, rel=1e-9)
    for row in found.rows:
        if row.tensor in ("P", "Q") or row.quantity.endswith("compute"):
            assert row.verdict in ("exact", "within", "rounding", "chance"), row
        elif row.tensor == "Z":
            # Q13: an update only for a compute that is carried out
            assert row.verdict == "exact" or (row.verdict == "explained" and row.causes[0][0] == "Q13"), row


def test_how_much_updates_of_gated_computes_weigh():
    row = verify(*build(EXAMPLES["12.5"][0]), trials=60, seed=1).row("update", "PEB", "Z")
    assert row.expected == 256
    assert row.mean == pytest.approx(32, abs=1)
    assert dict(row.causes)["Q13"] == pytest.approx(-224, abs=1)


def test_two_of_four_is_exact():
    two_of_four = {"type": "n-of-m", "n": 2, "m": 4}
    found = verify(*build(example(p=two_of_four, p_formats=CSR, PEB="skip-q")), trials=10)
    assert found.correct
    assert [row for row in found.rows if row.tensor in ("P", "Q") and row.verdict != "exact"] == []
    assert found.row("read", "PEB", "Q").mean == 128 == found.row("skipped_read", "PEB", "Q").mean
    assert found.row("compute").mean == 128


def test_data_without_randomness_has_no_error():
    band = {"type": "banded", "half_width": 1}
    table = example(p=band, p_formats=BITMASK)
    table["workload"]["dims"] = {"m": 8, "k": 8, "n": 8}
    table["mapping"]["L1_T"] = ["m=4"]
    found = verify(*build(table), trials=3)
    assert {row.stderr for row in found.rows} == {0.0}
    # the band of a square matrix of 8 holds 22 words: all are read, and nothing else
    assert found.row("read", "DRAM", "P").mean == 22


def test_a_tile_that_stays_longer_than_the_leaders_tile_is_read_more_often():
    table = example(p=0.1, q=0.5, GLB="skip-q")
    table["mapping"] = {"L1_T": ["m=4"], "L2_T": ["k=1"], "L2_S": ["n=4"], "L3_T": ["n=2", "k=8"]}
    row = verify(*build(table), trials=40).row("read", "GLB", "Q")
    # the tile of Q stays for all rows of P, and is needed as soon as one of them has a nonzero
    assert row.mean == 64
    assert row.expected < 50
    assert [name for name, _ in row.causes] == ["stay"]


@settings(max_examples=12, derandomize=True)
@also_with(1574, "conv", 3, False)  # without a tile that is skipped, the next one of the window brings more words
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(EINSUMS)), st.integers(2, 4), st.booleans())
def test_the_output_is_right_whatever_is_skipped(seed, kind, levels, bypass):
    table = random_design(kind, seed, levels=levels, sparse=True, bypass=bypass)
    found = verify(*build(table), trials=2, seed=seed)
    assert found.correct
    counts = {(row.quantity, row.level, row.tensor): row.mean for row in found.rows}
    computes = np.prod([*table["workload"]["dims"].values()])
    assert sum(counts.get((f"{kind}compute", "", ""), 0) for kind in ("", "gated_", "skipped_")) <= computes
    assert all(value >= 0 for value in counts.values())


@settings(max_examples=8, derandomize=True)
@given(st.integers(0, 2**32 - 1))
def test_dense_operands_stay_exact_where_nothing_is_filtered(seed):
    """Formats of P change nothing about Q, and without filters nothing about the computes."""
    table = random_design("matmul", seed)
    table["workload"]["density"] = {"P": 0.5, "Q": 1.0, "Z": 1.0}
    table["formats"] = {**table["formats"], "P": BITMASK}
    found = verify(*build(table), trials=2, seed=seed)
    assert [row for row in found.rows if row.tensor in ("Q", "Z") and row.verdict != "exact"] == []
    assert found.row("compute").verdict == "exact"


@pytest.mark.parametrize(("action", "left_out"), [("gate", 192), ("skip", 128)])
def test_a_unit_that_catches_half_of_the_empty_operands_computes_the_others(action, left_out):
    """256 computes with P at 0.5, compressed, and Q at 0.5: absent or zero are 192 of them, absent alone are 128."""
    tables = [example(p=0.5, q=0.5, p_formats=BITMASK, MAC=name) for name in (f"{action}-q", f"half-{action}-q")]
    for table, caught in zip(tables, (left_out, left_out / 2), strict=True):
        found = verify(*build(table), trials=40)
        row = found.row(f"{'gated' if action == 'gate' else 'skipped'}_compute")
        assert row.expected == caught
        assert found.row("compute").expected == 256 - caught
        assert abs(row.mean - caught) < 6
        assert found.correct


@pytest.mark.parametrize("place", ["PEB", "MAC"])
def test_a_unit_with_limited_look_ahead_takes_as_many_cycles_as_its_walk(place):
    """P of density 1/8: of a run of empty positions each fourth is out of sight, (1-e) / (1-e^4) = 30 % are taken."""
    table = example(p=0.125, p_formats=BITMASK, **{place: "skip-q-4-ahead"})
    table["pieces"] = {"mechanism": {"skip-q-4-ahead": {**PIECES["mechanism"]["skip-q"], "lookahead": 4}}}
    table["workload"]["dims"] = {"m": 32, "k": 64, "n": 2}
    table["mapping"] = {"L2_T": ["m=32"], "L2_S": ["n=2"], "L3_T": ["k=64"]}
    for level in table["hardware"]["levels"]:
        level.pop("capacity", None)
    found = verify(*build(table), trials=20)
    taken = 0.125 / (1.0 - 0.875**4) * 32 * 64 * 2
    row = found.row("compute")
    assert row.expected == pytest.approx(taken, abs=2)
    assert row.mean == pytest.approx(taken, rel=0.02)
    assert found.correct


def leader_tile(table, level, target="Q", leader="P"):
    problem, designs = build(table)
    nest = ExecutedNest(problem, designs)
    names = [tensor.name for tensor in problem.tensors]
    (found,) = [g for (t, s), g in guards(nest).items() if names[t] == target and problem.levels[s].name == level]
    assert found.kind == SKIP
    (one,) = [x for x in found.leaders if names[x.tensor] == leader]
    return one.widths


def test_leader_tiles_of_the_specification():
    """The table of 7.1: which words of P decide over an access of Q."""
    table = example(PEB="skip-q")
    assert leader_tile(table, "PEB") == (1, 1)
    table["mapping"] = {"L1_T": ["m=2", "k=2"], "L2_T": ["n=8", "k=2"], "L3_T": ["m=2", "k=2"]}
    assert leader_tile({**table, "gate_skip": {**table["gate_skip"], "PEB": "none", "GLB": "skip-q"}}, "GLB") == (2, 2)
    table["mapping"]["L2_T"] = ["k=2", "n=8"]  # n inside k does not enlarge it
    assert leader_tile({**table, "gate_skip": {**table["gate_skip"], "PEB": "none", "GLB": "skip-q"}}, "GLB") == (2, 2)
    table["mapping"] = {"L1_T": ["k=2"], "L2_T": ["n=8", "k=2", "m=2"], "L3_T": ["m=2", "k=2"]}  # Q stays over m
    assert leader_tile({**table, "gate_skip": {**table["gate_skip"], "PEB": "none", "GLB": "skip-q"}}, "GLB") == (4, 2)


def test_one_word_of_q_serves_all_rows_over_the_units():
    table = example(PEB="skip-q")
    table["hardware"]["levels"][2]["fanout"] = 2
    table["mapping"] = {"L1_T": ["m=2"], "L2_T": ["n=2", "k=2"], "L2_S": ["n=4"], "L3_T": ["k=4"], "L3_S": ["m=2"]}
    assert leader_tile(table, "PEB") == (2, 1)


@pytest.mark.parametrize(("nest", "timeloop"), [(["m=2", "k=4"], 4), (["k=4", "m=2"], 4)])
def test_an_access_of_several_words_is_held_back_where_none_of_them_is_needed(nest, timeloop):
    """Accesses of 4 words of Q, which lie along k; Timeloop takes them along the innermost loop, even if Q stays there."""
    table = example(p=0.25, PEB="skip-q")
    table["hardware"]["levels"][2]["access_words"] = 4
    table["mapping"]["L3_T"] = nest
    assert leader_tile(table, "PEB") == (1, 4)
    charged = {**table, "cost_model": {"extends": "timeloop", "charges": ["filter-metadata"]}}
    found = verify(*build(charged), trials=60)
    row, empty = found.row("read", "PEB", "Q"), [math.comb(32 - words, 8) / math.comb(32, 8) for words in range(5)]
    assert found.correct
    assert row.expected == 4 * (64 - int(64 * empty[4]))
    assert row.mean == pytest.approx(256 * (1 - empty[4]), abs=4 * row.stderr)
    problem, design = build(table)
    detail = problem.cost_model.evaluate(design, problem, detail=True).detail
    assert detail.cells[1][2].read[0] == 64 - int(64 * empty[timeloop])


def test_run_lengths_of_sparse_fibers_are_more_than_the_model_expects():
    """The positions of a fiber are expected over all fibers, and then counted for those that are not empty only."""
    runs = ["uncompressed"] * 4 + ["run-length"]
    found = verify(*build(example(p=0.1, p_formats=runs)), trials=60)
    row = found.row("metadata_read", "DRAM", "P")
    # ceil(3.2) nonzeros with a run of 2 bits each, read once
    assert row.mean == 8
    assert row.expected < 6
    assert row.verdict == "explained"
    assert dict(row.causes)["fibers"] == pytest.approx(row.deviation, abs=1.0)
