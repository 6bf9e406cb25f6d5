"""Bits of weights, cache and activations, and the key `word_bits` of layers."""

from __future__ import annotations

from typing import Any

import attrs

from sparsemap.errors import SearchError
from sparsemap.pieces.number_formats import NumberFormat
from sparsemap.problem.widths import Width

SCALE_BITS = 16
"""Bits of a scale shared by a group of weights."""


@attrs.frozen(kw_only=True)
class Widths:
    """Bits per word of a served model, or number formats."""

    weight: Width
    """With the share of a scale."""
    cache: Width
    activation: Width
    hardware: int
    """The hardware's own words."""

    @classmethod
    def of(
        cls, hardware: int, weight: Width | None = None, cache: Width | None = None, activation: Width | None = None,
        group: int | None = None,
    ) -> Widths:  # fmt: skip
        """Widths not given are the hardware's; a cache not given is as wide as activations.

        `group`: weights with a common scale; SearchError with a number format."""
        made, own = hardware if activation is None else activation, hardware if weight is None else weight
        if group and isinstance(own, NumberFormat):
            raise SearchError(f"--group: --weight-bits {own.name} says how many weights share a scale; expected bits")
        if group:
            own = float(own) + SCALE_BITS / group
        return cls(weight=own, cache=made if cache is None else cache, activation=made, hardware=hardware)

    def key(self, first: Width, second: Width, output: Width) -> dict[str, Any]:
        """Key `word_bits` of a layer with these operands: absent for the hardware's words, otherwise a table by tensor."""
        widths = {"P": first, "Q": second, "Z": output}
        bits = {t: one.name if isinstance(one, NumberFormat) else float(one) for t, one in widths.items()}
        return {"word_bits": bits} if set(bits.values()) != {self.hardware} else {}

    def told(self) -> tuple[dict[str, float], dict[str, str]]:
        """Bits of each; and names, of number formats."""
        given: dict[str, Width] = {key: getattr(self, key) for key in ("weight", "cache", "activation")}
        names = {key: one.name for key, one in given.items() if isinstance(one, NumberFormat)}
        return {key: float(one) if isinstance(one, NumberFormat) else one for key, one in given.items()}, names
