"""Texts of options: sizes, and shares of nonzeros."""

from __future__ import annotations

import re
from typing import Any

import click

SIZE = re.compile(r"([1-9]\d{0,8})(k?)")


def sizes_of(text: str) -> tuple[int, ...]:
    """Whole numbers with commas, also in units of 1,024: `1k,4k`."""
    parts = [part.strip() for part in text.split(",")]
    found = [SIZE.fullmatch(part) for part in parts]
    if None in found:
        wrong = parts[found.index(None)]
        raise click.BadParameter(f"{wrong!r} is no number from 1 on; expected numbers such as 512 or 4k, with commas")
    return tuple(dict.fromkeys(int(one[1]) * (1024 if one[2] else 1) for one in found if one))


def density_of(text: str) -> Any:
    """A share of nonzeros, or the table of an N:M density."""
    if found := re.fullmatch(r"([1-9]\d?):([1-9]\d?)", text):
        n, m = int(found[1]), int(found[2])
        if n < m:
            return {"type": "n-of-m", "n": n, "m": m}
    elif re.fullmatch(r"1|0?\.\d*[1-9]\d*", text):
        return float(text)
    raise click.BadParameter(f"{text!r} is no share of nonzeros; expected 0.5 or 2:4, for example")
