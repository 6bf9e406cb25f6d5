"""The problem with names valid in Timeloop (dimensions, tensor projections, sizes and densities), and the mapping.

Dimensions are single letters; levels are letters, digits and underscores. The mapping has, per storage level, temporal
loops, spatial loops, and the stored tensors. Timeloop writes loops from inner to outer, and lists tensors not stored in
a level as bypassed. All spatial loops go along X. Timeloop's default transfers between neighbours are switched off,
except for tensors in `links`."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import attrs

from sparsemap.errors import DesignError
from sparsemap.pieces.contracts import Tensor
from sparsemap.problem.designs import Design, Loop
from sparsemap.problem.problem import Problem

TAKEN_LEVELS = ("wire",)
"""Names reserved in the energy table, here for the wires."""


@attrs.frozen
class Names:
    """Timeloop's names for the dimensions and levels of a problem."""

    dims: Mapping[str, str]
    """Letter by dimension, in the order of the workload."""
    lone: str | None
    """Letter of a size-one dimension that indexes scalar tensors; None without scalar tensors."""
    levels: tuple[str, ...]
    compute: str

    @property
    def letters(self) -> tuple[str, ...]:
        return (*self.dims.values(), *([self.lone] if self.lone else []))

    @classmethod
    def of(cls, problem: Problem) -> Names:
        letters = dim_letters(problem.dims)
        lone = None if all(tensor.ranks for tensor in problem.tensors) else _free("", set(letters.values()))
        *levels, compute = level_names([*(level.name for level in problem.levels), problem.compute_name])
        return cls(letters, lone, tuple(levels), compute)


def dim_letters(dims: Iterable[str]) -> dict[str, str]:
    """A letter per dimension: a single-letter name itself, else a free letter, preferably from the name."""
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
    """Distinct names without brackets, points and blanks."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        while plain in found or plain.lower() in TAKEN_LEVELS:
            plain += "_"
        found.append(plain)
    return found


LIMIT = 2**31
"""Timeloop's signed 32-bit limit on sizes and coefficients."""


def problem_table(problem: Problem, names: Names) -> dict[str, Any]:
    """The table of the file `problem.yaml`; `DesignError` for a problem that Timeloop cannot express."""
    sizes = {names.dims[dim]: size for dim, size in problem.sizes.items()}
    coefficients = sorted({c for tensor in problem.tensors for rank in tensor.ranks for _, c in rank if c > 1})
    too_large = [n for n in (*sizes.values(), *coefficients) if n >= LIMIT]
    if too_large:
        text = f"Timeloop counts up to {LIMIT - 1} in a dimension or coefficient"
        raise DesignError(f"{text}; this problem has {too_large[0]}")
    shape: dict[str, Any] = {"name": problem.workload.name or "workload", "dimensions": list(names.letters)}
    if coefficients:
        shape["coefficients"] = [{"name": f"times{c}", "default": c} for c in coefficients]
    shape["data-spaces"] = [_data_space(tensor, names) for tensor in problem.tensors]
    densities = {tensor.name: density(tensor) for tensor in problem.tensors}
    lone = {names.lone: 1} if names.lone else {}
    return {"problem": {"shape": shape, "instance": {**sizes, **lone, "densities": densities}}}


def _data_space(tensor: Tensor, names: Names) -> dict[str, Any]:
    projection = [[[names.dims[dim], *[f"times{c}"][: c > 1]] for dim, c in rank] for rank in tensor.ranks]
    found: dict[str, Any] = {"name": tensor.name, "projection": projection or [[[names.lone]]]}
    return {**found, "read-write": True} if tensor.output else found


def density(tensor: Tensor) -> dict[str, Any]:
    """The density of a tensor; `DesignError` for a model missing in Timeloop v3.0.3."""
    model: Any = tensor.density.nominal
    match model.type_name:
        case "uniform":
            return {"distribution": "hypergeometric", "density": float(model.density)}
        case "structured":
            return {"distribution": "fixed-structured", "density": float(model.density)}
        case "n-of-m" if Fraction(model.n / model.m) == Fraction(model.n, model.m):
            return {"distribution": "fixed-structured", "density": model.n / model.m}
        case "n-of-m":
            text = f"{model.n}:{model.m} has no exact density; Timeloop would miscount some tiles"
        case "banded" if not model.every_tile:
            return {"distribution": "banded", "band_width": int(model.half_width)}
        case "banded":
            text = "a banded density with 'every_tile' counts other tiles than Timeloop does"
        case _:
            text = f"density type '{model.type_name}' has no counterpart in Timeloop v3.0.3"
    raise DesignError(f"tensor '{tensor.name}': {text}")


def mapping(design: Design, names: Names) -> dict[str, Any]:
    """The table of the file `map.yaml`."""
    problem = design.problem
    tensors = [tensor.name for tensor in problem.tensors]
    directives: list[dict[str, Any]] = []
    for mapping_level, group in zip(problem.mapping_levels, design.groups, strict=True):
        level = mapping_level.storage
        target, loops = {"target": names.levels[level]}, _loops(names, group)
        if not mapping_level.spatial:
            kept = [name for t, name in enumerate(tensors) if problem.stores(t, level)]
            lists = {"keep": kept, "bypass": [name for name in tensors if name not in kept]}
            stored = {key: listed for key, listed in lists.items() if listed}
            directives += [{**target, "type": "temporal", **loops}, {**target, "type": "bypass", **stored}]
        elif problem.levels[level].fanout > 1:  # Timeloop has no spatial loops where there is a single child
            inner = level == len(problem.levels) - 1
            alone = [name for t, name in enumerate(tensors) if not (inner and problem.links(t))]
            more = {"split": len(names.letters), **({"no_link_transfer": alone} if alone else {})}
            directives.append({**target, "type": "spatial", **loops, **more})
    return {"mapping": directives}


def _loops(names: Names, group: tuple[Loop, ...]) -> dict[str, Any]:
    bounds = {loop.dim: loop.bound for loop in group}
    factors = [f"{letter}={bounds[dim]}" for dim, letter in names.dims.items()]
    inner_to_outer = [names.dims[loop.dim] for loop in reversed(group)]
    if names.lone:
        factors.append(f"{names.lone}=1")
        inner_to_outer.append(names.lone)
    return {"factors": " ".join(factors), "permutation": "".join(inner_to_outer)}
