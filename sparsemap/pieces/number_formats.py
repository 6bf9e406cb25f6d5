"""Number formats: bits of a word with its part of a shared scale, and the decoder to and from plain words."""

from __future__ import annotations

import attrs

from .contracts import Piece, Technology
from .contracts.base import MOST_BITS

BITS = [attrs.validators.ge(0), attrs.validators.le(MOST_BITS)]


@attrs.frozen(kw_only=True)
class NumberFormat(Piece):
    """Words of a tensor, alone or in blocks with a shared scale; names stand for bits in `word_bits`.

    A block has words as stored: the nonzeros of a compressed tensor. `float(format)` is the bits per word, scales
    included."""

    kind = "number-format"
    type_name = "number-format"
    default_type = "number-format"

    bits: int = attrs.field(validator=[attrs.validators.ge(1), attrs.validators.le(MOST_BITS)])
    """Bits of one word without the scale."""
    block: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Words that share a scale."""
    scale_bits: int = attrs.field(default=0, validator=BITS)
    """Bits of a scale; absent: no scales."""
    add_bits: int = attrs.field(default=0, validator=BITS)
    """Width of the decoder's addition, such as of exponents; absent: none."""
    multiply_bits: int = attrs.field(default=0, validator=BITS)
    """Width of the decoder's multiplication and addition; absent: none."""
    decode_pj: float | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(0)))
    """Energy to decode or encode a word; absent: of the additions and multiplications, by the technology."""

    def __float__(self) -> float:
        return self.bits + self.scale_bits / self.block

    def recode_pj(self, technology: Technology) -> float:
        """pJ to decode a word to a plain word, or to encode a plain word."""
        if self.decode_pj is not None:
            return self.decode_pj
        added = technology.add_pj(self.add_bits) if self.add_bits else 0.0
        return added + (technology.mac_pj(self.multiply_bits, "compute") if self.multiply_bits else 0.0)

    def unit_macs(self, technology: Technology) -> float:
        """Area of a decoder in 16-bit MACs: assumed in proportion to the energy."""
        mac_pj = technology.mac_pj(16, "compute")
        return self.recode_pj(technology) / mac_pj if mac_pj else 0.0
