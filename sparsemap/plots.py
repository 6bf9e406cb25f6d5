"""The style of figures: one size of type, colours for colour-blind readers, thin axes (`plots.mplstyle`); figures of
panels, and reports with a figure.

matplotlib is imported where it is used, and never through pyplot, whose state belongs to whoever calls."""

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
import numpy as np

from .csv_files import csv_text
from .markdown import markdown_table
from .writing import replacing, write_text

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
    """A figure of a size in inches, and its axes; `more` for `Figure.subplots`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=figsize, layout="constrained")
    return figure, figure.subplots(rows, columns, **more)


def save(draw: Callable[[], Figure], folder: Path, name: str, dpi: int = 180) -> list[Path]:
    """Draws and writes PNG and SVG; the same data give the same bytes. ImportError without matplotlib."""
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    write_figure(draw, *paths, dpi=dpi)
    return paths


STAMPS = {".png": "Software", ".svg": "Date", ".pdf": "CreationDate"}
"""Metadata of time and program, by kind of file."""


def write_figure(draw: Callable[[], Figure], *paths: Path, dpi: int = 180) -> None:
    """Draws once and writes to each path in the format of its ending (`STAMPS`); equal data give equal bytes."""
    import matplotlib

    with matplotlib.rc_context(fname=STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of names too long for the layout, characters without a glyph
        figure = _drawn(draw)
        for path in paths:
            kind = path.suffix.lower()
            with replacing(path) as temporary:
                figure.savefig(temporary, format=kind[1:], dpi=dpi, bbox_inches="tight", metadata={STAMPS[kind]: None})


def _drawn(draw: Callable[[], Figure]) -> Figure:
    """A figure with plain texts: a `$` in a name begins no formula, but for powers on logarithmic axes."""
    from matplotlib.text import Text
    from matplotlib.ticker import LogFormatter

    figure = draw()
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        for label in axis.get_ticklabels(which="both") if isinstance(axis.get_major_formatter(), LogFormatter) else ():
            label.set_parse_math(True)
    return figure


TIPS = "tips "
INLINE: Any = {"font.size": 8, "legend.fontsize": 8, "axes.titlesize": 8.5}
SHAPES = ("path", "use")
"""Elements of marks in SVG."""
SPACES = {"": "http://www.w3.org/2000/svg", "xlink": "http://www.w3.org/1999/xlink"}


def tipped(artist: Any, tips: Sequence[str]) -> None:
    """Tips of the marks of an artist, in order: `aria-label` in `inline_svg`."""
    artist.set_gid(TIPS + json.dumps(list(tips)))


def inline_svg(draw: Callable[[], Figure]) -> str:
    """An SVG element in the colours of a page: `--c0` to `--c7`, `--soft`, `--line`, and the page's ink; only shapes of
    markers have ids."""
    import matplotlib

    with matplotlib.rc_context(INLINE, STYLE):
        figure, text = _drawn(draw), StringIO()
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
    """Markdown; the figure goes below the first heading."""
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
"""Complete lines: empty lines, headings, tables, and fields alone."""
OWN = re.compile(rf"{WHOLE.pattern}|- ")
"""Lines that begin anew: complete lines, and entries of lists."""


class MarkdownTable(list[Sequence[str]]):
    """Rows with a head; `{table:<>}` aligns columns as in `markdown_table`."""

    def __format__(self, aligned: str) -> str:
        return markdown_table(self, aligned) if aligned else markdown_table(self)


def page(module: str, name: str, template: str = "", **fields: Any) -> str:
    """The page `name`: the template of this name, or another `template`, beside a module (`__file__`), with its fields.

    A template is Markdown with fields as in `str.format`, `{name}` or `{study.budget:,}`; a list of rows is a table. A
    paragraph or an entry of a list goes over several lines of it; in the page it is one."""
    lines: list[str] = []
    for line in Path(module).with_name(f"{template or name}.md").read_text("utf-8").splitlines():
        if lines and not OWN.match(line) and not WHOLE.match(lines[-1]):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    known = {key: MarkdownTable(x) if isinstance(x, list) else x for key, x in fields.items()}
    text = "\n".join(lines).format(name=name, **known)
    return re.sub("\n{3,}", "\n\n", text.rstrip()) + "\n"


Values = Sequence[float] | np.ndarray


@attrs.frozen(eq=False)
class Series:
    """A line, or points with an empty `style`; colour and marker by the place of the label in the figure."""

    label: str
    x: Values
    y: Values
    style: str = "-"
    marked: bool = True
    band: tuple[Values, Values] | None = None
    """A range around the line."""
    hollow: bool = False
    like: str = ""
    """Label of the series with the same colour and marker."""
    how: Mapping[str, Any] = {}
    """More for `Axes.plot`."""


@attrs.frozen(eq=False)
class Panel:
    """Axes with their series, or with groups of bars by label."""

    x: str = ""
    y: str = ""
    series: Sequence[Series] = ()
    bars: Mapping[str, Sequence[float]] = {}
    title: str = ""
    log: str = ""
    """`x`, `y` or `xy`."""
    plain: Mapping[str, tuple[float, ...]] = {}
    """Steps of plain numbers on a logarithmic axis, by `x` and `y`."""
    names: Sequence[str] = ()
    """Along the x axis, from 0; along the y axis for flat bars."""
    turned: float = 0
    """Degrees of `names`."""
    flat: bool = False
    """Bars lie."""
    ends: str = ""
    """Format of the numbers at bars; none by default."""
    levels: Sequence[float] = ()
    """Lines across."""
    limits: Mapping[str, Any] = {}
    """More for `Axes.set`."""


def figure(
    panels: Sequence[Panel], size: tuple[float, float], columns: int = 0, across: int = 4, title: str | None = None,
    **shared: Any,
) -> Figure:  # fmt: skip
    """Panels in `columns` (default: one row), with `across` entries of the legend in a line; `shared` for `subplots`."""
    columns = columns or len(panels)
    found, grid = subplots(-(-len(panels) // columns), columns, size, squeeze=False, **shared)
    labels = list(dict.fromkeys(one.like or one.label for panel in panels for one in panel.series))
    handles: dict[str, Any] = {}
    for axes, panel in zip(grid.flat, panels, strict=True):
        for one in panel.series:
            place = labels.index(one.like or one.label)
            _line(axes, one, COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)])
        _bars(axes, panel)
        for level in panel.levels:
            axes.axhline(level, color="#444444", linewidth=0.8)
        axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
        for name in panel.log:
            axes.set(**{f"{name}scale": "log"})
        if panel.names:
            right = {"rotation": panel.turned, "ha": "right"} if panel.turned else {}
            named_ticks(axes.yaxis if panel.flat else axes.xaxis, panel.names, **right)
        for name, steps in panel.plain.items():
            plain_log(axes.xaxis if name == "x" else axes.yaxis, steps)
        axes.set(**panel.limits)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if len(handles) > 1:
        found.legend(list(handles.values()), list(handles), loc="outside upper center", ncols=across, title=title)
    return found


def _line(axes: Axes, one: Series, colour: str, marker: str) -> None:
    if one.band:
        step = one.how.get("drawstyle", "")[6:] or None
        axes.fill_between(one.x, *one.band, color=colour, alpha=0.14, linewidth=0, step=step)
    face = {"markerfacecolor": "white"} if one.hollow else {}
    look = {"color": colour, "marker": marker if one.marked else "", "linestyle": one.style, "label": one.label}
    axes.plot(one.x, one.y, **{**look, **face, **one.how})


def _bars(axes: Axes, panel: Panel) -> None:
    """Bars beside each other, a colour for each label."""
    wide = 0.8 / max(len(panel.bars), 1)
    for place, (label, values) in enumerate(panel.bars.items()):
        at = np.arange(len(values)) + (place - (len(panel.bars) - 1) / 2) * wide
        draw = axes.barh if panel.flat else axes.bar
        drawn = draw(at, values, 0.92 * wide, color=COLOURS[place], label=label)
        if panel.ends:
            axes.bar_label(drawn, fmt=panel.ends, padding=2, fontsize=7.5)
    if panel.flat:
        axes.invert_yaxis()
