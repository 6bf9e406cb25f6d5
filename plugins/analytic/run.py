"""The record of one batch that charges read and change. Arrays are NumPy's, the batch B last, all of one instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from sparsemap.pieces.contracts.base import Array, PerDesign, PerLevel, PerTensor, PerTile
from sparsemap.problem.problem import Problem

from .actions import PlaceTables, Removal
from .compute import Compute
from .costs import Costs
from .layout import Layout
from .nest import Nest
from .ranks import Metadata
from .sparse import Counts
from .stored import Stored
from .traffic import Traffic


@attrs.define(eq=False)
class View:
    """What the filters of `removal` leave: accesses, metadata and computes."""

    removal: Removal
    counts: Counts
    metadata: Metadata
    compute: Compute


@attrs.define(eq=False)
class Run:
    """A batch of designs between decoding and their cost; symbols are those of docs/model.md."""

    problem: Problem
    layout: Layout
    nest: Nest
    genes: Array
    """(A, B) candidate of each S/G place."""
    places: PlaceTables
    tables: Sequence[Any]
    """Per tensor, what is known of its tiles (`occupancy.TensorTables`)."""
    packed: PerTensor
    """(T, B) bool: the tensor has metadata."""
    granules: Mapping[int, Stored]
    traffic: Traffic
    """Dense counts."""
    occupied: PerTile
    """Share of the instances that get a tile."""
    removal: Removal
    """What filters remove."""
    time_removal: Removal
    """What filters remove of the time."""
    offsets: PerTile | None = None
    """bool: the innermost rank outside the child's tile has an offset for each position; None: none has."""
    leaving: PerLevel | None = None
    """Words of the output that a level reads for its parent, of time; None: not counted."""
    views: tuple[View, ...] = ()
    """What costs energy, and what takes time: one view twice, where they do not differ."""
    total: PerDesign | float = 0.0
    """Dense computes."""
    compute_cycles: PerDesign | float = 0.0
    active: PerTile | float = 0.0
    """Instances that are expected in use."""
    costs: Costs | None = None
    """What costs energy .."""
    time_costs: Costs | None = None
    """.. and what takes time."""
    level_cycles: PerLevel | None = None
    cycles: PerDesign | float = 0.0
    energy_pj: PerDesign | float = 0.0
    parts: dict[str, Any] = attrs.field(factory=dict)
    """For `detail`: what charges want to be seen, by their name."""

    @property
    def energy_view(self) -> View:
        return self.views[0]

    @property
    def time_view(self) -> View:
        return self.views[-1]
