"""Units that a chip lacks to gain from zeros and narrow words, or to charge for the arithmetic between layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sparsemap.pieces.number_formats import NumberFormat
from sparsemap.problem.problem import Problem

from .steps import ServedStep
from .widths import Widths


def hints_of(problem: Problem, density: Any, widths: Widths, steps: Sequence[ServedStep]) -> tuple[str, ...]:
    """Up to three lines, each with the key of the unit that the hardware lacks. `problem`: of a layer with weights."""
    found = [_zeros(problem) if density != 1.0 else "", _widths(problem, widths, steps)]
    if problem.hardware.vector is None:
        found.append("arithmetic of softmax, norms and activations is free: `vector = { lanes = 256 }` counts it")
    return tuple(filter(None, found))


def _zeros(problem: Problem) -> str:
    units, places, found = problem.hardware.units, problem.places, list[str]()
    if not places:
        found.append("take time: `compute = { gate_skip = true }` skips them")
    elif units and not any(units.mechanisms.get(place.name) for place in places):
        found.append(f"take time: `units.mechanisms.{places[-1].name}` lists what skips them")
    name = getattr(problem.workload, "weights", "")
    built = dict(units.formats) if units else {}
    mine = [key for key in built if not problem.lacks(key) and problem.tensor(key) == problem.tensor(name)]
    some = [problem.registry.get("format", text) for key in mine for text in built[key]]
    if units and not any(form.compressed for form in some):
        found.append(f"move: `units.formats.{name}` lists formats without them")
    return "zeros of weights " + ", and ".join(found) if found else ""


def _widths(problem: Problem, widths: Widths, steps: Sequence[ServedStep]) -> str:
    given = (widths.activation, widths.weight)
    whole, bits = widths.hardware, [x.bits if isinstance(x, NumberFormat) else math.floor(x) for x in given]
    macs = whole * whole // math.prod(bits)
    taken = any(mode.takes(bits) for mode in problem.hardware.compute.modes)
    if macs < 2 or taken or not any(step.roofline.binding == "compute" for step in steps):
        return ""
    mode = f"`compute.modes = [{{ bits = {bits}, macs = {macs} }}]`"
    return f"multipliers work on {whole}-bit words: {mode} multiplies {bits[0]}-bit by {bits[1]}-bit words faster"
