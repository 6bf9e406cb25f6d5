"""Cycles counted by hand where two of the model's quantities compete, compiled and as CPython runs it."""

from __future__ import annotations

from typing import Any

import pytest
from charged import REGISTRY, made, product
from texts import NEEDS_COMPILED, run_by

from sparsemap.problem import design_file


@pytest.fixture(params=[pytest.param("compiled", marks=NEEDS_COMPILED), "interpreted"], autouse=True)
def text(request):
    with run_by(request.param):
        yield


def cycles(design: Any) -> float:
    found = design.problem.evaluator.evaluate_designs(design.batch)
    assert found.valid[0], found.reasons_of(0)
    return float(found.cycles[0])


def test_an_instance_with_the_most_sums_decides_how_long_a_level_writes() -> None:
    """Two buffers share k = 5 as 3 and 2. The fuller one is written 4 x 3 words of P, 3 of Q and 4 x 3 sums, one a cycle.

    The sums that its lanes write are 6/5 of the mean; words of Z that would come from outside are no more than the mean.
    """
    levels = [
        {"name": "DRAM", "class": "dram"},
        {"name": "Buffer", "class": "sram", "capacity": "1 MB", "fanout": 2, "gate_skip": True},
        {"name": "Own", "class": "sram", "capacity": "1 KB", "write_bandwidth": "1 words/cycle"},
    ]
    table = {"workload": product(1.0, m=4, k=5), "padding": {"k": 6}, "groups": ["L1_T", "L2_T", "L2_S", "L3_T"]}
    table["mapping"] = {"L2_S": ["k=2"], "L3_T": ["m=4", "k=3"]}
    assert cycles(made(table, "remainders", levels=levels)) == 4 * 3 + 3 + 4 * 3


@pytest.mark.parametrize("outer", ["none", "by-p"])
def test_of_two_skips_further_out_the_inner_one_says_how_many_positions_come(outer: str) -> None:
    """All 1,024 steps have a tile of one word at every level. P, half of it zero, lets 512 of them pass, whether one skip
    looks at it or two; the last skip passes one position a cycle."""
    pieces = {"by-p": {"filters": [{"target": "Q", "leader": "P"}], "action": "skip"}}
    pieces["by-r"] = {"filters": [{"target": "Q", "leader": "R"}], "action": "skip", "width": 1}
    levels = [
        {"name": name, "class": kind, "gate_skip": True}
        for name, kind in zip("ABC", ("dram", "sram", "sram"), strict=True)
    ]
    formats = {t: ["uncompressed"] * 4 + ["bitmask" if t in "PR" else "uncompressed"] for t in "PQRZ"}
    workload = {"einsum": "Z[n] = P[k] * Q[k, n] * R[k]", "dims": {"k": 1024, "n": 1}}
    table = {
        "workload": {**workload, "density": {"P": 0.5, "Q": 1.0, "R": 0.25}},
        "hardware": {"technology": "12nm", "levels": levels, "compute": {}},
        "mapping": {"L1_T": ["n=1", "k=1024"], "L2_T": ["n=1", "k=1"], "L3_T": ["n=1", "k=1"]},
        "beyond_format": "offset-pair",
        "formats": formats,
        "gate_skip": {"A": outer, "B": "by-p", "C": "by-r"},
        "pieces": {"mechanism": pieces},
        "cost_model": {"type": "analytic", "charges": ["intersection"]},
    }
    assert cycles(design_file.structure(table, REGISTRY)) == 512
