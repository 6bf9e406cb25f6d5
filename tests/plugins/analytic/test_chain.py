"""Charges in any order, charges of plugins, chips as values, and tables that outlive a problem."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import attrs
import numpy as np
import pytest
from charged import REGISTRY
from sparsemap_plugins.analytic.charges import ChargeOptions
from sparsemap_plugins.analytic.model import AnalyticModel
from sparsemap_plugins.analytic.occupancy.shared import SHARED, SharedTables

from sparsemap import Charge, PluginError, Problem, load_problem
from sparsemap.problem.chip import Chip
from sparsemap.testing import check_cost_model

LEVELS = [
    {"name": "DRAM", "class": "dram", "bandwidth": "8 words/cycle"},
    {"name": "Buffer", "class": "sram", "capacity": "64 KB", "fanout": 16, "gate_skip": True, "lookahead": 2,
     "double_buffered": True, "bandwidth": "32 words/cycle"},
    {"name": "Registers", "class": "regfile", "capacity": "1 KB", "fanout": 4},
]  # fmt: skip
HARDWARE = {"name": "looking", "levels": LEVELS, "compute": {"gate_skip": True, "lookahead": 2}}
WORKLOAD = {
    "name": "product", "einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 32, "k": 64, "n": 32},
    "density": {"P": 0.1, "Q": 0.3},
}  # fmt: skip
NAMES = [field.name.replace("_", "-") for field in attrs.fields(ChargeOptions)]


def problem(*charges: Any) -> Problem:
    model = AnalyticModel(charges=tuple(REGISTRY.build("charge", x) if isinstance(x, str) else x for x in charges))
    return load_problem(WORKLOAD, HARDWARE, cost_model=model, registry=REGISTRY)


BASE = problem()


def designs(count: int = 120) -> Any:
    rng = np.random.default_rng(4)
    return BASE.space.decode(BASE.space.repair(BASE.space.guess(count, rng), rng))


DESIGNS = designs()


def numbers(*charges: Any) -> np.ndarray:
    """(3, B) energy, cycles and reasons."""
    found = problem(*charges).evaluator.evaluate_designs(DESIGNS)
    return np.array([found.energy_pj, found.cycles, found.reasons])


@pytest.mark.parametrize("pair", list(combinations(NAMES, 2)), ids="+".join)
def test_the_order_of_charges_does_not_matter(pair: tuple[str, str]) -> None:
    assert np.array_equal(numbers(*pair), numbers(*pair[::-1]))


def test_charges_in_another_order_are_the_same_model() -> None:
    every = [REGISTRY.build("charge", name) for name in NAMES]
    assert AnalyticModel(charges=tuple(every)) == AnalyticModel(charges=tuple(every[::-1]))
    assert np.array_equal(numbers(*every), numbers(*np.random.default_rng(0).permutation(NAMES).tolist()))


def test_the_fullest_units_pass_empty_positions_too() -> None:
    def compute_cycles(*charges: str) -> np.ndarray:
        return problem(*charges).evaluator.evaluate_designs(DESIGNS, detail=True).detail.compute_cycles

    mean, waiting, looking = compute_cycles(), compute_cycles("imbalance"), compute_cycles("intersection")
    both = compute_cycles("intersection", "imbalance")
    assert ((waiting > mean) & (looking > waiting)).any() and ((looking > mean) & (waiting > looking)).any()
    assert (both >= np.maximum(waiting, looking)).all() and (both <= waiting + looking - mean + 1.0).all()


@attrs.frozen(kw_only=True)
class Rows(Charge):
    """Energy of every word at the outermost level, and cycles of its metadata."""

    type_name = "rows"
    pj_per_word: float = 100.0

    def pj(self, counts, chip):
        return self.pj_per_word * (counts.read + counts.filled + counts.updated)[:, 0].sum(axis=0)

    def cycles(self, counts, chip):
        return counts.computes / 4.0

    def least_cycles(self, problem):
        return 7.0


@attrs.frozen(kw_only=True)
class Power(Charge):
    """Watts for as long as a design runs."""

    type_name = "power"

    def pj(self, counts, chip):
        return 1e5 * counts.cycles

    def least_pj(self, problem, cycles):
        return 1e5 * cycles


def test_charges_of_plugins_are_added_and_the_most_cycles_count() -> None:
    own = ("drains", "leakage")
    plain, both = problem(*own), problem(*own, Rows(), Power())
    before, after = (x.evaluator.evaluate_designs(DESIGNS, detail=True) for x in (plain, both))
    valid, detail = after.valid, after.detail
    cycles = np.maximum(before.cycles, before.detail.computes / 4.0)[valid]
    assert np.array_equal(after.cycles[valid], cycles) and (cycles > before.cycles[valid]).any()
    words = sum(
        (cell.read + cell.fill + cell.update) * detail.instances_active[t, 0]
        for t, (cell, *_) in enumerate(before.detail.cells)
    )
    assert detail.charges_pj["rows"] == pytest.approx(100.0 * words)
    assert detail.charges_pj["power"][valid] == pytest.approx(1e5 * cycles)
    leaked = detail.charges_pj["leakage"] / before.detail.charges_pj["leakage"]
    assert leaked[valid] == pytest.approx(cycles / before.cycles[valid])
    check_cost_model(both.cost_model, both, 100)


def test_the_order_of_charges_of_plugins_does_not_matter() -> None:
    found = [numbers(*some) for some in permutations([Rows(), Power(), "imbalance"])]
    assert all(np.array_equal(found[0], other) for other in found)


def test_the_bound_counts_what_a_charge_costs_at_least() -> None:
    plain, with_power, with_rows = (problem(*x).lower_bound for x in ((), (Power(),), (Rows(),)))
    assert plain is not None and with_power is not None and with_rows is not None
    assert with_power.energy_pj == pytest.approx(plain.energy_pj + 1e5 * plain.cycles)
    assert (with_rows.cycles == np.maximum(plain.cycles, 7.0)).all()


@pytest.mark.parametrize(
    "value, said",
    [(-1.0, "returned -1"), (np.nan, "returned nan"), (np.zeros(3), "expected an array of shape"), ("x", "of type")],
)
def test_a_charge_that_breaks_its_contract_is_named(value: Any, said: str) -> None:
    @attrs.frozen(kw_only=True)
    class Broken(Charge):
        type_name = "broken"

        def pj(self, counts, chip):
            return value

    with pytest.raises(PluginError, match=f"'broken'.*pj.*{said}"):
        numbers(Broken())


def changed(chip: Chip, **figures: Any) -> Chip:
    return attrs.evolve(chip, **figures)


def together(first: Chip, second: Chip, which: np.ndarray) -> Chip:
    """A chip for each design: the first or the second one."""

    def pick(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where(which, b[..., None], a[..., None])

    figures: dict[str, Any] = {}
    for field in attrs.fields(Chip)[1:]:
        a, b = getattr(first, field.name), getattr(second, field.name)
        figures[field.name] = {k: pick(a[k], b[k]) for k in a} if isinstance(a, dict) else pick(a, b)
    return Chip(first.names, **figures)


@pytest.mark.parametrize("charges", [(), tuple(NAMES), ("gate-time", Rows(), Power())], ids=["none", "all", "plugins"])
@pytest.mark.parametrize("detail", [False, True])
def test_a_batch_with_two_chips_is_the_two_problems_evaluated_apart(charges: Any, detail: bool) -> None:
    one = problem(*charges)
    chip = one.chip
    bandwidth = np.array([2.0, np.inf, 3.0])
    more = {action: 2.0 * pj for action, pj in chip.energy_pj.items()}
    other = changed(
        chip, capacity_bits=np.array([np.inf, 2.0**16, 2.0**12]), bandwidth=bandwidth, leakage_mw=3.0 * chip.leakage_mw,
        energy_pj=more, lookahead=np.array([np.inf, 4.0, np.inf, 1.0]), area_mm2=2.0 * chip.area_mm2,
        gated_residual=np.array(0.3),
    )  # fmt: skip
    two = one.on(other)
    which = np.arange(len(DESIGNS)) % 2 == 1
    with np.errstate(invalid="ignore"):
        batch = one.cost_model.evaluate(DESIGNS, one, detail, chip=together(chip, other, which))
    apart = [x.evaluator.evaluate_designs(DESIGNS, detail=detail) for x in (one, two)]
    assert 0 < apart[1].valid.sum() < apart[0].valid.sum()
    for name in ("energy_pj", "cycles", "reasons"):
        values = [getattr(found, name) for found in apart]
        assert np.array_equal(getattr(batch, name), np.where(which, values[1], values[0])), name


def test_tables_stay_warm_for_another_chip_and_another_model_of_time() -> None:
    SHARED.clear()
    first = problem("leakage")
    first.evaluator.evaluate_designs(DESIGNS)
    tables = first.cost_model._prepared(first).tables
    bigger = first.on(changed(first.chip, capacity_bits=4.0 * first.chip.capacity_bits))
    again = problem("leakage", "network")
    for other in (bigger, again):
        assert all(a is b for a, b in zip(tables, other.cost_model._prepared(other).tables, strict=True))
    encoded = problem("run-lengths")
    assert encoded.cost_model._prepared(encoded).tables[0] is not tables[0]


@attrs.frozen(eq=False)
class Numbers:
    """A table of so many numbers."""

    size: int


def test_shared_tables_are_bounded_and_the_least_recently_used_go_first() -> None:
    shared = SharedTables(most=100)
    first, second = shared.get(Numbers, 40), shared.get(Numbers, 41)
    assert shared.get(Numbers, 40) is first
    third = shared.get(Numbers, 42)
    assert shared.size == 82 and shared.get(Numbers, 40) is first and shared.get(Numbers, 42) is third
    assert shared.get(Numbers, 41) is not second
    assert shared.get(Numbers, 1000).size == 1000 and len(shared) == 1


def test_sizes_of_shared_tables_are_added_up_now_and_then_only() -> None:
    added = []

    @attrs.frozen(eq=False)
    class Counted:
        number: int

        @property
        def size(self) -> int:
            added.append(self.number)
            return 1

    shared = SharedTables(most=300)
    for number in range(400):
        shared.get(Counted, number)
    assert len(added) < 20 * 400 and 300 <= len(shared) < 350


def test_tables_of_what_is_equal_to_itself_alone_are_not_kept() -> None:
    shared, own = SharedTables(), object()
    assert shared.get(lambda x: Numbers(1), own).size == 1
    assert len(shared) == 0


def test_charges_of_plugins_get_the_counts_of_the_whole_chip() -> None:
    seen: dict[str, Any] = {}

    @attrs.frozen(kw_only=True)
    class Looking(Charge):
        type_name = "looking"

        def pj(self, counts, chip):
            seen["pj"] = counts
            return 0.0

        def cycles(self, counts, chip):
            seen["cycles"] = counts
            return counts.cycles + 5.0

    own = ("gate-time", "drains", "imbalance", "overlap", "run-lengths")
    plain = problem(*own).evaluator.evaluate_designs(DESIGNS, detail=True)
    valid, detail = plain.valid, plain.detail
    problem(*own, Looking()).evaluator.evaluate_designs(DESIGNS, detail=True)
    counts = seen["pj"]
    assert np.array_equal(seen["cycles"].cycles[valid], plain.cycles[valid])
    assert np.array_equal(counts.cycles[valid], plain.cycles[valid] + 5.0)
    assert np.array_equal(counts.computes, detail.computes) and np.array_equal(counts.instances, detail.instances_used)
    for t, row in enumerate(detail.cells):
        for s, cell in enumerate(row):
            active = detail.instances_active[t, s]
            for name, words in (("read", cell.read), ("filled", cell.fill), ("updated", cell.update)):
                assert np.array_equal(getattr(counts, name)[t, s], words * active)
            for name, action in (("read", "read"), ("filled", "fill"), ("updated", "update")):
                bits = cell.bits.get(action, np.zeros(len(DESIGNS)))
                assert np.array_equal(getattr(counts, f"metadata_{name}_bits")[t, s], bits * active)
    assert (counts.metadata_read_bits > 0).any()
