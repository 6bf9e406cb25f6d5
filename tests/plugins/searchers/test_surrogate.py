"""Mind Mappings: a network learns scores of legal mappings, its gradient is exact, and descent proposes legal mappings."""

from pathlib import Path

import numpy as np
import pytest
from sparsemap_plugins.searchers.surrogate.features import FeaturePoints
from sparsemap_plugins.searchers.surrogate.model import Surrogate, legal_samples, rank_correlation, train

from sparsemap import SparseMapError, load_problem, search
from sparsemap.testing import check_searcher

HARDWARE, SPACE = "accel-b", "sparseloop-mapper"


@pytest.fixture(scope="module")
def layer():
    return load_problem("resnet-conv4", HARDWARE, SPACE, cost_model="timeloop")


@pytest.fixture(scope="module")
def trained():
    """From 600 legal mappings of another layer."""
    return train([load_problem("resnet-conv3", HARDWARE, SPACE, cost_model="timeloop")], 600, seed=0)


@pytest.fixture
def saved(trained, tmp_path):
    trained[0].save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


def searcher(problem, path, **fields):
    return problem.registry.build("searcher", {"type": "mind-mappings", "model": str(path), **fields})


def test_it_ranks_mappings_that_it_was_not_trained_on_and_those_of_another_layer(trained, layer):
    surrogate, (held_out,) = trained
    space, points, scores = legal_samples(layer, 400, np.random.default_rng(1))
    assert held_out > 0.75
    assert rank_correlation(surrogate.predict(points, space), scores) > 0.75


def test_its_gradient_is_the_one_of_finite_differences(trained, layer):
    surrogate, _ = trained
    space, points, _ = legal_samples(layer, 3, np.random.default_rng(2))
    gradient = surrogate.gradient(points, space)
    step = 1e-6
    for j in range(points.shape[1]):
        move = np.zeros(points.shape[1])
        move[j] = step
        slope = (surrogate.predict(points + move, space) - surrogate.predict(points - move, space)) / (2 * step)
        np.testing.assert_allclose(gradient[:, j], slope, rtol=1e-6, atol=1e-6)


def test_a_saved_model_reloads_bit_for_bit(trained, saved, layer):
    surrogate, again = trained[0], Surrogate.load(saved)
    space, points, _ = legal_samples(layer, 20, np.random.default_rng(3))
    assert again.about == surrogate.about
    assert (again.predict(points, space) == surrogate.predict(points, space)).all()


def test_the_nearest_mapping_of_a_mapping_means_the_same(layer):
    space = FeaturePoints(layer.space, np.random.default_rng(4))
    genomes = space.legal(50)
    again = space.nearest(space.of(genomes))
    assert (layer.evaluator.evaluate(again).edp == layer.evaluator.evaluate(genomes).edp).all()


def test_genes_other_than_mapping_are_moved_too():
    problem = load_problem("matmul-32x64x48", "edge")
    space = FeaturePoints(problem.space, np.random.default_rng(5))
    genomes = problem.space.sample(50, np.random.default_rng(6))
    assert len(space.rest)
    assert (space.nearest(space.of(genomes))[:, space.rest] == genomes[:, space.rest]).all()


def test_descent_finds_better_mappings_than_as_many_random_ones(saved, layer):
    found = search(layer, searcher=searcher(layer, saved), budget=160, seed=0)
    random = search(layer, searcher={"type": "gamma", "population": 160}, budget=160, seed=0)
    assert found.valid_fraction == 1.0
    assert found.best.score < random.best.score


def test_it_keeps_the_contract_of_searchers(saved, layer):
    check_searcher(searcher(layer, saved), layer)


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        (("resnet-conv4", "accel-b-bytes", SPACE), "hardware: was trained for accel-b, resnet-conv4 on accel-b-bytes has"),
        (("resnet-conv4", "accel-a", SPACE), "mapping levels: was trained for"),
        (("mm1", HARDWARE, SPACE), "dimensions: was trained for"),
        (("resnet-conv4", HARDWARE, SPACE, "energy"), "objective: was trained for edp"),
    ],
)  # fmt: skip
def test_a_problem_of_another_kind_is_an_error(saved, parts, told):
    problem = load_problem(*parts)
    with pytest.raises(SparseMapError) as raised:
        search(problem, searcher=searcher(problem, saved), budget=10)
    assert f"model.npz: {told}" in str(raised.value)


def test_other_hardware_may_be_allowed(saved):
    problem = load_problem("resnet-conv4", "accel-b-bytes", SPACE)
    assert search(problem, searcher=searcher(problem, saved, other_hardware=True), budget=20).best is not None


def test_a_file_that_is_no_model_is_an_error(layer, tmp_path):
    np.savez(tmp_path / "other.npz", weights=np.ones(3))
    with pytest.raises(SparseMapError, match=r"other\.npz: is no surrogate"):
        Surrogate.load(Path(tmp_path / "other.npz"))
