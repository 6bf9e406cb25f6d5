"""`report.html`: a search, a network, a study, a chip or several results as one page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sparsemap.errors import SearchError, need
from sparsemap.pieces.defaults import PAGE_FILE
from sparsemap.pieces.registry import Registry
from sparsemap.searching.result import HISTORY_FILE, RESULT_FILE

from .content import Page


def check_packages() -> None:
    """`SearchError` with the line to type where a package that the page is made with is missing."""
    for module in ("jinja2", "matplotlib"):
        need(module, PAGE_FILE, "report")


def page_of(paths: Sequence[Path], registry: Registry) -> Page:
    """What is told of the folder of a search, a study or a network, of a design file, or of several such results.

    `SearchError` for folders with none of these.
    """
    from ..sides import NETWORK, TABLE
    from . import beside, chip, network, one, study

    if len(paths) > 1:
        return beside.comparison(paths)
    (path,) = paths
    if not path.is_dir() or (path / RESULT_FILE).exists():
        return one.page(path, registry)
    if (path / chip.CHIP).exists():
        return chip.chip(path, registry)
    if (path / NETWORK).exists():
        return network.network(path, registry)
    if (path / TABLE).exists():
        return study.study(path)
    made = f"{RESULT_FILE} and {HISTORY_FILE} of a search, {NETWORK} of a network, {TABLE} of a study, or {chip.CHIP} of a chip"
    raise SearchError(f"{path}: nothing to report: expected {made}")


def html(page: Page) -> str:
    """The page as one HTML file: it loads nothing, and every text in it is escaped."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja").render(page=page)
