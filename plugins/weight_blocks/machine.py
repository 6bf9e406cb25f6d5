"""A mesh of cores with memory tiles from a hardware spec, and the types of memory with their keys."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import attrs

from sparsemap.errors import SpecError
from sparsemap.pieces.contracts import MemoryLevel
from sparsemap.pieces.data_specs import Hardware
from sparsemap.problem.levels import levels_of
from sparsemap.spec import units

from .layers import BLOCK, Block, round_up

POSITIVE = attrs.validators.ge(1)
MOST_BYTES = 1 << 32
"""Limit of all memories of a machine together, for a simulation."""


@attrs.frozen(kw_only=True)
class MemTile(MemoryLevel):
    """A memory tile at the head of a column of cores; keeps activations and weights. One per column."""

    type_name: ClassVar[str] = "memtile"

    load: str = "4 GB/s"
    """Channel of activations from DDR."""
    load_weights: str = "4 GB/s"
    """Channel of weights from DDR, in parallel with the activations."""
    write: str = "8 GB/s"
    """Channel to DDR."""
    alignment: int = attrs.field(default=32, validator=attrs.validators.ge(1))
    """Alignment of tensors in bytes."""


@attrs.frozen(kw_only=True)
class Aie2Core(MemoryLevel):
    """The memory of a core: buffers for inputs, outputs and weights, and temporaries."""

    type_name: ClassVar[str] = "aie-core"

    load: str = "4 GB/s"
    """Activations from the memory tile, broadcast to the cores of a column."""
    load_weights: str = "4 GB/s"
    """Weights from a memory tile, broadcast to the cores of a row."""
    write: str = "4 GB/s"
    """Outputs to the memory tile, of all cores of a column together."""
    input_buffer: str = "8 KiB"
    """Each of two: the mesh fills a buffer while a core reads the other."""
    output_buffer: str = "8 KiB"
    """Each of two."""
    weight_buffer: str = "16 KiB"
    """One."""
    index: Literal["u16", "bitmap"] = "u16"
    """Bits of the index of a record per block position: 16 or 1."""
    block: tuple[int, int] = attrs.field(default=BLOCK, validator=attrs.validators.deep_iterable(POSITIVE))
    """Output and input channels of a block of weights."""

    def __attrs_post_init__(self) -> None:
        end, core = sum(n * size for n, size in zip((2, 2, 1), self.buffers, strict=True)), self.capacity
        if core is not None and end > _bytes(core):
            buffers = "buffers of inputs and outputs are two each, of weights one"
            raise SpecError.at("", "weight_buffer", f"ends at byte {end:,} of {_bytes(core):,}: {buffers}")

    @property
    def buffers(self) -> tuple[int, ...]:
        """Bytes of a buffer of inputs, of outputs and of weights."""
        found = []
        for name in ("input_buffer", "output_buffer", "weight_buffer"):
            try:
                found.append(_bytes(getattr(self, name)))
            except ValueError as error:
                raise SpecError.at("", name, str(error)) from None
        return tuple(found)


@attrs.frozen
class CoreMesh:
    """The hardware for the compiler; bytes, and bytes per second."""

    columns: int
    """Columns of cores, and memory tiles."""
    rows: int
    memtile: int
    core: int
    inputs: int
    """Bytes of one of two buffers."""
    outputs: int
    """Bytes of one of two buffers."""
    weights: int
    macs: int
    """Multiply-adds of a core per cycle."""
    clock_hz: float
    load: float
    load_weights: float
    write: float
    load_core: float
    load_core_weights: float
    write_core: float
    alignment: int = 32
    index: Literal["u16", "bitmap"] = "u16"
    block: Block = BLOCK
    listed: bool = False
    """Whether times and places are the paper's estimator's, after its listings."""

    @property
    def rates(self) -> dict[str, float]:
        """By kind of step, bytes (of COMP cycles) per second."""
        return {
            "LOAD": self.load, "LOADW": self.load_weights, "LOADFM": self.load_core, "LOADWM": self.load_core_weights,
            "WRITE": self.write, "WRITEFM": self.write_core, "COMP": self.clock_hz,
        }  # fmt: skip

    def __attrs_post_init__(self) -> None:
        counts = {"columns": self.columns, "rows": self.rows, "macs": self.macs, "alignment": self.alignment}
        sizes = {"memtile": self.memtile, "core": self.core, "weights": self.weights}
        sizes |= {"inputs": self.inputs, "outputs": self.outputs}
        for name, value in (counts | self.rates | sizes | {"block": min(self.block)}).items():
            if value <= 0:
                raise SpecError.at("", name, f"is {value}, expected more than 0")
        if self.columns * (2 * self.memtile + self.rows * self.core) > MOST_BYTES:
            raise SpecError.at("", "columns", f"all memories together have more than {MOST_BYTES:,} bytes")

    @property
    def grain(self) -> int:
        """Unit of the channels of tensors and chunks."""
        return math.lcm(*self.block)

    @property
    def share(self) -> int:
        """Rows of cores with weights in the fullest memory tile."""
        return -(-self.rows // self.columns)

    def row_bytes(self, width: int, channels: int) -> int:
        """Of a row of a tensor in one memory tile."""
        return -(-width // self.columns) * round_up(channels, self.grain)

    @classmethod
    def of(cls, hardware: Hardware, registry: Any, file: str = "", listed: bool = False) -> CoreMesh:
        """The machine of a hardware spec with levels DDR, memory tiles and cores; SpecError for other levels."""
        try:
            memories: list[Any] = [level.memory for level in levels_of(hardware, registry)]
        except SpecError as error:
            raise error.within("", file) from None
        found = [memory.type_name for memory in memories]
        if found[1:] != [MemTile.type_name, Aie2Core.type_name]:
            wanted = f"expected an outer level, then {MemTile.type_name} and {Aie2Core.type_name}"
            raise SpecError.at(file, f"hardware {hardware.name}: levels", f"{wanted}; found {', '.join(found)}")
        ddr, tile, core = memories
        clock = units.frequency_hz(hardware.clock)
        channels = {"load": tile.load, "load_weights": tile.load_weights, "write": tile.write, "load_core": core.load}
        channels |= {"load_core_weights": core.load_weights, "write_core": core.write}
        held: dict[str, Any] = dict(zip(("inputs", "outputs", "weights"), core.buffers, strict=True))
        try:
            rates: dict[str, Any] = {name: _rate(text, clock) for name, text in channels.items()}
            held |= {"memtile": _bytes(tile.capacity), "core": _bytes(core.capacity)}
        except ValueError as error:
            raise SpecError.at(file, "levels", str(error)) from None
        counts: dict[str, Any] = {"columns": ddr.fanout or 1, "rows": tile.fanout or 1, "macs": core.fanout or 1}
        own: dict[str, Any] = {"alignment": tile.alignment, "index": core.index, "block": core.block}
        return cls(**counts, **rates, **held, **own, clock_hz=clock, listed=listed)


def _rate(text: str, clock_hz: float) -> float:
    """Bytes per second."""
    rate = units.bandwidth_words_per_cycle(text, clock_hz, 8)
    if rate is None:
        raise ValueError("a channel cannot be unlimited")
    return rate * clock_hz


def _bytes(text: Any) -> int:
    bits = units.capacity_bits(text, 8)
    if bits is None:
        raise ValueError("a buffer cannot be unlimited")
    return int(bits // 8)
