"""`sparsemap import`: ONNX models and files of weights as networks, with the densities that are in them."""

from __future__ import annotations

import json
import struct
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.importing.patterns import found_in, share

from sparsemap import search_network
from sparsemap.arrays import read_arrays
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.problem.network import nodes_of

onnx = pytest.importorskip("onnx")
import onnx_models  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

VERSIONS = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
RNG = np.random.default_rng(0)
HALF = {"type": "n-of-m", "n": 2, "m": 4}
RANGE = {"type": "range", "low": 0.1, "high": 1.0}


@pytest.fixture(scope="module")
def registry():
    return load()


def saved(path: Path, nodes: list[Any], constants: dict[str, Any], inputs: dict[str, list[Any]], out: str) -> Path:
    """An ONNX file; nodes are (type, inputs, output, attributes)."""
    made = [helper.make_node(kind, given, [to], name=f"/{to}/{kind}", **more) for kind, given, to, more in nodes]
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    found = [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)]
    arrays = [
        numpy_helper.from_array(array.astype(array.dtype if array.dtype == np.int64 else np.float32), name)
        for name, array in constants.items()
    ]
    graph = helper.make_graph(made, "graph", given, found, arrays)
    onnx.save(helper.make_model(graph, opset_imports=VERSIONS, ir_version=8), path)
    return path


def run(*args: Any, code: int = 0) -> str:
    outcome = CliRunner().invoke(cli, ["import", *map(str, args)])
    assert outcome.exit_code == code and "Traceback" not in outcome.output, outcome.output
    return outcome.output


def imported(file: Path, *options: Any) -> dict[str, Any]:
    """The network that a file becomes, as its TOML has it; layers by name."""
    out = file.with_suffix(".toml")
    run(file, "-o", out, "-q", "--overwrite", *options)
    table = tomllib.loads(out.read_text("utf-8"))
    return {**table, "layers": {layer["name"]: layer for layer in table["layers"]}}


def nodes(file: Path, registry: Any) -> dict[str, Any]:
    network = registry.resolve("network", str(file))
    return {node.name: node for node in nodes_of(network, registry, file.parent, str(file))}


