"""Segments whose steps are compiled (`moves.c`), for whole genomes of several in one call. Each has a module with the same steps
in NumPy, which is imported where the compiled ones do not apply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.native import LOG, loaded
from sparsemap.pieces.contracts import Array, Segment


def _draws_alike(made: Any) -> bool:
    """Whether the compiled steps draw what this NumPy does: how a Generator makes whole numbers may change with its version."""
    mine, numpys = np.random.default_rng(7), np.random.default_rng(7)
    most = np.array([*range(24), 2**31, 3 * 2**30, 2**32 - 2] * 3)
    wholes, order = np.empty_like(most), np.empty(40, dtype=np.int64)
    if made.drawn(wholes, most, order, mine) is None:
        return False
    theirs = [numpys.integers(0, one, endpoint=True) for one in most.tolist()]
    return (
        wholes.tolist() == theirs
        and order.tolist() == numpys.permutation(40).tolist()
        and mine.random() == numpys.random()
    )


def _compiled() -> Any:
    made = loaded(__package__, "moves")
    if made is None or _draws_alike(made):
        return made
    LOG.warning("compiled 'moves' draws other numbers than NumPy %s and is left out", np.__version__)
    return None


compiled: Any = _compiled()
"""Steps in C, or None."""

Column = tuple[str, tuple[int, ...], Any]
"""Name of a column of designs, its shape without the batch, and its type."""


@attrs.frozen
class CompiledSteps:
    """Steps of segments in a row, for genomes (n, G) of these. None comes back, and nothing is drawn, where genes are out of
    bounds or anything else is not as `moves.c` knows it."""

    plan: Any
    genes: int
    columns: tuple[Column, ...]

    def holds(self, genomes: Any) -> bool:
        return type(genomes) is np.ndarray and compiled.holds(self.plan, genomes) is not None

    def decode(self, genomes: Array) -> Mapping[str, Array] | None:
        if getattr(genomes, "ndim", 0) != 2:
            return None
        columns = tuple([np.empty((*shape, len(genomes)), kind) for _, shape, kind in self.columns])
        if compiled.decode(self.plan, genomes, columns) is None:
            return None
        return {name: column for (name, *_), column in zip(self.columns, columns, strict=True)}

    def vary(self, genomes: Array, times: Array, rng: np.random.Generator) -> Array | None:
        changed = np.array(genomes)
        return None if compiled.vary(self.plan, changed, times, rng) is None else changed

    def guess(self, count: int, rng: np.random.Generator) -> Array | None:
        made = np.empty((count, self.genes), dtype=np.int64)
        return None if compiled.guess(self.plan, made, rng) is None else made

    def repair(self, genomes: Array, rng: np.random.Generator, packed: Array | None = None) -> Array | None:
        """`packed` (T, n) bool: which designs compress a tensor; None: as the formats say, or nothing is known of it."""
        changed = np.array(genomes)
        return None if compiled.repair(self.plan, changed, packed, rng) is None else changed

    def canonical(self, genomes: Array, bounds: Array | None = None) -> Array | None:
        """`bounds` (L, D, n) of loops; None: as the tilings say."""
        changed = np.array(genomes)
        return None if compiled.canonical(self.plan, changed, bounds) is None else changed

    def encode(self, column: Array) -> Array | None:
        """Of a single segment."""
        made = np.empty((column.shape[-1], self.genes), dtype=np.int64)
        return None if compiled.encode(self.plan, made, column) is None else made


@attrs.frozen(kw_only=True)
class CompiledSegment(Segment):
    """A segment that may have compiled steps."""

    plain: ClassVar[str]
    """The module with the steps in NumPy: functions of the segment and of what its methods get."""

    def record(self, problem: Problem) -> tuple[Any, ...] | None:
        """What `moves.c` asks of the segment: what it is, and arrays. Each class has one of its own, or no compiled steps, as its
        methods may be others."""
        return None

    def column(self, problem: Problem) -> Column:
        """What it decodes to."""
        raise NotImplementedError

    def steps(self, segments: Sequence[Segment], problem: Problem) -> CompiledSteps | None:
        return problem.remember((CompiledSegment.steps, *segments), lambda: _made(segments, problem))

    def step(self, name: str, problem: Problem, ours: Sequence[Any], plain: Sequence[Any]) -> Any:
        """A step of this segment alone, with genes (g, B): `ours` are its arguments if it is compiled, `plain` if not."""
        steps = self.steps((self,), problem)
        found = None if steps is None else getattr(steps, name)(*ours)
        if found is None:
            return getattr(import_module(f".{self.plain}", __package__), name)(self, *plain)
        return found.T if isinstance(found, np.ndarray) else found


def _made(segments: Sequence[Segment], problem: Problem) -> CompiledSteps | None:
    records, columns = [], []
    for segment in segments:
        has = compiled is not None and isinstance(segment, CompiledSegment) and "record" in type(segment).__dict__
        record = segment.record(problem) if has else None  # type: ignore[attr-defined]
        if record is None:
            return None
        records.append(record)
        columns.append(segment.column(problem))  # type: ignore[attr-defined]
    plan = compiled.plan(tuple(records))
    genes = sum(len(segment.genes(problem).names) for segment in segments)
    return None if plan is None else CompiledSteps(plan, genes, tuple(columns))
