"""Details of designs beyond energy and cycles, and counts for charges of plugins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsemap import ChipCounts, Detail, Evaluation
from sparsemap.pieces.boundary import charged
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.chip import Chip
from sparsemap.problem.designs import Designs
from sparsemap.problem.detail import TensorAtLevel, TileRanks

from .actions import GATE, SKIP
from .inner import functions
from .prepared import ModelTables
from .prices import NS

if TYPE_CHECKING:
    from .evaluation import Chain

CHARGES = ("intersection", "leakage", "gated", "network", "shared_words")
"""Built-in charges of energy."""
KINDS = {"gated": GATE, "skipped": SKIP}


class Copies:
    """Copies of record fields, design by design; attributes stack them with the batch B as last axis."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names, self.rows = names, list[list[Any]]()

    def take(self, record: Any) -> None:
        """Append a copy of the current field values."""
        self.rows.append([np.array(getattr(record, name)) for name in self.names])

    def __getattr__(self, name: str) -> Array:
        at = self.names.index(name)
        return np.stack([row[at] for row in self.rows], axis=-1)


DESIGN = (
    "energy_pj", "cycles", "compute_pj", "compute_cycles", "mean_cycles", "uneven_cycles", "leakage_pj_per_cycle",
    "intersection_pj", "leakage_pj", "gated_pj", "network_pj", "shared_words_pj", "tile_pj", "level_cycles",
    "slowdown", "words", "word_width", "most", "largest_bits", "used", "active", "reads", "fills", "updates",
    "needed", "reasons",
)  # fmt: skip
COUNTS = (
    "read", "fill", "update", "gone_read", "gone_update", "kind", "read_bits", "fill_bits", "update_bits",
    "gone_read_bits", "gone_update_bits", "actual", "gated", "skipped",
)  # fmt: skip


def wholly(known: ModelTables, designs: Designs, chip: Chip) -> Iterator[Chain]:
    """The chain for each design in turn, with all links evaluated."""
    from .evaluation import chains_of

    for chain, some, _ in chains_of(known, designs, chip):
        for _ in chain.wholly(some):
            yield chain


def evaluated_whole(known: ModelTables, designs: Designs, chip: Chip) -> Evaluation:
    """Evaluation of a batch with details. All links are evaluated, so a design lists all reasons for being invalid."""
    lay, x, c, ranks = known.layout, Copies(DESIGN), Copies(COUNTS), []
    for chain in wholly(known, designs, chip):
        x.take(chain.design)
        c.take(chain.every)
        ranks.append({(t, s): _ranks_of(chain, t, s) for t in range(lay.T) for s in range(lay.S)})
    bits, reasons = known.held(x.largest_bits), x.reasons.view(np.uint64)
    lacking: list[list[Any]] = [[] for _ in range(len(designs))]
    if reasons.any():
        from .shortfalls import needed

        lacking = needed(known.reasons, known.held(x.most * x.word_width), bits, x.needed, chip, reasons)
    energy, cycles, spent = costs_of(known, x, c, chip)
    energy = np.where(reasons == 0, energy, np.inf)
    cells = [[_cell(lay, x, c, ranks, t, s) if lay.handled[t, s] else None for s in range(lay.S)] for t in range(lay.T)]
    told = Detail(
        needed=lacking, energy_pj=x.tile_pj, compute_energy_pj=x.compute_pj, charges_pj=spent,
        level_cycles=x.level_cycles, compute_cycles=x.compute_cycles, mean_cycles=x.mean_cycles,
        uneven_cycles=x.uneven_cycles, slowdown=x.slowdown,
        tile_words=x.words[:, : lay.S], data_words_max=x.most,
        word_bits=x.word_width * chip.word_bits[:, None], metadata_bits_max=bits, instances_used=x.used,
        instances_active=x.active, dense_reads=x.reads, dense_fills=x.fills, dense_updates=x.updates,
        computes=c.actual, gated_computes=c.gated, skipped_computes=c.skipped, cells=cells,
    )  # fmt: skip
    costs = {"energy_pj": energy, "cycles": np.where(reasons == 0, cycles, np.inf)}
    return Evaluation(costs, reasons, known.reasons.names, told)