def two_of_four(*shape: int) -> np.ndarray:
    """Random weights with two of four nonzeros along the last axis."""
    places = RNG.random((*shape[:-1], shape[-1] // 4, 4)).argsort(-1).argsort(-1)
    return RNG.standard_normal(shape) * (places < 2).reshape(shape)


def blocks(rows: int, columns: int, side: int = 8, kept: float = 0.5) -> np.ndarray:
    """Random weights in a share of all blocks, always the same: of few blocks chance can make larger ones."""
    count = rows * columns // side**2
    mask = (np.random.default_rng(0).permutation(count) < kept * count).reshape(rows // side, columns // side)
    return RNG.standard_normal((rows, columns)) * mask.repeat(side, 0).repeat(side, 1)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    """A strided convolution with 2:4 along its channels, a depthwise one with weights anywhere, a classifier in blocks."""
    conv = np.moveaxis(two_of_four(32, 3, 3, 8), -1, 1)
    rng = np.random.default_rng(1)  # no window of zeros
    depth = rng.standard_normal((32, 1, 3, 3)) * (rng.permutation(288).reshape(32, 1, 3, 3) < 144)
    constants = {"conv.weight": conv, "depth.weight": depth, "fc.weight": blocks(16, 32)}
    pads, relu = {"pads": [1] * 4}, ("Relu", ["a"], "b", {})
    layers = [
        ("Conv", ["x", "conv.weight"], "a", {"strides": [2, 2], **pads}),
        relu,
        ("Conv", ["b", "depth.weight"], "c", {"group": 32, **pads}),
        ("GlobalAveragePool", ["c"], "mean", {}),
        ("Flatten", ["mean"], "flat", {}),
        ("Gemm", ["flat", "fc.weight"], "y", {"transB": 1}),
    ]
    return saved(tmp_path_factory.mktemp("tiny") / "tiny.onnx", layers, constants, {"x": ["n", 8, 16, 16]}, "y")


def test_layers_have_shapes_weights_with_their_patterns_and_ranges_behind_a_relu(tiny, registry):
    table = imported(tiny)
    assert table["input"] == [8, 16, 16]
    window = {"p": 8, "q": 8, "r": 3, "s": 3, "padding": 1}
    conv, depth, mean, fc = table["layers"].values()
    assert conv == {"name": "conv", "type": "conv2d", "k": 32, "c": 8, "stride": 2, **window, "density": {"Q": HALF}}
    assert depth == {"name": "depth", "type": "depthwise", "c": 32, **window, "density": {"P": RANGE, "Q": 0.5}}
    assert mean["type"] == "global-average"
    assert fc["density"] == {"Q": {"type": "block", "density": 0.5, "block": [8, 8]}} and (fc["k"], fc["n"]) == (32, 16)
    found = nodes(tiny.with_suffix(".toml"), registry)
    assert [node.macs for node in found.values()] == [32 * 8 * 64 * 9, 32 * 64 * 9, 0, 512]


def test_the_report_says_what_was_found(tiny, tmp_path):
    text = run(tiny, "-o", tmp_path / "net.toml")
    assert "3 layers to search, 3 of them distinct; 166,400 MACs, 3,104 weights" in text
    for line in ("2:4", "8 x 8 blocks", "uniform", "0.1 to 1", "operations: global-average 1", "Flatten 1, Relu 1"):
        assert line in text


@pytest.mark.parametrize("share_", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("shape", [(8, 8, 9), (32, 16, 1), (64, 1, 9), (10, 64, 1), (32, 3, 49)])
def test_no_pattern_is_invented_in_random_weights(share_, shape):
    assert found_in(np.where(RNG.random(shape) < share_, 1.0, 0.0)).label == "uniform"


def test_the_largest_block_is_found_also_where_it_is_no_square_and_cut_off_at_the_edge():
    mask = (RNG.permutation(20).reshape(5, 4) < 9).repeat(8, 0).repeat(16, 1)[:36, :60, None]
    found = found_in(mask)
    assert found.block == (8, 16, 1) and (found.blocks, found.kept) == (20, 9)
    each_tap = RNG.permutation(9 * 32).reshape(4, 8, 9) < 100
    assert found_in(each_tap.repeat(8, 0).repeat(8, 1)).block == (8, 8, 1)
    assert found_in(RNG.permutation(64).reshape(8, 8, 1).repeat(9, 2) < 30).label == "1 x 1 kernels"


def test_n_of_m_counts_along_the_channels_or_as_the_weights_lie():
    assert found_in(two_of_four(16, 9, 16).transpose(0, 2, 1)).label == "2:4"
    assert found_in(two_of_four(16, 16 * 9).reshape(16, 16, 9)).label == "2:4"
    columns = two_of_four(16, 9, 16).transpose(2, 0, 1)
    assert found_in(columns).label == "2:4 of outputs" and found_in(columns).table(columns.size, ()) == 0.5
    loose = two_of_four(16, 16 * 9) * (RNG.random((16, 144)) < 0.8)
    assert found_in(loose.reshape(16, 16, 9)).label == "uniform", "a pattern that is far from full says little"


def test_shares_are_exact_and_short():
    assert share(1, 2) == 0.5 and share(1, 3) == 0.3333 and share(11, 32) == 0.3437
    counts = [(count, words) for words in (7, 93, 36_864, 2_359_296) for count in (1, words // 3, words - 1)]
    assert [int(np.ceil(share(count, words) * words)) for count, words in counts] == [count for count, _ in counts]


@pytest.mark.parametrize(("name", "macs"), [("resnet50", 4_089_184_256), ("mobilenetv2", 300_774_272)])
def test_networks_of_torchvision_are_layer_by_layer_the_built_in_ones(name, macs, tmp_path, registry):
    file = tmp_path / f"{name}.onnx"
    onnx.save(getattr(onnx_models, name)(shapes_only=True)[0], file)
    imported(file, "--densities", "dense", "--activations", "dense")
    found, built_in = nodes(file.with_suffix(".toml"), registry), nodes_of(registry.get("network", name), registry)
    assert sum(node.macs for node in found.values()) == macs
    kinds = sorted((node.piece.type_name, node.content, node.shape) for node in found.values() if node.loops)
    assert kinds == sorted((node.piece.type_name, node.content, node.shape) for node in built_in if node.loops)
    assert {node.name for node in found.values() if node.loops} == {node.name for node in built_in if node.loops}


@pytest.mark.parametrize("name", ["resnet50", "mobilenetv2"])
def test_what_is_planted_in_every_layer_is_found(name, tmp_path):
    model, planted = getattr(onnx_models, name)(divide=4, side=32)
    onnx.save(model, tmp_path / "net.onnx")
    layers = imported(tmp_path / "net.onnx")["layers"]
    kinds = {"2:4": HALF, "dense": 1.0}
    for layer, pattern in planted.items():
        table = {"k": 1, **layers[layer]}
        found = table.get("density", {}).get("Q", 1.0)
        if table["k"] * table.get("c", 1) < 256 and table["type"] == "conv2d":
            continue  # so few groups that they may keep to a pattern by chance
        if pattern == "blocks":
            assert found["type"] == "block" and not any(side % 8 for side in found["block"][:2]), layer
        elif pattern == "anywhere":
            assert isinstance(found, float) and 0.4 < found < 0.6, layer
        else:
            assert found == kinds[pattern], layer


def test_saved_weights_are_data_densities_that_a_search_reads(tiny, tmp_path, registry):
    file = tmp_path / "deep" / "tiny.onnx"
    file.parent.mkdir()
    file.write_bytes(tiny.read_bytes())
    layers = imported(file, "--save-weights")["layers"]
    assert layers["fc"]["density"]["Q"] == {"type": "data", "file": "tiny-weights/fc.npy"}
    weights = np.load(file.parent / "tiny-weights" / "fc.npy")
    model = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(file).graph.initializer}
    assert np.array_equal(weights, model["fc.weight"].T)
    found = nodes(file.with_suffix(".toml"), registry)["depth"]
    assert found.loops.tensors[1].density.occupancy((32, 3, 3)).density == 0.5
    result = search_network(str(file.with_suffix(".toml")), "edge-16gbps", budget=60, fuse=False)
    assert result.complete and result.searches == 3


def test_activations_are_measured_on_samples(tiny, tmp_path):
    samples = np.random.default_rng(5).standard_normal((3, 8, 16, 16)).astype(np.float32)
    samples[0] = np.maximum(samples[0], 0)
    np.savez(tmp_path / "calib.npz", x=samples)
    density = {
        name: layer.get("density", {})
        for name, layer in imported(tiny, "--samples", tmp_path / "calib.npz")["layers"].items()
    }
    assert "P" not in density["fc"], "means of channels have no zeros"
    given = density["conv"]["P"]
    assert given["type"] == "range" and given["high"] == 1.0
    assert given["low"] == pytest.approx(np.count_nonzero(samples[0]) / samples[0].size, rel=1e-3)
    assert given["nominal"] == pytest.approx(np.count_nonzero(samples) / samples.size, rel=1e-3)
    assert given["histogram"] == [1, 0, 0, 0, 2] and given["weights"] == "probability"
    behind = density["depth"]["P"]
    assert 0.3 < (behind if isinstance(behind, float) else behind["nominal"]) < 0.7


def test_channels_that_are_often_zero_are_told(tmp_path):
    """Of four channels, one never passes the ReLU, and the others always do."""
    samples = np.abs(RNG.standard_normal((2, 4, 6, 6))).astype(np.float32) * np.array([-1, 1, 1, 1])[:, None, None]
    np.savez(tmp_path / "calib.npz", x=samples)
    layers = [("Relu", ["x"], "r", {}), ("Conv", ["r", "w.weight"], "y", {})]
    file = saved(tmp_path / "m.onnx", layers, {"w.weight": np.ones((4, 4, 1, 1))}, {"x": ["n", 4, 6, 6]}, "y")
    assert "75.0 %, channels 0 to 1" in run(file, "-o", tmp_path / "m.toml", "--samples", tmp_path / "calib.npz")


def test_weights_are_pruned_before_the_network_is_searched(tmp_path):
    rng = np.random.default_rng(0)
    constants = {f"{name}.weight": rng.standard_normal((16, 16, 1, 1)) for name in ("one", "two", "three")}
    layers = [
        ("Conv", ["x", "one.weight"], "a", {}), ("Conv", ["a", "two.weight"], "b", {}), ("Conv", ["b", "three.weight"], "y", {}),
    ]  # fmt: skip
    file = saved(tmp_path / "m.onnx", layers, constants, {"x": [1, 16, 6, 6]}, "y")
    text = run(file, "-o", tmp_path / "net.toml", "--prune", "2:4", "--run", "edge-16gbps", "--designs", 20)
    assert "two" in text and "50.0 %" in text
    pruned = tomllib.loads((tmp_path / "net-pruned" / "network.toml").read_text("utf-8"))
    assert [bool(layer.get("density")) for layer in pruned["layers"]] == [False, True, False], "the ends stay dense"
    assert (tmp_path / "net-pruned" / "runs" / "report.html").exists()


def test_blocks_with_branches_pools_and_joins_keep_their_graph(tmp_path, registry):
    constants = {"one.weight": RNG.standard_normal((8, 4, 1, 1)), "two.weight": RNG.standard_normal((8, 4, 1, 1))}
    layers = [
        ("MaxPool", ["x"], "maxpool", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
        ("Conv", ["maxpool", "one.weight"], "a", {}),
        ("Relu", ["a"], "ra", {}),
        ("Conv", ["maxpool", "two.weight"], "b", {}),
        ("Relu", ["b"], "rb", {}),
        ("Concat", ["ra", "rb"], "join", {"axis": 1}),
        ("Add", ["join", "join"], "sum", {}),
        ("Conv", ["join", "three.weight"], "y", {"auto_pad": "SAME_LOWER", "strides": [2, 2], "dilations": [1, 1]}),
    ]
    constants["three.weight"] = RNG.standard_normal((2, 16, 2, 2))
    file = saved(tmp_path / "net.onnx", layers, constants, {"x": [1, 4, 12, 12]}, "y")
    table = imported(file)["layers"]
    found = nodes(file.with_suffix(".toml"), registry)
    assert table["maxpool"]["padding"] == [[0, 1], [0, 1]], "rounding up is padding behind"
    assert [node.inputs for node in found.values()] == [
        ("input",), ("maxpool",), ("maxpool",), ("one", "two"), ("join.concat",),
    ]  # fmt: skip
    assert table["three"]["density"]["P"] == RANGE, "what a ReLU made stays so where it is joined"
    assert found["three"].shape == (2, 3, 3)


def test_relus_and_outputs_that_others_read_are_kept(tmp_path):
    """`one` is read through a ReLU, `two` as it is, and `sum` behind a ReLU that the model returns as well."""
    constants = {f"{name}.weight": RNG.standard_normal((4, 4, 1, 1)) for name in ("one", "two", "three")}
    layers = [
        ("Conv", ["x", "one.weight"], "a", {}),
        ("Relu", ["a"], "ra", {}),
        ("Conv", ["ra", "two.weight"], "b", {}),
        ("Add", ["b", "ra"], "s", {}),
        ("Relu", ["s"], "rs", {}),
        ("Conv", ["rs", "three.weight"], "y", {}),
    ]
    file = saved(tmp_path / "net.onnx", layers, constants, {"x": [1, 4, 6, 6]}, "y")
    table = imported(file)
    total = next(name for name in table["layers"] if name not in ("one", "two", "three"))
    assert table["rectified"] == ["one", total] and "outputs" not in table
    model = onnx.load(file)
    model.graph.output.append(helper.make_tensor_value_info("rs", TensorProto.FLOAT, None))
    onnx.save(model, file)
    assert imported(file)["outputs"] == [total]
    model.graph.output.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, None))
    onnx.save(model, file)
    assert imported(file)["rectified"] == [total], "what somebody reads before the ReLU has none"


def test_attention_products_have_two_inputs_and_heads_per_sample(tmp_path, registry):
    size = [np.array([2, 6, 2, 4]), np.array([2, 6, 8])]
    layers = [
        ("MatMul", ["x", "q.weight"], "q", {}),
        ("MatMul", ["x", "k.weight"], "k", {}),
        ("Reshape", ["q", "split"], "qs", {}),
        ("Reshape", ["k", "split"], "ks", {}),
        ("Transpose", ["qs"], "qh", {"perm": [0, 2, 1, 3]}),
        ("Transpose", ["ks"], "kh", {"perm": [0, 2, 3, 1]}),
        ("MatMul", ["qh", "kh"], "scores", {}),
        ("Softmax", ["scores"], "y", {}),
    ]
    constants = {name: RNG.standard_normal((8, 8)) for name in ("q.weight", "k.weight")} | {"split": size[0]}
    file = saved(tmp_path / "net.onnx", layers, constants, {"x": ["n", "words", 8]}, "y")
    assert "'words'" in run(file, code=2) and "--dim words=N" in run(file, code=2)
    assert "did you mean 'words'" in run(file, "--dim", "word=6", code=2)
    table = imported(file, "--batch", 2, "--dim", "words=6")
    assert table["batch"] == 2 and table["input"] == [6, 8]
    told = "note: x may have any batch, taken as 1; --batch N sets another"
    given = (("--batch", 1), ("--dim", "n=1"), ())
    said = [told in run(file, "-o", tmp_path / "own.toml", "--overwrite", "--dim", "words=6", *more) for more in given]
    assert said == [False, False, True]
    assert table["layers"]["scores.matmul"] == {
        "name": "scores.matmul", "type": "matmul", "h": 2, "m": 6, "k": 4, "n": 6, "inputs": ["q", "k"],
    }  # fmt: skip
    assert nodes(file.with_suffix(".toml"), registry)["scores.matmul"].macs == 2 * 2 * 6 * 4 * 6


def test_an_image_that_becomes_words_keeps_its_graph(tmp_path, registry):
    """A residual around the product takes the image as rows, and a mean over the words ends it."""
    constants = {"conv.weight": RNG.standard_normal((8, 4, 1, 1)), "square.weight": RNG.standard_normal((8, 8))}
    constants |= {"shape": np.array([0, 8, -1]), "fc.weight": RNG.standard_normal((3, 8))}
    layers = [
        ("Conv", ["x", "conv.weight"], "a", {}),
        ("Reshape", ["a", "shape"], "flat", {}),
        ("Transpose", ["flat"], "words", {"perm": [0, 2, 1]}),
        ("MatMul", ["words", "square.weight"], "b", {}),
        ("Add", ["b", "words"], "sum", {}),
        ("ReduceMean", ["sum"], "mean", {"axes": [1], "keepdims": 0}),
        ("Gemm", ["mean", "fc.weight"], "y", {"transB": 1}),
    ]
    file = saved(tmp_path / "words.onnx", layers, constants, {"x": ["n", 4, 6, 6]}, "y")
    assert imported(file)["input"] == [4, 6, 6]
    shapes = [node.shape for node in nodes(file.with_suffix(".toml"), registry).values()]
    assert shapes == [(8, 6, 6), (36, 8), (36, 8), (8,), (3,)]


def gated(tmp_path: Path, kind: str, gate: str, *between: Any) -> Path:
    """A layer, the gate that it makes for each of its channels, and a layer of both."""
    constants = {f"{name}.weight": RNG.standard_normal((8, 8, 1, 1)) for name in ("wide", "up", "out")}
    layers = [
        ("Conv", ["x", "wide.weight"], "a", {}),
        ("Relu", ["a"], "wide", {}),
        ("GlobalAveragePool", ["wide"], "mean", {}),
        ("Conv", ["mean", "up.weight"], "b", {}),
        ("HardSigmoid", ["b"], "gate", {}),
        *between,
        (kind, ["wide", gate], "gated", {}),
        ("Conv", ["gated", "out.weight"], "y", {}),
    ]
    return saved(tmp_path / "net.onnx", layers, constants, {"x": [1, 8, 4, 4]}, "y")


@pytest.mark.parametrize(("kind", "found"), [("Mul", "multiply"), ("Div", "multiply"), ("Add", "add"), ("Sub", "add")])
def test_what_is_broadcast_to_a_layer_is_an_operation_of_both(kind: str, found: str, tmp_path: Path, registry: Any):
    file = gated(tmp_path, kind, "gate")
    table = imported(file)["layers"]
    graph = nodes(file.with_suffix(".toml"), registry)
    name = f"gated.{kind.lower()}"
    assert table[name]["type"] == found and graph[name].inputs == ("wide", "up")
    assert graph["out"].inputs == (name,) and graph[name].shape == (8, 4, 4)
    assert table["out"].get("density", {}).get("P") == (RANGE if kind == "Mul" else None)


@pytest.mark.parametrize(("kind", "of", "step"), [("Pow", "gate", "transform"), ("Mul", "part", "multiply")])
def test_what_joins_layers_in_another_way_is_a_step_that_reads_them(kind: str, of: str, step: str, tmp_path: Path):
    largest = ("Conv", ["wide", "up.weight"], "c", {}), ("ReduceMax", ["c"], "part", {"axes": [1]})
    file = gated(tmp_path, kind, of, *(largest if of == "part" else ()))
    layers = imported(file)["layers"]
    inputs = ["wide", "part.reducemax" if of == "part" else "up"]
    joined = layers[f"gated.{kind.lower()}"]
    assert joined["type"] == step and joined["inputs"] == inputs
    assert of != "part" or layers["part.reducemax"]["type"] == "transform", "which reads all channels and writes one"


def test_what_no_workload_says_is_an_error_unless_it_may_be_missing(tmp_path, registry):
    constants = {"conv.weight": RNG.standard_normal((4, 4, 1, 1)), "fc.weight": RNG.standard_normal((4, 2))}
    layers = [
        ("Conv", ["x", "conv.weight"], "a", {}),
        ("Conv", ["a", "k"], "b", {}),
        ("Conv", ["b", "conv.weight"], "c", {}),
        ("Odd", ["c"], "d", {"domain": "own"}),
    ]
    file = saved(tmp_path / "net.onnx", layers, constants, {"x": [1, 4, 4, 4], "k": [4, 4, 1, 1]}, "d")
    told = " ".join(run(file, "-o", tmp_path / "net.toml", code=2).split())
    assert "Conv '/b/Conv' is skipped, 33 % of all MACs: no workload says it" in told
    assert "Odd '/d/Odd' is skipped, of unknown MACs" in told and "--allow-missing imports the rest" in told
    assert not (tmp_path / "net.toml").exists()
    table = " ".join(run(file, "-o", tmp_path / "net.toml", "--allow-missing").split())
    assert "in the graph 1 256 64 33.3 % cut off 1 256 64 33.3 % unknown 2 256 0 33.3 %" in table
    network = tomllib.loads((tmp_path / "net.toml").read_text("utf-8"))
    assert network["lacks"] == ["Conv '/b/Conv', 256 MACs", "Odd '/d/Odd'"]
    assert network["description"] == "Imported from net.onnx, without Conv 1, Odd 1"
    shapes = [
        (node.piece.type_name, node.inputs, node.shape) for node in nodes(tmp_path / "net.toml", registry).values()
    ]
    outside = ("outside", (), (4, 4, 4))
    assert shapes == [("conv2d", ("input",), (4, 4, 4)), outside, ("conv2d", ("b.conv",), (4, 4, 4))], "both sides stay"


def test_weights_that_are_dequantised_count_their_zeros(tmp_path):
    integers = (two_of_four(16, 32) * 40).round()
    constants = {"w.scale": np.array(0.5), "fc.weight_q": integers}
    layers = [
        ("Cast", ["fc.weight_q"], "w8", {"to": TensorProto.INT8}),
        ("DequantizeLinear", ["w8", "w.scale"], "w", {}),
        ("Gemm", ["x", "w"], "y", {"transB": 1}),
    ]
    file = saved(tmp_path / "net.onnx", layers, constants, {"x": [1, 32]}, "y")
    (layer,) = imported(file)["layers"].values()
    assert layer["density"]["Q"] == HALF


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> Path:
    """A network of two layers."""
    file = tmp_path_factory.mktemp("weights") / "pair.toml"
    file.write_text(
        """kind = "network"
name = "pair"
input = [8, 4, 4]
layers = [
  { name = "conv", type = "conv2d", k = 16, c = 8, p = 4, q = 4, r = 3, s = 3, padding = 1, density = { P = 0.5 } },
  { name = "mean", type = "global-average" },
  { name = "fc", type = "linear", k = 16, n = 32 },
]
"""
    )
    return file


def test_weights_alone_give_a_network_its_densities(pair):
    weights = {
        "conv.weight": np.moveaxis(two_of_four(16, 3, 3, 8), -1, 1),
        "fc": blocks(32, 16),
        "fc.bias": np.ones(32),
    }
    file = pair.with_name("weights.npz")
    np.savez(file, **weights)
    layers = imported(file, "--network", pair)["layers"]
    assert layers["conv"]["density"] == {"P": 0.5, "Q": HALF}
    assert layers["fc"]["density"]["Q"] == {"type": "block", "density": 0.5, "block": [8, 8]}
    plain = file.with_suffix(".safetensors")
    _safetensors(plain, {name: array.astype(np.float32) for name, array in weights.items()}, "F32")
    assert imported(plain, "--network", pair)["layers"] == layers
    _safetensors(plain, {name: _bfloat16(array) for name, array in weights.items()}, "BF16")
    assert imported(plain, "--network", pair)["layers"] == layers, "also where zeros have a sign"


@pytest.mark.parametrize(
    ("dtype", "words", "values"),
    [
        ("BF16", np.uint16([0x3F80, 0xC040, 0x8000, 0x7F80, 0x0080]), [1, -3, 0, np.inf, 2.0**-126]),
        ("F8_E4M3", np.uint8([0x38, 0xC4, 0x80, 0x7E, 0x01, 0x7F]), [1, -3, 0, 448, 2.0**-9, np.nan]),
        ("F8_E5M2", np.uint8([0x3C, 0xC2, 0x80, 0x7B, 0x01, 0x7C]), [1, -3, 0, 57344, 2.0**-16, np.inf]),
    ],
)
def test_floats_that_numpy_does_not_have_keep_their_values(tmp_path, dtype, words, values):
    file = tmp_path / "small.safetensors"
    _safetensors(file, {"x": words.reshape(1, -1), "none": words[:0]}, dtype)
    found = read_arrays(file)
    np.testing.assert_array_equal(found["x"], [values])
    assert found["x"].dtype.kind == "f" and found["none"].size == 0


def _bfloat16(array: np.ndarray) -> np.ndarray:
    bits = np.where(array == 0, np.float32(-0.0), array.astype(np.float32)).astype(np.float32).view(np.uint32)
    return (bits >> 16).astype(np.uint16)


def _safetensors(path: Path, arrays: dict[str, np.ndarray], dtype: str) -> None:
    """Writes the file as the format's description has it: length of the header, header, words."""
    header, start = {"__metadata__": {"format": "pt"}}, 0
    for name, array in arrays.items():
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [start, start + array.nbytes]}
        start += array.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in arrays.values()))


def test_files_that_do_not_fit_are_told(tiny, pair, tmp_path):
    np.savez(tmp_path / "few.npz", **{"conv.weigth": np.ones((16, 8, 3, 3))})
    assert "has no weights for layer 'conv'; did you mean 'conv.weigth'?" in run(
        tmp_path / "few.npz", "--network", pair, code=2
    )
    np.savez(tmp_path / "small.npz", **{"conv.weight": np.ones((16, 4, 3, 3)), "fc.weight": np.ones((32, 16))})
    assert "is 16 x 4 x 3 x 3, and layer 'conv' has weights of 16 x 8 x 3 x 3" in run(
        tmp_path / "small.npz", "--network", pair, code=2
    )
    assert "--network" in run(tmp_path / "small.npz", code=2)
    for name, text in {
        "a.onnx": b"\x00rubbish" * 40,
        "b.safetensors": b"\xff" * 40,
        "c.npz": b"PK",
        "d.onnx": b"",
    }.items():
        (tmp_path / name).write_bytes(text)
        assert name in run(tmp_path / name, *([] if name.endswith("onnx") else ["--network", pair]), code=2)
    odd = [("Conv", ["x", "w"], "y", {})]
    file = saved(tmp_path / "odd.onnx", odd, {"w": np.ones((4, 60, 3, 3))}, {"x": [1, 3, 8, 8]}, "y")
    assert "takes 3 channels in 1 groups, and its weights are 4 x 60 x 3 x 3" in run(file, code=2)
    np.savez(tmp_path / "wrong.npz", image=np.ones((1, 8, 16, 16)))
    assert "no input of the model 'image'; known: x" in run(tiny, "--samples", tmp_path / "wrong.npz", code=2)
    np.savez(tmp_path / "thin.npz", x=np.ones((1, 3, 16, 16)))
    assert "expected samples x 8 x 16 x 16" in run(tiny, "--samples", tmp_path / "thin.npz", code=2)
    assert "NAME=N" in run(tiny, "--dim", "n", code=2)


def test_options_that_would_do_nothing_are_told(tiny, pair, tmp_path):
    np.savez(samples := tmp_path / "x.npz", x=np.ones((1, 8, 16, 16)))
    assert "expected range or dense; --samples takes a file" in run(tiny, "--activations", samples, code=2)
    both = run(tiny, "--samples", samples, "--activations", "dense", code=2)
    assert "--samples measures the activations; leave out --activations" in both
    np.savez(weights := tmp_path / "w.npz", **{"conv.weight": np.ones((16, 8, 3, 3)), "fc.weight": np.ones((32, 16))})
    told = " ".join(run(weights, "--network", pair, "--samples", samples, "--prune", "2:4", code=2).split())
    assert "w.npz holds weights; --prune, --samples need an ONNX model" in told


def test_shapes_behind_an_operator_that_onnx_does_not_know_are_those_of_the_file(tmp_path):
    constants = {"a": RNG.standard_normal((8, 16)), "b": RNG.standard_normal((16, 4))}
    chain = [
        ("MatMul", ["x", "a"], "h", {}),
        ("Odd", ["h"], "y", {"domain": "com.microsoft"}),
        ("MatMul", ["y", "b"], "z", {}),
    ]
    file = saved(tmp_path / "odd.onnx", chain, constants, {"x": ["batch", 5, 8]}, "z")
    said = "the shape of tensor 'y' does not follow from what Odd '/y/Odd' of 'com.microsoft' is given; state it in the file"
    assert said in run(file, "-o", tmp_path / "o.toml", "--allow-missing", code=2)
    proto = onnx.load(file)
    proto.graph.value_info.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 5, 16]))
    onnx.save(proto, file)
    network = imported(file, "--batch", 2, "--allow-missing")
    layers = [{key: layer[key] for key in "mkn"} for layer in network["layers"].values() if "m" in layer]
    assert layers == [{"m": 5, "k": 8, "n": 16}, {"m": 5, "k": 16, "n": 4}] and network["batch"] == 2


