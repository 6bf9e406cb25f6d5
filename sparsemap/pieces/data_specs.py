"""The spec kinds that are data only: hardware, network, space, study. (Workloads and all other kinds are plugin types.)"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, ClassVar

import attrs

from ..errors import Mistake, SpecError, unknown
from . import defaults
from .contracts import Piece, naming, unit

Table = Mapping[str, Any]

DESIGN_KIND = "design"
"""What a file of a design says in place of a kind of pieces; searches write such files, none is a spec."""


MAC_ACTIONS = ("compute", "gated", "skipped")


def _actions(_: object, __: object, energies: Mapping[str, float]) -> None:
    if wrong := [key for key in energies if key not in MAC_ACTIONS]:
        raise SpecError([Mistake("", key, unknown("action", key, MAC_ACTIONS)) for key in wrong])


@attrs.frozen(kw_only=True)
class Compute:
    """The compute units, one per instance below the innermost level."""

    name: str = "MAC"
    """What reports and places call it."""
    gate_skip: bool = False
    """Whether the unit can skip or gate: it then gets a skip/gate gene."""
    lookahead: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """Pairs of operands that a skipping unit looks at in a cycle; absent: unlimited. For the charge `intersection`."""
    energy: Mapping[str, float] = attrs.field(factory=dict, validator=_actions)
    """Energies in pJ of one multiply-accumulate (compute, gated, skipped) that replace the technology's."""


@attrs.frozen(kw_only=True)
class SparseUnits:
    """The sparse units of a chip. Leaving a tensor uncompressed and skipping nothing need none."""

    formats: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict, metadata=naming("format"))
    """By tensor (its role P, Q, R, S or Z, or its name), the formats that the chip can decode and encode."""
    mechanisms: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict, metadata=naming("mechanism"))
    """By place (a level's name, or that of the compute units), the mechanisms that are built there."""

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """By kind of piece, those that it has anywhere, each once."""
        every = {"format": self.formats, "mechanism": self.mechanisms}
        return {kind: tuple(dict.fromkeys(chain(*of.values()))) for kind, of in every.items()}


@attrs.frozen(kw_only=True)
class Converter:
    """A unit that rewrites a tensor between two layers, from the format of one to that of the other, in a pass of its own, and
    encodes outputs on their way out."""

    words_per_cycle: float = attrs.field(validator=attrs.validators.gt(0))
    """Words of the tensor, zeros among them, that it takes in a cycle."""
    pj: float = attrs.field(default=0.0, validator=attrs.validators.ge(0))
    """For each of them."""
    area_mm2: float = attrs.field(validator=attrs.validators.ge(0))
    """Of one such unit."""


def _check_choices(_: object, __: object, choices: Mapping[str, tuple[Any, ...]]) -> None:
    if empty := [key for key, values in choices.items() if not values]:
        raise SpecError([Mistake("", key, "has no value to choose from, expected at least 1") for key in empty])


def _may_vary(value: Any) -> bool:
    """Whether there is a table of a single list, of a range, or of a level that may be left out, see `varied`."""
    if isinstance(value, Mapping):
        single = len(value) == 1 and isinstance(next(iter(value.values())), list)
        return single or bool(value.keys() & {"choices", "low", "present"}) or any(map(_may_vary, value.values()))
    return isinstance(value, list | tuple) and any(map(_may_vary, value))


