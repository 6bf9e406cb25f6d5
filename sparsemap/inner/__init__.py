"""Inner loops: typed scalar Python, a single text for CPython to run unchanged and for the build to compile with
Cython.

The modules of a folder named `inner` form a unit (`merging.py` merges the modules, `setup.py` compiles the result).
`room` chooses between the unit and the modules; both give the same numbers to the last bit. `SPARSEMAP_COMPILED=0` in
the environment chooses the modules, for a debugger, a coverage run or a machine without a compiler."""

from __future__ import annotations

import logging
import os
import zlib
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..errors import Mistake, PluginError

LOG = logging.getLogger(__name__)
HERE = Path(__file__).parent
SHARED = [HERE / f"{name}.py" for name in ("count_programs", "fiber_codes", "run_tokens", "numbers")]
"""Modules with functions for other units, each before its imports."""


def room(package: str) -> Any:
    """Public functions of all modules of a folder `inner`; PluginError for a unit compiled from other sources."""
    folder = Path(str(import_module(package).__file__)).parent
    if os.environ.get("SPARSEMAP_COMPILED", "1") != "0":
        try:
            unit = import_module(f"{package}.unit")
        except ImportError:
            _explain()
        else:
            if state(folder) == unit.SOURCES:
                return unit
            text = "is compiled from other sources; compile again with `pip install -e .`, or set SPARSEMAP_COMPILED=0"
            raise PluginError([Mistake(str(unit.__file__), "", text)])
    from .merging import in_order

    own = [import_module(f"{package}.{part}") for part in in_order(parts_of(folder))]
    return SimpleNamespace(**{name: getattr(part, name) for part in own for name in getattr(part, "__all__", ())})


@cache
def _explain() -> None:
    """Warns once per process about slow inner loops."""
    LOG.warning(
        "inner loops run as plain Python, some twenty times slower: get a C compiler, then install SparseMap again"
    )


def parts_of(folder: Path) -> list[Path]:
    """Modules of a folder by name; for this folder, the shared modules."""
    if folder == HERE:
        return SHARED
    return sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")


def shared_by(folder: Path) -> list[Path]:
    """Shared modules used by the modules of another folder, each after its imports; always includes `numbers.py`."""
    if folder == HERE:
        return []
    texts, found = "".join(path.read_text("utf-8") for path in parts_of(folder)), list[Path]()
    for path in SHARED:
        if path.stem == "numbers" or f".{path.stem} import" in texts:
            texts += path.read_text("utf-8")
            found.insert(0, path)
    return found


def state(folder: Path) -> str:
    """Checksum of all sources of a unit of this folder."""
    own = (HERE / name for name in ("merging.py", "primitives.py", "types.py"))
    texts = [*parts_of(folder), *shared_by(folder), *own]
    return f"{zlib.crc32(b''.join(path.read_bytes() for path in texts)):08x}"
