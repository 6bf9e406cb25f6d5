"""Text of a YAML file for other programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


class Tagged(dict[str, Any]):
    """A table under a tag, such as `!Memory`."""

    def __init__(self, tag: str, **values: Any) -> None:
        super().__init__(values)
        self.tag = tag


def yaml_text(table: Mapping[str, Any] | Sequence[Any], comment: str = "") -> str:
    """YAML text of a table, or of a list, of tables, lists, text, numbers and booleans, under a comment."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Block style for tables, a single line for lists without tables, no aliases."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
            return super().increase_indent(flow, False)

        def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> Any:
            return super().represent_sequence(tag, sequence, flow_style=not _has_table(sequence))

        def represent_float(self, data: float) -> Any:
            if not math.isfinite(data):
                raise ValueError(f"{data} is not a number that YAML files of other programs hold")
            return super().represent_float(data)

        def represent_tagged(self, data: Tagged) -> Any:
            return self.represent_mapping(f"!{data.tag}", data)

    Dumper.add_representer(float, Dumper.represent_float)
    Dumper.add_representer(Tagged, Dumper.represent_tagged)
    how: Any = {"default_flow_style": False, "sort_keys": False, "allow_unicode": True, "width": math.inf}
    text = yaml.dump(table, Dumper=Dumper, **how)
    return "".join(f"{f'# {line}'.rstrip()}\n" for line in comment.splitlines()) + text


def _has_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, list | tuple) and any(map(_has_table, value)))
