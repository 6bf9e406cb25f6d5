"""Published figures of accelerators beside both cost models."""

import csv
import math
from pathlib import Path

import pytest
from sparsemap_plugins.papers.pages import report_of
from sparsemap_plugins.papers.published.comparison import MODELS, accelerators, compared
from sparsemap_plugins.papers.runs import Runner
from timeloop_texts import ENERGIES, MAPPING, PROBLEM, TREE

from sparsemap import SparseMapError
from sparsemap.pieces.loading import load

RESULTS = Path(__file__).parents[4] / "docs/results"


@pytest.fixture(scope="module")
def registry():
    return load()


def test_a_page_has_what_was_asked_for_beside_both_cost_models(registry):
    page = report_of(Runner(workloads=("wiki-Vote",), registry=registry), "published")
    for row in page.rows:
        assert row["timeloop deviation"] == pytest.approx(row["timeloop"] / row["published"] - 1)
    assert "extensor: timeloop" in page.headline
    assert "| wiki-Vote | cycles     |" in page.text and "SCNN" not in page.text


@pytest.mark.parametrize("name", [name for name, one in accelerators().items() if "space" in one])
def test_the_specs_of_every_accelerator_leave_a_valid_design(name, registry):
    one = accelerators()[name]
    rows = compared(name, {**one, "figures": one["figures"][-1:]}, Runner(registry=registry))
    assert rows and all(0 < row[model] < math.inf for row in rows for model in MODELS)


def test_set_ups_of_a_clone_stand_in_place_of_designs(registry, tmp_path):
    pytest.importorskip("yaml")
    for name in ("half", "base"):
        (tmp_path / "clone" / name).mkdir(parents=True)
        for part, content in {"p": PROBLEM, "a": TREE, "e": ENERGIES, "m": MAPPING}.items():
            (tmp_path / "clone" / name / f"{part}.yaml").write_text(content)
    figure = {"workload": "w", "set_ups": "ha*", "published": {"cycles times better": 1.0, "energy": 1.0}}
    one = {"title": "T", "source": "s", "why": "w", "figures": [figure]}
    one["base"] = {"set_ups": [f"base/{part}.yaml" for part in "paem"]}
    rows = compared("one", one, Runner(registry=registry, clone=tmp_path / "clone"))
    assert rows[0]["timeloop"] == rows[0]["physical"] == 1.0 and rows[1]["timeloop"] > 0
    assert compared("one", one, Runner(registry=registry)) == []
    with pytest.raises(SparseMapError, match="has no la"):
        wrong = {**one, "figures": [{**figure, "set_ups": "la*"}]}
        compared("one", wrong, Runner(registry=registry, clone=tmp_path / "clone"))


def test_a_workload_that_has_no_figure_is_told_with_the_nearest_name(registry):
    with pytest.raises(SparseMapError, match="no workload 'wiki-Vot'; did you mean 'wiki-Vote'"):
        report_of(Runner(workloads=("wiki-Vot",), registry=registry), "published")


def test_the_committed_table_has_the_published_figures_as_they_are_now():
    rows = list(csv.DictReader((RESULTS / "published.csv").open()))
    printed = [
        (name, figure["workload"], quantity, value)
        for name, one in accelerators().items()
        for figure in one["figures"]
        for quantity, value in figure["published"].items()
    ]
    assert [tuple(row[x] for x in ("accelerator", "workload", "quantity")) for row in rows] == [x[:3] for x in printed]
    assert [float(row["published"] or "nan") for row in rows] == pytest.approx([x[3] for x in printed], nan_ok=True)
