"""Reader of Timeloop problem files, v2 to v4, as the spec of an einsum workload."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sparsemap.errors import SpecError, listed, shortened, unknown
from sparsemap.files import shown
from sparsemap.spec.yaml_tables import YamlTable, error

from .project_yaml import read

MAX_OPERANDS = 4
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
DATA = (".txt", ".mtx", ".npz", ".npy")
"""Suffixes of files with actual data; a text file has a digit per word."""
DISTRIBUTIONS = {
    **dict.fromkeys(("fixed", "fixed-structured", "fixed_structured"), "structured"),
    "hypergeometric": "uniform",
    **dict.fromkeys(("banded", "diagonal"), "banded"),
    **dict.fromkeys(("real-data", "actual-data"), "data"),
}
Term = tuple[str, ...]
"""A dimension, optionally with the name of a coefficient."""


def read_problem(path: Path | str, name: str = "") -> dict[str, Any]:
    """The table of a workload spec; `SpecError` for missing, wrong or unknown values."""
    path = Path(path)
    found = _load(path)
    if found.get("problem") is None:
        raise error(found.at("problem"), "missing; expected a table")
    return workload_table(found.table("problem"), path, name)


def workload_table(problem: YamlTable, path: Path, name: str = "") -> dict[str, Any]:
    """Like `read_problem`, from the table of the problem; `path` is its file."""
    shape, instance = _shape(problem, path), problem.table("instance") if "instance" in problem else problem
    dims = [_named(dim, shape, "dimensions") for dim in shape.names("dimensions")]
    if not dims:
        raise error(shape.at("dimensions"), "missing; expected a list of names")
    factors = {
        _named(one.get("name"), one): _whole(instance, str(one["name"]), _whole(one, "default", 1))
        for one in shape.rows("coefficients")
    }
    sizes = {dim: _whole(instance, dim) for dim in dims}
    spaces = sorted(shape.rows("data_spaces"), key=lambda space: space.get("read_write") is True)  # the output last
    outputs = sum(space.get("read_write") is True for space in spaces)
    if outputs != 1 or not 1 <= len(spaces) - outputs <= MAX_OPERANDS:
        text = f"{len(spaces) - outputs} read-only and {outputs} read-write tensors"
        raise error(shape.at("data_spaces"), f"{text}; SparseMap takes one to four operands and one output")
    if shape.get("flatten") is not None:
        raise error(shape.at("flatten"), "flattened dimensions are not supported")
    tensors = {_named(space.get("name"), space): _ranks(space, dims, factors) for space in spaces}
    if len(tensors) < len(spaces):
        raise error(shape.at("data_spaces"), f"expected tensors of different names, found {listed(tensors)}")
    *operands, _ = tensors.values()
    indexed = {dim for ranks in operands for rank in ranks for dim, *_ in rank}
    lone = [dim for dim in dims if sizes[dim] == 1 and dim not in indexed]
    *texts, output = (f"{tensor}[{_indices(ranks, lone, factors)}]" for tensor, ranks in tensors.items())
    title = name or re.sub(r"[^a-z0-9]+", "-", _text(shape, "name", path.stem).lower()).strip("-")[:100]
    return {
        "kind": "workload",
        "name": title or "imported",
        "source": f"Timeloop problem {path.name}",
        "einsum": f"{output} = {' * '.join(texts)}",
        "dims": {dim: size for dim, size in sizes.items() if dim not in lone},
        "density": {tensor: _density(instance, tensor, path) for tensor in tensors},
    }


def _load(path: Path) -> YamlTable:
    if path.suffix == ".cfg":
        text = "is libconfig, the format of Timeloop's first problem files; write it as YAML"
        raise SpecError.at(shown(path), "", text)
    return read(path)


def _shape(problem: YamlTable, path: Path) -> YamlTable:
    """The shape, possibly from a separate file beside the problem."""
    given = problem.get("shape")
    if not isinstance(given, str):
        return problem.table("shape")
    name = given if given.endswith((".yaml", ".yml")) else f"{given}.yaml"
    if not re.fullmatch(r"[\w.-]{1,200}", name) or not (path.parent / name).is_file():
        text = f"{shortened(given)} is the name of a shape file, and there is none of that name beside this file"
        raise error(problem.at("shape"), f"{text}; copy it from Timeloop")
    return _load(path.parent / name).table("shape")


# ----------------------------------------------------------------------------------------------------------------- values


def _text(table: YamlTable, key: str, default: str) -> str:
    found = table.get(key)
    if not isinstance(found, str | None):
        raise error(table.at(key), f"expected text, found {shortened(found)}")
    return found or default


def _named(value: Any, table: YamlTable, key: str = "name") -> str:
    if isinstance(value, str) and NAME.fullmatch(value):
        return value
    found = f"expected a name of letters and digits, found {shortened(value)}"
    raise error(table.at(key), "missing; expected a name" if value is None else found)


def _number(table: YamlTable, key: str, kind: Any, low: int, high: float, wanted: str, default: Any = None) -> Any:
    found = default if table.get(key) is None else table.get(key)
    if isinstance(found, bool) or not isinstance(found, kind) or not low <= found <= high:
        wanted = f"expected a {wanted}"
        raise error(table.at(key), f"missing; {wanted}" if found is None else f"{wanted}, found {shortened(found)}")
    return found


def _whole(table: YamlTable, key: str, default: int | None = None) -> int:
    return _number(table, key, int, 1, 2**63 - 1, "whole number from 1 to 2^63 - 1", default)


def _ranks(space: YamlTable, dims: Sequence[str], factors: Mapping[str, int]) -> list[list[Term]]:
    """Terms by rank; a plain name stands for a whole rank or term."""
    given, at = space.get("projection"), space.at("projection")
    ranks: list[Any] = given if isinstance(given, list) else [None]
    if not all(isinstance(rank, str) or (isinstance(rank, list) and rank) for rank in ranks):
        raise error(at, f"expected a list with the terms of every rank, found {shortened(given)}")
    found = []
    for rank in ranks:
        terms = [(term,) if isinstance(term, str) else term for term in ([rank] if isinstance(rank, str) else rank)]
        for term in terms:
            if not (isinstance(term, list | tuple) and len(term) in (1, 2) and all(isinstance(x, str) for x in term)):
                raise error(at, f"expected [dimension] or [dimension, coefficient], found {shortened(term)}")
            for what, text, known in zip(("dimension", "coefficient"), term, (dims, factors), strict=False):
                if text not in known:
                    raise error(at, unknown(what, text, known))
        found.append([tuple(term) for term in terms])
    return found


def _indices(ranks: Sequence[Sequence[Term]], lone: Sequence[str], factors: Mapping[str, int]) -> str:
    """Index text of a tensor. Dimensions in `lone`, of size one, index only the output: Timeloop's form of a scalar."""
    sums = []
    for rank in ranks:
        if rank not in [[(dim,)] for dim in lone]:
            terms = [(dim, factors[factor[0]] if factor else 1) for dim, *factor in rank]
            sums.append(" + ".join(dim if times == 1 else f"{times}*{dim}" for dim, times in terms))
    return ", ".join(sums)


