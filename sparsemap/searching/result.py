"""What a search found: the best design with its numbers, the convergence, and the files that hold them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..errors import DesignError, EvaluationError, PluginError, SearchError, need
from ..files import csv_text, percent, write_texts
from ..pieces.contracts import plain
from ..pieces.contracts.base import Array
from ..pieces.defaults import DESIGN_FILE, FIDELITIES, REPORT
from ..problem.designs import Design
from ..problem.evaluation import Evaluation
from ..spec.units import format_count, format_energy
from .archive import Archive, Row
from .breakdown import READS, Breakdown
from .budget import PROPOSALS
from .identity import versions_of
from .shortfalls import Shortfall

if TYPE_CHECKING:
    from ..problem.problem import Problem

FRONT_FILE = "front.csv"
FRONT_FOLDER = "front"
HISTORY_FILE = "history.csv"
RESULT_FILE = "result.json"
TIMING_FILE = "timing.csv"
HISTORY = {"evaluations": np.int64, "best_score": np.float64, "valid": np.int64, "mean_score": np.float64}
"""Columns of a history with their types."""
AS_THEY_ARE = (
    "bound", "gap", "evaluations", "budget", "count", "proposed", "valid_fraction", "seed", "seconds", "workload",
    "hardware", "space", "searcher", "objective", "interrupted",
)  # fmt: skip
"""What `result.json` has of a `Result` without a change."""


@attrs.frozen(eq=False, slots=False, repr=False)
class Best:
    """The best design of a search, with the problem it solves."""

    problem: Problem
    genome: Array
    """(G,) int64."""
    energy_pj: float
    cycles: float
    score: float
    values: tuple[float, ...] = ()
    """What each of several objectives says, in the order of `problem.objective.names`."""
    in_scenarios: Mapping[str, tuple[float, float]] = attrs.field(factory=dict)
    """Energy in pJ and cycles by scenario of the problem; infinite where the design does not fit."""

    def __repr__(self) -> str:
        return f"Best({self.problem.title}: {self.headline})"

    def _repr_html_(self) -> str:
        """For notebooks: the report that `sparsemap evaluate` prints."""
        return result_of(self.problem, self)._repr_html_()

    @property
    def headline(self) -> str:
        """EDP, energy and cycles, and the score if that is another number, with units, in a line."""
        unit = f" {self.problem.objective.unit}".rstrip()
        score = "" if self.score == self.edp else f"score {self.score:.4g}{unit}, "
        return f"{score}EDP {self.edp:.3e} pJ * cycles, {format_energy(self.energy_pj)}, {format_count(self.cycles)} cycles"

    @property
    def edp(self) -> float:
        """Energy-delay product, pJ * cycles."""
        return self.energy_pj * self.cycles

    @property
    def objectives(self) -> dict[str, float]:
        """The values of several objectives by name."""
        return dict(zip(self.problem.objective.names, self.values, strict=False))

    @cached_property
    def design(self) -> Design:
        """The decoded design."""
        return Design(self.problem, self.problem.space.decode(self.genome[None, :]))

    @cached_property
    def detail(self) -> Mapping[str, Any]:
        """The cost model's detail of the design by level and tensor; empty if it gives none."""
        return self.problem.evaluator.evaluate_designs(self.design.batch, detail=True).detail or {}

    def breakdown(self) -> Breakdown:
        """Energy by level and tensor in pJ, cycles by level, and what limits them; `to_pandas()` makes a table of it."""
        return Breakdown.of(self.problem, self.detail, self.energy_pj, self.cycles)

    @cached_property
    def scenarios(self) -> dict[str, Best]:
        """The design in each scenario of the problem, with its numbers there."""
        found = {}
        for name, (energy_pj, cycles) in self.in_scenarios.items():
            problem, reasons = self.problem.scenarios[name].problem, np.array([not math.isfinite(energy_pj)], np.uint64)
            there = Evaluation(np.array([energy_pj]), np.array([cycles]), reasons, ("unfit",))
            found[name] = Best(problem, self.genome, energy_pj, cycles, float(problem.evaluator.score(there)[0]))
        return found

    @cached_property
    def fidelities(self) -> dict[str, dict[str, Any]]:
        """The design in the other cost models that tell results: `edp`, `energy_pj`, `cycles`; or, where it does not fit,
        `reasons`. Empty if the problem's cost model is of another type."""
        own, registry = self.problem.cost_model, self.problem.registry
        found: dict[str, dict[str, Any]] = {}
        for name in FIDELITIES:
            if name not in registry.names(own.kind):
                continue
            other = registry.get(own.kind, name)
            words = {key: getattr(own, key) for key in ("name", "description", "source")}
            if type(other) is not type(own) or attrs.evolve(other, **words) == own:
                continue
            problem = self.problem.variant(cost_model=other)
            with suppress(PluginError, EvaluationError):
                there = problem.evaluator.evaluate_designs(self.design.batch)
                numbers = {key: float(getattr(there, key)[0]) for key in ("edp", "energy_pj", "cycles")}
                found[name] = numbers if there.valid[0] else {"reasons": list(there.reasons_of(0))}
        return found

    @property
    def gap(self) -> float | None:
        """Score over the proven bound of the problem; None where no bound is known."""
        bound = self.problem.bound
        return self.score / bound if bound and self.score >= bound else None

    @property
    def numbers(self) -> dict[str, float]:
        return {"edp": self.edp, "energy_pj": self.energy_pj, "cycles": self.cycles, "score": self.score}

    @property
    def scenario_numbers(self) -> dict[str, dict[str, float]]:
        """The same by scenario; what is infinite there is left out."""
        return {
            name: {key: value for key, value in there.numbers.items() if math.isfinite(value)}
            for name, there in self.scenarios.items()
        }

    def text(self) -> str:
        """The design as a TOML file; DesignError if it has columns that such a file cannot hold."""
        from ..problem import design_file
        from ..spec import toml_io

        return toml_io.dumps(design_file.dump(self.design, self.numbers, self.scenario_numbers))


