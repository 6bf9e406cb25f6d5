"""Result of a search: the best design, the convergence, and the files of both."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cached_property
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
    from .convergence import Convergence
    from .executed import ExecutedDesign
    from .proof import Proof
    from .shortfalls import Shortfall

FRONT_FILE = "front.csv"
FRONT_FOLDER = "front"
HISTORY_FILE = "history.csv"
PARTIAL_FOLDER = "partial"
"""Subfolder for the files of an interrupted search, network or study, below the complete files."""
RESULT_FILE = "result.json"
TIMING_FILE = "timing.csv"


@attrs.frozen(eq=False, kw_only=True, repr=False, slots=False)
class Result:
    """The outcome of a search. Two runs with the same seed differ in `seconds` only.

    Defaults describe a design without a search."""

    best: Best | None
    """None without a valid design; `shortfalls` then has the missing resources of the nearest design."""
    front: tuple[Best, ...] = ()
    """With several objectives, the non-dominated designs, by ascending values of the first objective."""
    hull: tuple[Corner[Array], ...] = ()
    """Designs on the lower-left convex hull of energy and cycles: (pJ, cycles, genome), by ascending energy."""
    executed: tuple[ExecutedDesign, ...] = ()
    """The best designs after execution, by ascending corrected score; the first is `best`."""
    shortfalls: tuple[Shortfall, ...] = ()
    history: tuple[Row, ...] = ()
    evaluations: int = 1
    """Designs counted against the budget."""
    budget: int = 1
    count: str = "all"
    """Designs to count, `budget.COUNTS`."""
    proposed: int = attrs.Factory(lambda self: self.evaluations, takes_self=True)
    """Designs evaluated, counted or not."""
    valid_fraction: float = 1.0
    """Valid designs over proposed designs."""
    rejects: Mapping[str, int] = attrs.field(factory=dict)
    """Designs rejected by reason, most frequent first; a design may count for several."""
    seed: int = 0
    seconds: float = 0.0
    workload: str
    hardware: str
    technology: str = ""
    """Technology behind the energies and areas of the hardware."""
    space: str
    """Design space of the search, the scope of `bound`."""
    searcher: str = ""
    objective: str
    versions: Mapping[str, Any]
    bound: float | None = None
    """Proven lower bound on the score of every design of the space; None: no bound from the cost model or the
    objective. A best design below the bound is reported by `broken_bound`."""
    bound_costs: Mapping[str, float] = attrs.field(factory=dict)
    """Lower bound on each cost over all designs of the space; empty without a bound."""
    proof: Proof | None = None
    """For a proving search: the classes of designs, with the reason against a better design in each."""
    interrupted: bool = False
    asked: Mapping[str, Any] | tuple[Any, ...] = attrs.field(factory=dict)
    """The `identity` of the search, or the arguments to compute the identity."""
    start: tuple[Mapping[str, Any], ...] = ()
    """Starting designs of the search, nearest first: file, workload, distance, and score here (None: invalid)."""
    padded: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)
    """Dimensions padded by the encoding: name -> (original size, searched size)."""
    raced: tuple[Mapping[str, Any], ...] = ()
    """Padded sizes searched, if several, the usual ones first: sizes, designs and best score of each."""
    why_padded: str = ""
    """Reason for padding in a few words; "" if obvious."""

    def __repr__(self) -> str:
        from .written import headline

        return headline(self)

    def _repr_html_(self) -> str:
        """For notebooks: the report of `sparsemap search`, or the short form without that report."""
        from .written import html

        return html(self)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Identity of the search, see `identity.identity_of`; empty for a design without a search."""
        from .identity import identity_of

        return identity_of(*self.asked) if isinstance(self.asked, tuple) else self.asked

    @property
    def found(self) -> Best:
        """The best design; `SearchError` without a valid design."""
        if self.best is None:
            raise SearchError(f"{self.workload} on {self.hardware}: there is no valid design")
        return self.best

    @property
    def given_up(self) -> str:
        """Reason for the early end of a search with valid designs as its budget: hardly any was valid; otherwise empty."""
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
        """Error text if the best design scores below the proven bound; otherwise empty."""
        gap, best = self.gap, self.best
        return broken(gap, f"the design scores {best.score:,.6g}", self.bound) if best is not None else ""

    @cached_property
    def convergence(self) -> Convergence | None:
        """Whether a larger budget would find better designs; None for too few designs, and for a front."""
        from .convergence import convergence_of

        return None if self.front or self.best is None or self.best.plain else convergence_of(self.history, self.gap)

    def breakdown(self) -> Breakdown:
        """The breakdown of the best design; `SearchError` without a valid design."""
        return self.found.breakdown()

    def arrays(self) -> dict[str, Array]:
        """The history as arrays, a number per batch: `evaluations` and `valid` int64, `best_score` and `mean_score`
        float64 (infinite, or NaN, without a valid design)."""
        from .written import arrays

        return arrays(self)

    def to_pandas(self) -> Any:
        """The history as a data frame, a row per batch; `breakdown().to_pandas()` has the energies of the best design."""
        from .frames import history_frame

        return history_frame(self)

    def to_dict(self, folder: Path | None = None) -> dict[str, Any]:
        """Plain data for JSON; infinity and NaN become None. Paths are relative to the target `folder`; the identity is
        included only with a folder."""
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
        """Target folder of `write`: the folder itself, or `partial` below if this result is of an interrupted search
        and the folder holds a complete result."""
        from .written import place

        return place(self, Path(folder))

    def files(self, folder: Path | str) -> list[Path]:
        """The files made by `write`, without the files in the folder `front`."""
        from .written import files

        return files(self, Path(folder))

    def write(self, folder: Path | str, overwrite: bool = False) -> list[Path]:
        """Writes `design.toml` (for a valid design), `history.csv`, `timing.csv` and `result.json`, each file
        atomically.

        `timing.csv` has processor seconds per batch; it alone differs from run to run, and after a resumed search it
        counts the last run only.

        The files of an earlier result stay until all new files are written. A complete result stays until the next
        complete result: an interrupted search writes into the folder `partial` beside it, to be removed afterwards.
        Replacing a result of another search is a `SearchError`, unless `overwrite` discards the old result
        (`folder.check_result`).

        A proving search also writes `certificate.json` for `sparsemap verify`.

        With a front also `front.csv`, a line per design with its file, the objectives by name and the usual numbers,
        and each design as a design file in the folder `front`: 01.toml, 02.toml, and so on. Designs with columns
        outside the design file format are in `result.json` only, as genomes."""
        from .written import write

        return write(self, Path(folder), overwrite)

    def history_csv(self) -> str:
        """One line per batch (merged in very long searches), with the best design's costs by name."""
        from .written import history_csv

        return history_csv(self)


