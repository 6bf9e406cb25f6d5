"""ONNX models for the fuzzing, made up and changed, and a count of what they multiply that has nothing of the importer.

`counted` takes the shapes from ONNX's own inference on the file as it is. What it adds up is written down here once more,
operator by operator, as a sum over the indices that an operator has.
"""

from __future__ import annotations

import math
import random
import sys
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

sys.path.insert(0, str(Path(__file__).parents[1] / "plugins" / "importing"))
from corpus import CASES
from onnx_files import model, node

SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 8, 16, 31, -1, 1 << 20, 1 << 40, 1 << 62)
SMALL = (1, 1, 2, 3, 4, 6, 8)


class OnnxModels:
    """Models by random numbers."""

    def __init__(self) -> None:
        self.real = [_built(*case) for case in CASES.values()]

    def model(self, rng: random.Random) -> Any:
        if rng.random() < 0.4:
            found = self.made_up(rng)
        else:
            found = onnx.ModelProto()
            found.CopyFrom(rng.choice(self.real))
        if rng.random() < 0.3:
            _joined(rng, found, rng.choice(self.real))
        for _ in range(rng.choice((0, 0, 0, 0, 1, 1, 1, 2, 4))):
            rng.choice(CHANGES)(rng, found)
        return found

    def made_up(self, rng: random.Random) -> Any:
        """One product or convolution with random shapes; most of them are valid."""
        kind = rng.choice(("matmul", "matmul", "einsum", "conv", "gemm", "transpose", "reshape"))
        n, m, k = (rng.choice(SMALL) for _ in "nmk")
        constants: dict[str, Any] = {}
        if kind in ("matmul", "transpose"):
            lead = [rng.choice(SMALL) for _ in range(rng.randrange(4))]
            one, two = ([size if rng.random() < 0.6 else 1 for size in lead] for _ in "ab")
            shapes = [[*one[rng.randrange(len(one) + 1) :], m, k], [*two[rng.randrange(len(two) + 1) :], k, n]]
            nodes = [node("MatMul", "a b", "y")]
            if kind == "transpose":
                order = [*range(len(shapes[1]) - 2), len(shapes[1]) - 1, len(shapes[1]) - 2]
                shapes[1][-2:] = shapes[1][:-3:-1]
                nodes.insert(0, node("Transpose", "b", "t", perm=order))
                nodes[-1] = node("MatMul", "a t", "y")
        elif kind == "einsum":
            labels = {label: rng.choice(SMALL) for label in "abcdef"}
            terms = ["".join(rng.sample(sorted(labels), rng.randrange(1, 5))) for _ in "ab"]
            both = sorted(set("".join(terms)))
            right = "".join(rng.sample(both, rng.randrange(len(both) + 1)))
            arrow = f"->{right}" if rng.random() < 0.8 else ""
            shapes = [[labels[label] for label in term] for term in terms]
            nodes = [node("Einsum", "a b", "y", equation=f"{terms[0]},{terms[1]}{arrow}")]
        elif kind == "conv":
            rank, groups = rng.choice((1, 2, 2, 3)), rng.choice((1, 1, 2, 4))
            shapes = [
                [n, groups * m, *(rng.randrange(4, 12) for _ in range(rank))],
                [groups * k, m, *(rng.randrange(1, 5) for _ in range(rank))],
            ]
            more = {"strides": [rng.randrange(1, 3) for _ in range(rank)]} if rng.random() < 0.5 else {}
            more |= {"auto_pad": rng.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))} if rng.random() < 0.3 else {}
            transposed = rng.random() < 0.3
            if transposed:
                shapes[1][:2] = [groups * m, k]
            nodes = [node("ConvTranspose" if transposed else "Conv", "a b", "y", group=groups, **more)]
        elif kind == "gemm":
            turned = [rng.randrange(2) for _ in "ab"]
            shapes = [[m, k][:: -1 if turned[0] else 1], [k, n][:: -1 if turned[1] else 1]]
            nodes = [node("Gemm", "a b", "y", transA=turned[0], transB=turned[1])]
        else:
            before = [rng.choice(SMALL) for _ in range(3)]
            shapes = [before, [k, n]]
            constants["to"] = np.array([-1, k], np.int64)
            nodes = [node("Reshape", "a to", "r"), node("MatMul", "r b", "y")]
        left = rng.random() < 0.2
        names = "ba" if left else "ab"
        given = dict(zip("ab", shapes, strict=True))
        if rng.random() < 0.6:
            constants[names[1]] = tuple(given.pop(names[1]))
        return model(nodes, constants, given)


