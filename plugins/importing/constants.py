"""Constants of an ONNX model: tensors of the file, and tensors computed from constants, such as dequantised weights.

A few bytes can stand for any number of words (ConstantOfShape, Expand, a Concat of a Concat). The work is therefore
counted first, by ONNX's inferred shapes, and constants beyond the limits are refused by name."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SpecError
from sparsemap.files import check_file, shown
from sparsemap.pieces.contracts.base import Array

from .onnx_package import FILE_BYTES, attributes_of, dims_text, has_graphs, onnx_of, reported, told

WORDS = 1 << 24
"""Most words computed for a small file, over all constants of a model; a larger file may compute more."""
EQUAL = 1 << 31
"""Most words of constants with a single repeated word, since repetition takes no memory."""
WORDS_PER_BYTE = 16
"""Words computed per byte of the file and its tensors: 4-bit weights pass several nodes before use."""
NODES, BYTES_PER_NODE = 5_000, 1_000
"""Nodes computed for a small file, and bytes of a larger file per further node."""
MACS = 1 << 32
"""Most multiplications of a product between constants."""
COMPUTED = frozenset(
    (
        *("Identity", "Cast", "CastLike", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Concat", "Slice"),
        *("Split", "Gather", "GatherElements", "Expand", "Tile", "Pad", "Where", "ConstantOfShape", "Constant"),
        *("Shape", "Size", "Range", "Trilu", "QuantizeLinear", "DequantizeLinear", "Add", "Sub", "Mul", "Div", "Neg"),
        *("Abs", "Sqrt", "Reciprocal", "Pow", "Exp", "Log", "Floor", "Ceil", "Round", "Clip", "Min", "Max", "Equal"),
        *("Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Not", "Mod", "Sign", "Relu", "Sigmoid"),
        *("Tanh", "MatMul", "Gemm", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "DepthToSpace"),
        *("SpaceToDepth",),
    )
)
"""Operators with work proportional to the words of the output (or, for products, given by the shapes)."""

ARRANGED = frozenset(("Identity", "Cast", "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze"))
"""Operators that only change the order or type of the first input's words."""
MOVED = ARRANGED | {"DequantizeLinear"}
"""Operators that map every word of the first input to a word."""


