"""Table 4: mappings for a range of activation densities beside mappings for one, under one sparse strategy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..rows import UJ, geometric_mean
from ..runs import Runner, by
from .densities import AWARE, TESTED, TestedDesign, printed, static, tested, tested_rows

STATIC = (1.0, 0.5, 0.1)
STRATEGIES = (AWARE, *(static(density) for density in STATIC))
ROUNDS = 3
"""Rounds of searches; from the second on, each search starts from the designs of all four strategies."""

Columns = Mapping[str, Sequence[float]]
"""By strategy, an EDP per tested density."""


def columns_of(workloads: Iterable[str]) -> dict[str, Columns]:
    """The paper's columns, by workload."""
    rows = printed("table-mse-4")
    return {workload: dict(zip(STRATEGIES, zip(*rows[workload], strict=True), strict=True)) for workload in workloads}


def matched(columns: Sequence[Columns]) -> float:
    """The paper's "99.7 %": EDP of each static search over the aware one at the static search's density, geometric mean over
    workloads and densities."""
    at = [(static(density), TESTED.index(density)) for density in STATIC]
    return geometric_mean(found[name][row] / found[AWARE][row] for found in columns for name, row in at)


def over_aware(columns: Sequence[Columns]) -> dict[str, float]:
    """By static strategy, the EDP over the aware one's, geometric mean over workloads and all tested densities."""
    return {
        name: geometric_mean(x / y for found in columns for x, y in zip(found[name], found[AWARE], strict=True))
        for name in STRATEGIES[1:]
    }


def page(runner: Runner, name: str) -> dict[str, Any]:
    study = runner.study(name)
    *_, designs = tested(runner, name, runner.cells(name), STRATEGIES, "structured", ROUNDS)
    ours = {workload: _typical(found) for workload, found in by(designs, "workload").items()}
    theirs = columns_of(ours)
    both = [list(columns.values()) for columns in (ours, theirs)]
    means = [
        {"strategy": name, "here": x, "paper": y}
        for (name, x), y in zip(over_aware(both[0]).items(), over_aware(both[1]).values(), strict=True)
    ]
    cells = [
        {
            "workload": workload,
            "density": density,
            "strategy": name,
            "here": columns[name][at],
            "paper": paper[name][at],
        }
        | {"over": columns[name][at] / columns[AWARE][at], "paper over": paper[name][at] / paper[AWARE][at]}
        for workload, columns in ours.items()
        for paper in [theirs[workload]]
        for name in STRATEGIES
        for at, density in enumerate(TESTED)
    ]
    here, paper = (100 * matched(columns) for columns in both)
    about = {"study": study, "hardware": study.hardware[0], "ROUNDS": ROUNDS, "here": here, "paper": paper}
    statics = [row for row in cells if row["strategy"] != AWARE]
    return {"rows": tested_rows(designs), "means": means, "cells": cells, "statics": statics, **about}


def _typical(designs: Sequence[TestedDesign]) -> Columns:
    """cycles * uJ, the geometric mean over seeds; infinity for an invalid design of any seed."""
    return {
        name: [geometric_mean(column) / UJ for column in zip(*(design.edp for design in same), strict=True)]
        for name, same in by(designs, "strategy").items()
    }
