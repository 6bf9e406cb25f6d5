"""Constants instead of genes: a fixed mapping or fixed formats, as in the baselines of Sections V-D and V-E.

```toml
[mapping]                       # a segment named `mapping` of a space spec; two storage levels, one with a fan-out
type = "fixed"
order = { L1_T = ["m", "k", "n"] }
bounds = { L1_T = { m = 4, k = 8 }, L2_T = { n = 4 }, L2_S = { m = 8 } }
```"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.errors import DesignError, SpecError
from sparsemap.pieces.contracts import Array, Genes, Piece, Segment, naming
from sparsemap.problem.designs import Designs

from .choices import Candidate, build_candidates, once
from .mistakes import Mistakes
from .owned import owned_formats, owned_mechanisms


@attrs.frozen(kw_only=True)
class Constant(Segment):
    """A segment without genes: `constants` of a derived class returns the columns, equal for all designs."""

    def constants(self, problem: Problem) -> dict[str, Array]:
        """Columns without the batch axis."""
        raise NotImplementedError

    def genes(self, problem: Problem) -> Genes:
        self._columns(problem)  # so that wrong names are told before the search
        return Genes((), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        count = genes.shape[1]
        return {name: np.repeat(value[..., None], count, axis=-1) for name, value in self._columns(problem).items()}

    def encode(self, designs: Designs, problem: Problem) -> Array:
        for name, value in self._columns(problem).items():
            wrong = (designs.columns[name] != value[..., None]).reshape(-1, len(designs)).any(axis=0)
            if wrong.any():
                row = int(np.argmax(wrong))
                raise DesignError(f"design {row}: '{name}' differs from what segment '{self.path()}' fixes")
        return np.zeros((0, len(designs)), dtype=np.int64)

    def _columns(self, problem: Problem) -> dict[str, Array]:
        return problem.remember((Constant.constants, self), lambda: self.constants(problem))


@attrs.frozen(kw_only=True)
class Fixed(Constant):
    """No genes; provides the columns set by its keys, the same for every design."""

    type_name: ClassVar[str] = "fixed"
    fits_all: ClassVar[bool] = False

    order: Mapping[str, tuple[str, ...]] | None = None
    """Dimensions from outer to inner, by mapping level. Omitted dimensions follow in workload order."""
    bounds: Mapping[str, Mapping[str, int]] | None = None
    """Loop bounds by mapping level and dimension, 1 by default. The bounds of a dimension must multiply to its size."""
    formats: Mapping[str, tuple[Candidate, ...]] | None = attrs.field(default=None, metadata=naming("format"))
    """Formats from outer to inner by tensor (names, or roles P, Q, Z): one per rank slot, the same number for each
    tensor. Names, or tables of variants such as `{ extends = "ellpack", metadata_bits = "16" }`."""
    beyond: str = attrs.field(default="", metadata=naming("format"))
    """Format of ranks beyond the slots; absent: the first format listed in `formats`."""
    mechanisms: Mapping[str, str] | None = attrs.field(default=None, metadata=naming("mechanism"))
    """Mechanism by place: a storage level with `gate_skip`, or the compute unit."""
    decoded: Mapping[str, str] | None = None
    """By tensor, the level from which inwards the tensor is uncompressed. Omitted tensors are compressed at all levels,
    or at none."""
    sizes: Mapping[str, int] = attrs.field(factory=dict)
    """Padded sizes of dimensions; the bounds multiply to these sizes."""
    why: str = ""
    """Reason for the padding, in a few words for reports."""

    @property
    def provides(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(name for name in COLUMNS if getattr(self, name) is not None)

    def padded_sizes(self, sizes: Mapping[str, int]) -> Mapping[str, int]:
        return {dim: size for dim, size in self.sizes.items() if dim in sizes}

    def why_padded(self, problem: Problem) -> str:
        return self.why

    def choices(self, problem: Problem) -> Mapping[str, tuple[Piece, ...]]:
        found = {}
        if self.formats is not None:
            found["format"] = build_candidates(self, problem, "format", formats_once(self.formats))
            if self.beyond:
                found["beyond-format"] = build_candidates(self, problem, "format", {"beyond": self.beyond})
        if self.mechanisms is not None:
            found["mechanism"] = build_candidates(self, problem, "mechanism", mechanisms_once(self.mechanisms))
        return found

    def constants(self, problem: Problem) -> dict[str, Array]:
        mistakes = Mistakes(self, problem)
        columns = {name: COLUMNS[name](getattr(self, name), problem, mistakes) for name in self.provides}
        mistakes.tell()
        self._check_units(columns, problem, mistakes)
        mistakes.tell()
        return columns

    def _check_units(self, columns: Mapping[str, Array], problem: Problem, say: Mistakes) -> None:
        """Report pieces missing among the units of the chip as mistakes."""
        tensors, places = ([one.name for one in some] for some in (problem.tensors, problem.places))
        parts = {"formats": ("format", tensors, owned_formats), "mechanisms": ("mechanism", places, owned_mechanisms)}
        for column, (kind, names, owned_of) in parts.items() if problem.hardware.units else ():
            pieces: Any = self.choices(problem)[kind] if column in columns else ()
            rows = zip(names, columns[column], owned_of(pieces, problem), strict=True) if len(pieces) else ()
            for name, value in ((x, value) for x, values, own in rows for value in np.unique(values) if not own[value]):
                text = f"{pieces[value].name!r}, which the units of hardware '{problem.hardware.name}' do not have"
                say(f"{column}.{name}", text)


def formats_once(given: Mapping[str, tuple[Candidate, ...]]) -> dict[str, Candidate]:
    """Formats without repetition, by key; their positions are the values of column `formats`."""
    return once({f"formats.{tensor}[{i}]": one for tensor, slots in given.items() for i, one in enumerate(slots)})


def mechanisms_once(given: Mapping[str, str]) -> dict[str, Candidate]:
    """Mechanisms without repetition, by key, for column `mechanisms`."""
    return once({f"mechanisms.{place}": name for place, name in given.items()})


def order_column(given: Mapping[str, tuple[str, ...]], problem: Problem, say: Mistakes) -> Array:
    """Column `order`, (L, D) int8."""
    levels, dims = [level.name for level in problem.mapping_levels], problem.dims
    order = np.tile(np.arange(len(dims), dtype=np.int8), (len(levels), 1))
    for level, names in given.items():
        known = say.known(f"order.{level}", "mapping level", level, levels)
        row = say.order(f"order.{level}", names, dims)
        if known and row is not None:
            order[levels.index(level)] = row
    return order


def bound_column(given: Mapping[str, Mapping[str, int]], problem: Problem, say: Mistakes) -> Array:
    """Column `bounds`, (L, D) float64."""
    levels, dims = [level.name for level in problem.mapping_levels], problem.dims
    bounds = np.ones((len(levels), len(dims)))
    for level, table in given.items():
        if not say.known(f"bounds.{level}", "mapping level", level, levels):
            continue
        for dim, bound in table.items():
            key = f"bounds.{level}.{dim}"
            if not say.known(key, "dimension", dim, dims):
                continue
            if bound < 1:
                say(key, f"expected a bound of at least 1, found {bound}")
            else:
                bounds[levels.index(level), dims.index(dim)] = bound
    for dim, product in zip(dims, bounds.prod(axis=0), strict=True):
        if product != problem.sizes[dim]:
            text = f"bounds of dimension '{dim}' multiply up to {product:g}, expected {problem.sizes[dim]}"
            say("bounds", text)
    return bounds


def format_column(given: Mapping[str, tuple[Candidate, ...]], problem: Problem, say: Mistakes) -> Array:
    """Column `formats`, (T, R) int8. Tensors are matched by name, else by role (`Problem.tensor`)."""
    candidates = list(formats_once(given).values())
    slots = max((len(names) for names in given.values()), default=0)
    formats = np.zeros((len(problem.tensors), slots), dtype=np.int8)
    missing = set(range(len(problem.tensors)))
    by_name = set(given) <= {tensor.name for tensor in problem.tensors}
    by_role = set(given) <= set(problem.roles)
    prefix = "name:" if by_name else "role:" if by_role else ""
    for tensor, names in given.items():
        try:
            index = problem.tensor(prefix + tensor)
        except SpecError as error:
            say(f"formats.{tensor}", error.mistakes[0].message)
            continue
        if index not in missing:
            say(f"formats.{tensor}", f"tensor '{problem.tensors[index].name}' has formats already")
        missing.discard(index)
        if len(names) != slots or not names:
            say(f"formats.{tensor}", f"has {len(names)} rank slots, expected {slots or 'at least one'} as others have")
        else:
            formats[index] = [candidates.index(name) for name in names]
    for position in sorted(missing):
        say("formats", f"has no formats for tensor '{problem.tensors[position].name}'")
    return formats


def mechanism_column(given: Mapping[str, str], problem: Problem, say: Mistakes) -> Array:
    """Column `mechanisms`, (A,) int8."""
    candidates = list(mechanisms_once(given).values())
    places = [place.name for place in problem.places]
    mechanisms = np.zeros(len(places), dtype=np.int8)
    for place, name in given.items():
        if say.known(f"mechanisms.{place}", "skip/gate place", place, places):
            mechanisms[places.index(place)] = candidates.index(name)
    for place in places:
        if place not in given:
            say("mechanisms", f"has no mechanism for place '{place}'")
    return mechanisms


def decoded_column(given: Mapping[str, str], problem: Problem, say: Mistakes) -> Array:
    """Column `decoded`, (T,) int8."""
    levels = [level.name for level in problem.levels]
    found = np.full(len(problem.tensors), len(levels), dtype=np.int8)
    for tensor, level in given.items():
        key = f"decoded.{tensor}"
        try:
            t = problem.tensor(tensor)
        except SpecError as error:
            say(key, error.mistakes[0].message)
            continue
        if not say.known(key, "level", level, levels):
            continue
        found[t] = levels.index(level)
        if found[t] <= problem.homes[t]:
            where = f"'{problem.tensors[t].name}' resides in '{levels[problem.homes[t]]}'"
            say(key, f"{where}: expected a level inside, or uncompressed formats")
        elif not problem.decodes[found[t], t]:
            say(key, f"level '{level}' cannot decode '{problem.tensors[t].name}'; its key 'decodes' says what it can")
    return found


COLUMNS: dict[str, Callable[[Any, Problem, Mistakes], Array]] = {
    "order": order_column,
    "bounds": bound_column,
    "formats": format_column,
    "mechanisms": mechanism_column,
    "decoded": decoded_column,
}
