"""Hardware: types of memory, and the energy of every action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from .base import Piece, some_bits, unit

if TYPE_CHECKING:
    from ...problem.levels import Level


RECODE_ACTIONS = ("decode", "encode")
"""Actions of a decoding level: per arriving word, and per leaving word."""
FULL_ACTIONS = ("read", "write", "metadata_read", "metadata_write")
LEFT_OUT = tuple(
    f"{state}_{kind}{access}"
    for state in ("gated", "skipped") for kind in ("", "metadata_") for access in ("read", "fill", "update")
)  # fmt: skip
LEVEL_ACTIONS = (*FULL_ACTIONS, *LEFT_OUT)
"""Priced actions at a storage level, per access of a data word, or of `metadata_width` bits."""
BANDWIDTHS = ("bandwidth", "read_bandwidth", "write_bandwidth")
"""Bandwidth keys of a level."""


def _sharing(instance: Any, attribute: Any, value: str | int) -> None:
    if not (value in ("lock-step", "separate") or (type(value) is int and value >= 1)):
        raise ValueError(
            f"shared_words: expected 'lock-step', 'separate' or a number of words from 1 on, found {value!r}"
        )


@attrs.frozen(kw_only=True)
class MemoryLevel(Piece):
    """A type of memory; its fields are the keys of one storage level of a hardware spec, per instance.

    `sparsemap.problem.levels.Level` is the same level with units resolved."""

    kind: ClassVar[str] = "memory-level"
    may_vary: ClassVar[bool] = True

    capacity: str | int | None = attrs.field(default=None, metadata=unit('such as "128 KB"'))
    """Data capacity per instance, such as "128 KB" (of 1024 bytes, as KiB and kB are) or "4096 words"; absent:
    unlimited."""
    bandwidth: str | float | None = attrs.field(default=None, metadata=unit('such as "16 GB/s"'))
    """Bandwidth per instance for reads and writes together, such as "32 GB/s" (of 1e9 bytes), or "4 words/cycle/child"
    per child; absent: unlimited."""
    read_bandwidth: str | float | None = attrs.field(default=None, metadata=unit('such as "16 GB/s"'))
    """Bandwidth for reads alone; absent: unlimited."""
    write_bandwidth: str | float | None = attrs.field(default=None, metadata=unit('such as "16 GB/s"'))
    """Bandwidth for writes alone; absent: unlimited."""
    fanout: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """Instances of the next inner level (or of the compute unit) per instance. Absent: 1, and no spatial loops."""
    gate_skip: bool = False
    """Whether this level can skip or gate; if so, a skip/gate gene is added."""
    word_bits: int | Mapping[str, float | str] | None = attrs.field(default=None, validator=some_bits)
    """A number: bits per data word at this level. A table: bits or number format of a tensor (role P, Q, R, S or Z, or
    name), in place of the workload's, packed in the hardware's words, such as `{ Z = 8 }`; partial sums keep the bits of the next
    inner level, if wider. Absent: the word width of the hardware."""
    metadata_capacity: str | int | None = attrs.field(default=None, metadata=unit('such as "16 KB"'))
    """Capacity of a separate memory for metadata; absent: metadata shares `capacity`; "unlimited": separate and never
    full."""
    metadata_width: int = attrs.field(default=32, validator=attrs.validators.ge(1), metadata=unit("bit"))
    """Bits of one metadata access."""
    access_words: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Words per access; unused words of the last access cost energy as well. Energies and bandwidths are per word."""
    cluster: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Instances served together by one access: the access costs the energy of all, even if only some take part."""
    bypass: tuple[str, ...] = ()
    """Tensors not stored at this level: roles (P, Q, R, S the operands, Z the output) or names. If a tensor has the
    name of another tensor's role, write `role:Q` or `name:Q`."""
    streams: tuple[str, ...] = ()
    """Operands of `bypass` to stream through: on the way in, words are written here and read again, at the cost of
    energy and bandwidth, without taking room. They must be uncompressed."""
    links: tuple[str, ...] = ()
    """Tensors without sliding windows, as in `bypass`, with link transfers: compute units below this level, the
    innermost, hand words on to their neighbours while the words stay the same."""
    decodes: bool | tuple[str, ...] = False
    """Whether this level can decode, to keep tensors uncompressed that are compressed further out: all tensors, or a
    list by role or name as in `bypass`. Operands are decoded on the way in; an output is encoded on the way out."""
    double_buffered: bool | tuple[str, ...] = False
    """Whether the next tiles arrive while the children work on the current tiles: all tensors, or a list by role or
    name as in `bypass`. With the charge `overlap`, a single-buffered level waits for its transfers; a double-buffered
    level has less room."""
    buffer_depth: int = attrs.field(default=2, validator=attrs.validators.ge(2))
    """Tiles of room for a double-buffered tensor."""
    work_stealing: bool = False
    """Whether the children or compute units fed by the level share the work of a tile evenly; for the charge
    `imbalance`."""
    vectors: bool = False
    """Whether the compute units fed by the level work in lockstep, with each operand's nonzeros condensed to fill the
    loops over them. With the charge `vectors`, a partly filled step takes as long as a full step."""
    shared_words: str | int = attrs.field(default="lock-step", validator=_sharing)
    """How compute units fed by the level share a word, or add their products to one sum. "lock-step": the units take
    every step together; a number: each unit has a queue of so many words per tensor, and may run ahead by so many;
    "separate": a read or an update per unit. For the charge `shared-words`."""
    lookahead: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """Positions examined per cycle by a skipping unit at the level, per child; absent: unlimited. For the charge
    `intersection`."""
    cells: str = ""
    """Cell type of the memory, a name from the technology's tables, such as "hp" or "lstp"; absent: the usual type."""
    leakage_mw: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.ge(0)), metadata=unit("mW")
    )
    """Leakage power per instance; absent: from the technology. For the charge `leakage`."""
    power_gated: float | None = attrs.field(
        default=None, validator=attrs.validators.optional([attrs.validators.ge(0.0), attrs.validators.le(1.0)])
    )
    """Share of the leakage left in an instance that a design does not use and switches off; absent: instances stay on.
    For the charge `leakage`."""
    energy: Mapping[str, float] = attrs.field(
        factory=dict,
        validator=attrs.validators.deep_mapping(value_validator=attrs.validators.ge(0)),
        metadata=unit("pJ"),
    )
    """Energies in pJ by action, in place of the technology's."""

    @property
    def queue_words(self) -> int:
        """Words of a unit's queue for each tensor; 0: none."""
        return self.shared_words if isinstance(self.shared_words, int) else 0

    @property
    def shares_work(self) -> bool:
        """Whether no child of an instance waits for another."""
        return self.work_stealing or self.vectors

    def usable_bits(self, capacity_bits: float | None) -> float | None:
        """Bits of data resident at once; None: unlimited. A double-buffered memory returns half of its capacity."""
        return capacity_bits


