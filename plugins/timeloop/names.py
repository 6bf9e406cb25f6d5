"""Names that Timeloop accepts: dimensions of one letter, levels of letters, digits and underscores."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping

import attrs

from sparsemap.errors import DesignError
from sparsemap.problem.problem import Problem

TAKEN_LEVELS = ("wire",)
"""A component of this name in the energy table is taken for the wires."""


@attrs.frozen
class Names:
    """Timeloop's names for the dimensions and levels of a problem."""

    dims: Mapping[str, str]
    """Letter by dimension, in the order of the workload."""
    lone: str | None
    """Letter of a dimension of size one that indexes tensors without any index; None if there is no such tensor."""
    levels: tuple[str, ...]
    """Storage levels, outermost first."""
    compute: str

    @property
    def letters(self) -> tuple[str, ...]:
        return (*self.dims.values(), *([self.lone] if self.lone else []))

    @classmethod
    def of(cls, problem: Problem) -> Names:
        letters = dim_letters(problem.dims)
        lone = None
        if any(not tensor.ranks for tensor in problem.tensors):
            lone = _free("", set(letters.values()))
        wanted = [*(level.name for level in problem.levels), problem.compute_name]
        *levels, compute = level_names(wanted)
        return cls(letters, lone, tuple(levels), compute)


def dim_letters(dims: Iterable[str]) -> dict[str, str]:
    """A letter per dimension: its name if that is one letter, else a free letter, preferably one of its own."""
    dims = tuple(dims)
    letters = {dim: dim for dim in dims if re.fullmatch("[A-Za-z]", dim)}
    for dim in dims:
        if dim not in letters:
            letters[dim] = _free(dim, set(letters.values()))
    return {dim: letters[dim] for dim in dims}


def _free(name: str, taken: set[str]) -> str:
    own = [letter for letter in name if letter in string.ascii_letters]
    for letter in (*own, *(letter.swapcase() for letter in own), *string.ascii_uppercase, *string.ascii_lowercase):
        if letter not in taken:
            return letter
    raise DesignError("Timeloop names dimensions by single letters, and there are more than 52")


def level_names(names: Iterable[str]) -> list[str]:
    """Names without brackets, points and blanks, all different."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        while plain in found or plain.lower() in TAKEN_LEVELS:
            plain += "_"
        found.append(plain)
    return found
