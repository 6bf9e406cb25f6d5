"""Every kind of figure is drawn from a design, one column wide, and what cannot be drawn is said."""

import re

import pytest
from click.testing import CliRunner
from sparsemap_plugins.reports.figures import KINDS, WIDTH, Source
from sparsemap_plugins.reports.variants import Outcome

from sparsemap import load_problem, search
from sparsemap.cli.main import cli

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def result():
    return search(load_problem("mm3", "cloud"), budget=400)


@pytest.fixture(scope="module")
def folder(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("search")
    result.write(path)
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
    assert points <= 72 * WIDTH * 1.08


def test_the_bars_of_energies_add_up_to_the_energy(result):
    figure = KINDS["energy"](Source(Outcome.of(result.found.design), None))
    (axes,) = figure.axes
    scale = {"nJ": 1e3, "µJ": 1e6, "mJ": 1e9}[axes.get_xlabel().split()[-1]]
    assert scale * sum(bar.get_width() for bar in axes.patches) == pytest.approx(result.found.energy_pj)


def test_the_loop_nest_has_every_loop_and_level(result):
    shown = " ".join(texts(KINDS["loopnest"](Source(Outcome.of(result.found.design), None))))
    for loop in result.found.design.loops:
        assert f"{loop.dim}{loop.group + 1} in [0, {loop.bound})" in shown
    assert all(level.name in shown for level in result.found.problem.levels)


def test_what_cannot_be_drawn_is_said(folder, tmp_path):
    alone = plot(folder / "design.toml", "--kind", "convergence", "-o", tmp_path / "a.png")
    assert (alone.exit_code, "needs the folder of a search" in alone.output) == (2, True)
    odd = plot(folder, "--kind", "energy", "-o", tmp_path / "a.gif")
    assert (odd.exit_code, "a figure ends in .png, .svg, .pdf" in odd.output) == (2, True)
    assert not list(tmp_path.iterdir())
