"""What a search found: the best design, the convergence, and the files that hold them."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..errors import SearchError
from ..pieces.contracts import plain
from ..pieces.contracts.base import Array
from ..pieces.defaults import DESIGN_FILE as DESIGN_FILE
from ..pieces.registry import Registry
from ..problem.problem import Problem
from .archive import Row
from .best import Best, gap_of
from .breakdown import Breakdown
from .budget import PROPOSALS
from .hull import Corner

if TYPE_CHECKING:
    from .executed import ExecutedDesign
    from .proof import Proof
    from .shortfalls import Shortfall

FRONT_FILE = "front.csv"
FRONT_FOLDER = "front"
HISTORY_FILE = "history.csv"
PARTIAL_FOLDER = "partial"
"""Where the files of a search, a network or a study that did not end go, below the complete ones."""
RESULT_FILE = "result.json"
TIMING_FILE = "timing.csv"


@attrs.frozen(eq=False, kw_only=True, repr=False)
class Result:
    """The outcome of one search. Two runs with one seed differ in `seconds` only.

    What is not given is that of a design which no search found.
    """

    best: Best | None
    """None: no valid design was found; `shortfalls` then says what the nearest one lacks."""
    front: tuple[Best, ...] = ()
    """With several objectives the designs that no other one found dominates, by ascending values of the first."""
    hull: tuple[Corner[Array], ...] = ()
    """The designs on the lower-left convex hull of energy and cycles: (pJ, cycles, genome), by ascending energy."""
    executed: tuple[ExecutedDesign, ...] = ()
    """The best designs that were executed, by ascending corrected score; the first of them is `best`."""
    shortfalls: tuple[Shortfall, ...] = ()
    history: tuple[Row, ...] = ()
    evaluations: int = 1
    """Designs that counted against the budget."""
    budget: int = 1
    count: str = "all"
    """Which designs count, `budget.COUNTS`."""
    proposed: int = attrs.Factory(lambda self: self.evaluations, takes_self=True)
    """Designs that were evaluated, whether they count or not."""
    valid_fraction: float = 1.0
    """Valid designs over proposed ones."""
    rejects: Mapping[str, int] = attrs.field(factory=dict)
    """Designs rejected by reason, most frequent first; a design may count for several."""
    seed: int = 0
    seconds: float = 0.0
    workload: str
    hardware: str
    technology: str = ""
    """Where the energies and areas of the hardware come from."""
    space: str
    """The space of designs that was searched, of which `bound` speaks."""
    searcher: str = ""
    objective: str
    versions: Mapping[str, Any]
    bound: float | None = None
    """No design of the space can score lower, by proof; None: the cost model or the objective has no bound. `broken_bound`
    says so if the best design scores lower all the same."""
    bound_costs: Mapping[str, float] = attrs.field(factory=dict)
    """The least that any design of the space can have of each cost; empty without a bound."""
    proof: Proof | None = None
    """Of a search that proves: the classes of designs, and why each cannot hold anything better."""
    interrupted: bool = False
    asked: Mapping[str, Any] | tuple[Any, ...] = attrs.field(factory=dict)
    """What the search was: its `identity`, or what that is made of."""
    start: tuple[Mapping[str, Any], ...] = ()
    """The designs that the search started from, nearest first: file, workload, distance, and score here (None: invalid)."""
    padded: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)
    """Dimensions that the encoding padded: name -> (given size, searched size)."""
    why_padded: str = ""
    """In a few words; "" where that needs no word."""

    def __repr__(self) -> str:
        from .written import headline

        return headline(self)

    def _repr_html_(self) -> str:
        """For notebooks: the report that `sparsemap search` prints; the short form where there is none."""
        from .written import html

        return html(self)

    @property
    def identity(self) -> Mapping[str, Any]:
        """What the search was, see `identity.identity_of`; nothing of a design which no search found."""
        from .identity import identity_of

        return identity_of(*self.asked) if isinstance(self.asked, tuple) else self.asked

    @property
    def found(self) -> Best:
        """The best design; `SearchError` if there is none."""
        if self.best is None:
            raise SearchError(f"{self.workload} on {self.hardware}: there is no valid design")
        return self.best

    @property
    def given_up(self) -> str:
        """Why a search that counts valid designs ended early: hardly any was; empty if that is not so."""
        if self.count == "all" or self.evaluations >= self.budget or self.proposed < PROPOSALS * self.budget:
            return ""
        return (
            f"given up after {self.proposed:,} designs, {PROPOSALS:,} for each of the budget of {self.budget:,} valid ones: "
            f"{self.evaluations:,} are valid"
        )

    @property
    def gap(self) -> float | None:
        """Score over bound: 1.2 means that no design can be more than 17 % better; below 1 the bound is broken. None
        without a bound or a design."""
        return gap_of(self.best.score, self.bound) if self.best is not None else None

    @property
    def broken_bound(self) -> str:
        """What is wrong if the best design scores less than any design can; empty if it does not."""
        gap, best = self.gap, self.best
        return broken(gap, f"the design scores {best.score:,.6g}", self.bound) if best is not None else ""

    def breakdown(self) -> Breakdown:
        """The breakdown of the best design; `SearchError` if there is none."""
        return self.found.breakdown()

    def arrays(self) -> dict[str, Array]:
        """The history as arrays, a number per batch: `evaluations` and `valid` int64, `best_score` and `mean_score`
        float64 (infinite, or NaN, where nothing was valid)."""
        from .written import arrays

        return arrays(self)

    def to_pandas(self) -> Any:
        """The history as a data frame, a row per batch; `breakdown().to_pandas()` has the energies of the best design."""
        from .frames import history_frame

        return history_frame(self)

    def to_dict(self, folder: Path | None = None) -> dict[str, Any]:
        """Plain data for JSON; infinity and NaN become None. Paths are relative to the `folder` that it is for, and only a
        folder has an identity."""
        from .written import table

        return table(self, folder)

    def report(self, name: str, width: int = 80) -> str:
        """The text of a report, such as "summary" or "loop-nest", see `sparsemap list exporter`."""
        problem = self.found.problem
        return plain(problem.registry.build("exporter", name, "", "exporter").text(self, problem, width))

    def export(self, name: str, folder: Path | str) -> list[Path]:
        """Writes the best design as the files of an exporter, such as "timeloop", into a folder."""
        problem, place = self.found.problem, Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        return list(problem.registry.build("exporter", name, "", "exporter").write(self, problem, place))

    def place(self, folder: Path | str) -> Path:
        """Where `write` puts the files: into the folder, or below it into `partial` if this result is that of an
        interrupted search and the folder holds a complete one."""
        from .written import place

        return place(self, Path(folder))

    def files(self, folder: Path | str) -> list[Path]:
        """The files that `write` has made, those in the folder `front` aside."""
        from .written import files

        return files(self, Path(folder))

    def write(self, folder: Path | str, overwrite: bool = False) -> list[Path]:
        """Writes `design.toml` (if a valid design was found), `history.csv`, `timing.csv` and `result.json`, each file
        atomically. `timing.csv` has processor seconds per batch; it alone differs from run to run, and after a search
        that went on where it was stopped it counts the last run only.

        The files of an earlier result stay until all new ones are written. Those of a complete one stay until another
        complete one is written: an interrupted search writes into the folder `partial` beside it, which then goes. Where a
        result of another search would go, it is a `SearchError`, unless `overwrite` discards it (`folder.check_result`).

        A search that proves also writes `certificate.json`, which `sparsemap verify` checks.

        With a front also `front.csv`, a line per design with its file, the objectives by name and the usual numbers, and
        each design as a design file in the folder `front`: 01.toml, 02.toml, and so on. Designs with
        columns that a design file cannot hold are in `result.json` only, as genomes.
        """
        from .written import write

        return write(self, Path(folder), overwrite)

    def history_csv(self) -> str:
        """One line per batch (merged ones in very long searches), with the best design's costs by name."""
        from .written import history_csv

        return history_csv(self)


