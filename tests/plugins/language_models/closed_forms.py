"""Counts of language models by hand, from the publications alone: nothing here is imported from the plugin."""

from __future__ import annotations

import math


def grouped(layers, hidden, heads, kv_heads, head, inner, matrices=3, experts=1, active=1, router=0):
    """Weights of all blocks, weights met by a token, words of cache per token, and products per pair of tokens."""
    attention = hidden * head * (2 * heads + 2 * kv_heads) + hidden * router
    one = matrices * hidden * inner
    cache, pair = layers * 2 * kv_heads * head, layers * 2 * heads * head
    return layers * (attention + experts * one), layers * (attention + active * one), cache, pair


def deepseek_v2_lite():
    """27 blocks, the first dense; each token meets 6 of 64 experts and 2 shared experts; a cache of 512 + 64 words."""
    attention = 2048 * 16 * 192 + 2048 * 576 + 512 * 16 * 256 + 16 * 128 * 2048
    dense, expert = 3 * 2048 * 10944, 3 * 2048 * 1408
    every = 27 * attention + dense + 26 * (66 * expert + 2048 * 64)
    met = 27 * attention + dense + 26 * (8 * expert + 2048 * 64)
    return every, met, 27 * 576, 27 * 16 * (192 + 128), 27 * 16 * (576 + 512)


PUBLISHED = {
    "llama3-8b": 8.03e9, "llama3-70b": 70.6e9, "qwen3-8b": 8.2e9, "mixtral-8x7b": 46.7e9, "mistral-7b-v0.1": 7.24e9,
    "deepseek-v2-lite": 15.7e9, "bert-base-uncased": 109.5e6, "vit-base-patch16": 86.6e6,
}  # fmt: skip
"""Parameters as published."""

GROUPED = {
    "llama3-8b": (32, 4096, 32, 8, 128, 14336),
    "llama3-70b": (80, 8192, 64, 8, 128, 28672),
    "qwen3-8b": (36, 4096, 32, 8, 128, 12288),
    "mistral-7b-v0.1": (32, 4096, 32, 8, 128, 14336),
}
HEADS = {
    "llama3-8b": 128256 * 4096, "llama3-70b": 128256 * 8192, "qwen3-8b": 151936 * 4096, "mistral-7b-v0.1": 32000 * 4096,
    "mixtral-8x7b": 32000 * 4096, "deepseek-v2-lite": 102400 * 2048,
}  # fmt: skip
"""Weights of the head, and of the embedding."""
MIXTRAL = (32, 4096, 32, 8, 128, 14336, 3, 8, 2, 8)


def counts(name, tokens, batch, phase):
    """MACs, weights read and words of cache of a step; `tokens` are a prompt or a context."""
    seen = min(tokens, 4096) if name == "mistral-7b-v0.1" else tokens
    if name == "deepseek-v2-lite":
        _, met, cache, pair, absorbed = deepseek_v2_lite()
        pair = absorbed if phase == "decode" else pair
        busy = min(64, 6 * batch) if phase == "decode" else 64
        weights = met + 26 * (busy - 6) * 3 * 2048 * 1408
    elif name == "mixtral-8x7b":
        _, met, cache, pair = grouped(*MIXTRAL)
        busy = min(8, 2 * batch) if phase == "decode" else 8
        weights = met + 32 * (busy - 2) * 3 * 4096 * 14336
    else:
        weights, met, cache, pair = grouped(*GROUPED[name])
    head = HEADS[name]
    if phase == "decode":
        return batch * (met + head + pair * seen), weights + head, batch * cache * seen
    chunk = tokens // max(d for d in range(1, 9) if tokens % d == 0)  # a chunk meets all words up to its end
    pairs = chunk * sum(range(chunk, tokens + 1, chunk))
    return batch * (tokens * met + pair * pairs + head), weights + head, batch * cache * tokens


def least_seconds(macs, weight_bytes, cache_bytes, multipliers, hertz, bytes_per_s):
    """Least seconds: of all multipliers at work, and of weights and cache at the bandwidth."""
    return max(macs / multipliers / hertz, math.fsum([weight_bytes, cache_bytes]) / bytes_per_s)
