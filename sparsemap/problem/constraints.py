"""Constraints on the chips of a space: expressions over costs and the sizes of levels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce

from ..errors import SpecError, placed
from ..spec.expressions import Expression
from ..spec.units import CAPACITY_BITS, PREFIXES
from .chip import Chip

SIZES = ("capacity", "fanout", "instances", "word_bits", "bandwidth")
"""Sizes of a level for constraints, as `GLB.capacity` (bits), `GLB.bandwidth` (words a cycle)."""
COSTS = ("energy_pj", "cycles", "seconds", "power_w", "area_mm2", "edp")
"""Costs for constraints."""
OF_NETWORKS = ("energy_pj", "cycles", "seconds", "power_w", "edp")
"""Costs of one run of a network for constraints, as `resnet50.seconds`."""
UNITS = {
    **CAPACITY_BITS,
    **{f"{prefix}s": factor for factor, prefix in PREFIXES},
    **{f"{prefix}J": 1e12 * factor for factor, prefix in (*PREFIXES, (1e-12, "p"))},
    **{f"{prefix}W": factor for factor, prefix in PREFIXES},
    "kW": 1e3,
    "mm2": 1.0,
    "um2": 1e-6,
    "cm2": 100.0,
}
"""Factor of a unit to the quantity's own: bits, seconds, pJ, W, mm2."""
_AMOUNT = re.compile(
    rf"(?<![\w.])(\d[\d.]*(?:[eE][+-]?\d+)?)\s*({'|'.join(sorted(UNITS, key=len, reverse=True))})(?!\w)"
)


def broken_of(
    constraints: tuple[str, ...], chip: Chip, costs: Mapping[str, float], file: str = "", further: Iterable[str] = ()
) -> str:
    """The first broken constraint, or ""; constraints over costs not in `costs` are passed over.

    `further`: names of costs beside `COSTS`, such as `resnet50.seconds` of a network."""
    with placed("", file):
        return next((text for text, excess in _broken(constraints, chip, costs, further)), "")


def excess_of(
    constraints: tuple[str, ...], chip: Chip, costs: Mapping[str, float], further: Iterable[str] = ()
) -> float:
    """Total violation of constraints: excess as a share of the larger side, 1 for anything but a plain comparison."""
    return sum(excess for _, excess in _broken(constraints, chip, costs, further))


def _broken(
    constraints: tuple[str, ...], chip: Chip, costs: Mapping[str, float], further: Iterable[str]
) -> Iterator[tuple[str, float]]:
    known = {**costs, **_sizes(chip)}
    values, names = {_plain(name): value for name, value in known.items()}, {*known, *COSTS, *further}
    for text in constraints:
        plain, rule = _rule(text, chip, names, further)
        if rule.names <= values.keys() and not bool(rule(values)):
            sides = re.split(r"<=|>=|<|>", plain)
            excess = 1.0
            if len(sides) == 2 and "(" not in plain:
                one, other = (float(Expression.parse(side, map(_plain, names))(values)) for side in sides)
                excess = abs(one - other) / max(abs(one), abs(other), 1e-300)
            yield text, excess


def _sizes(chip: Chip) -> dict[str, float]:
    """Sizes of all levels by name."""
    found: dict[str, float] = {}
    for s, name in enumerate(chip.names):
        sizes = (chip.capacity_bits[s], chip.fanout[s], chip.instances[s], chip.word_bits[s])
        speed = min(float(chip.bandwidth[s]), float(chip.read_bandwidth[s]))
        found |= {f"{name}.{key}": float(x) for key, x in zip(SIZES, (*sizes, speed), strict=True)}
    return found


def _rule(text: str, chip: Chip, known: Iterable[str], further: Iterable[str]) -> tuple[str, Expression]:
    """A constraint with plain names and numbers, and its expression."""
    plain = _AMOUNT.sub(lambda match: repr(float(match[1]) * UNITS[match[2]]), text)
    for name in sorted((name for name in known if "." in name), key=len, reverse=True):
        plain = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", _plain(name), plain)
    plain = re.sub(r"([A-Za-z_]\w*)\.([a-z_]+)", lambda match: f"{match[1]}__{match[2]}", plain)
    try:
        return plain, Expression.parse(plain, map(_plain, known))
    except ValueError as error:
        owners = sorted({name.rpartition(".")[0] for name in further})
        wanted = f"{', '.join(COSTS)}, {', '.join(SIZES)} of {', '.join(chip.names)}"
        wanted += f", {', '.join(OF_NETWORKS)} of {', '.join(owners)}" if owners else ""
        wanted += ", and amounts such as 1 MB and 5 ms" + "; write >= or <=" * bool(re.search("=[<>]", text))
        said = reduce(lambda said, name: said.replace(_plain(name), name), known, str(error)).replace("__", ".")
        told = f"{text!r}: {said}; may use {wanted}"
        raise SpecError.at("", "constraints", told) from None


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name.replace(".", "__"))
