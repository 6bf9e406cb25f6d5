"""Plugins of installed packages: entry points of the group `sparsemap`."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from .hookspecs import PROJECT

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

METADATA = ("dist-info", "egg-info")


def entry_points() -> list[EntryPoint]:
    """Entry points of the group. `importlib.metadata` takes longer to import than all verbs, so only if any may exist."""
    # finders that know of packages which do not lie in folders of the path
    others = (finder for finder in sys.meta_path if finder is not PathFinder and hasattr(finder, "find_distributions"))
    if not any(map(_may_announce, sys.path)) and not any(others):
        return []
    from importlib import metadata

    return list(metadata.entry_points(group=PROJECT))


def _may_announce(place: str) -> bool:
    """Whether an entry of the path is no folder, or a folder with a package naming the group."""
    try:
        packages = [entry.path for entry in os.scandir(place or os.curdir) if entry.name.lower().endswith(METADATA)]
        files = [file for package in packages if (file := Path(package, "entry_points.txt")).exists()]
        return any(f"[{PROJECT}]".encode() in file.read_bytes() for file in files)
    except OSError:
        return os.path.exists(place)
