"""Formats as expressions: the paper's five, and whatever else arithmetic can say (section 6.2).

```toml
kind = "format"                                  # a bit per block of eight positions, which is stored whole or not at all
name = "blocked-bitmask"
compressed = true
block = 8
bits = "fibers * length"
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import attrs

from sparsemap.pieces.contracts import Array, Fiber, Format, Units
from sparsemap.spec.expressions import Expression

COUNT_NAMES = frozenset({"fibers", "length", "occupied", "coord_bits", "offset_bits", "slots", "longest"})
"""What a number of bits or units may depend on: the arrays of `Fiber`."""
WIDTH_NAMES = COUNT_NAMES - {"fibers", "occupied", "longest"}
"""What the width of a unit may depend on: the shape of the fiber, not its occupancy."""
ENCODED_NAMES = COUNT_NAMES | {"runs", "run_bits"}
"""What an encoder's units may depend on besides: run lengths and their width."""


def _expression(names: frozenset[str]) -> Callable[[Any, attrs.Attribute, str], None]:
    """A validator: the text is an expression of these quantities and the spec's `params`."""

    def check(instance: Any, attribute: attrs.Attribute, value: str) -> None:
        if value:
            instance._parse(value, names)

    return check


@attrs.frozen(kw_only=True)
class ExpressionFormat(Format):
    """Metadata of a rank: either `bits`, all of it at once, or units of metadata and payload with their widths.

    Quantities: `fibers` (non-empty fibers of the rank in a tile), `length` (positions per fiber), `occupied` (expected
    non-empty positions per fiber), `slots` (fibers, empty ones included), `coord_bits` and `offset_bits` (bits to name
    a position of the fiber, and a place in the tile below), `longest` (expected non-empty positions of the fullest
    fiber of the tensor, for `padded` formats). With a `block`, the positions are blocks. Functions: `ceil`, `floor`,
    `log2`, `log`, `sqrt`, `exp`, `abs`, `minimum`, `maximum`, and `where(condition, a, b)`. The payload of a rank links
    it to the rank below; the cost model drops it on the innermost rank.
    """

    type_name: ClassVar[str] = "expression"

    compressed: bool
    """Whether empty positions are left out, so that the data below shrinks with the density."""
    params: Mapping[str, float] = attrs.field(factory=dict)
    """Numbers that the expressions may use by name."""
    bits: str = attrs.field(default="", validator=_expression(COUNT_NAMES))
    """Bits of metadata."""
    metadata: str = attrs.field(default="", validator=_expression(COUNT_NAMES))
    """Units of metadata."""
    unit_bits: str = attrs.field(default="0", alias="metadata_bits", validator=_expression(WIDTH_NAMES))
    """Key `metadata_bits`: bits of one unit of metadata."""
    payload: str = attrs.field(default="0", validator=_expression(COUNT_NAMES))
    """Units of payload."""
    payload_bits: str = attrs.field(default="0", validator=_expression(WIDTH_NAMES))
    """Bits of one unit of payload."""
    encoded_units: str = attrs.field(default="", alias="encoded", validator=_expression(ENCODED_NAMES))
    """Key `encoded`: units of metadata that an encoder writes for all fibers that are there; absent: `metadata`. Run
    lengths are `runs`, of `run_bits` each. For the charge `run-lengths`."""
    encoded_bits: str = attrs.field(default="", validator=_expression(WIDTH_NAMES | {"run_bits"}))
    """Bits of one such unit; absent: `metadata_bits`."""

    def __attrs_post_init__(self) -> None:
        if bool(self.bits) == bool(self.metadata):
            found = "both" if self.bits else "neither"
            raise ValueError(f"expected either 'bits' or 'metadata' (with 'metadata_bits'), found {found}")
        if self.bits and (self.unit_bits, self.payload, self.payload_bits) != ("0", "0", "0"):
            raise ValueError("'bits' is all of the metadata; 'metadata_bits' and 'payload' go with 'metadata'")
        if not self.compressed and (self.padded or self.block > 1):
            key = "padded = true" if self.padded else f"block = {self.block}"
            raise ValueError(f"expected 'compressed = true' with '{key}', found 'compressed = false'")
        if self.compressed and self.below_compressed:
            raise ValueError("'below_compressed' is for uncompressed formats: compressed ones may lie anywhere")
        counts = [self._parse(text, COUNT_NAMES) for text in (self.bits, self.metadata, self.payload) if text]
        if not self.padded and any("longest" in count.names for count in counts):
            raise ValueError("'longest' is for padded formats: expected 'padded = true'")

    def metadata_bits(self, fiber: Fiber) -> Array:
        if self.bits:
            return self._value(self.bits, COUNT_NAMES, fiber)
        units = self.units(fiber)
        return units.metadata * units.metadata_bits + units.payload * units.payload_bits

    def units(self, fiber: Fiber) -> Units:
        if self.bits:
            return Units(metadata=self._value(self.bits, COUNT_NAMES, fiber), metadata_bits=1.0)
        return Units(
            metadata=self._value(self.metadata, COUNT_NAMES, fiber),
            metadata_bits=self._value(self.unit_bits, WIDTH_NAMES, fiber),
            payload=self._value(self.payload, COUNT_NAMES, fiber),
            payload_bits=self._value(self.payload_bits, WIDTH_NAMES, fiber),
        )

    def encoded(self, fiber: Fiber) -> Units:
        if not self.encoded_units:
            return self.units(fiber)
        return Units(
            metadata=self._value(self.encoded_units, ENCODED_NAMES, fiber),
            metadata_bits=self._value(
                self.encoded_bits or ("1" if self.bits else self.unit_bits), ENCODED_NAMES, fiber
            ),
            payload=self._value(self.payload, COUNT_NAMES, fiber),
            payload_bits=self._value(self.payload_bits, WIDTH_NAMES, fiber),
        )

    def _parse(self, text: str, names: frozenset[str]) -> Expression:
        return Expression.parse(text, names, self.params)

    def _value(self, text: str, names: frozenset[str], fiber: Fiber) -> Array:
        expression = self._parse(text, names)
        return expression({name: getattr(fiber, name) for name in names & (COUNT_NAMES | expression.names)})
