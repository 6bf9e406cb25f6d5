"""Every kind of figure is drawn from a design, one column wide, and what cannot be drawn is said."""

import re
from html import unescape
from itertools import combinations

import pytest
from click.testing import CliRunner
from sparsemap_plugins.reports import figures
from sparsemap_plugins.reports.charts import Mark, bars, roofs
from sparsemap_plugins.reports.figures import KINDS, WIDTH, PlotSource
from sparsemap_plugins.reports.outcome import DesignOutcome

from sparsemap import load_problem, search
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.plots import STYLE, inline_svg, named_ticks, subplots, write_figure
from sparsemap.problem import design_file
from sparsemap.searching.written import read_result
from sparsemap.study.networks import search_network

matplotlib = pytest.importorskip("matplotlib")
Text = pytest.importorskip("matplotlib.text").Text
SAMPLES = 200


@pytest.fixture(autouse=True)
def few_random_designs(monkeypatch):
    monkeypatch.setattr(figures, "SAMPLES", SAMPLES)


@pytest.fixture(scope="module")
def result():
    return search(load_problem("mm1", "cloud"), budget=100)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A search with two objectives, which has what every kind draws."""
    path = tmp_path_factory.mktemp("search")
    search(load_problem("mm1", "cloud", objective="pareto:energy,delay"), budget=400).write(path)
    return path


def plot(*args):
    return CliRunner().invoke(cli, ["plot", *map(str, args)])


def texts(figure):
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_one_column_wide_and_the_same_each_time(kind, folder, tmp_path):
    for name in ("a.svg", "b.svg"):
        found = plot(folder, "--kind", kind, "-o", tmp_path / name)
        assert found.exit_code == 0, found.output
    text = (tmp_path / "a.svg").read_text("utf-8")
    assert text == (tmp_path / "b.svg").read_text("utf-8")
    points = float(re.search(r'width="([\d.]+)pt"', text)[1])
    assert points <= 72 * WIDTH * 1.1


def test_the_bars_of_energies_add_up_to_the_energy(result):
    figure = KINDS["energy"](PlotSource(DesignOutcome.of(result.found.design), None))
    (axes,) = figure.axes
    scale = {"nJ": 1e3, "uJ": 1e6, "mJ": 1e9}[axes.get_xlabel().split()[-1]]
    assert scale * sum(bar.get_width() for bar in axes.patches) == pytest.approx(result.found.energy_pj)


def test_the_loop_nest_has_every_loop_and_level(result):
    shown = " ".join(texts(KINDS["loopnest"](PlotSource(DesignOutcome.of(result.found.design), None))))
    for loop in result.found.design.loops:
        assert f"{loop.dim}{loop.group + 1} in [0, {loop.bound})" in shown
    assert all(level.name in shown for level in result.found.problem.levels)


def test_the_front_and_the_space_have_every_design_and_the_best_one(folder):
    source = PlotSource(DesignOutcome.of(design_file.load(folder, load())), folder)
    table = read_result(folder)
    panel = KINDS["pareto"](source).axes[0]
    (points,) = (found for found in panel.collections if found.get_label() == "on the front")
    energies = [row["objectives"]["energy"] / table["energy_pj"] for row in table["front"]]
    star = next(line for line in panel.get_lines() if line.get_marker() == "*").get_xydata()[0]
    assert (points.get_offsets()[:, 0] / star[0]).tolist() == pytest.approx(energies)
    dots, star, *_ = KINDS["space"](source).axes[0].get_lines()
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (table["cycles"], pytest.approx(table["energy_pj"]))
    assert SAMPLES / 2 < len(dots.get_xdata()) <= SAMPLES
    assert sorted(dots.get_xdata() * dots.get_ydata())[len(dots.get_xdata()) // 2] > 2 * table["edp"]


def test_what_cannot_be_drawn_is_said(result, folder, tmp_path):
    alone = plot(folder / "design.toml", "--kind", "convergence", "-o", tmp_path / "a.png")
    assert (alone.exit_code, "needs the folder of a search" in alone.output) == (2, True)
    result.write(tmp_path / "one")
    single = plot(tmp_path / "one", "--kind", "pareto", "-o", tmp_path / "a.png")
    assert (single.exit_code, "with several objectives, such as pareto:energy,delay" in single.output) == (2, True)
    odd = plot(folder, "--kind", "energy", "-o", tmp_path / "a.gif")
    assert (odd.exit_code, "a figure ends in .png, .svg, .pdf" in odd.output) == (2, True)
    assert not list(tmp_path.glob("a.*"))


@pytest.mark.parametrize("kind", ["loopnest", "energy"])
def test_names_too_long_or_without_a_glyph_cause_no_warnings(kind, result, tmp_path, recwarn):
    workload = {"name": "\U00012000 very long " * 60, "extends": "mm1"}
    search(load_problem(workload, "cloud"), budget=300).write(tmp_path)
    found = plot(tmp_path, "--kind", kind, "-o", tmp_path / "a.png")
    assert found.exit_code == 0, found.output
    assert not [str(warning.message) for warning in recwarn]


def overlapping(figure):
    """Pairs of texts of a figure that lie on each other; ticks, some of which are out of sight, are left out."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure).draw()
    ticks = {tick for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for tick in axis.findobj(Text)}
    ticks -= {axis.label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)}
    shown = [text for text in figure.findobj(Text) if text.get_text().strip() and text not in ticks]
    boxes = {text: text.get_window_extent().shrunk(0.95, 0.8) for text in shown}
    return [(a.get_text(), b.get_text()) for a, b in combinations(boxes, 2) if boxes[a].overlaps(boxes[b])]


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_of_a_figure_lies_on_another_one(kind, folder):
    with matplotlib.rc_context(fname=STYLE):
        source = PlotSource(DesignOutcome.of(design_file.load(folder, load())), folder)
        assert not overlapping(KINDS[kind](source))


