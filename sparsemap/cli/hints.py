"""The right command for the name of a piece of another kind."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from ..errors import SpecError
from ..pieces.registry import is_path

if TYPE_CHECKING:
    from ..pieces.registry import Registry

COMMANDS = {
    "workload": "sparsemap search {} {}", "network": "sparsemap run {} --hardware {}", "study": "sparsemap run {}",
    "design": "sparsemap show {}",
}  # fmt: skip
"""Commands by kind, for a name and a hardware."""


def kind_of(registry: Registry, name: str) -> str:
    """The kind of a file, or the first of `COMMANDS` that has a piece of the name; empty for neither."""
    if is_path(name):
        from ..spec import toml_io

        with suppress(SpecError, OSError):
            return str(toml_io.read(name).get("kind", ""))
        return ""
    return next((kind for kind in COMMANDS if kind in registry.kinds() and registry.has(kind, name)), "")


def check_kind(registry: Registry, name: str, *kinds: str, hardware: str = "HARDWARE") -> None:
    """A usage error with the right command unless a name is of one of the kinds, or of none."""
    if not is_path(name) and any(kind in registry.kinds() and registry.has(kind, name) for kind in kinds):
        return
    kind = kind_of(registry, name)
    if kind in COMMANDS and kind not in kinds:
        raise click.UsageError(f"{name} is a {kind}: {COMMANDS[kind].format(name, hardware)}")
