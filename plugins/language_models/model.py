"""Published parameters of a transformer, and the counts that follow from the parameters alone.

```toml
kind = "language-model"
name = "tiny"
layers = 2
hidden = 256
heads = 8
kv_heads = 2
head_size = 32
feed_forward = 1024
vocabulary = 1000
```"""

from __future__ import annotations

import math
from typing import ClassVar

import attrs

from sparsemap.pieces.contracts import Piece

POSITIVE = attrs.validators.ge(1)
FROM_ZERO = attrs.validators.ge(0)


@attrs.frozen(kw_only=True)
class Experts:
    """Feed-forward networks chosen by a router, in place of a single one."""

    count: int = attrs.field(validator=POSITIVE)
    """Routed experts of a block."""
    active: int = attrs.field(validator=POSITIVE)
    """Routed experts per token."""
    size: int = attrs.field(validator=POSITIVE)
    """Inner size of an expert."""
    shared: int = attrs.field(default=0, validator=FROM_ZERO)
    """Experts for every token, without routing."""
    dense_first: int = attrs.field(default=0, validator=FROM_ZERO)
    """First blocks with a single feed-forward network of the model's size instead."""
    loads: tuple[float, ...] = attrs.field(default=(), validator=attrs.validators.deep_iterable(FROM_ZERO))
    """Tokens of each routed expert, in any unit, such as counts of a trace; empty: all equal."""

    def __attrs_post_init__(self) -> None:
        if self.active > self.count:
            raise ValueError(f"active = {self.active}, expected at most count = {self.count}")
        if self.loads and len(self.loads) != self.count:
            raise ValueError(f"loads has {len(self.loads)} numbers, expected count = {self.count}")
        whole, most = math.fsum(self.loads), max(self.loads, default=0.0)
        if self.loads and not 0.0 < most * self.active <= whole * (1.0 + 1e-9) < math.inf:
            told = f"loads[{self.loads.index(most)}] is {most:g} of {whole:g}"
            raise ValueError(f"{told}, expected more than 0, and of all at most 1 / active = {1 / self.active:.3g}")


@attrs.frozen(kw_only=True)
class Latent:
    """Latent attention: keys and values of all heads are projections of one short row, which the cache holds."""

    kv_rank: int = attrs.field(validator=POSITIVE)
    """Size of the row of keys and values."""
    query_rank: int = attrs.field(default=0, validator=FROM_ZERO)
    """Size of the row of queries; 0: queries are projected directly."""
    rope: int = attrs.field(validator=POSITIVE)
    """Size of the rotated part of a key, stored beside the row and shared by all heads."""
    value_size: int = attrs.field(validator=POSITIVE)
    """Size of a value per head; `head_size` is the unrotated part of a key."""


