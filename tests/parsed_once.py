"""Importing this makes `tomllib` parse each text once: a thousand tests read the same hundreds of specs."""

import pickle
import tomllib
from functools import lru_cache
from typing import Any

_parse = tomllib.loads


@lru_cache(4096)
def _pickled(text: str) -> bytes:
    return pickle.dumps(_parse(text))


def _loads(text: str, **options: Any) -> dict[str, Any]:
    return _parse(text, **options) if options else pickle.loads(_pickled(text))


tomllib.loads = _loads
