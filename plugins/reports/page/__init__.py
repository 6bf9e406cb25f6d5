"""`report.html`: a search, a network, a study, a chip or several results as a self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sparsemap.errors import SearchError
from sparsemap.pieces.registry import Registry
from sparsemap.searching.result import RESULT_FILE

from .content import Page, compact, typeset
from .latex import latex as latex


def page_of(paths: Sequence[Path], registry: Registry, reference: str = "") -> Page:
    """The page for the folder of a search, a study, a network or a chip, for a design file, or for several results.

    Several results are divided by the `reference`. `SearchError` for any other folder."""
    from ..compare.sides import NETWORK, TABLE, is_result
    from . import chip, one, results, study

    (path, *others) = paths
    if others or (path.is_dir() and not is_result(path) and not (path / chip.CHIP).exists()):
        return results.comparison(paths, registry, reference)
    pages = {RESULT_FILE: one.page, chip.CHIP: chip.chip, NETWORK: results.network, TABLE: study.study}
    made = next((made for name, made in pages.items() if (path / name).exists()), one.page)
    if made is study.study:
        return study.study(path, registry, reference)
    if reference:
        raise SearchError("--reference is for several results, or for a study")
    return made(path, registry)


def html(page: Page, live: bool = False) -> str:
    """The page as an HTML file: it loads nothing, and every text is escaped. A `live` page reloads itself."""
    import jinja2

    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=typeset,
    )
    return environment.get_template("page.html.jinja").render(page=page, compact=compact, live=live)
