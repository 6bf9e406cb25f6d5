"""Writes plain tables as block YAML, in the part of the language that all YAML readers agree on.

Timeloop concatenates its input files, so each must be a block mapping without document marks. Floats always have a
point: YAML 1.1 takes `1e-05` for text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

WORDS = re.compile(r"[A-Za-z_][\w.=-]*(?: [\w.=-]+)*", re.ASCII)
RESERVED = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
"""Words that YAML 1.1 takes for something else than text."""


def dumps(table: Mapping[str, Any], comment: str = "") -> str:
    """The text of a table of tables, lists, text, numbers and booleans, under a comment."""
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    return "\n".join([*lines, *_block(table)]) + "\n"


def _block(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if _inline(item):
                yield f"{_scalar(str(key))}: {_flow(item)}"
            else:
                yield f"{_scalar(str(key))}:"
                yield from (f"  {line}" for line in _block(item))
    else:
        for item in value:
            first, *rest = _block(item) if not _inline(item) else [_flow(item)]
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)


def _inline(value: Any) -> bool:
    """Whether a value stands on one line: no table in it."""
    if isinstance(value, list | tuple):
        return all(_inline(item) for item in value)
    return not isinstance(value, Mapping) or not value


def _flow(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_flow(item) for item in value)}]"
    return "{}" if isinstance(value, Mapping) else _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float(value)
    if not isinstance(value, str):
        raise TypeError(f"cannot be written as YAML: {value!r}")
    plain = WORDS.fullmatch(value) and value.lower() not in RESERVED
    return value if plain else json.dumps(value, ensure_ascii=False)


def _float(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a number that Timeloop reads")
    digits, mark, exponent = repr(float(value)).partition("e")
    if not mark:
        return digits
    sign = "" if exponent[0] in "+-" else "+"
    return f"{digits if '.' in digits else digits + '.0'}e{sign}{exponent}"
