"""Words of a width per tensor, counted by hand and executed (docs/model.md, section 14)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sparsemap_plugins.verify import verify

from sparsemap import SparseMapError, load_problem
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file

REGISTRY = load()
P, Q, Z = 0, 1, 2
DRAM = {"name": "DRAM", "class": "dram", "bandwidth": "2 words/cycle", "energy": {"read": 100.0, "write": 100.0}}
PRICES = {"read": 1.0, "write": 1.0, "encode": 0.25}
BUFFER = {"name": "Buffer", "class": "sram", "capacity": "1 KB", "energy": PRICES}
INT8 = {"P": 8, "Q": 4, "Z": 32}
ONCE = ["m=4"], ["n=4", "k=4"]
"""Mapping of a 4 x 4 x 4 product: every word of every tensor crosses the outer level once."""
AGAIN = ["k=2", "m=4"], ["n=4", "k=2"]
"""The sums of a row leave for the next row, and come back for the second half of k."""


def product(mapping: tuple[list[str], list[str]], bits: Any = None, **levels: Any) -> Any:
    """A dense product of 4 x 4 x 4 in words of 16 bits, as a design."""
    rows = [{**row, **levels.get(row["name"], {})} for row in (DRAM, BUFFER)]
    workload: dict[str, Any] = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": dict.fromkeys("mkn", 4)}
    table = {
        "workload": {**workload, "density": {"P": 1.0, "Q": 1.0}} | ({"word_bits": bits} if bits else {}),
        "hardware": {"levels": rows, "word_bits": 16}, "cost_model": "timeloop",
        "mapping": {"L1_T": _whole(mapping[0]), "L2_T": _whole(mapping[1])},
        "formats": {t: ["uncompressed"] * 4 for t in "PQZ"}, "beyond_format": "uncompressed", "gate_skip": {},
    }  # fmt: skip
    return design_file.structure({"kind": "design", **table}, REGISTRY, "design")


def _whole(loops: list[str]) -> list[str]:
    return [*(f"{dim}=1" for dim in "mkn" if dim not in " ".join(loops)), *loops]


def evaluated(design: Any) -> Any:
    found = design.problem.cost_model.evaluate(design.batch, design.problem, detail=True)
    assert found.valid[0], found.reasons_of(0)
    return found


def test_each_level_moves_the_bits_of_each_tensor() -> None:
    """16 words of each tensor cross DRAM, P in half words, Q in quarters, 32-bit sums in two: 8, 4 and 32 words."""
    found = evaluated(product(ONCE, INT8))
    energy = found.detail.energy_pj[:, :, 0]
    assert energy[:, 0].tolist() == [800.0, 400.0, 3200.0]
    assert found.cycles[0] == 64  # computes; (8 + 4 + 32) / 2 cycles of DRAM hide behind them
    slow = evaluated(product(ONCE, INT8, DRAM={"bandwidth": "0.5 words/cycle"}))
    assert slow.cycles[0] == (8 + 4 + 32) / 0.5
    reads, fills = [64, 64], [16, 16]
    moved = [(r + f) * bits / 16 for r, f, bits in zip(reads, fills, (8, 4), strict=True)]
    assert energy[:2, 1].tolist() == moved
    assert energy[Z, 1] == (64 + 48) * 2.0  # 64 updates, and all but the first of each word read the sum before


def test_room_counts_the_bits_of_each_tensor() -> None:
    """A row of P and of Z, and all of Q: 4 x 8 + 16 x 4 + 4 x 32 = 224 bits."""
    assert evaluated(product(ONCE, INT8, Buffer={"capacity": "224 bit"}))
    small = product(ONCE, INT8, Buffer={"capacity": "208 bit"})
    found = small.problem.cost_model.evaluate(small.batch, small.problem, detail=True)
    assert found.reasons_of(0) == ("capacity:Buffer",)
    assert found.detail.needed[0][0][:3] == ("capacity:Buffer", 14.0, 13.0)  # words of 16 bits


@pytest.mark.parametrize(("mapping", "words"), [(ONCE, 16 * 0.5), (AGAIN, (32 + 16) * 2.0)])
def test_sums_that_come_back_are_as_wide_as_inside(mapping: Any, words: float) -> None:
    """DRAM holds results in 8 bits: finished words only, since 32-bit sums would be lost."""
    found = evaluated(product(mapping, INT8, DRAM={"word_bits": {"Z": 8}}))
    assert found.detail.energy_pj[Z, 0, 0] == words * 100.0
    assert found.detail.word_bits[Z, :, 0].tolist() == [8 if mapping is ONCE else 32, 32]
    plain = evaluated(product(mapping, INT8)).detail.energy_pj[Z, 1, 0]
    rounded = 16 * 2 * 0.25 if mapping is ONCE else 0.0  # 16 results of two words each
    assert found.detail.energy_pj[Z, 1, 0] == plain + rounded


@pytest.mark.parametrize("mapping", [ONCE, AGAIN])
@pytest.mark.parametrize("levels", [{}, {"DRAM": {"word_bits": {"Z": 8}}}])
def test_execution_counts_the_same_bits(mapping: Any, levels: dict[str, Any]) -> None:
    design = product(mapping, INT8, **levels)
    found = verify(design.problem, design.batch, trials=2)
    assert found.correct
    assert [row for row in found.rows if row.verdict != "exact"] == []


def test_words_as_wide_as_the_machines_change_no_digit() -> None:
    scores = []
    for bits in (None, dict.fromkeys("PQZ", 16)):
        table: dict[str, Any] = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 60, "k": 48, "n": 36}}
        table |= {"density": {"P": 0.4, "Q": 0.2}} | ({"word_bits": bits} if bits else {})
        problem = load_problem(table, "mobile", registry=REGISTRY)
        genomes = problem.space.guess(400, np.random.default_rng(1))
        found = problem.evaluator.evaluate(genomes)
        scores.append((found.energy_pj.tolist(), found.cycles.tolist(), problem.bound))
    assert scores[0] == scores[1]


def test_a_scale_per_group_is_a_part_of_a_bit() -> None:
    """A 16-bit scale per 128 words of 4 bits: 4.125 bits per word."""
    found = evaluated(product(ONCE, {"Q": 4 + 16 / 128}))
    assert found.detail.energy_pj[Q, 0, 0] == 16 * 4.125 / 16 * 100.0


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        ({"Q": 0.5}, "word_bits: expected 1 to 65,536 bits for Q, found 0.5"),
        ({"X": 8}, "word_bits.X: no tensor 'X'; known: P, Q, Z"),
        ({"P": "int9"}, "found 'int9'; did you mean 'int8'?"),
    ],
)
def test_a_width_that_is_none_is_refused_in_a_line(bits: Any, text: str) -> None:
    with pytest.raises(SparseMapError) as refused:
        evaluated(product(ONCE, bits))
    assert text in str(refused.value)


MODES = [{"bits": [16, 8], "macs": 2}, {"bits": [16, 4], "macs": 4}, {"bits": [8, 8], "macs": 4, "pj": 0.1}]


@pytest.mark.parametrize(
    ("bits", "macs", "pj"),
    [
        (None, 1, 1.0), ({"Z": 32}, 1, 1.0), ({"Q": 8}, 2, 0.5), ({"Q": 4.125}, 4, 0.25), ({"Q": 3}, 4, 0.25),
        ({"P": 4}, 4, 0.25), ({"P": 8, "Q": 8}, 4, 0.1),
    ],
)  # fmt: skip
def test_units_multiply_narrow_operands_in_the_fastest_mode_that_takes_them(bits: Any, macs: int, pj: float) -> None:
    """A mode multiplies the units below the innermost level and divides a unit's energy and area."""
    table: dict[str, Any] = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 8, "k": 8, "n": 8}}
    table |= {"density": {"P": 1.0, "Q": 1.0}} | ({"word_bits": bits} if bits else {})
    compute = {"name": "MAC", "energy": {"compute": 1.0}}
    plain, made = (
        load_problem(table, {"extends": "small", "compute": compute | more}, registry=REGISTRY)
        for more in ({}, {"modes": MODES})
    )
    assert made.compute_instances == macs * plain.compute_instances
    assert made.mac_pj("compute") == pytest.approx(pj)
    assert made.chip.total_area_mm2 == pytest.approx(plain.chip.total_area_mm2)
