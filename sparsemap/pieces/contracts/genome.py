"""Segments of the genome: genes, and how they become columns of designs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import attrs
import numpy as np

from ...errors import DesignError
from .base import Array, Piece

if TYPE_CHECKING:
    from ...problem.designs import Design, Designs
    from ...problem.problem import Problem


@attrs.frozen
class Genes:
    """The genes of a segment: names, and inclusive bounds (g,) int64."""

    names: tuple[str, ...]
    low: Array
    high: Array
    ordered: bool | Array = True
    """Whether neighbouring values are similar designs; (g,) where genes differ."""


def shifted(genes: Array, by: Array, low: Array, high: Array) -> Array:
    """Gene values moved up by `by`, beyond `high` on from `low`; elementwise."""
    return low + (genes - low + by) % (high - low + 1)


def neighbours(genes: Array, bounds: Genes, rng: np.random.Generator) -> Array:
    """One random gene of every genome set to another value, (g, B) -> (g, B); genes with one value stay."""
    free = np.flatnonzero(np.asarray(bounds.high) > np.asarray(bounds.low))
    changed = genes.copy()
    if not free.size:
        return changed
    rows = np.arange(genes.shape[1])
    which = free[rng.integers(0, len(free), size=len(rows))]
    low, high = np.asarray(bounds.low)[which], np.asarray(bounds.high)[which]
    by = 1 + (rng.random(len(rows)) * (high - low)).astype(np.int64)
    changed[which, rows] = shifted(genes[which, rows], by, low, high)
    return changed


@attrs.frozen(kw_only=True)
class Segment(Piece):
    """A run of genes with its decoder. Tables of a problem belong in `problem.remember`, those that no chip
    changes in `problem.shared.remember`."""

    kind: ClassVar[str] = "segment"
    provides: ClassVar[tuple[str, ...]] = ()
    """The columns of `Designs` that decode returns. A property where they depend on the spec."""
    canonical_needs: ClassVar[tuple[str, ...]] = ()
    """The columns, of other segments, that `canonical` reads."""
    fits_all: ClassVar[bool] = True
    """Whether its fields make sense for any workload on any hardware; not if they name dimensions, levels or tensors."""

    def padded_sizes(self, sizes: Mapping[str, int]) -> Mapping[str, int]:
        """Dimension sizes that this encoding can represent, at least as large as the given ones."""
        return {}

    def padded_for(self, problem: Problem) -> Mapping[str, int]:
        """The same where it depends on more of a problem than its sizes (`problem.loops.sizes`), such as the fan-outs."""
        return self.padded_sizes(problem.loops.sizes)

    def why_padded(self, problem: Problem) -> str:
        """Why `padded_for` asks for these sizes, in a few words for reports; "" where that needs no word."""
        return ""

    def choices(self, problem: Problem) -> Mapping[str, tuple[Piece, ...]]:
        """Pieces that genes of this segment choose from, by kind, in gene order (`candidates` names them in specs)."""
        return {}

    def genes(self, problem: Problem) -> Genes:
        raise NotImplementedError

    def path(self, key: str = "") -> str:
        """Where it is, or a key of it, in the file of its space."""
        return ".".join(part for part in (self.name or self.type_name, key) if part)

    def explain(self, problem: Problem) -> str:
        """What the genes are, in a few words, for `sparsemap show space`; by default their names."""
        return ", ".join(self.genes(problem).names) or f"constant: {', '.join(self.provides)}"

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        """(g, B) int64 -> columns with the batch last."""
        raise NotImplementedError

    def encode(self, designs: Designs, problem: Problem) -> Array:
        """The inverse, (g, B) int64; `DesignError` if a design cannot be written in this encoding."""
        raise NotImplementedError

    def transfer(
        self, designs: Designs, source: Problem, target: Problem, rng: np.random.Generator, fill: bool
    ) -> Array | None:
        """Genes (g, B) for designs of another problem with the same mapping levels, which are decoded there; None: they
        are guessed.

        What the two problems have in common stays, and a design of an equal problem does not change. With `fill` loops
        move into spatial levels that smaller sizes have left empty. By default designs of equal sizes stay as they are,
        if they can be encoded and nothing is chosen by its place in a list.
        """
        known = all(column in designs.columns for column in self.provides)
        if not known or list(source.sizes.items()) != list(target.sizes.items()) or self.choices(target):
            return None
        try:
            return self.encode(designs, target)
        except (DesignError, NotImplementedError):
            return None

    def vary(self, genes: Array, problem: Problem, rng: np.random.Generator) -> Array:
        """A random neighbour of every genome, (g, B) -> (g, B): by default one gene gets another value.

        A segment that knows which changes keep a design sensible offers those instead, such as two factors that swap
        their levels. The input is not changed.
        """
        return neighbours(genes, self.genes(problem), rng)

    def guess(self, count: int, problem: Problem, rng: np.random.Generator) -> Array:
        """Random genomes to start a search with, (g, count): by default uniform ones.

        A segment that knows what good designs look like draws those more often.
        """
        bounds = self.genes(problem)
        shape = (count, len(bounds.names))
        return rng.integers(bounds.low, bounds.high, size=shape, endpoint=True, dtype=np.int64).T

    def repair(self, genes: Array, problem: Problem, columns: Mapping[str, Array], rng: np.random.Generator) -> Array:
        """Genes changed as little as possible where they are known to make a design invalid, (g, B) -> (g, B).

        `columns` is the decoded genome, batch last; where segments depend on each other, earlier ones are repaired.
        """
        return genes

    def settled(self, design: Design) -> Segment | None:
        """This segment without genes, which decodes to the columns of one design: a design file holds its table.

        None: it cannot; the columns of loops, formats and mechanisms have tables of their own in a design file.
        """
        return None

    def lines(self, design: Design) -> Sequence[str]:
        """What reports say about its columns, if these are not loops, formats and mechanisms."""
        return ()

    def canonical(self, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
        """One way to write each design, (g, B) -> (g, B): what searches need that must not repeat or miss a design.

        The canonical genes, with `columns` (those of `canonical_needs`), mean the same hardware behaviour as the given
        ones; they are their own canonical genes; and their first genes stay as they are if the later ones are set to
        their highest values. The input is not changed. By default every genome counts as a design of its own.
        """
        return genes
