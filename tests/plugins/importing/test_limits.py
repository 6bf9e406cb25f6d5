"""Small files that stand for much, and tensors that cannot be: `import-model` refuses them by name, before computing."""

from __future__ import annotations

import json
import re
import struct
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.importing.importer import ModelImport
from sparsemap_plugins.importing.layers import ImportedLayer

from sparsemap import arrays
from sparsemap.cli.main import cli
from sparsemap.errors import SpecError

onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402
from onnx_files import FLOAT, model, node, written  # noqa: E402

LINEAR = [node("MatMul", "x w", "y")]
X = {"x": [1, 4, 8]}


def refused(path: Path, *options: Any) -> str:
    out = path.parent / "net.toml"
    outcome = CliRunner().invoke(cli, ["import", str(path), "-o", str(out), *map(str, options)])
    assert outcome.exit_code == 2 and "Traceback" not in outcome.output, outcome.output
    assert ".py, line" not in outcome.output and not out.exists()
    return " ".join(outcome.output.split())


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


MADE = {
    "Concat": [
        node("Concat", "w w" if step == 0 else f"t{step} t{step}", f"t{step + 1}", axis=0) for step in range(40)
    ],
    "ConstantOfShape": [node("ConstantOfShape", "big", "t40")],
    "Expand": [node("Expand", "w big", "t40")],
    "Tile": [node("Tile", "w many", "t40")],
    "Range": [
        node("Range", "zero end step", "r"),
        node("Reshape", "r big", "t39"),
        node("Cast", "t39", "t40", to=FLOAT),
    ],
}


@pytest.mark.parametrize("name", MADE)
def test_constants_larger_than_the_file_allows_are_not_computed(name: str, tmp_path: Path):
    constants = {"w": (1, 8), "big": ints(1 << 30, 8), "many": ints(1 << 30, 1)}
    constants |= {name: np.array(size) for name, size in (("zero", 0), ("end", 1 << 33), ("step", 1))}
    nodes = [*MADE[name], node("MatMul", "x t", "y")]
    nodes.insert(-1, node("Transpose", "t40", "t", perm=[1, 0]))
    text = refused(written(tmp_path / "bomb.onnx", nodes, constants, X))
    assert "bomb.onnx" in text and ("constant 't'" in text or name == "Range")
    assert any(why in text for why in ("the limit for this file", "does not follow", "words up to here"))


@pytest.mark.parametrize("place", ["graph", "node", "operator", "tensor", "input", "inner node", "words about it"])
@pytest.mark.parametrize("odd", ["\u202e", "\u200b", b"\xb2"], ids=ascii)
def test_names_that_are_no_text_are_refused_wherever_a_model_has_them(place: str, odd: str | bytes, tmp_path: Path):
    """Protobuf gives bytes in place of a text that is not UTF-8."""
    inner = helper.make_graph([node("Identity", "w", "i")], "inner", [], [])
    made = model([*LINEAR, node("Odd", "y", "z", body=inner)], {"w": (8, 4)}, X)
    graph, twice = made.graph, "odd" * 9
    if place == "words about it":
        graph.doc_string = twice
    else:
        parts = {"graph": graph, "node": graph.node[0], "tensor": graph.initializer[0], "input": graph.input[0]}
        part = parts.get(place, graph.node[1].attribute[0].g.node[0])
        setattr(graph.node[0] if place == "operator" else part, "op_type" if place == "operator" else "name", twice)
    (file := tmp_path / "odd.onnx").write_bytes(
        made.SerializeToString().replace(twice.encode(), (odd if isinstance(odd, bytes) else odd.encode()).ljust(27))
    )
    if place == "words about it":
        assert "Odd '/z/Odd' is skipped" in refused(file)  # no network repeats them
    else:
        why = "expected text in UTF-8" if isinstance(odd, bytes) else "holds a control character"
        assert re.search(rf"odd\.onnx: onnx\.\w+Proto\.\w+: .*{why}", refused(file))


def test_lists_of_sizes_are_not_written_out(tmp_path: Path):
    nodes = [node("Concat", "s s" if step == 0 else f"t{step} t{step}", f"t{step + 1}", axis=0) for step in range(40)]
    nodes += [node("Reshape", "x t40", "r"), node("MatMul", "r w", "y")]
    text = refused(written(tmp_path / "m.onnx", nodes, {"w": (8, 4), "s": ints(1, 4, 8)}, X))
    assert "Concat '/t15/Concat': makes a list of 98,304 sizes" in text


@pytest.mark.parametrize("equation", ["ij,jk-...", "i.j,jk", "ij,jk->i->k", "i1,1k", ""])
def test_equations_that_are_none_are_told(equation: str, tmp_path: Path):
    nodes = [node("Einsum", "x w", "y", equation=equation)]
    text = refused(written(tmp_path / "m.onnx", nodes, {"w": (8, 4)}, {"x": [4, 8]}))
    assert "m.onnx" in text and ("equation" in text or "Einsum" in text)