@attrs.define(kw_only=True)
class Constants:
    """The tensors of a file by name, and the nodes between them."""

    path: Path
    proto: Any
    """The model, with the versions of its operators."""
    file_bytes: int
    """Bytes of the model and of its external tensors."""
    tensors: dict[str, Any] = attrs.field(factory=dict)
    makers: dict[str, Any] = attrs.field(factory=dict)
    """By tensor, the node that computes it."""
    missing: set[str] = attrs.field(factory=set)
    """Tensors without words: only the shape is in the file, or the external file is missing."""
    _spent: dict[str, int] = attrs.field(factory=lambda: {"words": 0, "nodes": 0, "equal": 0})

    @classmethod
    def of(cls, proto: Any, path: Path) -> Constants:
        """Constants of a model; SpecError for a tensor with impossible dimensions, or with words outside the files."""
        found = cls(path=path, proto=proto, file_bytes=os.path.getsize(path))
        for tensor in proto.graph.initializer:
            found.add(tensor.name, tensor)
        return found

    def add(self, name: str, tensor: Any) -> None:
        """Add a tensor; SpecError if its words are not at the stated place."""
        found = _external(tensor, name, self.path)
        if found is None or (not found and _bare(tensor)):
            self.missing.add(name)
        self.file_bytes += found or 0
        self.tensors[name] = tensor

    def made(self, node: Any) -> None:
        """Register the outputs of a node as constants if all its inputs are constant."""
        computed = (node.op_type == "Constant" or node.input) and not has_graphs(node)
        if computed and all(name in self for name in node.input if name):
            self.makers |= dict.fromkeys(filter(None, node.output), node)

    def readable(self, name: str) -> bool:
        """Whether the words of a constant are available."""
        if name not in self.makers:
            return name not in self.missing
        given = {text for node in self._needed(name) for text in node.input}
        return not self.missing.intersection(given)

    def __contains__(self, name: str) -> bool:
        return name in self.tensors or name in self.makers

    def root(self, name: str, through: frozenset[str] = MOVED) -> str:
        """The constant with the same words, possibly in another order or type."""
        while (node := self.makers.get(name)) is not None and node.op_type in through:
            name = node.input[0]
        return name

    def value(self, name: str, shapes: Mapping[str, tuple[int, ...]]) -> Array:
        """The words of a constant: read, a single repeated word, or computed from others within the limits."""
        if name in self.tensors:
            return self.read(name)
        root = self.makers.get(self.root(name, ARRANGED))
        if root is not None and root.op_type == "ConstantOfShape" and name in shapes:
            self._spent["equal"] += math.prod(shapes[name])
            if self._spent["equal"] > EQUAL:
                text = f"takes {self._spent['equal']:,} words or more to compute; the limit for this file is {EQUAL:,}"
                raise SpecError.at(shown(self.path), f"constant '{name}'", text)
            value = attributes_of(root).get("value")
            word = np.float32(0) if value is None else onnx_of("onnx.numpy_helper").to_array(value).reshape(())
            return np.broadcast_to(word, shapes[name])
        needed = self._needed(name)
        self._check(name, needed, shapes)
        found: dict[str, Array] = {}
        for node in needed:
            given = {text: found[text] if text in found else self.read(text) for text in node.input if text}
            found.update(zip(node.output, self.computed(node, given), strict=True))
        return found[name]

    def _needed(self, name: str) -> list[Any]:
        """The nodes that compute a constant, in order of execution."""
        order, made, waiting = list[Any](), set[str](), [name]
        while waiting:
            node = None if waiting[-1] in made else self.makers.get(waiting[-1])
            if missing := [each for each in node.input if each in self.makers and each not in made] if node else []:
                waiting += missing
                continue
            waiting.pop()
            if node is not None:
                order.append(node)
                made.update(node.output)
        return order

    def _check(self, name: str, needed: Iterable[Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
        limit = WORDS + WORDS_PER_BYTE * self.file_bytes
        wrong = partial(SpecError.at, shown(self.path), f"constant '{name}'")
        for node in needed:
            if node.domain not in ("", "ai.onnx") or node.op_type not in COMPUTED:
                raise wrong(f"needs {node.op_type} '{node.name or node.output[0]}', which is not computed")
            for text in filter(None, node.output):
                if text not in shapes:
                    raise wrong(f"needs '{text}', whose shape does not follow from the file")
                self._spent["words"] += math.prod(shapes[text])
            self._spent["nodes"] += 1
            if self._spent["words"] > limit:
                many = f"{self._spent['words']:,} words or more"
                raise wrong(f"takes {many} to compute; the limit for this file is {limit:,}")
            if self._spent["nodes"] > (most := NODES + self.file_bytes // BYTES_PER_NODE):
                raise wrong(f"takes more than {most:,} nodes to compute")
            if node.op_type in ("MatMul", "Gemm"):
                words, summed = math.prod(shapes[node.output[0]]), max(shapes.get(node.input[0], ()), default=1)
                if words * summed > MACS:
                    raise wrong(f"takes {words * summed:,} multiplications, at most {MACS:,} are done")

    def read(self, name: str) -> Array:
        with reported(shown(self.path), f"tensor '{name}'", "cannot be read"):
            tensor = self.tensors[name]
            if tensor.data_location == tensor.EXTERNAL:
                loaded = onnx_of().TensorProto()
                loaded.CopyFrom(tensor)
                onnx_of("onnx.external_data_helper").load_external_data_for_tensor(loaded, str(self.path.parent))
                tensor = loaded
            return onnx_of("onnx.numpy_helper").to_array(tensor)

    def computed(self, node: Any, given: Mapping[str, Array]) -> list[Array]:
        """The outputs of a node, from the reference evaluator of the package."""
        onnx = onnx_of()
        inputs = [onnx.ValueInfoProto(name=name) for name in given]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
        graph = onnx.helper.make_graph([node], "node", inputs, outputs)
        versions = self.proto.opset_import
        if node.op_type == "DequantizeLinear":  # blocks begin with version 21, and older ones compute the same
            versions = [onnx.helper.make_opsetid("", max(21, *(item.version for item in versions)))]
        with reported(shown(self.path), told(node)):
            single = onnx.helper.make_model(graph, opset_imports=versions, ir_version=max(self.proto.ir_version, 9))
            return onnx_of("onnx.reference").ReferenceEvaluator(single).run(None, dict(given))


def _bare(tensor: Any) -> bool:
    """Whether the model has only the shape of a tensor."""
    stored = (tensor.raw_data, tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data)
    return math.prod(tensor.dims) > 0 and not any(map(len, (*stored, tensor.uint64_data, tensor.string_data)))


def _external(tensor: Any, name: str, path: Path) -> int | None:
    """Bytes of a tensor in an external file; 0 for a tensor inside the model, None for a missing file.

    SpecError if the words are not in the file."""
    wrong = partial(SpecError.at, shown(path), f"tensor '{name}'")
    if min(tensor.dims, default=0) < 0:
        raise wrong(f"is {dims_text(tensor.dims)}, expected sizes from 0 on")
    if tensor.data_location != tensor.EXTERNAL:
        return 0
    entries = {item.key: item.value for item in tensor.external_data}
    location, offset, length = entries.get("location", ""), entries.get("offset", "0"), entries.get("length", "")
    folder = os.path.realpath(path.parent)
    found = os.path.realpath(os.path.join(folder, location))
    if not location or os.path.commonpath([folder, found]) != folder:
        raise wrong(f"lies in {location!r}, expected a file in the folder of the model")
    if not os.path.exists(found):
        return None
    size = check_file(found, FILE_BYTES)
    whole = math.prod(tensor.dims) * onnx_of("onnx.helper").tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    if not all(text.isdecimal() and len(text) <= 18 for text in (offset, length or "0")):
        raise wrong(f"has offset {offset[:30]!r} and length {length[:30]!r}")
    bytes_ = int(length) if length else size - int(offset)
    if int(offset) + bytes_ > size or bytes_ < 0:
        raise wrong(f"ends behind {location}, which has {size:,} bytes")
    if not whole // 8 <= bytes_ <= whole:
        raise wrong(f"has {bytes_:,} bytes in {location}, expected {whole:,}")
    return bytes_
