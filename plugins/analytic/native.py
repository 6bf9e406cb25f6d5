"""What was compiled from C (`setup.py`): the loops of `fast.c`, and the model of `kernel.c`, which `compiled.py` asks. What they
do not know, and all without them, is NumPy's.

`SPARSEMAP_NATIVE=0` in the environment leaves them out. Results are the same to the last bit.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any


def _loaded(name: str) -> Any:
    try:
        return import_module(f"{__package__}.{name}") if os.environ.get("SPARSEMAP_NATIVE", "1") != "0" else None
    except ImportError:
        import logging

        logging.getLogger(__name__).info(
            "without compiled '%s', which takes a C compiler when SparseMap is installed; NumPy is slower", name
        )
        return None


fast: Any = _loaded("fast")
"""The module, or None."""
kernel: Any = _loaded("kernel")
"""The same."""