def test_functions_that_call_each_other_twice_are_not_written_out(tmp_path: Path):
    file = tmp_path / "functions.onnx"
    made = model([helper.make_node("f20", ["x"], ["z"], domain="own"), node("MatMul", "z w", "y")], {"w": (8, 4)}, X)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    made.opset_import.append(opsets[1])
    for step in range(21):
        kind = {"domain": "own"} if step else {}
        call = f"f{step - 1}" if step else "Relu"
        body = [helper.make_node(call, ["a"], ["b"], **kind), helper.make_node(call, ["b"], ["c"], **kind)]
        made.functions.append(helper.make_function("own", f"f{step}", ["a"], ["c"], body, opsets))
    onnx.save(made, file)
    assert file.stat().st_size < 4000
    assert "more than 100,000 nodes" in refused(file)
    made.functions[0].node[0].op_type, made.functions[0].node[0].domain = "f20", "own"
    onnx.save(made, file)
    assert "calls the function that it is part of" in refused(file)


def test_graphs_within_graphs_have_a_limit(tmp_path: Path):
    found = helper.make_tensor_value_info("o", FLOAT, [1])
    inner = helper.make_graph([helper.make_node("Relu", ["x"], ["o"])], "g", [], [found])
    other = inner
    for _ in range(27):
        test = helper.make_node("If", ["c"], ["o"], then_branch=inner, else_branch=other)
        inner = helper.make_graph([test], "g", [], [found])
    branch = helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=other)
    made = model([branch, *LINEAR], {"w": (8, 4), "c": np.array(1)}, X)
    onnx.save(made, tmp_path / "deep.onnx")
    assert "more than 24 deep" in refused(tmp_path / "deep.onnx")


LONG = {
    "a constant joined to itself": (
        [node("Concat", f"t{step} t{step}", f"t{step + 1}", axis=0) for step in range(40)]
        + [node("Add", "x t40", "y")],
        [1],
    ),
    "an input of one rank": ([node("Add", "x t0", "z"), node("Concat", "z z", "y", axis=0)], [1 << 40]),
    "a matrix as one rank": ([node("Reshape", "x all", "z"), node("Mul", "z z", "y")], [1 << 20, 1 << 20]),
}


@pytest.mark.parametrize("name", LONG)
def test_tensors_of_one_rank_are_not_written_out(name: str, tmp_path: Path):
    nodes, sizes = LONG[name]
    constants = {"t0": np.ones(1 if name != "a constant joined to itself" else 8, np.float32), "all": ints(-1)}
    assert "words up to here" in refused(written(tmp_path / "long.onnx", nodes, constants, {"x": sizes}))


@pytest.mark.parametrize("sizes", [[1, 0, 8], [1, -2, 8]])
def test_inputs_without_words_are_named(sizes: list[int], tmp_path: Path):
    assert "input 'x', dimension 1" in refused(written(tmp_path / "m.onnx", LINEAR, {"w": (8, 4)}, {"x": sizes}))


@pytest.mark.parametrize("sizes", [[8, 0], [-8, 4], [8, -4]])
def test_constants_with_impossible_sizes_are_named(sizes: list[int], tmp_path: Path):
    tensor = onnx.TensorProto(name="w", data_type=FLOAT, dims=sizes)
    text = refused(written(tmp_path / "m.onnx", LINEAR, {"w": tensor}, X))
    assert "m.onnx" in text and "tensor 'w'" in text and " x ".join(map(str, sizes)) in text


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_named(value: float, tmp_path: Path):
    weights = np.ones((8, 4))
    weights[2, 3] = value
    text = refused(written(tmp_path / "m.onnx", LINEAR, {"w": weights}, X))
    assert "m.onnx" in text and "layer 'y'" in text and "1 of 32 words are no finite numbers" in text
    network = tmp_path / "n.toml"
    network.write_text('kind = "network"\nname = "n"\nlayers = [{ name = "fc", type = "linear", k = 4, n = 8 }]\n')
    np.savez(tmp_path / "w.npz", fc=weights)
    assert "layer 'fc'" in refused(tmp_path / "w.npz", "--network", network)
    _safetensors(tmp_path / "w.safetensors", {"fc": weights.astype(np.float32)})
    assert "layer 'fc'" in refused(tmp_path / "w.safetensors", "--network", network)


def _safetensors(path: Path, arrays: dict[str, np.ndarray], **header: Any) -> None:
    start = 0
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [start, start + array.nbytes]}
        start += array.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in arrays.values()))


