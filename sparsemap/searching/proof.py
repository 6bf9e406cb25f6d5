"""Proofs of searches: classes of designs without a better design, and the reason for each."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ..file_formats import CERTIFICATE
from ..pieces.contracts.base import Array
from ..pieces.defaults import DESIGN_FILE
from ..problem.design_file import problem_tables
from .archive import Row
from .driver import Search

SHOWN = 3
"""Remaining classes named in a text."""


@attrs.frozen(eq=False)
class Proof:
    """The best score beside the bound of every class of designs, (N,) each."""

    within: float
    """Factor to prove."""
    score: float
    """Best score; infinite without a valid design."""
    least: Array
    """Lower bound on the score of each class."""
    tried: Array
    """bool: every design of the class was tried."""
    labels: Mapping[str, Array]
    """Common features of the designs of a class, by name."""
    costs: Mapping[str, Array]
    """Lower bounds on the costs of each class, by name."""
    problem: Mapping[str, Any]
    """Tables of the problem, by kind."""
    progress: tuple[tuple[int, float], ...]
    """Designs evaluated so far, and best score over the lower bound at that time."""

    @property
    def left(self) -> Array:
        """Rows of classes with room for a design better than the best by more than the factor, the least bound first."""
        known = math.isfinite(self.score)
        open_ = ~self.tried & (self.least * self.within < self.score if known else np.isfinite(self.least))
        rows = np.flatnonzero(open_)
        return rows[np.argsort(self.least[rows], kind="stable")]

    @property
    def bound(self) -> float:
        """Lower bound on the score of all designs; fully tried classes hold nothing below the best score."""
        return min(self.score, float(self.least[~self.tried].min(initial=np.inf)))

    @property
    def gap(self) -> float:
        """The best score over the bound."""
        return self.score / self.bound if self.bound > 0.0 and math.isfinite(self.score) else math.inf

    @property
    def proved(self) -> bool:
        return self.gap <= self.within

    @property
    def text(self) -> str:
        """A line with the proof and its method, or with the remaining classes."""
        count, tried = len(self.least), int(self.tried.sum())
        if self.proved:
            how = f"{count - tried:,} classes of designs ruled out by their bounds, {tried:,} by trying every design"
            return f"within {self.gap:.4g}x of the optimum for these sizes: {how}"
        left = self.left
        names = [", ".join(f"{name} {values[row]}" for name, values in self.labels.items()) for row in left[:SHOWN]]
        more = f" and {len(left) - SHOWN:,} more" if len(left) > SHOWN else ""
        return f"not within {self.within:g}x: {len(left):,} of {count:,} classes of designs are left ({'; '.join(names)}{more})"

    def certificate(self, design: str = DESIGN_FILE) -> str:
        """JSON for `sparsemap verify` to check the proof, together with the `design` file of the best design."""
        ruled = np.where(self.tried, "tried", np.where(np.isin(np.arange(len(self.least)), self.left), "left", "bound"))
        columns = {**self.labels, **self.costs, "score": self.least, "by": ruled}
        table = {
            "design": design, "within": self.within, "score": _plain(self.score), "proved": self.proved,
            "bound": _plain(self.bound), "problem": self.problem,
            "progress": [[designs, _plain(gap)] for designs, gap in self.progress],
            "classes": {name: values.tolist() for name, values in columns.items()},
        }  # fmt: skip
        return json.dumps(CERTIFICATE.stamped(table)) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """For `result.json`."""
        return {
            "within": self.within, "proved": self.proved, "gap": _plain(self.gap), "classes": len(self.least),
            "tried": int(self.tried.sum()), "left": len(self.left),
        }  # fmt: skip


def proof_of(run: Search) -> Proof | None:
    """Proof of a search so far; None for a searcher without proofs."""
    within, classes = run.searcher.proves, run.problem.space.classes
    if within is None or classes is None:
        return None
    score, least = run.archive.score, classes.least[:-1]
    tried = (least * within < score) & run.ended
    return Proof(
        within, score, least, tried, classes.known.labels, classes.known.least.costs.own, problem_tables(run.problem, space=True),
        _progress(run.archive.history.rows, float(least.min(initial=np.inf))),
    )  # fmt: skip


def _progress(rows: Sequence[Row], bound: float) -> tuple[tuple[int, float], ...]:
    """The gap after each improvement of the best score."""
    found: list[tuple[int, float]] = []
    for row in rows:
        gap = row.best_score / bound if bound > 0.0 else math.inf
        if not found or gap < found[-1][1]:
            found.append((row.evaluations, gap))
    return tuple(found)


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
