"""Designs as TOML: one file with workload, hardware, mapping, formats, mechanisms and score, readable on its own.

    kind = "design"
    workload = "mm3"                             # a name, a path, or the whole table; so is hardware
    hardware = "cloud"

    [mapping]                                    # mapping levels, loops from outer to inner; 1 may be left out
    L1_T = ["m=2", "k=365"]

    [formats]                                    # by tensor, one per rank slot, outer to inner
    P = ["uncompressed", "uncompressed", "uncompressed", "offset-pair", "coordinate"]

    [decoded]                                    # by tensor: outermost level to hold the tensor uncompressed, if any
    Q = "GLB"

    [gate_skip]                                  # by place
    GLB = "skip-q-by-p"

    [segments.sub-volume]                        # segments with other columns, by name, without genes
    design = { co = 16, ci = 64, rows = 2, tiles = 1, passes = 1 }

    [stored]                                     # data kept by the hardware, by role, as in a space
    Q = { type = "grouped", n = [2], m = 4 }

`beyond_format` is the format of ranks further out than the slots; `padding` gives the sizes of padded dimensions,
`why_padded` the reason in words. A search writes files with the tables of everything behind the numbers. Reading a file
makes a problem with a space without genes, so the design is evaluated as in a search."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from ..errors import DesignError, Mistake, SpecError, nearest, placed
from ..files import shown
from ..pieces import defaults
from ..pieces.contracts import Loops, Piece, Workload
from ..pieces.data_specs import DESIGN_KIND, SpaceSpec
from ..pieces.registry import Registry
from ..spec import toml_io
from ..spec.structuring import SpecTable, join
from ..spec.unstructuring import unstructure
from .designs import Design, Designs
from .load import make_problem
from .problem import Problem
from .project import located

SEGMENT = "design"
COLUMNS = {"order": "mapping", "bounds": "mapping", "mechanisms": "gate_skip"}
COLUMNS |= {name: name for name in ("formats", "decoded")}
"""Tables of the file by their column of `Designs`."""
NAMED = ("workload", "hardware", "objective", "cost_model")
"""Parts in files of their own, beside the design or in the working directory."""
ABOUT = ("kind", "name", "description", "workload", "hardware", "cost_model", "objective")
PARTS = ("mapping", "padding", "why_padded", "formats", "beyond_format", "gate_skip", "decoded", "segments", "stored")
KNOWN = (*ABOUT, *PARTS, "score", "scenarios", "pieces")
LOOP = re.compile(r"\s*(.+?)\s*=\s*(\d+)\s*")


def dump(
    design: Design,
    numbers: Mapping[str, float] | None = None,
    scenarios: Mapping[str, Mapping[str, float]] | None = None,
) -> dict[str, Any]:
    """Table of a design; `DesignError` for columns without a place in the file."""
    problem, columns = design.problem, design.batch.columns
    if problem.given_chip is not None:
        raise DesignError(f"a design file cannot hold a chip other than that of hardware '{problem.hardware.name}'")
    segments = _settled(design)
    pieces: dict[str, dict[str, Any]] = {}
    table: dict[str, Any] = {"kind": DESIGN_KIND, "name": f"{problem.workload.name}-{problem.hardware.name}"}
    if problem.padded:
        table["padding"] = {dim: size for dim, (_, size) in problem.padded.items()}
        if problem.space.why_padded:
            table["why_padded"] = problem.space.why_padded
    if "bounds" in columns and "order" in columns:
        groups = zip(problem.mapping_levels, design.groups, strict=True)
        table["mapping"] = {x.name: [f"{y.dim}={y.bound}" for y in loops if y.bound > 1] for x, loops in groups}
    if "formats" in columns:
        table["beyond_format"] = _used(design.beyond, pieces, problem)
        table["formats"] = {
            tensor.name: [_used(chosen, pieces, problem) for chosen in design.slots(t)]
            for t, tensor in enumerate(problem.tensors)
        }
    if segments:
        table["segments"] = segments
    if "mechanisms" in columns:
        table["gate_skip"] = {place.name: _used(design.mechanism(place), pieces, problem) for place in problem.places}
    levels = [design.decoded(t) for t in range(len(problem.tensors))]
    inside = ((t, s) for t, s in enumerate(levels) if problem.homes[t] < s < len(problem.levels))
    decoded = {problem.tensors[t].name: problem.levels[s].name for t, s in inside}  # at home, nothing is decoded
    if decoded:
        table["decoded"] = decoded
    if problem.space_spec.stored:
        table["stored"] = dict(problem.space_spec.stored)
    if numbers:
        table["score"] = {key: float(value) for key, value in numbers.items()}
    if scenarios:
        table["scenarios"] = {name: {key: float(x) for key, x in found.items()} for name, found in scenarios.items()}
    return {**table, **problem_tables(problem), "pieces": pieces}


def problem_tables(problem: Problem, space: bool = False) -> dict[str, Any]:
    """Tables of workload, hardware, cost model and objective for `load_problem`; with `space`, also of the space."""
    own = _table(problem.hardware)
    own.pop("technology", None)
    hardware = {**own, "technology": _table(problem.technology)}  # last, whether the hardware names it or not
    return {
        "workload": workload_table(problem.workload, problem.loops, problem.registry),
        "hardware": _inlined(hardware, problem.registry),
        "cost_model": _table(problem.cost_model),
        "objective": _table(problem.objective),
        **({"space": _table(problem.space_spec)} if space else {}),
    }


def _settled(design: Design) -> dict[str, dict[str, Any]]:
    """Tables of the segments with columns outside `COLUMNS`, by name; `DesignError` if a column cannot be written."""
    found: dict[str, dict[str, Any]] = {}
    extra = [name for name in design.batch.columns if name not in COLUMNS]
    for name, segment in design.problem.space.segments.items():
        settled = segment.settled(design) if set(segment.provides) & set(extra) else None
        if settled is not None:
            found[name] = _table(settled)
            extra = [column for column in extra if column not in segment.provides]
    if extra:
        raise DesignError(f"a design file cannot hold column '{extra[0]}'")
    return found


def load(path: str | os.PathLike[str], registry: Registry) -> Design:
    """The design of a file, or of the folder of a search, with its problem; `SpecError` with all mistakes."""
    if os.path.isdir(path):
        folder, path = Path(path), os.path.join(path, defaults.DESIGN_FILE)
        if not os.path.lexists(path):
            below = next((name.parent for name in sorted(folder.glob(f"*/{defaults.DESIGN_FILE}"))), None)
            guess = f"; name the folder of one of its designs, such as {shown(below)}" if below else ""
            text = f"has no {defaults.DESIGN_FILE}, as the folder of a search has{guess}"
            raise SpecError.at(shown(folder), "", text)
    return structure(SpecTable.of(toml_io.read(path, "design"), shown(path)), registry, shown(path))


def structure(
    table: Mapping[str, Any], registry: Registry, file: str = "", memory: dict[Any, Any] | None = None
) -> Design:
    """Like `load`, from a table. Tables with the same `pieces` may share a `memory` of what follows from parts."""
    mistakes = list(_wrong_keys(table, file))
    if mistakes:
        raise SpecError(mistakes)
    segments = {name: dict(own) for name, own in table.get("segments", {}).items()}
    fixed: dict[str, Any] = {"type": defaults.CONSTANTS, **_loops(table.get("mapping", {}), file)}
    if "padding" in table:
        fixed["sizes"] = dict(table["padding"])
        fixed["why"] = table.get("why_padded", "")
    if "beyond_format" in table:
        fixed["beyond"] = table["beyond_format"]
    for column, key in (("formats", "formats"), ("mechanisms", "gate_skip"), ("decoded", "decoded")):
        if key in table:
            fixed[column] = dict(table[key])
    pieces: Mapping[str, Mapping[str, Any]] = table.get("pieces", {})
    beside = {key: located(key, table[key], Path(file).parent) for key in NAMED if key in table}
    tables = {**({SEGMENT: fixed} if "mapping" in table else {}), **segments}
    space = SpaceSpec(name=DESIGN_KIND, segments=tuple(tables), tables=tables, stored=table.get("stored", {}))
    known: Any = _Inlined(registry, pieces, file, memory) if pieces else registry
    scored = beside.get("objective", defaults.OBJECTIVE), beside.get("cost_model", defaults.COST_MODEL)
    with placed("", file):
        problem = make_problem(known, beside["workload"], beside["hardware"], space, *scored, file)
    missing = [COLUMNS[name] for name in problem.cost_model.needs if name in COLUMNS and COLUMNS[name] not in table]
    if missing:
        text = f"missing; cost model '{problem.cost_model.name}' needs it"
        raise SpecError(Mistake(file, key, text) for key in missing)
    try:
        _ = problem.space.candidates  # wrong names are told here
        return Design.of(problem, problem.space.decode(np.zeros((1, len(problem.space)), np.int64)))
    except SpecError as error:
        raise SpecError(_in_file(mistake, file) for mistake in error.mistakes) from error


def as_read(design: Design) -> Design:
    """The design in the form of `structure(dump(design))`: loops with bound one come last, in the order of the
    workload. Starting designs made from either are then the same."""
    columns = dict(design.batch.columns)
    if "bounds" in columns and "order" in columns:
        order = columns["order"].astype(np.intp)
        idle = np.take_along_axis(columns["bounds"], order, axis=1) <= 1.0
        later = np.where(idle, order.shape[1] + order, np.arange(order.shape[1])[:, None])
        columns["order"] = np.take_along_axis(columns["order"], np.argsort(later, axis=1), axis=1)
    return Design(design.problem, Designs(columns))


def _wrong_keys(table: Mapping[str, Any], file: str) -> list[Mistake]:
    if table.get("kind", DESIGN_KIND) != DESIGN_KIND:
        return [Mistake(file, "kind", f"expected '{DESIGN_KIND}', found {table['kind']!r}")]
    mistakes = []
    for key in table:
        if key not in KNOWN:
            guess = nearest(key, KNOWN)
            mistakes.append(Mistake(file, key, "unknown key" + (f"; did you mean '{guess}'?" if guess else "")))
    for key in ("workload", "hardware", *(() if "segments" in table else ("mapping",))):
        if key not in table:
            mistakes.append(Mistake(file, key, "missing"))
    depths = dict.fromkeys(("mapping", "formats", "gate_skip", "decoded", "padding"), 0)
    depths |= {"segments": 1, "stored": 1, "pieces": 2}
    for key, depth in depths.items():
        mistakes += [Mistake(file, path, "expected a table") for path in _no_tables(table.get(key, {}), key, depth)]
    return mistakes


def _no_tables(value: Any, path: str, depth: int) -> Iterator[str]:
    """Paths of values other than tables, where tables are expected down to a depth."""
    if not isinstance(value, Mapping):
        yield path
    elif depth:
        for key, below in value.items():
            yield from _no_tables(below, join(path, key), depth - 1)


def _loops(mapping: Mapping[str, Any], file: str) -> dict[str, Any]:
    """`order` and `bounds` of a `fixed` segment from texts such as "m=4"."""
    order: dict[str, list[str]] = {}
    bounds: dict[str, dict[str, int]] = {}
    mistakes = []
    for level, loops in mapping.items():
        if not isinstance(loops, list | tuple):
            mistakes.append(Mistake(file, f"mapping.{level}", 'expected a list of loops such as ["m=4", "k=2"]'))
            continue
        order[level], bounds[level] = [], {}
        for index, loop in enumerate(loops):
            match = LOOP.fullmatch(loop) if isinstance(loop, str) else None
            if match is None:
                text = f'expected a loop such as "m=4", found {loop!r}'
                mistakes.append(Mistake(file, f"mapping.{level}[{index}]", text))
            else:
                order[level].append(match[1])
                bounds[level][match[1]] = int(match[2])
    if mistakes:
        raise SpecError(mistakes)
    return {"order": order, "bounds": bounds}


def _in_file(mistake: Mistake, file: str) -> Mistake:
    """The mistake with the path of the value in a design file."""
    start, _, rest = mistake.path.partition(".")
    column, dot, rest = rest.partition(".")
    column = column.partition("[")[0]  # the positions of candidates mean nothing to the reader
    if start != SEGMENT or column not in COLUMNS:
        return mistake
    if column == "bounds":  # L1_T.m -> L1_T
        rest = rest.partition(".")[0]
    return Mistake(mistake.file or file, COLUMNS[column] + dot + rest, mistake.message)


def _table(piece: Piece) -> dict[str, Any]:
    """Table of a piece, always with its type."""
    return {"type": type(piece).type_name, **unstructure(piece)}


def workload_table(workload: Workload, loops: Loops, registry: Registry) -> dict[str, Any]:
    """Table of a workload with the same meaning anywhere: names are replaced by tables, and file paths are absolute."""
    table = _inlined(_table(workload), registry)
    densities = table.get("density", {})
    for tensor in loops.tensors:
        models = (tensor.density, tensor.density.nominal)
        fields = [pair for model in models for pair in attrs.asdict(model, recurse=False).items()]
        files = {key: str(path.absolute()) for key, path in fields if isinstance(path, Path)}
        if files and isinstance(densities.get(tensor.name), Mapping):
            densities[tensor.name] |= files
    return table


def _used(piece: Piece, pieces: dict[str, dict[str, Any]], problem: Problem) -> str:
    """Name of a piece. Adds the piece's table to `pieces`, including defaults unless the class is built in."""
    registry, name = problem.registry, type(piece).type_name
    own = name in registry.type_names(piece.kind) and not registry.built_in(registry.type_origin(piece.kind, name))
    pieces.setdefault(piece.kind, {})[piece.name] = {"type": name, **unstructure(piece, whole=own)}
    return piece.name


