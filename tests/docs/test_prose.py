"""Numbers in the prose of the first pages are those of blocks that run or of result pages; the pages stay short."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
BEGIN = ("index", "tutorial", "loop-nest", "how-it-works", "explain", "report")
"""What a beginner reads."""
PAGES = ("README.md", *(f"docs/{name}.md" for name in (*BEGIN, "studies", "optimisers")))
GENERATED = ("reference.md",)
"""Written by a command; so are all results but their opening page."""
NUMBER = re.compile(
    r"(?<![\w.,/-])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)|(?<![\w.,/-])\d+\.\d+(?:e\+?\d+)?(?=x\b|\s)|(?<![\w.,])\d+(?= %)"
)
"""Numbers that tell a result: with thousands, with a fraction, in per cent."""
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.M | re.S)


def text_of(name):
    return (ROOT / name).read_text("utf-8")


def test_numbers_in_prose_are_printed_by_something():
    sources = [*(ROOT / "docs" / "results").glob("*.md"), ROOT / "docs" / "agreement.md"]
    printed = [*BLOCK.findall("\n".join(map(text_of, PAGES))), *(path.read_text("utf-8") for path in sources)]
    known = set(re.findall(r"\d[\d.,]*\d|\d", "\n".join(printed)))
    unknown = []
    for page in PAGES:
        prose = "\n".join(line for line in BLOCK.sub("", text_of(page)).splitlines() if line[:1] != "|")
        unknown += [f"{page}: {found}" for found in NUMBER.findall(prose) if found not in known]
    assert not unknown


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
        if path.name not in GENERATED and (path.parent.name != "results" or path.name == "README.md")
    ]
    assert words(*map(str, written)) <= 61_000
