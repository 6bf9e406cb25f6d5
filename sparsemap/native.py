"""Modules compiled from C beside the modules of a plugin (`setup.py`): loops for which NumPy needs many calls.

`SPARSEMAP_COMPILED=0` in the environment leaves them out. Results are the same to the last bit.
"""

from __future__ import annotations

import logging
import os
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any

LOG = logging.getLogger(__name__)


def state(folder: Path) -> str:
    """The checksum of the sources in C of a folder and the headers here, as `setup.py` makes it; "" where there are none."""
    texts = sorted(folder.glob("*.[ch]"))
    every = [*texts, *sorted(Path(__file__).parent.glob("*.h"))] if texts else []
    return f"{zlib.crc32(b''.join(file.read_bytes() for file in every)):08x}" if every else ""


def loaded(package: str, name: str) -> Any:
    """A compiled module of a package; None: what it does is NumPy's."""
    if os.environ.get("SPARSEMAP_COMPILED", "1") == "0":
        return None
    try:
        made = import_module(f"{package}.{name}")
    except ImportError:
        text = "without compiled '%s', which takes a C compiler when SparseMap is installed; NumPy is slower"
        LOG.info(text, name)
        return None
    found = state(Path(str(made.__file__)).parent)
    if found and getattr(made, "sources", None) != found:
        LOG.warning("compiled '%s' is of other sources than those beside it and is left out: install again", name)
        return None
    return made
