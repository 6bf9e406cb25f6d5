"""BibTeX of the software and of the papers behind its parts, from `CITATION.cff`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

FILE = "CITATION.cff"
KINDS = {"software": "software", "article": "article"}
"""BibTeX's entry types by CFF's."""


def citation() -> dict[str, Any]:
    """The table of `CITATION.cff`: the file of the clone, or the copy beside the licence of an installation."""
    import yaml

    clone = Path(__file__).parents[2] / FILE
    text = clone.read_text("utf-8") if clone.is_file() else distribution("sparsemap").read_text(f"licenses/{FILE}")
    table: dict[str, Any] = yaml.safe_load(text or "{}")
    return table


def entries(table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The software, then its references."""
    return [table, *table["references"]]


def bibtex(table: Mapping[str, Any]) -> str:
    """BibTeX entries of a CFF table, with a comment on the use of each paper."""
    return "\n\n".join(map(_entry, entries(table)))


def _entry(one: Mapping[str, Any]) -> str:
    people = one["authors"]
    fields = {"title": "{" + one["title"] + "}", "author": " and ".join(map(_person, people)), "year": one.get("year")}
    fields |= {"note": ", ".join(found["value"] for found in one.get("identifiers", ()))}
    fields |= {key: one.get(key) for key in ("version", "license")}
    key = "".join(filter(str.isalnum, people[0].get("family-names", one["title"]))).lower()
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    head = [f"% {one['notes']}"] if "notes" in one else []
    return "\n".join([*head, f"@{KINDS[one['type']]}{{{key},", *lines, "}"])


def _person(person: Mapping[str, str]) -> str:
    return f"{person['family-names']}, {person['given-names']}" if "family-names" in person else f"{{{person['name']}}}"
