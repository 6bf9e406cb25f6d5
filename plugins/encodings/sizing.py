"""Genes that choose the sizes of the hardware: chip and mapping in one genome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.errors import SpecError
from sparsemap.pieces.contracts import Array, Genes, Segment
from sparsemap.problem.designs import SIZES, Design, Designs
from sparsemap.problem.layouts import OwnHardware, with_layout

NEAR = 0.5
"""Share of the moves that go to the next value of a list."""


@attrs.frozen(kw_only=True)
class Sizing(Segment):
    """A gene for each key of the hardware's `choices`: the place of its value. A design is one of that chip, and has to keep
    the hardware's `constraints`, of which all costs are known.

    Provides `sizes` (g, B) int64. Choices that change what genes there are, such as levels that may be left out, are for
    `sparsemap design`.
    """

    type_name: ClassVar[str] = "sizing"
    provides: ClassVar[tuple[str, ...]] = (SIZES,)
    fits_all: ClassVar[bool] = False

    def genes(self, problem: Problem) -> Genes:
        return problem.remember((Sizing.genes, self), lambda: self._genes(problem))

    def _genes(self, problem: Problem) -> Genes:
        choices, file = problem.hardware.choices, problem.files.get("hardware", "")
        if not choices and problem.sized is None:
            raise SpecError.at(file, "choices", f"is empty, expected values that may vary for segment '{self.path()}'")
        own = _shape(problem)
        for g, (key, values) in enumerate(choices.items()):
            for place, value in enumerate(values):
                chip = OwnHardware(sizes=tuple(place * (g == h) for h in range(len(choices))))
                if _shape(with_layout(problem, chip)) != own:
                    text = f"{value!r} changes which levels, places or limits there are, which a design cannot; "
                    raise SpecError.at(file, f"choices.{key}", text + "`sparsemap design` searches such chips")
        high = np.array([len(values) - 1 for values in choices.values()], np.int64)
        return Genes(tuple(choices), np.zeros(len(high), np.int64), high)

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        return {SIZES: np.ascontiguousarray(genes, np.int64)}

    def encode(self, designs: Designs, problem: Problem) -> Array:
        return np.asarray(designs.columns[SIZES], np.int64)

    def transfer(
        self, designs: Designs, source: Problem, target: Problem, rng: np.random.Generator, fill: bool
    ) -> Array | None:
        """Values by key, of designs of a hardware that may vary in the same keys; else those of the hardware as it is."""
        here, given_sizes = target.hardware.choices, designs.columns.get(SIZES)
        if given_sizes is None and source.sized is not None:
            given_sizes = np.repeat(np.array(source.sized)[:, None], len(designs), axis=1)
        there = [] if given_sizes is None else [*source.space.problem.hardware.choices.items()]
        rows: list[Any] = []
        for key, values in here.items():
            given = next((g for g, (name, _) in enumerate(there) if name == key), None)
            if given is None or given_sizes is None:
                rows.append(np.zeros(len(designs), np.int64))
                continue
            known = {i: values.index(value) for i, value in enumerate(there[given][1]) if value in values}
            rows.append(np.array([known.get(int(size), 0) for size in given_sizes[given]], np.int64))
        return np.array(rows, np.int64).reshape(len(here), len(designs))

    def lines(self, design: Design) -> Sequence[str]:
        """The values that a design has."""
        chosen = design.problem.sized
        choices = design.problem.space.problem.hardware.choices
        if chosen is None:
            return ()
        width = max(map(len, choices))
        return [
            "sizes",
            *(f"  {key:{width}}  {values[g]}" for (key, values), g in zip(choices.items(), chosen, strict=True)),
        ]

    def vary(self, genes: Array, problem: Problem, rng: np.random.Generator) -> Array:
        """One size moves, to the next value of its list as often as to any."""
        found, bounds = super().vary(genes, problem, rng), self.genes(problem)
        moved = found != genes
        step = np.where(rng.random(genes.shape[1]) < 0.5, -1, 1)
        near = np.clip(genes + step, bounds.low[:, None], bounds.high[:, None])
        use = moved & (near != genes) & (rng.random(genes.shape[1]) < NEAR)
        return np.where(use, near, found)


def _shape(problem: Problem) -> Any:
    """What has to be the same on every chip of a space: names and kinds of all that genes and reasons are about."""
    groups = [attrs.evolve(group, limit=0) for group in problem.mapping_levels]
    return groups, problem.places, tuple(problem.cost_model.reasons(problem))
