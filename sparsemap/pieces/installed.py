"""Plugins of installed packages: entry points of the group `sparsemap`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from .hookspecs import PROJECT

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

METADATA = ("dist-info", "egg-info")


def entry_points() -> list[EntryPoint]:
    """Those of our group. `importlib.metadata` takes longer to import than all verbs: only where there may be any."""
    if not any(map(_may_announce, sys.path)) and not any(_finds_packages(finder) for finder in sys.meta_path):
        return []
    from importlib import metadata

    return list(metadata.entry_points(group=PROJECT))


def _finds_packages(finder: object) -> bool:
    """Whether a finder knows of packages that do not lie in folders of the path."""
    return finder is not PathFinder and hasattr(finder, "find_distributions")


def _may_announce(place: str) -> bool:
    """Whether an entry of the path is no folder, or one with a package that names our group."""
    try:
        return any(f"[{PROJECT}]".encode() in file.read_bytes() for file in _entry_files(place or os.curdir))
    except OSError:
        return os.path.exists(place)


def _entry_files(folder: str) -> Iterator[Path]:
    for entry in os.scandir(folder):
        if entry.name.lower().endswith(METADATA) and (file := Path(entry.path, "entry_points.txt")).exists():
            yield file
