"""The links of the chain from what tiles hold to what designs cost, and the detail that is told of them.

Every link is a frozen record, made by one function from those before it; `detail` runs the same code.

| record | section | made by |
|---|---|---|
| `Nest` | 3 | its loops |
| `Traffic` | 4 | `traffic.dense_traffic` |
| `StoredTiles` | 5.6, 6.5 | `stored.stored_of` |
| `Removals` | 7.1 | `removal.removals_of` |
| `Metadata` | 6.2, 6.3 | `metadata.metadata_of` |
| `Counts` | 6.4, 7.2, 7.3 | `counts.counts_of` |
| `Cycles` | 8 | `cycles.cycles_of` |
| `Cost` | 9 | `cost.cost_of` |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from sparsemap import Detail, Evaluation
from sparsemap.pieces.contracts.base import Array, PerLevel, Rows
from sparsemap.problem.chip import Chip
from sparsemap.problem.designs import Designs
from sparsemap.problem.detail import ShortfallRow, TensorAtLevel, TileRanks

from . import checks
from .cost import Cost, cost_of
from .counts import Counts, counts_of, temporal_reductions
from .cycles import Cycles, cycles_of
from .layout import decoded_of
from .metadata import Metadata, metadata_of
from .nest import DesignChoices, Nest
from .prepared import COLUMNS, ModelTables
from .rank_loops import rank_counts
from .removal import removals_of
from .stored import StoredTiles, stored_of
from .traffic import Traffic, dense_traffic


@attrs.frozen(eq=False)
class Chain:
    """All links of a batch."""

    known: ModelTables
    nest: Nest
    choices: DesignChoices
    stored: StoredTiles
    traffic: Traffic
    metadata: Metadata
    counts: Counts
    cycles: Cycles
    cost: Cost
    data_words: PerLevel
    """(S, B) words that a level must have room for .."""
    metadata_bits: PerLevel
    """.. and bits of metadata."""

    @classmethod
    def of(cls, known: ModelTables, nest: Nest, choices: DesignChoices, stored: StoredTiles) -> Chain:
        traffic = dense_traffic(nest, known.options.drains, "first-fills" in known.quirks, known.options.holes)
        removals = removals_of(known, nest, choices, stored)
        metadata = metadata_of(known, nest, choices, removals.energy)
        asked = known, nest, choices, traffic, stored, removals
        counts = timed = counts_of(*asked, removals.energy, metadata)
        if removals.time is not removals.energy:
            timed = counts_of(*asked, removals.time, metadata)
        cycles = cycles_of(known, nest, choices, traffic, removals, counts, timed)
        cost = cost_of(known, nest, choices, traffic, counts, cycles)
        room = known.held(stored.words), known.held(metadata.largest_bits)
        return cls(known, nest, choices, stored, traffic, metadata, counts, cycles, cost, *room)

    def detail(self, needed: Sequence[Sequence[ShortfallRow]]) -> Detail:
        lay, counts, cost, traffic = self.known.layout, self.counts, self.cost, self.traffic
        cells = [[self._cell(t, s) if lay.handled[t, s] else None for s in range(lay.S)] for t in range(lay.T)]
        return Detail(
            needed=needed, energy_pj=cost.tile_pj, compute_energy_pj=cost.compute_pj, charges_pj=cost.charges_pj,
            level_cycles=self.cycles.level, compute_cycles=self.cycles.compute, slowdown=self.cycles.slowdown,
            tile_words=self.nest.tile_words[:, : lay.S], data_words_max=self.stored.words,
            metadata_bits_max=self.metadata_bits, instances_used=self.nest.instances_used,
            instances_active=counts.active, dense_reads=traffic.reads, dense_fills=traffic.fills,
            dense_updates=traffic.updates, computes=counts.computes.actual,
            gated_computes=counts.computes.gated, skipped_computes=counts.computes.skipped, cells=cells,
        )  # fmt: skip

    def _cell(self, t: int, s: int) -> TensorAtLevel:
        counts = self.counts
        words = counts.read, counts.fill, counts.update, counts.gone_read, counts.gone_update, counts.kind
        read, fill, update, gone_read, gone_update, kind = (part[t, s] for part in words)
        reductions = temporal_reductions(self.known.layout, self.traffic, counts.update)
        ranks = self._ranks(t, s)
        bits = {} if ranks is None else {action: part[t, s] for action, part in counts.bits.items()}
        return TensorAtLevel(read, fill, update, gone_read, gone_update, kind, reductions[t, s], ranks, bits)

    def _ranks(self, t: int, s: int) -> TileRanks | None:
        metadata, accesses = self.metadata, self.counts.metadata
        (_, levels, batch), units = metadata.shape, metadata.units
        rows = np.flatnonzero(metadata.cell // batch == t * levels + s)
        if not rows.size:
            return None

        def some(parts: Array | Sequence[Array]) -> tuple[Array, Array]:
            return parts[0][rows], parts[1][rows]

        return TileRanks(
            batch, metadata.cell[rows] % batch, metadata.place[rows], units.metadata_bits[rows],
            units.payload_bits[rows], some((units.largest_metadata, units.largest_payload)), some(accesses.read),
            some(accesses.fill), some(accesses.update), some(accesses.gone_read), some(accesses.gone_update),
        )  # fmt: skip


def chained(known: ModelTables, designs: Designs, chip: Chip, detail: bool) -> Evaluation:
    """Cheap checks on all designs; then the chain on those that are left, or with `detail` on all."""
    reasons = known.reasons
    bounds, order, slots, genes = (designs.columns[name] for name in COLUMNS)
    batch = bounds.shape[-1]
    found = np.zeros(batch, dtype=np.uint64)
    products = bounds.prod(axis=1)
    checks.factors(reasons, bounds, found)
    checks.slides(reasons, bounds, order, found)
    if detail:  # loops that do not make up the sizes have no tiles to speak of: these may be beyond all numbers
        bounds = np.where(found == 0, bounds, 1.0)
    decoded = decoded_of(known.layout, designs.columns.get("decoded"))
    counts = rank_counts(known.layout, bounds, decoded)
    if known.places.deals:
        from .lanes import fewest, unmatched

        whole = Nest(known.layout, np.where(found == 0, bounds, 1.0), order)
        products = fewest(known, whole, genes)
        for place, wrong in unmatched(known, whole, genes):
            reasons.mark(found, f"mechanism:{place}", wrong)
    checks.fanout(reasons, products, chip, found)
    packed = checks.formats(reasons, slots, counts, decoded, genes, known.formats, known.places, found)
    choices = DesignChoices(slots, genes, packed, decoded, chip)
    energy, cycles = np.full(batch, np.inf), np.full(batch, np.inf)
    told: Detail | None = None
    rows = np.arange(batch) if detail else np.flatnonzero(found == 0)

    def tiles(rows: Rows) -> tuple[Nest, DesignChoices, StoredTiles]:
        nest = Nest(known.layout, *(np.take(part, rows, axis=-1) for part in (bounds, order)))
        mine = choices.take(rows)
        return nest, mine, stored_of(known, nest, mine)

    if len(rows):
        nest, mine, stored = tiles(rows)
        left = found[rows]
        checks.data(reasons, known.held(stored.words), mine.chip, left)
        found[rows] = left
        rows = rows if detail else rows[left == 0]
    if len(rows):
        if len(rows) < nest.batch:
            nest, mine, stored = tiles(rows)
        chain = Chain.of(known, nest, mine, stored)
        left = found[rows]
        checks.metadata(reasons, chain.data_words, chain.metadata_bits, chain.metadata.narrow, mine.chip, left)
        if "Q9" in known.quirks:
            for t, impossible in zip(known.layout.operands, chain.counts.computes.impossible, strict=True):
                name = known.layout.tensors[t].name
                reasons.mark(left, f"operand-probability:{name}", impossible)
        energy[rows], cycles[rows], found[rows] = chain.cost.energy_pj, chain.cost.cycles, left
        if detail:
            lacking: list[list[Any]] = [[] for _ in range(batch)]
            if found.any():
                from .shortfalls import needed

                lacking = needed(reasons, chain.data_words, chain.metadata_bits, products, chip, found)
            told = chain.detail(lacking)
    valid = found == 0
    energy, cycles = np.where(valid, energy, np.inf), np.where(valid, cycles, np.inf)
    return Evaluation({"energy_pj": energy, "cycles": cycles}, found, reasons.names, told)
