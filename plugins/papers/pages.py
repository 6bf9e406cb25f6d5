"""Pages of papers: a template of Markdown with tables and a figure, filled from rows.

A template `NAME.md` begins with front matter in TOML between lines of `+++`: `headline`, the printed lines, and `figure`
(`figures`). Below is Markdown with fields as in `str.format`, such as `{study.budget:,}`; a list of rows is a table. A
paragraph or an entry of a list goes over several lines; in the page it is one. Further lines:

    @include NAME                    the lines of another template
    @each ROWS by KEY, KEY: TEXT     TEXT for every group of rows, such as a line of a table
    @each ROWS:                      the lines up to `@end` for every row

Within a group, ROWS and its columns are the group's: `{edp.geometric:number}` is the mean of a column, `{edp:number}` the
value of its first row, `{searcher[gamma].edp:times}` of the first row with this searcher."""

from __future__ import annotations

import math
import re
import string
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from sparsemap.markdown import markdown_table
from sparsemap.plots import Report

from .commands import PAGES
from .figures import drawn
from .rows import FORMATS, Column, Rows, counted, scopes
from .runs import Runner

EACH = re.compile(r"@each ([^:]+):(?: (.*))?$")
WHOLE = re.compile(r"$|#|\||@|\{\w+(:[<>]*)?\}$")
"""Complete lines: empty lines, headings, tables, further lines, and fields alone."""
OWN = re.compile(rf"{WHOLE.pattern}|- ")
"""Lines that begin anew: complete lines, and entries of lists."""
CELLS = re.compile(r"(?<!\\)\|")


def report_of(runner: Runner, name: str) -> Report:
    """The page of a name, after its study has run.

    Its module has a function `page` (or MODULE:FUNCTION) for the fields: `rows` are the CSV; `draw` may replace the figure
    of the front matter. The template lies beside the module."""
    path, _, function = PAGES[name]["module"].partition(":")
    module = import_module(path, __package__)
    if hasattr(module, "report"):
        return module.report(runner, name)
    fields = {"name": name, **getattr(module, function or "page")(runner, name)}
    if "study" in fields:
        fields |= {"seeds": counted(len(fields["study"].seeds), "seed")}
    fields = {
        key: Rows(x) if isinstance(x, list) and all(isinstance(y, dict) for y in x) else x for key, x in fields.items()
    }
    about, lines = template(Path(str(module.__file__)).with_name(f"{PAGES[name].get('template', name)}.md"))
    text = re.sub("\n{3,}", "\n\n", "\n".join(aligned(filled(lines, fields))).rstrip()) + "\n"
    headline = "\n".join(filled(about["headline"].strip().splitlines(), fields))
    return Report(
        name, headline, text, fields["rows"], fields.get("draw") or partial(drawn, about["figure"], fields, fill)
    )


def template(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Front matter, and lines with paragraphs on a line each."""
    text = path.read_text("utf-8")
    _, head, text = text.split("+++\n", 2) if text.startswith("+++\n") else ("", "", text)
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("@include "):
            lines += template(path.with_name(f"{line.removeprefix('@include ')}.md"))[1]
        elif lines and not OWN.match(line) and not WHOLE.match(lines[-1]):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    return tomllib.loads(head), lines


class Fields(string.Formatter):
    """`str.format` with `FORMATS`, columns by their first value, and a dash for missing numbers."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Column):
            value = value.first
        if isinstance(value, list):
            return markdown_table(value, format_spec or "<>").rstrip()
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return "-"
        return FORMATS[format_spec](value) if format_spec in FORMATS else format(value, format_spec)


def fill(text: str, fields: Mapping[str, Any]) -> str:
    return Fields().vformat(text, (), fields)


def filled(lines: Sequence[str], fields: Mapping[str, Any]) -> Iterator[str]:
    """The lines with fields, and lines of groups repeated."""
    at = 0
    while at < len(lines):
        line, at = lines[at], at + 1
        if not (each := EACH.match(line)):
            yield from fill(line, fields).split("\n")
            continue
        body = [each[2]] if each[2] else lines[at : at + lines[at:].index("@end")]
        at += 0 if each[2] else len(body) + 1
        for scope in scopes(each[1], fields):
            yield from filled(body, scope)


def aligned(lines: Iterator[str]) -> Iterator[str]:
    """The lines with columns of tables of one width, aligned by the rule below the head."""
    table: list[list[str]] = []
    for line in [*lines, ""]:
        if line.startswith("|"):
            cells = [cell.strip().replace("\\|", "|") for cell in CELLS.split(line)[1:-1]]
            table.append(cells)
            continue
        if table:
            head, rule, *rows = table
            yield markdown_table([head, *rows], "".join("<>"[mark.endswith(":")] for mark in rule)).rstrip()
            table = []
        yield line
