"""Layers keep the layers before them through whatever moves words: views of some words, or steps that read and write them."""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.verify import verify_chain

from sparsemap import search_network
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.network import nodes_of
from sparsemap.study.graph import graph_of

onnx = pytest.importorskip("onnx")
from onnx_files import UINT8, node, written  # noqa: E402

IMAGE = {"x": [1, 8, 6, 6]}
ROWS = {"x": [1, 6, 8]}


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def microsoft(kind: str, given: str, out: str, **attributes: Any) -> Any:
    made = node(kind, given, out, **attributes)
    made.domain = "com.microsoft"
    return made


def imported(path: Path, *about: Any, **more: Any) -> list[tuple[Any, ...]]:
    """Of every node: type, inputs and shape."""
    file, out = written(path / "m.onnx", *about, **more), path / "m.toml"
    outcome = CliRunner().invoke(cli, ["import", str(file), "-o", str(out), "--overwrite"])
    assert outcome.exit_code == 0, outcome.output
    assert "list of layers" not in outcome.output
    found = nodes_of(load().resolve("network", str(out)), load(), path)
    return [(each.piece.type_name, each.inputs, each.shape) for each in found]


WIDE = node("Conv", "x w", "a")
LAST = node("Conv", "b v", "y")
WEIGHTS: dict[str, Any] = {"w": (8, 8, 1, 1), "v": (4, 8, 1, 1)}
MOVES: dict[str, tuple[list[Any], dict[str, Any], list[tuple[Any, ...]]]] = {
    "split": (
        [WIDE, node("Split", "a", "p q", axis=1), node("Conv", "p h", "r"), node("Concat", "q r", "b", axis=1), LAST],
        {"h": (4, 4, 1, 1)},
        [("view", ("a",), (4, 6, 6)), ("conv2d", ("p.split",), (4, 6, 6)), ("view", ("a",), (4, 6, 6)),
         ("concat", ("p.split-2", "r"), (8, 6, 6))],
    ),
    "slices as depth": (
        [node("Slice", "x from to axes two", "s"), node("Conv", "s w", "b")],
        {"from": ints(0, 1), "to": ints(6, 6), "axes": ints(2, 3), "two": ints(2, 2)},
        [("view", ("input",), (8, 3, 3)), ("conv2d", ("s.slice",), (8, 3, 3))],
    ),
    "turned and turned back": (
        [WIDE, node("Transpose", "a", "t", perm=[0, 2, 3, 1]), node("Relu", "t", "u"),
         node("Transpose", "u", "b", perm=[0, 3, 1, 2]), LAST],
        {}, [],
    ),
    "rows for columns": ([WIDE, node("Transpose", "a", "b", perm=[0, 1, 3, 2]), LAST], {}, [("view", ("a",), (8, 6, 6))]),
    "another shape": (
        [WIDE, node("Reshape", "a to", "b"), LAST], {"to": ints(1, 8, 4, 9)}, [("view", ("a",), (8, 4, 9))],
    ),
    "nearest pixels": (
        [WIDE, node("Resize", "a - scales", "b"), LAST], {"scales": np.ones(4) * [1, 1, 2, 2]},
        [("view", ("a",), (8, 12, 12))],
    ),
    "nearest pixels, some of them twice": (
        [WIDE, node("Resize", "a - scales", "b"), LAST], {"scales": np.ones(4) * [1, 1, 1.5, 1.5]},
        [("transform", ("a",), (8, 9, 9))],
    ),
    "fewer nearest pixels": (
        [WIDE, node("Resize", "a - scales", "b"), LAST], {"scales": np.ones(4) * [1, 1, 0.5, 0.5]},
        [("view", ("a",), (8, 3, 3))],
    ),
    "nearest pixels or zeros": (
        [WIDE, node("Resize", "a roi scales", "b", coordinate_transformation_mode="tf_crop_and_resize"), LAST],
        {"scales": np.ones(4) * [1, 1, 2, 2], "roi": np.array([0.0, 0, 0, 0, 1, 1, 2, 2])}, [("transform", ("a",), (8, 12, 12))],
    ),
    "pixels in between": (
        [WIDE, node("Resize", "a - scales", "b", mode="linear"), LAST], {"scales": np.ones(4) * [1, 1, 2, 2]},
        [("transform", ("a",), (8, 12, 12))],
    ),
    "zeros around": (
        [WIDE, node("Pad", "a sides", "b"), LAST], {"sides": ints(0, 0, 1, 1, 0, 0, 1, 1)}, [("transform", ("a",), (8, 8, 8))],
    ),
    "chosen channels": (
        [WIDE, node("Gather", "a ids", "b", axis=1), node("Conv", "b h", "y")], {"ids": ints(3, 1), "h": (4, 2, 1, 1)},
        [("view", ("a",), (2, 6, 6))],
    ),
    "channels chosen twice": (
        [WIDE, node("Gather", "a ids", "b", axis=1), node("Conv", "b h", "y")], {"ids": ints(*[0, 1] * 8), "h": (4, 16, 1, 1)},
        [("transform", ("a",), (16, 6, 6))],
    ),
    "sums of windows that overlap": (
        [WIDE, node("ConvTranspose", "a t", "b"), LAST], {"t": (8, 8, 3, 3)},
        [("linear", ("a",), (36, 72)), ("transform", ("b",), (8, 8, 8))],
    ),
    "the largest along an axis": (
        [WIDE, node("ReduceMax", "a", "m", axes=[1]), node("Mul", "a m", "b"), LAST], {},
        [("transform", ("a",), (1, 6, 6)), ("multiply", ("a", "m.reducemax"), (8, 6, 6))],
    ),
    "repeated pixels": (
        [WIDE, node("GlobalAveragePool", "a", "g"), node("Expand", "g like", "e"), node("Concat", "a e", "b", axis=1),
         node("Conv", "b h", "y")],
        {"like": ints(1, 8, 6, 6), "h": (4, 16, 1, 1)},
        [("global-average", ("a",), (8, 1, 1)), ("view", ("g.globalaveragepool",), (8, 6, 6)),
         ("concat", ("a", "e.expand"), (16, 6, 6))],
    ),
    "a choice between two": (
        [WIDE, node("Greater", "a zero", "c"), node("Conv", "x w", "o"), node("Where", "c a o", "b"), LAST],
        {"zero": np.zeros(1)},
        [("conv2d", ("input",), (8, 6, 6)), ("transform", ("a", "o"), (8, 6, 6))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_what_moves_words_is_a_view_or_a_step_between_two_layers(name: str, tmp_path: Path):
    nodes, constants, between = MOVES[name]
    found = imported(tmp_path, nodes, {**WEIGHTS, **constants}, IMAGE)
    ends = slice(1, -1) if nodes[0] is WIDE else slice(0, None)
    assert found[ends] == between
    assert len(found) == 1 or found[-1][1] != ("input",)


@pytest.mark.parametrize("kind", ["Resize", "Upsample", "Tile"])
def test_pixels_that_repeat_have_room_once_and_their_zeros_stay(kind: str, tmp_path: Path):
    """Behind a ReLU, and beside a skip connection, as in a U-Net; Upsample is what it was called before."""
    scales = ints(1, 1, 2, 2) if kind == "Tile" else np.ones(4) * [1, 1, 2, 2]
    nodes = [
        node("Conv", "x half", "a", strides=[2, 2]), node("Relu", "a", "r"),
        node(kind, {"Resize": "r - scales"}.get(kind, "r scales"), "u"), node("Conv", "x w", "skip"),
        node("Concat", "u skip", "b", axis=1), node("Conv", "b v", "y"), node("Conv", "u w", "z"),
    ]  # fmt: skip
    constants = {"half": (8, 8, 2, 2), "w": (8, 8, 1, 1), "v": (4, 16, 1, 1), "scales": scales}
    found = imported(tmp_path, nodes, constants, IMAGE, opset=9 if kind == "Upsample" else 17)
    assert ("view", ("a",), (8, 6, 6)) in found
    table = tomllib.loads((tmp_path / "m.toml").read_text("utf-8"))
    layers = {layer["name"]: layer for layer in table["layers"]}
    (up,) = (layer for layer in table["layers"] if layer["type"] == "view")
    assert up["factor"] == 4 and layers["z"]["density"]["P"] == {"type": "range", "low": 0.1, "high": 1.0}
    words = {
        one.name: one.live for one in graph_of(nodes_of(load().resolve("network", str(tmp_path / "m.toml")), load()))
    }
    assert words[up["name"]] == 8 * 9 and words["b.concat"] == 8 * 9 + 8 * 36


def test_queries_keys_and_values_of_one_product_are_views_of_it(tmp_path: Path):
    nodes = [
        node("MatMul", "x w", "qkv"), node("Reshape", "qkv five", "h"), node("Transpose", "h", "t", perm=[2, 0, 3, 1, 4]),
        node("Split", "t", "q k v", axis=0), *(node("Squeeze", f"{key} first", f"{key}0") for key in "qkv"),
        node("Transpose", "k0", "kt", perm=[0, 1, 3, 2]), node("MatMul", "q0 kt", "s"), node("Softmax", "s", "p"),
        node("MatMul", "p v0", "y"),
    ]  # fmt: skip
    found = imported(tmp_path, nodes, {"w": (8, 24), "five": ints(1, 6, 3, 2, 4), "first": ints(0)}, ROWS)
    scores = [("view", ("qkv",), (1, 2, 6, 4))] * 2 + [("matmul", ("q.split", "q.split-2"), (2, 6, 6))]
    context = [
        ("softmax", ("s",), (2, 6, 6)),
        ("view", ("qkv",), (1, 2, 6, 4)),
        ("matmul", ("p", "q.split-3"), (2, 6, 4)),
    ]
    assert [each[0] for each in found] == ["linear", *(each[0] for each in scores + context)]
    assert [each[2] for each in found[1:]] == [each[2] for each in scores + context]
    assert [each[1] for each in found if each[0] == "view"] == [("qkv",)] * 3


def test_a_mask_that_is_an_input_is_no_step(tmp_path: Path):
    nodes = [
        node("MatMul", "x k", "s"),
        node("Add", "s mask", "m"),
        node("Softmax", "m", "p"),
        node("MatMul", "p v", "y"),
    ]
    found = imported(tmp_path, nodes, {"k": (8, 6), "v": (6, 4)}, {**ROWS, "mask": [1, 1, 6]})
    assert [each[0] for each in found] == ["linear", "softmax", "linear"]


def test_positions_turned_within_heads_are_the_words_that_were_turned(tmp_path: Path):
    """Halves that change places and are joined again need no step of their own; a layer of as many ranks takes a view."""
    nodes = [
        node("MatMul", "x w", "a"), node("Split", "a", "one two", axis=2), node("Neg", "two", "n"),
        node("Concat", "n one", "h", axis=2),
        node("Mul", "h sin", "m"), node("Mul", "a cos", "c"), node("Add", "m c", "r"), node("MatMul", "r v", "y"),
    ]  # fmt: skip
    found = imported(tmp_path, nodes, {"w": (8, 8), "v": (8, 4), "sin": (6, 8), "cos": (6, 8)}, ROWS)
    assert found == [("linear", ("input",), (6, 8)), ("view", ("a",), (6, 8)), ("linear", ("a.view",), (6, 4))]


def test_what_data_choose_behind_the_last_layer_is_no_part_of_the_network(tmp_path: Path):
    """As where boxes are picked: nobody knows how many, and no layer reads them."""
    nodes = [
        node("MatMul", "x w", "a"), node("NonZero", "a", "at"), node("Transpose", "at", "t"), node("GatherND", "a t", "some"),
        node("Add", "some some", "twice"), node("Concat", "twice some", "b", axis=0), node("Mul", "b b", "y"),
    ]  # fmt: skip
    assert imported(tmp_path, nodes, {"w": (8, 4)}, ROWS) == [("linear", ("input",), (6, 4))]


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_states_of_recurrent_layers_have_room_for_one_step_and_move_at_every_step(
    kind: str, gates: int, tmp_path: Path
):
    """An LSTM has two of them; the products read one, and the gates that of the cell, or of a GRU the same one."""
    nodes = [
        node("Transpose", "x", "t", perm=[1, 0, 2]), node(kind, "t w r", "h", hidden_size=5),
        node("Squeeze", "h first", "s"), node("MatMul", "s v", "y"),
    ]  # fmt: skip
    constants = {"w": (1, gates * 5, 8), "r": (1, gates * 5, 5), "v": (5, 2), "first": ints(1)}
    found = imported(tmp_path, nodes, constants, {"x": [1, 7, 8]})
    kept, cell = [("transform", (), (7, 1, 1, 5))], {"LSTM": ("h.cell",), "GRU": ("h.hidden",), "RNN": ()}[kind]
    assert found == [
        ("linear", ("input",), (7, gates * 5)), *kept, *(kept if kind == "LSTM" else []),
        ("linear", ("h.hidden",), (7, gates * 5)), ("transform", ("h.input", "h.state", *cell), (7, 1, 1, 5)),
        ("linear", ("h.gates",), (7, 2)),
    ]  # fmt: skip
    graph = {one.name: one for one in graph_of(nodes_of(load().resolve("network", str(tmp_path / "m.toml")), load()))}
    assert (graph["h.hidden"].words, graph["h.hidden"].live) == (35, 5)
    assert graph["h.state"].node.macs == 7 * gates * 5 * 5
    outcome = CliRunner().invoke(cli, ["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "n.toml")])
    states = 2 if kind == "LSTM" else 1
    assert (
        f"states of recurrent layers: {5 * states} words live at a time, {35 * states} over all steps" in outcome.output
    )


@pytest.mark.parametrize("both", [False, True])
def test_states_before_the_first_step_come_from_the_layers_that_make_them(both: bool, tmp_path: Path):
    """As those of a decoder do from an encoder; of two directions there are twice as many."""
    count, more = (2, {"direction": "bidirectional"}) if both else (1, {})
    nodes = [
        node("LSTM", "x w r", "- eh ec", hidden_size=5, **more),
        node("LSTM", "z w r - - eh ec", "y", hidden_size=5, **more),
    ]
    nodes[0].name = "/eh/LSTM"
    constants = {"w": (count, 20, 8), "r": (count, 20, 5)}
    found = imported(tmp_path, nodes, constants, {"x": [7, 1, 8], "z": [3, 1, 8]})
    names = [each.name for each in nodes_of(load().resolve("network", str(tmp_path / "m.toml")), load())]
    inputs = dict(zip(names, (each[1] for each in found), strict=True))
    assert all(inputs[inputs[f"y.{part}"][0]][0] == "eh.gates" for part in ("hidden", "cell"))
    assert [each[2] for each in found if each[0] == "transform" and each[2][0] == 3] == [(3, count, 1, 5)] * 3


def test_further_inputs_are_words_from_outside(tmp_path: Path):
    nodes = [node("MatMul", "x w", "a"), node("MatMul", "z v", "b"), node("Add", "a b", "y")]
    found = imported(tmp_path, nodes, {"w": (8, 4), "v": (3, 4)}, {**ROWS, "z": [1, 6, 3]})
    assert found[1:] == [("outside", (), (6, 3)), ("linear", ("z",), (6, 4)), ("add", ("a", "b"), (6, 4))]


def test_a_convolution_over_frames_keeps_its_graph_and_can_be_searched(tmp_path: Path):
    nodes = [
        node("Conv", "x w", "a", strides=[1, 2, 2], pads=[1] * 6), node("Relu", "a", "b"),
        node("Conv", "b v", "y", group=2, dilations=[2, 1, 1]),
    ]  # fmt: skip
    found = imported(tmp_path, nodes, {"w": (4, 2, 3, 3, 3), "v": (4, 2, 2, 1, 1)}, {"x": [1, 2, 5, 6, 6]})
    assert found == [("conv3d", ("input",), (4, 5, 3, 3)), ("conv3d", ("a",), (4, 3, 3, 3))]
    macs = [each.macs for each in nodes_of(load().resolve("network", str(tmp_path / "m.toml")), load(), tmp_path)]
    assert macs == [4 * 5 * 9 * 2 * 27, 4 * 3 * 9 * 2 * 2]
    result = search_network(str(tmp_path / "m.toml"), "edge-16gbps", budget=40, fuse=True)
    assert result.complete


def packed(words: np.ndarray, block: int) -> np.ndarray:
    """Words of 4 bits (N, K), two in a byte, in blocks along K."""
    return (words[:, 0::2] | words[:, 1::2] << 4).astype(np.uint8).reshape(len(words), -1, block // 2)


def test_weights_of_4_bits_in_blocks_are_layers_with_their_zeros(tmp_path: Path):
    words = np.full((6, 32), 9)
    words[:, ::4] = 8  # stands for zero
    product = microsoft("MatMulNBits", "x q s", "y", K=30, N=6, bits=4, block_size=16)
    constants = {"q": packed(words, 16), "s": np.ones((6, 2))}
    assert imported(tmp_path, [product], constants, {"x": [1, 5, 30]}) == [("linear", ("input",), (5, 6))]
    outcome = CliRunner().invoke(cli, ["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "n.toml")])
    assert "900 MACs, 180 weights" in outcome.output and "73.3 %" in outcome.output
    assert "bits of activations x weights: 32 x 4 in 1" in outcome.output
    constants["z"] = packed(np.full((6, 2), 9), 2).reshape(-1)  # now all of the others do
    product.input.append("z")
    imported(tmp_path, [product], constants, {"x": [1, 5, 30]})
    outcome = CliRunner().invoke(cli, ["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "o.toml")])
    assert "26.7 %" in outcome.output


def test_grouped_queries_of_a_runtime_have_keys_of_earlier_steps(tmp_path: Path):
    nodes = [
        node("MatMul", "x wq", "q"), node("MatMul", "x wk", "k"), node("MatMul", "x wv", "v"),
        microsoft("GroupQueryAttention", "q k v pk pv n t", "o nk nv", num_heads=4, kv_num_heads=2),
        microsoft("SkipSimplifiedLayerNormalization", "o x g", "l - - s"), node("MatMul", "l w", "y"),
    ]  # fmt: skip
    weights = {
        "wq": (8, 8),
        "wk": (8, 4),
        "wv": (8, 4),
        "g": (8,),
        "w": (8, 3),
        "n": np.array([6], np.int32),
        "t": np.array(6, np.int32),
    }
    past = {"pk": np.zeros((1, 2, 5, 2)), "pv": np.zeros((1, 2, 5, 2))}
    found = imported(tmp_path, nodes, {**weights, **past}, {"x": [1, 1, 8]})
    kinds = [each[0] for each in found if each[0] not in ("view", "linear")]
    assert kinds == ["matmul", "softmax", "matmul", "add", "norm"]
    keys = [each for each in found if each[0] == "view" and each[2] == (2, 6, 2)]
    assert [each[1] for each in keys] == [("k",), ("v",)], "five rows of each come from outside the chip"


def heads(kind: str, given: str, **sizes: Any) -> list[tuple[Any, ...]]:
    return [microsoft(kind, given, "o", num_heads=2, **sizes), node("MatMul", "o u", "y")]


ATTENTION: dict[str, tuple[list[Any], dict[str, Any], dict[str, Any]]] = {
    "queries, keys and values": (
        [*(node("MatMul", f"x w{key}", key) for key in "qkv"), *heads("MultiHeadAttention", "q k v")],
        {f"w{key}": (8, 8) for key in "qkv"}, {"linear": 4, "matmul": 2},
    ),
    "one tensor of them": (
        [node("MatMul", "x w", "qkv"), node("Reshape", "qkv five", "p"), *heads("MultiHeadAttention", "p")],
        {"w": (8, 24), "five": ints(1, 6, 2, 3, 4)}, {"linear": 2, "matmul": 2, "view": 3},
    ),
    "with its product": (heads("Attention", "x w c"), {"w": (8, 24), "c": (24,)}, {"linear": 2, "matmul": 2, "view": 3}),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_of_a_runtime_is_scores_softmax_and_context(name: str, tmp_path: Path):
    nodes, constants, counts = ATTENTION[name]
    found = imported(tmp_path, nodes, {**constants, "u": (8, 3)}, ROWS)
    kinds = [each[0] for each in found]
    assert {kind: kinds.count(kind) for kind in counts} == counts and kinds.count("softmax") == 1


FUSED: dict[str, tuple[list[Any], dict[str, Any], int]] = {
    "transposed": ([microsoft("FusedMatMul", "x w", "y", transB=1)], {"w": (4, 8)}, 6 * 8 * 4),
    "with an activation": ([microsoft("FusedGemm", "f w", "y", activation="Relu")], {"w": (8, 4)}, 6 * 8 * 4),
    "quantised on the way": ([microsoft("DynamicQuantizeMatMul", "x w s", "y")], {"w": np.ones((8, 4), np.int8), "s": 0.5}, 192),
    "an einsum of three": ([node("Einsum", "x w u", "y", equation="bij,jk,kl->bil")], {"w": (8, 4), "u": (4, 3)}, 6 * (32 + 12)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUSED)
def test_products_of_a_runtime_are_products(name: str, tmp_path: Path):
    nodes, constants, macs = FUSED[name]
    given = {"f": [6, 8]} if name == "with an activation" else ROWS
    imported(tmp_path, nodes, constants, given)
    found = nodes_of(load().resolve("network", str(tmp_path / "m.toml")), load(), tmp_path)
    assert sum(each.macs for each in found) == macs


BYTES = {"x": (UINT8, [1, 4, 6, 6])}
SCALED = {"s": 0.5, "z": np.array(3, np.uint8), "zw": np.array(0, np.int8), "w": np.ones((4, 4, 1, 1), np.int8)}
QUANTISED: dict[str, tuple[list[Any], dict[str, Any], list[str]]] = {
    "a sum": (
        [node("QLinearConv", "x s z w s zw s z", "a"), microsoft("QLinearAdd", "a s z x s z s z", "y")], BYTES, ["conv2d", "add"],
    ),
    "means of channels": (
        [node("QLinearConv", "x s z w s zw s z", "a"), microsoft("QLinearGlobalAveragePool", "a s z s z", "g"),
         node("QLinearConv", "g s z w s zw s z", "y")], BYTES, ["conv2d", "global-average", "conv2d"],
    ),
    "channels joined": (
        [node("QLinearConv", "x s z w s zw s z", "a"), node("QLinearConv", "x s z w s zw s z", "b"),
         microsoft("QLinearConcat", "s z a s z b s z", "c", axis=1), microsoft("QLinearSigmoid", "c s z s z", "y")],
        BYTES, ["conv2d", "conv2d", "concat"],
    ),
    "scaled at the end": ([microsoft("MatMulIntegerToFloat", "x w s s z zw", "y")], {"x": (UINT8, [1, 6, 4])}, ["linear"]),
    "recurrent": (
        [microsoft("DynamicQuantizeLSTM", "x wi wr - - - - - s zw s zw", "y", hidden_size=5)], {"x": [1, 7, 8]},
        ["linear", "transform", "transform", "linear", "transform"],
    ),
    "with a sum inside": ([microsoft("FusedConv", "f u - f", "y", activation="Relu")], {"f": [1, 4, 6, 6]}, ["conv2d", "add"]),
}  # fmt: skip


@pytest.mark.parametrize("name", QUANTISED)
def test_quantised_operators_of_a_runtime_are_those_of_onnx(name: str, tmp_path: Path):
    nodes, given, kinds = QUANTISED[name]
    constants = {**SCALED, "wi": np.ones((1, 8, 20), np.int8), "wr": np.ones((1, 5, 20), np.int8), "u": (4, 4, 1, 1)}
    constants["w"] = constants["w"] if name != "scaled at the end" else np.ones((4, 3), np.int8)
    used = {text for each in nodes for text in each.input}
    made = imported(tmp_path, nodes, {key: x for key, x in constants.items() if key in used}, given)
    assert [each[0] for each in made] == kinds


LIGHT = {
    "bvlc_alexnet": 654_560_384, "densenet121": 2_834_161_664, "inception_v1": 1_431_556_352,
    "inception_v2": 2_018_851_840, "resnet50": 4_089_184_256, "shufflenet": 124_664_528, "squeezenet": 349_151_936,
    "vgg19": 19_632_062_464, "zfnet512": 1_481_727_008,
}  # fmt: skip
"""Files that come with the package onnx, whose weights are one word each, and MACs that a run of onnxruntime counts."""


@pytest.mark.parametrize("name", LIGHT)
def test_the_models_that_come_with_onnx_keep_their_graph_and_have_the_macs_of_a_run(name: str, tmp_path: Path):
    file = Path(onnx.__file__).parent / "backend/test/data/light" / f"light_{name}.onnx"
    if not file.exists():
        pytest.skip("this onnx comes without them")
    outcome = CliRunner().invoke(cli, ["import", str(file), "-o", str(tmp_path / "m.toml")])
    assert outcome.exit_code == 0, outcome.output
    assert (
        f" {LIGHT[name]:,} MACs" in outcome.output
        and "100.0 %" in outcome.output.split("in the graph")[1].splitlines()[0]
    )


def test_layers_of_a_split_block_that_run_in_turns_are_what_execution_says(tmp_path: Path):
    """A block of a detector: half of the channels goes through a bottleneck, and meets the other half again."""
    nodes = [
        node("Conv", "x w", "a"), node("Split", "a", "p q", axis=1), node("Conv", "q u", "c"), node("Relu", "c", "d"),
        node("Conv", "d n", "e", pads=[1] * 4), node("Add", "q e", "f"), node("Concat", "p q f", "g", axis=1),
        node("Conv", "g o", "y"),
    ]  # fmt: skip
    constants = {"w": (8, 2, 1, 1), "u": (16, 4, 1, 1), "n": (4, 16, 3, 3), "o": (2, 12, 1, 1)}
    levels = [
        {"name": "DRAM", "class": "dram", "bandwidth": "2 GB/s"},
        {"name": "Buffer", "class": "sram", "capacity": "2000 words", "fanout": 8, "gate_skip": True},
    ]
    assert len(imported(tmp_path, nodes, constants, {"x": [1, 2, 12, 12]})) == 8
    chip = {"extends": "small", "name": "chip", "levels": levels}
    found = search_network(str(tmp_path / "m.toml"), chip, 60, 1, space="paper", out=tmp_path / "run", fuse=True)
    pairs = [(one, two) for one, two in itertools.pairwise(found.rows) if one.slides and one.design and two.design]
    assert pairs, [(row.layer, row.slides) for row in found.rows]
    designs = [design_file.load(tmp_path / "run" / row.design, load()) for row in pairs[0]]
    executed = verify_chain([(one.problem, one.batch) for one in designs], trials=2)
    assert executed.correct and executed.most_words == executed.room
    assert executed.ratio == pytest.approx(1.0, abs=0.05)


def test_parts_of_an_image_side_by_side_in_the_batch_are_frames(tmp_path: Path):
    nodes = [
        node("Reshape", "x to", "r"), node("Conv", "r w", "a", pads=[1] * 4), node("MaxPool", "a", "m", kernel_shape=[2, 2]),
        node("Add", "m bias", "n"), node("Reshape", "n back", "b"), node("Conv", "b v", "y"),
    ]  # fmt: skip
    constants = {
        "to": ints(4, 2, 6, 6),
        "w": (4, 2, 3, 3),
        "back": ints(1, 16, 5, 5),
        "v": (3, 16, 1, 1),
        "bias": (1, 4, 1, 1),
    }
    assert imported(tmp_path, nodes, constants, {"x": [1, 8, 6, 6]}) == [
        ("view", ("input",), (4, 2, 6, 6)), ("conv2d", ("input.view",), (4, 4, 6, 6)), ("max-pool", ("a",), (4, 4, 5, 5)),
        ("view", ("m.maxpool",), (16, 5, 5)), ("conv2d", ("m.maxpool.view",), (3, 5, 5)),
    ]  # fmt: skip
