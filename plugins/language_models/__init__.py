"""Transformers from published parameters: the kind `language-model`, and tokens per second by `sparsemap run`."""

from __future__ import annotations

from sparsemap import hookimpl


@hookimpl
def register_kinds():
    return {"language-model": "model:LanguageModel"}
