"""The analytical cost model: designs in, energy, cycles and reasons out, with the whole batch in every operation.

Order of computation: cheap validity on all designs; then, on the designs that are left, dense traffic, occupancies and
formats, skipping and gating, cycles and energy. `detail` runs the same code and keeps the intermediate arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap.pieces.contracts import Charge, CostModel
from sparsemap.pieces.contracts.base import Array, PerDesign, PerLevel, PerTensor, PerTile
from sparsemap.problem.designs import Designs
from sparsemap.problem.evaluation import Evaluation
from sparsemap.problem.problem import Problem

from .actions import PlaceTables, removals
from .bound import LowerBound
from .costs import compute_energy, level_costs, level_cycles
from .detail import cell_details
from .layout import Layout
from .metadata import metadata_of
from .nest import Nest
from .occupancy import TensorTables
from .ranks import FormatTables, list_ranks, rank_counts
from .run import Run, filtered
from .stored import stored
from .traffic import dense_traffic
from .validity import Reasons

QUIRKS = {
    "Q3": "the smallest possible occupancy counts as the empty tile",
    "Q4": "banded tensors: offsets of sub-tiles are added twice",
    "Q7": "an outer action leaves the metadata traffic of inner levels",
    "Q8": "a level that acts below another acting level loses its metadata reads",
    "Q9": "rounding lets a density exceed one: Timeloop stops, the design is invalid",
    "Q11": "two levels acting on one tensor can leave a negative share",
    "Q16": "filters with other than two operands: chances of their computes do not add up to one",
}
"""Defects of Timeloop that are fixed by default; `quirks` brings them back."""
QUIRK_SETS = {"none": frozenset(), "timeloop-v3": frozenset(QUIRKS)}


def _quirk_set(value: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    names = QUIRK_SETS.get(value) if isinstance(value, str) else frozenset(value)
    if names is None:
        names = frozenset([value])
    wrong = sorted(set(names) - set(QUIRKS))
    if wrong:
        known = ", ".join([*QUIRK_SETS, *QUIRKS])
        raise ValueError(f"unknown quirk '{wrong[0]}'; known: {known}")
    return tuple(sorted(names))


@attrs.frozen(kw_only=True)
class AnalyticModel(CostModel):
    """Agrees with TimeloopV2 (Sparseloop) number for number where that is sound; `quirks = "timeloop-v3"` everywhere."""

    type_name: ClassVar[str] = "analytic"
    needs: ClassVar[tuple[str, ...]] = ("bounds", "order", "formats", "mechanisms")

    quirks: str | tuple[str, ...] = attrs.field(default="none")
    """"none", "timeloop-v3", or a list of quirk names."""
    charges: tuple[Charge, ...] = attrs.field(default=())
    """What hardware pays for beyond Timeloop's formulas, by name or as tables; each kind of charge once."""

    @quirks.validator
    def _known(self, _: Any, value: Any) -> None:
        _quirk_set(value)

    @charges.validator
    def _each_once(self, _: Any, value: tuple[Charge, ...]) -> None:
        names = [charge.type_name for charge in value]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"'{twice[0]}' is charged twice")

    def reasons(self, problem: Problem) -> Mapping[str, str]:
        return self._prepared(problem).reasons.meanings

    def evaluate(self, designs: Designs, problem: Problem, detail: bool = False) -> Evaluation:
        return self._prepared(problem).evaluate(designs, detail)

    def copies(self, problem: Problem) -> Array | None:
        found = [copies for charge in self.charges if (copies := charge.copies(problem)) is not None]
        return np.max(found, axis=0) if found else None

    def lower_bound(self, problem: Problem) -> Evaluation | None:
        """Pairs that no design of the problem beats all (see `bound`); None with quirks, whose defects have no bound."""
        prepared = self._prepared(problem)
        if prepared.quirks:
            return None
        fewer = any(charge.fewer_updates for charge in self.charges)
        found = problem.remember(
            (AnalyticModel, "lower-bound", fewer), lambda: LowerBound(prepared.layout, prepared.places, fewer)
        )
        more = [sum(charge.least_pj(problem, float(n)) for charge in self.charges) for n in found.cycles]
        energy = found.energy_pj + np.array(more) * (1.0 - 1e-9)
        costs = {"energy_pj": energy, "cycles": found.cycles}
        return Evaluation(costs, np.zeros(len(more), dtype=np.uint64), prepared.reasons.names)

    def _prepared(self, problem: Problem) -> _Prepared:
        return problem.remember(
            (AnalyticModel, self.quirks, self.charges),
            lambda: _Prepared(problem, frozenset(_quirk_set(self.quirks)), self.charges, self.copies(problem)),
        )


