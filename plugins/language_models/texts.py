"""Options in words: sizes, shares of lengths, loads of experts, shares of nonzeros; and whether they suit a model."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import click
from click.core import ParameterSource

from sparsemap.csv_files import read_csv
from sparsemap.errors import listed

from .model import LanguageModel

WIDEST = 64
SIZE = re.compile(r"([1-9]\d{0,8})(k?)")


def sizes_of(text: str) -> tuple[int, ...]:
    """Whole numbers with commas, also in units of 1,024: `1k,4k`."""
    return tuple(dict.fromkeys(_size(part.strip()) for part in text.split(",")))


def _size(text: str) -> int:
    if found := SIZE.fullmatch(text):
        return int(found[1]) * (1024 if found[2] else 1)
    raise click.BadParameter(f"{text!r} is no number from 1 on; expected numbers such as 512 or 4k, with commas")


def lengths_of(text: str) -> dict[int, float]:
    """Share of each length, with sum 1: `1k:0.5,4k:0.3`, or the columns `length` and `count` of a CSV file."""
    found = dict[int, float]()
    for row in _rows(text, "length", "count"):
        if len(row) != 2:
            raise click.BadParameter(
                f"{':'.join(row)!r} is no length with a share; expected 1k:0.5,4k:0.3, for example"
            )
        size, share = _size(row[0]), _number(row[1], "the share of a length, such as 0.5")
        if not share:
            raise click.BadParameter(f"{row[1]!r} is no share above 0; leave the length {row[0]} out")
        found[size] = found.get(size, 0.0) + share
    whole = math.fsum(found.values())
    return {size: share / whole for size, share in found.items()}


def loads_of(text: str) -> tuple[float, ...]:
    """Numbers with commas, or the column `tokens` of a CSV file."""
    expected = "tokens of each expert, such as 3,2,1, or a CSV file"
    return tuple(_number(":".join(row), expected) for row in _rows(text, "tokens"))


def _rows(text: str, *columns: str) -> list[list[str]]:
    """Parts between commas, each split at colons; or these columns of a CSV file."""
    if not text.endswith(".csv"):
        return [part.strip().split(":") for part in text.split(",")]
    if not Path(text).is_file():
        raise click.BadParameter(f"no file {text}")
    rows = read_csv(text)
    if absent := [name for name in columns if any(row.get(name) is None for row in rows or [{}])]:
        raise click.BadParameter(f"{text}: no column '{absent[0]}', found {listed(rows[0]) if rows else 'no row'}")
    return [[row[name] for name in columns] for row in rows]


def _number(text: str, expected: str) -> float:
    with suppress(ValueError):
        if 0.0 <= (found := float(text)) < math.inf:
            return found
    raise click.BadParameter(f"{text!r} is no number from 0 on; expected {expected}")


def density_of(text: str) -> Any:
    """A share of nonzeros, or the table of an N:M density."""
    if found := re.fullmatch(r"([1-9]\d?):([1-9]\d?)", text):
        n, m = int(found[1]), int(found[2])
        if n < m:
            return {"type": "n-of-m", "n": n, "m": m}
    elif re.fullmatch(r"1|0?\.\d*[1-9]\d*", text):
        return float(text)
    raise click.BadParameter(f"{text!r} is no share of nonzeros; expected 0.5 or 2:4, for example")


def width_of(text: str) -> int | str:
    """Bits, or the name of a number format."""
    if not text.isdecimal():
        return text
    if 1 <= int(text) <= WIDEST:
        return int(text)
    raise click.BadParameter(f"{text} is not in the range 1 to {WIDEST}")


READERS: dict[str, Callable[[str], Any]] = {
    "contexts": sizes_of, "lengths": lengths_of, "batches": sizes_of, "density": density_of, "loads": loads_of,
    **dict.fromkeys(("weight_bits", "cache_bits", "activation_bits"), width_of),
}  # fmt: skip
"""By option in the words of its own."""


def fitting(model: LanguageModel, ctx: click.Context, loads: Sequence[float] | None) -> LanguageModel:
    """The model with `loads` of its experts; UsageError for options of a command that do not suit the model."""
    given = {one.name: one.opts[0] for one in ctx.command.params if one.name}
    given = {key: option for key, option in given.items() if ctx.get_parameter_source(key) != ParameterSource.DEFAULT}
    unfit = {
        ("cache_bits", "prompts"): "is an encoder, without a cache" if model.encoder else "",
        ("contexts", "lengths"): "reads one image" if model.image else "",
        ("loads",): "" if model.experts else "has no experts",
    }
    for keys, why in unfit.items():
        for key in keys:
            if why and key in given:
                raise click.UsageError(f"{given[key]}: {model.name} {why}")
    if {"contexts", "lengths"} <= given.keys():
        raise click.UsageError("--lengths: give either lengths or --context")
    if not model.experts or loads is None:
        return model
    try:
        return attrs.evolve(model, experts=attrs.evolve(model.experts, loads=tuple(loads)))
    except ValueError as error:
        raise click.UsageError(f"--experts: {error}") from None
