"""The spec kinds of pure data: hardware, network, space, study. (Workloads and all other kinds are plugin types.)"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar

import attrs

from ..errors import Mistake, SpecError, unknown
from . import defaults
from .contracts import Piece, naming, unit

Table = Mapping[str, Any]
POSITIVE = attrs.validators.ge(1)

DESIGN_KIND = "design"
"""`kind` of a design file; searches write design files, and none is a spec."""


MAC_ACTIONS = ("compute", "gated", "skipped")


def _actions(_: object, __: object, energies: Mapping[str, float]) -> None:
    if wrong := [key for key in energies if key not in MAC_ACTIONS]:
        raise SpecError([Mistake("", key, unknown("action", key, MAC_ACTIONS)) for key in wrong])


@attrs.frozen(kw_only=True)
class MacMode:
    """A way of a compute unit to multiply narrower operands, several pairs per cycle."""

    bits: tuple[int, ...] = attrs.field(
        validator=[attrs.validators.min_len(1), attrs.validators.deep_iterable(POSITIVE)]
    )
    """Widest operands, in any order, such as [16, 4]."""
    macs: int = attrs.field(validator=attrs.validators.ge(2))
    """Multiply-accumulates per unit and cycle."""
    pj: float | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(0)))
    """Energy per multiply-accumulate; absent: the unit's energy in equal parts."""

    def takes(self, bits: Sequence[float]) -> bool:
        """Whether operands of these bits fit; a part of a bit is a shared scale, which is not multiplied here."""
        pairs = zip(sorted(bits), sorted(self.bits), strict=False)
        return len(bits) == len(self.bits) and all(math.floor(own) <= most for own, most in pairs)


@attrs.frozen(kw_only=True)
class Compute:
    """The compute units, one per instance below the innermost level."""

    name: str = "MAC"
    """Name of the compute units in reports and places."""
    gate_skip: bool = False
    """Whether the unit can skip or gate; if so, a skip/gate gene is added."""
    lookahead: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """Pairs of operands examined per cycle by a skipping unit; absent: unlimited. For the charge `intersection`."""
    energy: Mapping[str, float] = attrs.field(factory=dict, validator=_actions)
    """Energies in pJ per multiply-accumulate (compute, gated, skipped), in place of the technology's."""
    modes: tuple[MacMode, ...] = ()
    """Modes for narrower operands; operands are as wide as the tensors (`word_bits` of the workload). Absent: a unit
    multiplies one pair per cycle, at full energy."""


@attrs.frozen(kw_only=True)
class SparseUnits:
    """The sparse units of a chip. Uncompressed tensors and designs without skipping need no unit."""

    formats: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict, metadata=naming("format"))
    """Formats the chip can decode and encode, by tensor (role P, Q, R, S or Z, or name)."""
    mechanisms: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict, metadata=naming("mechanism"))
    """Mechanisms built at each place (name of a level or of the compute units)."""

    number_formats: tuple[str, ...] | None = attrs.field(default=None, metadata=naming("number-format"))
    """Number formats with a decoder at every level on chip; absent: any, without area."""

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """Candidates of designs on the chip by kind, each once."""
        every = {"format": self.formats, "mechanism": self.mechanisms}
        return {kind: tuple(dict.fromkeys(chain(*of.values()))) for kind, of in every.items()}


@attrs.frozen(kw_only=True)
class Converter:
    """A unit to rewrite a tensor between two layers, from the format of the first to the format of the second, in a
    pass of its own; also encodes outputs on the way out."""

    words_per_cycle: float = attrs.field(validator=attrs.validators.gt(0))
    """Words of the tensor converted per cycle, zeros included."""
    pj: float = attrs.field(default=0.0, validator=attrs.validators.ge(0))
    """Energy per word."""
    area_mm2: float = attrs.field(validator=attrs.validators.ge(0))
    """Area per unit."""


VECTOR_STEPS: Any = attrs.validators.deep_mapping(
    attrs.validators.in_(("exponential", "division", "other")), attrs.validators.ge(0)
)


