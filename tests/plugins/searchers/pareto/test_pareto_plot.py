"""The figure of a front."""

import re
import sys

import numpy as np
import pytest
from sparsemap_plugins.reports.front import knee, write_front
from trade_offs import problem

from sparsemap import SearchError, search
from sparsemap.extras import install


def draw(result, folder):
    return write_front(result, result.best.problem, folder)


@pytest.mark.parametrize("objective", ["pareto:energy,delay", "pareto:energy,delay,edp * 1e12"])
def test_a_front_is_drawn_with_units_and_its_best_design(tmp_path, objective):
    pytest.importorskip("matplotlib")
    paths = draw(search(problem(objective), 600), tmp_path)
    assert [path.name for path in paths] == ["front.png", "front.svg"]
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    text = paths[1].read_text("utf-8")
    for words in ("trade on offs", "on the front of 600 evaluated, nsga2", "Energy (pJ)", "Execution time (cycles)"):
        assert words in text
    assert ("best EDP" in text) == (objective == "pareto:energy,delay")


def test_a_figure_of_one_design_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    assert len(draw(search(problem("pareto:energy,energy_pj * 2"), 600), tmp_path)) == 2


def test_drawing_twice_gives_the_same_files(tmp_path):
    pytest.importorskip("matplotlib")
    result = search(problem(), 300)
    for first, second in zip(draw(result, tmp_path / "a"), draw(result, tmp_path / "b"), strict=True):
        assert first.read_bytes() == second.read_bytes()


def test_numbers_get_a_unit_that_keeps_them_short():
    pytest.importorskip("matplotlib")
    from sparsemap_plugins.reports.front import axis_of

    for values, text, label, first in (
        ([2.5e7, 5e7], "energy, pJ", "Energy (uJ)", 25),
        ([2.5e19, 5e19], "energy, pJ", "Energy (J)", 2.5e7),
        ([60_000, 120_000], "execution time, cycles", "Execution time (thousand cycles)", 60),
        ([60, 120], "execution time, cycles", "Execution time (cycles)", 60),
        ([4e12, 5e12], "energy-delay product, pJ * cycles", "Energy-delay product (trillion pJ · cycles)", 4),
        ([4e21, 5e21], "energy_pj * cycles", "energy_pj * cycles ($10^{21}$)", 4),
        ([0.0, 0.0], "zero", "zero", 0),
    ):
        said, shown = axis_of(np.array(values), text)
        assert said == label
        assert shown[0] == pytest.approx(first)


def test_without_matplotlib_the_way_out_is_told(tmp_path, monkeypatch):
    result = search(problem(), 300)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SearchError, match=re.escape(install("plots"))):
        draw(result, tmp_path)


def test_the_knee_is_furthest_below_the_line_between_the_ends():
    assert knee(np.array([[1.0, 100.0], [2.0, 5.0], [50.0, 4.0], [100.0, 1.0]])) == 1
    assert knee(np.array([[1.0, 100.0], [90.0, 90.0], [100.0, 1.0]])) is None
    assert knee(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
    assert knee(np.ones((3, 2))) is None
