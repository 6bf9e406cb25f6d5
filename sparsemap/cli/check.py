"""What `sparsemap check` looks at: a spec file, and whatever follows from it alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import Mistake, SpecError, unknown
from ..files import shown
from ..pieces import defaults
from ..pieces.data_specs import DESIGN_KIND
from ..pieces.registry import Origin, Registry
from ..problem import design_file
from ..problem.load import make_problem, objective_of, piece_of
from ..problem.problem import Problem
from ..spec import toml_io
from ..spec.structuring import join
from ..study.cells import located

Attempt = Callable[[Callable[[], Any]], Any]
"""Does some work, keeps the mistakes that it raises, and gives its result, None if there is none."""


def check_files(files: Sequence[str], registry: Registry) -> Iterator[tuple[str, list[Mistake]]]:
    """The mistakes of each spec file; the files may name each other's pieces, which join the registry."""
    read = [(file, _read(file)) for file in files]
    for file, table in read:
        with suppress(SpecError):  # mistakes are found below, and a name that is taken is none of a file by itself
            if isinstance(table, Mapping):
                registry.add_spec(table, Origin("", shown(file)))
    for file, table in read:
        yield file, check_table(table, registry, shown(file), Path(file)) if isinstance(table, Mapping) else table


def _read(file: str) -> Mapping[str, Any] | list[Mistake]:
    try:
        return toml_io.read(file)
    except SpecError as error:
        return list(error.mistakes)


def check_table(table: Mapping[str, Any], registry: Registry, file: str, path: Path) -> list[Mistake]:
    """All mistakes of the table of a spec file; goes as deep as can be said without other files."""
    mistakes: dict[Mistake, None] = {}

    def attempt(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except SpecError as error:
            mistakes.update(dict.fromkeys(error.mistakes))
            return None

    kind = table.get("kind")
    if kind == DESIGN_KIND:
        attempt(lambda: design_file.structure(table, registry, file))
        return list(mistakes)
    if not isinstance(kind, str) or not kind:
        expected = f"expected one of {', '.join(registry.kinds())}"
        return [Mistake(file, "kind", f"missing; {expected}" if kind is None else f"{expected}, found {kind!r}")]
    if kind not in registry.kinds():
        return [Mistake(file, "kind", unknown("kind", kind, registry.kinds()))]
    if not isinstance(table.get("name"), str) or not table["name"]:
        found = f"expected text, found {table['name']!r}" if "name" in table else "missing; expected text"
        mistakes[Mistake(file, "name", found)] = None
    own = {key: value for key, value in table.items() if key != "override"}
    named = {**own, "name": own["name"] if isinstance(own.get("name"), str) else path.stem}
    piece = attempt(lambda: registry.build(kind, named, file))
    if piece is None:
        _parts(own, registry, file, attempt)
    elif kind in _DEEPER:
        _DEEPER[kind](piece, registry, file, path, attempt)
    return list(mistakes)


def _parts(table: Mapping[str, Any], registry: Registry, file: str, attempt: Attempt) -> None:
    """Of a piece that cannot be built: the tables of other pieces, under a key called like their kind."""
    for kind, tables in table.items():
        if kind in registry.kinds() and isinstance(tables, Mapping):
            for name, value in tables.items():
                if isinstance(value, Mapping):
                    attempt(partial(registry.build, kind, value, file, join(kind, name)))


def _workload(piece: Any, registry: Registry, file: str, path: Path, attempt: Attempt) -> None:
    problem = _partly(registry, file, workload=piece)
    attempt(lambda: problem.loops)


def _hardware(piece: Any, registry: Registry, file: str, path: Path, attempt: Attempt) -> None:
    problem = _partly(registry, file, hardware=piece)
    levels = attempt(lambda: problem.levels) or ()
    if attempt(lambda: problem.technology) is None:
        return
    for level in levels:
        for action in ("read", "write", "metadata_read", "metadata_write"):
            attempt(partial(problem.energy_pj, level.index, action))
    attempt(partial(problem.mac_pj, "compute"))


def _partly(registry: Registry, file: str, **parts: Any) -> Problem:
    """A problem of which only some parts are asked for."""
    missing: Any = None
    return Problem(
        workload=parts.get("workload", missing),
        hardware=parts.get("hardware", missing),
        space_spec=missing,
        cost_model=missing,
        objective=missing,
        registry=registry,
        files=dict.fromkeys(("workload", "hardware", "space"), file),
    )


def _space(piece: Any, registry: Registry, file: str, path: Path, attempt: Attempt) -> None:
    """A space is checked on some workload and hardware, as far as its segments fit all of them."""
    some = [registry.names(kind) for kind in ("workload", "hardware")]
    if not all(some):
        return
    problem = attempt(
        lambda: make_problem(registry, some[0][0], some[1][0], piece, defaults.OBJECTIVE, defaults.COST_MODEL)
    )
    if problem is not None:
        problem.files = {**problem.files, "space": file}
        segments = attempt(lambda: problem.space.segments)
        if segments is not None and all(segment.fits_all for segment in segments.values()):
            attempt(lambda: problem.space.candidates)
            attempt(lambda: len(problem.space))


def _study(piece: Any, registry: Registry, file: str, path: Path, attempt: Attempt) -> None:
    def named(kind: str, value: Any, where: str) -> None:
        def build() -> None:
            try:
                found = located(kind, value, path.parent)
                if kind == "objective":
                    objective_of(registry, found, file)
                else:
                    piece_of(registry, kind, found, file)
            except SpecError as error:
                raise SpecError(
                    mistake if mistake.file else Mistake(file, where, mistake.message) for mistake in error.mistakes
                ) from None

        attempt(build)

    for kind, key in (("workload", "workloads"), ("hardware", "hardware"), ("searcher", "searchers")):
        for index, value in enumerate(getattr(piece, key)):
            named(kind, value, f"{key}[{index}]")
    for kind, key in (("space", "space"), ("objective", "objective"), ("cost-model", "cost_model")):
        named(kind, getattr(piece, key), key)
    for searcher, value in piece.spaces.items():
        named("space", value, f"spaces.{searcher}")
        if searcher not in piece.searchers:
            text = unknown("searcher of this study", searcher, piece.searchers)
            attempt(partial(_fail, Mistake(file, f"spaces.{searcher}", text)))


def _fail(mistake: Mistake) -> None:
    raise SpecError([mistake])


_DEEPER: dict[str, Callable[[Any, Registry, str, Path, Attempt], None]] = {
    "workload": _workload,
    "hardware": _hardware,
    "space": _space,
    "study": _study,
}
