"""The adapter for PyTorch: what is pruned, which gradients it takes, and what is left when it is done."""

import csv

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sparsemap_plugins.pruning.adapter import _mean_gradients, prune  # noqa: E402

from sparsemap.errors import SparseMapError  # noqa: E402

LOSS = torch.nn.CrossEntropyLoss()


@pytest.fixture
def model():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
        torch.nn.Conv2d(8, 16, 3, padding=1, stride=2), torch.nn.ReLU(),
        torch.nn.Conv2d(16, 16, 3, padding=1, groups=16), torch.nn.Flatten(),
        torch.nn.Linear(256, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3),
    )  # fmt: skip


@pytest.fixture
def loader():
    torch.manual_seed(1)
    return [(torch.randn(12, 1, 8, 8), torch.randint(0, 3, (12,))) for _ in range(3)]


def pruned(model, loader, **more):
    options = {"block": 8, "sparsity": 0.8, "iterations": 2, "epochs": 1, "classes": [0, 2], **more}
    return prune(model, loader, LOSS, optimizer=lambda parameters: torch.optim.SGD(parameters, 0.01), **options)


def test_a_model_keeps_its_zeros_when_masks_become_weights(model, loader, tmp_path):
    found = pruned(model, loader)
    assert list(found.masks) == ["3", "7"] and found.sparsity >= 0.8
    assert found.positions == {"0": 64, "3": 16, "5": 16, "7": 1, "9": 1}
    before = model(loader[0][0])
    found.write(tmp_path)
    assert found.finish() is model and torch.equal(model(loader[0][0]), before)
    for name, mask in found.masks.items():
        weight = model.get_submodule(name).weight.detach().numpy()
        matrix = weight.reshape(16, -1) if weight.ndim == 2 else weight.transpose(0, 2, 3, 1).reshape(16, -1)
        assert np.array_equal(matrix, np.load(tmp_path / f"{name}.npy"))
        assert not matrix[~mask.words].any()
    assert [row["layer"] for row in csv.DictReader((tmp_path / "summary.csv").open())] == ["3", "7", "all"]


def test_gradients_reach_pruned_words_of_kept_blocks_only(model, loader):
    mask = pruned(model, loader).masks["7"]
    before = model[7].parametrizations.weight.original.detach().clone()
    model.zero_grad()
    LOSS(model(loader[0][0]), loader[0][1]).backward()
    gradient = model[7].parametrizations.weight.original.grad.numpy()
    rows = gradient.any(axis=1)  # units that are not dead
    assert not gradient[~mask.live].any() and gradient[rows][(mask.live & ~mask.words)[rows]].any()
    assert torch.equal(before, model[7].parametrizations.weight.original)


def test_mean_gradients_are_those_of_the_masked_weights_for_whatever_batches(model, loader):
    pruned(model, loader)
    whole = [(torch.cat([x for x, _ in loader]), torch.cat([y for _, y in loader]))]
    some = _mean_gradients(model, loader, LOSS, [0, 2], 1000, ["3", "7"])
    same = _mean_gradients(model, whole, LOSS, [0, 2], 1000, ["3", "7"])
    for name in some:
        assert some[name] == pytest.approx(same[name], rel=1e-3, abs=1e-7)
    assert some["7"].reshape(16, 256)[:, ~model[7].parametrizations.weight[0].live[0].numpy()].any()


def test_only_so_many_samples_of_the_classes_count(model, loader):
    few = _mean_gradients(model, loader, LOSS, [0, 2], 1, ["3"])["3"]
    firsts = [next((x[i], y[i]) for x, y in loader for i in range(12) if y[i] == label) for label in (0, 2)]
    batch = [(torch.stack([x for x, _ in firsts]), torch.stack([y for _, y in firsts]))]
    assert few == pytest.approx(_mean_gradients(model, batch, LOSS, None, 1, ["3"])["3"], rel=1e-3, abs=1e-7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sparsity": 0.999}, "cannot be reached"),
        ({"exclude": ["11"]}, "exclude: no layer '11'"),
        ({"exclude": ["0", "3", "7", "9"]}, "nothing to prune"),
        ({"classes": [7]}, "no sample of the classes"),
    ],
)
def test_mistakes_are_told(model, loader, options, message):
    with pytest.raises(SparseMapError, match=message):
        pruned(model, loader, **options)
