"""The model's inner loops as they are compiled, and as CPython runs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sparsemap_plugins.analytic import evaluation, facts, inner

from sparsemap.inner import room


def interpreted() -> Any:
    """The functions of the modules, which CPython runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARSEMAP_COMPILED", "0")
        return room(inner.__name__)


COMPILED = inner.functions if hasattr(inner.functions, "SOURCES") else None
"""The compiled unit; None: there is none, or it is not asked for."""
NEEDS_COMPILED = pytest.mark.skipif(COMPILED is None, reason="the model is not compiled")
TEXTS = {"compiled": COMPILED, "interpreted": interpreted()}


@contextmanager
def run_by(text: str) -> Iterator[None]:
    """Designs of problems that are new meanwhile go through this text."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (evaluation, facts):
            patch.setattr(module, "functions", TEXTS[text])
        yield
