"""Packages of the extra `baselines`: imported when a search starts, so that nobody else needs or waits for them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sparsemap.errors import SearchError, install


def need(module: str, what: str) -> Any:
    """The module; `SearchError` with the line to type where it, or a package that it needs, is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = (error.name or module).partition(".")[0]
        text = f"{what} needs the package '{package}', which is not installed; try: {install('baselines')}"
        raise SearchError(text) from error
