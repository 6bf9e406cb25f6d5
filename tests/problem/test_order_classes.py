"""One design with other loop orders."""

import json
import math

import numpy as np
import pytest

from sparsemap import load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.problem.orders import MOST, classes, orders_of, reordered


@pytest.fixture(scope="module")
def found():
    return search(load_problem("mm1", "edge-16gbps"), budget=400).found


def test_orders_that_cost_the_same_are_one_class():
    scores = np.array([3.0, 1.0, math.inf, 1.0 + 1e-12, 3.0])
    assert [rows.tolist() for rows in classes(scores)] == [[1, 3], [0, 4]]
    assert classes(np.array([math.inf])) == []


def test_all_orders_of_up_to_seven_loops_are_tried_and_a_sample_of_more():
    assert orders_of([2, 0], 3).tolist() == [[2, 0, 1], [0, 2, 1]]
    sample = orders_of(range(9), 9)
    assert 0.9 * MOST < len(sample) <= MOST and (np.sort(sample, axis=1) == np.arange(9)).all()
    assert len(np.unique(sample, axis=0)) == len(sample)


def test_a_reordered_design_is_the_design_with_other_order_genes(found):
    problem, genes = found.problem, [name.startswith("order.") for name in found.problem.space.names]
    orders = orders_of(range(3), 3)  # by their codes, 1 to 6
    genomes = np.repeat(found.genome[None], len(orders), axis=0)
    genomes[:, genes] = 1 + np.arange(len(orders))[:, None]
    everywhere = reordered(problem, found.design.batch, orders)
    assert everywhere.edp.tolist() == problem.evaluator.evaluate(genomes).edp.tolist()
    one = np.repeat(found.genome[None], len(orders), axis=0)
    one[:, genes.index(True)] = 1 + np.arange(len(orders))
    assert (
        reordered(problem, found.design.batch, orders, 0).edp.tolist() == problem.evaluator.evaluate(one).edp.tolist()
    )


def test_the_report_has_the_design_itself_among_the_orders_of_each_level(found):
    problem, report = found.problem, load().get("exporter", "orders")
    result = search(problem, budget=1, start=found.genome[None])
    table = json.loads(json.dumps(report.data(result, problem)))
    assert table["levels"][0]["level"] == "all levels" and len(table["levels"]) > 1
    assert all(row["best"] <= 1 + 1e-9 and row["worst"] >= 1 - 1e-9 for row in table["levels"][1:])
    assert sum(group["orders"] for group in table["classes"]) == table["levels"][0]["valid"]
    text = report.text(result, problem)
    assert "all levels" in text and table["classes"][0]["order"] in text
