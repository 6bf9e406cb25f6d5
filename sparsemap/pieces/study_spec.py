"""Specs of studies and networks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from ..errors import Mistake, SpecError, listed
from . import defaults
from .contracts import Piece, naming, unit
from .data_specs import Table

SOME: Any = attrs.validators.min_len(1)


WARM_STARTS = ("edit", "log", "previous", "off")
"""Starting designs for the search of a layer: from the most similar layers by a metric, from the previous layer, or
none."""


def _something(study: Study, attribute: attrs.Attribute, networks: tuple[str, ...]) -> None:
    if not (networks or study.workloads):
        raise ValueError("has no entry, and neither has workloads; expected at least 1")


AXIS_PARTS = ("workload", "hardware", "space")
"""Parts of a cell that an axis may change."""


def _axes(study: Study, _: attrs.Attribute, axes: Mapping[str, Any]) -> None:
    mistakes = list[Mistake]()
    known = {"workload", "hardware", "searcher", "seed", *attrs.fields_dict(Study)}
    for name, values in axes.items():
        if name in known or not re.fullmatch(r"[\w.+-]+", name):
            mistakes.append(
                Mistake("", name, "expected a name of letters, digits, points and dashes that no column has")
            )
        if not values:
            mistakes.append(Mistake("", name, "has no value, expected at least 1"))
        tables = values.items() if isinstance(values, Mapping) else [("", {name: None})]
        for variant, table in tables:
            for key in table:
                if key.partition(".")[0] not in AXIS_PARTS or "." not in key:
                    text = f"'{key}': expected a key of {listed(AXIS_PARTS)}, such as hardware.levels.GLB.capacity"
                    mistakes.append(Mistake("", f"{name}.{variant}" if variant else name, text))
    if study.networks and any(key.startswith("workload.") for key in _axis_keys(axes)):
        mistakes.append(
            Mistake("", "", "change workloads, and the study has networks; expected keys of hardware or space")
        )
    if mistakes:
        raise SpecError(mistakes)


def _axis_keys(axes: Mapping[str, Any]) -> list[str]:
    return [key for name, values in axes.items()
            for table in (values.values() if isinstance(values, Mapping) else [{name: None}]) for key in table]  # fmt: skip


@attrs.frozen(kw_only=True)
class Study(Piece):
    """Cells to run: every workload and network on every hardware, with every searcher, seed and further listed variant."""

    kind: ClassVar[str] = "study"
    type_name: ClassVar[str] = "study"
    default_type: ClassVar[str] = "study"

    workloads: tuple[str | Table, ...] = attrs.field(default=(), metadata=naming("workload", paths=True))
    """Names or TOML files, relative to the study, or tables."""
    networks: tuple[str, ...] = attrs.field(default=(), validator=_something, metadata=naming("network", paths=True))
    """Names or TOML files, relative to the study; a cell of a network searches all layers."""
    hardware: tuple[str | Table, ...] = attrs.field(validator=SOME, metadata=naming("hardware", paths=True))
    """Names or TOML files, relative to the study, or tables."""
    searchers: tuple[str, ...] = attrs.field(
        default=(defaults.SEARCHER,), validator=SOME, metadata=naming("searcher", paths=True)
    )
    """Names or TOML files, relative to the study."""
    space: str | Table = attrs.field(default="", metadata=naming("space", paths=True))
    """Design space of searchers missing from `spaces`; absent: the space named by the hardware, or the usual space."""
    spaces: tuple[str | Table, ...] | Mapping[str, str | Table] = attrs.field(
        factory=dict, metadata=naming("space", paths=True)
    )
    """A list: every cell runs in each of these spaces. A table: the space per searcher, such as a fixed mapping for a
    baseline."""
    formats: tuple[tuple[str, ...], ...] = ()
    """Lists of formats: every cell runs with each list added to the formats of its space; `[]` adds none."""
    mechanisms: tuple[tuple[str, ...], ...] = ()
    """Lists of mechanisms: every cell runs with each list added to the mechanisms of its space."""
    axes: Mapping[str, tuple[Any, ...] | Mapping[str, Table]] = attrs.field(factory=dict, validator=_axes)
    """Further axes by name. A list: values of the key with this name, such as `"hardware.levels.GLB.capacity" = ["64
    KB", "128 KB"]` or `"workload.density.Q" = [0.1, 0.5]`. A table: named variants, each a table of such keys. Keys
    begin with `workload`, `hardware` or `space`; without `space`, they change the usual space."""
    objective: str | Table = attrs.field(default=defaults.OBJECTIVE, metadata=naming("objective", paths=True))
    """Objective to minimise."""
    cost_model: str | Table = attrs.field(default="", metadata=naming("cost-model", paths=True))
    """Cost model for the designs; absent: the cost model of the space, or the usual one."""
    cost_models: tuple[str | Table, ...] = attrs.field(default=(), metadata=naming("cost-model", paths=True))
    """Cost models in place of `cost_model`: every cell runs with each."""
    technology: str | Table = attrs.field(default="", metadata=naming("technology", paths=True))
    """Energies, leakage and areas of all hardware; absent: each hardware's own technology."""
    budget: int = attrs.field(default=20_000, validator=attrs.validators.ge(1), metadata=unit("designs"))
    """Designs evaluated per search; for a network, per layer."""
    count: str = attrs.field(default="all", validator=attrs.validators.in_(("all", "valid")))
    """Designs counted against the budget; with `valid`, invalid designs are free, up to 1,000 times the budget."""
    warm_start: str = attrs.field(default="", validator=attrs.validators.in_(("", *WARM_STARTS)))
    """For networks: earlier layers to start a layer from; absent: "edit", if the searcher accepts starting designs."""
    fuse: bool | None = None
    """For networks: whether a plan keeps tensors on chip between layers; absent: a plan for networks with a graph."""
    seeds: tuple[int, ...] = attrs.field(default=(0,), validator=SOME)
    """Random seeds, a search for each."""
    out: str = ""
    """Folder for the results, relative to the working directory; `--out` overrides it."""


@attrs.frozen(kw_only=True)
class Network(Piece):
    """The layers of a neural network in order: workloads to search, and operations between them.

    `sparsemap.problem.network` turns the layers into nodes with shapes."""

    kind: ClassVar[str] = "network"
    type_name: ClassVar[str] = "network"
    default_type: ClassVar[str] = "network"

    layers: tuple[Table, ...] = attrs.field(validator=attrs.validators.min_len(1))
    """One table per layer: `type` names a type of workload or operation, with the other keys as fields, or `workload`
    names a workload. Further keys: `name`, `repeat` (number of copies in a row), `inputs` (by default the layer before;
    "input" is the network's), `tied` (an earlier layer with the same weights) and `activation` (an operation on every
    word of the output, such as `gelu`)."""
    lacks: tuple[str, ...] = ()
    """Parts missing from all layers and totals, such as operators of an imported model."""
    input: tuple[int, ...] = ()
    """Shape of the input without the batch, (channels, height, width) or (rows, columns). With an input the layers form
    a graph of matching shapes; without, a list of unconnected layers."""
    batch: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Samples at a time, for all layers without a batch of their own."""
    defaults: Mapping[str, Table] = attrs.field(factory=dict)
    """Default keys by type of layer, such as densities."""
    outputs: tuple[str, ...] = ()
    """Layers with outputs that the network returns, although other layers read them; a layer without readers is always
    an output."""
    rectified: tuple[str, ...] | None = None
    """Layers with rectified outputs: negative words become zero before any layer reads them; absent: unknown."""