def test_a_level_that_skips_much_has_room_for_it():
    table = {
        "kind": "design", "workload": "mm12", "hardware": "mobile",
        "mapping": {"L2_T": ["n=768"], "L3_T": ["m=768", "k=64"]},
    }  # fmt: skip
    table |= {
        "formats": {name: ["bitmask"] * 4 for name in "PQZ"},
        "gate_skip": {"GLB": "skip-all-16-ahead", "PEB": "skip-all", "MAC": "gate-all"},
    }
    with matplotlib.rc_context(fname=STYLE):
        found = KINDS["loopnest"](PlotSource(DesignOutcome.of(design_file.structure(table, load())), None))
        assert not overlapping(found)


FORMULAS = ["$x_{$", "a$_1$", "$", "$$", r"\$a$b", r"$\frac{$", "costs $5 or $6"]


def test_names_are_drawn_as_they_are_and_powers_as_powers(tmp_path):
    """Ticks, labels, texts and notes have every name; titles and the names of axes have one with two dollars each."""
    single = {"title": "$x_{$", "axis": r"$\frac{$", "whole": "a$_1$", "legend": "costs $5 or $6"}

    def draw():
        figure, axes = subplots(1, 1, (6.0, 4.0))
        named_ticks(axes.xaxis, [text for name in FORMULAS for text in (name, f"tick {name}")])
        for name in FORMULAS:
            axes.plot([0, 2 * len(FORMULAS)], [1e-9, 1e9], label=f"label {name}")
            axes.text(0.5, 1.0, f"text {name}")
            axes.annotate(f"note {name}", (0.5, 2.0))
        axes.set(yscale="log", title=f"title {single['title']}", ylabel=f"axis {single['axis']}")
        figure.suptitle(f"whole {single['whole']}")
        told = f"legend {single['legend']}"
        figure.legend(*axes.get_legend_handles_labels(), title=told, loc="outside upper left")
        return figure

    write_figure(draw, tmp_path / "a.svg", tmp_path / "a.png")
    wanted = {*FORMULAS, *(f"{what} {name}" for what in ("tick", "label", "text", "note") for name in FORMULAS)}
    wanted |= {f"{what} {name}" for what, name in single.items()}
    for svg in ((tmp_path / "a.svg").read_text("utf-8"), inline_svg(draw)):
        shown = {
            unescape("".join(re.findall(">([^<]*)<", f">{text}<"))).strip()
            for text in re.findall(r"<text.*?</text>", svg, re.S)
        }
        assert wanted <= shown and "mathdefault" not in "".join(shown)


