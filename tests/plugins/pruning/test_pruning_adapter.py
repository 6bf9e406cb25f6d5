"""The adapter for PyTorch: what is pruned, which gradients it takes, and what is left when it is done."""

import csv

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sparsemap_plugins.pruning.adapter import PrunedModel, prune  # noqa: E402

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


def gradients(found, batches, classes, samples=1000):
    return {name: one.gradient for name, one in found._evidence(batches, LOSS, classes, samples).items()}


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
    found = pruned(model, loader)
    whole = [(torch.cat([x for x, _ in loader]), torch.cat([y for _, y in loader]))]
    some, same = (gradients(found, batches, [0, 2]) for batches in (loader, whole))
    for name in some:
        assert some[name] == pytest.approx(same[name], rel=1e-3, abs=1e-7)
    assert some["7"].reshape(16, 256)[:, ~model[7].parametrizations.weight[0].live[0].numpy()].any()


def test_only_so_many_samples_of_the_classes_count(model, loader):
    found = PrunedModel.of(model, block=8, pattern=(2, 4), sparsity=0.8)
    few = gradients(found, loader, [0, 2], 1)["3"]
    firsts = [next((x[i], y[i]) for x, y in loader for i in range(12) if y[i] == label) for label in (0, 2)]
    batch = [(torch.stack([x for x, _ in firsts]), torch.stack([y for _, y in firsts]))]
    assert few == pytest.approx(gradients(found, batch, None, 1)["3"], rel=1e-3, abs=1e-7)


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


class Attending(torch.nn.Module):
    """Attention and a convolution over words."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv1d(1, 16, 3, padding=1)
        self.mix = torch.nn.Conv1d(16, 16, 3, padding=1)
        self.attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        self.last = torch.nn.Linear(16, 3)

    def forward(self, x):
        x = self.mix(self.stem(x.flatten(1)[:, None]).relu()).relu().transpose(1, 2)
        return self.last(self.attention(x, x, x, need_weights=False)[0].mean(dim=1))


@pytest.mark.parametrize("method", ["crisp", "one-shot", "gradual"])
def test_attention_and_convolutions_of_rows_are_pruned_by_every_method(loader, method):
    torch.manual_seed(2)
    model = Attending()
    sparsity = 0.5 if method == "gradual" else 0.75  # it keeps a block in every row and column
    found = pruned(model, loader, method=method, sparsity=sparsity, evaluate=lambda model: int(model.training))
    assert list(found.masks) == ["mix", "attention.in_proj", "attention.out_proj"]
    assert found.positions["mix"] == found.positions["attention.in_proj"] == 64
    assert found.sparsity == pytest.approx(sparsity, abs=0.05) and not any(row["value"] for row in found.history)
    before = model.eval()(loader[0][0])
    found.finish()
    weights = model.attention.in_proj_weight.detach().numpy()
    assert not weights[~found.masks["attention.in_proj"].words].any() and weights.any()
    assert torch.allclose(model(loader[0][0]), before, atol=1e-6)


def test_momentum_and_rates_go_on_over_the_steps(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    parameter, seen = model[7].weight, []
    step = PrunedModel.step

    def watched(self, *given):
        seen.append(optimizer.state[parameter].get("momentum_buffer"))
        return step(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrunedModel, "step", watched)
        prune(
            model, loader, LOSS, block=8, sparsity=0.8, iterations=2, epochs=1, optimizer=optimizer, schedule=schedule
        )
    assert model[7].parametrizations.weight.original is parameter
    assert len(seen) == 2 and all(buffer is not None for buffer in seen)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01 / 8)  # an epoch without masks, and one in each step


def test_a_loop_of_its_own_prunes_by_weights_alone(model):
    found = PrunedModel.of(model, method="one-shot", sparsity=0.5)
    found.step(0.25)
    assert 0 < found.sparsity <= 0.25
    found.step(0.5)
    assert 0.4 < found.sparsity <= 0.5
    with pytest.raises(SparseMapError, match="criterion 'saliency' needs gradients"):
        PrunedModel.of(model, sparsity=0.8, block=8).step(0.8)


@pytest.mark.parametrize("exporter", ["old", "new"])
@pytest.mark.parametrize("method", ["one-shot", "crisp"])
def test_a_model_that_was_exported_arrives_at_the_same_masks(tmp_path, monkeypatch, exporter, method):
    """Exporters fold batch normalisation into weights, which scales the scores of rows of blocks, unless they are told not to."""
    pytest.importorskip("onnx")
    from click.testing import CliRunner

    from sparsemap.cli.main import cli

    monkeypatch.chdir(tmp_path)
    torch.manual_seed(3)
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.Conv2d(16, 32, 3), nn.BatchNorm2d(32), nn.Flatten(), nn.Linear(512, 4)
    )
    model[2].running_var.uniform_(0.1, 4)
    found = PrunedModel.of(model, method=method, sparsity=0.75, block=8, criterion="l1")
    image = torch.zeros(1, 1, 8, 8)
    if exporter == "new":
        pytest.importorskip("onnxscript")
        torch.onnx.export(model.eval(), (image,), "m.onnx", dynamo=True, optimize=False)
    else:
        mode = torch.onnx.TrainingMode.PRESERVE
        torch.onnx.export(model.eval(), (image,), "m.onnx", dynamo=False, training=mode)
    words = ["extra", "prune", "m.onnx", "--method", method, "--sparsity", "0.75", "--block", "8", "--criterion", "l1"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    found.step(0.75)
    for name, mask in found.masks.items():
        assert np.array_equal(np.load(f"runs/prune/{name}-mask.npy"), mask.blocks)