class _Prepared:
    """The model with the tables of one problem."""

    def __init__(
        self, problem: Problem, quirks: frozenset[str], charges: tuple[Charge, ...] = (), copies: Array | None = None
    ) -> None:
        self.layout = Layout(problem)
        self.quirks, self.charges = quirks, charges
        self.formats = FormatTables.of(problem, charges)
        self.places = PlaceTables.of(problem)
        self.reasons = Reasons.of(self.layout, quirks)
        lay = self.layout
        formats, every = self.formats.all_formats, self.formats.every_fiber
        self.tables = [TensorTables(occupancy, quirks, formats, every) for occupancy in lay.occupancies]
        self.copies = copies

    def evaluate(self, designs: Designs, detail: bool) -> Evaluation:
        bounds, order, slots, genes = (designs.columns[name] for name in AnalyticModel.needs)
        batch = bounds.shape[-1]
        found = np.zeros(batch, dtype=np.uint64)
        products = bounds.prod(axis=1)
        self.reasons.factors(bounds, found)
        if detail:  # loops that do not make up the sizes have no tiles to speak of: these may be beyond all numbers
            bounds = np.where(found == 0, bounds, 1.0)
        self.reasons.fanout(products, found)
        counts = rank_counts(self.layout, bounds)
        packed = self.reasons.formats(slots, counts, genes, self.formats, self.places, found)
        energy, cycles = np.full(batch, np.inf), np.full(batch, np.inf)
        extra: dict[str, Any] | None = {} if detail else None
        rows = np.arange(batch) if detail else np.flatnonzero(found == 0)
        if len(rows):
            if len(rows) < batch:
                bounds, order, slots, genes, packed = (x[..., rows] for x in (bounds, order, slots, genes, packed))
            nest = Nest(self.layout, bounds, order)
            tiles = self._tiles(nest, slots, packed)
            left = found[rows]
            self.reasons.data(self._held(tiles[0]), left)
            found[rows] = left
            fitting = np.arange(len(rows)) if detail else np.flatnonzero(left == 0)
            if len(fitting):
                if len(fitting) < len(rows):
                    columns = (bounds, order, slots, genes, packed)
                    bounds, order, slots, genes, packed = (x[..., fitting] for x in columns)
                    nest = Nest(self.layout, bounds, order)
                    rows, tiles = rows[fitting], tuple(part[..., fitting] for part in tiles)
                values = self._costs(nest, slots, genes, packed, tiles, found[rows], products, extra)
                energy[rows], cycles[rows], found[rows] = values
        valid = found == 0
        energy, cycles = np.where(valid, energy, np.inf), np.where(valid, cycles, np.inf)
        return Evaluation({"energy_pj": energy, "cycles": cycles}, found, self.reasons.names, extra)

    def _held(self, largest: PerTile) -> PerLevel:
        """What a level must have room for, of what the tile of each tensor has at most."""
        return (largest if self.copies is None else largest * self.copies[:, :, None]).sum(axis=0)

    def _tiles(self, nest: Nest, slots: Array, packed: PerTensor) -> tuple[PerTile, PerTile, PerTile]:
        """Words of data that the tile of one instance may hold, which the capacity check adds up; the share of the
        instances that get a tile at all; and the stored words per word of those tiles (5.6, 6.5)."""
        lay = self.layout
        kept = lay.stored[:, :, None]
        words = np.where(kept, nest.tile_words[:, : lay.S], 0.0)
        occupied, density = np.ones(words.shape), np.ones(words.shape)
        for t, table in enumerate(self.tables):
            rows = np.flatnonzero(packed[t])
            if not len(rows):
                continue
            if table.by_shape:
                shapes = [np.concatenate([part[rows] for part in parts]) for parts in zip(*nest.boxes[t], strict=True)]
            else:
                shapes = [nest.tile_words[t][: lay.S][:, rows].reshape(-1)]
            tile = table.tile(shapes)
            tile = type(tile)(*(part.reshape(lay.S, len(rows)) for part in tile))
            drops = np.array([lay.parent(t, s) is not None for s in range(lay.S)])[:, None]
            words[t][:, rows] = np.where(kept[t], tile.largest, 0.0)
            occupied[t][:, rows] = np.where(drops, tile.occupied, 1.0)
            left = np.where(drops, tile.density_occupied, tile.density)
            density[t][:, rows] = np.where(kept[t], left, 1.0)
            more = stored(nest, t, rows, slots[t], self.formats, table)
            if more is not None:
                more.enter(nest, table, words[t], occupied[t], density[t])
        return words, occupied, density

    def _costs(
        self, nest: Nest, slots: Array, genes: Array, packed: PerTensor, tiles: tuple[PerTile, ...], found: PerDesign,
        products: Array, extra: dict[str, Any] | None,
    ) -> tuple[PerDesign, PerDesign, PerDesign]:  # fmt: skip
        lay, batch, tables = self.layout, nest.batch, self.tables
        words, occupied, density = tiles
        traffic = dense_traffic(nest)
        used = nest.instances_used
        held = {t: stored(nest, t, np.flatnonzero(packed[t]), slots[t], self.formats, tables[t]) for t in range(lay.T)}
        granules = {t: more for t, more in held.items() if more is not None}
        removal = removals(nest, genes, self.places, tables, granules)
        run = Run(
            lay.problem, lay, nest, genes, self.places, tables, packed, granules, traffic, occupied, removal, removal
        )
        for charge in self.charges:
            charge.stored(run)
        traffic = run.traffic
        active = np.where(lay.stored[:, :, None], used[None, : lay.S], 0.0) * occupied
        # a compressed tile of one word has one rank without width
        rank_count = np.broadcast_to(packed[:, None], (lay.T, lay.S, batch)).astype(np.int64)
        lists = {}
        for t in range(lay.T):
            rows = np.flatnonzero(packed[t])
            if not len(rows):
                continue
            lists[t] = list_ranks(nest, t, rows, slots[t], self.formats, tables[t], run.offsets)
            rank_count[t] = np.maximum(rank_count[t], lists[t].counts)
        metadata = metadata_of(nest, lists, slots, tables, traffic, extra is not None)
        largest = np.ceil(metadata.bits(metadata.largest))
        metadata_bits, data_words = self._held(largest), self._held(words)
        self.reasons.metadata(data_words, metadata_bits, found)
        run.total = used[lay.S] * nest.steps[-1]
        view = run.view = filtered(run, metadata, 1.0 - density, rank_count, self.quirks)
        for charge in self.charges:
            charge.moved(run)
        run.split(level_costs(lay, view.counts, view.metadata, batch))
        counts, compute, costs = run.counts, run.compute, run.costs
        assert counts is not None and compute is not None and costs is not None and run.time_costs is not None
        assert run.time_compute is not None
        if "Q9" in self.quirks:
            for t, impossible in zip(lay.operands, compute.impossible, strict=True):
                self.reasons.mark(found, f"operand-probability:{lay.tensors[t].name}", impossible)
        run.compute_cycles = np.ceil((run.time_compute.actual + run.time_compute.gated) / used[lay.S])
        for charge in self.charges:
            charge.worked(run)
        compute_cycles = run.compute_cycles
        run.active = active
        here, slowdown = level_cycles(lay, run.time_costs, used[: lay.S], active, compute_cycles)
        energy, cycles = compute_energy(lay, compute), compute_cycles
        spent = costs.energy_pj * active
        for s in range(lay.S):  # one by one: sums of NumPy may add in another order for another batch
            cycles = np.maximum(cycles, here[s])
            for t in range(lay.T):
                energy = energy + spent[t, s]
        run.level_cycles, run.cycles = here, cycles
        for charge in self.charges:
            charge.timed(run)
        run.energy_pj = energy
        for charge in self.charges:
            charge.spent(run)
        energy, cycles = run.energy_pj, run.cycles
        if extra is not None:
            extra.update(
                needed=self.reasons.needed(data_words, metadata_bits, products, found),
                data_words_max=words, tile_words=nest.tile_words[:, : lay.S], instances_used=used, instances_active=active,
                metadata_bits_max=metadata_bits, traffic=traffic, compute=compute, compute_cycles=compute_cycles,
                compute_energy_pj=compute_energy(lay, compute), level_cycles=here, slowdown=slowdown, energy_pj=spent,
                cells=cell_details(lay, traffic, counts, metadata.after(view.metadata), costs), packed=packed,
                charges=run.spent_pj,
            )  # fmt: skip
        return energy, cycles, found
