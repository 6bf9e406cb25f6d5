"""Masks of blocks: how many zeros, how evenly, what a compiler's parts then hold, and masks that are trained."""

import json

import numpy as np
import pytest
from sparsemap_plugins.pruning.block_masks import balanced, gradual_rounds, gradual_step, one_shot
from sparsemap_plugins.pruning.blocks import BlockShape
from sparsemap_plugins.pruning.profile import Split, kept_blocks, padding, read_splits, utilisation
from sparsemap_plugins.pruning.runs import ALPHA, BETA, IOTA, penalty_slope
from sparsemap_plugins.pruning.scores import CRITERIA, Evidence, block_scores

from sparsemap.errors import SpecError

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("sparsity", [0, 0.25, 0.3, 0.75, 1])
def test_one_shot_prunes_exactly_the_share_that_was_asked_for(sparsity):
    scores = RNG.random((5, 7))
    scores[[0, 1, 2, 3, 4, 0, 0], [0, 1, 2, 3, 4, 5, 6]] += 1  # so that the largest lie in all rows and columns
    kept = one_shot(scores, sparsity)
    assert (~kept).sum() == int(sparsity * 35 + 1e-9)
    assert not (~kept).any() or not kept.any() or scores[~kept].max() < scores[kept].min()


@pytest.mark.parametrize("count", range(1, 41))
def test_masks_keep_a_block_in_as_many_rows_and_columns_as_their_blocks_suffice_for(count):
    scores = np.add.outer(np.linspace(0, 9, 8), np.arange(5.0)) + RNG.random((8, 5))  # all prefer one corner
    kept = one_shot(scores, 1 - count / 40)
    assert kept.sum() == count
    assert kept.any(axis=1).sum() == min(count, 8) and kept.any(axis=0).sum() == min(count, 5)


def test_a_column_that_scores_alone_would_empty_gets_the_block_that_costs_least():
    scores = np.array([[9.0, 8, 1], [7, 6, 2], [5, 4, 0]])
    assert one_shot(scores, 4 / 9).astype(int).tolist() == [[1, 1, 0], [1, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("shape", [(8, 8), (16, 6), (5, 9), (3, 20)])
@pytest.mark.parametrize("sparsity", [0.25, 0.5, 0.9])
def test_balanced_masks_have_even_zeros(shape, sparsity):
    scores = RNG.random(shape)
    each = int(sparsity * shape[1] + 1e-9)
    assert ((~balanced(scores, sparsity)).sum(axis=1) == each).all()


def test_masks_for_a_compiler_have_no_padding_in_any_split():
    scores = RNG.random((16, 16)) * np.linspace(0.2, 1, 16)
    split = Split(rows=4, out_blocks=2, in_blocks=4)
    assert padding(kept_blocks(one_shot(scores, 0.5), split)) > 0.2
    assert padding(kept_blocks(balanced(scores, 0.5, part=4), split)) == 0


def test_gradual_pruning_never_brings_a_block_back_and_ends_at_its_share():
    kept, rounds = np.ones((8, 8), bool), 0
    while (~kept).sum() < 48:
        later = gradual_step(kept, RNG.random((8, 8)), 0.75)
        assert not (later & ~kept).any() and (kept & ~later).sum() == min(2, 48 - (~kept).sum())
        kept, rounds = later, rounds + 1
    assert rounds == gradual_rounds(64, 0.75) == 24
    assert (gradual_step(kept, RNG.random((8, 8)), 0.75) == kept).all()


def test_gradual_pruning_leaves_every_row_and_column_a_block():
    kept = np.ones((4, 4), bool)
    for _ in range(20):
        kept = gradual_step(kept, np.arange(16.0).reshape(4, 4), 1.0)
    assert kept.any(axis=0).all() and kept.any(axis=1).all()


def test_kept_blocks_of_every_part_and_what_padding_costs():
    mask = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1]], bool)
    assert kept_blocks(mask, Split(rows=2, in_blocks=2)).tolist() == [[[3, 0]], [[2, 3]]]
    assert kept_blocks(mask[:3], Split(rows=2, out_blocks=1)).tolist() == [[[2], [1]], [[4], [0]]]
    assert padding(kept_blocks(mask, Split(rows=2, in_blocks=2))) == pytest.approx(2 * (3 + 3) / 8 - 1)


