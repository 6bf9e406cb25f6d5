"""All exceptions of SparseMap, and the shared wording of their messages.

A user's mistake is reported with its file, the path inside the file, and the remedy; all mistakes of a file are
reported together. An invalid *design* is never an exception: it is data with a named reason."""

from __future__ import annotations

import difflib
import os
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs


@attrs.frozen
class Mistake:
    """One mistake in a spec: its file, the path of the wrong value such as `levels[1].fanout`, and the reason.

    `file` and `path` may be empty, for instance for a table built in Python."""

    file: str
    path: str
    message: str

    def __str__(self) -> str:
        return ": ".join(readable(part, 1000) for part in (self.file, self.path, self.message) if part)


def told(mistakes: Iterable[Mistake], limit: int = 100) -> list[str]:
    """A line per distinct mistake; after `limit` lines, the number of further mistakes."""
    lines = list(dict.fromkeys(map(str, mistakes)))
    return lines[:limit] + [f"and {len(lines) - limit:,} more"] * (len(lines) > limit)


class SparseMapError(Exception):
    """Base of all errors for the user; the command line prints them without a traceback."""


class _Mistakes(SparseMapError):
    """An error with one or several mistakes; its text has one line per mistake."""

    mistakes: tuple[Mistake, ...]

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(dict.fromkeys(mistakes))  # none twice
        super().__init__(self.mistakes)  # the arguments that unpickling in a worker process needs

    def __str__(self) -> str:
        return "\n".join(told(self.mistakes))


class SpecError(_Mistakes):
    """A spec file or table is wrong."""

    @classmethod
    def at(cls, file: object, path: str, message: str) -> SpecError:
        """An error with a single mistake."""
        return cls([Mistake(str(file), path, message)])

    def within(self, path: str, file: object = "") -> SpecError:
        """The same mistakes with `path` in front; a mistake with a file of its own keeps its place."""
        moved = []
        for mistake in self.mistakes:
            below = mistake.path
            joined = f"{path}.{below}" if path and below and not below.startswith("[") else path + below
            moved.append(mistake if mistake.file else Mistake(str(file), joined, mistake.message))
        return SpecError(moved)


@contextmanager
def placed(path: str, file: object = "") -> Iterator[None]:
    """Puts `path` in front of mistakes raised inside the `with` block, see `SpecError.within`."""
    try:
        yield
    except SpecError as error:
        raise error.within(path, file) from error


class PluginError(_Mistakes):
    """A plugin is unusable. A mistake's `path` names the plugin, or the piece at fault during a search."""

    result: Any = None
    """Result of the search up to the error, a `Result`."""


class DesignError(SparseMapError):
    """A design cannot be read, or cannot be written in the requested encoding."""


class SearchError(SparseMapError):
    """A search cannot start or go on, for instance if no segment provides a column of the cost model."""


class EvaluationError(SparseMapError):
    """Genomes or scores have a wrong shape or lie outside the bounds."""


TRACEBACK = "SPARSEMAP_TRACEBACK"
"""Environment variable to request full tracebacks."""


def traced(error: BaseException, text: str = "") -> str:
    """Message of an error, `text` or else its own; follows the full traceback if the user has asked for tracebacks."""
    text = text or str(error)
    wanted = os.environ.get(TRACEBACK, "") not in ("", "0")
    return "".join(traceback.format_exception(error)) + text if wanted else text


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The known name closest to `name`, or None without a close match."""
    by_lower = {known.lower(): known for known in names}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def unknown(what: str, name: str, names: Iterable[str], limit: int = 12) -> str:
    """Text for an unknown name: `no workload 'mm33'; did you mean 'mm3'?`, or else the known names."""
    known = sorted(names)
    guess = nearest(name, known)
    if guess is not None:
        return f"no {what} {name!r}; did you mean {guess!r}?"
    return f"no {what} {name!r}; " + (f"known: {listed(known, limit)}" if known else "none is known")


def shortened(value: object, limit: int = 60) -> str:
    """The value as Python writes it, a class by its name; a long text loses its middle."""
    if isinstance(value, type):
        return f"class {value.__name__}"
    try:
        return _cut(repr(value), limit)
    except ValueError:  # Python refuses to write whole numbers of thousands of digits
        return "a number of thousands of digits"


def readable(text: str, limit: int = 20_000) -> str:
    """A text safe for terminals: control characters are spelled out, a long text loses its middle."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in _cut(text, limit))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit * 2 // 3]}...{text[-(limit // 3 - 3) :]}"


def a(noun: str) -> str:
    """The noun with its article: "a format", "an objective"."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def listed(names: Iterable[str], limit: int = 12) -> str:
    """The names with commas between them; beyond `limit`, the number of further names."""
    names = list(names)
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + rest
