"""The spec kinds that are data only: hardware, network, space, study. (Workloads and all other kinds are plugin types.)"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, ClassVar

import attrs

from ..errors import Mistake, SpecError, unknown
from . import defaults
from .contracts import Piece, naming, unit
from .varied import check_choices, without_choices

Table = Mapping[str, Any]
SOME: Any = attrs.validators.min_len(1)

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
    choices: Mapping[str, tuple[Any, ...]] = attrs.field(factory=dict, validator=check_choices)
    """Other values of keys, such as `"levels.GLB.capacity" = ["64 KB", "128 KB"]`: a space of chips. A key may also hold
    `{ choices = [...] }`, or `{ low = "64 KB", high = "1 MB", factor = 2 }` (or `step`), in place of its value; the
    hardware itself then has the first one. `levels.GLB.present = { choices = [true, false] }` leaves a level out."""
    constraints: tuple[str, ...] = ()
    """Conditions on the chips of a space, over costs and sizes: `area_mm2 <= 20`, `GLB.capacity >= 4 * PEB.capacity`."""

    @classmethod
    def from_table(cls, table: Any) -> Any:
        """The table with values that may vary moved to `choices`."""
        if not isinstance(table, Mapping):
            return table
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


WARM_STARTS = ("edit", "log", "previous", "off")
"""Which earlier layers the search of a layer starts from: the most similar ones by a metric, the one before, none."""


def _something(study: Study, attribute: attrs.Attribute, networks: tuple[str, ...]) -> None:
    if not (networks or study.workloads):
        raise ValueError("has no entry, and neither has workloads; expected at least 1")


@attrs.frozen(kw_only=True)
class Study(Piece):
    """Which cells to run: every workload and network on every hardware, with every searcher, seed, and what else is listed."""

    kind: ClassVar[str] = "study"
    type_name: ClassVar[str] = "study"
    default_type: ClassVar[str] = "study"

    workloads: tuple[str, ...] = attrs.field(default=(), metadata=naming("workload", paths=True))
    """Names or TOML files, relative to the study."""
    networks: tuple[str, ...] = attrs.field(default=(), validator=_something, metadata=naming("network", paths=True))
    """Names or TOML files, relative to the study; a cell of one searches all of its layers."""
    hardware: tuple[str | Table, ...] = attrs.field(validator=SOME, metadata=naming("hardware", paths=True))
    """Names or TOML files, relative to the study, or tables."""
    searchers: tuple[str, ...] = attrs.field(
        default=(defaults.SEARCHER,), validator=SOME, metadata=naming("searcher", paths=True)
    )
    """Names or TOML files, relative to the study."""
    space: str | Table = attrs.field(default="", metadata=naming("space", paths=True))
    """The design space of searchers that `spaces` does not name; absent: the one that the hardware names, or the usual."""
    spaces: tuple[str | Table, ...] | Mapping[str, str | Table] = attrs.field(
        factory=dict, metadata=naming("space", paths=True)
    )
    """A list: every cell runs in each of these spaces. A table: the space per searcher where they differ, such as a fixed
    mapping for a baseline."""
    formats: tuple[tuple[str, ...], ...] = ()
    """Every cell runs with each of these lists of formats added to those of its space, `[]` adds none."""
    mechanisms: tuple[tuple[str, ...], ...] = ()
    """Every cell runs with each of these lists of mechanisms added to those of its space."""
    objective: str | Table = attrs.field(default=defaults.OBJECTIVE, metadata=naming("objective", paths=True))
    """What is minimised."""
    cost_model: str | Table = attrs.field(default="", metadata=naming("cost-model", paths=True))
    """What evaluates the designs; absent: what the space asks for, or the usual one."""
    cost_models: tuple[str | Table, ...] = attrs.field(default=(), metadata=naming("cost-model", paths=True))
    """Every cell runs with each of these cost models, in place of `cost_model`."""
    technology: str | Table = attrs.field(default="", metadata=naming("technology", paths=True))
    """Energies, leakage and areas of all hardware; absent: those that each names."""
    budget: int = attrs.field(default=20_000, validator=attrs.validators.ge(1), metadata=unit("designs"))
    """Designs that each search evaluates; of a network, per layer."""
    count: str = attrs.field(default="all", validator=attrs.validators.in_(("all", "valid")))
    """Which designs count against the budget; with `valid`, invalid ones cost nothing, up to 1,000 times the budget."""
    warm_start: str = attrs.field(default="", validator=attrs.validators.in_(("", *WARM_STARTS)))
    """Of networks: which earlier layers a layer starts from; absent: "edit", if the searcher takes designs."""
    fuse: bool = False
    """Of networks: plan which tensors stay on chip between layers, as `run --fuse` does."""
    seeds: tuple[int, ...] = attrs.field(default=(0,), validator=SOME)
    """Seeds of the random numbers, a search for each."""
    out: str = ""
    """Folder for the results, relative to the working directory; `--out` overrides it."""


@attrs.frozen(kw_only=True)
class Network(Piece):
    """The layers of a neural network in order: workloads to be searched, and the operations between them.

    `sparsemap.problem.network` makes nodes of it, with their shapes.
    """

    kind: ClassVar[str] = "network"
    type_name: ClassVar[str] = "network"
    default_type: ClassVar[str] = "network"

    layers: tuple[Table, ...] = attrs.field(validator=attrs.validators.min_len(1))
    """One table per layer: `type` names a type of workload or operation, whose keys the others are, or `workload` a
    workload; `name`, `repeat` (how often it stands there, one after the other) and `inputs` (by default the layer
    before; "input" is the network's)."""
    lacks: tuple[str, ...] = ()
    """What no layer has and no total counts, such as operators of the model that it was imported from."""
    input: tuple[int, ...] = ()
    """Shape of the input without the batch, (channels, height, width) or (rows, columns). With it the layers are a graph
    whose shapes have to fit; without it a list of layers that are not connected."""
    batch: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Samples at a time, for all layers that do not say otherwise."""
    defaults: Mapping[str, Table] = attrs.field(factory=dict)
    """By type of layer, what its keys are where the layer does not set them, such as densities."""
    outputs: tuple[str, ...] = ()
    """Layers whose outputs are the network's although others read them; those that none reads always are."""
    rectified: tuple[str, ...] | None = None
    """Layers of whose output negative words become zero before anybody reads it; absent: nobody has said so."""
