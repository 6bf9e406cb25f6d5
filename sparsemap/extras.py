"""Packages of extras: imported on use, with install instructions where missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .errors import SearchError


def install(extra: str) -> str:
    """The command to install an extra: from the source folder of this SparseMap, or else by name."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path
    from urllib.parse import unquote, urlsplit

    try:
        source = json.loads(distribution("sparsemap").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        source = {}
    folder = Path(unquote(urlsplit(source.get("url", "")).path))
    if "dir_info" not in source or not folder.is_dir():
        return f"pip install 'sparsemap[{extra}]'"
    editable = "-e " if source["dir_info"].get("editable") else ""
    return f"pip install {editable}'{'.' if folder == Path.cwd() else folder}[{extra}]'"


def need(module: str, what: str, extra: str) -> Any:
    """A module of an extra; `SearchError` with the install command if the module or a package below is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = (error.name or module).partition(".")[0]
        text = f"{what} needs the package '{package}', which is not installed; try: {install(extra)}"
        raise SearchError(text) from error
