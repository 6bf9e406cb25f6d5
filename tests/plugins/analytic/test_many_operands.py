"""Einsums with one, three and four operands: what filters and the compute unit do there (7.3), and what no design beats.

The case files of family Q and the random problems of `test_against_reference.py` have every quantity.
"""

import json
import math
from pathlib import Path

import cases
import numpy as np
import pytest
from sparsemap_plugins.analytic.inner import ratios
from texts import run_by

from sparsemap import load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file

REGISTRY = load()
Q = Path(__file__).parents[2] / "conformance/cases-Q.jsonl"
WORKLOADS = {
    "row-sum": {"einsum": "Z[i] = P[i, j]", "dims": {"i": 16, "j": 24}, "density": {"P": 0.2}},
    "mttkrp": {
        "einsum": "Z[i, j] = T[i, k, l] * B[k, j] * C[l, j]", "dims": {"i": 12, "j": 4, "k": 8, "l": 6},
        "density": {"T": 0.05, "B": 0.6, "C": 0.4},
    },
    "sddmm": {
        "einsum": "Z[i, j] = S[i, j] * A[i, k] * B[k, j]", "dims": {"i": 16, "j": 16, "k": 8},
        "density": {"S": 0.1, "A": 1.0, "B": 0.5},
    },
    "hadamard": {
        "einsum": "Z[i, j] = A[i, j] * B[i, j] * C[j] * D[i]", "dims": {"i": 32, "j": 16},
        "density": {"A": 0.5, "B": 0.3, "C": 0.75, "D": 0.5},
    },
}  # fmt: skip


def problem(name, space="paper"):
    return load_problem({"name": name, **WORKLOADS[name]}, "mobile", space=space, registry=REGISTRY)


def test_a_case_with_filters_has_no_more_computes_than_are_effectual():
    """180 dense computes, of which 1.3 are effectual; the defect (Q16) carries out 105."""
    case = next(row for row in map(json.loads, Q.read_text().splitlines()) if row["id"] == "Q-0058")
    assert case["ref"]["compute"]["computes"] == [105, 0, 0]
    assert cases.evaluate(case, REGISTRY, "timeloop-v3")["compute"]["computes"] == [105, 0, 0]
    assert cases.evaluate(case, REGISTRY, "none")["compute"]["computes"] == [22, 0, 158]


GATING = {
    "name": "gating", "extends": "paper",
    "gate-skip": {"candidates": ["none", "gate-q-by-p", "gate-both"], "led": {"gate-by": "gate-both"}},
}  # fmt: skip


@pytest.mark.parametrize("name", WORKLOADS)
def test_effectual_computes_stay_whatever_is_filtered(name):
    """With a unit that gates what is left, actual computes are dense ones times all densities: filters nest, they remove
    the computes of an empty tile once and leave the words that remain denser."""
    made = problem(name, GATING)
    genomes = made.space.guess(400, np.random.default_rng(0))
    genomes = made.space.repair(genomes, np.random.default_rng(1))
    gates = [i for i, piece in enumerate(made.candidates("mechanism")) if piece.name == "gate-both"]
    genomes[:, made.space.names.index("gate-skip.MAC")] = gates[0]
    designs = made.space.decode(genomes)
    evaluation = made.evaluator.evaluate_designs(designs, detail=True)
    found = evaluation.detail
    densities = [made.tensors[t].density.occupancy(made.tensors[t].shape(made.sizes)).density for t in made.operands]
    dense = math.prod(made.sizes.values())
    effectual = dense * math.prod(densities)
    assert len(set(found.gated_computes.tolist())) > (1 if len(densities) > 1 else 0)  # filters did remove some
    assert np.all(np.abs(found.computes - effectual) <= 2 + len(densities) + 1e-5 * dense)


