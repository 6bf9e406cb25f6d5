"""How figures look: one size of type, colours that colour-blind readers can tell apart, thin axes; and reports with one.

matplotlib is imported where it is used, and never through pyplot, whose state belongs to whoever calls.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import attrs

from .files import csv_text, markdown_table, replacing, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
else:
    Axes = Axis = Figure = Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444", "#F0E442")
"""Okabe and Ito's palette, the darkest and most different first."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
STYLE = Path(__file__).with_suffix(".mplstyle")


def subplots(rows: int, columns: int, figsize: tuple[float, float], **more: Any) -> tuple[Figure, Any]:
    """A figure of a size in inches, and its axes; `more` is for `Figure.subplots`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=figsize, layout="constrained")
    return figure, figure.subplots(rows, columns, **more)


def save(draw: Callable[[], Figure], folder: Path, name: str, dpi: int = 180) -> list[Path]:
    """Draws and writes PNG and SVG; the same data give the same bytes. ImportError without matplotlib."""
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    write_figure(draw, *paths, dpi=dpi)
    return paths


STAMPS = {".png": "Software", ".svg": "Date", ".pdf": "CreationDate"}
"""What a file would say of the moment and the program that made it."""


def write_figure(draw: Callable[[], Figure], *paths: Path, dpi: int = 180) -> None:
    """Draws once and writes to each path in the format of its ending (`STAMPS`); the same data give the same bytes."""
    import matplotlib

    with matplotlib.rc_context(fname=STYLE), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # of names too long for the layout, or of characters without a glyph
        figure = draw()
        for path in paths:
            kind = path.suffix.lower()
            with replacing(path) as temporary:
                figure.savefig(temporary, format=kind[1:], dpi=dpi, bbox_inches="tight", metadata={STAMPS[kind]: None})


TIPS = "tips "
INLINE: Any = {"font.size": 8, "legend.fontsize": 8, "axes.titlesize": 8.5}
SHAPES = ("path", "use")
"""What marks are in SVG."""
SPACES = {"": "http://www.w3.org/2000/svg", "xlink": "http://www.w3.org/1999/xlink"}


def tipped(artist: Any, tips: Sequence[str]) -> None:
    """What the marks of an artist stand for, in their order: `aria-label` of each in `inline_svg`."""
    artist.set_gid(TIPS + json.dumps(list(tips)))


def inline_svg(draw: Callable[[], Figure]) -> str:
    """An SVG element for a page: its colours are the page's `--c0` to `--c7`, `--soft` and `--line`, its text has the
    page's ink; nothing in it has a name of its own but the shapes of markers."""
    import matplotlib

    with matplotlib.rc_context(INLINE, STYLE):
        figure, text = draw(), StringIO()
        for artist in figure.findobj(lambda artist: artist.get_clip_on()):
            artist.set_clip_on(False)
        figure.savefig(text, format="svg", transparent=True, metadata={STAMPS[".svg"]: None})
    for prefix, space in SPACES.items():
        ElementTree.register_namespace(prefix, space)
    root = ElementTree.fromstring(text.getvalue())
    for group in root.iter(f"{{{SPACES['']}}}g"):
        if (name := group.attrib.pop("id", "")).startswith(TIPS):
            _label(group, json.loads(name.removeprefix(TIPS)))
    for name in ("metadata", "defs"):  # the latter is a style for all that is drawn
        for element in root.findall(f"{{{SPACES['']}}}{name}"):
            root.remove(element)
    found = re.sub(r" font-family: [^;\"]*;?", "", ElementTree.tostring(root, encoding="unicode"))
    for index, colour in enumerate(COLOURS):
        found = found.replace(colour.lower(), f"var(--c{index})")
    for colour, variable in (("#000000", "soft"), ("#dddddd", "line")):
        found = found.replace(f"stroke: {colour}", f"stroke: var(--{variable})")
    return found


def _label(group: ElementTree.Element, tips: Sequence[str]) -> None:
    """Gives the marks of a group their texts; shapes in `defs` are none."""
    kept = {id(shape) for defs in group.iter(f"{{{SPACES['']}}}defs") for shape in defs}
    shapes = {f"{{{SPACES['']}}}{name}" for name in SHAPES}
    marks = [one for one in group.iter() if one.tag in shapes and id(one) not in kept]
    for mark, tip in zip(marks, tips, strict=True):
        mark.attrib |= {"aria-label": tip, "role": "img"}


def named_ticks(axis: Axis, names: Sequence[str], **how: Any) -> None:
    """A name at 0, 1, 2 and so on, without lines of a grid; `how` is for the labels."""
    axis.set_ticks(range(len(names)), names, **how)
    axis.grid(visible=False)


def plain_log(axis: Axis, steps: tuple[float, ...] = (1, 2, 5)) -> None:
    """Ticks of a logarithmic axis as plain numbers: 0.5, 1, 2, 5, 10."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(10, steps, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


MISSING = "no figure was drawn: matplotlib, of the extra `plots`, is not installed"


@attrs.frozen
class Report:
    """A table and a figure on their way to files."""

    name: str
    headline: str
    """The outcome in a line or a few."""
    text: str
    """Markdown; the figure goes below its first heading."""
    rows: Sequence[Mapping[str, Any]]
    """The CSV."""
    draw: Callable[[], Figure]

    def write(self, folder: Path) -> list[Path]:
        """Writes NAME.md, NAME.csv, NAME.png and NAME.svg; each file whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        try:
            pictures = save(self.draw, folder, self.name)
        except ImportError:
            pictures = []
        picture = f"![{self.name}]({self.name}.png)\n\n" if pictures else f"({MISSING})\n\n"
        title, _, rest = self.text.partition("\n\n")
        write_text(folder / f"{self.name}.md", f"{title}\n\n{picture}{rest}")
        write_text(folder / f"{self.name}.csv", csv_text(self.rows))
        return [folder / f"{self.name}.md", folder / f"{self.name}.csv", *pictures]


WHOLE = re.compile(r"$|#|\||\{\w+(:[<>]*)?\}$")
"""Lines that nothing is added to: empty ones, headings, tables, and fields alone."""
OWN = re.compile(rf"{WHOLE.pattern}|- ")
"""Lines that are added to none: these, and entries of lists."""


class MarkdownTable(list[Sequence[str]]):
    """Rows, the first of them the head; `{table:<>}` aligns them as `markdown_table` says."""

    def __format__(self, aligned: str) -> str:
        return markdown_table(self, aligned) if aligned else markdown_table(self)


def page(module: str, name: str, template: str = "", **fields: Any) -> str:
    """The page `name`: the template of this name, or another one, beside a module (its `__file__`), with its fields.

    A template is Markdown with fields as in `str.format`, `{name}` or `{study.budget:,}`; a list of rows is a table. A
    paragraph or an entry of a list goes over several lines of it; in the page it is one.
    """
    lines: list[str] = []
    for line in Path(module).with_name(f"{template or name}.md").read_text("utf-8").splitlines():
        if lines and not OWN.match(line) and not WHOLE.match(lines[-1]):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    known = {key: MarkdownTable(x) if isinstance(x, list) else x for key, x in fields.items()}
    text = "\n".join(lines).format(name=name, **known)
    return re.sub("\n{3,}", "\n\n", text.rstrip()) + "\n"
