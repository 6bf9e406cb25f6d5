"""Evaluate batches of designs through the chain of `inner`, filling tables in between, and report details."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from sparsemap import Evaluation
from sparsemap.pieces.boundary import eliminated_of
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.chip import Chip
from sparsemap.problem.designs import Designs

from .actions import Action
from .charges.holes import looked_up
from .charges.maxima import works_of
from .charges.vectors import steps_of
from .facts import actions_of, facts_of, room_for
from .inner import functions
from .layout import decoded_of
from .occupancy import Ranks
from .occupancy.lookup import distinct
from .prepared import COLUMNS, ModelTables

PLACES = 1 << 15
"""Places in empty tables."""
REQUESTS = 1 << 12
"""Largest number of rows requested at once."""
FIGURES = 1 << 16
"""Room for numbers in empty tables."""
KEPT = 8 << 20
"""Largest number of figures kept before the tables are emptied."""
NONE = 2
"""State of columns describing no design (`inner/chain.py`)."""
ARGUMENTS = 256
"""Largest number of arguments of one row."""


class Chain:
    """The chain for one problem on one chip. A lock admits one batch at a time."""

    def __init__(self, known: ModelTables, chip: Chip, slots: int) -> None:
        """`slots`: formats per tensor in a genome."""
        self.known, self.chip, self.slots, self.lock = known, chip, slots, Lock()
        self.facts = facts_of(known, chip, slots)
        self.design, self.every, self.timed = room_for(self.facts, len(known.layout.problem.places))
        self.actions = actions_of(known)
        self.homes = homes_of(known)
        self.tables = functions.FigureTables()
        self.tables.argument = np.zeros(ARGUMENTS)
        self.tables.requests = np.zeros(REQUESTS * 16)
        self.tables.keys, self.tables.starts = np.zeros((2, REQUESTS), dtype=np.int64)
        self._empty_tables()

    def _empty_tables(self) -> None:
        self.tables.places, self.tables.bits = np.zeros((PLACES, 2), dtype=np.int64), PLACES.bit_length() - 1
        self.tables.data = np.zeros(FIGURES)
        self.tables.count = self.tables.used = 0

    def evaluated(self, designs: Designs) -> tuple[Array, Array, Array]:
        """Energy in pJ, cycles and reasons (B,)."""
        batch, columns = len(designs), self._columns(designs)
        state, reasons = np.zeros((2, batch), dtype=np.int64)
        energy, cycles = np.full((2, batch), np.inf)
        records = self.facts, self.tables, self.design, self.every, self.timed
        with self.lock:
            self._asked(partial(functions.evaluate, *records, *columns, state, energy, cycles, reasons), state.all)
        for b in np.flatnonzero(state == NONE)[:1]:
            raise _no_design(int(b))
        return energy, cycles, reasons.view(np.uint64)

    def wholly(self, designs: Designs) -> Iterator[int]:
        """Evaluate each design in turn through all links, even if invalid, and yield its index; the records hold the
        details."""
        columns, records = self._columns(designs), (self.facts, self.tables, self.design, self.every, self.timed)
        with self.lock:
            for b in range(len(designs)):
                state = np.zeros(1, dtype=np.int64)

                def evaluate(b: int = b, state: Array = state) -> None:
                    state[0] = functions.evaluate_whole(*records, *columns, b)

                self._asked(evaluate, state.all)
                if state[0] == NONE:
                    raise _no_design(b)
                yield b

    def _columns(self, designs: Designs) -> list[Array]:
        lay = self.known.layout
        bounds, order, slots, genes = (np.ascontiguousarray(designs.columns[name]) for name in COLUMNS)
        decoded = decoded_of(lay, designs.columns.get("decoded"))
        if decoded is None:
            decoded = np.full((lay.T, len(designs)), lay.S)
        kinds = (bounds, np.float64), *((column, np.int8) for column in (order, slots, genes, decoded))
        return [np.ascontiguousarray(column, dtype=kind) for column, kind in kinds]

    def _asked(self, evaluate: Callable[[], None], done: Callable[[], Any]) -> None:
        """Evaluate repeatedly, filling the tables in between, until no figure is missing."""
        tables = self.tables
        if tables.used > KEPT:
            self._empty_tables()
        while not done():
            tables.rows = tables.asked = tables.full = 0
            evaluate()
            if not tables.rows and not tables.full and not done():
                raise RuntimeError("the tables of the model lack figures that they are not asked for")
            try:
                self._fill()
            except BaseException:
                self._empty_tables()  # of keys without figures
                raise
            self._make_room()

    def _make_room(self) -> None:
        tables = self.tables
        while functions.SPARSE * (tables.count + REQUESTS) > len(tables.places):
            taken = np.asarray(tables.places)
            tables.places = np.zeros((2 * len(taken), 2), dtype=np.int64)
            tables.bits += 1
            functions.place(taken[taken[:, 0] != 0], tables.places, tables.bits)
        self._widen(tables.used + FIGURES // 2)

    def _widen(self, size: int) -> None:
        """Make room for `size` figures; new memory is not touched."""
        known, used = np.asarray(self.tables.data), self.tables.used
        if size > len(known):
            self.tables.data = np.zeros(max(size, 2 * len(known)))
            np.asarray(self.tables.data)[:used] = known[:used]

    def _fill(self) -> None:
        """Compute all requested figures."""
        tables, rows = self.tables, self.tables.rows
        if not rows:
            return
        requests, begins = np.asarray(tables.requests), np.asarray(tables.starts)[:rows]
        kinds = self.homes[requests[begins].astype(np.int64)] * ARGUMENTS + requests[begins + 1].astype(np.int64)
        starts, figures = np.zeros(rows, dtype=np.int64), []
        used = tables.used
        for kind in sorted({*kinds.tolist()}):
            mine, (table, count) = np.flatnonzero(kinds == kind), divmod(kind, ARGUMENTS)
            columns = requests[begins[mine] + 2 + np.arange(count)[:, None]]
            found = np.atleast_2d(self._figures(table, columns))
            starts[mine] = used + np.arange(len(mine)) * len(found)
            used += found.size
            figures.append(found.T.reshape(-1))
        self._widen(used)
        np.asarray(tables.data)[tables.used : used] = np.concatenate(figures)
        tables.used = used
        functions.enter_figures(tables, starts)

    def _figures(self, table: int, columns: Array) -> Array:
        """(figures, n) or (n,) figures of a table for arguments (k, n)."""
        known, lay = self.known, self.known.layout
        t, kind = divmod(table, functions.KINDS)
        if t == lay.T:
            if kind == functions.STEPS:
                return np.array([steps_of(*one) for one in columns.T.tolist()])
            assert kind == functions.SHARE
            return self._shares(columns)
        tables, parts = known.tables[t], list(columns)
        n = max(1, len(lay.ranks[t])) if tables.by_shape else 1
        if kind == functions.TILE:
            return np.stack(tables.tile(parts))
        if kind == functions.EMPTY:
            return tables.empty(parts)
        if kind == functions.LARGEST:
            return tables.largest_stored(parts[:n], parts[n:])
        if kind == functions.LONGEST:
            return tables.longest(parts[:n], parts[n:-1], parts[-1])
        if kind == functions.UNITS:
            return tables.rank_rows(Ranks(columns, n)).T
        if kind == functions.PACKED:
            return np.stack(tables.packed(parts[:-1], parts[-1]))
        if kind == functions.WORK:
            works = works_of(known, float(self.chip.instances[-1].max()))[lay.operands.index(t)]
            return works.of(columns[0], columns[1:])
        assert kind == functions.GAPS
        return self._gaps(t, columns)

    def _gaps(self, t: int, columns: Array) -> Array:
        found = np.empty(columns.shape[1])
        for r in distinct(columns[0]):
            mine = np.flatnonzero(columns[0] == r)
            found[mine] = looked_up(self.known.layout, t, int(r), columns[1:, mine])
        return found

    def _shares(self, columns: Array) -> Array:
        """Shares removed by plugins' mechanisms, evaluated per filter and candidate."""
        found = np.empty(columns.shape[1])
        for i, candidate in sorted({(int(i), int(m)) for i, m in columns[:2].T}):
            action: Action = self.actions[i]
            mine = np.flatnonzero((columns[0] == i) & (columns[1] == candidate))
            mechanism, rule = self.known.places.mechanisms[candidate], action.filters[candidate]
            found[mine] = eliminated_of(mechanism, action.place, rule, columns[2, mine])
        return found


