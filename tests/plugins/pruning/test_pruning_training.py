"""The trainer: gradients, what masks let through, and pruning runs on digits."""

import attrs
import numpy as np
import pytest
from sparsemap_plugins.pruning import digits
from sparsemap_plugins.pruning.blocks import BlockShape
from sparsemap_plugins.pruning.hybrid import NmPattern
from sparsemap_plugins.pruning.layers import LayerShape, TrainedNetwork
from sparsemap_plugins.pruning.runs import METHODS, Job, run
from sparsemap_plugins.pruning.scores import saliency
from sparsemap_plugins.pruning.training import Images, Optimiser, evidence, fit

SHAPES = (LayerShape("conv1", 4, 3, pool=True), LayerShape("conv2", 8, 3, pool=True), LayerShape("fc", 3, 0))


@pytest.fixture
def network():
    return TrainedNetwork.create(SHAPES, 8, 2, np.random.default_rng(0), np.float64)


@pytest.fixture
def images():
    rng = np.random.default_rng(1)
    return Images(rng.standard_normal((24, 8, 8, 2)), rng.integers(0, 3, 24))


@pytest.mark.parametrize("name", [shape.name for shape in SHAPES])
def test_saliency_is_the_weight_times_the_slope_of_the_loss(network, images, name):
    found = evidence(network, images, [name])[name]
    scores = saliency(found.weights, found.gradient)
    weights = network[name].weights
    for place in np.argsort(scores, axis=None)[[-1, -5, scores.size // 2]]:
        index = np.unravel_index(place, weights.shape)
        value, losses = weights[index], []
        for step in (1e-6, -1e-6):
            weights[index] = value + step
            losses.append(network.gradients(images.images, images.labels)[0])
        weights[index] = value
        slope = (losses[0] - losses[1]) / 2e-6 / len(images)
        assert scores[index] == pytest.approx(abs(slope * value), rel=1e-4)


def test_mean_gradients_do_not_depend_on_the_batch(network, images):
    def gradient(batch, **more):
        return evidence(network, images, ["conv2"], batch=batch, **more)["conv2"].gradient

    assert gradient(5) == pytest.approx(gradient(24), rel=1e-9)
    assert gradient(1, squared=True) == pytest.approx(gradient(24), rel=1e-9)


def test_gradients_reach_pruned_words_of_kept_blocks_and_no_word_of_pruned_ones(network, images):
    layer = network["conv2"]
    rng = np.random.default_rng(2)
    layer.live = np.repeat(rng.random((8, 1, 1, 1)) < 0.5, 36, axis=1).reshape(layer.shape)
    layer.words = layer.live & (rng.random(layer.shape) < 0.5)
    before, bias = layer.weights.copy(), layer.bias.copy()
    fit(network, images, 1, 0.05, 8, Optimiser(), rng)
    assert (layer.weights == before)[~layer.live].all()
    assert (layer.weights != before)[layer.live & ~layer.words].all()
    assert (layer.bias != bias).any()
    assert not layer.effective[~layer.words].any()


def test_the_pull_drags_pruned_words_of_kept_blocks_towards_zero(network, images):
    layer = network["conv2"]
    layer.live = np.ones(layer.shape, bool)
    layer.words = np.random.default_rng(2).random(layer.shape) < 0.5
    copy = network.copy()
    for one, pull in ((network, 0.0), (copy, 10.0)):
        fit(one, images, 1, 0.01, 8, Optimiser(), np.random.default_rng(3), pull)
    pruned = ~layer.words
    assert np.abs(copy["conv2"].weights[pruned]).sum() < 0.8 * np.abs(layer.weights[pruned]).sum()


def test_images_are_chosen_by_class_and_at_most_so_many_of_each(images):
    some = images.of([0, 2], most=3)
    assert np.bincount(some.labels).tolist() == [3, 0, 3]


def test_a_quarter_of_each_class_is_kept_for_testing(quick):
    train, test = digits.data(0)
    assert (len(train), len(test)) == (1347, 450)
    assert not {image.tobytes() for image in test.images} & {image.tobytes() for image in train.images}
    assert (np.abs(np.bincount(train.labels) / np.bincount(test.labels) - 3) < 0.1).all()
    assert not np.array_equal(digits.data(1)[1].images, test.images)


@pytest.mark.parametrize("method", METHODS)
def test_pruned_words_are_zero_after_training(quick, method):
    wanted = {"crisp": 0.8, "nm-only": 0.5}.get(method, 0.5)
    block = BlockShape(16, 16) if method in ("crisp", "block-only") else BlockShape(8, 8, "channels")
    criterion = "l2" if method in ("one-shot", "gradual") else "saliency"
    job = Job(
        method=method, block=block, sparsity=wanted, criterion=criterion, network=quick, iterations=2, epochs=1,
        classes=(0, 7), pattern=NmPattern(2, 4),
    )  # fmt: skip
    found = run(job)
    row = found.row()
    assert wanted - 0.02 <= row["achieved"] <= wanted + 0.05
    for name, mask in found.masks.items():
        words = found.steps.grids[name].matrix(found.network[name].effective != 0)
        assert not words[~mask.words].any() and words[mask.words].mean() > 0.99
    assert row["accuracy_among_classes"] >= row["accuracy"]
    assert found.network["conv1"].words is None


def test_a_run_can_be_repeated(quick):
    job = Job(
        block=BlockShape(16, 16),
        sparsity=0.8,
        criterion="saliency",
        network=quick,
        iterations=1,
        epochs=1,
        classes=(0, 7),
    )
    first, again, other = run(job), run(job), run(attrs.evolve(job, seed=1))
    same = [np.array_equal(first.network[name].effective, again.network[name].effective) for name in first.masks]
    assert all(same) and first.row() == pytest.approx(again.row(), nan_ok=True)
    assert any((first.masks[name].words != other.masks[name].words).any() for name in first.masks)


def test_a_network_without_a_path_of_kept_blocks_is_told(quick):
    job = Job(
        method="one-shot",
        block=BlockShape(8, 8, "channels"),
        sparsity=1.0,
        criterion="l2",
        network=quick,
        classes=(0, 7),
    )
    assert run(job).cut
    assert not run(attrs.evolve(job, sparsity=0.5)).cut
