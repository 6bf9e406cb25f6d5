"""Renaming, permuting, splitting and scaling change of a design what they have to, and no more; bounds are bounds.

These are the first cases of `python tests/fuzz/metamorphic.py --minutes 30`; `SPARSEMAP_CASES=1000` tries more of them here,
as slow tests.
"""

import os

import attrs
import numpy as np
import probes
import pytest
from metamorphic import DESIGNS, FAMILIES, cases_of
from probes import PROBES
from random_problems import Cases
from sides import Broken, divided

from sparsemap.pieces.loading import load

FEW = 6
CASES = range(FEW, max(FEW + 1, int(os.environ.get("SPARSEMAP_CASES", "9"))))


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.mark.parametrize("cases", [range(FEW), pytest.param(CASES, marks=pytest.mark.slow)], ids=str)
@pytest.mark.parametrize("probe", PROBES)
def test_what_has_to_hold_between_designs_holds(probe, cases, registry):
    designs = 0
    for case in cases_of(registry).first(len(cases), cases.start):
        try:
            designs += PROBES[probe](case, DESIGNS)
        except Broken as error:
            again = f"python tests/fuzz/metamorphic.py --first {case.number} --only --probe {probe}"
            raise AssertionError(f"{error}; {again}") from error
    assert designs > 5 * len(cases)  # or nothing was tried


@pytest.mark.parametrize("probe", ["one-by-one", "idle-loops-moved", "level-inserted", "above-bound"])
@pytest.mark.parametrize("family", FAMILIES[1:])
def test_it_holds_with_padded_formats_in_layers_and_for_accesses_of_several_words(family, probe, registry):
    assert sum(PROBES[probe](case, 60) for case in cases_of(registry, family).first(2)) > 8


BROKE = [
    ("padded", 10, "one-by-one"),  # the key of a rank lacked the fullest fiber
    ("products", 189, "one-by-one"),
    ("wide", 31, "idle-loops-moved"),  # words of an access lay along a loop of bound one
    ("wide", 40, "idle-loops-moved"),
    ("products", 14, "loops-split"),  # positions of outer loops were compared with words up to the target loop
    ("wide", 5220, "loops-split"),  # words of an access went beyond the loop along which they lie
    ("wide", 20045, "loops-split"),
    ("wide", 30069, "loops-split"),  # under `timeloop`, words of an access ended with the size of a dimension
    ("wide", 30201, "loops-split"),
    ("layers", 75, "level-inserted"),  # lanes shared words of a window across a bypassed level, but padding did not
    ("mixed", 24, "above-bound"),  # the mean over cut-off tiles of a window of actual data is below its density
    ("layers", 161, "above-bound"),  # lanes that share a window see more padding than single computes
]


@pytest.mark.parametrize(("family", "number", "probe"), BROKE)
def test_what_broke_once_holds(family, number, probe, registry):
    assert PROBES[probe](cases_of(registry, family).case(number), DESIGNS)


def test_a_case_is_the_same_whenever_it_is_drawn(registry):
    one, two = (cases_of(registry).case(5) for _ in range(2))
    assert (one.workload(), one.hardware()) == (two.workload(), two.hardware())
    assert np.array_equal(one.genomes(one.problem(), 50), two.genomes(two.problem(), 50))


def test_cases_have_one_to_four_operands_and_two_to_five_levels(registry):
    drawn = list(cases_of(registry).first(50))
    assert {len(case.tensors) - 1 for case in drawn} == {1, 2, 3, 4}
    assert {len(case.levels) for case in drawn} == {2, 3, 4, 5}
    assert {case.cost_model for case in drawn} == {"timeloop", "physical"}


