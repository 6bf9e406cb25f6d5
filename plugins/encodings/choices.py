"""Genes choosing from candidates (Section IV-F), and the formats: one gene per tensor and rank slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.errors import DesignError, SpecError
from sparsemap.pieces.contracts import Array, Format, Genes, Piece, Segment, naming
from sparsemap.problem.designs import Designs

from .inner import functions

Candidate = str | Mapping[str, Any]
"""Name or table of a piece."""


def build_candidates(
    segment: Segment, problem: Problem, kind: str, given: Mapping[str, Candidate]
) -> tuple[Piece, ...]:
    """The pieces in order, by key in the segment's table; a table without `name` is named after its settings.

    `SpecError` with the nearest name for an unknown name, and for a table with another candidate's name."""
    file = problem.files.get("space", "")

    def build() -> tuple[Piece, ...]:
        names = [item for item in given.values() if isinstance(item, str)]
        pieces = []
        for key, item in given.items():
            table = item if isinstance(item, str) else {"name": _name(item, kind), **item}
            pieces.append(problem.registry.build(kind, table, file, segment.path(key)))
            if not isinstance(item, str):
                if pieces[-1].name in names:
                    text = f"{pieces[-1].name!r} is the name of another candidate; give this one a name of its own"
                    raise SpecError.at(file, segment.path(key), text)
                names.append(pieces[-1].name)
        return tuple(pieces)

    key = build_candidates, kind, file, segment.path(), repr(given)
    return problem.remember(key, lambda: problem.registry.remember(key, build))


def once(given: Mapping[str, Candidate]) -> dict[str, Candidate]:
    """Candidates without repetition, each at its first key."""
    found: dict[str, Candidate] = {}
    for key, item in given.items():
        if item not in found.values():
            found[key] = item
    return found


def _name(table: Mapping[str, Any], kind: str) -> str:
    values = (f"{key}={value}" for key, value in table.items() if key not in ("kind", "type", "extends"))
    return f"{table.get('extends', table.get('type', kind))}({', '.join(values)})"


def candidates_of(kind: str = "") -> Any:
    """Field for candidates, which are pieces of a kind."""
    several: list[Any] = [attrs.validators.min_len(1), attrs.validators.max_len(127)]
    return attrs.field(validator=several, metadata=naming(kind) if kind else {})


def compressing(formats: Sequence[Format]) -> Array:
    """(F,) bool: whether each format compresses."""
    return np.array([piece.compressed for piece in formats], dtype=bool)


def compressed_tensors(problem: Problem, columns: Mapping[str, Array]) -> Array | None:
    """(T, B) bool: whether a design compresses a tensor, by the innermost format; None before formats are chosen."""
    if "formats" not in columns:
        return None
    compressed = problem.remember((compressed_tensors,), lambda: compressing(problem.candidates("format")))
    return per_tensor(compressed[columns["formats"][:, -1]], problem)


def per_tensor(column: Array, problem: Problem) -> Array:
    """(T, B) column, contiguous, after a check of its length: inner loops do not check columns of other segments."""
    if len(column) != len(problem.tensors):
        raise ValueError(f"a column is of {len(column)} tensors, the workload has {len(problem.tensors)}")
    return np.ascontiguousarray(column)


def moving(problem: Problem) -> Array:
    """(T, D) uint8: whether a dimension moves a tensor."""

    def make() -> Array:
        return np.array([[dim in tensor.dims for dim in problem.dims] for tensor in problem.tensors], dtype=np.uint8)

    return problem.remember((moving,), make)


