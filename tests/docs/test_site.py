"""The site asks for nothing from elsewhere, and its search box works from the disk."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site with the settings of `mkdocs.yml`, but with two short pages."""
    config = pytest.importorskip("mkdocs.config")
    build = pytest.importorskip("mkdocs.commands.build").build
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    settings["plugins"] = [name for name in settings["plugins"] if isinstance(name, str)]  # without pages of classes
    settings |= {"docs_dir": "docs", "site_dir": "site", "hooks": [], "nav": ["index.md", "deep/other.md"]}
    for name in (*settings["extra_css"], *settings["extra"]["polyfills"]):
        (folder / "docs" / "deep").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "docs" / name, folder / "docs")
    (folder / "docs" / "index.md").write_text("# First\n\nNothing.\n", "utf-8")
    (folder / "docs" / "deep" / "other.md").write_text("# Other\n\nA bitmask.\n", "utf-8")
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(settings), "utf-8")
    build(config.load_config(str(folder / "mkdocs.yml")))
    return folder / "site"


def test_a_page_of_the_site_asks_for_nothing_from_elsewhere(site):
    page = (site / "deep" / "other.html").read_text("utf-8")
    assert re.findall(r'<(?:script|link)[^>]*(?:src|href)="(http[^"]*)', page) == []


def test_the_search_box_works_from_the_disk(site, browser):
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto((site / "deep" / "other.html").as_uri())
    page.click("input.md-search__input")
    page.keyboard.type("bitmask")
    page.wait_for_selector(".md-search-result__item")
    assert page.inner_text(".md-search-result__item h1") == "Other"
    page.close()