def _built(nodes: Any, constants: Any, inputs: Any, macs: int, weights: int, *more: Any) -> Any:
    return model(nodes, constants, inputs, opset=more[1] if len(more) > 1 else 17)


# -------------------------------------------------------------------------------------------------------------- changes


def _joined(rng: random.Random, found: Any, other: Any) -> None:
    """Another model beside, or behind where a tensor of it takes the place of an input."""
    twin = onnx.ModelProto()
    twin.CopyFrom(other)
    graph = twin.graph
    outputs = [name for each in found.graph.node for name in each.output if name]
    for part in (*graph.initializer, *graph.input, *graph.output):
        part.name = f"2{part.name}"
    for each in graph.node:
        each.name = f"2{each.name}"
        for names in (each.input, each.output):
            names[:] = [f"2{name}" if name else "" for name in names]
    behind = rng.choice(graph.input).name if rng.random() < 0.5 and graph.input else ""
    for each in graph.node:
        each.input[:] = [rng.choice(outputs) if name == behind and behind else name for name in each.input]
    found.graph.node.extend(graph.node)
    found.graph.initializer.extend(graph.initializer)
    found.graph.input.extend(value for value in graph.input if value.name != behind)
    found.opset_import[0].version = max(found.opset_import[0].version, twin.opset_import[0].version)


def _tensors(found: Any) -> list[str]:
    graph = found.graph
    names = [part.name for part in (*graph.initializer, *graph.input)]
    return names + [name for each in graph.node for name in each.output]


def _input_size(rng: random.Random, found: Any) -> None:
    for value in rng.sample(list(found.graph.input), min(1, len(found.graph.input))):
        dims = value.type.tensor_type.shape.dim
        if dims and rng.random() < 0.8:
            dim = rng.choice(dims)
            dim.Clear()
            if rng.random() < 0.3:
                dim.dim_param = rng.choice(("n", "words", "", "x y"))
            else:
                dim.dim_value = rng.choice(SIZES)
        elif rng.random() < 0.5:
            dims.add(dim_value=rng.choice(SMALL))
        elif dims:
            del dims[rng.randrange(len(dims))]


def _constant(rng: random.Random, found: Any) -> None:
    if not found.graph.initializer:
        return
    tensor = rng.choice(found.graph.initializer)
    kind = rng.randrange(5)
    if kind == 0 and tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(SIZES)
    elif kind == 1:
        tensor.data_type = rng.randrange(0, 25)
    elif kind == 2 and tensor.raw_data:
        tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data))]
    elif kind == 3 and len(tensor.raw_data) > 8:
        place = rng.randrange(len(tensor.raw_data) - 8)
        odd = rng.choice((b"\xff" * 8, b"\x00\x00\xc0\x7f", b"\x00\x00\x80\x7f", bytes(8)))
        tensor.raw_data = tensor.raw_data[:place] + odd + tensor.raw_data[place + len(odd) :]
    elif tensor.dims:
        rng.shuffle(tensor.dims)


def _attribute(rng: random.Random, found: Any) -> None:
    each = rng.choice(found.graph.node)
    if not each.attribute or rng.random() < 0.2:
        name = rng.choice(("axis", "perm", "group", "transA", "strides", "dilations", "pads", "keepdims", "axes"))
        value = rng.choice((rng.randrange(-3, 5), [rng.randrange(0, 4) for _ in range(rng.randrange(1, 5))]))
        each.attribute.append(helper.make_attribute(name, value))
        return
    place = rng.randrange(len(each.attribute))
    item = each.attribute[place]
    if item.ints:
        item.ints[rng.randrange(len(item.ints))] = rng.choice((-1, 0, 1, 2, 3, 5, 1 << 40))
    elif item.type == onnx.AttributeProto.INT:
        item.i = rng.choice((-1, 0, 1, 2, 3, 5, 8, 1 << 40))
    elif item.s and rng.random() < 0.5:
        item.s = item.s[: rng.randrange(len(item.s))] + rng.choice((b"", b"a", b"...", b",", b"->"))
    else:
        del each.attribute[place]


