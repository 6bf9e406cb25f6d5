"""The record of one batch that charges read and change. Arrays are NumPy's, the batch B last, all of one instance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import attrs
import numpy as np

from sparsemap import Charge
from sparsemap.pieces.contracts.base import Array, PerDesign, PerLevel, PerTensor, PerTile, Rows
from sparsemap.problem.problem import Problem

from .actions import PlaceTables, Removal
from .compute import Compute, compute_counts
from .costs import Costs
from .layout import Layout
from .metadata import Metadata
from .nest import Nest
from .sparse import Counts, less, storage_counts
from .stored import Stored
from .traffic import Traffic

Record = TypeVar("Record", bound=attrs.AttrsInstance)


def widened(values: Array, designs: Rows | None) -> Array:
    """(.., C) of (.., B): all B designs, then those that `designs` (C,) has beyond."""
    if designs is None:
        return values
    batch = values.shape[-1]
    found = np.empty((*values.shape[:-1], len(designs)), dtype=values.dtype)
    found[..., :batch] = values
    found[..., batch:] = np.take(values, designs[batch:], axis=-1)
    return found


class _Columns:
    """Some entries of the last axis of a record's arrays, each taken when it is read first."""

    def __init__(self, record: Any, which: Rows | slice) -> None:
        self._record, self._which = record, which

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = self._some(getattr(self._record, name))
        return found

    def _some(self, value: Any) -> Any:
        if isinstance(value, dict):
            return _Parts(value, self._some)
        if isinstance(value, list):
            return [self._some(part) for part in value]
        return value[..., self._which] if isinstance(self._which, slice) else np.take(value, self._which, axis=-1)


class _Parts(Mapping[str, Any]):
    """The same of a dictionary."""

    def __init__(self, parts: dict[str, Any], some: Callable[[Any], Any]) -> None:
        self._parts, self._some = parts, some

    def __getitem__(self, key: str) -> Any:
        return self._some(self._parts[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


def columns(record: Record, which: Rows | slice) -> Record:
    """A record with some entries of the last axis of its arrays."""
    return cast(Record, _Columns(record, which))


@attrs.define(eq=False)
class View:
    """What the filters of `removal` leave: accesses, metadata and computes, in C columns: all B designs with what costs
    energy, then once more those of which something else takes time."""

    removal: Removal
    counts: Counts
    metadata: Metadata
    compute: Compute
    designs: Rows | None = None
    """(C,) the design of a column; None: C = B."""
    time: Rows | slice = slice(None)
    """(B,) the column of a design's time."""

    def wide(self, values: Array) -> Array:
        """(.., C) of (.., B)."""
        return widened(values, self.designs)


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
    """Words of the output that a level reads for its parent, of time: (S, C) in `moved`; None: not counted."""
    view: View | None = None
    """What `moved` sees. Of its columns:"""
    counts: Counts | None = None
    """What costs energy .."""
    time_counts: Counts | None = None
    """.. and what takes time; so for the computes and the costs."""
    compute: Compute | None = None
    time_compute: Compute | None = None
    costs: Costs | None = None
    time_costs: Costs | None = None
    total: PerDesign | float = 0.0
    """Dense computes."""
    compute_cycles: PerDesign | float = 0.0
    active: PerTile | float = 0.0
    """Instances that are expected in use."""
    level_cycles: PerLevel | None = None
    cycles: PerDesign | float = 0.0
    energy_pj: PerDesign | float = 0.0
    spent_pj: dict[str, PerDesign] = attrs.field(factory=dict)
    """Of `energy_pj`, what charges have added, by their name."""

    def spend(self, charge: Charge, added_pj: PerDesign) -> None:
        self.spent_pj[charge.type_name] = added_pj
        self.energy_pj = self.energy_pj + added_pj

    def split(self, costs: Costs) -> None:
        """Sets what is of energy and what is of time, from the columns of the view and their costs."""
        assert self.view is not None
        counted = self.view.counts, self.view.compute, costs
        self.counts, self.compute, self.costs = self.time_counts, self.time_compute, self.time_costs = counted
        if self.view.designs is not None:
            first, time = slice(0, self.nest.batch), self.view.time
            self.counts, self.compute, self.costs = (columns(record, first) for record in counted)
            self.time_counts, self.time_compute, self.time_costs = (columns(record, time) for record in counted)
            if self.leaving is not None:
                self.leaving = np.take(self.leaving, time, axis=-1)


def filtered(run: Run, metadata: Metadata, emptiness: PerTile, rank_counts: PerTile, quirks: frozenset[str]) -> View:
    """7.2 and 7.3, with all filters and, where these differ, with those that save time."""
    lay, batch, traffic = run.layout, run.nest.batch, run.traffic
    removal, timed, granules = run.removal, run.time_removal, run.granules
    designs, time = None, slice(None)
    rows = np.flatnonzero(removal.differs(timed)) if timed is not removal else np.zeros(0, dtype=np.int64)
    if rows.size:
        time = np.arange(batch)
        time[rows] = np.arange(batch, batch + len(rows))
        designs = np.concatenate([np.arange(batch), rows])
        changed = removal.changed(timed, rows)
        changed[lay.output] = True  # whose updates follow the computes
        metadata = metadata.twice(rows, ~changed)
        removal = removal.join(timed, rows)
        granules = {t: some.twice(time) for t, some in granules.items()}
    left = (widened(less(part, emptiness), designs) for part in (traffic.reads, traffic.fills, traffic.updates))
    inputs = (rank_counts, run.total, run.packed, run.genes)
    rank_counts, total, packed, genes = (widened(values, designs) for values in inputs)
    densities = [occupancy.density for occupancy in lay.occupancies]
    counts = storage_counts(lay, *left, metadata, rank_counts, removal, quirks)
    compute = compute_counts(lay, total, densities, packed, granules, removal, run.places, genes, quirks)
    return View(removal, counts, metadata, compute, designs, time)
