"""Files that a newcomer might have: what is odd in them is named with its node and a remedy, and nothing is left out silently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.problem.network import nodes_of

onnx = pytest.importorskip("onnx")
from onnx import helper, numpy_helper  # noqa: E402
from onnx_files import FLOAT, INT64, model, node, written  # noqa: E402

X = {"x": [1, 5, 8]}


def run(file: Path, *options: Any, code: int = 0) -> str:
    arguments = ["import", str(file), "-o", str(file.with_suffix(".toml")), "--overwrite", *map(str, options)]
    outcome = CliRunner().invoke(cli, arguments)
    assert outcome.exit_code == code and "Traceback" not in outcome.output, outcome.output
    return " ".join(outcome.output.split())


def microsoft(kind: str, given: str, **attributes: Any) -> Any:
    made = node(kind, given, "y", **attributes)
    made.domain = "com.microsoft"
    return made


def steps() -> Any:
    """A loop with a product in it."""
    values = [("i", INT64, []), ("go", onnx.TensorProto.BOOL, []), ("h", FLOAT, [1, 5, 8])]
    inner = [node("MatMul", "h w", "o"), node("Identity", "go", "on")]
    out = [
        helper.make_tensor_value_info(*each) for each in (("on", onnx.TensorProto.BOOL, []), ("o", FLOAT, [1, 5, 8]))
    ]
    body = helper.make_graph(inner, "body", [helper.make_tensor_value_info(*each) for each in values], out)
    return helper.make_node("Loop", ["n", "true", "x"], ["y"], name="steps", body=body)


BLOCKS = {"K": 45, "N": 7, "bits": 4, "block_size": 16}
BYTES = {"q": np.zeros((7, 3, 8), np.uint8), "s": np.ones(21)}
ODD: dict[str, tuple[list[Any], dict[str, Any], dict[str, Any], str]] = {
    "several sizes": (
        [node("MatMul", "x w", "y")], {"w": (8, 4)}, {"x": [1, "words", 8], "z": [1, "past"]},
        "input 'x', dimension 1: has no size, its name is 'words'; give it one with --dim words=N "
        "{file}: input 'z', dimension 1: has no size, its name is 'past'; give it one with --dim past=N",
    ),
    "steps that an input says": (
        [steps()], {"w": (8, 8), "true": np.array(True)}, {**X, "n": (INT64, [])},
        "Loop 'steps'; say what runs with --loop steps=N",
    ),
    "a name that nothing makes": (
        [node("MatMul", "x wight", "y")], {"weight": (8, 4)}, X,
        "MatMul '/y/MatMul': reads what nothing makes: no tensor 'wight'; did you mean 'weight'?",
    ),
    "an operator that ONNX lacks": (
        [node("MatMul", "x w", "a"), node("Foo", "a", "b"), node("MatMul", "b v", "y")], {"w": (8, 8), "v": (8, 4)}, X,
        "Foo '/b/Foo' is skipped, of unknown MACs: no workload says it nothing is written; --allow-missing imports the rest",
    ),
    "sizes of an image that data say": (
        [node("Conv", "x w", "a"), node("Resize", "a - sizes", "b"), node("Conv", "b w", "y")], {"w": (3, 3, 1, 1)},
        {"x": [1, 3, 4, 4], "sizes": [4]}, "choose it with --dim b:0=N --dim b:1=N --dim b:2=N --dim b:3=N",
    ),
    "nothing that is given": ([node("Mul", "x w", "y")], {"w": (1,)}, {"x": []},
        "has no input with dimensions; export it with one"),
    "weights of two bits": (
        [microsoft("MatMulNBits", "x q s", **{**BLOCKS, "bits": 2})], BYTES, {"x": [1, 5, 45]},
        "what multiplies in it cannot be imported: MatMulNBits '/y/MatMulNBits'; its weights have 2 bits, expected 4 or 8",
    ),
    "heads on an axis of their own": (
        [node("MatMul", "x w", "a"), microsoft("MultiHeadAttention", "a p p", num_heads=2)],
        {"w": (8, 8), "p": (1, 2, 3, 4)}, X,
        "'p' has 4 axes, expected batch, words and width of all heads nothing is written; --allow-missing imports the rest",
    ),
    "heads that are not said": (
        [microsoft("GroupQueryAttention", "x x x p p n n", kv_num_heads=2)], {"p": (1, 2, 3, 2), "n": np.array([4], np.int32)}, X,
        "GroupQueryAttention '/y/GroupQueryAttention': cannot be computed: lacks 'num_heads'",
    ),
    "too few scales of blocks": (
        [microsoft("MatMulNBits", "x q s", **BLOCKS)], {**BYTES, "s": np.ones(5)}, {"x": [1, 5, 45]},
        "'s' has 5 words, expected 21 for K = 45, N = 7, block_size = 16, bits = 4",
    ),
    "too few words for zeros of blocks": (
        [microsoft("MatMulNBits", "x q s z", **BLOCKS)], {**BYTES, "z": np.zeros(9, np.uint8)}, {"x": [1, 5, 45]},
        "'z' has 9 words, expected 14 for K = 45",
    ),
    "zeros of blocks between two numbers": (
        [microsoft("MatMulNBits", "x q s z", **BLOCKS)], {**BYTES, "z": np.full(21, 7.5)}, {"x": [1, 5, 45]},
        "'z' has other words than whole numbers from 0 to 15",
    ),
    "blocks of no size": (
        [microsoft("MatMulNBits", "x q s", **{**BLOCKS, "block_size": 0})], BYTES, {"x": [1, 5, 45]},
        "expected sizes from 1 on, found K = 45, N = 7, block_size = 0, bits = 4",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_named_with_a_remedy(name: str, tmp_path: Path):
    nodes, constants, given, told = ODD[name]
    made = model(nodes, constants, given)
    if name.startswith("an operator"):
        made.graph.value_info.append(helper.make_tensor_value_info("b", FLOAT, [1, 5, 8]))
    onnx.save(made, file := tmp_path / "m.onnx")
    assert told.format(file=file) in run(file, code=2)


def test_an_output_that_nothing_makes_is_refused(tmp_path: Path):
    file = written(tmp_path / "m.onnx", [node("MatMul", "x w", "y")], {"w": (8, 4)}, X, out="z")
    assert "output of the graph: no tensor 'z'; known: w, x, y" in run(file, code=2)


def test_a_loop_whose_steps_are_chosen_runs_them(tmp_path: Path):
    given = {**X, "n": (INT64, [])}
    file = written(tmp_path / "m.onnx", [steps()], {"w": (8, 8), "true": np.array(True)}, given)
    assert "3 layers to search, 1 of them distinct" in run(file, "--loop", "steps=3")


@pytest.mark.parametrize("where", ["initializer", "node"])
def test_tensors_that_say_their_nonzeros_alone_are_weights_with_zeros(where: str, tmp_path: Path):
    """By flat place, or by an index for every rank."""
    places = np.array([0, 5, 9]) if where == "node" else np.array([[0, 0], [1, 1], [2, 1]])
    values, indices = (numpy_helper.from_array(x, name) for x, name in ((np.float32([1, 2, 3]), "w"), (places, "i")))
    sparse = helper.make_sparse_tensor(values, indices, [8, 4])
    given = [helper.make_node("Constant", [], ["w"], name="nonzeros", sparse_value=sparse)] if where == "node" else []
    made = model([*given, node("MatMul", "x w", "y")], {}, X)
    made.graph.sparse_initializer.extend([sparse] if where == "initializer" else [])
    onnx.save(made, file := tmp_path / "m.onnx")
    assert "y linear 1 160 32 9.4 % uniform dense" in run(file)


@pytest.mark.parametrize(
    ("dims", "place", "told"),
    [
        ([1 << 20, 1 << 20], 1, "is 1048576 x 1048576, expected sizes from 0 on and no more than 16,7"),
        ([8, 4], 32, "cannot be read: 'index 32 is out of bounds"),
        ([8, -4], 0, "is 8 x -4, expected sizes from 0 on"),
    ],
)
def test_nonzeros_that_cannot_be_are_refused(dims: list[int], place: int, told: str, tmp_path: Path):
    made = model([node("MatMul", "x w", "y")], {}, X)
    values, indices = numpy_helper.from_array(np.float32([1]), "w"), numpy_helper.from_array(np.array([place]), "i")
    made.graph.sparse_initializer.append(onnx.SparseTensorProto(values=values, indices=indices, dims=dims))
    onnx.save(made, file := tmp_path / "m.onnx")
    found = run(file, code=2)
    assert "tensor 'w'" in found and told in found


@pytest.mark.parametrize("equation", ["bsd->bds", "bij->ij", "bij->bi"])
def test_an_einsum_of_one_tensor_moves_or_adds_words_and_multiplies_none(equation: str, tmp_path: Path):
    given = "t w" if equation == "bsd->bds" else "t v" if equation == "bij->ij" else "t u"
    nodes = [node("Einsum", "x", "t", equation=equation), node("MatMul", given, "y")]
    file = written(tmp_path / "m.onnx", nodes, {"w": (5, 3), "v": (8, 3), "u": (5, 3)}, X)
    run(file)
    found = nodes_of(load().resolve("network", str(file.with_suffix(".toml"))), load(), tmp_path)
    assert [each.piece.type_name for each in found] == {
        "bsd->bds": ["view", "linear"], "bij->ij": ["view", "linear"], "bij->bi": ["transform", "linear"],
    }[equation]  # fmt: skip


def test_whole_zeros_of_blocks_may_be_floats(tmp_path: Path):
    constants = {**BYTES, "q": np.full((7, 3, 8), 0x98, np.uint8), "z": np.full(21, 8.0)}
    file = written(tmp_path / "m.onnx", [microsoft("MatMulNBits", "x q s z", **BLOCKS)], constants, {"x": [1, 5, 45]})
    assert "51.1 %" in run(file) or "48.9 %" in run(file)
