"""Repaired genomes come with their designs, and a search decodes them once."""

import attrs
import numpy as np
import pytest
from toy_problem import toy_problem

from sparsemap import load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.problem import segmentwise
from sparsemap.problem.space import Space

REGISTRY = load()


@pytest.mark.parametrize(("workload", "hardware"), [("mm3", "cloud"), ("conv4", "edge-16gbps"), ("mm12", "mobile")])
def test_repaired_designs_are_those_of_the_repaired_genomes(workload, hardware):
    space = load_problem(workload, hardware, registry=REGISTRY).space
    genomes = space.sample(500, np.random.default_rng(0))
    kept = genomes.copy()
    repaired = space.repaired(genomes, np.random.default_rng(1))
    assert (genomes == kept).all() and (repaired.genomes != genomes).any()
    assert (repaired.genomes == space.repair(genomes, np.random.default_rng(1))).all()
    for part in (repaired, repaired.take(np.arange(7, 300, 2))):
        for name, column in space.decode(part.genomes).columns.items():
            assert (part.designs.columns[name] == column).all() and part.designs.columns[name].flags.c_contiguous


@pytest.mark.parametrize("searcher", ["sparsemap", "random"])
def test_a_search_decodes_and_checks_little_more_than_it_evaluates(searcher, monkeypatch):
    budget, decoded, checked = 2000, list[float](), list[int]()
    problem = attrs.evolve(load_problem("mm3", "cloud", registry=REGISTRY), raced=False)
    columns, check = segmentwise._columns, Space.check

    def counted_columns(space, segment, genes):
        decoded.append(genes.shape[1] / len(space.segments))
        return columns(space, segment, genes)

    monkeypatch.setattr(segmentwise, "_columns", counted_columns)
    monkeypatch.setattr(Space, "check", lambda self, genomes: [checked.append(len(genomes)), check(self, genomes)][1])
    search(problem, budget, searcher=searcher)
    most = 1.5 if searcher == "random" else 7.0  # also decoded: what a bound rules out, and what a forecast leaves out
    assert budget <= sum(decoded) < most * budget
    if searcher == "random":  # others have operators, whose results are checked as well
        assert sum(checked) == budget


def test_columns_that_a_segment_keeps_are_not_changed_by_a_repair(monkeypatch):
    problem = toy_problem()
    (segment,) = problem.space.segments.values()
    kept = {}

    def decode(self, genes, problem):  # hands out what it keeps, as it may
        return {"values": kept.setdefault(genes.tobytes(), genes.astype(np.float64))}

    def repair(self, genes, problem, columns, rng):
        return np.where(genes > 2, 2, genes)

    monkeypatch.setattr(type(segment), "decode", decode)
    monkeypatch.setattr(type(segment), "repair", repair)
    genomes = problem.space.sample(50, np.random.default_rng(0))
    before = problem.space.decode(genomes).columns["values"].copy()
    repaired = problem.space.repaired(genomes, np.random.default_rng(1))
    assert (repaired.designs.columns["values"] <= 2).all() and (before > 2).any()
    assert (problem.space.decode(genomes).columns["values"] == before).all()