@attrs.frozen(kw_only=True)
class Image:
    """An image in place of a prompt."""

    size: int = attrs.field(validator=POSITIVE)
    """Rows and columns of the image."""
    patch: int = attrs.field(validator=POSITIVE)
    """Rows and columns of a patch, a token each."""
    channels: int = attrs.field(default=3, validator=POSITIVE)
    """Colours of a pixel."""
    classes: int = attrs.field(validator=POSITIVE)
    """Outputs of the head."""

    def __attrs_post_init__(self) -> None:
        if self.size % self.patch:
            raise ValueError(f"patch = {self.patch} does not divide size = {self.size}")

    @property
    def tokens(self) -> int:
        """Patches and a class token."""
        return (self.size // self.patch) ** 2 + 1


@attrs.frozen(kw_only=True)
class LanguageModel(Piece):
    """A transformer by its published parameters.

    All blocks have norms, attention and a feed-forward network, or experts; equal blocks are searched once and counted
    `layers` times."""

    kind: ClassVar[str] = "language-model"
    type_name: ClassVar[str] = "language-model"
    default_type: ClassVar[str] = "language-model"

    layers: int = attrs.field(validator=POSITIVE)
    """Blocks."""
    hidden: int = attrs.field(validator=POSITIVE)
    """Size of a token between blocks."""
    heads: int = attrs.field(validator=POSITIVE)
    """Heads of queries."""
    kv_heads: int = attrs.field(default=0, validator=FROM_ZERO)
    """Heads of keys and values; 0: one for each head of queries."""
    head_size: int = attrs.field(default=0, validator=FROM_ZERO)
    """Size of a head; 0: `hidden` over `heads`."""
    feed_forward: int = attrs.field(validator=POSITIVE)
    """Inner size of the feed-forward network."""
    gated: bool = True
    """Whether a third matrix gates the inner words, by SiLU; otherwise they pass GELU."""
    vocabulary: int = attrs.field(default=0, validator=FROM_ZERO)
    """Tokens with an embedding; 0: none, as for images."""
    tied: bool = False
    """Whether the head multiplies by the embedding."""
    positions: int = attrs.field(default=0, validator=FROM_ZERO)
    """Learned embeddings of positions and segments."""
    encoder: bool = False
    """Whether the model reads whole sequences, without cache, head and decoding."""
    window: int = attrs.field(default=0, validator=FROM_ZERO)
    """Last tokens seen by a token; 0: all."""
    experts: Experts | None = None
    """Experts of the blocks; absent: a feed-forward network."""
    latent: Latent | None = None
    """Latent attention; absent: keys and values per head."""
    image: Image | None = None
    """Image of a vision encoder; absent: tokens of text."""

    def __attrs_post_init__(self) -> None:
        if not self.head_size and self.hidden % self.heads:
            raise ValueError(f"heads = {self.heads} does not divide hidden = {self.hidden}; give head_size")
        if self.heads % self.key_heads:
            raise ValueError(f"kv_heads = {self.kv_heads} does not divide heads = {self.heads}")
        if self.experts and self.experts.dense_first > self.layers:
            raise ValueError(
                f"experts.dense_first = {self.experts.dense_first}, expected at most layers = {self.layers}"
            )
        if self.encoder and (self.latent or self.window):
            raise ValueError("encoder = true, expected neither latent attention nor a window")
        if self.image and not self.encoder:
            raise ValueError("image is for an encoder, expected encoder = true")
        if not self.image and not self.vocabulary:
            raise ValueError("vocabulary is missing, expected tokens, or an image")

    @property
    def key_heads(self) -> int:
        return self.kv_heads or self.heads

    @property
    def head(self) -> int:
        """Words of a head."""
        return self.head_size or self.hidden // self.heads

    @property
    def cache_words(self) -> int:
        """Words of keys and values per token and block; 0 for an encoder."""
        if self.encoder:
            return 0
        return self.latent.kv_rank + self.latent.rope if self.latent else 2 * self.key_heads * self.head

    def seen(self, context: int) -> int:
        """Tokens seen by the last of `context` tokens."""
        return min(context, self.window) if self.window else context

    @property
    def embeddings(self) -> int:
        """Weights of tables read by row, and of a head of its own."""
        tables = 1 if self.tied or self.encoder else 2
        classes = self.image.classes * self.hidden if self.image else 0
        patches = self.image.channels * self.image.patch**2 * self.hidden if self.image else 0
        return (tables * self.vocabulary + self.positions) * self.hidden + classes + patches

    @property
    def block_weights(self) -> dict[bool, int]:
        """Weights of a block, by whether the block has experts."""
        hidden, matrices = self.hidden, 3 if self.gated else 2
        found = {False: matrices * hidden * self.feed_forward}
        if self.experts:
            every = self.experts.count + self.experts.shared
            found[True] = matrices * hidden * self.experts.size * every + hidden * self.experts.count
        return {routed: self._attention_weights + words for routed, words in found.items()}

    @property
    def _attention_weights(self) -> int:
        hidden, latent = self.hidden, self.latent
        if latent is None:
            return hidden * self.head * 2 * (self.heads + self.key_heads)
        queries = self.heads * (self.head + latent.rope)
        query = latent.query_rank * (hidden + queries) if latent.query_rank else hidden * queries
        keys = latent.kv_rank * self.heads * (self.head + latent.value_size)
        return query + hidden * (latent.kv_rank + latent.rope) + keys + self.heads * latent.value_size * hidden

    @property
    def blocks(self) -> dict[bool, int]:
        """Number of blocks, by whether the blocks have experts; without kinds that the model lacks."""
        dense = self.experts.dense_first if self.experts else self.layers
        return {routed: count for routed, count in ((False, dense), (True, self.layers - dense)) if count}

    @property
    def parameters(self) -> int:
        """Weights of all matrices; norms and biases are left out."""
        return self.embeddings + sum(count * self.block_weights[routed] for routed, count in self.blocks.items())
