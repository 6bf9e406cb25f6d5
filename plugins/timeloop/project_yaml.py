"""The YAML files of a Timeloop project: tags, includes, and several files in one table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from sparsemap.errors import SpecError, shortened
from sparsemap.files import shown
from sparsemap.spec import yaml_tables
from sparsemap.spec.yaml_tables import Tags, YamlSource, YamlTable, error, text_of

NAMES = ("Component", "Container", "Hierarchical", "Parallel", "Pipelined", "Nothing", "ArithmeticComponent")
TAGS = Tags("Timeloop", NAMES, "architecture")
INCLUDE = re.compile(r"^\{\{ *include_text\( *(['\"])(.+?)\1 *\) *\}\} *$", re.M)
"""The template of public layer files for shared parts."""


def read(path: Path) -> YamlTable:
    """The mapping in a file, with its includes; `SpecError` for invalid YAML or a foreign tag."""
    return yaml_tables.read(path, TAGS, included)


def included(path: Path, text: str) -> str:
    """The text with its includes resolved: YAML files below the parent of the problem's folder."""

    def resolved(match: re.Match[str]) -> str:
        beside = (path.parent / match[2]).resolve()
        above = path.parent.resolve().parent
        if above not in beside.parents or beside.suffix not in (".yaml", ".yml"):
            text = f"includes {shortened(match[2])}, which is no YAML file below {shown(above)}"
            raise SpecError.at(shown(path), "", text)
        return text_of(beside)

    text = INCLUDE.sub(resolved, text)
    if "{{" in text or "{%" in text:
        line = text[: text.find("{%" if "{%" in text else "{{")].count("\n") + 1
        message = f"line {line}: is a template; only {{{{include_text('FILE')}}}} on a line of its own is resolved"
        raise SpecError.at(shown(path), "", message)
    return text


def merged(paths: list[Path]) -> YamlTable:
    """The tables of all files in one; a key in two files must have equal values, or be a list."""
    whole = YamlTable(YamlSource())
    for path in paths:
        for key, value in (table := read(path)).items():
            if isinstance(whole.get(key), list) and isinstance(value, list):
                whole[key] = whole[key] + value
            elif key in whole and isinstance(whole[key], Mapping) and isinstance(value, Mapping) and key != "problem":
                whole[key].update({name: item for name, item in value.items() if name not in whole[key]})
                whole[key].lines.update(table[key].lines)
            elif key in whole and whole[key] != value and key != "version":
                text = f"stands in another file too; name the files of one project, with one '{key}'"
                raise error(table.at(key), text)
            else:
                whole[key] = value
    return whole
