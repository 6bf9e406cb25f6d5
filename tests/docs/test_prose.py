"""Numbers in the prose of the first pages are those of blocks that run or of result pages; the pages stay short."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BEGIN = ("index", "tutorial", "loop-nest", "how-it-works", "explain", "report")
"""What a beginner reads."""
PAGES = (
    "README.md",
    *(f"docs/{name}.md" for name in (*BEGIN, "studies", "optimisers", "python", "chips", "reliability", "contracts")),
    *(
        str(path.relative_to(ROOT))
        for path in (ROOT / "docs" / "plugins").glob("*.md")
        if path.stem in ("README", "format")
    ),
)
GENERATED = ("reference.md",)
"""Written by a command; so are all results but their opening page."""
NUMBER = re.compile(
    r"(?<![\w.,/-])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)|(?<![\w.,/-])\d+\.\d+(?:e\+?\d+)?(?=x\b|\s)|(?<![\w.,])\d+(?= %)"
)
"""Numbers that tell a result: with thousands, with a fraction, in per cent."""
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.M | re.S)


def text_of(name):
    return (ROOT / name).read_text("utf-8")


def linked(name):
    """The page, and the pages that it links to."""
    found = (((ROOT / name).parent / link).resolve() for link in re.findall(r"\]\(([^)#]+\.md)", text_of(name)))
    return [name, *(str(path.relative_to(ROOT)) for path in found if path.exists())]


@pytest.mark.parametrize("page", PAGES)
def test_numbers_in_prose_are_printed_by_something(page):
    """In a block that is run on this page or one that it links to, or in a result that a command has written."""
    printed = "\n".join(
        "\n".join(BLOCK.findall(text)) if "results" not in at else text for at in linked(page) for text in [text_of(at)]
    )
    known = set(re.findall(r"\d[\d.,]*\d|\d", printed))
    prose = "\n".join(line for line in BLOCK.sub("", text_of(page)).splitlines() if line[:1] != "|")
    assert [found for found in NUMBER.findall(prose) if found not in known and f"Python {found}" not in prose] == []


def test_the_figure_of_the_first_design_is_of_the_design_that_the_readme_prints():
    """`docs/figures/draw.py` draws it anew."""
    loops, figure = r"((?:par-)?for \w+ in \[0, \d+\))", text_of("docs/figures/loopnest.svg")
    printed = re.findall(loops, BLOCK.findall(text_of("README.md"))[0])
    assert printed and re.findall(loops, figure) == printed


def words(*names):
    return sum(len(text_of(name).split()) for name in names)


def test_documents_stay_short():
    assert len(text_of("README.md").splitlines()) <= 150 and words("README.md") <= 1200
    assert words(*(f"docs/{name}.md" for name in BEGIN)) <= 6000
    pages = [path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")] + [
        Path(p.name) for p in ROOT.glob("*.md")
    ]
    written = [
        path
        for path in pages
        if path.name not in GENERATED and ("results" not in path.parts or path.name == "README.md")
    ]
    assert words(*map(str, written)) <= 60_100
