"""Operators as matrix products: the roles h, m, k and n of the axes in `Z[h, m, n] = P[h, m, k] * Q[h, k, n]`.

An operator only labels the axes. A label of both tensors is k if summed, else h. A label of the first tensor alone is
m, of the second alone n. A broadcast tensor therefore counts its words once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from sparsemap.errors import SpecError

from .model_file import OnnxModel
from .onnx_package import attributes_of, dims_text, told
from .repeats import Axis, common, plain

Labels = tuple[tuple[str, int], ...]
"""Axes of a tensor with sizes, outer to inner; axes of size 1 may be left out."""


@attrs.frozen(kw_only=True)
class LabelledTensor:
    """A factor of a product."""

    name: str
    """Name of the ONNX tensor; empty: the result of the preceding product."""
    labels: Labels
    zero: str = ""
    """Tensor with the zero point, for quantised words."""

    def sizes(self) -> dict[str, int]:
        return {label: size for label, size in self.labels if size > 1}


@attrs.frozen(kw_only=True)
class LabelledProduct:
    """A product of two tensors, summed over common labels."""

    first: LabelledTensor
    second: LabelledTensor
    summed: frozenset[str]
    part: str = ""
    """Name of the product within a node of several products."""

    @property
    def swapped(self) -> LabelledProduct:
        """The product with its tensors exchanged, equal to the transpose of the product."""
        return attrs.evolve(self, first=self.second, second=self.first)

    def roles(self) -> dict[str, str]:
        """Role h, m, k or n by label."""
        first, second = self.first.sizes(), self.second.sizes()
        both = {label: "k" if label in self.summed else "h" for label in first if label in second}
        return {**dict.fromkeys(first, "m"), **dict.fromkeys(second, "n"), **both}

    def sizes(self) -> dict[str, int]:
        """Words along h, m, k and n."""
        found, sizes = dict.fromkeys("hmkn", 1), {**self.first.sizes(), **self.second.sizes()}
        for label, role in self.roles().items():
            found[role] *= sizes[label]
        return found


@attrs.frozen
class Operands:
    """Positions of an operator's factors among the inputs, and of the factors' zero points."""

    first: int = 0
    second: int = 1
    first_zero: int = -1
    second_zero: int = -1

    def names(self, node: Any) -> tuple[str, str]:
        return (node.input[self.first], node.input[self.second])

    def zeros(self, node: Any) -> tuple[str, str]:
        inputs = [*node.input, *[""] * 6]  # the last stand for none
        return (inputs[self.first_zero], inputs[self.second_zero])


FLOATS = Operands()
INTEGERS = Operands(0, 1, 2, 3)
"""MatMulInteger(A, B, zero of A, zero of B), and ConvInteger."""
QUANTISED = Operands(0, 3, 2, 5)
"""QLinearMatMul(a, scale, zero, b, scale, zero, ...), and QLinearConv."""

CONVOLUTIONS: Mapping[str, Operands] = {"Conv": FLOATS, "ConvInteger": INTEGERS, "QLinearConv": QUANTISED}
"""Operators with a sliding window, imported as convolution workloads."""

Axes = Mapping[str, tuple[Axis, ...]]
"""By tensor, axes with known repetition."""


def products_of(node: Any, model: OnnxModel, axes: Axes) -> list[LabelledProduct]:
    """The products of a node in `PRODUCTS`; empty if the node is no product of two tensors.

    SpecError if tensor sizes do not fit, since ONNX does not check all operators."""
    needed = RANKS.get(node.op_type, ())
    for name, ranks in zip([*node.input, *[""] * len(needed)], needed, strict=False):
        if len(shape := model.shape(name, node)) not in ranks:
            text = f"tensor '{name}' is {dims_text(shape)}, expected {' or '.join(map(str, ranks))} dimensions"
            raise SpecError.at(model.file, told(node), text)
    found = PRODUCTS[node.op_type](node, model, axes)
    for product in found:
        first, second = dict(product.first.labels), dict(product.second.labels)
        for label in first.keys() & second.keys():
            if first[label] != second[label]:
                text = f"sizes of its tensors do not fit: {first[label]} and {second[label]} for the same dimension"
                raise SpecError.at(model.file, told(node), text)
    return found


RANKS = {**dict.fromkeys(("LSTM", "GRU", "RNN"), ((3,),) * 3), "Attention": ((3, 4),) * 3}
"""Supported numbers of dimensions of an operator's first inputs, where ONNX allows others too."""
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STATES = {"LSTM": (("cell", 6), ("hidden", 5)), "GRU": (("hidden", 5),), "RNN": (("hidden", 5),)}
"""States of a recurrent operator with the positions of their initial values; the last state is read by the product."""