@attrs.frozen(eq=False, kw_only=True, repr=False)
class Result:
    """The outcome of one search. Two runs with one seed differ in `seconds` only.

    What is not given is that of a design which no search found.
    """

    best: Best | None
    """None: no valid design was found; `shortfalls` then says what the nearest one lacks."""
    front: tuple[Best, ...] = ()
    """With several objectives the designs that no other one found dominates, by ascending values of the first."""
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
    space: str
    """The space of designs that was searched, of which `bound` speaks."""
    searcher: str = ""
    objective: str
    versions: Mapping[str, Any]
    bound: float | None = None
    """No design of the space can score lower, by proof; None: the cost model or the objective has no bound, or the
    best design is below what the cost model says is one."""
    interrupted: bool = False
    identity: Mapping[str, Any] = attrs.field(factory=dict)
    """What the search was (`identity.identity_of`), if its files are in a folder."""
    start: tuple[Mapping[str, Any], ...] = ()
    """The designs that the search started from, nearest first: file, workload, distance, and score here (None: invalid)."""
    padded: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)
    """Dimensions that the encoding padded: name -> (given size, searched size)."""

    def __repr__(self) -> str:
        best = f"no valid design among {self.evaluations:,}" if self.best is None else self.best.headline
        near = f", within {self.gap:.2f}x of the optimum" if self.gap else ""
        search = (
            f"{self.evaluations:,} designs, {percent(self.valid_fraction)} valid, {self.searcher}, seed {self.seed}"
        )
        return f"Result({self.workload} on {self.hardware}: {best}{near}{f'; {search}' if self.searcher else ''})"

    def _repr_html_(self) -> str:
        """For notebooks: the report that `sparsemap search` prints; the short form where there is none."""
        registry = self.best.problem.registry if self.best is not None else None
        shown = registry is not None and REPORT in registry.names("exporter")
        return f"<pre style='line-height:1.25'>{escape(self.report(REPORT) if shown else repr(self))}</pre>"

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
        """Score over bound: 1.2 means that no design can be more than 17 % better. None without a bound or a design."""
        return self.best.score / self.bound if self.best is not None and self.bound else None

    def breakdown(self) -> Breakdown:
        """The breakdown of the best design; `SearchError` if there is none."""
        return self.found.breakdown()

    def arrays(self) -> dict[str, Array]:
        """The history as arrays, a number per batch: `evaluations` and `valid` int64, `best_score` and `mean_score`
        float64 (infinite, or NaN, where nothing was valid)."""
        return {key: np.array([getattr(row, key) for row in self.history], kind) for key, kind in HISTORY.items()}

    def to_pandas(self) -> Any:
        """The history as a data frame, a row per batch; `breakdown().to_pandas()` has the energies of the best design."""
        return need("pandas", "to_pandas()", "pandas").DataFrame(self.arrays())

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; infinity and NaN become None."""
        numbers = self.best.numbers if self.best else dict.fromkeys(("edp", "energy_pj", "cycles", "score"))
        scenarios = {
            name: {
                **{key: _plain(x) for key, x in there.numbers.items()},
                "bound": there.problem.bound,
                "gap": there.gap,
            }
            for name, there in (self.best.scenarios if self.best else {}).items()
        }
        front = [{"objectives": x.objectives, **x.numbers, "genome": x.genome.tolist()} for x in self.front]
        return {
            **{key: _plain(value) for key, value in numbers.items()},
            **{key: getattr(self, key) for key in AS_THEY_ARE},
            "padded": {dim: list(sizes) for dim, sizes in self.padded.items()},
            "rejects": dict(self.rejects),
            "shortfalls": [{key: _plain(v) for key, v in attrs.asdict(s).items()} for s in self.shortfalls],
            "genome": self.best.genome.tolist() if self.best else None,
            **self._levels(),
            **({"given_up": self.given_up} if self.given_up else {}),
            **({"fidelities": self.best.fidelities} if self.best and self.best.fidelities else {}),
            **({"scenarios": scenarios} if scenarios else {}),
            **({"front": front} if front else {}),
            **({"start": [dict(row) for row in self.start]} if self.start else {}),
            "versions": dict(self.versions),
            **({"identity": dict(self.identity)} if self.identity else {}),
        }

    def _levels(self) -> dict[str, Any]:
        """What limits the best design, and its energies in pJ and cycles by level; nothing where they are not known.

        A cost model that fails when it is asked for details does not cost the result.
        """
        with suppress(PluginError):
            if self.best is not None and any(key in self.best.detail for key in READS):
                return self.breakdown().to_dict()
        return {}

    def report(self, name: str, width: int = 80) -> str:
        """The text of a report, such as "summary" or "loop-nest", see `sparsemap list exporter`."""
        problem = self.found.problem
        return plain(problem.registry.build("exporter", name, "", "exporter").text(self, problem, width))

    def files(self, folder: Path | str) -> list[Path]:
        """The files that `write` has made, those in the folder `front` aside."""
        names = [DESIGN_FILE] * (self.best is not None) + [FRONT_FILE] * bool(self.front)
        names += [HISTORY_FILE, TIMING_FILE, RESULT_FILE]
        return [path for name in names if (path := Path(folder) / name).exists()]

    def write(self, folder: Path | str) -> list[Path]:
        """Writes `design.toml` (if a valid design was found), `history.csv`, `timing.csv` and `result.json`, each file
        atomically. `timing.csv` has processor seconds per batch; it alone differs from run to run, and after a search
        that went on where it was stopped it counts the last run only.

        The files of an earlier result stay until all new ones are written.

        With a front also `front.csv`, a line per design with its file, the objectives by name and the usual numbers, and
        each design as a design file in the folder `front`: 01.toml, 02.toml, and so on. Designs with
        columns that a design file cannot hold are in `result.json` only, as genomes.
        """
        folder = Path(folder)
        digits = len(str(len(self.front)))
        front = {f"{FRONT_FOLDER}/{number:0{digits}}.toml": best for number, best in enumerate(self.front, 1)}
        texts = {}
        for name, best in {DESIGN_FILE: self.best, **front}.items():
            with suppress(DesignError):
                texts[folder / name] = best.text() if best is not None else ""
        if front:
            points = [{"design": name, **best.objectives, **best.numbers} for name, best in front.items()]
            texts[folder / FRONT_FILE] = csv_text(points)
        texts[folder / HISTORY_FILE] = self.history_csv()
        times = [{"evaluations": row.evaluations, "seconds": row.seconds} for row in self.history]
        texts[folder / TIMING_FILE] = csv_text(times, ("evaluations", "seconds"))
        texts[folder / RESULT_FILE] = json.dumps(self.to_dict(), indent=2) + "\n"
        earlier = [path for path in (folder / FRONT_FOLDER).glob("*.toml") if path.stem.isdigit()]
        texts = {path: text for path, text in texts.items() if text}
        write_texts(texts, {folder / DESIGN_FILE, folder / FRONT_FILE, *earlier} - texts.keys())
        return self.files(folder)

    def history_csv(self) -> str:
        """One line per batch (merged ones in very long searches); floats as repr, empty where there is none."""
        return csv_text([{name: getattr(row, name) for name in HISTORY} for row in self.history], tuple(HISTORY))


def best_of(problem: Problem, archive: Archive) -> Best | None:
    """The best design of an archive. Scores told without an evaluation are completed by evaluating the design."""
    if archive.genome is None:
        return None
    energy_pj, cycles, scenarios = archive.energy_pj, archive.cycles, archive.scenarios
    if math.isnan(energy_pj):
        evaluation = problem.evaluator.evaluate(archive.genome[None, :])
        energy_pj, cycles = float(evaluation.energy_pj[0]), float(evaluation.cycles[0])
        scenarios = evaluation.numbers_in_scenarios(0)
    return Best(problem, archive.genome, energy_pj, cycles, archive.score, in_scenarios=scenarios)


def front_of(problem: Problem, archive: Archive) -> tuple[Best, ...]:
    """The designs on the front of an archive, by ascending values of the first objective."""
    front = archive.front
    if front.genomes is None:
        return ()
    found = []
    for genome, values, (score, energy_pj, cycles, *more) in zip(
        front.genomes, front.values, front.numbers.tolist(), strict=True
    ):
        there = dict(zip(problem.scenarios, zip(more[::2], more[1::2], strict=True), strict=True))
        found.append(Best(problem, genome, energy_pj, cycles, score, tuple(map(float, values)), there))
    return tuple(found)


def result_of(problem: Problem, best: Best | None, **found: Any) -> Result:
    """The result of a search of a problem; without what it has `found`, that of a design which no search found."""
    return Result(
        best=best,
        workload=problem.workload.name,
        hardware=problem.hardware.name,
        space=problem.space_spec.name,
        objective=problem.objective.name or problem.objective.type_name,
        versions=versions_of(problem.registry),
        padded=dict(problem.padded),
        **found,
    )


def read_result(path: Path | str) -> dict[str, Any]:
    """The table of a `result.json`, given the file or its folder."""
    path = Path(path)
    path = path / RESULT_FILE if path.is_dir() else path
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SearchError(f"{path}: {error}") from None


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