def broken(gap: float | None, scored: str, bound: float | None = None) -> str:
    """Error text for a gap below 1; otherwise empty."""
    if gap is None or gap >= 1.0:
        return ""
    said = f"{bound:,.6g}" if bound else "its bound"
    return (
        f"BROKEN BOUND: {scored}, {gap:.4g} times {said}, below which by proof no design can be; the cost model counts "
        "too little, or its bound is wrong. Do not trust these numbers; `sparsemap verify` executes the design"
    )


def result_of(problem: Problem, best: Best | None, **found: Any) -> Result:
    """The result of a search of a problem; without `found`, the result of a design without a search."""
    found |= {"workload": problem.workload.name, "hardware": problem.hardware.name, "space": problem.space_spec.name}
    found |= {"technology": problem.technology.label}
    found |= {"objective": problem.objective.name or problem.objective.type_name, "padded": dict(problem.padded)}
    found |= {"why_padded": problem.space.why_padded if problem.padded else ""}
    return Result(best=best, versions=versions_of(problem.registry), **found)


def versions_of(registry: Registry) -> dict[str, Any]:
    """Versions behind a result: sparsemap, numpy, python, and the registry's loaded plugins."""
    from .. import __version__

    plugins = dict(sorted({plugin.name: plugin.version for plugin in registry.plugins}.items()))
    programs = {"sparsemap": __version__, "numpy": np.__version__, "python": platform.python_version()}
    return {**programs, "plugins": plugins}
