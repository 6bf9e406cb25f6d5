"""Formats that store zeros: what execution stores, sends, skips and computes, against hand counts and the cost model."""

import numpy as np
import pytest
from sparsemap_plugins.verify import verify
from verify_designs import PIECES, build, example, registry

import sparsemap
from sparsemap.errors import DesignError

BLOCKED = {"name": "bitmask-of-4", "extends": "blocked-bitmask", "block": 4}
METADATA_SKIP = {
    "type": "filters",
    "action": "skip",
    "needs_leader_metadata": True,
    "filters": [{"target": "Q", "leader": "P"}],
}


def form(name):
    return registry().build("format", BLOCKED) if name == "bitmask-of-4" else registry().get("format", name)


# ------------------------------------------------------------------------------------- execution and the cost model

DENSITIES = {
    "uniform": 0.15,
    "block": {"type": "block", "block": [4, 4], "density": 0.3},
    "n-of-m": {"type": "n-of-m", "n": 1, "m": 4},
}
FORMATS = {
    # blocks of four in rows of 16, which two levels share; 4x4 blocks by their coordinates; rows of 32
    "blocked": ([*["uncompressed"] * 4, "bitmask-of-4"], ["n=2", "k=2"], ["m=4", "k=16"]),
    "bsr": ([*["uncompressed"] * 2, "coordinate", "dense-block", "dense-block"], ["k=8", "n=2"], ["m=4", "k=4"]),
    "ellpack": ([*["uncompressed"] * 4, "ellpack"], ["n=2"], ["m=4", "k=32"]),
}
STORED = {  # share of the words of P
    ("blocked", "uniform"): 0.48,
    ("blocked", "block"): 0.3125,
    ("blocked", "n-of-m"): 1.0,
    ("bsr", "uniform"): 0.93,
    ("bsr", "block"): 0.3125,
    ("bsr", "n-of-m"): 1.0,
    ("ellpack", "n-of-m"): 0.25,
    ("ellpack", "uniform"): 0.27,
}
PLACES = (
    {},
    {"PEB": "metadata-skip-q"},
    {"PEB": "skip-q"},
    {"GLB": "metadata-skip-q", "MAC": "skip-q"},
    {"GLB": "gate-q", "MAC": "gate-q"},
)
WORDS = ("read", "fill", "gated_read", "skipped_read")


def matmul(formats, density, **places):
    kinds, middle, inner = FORMATS[formats]
    table = example(q=0.5, p_formats=kinds, **places)
    table["workload"]["dims"] = {"m": 16, "k": 32, "n": 8}
    table["workload"]["density"]["P"] = DENSITIES[density]
    table["mapping"] = {"L1_T": ["m=4"], "L2_T": middle, "L2_S": ["n=4"], "L3_T": inner}
    table["pieces"] = {
        "format": {**PIECES["format"], "bitmask-of-4": BLOCKED},
        "mechanism": {**PIECES["mechanism"], "metadata-skip-q": METADATA_SKIP},
    }
    table["hardware"]["levels"][1]["capacity"] = "4096 words"
    table["hardware"]["levels"][2]["capacity"] = "1024 words"
    return table


@pytest.mark.parametrize("places", PLACES, ids=lambda places: " ".join(places.values()) or "plain")
@pytest.mark.parametrize(("formats", "density"), STORED)
def test_execution_agrees_with_the_cost_model(formats, density, places):
    """Data words and computes within 3 % beyond three standard errors; metadata but for what formulas round up."""
    found = verify(*build(matmul(formats, density, **places)), trials=8 if density == "uniform" else 2, seed=1)
    assert found.correct
    stored = found.row("read", "DRAM", "P").mean / (16 * 32)
    assert stored == pytest.approx(STORED[formats, density], abs=0.02)
    for row in found.rows:
        if row.quantity.endswith("compute") or (row.tensor in ("P", "Q") and row.quantity in WORDS):
            allowed = 0.03 * row.expected + 3 * row.stderr + row.rounding
            assert abs(row.mean - row.expected) <= allowed, row
        elif row.tensor in ("P", "Q") and "metadata" in row.quantity:
            assert row.verdict in ("exact", "within", "rounding", "chance", "explained"), row


def test_zeros_in_stored_blocks_are_computed_unless_the_unit_gates():
    """Blocks of 4x4 with one nonzero in each row: the coordinates of the blocks do not tell which word it is."""
    for unit, computed, gated in (("none", 4096, 0), ("gate-q", 1024, 3072)):
        table = matmul("bsr", "n-of-m", PEB="metadata-skip-q", MAC=unit)
        table["workload"]["density"]["Q"] = 1.0
        found = verify(*build(table), trials=3)
        assert found.row("read", "PEB", "Q").mean == 4096
        assert found.row("compute").mean == computed
        if gated:
            assert found.row("gated_compute").mean == gated


