"""Pages about pruning: points are run once, and pages say what was found."""

import csv
import json
import statistics
from pathlib import Path

import pytest
from sparsemap_plugins.papers import pruned
from sparsemap_plugins.papers.crisp import ablation, fig_3
from sparsemap_plugins.papers.runs import Runner
from sparsemap_plugins.papers.weight_blocks import table_1

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
    assert [row["seed"] for row in point.rows] == ["0", "1"] and point.mean("achieved") == 0.5
    monkeypatch.setattr(pruned, "said_by", lambda *_: pytest.fail("ran again"))
    assert pruned.points(runner, "page", [options])[0].rows == point.rows
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
    report = fig_3.report(runner, "crisp-fig-3")
    assert "blocks only 80.9 % at a sparsity of 94.0 %, CRISP 1:4 90.0 % at a sparsity of 94.0 %" in report.headline
    assert "| blocks only | " in report.text and "2 seeds" in report.text
    assert len(report.rows) == 2 * len(fig_3.wanted())


def test_table_1_has_mean_deviation_and_the_accuracy_before_training(invented, runner):
    report = table_1.report(runner, "wbs-table-1")
    deviation = statistics.stdev([90, 89])
    assert f"50 % 89.5 ± {deviation:.1f} (64.5)" in report.headline
    assert "above blocks of 8x8 by 5.0 points at 50 %, 7.5 points at 75 %, 9.0 points at 90 %" in report.text
    assert len(report.rows) == 2 * len(table_1.wanted())


ACCURACIES = {"saliency": [0.95, 0.97, 0.96], "saliency-all": [0.80, 0.81, 0.83], "l1": [0.85, 0.87, 0.87]}


MATTERS = "has 80.0 %, the best one of chance 36.0 %: scores matter."
BETTER = "to help: their saliency is better than saliency of all classes"


@pytest.mark.parametrize(
    ("accuracies", "scored", "aware"),
    [
        ({}, MATTERS, f"is shown {BETTER} and magnitude."),
        ({"l1": [0.99, 0.93, 0.97]}, MATTERS, f"is not shown {BETTER}, not told apart from magnitude."),
        ({"l1": [0.97, 0.99, 0.981]}, MATTERS, f"is not shown {BETTER}, worse than magnitude."),
        (
            {"random": [0.3, 0.81, 0.4]},
            "not shown to matter: seeds of saliency of all classes are no better",
            "is shown",
        ),
    ],
)
def test_the_ablation_says_what_its_seeds_show(monkeypatch, runner, accuracies, scored, aware):
    values = {**ACCURACIES, "random": [0.33, 0.36, 0.33], **accuracies}

    def invent(runner, name, wanted):
        rows = {one: [{"achieved": "0.95", "accuracy": str(x)} for x in found] for one, found in values.items()}
        return [pruned.PrunedPoint(options, rows[options["criterion"]]) for options in wanted]

    monkeypatch.setattr(ablation, "points", invent)
    text = ablation.report(runner, "crisp-ablation").text
    assert scored in text and aware in text


def test_differences_come_with_students_interval():
    """Of 3 pairs 1, 2 and 3 points apart, t of two degrees of freedom is 4.303 and the error 1 / sqrt(3)."""
    found = ablation.Difference.of([0.51, 0.52, 0.53], [0.5, 0.5, 0.5])
    assert (found.mean, found.wide, found.sign) == (pytest.approx(2), pytest.approx(4.303 / 3**0.5, rel=1e-3), 0)
    assert str(ablation.Difference.of([0.5], [0.4])) == "+10.0" and ablation.Difference.of([0.5], [0.4]).sign == 0
