"""From weights and their network to a pruned network that runs on chips of several kinds."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from sparsemap.arrays import read_arrays
from sparsemap.cli.main import cli

NETWORK = """
kind = "network"
name = "small"
input = [3, 8, 8]
layers = [
  { name = "stem", type = "conv2d", k = 32, c = 3, p = 8, q = 8, r = 3, s = 3, padding = 1 },
  { name = "deep", type = "depthwise", c = 32, p = 8, q = 8, r = 3, s = 3, padding = 1 },
  { name = "conv", type = "conv2d", k = 64, c = 32, p = 4, q = 4, r = 3, s = 3, padding = 1, stride = 2 },
  { name = "pool", type = "global-average" },
  { name = "fc", type = "linear", k = 64, n = 16 },
]
"""
SHAPES = {"stem": (32, 3, 3, 3), "deep": (32, 1, 3, 3), "conv": (64, 32, 3, 3), "fc": (16, 64)}


def run(*args, code=0):
    done = CliRunner().invoke(cli, [str(word) for word in args])
    assert done.exit_code == code, (done.exit_code, done.output, done.exception)
    return done.output


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.toml").write_text(NETWORK)
    rng = np.random.default_rng(0)
    arrays = {f"{name}.weight": rng.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}
    np.savez("w.npz", **arrays, **{"conv.bias": np.ones(64)})
    return tmp_path


@pytest.mark.parametrize("method", ["one-shot", "crisp"])
def test_pruned_weights_become_a_network_with_all_layers_that_runs_on_other_chips(small, method):
    said = run("prune", "w.npz", "--network", "net.toml", "--method", method, "--criterion", "l1", "--sparsity", 0.75)
    assert "deep: stays dense, every channel has a window of its own" in said
    folder = small / "runs" / "prune"
    assert "fine" in run("check", folder / "network.toml", folder / "network-products.toml")
    nodes = json.loads(run("describe", "network", folder / "network.toml", "--json"))["nodes"]
    assert [node["name"] for node in nodes] == ["stem", "deep", "conv", "pool", "fc"]
    told = run("run", folder / "network.toml", "--hardware", "mobile", "--budget", 100, "--out", "found")
    assert "Q 0.25" in (small / "found" / "layers.md").read_text(), told
    products = json.loads(run("describe", "network", folder / "network-products.toml", "--json"))["nodes"]
    assert [node["sizes"] for node in products] == [
        {"s": 32, "x": 64, "k": 32},
        {"s": 64, "x": 16, "k": 288},
        {"s": 16, "x": 1, "k": 64},
    ]
    stc = ("--hardware", "crisp-stc", "--space", "crisp-stc", "--budget", 100, "-q", "--out", "stc")
    run("run", folder / "network-products.toml", *stc)


def test_a_network_of_convolutions_runs_on_a_mesh_with_the_space_of_its_hardware(small):
    lines = [line for line in NETWORK.splitlines() if "depthwise" not in line]
    (small / "net.toml").write_text("\n".join(lines))
    arrays = {name: array for name, array in read_arrays(small / "w.npz").items() if not name.startswith("deep")}
    np.savez("w.npz", **arrays)
    run("prune", "w.npz", "--network", "net.toml", "--method", "one-shot", "--sparsity", 0.5, "--out", "p")
    run(
        "run",
        "p/network.toml",
        "--hardware",
        "aie2-2x2",
        "--objective",
        "delay",
        "--budget",
        60,
        "-q",
        "--out",
        "found",
    )
    assert "failed" not in (small / "found" / "layers.md").read_text()
    run("compile", "p/network.toml", "aie2-2x2", "--masks", "p", "--out", "c")
    assert "4 of 4 layers bit-equal" in run("simulate", "c")


@pytest.mark.parametrize("layout", ["npz", "safetensors"])
def test_masked_weights_have_the_form_of_their_source(small, layout):
    given = read_arrays(small / "w.npz")
    if layout == "safetensors":
        from sparsemap_plugins.pruning.weight_files import _safetensors

        (small / "w.safetensors").write_bytes(_safetensors(given))
    run("prune", f"w.{layout}", "--network", "net.toml", "--method", "one-shot", "--sparsity", 0.5, "--out", "p")
    found = read_arrays(small / "p" / f"masked.{layout}")
    assert list(found) == list(given)
    for name, array in given.items():
        assert found[name].shape == array.shape and found[name].dtype == array.dtype
        zero = found[name] == 0
        assert np.array_equal(found[name][~zero], array[~zero]) and zero.mean() == (0.5 if name == "conv.weight" else 0)


def test_positions_are_told_by_layer_and_asked_for_where_windows_would_be_vectors(small):
    weights = ("prune", "w.npz", "--method", "one-shot", "--sparsity", 0.5, "--layer", "conv.weight")
    assert "conv.weight: counted with one output pixel" in run(*weights)
    run(*weights, "--positions", "conv.weight=16")
    assert "x = 16" in (small / "runs" / "prune" / "workload-conv-weight.toml").read_text()
    assert "no layer 'conv'" in run(*weights, "--positions", "conv=16", code=2)
    assert "expected a number from 1 on" in run(*weights, "--positions", "0", code=2)
    assert "no layer is left to prune" in run(*weights[:-1], "deep.weight", code=2)


def test_weights_of_another_network_are_told(small):
    np.savez("w.npz", stem=np.ones((32, 3, 3, 3)), con=np.ones((64, 32, 3, 3)))
    assert "no layer 'con'; did you mean 'conv'?" in run(
        "prune", "w.npz", "--network", "net.toml", "--sparsity", 0.5, "--criterion", "l1", code=2
    )
    np.savez("w.npz", stem=np.ones((32, 3, 3, 3)), conv=np.ones((64, 32, 1, 1)))
    assert "has 2,048 words, layer conv 18,432" in run(
        "prune", "w.npz", "--network", "net.toml", "--sparsity", 0.5, "--criterion", "l1", code=2
    )
