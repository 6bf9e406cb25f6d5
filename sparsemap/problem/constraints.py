"""Constraints on the chips of a space: expressions over costs and the sizes of levels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import SpecError, placed
from ..pieces.contracts.base import Array
from ..spec.expressions import Expression
from .chip import Chip

SIZES = ("capacity", "fanout", "instances", "word_bits", "bandwidth")
"""Sizes of a level for constraints, as `GLB.capacity` (bits), `GLB.bandwidth` (words a cycle)."""
COSTS = ("energy_pj", "cycles", "seconds", "power_w", "area_mm2", "edp")
"""Costs for constraints."""


def broken_of(constraints: tuple[str, ...], chip: Chip, costs: Mapping[str, float], file: str = "") -> str:
    """The first broken constraint, or ""; constraints over unknown costs are passed over."""
    with placed("", file):
        return next((text for text, excess in _broken(constraints, chip, costs)), "")


def excess_of(constraints: tuple[str, ...], chip: Chip, costs: Mapping[str, float]) -> float:
    """Total violation of constraints: excess as a share of the larger side, 1 for anything but a plain comparison."""
    return sum(excess for _, excess in _broken(constraints, chip, costs))


def _broken(constraints: tuple[str, ...], chip: Chip, costs: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    values = {**costs, **_sizes(chip)}
    for text, plain, rule in _rules(constraints, chip, {*values, *COSTS}):
        if rule.names <= values.keys() and not bool(rule(values)):
            sides = re.split(r"<=|>=|<|>", plain)
            excess = 1.0
            if len(sides) == 2 and "(" not in plain:
                one, other = (float(Expression.parse(side, {*values, *COSTS})(values)) for side in sides)
                excess = abs(one - other) / max(abs(one), abs(other), 1e-300)
            yield text, excess


def broken_by(constraints: tuple[str, ...], chip: Chip, costs: Mapping[str, Array], file: str = "") -> list[Array]:
    """For each constraint, (B,) bool: the designs on a chip that break it; `costs` holds all costs by name."""
    values: dict[str, Any] = {**{name: costs[name] for name in COSTS}, **_sizes(chip)}
    with placed("", file), np.errstate(all="ignore"):
        return [
            ~np.broadcast_to(np.asarray(rule(values), bool), costs["cycles"].shape)
            for _, _, rule in _rules(constraints, chip, values.keys())
        ]


def _sizes(chip: Chip) -> dict[str, float]:
    """Sizes of all levels by name."""
    found: dict[str, float] = {}
    for s, name in enumerate(chip.names):
        sizes = (chip.capacity_bits[s], chip.fanout[s], chip.instances[s], chip.word_bits[s])
        speed = min(float(chip.bandwidth[s]), float(chip.read_bandwidth[s]))
        found |= {f"{_plain(name)}__{key}": float(x) for key, x in zip(SIZES, (*sizes, speed), strict=True)}
    return found


def _rules(constraints: tuple[str, ...], chip: Chip, known: Iterable[str]) -> Iterator[tuple[str, str, Expression]]:
    """Each constraint, its text in plain names, and its expression."""
    for text in constraints:
        plain = re.sub(r"([A-Za-z_]\w*)\.([a-z_]+)", lambda m: f"{_plain(m[1])}__{m[2]}", text)
        try:
            yield text, plain, Expression.parse(plain, known)
        except ValueError as error:
            wanted = f"costs, and {', '.join(SIZES)} of {', '.join(chip.names)}"
            wanted += ", numbers without units (capacity in bits)" + "; write >= or <=" * bool(re.search("=[<>]", text))
            told = f"{text!r}: {str(error).replace('__', '.')}; may use {wanted}"
            raise SpecError.at("", "constraints", told) from None


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)
