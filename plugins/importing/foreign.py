"""Standard ONNX nodes for operators of other domains, and for einsums of several tensors.

Inner rotations, activations and biases are left out. The writer of the words does them, and no multiplication for a
searched layer is lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .onnx_package import attributes_of, onnx_of

if TYPE_CHECKING:
    from .folding import Folding

Nodes = list[Any]


def standard(node: Any, graph: Folding) -> Nodes:
    """Replacement nodes; empty for a standard or an unknown node."""
    if node.op_type == "Einsum" and len(node.input) > 2:
        return _einsum(node, graph)
    if node.domain == "com.microsoft" or (not node.domain and node.op_type in LISTED_HERE):
        make = MADE.get(node.op_type)
        return make(node, graph) if make else []
    return []


def why_not(node: Any, known: Container[str], shapes: Mapping[str, tuple[int, ...]]) -> str:
    """Reason against the import of a node in `MADE`, from the `known` constants and the shapes; empty if none."""
    about = attributes_of(node)
    if node.op_type == "MatMulNBits":
        if (bits := about.get("bits", 0)) not in (4, 8):
            return f"its weights have {bits} bits, expected 4 or 8"
        data = [name for name in (*node.input[1:3], _input(node, 3)) if name and name not in known]
        return f"its weights are no constants ({', '.join(data)})" if data else ""
    if node.op_type in ("GroupQueryAttention", "MultiHeadAttention"):
        for name in node.input[:3]:
            if len(shape := shapes.get(name, ())) not in (0, 3):
                return f"'{name}' has {len(shape)} axes, expected batch, words and width of all heads"
    return ""


def _input(node: Any, place: int) -> str:
    return node.input[place] if place < len(node.input) else ""


def _as(kind: str, *places: int, **attributes: Any) -> Callable[[Any, Any], Nodes]:
    """Replacement by another operator with the inputs at `places`."""

    def made(node: Any, graph: Folding) -> Nodes:
        return [graph.make(kind, [node.input[place] for place in places], node.output[0], node, **attributes)]

    return made


def _floats(kind: str, *places: int) -> Callable[[Any, Any], Nodes]:
    """Replacement of an operator on quantised words by its float version."""

    def made(node: Any, graph: Folding) -> Nodes:
        out, tensor = node.output[0], onnx_of().TensorProto
        given = [f"{out}/{place}" for place in places]
        pairs = zip(places, given, strict=True)
        casts = [graph.make("Cast", [node.input[place]], name, to=tensor.FLOAT) for place, name in pairs]
        keep = {k: v for k, v in attributes_of(node).items() if k in ("kernel_shape", "pads", "strides", "axis")}
        keep = {} if kind == "GlobalAveragePool" else keep
        whole = graph.types[node.input[0]].tensor_type.elem_type
        made = graph.make(kind, given, f"{out}/f", node, **keep)
        return [*casts, made, graph.make("Cast", [f"{out}/f"], out, to=whole)]

    return made


def _joined(node: Any, graph: Folding) -> Nodes:
    return [graph.make("Concat", node.input[2::3], node.output[0], node, axis=attributes_of(node)["axis"])]


def _skipped_norm(node: Any, graph: Folding) -> Nodes:
    """Normalised sum of two tensors; the sum may be an output as well."""
    out = node.output[0]
    total = node.output[3] if len(node.output) > 3 and node.output[3] else f"{out}/sum"
    kind = "RMSNormalization" if "Simplified" in node.op_type else "LayerNormalization"
    added = graph.make("Add", node.input[:2], total)
    return [added, graph.make(kind, [total, node.input[2]], out, node)]


def _turned(node: Any, graph: Folding) -> Nodes:
    """A product with optionally transposed factors."""
    about, out, given, made = attributes_of(node), node.output[0], list(node.input[:2]), Nodes()
    for place, key in enumerate(("transA", "transB")):
        order = [*range(len(graph.shape(given[place])))]
        if about.get(key) and len(order) > 1:
            order[-2:] = order[:-3:-1]
            made.append(graph.make("Transpose", [given[place]], f"{out}/{key}", perm=order))
            given[place] = f"{out}/{key}"
    return [*made, graph.make("MatMul", given, out, node)]


def _convolution(node: Any, graph: Folding) -> Nodes:
    about = {k: v for k, v in attributes_of(node).items() if not k.startswith("activation")}
    out, added = node.output[0], _input(node, 3)
    to = f"{out}/conv" if added else out
    made = [graph.make("Conv", [name for name in node.input[:3] if name], to, node, **about)]
    return made + ([graph.make("Add", [to, added], out)] if added else [])


def _gemm(node: Any, graph: Folding) -> Nodes:
    about = {k: v for k, v in attributes_of(node).items() if not k.startswith("activation")}
    return [graph.make("Gemm", node.input, node.output[0], node, **about)]


def _integers(zero: int) -> Callable[[Any, Any], Nodes]:
    """A product of whole numbers with a scaled result."""

    def made(node: Any, graph: Folding) -> Nodes:
        out, first, tensor = node.output[0], node.input[0], onnx_of().TensorProto
        kind, nodes = graph.types[first].tensor_type.elem_type, Nodes()
        if kind not in (tensor.INT8, tensor.UINT8):
            names = [f"{out}/a", f"{out}/as", f"{out}/az"]
            nodes.append(graph.make("DynamicQuantizeLinear", [first], names))
            first = names[0]
        given = [first, node.input[1], "", _input(node, zero)]
        nodes.append(graph.make("MatMulInteger", given if given[3] else given[:2], f"{out}/i", node))
        return [*nodes, graph.make("Cast", [f"{out}/i"], out, to=tensor.FLOAT)]

    return made


def _blocks(node: Any, graph: Folding) -> Nodes:
    """MatMulNBits: weights (N, K) of 4 or 8 bits in blocks along K, with a scale per block."""
    about, out, packed = attributes_of(node), node.output[0], node.input[1]
    inputs, outputs, size, bits = (about.get(k, 0) for k in ("K", "N", "block_size", "bits"))
    known, zero, tensor = graph.constants.tensors, _input(node, 3), onnx_of().TensorProto
    sizes = f"K = {inputs}, N = {outputs}, block_size = {size}, bits = {bits}"
    if min(inputs, outputs, size) < 1:
        raise ValueError(f"expected sizes from 1 on, found {sizes}")
    if bits not in (4, 8) or any(name not in known for name in (packed, node.input[2], zero) if name):
        return []
    count = -(-inputs // size)
    whole = zero and known[zero].data_type == tensor.UINT8  # packed like the weights
    wanted = {packed: outputs * count * size * bits // 8, node.input[2]: outputs * count}
    wanted[zero] = outputs * -(-count * bits // 8) if whole else outputs * count
    for name, words in wanted.items():
        if name and (found := math.prod(known[name].dims)) != words:
            raise ValueError(f"'{name}' has {found:,} words, expected {words:,} for {sizes}")

    def again(name: str, like: str, kind: int, *dims: int) -> str:
        found = tensor()
        found.CopyFrom(known[like])
        found.data_type, found.dims[:] = kind, dims
        if found.int32_data:
            found.raw_data = np.array(found.int32_data, np.uint8).tobytes()
            found.ClearField("int32_data")
        graph.constants.add(name, found)
        return graph.constant(name, found)

    kind = tensor.UINT4 if bits == 4 else tensor.UINT8
    weights = again(f"{packed}/words", packed, kind, outputs, count * size)
    scales = again(f"{node.input[2]}/blocks", node.input[2], known[node.input[2]].data_type, outputs, count)
    middles = np.full((outputs, count), 1 << (bits - 1), np.uint8)
    if zero:  # rows are whole bytes
        given = graph.constants.read(zero).reshape(outputs, -1)
        if whole and bits == 4:
            given = np.stack([given & 15, given >> 4], -1).reshape(outputs, -1)[:, :count]
        middles = given.astype(np.uint8)
        if not np.array_equal(given, middles) or middles.max() >> bits:
            raise ValueError(f"'{zero}' has other words than whole numbers from 0 to {(1 << bits) - 1}")
    tensor_of = onnx_of("onnx.helper").make_tensor
    zeros = graph.constant(f"{out}/zeros", tensor_of("zeros", kind, middles.shape, middles.ravel().tolist()))
    made = [
        graph.make("DequantizeLinear", [weights, scales, zeros], f"{out}/nk", axis=1, block_size=size),
        graph.make("Transpose", [f"{out}/nk"], f"{out}/kn", perm=[1, 0]),
    ]
    if count * size > inputs:
        ends = [graph.constant(f"{out}/{key}", np.array([n])) for key, n in (("from", 0), ("to", inputs), ("axis", 0))]
        made.append(graph.make("Slice", [f"{out}/kn", *ends], f"{out}/k"))
    last = made[-1].output[0]
    return [*made, graph.make("MatMul", [node.input[0], last], out, node)]


def _recurrent(node: Any, graph: Folding) -> Nodes:
    """DynamicQuantizeLSTM: weights are transposed whole numbers."""
    out, made, given = node.output[0], Nodes(), list(node.input[:8])
    tensor = onnx_of().TensorProto
    for place in (1, 2):
        made.append(graph.make("Cast", [given[place]], f"{out}/c{place}", to=tensor.FLOAT))
        made.append(graph.make("Transpose", [f"{out}/c{place}"], f"{out}/{place}", perm=[0, 2, 1]))
        given[place] = f"{out}/{place}"
    return [*made, graph.make("LSTM", given, node.output, node, **attributes_of(node))]


def _attention(node: Any, graph: Folding) -> Nodes:
    """GroupQueryAttention and MultiHeadAttention, also with queries, keys and values packed in one tensor."""
    about, out, grouped = attributes_of(node), node.output[0], node.op_type == "GroupQueryAttention"
    heads = about["num_heads"]
    shared, made = about.get("kv_num_heads", heads), Nodes()
    names = list(node.input[:3])
    shape = graph.shape(names[0])
    if len(names) < 3 or not names[1]:
        if len(shape) == 5:  # batch x words x heads x 3 x width
            flat = graph.constant(f"{out}/flat", np.array([shape[0], shape[1], -1]))
            made.append(graph.make("Transpose", names[:1], f"{out}/t", perm=[0, 1, 3, 2, 4]))
            made.append(graph.make("Reshape", [f"{out}/t", flat], f"{out}/packed"))
            names[0], shape = f"{out}/packed", (*shape[:2], math.prod(shape[2:]))
        width = shape[2] // (heads + 2 * shared)
        parts = graph.constant(f"{out}/parts", np.array([heads * width, shared * width, shared * width]))
        split, names = [names[0], parts], [f"{out}/{key}" for key in "qkv"]
        made.append(graph.make("Split", split, names, axis=2))
    past = (3, 4) if grouped else (6, 7)
    earlier = [_input(node, place) for place in past]
    given = [*names, "", *earlier] if all(earlier) else names
    if any(len(graph.shape(name)) != 3 for name in names if name in graph.types):
        return []
    outputs = list(node.output[:3]) if all(earlier) else [out]
    return [*made, graph.make("Attention", given, outputs, node, q_num_heads=heads, kv_num_heads=shared)]


def _packed(node: Any, graph: Folding) -> Nodes:
    """com.microsoft's Attention: the product for queries, keys and values, and the attention over them."""
    about, out = attributes_of(node), node.output[0]
    wide = graph.shape(node.input[1])[1] // 3
    parts = graph.constant(f"{out}/parts", np.array(about.get("qkv_hidden_sizes") or [wide] * 3))
    names = [f"{out}/{key}" for key in "qkv"]
    found = graph.make("Attention", names, out, q_num_heads=about["num_heads"], kv_num_heads=about["num_heads"])
    found.name = f"{node.name}/heads"
    product = graph.make("MatMul", node.input[:2], f"{out}/qkv", node)
    return [product, graph.make("Split", [f"{out}/qkv", parts], names, axis=2), found]