def test_nodes_in_another_order_than_that_of_their_tensors_are_refused(tmp_path):
    constants = {"a": RNG.standard_normal((8, 16)), "b": RNG.standard_normal((16, 4))}
    chain = [("MatMul", ["h", "b"], "z", {}), ("MatMul", ["x", "a"], "h", {})]
    file = saved(tmp_path / "order.onnx", chain, constants, {"x": [5, 8]}, "z")
    told = run(file, "-o", tmp_path / "o.toml", code=2)
    assert "MatMul '/z/MatMul': reads tensor 'h', which a later node makes" in told


def test_a_file_is_replaced_only_where_that_is_asked_for(tmp_path: Path):
    weights = {"w": np.ones((4, 3, 3, 3), np.float32)}
    file = saved(tmp_path / "m.onnx", [("Conv", ["x", "w"], "y", {})], weights, {"x": [1, 3, 8, 8]}, "y")
    out = file.with_suffix(".toml")
    run(file, "-o", out)
    out.write_text(edited := out.read_text() + "# mine\n")
    assert "exists; name another file (-o), or overwrite it (--overwrite)" in run(file, "-o", out, code=2)
    goes_on = "overwrite it (--overwrite, with which --run goes on where it stopped)"
    assert goes_on in " ".join(run(file, "-o", out, "--run", "edge", code=2).split())
    assert out.read_text() == edited
    run(file, "-o", out, "--overwrite")
    assert out.read_text() + "# mine\n" == edited


def test_a_network_file_without_the_ending_of_toml_is_refused_before_it_is_written(tmp_path: Path):
    weights = {"w": np.ones((4, 3, 3, 3), np.float32)}
    file = saved(tmp_path / "m.onnx", [("Conv", ["x", "w"], "y", {})], weights, {"x": [1, 3, 8, 8]}, "y")
    told = " ".join(run(file, "-o", out := tmp_path / "net", "--prune", "2:4", code=2).split())
    assert "expected a TOML file, such as 'net.toml'" in told
    assert not out.exists()
