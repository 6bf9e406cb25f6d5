"""The blocks of the documents run as they stand (see `doc_blocks`), and links lead somewhere."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from doc_blocks import Section, difference, run_section, sections

ROOT = Path(__file__).parents[2]
WHOLE = ("docs/from-others.md", "docs/from-timeloop.md", "docs/loop-nest.md", "docs/tutorial.md")
PAGES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "plugins").glob("*.md"))
DOCS = (
    "docs/chips.md",
    "docs/index.md",
    "docs/networks.md",
    "docs/language-models.md",
    "docs/optimisers.md",
    "docs/explain.md",
    "docs/pruning.md",
    "docs/reliability.md",
    "docs/report.md",
    "docs/robust.md",
    "docs/warm-start.md",
    "docs/weight-blocks.md",
    "docs/how-it-works.md",
    "docs/python.md",
    "docs/studies.md",
)
FILES = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", *DOCS, *WHOLE, *PAGES)
SLOW = (
    "chips.md: ", "how-it-works.md: What is proved", "language-models.md: Contexts and batches",
    "networks.md: A built-in network",
    "networks.md: From a file to designs", "networks.md: Tensors that stay on chip", "optimisers.md: Many searches at once",
    "pruning.md: Weights of yours", "robust.md: A search over a range", "studies.md: A cluster",
    "studies.md: Is it worth it?", "studies.md: Many searches: a study", "studies.md: Which chip?",
    "warm-start.md: Networks", "warm-start.md: One search",
)  # fmt: skip
"""Sections with seconds of searches; other tests try with smaller ones what they do."""
EVERY = [s for name in FILES for s in sections(ROOT / name, "# " if name in (*WHOLE, *PAGES) else "## ") if s.runs]
RUN = [*{tuple((block.language, block.text) for block in s.blocks): s for s in reversed(EVERY)}.values()][::-1]
"""Sections with blocks, each run once: the index opens with the README's result."""


def slow(section: Section) -> bool:
    return f"{section.file}: {section.title}" in SLOW


@pytest.mark.parametrize(
    "section",
    [pytest.param(section, marks=pytest.mark.slow if slow(section) else ()) for section in RUN],
    ids=lambda section: f"{section.file}: {section.title or 'opening'}",
)
def test_blocks_run_and_print_what_the_document_says(section: Section, tmp_path: Path) -> None:
    if any("sparsemap plot " in block.text for block in section.blocks):
        pytest.importorskip("matplotlib")
    text = "\n".join(block.text for block in section.blocks if block.language == "python")
    for module in ("dask", "joblib", "nevergrad", "optuna", "pymoo"):
        if re.search(rf"^(from|import) {module}\b", text, re.M):
            pytest.importorskip(module)
    if any("sparsemap report " in block.text for block in section.blocks):
        pytest.importorskip("matplotlib")
    run_section(section, tmp_path)


def test_sections_that_are_slow_are_there() -> None:
    assert sum(map(slow, RUN)) == len(SLOW)


def test_lines_are_short_enough_to_read() -> None:
    lines = [(name, number, line) for name in FILES for number, line in enumerate(text_of(name).splitlines(), 1)]
    long = [f"{name}:{number}" for name, number, line in lines if len(line) > 120 and not line.startswith("|")]
    assert not long, f"longer than 120 characters: {long}"


def test_links_lead_to_files_of_the_repository() -> None:
    links = [(name, link) for name in FILES for link in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text_of(name))]
    local = [(name, link) for name, link in links if not link.startswith("http")]
    missing = [f"{name}: {link}" for name, link in local if not ((ROOT / name).parent / link).exists()]
    assert local and not missing, missing


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_the_site_has_every_page() -> None:
    nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    files = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*")]
    pages = {str(path.with_suffix(".md")) for path in files if path.suffix in (".md", ".ipynb")}
    shown = set(re.findall(r"[\w/-]+\.md", nav))
    assert shown - pages == set()
    assert {page for page in pages - shown if not page.startswith("results/")} == set()


def test_a_line_of_dots_stands_for_any_lines_and_times_are_not_compared() -> None:
    assert not difference("a\n...\nd in 3 s\n", "a\nb\nc\nd in 4.5 s\n", loose=False)
    assert difference("a\nd\n", "a\nb\nd\n", loose=False)
    assert difference("a\nb\n", "a\n", loose=False)


def test_a_search_may_find_a_better_design_but_no_worse_one() -> None:
    text = "mm3 on cloud\nEDP  1.00e+12\n  for m1 in [0, 4)\n"
    assert not difference(text, "mm3 on cloud\nEDP  0.90e+12\nenergy  1 J\n", loose=True)
    assert "worse" in difference(text, "mm3 on cloud\nEDP  1.10e+12\n", loose=True)
    assert "not printed" in difference(text, "mm3 on cloud\n", loose=True)


def test_the_plugin_that_is_published_is_found_once_it_is_installed(tmp_path: Path) -> None:
    """Without installing it: the metadata that pip would write stands beside the package."""
    page = sections(ROOT / "docs" / "plugins" / "README.md")
    run_section(next(section for section in page if "`register_specs`" in section.title), tmp_path)
    folder = tmp_path / "sparsemap-blocked"
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    info = folder / f"sparsemap_blocked-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    entries = [f"{name} = {module}" for name, module in project["entry-points"]["sparsemap"].items()]
    (info / "entry_points.txt").write_text("\n".join(["[sparsemap]", *entries, ""]))
    env = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "sparsemap"]
    printed = subprocess.run([*command, "plugins"], env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.search(r"^blocked +1\.0 +register_specs", printed.stdout, re.M)
    subprocess.run([*command, "list", "format", "bitmask-of-16"], env=env, cwd=tmp_path, check=True)


@pytest.mark.slow
def test_the_page_prints_the_agreement_with_timeloop_as_it_is() -> None:
    blocks = [block for section in sections(ROOT / "docs" / "agreement.md") for block in section.blocks]
    block = next(block for block in blocks if "conformance/check.py" in block.text)
    cases = sorted(str(path) for path in (ROOT / "tests" / "conformance").glob("cases-*.jsonl"))
    command = [sys.executable, "tests/conformance/check.py", *cases]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    expected, found = (re.sub(r" *\b\d\.\de-\d\d$", " <tiny>", text, flags=re.M) for text in (block.output, printed))
    assert not difference(expected, found, loose=False), printed
