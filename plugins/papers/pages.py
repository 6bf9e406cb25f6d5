"""Pages of papers: a template of Markdown with tables and a figure, filled from rows.

A template `NAME.md` begins with front matter in TOML between lines of `+++`: `headline`, the printed lines, and `figure`
(`figures`). Below is Markdown with fields as in `str.format`, such as `{study.budget:,}`; a list of rows is a table. A
paragraph or an entry of a list goes over several lines; in the page it is one. Further lines:

    @include NAME                    the lines of another template
    @each ROWS by KEY, KEY: TEXT     TEXT for every group of rows, such as a line of a table
    @each ROWS:                      the lines up to `@end` for every row
    <<ROWS by KEY: TEXT>>            TEXT for every group, in a line: with commas, or as cells of a table

Within a group, ROWS and its columns are the group's: `{edp.geometric:number}` is the mean of a column, `{edp:number}` the
value of its first row, `{searcher[gamma].edp:times}` of the first row with this searcher."""

from __future__ import annotations

import math
import re
import string
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs

from sparsemap.csv_files import csv_text
from sparsemap.markdown import markdown_table
from sparsemap.plots import Figure, joined, save
from sparsemap.writing import write_text

from .commands import PAGES
from .figures import drawn
from .rows import FORMATS, Column, Rows, counted, scopes
from .runs import Runner

EACH = re.compile(r"@each ([^:]+):(?: (.*))?$")
INLINE = re.compile(r"<<([^:>]+): (.*?)>>")
CELLS = re.compile(r"(?<!\\)\|")
MISSING = "no figure was drawn: matplotlib, of the extra `plots`, is not installed"


@attrs.frozen
class Report:
    """A page on its way to files."""

    name: str
    headline: str
    """The outcome in a line or a few."""
    text: str
    """Markdown; the figure goes below the first heading."""
    rows: Sequence[Mapping[str, Any]]
    """The CSV."""
    draw: Callable[[], Figure]

    def write(self, folder: Path) -> list[Path]:
        """Writes NAME.md, NAME.csv, NAME.png and NAME.svg; each file whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        try:
            pictures = save(self.draw, folder, self.name)
        except ImportError:
            pictures = []
        picture = f"![{self.name}]({self.name}.png)\n\n" if pictures else f"({MISSING})\n\n"
        title, _, rest = self.text.partition("\n\n")
        write_text(folder / f"{self.name}.md", f"{title}\n\n{picture}{rest}")
        write_text(folder / f"{self.name}.csv", csv_text(self.rows))
        return [folder / f"{self.name}.md", folder / f"{self.name}.csv", *pictures]


def report_of(runner: Runner, name: str) -> Report:
    """The page of a name, after its study has run.

    Its module has a function `page` (or MODULE:FUNCTION) for the fields: `rows` are the CSV; `draw` may replace the figure
    of the front matter. The template lies beside the module."""
    path, _, function = PAGES[name]["module"].partition(":")
    made = getattr(import_module(path, __package__), function or "page")(runner, name)
    fields = {"name": name, **made}
    if "study" in fields:
        fields |= {"seeds": counted(len(fields["study"].seeds), "seed")}
    for key, rows in fields.items():
        fields[key] = Rows(rows) if isinstance(rows, list) and all(isinstance(row, dict) for row in rows) else rows
    about, lines = template(template_of(name))
    text = re.sub("\n{3,}", "\n\n", "\n".join(aligned(filled(lines, fields))).rstrip()) + "\n"
    headline = "\n".join(filled(about["headline"].strip().splitlines(), fields))
    draw = fields.get("draw") or partial(drawn, about["figure"], fields, fill)
    return Report(name, headline, text, fields["rows"], draw)


def template_of(name: str) -> Path:
    """The template of a page, beside its module."""
    module = PAGES[name]["module"].partition(":")[0]
    inside = module.lstrip(".")
    folder = Path(__file__).parents[len(module) - len(inside) - 1]
    return folder.joinpath(*inside.split(".")).with_name(f"{PAGES[name].get('template', name)}.md")


def template(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Front matter, and lines with paragraphs on a line each."""
    text = path.read_text("utf-8")
    _, head, text = text.split("+++\n", 2) if text.startswith("+++\n") else ("", "", text)
    lines: list[str] = []
    for line in joined(text.splitlines()):
        name = line.removeprefix("@include ")
        lines += [line] if name == line else template(path.with_name(f"{name}.md"))[1]
    return tomllib.loads(head), lines


class Fields(string.Formatter):
    """`str.format` with `FORMATS`, columns by their first value, and a dash for missing numbers
    (nothing for the format s)."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Column):
            value = value.first
        if isinstance(value, list):
            return markdown_table(value, format_spec or "<>").rstrip()
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return "" if format_spec == "s" else "-"
        return FORMATS[format_spec](value) if format_spec in FORMATS else format(value, format_spec)


def fill(text: str, fields: Mapping[str, Any]) -> str:
    return Fields().vformat(text, (), fields)


def spread(line: str, fields: Mapping[str, Any]) -> str:
    """A line with the texts of groups in it."""
    between = " | " if line.startswith("|") else ", "
    return INLINE.sub(lambda part: between.join(fill(part[2], scope) for scope in scopes(part[1], fields)), line)


def filled(lines: Sequence[str], fields: Mapping[str, Any]) -> Iterator[str]:
    """The lines with fields, and lines of groups repeated."""
    at = 0
    while at < len(lines):
        line, at = lines[at], at + 1
        if not (each := EACH.match(line)):
            yield from fill(spread(line, fields), fields).split("\n")
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
