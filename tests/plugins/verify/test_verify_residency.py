"""Tensors that reside on chip: nothing outside has them, and execution counts what the cost model does."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sparsemap_plugins.verify import verify
from verify_designs import BITMASK, build, example, random_design

seeds = st.integers(0, 2**32 - 1)


def resident(table, seed):
    """The design with some of its tensors in S1, which is there once: what S0 did in parallel it does in turns."""
    mapping, levels = table["mapping"], table["hardware"]["levels"]
    spread = dict(loop.split("=") for loop in mapping.pop("L1_S"))
    mapping["L1_T"] = [f"{d}={int(n) * int(spread[d])}" for d, n in (loop.split("=") for loop in mapping["L1_T"])]
    del levels[0]["fanout"]
    tensors = list(table["formats"])
    kept = random.Random(seed).sample(tensors, random.Random(seed).randint(1, len(tensors)))
    table["workload"]["resides"] = dict.fromkeys(kept, "S1")
    return table, kept


@settings(max_examples=12)
@given(seeds, st.integers(2, 4), st.sampled_from(["matmul", "batched"]))
def test_dense_counts_are_exact_and_nothing_outside_moves_it(seed, levels, kind):
    table, kept = resident(random_design(kind, seed, levels=levels), seed)
    found = verify(*build(table), trials=1, seed=seed)
    assert found.correct
    assert [row for row in found.rows if row.verdict != "exact"] == []
    assert not [row for row in found.rows if row.level == "S0" and row.tensor in kept]
    assert not [row for row in found.rows if row.level == "S1" and row.tensor in kept and "fill" in row.quantity]


@settings(max_examples=6, derandomize=True)
@given(seeds, st.sampled_from(["matmul", "conv", "mttkrp"]), st.booleans())
def test_the_output_is_right_with_formats_filters_and_charges(seed, kind, charged):
    table, _ = resident(random_design(kind, seed, sparse=True), seed)
    found = verify(*build(table | {"cost_model": "physical" if charged else "timeloop"}), trials=2, seed=seed)
    assert found.correct


@pytest.mark.parametrize(("kept", "p", "q"), [("P", 1.0, 1.0), ("Z", 0.25, 0.5), ("PZ", 0.25, 0.5)])
def test_energy_and_cycles_agree(kept, p, q):
    table = example(p=p, q=q, p_formats=BITMASK, q_formats=BITMASK, PEB="skip-q")
    table["workload"] |= {"resides": dict.fromkeys(kept, "GLB"), "dims": {"m": 32, "k": 16, "n": 16}}
    table["mapping"] = {"L1_T": ["m=16"], "L2_T": ["n=4", "k=2"], "L2_S": ["n=4"], "L3_T": ["m=2", "k=8"]}
    for level in table["hardware"]["levels"][1:]:
        level |= {"capacity": "2048 words", "double_buffered": True}
    found = verify(*build(table | {"cost_model": "physical"}), trials=10, seed=3)
    assert found.correct
    for quantity in ("energy_pj", "cycles"):
        row = found.row(quantity)
        assert row.mean == pytest.approx(row.expected, rel=0.03 if quantity == "energy_pj" else 0.05), quantity
