"""Reading of files within limits, and texts of paths, tables and numbers."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from .errors import SpecError

SPEC_BYTES = 16 << 20
"""Size limit of hand-written text files, in bytes."""

Cells = Sequence[Sequence[str]]
T = TypeVar("T")


def shown(path: str | os.PathLike[str]) -> str:
    """A path for messages: relative to the working directory if below the directory."""
    try:
        whole, here = os.path.abspath(path), os.path.join(os.getcwd(), "")
    except (ValueError, OSError):
        return str(path)
    if whole == os.path.normpath(here):
        return "."
    return whole[len(here) :] if whole.startswith(here) else str(path)


def system_error_text(error: OSError) -> str:
    """The system's text for a file error, such as `best/design.toml: No space left on device`."""
    return f"{shown(error.filename)}: {error.strerror}" if error.filename else error.strerror or str(error)


# ------------------------------------------------------------------------------------------------------------- reading


def read_bytes(path: str | os.PathLike[str], limit: int = SPEC_BYTES) -> bytes:
    """Contents of a regular file of at most `limit` bytes; SpecError for anything else, such as a folder or a device."""
    try:
        size = check_file(path, limit)
        with open(path, "rb") as file:
            return file.read(size)
    except OSError as error:
        raise SpecError.at(shown(path), "", f"cannot be read: {error.strerror or error}") from None


def read_json(path: str | os.PathLike[str], limit: int = SPEC_BYTES) -> Any:
    """Contents of a JSON file; SpecError for anything but JSON."""
    try:
        return json.loads(read_bytes(path, limit))
    except (ValueError, RecursionError) as error:
        raise SpecError.at(shown(path), "", f"is not JSON: {error}") from None


def check_file(path: str | os.PathLike[str], limit: int = SPEC_BYTES) -> int:
    """Size of a file in bytes; SpecError unless the file is regular and has at most `limit` bytes."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise SpecError.at(shown(path), "", "no such file") from None
    except OSError as error:
        raise SpecError.at(shown(path), "", f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a path with a null character
        raise SpecError.at(repr(os.fspath(path)), "", f"cannot be read: {error}") from None
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a device or pipe"
        raise SpecError.at(shown(path), "", f"is {kind}, expected a file")
    if found.st_size > limit:
        raise SpecError.at(shown(path), "", f"has {found.st_size:,} bytes, expected at most {limit:,}")
    return found.st_size


# ------------------------------------------------------------------------------------------------------------- writing


# -------------------------------------------------------------------------------------------------------------- tables


def grouped(items: Iterable[T], key: Callable[[T], Any]) -> dict[Any, list[T]]:
    """Items in groups by key; groups are in order of first appearance."""
    groups: dict[Any, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def aligned(rows: Cells, align: str = "<>", gap: int = 3) -> list[str]:
    """Rows of equal length as lines of columns, aligned `<` left or `>` right; the last mark serves all further
    columns."""
    return [(" " * gap).join(cells).rstrip() for cells in padded(rows, align)]


def padded(rows: Cells, align: str) -> list[list[str]]:
    """Cells padded to the width of their column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    marks = marks_of(align, len(widths))
    return [[f"{cell:{mark}{width}}" for cell, mark, width in zip(row, marks, widths, strict=True)] for row in rows]


def marks_of(align: str, count: int) -> str:
    """One alignment mark for each of `count` columns, as in `aligned`."""
    return align[:count].ljust(count, align[-1])


# ------------------------------------------------------------------------------------------------------------- numbers


def percent(share: float, digits: int = 0) -> str:
    """0.1234 -> "12 %"; a share above 0 never rounds to 0 %, a share below 1 never to 100 %."""
    if not math.isfinite(share):
        return "-"
    least = 10.0 ** -(2 + digits)
    if 0 < share < least:
        return f"<{100 * least:.{digits}f} %"
    if 1 - least < share < 1:
        return f"{100 * (1 - least):.{digits}f} %"
    return f"{100 * share:.{digits}f} %"


def four_digits(value: float | None) -> str:
    """A number of any size with four digits; a dash for None."""
    return "-" if value is None else f"{value:.4g}"


def times(ratio: float | None) -> str:
    """A ratio: 0.0697x, 1.53x, 27.8x, 1,204x, 2.1e+08x; a dash for None and infinity."""
    if ratio is None or not math.isfinite(ratio):
        return "-"
    form = next(
        (form for least, form in ((1e7, ".2g"), (1e3, ",.0f"), (10, ".1f"), (0.1, ".2f")) if ratio >= least), ".3g"
    )
    return f"{ratio:{form}}x"
