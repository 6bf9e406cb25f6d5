"""Importing this makes tests quick, and changes nothing that they see.

`tomllib` parses each text once: a thousand tests read the same hundreds of specs. The built-in plugins are looked through
once, and whoever asks for them alone has a registry of their own with what was found. Nothing waits for the disk, since no
test takes the power from the machine. What is there before the first test is never looked through for garbage.
"""

import gc
import os
import pickle
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import sparsemap_plugins
import sparsemap_specs

from sparsemap.pieces import loading
from sparsemap.pieces.registry import Registry

_parse = tomllib.loads
load_anew = loading.load


@lru_cache(4096)
def _pickled(text: str) -> bytes:
    return pickle.dumps(_parse(text))


def _loads(text: str, **options: Any) -> dict[str, Any]:
    return _parse(text, **options) if options else pickle.loads(_pickled(text))


@lru_cache(1)
def _builtin(*folders: str) -> Registry:
    return load_anew(env={})


def _loaded(
    plugin_dirs: Any = (), specs: Any = (), env: Mapping[str, str] = os.environ, *, builtin: bool = True
) -> Registry:
    plugin_dirs, specs = list(plugin_dirs), list(specs)
    told = {loading.DIRS_VARIABLE, loading.DISABLE_VARIABLE} & {*env}
    if plugin_dirs or specs or told or not builtin or loading.entry_points():
        return load_anew(plugin_dirs, specs, env, builtin=builtin)
    known, registry = vars(_builtin(*sparsemap_plugins.__path__, *sparsemap_specs.__path__)), Registry()
    vars(registry).update(known, _default_types=dict(known["_default_types"]), _pieces={}, _read={})
    for table in ("_types", "_specs"):
        vars(registry)[table] = {kind: dict(named) for kind, named in known[table].items()}
    return registry


tomllib.loads = _loads
loading.load = _loaded
os.fsync = lambda file: None


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 100)
