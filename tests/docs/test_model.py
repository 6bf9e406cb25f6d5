"""docs/model.md: every section that sources and tests refer to is there, and so is every function and test it names."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from test_imports import ROOT
from test_walk import defined

TEXT = (ROOT / "docs/model.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^#{2,3} ([\d.]+?)\.? (.*)$", TEXT, re.M))
EXAMPLES = {f"12.{number}" for number in range(1, 11)}
"""Of section 12; told in `test_reference_model.py`."""
FILES = [path for folder in ("sparsemap", "plugins", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]
OF_THE_MODEL = ("plugins/analytic", "plugins/densities", "plugins/verify", "tests/reference_", "tests/plugins/analytic")
"""Where a number such as (7.1) is a section."""
NUMBER = r"1?\d\.\d{1,2}"


def words(path: Path) -> Iterator[tuple[int, str]]:
    """Comments and strings with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.start[0], token.string


def references(path: Path) -> Iterator[tuple[int, str]]:
    """Numbers of sections that a file refers to."""
    name = str(path.relative_to(ROOT))
    if not re.search(rf"[Ss]ections? \d|(?:\(|\"\"\"){NUMBER}", path.read_text("utf-8")):
        return  # reading its words takes longer
    for line, text in words(path):
        for first, second in re.findall(r"\b[Ss]ections? (\d+(?:\.\d+)?)(?: (?:and|to) (\d+(?:\.\d+)?))?", text):
            yield from ((line, number) for number in (first, second) if number)
        if name.startswith(OF_THE_MODEL):
            lists = re.findall(
                rf"\(({NUMBER}(?:(?:,| and) {NUMBER})*)\)|^\"\"\"({NUMBER}(?:(?:,| and) {NUMBER})*)\b", text
            )
            yield from ((line, number) for found in lists for number in re.findall(NUMBER, "".join(found)))


def test_sections_that_the_code_refers_to_are_there() -> None:
    found = [(path.relative_to(ROOT), line, number) for path in FILES for line, number in references(path)]
    assert len(found) > 40
    missing = [
        f"{path}:{line}: section {number}" for path, line, number in found if number not in {*SECTIONS, *EXAMPLES}
    ]
    assert not missing, f"docs/model.md has none of these: {missing}"


NAMED = re.findall(r"`([\w/.]+\.py): ([^`]+)`", TEXT)


def test_what_the_model_names_exists() -> None:
    assert len(NAMED) > 50
    for file in sorted({file for file, _ in NAMED}):
        source = (ROOT / file).read_text("utf-8")
        names = {name for other, names in NAMED if other == file for name in names.split(", ")}
        constants = {name for name in names if re.search(rf"^{name}\b.*=", source, re.M)}
        assert not names - defined(ROOT / file) - constants, file


def test_every_formula_says_where_it_is_and_what_checks_it() -> None:
    parts = re.split(r"^#{2,3} ([\d.]+?)\.? .*$", TEXT, flags=re.M)[1:]
    for number, body in zip(parts[::2], parts[1::2], strict=True):
        if number in ("4.6", "6", "7", "13"):  # not modelled, or told in their parts
            continue
        for label, what in (
            ("In code", r"plugins|sparsemap|tests/reference_model"),
            ("Tests", "tests"),
            ("With it", ""),
        ):
            assert re.search(rf"^- {label}: .*(?:{what})", body, re.M), f"section {number} has no '{label}'"


def test_symbols_have_their_names_in_the_code() -> None:
    rows = re.findall(r"^\| .*? \| .*? \| (`.*?) \| `(.*?)` \|$", TEXT, re.M)
    assert len(rows) > 10
    for names, file in rows:
        source = (ROOT / file).read_text("utf-8")
        for name in re.findall(r"`(?:\w+\.)?(\w+)`", names):
            assert re.search(rf"\b{name}\b", source), f"{file} has no '{name}'"
