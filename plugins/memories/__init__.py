"""Memory levels: off-chip DRAM, on-chip SRAM and register files.

Each type has its own energy table in a technology (`Level.memory_class`)."""

from typing import ClassVar

import attrs

from sparsemap import hookimpl
from sparsemap.pieces.contracts import MemoryLevel

IDLE = ("open", "power-down", "self-refresh")


@attrs.frozen(kw_only=True)
class Dram(MemoryLevel):
    """Off-chip memory; usually unlimited in capacity and limited in bandwidth."""

    type_name: ClassVar[str] = "dram"

    standard: str = "lpddr4"
    """Off-chip energy of the technology, such as "lpddr4" or "hbm2"."""
    idle: str = attrs.field(default="power-down", validator=attrs.validators.in_(IDLE))
    """State of the channels between transfers, for the charge `leakage`: `open` banks, `power-down`, or `self-refresh`.
    The power of open banks during transfers is part of the energy per bit."""


class Sram(MemoryLevel):
    """On-chip static RAM."""

    type_name: ClassVar[str] = "sram"


class RegisterFile(MemoryLevel):
    """Registers or a scratchpad of a few words next to the compute units."""

    type_name: ClassVar[str] = "regfile"


@hookimpl
def register_memory_levels():
    return [Dram, Sram, RegisterFile]
