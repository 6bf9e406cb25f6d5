"""The chip of a problem: the figures of hardware and technology as arrays, and problems on other chips."""

import copy
from typing import Any

import attrs
import numpy as np
import pytest

from sparsemap import DesignError, Problem, Search, SearchError, SpecError, evaluate, load_problem, search
from sparsemap.pieces.contracts.hardware import LEVEL_ACTIONS
from sparsemap.pieces.loading import load
from sparsemap.pieces.registry import Registry
from sparsemap.problem.chip import Chip


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load()


def cloud() -> dict[str, Any]:
    found: dict[str, Any] = copy.deepcopy(load().spec("hardware", "cloud"))
    return found


@pytest.fixture
def problem(registry: Registry) -> Problem:
    return load_problem("mm3", "cloud", registry=registry)


def test_the_chip_has_the_figures_of_levels_and_technology(problem: Problem) -> None:
    chip, technology = problem.chip, problem.technology
    assert (chip.names, len(chip), chip.batch) == (("DRAM", "GLB", "PEB"), 3, None)
    assert chip.instances.tolist() == [*(level.instances for level in problem.levels), problem.compute_instances]
    for s, level in enumerate(problem.levels):
        assert chip.capacity_bits[s] == (np.inf if level.capacity_bits is None else level.capacity_bits)
        assert chip.bandwidth[s] == (np.inf if level.bandwidth is None else level.bandwidth)
        assert chip.leakage_mw[s] == technology.leakage_mw(level)
        assert chip.area_mm2[s] == technology.area_mm2(level)
        for action in LEVEL_ACTIONS:
            assert chip.energy_pj[action][s] == technology.energy_pj(level, action) == problem.energy_pj(s, action)
    assert chip.add_pj.tolist() == [technology.add_pj(bits) for bits in (*chip.word_bits.tolist(), 16)]
    assert chip.mac_pj["gated"] == technology.mac_pj(16, "gated")
    assert chip.clock_hz == 1e9
    assert np.isinf(chip.lookahead).all() and chip.lookahead.shape == (4,)


def test_own_energies_of_a_level_come_before_those_of_the_technology(registry: Registry) -> None:
    table = cloud()
    table["levels"][1] |= {"energy": {"read": 7.5}, "leakage_mw": 3.0, "lookahead": 4}
    table["compute"] = {"name": "MAC", "gate_skip": True, "energy": {"gated": 0.25}}
    chip = load_problem("mm3", table, registry=registry).chip
    assert (chip.energy_pj["read"][1], chip.leakage_mw[1], chip.lookahead[1], chip.mac_pj["gated"]) == (7.5, 3, 4, 0.25)


def test_area_is_the_sum_over_all_instances(problem: Problem) -> None:
    chip = problem.chip
    parts = [chip.instances[s] * chip.area_mm2[s] for s in range(3)]
    assert chip.total_area_mm2 == pytest.approx(sum(parts) + chip.instances[3] * chip.mac_area_mm2)
    assert chip.total_area_mm2 > 0


def test_a_problem_on_its_own_chip_gives_the_same_numbers(problem: Problem) -> None:
    other = problem.on(problem.chip)
    genomes = problem.space.repair(problem.space.guess(300, np.random.default_rng(0)), np.random.default_rng(1))
    one, two = evaluate(problem, genomes), evaluate(other, genomes)
    assert np.array_equal(one.energy_pj, two.energy_pj) and np.array_equal(one.reasons, two.reasons)
    assert other.levels == problem.levels
    assert other.title == problem.title


def test_a_problem_on_another_chip_is_as_if_its_hardware_said_so(problem: Problem, registry: Registry) -> None:
    table = cloud()
    technology = load_problem("mm3", table, registry=registry).technology
    table["levels"][1]["capacity"] = "64 KB"
    asked = load_problem("mm3", table, registry=registry)
    given = problem.on(asked.chip)
    genomes = problem.space.sample(2000, np.random.default_rng(0))
    assert np.array_equal(evaluate(given, genomes).energy_pj, evaluate(asked, genomes).energy_pj)
    assert np.array_equal(evaluate(given, genomes).reasons, evaluate(asked, genomes).reasons)
    assert (evaluate(problem, genomes).reasons != evaluate(asked, genomes).reasons).any()
    rng = (np.random.default_rng(2), np.random.default_rng(2))
    assert np.array_equal(given.space.repair(genomes, rng[0]), asked.space.repair(genomes, rng[1]))
    assert given.bound == asked.bound != problem.bound
    assert technology == given.technology


def test_a_search_on_another_chip_is_another_search_and_writes_no_wrong_hardware(problem: Problem) -> None:
    other = problem.on(attrs.evolve(problem.chip, leakage_mw=problem.chip.leakage_mw * 2))
    assert Search(other, "random", 10).identity != Search(problem, "random", 10).identity
    assert Search(problem.on(other.chip), "random", 10).identity == Search(other, "random", 10).identity
    assert other.variant(objective=problem.objective).chip is other.chip
    with pytest.raises(DesignError, match="a chip other than that of hardware 'cloud'"):
        search(other, 100).found.text()


def test_a_batch_of_chips_gives_one_of_them_and_no_problem(problem: Problem) -> None:
    chip = problem.chip

    def twice(value: object) -> object:
        if isinstance(value, dict):
            return {key: twice(array) for key, array in value.items()}
        array = np.asarray(value)
        return np.stack([array, array * 2], axis=-1) if array.dtype.kind != "b" else np.stack([array, array], axis=-1)

    fields = [field.name for field in attrs.fields(Chip)[1:]]
    batch = Chip(chip.names, **{name: twice(getattr(chip, name)) for name in fields})  # type: ignore[arg-type]
    assert batch.batch == 2
    assert batch.total_area_mm2.shape == (2,)
    assert batch.take(np.array([1])).batch == 1
    one = batch.take(1)
    assert one.batch is None and one.capacity_bits[1] == 2 * chip.capacity_bits[1]
    assert problem.on(batch.take(0)).levels == problem.levels
    with pytest.raises(SearchError, match="batch of 2"):
        problem.on(batch)
    with pytest.raises(SearchError, match="one chip for all designs"):
        chip.take(0)


def test_a_chip_with_other_levels_is_refused(problem: Problem, registry: Registry) -> None:
    fewer = cloud()
    fewer["levels"] = [*fewer["levels"][:1], *fewer["levels"][2:]]
    with pytest.raises(SearchError, match="2 storage levels, expected 3"):
        problem.on(load_problem("mm3", fewer, registry=registry).chip)


def test_every_figure_that_is_wrong_is_named(registry: Registry, problem: Problem) -> None:
    class Broken(type(problem.technology)):  # type: ignore[misc]
        def area_mm2(self, level: object) -> float:
            return float("nan")

        def mac_pj(self, bits: int, action: str) -> float:
            return -1.0

    other = attrs.evolve(problem)
    other.__dict__["technology"] = Broken(**attrs.asdict(problem.technology, recurse=False))
    with pytest.raises(SpecError) as error:
        _ = other.chip
    text = str(error.value)
    assert "levels[0].area_mm2: is nan, expected mm2, 0 to 1e+18" in text
    assert "compute.energy.gated: is -1.0, expected picojoules, 0 to 1e+18" in text
