"""Unknown names and duplicate names of pieces: suggestions for the former, the winner for the latter."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import SpecError, a, listed, nearest, unknown
from ..spec.unread import meant
from .registry import Origin, Registry, required_keys


def no_name(registry: Registry, kind: str, name: str, names: Iterable[str]) -> str:
    """Error text for a name outside `names`."""
    types = registry.type_names(kind)
    if name in types:
        lacking = listed(required_keys(registry.type(kind, name)))
        return f"{kind} {name!r} is a type that needs {lacking}; give a table with type = {name!r} and these"
    elsewhere = [other for other in registry.kinds() if other != kind and registry.has(other, name)]
    guess = nearest(name, names)
    if not elsewhere:
        if os.path.isfile(name):
            folder = os.path.dirname(name) or "."
            return f"no {kind} {name!r}: expected a name here; --plugin-dir {folder} loads the names of the files there"
        if "." in name and guess is None and (file := meant(Path(name), kind)):
            return f"no {kind} {name!r}, and no such file; did you mean {file!r}?"
        if guess is None and os.path.isfile(f"{name}.toml"):
            return f"no {kind} {name!r}; did you mean {name + '.toml'!r}?"
        others = [each for each in types if not registry.has(kind, each)]
        more = f"; as tables with type also {listed(others)}" if others and guess is None else ""
        return unknown(kind, name, names) + more
    hint = f"; did you mean {guess!r}?" if guess else ""
    return f"no {kind} {name!r}; there is {a(elsewhere[0])} of that name{hint}"


def wins(item: Any, origin: Origin, first: Any, first_origin: Origin, what: str) -> bool:
    """Whether a class or table replaces the first of the same name; SpecError if neither gives way."""
    if _overrides(item):
        return True
    if not _overrides(first):
        places = " and ".join(other.file or f"plugin {other.plugin!r}" for other in (first_origin, origin))
        advice = "Rename one, or set override = true in the one that should win."
        raise SpecError.at("", "", f"{what} is defined twice: {places}. {advice}")
    return False


def _overrides(item: Any) -> bool:
    return bool((vars(item) if isinstance(item, type) else item).get("override"))
