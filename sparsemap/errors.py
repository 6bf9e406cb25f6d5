"""One family of exceptions, and the wording that their messages share.

Every mistake a user can cause is reported as file, path in the file, and what to do about it; all mistakes of a file
are reported together. An invalid *design* is never an exception: it is data with a named reason.
"""

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
    """One thing that is wrong: the file, the path of the wrong value in it such as `levels[1].fanout`, and why.

    `file` and `path` may be empty where there is none, for instance for a table that was built in Python.
    """

    file: str
    path: str
    message: str

    def __str__(self) -> str:
        return ": ".join(readable(part, 1000) for part in (self.file, self.path, self.message) if part)


def told(mistakes: Iterable[Mistake], limit: int = 100) -> list[str]:
    """A line per mistake, none twice; of very many the first ones, and how many more there are."""
    lines = list(dict.fromkeys(map(str, mistakes)))
    return lines[:limit] + [f"and {len(lines) - limit:,} more"] * (len(lines) > limit)


class SparseMapError(Exception):
    """Whatever SparseMap reports to its user; the command line prints it without a traceback."""


class _Mistakes(SparseMapError):
    """An error that may hold several mistakes; its text has one line per mistake."""

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
        """The error for a single mistake."""
        return cls([Mistake(str(file), path, message)])

    def within(self, path: str, file: object = "") -> SpecError:
        """The same mistakes with `path` in front; those that name a file of their own keep their place."""
        moved = []
        for mistake in self.mistakes:
            below = mistake.path
            joined = f"{path}.{below}" if path and below and not below.startswith("[") else path + below
            moved.append(mistake if mistake.file else Mistake(str(file), joined, mistake.message))
        return SpecError(moved)


@contextmanager
def placed(path: str, file: object = "") -> Iterator[None]:
    """Mistakes inside the `with` block are those of the value at `path`, see `SpecError.within`."""
    try:
        yield
    except SpecError as error:
        raise error.within(path, file) from error


class PluginError(_Mistakes):
    """A plugin cannot be used as it is. A mistake's `path` names the plugin, or the piece that failed in a search."""

    result: Any = None
    """What a search had found until then, a `Result`."""


class DesignError(SparseMapError):
    """A design cannot be read, or cannot be written in the encoding that was asked for."""


class SearchError(SparseMapError):
    """A search cannot start or go on, such as a cost model that needs a column which no segment provides."""


class EvaluationError(SparseMapError):
    """Genomes or scores of a wrong shape or outside of the bounds."""


TRACEBACK = "SPARSEMAP_TRACEBACK"
"""The variable that asks for whole traces."""


def traced(error: BaseException, text: str = "") -> str:
    """The text of an error, by default its own; below the whole trace if the user has asked for that."""
    text = text or str(error)
    wanted = os.environ.get(TRACEBACK, "") not in ("", "0")
    return "".join(traceback.format_exception(error)) + text if wanted else text


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The known name that `name` was most likely meant to be, or None if none is close."""
    by_lower = {known.lower(): known for known in names}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def unknown(what: str, name: str, names: Iterable[str], limit: int = 12) -> str:
    """Text for a name that is not known: `no workload 'mm33'; did you mean 'mm3'?`, or else the known names."""
    known = sorted(names)
    guess = nearest(name, known)
    if guess is not None:
        return f"no {what} {name!r}; did you mean {guess!r}?"
    return f"no {what} {name!r}; " + (f"known: {listed(known, limit)}" if known else "none is known")


def shortened(value: object, limit: int = 60) -> str:
    """The value as Python writes it, a class by its name; of a long one the middle is left out."""
    if isinstance(value, type):
        return f"class {value.__name__}"
    try:
        return _cut(repr(value), limit)
    except ValueError:  # Python refuses to write whole numbers of thousands of digits
        return "a number of thousands of digits"


def readable(text: str, limit: int = 20_000) -> str:
    """A text that a terminal may show: control characters are spelled, of a long text the middle is left out."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in _cut(text, limit))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit * 2 // 3]}...{text[-(limit // 3 - 3) :]}"


def a(noun: str) -> str:
    """The noun with its article: "a format", "an objective"."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def listed(names: Iterable[str], limit: int = 12) -> str:
    """The names with commas between them; a long list is cut, and says by how much."""
    names = list(names)
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + rest
