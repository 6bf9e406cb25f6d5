"""What was compiled from C: the sums of `units.c`. What it does not know, and all without it, is NumPy's."""

from __future__ import annotations

from typing import Any

from sparsemap.native import loaded

units: Any = loaded(__package__, "units")
"""The module, or None."""