def _einsum(node: Any, graph: Folding) -> Nodes:
    """An einsum of several tensors, two at a time from the left."""
    equation = attributes_of(node)["equation"].decode().replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if "..." in equation or len(terms) != len(node.input):
        return []
    letters = [label for term in terms for label in term]
    right = right if arrow else "".join(sorted({label for label in letters if letters.count(label) == 1}))
    made, term, name = Nodes(), terms[0], node.input[0]
    for place in range(1, len(terms)):
        needed = {*right, *(label for other in terms[place + 1 :] for label in other)}
        last = place == len(terms) - 1
        kept = right if last else "".join(dict.fromkeys(label for label in term + terms[place] if label in needed))
        out = node.output[0] if last else f"{node.output[0]}/{place}"
        text = f"{term},{terms[place]}->{kept}"
        made.append(graph.make("Einsum", [name, node.input[place]], out, node if last else None, equation=text))
        term, name = kept, out
    return made


LISTED_HERE = frozenset(("SimplifiedLayerNormalization", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"))
"""Operators of a runtime listed under the standard domain without being in the standard."""
SAME = ("QuickGelu", "FastGelu", "Gelu", "BiasGelu", "RotaryEmbedding", "QLinearSigmoid", "QLinearLeakyRelu")
MADE: Mapping[str, Callable[[Any, Any], Nodes]] = {
    **dict.fromkeys(SAME, _as("Identity", 0)),
    "SimplifiedLayerNormalization": _as("RMSNormalization", 0, 1),
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), _skipped_norm),
    "QLinearAdd": _floats("Add", 0, 3),
    "QLinearMul": _floats("Mul", 0, 3),
    "QLinearSoftmax": _floats("Softmax", 0),
    "QLinearGlobalAveragePool": _floats("GlobalAveragePool", 0),
    "QLinearAveragePool": _floats("AveragePool", 0),
    "QLinearConcat": _joined,
    **dict.fromkeys(("FusedMatMul", "TransposeMatMul"), _turned),
    "FusedConv": _convolution,
    "FusedGemm": _gemm,
    "MatMulIntegerToFloat": _integers(5),
    "DynamicQuantizeMatMul": _integers(3),
    "MatMulNBits": _blocks,
    "DynamicQuantizeLSTM": _recurrent,
    **dict.fromkeys(("GroupQueryAttention", "MultiHeadAttention"), _attention),
    "Attention": _packed,
}