def _inlined(table: Any, registry: Registry) -> Any:
    """The table with names replaced by their tables, under keys named like a kind (`density.P`)."""
    if isinstance(table, list | tuple):
        return [_inlined(value, registry) for value in table]
    if not isinstance(table, Mapping):
        return table
    return {
        key: _referred(value, key, registry) if key in registry.kinds() else _inlined(value, registry)
        for key, value in table.items()
    }


def _referred(value: Any, kind: str, registry: Registry) -> Any:
    """A name of a piece, or a table of names, as tables; tables of pieces stay."""
    if isinstance(value, str) and registry.has(kind, value):
        return registry.spec(kind, value)
    if isinstance(value, Mapping) and "type" not in value and "extends" not in value:
        return {k: v if isinstance(v, Mapping) else _referred(v, kind, registry) for k, v in value.items()}
    return value


class _Inlined:
    """A registry with the pieces of a design file, in front of other pieces of the same name."""

    def __init__(
        self,
        registry: Registry,
        pieces: Mapping[str, Mapping[str, Any]],
        file: str,
        memory: dict[Any, Any] | None = None,
    ) -> None:
        self._registry, self._pieces, self._file = registry, pieces, file
        self._made: dict[Any, Any] = {} if memory is None else memory

    def __reduce__(self) -> Any:
        return _Inlined, (self._registry, self._pieces, self._file)

    def build(self, kind: str, value: Any, file: str = "", path: str = "") -> Any:
        own = self._pieces.get(kind, {})
        if isinstance(value, str) and value in own:
            return self._registry.build(kind, {"name": value, **own[value]}, self._file, f"pieces.{kind}.{value}")
        return self._registry.build(kind, value, file, path)

    def remember(self, key: Any, make: Any, *arguments: Any) -> Any:
        """Separate memory: names known to others may mean pieces of the file."""
        if key not in self._made:
            self._made[key] = make(*arguments)
        return self._made[key]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._registry, name)