def steps_of(node: Any, model: OnnxModel) -> tuple[int, int]:
    """Steps and samples of a recurrent node."""
    first, second, *_ = model.shape(node.input[0], node)
    return (second, first) if attributes_of(node).get("layout") else (first, second)


def _labelled(
    node: Any, operands: Operands, first: Labels, second: Labels, summed: Iterable[str]
) -> list[LabelledProduct]:
    told = zip(operands.names(node), (first, second), operands.zeros(node), strict=True)
    one, two = (LabelledTensor(name=name, labels=labels, zero=zero) for name, labels, zero in told)
    return [LabelledProduct(first=one, second=two, summed=frozenset(summed))]


def _matrices(operands: Operands) -> Callable[[Any, OnnxModel, Axes], list[LabelledProduct]]:
    """MatMul and variants: leading axes broadcast, also axes of vectors."""

    def products(node: Any, model: OnnxModel, axes: Axes) -> list[LabelledProduct]:
        names = operands.names(node)
        a, b = (model.shape(name, node) for name in names)
        one, two = (list(axes.get(name) or plain(shape)) for name, shape in zip(names, (a, b), strict=True))
        first, second = list[tuple[str, int]](), list[tuple[str, int]]()
        lead, other = one[:-2], two[:-2]
        count = max(len(lead), len(other))
        for place in range(-count, 0):
            pair = [(found[place] if -place <= len(found) else ((1, True),)) for found in (lead, other)]
            for part, (size, here, there) in enumerate(common(*pair)):
                label = (f"{place}.{part}", size)
                first += [label] if here or not there else []
                second += [label] if there or not here else []
        first += [("m", a[-2])] if len(a) > 1 else []
        second += [("k", b[-2] if len(b) > 1 else b[-1])]
        second += [("n", b[-1])] if len(b) > 1 else []
        return _labelled(node, operands, (*first, ("k", a[-1])), tuple(second), "k")

    return products


def _gemm(node: Any, model: OnnxModel, axes: Axes) -> list[LabelledProduct]:
    attributes = attributes_of(node)
    a, b = (model.shape(name, node) for name in node.input[:2])
    one, two = ("km" if attributes.get("transA") else "mk"), ("nk" if attributes.get("transB") else "kn")
    return _labelled(node, FLOATS, tuple(zip(one, a, strict=True)), tuple(zip(two, b, strict=True)), "k")


def _einsum(node: Any, model: OnnxModel, axes: Axes) -> list[LabelledProduct]:
    """Product of two tensors; empty if a tensor repeats a label, or is summed over a label of its own."""
    equation = attributes_of(node)["equation"].decode().replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != 2 or len(node.input) != 2:
        return []
    shapes = [model.shape(name, node) for name in node.input]
    labels = []
    for term, shape in zip(terms, shapes, strict=True):
        before, dots, after = term.partition("...")
        free = len(shape) - len(before) - len(after)
        names = [*before, *(f"...{place - free}" for place in range(free if dots else 0)), *after]
        if len(names) != len(shape) or len(set(names)) < len(names):
            return []
        labels.append({name: size for name, size in zip(names, shape, strict=True) if size > 1})
    every = [label for found in labels for label in found]
    kept = {label for label in every if label.startswith("...")}
    kept |= set(right) if arrow else {label for label in every if (terms[0] + terms[1]).count(label) == 1}
    if any(label not in kept and not all(label in found for found in labels) for label in every):
        return []
    first, second = (tuple(found.items()) for found in labels)
    return _labelled(node, FLOATS, first, second, (label for label in every if label not in kept))


