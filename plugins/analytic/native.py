"""The compiled loops of `fast.c`, if they were built (`setup.py`); what they do not know, and all without them, is NumPy's.

`SPARSEMAP_NATIVE=0` in the environment leaves them out. Results are the same to the last bit.
"""

from __future__ import annotations

import logging
import os
from typing import Any

logger = logging.getLogger(__name__)


def _loaded() -> Any:
    if os.environ.get("SPARSEMAP_NATIVE", "1") == "0":
        return None
    try:
        from . import fast  # type: ignore[attr-defined]
    except ImportError:
        logger.info("without compiled loops, which take a C compiler when SparseMap is installed; NumPy is slower")
        return None
    return fast


fast: Any = _loaded()
"""The module, or None."""
