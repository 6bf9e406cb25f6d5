"""Why a variant of a study is better: the best cell beside the cells that differ from it in one axis."""

import json
import shutil
from itertools import product
from math import log
from statistics import geometric_mean

import pytest
from click.testing import CliRunner
from sparsemap_plugins.reports.compare.shares import levels_of
from sparsemap_plugins.reports.compare.sides import cell_folder, sides_of
from sparsemap_plugins.reports.page import html, page_of
from sparsemap_plugins.reports.why import causes_of, rows_of

from sparsemap import run_study
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load

pytestmark = pytest.mark.usefixtures("blank_charts")

close = pytest.approx
WORKS = ("mm1", "mm12")
STUDY = """
kind = "study"
name = "few"
workloads = ["mm1", "mm12"]
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


def means(rows):
    """Geometric mean over workloads and seeds by format and chip."""
    costs = {}
    for row in rows:
        costs.setdefault((row["format"], row["hardware"]), []).append(row["edp_js"])
    return {key: geometric_mean(each) for key, each in costs.items()}


def test_every_cause_is_a_combination_that_differs_from_the_best_in_one_axis(folder):
    rows = rows_of(folder)
    found, mean = causes_of(folder, rows), means(rows)
    best = min(mean, key=lambda key: mean[key])
    assert found.best == ", ".join(best)
    assert {cause.axis for cause in found.causes} <= {"format", "hardware"}
    for cause in found.causes:
        (other,) = (
            key for key in mean if cause.value in key and sum(x != y for x, y in zip(key, best, strict=True)) == 1
        )
        assert cause.factor == close(mean[other] / mean[best])
    factors = [cause.factor for cause in found.causes]
    assert factors == sorted(factors, reverse=True) and min(factors) > 1


def test_shares_are_means_over_workloads_of_what_the_levels_add(folder):
    """Recomputed from the files of both designs: added energy and time of each level, each relative to the mean total."""
    rows = rows_of(folder)
    found, mean = causes_of(folder, rows), means(rows)
    best = min(mean, key=lambda key: mean[key])
    for cause in found.causes:
        (other,) = (
            key for key in mean if cause.value in key and sum(x != y for x, y in zip(key, best, strict=True)) == 1
        )
        expected = dict.fromkeys(cause.shares, 0.0)
        for work in WORKS:
            least = {key: min((r for r in rows if (r["workload"], r["format"], r["hardware"]) == (work, *key)),
                              key=lambda row: row["edp_js"]) for key in (best, other)}  # fmt: skip
            (one,), (two,) = (sides_of(cell_folder(folder, least[key])) for key in (best, other))
            mine, theirs = levels_of(one), levels_of(two)
            added = {}
            for name in {**mine, **theirs}:
                pairs = zip(mine.get(name, (0, 0)), theirs.get(name, (0, 0)), ("energy_pj", "seconds"), strict=True)
                added[name] = sum((more - less) / (one.total(of) + two.total(of)) for less, more, of in pairs)
            for name, part in added.items():
                expected[name] += part / sum(added.values()) * log(least[other]["edp_js"] / least[best]["edp_js"])
        assert sum(cause.shares.values()) == close(1)
        for name, share in cause.shares.items():
            assert share == close(expected[name] / sum(expected.values()), abs=1e-9)


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
    rows = [line for line in lines if line.startswith(WORKS)]
    assert len(rows) == 8, "the best seed of two workloads with two formats on two chips"
    for work, chip in product(WORKS, ("edge-16gbps", "mobile")):
        helped = [
            row for row in rows if row.startswith(f"{work}, ") and chip in row and not row.rstrip().endswith(" -")
        ]
        assert len(helped) == 1


def test_a_quantity_that_studies_do_not_have_names_all_of_theirs(folder):
    done = CliRunner().invoke(cli, ["explain", str(folder), "speed"])
    assert "edp, energy, cycles, why can be explained" in done.output


def test_a_lost_folder_and_workloads_that_pull_both_ways_have_no_shares(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "few")
    rows = rows_of(tmp_path / "few")
    for at, row in enumerate(rows):  # on mobile one workload is as much better as the other is worse
        row["edp_js"] = 1.0 if row["hardware"] == "mobile" else 2.0 if row["workload"] == "mm1" else 0.52
        assert at == row["at"]
    causes = {cause.axis: cause for cause in causes_of(tmp_path / "few", rows).causes}
    assert causes["hardware"].factor == close((2 * 0.52) ** 0.5) and not causes["hardware"].shares
    assert "1.02x (workloads pull both ways" in causes["hardware"].text
    for path in (tmp_path / "few").glob("mm1--*"):
        shutil.rmtree(path)
    assert causes_of(tmp_path / "few", rows).causes
