"""Writes what commands print into the documents: `python tests/docs/rewrite.py docs/tutorial.md ...`, default: all pages.

A line `...` stays: the part before it ends, and the part after it begins, with a line like that of the document. Parts
that cannot be found again are named and left as they are."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # as pytest does
import doc_blocks
import test_docs


def like(line: str) -> str:
    """A line without numbers and drawn lines."""
    return re.sub(r"[\d.,]+|─+|\s+", " ", line).strip()


def renewed(old: str, printed: str) -> str:
    """The printed lines in place of the old ones; ValueError where a part cannot be found."""
    lines, found, at = [line.rstrip() for line in printed.splitlines()], list[str](), 0
    parts = re.split(r"^([ ]*\.\.\.)\n", old, flags=re.M)
    for i, part in enumerate(parts):
        if i % 2:
            found.append(part)
            continue
        own = part.splitlines()
        if not own:
            continue
        heads = [n for n in range(at, len(lines)) if i == 0 or like(lines[n]) == like(own[0])]
        if not heads:
            raise ValueError(own[0])
        last = [n for n in range(heads[0], len(lines)) if i == len(parts) - 1 or like(lines[n]) == like(own[-1])]
        if not last:
            raise ValueError(own[-1])
        at = (last[-1] if i == len(parts) - 1 else last[0]) + 1
        found += lines[heads[0] : at]
    return "\n".join(found).strip("\n") + "\n"


def rewrite(file: Path, section: doc_blocks.Section) -> None:
    changed = dict[str, str]()

    def compare(old: str, printed: str, loose: bool) -> str:
        if doc_blocks._unlike(doc_blocks._lines(old), doc_blocks._lines(printed), gaps=False):
            try:
                changed[old] = renewed(old, printed)
            except ValueError as error:
                print(f"{file}: {section.title}: no line like {error}")
        return ""

    original, doc_blocks.difference = doc_blocks.difference, compare
    try:
        with tempfile.TemporaryDirectory() as folder:
            doc_blocks.run_section(section, Path(folder))
    except AssertionError as error:
        print(str(error)[:300])
    finally:
        doc_blocks.difference = original
    text = file.read_text("utf-8")
    for old, new in changed.items():
        print(f"{file}: {section.title}")
        text = text.replace(old, new)
    file.write_text(text, "utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:] or test_docs.FILES:
        path = test_docs.ROOT / name
        heading = "# " if name in (*test_docs.WHOLE, *test_docs.PAGES) else "## "
        for each in doc_blocks.sections(path, heading):
            if each.runs:
                rewrite(path, each)
