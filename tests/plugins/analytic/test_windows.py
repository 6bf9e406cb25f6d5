"""Metadata of sliding windows: overlapping windows store every word once (docs/model.md, 6.1)."""

from __future__ import annotations

import itertools

import pytest
from charged import made
from sparsemap_plugins.verify import verify

SIZES = {"p": 28, "q": 28, "r": 3, "s": 3}
WINDOWS = {
    "einsum": "Z[k, p, q] = P[p + r, q + s] * Q[k, r, s]", "dims": {"k": 2, **SIZES},
    "density": {"P": 0.6, "Q": 1.0},
}  # fmt: skip
WORDS = 30 * 30
ORDERS = list(itertools.permutations("pqrs"))[::3]


def windows(order: tuple[str, ...], formats: list[str], **changes: object) -> dict[str, object]:
    """All loops in a buffer that gets the whole of P once."""
    loops = ["k=2", *(f"{dim}={SIZES[dim]}" for dim in order)]
    return {"workload": WINDOWS | changes, "mapping": {"L2_T": loops}, "formats": {"P": formats}}


def bits_of(table: dict[str, object], *charges: str) -> float:
    design = made(table, *charges)
    found = design.problem.evaluator.evaluate_designs(design.batch, detail=True)
    return float(found.detail.cells[0][0].bits["read"][0])


@pytest.mark.parametrize("order", ORDERS, ids="".join)
def test_a_bitmask_has_one_bit_for_every_word_in_any_order_of_the_loops(order: tuple[str, ...]) -> None:
    assert bits_of(windows(order, ["bitmask"])) == pytest.approx(WORDS, rel=0.1)


@pytest.mark.parametrize("formats", [["bitmask"] * 4, ["run-length"], ["coordinate"] * 2])
@pytest.mark.parametrize("order", [tuple("pqrs"), tuple("rspq"), tuple("prqs")], ids="".join)
def test_codecs_write_as_many_bits_as_the_model_counts(order: tuple[str, ...], formats: list[str]) -> None:
    table = windows(order, formats)
    design = made(table, "run-lengths")
    streams = verify(design.problem, design.batch, trials=6)
    row = streams.row("metadata_read", "DRAM", "P")
    assert row.mean == pytest.approx(row.expected, rel=0.06)


def test_strides_and_dilation_leave_words_out_of_no_stream() -> None:
    """Every second word between the first and the last of a row is a hole, stored as an empty position."""
    strided = {"einsum": "Z[k, p, q] = P[2 * p + r, 2 * q + s] * Q[k, r, s]"}
    assert bits_of(windows(tuple("pqrs"), ["bitmask"], **strided)) == pytest.approx(57 * 57, rel=0.1)
