"""Importing this makes tests quick, and changes nothing that they see.

`tomllib` parses each text once: a thousand tests read the same hundreds of specs. Nothing waits for the disk, since no
test takes the power from the machine. What is there before the first test is never looked through for garbage.
"""

import gc
import os
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
os.fsync = lambda file: None


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 100)
