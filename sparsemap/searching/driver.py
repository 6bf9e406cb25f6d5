"""The driver of a search: counts the budget, keeps the archive, and runs or hands out the loop.

    result = search(problem, budget=20_000, seed=0)

is the same as owning the loop:

    s = Search(problem, "sparsemap", Budget(20_000), seed=0)
    while (genomes := s.ask()) is not None:
        s.tell(problem.evaluator.evaluate(genomes))
    result = s.result()
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs
import numpy as np

from ..errors import EvaluationError, Mistake, PluginError, SearchError, SparseMapError
from ..pieces.contracts import Objective, Proposals, Scored, Searcher
from ..problem.evaluation import Evaluation, broken
from .archive import Archive
from .identity import identity_of, versions_of
from .journal import CHECKED, Journal, JournalMismatch, checked
from .result import Result, best_of, front_of, shortfalls_of

if TYPE_CHECKING:
    from ..problem.problem import Problem

Array = np.ndarray

EMPTY_YIELDS = 1000
"""Empty batches in a row after which a searcher is taken to be stuck."""


@attrs.define
class Budget:
    """How many designs a search may evaluate, and how many it has."""

    total: int = attrs.field(validator=attrs.validators.ge(1))
    spent: int = 0

    @property
    def left(self) -> int:
        return max(self.total - self.spent, 0)

    @property
    def progress(self) -> float:
        """Share of the budget spent, 0..1: g/G of the paper's annealing schedule (Eq. 6)."""
        return min(self.spent / self.total, 1.0)


@attrs.frozen
class Snapshot:
    """How far a search has come; what progress bars and observers see after every batch."""

    evaluations: int
    budget: int
    best_score: float
    """Infinity while nothing valid is known."""
    valid_fraction: float
    seconds: float


class SearchFailed(PluginError):
    """A plugin failed during a search; `result` holds what was found until then."""

    result: Result | None = None


class SearchStopped(SearchError):
    """A search could not go on, such as on a full disk; `result` holds what was found until then."""

    result: Result | None = None


OnPluginError = Literal["stop", "continue"]
"""Whether a search ends when a cost model or format breaks its contract, or goes on without the designs concerned."""


