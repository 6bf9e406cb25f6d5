"""Meanings of the analytic model's reasons, for reports."""

from __future__ import annotations

MEANINGS = {
    "factors": "loop bounds do not multiply up to the size",
    "fanout": "more parallel loops than instances below",
    "format-order": "an uncompressed rank below a compressed one, or one whose ends nobody tells",
    "entry-bits": "fields of its metadata have too few bits for a rank so long",
    "slides": "the outermost loop is not the one along which a tensor slides by",
    "mechanism": "skips by a tensor that has no metadata, or packs positions that it cannot",
    "decoding": "decoded on its way into a level that cannot",
    "streaming": "compressed where it streams through a level",
    "capacity": "holds too little",
    "metadata-capacity": "holds too little metadata",
    "operand-probability": 'Timeloop stops with "illegal operand probability" (Q9)',
}
"""Meaning by the part of a reason before the colon."""


def meaning_of(reason: str) -> str:
    """Meaning of a reason by name, for example `capacity:GLB`."""
    return MEANINGS[reason.partition(":")[0]]
