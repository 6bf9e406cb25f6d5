"""Genes choosing the number formats of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.errors import DesignError
from sparsemap.pieces.contracts import Array, Genes, Piece, Segment, naming
from sparsemap.problem.designs import NUMBERS, Design, Designs
from sparsemap.problem.widths import format_of, workload_widths


def _some(_: object, __: object, tensors: Mapping[str, tuple[str, ...]]) -> None:
    if empty := [text for text, formats in tensors.items() if not formats]:
        raise ValueError(f"has no number format for {empty[0]}, expected at least 1")


@attrs.frozen(kw_only=True)
class NumberFormats(Segment):
    """A gene for each listed tensor: its number format, in place of the workload's width; levels with a width of their
    own keep it. All listed formats are taken to be good enough: the search compares costs alone. Spatial loops fit the
    mode of the compute units for the workload's own widths.

    Provides `numbers` (T, B) int8."""

    type_name: ClassVar[str] = "number-formats"
    provides: ClassVar[tuple[str, ...]] = (NUMBERS,)
    fits_all: ClassVar[bool] = False

    tensors: Mapping[str, tuple[str, ...]] = attrs.field(validator=_some, metadata=naming("number-format"))
    """By tensor (role P, Q, R, S or Z, or name), the number formats to choose from."""

    def choices(self, problem: Problem) -> Mapping[str, tuple[Piece, ...]]:
        places = {(name, f"tensors.{text}[{i}]") for text, some in self.tensors.items() for i, name in enumerate(some)}
        file, registry = problem.file_of("space"), problem.registry
        found = (format_of(registry, name, file, self.path(place)) for name, place in sorted(places))
        return {"number-format": tuple(dict.fromkeys(found))}

    def numbers(self, problem: Problem) -> dict[int, Array]:
        """By tensor, the candidates by gene."""
        file, every = problem.file_of("space"), [one.name for one in self.choices(problem)["number-format"]]
        return {
            problem.tensor(text, file, self.path(f"tensors.{text}")): np.array(
                [every.index(one) for one in some], np.int8
            )
            for text, some in self.tensors.items()
            if not problem.lacks(text)
        }

    def genes(self, problem: Problem) -> Genes:
        numbers = self.numbers(problem)
        names = tuple(f"numbers.{problem.tensors[t].name}" for t in numbers)
        high = np.array([len(values) - 1 for values in numbers.values()], np.int64)
        return Genes(names, np.zeros(len(names), np.int64), high, ordered=False)

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        found = np.full((len(problem.tensors), genes.shape[1]), -1, np.int8)
        for row, (t, values) in zip(genes, self.numbers(problem).items(), strict=True):
            found[t] = values[row]
        return {NUMBERS: found}

    def lines(self, design: Design) -> Sequence[str]:
        widths = workload_widths(design.problem)
        chosen = (
            f"{design.problem.tensors[t].name} {getattr(widths[t], 'name', '')}" for t in self.numbers(design.problem)
        )
        return (f"number formats  {', '.join(chosen)}",)

    def encode(self, designs: Designs, problem: Problem) -> Array:
        found = []
        for t, values in self.numbers(problem).items():
            match = values[:, None] == designs.columns[NUMBERS][t]
            if not match.any(axis=0).all():
                raise DesignError(f"a number format of '{problem.tensors[t].name}' is none of the segment's")
            found.append(match.argmax(axis=0))
        return np.array(found, np.int64).reshape(-1, len(designs))
