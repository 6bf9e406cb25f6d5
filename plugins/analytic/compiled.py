"""The model in C (`kernel.c`): whole batches in one call, with the results of the NumPy chain to the last bit.

`Kernel` lays out what a problem, a model and a chip fix; tables stay those of `occupancy`, whose rows that are missing the
kernel lists, Python fills in one go, and the kernel goes on. What it does not know is for NumPy: models with quirks or
charges of plugins, and single designs whose choices or numbers it does not take.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import attrs
import numpy as np

from sparsemap import Detail, Mechanism
from sparsemap.pieces.contracts import sparsity
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.chip import Chip
from sparsemap.problem.designs import Designs

from . import native
from .actions import Action
from .charges.maxima import DEVIATIONS, LANES, NORMAL, NORMAL_MAXIMA, Maxima, Rowed, limits_of, maxima_of, rank_of
from .layout import decoded_of
from .occupancy import Ranks
from .occupancy.lookup import FACTORS, Number, Table, fingerprint
from .prepared import COLUMNS, ModelTables
from .prices import gated_extra, price, tree_sides
from .validity import data_words

PASSES = 16
"""Calls for one batch, at most: tables that are dropped in between would be asked for again and again."""
TENSORS = 5
"""Most tensors of a model, as in `kernel.h`."""
PRICED = (
    "read", "write", "gated_read", "gated_update", "skipped_read", "skipped_update", "metadata_read", "metadata_write",
    "gated_metadata_read", "gated_metadata_update", "skipped_metadata_read", "skipped_metadata_update",
)  # fmt: skip
OPTIONS = (
    "gate_time", "positions", "drains", "sums", "holes", "remainders", "filter_metadata", "stay", "pointers", "imbalance",
    "intersection", "overlap", "leakage", "gated", "network",
)  # fmt: skip
CHARGES = "intersection", "leakage", "gated", "network"
"""Those that cost energy, in the order of `kernel.h`."""


class PartOfDetail(Detail):
    """What the compiled model tells; the chain is asked for the other fields when one of them is."""

    whole: Callable[[], Detail]

    def __getattr__(self, name: str) -> Any:
        if name not in attrs.fields_dict(Detail):
            raise AttributeError(name)
        found = attrs.asdict(self.whole(), recurse=False)
        for field, value in found.items():
            object.__setattr__(self, field, value)
        return found[name]


def evaluated(known: ModelTables, designs: Designs, chip: Chip, detail: bool = False) -> tuple[Any, ...] | None:
    """Energy, cycles, reasons (B,) of a batch, with `detail` a `Detail` if all are valid, and which designs (n,) are left to
    NumPy; None: all are."""
    if chip.batch is not None:
        return None
    slots = designs.columns["formats"].shape[1]
    kernel = known.kernels[0] if known.kernels else None
    if kernel is None or kernel.chip is not chip or kernel.slots != slots:
        kernel = Kernel(known, chip, slots)
        known.kernels[:] = [kernel]
    if not kernel.knows or decoded_of(known.layout, designs.columns.get("decoded")) is not None:
        return None
    return kernel.evaluated(designs, detail)


class Kernel:
    """One problem on one chip as the compiled model sees it."""

    def __init__(self, known: ModelTables, chip: Chip, slots: int) -> None:
        """`slots`: of the formats of a tensor."""
        self.known, self.chip, self.slots, lay, options = known, chip, slots, known.layout, known.options
        strange = bool(known.quirks or known.strangers or known.joint or known.places.deals)
        moves = lay.problem.slides or lay.streamed.any() or any(lay.linked) or known.formats.flattened.any()
        vectors = options.vectors and lay.problem.levels[-1].memory.vectors
        others = set(attrs.asdict(options)) - {*OPTIONS, "run_lengths", "vectors"}
        strange = strange or any(getattr(options, name) for name in others)
        together = (chip.access_words != 1).any()
        self.knows = not (strange or moves or vectors or together)
        if not self.knows:
            return
        self.gaps: dict[tuple[int, int], Any] = {}
        some = [(t, r) for t, ranks in enumerate(lay.gaps) for r, there in enumerate(ranks) if there is not None]
        for t, r in some if options.holes else ():
            from .charges.holes import gap_table

            self.gaps[t, r] = gap_table(lay, t, r)
        self.maxima = maxima_of(known, float(chip.instances[-1].max())) if options.imbalance else None
        wholes, reals = _laid_out(known, chip, slots, self.maxima)
        self.wholes = np.concatenate([np.asarray(part, dtype=np.int64).reshape(-1) for part in wholes])
        self.reals = np.concatenate([np.asarray(part, dtype=np.float64).reshape(-1) for part in reals])
        self.parts = [max(1, len(lay.ranks[t])) if known.tables[t].by_shape else 1 for t in range(lay.T)]
        self.groups = bool((known.formats.group > 1).any())
        self.work: list[tuple[Rowed, int]] = []
        if self.maxima is not None:
            self.work = [(self.maxima.tiles[i], 1 + self.parts[t]) for i, t in enumerate(lay.operands)]
            self.work.append((self.maxima.meetings, 2))
        pairs = math.comb(len(lay.operands), 2)
        self.ratio_width = 4 + sum(4 + self.parts[t] for t in lay.operands) + pairs
        self.tables = list(self._tables())
        self.last: tuple[int, list[Any]] = (-1, [])
        own = [table.lock for table in known.tables] + [lock for _, lock in self.gaps.values()]
        locks = {id(lock): lock for lock in own + ([] if self.maxima is None else [self.maxima.lock])}
        self.locks = [locks[number] for number in sorted(locks)]

    def evaluated(self, designs: Designs, detail: bool = False) -> tuple[Any, ...] | None:
        """As of the function of this name."""
        columns = [np.ascontiguousarray(designs.columns[name]) for name in COLUMNS]
        if [column.dtype.char for column in columns] != ["d", "b", "b", "b"]:
            return None
        batch = len(designs)
        state, found = np.zeros(batch, dtype=np.int8), np.zeros(batch, dtype=np.uint64)
        energy, cycles = np.full(batch, np.inf), np.full(batch, np.inf)
        lay, functions = self.known.layout, (np.power, np.log2, np.exp, np.hypot, np.log1p, np.log)
        counts = (1, 1, len(CHARGES), lay.S + 1, lay.S, lay.S, lay.T * lay.S, lay.T * lay.S)
        told = np.zeros((batch if detail else 0, sum(counts)))
        for _ in range(PASSES):
            for lock in self.locks:  # always in one order
                lock.acquire()
            try:
                missing = native.kernel.evaluate(
                    self.wholes, self.reals, functions, FACTORS, self._opened(), *columns, state, energy, cycles, found,
                    told,
                )  # fmt: skip
            finally:
                for lock in self.locks:
                    lock.release()
            if missing is None:
                self.knows = False
                return None
            for place, data in missing:
                self._fill(place, np.frombuffer(data))
            if state.all():
                break
        left = np.flatnonzero(state != 1)  # 0: it lacks something, 2: unknown
        whole = detail and not left.size and not found.any()
        parts = np.split(told.T, np.cumsum(counts)[:-1]) if whole else ()
        return energy, cycles, found, self._detail(designs, *parts) if parts else None, left

    def _detail(self, designs: Designs, *parts: Array) -> Detail:
        """`parts` as `told` in `kernel.c` writes them, (n, B)."""
        compute_pj, compute_cycles, charges, used, level, bits, tiles, most = parts
        by_tile, spent = (self.known.layout.T, self.known.layout.S, len(designs)), zip(CHARGES, charges, strict=True)
        fields = {
            "needed": [[] for _ in range(len(designs))],
            "energy_pj": tiles.reshape(by_tile), "compute_energy_pj": compute_pj[0],
            "charges_pj": {name: pj for name, pj in spent if getattr(self.known.options, name)},
            "level_cycles": level, "compute_cycles": compute_cycles[0], "data_words_max": most.reshape(by_tile),
            "metadata_bits_max": bits, "instances_used": used,
        }  # fmt: skip
        found = PartOfDetail(**fields)
        for field in attrs.fields_dict(Detail).keys() - fields.keys():
            object.__delattr__(found, field)

        def whole() -> Detail:
            from .chain import chained

            told = chained(self.known, designs, self.chip, True).detail
            assert told is not None
            return told

        object.__setattr__(found, "whole", whole)
        return found

    def _opened(self) -> list[Any]:
        """The tables in the order of `kernel.c`, as they are now: places, data, and how many numbers each is asked for."""
        changes = sum([table.changes for table, _ in self.tables if table is not None])
        if changes != self.last[0]:
            self.last = (
                changes,
                [None if table is None else (table.places, table.data, width) for table, width in self.tables],
            )
        return self.last[1]

    def _tables(self) -> Iterator[tuple[Table[Any] | None, int]]:
        """All tables, and the width of what each is asked for."""
        lay = self.known.layout
        for t, tables in enumerate(self.known.tables):
            n = self.parts[t]
            yield tables.tiles.table, n
            yield tables._empty, n
            yield tables._largest_stored, 2 * n
            yield tables._longest, 2 * n + 1
            yield tables._units, 3 * n + 6 + (n if self.groups else 0)
            for r in range(lay.D):
                gap = self.gaps.get((t, r))
                yield (None, 0) if gap is None else (gap[0], 3 + 3 * len(lay.ranks[t][r]))
        for known, width in self.work:
            yield known.table, width
        yield from [(None, 0)] * (len(lay.operands) + 1 - len(self.work))
        yield (None, 0) if self.maxima is None else (self.maxima.table, self.ratio_width + 1)

    def _fill(self, place: int, data: Array) -> None:
        """Asks for the rows that a table lacks, which puts them there."""
        lay = self.known.layout
        kinds = 5 + lay.D
        t, kind = divmod(place, kinds)
        if t < lay.T:
            tables, n = self.known.tables[t], self.parts[t]
            if kind == 0:
                tables.tile(_columns(data, n))
            elif kind == 1:
                tables.empty(_columns(data, n))
            elif kind == 2:
                columns = _columns(data, 2 * n)
                tables.largest_stored(columns[:n], columns[n:])
            elif kind == 3:
                columns = _columns(data, 2 * n + 1)
                tables.longest(columns[:n], columns[n : 2 * n], columns[-1])
            elif kind == 4:
                tables.fill_units(Ranks.of(data.reshape(-1, 3 * n + 6 + (n if self.groups else 0)), n))
            else:
                r = kind - 5
                from .charges.holes import looked_up

                looked_up(lay, t, r, np.stack(_columns(data, 3 + 3 * len(lay.ranks[t][r]))))
            return
        assert self.maxima is not None
        i = place - kinds * lay.T
        with self.maxima.lock:
            if i < len(self.work):
                known, width = self.work[i]
                columns = _columns(data, width)
                known.rows(columns[0], np.stack(columns[1:]))
                return
            *keys, ratio = _columns(data, self.ratio_width + 1)  # which the kernel has found itself
            self.maxima.table.rows(fingerprint(keys), lambda rows: Number(ratio[rows]))


def _columns(data: Array, width: int) -> list[Array]:
    """(N,) each, of N rows of so many numbers."""
    return list(np.ascontiguousarray(data.reshape(-1, width).T))


def _laid_out(known: ModelTables, chip: Chip, slots: int, maxima: Maxima | None) -> tuple[list[Any], list[Any]]:
    """The runs of whole and of real numbers that `model_of` in `kernel.c` reads, in its order."""
    lay, forms, places, options = known.layout, known.formats, known.places, known.options
    problem = lay.problem
    actions = [a for a in sorted(places.actions, key=lambda a: -(a.place.storage or 0)) if a.place.storage is not None]
    unit, count = places.compute, len(places.mechanisms)
    lanes = 0 if maxima is None else len(maxima.lanes)
    clusters = np.array([level.memory.cluster for level in problem.levels])
    pads = forms.pads, (forms.block > 1).any(), (forms.group > 1).any(), forms.padded.any(), forms.needs_ends.any()
    wholes: list[Any] = [
        (lay.D, lay.T, lay.S, len(problem.mapping_levels), slots, len(problem.places), count, len(forms.formats)),
        (lay.output, len(actions), len(places.needs), forms.beyond, -1 if unit is None else unit.gene, len(LANES), lanes),
        (forms.every_fiber, *pads, forms.of_one_word.any(), known.copies is not None),
        (clusters > 1).any(),
        [getattr(options, name) for name in OPTIONS],
        lay.temporal, [_or(group) for group in lay.spatial], lay.block, lay.inwards, lay.relevant,
        [len(ranks) for ranks in lay.ranks], _terms(known), lay.windowed, lay.holes,
        [all(len(rank) == 1 and rank[0][1] == 1 for rank in ranks) for ranks in lay.ranks],
        [table.by_shape for table in known.tables], lay.stored,
        [[_or(lay.parent(t, s)) for s in range(lay.S)] for t in range(lay.T)],
        [[_or(lay.child(t, s)) for s in range(lay.S)] for t in range(lay.T)],
        [[lay.spans(t, s) for s in range(lay.S)] for t in range(lay.T)], problem.homes, lay.operands,
        *_bits(known, chip),
        forms.compressed, forms.padded, forms.anywhere, forms.linked, forms.offsets, forms.needs_ends, forms.own_offsets,
        forms.of_one_word, forms.row,
        [[r < len(lay.gaps[t]) and lay.gaps[t][r] is not None for r in range(lay.D)] for t in range(lay.T)],
        lay.cut,
        *(part for gene, t, needs in places.needs for part in ((gene, t, 0), needs)),
        problem.buffers, [level.memory.shares_work for level in problem.levels],
        [rank_of(lay, t) for t in range(lay.T)],
        [[t in lay.alike, *(*lay.alike.get(t, ()), *[1] * lay.D)[: lay.D]] for t in lay.operands],
        len(sparsity._BITS), np.searchsorted(LANES, 1.0), np.searchsorted(LANES, 2.0), NORMAL.shape[1],
    ]  # fmt: skip
    if lay.alike:
        from .charges.alike import figures_of
    alike = figures_of(lay) if lay.alike else np.zeros(len(lay.operands) * (1 + lay.D))
    densities = [occupancy.density for occupancy in lay.occupancies]
    reals: list[Any] = [
        lay.sizes, forms.block, forms.group, densities, [float(np.floor(1e6 * x + 0.5) / 1e6) for x in densities],
        [problem.resident.get((t, problem.homes[t]), np.nan) for t in range(lay.T)],
        np.ones((lay.T, lay.S)) if known.copies is None else known.copies,
        np.log2(LANES), DEVIATIONS, NORMAL_MAXIMA, sparsity._BITS, NORMAL,
        [np.append(limits, np.ones(lay.D - len(limits))) for limits in map(partial(limits_of, known), lay.operands)],
        alike, lay.ends, lay.ends.prod(),
    ]  # fmt: skip
    for action in [*actions, *([] if unit is None else [unit])]:
        level, rest = action.place.storage, [0] * (TENSORS - len(action.leaders))
        where = (0, 0) if level is None else (lay.holder(action.target, level), level)
        holders = [] if level is None else [lay.holder(leader, level) for leader in action.leaders]
        wholes += [
            (action.gene, action.target, *where, len(action.leaders)), [*action.leaders, *rest], [*holders, *rest],
            action.kind, action.blind, action.passes, _plain(known, action),
        ]  # fmt: skip
        rules = [action.filters.get(m) for m in range(count)]
        lookahead = [0.0 if rule is None else rule.lookahead or 0.0 for rule in rules]
        reals += [action.width, lookahead, [1.0 if rule is None else rule.effectiveness for rule in rules]]
    extra = [gated_extra(chip, action) for action in ("read", "update", "metadata_read", "metadata_update")]
    compute = chip.mac_pj["compute"]
    reals += [
        chip.fanout, [data_words(chip, s) for s in range(lay.S)], chip.capacity_bits, chip.shared_capacity,
        chip.metadata_capacity_bits, chip.word_bits, chip.metadata_width, clusters,
        chip.instances[:-1], chip.read_bandwidth, chip.write_bandwidth, chip.bandwidth, chip.lookahead,
        np.concatenate([price(chip, action) for action in PRICED], axis=1),
        [chip.mac_pj[action] for action in ("compute", "gated", "skipped")], np.concatenate(extra, axis=1),
        chip.leakage_mw, chip.asleep, tree_sides(chip), chip.add_pj["word"], chip.add_pj["metadata"],
        (chip.clock_hz, np.maximum(0.0, chip.gated_residual * compute - chip.mac_pj["gated"])),
        (chip.gated_residual * compute, chip.wire_pj_per_bit_mm),
    ]  # fmt: skip
    return wholes, reals


def _or(level: int | None) -> int:
    return -1 if level is None else level


def _terms(known: ModelTables) -> list[list[list[int]]]:
    """By tensor and rank: how many terms, dimension and factor of the first and of the second."""
    return [
        [([len(rank), *(x for term in rank for x in term)] + [0] * 4)[:5] for rank in ranks]
        + [[0] * 5] * (known.layout.D - len(ranks))
        for ranks in known.layout.ranks
    ]


def _bits(known: ModelTables, chip: Chip) -> list[list[int]]:
    """Places of the reasons: by dimension, group, tensor, place, and twice by level; -1: none."""
    lay, at = known.layout, {name: i for i, name in enumerate(known.reasons.names)}
    groups = [(m.spatial, chip.names[m.storage]) for m in lay.problem.mapping_levels]
    return [
        [at[f"factors:{dim}"] for dim in lay.dims],
        [at[f"fanout:{name}"] if spatial else -1 for spatial, name in groups],
        [at[f"format-order:{tensor.name}"] for tensor in lay.tensors],
        [at.get(f"entry-bits:{tensor.name}", -1) for tensor in lay.tensors],
        [at[f"mechanism:{place.name}"] for place in lay.problem.places],
        [at.get(f"capacity:{name}", -1) for name in chip.names],
        [at.get(f"metadata-capacity:{name}", -1) for name in chip.names],
    ]


def _plain(known: ModelTables, action: Action) -> Array:
    """(M,) bool: what a candidate does there is for Python: a plugin says what it removes, or it compares lists of entries."""
    found = np.array(action.entries & known.options.intersection)
    for m in action.filters:
        found[m] |= type(known.places.mechanisms[m]).eliminated is not Mechanism.eliminated
    return found