def _external(**entries: Any) -> Any:
    tensor = onnx.TensorProto(name="w", data_type=FLOAT, dims=[8, 4], data_location=onnx.TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ({"location": "w.bin", "length": 1 << 40}, "ends behind w.bin"),
        ({"location": "w.bin", "offset": 1 << 40}, "ends behind w.bin"),
        ({"location": "w.bin", "offset": -4}, "has offset '-4'"),
        ({"location": "w.bin", "length": 4}, "has 4 bytes in w.bin, expected 128"),
        ({"location": "../../etc/hostname"}, "expected a file in the folder of the model"),
        ({}, "expected a file in the folder of the model"),
    ],
)
def test_words_that_are_not_in_the_file_of_a_tensor_are_told(entries: dict[str, Any], text: str, tmp_path: Path):
    (tmp_path / "w.bin").write_bytes(bytes(128))
    assert text in refused(written(tmp_path / "m.onnx", LINEAR, {"w": _external(**entries)}, X))


@pytest.mark.parametrize("tensor", [_external(location="none.bin"), onnx.TensorProto(data_type=FLOAT, dims=[8, 4])])
def test_weights_whose_words_are_not_there_are_dense_or_as_the_user_says(tensor: Any, tmp_path: Path):
    tensor.name = "w"
    file, out = written(tmp_path / "m.onnx", LINEAR, {"w": tensor}, X), tmp_path / "m.toml"

    def density(*options: str) -> tuple[str, Any]:
        outcome = CliRunner().invoke(cli, ["import", str(file), "-o", str(out), "--overwrite", *options])
        assert outcome.exit_code == 0, outcome.output
        return outcome.output, tomllib.loads(out.read_text("utf-8"))["layers"][0].get("density", {}).get("Q")

    text, dense = density()
    assert (
        "the file has no words for the weights of y, which count as dense" in " ".join(text.split()) and dense is None
    )
    assert density("--densities", "0.25")[1] == 0.25
    assert density("--densities", "2:4")[1] == {"type": "n-of-m", "n": 2, "m": 4}
    assert "expected measured, dense, a share such as 0.3, or N:M" in refused(
        tmp_path / "m.onnx", "--densities", "some", "-o", tmp_path / "other.toml"
    )


def test_tensors_in_files_of_their_own_are_read(tmp_path: Path):
    weights = np.ones((8, 4), np.float32)
    weights[::2] = 0
    (tmp_path / "w.bin").write_bytes(bytes(16) + weights.tobytes())
    file = written(tmp_path / "m.onnx", LINEAR, {"w": _external(location="w.bin", offset=16, length=128)}, X)
    outcome = CliRunner().invoke(cli, ["import", str(file), "-o", str(tmp_path / "m.toml")])
    assert outcome.exit_code == 0 and "50.0 %" in outcome.output, outcome.output


def test_headers_of_safetensors_have_a_limit(tmp_path: Path):
    network = tmp_path / "n.toml"
    network.write_text('kind = "network"\nname = "n"\nlayers = [{ name = "fc", type = "linear", k = 4, n = 8 }]\n')
    file = tmp_path / "w.safetensors"
    for header in (b"[" * (17 << 20), b'{"fc": {"dtype": "F32", "shape": [0, 1e9999], "data_offsets": [0, 0]}}'):
        file.write_bytes(struct.pack("<Q", len(header)) + header)
        assert "is not a safetensors file" in refused(file, "--network", network)
    _safetensors(file, {}, fc={"dtype": "F32", "shape": [0, 1 << 70], "data_offsets": [0, 0]})
    assert "is not a safetensors file" in refused(file, "--network", network)


def test_archives_that_unpack_to_much_more_than_they_are_are_refused(tmp_path: Path, monkeypatch: Any):
    monkeypatch.setattr(arrays, "UNPACKED_BYTES", 1 << 20)
    network = tmp_path / "n.toml"
    network.write_text('kind = "network"\nname = "n"\nlayers = [{ name = "fc", type = "linear", k = 4, n = 8 }]\n')
    np.savez_compressed(tmp_path / "w.npz", fc=np.zeros((1 << 10, 1 << 10), np.float16))
    assert "unpacks to" in refused(tmp_path / "w.npz", "--network", network)


def test_weights_of_zeros_only_are_noted_with_saved_weights_too(tmp_path: Path):
    file = written(tmp_path / "m.onnx", LINEAR, {"w": np.zeros((8, 4))}, X)
    for options in ([], ["--save-weights"]):
        args = ["import", str(file), "-o", str(tmp_path / "m.toml"), "--overwrite", *options]
        outcome = CliRunner().invoke(cli, args)
        assert outcome.exit_code == 0 and "has zeros only" in outcome.output, outcome.output


def test_weights_that_do_not_fill_their_sizes_are_refused_by_name():
    """As a damaged file has them: its shapes say something else than there are words."""
    layer = ImportedLayer(table={"type": "depthwise", "name": "y", "c": 4, "r": 3, "s": 3})
    found = ModelImport(Path("model.onnx"), Path("net.toml"), None, False, lambda text: None)
    with pytest.raises(
        SpecError, match=r"model\.onnx: weights of layer 'y': has 32 words, which do not fill the sizes"
    ):
        found.weights_of(layer, np.ones(32, np.float32))
