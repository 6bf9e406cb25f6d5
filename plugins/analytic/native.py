"""What was compiled from C: the steps of the bound in `bounds.c`, the sums of `units.c`,
and the model of `kernel.c`, which `compiled.py` asks. What they do not know, and all without them, is NumPy's."""

from __future__ import annotations

from typing import Any

from sparsemap.native import loaded

bounds: Any = loaded(__package__, "bounds")
"""The module, or None."""
kernel: Any = loaded(__package__, "kernel")
units: Any = loaded(__package__, "units")
"""The same."""


def step(name: str, *given: Any) -> Any:
    """A step of the bound in C or, where that does not apply, in NumPy."""
    found = None if bounds is None else getattr(bounds, name)(*given)
    if found is not None:
        return found
    from . import bound_uncompiled

    return getattr(bound_uncompiled, name)(*given)