def below(high: Any, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Random whole numbers below `high`, a number or an array; faster than `integers` with this size for few numbers."""
    return rng.integers(0, np.full(shape, high, dtype=np.int64))


def stationary(problem: Problem) -> Any:
    """The stationary tensor of the problem's space (`stationary.Stationary`); None without the key."""
    if not problem.space_spec.stationary:
        return None
    from .stationary import read

    return problem.remember((stationary,), lambda: read(problem, problem.space_spec.stationary))


def loops_of(columns: Mapping[str, Array], problem: Problem) -> Array:
    """(L, D, B) bounds as a contiguous array."""
    bounds = np.ascontiguousarray(columns["bounds"], dtype=np.float64)
    return bounds.reshape(len(problem.mapping_levels), len(problem.dims), bounds.shape[-1])


@attrs.frozen(kw_only=True)
class Choices(Segment):
    """A segment with genes choosing from candidates without an order."""

    chosen: ClassVar[str]
    """Kind of the candidates."""

    candidates: tuple[Candidate, ...] = candidates_of()
    """Names or tables of the pieces to choose from; gene value i chooses the i-th, from 0."""

    def gene_names(self, problem: Problem) -> tuple[str, ...]:
        raise NotImplementedError

    def all_candidates(self, problem: Problem) -> tuple[Candidate, ...]:
        return self.candidates

    def choices(self, problem: Problem) -> Mapping[str, tuple[Any, ...]]:
        given = {f"candidates[{i}]": item for i, item in enumerate(self.all_candidates(problem))}
        return {self.chosen: build_candidates(self, problem, self.chosen, given)}

    def genes(self, problem: Problem) -> Genes:
        def make() -> Genes:
            names = self.gene_names(problem)
            high = np.full(len(names), len(self.all_candidates(problem)) - 1, dtype=np.int64)
            return Genes(names, np.zeros(len(names), dtype=np.int64), high, ordered=False)

        return problem.remember((Choices.genes, self), make)

    def owned(self, problem: Problem) -> Array | None:
        """(g, C) bool: the candidates available to each gene on this chip, at least one; None: all."""
        return None

    def vary(self, genes: Array, problem: Problem, rng: np.random.Generator) -> Array:
        """Give one gene per design another value."""
        changed, most = np.array(genes, order="C"), len(self.all_candidates(problem)) - 1
        if most and len(genes):
            which = below(len(genes), genes.shape[1:], rng)
            functions.change_one(changed, most, which, rng.random(genes.shape[1]))
        return changed

    def built(self, genes: Array, problem: Problem) -> Array:
        """Genes (g, B) with candidates missing on the chip replaced by available candidates."""
        if problem.hardware.units is None:
            return genes
        from .owned import nearest_owned

        table = problem.remember((Choices.built, self), lambda: nearest_owned(self.owned(problem)))
        return genes if table is None else np.take_along_axis(table, genes, axis=1)

    def encode(self, designs: Designs, problem: Problem) -> Array:
        (column,) = (designs.columns[name] for name in self.provides)
        names, candidates = self.gene_names(problem), self.choices(problem)[self.chosen]
        genes = column.reshape(len(names), column.shape[-1]).astype(np.int64)
        wrong = (genes < 0) | (genes >= len(candidates))
        if wrong.any():
            gene, row = (int(i) for i in np.argwhere(wrong)[0])
            known = f"0..{len(candidates) - 1} ({', '.join(piece.name for piece in candidates)})"
            raise DesignError(f"design {row}: '{names[gene]}' is {int(genes[gene, row])}, expected {known}")
        if (lacking := self.built(genes, problem) != genes).any():
            gene, row = (int(i) for i in np.argwhere(lacking)[0])
            chosen = candidates[genes[gene, row]].name
            raise DesignError(f"design {row}: '{names[gene]}' is {chosen!r}, which the units of the chip do not have")
        return genes


@attrs.frozen(kw_only=True)
class RankFormats(Choices):
    """`slots` genes per tensor, operands first: the candidate format of each rank slot, outer to inner.

    Slots align with the innermost ranks: a tensor with three ranks uses its last three genes. Which loops form ranks
    follows from the mapping, so the cost model assigns slots to ranks. Provides `formats` (T, R, B) int8."""

    type_name: ClassVar[str] = "rank-formats"
    provides: ClassVar[tuple[str, ...]] = ("formats",)
    chosen: ClassVar[str] = "format"
    canonical_needs: ClassVar[tuple[str, ...]] = ("bounds",)

    candidates: tuple[Candidate, ...] = candidates_of("format")
    slots: int = attrs.field(default=5, validator=[attrs.validators.ge(1), attrs.validators.le(64)])
    """Rank slots R of every tensor."""
    beyond: str = attrs.field(default="", metadata=naming("format"))
    """Format of ranks beyond the slots; absent: the first candidate."""

    def choices(self, problem: Problem) -> Mapping[str, tuple[Any, ...]]:
        found = super().choices(problem)
        if not self.beyond:
            return found
        return {**found, "beyond-format": build_candidates(self, problem, "format", {"beyond": self.beyond})}

    def gene_names(self, problem: Problem) -> tuple[str, ...]:
        return tuple(f"{tensor.name}.{slot + 1}" for tensor in problem.tensors for slot in range(self.slots))

    def explain(self, problem: Problem) -> str:
        return f"{self.slots} slots each for {', '.join(tensor.name for tensor in problem.tensors)}"

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        genes = self.built(genes, problem)
        return {"formats": genes.astype(np.int8).reshape(len(problem.tensors), self.slots, genes.shape[1])}

    def owned(self, problem: Problem) -> Array | None:
        if problem.hardware.units is None:
            return None
        from .owned import owned_formats, some

        formats = self.choices(problem)["format"]
        return np.repeat(some(owned_formats(formats, problem), problem, "formats", formats), self.slots, axis=0)

    def transfer(
        self, designs: Designs, source: Problem, target: Problem, rng: np.random.Generator, fill: bool
    ) -> Array | None:
        """Match formats by name and tensors by role, from the innermost rank; further slots repeat the outermost format."""
        from .transfer import moved_formats

        guess = self.guess(len(designs), target, rng)
        return moved_formats(designs, source, target, self.choices(target)["format"], guess, self.slots)

    def vary(self, genes: Array, problem: Problem, rng: np.random.Generator) -> Array:
        """Change one tensor per design: a slot, a format inwards or above, or take another tensor's formats."""
        (compressed, _), tensors, changed = self.kinds(problem), len(problem.tensors), np.array(genes, order="C")
        kind = rng.random(genes.shape[1])
        high = [[tensors], [self.slots], [len(compressed)], [max(1, tensors - 1)]]
        drawn = below(high, (4, genes.shape[1]), rng)
        functions.vary_formats(changed, self.slots, compressed, kind, *drawn)
        return changed

    def kinds(self, problem: Problem) -> tuple[Array, Array]:
        """(F,) uint8 each: whether a format compresses, and whether a format must not lie below a compressed format."""

        def make() -> tuple[Array, Array]:
            formats = self.choices(problem)["format"]
            compressed = compressing(formats)
            strict = ~compressed & ~np.array([piece.below_compressed for piece in formats], dtype=bool)
            return compressed.view(np.uint8), strict.view(np.uint8)

        return problem.remember((RankFormats.kinds, self), make)

    def guess(self, count: int, problem: Problem, rng: np.random.Generator) -> Array:
        """Random genes: a tensor has one format on its innermost ranks, mostly the last, and another above."""
        compressed, shape = self.kinds(problem)[0], (len(problem.tensors), 1, count)
        inner = rng.integers(0, len(compressed), size=shape)
        plain = np.flatnonzero(compressed == 0)
        above = plain[rng.integers(0, len(plain), size=shape)] if plain.size else inner
        first = np.where(rng.random(shape) < 0.5, self.slots - 1, rng.integers(0, self.slots, size=shape))
        slots = np.where(np.arange(self.slots)[:, None] >= first, inner, above)
        return slots.reshape(len(problem.tensors) * self.slots, count)

    def repair(self, genes: Array, problem: Problem, columns: Mapping[str, Array], rng: np.random.Generator) -> Array:
        """Change compressed slots above an uncompressed format, invalid unless the format allows it, to this format.

        The innermost slot is kept, so a tensor remains compressed or uncompressed."""
        changed = np.array(self.built(genes, problem), order="C")
        functions.below_like(changed, self.slots, *self.kinds(problem))
        return changed

    def canonical(self, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
        """Set slots beyond a tensor's ranks to zero; ranks are loops with a bound above one moving the tensor."""
        changed = np.array(self.built(genes, problem), order="C")
        functions.clear_outer(changed, self.slots, moving(problem), loops_of(columns, problem))
        return changed
