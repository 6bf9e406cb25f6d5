"""Starting designs of a search: designs of similar problems, rewritten for the problem at hand.

Each of the nearest designs gives several genomes: the design with tiles scaled, the same repaired, and variants with
loops moved into spatial levels left empty by smaller sizes (Kao et al. 2022, Section VI, warm start; filling is an
addition). Starting genomes are evaluated first and count against the budget."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from ..errors import DesignError, SearchError, listed, shortened
from ..pieces.contracts import Scored, Searcher
from ..pieces.contracts.base import Array
from ..pieces.data_specs import DESIGN_KIND
from ..pieces.registry import Registry
from ..problem.designs import Design, Designs
from ..problem.problem import Problem
from ..problem.similarity import nearness
from ..spec import toml_io
from .best import Best
from .result import DESIGN_FILE, PARTIAL_FOLDER, Result

COUNT = 3
"""Default number of starting designs."""
FILLED = 6
"""Genomes with filled spatial levels per design."""


@attrs.frozen
class Source:
    """A starting design of a search."""

    file: str
    """Empty for an object."""
    workload: str
    distance: float
    """Distance by the metric of the choice."""


@attrs.frozen(eq=False)
class Start:
    """Genomes to evaluate first, and their sources."""

    genomes: Array
    """(n, G) int64, all different."""
    sources: tuple[Source, ...] = ()
    """Nearest first."""
    origin: Array = attrs.field(factory=lambda: np.zeros(0, np.int64))
    """(n,) index of the source of each genome; empty for genomes from the caller."""

    @property
    def digest(self) -> str:
        return hashlib.sha256(np.ascontiguousarray(self.genomes, dtype="<i8").tobytes()).hexdigest()

    def told(self, scores: Array) -> tuple[dict[str, Any], ...]:
        """Sources with their best scores, None for a source with invalid genomes only."""
        rows = []
        for index, source in enumerate(self.sources):
            mine = scores[self.origin[: len(scores)] == index]
            best = float(mine.min()) if len(mine) and np.isfinite(mine).any() else None
            rows.append({**attrs.asdict(source), "score": best})
        return tuple(rows)


Given = str | os.PathLike[str] | Design | Best | Result
"""A design file, a folder of results, or the design itself."""


def start_of(
    problem: Problem,
    given: Sequence[Given] | Array | Start | None,
    metric: str = "edit",
    count: int = COUNT,
    fill: bool = True,
    seed: int = 0,
) -> Start | None:
    """The start of a search of a problem: the caller's genomes (n, G), or genomes from the `count` nearest designs.

    `metric` is one of `similarity.METRICS`; ties go by the other metrics, then to the last design in the list. Without
    `fill`, designs are scaled only. DesignError if a design cannot be transferred; unfit designs in folders are left
    out if others fit."""
    if given is None or isinstance(given, Start):
        return given
    if isinstance(given, np.ndarray):
        genomes = problem.space.check(given)
        return Start(genomes[_distinct(genomes)])
    if isinstance(given, str | os.PathLike | Design | Best | Result):
        given = [given]
    rng = np.random.default_rng([seed, 0x5747])  # of its own: what the searcher draws does not depend on it
    found = nearest(problem, given_designs(given, problem.registry), metric, count)
    if not found:
        raise SearchError("there is no design to start from")
    parts: list[Array] = []
    sources: list[Source] = []
    for near, (design, file, _) in found:
        sources.append(Source(file, design.problem.workload.name, near))
        with _about(file):
            parts.append(transferred(problem, design.batch, design.problem, rng, fill))
    genomes = np.concatenate(parts)
    origin = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    rows = _distinct(genomes)
    return Start(genomes[rows], tuple(sources), origin[rows])


def transferred(problem: Problem, designs: Designs, source: Problem, rng: np.random.Generator, fill: bool) -> Array:
    """Genomes (n, G) for designs of another problem: scaled, repaired, and filled and repaired. DesignError if the
    transfer fails."""
    space = problem.space
    scaled = space.transfer(designs, source, rng)
    changed = [scaled]
    if fill:
        several = designs.take(np.repeat(np.arange(len(designs)), FILLED))
        changed.append(space.transfer(several, source, rng, fill=True))
    return np.concatenate([scaled, space.repair(np.concatenate(changed), rng)])


def _distinct(genomes: Array) -> Array:
    """Rows of the first genome of each kind, ascending."""
    return np.sort(np.unique(genomes, axis=0, return_index=True)[1])


@contextmanager
def _about(file: str) -> Iterator[None]:
    """Adds the file of a design to its errors."""
    try:
        yield
    except DesignError as error:
        raise DesignError(f"{file}: {error}" if file else str(error)) from None


Found = tuple[Design, str, bool]
"""A design, its file, and whether the user named the design itself rather than a folder."""


def nearest(problem: Problem, designs: Iterable[Found], metric: str, count: int) -> list[tuple[float, Found]]:
    """The `count` designs nearest to a problem with their distances; ties and errors as in `start_of`."""
    unfit: DesignError | None = None
    ranked: list[tuple[Any, ...]] = []
    every = list(designs)
    some = len(every) > count or not all(named for _, _, named in every)  # else all are, and an error is one anyway
    for place, found in enumerate(every):
        design, file, named = found
        try:
            with _about(file):
                if some:
                    problem.space.transfer(design.batch, design.problem, np.random.default_rng(0))
                near = nearness(design.problem.loops, problem.loops, metric)
        except DesignError as error:
            unfit = error
            if named:
                raise
            continue
        ranked.append((*near, -place, found))
    if not ranked and unfit is not None:
        raise unfit
    return [(row[0], row[-1]) for row in sorted(ranked, key=lambda row: row[:-1])[:count]]


def given_designs(given: Iterable[Given], registry: Registry) -> Iterator[Found]:
    """Designs in files, folders and objects."""
    for item in given if isinstance(given, Iterable) else [given]:
        if not isinstance(item, str | os.PathLike | Design | Best | Result):
            text = "expected design files, folders of results, results or designs, or an array of genomes"
            raise SearchError(f"start: found {shortened(item)}, {text}")
        if isinstance(item, Result):
            item = item.found
        if isinstance(item, Best):
            item = item.design
        if isinstance(item, Design):
            yield item, "", True
            continue
        path = Path(item).expanduser()
        files = [path / DESIGN_FILE] if (path / DESIGN_FILE).exists() else [path]
        named = not files[0].is_dir()
        if not named:
            whole = (file for file in path.rglob(DESIGN_FILE) if file.parent.name != PARTIAL_FOLDER)
            files = sorted({*whole, *(file for file in path.glob("*.toml") if _is_design(file))})
        if not files:
            text = "there is no design in this folder; expected design.toml in it or in folders below"
            raise SearchError(f"{path}: {text}")
        for file in files:
            yield _design(file, registry), str(file), named


def _design(file: Path, registry: Registry) -> Design:
    """The design of a file, read once for all layers of a network."""
    from ..problem import design_file

    key = _content(file)
    return registry.remember(key, design_file.load, file, registry) if key else design_file.load(file, registry)


def keep_design(file: Path, design: Design) -> None:
    """Remembers a design just written to a file, so other searches can start from the design without reading the file."""
    from ..problem import design_file

    if key := _content(file):
        design.problem.registry.remember(key, design_file.as_read, design)


def _content(file: Path) -> tuple[str, ...]:
    """Key for the current contents of a file; empty if unreadable, an error reported by `load`."""
    try:
        return "design", os.path.abspath(file), hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ()


def _is_design(file: Path) -> bool:
    return toml_io.read(file).get("kind") == DESIGN_KIND


def check_takes(searcher: Searcher, problem: Problem) -> None:
    """SearchError with the names of capable searchers if this searcher cannot start from designs."""
    if searcher.takes_migrants:
        return
    registry = problem.registry
    types = {name for name, cls in registry.types("searcher").items() if getattr(cls, "takes_migrants", False)}
    names = [name for name in registry.names("searcher") if registry.spec("searcher", name)["type"] in types]
    name = searcher.name or searcher.type_name
    raise SearchError(f"searcher '{name}' cannot start from designs; {listed(names, 20)} can")


def mixed(scored: Scored, migrants: Scored | None) -> Scored:
    """A batch for the searcher with up to half of the designs, the worst, replaced by the best valid migrants."""
    if migrants is None or not len(scored):
        return scored
    best = migrants.take(np.flatnonzero(np.isfinite(migrants.scores))).best(len(scored) // 2)
    worst = np.argsort(-scored.scores, kind="stable")[: len(best)]
    rows = np.arange(len(scored))
    rows[worst] = len(scored) + np.arange(len(best))
    return Scored.join([scored, best]).take(rows)
