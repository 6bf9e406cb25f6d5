"""Verbs of plugins: by modules of built-in plugins, and by the hook `register_commands`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click

from ..pieces.installed import entry_points


def built_in_modules() -> Iterator[str]:
    """Modules `commands` of built-in plugins; plugins themselves take several times as long to load."""
    spec = find_spec("sparsemap_plugins")
    disabled = {name.strip() for name in os.environ.get("SPARSEMAP_DISABLE", "").split(",")}
    for folder in (spec and spec.submodule_search_locations) or ():
        plugins = sorted(file.parent.name for file in Path(folder).glob("*/commands.py"))
        yield from (f"sparsemap_plugins.{name}.commands" for name in plugins if name not in disabled)


def register_others(cli: click.Group) -> None:
    """Adds verbs of other plugins."""
    if os.environ.get("SPARSEMAP_PLUGIN_DIRS") or entry_points():
        from ..pieces.boundary import guarded
        from ..pieces.loading import load

        registry = load()
        if registry.hook is not None:
            with guarded("hook", "register_commands"):
                registry.hook.register_commands(cli=cli)