def _operator(rng: random.Random, found: Any) -> None:
    kinds = ("MatMul", "Gemm", "Conv", "Relu", "Transpose", "Add", "Mul", "Concat", "Flatten", "Identity", "Nonsense")
    more = ("LSTM", "Einsum", "MatMulInteger", "ConvTranspose", "Softmax", "Gather", "Attention", "Loop", "DeformConv")
    each = rng.choice(found.graph.node)
    each.op_type = rng.choice(kinds + more)
    if rng.random() < 0.1:
        each.domain = "com.microsoft"


def _wire(rng: random.Random, found: Any) -> None:
    each = rng.choice(found.graph.node)
    if each.input and rng.random() < 0.8:
        each.input[rng.randrange(len(each.input))] = rng.choice([*_tensors(found), ""])
    elif each.input:
        each.input.pop()
    else:
        each.output.append("more")


def _insert(rng: random.Random, found: Any) -> None:
    """A node between a tensor and one that takes it."""
    place = rng.randrange(len(found.graph.node))
    taker = found.graph.node[place]
    if not taker.input:
        return
    slot, name = rng.randrange(len(taker.input)), f"new{rng.randrange(10**6)}"
    numbers = [rng.choice((-1, 0, 1, 2, 3, 4, 8, 16, 1 << 31)) for _ in range(rng.randrange(1, 6))]
    found.graph.initializer.append(onnx.numpy_helper.from_array(np.array(numbers, np.int64), f"{name}.shape"))
    given, kind = taker.input[slot], rng.choice(("Reshape", "Expand", "Tile", "Unsqueeze", "ConstantOfShape", "Concat"))
    inputs = {"ConstantOfShape": [f"{name}.shape"], "Concat": [given, given]}.get(kind, [given, f"{name}.shape"])
    more = {"axis": rng.randrange(3)} if kind == "Concat" else {}
    made = helper.make_node(kind, inputs, [name], name=name, **more)
    taker.input[slot] = name
    nodes = [*found.graph.node[:place], made, *found.graph.node[place:]]
    del found.graph.node[:]
    found.graph.node.extend(nodes)


def _doubled(rng: random.Random, found: Any) -> None:
    """A constant that is joined to itself over and over."""
    if not found.graph.initializer:
        return
    last = start = rng.choice(found.graph.initializer).name
    nodes = []
    for step in range(rng.choice((2, 10, 40))):
        nodes.append(helper.make_node("Concat", [last, last], [f"d{step}"], name=f"d{step}", axis=0))
        last = f"d{step}"
    for each in found.graph.node:
        each.input[:] = [last if name == start else name for name in each.input]
    nodes += found.graph.node
    del found.graph.node[:]
    found.graph.node.extend(nodes)


CHANGES = (_input_size, _input_size, _constant, _attribute, _attribute, _operator, _wire, _insert, _insert, _doubled)


# ------------------------------------------------------------------------------------------------------------- counting


