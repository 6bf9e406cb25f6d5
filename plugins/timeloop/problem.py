"""The problem: dimensions, the projections of the tensors, sizes and densities."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from sparsemap.errors import DesignError
from sparsemap.pieces.contracts import Tensor
from sparsemap.problem.problem import Problem

from .names import Names

LIMIT = 2**31
"""Timeloop keeps sizes and coefficients in 32 bits, with sign."""


def problem_table(problem: Problem, names: Names) -> dict[str, Any]:
    """The table of the file `problem.yaml`; `DesignError` for what Timeloop cannot be told."""
    sizes = {names.dims[dim]: size for dim, size in problem.sizes.items()}
    coefficients = sorted({c for tensor in problem.tensors for rank in tensor.ranks for _, c in rank if c > 1})
    too_large = [n for n in (*sizes.values(), *coefficients) if n >= LIMIT]
    if too_large:
        text = f"Timeloop counts up to {LIMIT - 1} in a dimension or coefficient"
        raise DesignError(f"{text}; this problem has {too_large[0]}")
    shape: dict[str, Any] = {"name": problem.workload.name or "workload", "dimensions": list(names.letters)}
    if coefficients:
        shape["coefficients"] = [{"name": _coefficient(c), "default": c} for c in coefficients]
    shape["data-spaces"] = [_data_space(tensor, names) for tensor in problem.tensors]
    densities = {tensor.name: density(tensor) for tensor in problem.tensors}
    lone = {names.lone: 1} if names.lone else {}
    return {"problem": {"shape": shape, "instance": {**sizes, **lone, "densities": densities}}}


def _coefficient(value: int) -> str:
    return f"times{value}"


def _data_space(tensor: Tensor, names: Names) -> dict[str, Any]:
    projection = [
        [[names.dims[dim], *([_coefficient(c)] if c > 1 else [])] for dim, c in rank] for rank in tensor.ranks
    ]
    found: dict[str, Any] = {"name": tensor.name, "projection": projection or [[[names.lone]]]}
    return {**found, "read-write": True} if tensor.output else found


def density(tensor: Tensor) -> dict[str, Any]:
    """The density of a tensor; `DesignError` if Timeloop v3.0.3 has no such model."""
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