WRONG = {
    "renamed": lambda problem, found, designs: found.energy_pj * (1.0 + 1e-3 * len(problem.dims[0])),
    "dims-permuted": lambda problem, found, designs: found.energy_pj * problem.sizes[problem.dims[0]],
    "idle-loops-moved": lambda problem, found, designs: found.energy_pj * (1.0 + designs.columns["order"][0, 0]),
    "energies-scaled": lambda problem, found, designs: found.energy_pj + 5.0,
    "bandwidths-scaled": lambda problem, found, designs: found.energy_pj + 1e3 / found.cycles,
    "level-inserted": lambda problem, found, designs: found.energy_pj * len(problem.levels),
    "dense": lambda problem, found, designs: found.energy_pj / (1.0 + designs.columns["formats"].sum(axis=(0, 1))),
    "one-by-one": lambda problem, found, designs: found.energy_pj * len(designs),
    "above-bound": lambda problem, found, designs: found.energy_pj * 1e-6,
}


@pytest.mark.parametrize("probe", WRONG)
def test_a_probe_finds_a_model_that_is_wrong(probe, registry, monkeypatch):
    """Every probe names the designs, whose files can be read, and both numbers."""
    case = next(
        case
        for case in Cases(registry, ["paper"], ["timeloop"], [0.3, 0.5]).first(100)
        if len(case.sizes) == 3 and len(set(case.sizes.values())) == 3 and len(case.designs(case.problem(), 40)) > 20
    )
    model = type(case.problem().cost_model)
    works = model.evaluate

    def wrong(self, designs, problem, detail=False):
        found = works(self, designs, problem, detail)
        with np.errstate(invalid="ignore"):
            energy_pj = WRONG[probe](problem, found, designs)
        return attrs.evolve(found, costs={**found.costs.own, "energy_pj": energy_pj})

    monkeypatch.setattr(model, "evaluate", wrong)
    with pytest.raises(Broken) as caught:
        PROBES[probe](case, DESIGNS)
    assert "pj" in str(caught.value).lower()
    assert all("[mapping]" in text for text in caught.value.files())


def test_the_numbers_of_a_broken_bound_are_named(registry, monkeypatch):
    case = Cases(registry, ["paper"], ["timeloop"], [0.3]).case(1)
    problem = case.problem()
    bound = problem.lower_bound
    assert bound is not None
    with pytest.raises(Broken, match=r"bound: 1\.0 pJ and 1\.0 cycles, though no design is below .* pJ and"):
        probes.check_above(problem, bound, case.designs(problem, 20), np.ones(1), np.ones(1))


def test_what_lanes_wait_for_does_not_depend_on_other_designs_of_the_batch(registry):
    """Case 14 has a design that waits for a tensor which its own lanes do not share, if those of another one do."""
    assert PROBES["one-by-one"](cases_of(registry).case(14), DESIGNS)


@pytest.mark.parametrize("cost_model", ["timeloop", "physical"])
def test_leader_tiles_do_not_depend_on_the_order_of_dimensions_but_where_timeloop_divides_by_it(cost_model, registry):
    """Cases whose filters have targets and leaders with several dimensions in common, some over space."""
    for number in (77, 110, 155):
        case = attrs.evolve(cases_of(registry).case(number), cost_model=cost_model)
        problem = case.problem()
        pairs, rows = divided(problem, case.designs(problem, DESIGNS))
        assert bool(pairs) == rows.any() == (cost_model == "timeloop")
        PROBES["dims-permuted"](case, DESIGNS)


def test_under_timeloop_the_order_of_dimensions_counts(registry):
    case = attrs.evolve(cases_of(registry).case(77), cost_model="timeloop")
    problem, other = case.problem(), attrs.evolve(case, sizes=dict(reversed(case.sizes.items()))).problem()
    designs = case.designs(problem, DESIGNS)
    there = probes.with_dims(designs, other, [other.dims.index(dim) for dim in problem.dims])
    a, b = problem.evaluator.evaluate_designs(designs), other.evaluator.evaluate_designs(there)
    apart = ~np.isclose(a.energy_pj, b.energy_pj, rtol=1e-3)
    assert apart.any() and not (apart & ~divided(problem, designs)[1]).any()


def test_the_order_of_operands_turns_a_cycle_at_most_where_nothing_is_filtered(registry):
    """Case 214 has designs whose cycles, before they are rounded up, are whole but for the noise of a sum."""
    assert PROBES["operands-permuted"](cases_of(registry).case(214), DESIGNS)