def counted(path: Path, batch: int, named: dict[str, int], left_out: set[str]) -> tuple[int, int] | None:
    """MACs and words of weights of what a model computes from its inputs, but for the nodes that are left out; None where
    sizes do not follow from ONNX's inference alone."""
    proto = onnx.load(path)
    graph = proto.graph
    constants = {tensor.name for tensor in graph.initializer}
    for value in graph.input:
        dims = value.type.tensor_type.shape.dim
        for axis, dim in enumerate(dims if value.name not in constants else ()):
            if not dim.HasField("dim_value") or dim.dim_value < 0:
                dim.dim_value = named.get(dim.dim_param, 0) or (batch if axis == 0 else 0)
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    proto.ir_version = max(proto.ir_version, 4)
    known = onnx.shape_inference.infer_shapes(proto, data_prop=True, strict_mode=True)
    shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for value in (*known.graph.input, *known.graph.value_info, *known.graph.output):
        shapes.setdefault(value.name, [dim.dim_value for dim in value.type.tensor_type.shape.dim])
    fixed = set(constants)
    macs = weights = 0
    for each in graph.node:
        label = f"{each.op_type} '{each.name or each.output[0]}'"
        if fixed.issuperset(filter(None, each.input)) and _constant_node(each):
            fixed.update(each.output)
        if label in left_out or fixed.issuperset(filter(None, each.input)):
            continue
        found = _indices(each, shapes)
        if any(0 in part for part in found):  # ONNX's own inference does not say it
            return None
        if found:
            macs += sum(math.prod(part) for part in found)
            words = {place: each.input[place] for place in WEIGHTS.get(each.op_type, (0, 1))}
            weights += sum(math.prod(shapes[name]) for name in words.values() if name in fixed)
    return macs, weights


WEIGHTS = {"QLinearConv": (3,), "QLinearMatMul": (0, 3), "LSTM": (1, 2), "GRU": (1, 2), "RNN": (1, 2)}


def _constant_node(each: Any) -> bool:
    return bool(each.input) or each.op_type == "Constant"


def _indices(each: Any, shapes: dict[str, list[int]]) -> list[list[int]]:
    """For each product of a node, the sizes of all indices that it runs over; none for other nodes."""
    given = {item.name: helper.get_attribute_value(item) for item in each.attribute}
    s = [shapes.get(name, []) for name in each.input]
    match each.op_type:
        case "Conv" | "ConvInteger":
            return [[*shapes[each.output[0]], *s[1][1:]]]
        case "QLinearConv":
            return [[*shapes[each.output[0]], *s[3][1:]]]
        case "ConvTranspose":
            return [[*s[0], *s[1][1:]]]
        case "Gemm":
            return [[*shapes[each.output[0]], s[0][0 if given.get("transA") else 1]]]
        case "MatMul" | "MatMulInteger":
            return [_broadcast(s[0], s[1])]
        case "QLinearMatMul":
            return [_broadcast(s[0], s[3])]
        case "LSTM" | "GRU" | "RNN":
            steps, hidden = s[0][:2], s[2][2]
            gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[each.op_type] * s[1][0] * hidden
            return [[*steps, gates, s[0][2]], [*steps, gates, hidden]]
        case "Attention":
            batch, heads = s[0][0], s[0][1] if len(s[0]) == 4 else given["q_num_heads"]
            keys = s[1][-2] + (s[4][2] if len(s) > 4 and each.input[4] else 0)
            size = s[0][3] if len(s[0]) == 4 else s[0][2] // heads
            out = s[2][3] if len(s[2]) == 4 else s[2][2] // given["kv_num_heads"]
            return [[batch, heads, s[0][-2], keys, size], [batch, heads, s[0][-2], keys, out]]
        case "Einsum":
            return [_einsum(given["equation"].decode(), s)]
    return []


def _broadcast(one: list[int], two: list[int]) -> list[int]:
    a = one if len(one) > 1 else [1, *one]
    b = two if len(two) > 1 else [*two, 1]
    pairs = zip_longest(reversed(a[:-2]), reversed(b[:-2]), fillvalue=1)  # NumPy has 64 dimensions at most
    return [*[x if y == 1 else y for x, y in pairs][::-1], a[-2], a[-1], b[-1]]


def _einsum(equation: str, shapes: list[list[int]]) -> list[int]:
    sizes: dict[Any, int] = {}
    for term, shape in zip(equation.split("->")[0].split(","), shapes, strict=True):
        letters = [letter for letter in term if letter.isalpha()]
        before = term.index(".") - term[: term.index(".")].count(" ") if "." in term else len(letters)
        free = len(shape) - len(letters)
        names = [*letters[:before], *range(-free, 0), *letters[before:]]
        for name, size in zip(names, shape, strict=True):
            sizes[name] = max(sizes.get(name, 1), size)
    return list(sizes.values())
