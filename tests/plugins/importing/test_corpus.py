"""The models of `corpus` have the MACs and weights that are worked out there, and the roles that they should."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.importing import counting

from sparsemap.cli.main import cli
from sparsemap.errors import SpecError
from sparsemap.pieces.loading import load
from sparsemap.problem.network import nodes_of

onnx = pytest.importorskip("onnx")
from corpus import CASES  # noqa: E402
from onnx_files import INT8, node, written  # noqa: E402


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.mark.parametrize("name", CASES)
def test_macs_and_weights_are_those_worked_out_by_hand(name: str, tmp_path: Path, registry: Any):
    nodes, constants, inputs, macs, weights, *more = CASES[name]
    options, opset = more[0] if more else (), more[1] if len(more) > 1 else 17
    file, out = written(tmp_path / "m.onnx", nodes, constants, inputs, opset=opset), tmp_path / "m.toml"
    outcome = CliRunner().invoke(cli, ["import", str(file), "-o", str(out), *options])
    assert outcome.exit_code == 0, outcome.output
    found = nodes_of(registry.resolve("network", str(out)), registry, tmp_path)
    totals = sum(each.repeat * each.macs for each in found), sum(each.repeat * each.weights for each in found)
    assert totals == (macs, weights), outcome.output
    assert f"{macs:,} MACs, {weights:,} weights" in outcome.output


def test_the_corpus_is_not_small():
    assert len(CASES) >= 40


def imported(tmp_path: Path, *about: Any, options: tuple[str, ...] = (), **more: Any) -> dict[str, dict[str, Any]]:
    """The layers of a model by name."""
    file, out = written(tmp_path / "m.onnx", *about, **more), tmp_path / "m.toml"
    outcome = CliRunner().invoke(cli, ["import", str(file), "-o", str(out), "--overwrite", *options])
    assert outcome.exit_code == 0, outcome.output
    return {layer["name"]: layer for layer in tomllib.loads(out.read_text("utf-8"))["layers"]}


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("keys of one head for all", {"m": 8 * 10, "k": 16, "n": 10}),
        ("keys of two heads expanded to six", {"h": 2, "m": 3 * 10, "k": 8, "n": 10}),
        ("a product that broadcasts on both sides", {"m": 2 * 64, "k": 32, "n": 2 * 64}),
    ],
)
def test_words_that_are_broadcast_or_expanded_count_once(name: str, sizes: dict[str, int], tmp_path: Path):
    (layer,) = (each for each in imported(tmp_path, *CASES[name][:3]).values() if each["type"] in ("linear", "matmul"))
    assert {key: layer[key] for key in "hmkn" if key in layer} == sizes


def test_grouped_queries_of_the_operator_share_keys_and_values(tmp_path: Path):
    layers = imported(tmp_path, *CASES["Attention with earlier keys"][:3], opset=23)
    assert layers["y.scores"] | {"h": 2, "m": 3, "k": 8, "n": 32} == layers["y.scores"]
    assert layers["y.context"] | {"h": 2, "m": 3, "k": 32, "n": 8} == layers["y.context"]


def test_keys_of_earlier_steps_are_rows_of_a_cache(tmp_path: Path):
    layers = imported(tmp_path, *CASES["keys of earlier steps"][:3])
    assert [layer["type"] for layer in layers.values()] == ["linear", "prepend", "outside", "matmul"]
    assert layers["k3.concat"]["rows"] == 31


def test_weights_on_the_left_are_the_weights_and_are_saved_as_such(tmp_path: Path):
    weights = np.ones((5, 16))
    weights[1:] = 0
    layers = imported(
        tmp_path, [node("MatMul", "w x", "y")], {"w": weights}, {"x": [1, 16, 32]}, options=("--save-weights",)
    )
    assert layers["y"]["density"].keys() == {"Q"}
    assert layers["y"] | {"m": 32, "k": 16, "n": 5} == layers["y"]
    assert np.array_equal(np.load(tmp_path / "m-weights" / "y.npy"), weights.T)


def test_saved_experts_lie_as_the_layer_says(tmp_path: Path):
    weights = np.arange(3.0 * 4 * 5).reshape(3, 4, 5) % 2
    for shape, expected in (
        ([1, 1, 6, 4], weights.transpose(1, 0, 2).reshape(4, 15)),  # all rows meet every expert
        ([1, 3, 6, 4], weights),
    ):
        imported(tmp_path, [node("MatMul", "x w", "y")], {"w": weights}, {"x": shape}, options=("--save-weights",))
        assert np.array_equal(np.load(tmp_path / "m-weights" / "y.npy"), expected)


def test_words_of_8_bits_are_told_and_zeros_are_what_stands_for_zero(tmp_path: Path):
    weights = np.full((32, 8), 3, np.int8)
    weights[::2] = 7
    nodes = [node("MatMulInteger", "x w - z", "y")]
    (layer,) = imported(tmp_path, nodes, {"w": weights, "z": np.int8([3] * 8)}, {"x": (INT8, [1, 16, 32])}).values()
    assert layer["word_bits"] == {"P": 8, "Q": 8, "Z": 32}
    assert layer["density"] == {"Q": {"type": "block", "density": 0.5, "block": [1, 8]}}
    (layer,) = imported(tmp_path, *CASES["weights of 4 bits"][:3], opset=21).values()
    assert layer["word_bits"].keys() == {"Q"}, "activations have more bits"
    file = str(tmp_path / "m.onnx")
    outcome = CliRunner().invoke(cli, ["import", file, "-o", str(tmp_path / "m.toml"), "--overwrite"])
    assert "bits of activations x weights: 32 x 4 in 1" in outcome.output


def test_activations_that_are_quantised_are_measured_against_what_stands_for_zero(tmp_path: Path):
    image = np.full((2, 3, 8, 8), 7, np.uint8)  # the zero of the corpus
    image[:, 0] = 0
    np.savez(tmp_path / "samples.npz", x=image)
    about = CASES["quantised convolution"][:3]
    (layer,) = imported(tmp_path, *about, options=("--samples", str(tmp_path / "samples.npz"))).values()
    assert layer["density"]["P"] == 0.3333


def test_words_that_stand_for_zero_have_to_fit(tmp_path: Path):
    nodes = [node("MatMulInteger", "x w - z", "y")]
    constants = {"w": np.ones((32, 8), np.int8), "z": np.ones(5, np.int8)}
    file = written(tmp_path / "m.onnx", nodes, constants, {"x": (INT8, [1, 16, 32])})
    outcome = CliRunner().invoke(cli, ["import", str(file), "-o", str(tmp_path / "m.toml")])
    assert outcome.exit_code == 2
    assert "'z' has 5 words for what is zero in 8 outputs" in " ".join(outcome.output.split())


def test_a_node_whose_layers_and_shapes_disagree_is_refused(tmp_path: Path, monkeypatch: Any):
    monkeypatch.setattr(counting, "macs", lambda node, model: 7)
    out = tmp_path / "m.toml"
    file = written(tmp_path / "m.onnx", *CASES["linear"][:3])
    outcome = CliRunner().invoke(cli, ["import", str(file), "-o", str(out)])
    assert outcome.exit_code == 2 and not out.exists()
    assert "MatMul '/y/MatMul': its layers have 4,096 MACs, and its shapes say 7" in " ".join(outcome.output.split())


def test_weights_of_experts_are_given_to_a_layer_with_groups(tmp_path: Path):
    network = tmp_path / "n.toml"
    network.write_text(
        'kind = "network"\nname = "n"\n'
        'layers = [{ name = "experts", type = "linear", m = 2, k = 4, n = 5, groups = 3 }]\n'
    )
    weights = np.arange(60.0).reshape(3, 5, 4) * (np.arange(5) < 2)[None, :, None]
    np.savez(tmp_path / "w.npz", experts=weights)
    args = ["import", str(tmp_path / "w.npz"), "--network", str(network), "-o", str(tmp_path / "m.toml")]
    outcome = CliRunner().invoke(cli, [*args, "--save-weights"])
    assert outcome.exit_code == 0, outcome.output
    assert np.array_equal(np.load(tmp_path / "m-weights" / "experts.npy"), weights.transpose(0, 2, 1))


TIED = {
    "one tensor": ([node("MatMul", "x w", "a"), node("MatMul", "a w", "y")], 64, 1),
    "a node between": ([node("MatMul", "x w", "a"), node("Identity", "w", "v"), node("MatMul", "a v", "y")], 64, 1),
    "turned twice": (
        [node("Transpose", "w", "t"), node("Transpose", "t", "v"), node("MatMul", "x w", "a"), node("MatMul", "a v", "y")],
        64, 1,
    ),
    "turned": ([node("Transpose", "w", "t"), node("MatMul", "x w", "a"), node("MatMul", "a t", "y")], 64, 1),
    "transposed by the node": ([node("Gemm", "x w", "a", transB=1), node("Gemm", "a w", "y", transB=1)], 64, 1),
    "equal words of two tensors": ([node("MatMul", "x w", "a"), node("MatMul", "a u", "y")], 128, 0),
    "parts of one tensor": (
        [node("Split", "p", "q r", axis=1), node("MatMul", "x q", "a"), node("MatMul", "a r", "b"),
         node("MatMul", "b q", "y")],
        128, 1,
    ),
    "layers side by side": (
        [node("Conv", "i g", "a", group=2), node("Conv", "a g", "y", group=2)], 2 * 4 * 4, 1,
    ),
}  # fmt: skip
"""Nodes, and by hand: words of weights, and layers that have those of another."""


@pytest.mark.parametrize("name", TIED)
def test_weights_of_several_layers_count_once(name: str, tmp_path: Path):
    nodes, weights, tied = TIED[name]
    words = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    known = {
        "w": words,
        "u": words,
        "p": np.concatenate([words, 2 * words], 1),
        "g": words.ravel()[:32].reshape(8, 4, 1, 1),
    }
    used = {text for each in nodes for text in each.input}
    given = {"i": [1, 8, 3, 3]} if "i" in used else {"x": [4, 8]}
    file = written(tmp_path / "m.onnx", nodes, {key: x for key, x in known.items() if key in used}, given)
    told = CliRunner().invoke(cli, ["import", str(file), "-o", str(tmp_path / "m.toml")])
    assert f" MACs, {weights:,} weights" in told.output, told.output
    layers = tomllib.loads((tmp_path / "m.toml").read_text("utf-8"))["layers"]
    assert [layer["tied"] for layer in layers if "tied" in layer] == [layers[0]["name"]] * tied
    described = CliRunner().invoke(cli, ["list", "network", str(tmp_path / "m.toml")])
    assert f" MACs, {weights:,} weights" in described.output, described.output


def test_a_layer_can_have_the_weights_of_one_before_it_alone(registry: Any):
    layer = {"type": "linear", "k": 8, "n": 8}
    network = {"name": "n", "layers": [{"name": "a", **layer, "tied": "b"}, {"name": "b", **layer}]}
    with pytest.raises(SpecError, match=r"layers\[0\]\.tied: no layer before this one 'b'"):
        nodes_of(registry.build("network", network), registry)
