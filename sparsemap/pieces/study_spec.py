"""Specs of studies and networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from . import defaults
from .contracts import Piece, naming, unit
from .data_specs import Table

SOME: Any = attrs.validators.min_len(1)


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
    workload; `name`, `repeat` (how often it stands there, one after the other), `inputs` (by default the layer before;
    "input" is the network's) and `tied` (a layer before it whose weights it has)."""
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
