"""Networks of a served model: each kind of block once, with its count, and what stands before and behind the blocks.

Prefill reads whole prompts and writes their rows of the cache; decode reads the cache and writes a row per sequence.
Rows of all sequences are rows of one product; each sequence has products of its own in attention. Prefill runs one head
of keys after the other, and chunks of queries, each with the keys up to its end, for long prompts in blocks: only a
block of keys and values, and some rows of scores, need room on chip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs

from .block import BlockLayers, products, shape
from .model import Image, LanguageModel
from .points import PREFILL, Point
from .widths import Widths

CHUNKS = 8
"""Most chunks of queries of a prompt without a window: eight do 9/16 of the square of scores, where half is needed."""
EVEN = 64
"""Divisor of unequal chunks: multiples tile well."""
BLOCK = 2048
"""Fewest keys of a block: from chunks of so many queries on, softmax goes over blocks of as many keys, one by one."""


@attrs.frozen
class Part:
    """A network that runs `count` times in a step."""

    name: str
    count: int
    table: dict[str, Any]
    cached: bool = True
    """Whether keys and values are rows of the cache."""


def parts_of(model: LanguageModel, point: Point, widths: Widths, density: Any = 1.0) -> list[Part]:
    """The networks of a step in order. `density`: of the weights of blocks, without routers.

    The embedding is a gather: the first block reads rows of the table in place of rows of another block."""
    found = [Part("patches", 1, _patches(model.image, model, point, widths))] if model.image else []
    for routed, count in model.blocks.items():
        name = "expert-block" if routed else "block"
        layers = BlockLayers(model, point, widths).of(routed)
        table = _network(model, name, layers, shape(point.rows, model.hidden))
        table |= {"defaults": {"linear": {"density": {"Q": density}}}} if density != 1.0 else {}
        found.append(Part(name, count, table))
    if point.phase == PREFILL:
        found += _attention(model, point, widths)
    outputs = model.image.classes if model.image else 0 if model.encoder else model.vocabulary
    if outputs:
        found.append(Part("head", 1, _head(model, point, widths, outputs)))
    return found


def _network(model: LanguageModel, name: str, layers: Sequence[dict[str, Any]], given: Sequence[int]) -> dict[str, Any]:
    return {"name": f"{model.name}-{name}", "input": list(given), "layers": list(layers)}


def _patches(image: Image, model: LanguageModel, point: Point, widths: Widths) -> dict[str, Any]:
    side, size = image.size // image.patch, image.patch
    bits = widths.key(widths.activation, widths.weight, widths.activation)
    about = {"k": model.hidden, "c": image.channels, "p": side, "q": side, "r": size, "s": size, "stride": size}
    layers = [{"name": "patches", "type": "conv2d", **about, **bits}, {"name": "tokens", "type": "prepend", "rows": 1}]
    given = (image.channels, image.size, image.size)
    return _network(model, "patches", layers, given) | {"batch": point.batch}


def _attention(model: LanguageModel, point: Point, widths: Widths) -> list[Part]:
    """Attention of the queries that share a head of keys: a part for each chunk of queries with as many keys."""
    heads, every = model.layers * point.batch * model.key_heads, chunks(point.tokens, model.window)
    found, first = list[Part](), every[0][0]
    for (queries, seen), times in Counter(every).items():
        block = first if first >= BLOCK and not model.window else seen
        keys = [min(block, seen - start) for start in range(0, seen, block)]
        name = f"attention-{seen}" if len(set(every)) > 1 else "attention"
        found.append(_attended(model, widths, name, heads * times, queries, keys))
    return found


def _attended(model: LanguageModel, widths: Widths, name: str, count: int, queries: int, keys: Sequence[int]) -> Part:
    """A chunk of queries with all keys seen, in blocks: each further block rescales and adds to the context so far
    (online softmax: Milakov and Gimelshein, 2018; Dao et al., FlashAttention, 2022)."""
    latent, group = model.latent, model.heads // model.key_heads
    size, value = (model.head + latent.rope, latent.value_size) if latent else (model.head, model.head)
    layers, made = list[dict[str, Any]](), ""
    for turn, own_keys in enumerate(keys, 1):
        own = f"-{turn}" if len(keys) > 1 else ""
        layers += [
            {"name": f"keys{own}", "type": "outside", "shape": [own_keys, size], "inputs": []},
            {"name": f"values{own}", "type": "outside", "shape": [own_keys, value], "inputs": []},
            *products(widths, 1, group * queries, size, own_keys, value, ("input", f"keys{own}", f"values{own}"), own),
        ]
        if made:
            given = [f"context{own}", made]
            layers.append({"name": f"sum{own}", "type": "add", "scaled": True, "inputs": given})
        made = layers[-1]["name"]
    table = _network(model, name, layers, (group * queries, size))
    return Part(name, count, table, cached=latent is None)


def _head(model: LanguageModel, point: Point, widths: Widths, outputs: int) -> dict[str, Any]:
    """The head, for the last token of each sequence."""
    bits = widths.key(widths.activation, widths.weight, widths.activation)
    head = {"name": "head", "type": "linear", "m": point.batch, "k": model.hidden, "n": outputs, **bits}
    return _network(model, "head", [{"name": "norm", "type": "norm"}, head], shape(point.batch, model.hidden))


def chunks(tokens: int, window: int) -> list[tuple[int, int]]:
    """Queries of each chunk of a prompt, and the keys that it sees: all before the chunk, and the chunk itself.

    Without a window, up to `CHUNKS` chunks; with one, a chunk sees itself and the chunk before. Chunks are equal where a
    divisor of the prompt allows; otherwise the last one is shorter."""
    if window and window < tokens:
        divisors = (d for d in range(window, min(2 * window, tokens) + 1) if tokens % d == 0)
        chunk = next(divisors, window)
    elif tokens % CHUNKS == 0 or tokens < CHUNKS * EVEN:
        chunk = -(-tokens // CHUNKS)
    else:
        chunk = -(-tokens // (CHUNKS * EVEN)) * EVEN
    every = [(min(chunk, tokens - start), start) for start in range(0, tokens, chunk)]
    windowed = bool(window) and window < tokens
    return [(queries, queries + (min(start, chunk) if windowed else start)) for queries, start in every]
