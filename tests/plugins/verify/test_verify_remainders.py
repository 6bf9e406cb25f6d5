"""Loops that end with the data, executed: nothing is behind the end (docs/model.md, `remainders`)."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sparsemap_plugins.verify import verify
from verify_designs import build, random_design

from sparsemap import load_problem, search

seeds = st.integers(0, 2**32 - 1)
CHARGES = ["drains", "holes", "remainders"]


def ended(seed, kind="matmul", **more):
    """A random design whose loops have up to a third more positions than the workload."""
    table, rng = random_design(kind, seed, sizes=(2, 3, 4, 6, 8), **more), random.Random(seed)
    dims = table["workload"]["dims"]
    table["padding"] = dict(dims)
    table["workload"] = {**table["workload"], "dims": {d: rng.randint(-(-2 * n // 3), n) for d, n in dims.items()}}
    return build(table | {"cost_model": {"type": "analytic", "charges": CHARGES}})


@settings(max_examples=12)
@given(seeds, st.sampled_from(["matmul", "batched"]))
def test_dense_counts_and_energy_are_those_of_the_model(seed, kind):
    found = verify(*ended(seed, kind), trials=1, seed=seed)
    assert found.correct
    counts = [row for row in found.rows if "cycles" not in row.quantity]
    off = [row for row in counts if row.mean != pytest.approx(row.expected, rel=1e-9)]
    assert [(row.quantity, row.level, row.tensor, row.expected, row.mean) for row in off] == []
    times = {(row.quantity, row.level): (row.expected, row.mean) for row in found.rows if "cycles" in row.quantity}
    modelled, executed = times["compute_cycles", ""]
    assert modelled == executed
    # where words take the time, execution takes the mean of all instances, rounded, the model the fullest one
    assert all(modelled >= executed - 4 for modelled, executed in times.values())


@settings(max_examples=6)
@given(seeds)
def test_sparse_designs_compute_the_product_and_no_nonzero_lies_behind_the_end(seed):
    problem, designs = ended(seed, sparse=True)
    found = verify(problem, designs, trials=2, seed=seed)
    assert found.correct
    computes = [row.mean for row in found.rows if row.quantity.endswith("compute")]
    product = 1
    for size in problem.loops.sizes.values():
        product *= size
    assert sum(computes) <= product


def test_designs_of_sizes_that_the_model_chose_are_executed_as_every_fidelity():
    """A model without `remainders` would keep 64 words of n; here they are laid out as 72, for tiles that fit."""
    levels = [
        {"name": "DRAM", "class": "dram", "bandwidth": "1 GB/s"},
        {"name": "GLB", "class": "sram", "capacity": "4 KB", "fanout": 4, "gate_skip": True},
        {"name": "PEB", "class": "sram", "capacity": "128 B", "gate_skip": True},
    ]
    chip = {"technology": "12nm-recommended", "levels": levels, "compute": {"name": "MAC", "gate_skip": True}}
    product = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 64, "k": 128, "n": 64}}
    problem = load_problem({**product, "density": {"P": 0.3, "Q": 0.7}}, chip)
    assert problem.padded == {"n": (64, 72)}
    found = verify(problem, search(problem, budget=50).best.design.batch, trials=1, compare=True)
    assert found.correct and {"remainders", "overlap"} <= {effect.name for effect in found.effects}