@attrs.frozen(kw_only=True)
class Technology(Piece):
    """Energy per action."""

    kind: ClassVar[str] = "technology"

    @property
    def label(self) -> str:
        """The name, or else the type."""
        return self.name or self.type_name

    def energy_pj(self, level: Level, action: str) -> float:
        """pJ per access; `action` is one of `LEVEL_ACTIONS`."""
        raise NotImplementedError

    def mac_pj(self, bits: int, action: str) -> float:
        """pJ per multiply-accumulate; `action`: compute, gated or skipped."""
        raise NotImplementedError

    # What charges ask for; by default nothing.

    gated_residual: ClassVar[float] = 0.0
    """Least cost of a gated access or compute, as a share of a full one."""
    wire_pj_per_bit_mm: ClassVar[float] = 0.0

    def add_pj(self, bits: int) -> float:
        """pJ per addition."""
        return 0.0

    def clock_hz(self) -> float | None:
        """Highest clock of compute units at the supply voltage; None: unknown."""
        return None

    def queue_pj(self, words: int, bits: int) -> float:
        """pJ to write a word to a queue of a compute unit and read it again."""
        return 0.0

    def queue_mm2(self, words: int, bits: int) -> float:
        """Area of a queue of a compute unit."""
        return 0.0

    def leakage_mw(self, level: Level) -> float:
        """Leakage power of a level per instance, in mW."""
        return 0.0

    def doubts(self, level: Level) -> Sequence[str]:
        """Sentences on figures of a level outside the sources, for a warning before a search."""
        return ()

    def area_mm2(self, level: Level) -> float:
        """Area of a level per instance, in mm2, without the levels below."""
        return 0.0

    def mac_area_mm2(self, bits: int) -> float:
        return 0.0