def _density(instance: YamlTable, tensor: str, path: Path) -> dict[str, Any]:
    """Density of a tensor: a plain number is fixed-structured, a missing density is dense.

    Files of data are searched below the folder of the problem."""
    common = instance.get("commonDensity") is not None
    table, key = (instance, "commonDensity") if common else (instance.table("densities"), tensor)
    given = table.get(key)
    if not isinstance(given, YamlTable):
        return {"type": "structured", "density": 1.0 if given is None else _share(table, key)}
    if (kind := _text(given, "distribution", "fixed")) not in DISTRIBUTIONS:
        raise error(given.at("distribution"), unknown("distribution", kind, DISTRIBUTIONS))
    match DISTRIBUTIONS[kind]:
        case "banded":
            return {"type": "banded", "half_width": _whole(given, "band_width") if given.get("band_width") else 0}
        case "data":
            parts = Path(_text(given, "data_file_path", "")).parts
            ends = (path.parent.joinpath(*parts[i:]) for i in range(len(parts)) if ".." not in parts[i:])
            if (found := next((end for end in ends if end.suffix in DATA and end.is_file()), None)) is None:
                named = f"{shortened(given.get('data_file_path'))} (*{', *'.join(DATA)})"
                raise error(given.at("data_file_path"), f"no file {named} below {shown(path.parent)}")
            return {"type": "data", "file": str(found.absolute())}
        case own:
            return {"type": own, "density": _share(given, "density")}


def _share(table: YamlTable, key: str) -> float:
    return _number(table, key, int | float, 0, 1, "number from 0 to 1")
