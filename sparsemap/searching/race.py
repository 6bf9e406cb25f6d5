"""A race of searches: a problem in several padded sizes of its dimensions, the best of which goes on.

Factors of the sizes decide which tiles there are: 730 has few, 735 fills 21 units, 768 fills 32. A forecast ranks other
sizes (`Space.other_sizes`), but only searches tell which are better. All designs count against one budget. The order of
designs does not depend on the budget, so a larger budget is never worse."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from ..pieces.contracts.base import Array
from ..problem.evaluation import Evaluation
from ..problem.problem import Problem
from .archive import Archive, History, Row
from .best import gap_of
from .budget import RACED, Budget
from .driver import Search, Snapshot
from .result import Result

OTHERS = 2
"""Number of other sizes tried."""
STAGES = ((100, 3), (250, 2), (500, 1))
"""Designs per size at the end of a stage, and number of sizes that go on."""
NEXT = 2_000
"""Designs of the best sizes before others catch up, and ten times as many each further time."""
NEAR = 1.3
"""Score relative to the best after equal designs, below which sizes catch up."""
WHY = "best of {} sizes searched"


@attrs.define
class LaneBudget(Budget):
    """The part of a budget that one of several searches has spent."""

    others: Callable[[], int] = attrs.field(kw_only=True)
    """Designs spent by the others."""

    @property
    def left(self) -> int:
        return max(self.total - self.spent - self.others(), 0)


class Race:
    """Searches of a problem in its usual sizes and in others, in turns; with the interface of a `Search`."""

    def __init__(self, usual: Search) -> None:
        self.usual = usual
        self.seed, self.earlier, self.interrupted = usual.seed, 0.0, False
        self.budget = Budget(usual.budget.total, auto=usual.budget.auto)
        self.lanes: list[Search] = []
        self.lane = self._joined(usual)
        """The search that proposed the last batch."""
        self.history = History()
        self._started, self._processor = time.perf_counter(), time.process_time()
        self._turns = self._planned()

    def _joined(self, lane: Search) -> Search:
        """A search as a part of the race."""

        def others() -> int:
            return sum(one.budget.spent for one in self.lanes if one is not lane)

        lane.share(LaneBudget(self.budget.total, auto=self.budget.auto, others=others))
        if self.usual.archive.leading is not None and lane is not self.usual:
            lane.archive.leading = type(self.usual.archive.leading)()
        self.lanes.append(lane)
        return lane

    def _planned(self) -> Iterator[Search]:
        """The search of every batch."""
        yield from _until(self.usual, RACED)
        problem, others = self.usual.problem, self.usual.problem.space.other_sizes[:OTHERS]
        for sizes in others:
            other = problem.laid_out(sizes, WHY.format(1 + len(others)))
            self._joined(Search(other, self.usual.searcher, self.budget.total, self.seed))
        going = self.lanes
        for designs, count in STAGES:
            for lane in going:
                if self._hopeful(lane):
                    yield from _until(lane, designs)
            going = sorted(going, key=lambda lane: _score(lane, designs))[:count]  # stable: the usual sizes first
        best, goal = going[0], NEXT
        while goal < 10 * self.budget.total:  # a goal beyond the budget is the last
            yield from _until(best, goal)
            for lane in self.lanes:
                if self._hopeful(lane) and _score(lane, goal) < NEAR * _score(best, lane.archive.proposed):
                    yield from _until(lane, goal)
            best, goal = self.best, 10 * goal

    def _hopeful(self, lane: Search) -> bool:
        """Whether the bound leaves room for a better design than the best."""
        return (lane.problem.bound or 0.0) < self.archive.score

    @property
    def best(self) -> Search:
        """The search with the best design, the usual sizes first."""
        return min(self.lanes, key=lambda lane: lane.archive.score)

    @property
    def problem(self) -> Problem:
        return self.best.problem

    @property
    def archive(self) -> Archive:
        return self.best.archive

    @property
    def identity(self) -> Mapping[str, Any]:
        return self.usual.identity

    @property
    def seconds(self) -> float:
        return self.earlier + time.perf_counter() - self._started

    def ask(self) -> Array | None:
        """`Search.ask` of the search whose turn it is."""
        for lane in self._turns:
            genomes = lane.ask()
            if genomes is not None:
                self.lane = lane
                return genomes
        return None

    def evaluate(self) -> Evaluation:
        return self.lane.evaluate()

    def tell(self, outcome: Evaluation) -> None:
        lane, before = self.lane, self.lane.archive.proposed
        lane.tell(outcome)
        self.budget.spend(lane.archive.proposed - before)
        last, best = lane.archive.last, self.archive
        seconds = time.process_time() - self._processor
        assert last is not None
        self.history.add(Row(self.budget.spent, best.score, last.valid, last.mean_score, seconds, best.costs))
        if self.budget.left == 0:
            self.close()

    def close(self) -> None:
        for lane in self.lanes:
            lane.close()

    def snapshot(self) -> Snapshot:
        best = self.archive
        gap = gap_of(best.score, self.problem.bound) if best.genome is not None else None
        return Snapshot(self.budget.spent, self.budget.total, best.score, self.valid_fraction, self.seconds, gap)

    @property
    def valid_fraction(self) -> float:
        return sum(lane.archive.valid for lane in self.lanes) / max(self.budget.spent, 1)

    def result(self) -> Result:
        """The result in the best sizes, with the designs of all."""
        found, rejects = self.best.result(), dict[str, int]()
        for lane in self.lanes:
            for name, count in lane.archive.rejects.items():
                rejects[name] = rejects.get(name, 0) + count
        usual = self.usual
        asked = usual.problem, usual.searcher, self.budget, usual.seed, usual.start, ""
        more: dict[str, Any] = {"start": usual.started, "asked": asked}
        if len(self.lanes) > 1:
            more["raced"] = tuple(
                {"sizes": dict(lane.problem.sizes), "designs": lane.archive.proposed, "score": lane.archive.score}
                for lane in self.lanes
            )
        return attrs.evolve(
            found, history=tuple(self.history.rows), evaluations=self.budget.spent, proposed=self.budget.spent,
            budget=self.budget.total, valid_fraction=self.valid_fraction, seconds=self.seconds,
            rejects=dict(sorted(rejects.items(), key=lambda item: (-item[1], item[0]))), interrupted=self.interrupted,
            **more,
        )  # fmt: skip


def _until(lane: Search, designs: float) -> Iterator[Search]:
    """A search, for every batch until it has this many designs or ends."""
    while lane.archive.proposed < designs and not lane.finished:
        yield lane


def _score(lane: Search, designs: int) -> float:
    """Best score of the first designs of a search, to the end of a batch."""
    rows = lane.archive.history.rows
    return next(
        (row.best_score for row in rows if row.evaluations >= designs), rows[-1].best_score if rows else math.inf
    )
