"""Published figures of accelerators beside both cost models."""

import csv
import math
from pathlib import Path

import pytest
from sparsemap_plugins.papers.published.comparison import MODELS, accelerators, compared, report
from sparsemap_plugins.papers.runs import Runner

from sparsemap import SparseMapError
from sparsemap.pieces.loading import load

RESULTS = Path(__file__).parents[4] / "docs/results"


@pytest.fixture(scope="module")
def registry():
    return load()


def test_a_pe_of_one_mac_takes_a_cycle_for_every_product_of_two_nonzeros(registry):
    page = report(Runner(workloads=("L27",), registry=registry), "published")
    (row,) = page.rows
    products = 512 * 16 * 512 * 0.58 * 0.30
    for model in MODELS:
        assert row[model] == pytest.approx(products, rel=1e-3)
        assert row[f"{model} deviation"] == pytest.approx(row[model] / 775_316 - 1)
    assert "eyeriss-v2-pe: timeloop 0.941x of what is published" in page.headline
    assert "| L27      | cycles   |   775,316 |" in page.text and "dstc" not in page.text


@pytest.mark.parametrize("name", accelerators())
def test_the_specs_of_every_accelerator_leave_a_valid_design(name, registry):
    one = accelerators()[name]
    rows = compared(name, {**one, "figures": one["figures"][-1:]}, Runner(registry=registry))
    assert rows and all(0 < row[model] < math.inf for row in rows for model in MODELS)


def test_a_workload_that_has_no_figure_is_told_with_the_nearest_name(registry):
    with pytest.raises(SparseMapError, match="no workload 'L28'; did you mean 'L27'"):
        report(Runner(workloads=("L28",), registry=registry), "published")


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
