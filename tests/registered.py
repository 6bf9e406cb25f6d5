"""The classes that built-in plugins register, for registries that tests fill by hand."""

from __future__ import annotations

from functools import cache
from typing import Any

from sparsemap.pieces.loading import load
from sparsemap.pieces.registry import Registry


@cache
def loaded() -> Registry:
    return load(env={})


def classes(plugin: str) -> list[Any]:
    """All classes of a built-in plugin."""
    registry = loaded()
    every = [(kind, name) for kind in registry.kinds() for name in registry.type_names(kind)]
    return [registry.type(kind, name) for kind, name in every if registry.type_origin(kind, name).plugin == plugin]
