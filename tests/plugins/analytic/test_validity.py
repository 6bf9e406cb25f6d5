"""Reasons of the analytic model: every one is explained, and what a design lacks is said in units of the resource."""

import numpy as np
import pytest

from sparsemap import load_problem
from sparsemap.pieces.loading import load
from sparsemap.problem.designs import Design

REGISTRY = load()


def test_every_reason_has_a_meaning():
    problem = load_problem("mm3", "cloud", registry=REGISTRY)
    meanings = problem.cost_model.reasons(problem)
    found = problem.evaluator.evaluate(problem.space.sample(1, np.random.default_rng(0)))
    assert tuple(meanings) == found.reason_names
    assert meanings["capacity:GLB"] == "holds too little"


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("fanout:GLB", " parallel PEB, has 256"),
        ("fanout:PEB", " parallel MAC, has 64"),
        ("capacity:PEB", "B, has 32 KB"),
    ],
)
def test_what_is_lacking_is_said_in_units_of_the_resource(reason, text):
    problem = load_problem("mm12", "mobile", registry=REGISTRY)
    genomes = problem.space.sample(500, np.random.default_rng(0))
    found = problem.evaluator.evaluate_designs(problem.space.decode(genomes), detail=True)
    rows = [row for rows in found.detail.needed for row in rows if row[0] == reason]
    assert rows and all(needed > available for _, needed, available, _ in rows)
    assert all(told.startswith(f"{reason.partition(':')[2]}: needs ") and told.endswith(text) for *_, told in rows)


def test_codes_whose_fields_are_too_narrow_for_a_rank_are_invalid():
    three = {"extends": "coordinate", "entry_bits": "3"}
    narrow = {"extends": "full", "formats": {"candidates": ["uncompressed", three]}}
    for model in ("physical", "timeloop"):
        problem = load_problem("mm1", "edge-16gbps", narrow, cost_model=model, registry=REGISTRY)
        found = problem.evaluator.evaluate(genomes := problem.space.guess(200, np.random.default_rng(0)))
        designs, longest = problem.space.decode(genomes), []
        for row in np.flatnonzero(found.valid):
            design = Design.of(problem, designs.take([row]))
            longest += [rank.length for t in range(3) for rank in design.ranks(t) if rank.format.compressed]
        told = {reason for row in range(200) for reason in found.reasons_of(row) if reason.startswith("entry-bits")}
        assert (max(longest) <= 8, told != set()) == ((True, True) if model == "physical" else (False, False))