def test_zeros_of_a_single_compressed_operand_take_no_cycle():
    """Nothing is left to multiply with, so no unit has to look; stored with its zeros, it is computed in full."""
    made = problem("row-sum")
    none = [piece.name for piece in made.candidates("mechanism")].index("none")
    slots = made.space.segment_genes["formats"].names
    genome = made.space.guess(1, np.random.default_rng(0))
    genome[0, [made.space.names.index(f"gate-skip.{place.name}") for place in made.places]] = none
    formats = [piece.name for piece in made.candidates("format")]
    computes = []
    for chosen in ("uncompressed", "bitmask"):
        for slot in slots:
            genome[0, made.space.names.index(slot)] = formats.index(chosen if slot.startswith("P") else formats[0])
        evaluation = made.evaluator.evaluate_designs(made.space.decode(genome), detail=True)
        computes.append(evaluation.detail.computes[0])
    assert computes == [16 * 24, pytest.approx(77, abs=1)]  # ceil(0.2 * 384) = 77 nonzeros


def test_candidates_are_every_choice_of_operands_that_lead():
    names = {name: [piece.name for piece in problem(name).candidates("mechanism")] for name in WORKLOADS}
    assert {name: len(found) for name, found in names.items()} == {
        "row-sum": 7, "mttkrp": 19, "sddmm": 19, "hadamard": 35
    }  # fmt: skip
    assert names["mttkrp"][7:13] == [f"gate-by-{leaders}" for leaders in ("p", "q", "r", "pq", "pr", "qr")]
    made = problem("mttkrp")
    by_name = dict(zip(names["mttkrp"], made.candidates("mechanism"), strict=True))
    T, B, C, _ = range(4)

    def filters(name):
        return [(target, leaders) for _, target, leaders in made.filters(by_name[name], made.places[0])]

    assert filters("skip-by-p") == [(B, (T,)), (C, (T,))]
    assert filters("skip-by-pr") == [(T, (C,)), (B, (T, C)), (C, (T,))]
    assert filters("skip-both") == [(T, (B, C)), (B, (T, C)), (C, (T, B))]
    assert filters("skip-q-by-p") == [(B, (T,))]


def test_roles_that_a_workload_has_no_tensor_for_neither_lead_nor_are_filtered():
    made = problem("row-sum")
    assert all(made.filters(mechanism, made.places[0]) == [] for mechanism in made.candidates("mechanism"))
    assert made.roles == {"P": 0, "Z": 1}


@pytest.mark.parametrize("name", WORKLOADS)
def test_designs_stay_above_the_bound_and_can_be_read_again(name, tmp_path):
    made = problem(name)
    assert made.bound is not None
    result = search(made, budget=1000, seed=0)
    assert result.best is not None and result.best.edp >= made.bound
    result.write(tmp_path)
    again = design_file.load(tmp_path / "design.toml", REGISTRY)
    assert again.problem.evaluator.evaluate_designs(again.batch).edp[0] == result.best.edp
    nest = result.report("loop-nest")
    assert "+=" in nest and all(tensor.name in nest for tensor in made.tensors)
    rng = np.random.default_rng(2)
    sampled = made.evaluator.evaluate_designs(made.space.decode(made.space.repair(made.space.sample(1000, rng), rng)))
    low = made.cost_model.lower_bound(made)
    assert (sampled.energy_pj >= low.energy_pj[0]).all() and (sampled.cycles >= low.cycles[0]).all()


LED_BY_THE_OUTPUT = {"name": "led", "extends": "gate-both", "filters": [{"target": "operands", "leader": "Z"}]}


