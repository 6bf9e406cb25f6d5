"""Pages about pruning: points are run once, and pages say what was found."""

import csv
import json
import statistics
from pathlib import Path

import pytest
from sparsemap_plugins.papers import pruned
from sparsemap_plugins.papers.crisp.digits import difference
from sparsemap_plugins.papers.pages import report_of
from sparsemap_plugins.papers.runs import Runner

from sparsemap import __version__

COLUMNS = {
    "flops_ratio": 0.2,
    "utilisation": 1.0,
    "cut": 0,
    "dense_accuracy": 0.99,
    "dense_accuracy_among_classes": 0.99,
}


@pytest.fixture
def runner(tmp_path):
    return Runner(work=tmp_path, seeds=2, registry=None)


def test_a_point_runs_the_verb_once_for_its_options_and_seeds(quick, runner, monkeypatch):
    options = {"method": "one-shot", "sparsity": 0.5, "classes": "0,7", "network": quick}
    (point,) = pruned.points(runner, "page", [options])
    assert [row["seed"] for row in point] == ["0", "1"] and all(float(row["achieved"]) == 0.5 for row in point)
    monkeypatch.setattr(pruned, "said_by", lambda *_: pytest.fail("ran again"))
    assert pruned.points(runner, "page", [options])[0] == point
    with pytest.raises(pytest.fail.Exception, match="ran again"):
        pruned.points(runner, "page", [{**options, "criterion": "l1"}])


def read(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


@pytest.fixture
def invented(monkeypatch):
    """Accuracies that fall with sparsity, more slowly for CRISP and for small blocks."""

    def run(*words):
        options = {
            key[2:].replace("-", "_"): read(value) for key, _, value in (word.partition("=") for word in words[2:])
        }
        folder = Path(options.pop("out"))
        asked = options.get("sparsity", 0.75)
        better = options["method"] == "crisp" or options.get("block") == "1x1"
        rows = []
        for seed in range(options["seeds"]):
            accuracy = 1 - asked * (0.1 if better else 0.2) - 0.01 * seed
            rows.append(
                {
                    **COLUMNS, "seed": seed, "achieved": min(asked + 0.01, 0.94), "accuracy": accuracy,
                    "accuracy_among_classes": accuracy, "accuracy_before": accuracy - asked / 2,
                }
            )  # fmt: skip
        folder.mkdir(parents=True)
        (folder / "prune.json").write_text(json.dumps({"version": __version__, **options}))
        with (folder / "runs.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)

    monkeypatch.setattr(pruned, "said_by", run)


def test_fig_3_compares_where_blocks_can_prune_no_more(invented, runner):
    report = report_of(runner, "crisp-fig-3")
    assert "blocks only 80.9 % at a sparsity of 94.0 %, CRISP 1:4 90.0 % at a sparsity of 94.0 %" in report.headline
    assert "| blocks only | " in report.text and "2 seeds" in report.text
    assert len(report.rows) == 2 * 25


def test_table_1_has_mean_deviation_and_the_accuracy_before_training(invented, runner):
    report = report_of(runner, "wbs-table-1")
    deviation = statistics.stdev([90, 89])
    assert f"50 % 89.5 ± {deviation:.1f} (64.5)" in report.headline
    assert len(report.rows) == 2 * 25


def test_differences_come_with_students_interval():
    """Of 3 pairs 1, 2 and 3 points apart, t of two degrees of freedom is 4.303 and the error 1 / sqrt(3)."""
    assert difference([(0.51, 0.5), (0.52, 0.5), (0.53, 0.5)]) == "+2.0 (-0.5 to +4.5)"
    assert difference([(0.5, 0.4)]) == "+10.0"