def test_partial_sums_move_with_the_blocks_they_are_stored_in():
    """Z is 16x8 with a nonzero wherever a row of P has one: rows of two blocks of four, whole or not at all."""
    table = matmul("blocked", "uniform")
    table["formats"] = {**table["formats"], "Z": [*["uncompressed"] * 4, "bitmask-of-4"]}
    table["workload"]["density"]["P"] = 0.02
    table["mapping"] = {"L1_T": ["m=4", "k=4"], "L2_T": ["m=4"], "L3_T": ["k=8", "n=8"]}
    found = verify(*build(table), trials=1)
    assert found.correct
    assert 0 < found.row("update", "DRAM", "Z").mean < 16 * 8 * 4
    assert found.row("update", "DRAM", "Z").mean % 4 == 0


def test_padding_of_empty_rows_of_the_output_moves():
    """Half of the rows of P are empty, so those of Z are as well, but ELLPACK has as many words for them."""
    table = matmul("blocked", "uniform")
    table["formats"] = {**table["formats"], "Z": [*["uncompressed"] * 4, "ellpack"]}
    table["workload"]["density"] = {"P": {"type": "block", "block": [1, 32], "density": 0.5}, "Q": 1.0, "Z": 1.0}
    table["mapping"] = {"L1_T": ["m=4"], "L2_T": ["m=4"], "L3_T": ["k=32", "n=8"]}
    found = verify(*build(table), trials=2)
    assert found.correct
    assert found.row("update", "DRAM", "Z").mean == 16 * 8
    assert not [row for row in found.rows if (row.quantity, row.level, row.tensor) == ("read", "DRAM", "Z")]


def test_blocks_of_overlapping_tiles_are_refused():
    table = matmul("blocked", "uniform")
    table["workload"] = {
        "name": "windows",
        "einsum": "Z[k, p] = P[p + r] * Q[k, r]",
        "dims": {"k": 4, "p": 8, "r": 2},
        "density": {"P": 0.5, "Q": 0.5},
    }
    table["mapping"] = {"L3_T": ["k=4", "p=8", "r=2"]}
    with pytest.raises(DesignError, match="no whole blocks of P: its tiles overlap or have holes"):
        verify(*build(table))


@pytest.mark.parametrize(
    ("decoded", "formats"),
    [
        ({"P": "GLB", "Q": "PEB", "Z": "GLB"}, ["bitmask"] * 4),
        ({"P": "PEB", "Q": "PEB", "Z": "PEB"}, ["flattened", "flattened", "run-length", "bitmask"]),
    ],
)
def test_tiles_that_are_decoded_on_their_way_are_held_with_their_zeros(decoded, formats):
    table = matmul("bsr", "uniform")
    table["workload"]["density"]["Z"] = 0.6
    table["formats"] = {**dict.fromkeys("PZ", ["run-length", "bitmask"] * 2), "Q": formats}
    table["hardware"]["levels"] = [{**level, "decodes": True} for level in table["hardware"]["levels"]]
    found = verify(*build(table | {"decoded": decoded}), trials=15, seed=2)
    assert found.correct
    for row in found.rows:
        if row.tensor in ("P", "Q"):
            assert row.verdict in ("exact", "within", "rounding", "chance", "explained"), row
    for tensor, level in decoded.items():
        if tensor != "Z":
            row = found.row("fill", level, tensor)
            assert row.mean == row.expected and not any(
                "metadata" in row.quantity and (row.level, row.tensor) == (level, tensor) for row in found.rows
            )


def test_groups_of_a_ragged_rank_are_not_even():
    """35 words of a dense row in groups of four: the last holds three, so that each has its number."""
    problem = sparsemap.load_problem(
        {
            "name": "ragged",
            "einsum": "Z[m, n] = P[m, k] * Q[k, n]",
            "dims": {"m": 6, "k": 35, "n": 5},
            "density": {"P": 1.0, "Q": 0.2},
        },
        "edge",
        {"extends": "full", "formats": {"candidates": ["nm-offset"]}},
        registry=registry(),
    )
    genomes = problem.space.sample(40, np.random.default_rng(0))
    valid = genomes[problem.evaluator.evaluate(genomes).valid][:2]
    found = [verify(problem, problem.space.decode(genome[None]), 2, 0) for genome in valid]
    assert len(found) == 2 and all(one.correct for one in found)