def homes_of(known: ModelTables) -> Array:
    """(tables,) first of all tables with the same figures: tensors with the same density and formats share theirs."""
    found, order = np.arange(functions.KINDS * (known.layout.T + 1)), [*known.layout.operands, known.layout.output]
    for t, tables in enumerate(known.tables):
        if not tables.by_shape:
            home = next(u for u in order if known.tables[u] is tables)
            own = np.arange(functions.GAPS)
            found[functions.KINDS * t + own] = functions.KINDS * home + own
    return found


def _no_design(b: int) -> ValueError:
    text = "expected bounds from 1 on, orders that have each dimension once, and choices among the candidates"
    return ValueError(f"design {b} of the batch is none: {text}")


def chains_of(known: ModelTables, designs: Designs, chip: Chip) -> Iterator[tuple[Chain, Designs, Any]]:
    """Chains with their designs and rows of the batch: a single chain or, with a batch axis of `chip`, one per design."""
    slots = designs.columns["formats"].shape[1]
    if chip.batch is not None:
        for b in range(len(designs)):
            yield Chain(known, chip.take(b), slots), designs.take(np.array([b])), slice(b, b + 1)
        return
    chain = known.chains[0] if known.chains else None
    if chain is None or chain.chip is not chip or chain.slots != slots:  # the one that came last
        chain = Chain(known, chip, slots)
        known.chains[:] = [chain]
    yield chain, designs, slice(None)


def evaluated(known: ModelTables, designs: Designs, chip: Chip, detail: bool) -> Evaluation:
    """Evaluation of a batch; with a batch axis of `chip`, each design has its own chip."""
    if detail:
        from .details import evaluated_whole

        return evaluated_whole(known, designs, chip)
    reasons = np.zeros(len(designs), dtype=np.uint64)
    energy, cycles = np.full((2, len(designs)), np.inf)
    for chain, some, rows in chains_of(known, designs, chip):
        energy[rows], cycles[rows], reasons[rows] = chain.evaluated(some)
    if known.strangers:
        from .details import with_charges

        with_charges(known, designs, chip, energy, cycles, reasons)
    return Evaluation({"energy_pj": energy, "cycles": cycles}, reasons, known.reasons.names)
