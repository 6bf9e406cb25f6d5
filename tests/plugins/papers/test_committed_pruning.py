"""What the committed pages of pruning on digits have to show, from their rows."""

import csv
import statistics
from collections import defaultdict
from pathlib import Path

import pytest
from sparsemap_plugins.papers import pruned
from sparsemap_plugins.papers.pages import report_of

RESULTS = Path(__file__).parents[3] / "docs/results"


def points(name, *keys):
    """The seeds of every point, by some of its options."""
    found = defaultdict(list)
    with (RESULTS / f"{name}.csv").open() as file:
        for row in csv.DictReader(file):
            found[tuple(row[key] for key in keys)].append(row)
    assert all(len(rows) >= 5 for rows in found.values())
    return found


def mean(rows, column):
    return statistics.fmean(float(row[column]) for row in rows)


def test_crisp_keeps_its_accuracy_at_sparsities_that_blocks_do_not_reach():
    found = points("crisp-fig-3", "method", "pattern", "classes", "sparsity")
    crisp, sparser = found["crisp", "2:4", "10", "0.9"], found["crisp", "1:4", "10", "0.95"]
    blocks = [rows for (method, _, classes, _), rows in found.items() if (method, classes) == ("block-only", "10")]
    assert mean(crisp, "accuracy") >= 0.94 and min(float(row["achieved"]) for row in crisp) >= 0.90
    highest = max(blocks, key=lambda rows: (mean(rows, "achieved"), mean(rows, "accuracy")))
    assert mean(sparser, "achieved") > mean(highest, "achieved")
    assert mean(sparser, "accuracy") > mean(highest, "accuracy")


def test_accuracy_falls_with_the_share_of_blocks_and_faster_than_with_that_of_words():
    found = points("wbs-table-1", "method", "block", "criterion", "balance", "sparsity")

    def percents(block, sparsity, column="accuracy"):
        return 100 * mean(found["one-shot", block, "l2", "none", sparsity], column)

    for sparsity, accuracy, within in (("0.5", 98.4, 0.7), ("0.75", 97.0, 1), ("0.9", 93.8, 2.5)):
        assert percents("8x8 channels", sparsity) == pytest.approx(accuracy, abs=within)
    before = [percents("8x8 channels", sparsity, "accuracy_before") for sparsity in ("0.25", "0.5", "0.75", "0.9")]
    assert before == sorted(before, reverse=True)
    assert percents("1x1", "0.75") - percents("8x8 channels", "0.75") > 0.8
    assert percents("1x1", "0.9") - percents("8x8 channels", "0.9") > 2


def test_the_page_on_class_awareness_is_what_its_rows_give(monkeypatch):
    found = points("crisp-ablation", "criterion")
    monkeypatch.setattr(pruned, "points", lambda runner, name, wanted: [found[one["criterion"],] for one in wanted])
    page = (RESULTS / "crisp-ablation.md").read_text("utf-8").replace("![crisp-ablation](crisp-ablation.png)\n\n", "")
    assert page == report_of(None, "crisp-ablation").text
