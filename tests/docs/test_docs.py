"""The blocks of README, CONTRIBUTING and ARCHITECTURE run as they stand (see `doc_blocks`)."""

import re
from pathlib import Path

import pytest
from doc_blocks import Section, difference, run_section, sections

ROOT = Path(__file__).parents[2]
FILES = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")
RUN = [section for name in FILES for section in sections(ROOT / name) if section.runs]


@pytest.mark.parametrize("section", RUN, ids=lambda section: f"{section.file}: {section.title or 'opening'}")
def test_blocks_run_and_print_what_the_document_says(section: Section, tmp_path: Path) -> None:
    run_section(section, tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_lines_are_short_enough_to_read(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    long = [number for number, line in enumerate(text.splitlines(), 1) if len(line) > 120 and not line.startswith("|")]
    assert not long, f"{name}: longer than 120 characters: lines {long}"


@pytest.mark.parametrize("name", FILES)
def test_links_lead_to_files_of_the_repository(name: str) -> None:
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", (ROOT / name).read_text("utf-8"))
    missing = [link for link in links if not link.startswith("http") and not (ROOT / link).exists()]
    assert not missing, f"{name}: {missing}"


def test_a_line_of_dots_stands_for_any_lines_and_times_are_not_compared() -> None:
    assert not difference("a\n...\nd in 3 s\n", "a\nb\nc\nd in 4.5 s\n", loose=False)
    assert difference("a\nd\n", "a\nb\nd\n", loose=False)
    assert difference("a\nb\n", "a\n", loose=False)


def test_a_search_may_find_a_better_design_but_no_worse_one() -> None:
    text = "mm3 on cloud\nEDP  1.00e+12\n  for m1 in [0, 4)\n"
    assert not difference(text, "mm3 on cloud\nEDP  0.90e+12\nenergy  1 J\n", loose=True)
    assert "worse" in difference(text, "mm3 on cloud\nEDP  1.10e+12\n", loose=True)
    assert "not printed" in difference(text, "mm3 on cloud\n", loose=True)
