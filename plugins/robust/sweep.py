"""Designs over the density of a tensor: scores, and densities without a fit."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from sparsemap import Objective, SpecError
from sparsemap.cli import output
from sparsemap.files import aligned, grouped, times
from sparsemap.pieces.contracts import styled
from sparsemap.problem.designs import Design

MOST = 200
"""Densities of a sweep."""
NO_SCORE = "no-score"


@attrs.frozen
class SweepPoint:
    """One design at one density."""

    density: float
    score: float
    """Infinity where the design is invalid."""
    energy_pj: float
    cycles: float
    reasons: tuple[str, ...] = ()
    text: str = ""
    """Shortfalls of the design, in the units of the resource."""

    @property
    def valid(self) -> bool:
        return not self.reasons

    def to_dict(self) -> dict[str, Any]:
        """Plain data; the numbers of an invalid design are None."""
        numbers = {"score": self.score, "energy_pj": self.energy_pj, "cycles": self.cycles}
        numbers["edp"] = self.energy_pj * self.cycles
        known = {key: value if self.valid else None for key, value in numbers.items()}
        return {"density": self.density, "valid": self.valid, **known, "reasons": list(self.reasons)}


def densities_of(text: str) -> tuple[float, ...]:
    """Densities of a list, `1,0.5,0.1`, or of steps, `1:0.05:0.1`: from 1 to 0.05 in steps of 0.1, the last one
    included. ValueError for other texts."""
    form = "expected densities above 0, up to 1, as FIRST:LAST:STEP or with commas between them"
    try:
        given = [float(part) for part in text.replace(":", ",").split(",")]
    except ValueError:
        raise ValueError(f"{text!r}: {form}") from None
    if ":" not in text:
        found = given
    elif len(given) != 3 or "," in text or not given[2] > 0 or not all(map(math.isfinite, given)):
        raise ValueError(f"{text!r}: {form}")
    else:
        first, last, step = given
        count = math.floor(abs(last - first) / step + 1e-9) + 1
        if count > MOST:
            raise ValueError(f"{text!r} has {count} densities, expected at most {MOST}")
        towards = math.copysign(step, last - first)
        found = [float(f"{first + i * towards:.9g}") for i in range(count)]
        found += [last] * (abs(found[-1] - last) > 1e-9)
    found = list(dict.fromkeys(found))
    if not all(0 < density <= 1 for density in found):
        raise ValueError(f"{text!r}: {form}")
    if len(found) > MOST:
        raise ValueError(f"{text!r} has {len(found)} densities, expected at most {MOST}")
    return tuple(found)


def swept(
    design: Design, tensor: str, densities: Sequence[float], objective: Objective, file: str = ""
) -> tuple[SweepPoint, ...]:
    """The design at every density of a tensor, by name or role; dependent densities, such as the output's, follow.

    `SpecError` for an unknown tensor, or a pattern of fixed density.
    """
    problem = design.problem
    found = problem.tensors[problem.tensor(tensor, file, "--tensor")]
    points = []
    for density in densities:
        try:
            workload = problem.workload.with_densities({found.name: found.density.at(density)})
        except SpecError as error:
            raise error.within(f"workload.density.{found.name}", file) from error
        variant = problem.variant(workload=workload, objective=objective)
        evaluation = variant.evaluator.evaluate_designs(design.batch, detail=True)
        score = float(variant.evaluator.score(evaluation)[0])
        reasons = evaluation.reasons_of(0) or (() if math.isfinite(score) else (NO_SCORE,))
        needed = (evaluation.detail and evaluation.detail.needed) or ()
        texts = [text for *_, text in (needed[0] if len(needed) else ()) if text]
        energy_pj, cycles = float(evaluation.energy_pj[0]), float(evaluation.cycles[0])
        points.append(SweepPoint(density, score, energy_pj, cycles, reasons, texts[0] if texts else ""))
    return tuple(points)


def over_best(sweeps: Mapping[str, Sequence[SweepPoint]]) -> dict[str, float]:
    """By design, the geometric mean of scores over the best design's, where valid; NaN if nowhere."""
    best = [min(point.score for point in same) for same in zip(*sweeps.values(), strict=True)]
    found = {}
    for name, points in sweeps.items():
        ratios = [point.score / least for point, least in zip(points, best, strict=True) if point.valid and least > 0]
        found[name] = statistics.geometric_mean(ratios) if ratios else math.nan
    return found


def table_text(tensor: str, unit: str, what: str, sweeps: Mapping[str, Sequence[SweepPoint]]) -> str:
    """The scores side by side: a line per density, a column per design, the best of each line marked with a star."""
    rows = [[tensor, *sweeps]]
    for same in zip(*sweeps.values(), strict=True):
        least = min(point.score for point in same)
        marks = ["*" if point.score == least else " " for point in same]
        cells = [f"{p.score:.4g}{mark}" if p.valid else "invalid " for p, mark in zip(same, marks, strict=True)]
        rows.append([f"{same[0].density:g}", *cells])
    rows.append(["over the best", *(f"{times(mean)} " for mean in over_best(sweeps).values())])
    head, *lines, last = aligned(rows, "<>")
    unit = f", {unit}" if unit else ""
    title = f"{what}{unit}, over the density of {tensor}"
    legend = "* is the best, the last line a geometric mean where valid"
    blocks = [[styled(title, "strong"), styled(legend, "faint"), styled(head, "faint"), *lines, styled(last, "strong")]]
    notes = [note for name, points in sweeps.items() for note in _notes(name, tensor, points)]
    if notes:
        blocks.append([styled("invalid", "warning"), *(output.wrapped(f"  {note}", " " * 4) for note in notes)])
    return "\n\n".join("\n".join(block) for block in blocks)


def _notes(name: str, tensor: str, points: Sequence[SweepPoint]) -> list[str]:
    """A line per set of reasons: densities of invalid designs, and shortfalls at the first."""
    lines = []
    for reasons, same in grouped((point for point in points if not point.valid), lambda point: point.reasons).items():
        where = ", ".join(f"{point.density:g}" for point in same)
        lacks = f"   {same[0].text} at {tensor} = {same[0].density:g}" if same[0].text else ""
        lines.append(f"{name} at {tensor} = {where}: {', '.join(reasons)}{lacks}")
    return lines
