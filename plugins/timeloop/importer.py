"""Reads a Timeloop problem file, v2 to v4, as the spec of an einsum workload."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparsemap.errors import SparseMapError, SpecError
from sparsemap.files import shown

Table = Mapping[str, Any]
DENSE = {"type": "structured", "density": 1.0}


def read_problem(path: Path | str, name: str = "") -> dict[str, Any]:
    """The table of a workload spec; `SpecError` for what is missing, wrong, or unknown to SparseMap."""
    path, file = Path(path), shown(path)
    problem = _part(_underscored(_load(path)), "problem", file)
    shape, instance = problem.get("shape"), problem.get("instance", problem)
    if isinstance(shape, str):
        shape = _named_shape(path, shape, file)
    if not isinstance(shape, Mapping):
        raise SpecError.at(file, "problem.shape", "missing; expected dimensions and data-spaces")
    if "flatten" in shape:
        raise SpecError.at(file, "problem.shape.flatten", "flattened dimensions are not supported")
    dims = [str(dim) for dim in _list(shape, "dimensions", file)]
    sizes = {dim: _whole(instance, dim, file) for dim in dims}
    spaces = _spaces(shape, file)
    lone = [dim for dim in dims if sizes[dim] == 1 and not any(dim in _dims(space, file) for space in spaces[:2])]
    einsum = _einsum(spaces, _coefficients(shape, instance), lone, file)
    table = {
        "kind": "workload",
        "name": name or _slug(str(shape.get("name") or path.stem)),
        "source": f"Timeloop problem {path.name}",
        "einsum": einsum,
        "dims": {dim: size for dim, size in sizes.items() if dim not in lone},
        "density": {str(space["name"]): _density(instance, str(space["name"]), file) for space in spaces},
    }
    return table


def _load(path: Path) -> Table:
    try:
        import yaml
    except ImportError:
        raise SparseMapError('reading YAML needs PyYAML: pip install "sparsemap[timeloop]"') from None
    file = shown(path)
    try:
        loaded = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError.at(file, "", f"cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise SpecError.at(file, "", f"is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(loaded, Mapping):
        raise SpecError.at(file, "", "expected a table with the key 'problem'")
    return loaded


def _underscored(value: Any) -> Any:
    """The value with hyphens in keys replaced: newer files write `data_spaces`, older ones `data-spaces`."""
    if isinstance(value, Mapping):
        return {str(key).replace("-", "_"): _underscored(item) for key, item in value.items()}
    return [_underscored(item) for item in value] if isinstance(value, list) else value


def _named_shape(path: Path, shape: str, file: str) -> Any:
    """A shape that stands in a file of its own, beside the problem."""
    beside = path.with_name(shape if shape.endswith((".yaml", ".yml")) else f"{shape}.yaml")
    if not beside.is_file():
        text = f"is the name of a shape file, and there is no {beside.name} beside this file; copy it from Timeloop"
        raise SpecError.at(file, "problem.shape", text)
    return _underscored(_load(beside)).get("shape")


# ----------------------------------------------------------------------------------------------------------- the einsum


def _spaces(shape: Table, file: str) -> list[Table]:
    """The tables of the two operands, then of the output."""
    spaces = _list(shape, "data_spaces", file)
    operands = [space for space in spaces if not space.get("read_write")]
    outputs = [space for space in spaces if space.get("read_write")]
    if len(operands) != 2 or len(outputs) != 1:
        found = f"{len(operands)} read-only and {len(outputs)} read-write tensors"
        text = f"{found}; SparseMap takes two operands and one output"
        raise SpecError.at(file, "problem.shape.data-spaces", text)
    return [*operands, *outputs]


def _coefficients(shape: Table, instance: Table) -> dict[str, int]:
    rows = shape.get("coefficients") or ()
    return {str(row["name"]): int(instance.get(row["name"], row.get("default", 1))) for row in rows}


def _ranks(space: Table, file: str) -> list[list[Any]]:
    """Terms by rank; a plain name stands for a rank or a term of its own."""
    return [[rank] if isinstance(rank, str) else list(rank) for rank in _list(space, "projection", file)]


def _dims(space: Table, file: str) -> set[str]:
    return {term if isinstance(term, str) else str(term[0]) for rank in _ranks(space, file) for term in rank}


def _einsum(spaces: list[Table], coefficients: Mapping[str, int], lone: list[str], file: str) -> str:
    """`lone` dimensions of size one index the output only: Timeloop's way to say that it is a single value."""
    texts = []
    for space in spaces:
        path = f"problem.shape.data-spaces.{space.get('name')}.projection"
        ranks = [rank for rank in _ranks(space, file) if not any(rank in ([dim], [[dim]]) for dim in lone)]
        sums = (" + ".join(_term(term, coefficients, file, path) for term in rank) for rank in ranks)
        texts.append(f"{space['name']}[{', '.join(sums)}]")
    return f"{texts[2]} = {texts[0]} * {texts[1]}"


def _term(term: Any, coefficients: Mapping[str, int], file: str, path: str) -> str:
    if isinstance(term, str):
        return term
    dim, *names = (str(part) for part in term)
    if len(names) > 1 or any(name not in coefficients for name in names):
        raise SpecError.at(file, path, f"expected [dimension] or [dimension, coefficient], found {term!r}")
    factor = coefficients[names[0]] if names else 1
    return dim if factor == 1 else f"{factor}*{dim}"


# ---------------------------------------------------------------------------------------------------------- the density


def _density(instance: Table, tensor: str, file: str) -> dict[str, Any]:
    """A tensor without density is dense in Timeloop; a plain number is a structured density."""
    given = instance.get("commonDensity", (instance.get("densities") or {}).get(_key(tensor)))
    path = f"problem.instance.densities.{tensor}"
    if given is None:
        return dict(DENSE)
    if isinstance(given, int | float) and not isinstance(given, bool):
        return {"type": "structured", "density": float(given)}
    if not isinstance(given, Mapping):
        raise SpecError.at(file, path, f"expected a number or a table, found {given!r}")
    kind = str(given.get("distribution", "")).replace("_", "-")
    if kind in ("fixed", "fixed-structured"):
        return {"type": "structured", "density": _share(given, file, path)}
    if kind == "hypergeometric":
        return {"type": "uniform", "density": _share(given, file, path)}
    if kind in ("banded", "diagonal"):
        return {"type": "banded", "half_width": int(given.get("band_width", 0))}
    text = f"'{kind}' is not supported; known: fixed-structured, hypergeometric, banded"
    raise SpecError.at(file, f"{path}.distribution", text)


def _key(tensor: str) -> str:
    return tensor.replace("-", "_")


def _share(given: Table, file: str, path: str) -> float:
    value = given.get("density")
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise SpecError.at(file, f"{path}.density", f"expected a number, found {value!r}")
    return float(value)


# --------------------------------------------------------------------------------------------------------------- parts


def _part(table: Table, key: str, file: str) -> Table:
    found = table.get(key)
    if not isinstance(found, Mapping):
        raise SpecError.at(file, key, "missing" if found is None else "expected a table")
    return found


def _list(table: Table, key: str, file: str) -> list[Any]:
    found = table.get(key)
    if not isinstance(found, list):
        raise SpecError.at(file, f"problem.shape.{key}", "missing" if found is None else "expected a list")
    return found


def _whole(instance: Table, dim: str, file: str) -> int:
    value = instance.get(dim)
    if not isinstance(value, int) or isinstance(value, bool):
        text = "missing" if value is None else f"expected a whole number, found {value!r}"
        raise SpecError.at(file, f"problem.instance.{dim}", text)
    return value


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "imported"
