"""One chip for a network: a hardware with choices, the units that it has, and the outer search over both."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import attrs
import numpy as np
import pytest
from sparsemap_plugins.chips import model as chip_model
from sparsemap_plugins.chips.genes import ChipGenes
from sparsemap_plugins.chips.model import worth_of
from sparsemap_plugins.chips.search import DesignTask, designed, inner_of, outer_problem

from sparsemap import Budget, Search, SearchError, SpecError, load_problem, search
from sparsemap.errors import DesignError
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.searching import budget

HARDWARE = """
kind = "hardware"
name = "tiny-space"
extends = "small"
technology = "12nm-recommended"
constraints = ["Buffer.capacity <= 128 * 16"]
levels.Buffer.capacity = { choices = ["32 words", "64 words", "128 words", "256 words"] }
levels.Buffer.fanout = { low = 2, high = 8, factor = 2 }
"""
NETWORK = """
kind = "network"
name = "two"
layers = [
  { name = "a", workload = "small-sparse", repeat = 3 },
  { name = "b", workload = "small-matmul" },
]
"""


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.fixture
def task(tmp_path: Path) -> DesignTask:
    (tmp_path / "chip.toml").write_text(HARDWARE)
    (tmp_path / "network.toml").write_text(NETWORK)
    return DesignTask(
        networks=(str(tmp_path / "network.toml"),),
        hardware=str(tmp_path / "chip.toml"),
        out=tmp_path / "out",
        space="small",
        budget=12,
        layer_budget=40,
    )


# ------------------------------------------------------------------------------------------ a hardware with choices


def test_a_key_may_hold_its_choices_or_a_range_and_the_hardware_has_the_first(registry):
    varied = {"Buffer": {"capacity": {"choices": ["64 words", "1 KB"]}, "fanout": {"low": 2, "high": 9, "step": 3}}}
    hardware = registry.build("hardware", {"extends": "small", "levels": varied})
    assert hardware.choices == {"levels.Buffer.capacity": ("64 words", "1 KB"), "levels.Buffer.fanout": (2, 5, 8)}
    assert (hardware.levels[1]["capacity"], hardware.levels[1]["fanout"]) == ("64 words", 2)
    assert search(load_problem("small-matmul", hardware, "small", registry=registry), 50).best is not None


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"choices": []}, "levels.Buffer.capacity"),
        ({"low": "64 KB", "high": "1 MB", "factor": 2}, "same unit"),
        ({"low": 4, "high": 2, "factor": 2}, "low <= high"),
        ({"low": 1, "high": 8, "factor": 1}, "factor above 1"),
    ],
)
def test_what_cannot_be_chosen_from_is_named(registry, given, text):
    with pytest.raises(SpecError, match=text):
        registry.build("hardware", {"extends": "small", "levels": {"Buffer": {"capacity": given}}})


# ------------------------------------------------------------------------------------------------------------- units


def chip(registry, units, workload="small-sparse"):
    hardware = {"extends": "small", "name": "c", "technology": "12nm-recommended", "units": units}
    return load_problem(workload, hardware, "small", registry=registry)


def test_designs_use_only_the_units_of_the_chip_and_none_at_all_is_always_possible(registry):
    problem = chip(registry, {"formats": {"P": ["bitmask"]}, "mechanisms": {"MAC": ["gate-both"]}})
    designs = problem.space.decode(problem.space.sample(500, np.random.default_rng(0)))
    formats, mechanisms = problem.candidates("format"), problem.candidates("mechanism")
    chosen = [{formats[i].name for i in np.unique(designs.formats[:, t])} for t in range(3)]
    assert chosen == [{"uncompressed", "bitmask"}, {"uncompressed"}, {"uncompressed"}]
    places = [{mechanisms[i].name for i in np.unique(designs.mechanisms[:, a])} for a in range(2)]
    assert places == [{"none"}, {"none", "gate-both"}]


def test_genes_of_designs_are_kept_and_a_unit_that_is_not_there_is_named(registry):
    free = load_problem("small-sparse", {"extends": "small", "name": "c"}, "small", registry=registry)
    owned = chip(registry, {"formats": {"P": ["bitmask"]}})
    genomes = owned.space.repair(owned.space.sample(200, np.random.default_rng(1)), np.random.default_rng(2))
    designs = owned.space.decode(genomes)
    again = owned.space.decode(owned.space.encode(designs))
    assert all(np.array_equal(again.columns[key], designs.columns[key]) for key in designs.columns)
    canonical = owned.space.canonical(genomes)
    assert np.array_equal(owned.space.canonical(canonical), canonical)
    every = free.space.decode(free.space.sample(200, np.random.default_rng(1)))
    with pytest.raises(DesignError, match="which the units of the chip do not have"):
        owned.space.encode(every)


def test_units_have_the_area_of_their_gates_once_per_instance(registry):
    """The buffer has one decoder of P; eight multipliers each have the gate. A 16-bit MAC is the measure."""
    units = {"formats": {"P": ["bitmask"]}, "mechanisms": {"MAC": ["gate-both"]}}
    problem, bare = chip(registry, units), chip(registry, {})
    macs = registry.get("format", "bitmask").unit_macs + 8 * registry.get("mechanism", "gate-both").unit_macs
    expected = macs * problem.technology.mac_area_mm2(16)
    assert float(problem.chip.units_area_mm2) == pytest.approx(expected, rel=1e-12)
    added = float(problem.chip.total_area_mm2 - bare.chip.total_area_mm2)
    assert added == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("units", "text"),
    [
        ({"formats": {"P": ["bitmsk"]}}, "did you mean 'bitmask'"),
        ({"mechanisms": {"MAk": ["gate-both"]}}, "did you mean 'MAC'"),
        ({"formats": {"W": ["bitmask"]}}, "units.formats.W"),
    ],
)
def test_a_unit_that_cannot_be_is_named(registry, units, text):
    problem = chip(registry, units)
    with pytest.raises(SpecError, match=text):
        problem.chip, problem.space.decode(problem.space.sample(1, np.random.default_rng(0)))


# -------------------------------------------------------------------------------------------------------- the search


def test_a_chip_for_two_layers_adds_up_and_its_files_give_the_same(task, registry):
    result = designed(task)
    layers = result.final["layers"]
    assert result.final["energy_pj"] == float(np.sum([row["times"] * row["energy_pj"] for row in layers]))
    assert [row["times"] for row in layers] == [3, 1]
    hardware = registry.resolve("hardware", str(task.out / "chip.toml"))
    assert hardware.units is not None and not hardware.choices
    problem = load_problem("small-sparse", hardware, "small", registry=registry)
    assert float(problem.chip.total_area_mm2) == result.final["area_mm2"]
    for row in layers:
        design = design_file.load(task.out / "layers" / row["folder"] / "design.toml", registry)
        again = design.problem.evaluator.evaluate_designs(design.batch)
        assert (again.energy_pj[0], again.cycles[0]) == (row["energy_pj"], row["cycles"])
    found = json.loads((task.out / "design.json").read_text())
    assert found["edp_js"] == result.edp_js and found["chips"] >= 12


def test_a_stopped_search_goes_on_and_ends_the_same_with_two_jobs_too(task, tmp_path, monkeypatch):
    whole = designed(task)
    stopped = attrs.evolve(task, out=tmp_path / "stopped")
    count = itertools.count()

    def worth(*args, **keys):
        if next(count) == 5:
            raise KeyboardInterrupt
        return worth_of(*args, **keys)

    monkeypatch.setattr(chip_model, "worth_of", worth)
    with pytest.raises(KeyboardInterrupt):
        designed(stopped)
    monkeypatch.undo()
    file = stopped.out / "chips.jsonl"
    kept = file.read_text().splitlines()
    assert len(kept) == 6
    file.write_text("\n".join(kept) + "\n" + whole_line(kept[-1])[:40])  # killed while it wrote
    again = designed(attrs.evolve(stopped, jobs=2))
    for name in ("design.json", "chip.toml", "layers.csv", "front.csv"):
        assert (stopped.out / name).read_text() == (task.out / name).read_text()
    assert whole.edp_js == again.edp_js


def whole_line(line: str) -> str:
    return json.dumps({**json.loads(line), "digest": "cut"})


def test_a_level_that_choices_name_has_to_be_there(task, tmp_path):
    text = HARDWARE.replace("levels.Buffer.fanout = { low = 2, high = 8, factor = 2 }", "")
    (tmp_path / "typo.toml").write_text(text + '[choices]\n"levels.Bufer.fanout" = [2, 4]\n')
    with pytest.raises(SpecError, match="did you mean 'Buffer'"):
        designed(attrs.evolve(task, hardware=str(tmp_path / "typo.toml")))


def test_constraints_hold_and_one_that_cannot_be_read_is_named(task, tmp_path, monkeypatch):
    result = designed(task)
    assert all(row["set"]["levels.Buffer.capacity"] != "256 words" for row in result.valid)
    for text, said in [("Buffer.capcity <= 3", "did you mean 'Buffer.capacity'"), ("area_mm2 <", "area_mm2 <")]:
        with pytest.raises(SpecError, match=said):
            designed(attrs.evolve(task, constraints=(text,)))
    monkeypatch.setattr(budget, "PROPOSALS", 2)
    with pytest.raises(SearchError, match=r"none of \d+ chips is valid: \d+ of area_mm2 <= 1e-9"):
        designed(attrs.evolve(task, constraints=("area_mm2 <= 1e-9",), out=tmp_path / "none"))


def test_the_best_chip_of_all_is_found_by_most_seeds(task):
    """All chips of a small space are evaluated first; then searches only look them up."""
    task = attrs.evolve(task, share="sizes", layer_budget=30, budget=30)
    problem = outer_problem(task, "")
    model = problem.cost_model
    every = np.array(list(itertools.product(*(range(high + 1) for high in problem.space.high))), np.int64)
    scores = problem.evaluator.score(problem.evaluator.evaluate(every))
    assert np.isfinite(scores).sum() == 9  # of 12, as three break the constraint
    found = []
    for seed in range(20):
        run = Search(problem, task.searcher, Budget(task.budget, count="valid"), seed)
        while run.ask() is not None:
            run.tell(run.evaluate())
        found.append(run.archive.score)
    assert sum(score == scores.min() for score in found) >= 18
    assert len(model.tried(problem).rows) == 12
    assert isinstance(next(iter(problem.space.segments.values())), ChipGenes)
    assert inner_of(task, "").budget == 30 and math.isfinite(min(found))


def test_designs_of_the_search_start_the_layers_of_the_chip(task):
    """So the chip as it is written is never worse than the search saw it."""
    result = designed(task)
    for final, seen in zip(result.final["layers"], result.searched["layers"], strict=True):
        assert final["energy_pj"] * final["cycles"] <= seen["energy_pj"] * seen["cycles"]
    assert isinstance(result.front[0], dict) and Design is not None
