"""Texts of the options of `sparsemap design`: mm2 of `--area`, W of `--power`, numbers by network of `--runs`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import click

from sparsemap.problem.constraints import UNITS

AREA, POWER = ({name: UNITS[name] for name in names} for names in (("mm2", "um2", "cm2"), ("W", "mW", "kW")))


def area(text: str | None) -> float | None:
    return _amount(text, AREA)


def power(text: str | None) -> float | None:
    return _amount(text, POWER)


def _amount(text: str | None, units: Mapping[str, float]) -> float | None:
    if text is None:
        return None
    found = re.fullmatch(r"\s*([0-9.]+(?:e-?\d+)?)\s*(\w*)\s*", text)
    if found is None or (found[2] or next(iter(units))) not in units:
        raise click.BadParameter(f"{text!r} is no amount, expected a number with one of {', '.join(units)}")
    return float(found[1]) * units[found[2] or next(iter(units))]


def runs(texts: Sequence[str]) -> dict[str, float]:
    found = dict[str, float]()
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            found[name] = int(number) if number.isdigit() else float(number)
        except ValueError:
            raise click.BadParameter(f"{text!r}, expected a network and a number, such as resnet50=30") from None
    return found
