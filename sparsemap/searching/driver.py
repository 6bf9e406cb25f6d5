"""The driver of a search: counts the budget, keeps the archive, and exposes the loop.

    result = search(problem, budget=20_000, seed=0)

is the same as owning the loop:

    s = Search(problem, "sparsemap", Budget(20_000), seed=0)
    while (genomes := s.ask()) is not None:
        s.tell(s.evaluate())                # or problem.evaluator.evaluate(genomes), or scores (n,)
    result = s.result()"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..errors import EvaluationError, PluginError, SearchError
from ..pieces.boundary import described, guarded, locked, wrong
from ..pieces.contracts import Genomes, Proposals, Scored, Searcher
from ..pieces.contracts.base import Array
from ..pieces.defaults import SEARCHER
from ..problem.designs import Decoded, Designs
from ..problem.evaluation import Evaluation
from ..problem.evaluator import checksum, proposing
from ..problem.problem import Problem
from .archive import Archive
from .best import best_of, gap_of
from .budget import Budget as Budget
from .budget import budget_of
from .result import Result, result_of

if TYPE_CHECKING:
    from .best import Best
    from .shortfalls import Shortfall
    from .start import Given, Start

OWN = "own proposals"
"""Searcher name in results of externally proposed designs."""
EMPTY_YIELDS = 1000
"""Empty batches in a row for a searcher to count as stuck."""
OPENING, KEPT = 0.25, 32
"""Share of the budget for the first part of a search with an opening objective, and number of designs handed on to the
second part."""


@attrs.frozen
class Snapshot:
    """Progress of a search after a batch, for progress bars and observers."""

    evaluations: int
    budget: int
    best_score: float
    """Infinity without a valid design."""
    valid_fraction: float
    seconds: float
    gap: float | None = None
    """Best score over the proven bound; None without a bound or a valid design."""


class Search:
    """A run of a searcher: `ask()` for genomes, `tell()` their evaluation.

    Programs with an optimiser of their own call `evaluate(genomes)` instead, and get budget, history, front, bound and
    `result()` all the same:

        s = Search(problem, budget=20_000)
        while s.budget.left:
            evaluation = s.evaluate(my_optimiser.propose())

    All randomness comes from the `seed`; results do not depend on the manner of evaluating batches."""

    def __init__(
        self,
        problem: Problem,
        searcher: Searcher | str | Mapping[str, Any] | None = None,
        budget: Budget | int | str = 20_000,
        seed: int = 0,
        start: Sequence[Given] | Array | Start | None = None,
    ) -> None:
        if not (isinstance(problem, Problem) and isinstance(seed, int | np.integer) and seed >= 0):
            from ..problem.arguments import refuse

            refuse(problem, seed)
        self.problem = problem
        self.space = problem.space.judged(problem)
        self.searcher = searcher_of(problem, default_searcher(problem) if searcher is None else searcher)
        self.budget = budget_of(budget)
        self.seed = int(seed)
        if self.budget.auto and not self.searcher.nested:
            text = "a searcher whose designs do not depend on the budget, such as the default one"
            raise SearchError(f"the budget 'auto' needs {text}; found '{self.searcher.name}'")
        self.archive = Archive(only_valid=self.budget.count == "valid")
        self.interrupted = False
        self.ended = False
        """Whether the searcher has ended by itself, with budget left."""
        self.earlier = 0.0
        """Seconds of earlier runs of the same search, before this run resumed."""
        self._started, self._processor = time.perf_counter(), time.process_time()
        self._pending: Genomes | None = None
        self.designs: Designs | None = None
        """Decoded designs of the last batch, if yielded by the searcher with the genomes."""
        self._scored: Scored | None = None
        self.own = 0
        """Number of externally proposed designs."""
        self.start: Start | None = None
        """Designs to evaluate before the searcher's proposals."""
        self.started: tuple[Mapping[str, Any], ...] = ()
        """Results of the starting designs, once evaluated (`Start.told`)."""
        self._migrants: Scored | None = None
        if start is not None:
            from .start import check_takes, start_of

            self.start = start_of(problem, start, seed=seed)
            check_takes(self.searcher, problem)
        self._first = self.start  # until it is evaluated
        self._rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        self._opened: Scored | None = None
        """The best designs of the first part; None afterwards."""
        if problem.judge.opens and self.searcher.takes_migrants:
            self._opened = Scored(problem.space.low[None, :][:0], np.zeros(0))
        self._proposals: Proposals | None = self._begun()

    def _begun(self) -> Proposals:
        with guarded(self.searcher, "search"):
            return self.searcher.search(self.space, self.budget, self._rng)

    def share(self, budget: Budget) -> None:
        """Begin with another budget, before anything is proposed."""
        self.budget = budget
        self._proposals = self._begun()

    @property
    def finished(self) -> bool:
        return self._proposals is None and self._pending is None

    def ask(self) -> Array | None:
        """Genomes (n, G) int64 to evaluate next, n >= 1; None when the budget is spent or the searcher is done."""
        if self._pending is not None:
            raise SearchError("ask() again before tell(): the scores of the last batch are missing")
        if self._first is not None:
            self._pending = self._first.genomes[: self.budget.proposals_left]
            return self._pending
        try:
            for _ in range(EMPTY_YIELDS):
                genomes = self._advance()
                if genomes is None or len(genomes):
                    self._pending = genomes
                    return genomes
                self._scored = Scored(genomes, np.zeros(0))
            raise self._wrong(f"yielded {EMPTY_YIELDS} empty batches in a row")
        except PluginError:
            with suppress(PluginError):
                self.close()
            raise

    def evaluate(self, genomes: Array | None = None) -> Evaluation:
        """Evaluates own proposals (n, G) int64, or else the last batch from `ask`, to be counted by `tell`.

        Own proposals count against the budget, and enter history, front and result like a searcher's. The rest of the
        budget limits the number evaluated, so the evaluation may be shorter; `SearchError` if the budget is spent."""
        if genomes is None:
            if self._pending is None:
                raise SearchError("evaluate() without ask(): no batch is waiting")
            return self.problem.evaluator.evaluate_checked(self._pending, self.designs)
        if self._pending is not None:
            raise SearchError("evaluate() of own proposals before tell(): the scores of the last batch are missing")
        if self.budget.left == 0:
            raise SearchError(f"the budget of {self.budget.total:,} designs is spent")
        checked = self.problem.space.check(np.atleast_2d(genomes)[: self.budget.proposals_left])
        evaluation = self.problem.evaluator.evaluate_checked(checked)
        if len(checked):
            self._take(checked, *self._scores(evaluation), evaluation)
            self.own += len(checked)
        return evaluation

    def tell(self, outcome: Evaluation | Array) -> None:
        """Takes the outcome of the last batch from `ask`: an evaluation, or plain scores (n,), lower is better, without
        a bound."""
        genomes = self._pending
        if genomes is None:
            raise SearchError("tell() without ask(): no batch is waiting for its scores")
        evaluation = outcome if isinstance(outcome, Evaluation) else None
        if evaluation is not None:
            known = evaluation.problem in ("", self.problem.title) and len(evaluation) == len(genomes)
            if not (known and evaluation.genomes in (None, checksum(genomes))):
                from ..problem.arguments import refuse_told

                refuse_told(evaluation, self.problem, genomes)
            scores, values = self._scores(evaluation)
        else:
            from ..problem.arguments import plain_scores

            scores, values = plain_scores(outcome, len(genomes)), None
            self.space.forget_classes()
        self._pending, self.designs = None, None
        scored = Scored(genomes, scores, values)
        if self._opened is not None:
            self._opened = Scored.join([self._opened, scored]).best(KEPT)
            if evaluation is not None:
                scored = attrs.evolve(scored, scores=self.problem.evaluator.score(evaluation, opening=True))
        if first := self._first:
            self._first, self.started, self._migrants = None, first.told(scores), scored
        elif self._migrants is None:
            self._scored = scored
        else:
            from .start import mixed

            join = (lambda *some: Scored.join(some)) if self.searcher.hears_all else mixed
            self._scored, self._migrants = join(scored, self._migrants), None
        self._take(genomes, scores, values, evaluation)

    def _scores(self, evaluation: Evaluation) -> tuple[Array, Array | None]:
        """Scores (n,) and, with several objectives, values (n, M)."""
        evaluator, several = self.problem.evaluator, len(self.problem.objective.names) > 1
        return evaluator.score(evaluation), evaluator.values(evaluation) if several else None

    def _take(self, genomes: Array, scores: Array, values: Array | None, evaluation: Evaluation | None) -> None:
        """Counts a batch. If only valid designs count, drops everything after the last valid design within the budget."""
        valid = evaluation.valid if evaluation is not None else np.isfinite(scores)
        if self.budget.count == "valid" and np.count_nonzero(valid) > self.budget.left:
            rows = slice(int(np.flatnonzero(valid)[self.budget.left - 1]) + 1)
            genomes, scores, valid = genomes[rows], scores[rows], valid[rows]
            evaluation = None if evaluation is None else evaluation.take(rows)
            values = None if values is None else values[rows]
        self.budget.spend(len(genomes), int(np.count_nonzero(valid)))
        self.archive.add(genomes, scores, evaluation, values, time.process_time() - self._processor)
        if self.budget.left == 0:
            self.close()

    def close(self) -> None:
        """Ends the search; the archive stays."""
        self._opened = None
        self._stop()

    def _stop(self) -> None:
        proposals, self._proposals, self._pending, self.designs = self._proposals, None, None, None
        if proposals is not None:
            with guarded(self.searcher, "search"):
                proposals.close()

    @property
    def seconds(self) -> float:
        return self.earlier + time.perf_counter() - self._started

    def snapshot(self) -> Snapshot:
        known, total = self.archive, self.budget.total
        gap = gap_of(known.score, self.problem.bound) if known.genome is not None and not known.plain else None
        return Snapshot(known.evaluations, total, known.score, known.valid_fraction, self.seconds, gap)

    @property
    def identity(self) -> dict[str, Any]:
        """Identity of the search, see `identity_of`."""
        from .identity import identity_of

        return identity_of(self.problem, self.searcher, self.budget, self.seed, self.start)

    def result(self) -> Result:
        """Result of the search so far."""
        archive, problem = self.archive, self.problem
        own = repr(archive.score) if self.own or archive.plain else ""
        best, bound, proof = best_of(problem, archive), None if archive.plain else problem.bound, None
        least = found.costs.own if bound is not None and (found := problem.lower_bound) else {}
        front: tuple[Best, ...] = ()
        if archive.front is not None:
            from .front import designs_on

            front = designs_on(archive.front, archive.names, problem)
        lacking: tuple[Shortfall, ...] = ()
        if best is None:
            from .shortfalls import shortfalls_of

            lacking = shortfalls_of(problem, archive)
        if self.searcher.proves is not None and not archive.plain:
            from .proof import proof_of

            proof = proof_of(self)
            bound = bound if proof is None or best is None else max(bound or 0.0, proof.bound)
        return result_of(
            problem, best, front=front, hull=tuple(archive.hull.corners), shortfalls=lacking,
            history=tuple(archive.history.rows), evaluations=archive.evaluations, proposed=archive.proposed,
            valid_fraction=archive.valid_fraction, budget=self.budget.total, count=self.budget.count,
            rejects=dict(sorted(archive.rejects.items(), key=lambda item: (-item[1], item[0]))),
            searcher=OWN if 0 < self.own == archive.proposed else self.searcher.name or self.searcher.type_name,
            seed=self.seed, seconds=self.seconds, interrupted=self.interrupted, start=self.started, proof=proof,
            bound=bound, bound_costs={key: float(column.min()) for key, column in least.items()},
            asked=(problem, self.searcher, self.budget, self.seed, self.start, own),
        )  # fmt: skip

    def _advance(self) -> Genomes | None:
        """The next batch of the searcher, checked and cut to the budget; None when the searcher returns."""
        if self._opened is not None and (self._proposals is None or self.budget.progress >= OPENING):
            self._stop()
            self._migrants, self._opened, self._scored = self._opened, None, None
            self._proposals = self._begun()
        if self._proposals is None:
            return None
        scored, self._scored, self.designs = self._scored, None, None
        with guarded(self.searcher, "search"), proposing():
            try:
                batch = next(self._proposals) if scored is None else self._proposals.send(locked(scored))
            except StopIteration:
                self._proposals = None
                self.ended = self._opened is None
                return None if self._opened is None else self._advance()
        left, genes = self.budget.proposals_left, len(self.problem.space)
        genomes: Any = batch
        if isinstance(batch, Decoded):
            batch = batch if len(batch) <= left else batch.take(np.arange(left))
            genomes, self.designs = batch.genomes, batch.designs
        if getattr(genomes, "ndim", None) != 2:
            raise self._wrong(f"yielded {described(genomes)}, expected an array of integers of shape (n, {genes})")
        if len(genomes) == 0:
            return np.zeros((0, genes), np.int64)
        try:
            return self.problem.space.check(genomes[:left])  # no more than that is copied
        except EvaluationError as error:
            raise self._wrong(f"yielded wrong genomes: {error}") from error

    def _wrong(self, text: str) -> PluginError:
        from ..pieces.faults import yield_line

        return wrong(self.searcher, "search", text, yield_line(self.searcher, self._proposals))


def default_searcher(problem: Problem) -> str:
    """Name of the default searcher for a problem."""
    return problem.objective.searcher or SEARCHER


def searcher_of(problem: Problem, given: Searcher | str | Mapping[str, Any]) -> Searcher:
    """A searcher by name, path of a TOML file, table, or the searcher itself."""
    if isinstance(given, Searcher):
        return given
    registry = problem.registry
    return registry.resolve("searcher", given) if isinstance(given, str) else registry.build("searcher", given)
