"""A sparse tensor core with its dataflow, on weights of N:M inside blocks."""

import pytest
from sparsemap_plugins.verify import verify

from sparsemap import load_problem, search


@pytest.fixture(scope="module")
def found():
    density = {"P": 1.0, "Q": {"type": "crisp", "n": 2, "block": 16, "keep": 1}, "Z": 1.0}
    layer = {"einsum": "Z[s, x] = P[x, k] * Q[s, k]", "dims": {"s": 64, "k": 64, "x": 8}, "density": density}
    problem = load_problem({"name": "layer", **layer}, "crisp-stc", "crisp-stc")
    best = search(problem, searcher="exhaustive", budget=1000).best
    return verify(problem, best.design.batch, trials=8, seed=1)


def test_nothing_is_unexplained(found):
    assert found.correct
    for row in found.rows:
        assert row.verdict != "off" or row.rest != "?", row
    metadata = found.row("metadata_read", "SMEM", "Q")
    assert metadata.verdict == "exact"
    assert metadata.expected == 2304


def test_inputs_are_skipped_where_no_row_that_shares_them_keeps_the_block(found):
    """The words go past two levels to the lanes: 64 rows, of four block rows, share each."""
    row = found.row("skipped_read", "SMEM", "P")
    assert row.expected == int(64 * 8 * (3 / 4) ** 4)
    assert row.verdict in ("within", "exact")


def test_lanes_in_one_block_row_do_not_wait_for_each_other():
    density = {"P": 1.0, "Q": {"type": "crisp", "n": 4, "block": 64, "keep": 1}, "Z": 1.0}
    layer = {"einsum": "Z[s, x] = P[x, k] * Q[s, k]", "dims": {"s": 128, "k": 256, "x": 16}, "density": density}
    problem = load_problem({"name": "layer", **layer}, "crisp-stc", "crisp-stc", cost_model="physical")
    best = search(problem, searcher="exhaustive", budget=1000).best
    found = verify(problem, best.design.batch, trials=1, compare=True)
    assert {one.name: one for one in found.effects}["imbalance"].analytic[1] == 0
    assert found.row("cycles").mean == pytest.approx(found.row("cycles").expected, rel=0.05)


@pytest.mark.parametrize("words", [21, 42])
def test_dstc_takes_the_cycles_that_it_is_charged_for(words):
    """Partly filled vectors, waiting cores and transfers: what keeps it behind CRISP in Fig. 8."""
    density = {"P": 0.6, "Q": 0.1, "Z": 1.0}
    layer = {"einsum": "Z[s, x] = P[x, k] * Q[s, k]", "dims": {"s": 128, "k": 128, "x": 49}, "density": density}
    chip = {"extends": "dstc-edge", "levels": {"SMEM": {"read_bandwidth": f"{words} words/cycle"}}}
    problem = load_problem({"name": "layer", **layer}, chip, "dstc-edge", cost_model="physical")
    found = verify(problem, search(problem, budget=500).best.design.batch, trials=2)
    assert found.row("cycles").mean == pytest.approx(found.row("cycles").expected, rel=0.15)
