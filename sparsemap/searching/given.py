"""A design file as a result, in the form of a search's result."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ..pieces.registry import Registry
from ..problem import design_file
from .archive import Archive
from .best import Best
from .result import Result, result_of
from .shortfalls import shortfalls_of


def load_design(
    path: str | os.PathLike[str],
    plugin_dirs: Sequence[str | os.PathLike[str]] = (),
    registry: Registry | None = None,
) -> Result:
    """Evaluates the design of a TOML file or of the folder of a search: `best`, `breakdown()`, `report(NAME)`.

    For an invalid design `best` is None, `rejects` has the reasons and `shortfalls` the missing resources. `SpecError`
    with all mistakes in the file."""
    if registry is None:
        from ..pieces.loading import load

        registry = load(plugin_dirs=plugin_dirs)
    found = design_file.load(path, registry)
    problem = found.problem
    evaluation = problem.evaluator.evaluate_designs(found.batch)
    genome = np.zeros(len(problem.space), np.int64)
    if reasons := evaluation.reasons_of(0):
        lacks = shortfalls_of(problem, Archive(closest=genome[None, :]))
        rejects = dict.fromkeys(reasons, 1)
        return result_of(problem, None, shortfalls=lacks, valid_fraction=0.0, rejects=rejects)
    score, costs = float(problem.evaluator.score(evaluation)[0]), dict(evaluation.costs.of(0).own)
    best = Best(problem, genome, costs, score, in_scenarios=evaluation.costs_in_scenarios(0))
    return result_of(problem, best)