def test_random_masks_are_padded_by_a_standard_deviation_of_their_parts():
    found = np.mean(
        [padding(kept_blocks(one_shot(RNG.random((64, 32)), 0.5), Split(rows=4, out_blocks=2))) for _ in range(50)]
    )
    assert found == pytest.approx(
        1.03 * 4 / 32, abs=0.02
    )  # a part keeps 32 +- 4; the largest of four is 1.03 of it above


def test_equal_rows_keep_all_cores_busy_and_others_do_not():
    mask = np.zeros((64, 8), bool)
    mask[:, :2] = True
    assert utilisation([mask]) == 1
    mask[:16, :4] = True  # the first of four cores has twice the work
    assert utilisation([mask]) == (4 + 2 + 2 + 2) / 4 / 4


def test_blocks_of_channels_hold_whole_kernels_and_blocks_at_edges_are_cut():
    weights = RNG.standard_normal((10, 3, 3, 12))
    grid = BlockShape(8, 8, "channels").grid(weights.shape)
    assert grid.counts == (2, 2)
    norms = block_scores("l2", grid, Evidence(weights), RNG)
    assert norms[1, 1] == pytest.approx(np.sqrt((weights[8:, :, :, 8:] ** 2).sum()))
    masked = grid.tensor(np.where(grid.expand(norms == norms[0, 1]), grid.matrix(weights), 0))
    assert np.array_equal(np.flatnonzero(masked.any(axis=(0, 1, 2))), np.arange(8, 12))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_criteria_as_their_formulas_say(criterion):
    weights, gradient = RNG.standard_normal((2, 4, 1, 1, 6))
    grid = BlockShape(2, 3).grid(weights.shape)
    found = block_scores(criterion, grid, Evidence(weights, gradient, gradient**2), np.random.default_rng(3))
    block, its = weights[2:, 0, 0, 3:], gradient[2:, 0, 0, 3:]
    expected = {
        "l1": np.abs(block).sum(),
        "l2": np.linalg.norm(block),
        "variance": block.var(),
        "tensor-variance": ((block - weights.mean()) ** 2).mean(),
        "saliency": np.abs(block * its).sum(),
        "saliency-all": np.abs(block * its).sum(),
        "fisher": (block**2 * its**2).sum(),
        "random": np.random.default_rng(3).random((2, 2))[1, 1],
    }
    assert found[1, 1] == pytest.approx(expected[criterion])


def penalty(gamma, target):
    """Equation (13) of the paper, with smooth maxima and minima."""
    smooth_range = sum(np.log(np.exp(ALPHA * x).sum()) / ALPHA for x in (gamma, -gamma))
    return -smooth_range + BETA * (gamma.sum() - target) ** 2 + IOTA * np.abs(gamma).sum()


def test_the_slope_of_the_penalty_on_trained_masks():
    gamma = RNG.uniform(0.95, 1.05, (4, 3)) * [[-1], [1], [1], [1]]
    found = penalty_slope(gamma, 6)
    for place in np.ndindex(gamma.shape):
        step = np.zeros_like(gamma)
        step[place] = 1e-6
        slope = (penalty(gamma + step, 6) - penalty(gamma - step, 6)) / 2e-6
        assert found[place] == pytest.approx(slope, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            '{"layers": {"a": {"split": {"rows": 0}}}}',
            "layers.a.split.rows: found 0, expected a whole number from 1 on",
        ),
        ('{"layers": {"a": {"split": {"lines": 2}}}}', "expected numbers for rows, out_blocks, in_blocks"),
        ("[1]", "expected a table of format 'sparsemap masks 1'"),
        ("{", "is not JSON"),
    ],
)
def test_wrong_splits_say_where(tmp_path, table, message):
    file = tmp_path / "masks.json"
    file.write_text(table)
    with pytest.raises(SpecError, match=message):
        read_splits(file)
    file.write_text(json.dumps({"layers": {"a": {"split": {"rows": 4, "in_blocks": 2}}}}))
    assert read_splits(file) == {"a": Split(4, 0, 2)}