@pytest.mark.parametrize("name", ["mttkrp", "sddmm"])
def test_the_bound_knows_outputs_that_lead_operands(name):
    """Computes whose output word is not asked for are left out: 3 in 10 of the computes without an empty operand stay. A
    bound is a row for each class of designs, and the least of them."""
    candidates = ["none", "gate-both", LED_BY_THE_OUTPUT]
    workload = {**WORKLOADS[name], "density": {**WORKLOADS[name]["density"], "Z": 0.3}}
    made = load_problem(
        workload, "mobile", space={"extends": "paper", "gate-skip": {"candidates": candidates}}, registry=REGISTRY
    )
    rng = np.random.default_rng(3)
    genomes = made.space.repair(made.space.sample(1000, rng), rng)
    sampled = made.evaluator.evaluate_designs(made.space.decode(genomes), detail=True)
    assert sampled.valid.any()
    low = made.cost_model.lower_bound(made)
    assert (sampled.energy_pj >= low.energy_pj.min()).all() and (sampled.cycles >= low.cycles.min()).all()
    effectual = math.prod(made.sizes.values()) * math.prod(
        made.tensors[t].density.occupancy(made.tensors[t].shape(made.sizes)).density for t in made.operands
    )
    assert 0.29 * effectual < sampled.detail.computes.min() < 0.9 * effectual


@pytest.mark.parametrize("space", ["sage-like", "sparseloop-mapper"])
def test_a_strategy_set_by_hand_is_led_by_what_is_compressed(space):
    """B is dense, so that T and C lead."""
    workload = {**WORKLOADS["mttkrp"], "density": {"T": 0.05, "B": 1.0, "C": 0.4}}
    made = load_problem(workload, "mobile", space=space, registry=REGISTRY)
    chosen = made.space.decode(made.space.sample(1, np.random.default_rng(0))).mechanisms[0]
    assert [made.candidates("mechanism")[i].name for i in chosen] == ["none", "skip-by-pr", "gate-both"]
    assert made.space.decode(made.space.sample(1, np.random.default_rng(0))).formats.shape[1] == 4


def test_waiting_of_four_operands_is_that_of_all_products_of_thresholds(monkeypatch) -> None:
    """Of combinations that about as many units reach only the best goes on; all of them say hardly more."""
    table = {
        "einsum": "Z[i, r] = P[i, j, k, l] * Q[j, r] * R[k, r] * S[l, r]", "dims": {"i": 8, "r": 4, "j": 6, "k": 4, "l": 4},
        "density": {"P": 0.1, "Q": 0.2, "R": 0.3, "S": 0.25},
    }  # fmt: skip
    found = []

    def noted(m, k, x, last, count, own=ratios.in_order):
        few = own(m, k, x, last, count)
        if count == 4:
            found.append((few, most_in_any_order(m, k, x, last)))
        return few

    monkeypatch.setattr(ratios, "in_order", noted)
    charges = [one for one in REGISTRY.resolve("cost-model", "physical").charges if one.type_name != "shared-words"]
    model = {"type": "analytic", "charges": [one.type_name for one in charges]}
    with run_by("interpreted"):
        problem = load_problem(table, "mobile", cost_model=model, registry=REGISTRY)
        rng = np.random.default_rng(0)
        assert problem.evaluator.evaluate(problem.space.repair(problem.space.guess(25, rng), rng)).valid.sum() > 15
    few, most = np.reshape(found, (-1, 4, 2)).max(axis=1).T  # of each operand as the last one, the most counts
    assert len(few) > 10 and (few <= most * (1.0 + 1e-12)).all() and (few >= 0.99 * most).all()


def most_in_any_order(m, k, x, last: int) -> float:
    """The most of the last operand among units that have at least a threshold of each other one, of all combinations."""
    product, reached = np.ones(1), np.array([x.lanes[last]])
    for i in {0, 1, 2, 3} - {last}:
        start = x.known[i] + m.lanes + 2
        values, shares = k.data[start : start + 2 * ratios.TAILS].reshape(2, ratios.TAILS)
        there = 1.0 - (1.0 - np.minimum(shares, 1.0)) ** (x.lanes[i] / x.pairs[min(i, last), max(i, last)])
        product, reached = np.outer(product, values).ravel(), np.outer(reached, there).ravel()
    maxima = k.data[x.known[last] : x.known[last] + m.lanes]
    at = np.log2(np.maximum(reached, ratios.FIRST_LANES)) + 2.0
    return float(
        (product * np.interp(at, np.arange(m.lanes), maxima) * np.minimum(reached / ratios.FIRST_LANES, 1.0)).max()
    )
