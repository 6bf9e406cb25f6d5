"""YAML as Timeloop has it: read from strangers, and written.

Timeloop concatenates its input files, so each is a block mapping without document marks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

NODES = 20_000
"""The most values in a file, those that aliases repeat counted as often as they stand."""
DEPTH = 50


def loads(text: str) -> Any:
    """What a text holds, as plain data; ValueError if it is not YAML, or more than a problem can be."""
    import yaml

    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        check_size(node)
        return None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        raise ValueError(f"is not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError) as error:  # of numbers, dates and tags
        raise ValueError(f"is not YAML: {error}") from None


def check_size(node: Any) -> None:
    """Refuses aliases that lead back to themselves or multiply, before anything is made of them."""
    level, count = [node], 0
    for _ in range(DEPTH):
        count += len(level)
        if count > NODES:
            raise ValueError(f"holds more than {NODES:,} values")
        level = [
            part
            for parent in level
            if parent is not None and not isinstance(parent.value, str)
            for child in parent.value
            for part in (child if isinstance(child, tuple) else (child,))
        ]
        if not level:
            return
    raise ValueError(f"is nested more than {DEPTH} deep")


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
