"""Candidates available with the units of a chip: formats by tensor, mechanisms by place."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsemap import Problem
from sparsemap.errors import SpecError, listed
from sparsemap.pieces.contracts import Array

from .choices import compressing

logger = logging.getLogger("sparsemap")


def owned_formats(formats: Sequence[Any], problem: Problem) -> Array:
    """(T, C) bool, by the tensors of the hardware's `units.formats`; storing all positions needs no unit."""
    owned, units = np.repeat(~compressing(formats)[None], len(problem.tensors), axis=0), problem.hardware.units
    for text, names in units.formats.items() if units else ():
        if not problem.lacks(text):
            tensor = problem.tensor(text, problem.files.get("hardware", ""), f"units.formats.{text}")
            owned[tensor] |= [piece.name in names for piece in formats]
    return owned


def owned_mechanisms(mechanisms: Sequence[Any], problem: Problem) -> Array:
    """(A, C) bool, by the places of the hardware's `units.mechanisms`; without filters none is needed."""
    built, places = problem.hardware.units.mechanisms if problem.hardware.units else {}, problem.places
    rows = [[x.name in built.get(y.name, ()) or not problem.filters(x, y) for x in mechanisms] for y in places]
    return np.array(rows)


def some(owned: Array, problem: Problem, key: str, pieces: Sequence[Any]) -> Array:
    """(n, C) bool of a hardware with units, checked; warns once about units not among the candidates.

    `SpecError` if a tensor or place has no candidate, or the units lack a piece of the space's key `more`."""
    space, file, units = problem.space_spec, problem.files.get("hardware", ""), problem.hardware.units
    choosing: Sequence[Any] = problem.tensors if key == "formats" else problem.places
    for one, mine in zip(choosing, owned, strict=True):
        if not mine.any():
            text = f"leaves {one.name} without any candidate of space '{space.name}'"
            raise SpecError.at(file, f"units.{key}", text)
    built = units.names[key[:-1]] if units else ()
    known = {x.name for i, x in enumerate(pieces) if owned[:, i].any()}.union(built)
    if lacks := [name for name in space.more.get(key[:-1], ()) if name not in known]:
        text = f"have no {lacks[0]!r}, which space '{space.name}' is to choose from besides"
        raise SpecError.at(file, f"units.{key}", text)
    if unused := [name for name in built if name not in {x.name for x in pieces}]:
        text = "%s: units.%s: no design uses %s, which is no candidate of space '%s'; its key `more` adds candidates"
        said = file, key, listed(unused), space.name

        def tell() -> bool:
            logger.warning(text, *said)
            return True

        problem.registry.remember((some, *said), tell)
    return owned


def nearest_owned(owned: Array | None) -> Array | None:
    """(g, C) int64: the available candidate replacing each candidate; None: no replacements."""
    if owned is None or owned.all():
        return None
    table = np.empty(owned.shape, dtype=np.int64)
    for row, mine in zip(table, owned, strict=True):
        own = np.flatnonzero(mine)
        row[:] = np.where(mine, np.arange(len(mine)), own[np.arange(len(mine)) % len(own)])
    return table
