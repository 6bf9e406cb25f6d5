"""Variable values of a spec: `{ choices = [...] }`, or `{ low = ..., high = ..., factor = ... }`, in place of a value."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from ..errors import SpecError, nearest

VARIED = ({"choices"}, {"low", "high", "factor"}, {"low", "high", "step"})
"""Keys of a table with the possible values of a key."""
MOST_VALUES = 1000


def _values(table: Mapping[str, Any], path: str) -> list[Any]:
    """Values of `{ choices = ... }`, or of a range, with the range's unit."""
    if "choices" in table:
        if not isinstance(table["choices"], list | tuple) or not table["choices"]:
            raise SpecError.at("", path, f"has choices = {table['choices']!r}, expected a list of at least 1 value")
        return list(table["choices"])
    low, unit_text = _number(table["low"], path)
    high, other = _number(table["high"], path)
    step, factor = table.get("step"), table.get("factor")
    by: Any = factor if step is None else step
    wanted = ""
    if not isinstance(by, int | float) or isinstance(by, bool) or not by > (step is None):
        wanted = "a factor above 1" if step is None else "a step above 0, a number in the unit of low and high"
    elif unit_text != other:
        wanted = "low and high in the same unit"
    elif not 0 < low <= high:
        wanted = "0 < low <= high"
    elif (count := (math.log(high / low) / math.log(by) if step is None else (high - low) / by) + 1) > MOST_VALUES:
        wanted = f"{MOST_VALUES:,} values at most, not {count:,.0f}"
    if wanted:
        raise SpecError.at("", path, f"is {dict(table)!r}, expected {wanted}")
    values: list[Any] = []
    while low <= high:
        number = int(low) if low == int(low) else low
        values.append(f"{number} {unit_text}" if unit_text else number)
        low = low * by if step is None else low + by
    return values


def _number(value: Any, path: str) -> tuple[float, str]:
    """A number and its unit; "" without a unit."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value), ""
    found = re.fullmatch(r"\s*([0-9.]+)\s*(\D.*?)\s*", value) if isinstance(value, str) else None
    if found is None:
        text = f"has {value!r} as an end of its range, expected a number, with a unit if it has one"
        raise SpecError.at("", path, text)
    return float(found[1]), found[2]


def without_choices(value: Any, path: str, found: dict[str, Any]) -> Any:
    """The value with the first choice in place of each variable value; the choices are added to `found` by path."""
    if isinstance(value, Mapping):
        if set(value) in VARIED and path:
            found[path] = _values(value, path)
            return found[path][0]
        key = next(iter(value), "")
        if path and len(value) == 1 and isinstance(value[key], list) and nearest(str(key), ("choices",)):
            raise SpecError.at("", path, f"has the key {key!r}; did you mean 'choices'?")
        return {
            key: below if key == "choices" and not path else without_choices(below, f"{path}.{key}".lstrip("."), found)
            for key, below in value.items()
        }
    if isinstance(value, list | tuple):
        names = [item.get("name", str(i)) if isinstance(item, Mapping) else str(i) for i, item in enumerate(value)]
        items = [without_choices(item, f"{path}.{name}", found) for name, item in zip(names, value, strict=True)]
        return [item for item in items if not isinstance(item, dict) or item.pop("present", True)]
    return value
