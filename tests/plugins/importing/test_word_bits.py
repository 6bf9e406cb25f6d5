"""Layers of quantised models have the bits of each tensor: as the model reads and writes them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.verify import verify

from sparsemap import search_network
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file

onnx = pytest.importorskip("onnx")
from corpus import SCALES, bytes_of  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from onnx_files import INT8, UINT8, node, written  # noqa: E402

PADS = {"pads": [1] * 4}
FOUR = helper.make_tensor("v", TensorProto.INT4, [8, 4, 3, 3], [1, 2] * 144)
WORDS = {**SCALES, "w": bytes_of(4, 3, 3, 3), "v": bytes_of(8, 4, 3, 3)}
IMAGE = {"x": [1, 3, 8, 8]}


def quantised(name: str, out: str) -> list[Any]:
    return [node("QuantizeLinear", f"{name} s zx", f"{name}8"), node("DequantizeLinear", f"{name}8 s zx", out)]


def weights(name: str, zero: str = "zw") -> Any:
    return node("DequantizeLinear", f"{name} s {zero}", f"{name}f")


QDQ = [
    *quantised("x", "xf"), weights("w"), node("Conv", "xf wf", "a", **PADS), node("Relu", "a", "r"),
    *quantised("r", "rf"), weights("v", "-"), node("Conv", "rf vf", "b", **PADS), *quantised("b", "y"),
]  # fmt: skip
QLINEAR = [
    node("QLinearConv", "x s zx w s zw s zy", "a", **PADS), node("QLinearConv", "a s zy v s zw s zy", "b", **PADS)
]  # fmt: skip
INTEGERS = [
    node("MatMulInteger", "x w", "a"), node("Cast", "a", "f", to=1), node("Mul", "f s", "g"),
    node("DynamicQuantizeLinear", "g", "q qs qz"), node("MatMulInteger", "q v qz", "b"),
]  # fmt: skip
SQUARES = {"w": bytes_of(16, 16), "v": bytes_of(16, 16), "s": 0.5}
ROWS = {"x": (INT8, [1, 16, 16])}


def imported(path: Path, *about: Any, **more: Any) -> dict[str, Any]:
    """Word bits by layer, of the model written to `path`."""
    file, out = written(path / "m.onnx", *about, **more), path / "m.toml"
    outcome = CliRunner().invoke(cli, ["import", str(file), "-o", str(out), "--overwrite"])
    assert outcome.exit_code == 0, outcome.output
    (path / "said.txt").write_text(outcome.output)
    return {x["name"]: x.get("word_bits") for x in tomllib.loads(out.read_text("utf-8"))["layers"]}


def bits(p: float, q: float, z: float) -> dict[str, float]:
    return {"P": p, "Q": q, "Z": z}


def test_a_quantised_layer_has_the_bits_of_its_inputs_weights_and_requantised_output(tmp_path: Path) -> None:
    assert imported(tmp_path, QDQ, {**WORDS, "v": FOUR}, IMAGE, opset=21) == {"a": bits(8, 8, 8), "b": bits(8, 4, 8)}
    assert "levels.NAME.word_bits = { Z = 32 }" in " ".join((tmp_path / "said.txt").read_text().split())
    found = imported(tmp_path, QLINEAR, WORDS, {"x": (UINT8, [1, 3, 8, 8])})
    assert found == {"a": bits(8, 8, 8), "b": bits(8, 8, 8)}


def test_sums_that_a_model_hands_on_have_32_bits(tmp_path: Path) -> None:
    """What a DynamicQuantizeLinear reads is there in full before its scale is known."""
    assert imported(tmp_path, INTEGERS, SQUARES, ROWS) == {"a": bits(8, 8, 32), "b": bits(8, 8, 32)}
    assert "Z = 32" not in (tmp_path / "said.txt").read_text()
    static = [*INTEGERS[:3], node("QuantizeLinear", "g s z", "q"), node("MatMulInteger", "q v z", "b")]
    found = imported(tmp_path, static, {**SQUARES, "z": np.array(7, np.uint8)}, ROWS)
    assert found == {"a": bits(8, 8, 8), "b": bits(8, 8, 32)}


@pytest.mark.parametrize(
    ("more", "out"),
    [
        ([node("Sigmoid", "r", "y")], "y"),
        ([*quantised("r", "rf"), node("Add", "r rf", "y")], "y"),
        ([*quantised("r", "rf")], "r"),
        ([node("Softmax", "r", "t"), *quantised("t", "y")], "y"),
    ],
    ids=["never", "on one of two ways", "beside an output", "behind another layer"],
)
def test_an_output_that_is_also_read_as_floats_has_the_words_of_the_hardware(
    more: list[Any], out: str, tmp_path: Path
) -> None:
    assert imported(tmp_path, [*QDQ[:5], *more], WORDS, IMAGE, out=out)["a"] == {"P": 8, "Q": 8}


def test_a_layer_of_floats_that_is_quantised_at_its_end_is_written_in_8_bits(tmp_path: Path) -> None:
    nodes = [node("Conv", "x k", "a"), *quantised("a", "af"), weights("v"), node("Conv", "af vf", "b")]
    assert imported(tmp_path, nodes, {**WORDS, "k": (4, 3, 1, 1)}, IMAGE) == {"a": {"Z": 8}, "b": {"P": 8, "Q": 8}}


def test_a_model_of_floats_has_no_bits(tmp_path: Path) -> None:
    nodes = [node("Conv", "x k", "a"), node("Relu", "a", "b"), node("Conv", "b l", "y")]
    assert imported(tmp_path, nodes, {"k": (4, 3, 1, 1), "l": (8, 4, 1, 1)}, IMAGE) == {"a": None, "y": None}


def test_layers_after_each_other_in_equal_bits_convert_nothing(tmp_path: Path) -> None:
    imported(tmp_path, QDQ, {**WORDS, "v": FOUR}, IMAGE, opset=21)
    plan = search_network(str(tmp_path / "m.toml"), "edge-16gbps", budget=40, fuse=True)
    assert [row.layer for row in plan.rows] == ["a", "b"]
    imported(tmp_path, INTEGERS, SQUARES, ROWS)
    plan = search_network(str(tmp_path / "m.toml"), "edge-16gbps", budget=40, fuse=True)
    assert [row.layer for row in plan.rows] == ["a", "b inputs", "b"]  # DynamicQuantizeLinear rewrites the sums


@pytest.mark.parametrize("wide", [{}, {"word_bits": {"Z": 32}}], ids=["no table", "accumulators"])
def test_an_int8_layer_with_int32_sums_costs_its_bits_at_each_level_as_executed(
    wide: dict[str, Any], tmp_path: Path
) -> None:
    """16 words of each tensor cross DRAM in 8 bits. The sums that the PEs leave in the Buffer come back for the second
    half of k, in the bits of the accumulators."""
    product = [node("QLinearMatMul", "x s zx w s zw s zy", "y")]
    imported(tmp_path, product, {**SCALES, "w": bytes_of(4, 4)}, {"x": (UINT8, [1, 4, 4])})
    layer = tomllib.loads((tmp_path / "m.toml").read_text("utf-8"))["layers"][0]
    prices = {"energy": {"read": 1.0, "write": 1.0, "encode": 0.25}}
    levels = [
        {"name": "DRAM", "class": "dram", "energy": {"read": 100.0, "write": 100.0}},
        {"name": "Buffer", "class": "sram", "capacity": "1 KB", **prices},
        {"name": "PE", "class": "regfile", "capacity": "1 KB", **prices, **wide},
    ]
    loops = {"L1_T": ["m=1", "k=1", "n=1"], "L2_T": ["k=2", "m=4", "n=1"], "L3_T": ["m=1", "n=4", "k=2"]}
    table = {
        "workload": {key: value for key, value in layer.items() if key != "name"}, "cost_model": "timeloop",
        "hardware": {"levels": levels, "word_bits": 16}, "mapping": loops, "gate_skip": {},
        "formats": {t: ["uncompressed"] * 4 for t in "PQZ"}, "beyond_format": "uncompressed",
    }  # fmt: skip
    design = design_file.structure({"kind": "design", **table}, load(), "design")
    found = design.problem.cost_model.evaluate(design.batch, design.problem, detail=True).detail
    sums = 32 if wide else 8
    assert found.word_bits[:, :, 0].tolist() == [[8, 8, 8], [8, 8, 8], [8, sums, sums]]
    assert found.energy_pj[:, 0, 0].tolist() == [16 * 8 / 16 * 100.0] * 3
    rounded = 16 * sums / 16 * 0.25 if wide else 0.0
    assert found.energy_pj[2, 1, 0] == (2 * 16 + 16) * sums / 16 + rounded  # updates, and sums read for the second half
    executed = verify(design.problem, design.batch, trials=2)
    assert executed.correct and [row for row in executed.rows if row.verdict != "exact"] == []
