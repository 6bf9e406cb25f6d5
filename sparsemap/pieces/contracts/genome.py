"""Segments of the genome: genes, and their decoding into columns of designs."""

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
    """Gene values increased by `by`, wrapping from `high` to `low`; elementwise."""
    return low + (genes - low + by) % (high - low + 1)


def neighbours(genes: Array, bounds: Genes, rng: np.random.Generator) -> Array:
    """Changes a random gene of every genome to another value, (g, B) -> (g, B); genes with a single value stay."""
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
    """A run of genes with its decoder. Keep tables of a problem in `problem.remember`, and tables independent of the
    chip in `problem.shared.remember`."""

    kind: ClassVar[str] = "segment"
    provides: ClassVar[tuple[str, ...]] = ()
    """Columns of `Designs` from `decode`. A property where the columns depend on the spec."""
    canonical_needs: ClassVar[tuple[str, ...]] = ()
    """Columns of other segments read by `canonical`."""
    fits_all: ClassVar[bool] = True
    """Whether the fields fit any workload on any hardware; False if they name dimensions, levels or tensors."""

    obeys_stationary: ClassVar[bool] = False
    """Whether the loops obey the space's key `stationary`."""

    def padded_sizes(self, sizes: Mapping[str, int]) -> Mapping[str, int]:
        """Dimension sizes representable by this encoding, at least as large as `sizes`."""
        return {}

    def padded_for(self, problem: Problem) -> Mapping[str, int]:
        """Padded sizes where they depend on more than the problem's sizes (`problem.loops.sizes`), such as the
        fan-outs."""
        return self.padded_sizes(problem.loops.sizes)

    def why_padded(self, problem: Problem) -> str:
        """Reason for the sizes of `padded_for`, in a few words for reports; "" if obvious."""
        return ""

    def other_sizes(self, problem: Problem) -> Sequence[Mapping[str, int]]:
        """Padded sizes of all dimensions other than the problem's, worth a search of their own, the most promising
        first."""
        return ()

    def choices(self, problem: Problem) -> Mapping[str, tuple[Piece, ...]]:
        """Candidate pieces of this segment's genes by kind, in gene order (`candidates` names them in specs)."""
        return {}

    def genes(self, problem: Problem) -> Genes:
        raise NotImplementedError

    def path(self, key: str = "") -> str:
        """Path of the segment, or of a key inside, in the file of the space."""
        return ".".join(part for part in (self.name or self.type_name, key) if part)

    def explain(self, problem: Problem) -> str:
        """Short description of the genes for `sparsemap show space`; by default their names."""
        return ", ".join(self.genes(problem).names) or f"constant: {', '.join(self.provides)}"

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        """(g, B) int64 -> columns with the batch last."""
        raise NotImplementedError

    def encode(self, designs: Designs, problem: Problem) -> Array:
        """Inverse of `decode`, (g, B) int64; `DesignError` if this encoding cannot express a design."""
        raise NotImplementedError

    def transfer(
        self, designs: Designs, source: Problem, target: Problem, rng: np.random.Generator, fill: bool
    ) -> Array | None:
        """Genes (g, B) for decoded designs of another problem with the same mapping levels; None: use guesses instead.

        Keeps everything common to both problems; a design of an equal problem does not change. With `fill`, loops move
        into spatial levels left empty by smaller sizes. By default designs of equal sizes stay, if they can be encoded
        and no gene is a place in a list."""
        known = all(column in designs.columns for column in self.provides)
        if not known or list(source.sizes.items()) != list(target.sizes.items()) or self.choices(target):
            return None
        try:
            return self.encode(designs, target)
        except (DesignError, NotImplementedError):
            return None

    def vary(self, genes: Array, problem: Problem, rng: np.random.Generator) -> Array:
        """A random neighbour of every genome, (g, B) -> (g, B): by default one gene gets another value.

        Override with changes known to keep designs sensible, such as swapping the levels of two factors. The input is
        not changed."""
        return neighbours(genes, self.genes(problem), rng)

    def guess(self, count: int, problem: Problem, rng: np.random.Generator) -> Array:
        """Random genomes to start a search with, (g, count): by default uniform.

        Override to draw likely good designs more often."""
        bounds = self.genes(problem)
        shape = (count, len(bounds.names))
        return rng.integers(bounds.low, bounds.high, size=shape, endpoint=True, dtype=np.int64).T

    def repair(self, genes: Array, problem: Problem, columns: Mapping[str, Array], rng: np.random.Generator) -> Array:
        """Repairs genes known to make a design invalid, with minimal changes, (g, B) -> (g, B).

        `columns` is the decoded genome, batch last; where segments depend on each other, earlier segments are already
        repaired."""
        return genes

    def settled(self, design: Design) -> Segment | None:
        """This segment without genes, decoding to the columns of `design`: a table in a design file. None: not
        possible, or not needed; columns of loops, formats and mechanisms have tables of their own in a design file."""
        return None

    def lines(self, design: Design) -> Sequence[str]:
        """Report lines about the columns, except loops, formats and mechanisms."""
        return ()

    def canonical(self, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
        """Canonical genes of each design, (g, B) -> (g, B), for searches without repeated or missed designs.

        With `columns` (named by `canonical_needs`), the canonical genes mean the same hardware behaviour as `genes` and
        are their own canonical genes. Setting later canonical genes to their highest values leaves the first genes
        canonical. The input is not changed. By default every genome counts as a design of its own."""
        return genes
