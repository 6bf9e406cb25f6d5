"""Sizes that nodes compute, branches and loops, and what users choose where the file leaves it open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.importing.folding import ImportChoices
from sparsemap_plugins.importing.model_file import read_model

from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.problem.network import nodes_of

onnx = pytest.importorskip("onnx")
from onnx import helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from onnx_files import FLOAT, INT64, node, written  # noqa: E402

BOOL = onnx.TensorProto.BOOL
X = {"x": [1, 6, 8]}


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def run(file: Path, *options: Any, code: int = 0) -> str:
    arguments = ["import", str(file), "-o", str(file.with_suffix(".toml")), "--overwrite", *map(str, options)]
    outcome = CliRunner().invoke(cli, arguments)
    assert outcome.exit_code == code and "Traceback" not in outcome.output, outcome.output
    return " ".join(outcome.output.split())


def layers(file: Path, *options: Any) -> list[tuple[Any, ...]]:
    """Type, MACs and shape of every node of the network."""
    run(file, *options)
    found = nodes_of(load().resolve("network", str(file.with_suffix(".toml"))), load(), file.parent)
    return [(each.piece.type_name, each.macs, each.shape) for each in found]


def graph(nodes: list[Any], given: dict[str, Any], out: list[str], **constants: np.ndarray) -> Any:
    values = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in given.items()]
    tensors = [onnx.numpy_helper.from_array(array.astype(np.float32), name) for name, array in constants.items()]
    return helper.make_graph(nodes, "inner", values, [onnx.ValueInfoProto(name=name) for name in out], tensors)


SIZES = {
    "halves of a shape": [
        node("Shape", "x", "s"), node("Gather", "s two", "c"), node("Div", "c two", "h"), node("Unsqueeze", "h zero1", "hs"),
        node("Concat", "one1 minus1 hs", "to", axis=0), node("Reshape", "x to", "r"),
    ],
    "a range that is as long as a shape says": [
        node("Shape", "x", "s"), node("Gather", "s one", "n"), node("Range", "zero n one", "ids"),
        node("Gather", "x ids", "g", axis=1),
        node("Reshape", "g to4", "r"),
    ],
    "where": [
        node("ConstantOfShape", "len3", "ones", value=helper.make_tensor("v", INT64, [1], [1])),
        node("Equal", "to4 minus3", "e"), node("Where", "e ones to4", "t"), node("Reshape", "x t", "r"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_nodes_compute_are_known(name: str, tmp_path: Path):
    constants = {
        "zero1": ints(0),
        "one1": ints(1),
        "minus1": ints(-1),
        "to4": ints(1, 12, 4),
        "w": (4, 5),
        "len3": ints(3),
    }
    constants |= {"zero": np.array(0), "one": np.array(1), "two": np.array(2), "minus3": ints(-3, -3, -3)}
    file = written(tmp_path / "m.onnx", [*SIZES[name], node("MatMul", "r w", "y")], constants, X)
    assert layers(file)[-1] == ("linear", 12 * 4 * 5, (12, 5))


def branching(path: Path, condition: list[Any], inputs: dict[str, Any]) -> Path:
    """One of two products, each with weights inside of its branch."""
    then, other = (graph([node("MatMul", "x w", "o")], {}, ["o"], w=np.ones((8, width))) for width in (2, 3))
    test = helper.make_node("If", ["c"], ["z"], name="choice", then_branch=then, else_branch=other)
    return written(path, [*condition, test, node("Relu", "z", "y")], {"eight": np.array(8), "two": np.array(2)}, inputs)


def test_of_an_if_the_branch_that_sizes_choose_is_imported(tmp_path: Path):
    sizes = [node("Shape", "x", "s"), node("Gather", "s two", "n"), node("Equal", "n eight", "c")]
    assert layers(branching(tmp_path / "m.onnx", sizes, X)) == [("linear", 6 * 8 * 2, (6, 2))]


def test_of_an_if_that_data_decide_the_user_chooses_the_branch(tmp_path: Path):
    file = branching(tmp_path / "m.onnx", [], {**X, "c": (BOOL, [1])})
    assert "say what runs with --branch choice=then" in run(file, code=2)
    assert layers(file, "--branch", "choice=then") == [("linear", 6 * 8 * 2, (6, 2))]
    assert layers(file, "--branch", "choice=else") == [("linear", 6 * 8 * 3, (6, 3))]
    assert "--branch: no If without a choice 'choise'; did you mean 'choice'?" in run(
        file, "--branch", "choise=then", code=2
    )
    assert "expected NAME=then|else" in run(file, "--branch", "choice=both", code=2)


def test_an_if_that_multiplies_nothing_is_no_work_that_is_missing(tmp_path: Path):
    """As where a model returns boxes, or none."""
    then, other = (graph([node(kind, "a", "o")], {}, ["o"]) for kind in ("Relu", "Abs"))
    test = helper.make_node("If", ["c"], ["y"], name="choice", then_branch=then, else_branch=other)
    file = written(tmp_path / "m.onnx", [node("MatMul", "x w", "a"), test], {"w": (8, 4)}, {**X, "c": (BOOL, [1])})
    assert layers(file) == [("linear", 6 * 8 * 4, (6, 4))]


def looping(path: Path, stop: list[Any], steps: Any, inputs: dict[str, Any]) -> Path:
    """A state times weights at every step, and the states of all steps."""
    given = {"i": (INT64, []), "go": (BOOL, []), "h": (FLOAT, [1, 8])}
    body = graph([node("MatMul", "h w", "n"), node("Tanh", "n", "t"), *stop], given, ["again", "t", "t"])
    loop = helper.make_node("Loop", ["steps", "", "x"], ["last", "all"], name="loop", body=body)
    constants = {"w": (8, 8), "v": (8, 2)} | ({"steps": steps} if steps is not None else {})
    return written(path, [loop, node("MatMul", "all v", "y")], constants, inputs)


GOES_ON = [node("Identity", "go", "again")]
DATA = [node("ReduceMax", "t", "top", keepdims=0), node("Cast", "top", "again", to=BOOL)]
UNROLLED = [("linear", 64, (8,))] * 3 + [("view", 0, (3, 1, 8)), ("linear", 3 * 8 * 2, (3, 2))]


def test_a_loop_is_as_many_layers_as_it_has_steps_whose_weights_count_once(tmp_path: Path):
    file = looping(tmp_path / "m.onnx", GOES_ON, np.array(3), {"x": [1, 8]})
    assert layers(file) == UNROLLED and "240 MACs, 80 weights" in run(file)


def test_of_a_loop_that_data_end_the_user_says_the_steps(tmp_path: Path):
    file = looping(tmp_path / "m.onnx", DATA, np.array(99), {"x": [1, 8]})
    assert "Loop 'loop': runs as long as its data say; give its steps with --loop loop=N" in run(file, code=2)
    assert layers(file, "--loop", "loop=3") == UNROLLED
    file = looping(tmp_path / "n.onnx", GOES_ON, None, {"x": [1, 8], "steps": (INT64, [1])})
    assert "say it with --loop loop=N" in run(file, code=2) and layers(file, "--loop", "loop=3") == UNROLLED


def test_a_loop_of_any_length_is_refused_before_it_is_written_out(tmp_path: Path):
    file = looping(tmp_path / "m.onnx", GOES_ON, np.array(1 << 40), {"x": [1, 8]})
    assert "is more than the 100,000 nodes that are read, loops written out" in run(file, code=2)


def test_a_scan_takes_one_part_after_the_other(tmp_path: Path):
    given = {"h": (FLOAT, [1, 4]), "part": (FLOAT, [1, 8])}
    body = graph([node("MatMul", "part w", "a"), node("Add", "a h", "n")], given, ["n", "n"])
    scan = helper.make_node("Scan", ["h0", "x"], ["last", "all"], name="scan", body=body, num_scan_inputs=1)
    file = written(tmp_path / "m.onnx", [scan, node("Relu", "all", "y")], {"w": (8, 4), "h0": (1, 4)}, {"x": [3, 1, 8]})
    products = [each for each in layers(file) if each[1]]
    assert products == [("linear", 32, (4,))] * 3


def scanning(path: Path) -> Path:
    """From the last part to the first, with what every step leaves put the same way."""
    given = {"h": (FLOAT, [2]), "part": (FLOAT, [2])}
    body = graph([node("Mul", "h w", "a"), node("Add", "a part", "n")], given, ["n", "n"], w=np.array([2.0, 3.0]))
    about = {"num_scan_inputs": 1, "scan_input_directions": [1], "scan_output_directions": [1]}
    scan = helper.make_node("Scan", ["h0", "x"], ["last", "all"], name="scan", body=body, **about)
    return written(path, [scan, node("MatMul", "all v", "y")], {"h0": np.ones(2), "v": (2, 3)}, {"x": [3, 2]})


def looped(x: np.ndarray, w: np.ndarray, v: np.ndarray, steps: int) -> np.ndarray:
    states = [x]
    for _ in range(int(steps)):
        states.append(np.tanh(states[-1] @ w))
    return np.stack(states[1:]) @ v


def scanned(x: np.ndarray, h0: np.ndarray, v: np.ndarray) -> np.ndarray:
    states = [h0]
    for part in x[::-1]:
        states.append(states[-1] * [2.0, 3.0] + part)
    return np.stack(states[:0:-1]) @ v


def test_what_is_written_out_computes_what_the_steps_do(tmp_path: Path):
    loop = looping(tmp_path / "loop.onnx", GOES_ON, np.array(3), {"x": [1, 8]})
    for file, steps, shape in ((loop, looped, (1, 8)), (scanning(tmp_path / "scan.onnx"), scanned, (3, 2))):
        x = np.random.default_rng(0).standard_normal(shape, np.float32)
        constants = {each.name: numpy_helper.to_array(each) for each in onnx.load(file).graph.initializer}
        model = read_model(file, ImportChoices()).proto
        assert not any(each.op_type in ("Loop", "Scan") for each in model.graph.node)
        (found,) = ReferenceEvaluator(model).run(None, {"x": x})
        np.testing.assert_allclose(found, steps(x, **constants), rtol=1e-5)


def test_every_open_dimension_has_a_name_that_the_message_prints(tmp_path: Path):
    nodes = [node("MatMul", "x w", "y")]
    file = written(tmp_path / "m.onnx", nodes, {"w": (8, 4)}, {"x": ["?", "?", "?"]})
    told = run(file, code=2)
    assert "input 'x', dimension 1: has no size, its name is '?'; give it one with --dim x:1=N" in told
    assert layers(file, "--dim", "x:1=5", "--dim", "x:2=8") == [("linear", 5 * 8 * 4, (5, 4))]
    file = written(tmp_path / "n.onnx", nodes, {"w": (8, 4)}, {"x": [-1, -1, 8]})
    assert "--dim x:1=N" in run(file, code=2)
    assert layers(file, "--dim", "x:1=5") == [("linear", 5 * 8 * 4, (5, 4))]
    assert "no open dimension 'x:7'" in run(file, "--dim", "x:1=5", "--dim", "x:7=5", code=2)


def test_what_data_make_as_long_as_they_like_can_be_sized(tmp_path: Path):
    nodes = [node("NonZero", "x", "at"), node("Cast", "at", "f", to=FLOAT), node("MatMul", "w f", "y")]
    file = written(tmp_path / "m.onnx", nodes, {"w": (4, 3)}, X)
    told = "data say how long 'at' of NonZero '/at/NonZero' is; choose it with --dim at:1=N"
    assert told in run(file, code=2)
    assert layers(file, "--dim", "at:1=10")[-1] == ("linear", 4 * 3 * 10, (10, 4))
