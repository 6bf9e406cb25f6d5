"""Classes of designs with bounds by a cost model, in the form for searchers: scores and genomes."""

from __future__ import annotations

import attrs
import numpy as np

from ..errors import DesignError
from ..pieces.boundary import guarded
from ..pieces.contracts import Classes
from ..pieces.contracts.base import Array, Genomes
from .designs import Decoded, Designs
from .problem import Problem
from .space import Space

CHECKED, SOUND = 256, 32
"""Limits of a closer look at the classes of least scores: `CHECKED` classes, or `SOUND` classes with possible designs."""
TRIES = 4
"""Guesses per design drawn from a class: repair may move a guess out of the class."""
PROMISING = 0.5
"""Share of the designs in a class to change to the cost model's promising designs."""


@attrs.frozen(eq=False)
class ScoredClasses:
    """The classes of a problem with the least score of each."""

    problem: Problem
    known: Classes
    least: Array
    """(N + 1,) lower bound on the score of each class; the last: infinity, for designs that cannot be valid."""
    ranking: Array
    """(n,) classes with a finite bound, the best first."""

    def of(self, designs: Designs) -> Array:
        """(B,) class of each design, N or -1 for designs that cannot be valid."""
        with guarded(self.problem.cost_model, "classes"):
            return np.asarray(self.known.of(designs), dtype=np.int64)

    def unproved(self, score: float, within: float) -> Array:
        """(N + 1,) bool: the class may hold a design better than `score` by more than the factor `within`."""
        open_: Array = self.least * within < score if np.isfinite(score) else np.isfinite(self.least)
        return open_

    def hopeful(self, designs: Designs, score: float) -> Array:
        """(B,) bool: the class of the design may hold a design better than `score`."""
        least: Array = self.least[self.of(designs)]
        return least < score if np.isfinite(score) else np.ones(len(designs), dtype=bool)

    def moved(self, space: Space, genomes: Genomes, classes: Array, rng: np.random.Generator) -> Genomes:
        """Genomes (n, G) moved into these classes (n,), half of them to promising designs; unchanged if the space
        cannot express the move. Results may be invalid, see `Space.repaired`."""
        return self._moved(space, genomes, classes, rng, rng.random(len(classes)) < PROMISING)

    def _moved(
        self, space: Space, genomes: Genomes, classes: Array, rng: np.random.Generator, promising: Array
    ) -> Genomes:
        designs = space.decode(genomes)
        with guarded(self.problem.cost_model, "classes"):
            columns = dict(self.known.moved(designs, classes))
            some = np.flatnonzero(promising)
            if self.known.promising is not None and some.size:
                mine = Designs({**designs.columns, **columns}).take(some)
                for name, column in self.known.promising(mine, classes[some], rng).items():
                    columns[name] = np.array(columns.get(name, designs.columns[name]))
                    columns[name][..., some] = column
        changed = genomes.copy()
        for name, segment in space.segments.items():
            if columns.keys() & set(segment.provides):
                try:
                    genes = segment.encode(Designs(columns), space.problem)
                except (DesignError, NotImplementedError, KeyError):
                    return genomes
                changed[:, space.slices[name]] = genes.T
        return changed

    def draw(self, space: Space, classes: Array, rng: np.random.Generator) -> Genomes:
        """Repaired guesses (n, G) in these classes (n,), as far as repair leaves any in the class."""
        rows = np.repeat(classes, TRIES)
        promising = np.repeat(rng.random(len(classes)) < PROMISING, TRIES)
        moved = self._moved(space, space.guess(len(rows), rng), rows, rng, promising)
        found: Decoded = space.repaired(moved, rng)
        hit = (self.of(found.designs) == rows).reshape(-1, TRIES)
        return found.genomes[np.arange(len(classes)) * TRIES + hit.argmax(axis=1)]


def classes_of(problem: Problem) -> ScoredClasses | None:
    """Scored classes of a problem. None: unknown to the cost model, or the objective cannot score a bound."""
    judge = problem.judge
    if not judge.monotone or len(judge.names) > 1 or problem.scenarios or problem.layouts != (problem,):
        return None
    with guarded(problem.cost_model, "classes"), np.errstate(over="ignore", invalid="ignore"):
        known = problem.cost_model.classes(problem)
    if known is None:
        return None
    scores = problem.evaluator.score(known.least.on(problem.chip))
    rows = scores.reshape(-1, len(next(iter(known.labels.values()))))
    best = rows.argmin(axis=0) * rows.shape[1] + np.arange(rows.shape[1])
    known, scores = attrs.evolve(known, least=known.least.take(best)), scores[best]
    ranking = np.argsort(scores, kind="stable")
    sound = 0
    for number in ranking[:CHECKED]:
        if sound == SOUND:
            break
        with guarded(problem.cost_model, "classes"):
            holds = known.hold(int(number))
        sound += holds
        if not holds:
            scores[number] = np.inf
    ranking = ranking[np.isfinite(scores[ranking])]
    return ScoredClasses(problem, known, np.append(scores, np.inf), ranking) if ranking.size else None
