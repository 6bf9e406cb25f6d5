"""YAML as it is written for Timeloop.

Timeloop concatenates its input files, so each is a block mapping without document marks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def dumps(table: Mapping[str, Any], comment: str = "") -> str:
    """The text of a table of tables, lists, text, numbers and booleans, under a comment."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Tables in blocks, lists without a table in one line; nothing is an alias."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
            return super().increase_indent(flow, False)

        def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> Any:
            return super().represent_sequence(tag, sequence, flow_style=not _has_table(sequence))

        def represent_float(self, data: float) -> Any:
            if not math.isfinite(data):
                raise ValueError(f"{data} is not a number that Timeloop reads")
            return super().represent_float(data)

    Dumper.add_representer(float, Dumper.represent_float)
    text = yaml.dump(
        table, Dumper=Dumper, default_flow_style=False, sort_keys=False, allow_unicode=True, width=math.inf
    )
    return "".join(f"{f'# {line}'.rstrip()}\n" for line in comment.splitlines()) + text


def _has_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, list | tuple) and any(map(_has_table, value)))
