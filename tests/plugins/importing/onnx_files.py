"""Small ONNX models for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

FLOAT, INT8, UINT8, INT64 = TensorProto.FLOAT, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT64


def node(kind: str, given: str, out: str, **attributes: Any) -> Any:
    """A node; names of its inputs and outputs are separated by spaces, `-` is one left out."""
    names = [["" if name == "-" else name for name in text.split()] for text in (given, out)]
    return helper.make_node(kind, *names, name=f"/{names[1][0]}/{kind}", **attributes)


def model(
    nodes: list[Any],
    constants: dict[str, Any],
    inputs: dict[str, Any],
    opset: int = 17,
    out: str = "",
) -> Any:
    """A model; constants are arrays, shapes (of floats) or tensors, inputs shapes or (type, shape)."""
    given = []
    for name, shape in inputs.items():
        kind, sizes = shape if isinstance(shape, tuple) else (FLOAT, shape)
        given.append(helper.make_tensor_value_info(name, kind, sizes))
    tensors = [_tensor(name, value) for name, value in constants.items()]
    found = helper.make_tensor_value_info(out or nodes[-1].output[0], FLOAT, None)
    if nodes[-1].op_type in ("MatMulInteger", "ConvInteger"):
        found.type.tensor_type.elem_type = TensorProto.INT32
    if nodes[-1].op_type.startswith("QLinear"):
        found.type.tensor_type.elem_type = UINT8
    graph = helper.make_graph(nodes, "graph", given, [found], tensors)
    versions = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=versions, ir_version=10)


def _tensor(name: str, value: Any) -> Any:
    if hasattr(value, "data_type"):
        return value
    if isinstance(value, np.ndarray):
        return numpy_helper.from_array(value if value.dtype.kind in "iu" else value.astype(np.float32), name)
    if isinstance(value, int | float):
        return numpy_helper.from_array(np.array(value, np.float32), name)
    return numpy_helper.from_array(np.random.default_rng(0).standard_normal(value).astype(np.float32), name)


def written(path: Path, *about: Any, **more: Any) -> Path:
    save(model(*about, **more), path)
    return path
