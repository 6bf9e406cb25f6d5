"""Why a variant of a study is better: the best cell beside the cells that differ from it in one axis."""

import json

import pytest
from click.testing import CliRunner
from sparsemap_plugins.reports.compare.shares import levels_of
from sparsemap_plugins.reports.compare.sides import sides_of
from sparsemap_plugins.reports.page import html, page_of
from sparsemap_plugins.reports.why import best_seeds, causes_of, rows_of

from sparsemap import run_study
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load

pytestmark = pytest.mark.usefixtures("blank_charts")

STUDY = """
kind = "study"
name = "few"
workloads = ["mm1"]
hardware = ["edge-16gbps", "mobile"]
seeds = [0, 1]
budget = 100

[axes.format]
none = { "space.formats.candidates" = ["uncompressed"] }
bitmask = { "space.formats.candidates" = ["uncompressed", "bitmask"] }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("why")
    (place / "few.toml").write_text(STUDY)
    run_study(str(place / "few.toml"), out=str(place / "few"))
    return place / "few"


def run(*args):
    done = CliRunner().invoke(cli, list(map(str, args)))
    assert done.exit_code == 0, done.output
    return done.output


def test_every_cause_is_a_cell_that_differs_from_the_best_cell_in_one_axis(folder):
    rows = rows_of(folder)
    found, cells = causes_of(folder, rows), best_seeds(folder, rows)
    least = {(row["hardware"], row["format"]): 1e300 for row in rows}
    for row in rows:
        key = row["hardware"], row["format"]
        least[key] = min(least[key], row["edp_js"])
    assert sorted(cost for cost, _ in cells.values()) == sorted(least.values())
    (chip, form), best = min(least.items(), key=lambda one: one[1])
    assert found.best.split(", ") == [form, chip]
    others = {"hardware": {"edge-16gbps", "mobile"} - {chip}, "format": {"none", "bitmask"} - {form}}
    for cause in found.causes:
        assert {cause.value} == others[cause.axis]
        key = (cause.value, form) if cause.axis == "hardware" else (chip, cause.value)
        assert cause.factor == pytest.approx(least[key] / best)
    assert [cause.factor for cause in found.causes] == sorted((cause.factor for cause in found.causes), reverse=True)


def test_shares_add_up_and_follow_from_the_levels_of_both_designs(folder):
    rows = rows_of(folder)
    found, cells = causes_of(folder, rows), best_seeds(folder, rows)
    best = min(cells, key=lambda key: cells[key])
    for cause in found.causes:
        assert sum(cause.shares.values()) == pytest.approx(1)
        (key,) = (key for key in cells if cause.value in key and len({*key} - {*best}) == 1)
        (one,), (other,) = (sides_of(cells[each][1]) for each in (best, key))
        mine, theirs = levels_of(one), levels_of(other)
        gain = 0.0
        for name, share in cause.shares.items():
            (e, t), (more_e, more_t) = mine.get(name, (0, 0)), theirs.get(name, (0, 0))
            energy, time = (one.total(x) + other.total(x) for x in ("energy_pj", "seconds"))
            gain += (weight := (more_e - e) / energy + (more_t - t) / time)
            assert (weight > 0) == (share > 0) or abs(weight) < 1e-12
        assert gain > 0, "the best cell gains"


def test_explain_compare_and_the_page_give_the_same_sentence(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    text = causes_of(folder, rows_of(folder)).text
    words = " ".join(run("explain", "few", "why").split())
    assert words == text
    assert text in " ".join(run("compare", "few.toml", "--out", "few").split())
    page = page_of([folder], load())
    assert text in page.verdict and "Why, with one axis changed" in html(page)
    assert json.loads(run("explain", "few", "why", "--json"))["why"]["best"] == causes_of(folder, rows_of(folder)).best


def test_explain_has_a_row_for_each_variant_and_frees_levels_of_the_best_on_each_chip_only(folder):
    lines = run("explain", folder).splitlines()
    rows = [line for line in lines if line.startswith(("none, ", "bitmask, "))]
    assert len(rows) == 4, "the best seed of two formats on two chips"
    for chip in ("edge-16gbps", "mobile"):
        helped = [row for row in rows if chip in row and not row.rstrip().endswith(" -")]
        assert len(helped) == 1


def test_a_quantity_that_studies_do_not_have_names_all_of_theirs(folder):
    done = CliRunner().invoke(cli, ["explain", str(folder), "speed"])
    assert "edp, energy, cycles, why can be explained" in done.output
