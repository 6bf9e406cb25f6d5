"""Identity of a search as plain data: every input of the result, to match a journal or a result with its search.

The program, NumPy and Python count by behaviour, not by version, except SparseMap itself: a journal is compared batch
by batch when it is replayed. Plugins of the user and data files count by content."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from ..pieces.contracts import Piece, Searcher
from ..problem.problem import Problem
from .budget import Budget, budget_of

if TYPE_CHECKING:
    from .start import Start

Identity = Mapping[str, Any]

SCENARIOS = "scenarios"
"""The key with the names of a problem's scenarios, if any."""
DIFFERENCES = 4
"""Largest number of differences named in a message."""


def identity_of(
    problem: Problem,
    searcher: Searcher,
    budget: Budget | int | str,
    seed: int,
    start: Start | None = None,
    own: str = "",
) -> dict[str, Any]:
    """Identity of a search: any other value anywhere is another search. `own` identifies externally proposed designs."""
    from .. import __version__

    names = ("workload", "hardware", "objective", "cost_model")
    pieces: dict[str, Piece] = {name: getattr(problem, name) for name in names}
    pieces |= {"space": problem.space_spec, "searcher": searcher}
    used = (*pieces.values(), *(tensor.density for tensor in problem.tensors), problem.space.candidates)
    if_any = {
        "auto": budget_of(budget).auto,
        "count": "valid" if budget_of(budget).count == "valid" else "",
        SCENARIOS: list(problem.scenarios),
        "start": start.digest if start is not None else "",
        "own": own,
        "chip": problem.given_chip.digest if problem.given_chip is not None else "",
        "sizes": {} if problem.raced else problem.sizes,
    }
    whole = {
        **{key: _described(piece) for key, piece in pieces.items()},
        **{key: value for key, value in if_any.items() if value},
        "budget": budget_of(budget).total,
        "seed": seed,
        "sparsemap": __version__,
        "plugins": {plugin.name: plugin.contents for plugin in problem.registry.plugins if plugin.contents},
        "data": {path.name: _digest(path) for path in sorted(set(_data_files(used))) if path.is_file()},
    }
    return json.loads(json.dumps(whole, sort_keys=True, default=str))


def text_of(identity: Identity) -> str:
    """An identity as JSON, equal for equal identities."""
    return json.dumps(identity, sort_keys=True)


def differences(found: Identity, wanted: Identity) -> str:
    """Differences between two identities, as text: the first few paths with both values."""
    every = list(_differences(found, wanted, ""))
    more = f" and {len(every) - DIFFERENCES} more" if len(every) > DIFFERENCES else ""
    return "; ".join(every[:DIFFERENCES]) + more


def in_the_way(finished: Identity, wanted: Identity, apart: Sequence[str] = ()) -> str:
    """Differences against replacing the result of an ended search; empty if allowed. Allowed is the same search with at
    least the same budget; the program, plugins, data files and keys `apart` may differ."""
    same = dict.fromkeys(("sparsemap", "plugins", "data", *apart))
    if finished.get("budget", 0) <= wanted.get("budget", 0):
        same["budget"] = None
    return differences({**finished, **same}, {**wanted, **same})


def _differences(found: Any, wanted: Any, path: str) -> Iterator[str]:
    if found == wanted:
        return
    if isinstance(found, Mapping) and isinstance(wanted, Mapping):
        for key in sorted({*found, *wanted}):
            yield from _differences(found.get(key), wanted.get(key), f"{path}.{key}" if path else key)
        return
    yield f"{path} is {_shown(found)} there, {_shown(wanted)} here"


def _shown(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."


def _described(piece: Piece) -> dict[str, Any]:
    """A piece as a table, without fields of plugins unfit for a table."""
    from ..spec.unstructuring import unstructure

    try:
        table = unstructure(piece)
    except TypeError:
        table = {}
    table = {key: value for key, value in table.items() if key not in ("description", "source")}
    return {"type": piece.type_name, "name": piece.name, **table}


def _data_files(value: Any) -> Iterator[Path]:
    """The paths in the fields of pieces, at any depth."""
    if isinstance(value, os.PathLike):
        yield Path(value)
        return
    if attrs.has(type(value)):
        value = attrs.asdict(value, recurse=False)
    if isinstance(value, Mapping):
        value = list(value.values())
    for item in value if isinstance(value, list | tuple) else ():
        yield from _data_files(item)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