@attrs.frozen(kw_only=True)
class Hardware(Piece):
    """An accelerator: storage levels from the outermost inwards, then the compute units."""

    kind: ClassVar[str] = "hardware"
    type_name: ClassVar[str] = "hardware"
    default_type: ClassVar[str] = "hardware"
    may_vary: ClassVar[bool] = True

    technology: str | Table = attrs.field(default=defaults.TECHNOLOGY, metadata=naming("technology"))
    """Name of a technology spec, or its table."""
    clock: str = attrs.field(default="1 GHz", metadata=unit("Hz, kHz, MHz, GHz"))
    """Cycles per second of all levels and compute units."""
    word_bits: int = attrs.field(default=16, validator=attrs.validators.ge(1))
    """Bits of one data word at every level that does not say otherwise."""
    levels: tuple[Table, ...] = attrs.field(
        validator=[attrs.validators.min_len(1), attrs.validators.max_len(32)], metadata=naming("memory-level", "class")
    )
    """One table per storage level, outermost first; `class` names a memory type, the other keys are its fields."""
    compute: Compute = attrs.field(factory=Compute)
    """The compute units below the innermost level."""
    space: str | Table = attrs.field(default="", metadata=naming("space"))
    """Name of a space spec, or its table, that it is searched in unless another one is asked for; absent: the usual one."""
    units: SparseUnits | None = None
    """The sparse units that the chip has, which designs choose from; absent: any that a design asks for, without area. The
    usual space takes up those that it lacks, others keep their candidates."""
    converter: Converter | None = None
    """What changes formats of tensors between layers; absent: nothing does, they are read as they were written."""
    choices: Mapping[str, tuple[Any, ...]] = attrs.field(factory=dict, validator=_check_choices)
    """Other values of keys, such as `"levels.GLB.capacity" = ["64 KB", "128 KB"]`: a space of chips. A key may also hold
    `{ choices = [...] }`, or `{ low = "64 KB", high = "1 MB", factor = 2 }` (or `step`), in place of its value; the
    hardware itself then has the first one. `levels.GLB.present = { choices = [true, false] }` leaves a level out."""
    constraints: tuple[str, ...] = ()
    """Conditions on the chips of a space, over costs and sizes: `area_mm2 <= 20`, `GLB.capacity >= 4 * PEB.capacity`."""

    @classmethod
    def from_table(cls, table: Any) -> Any:
        """The table with values that may vary moved to `choices`."""
        if not isinstance(table, Mapping) or not any(map(_may_vary, table.values())):
            return table
        from .varied import without_choices

        found: dict[str, Any] = {}
        fixed = without_choices(table, "", found)
        return {**fixed, "choices": {**found, **fixed.get("choices", {})}} if found else table


@attrs.frozen(kw_only=True)
class SpaceSpec(Piece):
    """A design space: the segments of the genome, in order. Keys named like a segment hold its table."""

    kind: ClassVar[str] = "space"
    type_name: ClassVar[str] = "space"
    default_type: ClassVar[str] = "space"

    segments: tuple[str, ...]
    """Names of the segments in the order of their genes; a segment without a `type` is of the type of its name."""
    tables: Mapping[str, Table] = attrs.field(factory=dict, metadata=naming("segment", beside=True))
    """Table per segment; in a spec they stand beside `segments`, under the segments' names."""
    cost_model: str | Table = attrs.field(default="", metadata=naming("cost-model", paths=True))
    """The cost model that the segments' columns are for, used where none is named; empty: the usual one."""
    stored: Mapping[str, Table] = attrs.field(factory=dict, metadata=naming("density"))
    """By role of a tensor, a density model without its keys `of`, the workload's density, and `rank`, the rank that is
    summed: what the hardware keeps of the tensor where that is more than its nonzeros."""
    view: str = ""
    """As what it takes workloads that can be seen in several ways (their key `view`); empty: as they are."""
    more: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """By kind, such as `format`, names of pieces that segments choose from besides their own candidates."""

    @classmethod
    def from_table(cls, table: Any) -> Any:
        """The table with those of the segments under `tables`."""
        if not isinstance(table, Mapping):
            return table
        known = attrs.fields_dict(cls)
        tables = {key: value for key, value in table.items() if key not in known and isinstance(value, Mapping)}
        rest = {key: value for key, value in table.items() if key not in tables}
        given = rest.get("tables", {})
        return {**rest, "tables": {**given, **tables}} if isinstance(given, Mapping) else rest
