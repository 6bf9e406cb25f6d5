"""What was compiled from C (`setup.py`): the loops of `fast.c`, and the model of `kernel.c`, which `compiled.py` asks. What they
do not know, and all without them, is NumPy's.

`SPARSEMAP_NATIVE=0` in the environment leaves them out. Results are the same to the last bit.
"""

from __future__ import annotations

import logging
import os
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any

LOG = logging.getLogger(__name__)


def _state() -> str:
    """The checksum of the sources in C beside this file, as `setup.py` makes it; "" where there are none."""
    texts = sorted(Path(__file__).parent.glob("*.[ch]"))
    return f"{zlib.crc32(b''.join(file.read_bytes() for file in texts)):08x}" if texts else ""


def _loaded(name: str) -> Any:
    if os.environ.get("SPARSEMAP_NATIVE", "1") == "0":
        return None
    try:
        made = import_module(f"{__package__}.{name}")
    except ImportError:
        text = "without compiled '%s', which takes a C compiler when SparseMap is installed; NumPy is slower"
        LOG.info(text, name)
        return None
    state = _state()
    if state and getattr(made, "sources", None) != state:
        LOG.warning("compiled '%s' is of other sources than those beside it and is left out: install again", name)
        return None
    return made


fast: Any = _loaded("fast")
"""The module, or None."""
kernel: Any = _loaded("kernel")
"""The same."""