def test_results_whose_names_look_like_formulas_are_drawn_and_reported(tmp_path):
    levels = [{"name": "DRAM $x_{$", "class": "dram", "bandwidth": "2 GB/s"},
              {"name": "$\\frac{$", "class": "sram", "capacity": "2 KB", "fanout": 4}]  # fmt: skip
    chip = {"name": "a$_1$", "levels": levels, "compute": {"name": "$MAC_{$"}}
    workload = {"type": "matmul", "name": "$x_{$", "m": 8, "k": 8, "n": 8, "density": {"P": 0.5}}
    search(load_problem(workload, chip), budget=40).write(tmp_path / "one")
    for kind in KINDS:
        done = plot(tmp_path / "one", "--kind", kind, "-o", tmp_path / f"{kind}.svg")
        assert done.exit_code == 0 or "front" in done.output, done.output
    layers = [{"name": name, "type": "linear", "k": 8, "n": 8} for name in ("$x_{$", "$y_{$")]
    search_network(
        {"name": "$net_{$", "input": [8], "layers": layers}, chip, budget=20, fuse=True, out=tmp_path / "two"
    )
    for name in ("one", "two"):
        page = CliRunner().invoke(cli, ["report", str(tmp_path / name), "-o", str(tmp_path / f"{name}.html")])
        assert page.exit_code == 0, page.output


def test_without_a_kind_all_figures_of_a_result_go_in_a_folder(folder, tmp_path):
    done = plot(folder, "-o", tmp_path / "figures")
    assert done.exit_code == 0, done.output
    names = {path.stem for path in (tmp_path / "figures").iterdir()}
    assert {"convergence", "energy", "cycles", "chip", "busy", "loopnest", "roofline", "space"} <= names <= set(KINDS)
    assert "all figures go in a folder; --kind draws one" in plot(folder, "-o", tmp_path / "a.svg").output


def test_the_tables_of_a_page_are_latex(folder, tmp_path):
    file = tmp_path / "tables.tex"
    done = CliRunner().invoke(cli, ["report", str(folder), "-o", str(file)])
    assert done.exit_code == 0, done.output
    text = file.read_text()
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == text.count(r"\toprule") > 2
    body = [line for line in text.splitlines() if not line.startswith("%")]
    assert not any(re.search(r"(?<!\\)[%#_]", line) for line in body)
    rows = [line for line in body if line.endswith(r"\\")]
    assert rows and re.search(r"\$\d\.\d+\\times10\^\{\d+\}\$", text)


@pytest.mark.parametrize("width", [3.5, 4.4])
def test_labels_of_a_roofline_with_five_levels_are_clear_of_its_legend(width):
    pytest.importorskip("matplotlib")
    widths = {f"L{i}, {16 << i} words/cycle": float(16 << min(i, 3)) for i in range(5)}
    marks = [Mark(10.0, part, at=60.0) for part in widths]
    figure = roofs(marks, 512.0, widths, "computes per word at the level", "computes per cycle, MAC").draw(width)
    figure.canvas.draw()
    (axes,), (legend,) = figure.axes, figure.legends
    assert not axes.yaxis.label.get_window_extent().overlaps(legend.get_window_extent())
    assert [line.get_linestyle() for line in axes.lines[:5]] == ["-", "-", "-", "-", "--"]


def test_a_figure_of_a_study_with_many_charges_is_no_wider_than_a_column(tmp_path):
    many = ["DRAM", "GLB", "PEB", "MAC", "gated", "idle", "network", "intersection", "leakage"]
    marks = [Mark(1.0, part, "a workload on a chip") for part in many]
    write_figure(
        lambda: bars(marks, "energy, mJ", {"a workload on a chip": "9 mJ"}, many).draw(WIDTH), tmp_path / "a.pdf"
    )
    (box,) = re.findall(rb"/MediaBox \[ 0 0 ([\d.]+)", (tmp_path / "a.pdf").read_bytes())
    assert float(box) <= 72 * WIDTH
