"""Bits of weights, cache and activations, and the key `word_bits` of layers."""

from __future__ import annotations

from typing import Any

import attrs

SCALE_BITS = 16
"""Bits of a scale shared by a group of weights."""


@attrs.frozen(kw_only=True)
class Widths:
    """Bits per word of a served model."""

    weight: float
    """With the share of a scale."""
    cache: int
    activation: int
    hardware: int
    """The hardware's own words."""

    @classmethod
    def of(
        cls, hardware: int, weight: int | None = None, cache: int | None = None, activation: int | None = None,
        group: int | None = None,
    ) -> Widths:  # fmt: skip
        """Widths not given are the hardware's; a cache not given is as wide as activations.

        `group`: weights with a common scale."""
        made = hardware if activation is None else activation
        scale = SCALE_BITS / group if group else 0.0
        return cls(
            weight=(hardware if weight is None else weight) + scale, cache=made if cache is None else cache,
            activation=made, hardware=hardware,
        )  # fmt: skip

    def key(self, first: float, second: float, output: float) -> dict[str, Any]:
        """Key `word_bits` of a layer with these operands: absent for the hardware's words, otherwise a table by tensor."""
        bits = {"P": float(first), "Q": float(second), "Z": float(output)}
        return {"word_bits": bits} if set(bits.values()) != {self.hardware} else {}
