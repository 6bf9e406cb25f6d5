"""What the reasons of the analytic model mean, for reports."""

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
"""By what stands before the colon of a reason."""


def meaning_of(reason: str) -> str:
    """Of a reason by name, such as `capacity:GLB`."""
    return MEANINGS[reason.partition(":")[0]]
