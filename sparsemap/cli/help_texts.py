"""Parts of help pages."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping


def names_with_texts(texts: Mapping[str, str], indent: str) -> str:
    """A line per name for the end of a help page, with its text beside it; wrapped to 78 columns."""
    lines = [f"{name:16} {text}" for name, text in texts.items()]
    wrapped = [textwrap.wrap(line, 76 - len(indent), subsequent_indent=" " * 17) for line in lines]
    return "\n".join(indent + line for found in wrapped for line in found)
