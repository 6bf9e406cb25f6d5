"""The spec kinds that are data only: hardware, network, space, study. (Workloads and all other kinds are plugin types.)"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from ..errors import Mistake, SpecError, unknown
from . import defaults
from .contracts import Piece, naming, unit

Table = Mapping[str, Any]
SOME: Any = attrs.validators.min_len(1)

DESIGN_KIND = "design"
"""What a file of a design says in place of a kind of pieces; searches write such files, none is a spec."""


MAC_ACTIONS = ("compute", "gated", "skipped")


def _actions(_: object, __: object, energies: Mapping[str, float]) -> None:
    wrong = [key for key in energies if key not in MAC_ACTIONS]
    if wrong:
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
class Hardware(Piece):
    """An accelerator: storage levels from the outermost inwards, then the compute units."""

    kind: ClassVar[str] = "hardware"
    type_name: ClassVar[str] = "hardware"
    default_type: ClassVar[str] = "hardware"

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
    """Which cells to run: every workload and network on every hardware, with every searcher, space and seed."""

    kind: ClassVar[str] = "study"
    type_name: ClassVar[str] = "study"
    default_type: ClassVar[str] = "study"

    workloads: tuple[str, ...] = attrs.field(default=(), metadata=naming("workload", paths=True))
    """Names or TOML files, relative to the study."""
    networks: tuple[str, ...] = attrs.field(default=(), validator=_something, metadata=naming("network", paths=True))
    """Names or TOML files, relative to the study; a cell of one searches all of its layers."""
    hardware: tuple[str, ...] = attrs.field(validator=SOME, metadata=naming("hardware", paths=True))
    """Names or TOML files, relative to the study."""
    searchers: tuple[str, ...] = attrs.field(
        default=(defaults.SEARCHER,), validator=SOME, metadata=naming("searcher", paths=True)
    )
    """Names or TOML files, relative to the study."""
    space: str | Table = attrs.field(default="", metadata=naming("space", paths=True))
    """The design space of searchers that `spaces` does not name; absent: the one that the hardware names, or the usual."""
    spaces: Mapping[str, str | Table] = attrs.field(factory=dict, metadata=naming("space", paths=True))
    """A space per searcher where they differ, such as a fixed mapping for a baseline."""
    objective: str | Table = attrs.field(default=defaults.OBJECTIVE, metadata=naming("objective", paths=True))
    """What is minimised."""
    cost_model: str | Table = attrs.field(default="", metadata=naming("cost-model", paths=True))
    """What evaluates the designs; absent: what the space asks for, or the usual one."""
    technology: str | Table = attrs.field(default="", metadata=naming("technology", paths=True))
    """Energies, leakage and areas of all hardware; absent: those that each names."""
    budget: int = attrs.field(default=20_000, validator=attrs.validators.ge(1), metadata=unit("designs"))
    """Designs that each search evaluates; of a network, per layer."""
    count: str = attrs.field(default="all", validator=attrs.validators.in_(("all", "valid")))
    """Which designs count against the budget; with `valid`, invalid ones cost nothing, up to 1,000 times the budget."""
    warm_start: str = attrs.field(default="", validator=attrs.validators.in_(("", *WARM_STARTS)))
    """Of networks: which earlier layers a layer starts from; absent: "edit", if the searcher takes designs."""
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
    input: tuple[int, ...] = ()
    """Shape of the input without the batch, (channels, height, width) or (rows, columns). With it the layers are a graph
    whose shapes have to fit; without it a list of layers that are not connected."""
    batch: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Samples at a time, for all layers that do not say otherwise."""
    defaults: Mapping[str, Table] = attrs.field(factory=dict)
    """By type of layer, what its keys are where the layer does not set them, such as densities."""
