"""The style of figures: one size of type, colours for colour-blind readers, thin axes (`plots.mplstyle`);
templates of pages.

matplotlib is imported where it is used, and never through pyplot, whose state belongs to whoever calls."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from .markdown import markdown_table
from .writing import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
else:
    Axes = Axis = Figure = Any


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444", "#C3C7CD")
"""Okabe and Ito's palette, the darkest and most different first; the last is for idle time and room."""
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
                figure.savefig(
                    temporary, format=kind[1:], dpi=dpi, bbox_inches="tight", pad_inches=0.02, metadata={STAMPS[kind]: None}
                )  # fmt: skip


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


WHOLE = re.compile(r"$|#|\||@|\{\w+(:[<>]*)?\}$")
"""Complete lines: empty lines, headings, tables, lines that begin with @, and fields alone."""
OWN = re.compile(rf"{WHOLE.pattern}|- ")
"""Lines that begin anew: complete lines, and entries of lists."""


class MarkdownTable(list[Sequence[str]]):
    """Rows with a head; `{table:<>}` aligns columns as in `markdown_table`."""

    def __format__(self, aligned: str) -> str:
        return markdown_table(self, aligned) if aligned else markdown_table(self)


def joined(lines: Iterable[str]) -> list[str]:
    """Lines of Markdown with paragraphs and entries of lists on a line each."""
    found: list[str] = []
    for line in lines:
        if found and not OWN.match(line) and not WHOLE.match(found[-1]):
            found[-1] += f" {line.strip()}"
        else:
            found.append(line)
    return found


def page(module: str, name: str, template: str = "", **fields: Any) -> str:
    """The page `name`: the template of this name, or another `template`, beside a module (`__file__`), with its fields.

    A template is Markdown with fields as in `str.format`, `{name}` or `{study.budget:,}`; a list of rows is a table."""
    lines = joined(Path(module).with_name(f"{template or name}.md").read_text("utf-8").splitlines())
    known = {key: MarkdownTable(x) if isinstance(x, list) else x for key, x in fields.items()}
    text = "\n".join(lines).format(name=name, **known)
    return re.sub("\n{3,}", "\n\n", text.rstrip()) + "\n"
