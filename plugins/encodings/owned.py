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


def owned_formats(formats: Sequence[Any], problem: Problem) -> Array | None:
    """(T, C) bool, by the tensors of `units.formats`; a format storing all positions needs no unit. None: all."""
    units = problem.hardware.units
    if units is None:
        return None
    owned = np.repeat(~compressing(formats)[None], len(problem.tensors), axis=0)
    for text, names in units.formats.items():
        if not problem.lacks(text):
            tensor = problem.tensor(text, problem.files.get("hardware", ""), f"units.formats.{text}")
            owned[tensor] |= [piece.name in names for piece in formats]
    return owned


def owned_mechanisms(mechanisms: Sequence[Any], problem: Problem) -> Array | None:
    """(A, C) bool, by the places of `units.mechanisms`; a mechanism without filters needs no unit. None: all."""
    units = problem.hardware.units
    if units is None:
        return None
    built, places = units.mechanisms, problem.places
    rows = [[x.name in built.get(y.name, ()) or not problem.filters(x, y) for x in mechanisms] for y in places]
    return np.array(rows)


def some(
    owned: Array | None, choosing: Sequence[Any], key: str, problem: Problem, pieces: Sequence[Any]
) -> Array | None:
    """(n, C) bool, returned after checks. `SpecError` if the units of the chip leave a tensor or place without
    candidates, or lack a piece added by the space's key `more`. Warns once about units not among the candidates."""
    units, space, file = problem.hardware.units, problem.space_spec, problem.files.get("hardware", "")
    for one, mine in zip(choosing, owned, strict=True) if owned is not None else ():
        if not mine.any():
            text = f"leaves {one.name} without any candidate of space '{space.name}'"
            raise SpecError.at(file, f"units.{key}", text)
    built = units.names[key[:-1]] if units else ()
    known = {x.name for i, x in enumerate(pieces) if owned is None or owned[:, i].any()}.union(built)
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
