"""The built-in transformers. Attention is a product per head of keys; heads of queries that share one are further rows."""

from __future__ import annotations

from network_graph import Graph

SOURCES = {
    "bert-large": "Devlin et al., 2018, BERT-large with 512 words; attention as products per head",
    "bert-base": "Devlin et al., 2018, BERT-base with 512 words; attention as products per head",
    "vit-b-16": "Dosovitskiy et al., 2021, ViT-Base with patches of 16 x 16; attention as products per head",
    "mixtral-8x7b-prefill": "Jiang et al., 2024, Mixtral 8x7B; that all experts are alike busy is assumed",
    **dict.fromkeys(("llama3-8b-prefill", "llama3-8b-decode"), "Grattafiori et al., 2024, Llama 3 8B"),
}
ENCODER = "layers of its encoder on 512 words: 6 products with weights, 2 of attention each"
DESCRIPTIONS = {
    "bert-large": f"BERT-large, the 24 {ENCODER}",
    "bert-base": f"BERT-base, the 12 {ENCODER}",
    "vit-b-16": "ViT-B/16 on images of 224 x 224: 196 patches and a class token, 12 layers of an encoder",
    "llama3-8b-prefill": "One of the 32 blocks of Llama 3 8B, reading 2,048 words; scores that the mask hides are counted",
    "llama3-8b-decode": "One of the 32 blocks of Llama 3 8B, writing word 2,048; keys and values of the others are kept",
    "mixtral-8x7b-prefill": "One of the 32 blocks of Mixtral 8x7B, reading 2,048 words, two of its eight experts each",
}


def _attend(net: Graph, prefix: str, heads: int, rows: int, width: int, queries: str, keys: str, values: str) -> str:
    """Scores and context of `rows` queries for each of `heads` heads of keys."""
    words = net.shapes[keys][0]
    sizes = {"h": heads, "m": rows, "k": width, "n": words}
    scores = net.add(f"{prefix}scores", "matmul", (heads, rows, words), (queries, keys), **sizes)
    scores = net.rowwise(f"{prefix}softmax", "softmax")
    sizes |= {"k": words, "n": width}
    return net.add(f"{prefix}context", "matmul", (heads, rows, width), (scores, values), **sizes)


def encoder(net: Graph, layers: int, words: int, width: int, heads: int, hidden: int, first: bool = False) -> Graph:
    """`first`: what enters attention and the two layers after it is normalised, not their sums."""

    def norm(name: str, normed: bool) -> str:
        return net.rowwise(name, "norm") if normed else net.at

    before = net.at
    for index in range(layers):
        name = f"layer.{index}"
        given = norm(f"{name}.norm1", first)
        of = {key: net.linear(f"{name}.{key}", width, width, words, given) for key in ("query", "key", "value")}
        _attend(net, f"{name}.", heads, words, width // heads, *of.values())
        net.sum(f"{name}.attention", net.linear(f"{name}.output", width, width, words), before)
        attention = net.at if first else norm(f"{name}.norm1", True)
        net.linear(f"{name}.up", hidden, width, words, norm(f"{name}.norm2", first), "gelu")
        net.sum(f"{name}.add", net.linear(f"{name}.down", width, hidden, words), attention)
        before = norm(f"{name}.norm2", not first)
    return net


def vit() -> Graph:
    net, width = Graph((3, 224, 224)), 768
    net.conv("patches", width, 16, stride=16, pad=0)
    net.add("tokens", "prepend", (197, width), (net.at,), rows=1)
    encoder(net, 12, 197, width, 12, 3072, first=True)
    net.rowwise("norm", "norm")
    net.add("token", "take", (width,), (net.at,))
    net.linear("head", 1000, width)
    return net


WIDTH, HIDDEN, KEY_HEADS, SHARING, EACH = 4096, 14336, 8, 4, 128
"""Of Llama 3 8B, and of Mixtral 8x7B as well: 4 heads of queries share one of keys and values."""


def _attention(net: Graph, words: int, kept: int) -> str:
    given = net.rowwise("norm1", "norm")
    queries = net.linear("q_proj", WIDTH, WIDTH, words, given)
    found = []
    for name, rows in (("k_proj", "keys"), ("v_proj", "values")):
        found.append(net.linear(name, KEY_HEADS * EACH, WIDTH, words, given))
        if kept:
            found[-1] = net.add(rows, "prepend", (kept + words, KEY_HEADS * EACH), (net.at,), rows=kept)
    _attend(net, "", KEY_HEADS, SHARING * words, EACH, queries, *found)
    return net.linear("o_proj", WIDTH, WIDTH, words)


def llama(words: int, kept: int) -> Graph:
    """A block that reads `words`, after `kept` others."""
    net = Graph((words, WIDTH) if words > 1 else (WIDTH,))
    attention = net.sum("attention", _attention(net, words, kept), "input")
    given = net.rowwise("norm2", "norm")
    gate = net.linear("gate_proj", HIDDEN, WIDTH, words)
    up = net.linear("up_proj", HIDDEN, WIDTH, words, given)
    net.add("gated", "multiply", net.shapes[up], (gate, up), silu=True)
    net.sum("add", net.linear("down_proj", WIDTH, HIDDEN, words), attention)
    return net


def mixtral(words: int, experts: int = 8, chosen: int = 2) -> Graph:
    """Data choose the rows of each expert, so that what is sent to them and comes back is a step of its own."""
    net, rows = Graph((words, WIDTH)), words * chosen // experts
    attention = net.sum("attention", _attention(net, words, 0), "input")
    normed = net.rowwise("norm2", "norm")
    router = net.linear("router", experts, WIDTH, words)
    sent = net.add("sent", "transform", (experts, rows, WIDTH), (normed, router), shape=[experts, rows, WIDTH])
    experts_of = {"m": rows, "groups": experts}
    for name, n, k in (("gate", HIDDEN, WIDTH), ("up", HIDDEN, WIDTH)):
        net.add(f"experts.{name}", "linear", (experts, rows, n), (sent,), k=k, n=n, **experts_of)
    net.add("gated", "multiply", (experts, rows, HIDDEN), ("experts.gate", "experts.up"), silu=True)
    net.add("experts.down", "linear", (experts, rows, WIDTH), (net.at,), k=HIDDEN, n=WIDTH, **experts_of)
    net.add("mixed", "transform", (words, WIDTH), ("experts.down", router), shape=[words, WIDTH])
    net.sum("add", "mixed", attention)
    return net


GRAPHS = {
    "bert-large": lambda: encoder(Graph((512, 1024)), 24, 512, 1024, 16, 4096),
    "bert-base": lambda: encoder(Graph((512, 768)), 12, 512, 768, 12, 3072),
    "vit-b-16": vit,
    "llama3-8b-prefill": lambda: llama(2048, 0),
    "llama3-8b-decode": lambda: llama(1, 2047),
    "mixtral-8x7b-prefill": lambda: mixtral(2048),
}
