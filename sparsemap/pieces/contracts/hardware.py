"""Hardware: the types of memory, and the energy of every action."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import attrs

from .base import Piece, unit

if TYPE_CHECKING:
    from ...problem.levels import Level


RECODE_ACTIONS = ("decode", "encode")
"""What a level that decodes does for a word that arrives, and for one that leaves."""
FULL_ACTIONS = ("read", "write", "metadata_read", "metadata_write")
LEFT_OUT = tuple(
    f"{state}_{kind}{access}"
    for state in ("gated", "skipped") for kind in ("", "metadata_") for access in ("read", "fill", "update")
)  # fmt: skip
LEVEL_ACTIONS = (*FULL_ACTIONS, *LEFT_OUT)
"""What a technology prices at a storage level, one access each: of a data word, or of `metadata_width` bits."""
BANDWIDTHS = ("bandwidth", "read_bandwidth", "write_bandwidth")
"""Keys of a level."""


@attrs.frozen(kw_only=True)
class MemoryLevel(Piece):
    """A type of memory; its fields are the keys of one storage level of a hardware spec, for one instance of it.

    `sparsemap.problem.levels.Level` is the same level with units resolved.
    """

    kind: ClassVar[str] = "memory-level"
    may_vary: ClassVar[bool] = True

    capacity: str | int | None = attrs.field(default=None, metadata=unit('such as "128 KB"'))
    """Data capacity of one instance, such as "128 KB" (of 1024 bytes, as KiB and kB are) or "4096 words"; absent: unlimited."""
    bandwidth: str | float | None = attrs.field(default=None, metadata=unit('such as "16 GB/s"'))
    """Reads and writes of one instance, such as "32 GB/s" (of 1e9 bytes), or "4 words/cycle/child" for each below; absent:
    unlimited."""
    read_bandwidth: str | float | None = attrs.field(default=None, metadata=unit('such as "16 GB/s"'))
    """Reads alone; absent: unlimited."""
    write_bandwidth: str | float | None = attrs.field(default=None, metadata=unit('such as "16 GB/s"'))
    """Writes alone; absent: unlimited."""
    fanout: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """Instances of the next inner level (or of the compute unit) below one instance. Absent: one, and no spatial loops."""
    gate_skip: bool = False
    """Whether this level can skip or gate: it then gets a skip/gate gene."""
    word_bits: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """Bits of one data word here; absent: as the hardware says."""
    metadata_capacity: str | int | None = attrs.field(default=None, metadata=unit('such as "16 KB"'))
    """A separate memory for metadata; absent: metadata shares `capacity`; "unlimited": separate and never full."""
    metadata_width: int = attrs.field(default=32, validator=attrs.validators.ge(1), metadata=unit("bit"))
    """Bits of one metadata access."""
    access_words: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Words of one access; what is left of the last one costs energy as well. Energies and bandwidths are per word."""
    cluster: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Instances that one access serves together: its energy is that of all of them, however many take part."""
    bypass: tuple[str, ...] = ()
    """Tensors that this level does not store: roles (P, Q, R, S the operands, Z the output) or names. Where one tensor has
    the name of another one's role, `role:Q` or `name:Q`."""
    streams: tuple[str, ...] = ()
    """Operands among those of `bypass` that pass through: on their way in, words are written here and read again, which takes
    energy and bandwidth, but no room. They must be uncompressed."""
    links: tuple[str, ...] = ()
    """Tensors without sliding windows, as in `bypass`, whose words compute units below this level, the innermost, keep and
    hand on to their neighbours while they stay the same."""
    decodes: bool | tuple[str, ...] = False
    """Whether what comes from outside compressed may be kept uncompressed here: all tensors, or those listed, by role or
    name as in `bypass`. They are decoded on their way in; an output is encoded on its way out."""
    double_buffered: bool | tuple[str, ...] = False
    """Whether the next tiles come while the children work on one: all tensors, or those listed, by role or name as in
    `bypass`. With the charge `overlap`, a level that is not waits for its transfers, and one that is has less room."""
    buffer_depth: int = attrs.field(default=2, validator=attrs.validators.ge(2))
    """Tiles that a double-buffered tensor has room for."""
    work_stealing: bool = False
    """Whether what the level feeds, its children or the compute units, shares the work of one tile evenly; for the
    charge `imbalance`."""
    vectors: bool = False
    """Whether the compute units that the level feeds share work in steps that they take together, each operand's nonzeros
    condensed to fill the loops over them; with the charge `vectors` a step that is partly filled takes as long as a full
    one."""
    lookahead: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """Positions that a skipping unit at the level looks at in a cycle, per child; absent: unlimited. For the charge
    `intersection`."""
    cells: str = ""
    """What the memory is built of, by a name that the technology has rows for, such as "hp" or "lstp"; absent: its usual."""
    leakage_mw: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.ge(0)), metadata=unit("mW")
    )
    """Power that one instance leaks; absent: that of the technology. For the charge `leakage`."""
    power_gated: float | None = attrs.field(
        default=None, validator=attrs.validators.optional([attrs.validators.ge(0.0), attrs.validators.le(1.0)])
    )
    """Share of its leakage that an instance still takes where a design has no use for it and it is switched off; absent: none
    is. For the charge `leakage`."""
    energy: Mapping[str, float] = attrs.field(
        factory=dict,
        validator=attrs.validators.deep_mapping(value_validator=attrs.validators.ge(0)),
        metadata=unit("pJ"),
    )
    """Energies in pJ by action that replace the technology's."""

    @property
    def shares_work(self) -> bool:
        """Whether nobody below one instance waits for another."""
        return self.work_stealing or self.vectors

    def usable_bits(self, capacity_bits: float | None) -> float | None:
        """Bits that may be resident at once; None: unlimited. A double-buffered memory returns half of its capacity."""
        return capacity_bits


@attrs.frozen(kw_only=True)
class Technology(Piece):
    """Energy per action."""

    kind: ClassVar[str] = "technology"

    @property
    def label(self) -> str:
        """The name; without one, the type."""
        return self.name or self.type_name

    def energy_pj(self, level: Level, action: str) -> float:
        """pJ of one access; `action` is one of `LEVEL_ACTIONS`."""
        raise NotImplementedError

    def mac_pj(self, bits: int, action: str) -> float:
        """pJ of one multiply-accumulate; `action`: compute, gated or skipped."""
        raise NotImplementedError

    # What charges ask for; by default nothing.

    gated_residual: ClassVar[float] = 0.0
    """What a gated access or compute costs at least, as a share of a full one."""
    wire_pj_per_bit_mm: ClassVar[float] = 0.0

    def add_pj(self, bits: int) -> float:
        """pJ of one addition or comparison."""
        return 0.0

    def leakage_mw(self, level: Level) -> float:
        """Power that one instance of a level leaks."""
        return 0.0

    def area_mm2(self, level: Level) -> float:
        """Area of one instance of a level, without what lies below."""
        return 0.0

    def mac_area_mm2(self, bits: int) -> float:
        return 0.0
