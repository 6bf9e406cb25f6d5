"""The tables of a `fixed` segment as columns without a batch axis; every wrong name and bound is told to `say`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from sparsemap.errors import SpecError, listed, unknown
from sparsemap.pieces.contracts import Array

if TYPE_CHECKING:
    from sparsemap.problem.problem import Problem

Say = Callable[[str, str], None]
"""Takes the path of a wrong value within the segment's table, and what is wrong."""


def order_column(given: Mapping[str, tuple[str, ...]], problem: Problem, say: Say) -> Array:
    """Column `order`, (L, D) int8."""
    levels, dims = [level.name for level in problem.mapping_levels], problem.dims
    order = np.tile(np.arange(len(dims), dtype=np.int8), (len(levels), 1))
    for level, names in given.items():
        if level not in levels:
            say(f"order.{level}", unknown("mapping level", level, levels))
        strange = [name for name in names if name not in dims]
        for name in strange:
            say(f"order.{level}", unknown("dimension", name, dims))
        if len(set(names)) < len(names):
            say(f"order.{level}", f"names a dimension twice: {listed(names)}")
        elif level in levels and not strange:
            rest = [dim for dim in dims if dim not in names]
            order[levels.index(level)] = [dims.index(dim) for dim in [*names, *rest]]
    return order


def bound_column(given: Mapping[str, Mapping[str, int]], problem: Problem, say: Say) -> Array:
    """Column `bounds`, (L, D) float64."""
    levels, dims = [level.name for level in problem.mapping_levels], problem.dims
    bounds = np.ones((len(levels), len(dims)))
    for level, table in given.items():
        if level not in levels:
            say(f"bounds.{level}", unknown("mapping level", level, levels))
            continue
        for dim, bound in table.items():
            if dim not in dims:
                say(f"bounds.{level}.{dim}", unknown("dimension", dim, dims))
            elif bound < 1:
                say(f"bounds.{level}.{dim}", f"expected a bound of at least 1, found {bound}")
            else:
                bounds[levels.index(level), dims.index(dim)] = bound
    for dim, product in zip(dims, bounds.prod(axis=0), strict=True):
        if product != problem.sizes[dim]:
            text = f"bounds of dimension '{dim}' multiply up to {product:g}, expected {problem.sizes[dim]}"
            say("bounds", text)
    return bounds


def format_column(
    given: Mapping[str, tuple[str, ...]], candidates: tuple[str, ...], problem: Problem, say: Say
) -> Array:
    """Column `formats`, (T, R) int8, positions in `candidates`. Tensors go by name, else by role (`Problem.tensor`)."""
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


def mechanism_column(given: Mapping[str, str], candidates: tuple[str, ...], problem: Problem, say: Say) -> Array:
    """Column `mechanisms`, (A,) int8, positions in `candidates`."""
    places = [place.name for place in problem.places]
    mechanisms = np.zeros(len(places), dtype=np.int8)
    for place, name in given.items():
        if place in places:
            mechanisms[places.index(place)] = candidates.index(name)
        else:
            say(f"mechanisms.{place}", unknown("skip/gate place", place, places))
    for place in places:
        if place not in given:
            say("mechanisms", f"has no mechanism for place '{place}'")
    return mechanisms
