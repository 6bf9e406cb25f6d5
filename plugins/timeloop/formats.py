"""Which of Timeloop's rank formats a format of SparseMap is: by the metadata that it counts, not by its name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsemap.pieces.contracts import Array, Fiber, Format, Units

CODES: dict[str, Callable[[Fiber], tuple[Array, Array]]] = {
    "B": lambda f: (f.fibers * f.length, f.fibers * np.ceil(f.occupied)),
    "CP": lambda f: (f.fibers * np.ceil(f.occupied), f.fibers * np.ceil(f.occupied)),
    "RLE": lambda f: (f.fibers * f.occupied, f.fibers * f.occupied),
    "UOP": lambda f: (0.0 * f.fibers, f.fibers * (f.length + 1.0)),
}
"""Units of metadata and payload (cost model, section 6.2). Only UOP keeps empty positions; it does so above the others."""
SAMPLES = Fiber(
    fibers=np.array([1.0, 2.5, 3.0, 0.0, 7.25]),
    length=np.array([4.0, 8.0, 3.0, 5.0, 16.0]),
    occupied=np.array([1.2, 8.0, 0.4, 2.0, 9.5]),
    coord_bits=np.array([2.0, 4.0, 2.0, 4.0, 4.0]),
    offset_bits=np.array([4.0, 8.0, 2.0, 4.0, 8.0]),
    slots=np.array([2.0, 3.0, 4.0, 5.0, 8.0]),
)


def code_of(chosen: Format) -> str | None:
    """B, CP, RLE or UOP; None if Timeloop has no such format."""
    units = chosen.units(SAMPLES)
    for code, reference in CODES.items():
        if chosen.compressed == (code != "UOP") and _agrees(units, *reference(SAMPLES)):
            return code
    return None


def _agrees(units: Units, metadata: Array, payload: Array) -> bool:
    """Whether the units are the same wherever they have a width."""
    parts = ((units.metadata, units.metadata_bits, metadata), (units.payload, units.payload_bits, payload))
    return all(np.allclose(np.where(np.asarray(bits) > 0, own - ref, 0.0), 0.0) for own, bits, ref in parts)


def bits_of(chosen: Format, length: float, positions: float, slots: float) -> tuple[float, float]:
    """Bits of one unit of metadata and of payload for a rank: `length` positions per fiber, `slots` fibers in the tile,
    `positions` the product of the lengths of this rank and of all ranks inside."""
    units = chosen.units(Fiber.of(np.ones(1), length, np.ones(1), positions, slots))
    first = (float(np.broadcast_to(bits, (1,))[0]) for bits in (units.metadata_bits, units.payload_bits))
    return next(first), next(first)
