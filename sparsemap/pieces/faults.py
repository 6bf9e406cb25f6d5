"""Faults of pieces for `boundary`: name, method, file and line of a piece with an exception or a broken contract."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import attrs
import cattrs
import pluggy

from ..errors import EvaluationError, Mistake, PluginError, readable
from ..files import shown
from .contracts import Piece
from .contracts.base import SPEC_FILE

if TYPE_CHECKING:
    from .boundary import Line

OURS = ("<", str(Path(__file__).parents[1]), os.path.dirname(attrs.__file__), os.path.dirname(cattrs.__file__))
"""Path prefixes of code outside all plugins."""


def fault_of(piece: Piece | str, method: str, error: BaseException, trace: TracebackType | None) -> PluginError:
    """The error for an exception in the method of a piece, or in a plugin's function named by a text."""
    if not isinstance(piece, str):
        return raised_in(error, trace) or fault(piece, method, _text(error))
    where = plugin_line(trace, (os.path.dirname(pluggy.__file__),))
    return PluginError([Mistake(where, piece, f"{method} {_text(error)}")])


def fault(piece: Piece, method: str, text: str, line: Line | None = None) -> PluginError:
    """The error for a method with a broken contract, at `line` or else the method's definition."""
    where = getattr(piece, SPEC_FILE, "") or _shown(line or _definition(piece, method))
    return PluginError([Mistake(where, _named(piece), f"{method} {text}")])


def not_built(cls: type[Piece], error: Exception, file: str) -> PluginError:
    """The error for a class of `file` without usable objects, whoever asked for an object."""
    if isinstance(error, PluginError):
        return PluginError(attrs.evolve(item, file=item.file or file) for item in error.mistakes)
    file = plugin_line(error.__traceback__, OURS) or file
    return PluginError([Mistake(file, f"class {cls.__name__}", f"cannot be built: {type(error).__name__}: {error}")])


def raised_in(error: BaseException, trace: TracebackType | None) -> PluginError | None:
    """The error for an exception in a method of a piece, with the innermost piece and its caller; None without a piece."""
    calls: list[list[tuple[Any, str, Line]]] = []  # by piece: whose method, its name, line
    for frame, number in traceback.walk_tb(trace):
        owner = frame.f_locals.get("self")
        if isinstance(owner, Piece) and not (calls and calls[-1][0][0] is owner):
            calls.append([])
        if calls:
            calls[-1].append((owner, frame.f_code.co_name, (frame.f_code.co_filename, number)))
    if not calls:
        return None
    (piece, method, line), text = _call(calls[-1]), _text(error)
    if len(calls) > 1:
        caller, _, call_line = _call(calls[-2])
        text += f"; called by {_named(caller)} ({_shown(call_line)})"
    return fault(piece, method, text, line)


def _call(frames: Sequence[tuple[Any, str, Line]]) -> tuple[Piece, str, Line]:
    """A piece, its first method in its own folder, and the last line there: not the lines of its contract."""
    piece, folder = frames[0][0], _folder(frames[0][0])
    own = [frame for frame in frames if _lies_in(frame[2][0], folder)] or frames[:1]
    return piece, next((name for owner, name, _ in own if owner is piece), frames[0][1]), own[-1][2]


def plugin_line(trace: TracebackType | None, ours: tuple[str, ...]) -> str:
    """`FILE, line N` of a plugin, excluding callers and callees with a path that starts with `ours`; or empty."""
    calls = [(frame.f_code.co_filename, number) for frame, number in traceback.walk_tb(trace)]
    calls = [line for line in calls if not line[0].startswith(ours)]
    return _shown(_innermost(calls, os.path.dirname(calls[0][0]))) if calls else ""


def yield_line(piece: Piece, generator: Any) -> Line | None:
    """Line of a piece's own code at the current yield of its generator."""
    calls: list[Line] = []
    while (frame := getattr(generator, "gi_frame", None)) is not None:
        calls.append((frame.f_code.co_filename, frame.f_lineno))
        generator = generator.gi_yieldfrom
    return _innermost(calls, _folder(piece)) if calls else None


def _named(piece: Piece) -> str:
    return f"{piece.kind.replace('-', ' ')} '{piece.name or piece.type_name or type(piece).__name__}'"


def _text(error: BaseException) -> str:
    try:
        words = readable(" ".join(str(error).split()), 500)
    except Exception:  # its __str__ is broken as well
        words = ""
    if isinstance(error, EvaluationError):  # a check of ours says what is wrong
        return f"gave wrong values: {words}"
    return f"raised {type(error).__name__}" + (f": {words}" if words else "")


def _folder(piece: Piece) -> str:
    """Folder of the module of a piece's class; "" without a file."""
    return os.path.dirname(getattr(sys.modules.get(type(piece).__module__), "__file__", None) or "")


def _innermost(calls: Sequence[Line], folder: str) -> Line:
    """The last of these lines inside a folder, or else the first of all."""
    return next((line for line in reversed(calls) if _lies_in(line[0], folder)), calls[0])


def _lies_in(file: str, folder: str) -> bool:
    return bool(folder) and file.startswith(folder + os.sep)


def definition(owner: Any, method: str) -> str:
    """Place of an object's method in the source; empty without a file."""
    return _shown(_definition(owner, method))


def _definition(owner: Any, method: str) -> Line | None:
    function: Any = getattr(type(owner), method, None)
    code = getattr(inspect.unwrap(function), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else None


def _shown(line: Line | None) -> str:
    return f"{shown(line[0])}, line {line[1]}" if line is not None else ""