@attrs.frozen(kw_only=True)
class VectorUnit:
    """Lanes for the operations between layers, which run beside the levels' traffic."""

    lanes: int = attrs.field(validator=attrs.validators.ge(1))
    """Words at a time, of the whole chip."""
    cycles: Mapping[str, float] = attrs.field(factory=dict, validator=VECTOR_STEPS)
    """Cycles of a lane per step, by kind `exponential`, `division` and `other`; absent: 1."""
    pj: Mapping[str, float] = attrs.field(factory=dict, validator=VECTOR_STEPS)
    """Energy per step, by kind; absent: 0."""
    area_mm2: float = attrs.field(default=0.0, validator=attrs.validators.ge(0))
    """Area per lane."""


def _check_choices(_: object, __: object, choices: Mapping[str, tuple[Any, ...]]) -> None:
    if empty := [key for key, values in choices.items() if not values]:
        raise SpecError([Mistake("", key, "has no value to choose from, expected at least 1") for key in empty])


def _may_vary(value: Any) -> bool:
    """Whether the value contains a table with a single list, a range, or a removable level, see `varied`."""
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
    """Cycles per second of all levels and compute units; "max": the highest clock of the technology at its voltage."""
    word_bits: int = attrs.field(default=16, validator=attrs.validators.ge(1))
    """Bits per data word at every level without its own `word_bits`."""
    levels: tuple[Table, ...] = attrs.field(
        validator=[attrs.validators.min_len(1), attrs.validators.max_len(32)], metadata=naming("memory-level", "class")
    )
    """One table per storage level, outermost first; `class` names a memory type, the other keys are its fields."""
    compute: Compute = attrs.field(factory=Compute)
    """The compute units below the innermost level."""
    space: str | Table = attrs.field(default="", metadata=naming("space"))
    """Name of a space spec, or its table, as the default design space; absent: the usual space."""
    units: SparseUnits | None = None
    """The sparse units of the chip, as candidates of designs; absent: any unit a design uses, without area. The usual
    space gains missing units as candidates, other spaces keep their candidates."""
    converter: Converter | None = None
    """Converter of tensor formats between layers; absent: tensors are read in the format they were written in."""
    vector: VectorUnit | None = None
    """Unit for operations between layers; absent: operations cost the words they move, and their arithmetic is free."""
    choices: Mapping[str, tuple[Any, ...]] = attrs.field(factory=dict, validator=_check_choices)
    """Other values of keys, such as `"levels.GLB.capacity" = ["64 KB", "128 KB"]`: a space of chips. A key may also
    hold `{ choices = [...] }`, or `{ low = "64 KB", high = "1 MB", factor = 2 }` (or `step`), in place of a value; the
    hardware itself then has the first value. `levels.GLB.present = { choices = [true, false] }` leaves a level out."""
    constraints: tuple[str, ...] = ()
    """Conditions on the chips of a space, over costs and sizes: `area_mm2 <= 20`, `GLB.capacity >= 4 * PEB.capacity`."""

    @classmethod
    def from_table(cls, table: Any) -> Any:
        """The table with variable values moved to `choices`."""
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
    """Names of the segments in the order of their genes; a segment without a `type` has the type of its name."""
    tables: Mapping[str, Table] = attrs.field(factory=dict, metadata=naming("segment", beside=True))
    """Table per segment; in a spec the tables stand beside `segments`, under the segments' names."""
    cost_model: str | Table = attrs.field(default="", metadata=naming("cost-model", paths=True))
    """Default cost model, fit for the segments' columns; empty: the usual cost model."""
    stored: Mapping[str, Table] = attrs.field(factory=dict, metadata=naming("density"))
    """Data kept by the hardware beyond the nonzeros, by role of a tensor: a density model without the keys `of` (the
    workload's density) and `rank` (the summed rank)."""
    view: str = ""
    """View of workloads with several views (their key `view`); empty: unchanged."""
    stationary: str = ""
    """The tensor whose words come to a memory once: "Q" (its innermost memory), or "Q at GLB"."""
    more: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """By kind, such as `format`, names of further candidates besides the segments' own."""

    @classmethod
    def from_table(cls, table: Any) -> Any:
        """The table with the segments' tables moved to `tables`."""
        if not isinstance(table, Mapping):
            return table
        known = attrs.fields_dict(cls)
        tables = {key: value for key, value in table.items() if key not in known and isinstance(value, Mapping)}
        rest = {key: value for key, value in table.items() if key not in tables}
        given = rest.get("tables", {})
        return {**rest, "tables": {**given, **tables}} if isinstance(given, Mapping) else rest
