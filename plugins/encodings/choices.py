"""Genes that choose from candidates (Section IV-F): a format per tensor and rank slot, a mechanism per S/G place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.errors import DesignError, SpecError
from sparsemap.pieces.boundary import eliminated_of, filters_of
from sparsemap.pieces.contracts import ALL_OPERANDS, Array, Format, Genes, Piece, Segment, naming
from sparsemap.problem.designs import Designs
from sparsemap.problem.levels import Place

from .steps import Column, CompiledSegment

Candidate = str | Mapping[str, Any]
"""The name of a piece, or its table."""


def build_candidates(
    segment: Segment, problem: Problem, kind: str, given: Mapping[str, Candidate]
) -> tuple[Piece, ...]:
    """The pieces, in order, by the key of the segment where each stands; a table without `name` is called by what it sets,
    such as `run-length(lanes=4)`.

    `SpecError` with the nearest name where one is not known, and where a table has the name of another candidate.
    """
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
    """Every candidate at the first key that has it."""
    found: dict[str, Candidate] = {}
    for key, item in given.items():
        if item not in found.values():
            found[key] = item
    return found


def _name(table: Mapping[str, Any], kind: str) -> str:
    values = (f"{key}={value}" for key, value in table.items() if key not in ("kind", "type", "extends"))
    return f"{table.get('extends', table.get('type', kind))}({', '.join(values)})"


def _candidates(kind: str = "") -> Any:
    """The field of the candidates, which are pieces of a kind."""
    several: list[Any] = [attrs.validators.min_len(1), attrs.validators.max_len(127)]
    return attrs.field(validator=several, metadata=naming(kind) if kind else {})


def compressing(formats: Sequence[Format]) -> Array:
    """(F,) bool: which formats compress."""
    return np.array([piece.compressed for piece in formats], dtype=bool)


def compressed_tensors(problem: Problem, columns: Mapping[str, Array]) -> Array | None:
    """(T, B) bool: which designs compress a tensor, those whose innermost format does; None before formats are chosen."""
    if "formats" not in columns:
        return None
    return compressing(problem.candidates("format"))[columns["formats"][:, -1]]


def moving(problem: Problem) -> Array:
    """(T, D) bool: whether a dimension moves a tensor."""
    return np.array([[dim in tensor.dims for dim in problem.dims] for tensor in problem.tensors])


@attrs.frozen(kw_only=True)
class Choices(CompiledSegment):
    """A segment whose genes choose from its candidates, without an order between them."""

    chosen: ClassVar[str]
    """The kind of the candidates."""

    candidates: tuple[Candidate, ...] = _candidates()
    """Names or tables of the pieces to choose from; gene value i chooses the i-th, from 0."""

    def gene_names(self, problem: Problem) -> tuple[str, ...]:
        raise NotImplementedError

    def all_candidates(self, problem: Problem) -> tuple[Candidate, ...]:
        return self.candidates

    def choices(self, problem: Problem) -> Mapping[str, tuple[Any, ...]]:
        given = {f"candidates[{i}]": item for i, item in enumerate(self.all_candidates(problem))}
        return {self.chosen: build_candidates(self, problem, self.chosen, given)}

    def genes(self, problem: Problem) -> Genes:
        names = self.gene_names(problem)
        high = np.full(len(names), len(self.all_candidates(problem)) - 1, dtype=np.int64)
        return Genes(names, np.zeros(len(names), dtype=np.int64), high, ordered=False)

    def owned(self, problem: Problem) -> Array | None:
        """(g, C) bool: the candidates that each gene may choose on this chip, at least one; None: all."""
        return None

    def built(self, genes: Array, problem: Problem) -> Array:
        """Genes (g, B) that choose what the chip has not got stand for something that it has."""
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
    follows from the mapping, so the cost model assigns them. Provides `formats` (T, R, B) int8.
    """

    type_name: ClassVar[str] = "rank-formats"
    plain: ClassVar[str] = "plain_formats"
    provides: ClassVar[tuple[str, ...]] = ("formats",)
    chosen: ClassVar[str] = "format"
    canonical_needs: ClassVar[tuple[str, ...]] = ("bounds",)

    candidates: tuple[Candidate, ...] = _candidates("format")
    slots: int = attrs.field(default=5, validator=[attrs.validators.ge(1), attrs.validators.le(64)])
    """Rank slots R of every tensor."""
    beyond: str = attrs.field(default="", metadata=naming("format"))
    """The format of ranks further out than the slots; absent: the first candidate."""

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
        formats = self.choices(problem)["format"]
        if problem.hardware.units is None:
            return None
        from .owned import owned_formats, some

        owned = some(owned_formats(formats, problem), problem.tensors, "formats", problem, formats)
        return None if owned is None else np.repeat(owned, self.slots, axis=0)

    def transfer(
        self, designs: Designs, source: Problem, target: Problem, rng: np.random.Generator, fill: bool
    ) -> Array | None:
        """Formats by name, of tensors of the same role, aligned at the innermost rank; further slots get the outermost one."""
        from sparsemap.problem.similarity import pairs

        from .transfer import by_name

        if "formats" not in designs.columns:
            return None
        column, count = designs.columns["formats"], len(designs)
        guess = self.guess(count, target, rng).reshape(len(target.tensors), self.slots, count)
        there, here = source.candidates("format"), self.choices(target)["format"]
        slots = np.maximum(np.arange(self.slots) + column.shape[1] - self.slots, 0)
        moved = guess.copy()
        for given, own in pairs(source.loops, target.loops):
            moved[own] = by_name(column[given, slots], there, here, guess[own])
        return moved.reshape(-1, count)

    def record(self, problem: Problem) -> tuple[Any, ...] | None:
        if problem.hardware.units is not None:  # genes may stand for others
            return None
        return "formats", np.array([self.slots]), *self.kinds(problem), moving(problem)

    def column(self, problem: Problem) -> Column:
        return "formats", (len(problem.tensors), self.slots), np.int8

    def vary(self, genes: Array, problem: Problem, rng: np.random.Generator) -> Array:
        """One tensor changes: one slot, one format from some slot inwards, one format above it, or another tensor's."""
        once = np.ones((1, genes.shape[1]), dtype=np.int64)
        return self.step("vary", problem, (genes.T, once, rng), (genes, problem, rng))

    def kinds(self, problem: Problem) -> tuple[Array, Array]:
        """(F,) bool each: which formats compress, and which may not be below these."""
        formats = self.choices(problem)["format"]
        compressed = compressing(formats)
        return compressed, ~compressed & ~np.array([piece.below_compressed for piece in formats], dtype=bool)

    def guess(self, count: int, problem: Problem, rng: np.random.Generator) -> Array:
        """Every tensor has one format on its innermost ranks, mostly on the last one only, and one on those above."""
        return self.step("guess", problem, (count, rng), (count, problem, rng))

    def repair(self, genes: Array, problem: Problem, columns: Mapping[str, Array], rng: np.random.Generator) -> Array:
        """An uncompressed format below a compressed one is invalid unless it says otherwise: slots above become its like.

        The innermost slot stays, so that a tensor remains compressed or not.
        """
        return self.step("repair", problem, (genes.T, rng), (genes, problem))

    def canonical(self, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
        """Slots further out than a tensor has ranks, that is loops with a bound above one that move it, are zero."""
        return self.step("canonical", problem, (genes.T, columns["bounds"]), (genes, problem, columns))


@attrs.frozen(kw_only=True)
class GateSkip(Choices):
    """One gene per storage level with `gate_skip`, outermost first, then one for the compute unit if it has it.

    Provides `mechanisms` (A, B) int8, the candidate at each place. With three operands and more there are further
    candidates, one for every choice of operands that lead: 19 with three where there are seven with two.
    """

    type_name: ClassVar[str] = "gate-skip"
    plain: ClassVar[str] = "plain_mechanisms"
    provides: ClassVar[tuple[str, ...]] = ("mechanisms",)
    chosen: ClassVar[str] = "mechanism"

    candidates: tuple[Candidate, ...] = _candidates("mechanism")

    led: Mapping[str, str] = attrs.field(factory=dict, metadata=naming("mechanism"))
    """With three operands and more: what a candidate by which all operands lead is called if only some do, such as
    `skip-by = "skip-both"`; P and R lead in `skip-by-pr`, and each operand is filtered on those other than itself."""

    def all_candidates(self, problem: Problem) -> tuple[Candidate, ...]:
        roles = [role for role, t in problem.roles.items() if t in problem.operands]
        some = [few for count in range(1, len(roles)) for few in combinations(roles, count)] if len(roles) > 2 else []
        named = [(name, base) for name, base in self.led.items() if base in self.candidates]
        return *self.candidates, *(led(base, few, name) for name, base in named for few in some)

    def gene_names(self, problem: Problem) -> tuple[str, ...]:
        return tuple(f"gate-skip.{place.name}" for place in problem.places)

    def explain(self, problem: Problem) -> str:
        return ", ".join(place.name for place in problem.places)

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        return {"mechanisms": self.built(genes, problem).astype(np.int8)}

    def owned(self, problem: Problem) -> Array | None:
        found = self.choices(problem)["mechanism"]
        if problem.hardware.units is None:
            return None
        from .owned import owned_mechanisms, some

        return some(owned_mechanisms(found, problem), problem.places, "mechanisms", problem, found)

    def transfer(
        self, designs: Designs, source: Problem, target: Problem, rng: np.random.Generator, fill: bool
    ) -> Array | None:
        """Mechanisms by name, at places of the same name."""
        from .transfer import by_name

        if "mechanisms" not in designs.columns:
            return None
        moved = self.guess(len(designs), target, rng)
        there, here = source.candidates("mechanism"), self.choices(target)["mechanism"]
        names = [place.name for place in source.places]
        for own, place in enumerate(target.places):
            if place.name in names:
                moved[own] = by_name(designs.columns["mechanisms"][names.index(place.name)], there, here, moved[own])
        return moved

    def record(self, problem: Problem) -> tuple[Any, ...] | None:
        if problem.hardware.units is not None:  # genes may stand for others
            return None
        return "mechanisms", self.needs(problem), self.first_alike(problem)

    def column(self, problem: Problem) -> Column:
        return "mechanisms", (len(problem.places),), np.int8

    def repair(self, genes: Array, problem: Problem, columns: Mapping[str, Array], rng: np.random.Generator) -> Array:
        """A mechanism that needs metadata of a tensor without any gives way to a random one that does not."""
        from .plain_mechanisms import repair

        return repair(self, genes, problem, columns, rng)

    def canonical(self, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
        """At the compute unit only the action of a mechanism counts, and which metadata it needs."""
        return self.step("canonical", problem, (genes.T,), (genes, problem))

    def first_alike(self, problem: Problem) -> Array:
        """(A, M) int64: per place, the first candidate that does the same as each."""
        table = np.tile(np.arange(len(self.all_candidates(problem))), (len(problem.places), 1))
        for row, place in zip(table, problem.places, strict=True):
            if place.storage is None:
                does = [_at_compute(mechanism, place, problem) for mechanism in self.choices(problem)["mechanism"]]
                row[:] = [does.index(one) for one in does]
        return table

    def needs(self, problem: Problem) -> Array:
        """(A, M, T) bool: by place, whether a candidate needs metadata of a tensor."""
        table = np.zeros((len(problem.places), len(self.all_candidates(problem)), len(problem.tensors)), dtype=bool)
        for a, place in enumerate(problem.places):
            for m, mechanism in enumerate(self.choices(problem)["mechanism"]):
                if mechanism.needs_metadata(place):
                    for _, _, leaders in problem.filters(mechanism, place):
                        table[a, m, list(leaders)] = True
        return table


def led(base: str, roles: Sequence[str], name: str) -> Candidate:
    """The mechanism `base` with these operands as the only ones that lead, called such as `skip-by-pr`."""
    filters = [{"target": ALL_OPERANDS, "leader": list(roles)}]
    return {"extends": base, "name": f"{name}-{''.join(roles).lower()}", "filters": filters}


def _at_compute(mechanism: Any, place: Place, problem: Problem) -> tuple[Any, ...]:
    """What makes a difference at the compute unit: the action, how much it catches, and who must have metadata."""
    rules = filters_of(mechanism, place)
    empty = np.linspace(0.0, 1.0, 5)
    caught = {(rule.action, *eliminated_of(mechanism, place, rule, empty).tolist()) for rule in rules}
    found = problem.filters(mechanism, place) if mechanism.needs_metadata(place) else []
    leaders = {leader for _, _, leaders in found for leader in leaders}
    return type(mechanism), caught, leaders