def costs_of(known: ModelTables, x: Copies, c: Copies, chip: Chip) -> tuple[Array, Array, dict[str, Array]]:
    """Energy in pJ and cycles (B,) with charges of plugins, using the largest cycles; and the energy of each charge in
    pJ (B,), by name."""
    cycles = x.cycles
    for charge in known.strangers:
        cycles = np.maximum(cycles, charged(charge, "cycles", chip_counts(x, c, x.cycles), chip))
    spent = {name.replace("_", "-"): getattr(x, f"{name}_pj") for name in CHARGES if getattr(known.options, name)}
    if known.options.leakage:
        spent["leakage"] = x.leakage_pj_per_cycle * cycles
        idle = chip.instances[0] * chip.leakage_mw[0] * NS / chip.clock_hz * cycles
        if np.any(idle > 0.0):
            spent |= {"leakage": spent["leakage"] - idle, "idle": idle}
    energy = x.energy_pj + x.leakage_pj_per_cycle * (cycles - x.cycles)
    for charge in known.strangers:
        spent[charge.type_name] = charged(charge, "pj", chip_counts(x, c, cycles), chip)
        energy = energy + spent[charge.type_name]
    return energy, cycles, spent


def _ranks_of(chain: Chain, t: int, s: int) -> tuple[Array, Array, Array]:
    """Places, units and accesses of the ranks of a tile: (n,), (n, 6), (n, 10)."""
    x = chain.design
    some = slice(int(np.asarray(x.begin)[t, s]), int(np.asarray(x.end)[t, s]))
    return np.array(x.entry_place)[some], np.array(x.entry)[some], np.array(chain.every.ranks)[some]


def _cell(lay: Any, x: Copies, c: Copies, ranks: Sequence[Any], t: int, s: int) -> TensorAtLevel:
    read, fill, update, gone_read, gone_update = (getattr(c, name)[t, s] for name in COUNTS[:5])
    kind, reads, updates = c.kind[t, s], x.reads[t, s], x.updates[t, s]
    reductions = np.zeros(len(reads))
    if t == lay.output:
        scaled = np.ceil(reads * update / np.where(updates > 0.0, updates, 1.0))
        reductions = np.where(updates > 0.0, scaled, reads)
    told = _tile_ranks(ranks, t, s)
    bits = {} if told is None else {name: getattr(c, f"{name}_bits")[t, s] for name in ("read", "fill", "update")}
    for prefix, which in KINDS.items() if bits else ():
        if (c.kind == which).any():
            gone = {name: getattr(c, f"gone_{name}_bits")[t, s] for name in ("read", "update")}
            bits |= {f"{prefix}_{name}": lost * (kind == which) for name, lost in gone.items()}
    return TensorAtLevel(
        read, fill, update, gone_read, gone_update, kind.astype(np.int8), reductions, told, bits
    )  # fmt: skip


def _tile_ranks(ranks: Sequence[Any], t: int, s: int) -> TileRanks | None:
    """The ranks of a tile for all designs, one after the other; None: no design has ranks there."""
    place, units, counts = (np.concatenate(parts) for parts in zip(*(one[t, s] for one in ranks), strict=True))
    if not len(place):
        return None
    design = np.repeat(np.arange(len(ranks)), [len(one[t, s][0]) for one in ranks])
    pairs = [(counts[:, i], counts[:, i + 1]) for i in range(0, 10, 2)]
    largest = units[:, functions.LARGEST_METADATA], units[:, functions.LARGEST_PAYLOAD]
    bits = units[:, functions.METADATA_BITS], units[:, functions.PAYLOAD_BITS]
    return TileRanks(len(ranks), design, place, *bits, largest, *pairs)


def chip_counts(x: Copies, c: Copies, cycles: Array) -> ChipCounts:
    """Counts over all instances together, with all filters, of designs taking `cycles` (B,)."""
    active = x.active
    return ChipCounts(
        read=c.read * active, filled=c.fill * active, updated=c.update * active,
        metadata_read_bits=c.read_bits * active, metadata_filled_bits=c.fill_bits * active,
        metadata_updated_bits=c.update_bits * active, computes=c.actual, gated_computes=c.gated,
        skipped_computes=c.skipped, cycles=cycles, instances=x.used,
    )  # fmt: skip


def with_charges(
    known: ModelTables, designs: Designs, chip: Chip, energy: Array, cycles: Array, reasons: Array
) -> None:
    """Add charges of plugins to energy in pJ and cycles (B,), in place."""
    rows = np.flatnonzero(reasons == 0)
    if not rows.size:
        return
    chip = chip if chip.batch is None else chip.take(rows)
    x, c = Copies(DESIGN), Copies(COUNTS)
    for chain in wholly(known, designs.take(rows), chip):
        x.take(chain.design)
        c.take(chain.every)
    energy[rows], cycles[rows], _ = costs_of(known, x, c, chip)