class Search:
    """One run of one searcher: `ask()` for genomes, `tell()` what they are worth.

    All randomness comes from the `seed`; results do not depend on how the batches are evaluated.
    """

    def __init__(
        self,
        problem: Problem,
        searcher: Searcher | str | Mapping[str, Any] | None = None,
        budget: Budget | int = 20_000,
        seed: int = 0,
    ) -> None:
        if isinstance(budget, int):
            if budget < 1:
                raise SearchError(f"the budget is {budget} designs, expected at least 1")
            budget = Budget(budget)
        self.problem = problem
        self.searcher: Searcher = _searcher(problem, searcher)
        self.budget = budget
        self.seed = seed
        self.archive = Archive()
        self.interrupted = False
        self.earlier = 0.0
        """Seconds that the search has taken before it was stopped and this run went on with it."""
        self._started = time.perf_counter()
        self._pending: Array | None = None
        self._scored: Scored | None = None
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        self._proposals: Proposals | None = self.searcher.search(problem.space, budget, rng)

    @property
    def finished(self) -> bool:
        return self._proposals is None and self._pending is None

    def ask(self) -> Array | None:
        """Genomes (n, G) int64 to evaluate next, n >= 1; None when the budget is spent or the searcher is done."""
        if self._pending is not None:
            raise SearchError("ask() again before tell(): the scores of the last batch are missing")
        for _ in range(EMPTY_YIELDS):
            genomes = self._advance()
            if genomes is None:
                return None
            if len(genomes):
                self._pending = genomes[: self.budget.left]
                return self._pending
            self._scored = Scored(genomes, np.zeros(0))
        raise self._failed(f"yielded {EMPTY_YIELDS} empty batches in a row")

    def tell(self, outcome: Evaluation | Array) -> None:
        """Takes the outcome of the batch last asked for: an evaluation, or plain scores (n,), lower is better."""
        genomes = self._pending
        if genomes is None:
            raise SearchError("tell() without ask(): no batch is waiting for its scores")
        evaluation = outcome if isinstance(outcome, Evaluation) else None
        values = None
        if isinstance(outcome, Evaluation):
            if len(outcome) != len(genomes):
                raise EvaluationError(f"{len(outcome)} designs were evaluated, expected {len(genomes)}")
            scores = self.problem.evaluator.score(outcome)
            if len(self.problem.objective.names) > 1:
                values = self.problem.evaluator.values(outcome)
        else:
            scores = np.array(outcome, dtype=np.float64)
            if scores.shape != (len(genomes),):
                raise EvaluationError(f"scores have shape {scores.shape}, expected ({len(genomes)},)")
            scores[np.isnan(scores)] = np.inf
        self.budget.spent += len(genomes)
        self.archive.add(genomes, scores, evaluation, values)
        self._pending, self._scored = None, Scored(genomes, scores, values)
        if self.budget.left == 0:
            self.close()

    def close(self) -> None:
        """Ends the search; the archive stays."""
        proposals, self._proposals, self._pending = self._proposals, None, None
        if proposals is not None:
            proposals.close()

    @property
    def seconds(self) -> float:
        return self.earlier + time.perf_counter() - self._started

    def snapshot(self) -> Snapshot:
        archive = self.archive
        return Snapshot(
            archive.evaluations,
            self.budget.total,
            archive.score,
            archive.valid / max(archive.evaluations, 1),
            self.seconds,
        )

    def result(self) -> Result:
        """What was found so far."""
        archive, problem = self.archive, self.problem
        return Result(
            best=best_of(problem, archive),
            front=front_of(problem, archive),
            shortfalls=shortfalls_of(problem, archive),
            history=tuple(archive.history.rows),
            evaluations=archive.evaluations,
            budget=self.budget.total,
            valid_fraction=archive.valid / max(archive.evaluations, 1),
            rejects=dict(sorted(archive.rejects.items(), key=lambda item: (-item[1], item[0]))),
            seed=self.seed,
            seconds=self.seconds,
            workload=problem.workload.name,
            hardware=problem.hardware.name,
            searcher=self.searcher.name or self.searcher.type_name,
            objective=problem.objective.name or problem.objective.type_name,
            versions=versions_of(problem.registry),
            bound=problem.bound,
            interrupted=self.interrupted,
            padded=dict(problem.padded),
        )

    def _advance(self) -> Array | None:
        """The next batch that the searcher yields, checked; None when it returns."""
        if self._proposals is None:
            return None
        try:
            if self._scored is None:
                genomes = next(self._proposals)
            else:
                scored, self._scored = self._scored, None
                genomes = self._proposals.send(scored)
        except StopIteration:
            self._proposals = None
            return None
        except PluginError as error:  # names the operator at fault
            self._proposals = None
            raise SearchFailed(error.mistakes) from error
        except SparseMapError:
            self._proposals = None
            raise
        except Exception as error:
            self._proposals = None
            raise self._failed(f"raised {type(error).__name__}: {error}") from error
        genes = len(self.problem.space)
        if getattr(genomes, "ndim", None) != 2:
            raise self._failed(f"yielded {_described(genomes)}, expected an array of integers of shape (n, {genes})")
        if len(genomes) == 0:
            return np.zeros((0, genes), np.int64)
        try:
            return self.problem.space.check(genomes)
        except EvaluationError as error:
            raise self._failed(f"yielded wrong genomes: {error}") from error

    def _failed(self, text: str) -> SearchFailed:
        """The error for a searcher that broke its contract; the search is over, its archive stays."""
        searcher = self.searcher
        self.close()
        where = f"{type(searcher).__module__}.{type(searcher).__qualname__}"
        return SearchFailed([Mistake("", f"searcher '{searcher.name or searcher.type_name}' ({where})", text)])


def search(
    problem: Problem,
    budget: int = 20_000,
    seed: int = 0,
    searcher: Searcher | str | Mapping[str, Any] | None = None,
    progress: Callable[[Snapshot], None] | None = None,
    journal: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    on_plugin_error: OnPluginError = "stop",
) -> Result:
    """Searches a problem and returns the best design with its history, and with several objectives their front.

    `searcher` is the one that the objective names unless given.
    `budget` counts designs, those of calibration and initialisation included. `progress` hears a `Snapshot` after every
    batch. Interrupting with Ctrl-C returns what was found so far, with `interrupted` set. If a plugin raises, the
    `result` of the error holds what was found until then.

    `journal` is a file that records every batch. Given that of a search that was stopped, the search goes on where that
    one was and ends with the same result; that of another search is an error, unless `overwrite` discards it. Whoever
    keeps the result removes the file (see `folder.search_into`).

    `on_plugin_error` says what happens when the cost model or a format breaks its contract: "stop" ends the search;
    "continue" goes on, and the designs concerned are invalid with a reason that names the plugin.
    """
    run = Search(problem, searcher, budget, seed)
    if journal is None:
        return completed(run, progress, None, on_plugin_error)
    with Journal(Path(journal), identity_of(problem, run.searcher, budget, seed), overwrite) as record:
        return completed(run, progress, record, on_plugin_error)


