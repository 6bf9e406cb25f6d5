"""Every hook has a page, every spec says what it is and where it comes from, and files speak of the project alone."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

from sparsemap.pieces import hookspecs

ROOT = Path(__file__).parents[2]
HOOKS = sorted(name for name, value in vars(hookspecs).items() if hasattr(value, f"{hookspecs.PROJECT}_spec"))
SPECS = sorted((ROOT / "specs").rglob("*.toml"))
HOST = r"(?:[\w-]+\.)*(?:pypi\.org|pythonhosted\.org|artifactory[\w.-]*|jfrog\.io|nexus[\w-]*\.[\w.-]+)"
MACHINE = re.compile(rf"(?<![\w.])/(?:home|root|Users|work|mnt|opt|srv|private)/\w[\w./-]*|[A-Z]:\\\w+|{HOST}")
"""Absolute paths on somebody's machine, and hosts of package registries."""
BINARY = (".png", ".npz", ".pdf", ".ico", ".gz")


def files() -> list[Path]:
    """Files of the repository: those in git, or all that are not hidden where there is no git."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        found = [ROOT / name for name in listed.stdout.splitlines()]
    else:
        found = [path for path in ROOT.rglob("*") if not re.search(r"/\.|/build/|/__pycache__/|\.egg-info", str(path))]
    return [path for path in found if path.is_file() and path.suffix not in BINARY]


def test_there_are_hooks() -> None:
    assert "register_formats" in HOOKS and "search_finished" in HOOKS


def test_a_hook_has_a_page_that_implements_it() -> None:
    pages = {path: path.read_text("utf-8") for path in (ROOT / "docs" / "plugins").glob("*.md")}
    for hook in HOOKS:
        titled = [path for path, text in pages.items() if re.search(rf"^#.*`{hook}`", text, re.M)]
        assert len(titled) == 1, f"docs/plugins: expected one page with `{hook}` in a heading, found {titled}"
        assert f"def {hook}(" in pages[titled[0]], f"{titled[0]} does not implement {hook}"


def test_a_spec_says_what_it_is_and_where_it_comes_from() -> None:
    assert SPECS
    for path in SPECS:
        spec = tomllib.loads(path.read_text("utf-8"))
        assert spec["name"] == path.stem, path
        for key in ("description", "source"):
            assert str(spec.get(key, "")).strip(), f"{path.relative_to(ROOT)}: '{key}' is missing"


def test_no_file_holds_a_path_of_a_machine_or_a_registry_host() -> None:
    found = []
    for path in files():
        text = path.read_text("utf-8", errors="replace")
        if path != Path(__file__):
            found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in MACHINE.finditer(text)]
    assert not found, "\n".join(found[:20])
