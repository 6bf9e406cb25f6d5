"""Transformers as exporters write them in ONNX; weights are shapes that take no room."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx_files import INT64, model, node


class Graph:
    """Nodes that grow by the layers of a transformer; a tensor is called like the layer that makes it."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def add(self, kind: str, given: str, out: str, **attributes: Any) -> str:
        self.nodes.append(node(kind, given, out, **attributes))
        return out

    def numbers(self, name: str, *values: int) -> str:
        self.constants[name] = np.array(values, np.int64)
        return name

    def weights(self, name: str, *shape: int) -> str:
        return self.add("ConstantOfShape", self.numbers(f"{name}.shape", *shape), name)

    def linear(self, name: str, given: str, inputs: int, outputs: int) -> str:
        self.weights(f"{name}.weight", inputs, outputs)
        self.add("MatMul", f"{given} {name}.weight", f"{name}.product")
        self.constants[f"{name}.bias"] = (outputs,)
        return self.add("Add", f"{name}.product {name}.bias", name)

    def normed(self, name: str, given: str) -> str:
        """Root mean square."""
        self.constants.setdefault("two", 2.0)
        self.add("Pow", f"{given} two", f"{name}.square")
        self.add("ReduceMean", f"{name}.square", f"{name}.mean", axes=[-1])
        self.add("Sqrt", f"{name}.mean", f"{name}.root")
        return self.add("Div", f"{given} {name}.root", name)

    def layer_normed(self, name: str, given: str, width: int) -> str:
        """In one node, or with the mean taken away in a node of its own."""
        self.constants |= {"scale": (width,), "shift": (width,), "two": 2.0}
        if name.endswith("2"):
            return self.add("LayerNormalization", f"{given} scale shift", name, axis=-1)
        self.add("ReduceMean", given, f"{name}.center", axes=[-1])
        self.add("Sub", f"{given} {name}.center", f"{name}.moved")
        return self.add("Mul", f"{self.normed(f'{name}.over', f'{name}.moved')} scale", name)

    def heads(self, name: str, given: str, words: int, heads: int, each: int) -> str:
        shape = self.numbers(f"{name}.shape", 1, words, heads, each)
        self.add("Reshape", f"{given} {shape}", f"{name}.split")
        return self.add("Transpose", f"{name}.split", name, perm=[0, 2, 1, 3])

    def rotated(self, name: str, given: str, each: int) -> str:
        """Positions by rotation: halves of each head change places, and one changes its sign."""
        self.constants |= {"cos": (each,), "sin": (each,)}
        for part, ends in (("low", (0, each // 2)), ("high", (each // 2, each))):
            places = [self.numbers(f"{name}.{part}.{place}", end) for place, end in zip("ab", ends, strict=True)]
            self.add("Slice", f"{given} {' '.join(places)} {self.numbers('last', 3)}", f"{name}.{part}")
        self.add("Neg", f"{name}.high", f"{name}.minus")
        self.add("Concat", f"{name}.minus {name}.low", f"{name}.turned", axis=-1)
        self.add("Mul", f"{given} cos", f"{name}.c")
        self.add("Mul", f"{name}.turned sin", f"{name}.s")
        return self.add("Add", f"{name}.c {name}.s", name)

    def shared(self, name: str, given: str, words: int, heads: int, times: int, each: int) -> str:
        """The keys of a head for as many heads of queries as share it."""
        self.add("Unsqueeze", f"{given} {self.numbers('two.axis', 2)}", f"{name}.one")
        self.add("Expand", f"{name}.one {self.numbers(f'{name}.grow', 1, heads, times, words, each)}", f"{name}.many")
        return self.add("Reshape", f"{name}.many {self.numbers(f'{name}.flat', 1, heads * times, words, each)}", name)

    def attended(self, name: str, queries: str, keys: str, values: str, words: int, width: int) -> str:
        self.add("Transpose", keys, f"{name}keys.t", perm=[0, 1, 3, 2])
        self.add("MatMul", f"{queries} {name}keys.t", f"{name}scores")
        self.add("Softmax", f"{name}scores", f"{name}softmax", axis=-1)
        self.add("MatMul", f"{name}softmax {values}", f"{name}context")
        self.add("Transpose", f"{name}context", f"{name}context.t", perm=[0, 2, 1, 3])
        return self.add("Reshape", f"{name}context.t {self.numbers(f'{name}flat', 1, words, width)}", f"{name}joined")


def _llama_attention(net: Graph, words: int, kept: int) -> str:
    width, heads, shared, each = 4096, 32, 8, 128
    net.normed("norm", "x")
    queries = net.rotated(
        "q.turn", net.heads("q.heads", net.linear("q_proj", "norm", width, width), words, heads, each), each
    )
    keys = net.heads("k.heads", net.linear("k_proj", "norm", width, shared * each), words, shared, each)
    keys = net.rotated("k.turn", keys, each)
    values = net.heads("v.heads", net.linear("v_proj", "norm", width, shared * each), words, shared, each)
    if kept:
        keys = net.add("Concat", f"past.keys {keys}", "all.keys", axis=2)
        values = net.add("Concat", f"past.values {values}", "all.values", axis=2)
    keys, values = (
        net.shared(name, given, kept + words, shared, heads // shared, each)
        for name, given in (("keys", keys), ("values", values))
    )
    joined = net.attended("", queries, keys, values, words, width)
    return net.add("Add", f"{net.linear('o_proj', joined, width, width)} x", "attention")


def llama(words: int, kept: int = 0) -> Any:
    net = Graph()
    attention = _llama_attention(net, words, kept)
    normed = net.normed("norm2", attention)
    gate, up = (net.linear(name, normed, 4096, 14336) for name in ("gate_proj", "up_proj"))
    net.add("Mul", f"{gate} {net.add('Sigmoid', gate, 'sigmoid')}", "silu")
    net.add("Mul", f"silu {up}", "gated")
    net.add("Add", f"{net.linear('down_proj', 'gated', 14336, 4096)} {attention}", "y")
    past = {name: [1, 8, kept, 128] for name in ("past.keys", "past.values")} if kept else {}
    return model(net.nodes, net.constants, {"x": [1, words, 4096], **past}, opset=17)


def mixtral(words: int, experts: int = 8) -> Any:
    """Every expert chooses a fourth of the words, so that each word meets two of eight."""
    net, rows = Graph(), words // 4
    attention = _llama_attention(net, words, 0)
    net.linear("router", attention, 4096, experts)
    net.add("Transpose", "router", "votes", perm=[0, 2, 1])
    net.add("TopK", f"votes {net.numbers('rows', rows)}", "best chosen", axis=-1)
    net.add("Reshape", f"chosen {net.numbers('chosen.shape', experts, rows)}", "places")
    net.add("Reshape", f"{attention} {net.numbers('words.shape', words, 4096)}", "words")
    net.add("Gather", "words places", "sent", axis=0)
    for name, given, inputs, outputs in (("gate", "sent", 4096, 14336), ("up", "sent", 4096, 14336)):
        net.weights(f"experts.{name}.weight", experts, inputs, outputs)
        net.add("MatMul", f"{given} experts.{name}.weight", f"experts.{name}")
    net.add("Mul", "experts.gate experts.up", "gated")
    net.weights("experts.down.weight", experts, 14336, 4096)
    net.add("MatMul", "gated experts.down.weight", "y")
    return model(net.nodes, net.constants, {"x": [1, words, 4096]}, opset=17)


def _encoder(
    net: Graph, given: str, layers: int, words: int, width: int, heads: int, hidden: int, first: bool = False
) -> str:
    """`first`: normalised before the layers, not after their sums."""
    for index in range(layers):
        name = f"layer.{index}"
        normed = net.layer_normed(f"{name}.norm1", given, width) if first else given
        parts = (net.linear(f"{name}.{part}", normed, width, width) for part in ("query", "key", "value"))
        parts = [net.heads(f"{part}.heads", part, words, heads, width // heads) for part in parts]
        joined = net.attended(f"{name}.", *parts, words, width)
        attention = net.add("Add", f"{net.linear(f'{name}.output', joined, width, width)} {given}", f"{name}.attention")
        normed = net.layer_normed(f"{name}.norm{1 + first}", attention, width)
        attention = attention if first else normed
        net.add("Erf", net.linear(f"{name}.up", normed, width, hidden), f"{name}.gelu")
        given = net.add(
            "Add", f"{net.linear(f'{name}.down', f'{name}.gelu', hidden, width)} {attention}", f"{name}.add"
        )
        given = given if first else net.layer_normed(f"{name}.norm2", given, width)
    return given


def bert(layers: int, words: int, width: int, heads: int, hidden: int) -> Any:
    net = Graph()
    net.weights("embedding", 30522, width)
    net.add("Gather", "embedding ids", "x")
    _encoder(net, "x", layers, words, width, heads, hidden)
    return model(net.nodes, net.constants, {"ids": (INT64, ["n", words])}, opset=17)


def vit(side: int = 224, patch: int = 16, width: int = 768) -> Any:
    net, count = Graph(), (side // patch) ** 2
    net.weights("patches.weight", width, 3, patch, patch)
    net.add("Conv", "image patches.weight", "patches", strides=[patch, patch])
    net.add("Reshape", f"patches {net.numbers('flat', 0, width, -1)}", "rows")
    net.add("Transpose", "rows", "columns", perm=[0, 2, 1])
    net.constants["token"] = (1, 1, width)
    net.add("Concat", "token columns", "tokens", axis=1)
    last = _encoder(net, "tokens", 12, count + 1, width, 12, 3072, first=True)
    last = net.layer_normed("norm2", last, width)
    net.constants["zero"] = np.array(0, np.int64)
    net.add("Gather", f"{last} zero", "class", axis=1)
    net.weights("head.weight", width, 1000)
    net.add("MatMul", "class head.weight", "scores")
    return model(net.nodes, net.constants, {"image": ["n", 3, side, side]}, opset=17)
