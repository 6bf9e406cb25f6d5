"""Reads a Timeloop problem file, v2 to v4, as the spec of an einsum workload."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import attrs

from sparsemap.errors import Mistake, SpecError, shortened, unknown
from sparsemap.files import shown
from sparsemap.spec.structuring import Reader, keys

from .project_yaml import read

MAX_OPERANDS = 4
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
DATA = (".txt", ".mtx", ".npz", ".npy")
"""Files of actual data; in a text stands a digit per word."""
Term = tuple[str, ...]
"""A dimension, and perhaps the coefficient that it is multiplied by."""


# ------------------------------------------------------------------------------------------------------ what a file says


def _name(_: Any, __: Any, value: str) -> None:
    if not NAME.fullmatch(value):
        raise ValueError(f"expected a name of letters and digits, found {shortened(value)}")


def _share(_: Any, __: Any, value: float | None) -> None:
    if value is not None and not 0 <= value <= 1:
        raise ValueError(f"expected a number from 0 to 1, found {value}")


def _ranks(value: Any) -> tuple[tuple[Term, ...], ...]:
    """Terms by rank; a plain name stands for a rank or a term of its own."""
    ranks: list[Any] = (
        [[rank] if isinstance(rank, str) else rank for rank in value] if isinstance(value, list) else [None]
    )
    if not all(isinstance(rank, list) and rank for rank in ranks):
        raise ValueError(f"expected a list with the terms of every rank, found {shortened(value)}")
    return tuple(tuple(_term(term) for term in rank) for rank in ranks)


def _term(value: Any) -> Term:
    term = (value,) if isinstance(value, str) else value
    if isinstance(term, list | tuple) and len(term) in (1, 2) and all(isinstance(name, str) for name in term):
        return tuple(term)
    raise ValueError(f"expected [dimension] or [dimension, coefficient], found {shortened(value)}")


class Part:
    """A table of a problem file, of which only the keys that SparseMap knows count."""

    @classmethod
    def from_table(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {key: item for key, item in value.items() if key in keys(cls) and item is not None}


@attrs.frozen(kw_only=True)
class Coefficient(Part):
    name: str = attrs.field(validator=_name)
    default: int = 1


@attrs.frozen(kw_only=True)
class DataSpace(Part):
    name: str = attrs.field(validator=_name)
    projection: tuple[tuple[Term, ...], ...] = attrs.field(converter=_ranks)
    read_write: bool = False

    @property
    def dims(self) -> set[str]:
        return {term[0] for rank in self.projection for term in rank}


@attrs.frozen(kw_only=True)
class Shape(Part):
    name: str = ""
    dimensions: tuple[str, ...] = attrs.field(validator=attrs.validators.deep_iterable(_name))
    data_spaces: tuple[DataSpace, ...]
    coefficients: tuple[Coefficient, ...] = ()
    flatten: Any = None

    def __attrs_post_init__(self) -> None:
        outputs = sum(space.read_write for space in self.data_spaces)
        operands = len(self.data_spaces) - outputs
        if outputs != 1 or not 1 <= operands <= MAX_OPERANDS:
            found = f"{operands} read-only and {outputs} read-write tensors"
            text = f"{found}; SparseMap takes one to four operands and one output"
            raise SpecError.at("", "data-spaces", text)
        if self.flatten is not None:
            raise SpecError.at("", "flatten", "flattened dimensions are not supported")

    @property
    def spaces(self) -> list[DataSpace]:
        """The operands in their order, then the output."""
        return sorted(self.data_spaces, key=lambda space: space.read_write)


@attrs.frozen(kw_only=True)
class Density(Part):
    """A plain number is a fixed-structured density; a tensor without density is dense."""

    distribution: Literal[
        "fixed",
        "fixed-structured",
        "fixed_structured",
        "hypergeometric",
        "banded",
        "diagonal",
        "real-data",
        "actual-data",
    ] = "fixed"
    density: float | None = attrs.field(default=None, validator=_share)
    band_width: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    data_file_path: str = ""

    @classmethod
    def from_table(cls, value: Any) -> Any:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return {"density": value} if number else super().from_table(value)

    def __attrs_post_init__(self) -> None:
        if self.distribution in ("real-data", "actual-data"):
            if not self.data_file_path:
                raise SpecError.at("", "data_file_path", "missing; expected the file of the tensor")
        elif self.density is None and self.distribution not in ("banded", "diagonal"):
            raise SpecError.at("", "density", "missing; expected a number from 0 to 1")

    def table(self, problem: Path) -> dict[str, Any]:
        """`problem`: the file that it stands in, below whose folder files of data lie."""
        if self.data_file_path:
            parts = Path(self.data_file_path).parts
            ends = (problem.parent.joinpath(*parts[i:]) for i in range(len(parts)) if ".." not in parts[i:])
            found = next((end for end in ends if end.suffix in DATA and end.is_file()), None)
            if found is None:
                text = f"no file {shortened(self.data_file_path)} (*{', *'.join(DATA)}) below {shown(problem.parent)}"
                raise SpecError.at("", "densities.data_file_path", text)
            return {"type": "data", "file": str(found.absolute())}
        if self.distribution in ("banded", "diagonal"):
            return {"type": "banded", "half_width": self.band_width}
        kind = "uniform" if self.distribution == "hypergeometric" else "structured"
        return {"type": kind, "density": self.density}


@attrs.frozen(kw_only=True)
class Densities(Part):
    densities: Mapping[str, Density] = {}
    common: Density | None = attrs.field(default=None, alias="commonDensity")

    def of(self, tensor: str, problem: Path) -> dict[str, Any]:
        found = self.common or self.densities.get(tensor) or Density(density=1.0)
        return found.table(problem)


# ---------------------------------------------------------------------------------------------------------- the workload


def read_problem(path: Path | str, name: str = "") -> dict[str, Any]:
    """The table of a workload spec; `SpecError` for what is missing, wrong, or unknown to SparseMap."""
    path = Path(path)
    return workload_table(_table(_load(path).get("problem"), "problem", shown(path)), path, name)


def workload_table(problem: Mapping[str, Any], path: Path, name: str = "") -> dict[str, Any]:
    """Like `read_problem`, from the table of the problem, in whose keys hyphens are replaced; `path` is its file."""
    file, reader = shown(path), Reader()
    instance = _table(problem.get("instance", problem), "problem.instance", file)
    given = problem.get("shape")
    with _within("problem.shape", file):
        shape = reader.read(Shape, _named_shape(path, given) if isinstance(given, str) else given)
    with _within("problem.instance", file):
        densities = reader.read(Densities, instance)
        sizes = {dim: size for dim, size in instance.items() if dim in shape.dimensions}
        factors = {one.name: instance.get(one.name, one.default) for one in shape.coefficients}
        numbers = _checked(shape, reader.read(dict[str, int], {**factors, **sizes}))
    operands = shape.spaces[:-1]
    lone = [dim for dim in shape.dimensions if numbers[dim] == 1 and not any(dim in space.dims for space in operands)]
    with _within("problem.shape", file):
        einsum = _einsum(shape, numbers, lone)
    with _within("problem.instance", file):
        tables = {space.name: densities.of(space.name, path) for space in shape.spaces}
    return {
        "kind": "workload",
        "name": name or _slug(shape.name or path.stem),
        "source": f"Timeloop problem {path.name}",
        "einsum": einsum,
        "dims": {dim: numbers[dim] for dim in shape.dimensions if dim not in lone},
        "density": tables,
    }


@contextmanager
def _within(path: str, file: str) -> Iterator[None]:
    """Mistakes of the block are those of a part of a file."""
    try:
        yield
    except SpecError as error:
        raise error.within(path, file) from None


def _checked(shape: Shape, numbers: Mapping[str, int]) -> Mapping[str, int]:
    mistakes = [Mistake("", dim, "missing; expected a whole number") for dim in shape.dimensions if dim not in numbers]
    mistakes += [
        Mistake("", name, f"is {number}, expected at least 1") for name, number in numbers.items() if number < 1
    ]
    if mistakes:
        raise SpecError(mistakes)
    return numbers


def _einsum(shape: Shape, numbers: Mapping[str, int], lone: list[str]) -> str:
    """`lone` dimensions of size one index the output only: Timeloop's way to say that it is a single value."""
    coefficients = [one.name for one in shape.coefficients]
    texts = []
    for space in shape.spaces:
        sums = []
        for rank in space.projection:
            for dim, *factor in rank:
                path = f"data-spaces.{space.name}.projection"
                if dim not in shape.dimensions:
                    raise SpecError.at("", path, unknown("dimension", dim, shape.dimensions))
                if factor and factor[0] not in coefficients:
                    raise SpecError.at("", path, unknown("coefficient", factor[0], coefficients))
            if rank not in [((dim,),) for dim in lone]:
                factors = [(dim, numbers[factor[0]] if factor else 1) for dim, *factor in rank]
                sums.append(" + ".join(dim if times == 1 else f"{times}*{dim}" for dim, times in factors))
        texts.append(f"{space.name}[{', '.join(sums)}]")
    return f"{texts[-1]} = {' * '.join(texts[:-1])}"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:100] or "imported"


# ----------------------------------------------------------------------------------------------------------------- files


def _load(path: Path) -> Mapping[str, Any]:
    if path.suffix == ".cfg":
        text = "is libconfig, the format of Timeloop's first problem files; write it as YAML"
        raise SpecError.at(shown(path), "", text)
    return read(path)


def _named_shape(path: Path, shape: str) -> Any:
    """A shape that stands in a file of its own, beside the problem."""
    name = shape if shape.endswith((".yaml", ".yml")) else f"{shape}.yaml"
    if not re.fullmatch(r"[\w.-]{1,200}", name) or not (path.parent / name).is_file():
        text = f"{shortened(shape)} is the name of a shape file, and there is none of that name beside this file"
        raise SpecError.at("", "", f"{text}; copy it from Timeloop")
    return _load(path.parent / name).get("shape")


def _table(value: Any, path: str, file: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        found = "missing" if value is None else f"expected a table, found {shortened(value)}"
        raise SpecError.at(file, path, found if path else f"expected a table with the key 'problem', {found}")
    return value
