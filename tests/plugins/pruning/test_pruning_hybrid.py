"""CRISP's masks: N:M inside of blocks, rank columns over all layers, the budget, what comes back and what never does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sparsemap_plugins.pruning.blocks import BlockShape
from sparsemap_plugins.pruning.hybrid import DENSE, HybridPruner, NmPattern, nm_mask, rank_columns, sparsity_of

from sparsemap.errors import SparseMapError

A = np.array([[5, 1, 3], [2, 9, 4]])
"""Scores of 2 x 3 blocks: sorted rows are 1 3 5 and 2 4 9, the rank columns 3, 7, 14; each prunes 4 x 2 words."""
B = np.array([[6, 1], [2, 8], [1, 3]])
"""Scores of 3 x 2 blocks: sorted rows are 1 6, 2 8 and 1 3, the rank columns 4, 17; each prunes 6 x 2 words."""


def pruner(blocks, pattern=DENSE, block=2, **more):
    """A pruner, and scores of words that add up to these scores of blocks."""
    grids = {
        name: BlockShape(block, block).grid((scores.shape[0] * block, 1, 1, scores.shape[1] * block))
        for name, scores in blocks.items()
    }
    words = {name: grids[name].expand(scores) / block**2 for name, scores in blocks.items()}
    return HybridPruner(grids, pattern, **more), words


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_the_cheapest_rank_columns_of_all_layers_go_whatever_the_order_of_layers(names):
    layers, scores = pruner({name: {"a": A, "b": B}[name] for name in names})
    masks = layers.step(scores, 0.4)  # of 48 words 19.2: the columns of 3 and 4 are 20
    assert masks["a"].blocks.tolist() == [[1, 0, 1], [0, 1, 1]]
    assert masks["b"].blocks.tolist() == [[1, 0], [0, 1], [0, 1]]
    assert sparsity_of(masks) == pytest.approx(20 / 48)
    masks = layers.step(scores, 0.5)  # and that of 7
    assert masks["a"].blocks.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert masks["b"].blocks.tolist() == [[1, 0], [0, 1], [0, 1]]


def test_blocks_are_pruned_by_rank_not_by_physical_column():
    rng = np.random.default_rng(0)
    blocks = rng.permutation(40).reshape(4, 10).astype(float)
    shuffle = np.array([rng.permutation(10) for _ in range(4)])
    shuffled = np.take_along_axis(blocks, shuffle, axis=1)
    plain, scores = pruner({"x": blocks})
    moved, moved_scores = pruner({"x": shuffled})
    one, other = plain.step(scores, 0.35)["x"].blocks, moved.step(moved_scores, 0.35)["x"].blocks
    assert (np.take_along_axis(one, shuffle, axis=1) == other).all()
    assert sorted(blocks[~one]) == sorted(shuffled[~other])


def test_ties_go_to_the_lower_column_and_a_short_group_keeps_what_it_can():
    scores = np.array([[1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 2.0]])
    assert nm_mask(scores, NmPattern(2, 4))[0, :4].tolist() == [True, True, False, False]
    assert nm_mask(scores, NmPattern(2, 4))[0, 4:].tolist() == [True, True, False]
    assert nm_mask(np.ones((1, 5)), NmPattern(3, 4)).tolist() == [[True, True, True, False, True]]


def test_blocks_that_are_gone_come_first_among_ranks_of_equal_score():
    order, columns = rank_columns(np.array([[0.0, 0.0, 1.0]]), np.array([[True, False, True]]))
    assert order.tolist() == [[1, 0, 2]] and columns.tolist() == [0, 0, 1]


def test_a_pruned_word_comes_back_and_a_word_of_a_pruned_block_does_not():
    layers, scores = pruner({"x": np.array([[1.0, 5.0, 7.0], [6.0, 2.0, 8.0]])}, NmPattern(1, 2))
    masks = layers.step(scores, 0.6)["x"]
    assert masks.blocks.tolist() == [[0, 1, 1], [1, 0, 1]]
    dropped = ~masks.words & masks.live
    later = np.where(dropped, 100.0, scores["x"]) + 1000 * ~masks.live
    again = layers.step({"x": later}, 0.6)["x"]
    assert again.words[dropped].all()
    assert not again.words[~masks.live].any()


def test_sparsities_that_cannot_be_reached_say_what_can():
    layers, scores = pruner({"a": A, "b": B}, NmPattern(1, 2))
    with pytest.raises(SparseMapError, match=r"at most 0.7917, where every row of blocks keeps one"):
        layers.step(scores, 0.8)
    with pytest.raises(SparseMapError, match=r"below the 0.5 that the pattern 1:2 alone prunes"):
        layers.step(scores, 0.4)
    assert sparsity_of(layers.step(scores, layers.highest)) == pytest.approx(layers.highest)


@given(st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_every_mask_keeps_the_invariants(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    block = data.draw(st.sampled_from([4, 8]))
    pattern = NmPattern(data.draw(st.integers(1, 4)), 4)
    names = [f"layer{i}" for i in range(data.draw(st.integers(1, 3)))]
    grids = {
        n: BlockShape(block, block).grid((block * rng.integers(1, 5), 1, 1, block * rng.integers(1, 7))) for n in names
    }
    layers = HybridPruner(grids, pattern)
    goal = data.draw(st.floats(0, 1)) * (layers.highest - layers.lowest) + layers.lowest
    for step in (0.5, 1.0):
        scores = {n: rng.random(g.size) * (rng.random(g.size) < 0.8) for n, g in grids.items()}
        kept_before = {n: mask.copy() for n, mask in layers.kept.items()}
        target = layers.lowest + step * (goal - layers.lowest)
        masks = layers.step(scores, target)
        assert sparsity_of(masks) >= target - 1e-9
        pruned = 0.0
        for n, grid in grids.items():
            mask = masks[n]
            per_row = mask.blocks.sum(axis=1)
            assert (per_row == per_row[0]).all() and per_row[0] >= 1
            assert not (mask.blocks & ~kept_before[n]).any()
            groups = mask.words.reshape(grid.size[0], -1, 4)
            live = mask.live.reshape(grid.size[0], -1, 4).all(axis=2)
            assert (groups.sum(axis=2) == np.where(live, pattern.n, 0)).all()
            held = (mask.words & (scores[n] > 0)).reshape(grid.size[0], -1, 4).sum(axis=2)
            candidates = (scores[n] > 0).reshape(grid.size[0], -1, 4).sum(axis=2)
            assert (held == np.where(live, np.minimum(pattern.n, candidates), 0)).all()
            if (kept_before[n][0].sum()) > per_row[0]:
                pruned = max(pruned, grid.size[0] * block * pattern.density)
        words = sum(mask.words.size for mask in masks.values())
        if pruned:
            assert sparsity_of(masks) - pruned / words < target + 1e-9


def test_layers_that_are_no_multiple_of_the_block_have_the_pattern_only():
    grids = {"whole": BlockShape(4, 4).grid((8, 1, 1, 16)), "odd": BlockShape(4, 4).grid((6, 1, 1, 16))}
    layers = HybridPruner(grids, NmPattern(2, 4))
    masks = layers.step({n: np.ones(g.size) for n, g in grids.items()}, 0.6)
    assert layers.prunable == ["whole"]
    assert masks["odd"].live.all() and masks["odd"].words.mean() == 0.5


RESNET_50 = {
    (64, 64): 1, (64, 576): 3, (256, 64): 4, (64, 256): 2, (128, 256): 1, (128, 1152): 4, (512, 128): 4, (512, 256): 1,
    (128, 512): 3, (256, 512): 1, (256, 2304): 6, (1024, 256): 6, (1024, 512): 1, (256, 1024): 5, (512, 1024): 1,
    (512, 4608): 3, (2048, 512): 3, (2048, 1024): 1, (512, 2048): 2,
}  # fmt: skip
"""Outputs and reduction of the 52 convolutions after the first, and how many there are."""


@pytest.mark.parametrize(("block", "highest"), [(16, 0.982), (32, 0.964), (64, 0.928)])
def test_a_block_per_row_bounds_the_sparsity_of_resnet_50(block, highest):
    layers = [size for size, count in RESNET_50.items() for _ in range(count)]
    grids = {str(n): BlockShape(block, block).grid((rows, 1, 1, k)) for n, (rows, k) in enumerate(layers)}
    assert len(grids) == 52 and HybridPruner(grids, DENSE).highest == pytest.approx(highest, abs=5e-4)


@pytest.mark.parametrize("text", ["4:2", "2", "a:b", "0:4", "2:4:8", ""])
def test_a_wrong_pattern_is_an_error(text):
    with pytest.raises(SparseMapError, match="expected N:M"):
        NmPattern.parse(text)