def broken(gap: float | None, scored: str, bound: float | None = None) -> str:
    """What is wrong where a gap is below 1; empty where it is not."""
    if gap is None or gap >= 1.0:
        return ""
    said = f"{bound:,.6g}" if bound else "its bound"
    return (
        f"BROKEN BOUND: {scored}, {gap:.4g} times {said}, below which by proof no design can be; the cost model counts "
        "too little, or its bound is wrong. Do not trust these numbers; `sparsemap verify` executes the design"
    )


def result_of(problem: Problem, best: Best | None, **found: Any) -> Result:
    """The result of a search of a problem; without what it has `found`, that of a design which no search found."""
    found |= {"workload": problem.workload.name, "hardware": problem.hardware.name, "space": problem.space_spec.name}
    found |= {"technology": problem.technology.label}
    found |= {"objective": problem.objective.name or problem.objective.type_name, "padded": dict(problem.padded)}
    found |= {"why_padded": problem.space.why_padded if problem.padded else ""}
    return Result(best=best, versions=versions_of(problem.registry), **found)


def versions_of(registry: Registry) -> dict[str, Any]:
    """What a result was made with: sparsemap, numpy, python, and the plugins that the registry has loaded."""
    from .. import __version__

    plugins = dict(sorted({plugin.name: plugin.version for plugin in registry.plugins}.items()))
    programs = {"sparsemap": __version__, "numpy": np.__version__, "python": platform.python_version()}
    return {**programs, "plugins": plugins}
