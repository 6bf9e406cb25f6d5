"""Formats that store more than nonzeros (6.5): blocks kept whole, dense parts below coordinates, fibers of one length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from charged import cost

from sparsemap import load_problem
from sparsemap.pieces.loading import load
from sparsemap.pieces.registry import Origin

REGISTRY = load()
M, K, N = 16, 32, 4
HARDWARE = {
    "levels": [
        {"name": "DRAM", "class": "dram"},
        {"name": "BUF", "class": "sram", "capacity": "64 KB", "gate_skip": True},
    ],
    "compute": {"name": "MAC", "gate_skip": True},
}


BSR = ["uncompressed", "coordinate", "dense-block", "dense-block"]
BITMAP = [
    "uncompressed",
    "uncompressed",
    "uncompressed",
    {"type": "expression", "compressed": True, "block": 2, "lists": "mask", "bits": "0*fibers"},
]
PADDED = ["uncompressed", "uncompressed", "uncompressed", "ellpack"]


def problem(formats: list[Any], density: Any, mechanism: str = "none", unit: str = "none", **level: Any) -> Any:
    """P (16 x 32) has ranks m, k of 8 in DRAM and blocks of 2 x 4 in the buffer; Q and Z are dense. One design."""
    named = [f if isinstance(f, str) else "mine" for f in formats]
    own = [{"kind": "format", "name": "mine", **f} for f in formats if isinstance(f, dict)]
    registry = REGISTRY if not own else load()
    for table in own:
        registry.add_spec(table, Origin("test"))
    space = {
        "name": "one design",
        "segments": ["one"],
        "one": {
            "type": "fixed",
            "order": {"L1_T": ["m", "k", "n"], "L2_T": ["m", "k", "n"]},
            "bounds": {"L1_T": {"m": M // 2, "k": K // 4}, "L2_T": {"m": 2, "k": 4, "n": N}},
            "formats": {"role:P": named, "role:Q": ["uncompressed"] * 4, "role:Z": ["uncompressed"] * 4},
            "mechanisms": {"BUF": mechanism, "MAC": unit},
        },
    }
    workload = {"name": "product", "einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": M, "k": K, "n": N}}
    workload["density"] = {"P": density, "Q": 1.0, "Z": 1.0}
    levels = [HARDWARE["levels"][0], {**HARDWARE["levels"][1], **level}]
    return load_problem(workload, {"name": "small", **HARDWARE, "levels": levels}, space=space, registry=registry)


def detail(found: Any) -> Any:
    """All figures of the only design."""
    evaluation = found.evaluator.evaluate_designs(found.space.decode(np.zeros((1, 0), np.int64)), detail=True)
    return evaluation.detail


def drawn(found: Any, count: int = 300) -> np.ndarray:
    """Tensors P, (count, 16, 32) bool."""
    rng = np.random.default_rng(0)
    occupancy = found.tensors[0].density.occupancy((M, K))
    return np.stack([occupancy.draw(rng) for _ in range(count)])


def blocks(masks: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """(count, blocks, words) of aligned blocks."""
    count = len(masks)
    parts = masks.reshape(count, M // rows, rows, K // columns, columns).swapaxes(2, 3)
    return parts.reshape(count, -1, rows * columns)


def whole_blocks(rows: int, columns: int) -> Any:
    return lambda masks: (blocks(masks, rows, columns).any(axis=2).sum(axis=1) * rows * columns).mean()


def longest_fibers(masks: np.ndarray) -> float:
    """Fibers are the runs of four words that the innermost loop covers."""
    fibers = blocks(masks, 1, 4).sum(axis=2)
    return float((fibers.max(axis=1) * fibers.shape[1]).mean())


ALL = [
    "uncompressed",
    "bitmask",
    "run-length",
    "coordinate",
    "offset-pair",
    "blocked-bitmask",
    "dense-block",
    "ellpack",
]
WITH_BLOCKS = {"extends": "paper", "formats": {"candidates": ALL}}
CASES = [
    ("blocks of coordinates", BSR, whole_blocks(2, 4)),
    ("pairs", BITMAP, whole_blocks(1, 2)),
    ("padded", PADDED, longest_fibers),
]
DENSITIES = [
    0.1,
    0.3,
    {"type": "block", "density": 0.25, "block": [2, 4]},
    {"type": "block", "density": 0.5, "block": [1, 2]},
]


@pytest.mark.parametrize("density", DENSITIES, ids=str)
@pytest.mark.parametrize(("formats", "executed"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_stored_words_and_computes_are_those_of_drawn_tensors(formats, executed, density) -> None:
    found = problem(formats, density, unit="gate-both")
    figures, masks = detail(found), drawn(found)
    # the buffer's loop over n is inside: DRAM reads every stored word once
    assert figures.cells[0][0].read[0] == pytest.approx(executed(masks), rel=0.02, abs=1.0)
    assert figures.computes[0] == pytest.approx(masks.sum(axis=(1, 2)).mean() * N, rel=0.02)
    assert figures.computes[0] + figures.gated_computes[0] + figures.skipped_computes[0] == M * K * N


@pytest.mark.parametrize("density", DENSITIES[:3], ids=str)
def test_skipping_by_metadata_sees_whole_blocks_and_the_zeros_inside_are_gated(density) -> None:
    found = problem(BSR, density, mechanism="skip-q-by-p", unit="gate-both")
    figures, masks = detail(found), drawn(found)
    stored = whole_blocks(2, 4)(masks)
    assert figures.computes[0] + figures.gated_computes[0] == pytest.approx(stored * N, rel=0.02)
    assert figures.computes[0] == pytest.approx(masks.sum(axis=(1, 2)).mean() * N, rel=0.02)


def test_gating_by_value_sees_words() -> None:
    """A gate looks at the operand itself; with blocks it eliminates what it eliminates without compression."""
    plain = problem(["uncompressed"] * 4, 0.2, mechanism="gate-q-by-p")
    packed = problem(BSR, 0.2, mechanism="gate-q-by-p")
    gone = [detail(found).cells[1][1].gone_read[0] for found in (plain, packed)]
    assert gone[0] == gone[1] > 0


def test_skipping_by_metadata_of_words_beats_that_of_blocks() -> None:
    words = ["uncompressed", "coordinate", "coordinate", "coordinate"]
    computes = [detail(problem(formats, 0.2, mechanism="skip-q-by-p")).computes[0] for formats in (words, BSR)]
    assert computes[0] < computes[1]


def test_an_uncompressed_rank_below_a_compressed_one_needs_a_format_that_allows_it() -> None:
    found = problem(["uncompressed", "coordinate", "uncompressed", "uncompressed"], 0.2)
    evaluation = found.evaluator.evaluate(np.zeros((1, 0), np.int64))
    assert evaluation.reasons_of(0) == ("format-order:P",)
    assert problem(BSR, 0.2).evaluator.evaluate(np.zeros((1, 0), np.int64)).valid[0]


def test_a_buffer_must_hold_whole_blocks() -> None:
    """103 nonzeros of P fit, but each may be in a block of its own: 512 words, all of P."""
    words = detail(problem(BSR, 0.2)).data_words_max[0, 0, 0]
    assert words == M * K
    structured = {"type": "block", "density": 0.2, "block": [2, 4]}
    assert detail(problem(BSR, structured)).data_words_max[0, 0, 0] == 13 * 8


def test_formats_that_store_nonzeros_only_are_as_before_beside_those_that_do_not() -> None:
    """A candidate that is not chosen changes nothing."""
    plain = load_problem("mm1", "mobile", "paper", registry=REGISTRY)
    beside = load_problem("mm1", "mobile", space=WITH_BLOCKS, registry=REGISTRY)
    rng = np.random.default_rng(0)
    genomes = plain.space.sample(2000, rng)
    assert [f.name for f in plain.candidates("format")] == WITH_BLOCKS["formats"]["candidates"][:5]
    first, second = (found.evaluator.evaluate(genomes) for found in (plain, beside))
    assert np.array_equal(first.energy_pj, second.energy_pj) and np.array_equal(first.cycles, second.cycles)
    assert first.valid.any()


@pytest.mark.parametrize("workload", ["mm1", "mm3", "conv4"])
def test_no_design_of_such_formats_is_below_the_bound(workload: str) -> None:
    found = load_problem(workload, "mobile", space=WITH_BLOCKS, registry=REGISTRY)
    rng = np.random.default_rng(1)
    genomes = found.space.guess(3000, rng)
    repaired = found.space.repair(genomes, rng)
    scores = found.evaluator.score(found.evaluator.evaluate(repaired))
    assert np.isfinite(scores).sum() > 1000
    assert scores.min() >= found.bound


@pytest.mark.parametrize("block", [[4, 32], [16, 8], [8, 16]])
@pytest.mark.parametrize("inner", [["m=16", "k=32"], ["k=32", "m=16"]])
def test_fibers_of_one_length_below_a_bitmask_store_all_nonzeros(block: list[int], inner: list[str]) -> None:
    """Blocks as long as fibers make some full and the others empty."""
    density = {"type": "block", "block": block, "density": 0.25}
    table = {
        "workload": {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 16, "k": 32, "n": 4},
                     "density": {"P": density, "Q": 1.0}},
        "mapping": {"L2_T": [*inner, "n=4"]}, "formats": {"P": ["bitmask", "ellpack"]},
    }  # fmt: skip
    found = cost(table)
    words = found.detail.cells[0][1].fill[0] * found.detail.instances_active[0, 1, 0]
    assert words >= 0.25 * 16 * 32
