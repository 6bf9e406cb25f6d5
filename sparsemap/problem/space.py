"""The genome: segments in order, genes with bounds, and decode and encode between genomes and designs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..errors import EvaluationError, Mistake, SpecError, listed, unknown
from ..pieces.contracts import Array, Genes, Piece, Segment
from ..pieces.contracts.base import NAMES, Genomes, Naming
from ..pieces.data_specs import SpaceSpec
from .designs import Decoded, Designs
from .problem import Problem

if TYPE_CHECKING:
    from .classes import ScoredClasses


@attrs.define(eq=False, slots=False)
class Space:
    """The gene space of a problem. Searchers and operators see genes through the space, never hardware or designs."""

    problem: Problem
    spec: SpaceSpec
    variant: Problem | None = None
    """A variant of the problem with another objective or cost model as the source of `classes`; None: the problem
    itself."""

    def __reduce__(self) -> Any:
        return attrgetter("space"), (self.problem,)

    def of(self, problem: Problem, sizes: Mapping[str, int] | None = None, why: str = "") -> Space:
        """This space for a problem with the same workload and levels: the same segments, with new genes. `sizes`:
        padded sizes, in place of the segments' own, and the reason."""
        made = Space(problem, self.spec)
        why = self.why_padded if sizes is None else why
        padding = self.padding if sizes is None else dict(sizes)
        made.__dict__ |= {"segments": self.segments, "padding": padding, "why_padded": why}
        return made

    @cached_property
    def segments(self) -> dict[str, Segment]:
        """Segment pieces by their name in the spec, in genome order."""
        file = self.problem.files.get("space", "space")
        built: dict[str, Any] = {}
        strange = [name for name in self.spec.tables if name not in self.spec.segments]
        if strange:
            raise SpecError(Mistake(file, name, unknown("segment", name, self.spec.segments)) for name in strange)
        for name in self.spec.segments:
            table = {"type": name, "name": name, **self.spec.tables.get(name, {})}
            built[name] = self._more(self.problem.registry.build("segment", table, file, name))
        chosen = {names.kind for segment in built.values() for _, names in _choosing(segment)}
        if strange := [kind for kind in self.spec.more if kind not in chosen]:
            text = f"no segment of space '{self.spec.name}' chooses among pieces of this kind, only of {listed(sorted(chosen))}"
            raise SpecError(Mistake(file, f"more.{kind}", text) for kind in strange)
        self._check_needs(built, file)
        return built

    def _more(self, segment: Segment) -> Segment:
        """The segment with the space's additional pieces in every list of candidates of their kind."""
        changes: dict[str, Any] = {
            name: (*own, *(piece for piece in self.spec.more.get(names.kind, ()) if piece not in own))
            for name, names in _choosing(segment)
            for own in [getattr(segment, name)]
        }
        return attrs.evolve(segment, **changes) if self.spec.more else segment

    def _check_needs(self, segments: Mapping[str, Segment], file: str) -> None:
        model = self.problem.cost_model
        providers: dict[str, list[str]] = {}
        for name, segment in segments.items():
            for column in segment.provides:
                providers.setdefault(column, []).append(name)
        lacks = f"no segment of space '{self.spec.name}' provides it"
        wrong = [f"cost model '{model.name}' needs column '{x}'; {lacks}" for x in model.needs if x not in providers]
        twice = {column: " and ".join(names) for column, names in providers.items() if len(names) > 1}
        wrong += [f"column '{column}' is provided twice, by {names}" for column, names in twice.items()]
        if self.spec.stationary:
            loops = dict.fromkeys(name for x in ("order", "bounds") for name in providers.get(x, ()))
            strange = [name for name in loops if not segments[name].obeys_stationary]
            wrong += [f"segment '{name}' does not obey the key `stationary`" for name in strange]
        if wrong:
            raise SpecError(Mistake(file, "segments", text) for text in wrong)

    def provides(self, column: str) -> bool:
        """Whether a segment provides a column of designs."""
        return any(column in segment.provides for segment in self.segments.values())

    @cached_property
    def padding(self) -> dict[str, int]:
        """Padded sizes by dimension, the largest of all segments."""
        sizes: dict[str, int] = {}
        for segment in self.segments.values():
            for dim, size in segment.padded_for(self._outside).items():
                sizes[dim] = max(size, sizes.get(dim, 0))
        return sizes

    @cached_property
    def _outside(self) -> Problem:
        """The problem with all tensors in the outermost level: genomes have the same meaning wherever a tensor resides."""
        workload = attrs.evolve(self.problem.workload, resides={}, resident_words={}, slides={})
        return attrs.evolve(self.problem, workload=workload) if self.problem.workload.resides else self.problem

    @cached_property
    def why_padded(self) -> str:
        """Reason for padding, in a few words; "" if obvious."""
        found = (segment.why_padded(self._outside) for segment in self.segments.values())
        return "; ".join(dict.fromkeys(why for why in found if why))

    @cached_property
    def other_sizes(self) -> list[dict[str, int]]:
        """Further padded sizes worth a search, the most promising first; empty unless the problem is `raced`."""
        segments = self.segments.values() if self.problem.raced else ()
        return [dict(sizes) for segment in segments for sizes in segment.other_sizes(self.problem)]

    @cached_property
    def candidates(self) -> dict[str, tuple[Piece, ...]]:
        found: dict[str, tuple[Piece, ...]] = {}
        for segment in self.segments.values():
            found.update(segment.choices(self.problem))
        return found

    @cached_property
    def compresses(self) -> bool:
        """Whether designs store tensors compressed: any of 64 random designs, a certain answer for fixed formats."""
        formats = self.decode(self.sample(64, np.random.default_rng(0))).columns.get("formats")
        compressed = np.array([getattr(piece, "compressed", False) for piece in self.candidates.get("format", ())])
        return formats is not None and bool(compressed.any()) and bool(compressed[formats].any())

    @cached_property
    def segment_genes(self) -> dict[str, Genes]:
        return {name: segment.genes(self.problem) for name, segment in self.segments.items()}

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Slice of each segment in the genome."""
        slices, start = {}, 0
        for name, genes in self.segment_genes.items():
            slices[name] = slice(start, start + len(genes.names))
            start += len(genes.names)
        return slices

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name for genes in self.segment_genes.values() for name in genes.names)

    @cached_property
    def low(self) -> Array:
        """(G,) int64, smallest value of each gene."""
        parts = [np.asarray(genes.low, dtype=np.int64) for genes in self.segment_genes.values()]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    @cached_property
    def high(self) -> Array:
        """(G,) int64, largest value of each gene, inclusive."""
        parts = [np.asarray(genes.high, dtype=np.int64) for genes in self.segment_genes.values()]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def __len__(self) -> int:
        """Number of genes G."""
        return len(self.low)

    @cached_property
    def log10_size(self) -> float:
        """Decimal logarithm of the number of genomes."""
        return float(np.log10((self.high - self.low + 1).astype(np.float64)).sum())

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """Uniform random genomes, (count, G) int64."""
        _check_draw(rng, count)
        return rng.integers(self.low, self.high, size=(count, len(self)), endpoint=True, dtype=np.int64)

    def guess(self, count: int, rng: np.random.Generator) -> Array:
        """Random genomes by the segments' guesses, to start a search with, (count, G) int64."""
        _check_draw(rng, count)
        from .segmentwise import guess

        return guess(self, count, rng)

    def judged(self, problem: Problem) -> Space:
        """This space with separate classes: for its own problem, or for a variant with another objective or cost model."""
        made = Space(self.problem, self.spec, problem)
        made.__dict__ |= {name: part for name, part in self.__dict__.items() if name not in ("classes", "variant")}
        return made

    @cached_property
    def classes(self) -> ScoredClasses | None:
        """Classes of designs with a bound on the score of each, for searchers; None if unknown."""
        return (known := (self.variant or self.problem).classes) and attrs.evolve(known, least=known.least.copy())

    def forget_classes(self) -> None:
        """For a search with scores other than the objective's: no bound rules out a class, except classes without a
        valid design."""
        if known := self.__dict__.setdefault("classes", None):
            known.least[np.isfinite(known.least)] = -np.inf

    def check(self, genomes: Array) -> Array:
        """Genomes, (B, G) or a single (G,), as (B, G) int64; `EvaluationError` for a wrong shape, type or value. Every
        function of genomes checks its input this way, `decoded` aside."""
        genomes = np.asarray(genomes)
        genomes = genomes[None, :] if genomes.ndim == 1 else genomes
        right = genomes.shape[1:] == self.low.shape and genomes.dtype.kind in "iu"
        if not right or ((genomes < self.low) | (genomes > self.high)).any():
            from .arguments import refuse_genomes

            refuse_genomes(self, genomes)
        return genomes.astype(np.int64, copy=False)

    def decode(self, genomes: Array) -> Designs:
        """(B, G) genomes -> designs."""
        return self.decoded(self.check(genomes))

    def decoded(self, genomes: Array) -> Designs:
        """Decodes genomes already checked to be within bounds."""
        from .segmentwise import columns_of

        return Designs(columns_of(self, genomes))

    def encode(self, designs: Designs) -> Array:
        """Designs -> (B, G) genomes, the inverse of `decode`; `DesignError` if an encoding cannot express a design."""
        parts = [segment.encode(designs, self.problem) for segment in self.segments.values()]
        return np.ascontiguousarray(np.concatenate(parts, axis=0).T)

    def transfer(self, designs: Designs, source: Problem, rng: np.random.Generator, fill: bool = False) -> Array:
        """Designs of another problem as genomes (B, G) of this space; parts without an expression here are guessed.

        DesignError if the mapping levels differ, or the tensors cannot be paired. The genomes of an equal problem
        decode to the same designs; others may be invalid, see `repair`. `fill`: as in `Segment.transfer`."""
        from .similarity import transferred

        return transferred(self, designs, source, rng, fill)

    def vary(self, genomes: Array, segment: str, rng: np.random.Generator) -> Array:
        """A random neighbour of every genome within a segment, (n, G) -> (n, G)."""
        if segment not in self.slices:
            raise EvaluationError(unknown("segment", str(segment), self.slices))
        _check_draw(rng)
        from .segmentwise import vary

        return vary(self, self.check(genomes), segment, rng)

    def varied(self, genomes: Array, times: Array, rng: np.random.Generator) -> Array:
        """Genomes (n, G) after several moves per segment, `times` (segments, n) int64, one segment after the other."""
        _check_draw(rng)
        from .segmentwise import varied

        return varied(self, self.check(genomes), times, rng)

    @cached_property
    def canonical_order(self) -> tuple[str, ...]:
        """Names of the segments, each after the providers of the columns in its `canonical_needs`."""
        from .segmentwise import canonical_order

        return canonical_order(self)

    def canonical(self, genomes: Array, segments: Iterable[str] | None = None) -> Array:
        """Genomes (n, G) in canonical form: genomes known by the segments to mean the same design become equal, (n, G).

        `segments`: restricts the rewriting to the genes of these segments."""
        from .segmentwise import canonical

        return canonical(self, self.check(genomes), segments)

    def repair(self, genomes: Genomes, rng: np.random.Generator) -> Genomes:
        """Genomes (n, G) after repairs of genes known to be invalid by a segment; some designs may stay invalid."""
        return self.repaired(genomes, rng).genomes.copy()

    def repaired(self, genomes: Genomes, rng: np.random.Generator) -> Decoded:
        """Like `repair`, with the decoded designs."""
        _check_draw(rng)
        from .segmentwise import repaired

        return repaired(self, self.check(genomes), rng)


def _check_draw(rng: np.random.Generator, count: int = 0) -> None:
    if not (isinstance(rng, np.random.Generator) and hasattr(count, "__index__") and count >= 0):
        from .arguments import refuse_draw

        refuse_draw(rng, count)


def _choosing(segment: Segment) -> Iterator[tuple[str, Naming]]:
    """Fields of a segment with lists of candidate pieces, and the kind of each."""
    for field in attrs.fields(type(segment)):
        if NAMES in field.metadata and isinstance(getattr(segment, field.name), tuple):
            yield field.name, field.metadata[NAMES]