def completed(
    run: Search,
    progress: Callable[[Snapshot], None] | None = None,
    record: Journal | None = None,
    on_plugin_error: OnPluginError = "stop",
) -> Result:
    """The result of a search that runs to its end, with its batches answered by the journal as far as it goes."""
    if on_plugin_error not in ("stop", "continue"):
        raise SearchError(f"on_plugin_error is {on_plugin_error!r}, expected 'stop' or 'continue'")
    problem, hook = run.problem, run.problem.registry.hook
    try:
        while (genomes := run.ask()) is not None:
            evaluation = _worth(run, genomes, record, on_plugin_error)
            run.tell(evaluation)
            if on_plugin_error == "stop":
                _refuse(problem, evaluation)
            if progress is not None:
                progress(run.snapshot())
            if hook is not None:
                hook.search_progressed(snapshot=run.snapshot())
    except KeyboardInterrupt:
        run.interrupted = True
    except (SearchFailed, SearchStopped) as error:
        error.result = run.result()
        raise
    finally:
        run.close()
    result = run.result()
    if hook is not None:
        hook.study_finished(result=result, problem=problem)
    return result


def _searcher(problem: Problem, searcher: Searcher | str | Mapping[str, Any] | None) -> Searcher:
    if isinstance(searcher, Searcher):
        return searcher
    registry = problem.registry
    if searcher is None:
        default: Any = registry.types("objective").get(Objective.default_type, Objective)
        searcher = problem.objective.searcher or default.searcher
        if not searcher:
            raise SearchError(f"objective '{problem.objective.name}' names no searcher; give one")
    return registry.resolve("searcher", searcher) if isinstance(searcher, str) else registry.build("searcher", searcher)


def _worth(run: Search, genomes: Array, record: Journal | None, on_plugin_error: OnPluginError) -> Evaluation:
    """The evaluation of a batch: as recorded, or else made and recorded."""
    tolerant = on_plugin_error == "continue"
    found = record.recorded(genomes) if record is not None else None
    if record is None or found is None:
        evaluation = _evaluated(run.problem, genomes, tolerant)
        if record is not None:
            try:
                record.append(genomes, evaluation, run.seconds)
            except JournalMismatch:
                raise
            except SearchError as error:
                text = f"{error}; the search stopped after {run.archive.evaluations:,} designs"
                raise SearchStopped(f"{text}, and goes on from there when it is run again") from error
        return evaluation
    run.earlier = record.seconds
    if record.records <= CHECKED and run.archive.valid == 0:
        checked(found, _evaluated(run.problem, genomes, tolerant), record.path)
    return found


def _refuse(problem: Problem, evaluation: Evaluation) -> None:
    """Raises if a plugin broke its contract in this batch."""
    found = broken(evaluation)
    if not found:
        return
    model = problem.cost_model
    reasons = ", ".join(f"{name} for {count:,} of {len(evaluation):,} designs" for name, count in found.items())
    text = (
        f"{reasons}: results that are negative, infinite or no numbers, or that could not be had at all; "
        'on_plugin_error = "continue" goes on without these designs'
    )
    raise SearchFailed([Mistake("", f"evaluation with cost model '{model.name or model.type_name}'", text)])


def _evaluated(problem: Problem, genomes: Array, tolerant: bool = False) -> Evaluation:
    try:
        return problem.evaluator.evaluate(genomes, tolerant)
    except Exception as error:
        model = problem.cost_model
        where = f"evaluation with cost model '{model.name or model.type_name}'"
        cause = str(error) if isinstance(error, SparseMapError) else f"raised {type(error).__name__}: {error}"
        raise SearchFailed([Mistake("", where, cause)]) from error


def _described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"an array of shape {shape}" if shape is not None else f"a value of type {type(value).__name__}"