def _transposed_convolution(node: Any, model: OnnxModel, axes: Axes) -> list[LabelledProduct]:
    """A row per pixel of the input, a column per output channel and tap; overlapping results are added afterwards."""
    data, weights = (model.shape(name, node) for name in node.input[:2])
    groups = attributes_of(node).get("group", 1)
    pixels = tuple((f"p{place}", size) for place, size in enumerate(data[2:]))
    taps = tuple((f"t{place}", size) for place, size in enumerate(weights[2:]))
    first = (("b", data[0]), ("g", groups), ("c", data[1] // groups), *pixels)
    second = (("g", groups), ("c", weights[0] // groups), ("o", weights[1]), *taps)
    return _labelled(node, FLOATS, first, second, "c")


def _recurrent(node: Any, model: OnnxModel, axes: Axes) -> list[LabelledProduct]:
    """LSTM, GRU and RNN: the gates from every step's input, and from the state of the step before."""
    data, weights, state = (model.shape(name, node) for name in node.input[:3])
    directions = 2 if attributes_of(node).get("direction") == b"bidirectional" else 1
    wanted = (directions, GATES[node.op_type] * state[2])
    if weights[:2] != wanted or state[:2] != wanted:
        text = f"its weights are {dims_text(weights)} and {dims_text(state)}, expected {dims_text(wanted)} x inputs"
        raise SpecError.at(model.file, told(node), text)
    steps = (("t", data[0]), ("b", data[1]))
    (inner,) = _labelled(node, FLOATS, (*steps, ("i", data[2])), tuple(zip("dgi", weights, strict=True)), "i")
    own = LabelledTensor(name="", labels=(("d", state[0]), *steps, ("j", state[2])))
    recurrent = LabelledTensor(name=node.input[2], labels=tuple(zip("dgj", state, strict=True)))
    outer = LabelledProduct(first=own, second=recurrent, summed=frozenset("j"), part="state")
    return [attrs.evolve(inner, part="input"), outer]


def _attention(node: Any, model: OnnxModel, axes: Axes) -> list[LabelledProduct]:
    """Scores and context of attention.

    Several query heads may share a head of keys and values; keys of earlier steps may be an input (past_key)."""
    attributes = attributes_of(node)
    q, k, v = (model.shape(name, node) for name in node.input[:3])
    batch, words, keys = q[0], q[-2], k[-2]
    heads, shared = (q[1], k[1]) if len(q) == 4 else (attributes["q_num_heads"], attributes["kv_num_heads"])
    if len({len(shape) for shape in (q, k, v)}) > 1 or heads % shared or k[-2] != v[-2] or k[0] != batch:
        text = f"sizes of its tensors do not fit: {', '.join(map(dims_text, (q, k, v)))}"
        raise SpecError.at(model.file, told(node), text)
    width, out = (q[3], v[3]) if len(q) == 4 else (q[2] // heads, v[2] // shared)
    if len(node.input) > 4 and node.input[4]:
        keys += model.shape(node.input[4], node)[2]
    grouped = (("b", batch), ("h", shared), ("g", heads // shared), ("s", words))
    given = (("b", batch), ("h", shared), ("t", keys))
    queries, scores, keyed, valued = (
        LabelledTensor(name=name, labels=labels)
        for name, labels in (
            (node.input[0], (*grouped, ("d", width))), ("", (*grouped, ("t", keys))),
            (node.input[1], (*given, ("d", width))), (node.input[2], (*given, ("e", out))),
        )
    )  # fmt: skip
    return [
        LabelledProduct(first=queries, second=keyed, summed=frozenset("d"), part="scores"),
        LabelledProduct(first=scores, second=valued, summed=frozenset("t"), part="context"),
    ]


PRODUCTS: Mapping[str, Callable[[Any, OnnxModel, Axes], list[LabelledProduct]]] = {
    "MatMul": _matrices(FLOATS),
    "MatMulInteger": _matrices(INTEGERS),
    "QLinearMatMul": _matrices(QUANTISED),
    "Gemm": _gemm,
    "Einsum": _einsum,
    "ConvTranspose": _transposed_convolution,
    **dict.fromkeys(GATES, _recurrent),
    "Attention": _attention,
}


def arranged(product: LabelledProduct) -> tuple[tuple[str, int], ...]:
    """Axes of the second tensor in the file: role and size."""
    roles = product.roles()
    return tuple((roles[label], size) for label, size in product.second.labels if size > 1)
