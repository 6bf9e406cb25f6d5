"""Pieces in text form: `type:text`, or `text` for the default type of their kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import Mistake, SpecError, unknown

if TYPE_CHECKING:
    from .registry import Registry


def table_of(registry: Registry, kind: str, text: str, default_type: str) -> Mapping[str, Any] | None:
    """Spec table of a text form; None if the text is not a text form."""
    types = registry.type_names(kind)
    start, colon, rest = text.partition(":")
    type_name, own = (start, rest) if colon else (default_type, text)
    if colon and type_name not in types:
        raise SpecError.at("", "", unknown(f"type of {kind}", type_name, types))
    table = registry.type(kind, type_name).from_text(own) if type_name in types else None
    return None if table is None else {"name": text, "type": type_name, **table}


@contextmanager
def of_text(text: str) -> Iterator[None]:
    """Reports mistakes inside the `with` block as mistakes of a text: the user wrote no keys."""
    try:
        yield
    except SpecError as error:
        raise SpecError(item if item.file else _within(item, text) for item in error.mistakes) from error


def _within(item: Mistake, text: str) -> Mistake:
    return Mistake("", "", item.message if item.message.startswith(repr(text)) else f"{text!r}: {item.message}")
