"""Plugins outside SparseMap: packages in folders off the path, and digests of their contents."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import Mistake
from ..files import shown
from .loading import Loader, Package, is_spec, plugin_folders, tomls


def package_in(source: Path) -> Any:
    """Imports the package in a folder off the path, under a unique name, so two folders cannot get mixed up."""
    source = source.resolve()
    digest = hashlib.sha256(str(source).encode()).hexdigest()[:8]
    name = f"sparsemap_plugin_{re.sub(r'[^0-9a-zA-Z]', '_', source.parent.name)}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, source, submodule_search_locations=[str(source.parent)])
    if spec is None or spec.loader is None:
        raise ImportError(f"{source} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs, so that its own modules find it
    try:
        spec.loader.exec_module(module)
    except BaseException:
        for loaded in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
            del sys.modules[loaded]
        raise
    return module


def digest_of(module: Any, specs: Iterable[Path]) -> str:
    """A digest of the files of a plugin: the TOML files, and the modules of the package."""
    files = set(specs)
    source = Path(getattr(module, "__file__", None) or "")
    if source.name == "__init__.py":
        files |= {*source.parent.rglob("*.py"), *source.parent.rglob("*.toml")}
    elif source.is_file():
        files.add(source)
    digest = hashlib.sha256()
    for path in sorted(files):
        with suppress(OSError):
            digest.update(path.name.encode(errors="surrogatepass") + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def add_folder(loader: Loader, folder: Path) -> None:
    """Adds a folder: either a plugin itself, or a folder of plugins and loose TOML files."""
    if (folder / "__init__.py").exists():
        loader.add_folder(folder)
        return
    below = list(plugin_folders(folder)) if folder.is_dir() else []
    for plugin in below:
        loader.add_folder(plugin)
    if loose := [toml for toml in sorted(folder.glob("*.toml")) if is_spec(toml)]:
        loader.add(folder.resolve().name, shown(folder), "", loose)
    if not below and not loose:
        text = "no plugin in this folder; expected sub-folders with __init__.py or TOML files, or TOML files"
        if not folder.is_dir():
            text = "expected a folder of plugins" if folder.exists() else "no such plugin folder"
        loader.plugin_mistakes.append(Mistake(shown(folder), "", text))


def hooked_tomls(loader: Loader, package: Package, hook: Any) -> Iterator[Path]:
    """TOML files in the folders returned by `register_specs` of a plugin."""
    for folder in loader.called(package, "register_specs", hook, "folders"):
        if isinstance(folder, str | os.PathLike) and Path(folder).is_dir():
            yield from tomls(Path(folder))
        else:
            loader.wrong(package, f"register_specs: {folder!r} is not a folder")
