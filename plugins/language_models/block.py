"""The layers of a block: attention, and a feed-forward network or experts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import attrs

from sparsemap.problem.widths import Width

from .model import LanguageModel
from .points import DECODE, PREFILL, Point
from .widths import Widths

CACHE = ("cache", "keys", "values", "latents", "rank")
"""Operations that move rows of the cache."""
CACHED = {"scores": "Q", "context": "Q", "k_proj": "Z", "v_proj": "Z", "kv_a": "Z"}
"""By layer, the tensor with rows of the cache."""


@attrs.define
class BlockLayers:
    """The layers of a block, added one by one."""

    model: LanguageModel
    point: Point
    widths: Widths
    layers: list[dict[str, Any]] = attrs.field(factory=list)

    def of(self, routed: bool) -> list[dict[str, Any]]:
        model = self.model
        self.add("norm1", "norm", "input")
        made = self.latent_attention() if model.latent else self.attention()
        value_size = model.latent.value_size if model.latent else model.head
        self.linear("o_proj", made, model.heads * value_size, model.hidden)
        self.add("attention", "add", "o_proj", "input")
        self.add("norm2", "norm", "attention")
        ends = self.experts() if routed else [self.feed_forward("", "norm2", model.feed_forward)]
        self.add("add", "add", *ends, "attention")
        return self.layers

    # -- attention

    def attention(self) -> str:
        model, point = self.model, self.point
        size, heads = model.head, model.key_heads
        self.linear("q_proj", "norm1", model.hidden, model.heads * size)
        for name in ("k_proj", "v_proj"):
            self.linear(name, "norm1", model.hidden, heads * size, output=self.widths.cache)
        if point.phase == PREFILL:
            return self.outside("context", model.heads * size)
        tokens = 1 if point.phase == DECODE else point.tokens
        keys, values = (self.stored(name, made) for name, made in (("keys", "k_proj"), ("values", "v_proj")))
        self.cached("k_proj", "v_proj", words=2 * heads * size)
        rows, seen = model.heads // heads * tokens, model.seen(point.tokens)
        self.layers += products(self.widths, point.batch * heads, rows, size, seen, size, ("q_proj", keys, values))
        return "context"

    def stored(self, name: str, made: str) -> str:
        """The name of all rows that a token sees: in decode the new rows stand behind earlier rows of the cache."""
        earlier = self.point.batch * (self.model.seen(self.point.tokens) - 1)
        return self.add(name, "prepend", made, rows=earlier) if self.point.phase == DECODE and earlier else made

    def latent_attention(self) -> str:
        """Decode multiplies queries and contexts, in place of every cached row, by the matrices of keys and values."""
        model, point, latent = self.model, self.point, self.model.latent
        assert latent is not None
        heads, size, rows = model.heads, model.head, point.rows
        rank, row = latent.kv_rank, latent.kv_rank + latent.rope
        given, width = "norm1", model.hidden
        if latent.query_rank:
            given, width = self.linear("q_a", "norm1", model.hidden, latent.query_rank), latent.query_rank
        self.linear("q_proj", given, width, heads * (size + latent.rope))
        self.linear("kv_a", "norm1", model.hidden, row, output=self.widths.cache)
        self.cached("kv_a", words=row)
        if point.phase == PREFILL:
            self.add("rank", "view", "kv_a", shape=shape(rows, rank))
            self.linear("kv_b", "rank", rank, heads * (size + latent.value_size))
            return self.outside("context", heads * latent.value_size)
        seen, latents = model.seen(point.tokens), self.stored("latents", "kv_a")
        self.add("unrotated", "view", "q_proj", shape=[heads, rows, size])
        self.linear("absorbed", "unrotated", size, rank, rows=rows, groups=heads)
        self.add("queries", "view", "absorbed", "q_proj", shape=[heads, rows, row])
        self.add("rank", "view", latents, shape=shape(point.batch * seen, rank))
        given_by = ("queries", latents, "rank")
        self.layers += products(self.widths, point.batch, heads, row, seen, rank, given_by)
        return self.linear("v_up", "context", rank, latent.value_size, rows=rows, groups=heads)

    def outside(self, name: str, words: int) -> str:
        """Rows that another part made."""
        return self.add(name, "outside", shape=shape(self.point.rows, words))

    def cached(self, *made: str, words: int) -> None:
        """New rows of the cache, written to the outermost level."""
        if self.model.cache_words:
            self.add("cache", "view", *made, shape=shape(self.point.rows, words))

    # -- feed-forward

    def feed_forward(self, prefix: str, given: str, size: int, rows: int = 0, groups: int = 1) -> str:
        how = {"rows": rows or self.point.rows, "groups": groups}
        if self.model.gated:
            self.linear(f"{prefix}gate_proj", given, self.model.hidden, size, **how)
        activation: dict[str, Any] = {} if self.model.gated else {"activation": "gelu"}
        self.linear(f"{prefix}up_proj", given, self.model.hidden, size, **how, **activation)
        made = f"{prefix}up_proj"
        if self.model.gated:
            made = self.add(f"{prefix}gated", "multiply", f"{prefix}gate_proj", made, silu=True)
        return self.linear(f"{prefix}down_proj", made, size, self.model.hidden, **how)

    def experts(self) -> list[str]:
        """Outputs to add: of the routed experts, and of shared experts as one feed-forward network."""
        experts, hidden, rows = self.model.experts, self.model.hidden, self.point.rows
        assert experts is not None
        busy = spread(rows * experts.active, experts.loads or (1,) * experts.count)
        self.linear("router", "norm2", hidden, experts.count, density={"Q": 1.0})
        made, several = list[str](), len(busy) > 1
        sizes = [sum(each * count for each, count in busy.items())] if several else [*busy.values(), *busy]
        self.add("sent", "transform", "norm2", "router", shape=[*sizes, hidden])
        for each, count in busy.items():
            own = f"-{each}" if several else ""
            sent = self.add(f"sent{own}", "view", "sent", shape=[count, each, hidden]) if several else "sent"
            made.append(self.feed_forward(f"experts{own}.", sent, experts.size, each, count))
        found = [self.add("mixed", "transform", *made, "router", shape=shape(rows, hidden))]
        if experts.shared:
            found.append(self.feed_forward("shared.", "norm2", experts.shared * experts.size))
        return found

    # -- layers

    def add(self, name: str, type_name: str, *inputs: str, **keys: Any) -> str:
        self.layers.append({"name": name, "type": type_name, "inputs": list(inputs), **keys})
        return name

    def linear(
        self, name: str, given: str, k: int, n: int, rows: int = 0, groups: int = 1, output: Width | None = None, **own: Any
    ) -> str:  # fmt: skip
        widths = self.widths
        made = widths.activation if output is None else output
        about: dict[str, Any] = {"m": rows or self.point.rows, "k": k, "n": n, "groups": groups}
        return self.add(name, "linear", given, **about, **own, **widths.key(widths.activation, widths.weight, made))


def products(
    widths: Widths, h: int, m: int, k: int, seen: int, value: int, given: tuple[str, str, str], own: str = ""
) -> list[dict[str, Any]]:
    """Scores, softmax and context of `given` queries, keys and values; `own`: end of the names."""
    bits = widths.key(widths.activation, widths.cache, widths.activation)
    scores = {"name": f"scores{own}", "type": "matmul", "h": h, "m": m, "k": k, "n": seen, "inputs": list(given[:2])}
    softmax = {"name": f"softmax{own}", "type": "softmax", "inputs": [f"scores{own}"]}
    context = {"name": f"context{own}", "type": "matmul", "h": h, "m": m, "k": seen, "n": value}
    return [scores | bits, softmax, {**context, "inputs": [f"softmax{own}", given[2]]} | bits]


def shape(rows: int, columns: int) -> list[int]:
    return [rows, columns] if rows > 1 else [columns]


def spread(rows: int, loads: Sequence[float]) -> dict[int, int]:
    """Number of experts by rows of each, for `rows` spread by the experts' loads, rounded up: the busiest first, as few
    experts as hold the rows."""
    exact = [Fraction(repr(load)) for load in sorted(loads, reverse=True)]  # 0.1 is a tenth
    found, left, whole = Counter[int](), rows, sum(exact)
    for load in exact:
        if left > 0:
            each = math.ceil(rows * load / whole)
            found[each], left = found[each] + 1, left - each
    return dict(found)
