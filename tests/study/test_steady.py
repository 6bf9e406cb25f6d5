"""Steady state: pinned weights take room at every step, cost nothing off chip, and no other set of layers is better."""

from __future__ import annotations

import math
import random
from itertools import combinations, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sparsemap_plugins.verify import verify
from test_fused import BLOCK, CHIP, planned

from sparsemap.csv_files import read_csv
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.study import pinned as pinning
from sparsemap.study.baselines import common_practice, layers_alone
from sparsemap.study.fused_result import FusedResult
from sparsemap.study.join import Step, TablePoint, joined
from sparsemap.study.packets import TensorPlace
from sparsemap.study.pinned import Pinning

LARGE: dict[str, Any] = {
    **CHIP, "levels": [CHIP["levels"][0], {**CHIP["levels"][1], "capacity": "2600 words"}],
}  # fmt: skip
WEIGHTS = 8 * 8 * 9


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("steady")


@pytest.fixture(scope="module")
def result(folder: Path) -> FusedResult:
    found = planned(folder, hardware=LARGE)
    assert found.steady is not None
    return found


def test_pinned_weights_take_room_at_every_step_and_none_off_chip(result: FusedResult) -> None:
    steady = result.steady
    assert steady is not None and steady.edp < result.edp
    assert steady.pinned_room == sum(steady.pinned.values()) and set(steady.pinned) <= {
        row.layer for row in steady.rows
    }
    for row in steady.rows:
        assert steady.pinned_room <= row.live_words <= row.used_words <= steady.capacity
        outside = row.by_level["levels"][0].get("tensors", {}) if row.by_level else {}
        assert ("Q" in row.kept) == (row.layer in steady.pinned) and not set(outside) & set(row.kept)
        if row.layer in steady.pinned:
            assert row.kept_words["Q"] == steady.pinned[row.layer] == (32 * 8 if row.layer == "last" else WEIGHTS)


def test_loading_moves_every_pinned_word_on_chip_once(result: FusedResult) -> None:
    steady, chip = result.steady, result.base.chip
    assert steady is not None
    words = sum(steady.pinned.values())
    move = float(chip.energy_pj["read"][0] + chip.energy_pj["write"][1])
    assert steady.loading == (pytest.approx(words * move), math.ceil(words / chip.bandwidth[0]))


def test_designs_in_steady_state_cost_what_the_plan_says_and_execute(folder: Path, result: FusedResult) -> None:
    steady, registry = result.steady, load()
    assert steady is not None
    for row in steady.rows:
        if row.design:
            written = design_file.load(folder / row.design, registry)
            there = written.problem.evaluator.evaluate_designs(written.batch)
            assert there.valid[0] and (there.energy_pj[0], there.cycles[0]) == (row.energy_pj, row.cycles)
            assert dict(written.problem.workload.resides) == dict.fromkeys(row.kept, "Buffer")
            executed = verify(written.problem, written.batch, trials=2)
            assert executed.correct and not executed.off
            assert executed.row("energy_pj").mean == pytest.approx(row.energy_pj, rel=0.03)


def test_pinned_weights_are_in_every_form_of_the_result(folder: Path, result: FusedResult) -> None:
    steady = result.steady
    assert steady is not None
    table = result.to_dict()["steady"]
    assert (table["edp"], table["pinned"]) == (steady.edp, dict(steady.pinned))
    assert len((folder / "steady.csv").read_text().splitlines()) == 1 + len(steady.rows)
    text = result.totals_text()
    assert f"{len(steady.pinned)} layers keep their weights in Buffer" in text
    assert "layers alone" in text and "common practice" in text


def test_bytes_of_steps_add_up_to_those_of_levels_and_of_the_network(folder: Path, result: FusedResult) -> None:
    width, chip = 2.0, result.base.chip
    assert chip.word_bits[0] == 8 * width
    for plan, file in ((result, "fused.csv"), (result.steady, "steady.csv")):
        assert plan is not None
        rows, (outside, home) = read_csv(folder / file), plan.traffic.items()
        assert (outside[0], home[0]) == ("DRAM", "Buffer")
        for key, (_, kinds) in (("outside_bytes", outside), ("home_bytes", home)):
            assert math.fsum(float(row[key]) for row in rows) == pytest.approx(math.fsum(kinds.values()))
        streamed = sum(row.macs > 0 and row.layer not in plan.pinned for row in plan.rows)
        assert (outside[1]["weights"] > 0) == (streamed > 0)
        assert plan.speed is not None and plan.speed.tops <= plan.speed.roof_tops * (1 + 1e-12)
        assert plan.speed.inferences_per_s == pytest.approx(1 / plan.seconds)
        assert plan.speed.intensity == pytest.approx(2 * sum(r.macs for r in plan.rows) / sum(outside[1].values()))


@pytest.mark.parametrize("operations", ["counted", "fused"])
def test_an_addition_moves_the_bytes_of_its_tensors_off_chip(operations: str) -> None:
    """Fused, the first operand comes from the layer before, which writes the sum."""
    small = {**CHIP, "levels": [CHIP["levels"][0], {**CHIP["levels"][1], "capacity": "280 words"}]}
    found = planned(hardware=small, budget=20, operations=operations)
    (row,) = (row for row in found.rows if row.layer == "sum")
    places = [*row.from_places, row.place]
    at_hand = operations == "fused" and places[0] == places[-1]
    tensors = places[1:2].count("DRAM") if at_hand else places.count("DRAM")
    assert tensors > 0 and row.by_level["levels"][0]["bytes_by_tensor"] == {"moved": tensors * 288 * 2.0}


def test_without_room_for_weights_there_is_no_steady_state() -> None:
    small = {**CHIP, "levels": [CHIP["levels"][0], {**CHIP["levels"][1], "capacity": "250 words"}]}
    assert planned(network={**BLOCK, "layers": BLOCK["layers"][:1]}, hardware=small).steady is None


# ---------------------------------------------------------------------------------------------- sets, by trying them all


def random_tables(rng: random.Random) -> Any:
    """A chain of two to five layers with random designs, some cheaper with pinned weights, as `Pinning` needs them."""
    names = [f"n{i}" for i in range(rng.randint(2, 5))]
    words = {name: float(rng.randint(3, 20)) for name in names}
    steps: dict[tuple[str, bool], Step] = {}
    for i, name in enumerate(names):
        for kept in (False, True):
            tables = {}
            for inputs, place in product("DC" if i else "-", "DC"):
                share = (0.9 if kept else 1.6) - 0.3 * (inputs == "C") - 0.3 * (place == "C")
                points = [
                    TablePoint(share * rng.randint(40, 90), share * rng.randint(40, 90), rng.randint(2, 15))
                    for _ in range(3)
                ]
                given = (TensorPlace(inputs),) if i else ()
                tables[given, TensorPlace(place)] = points
            size = float(rng.randint(5, 15)) if not kept else steps[name, False].words[TensorPlace("C")]
            given_by = (names[i - 1],) if i else ()
            steps[name, kept] = Step(name=name, inputs=given_by, tables=tables, words={TensorPlace("C"): size})
    node = SimpleNamespace(loops=True, tied="", content="")
    graph = [SimpleNamespace(name=name, inputs=steps[name, False].inputs, node=attrs_of(node, name)) for name in names]
    fused = SimpleNamespace(
        graph=graph, capacity=float(rng.randint(30, 70)), value=lambda energy, cycles: energy * cycles, home=1,
        shares=dict.fromkeys(names, 1.0), made_in={}, places=("D", "C"), named={one.name: one for one in graph},
    )  # fmt: skip
    return SimpleNamespace(
        fused=fused, pinned_words=words, fitting={}, groups_with=lambda some, room: [],
        step=lambda one, kept: steps[one.name, kept], streamed=[steps[name, False] for name in names],
    )  # fmt: skip


def attrs_of(node: SimpleNamespace, content: str) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(node), "content": content})


@pytest.mark.parametrize("seed", range(24))
def test_the_plan_in_steady_state_is_the_best_of_all_sets(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = random_tables(random.Random(seed))
    fused = tables.fused
    monkeypatch.setattr(Pinning, "_loading", lambda self, words: (0.0, 0.0))
    cold = joined(tables.streamed, fused.capacity)
    assert cold is not None
    best, names = cold.energy_pj * cold.cycles, [one.name for one in fused.graph]
    for count in range(len(names) + 1):
        for some in combinations(names, count):
            room = fused.capacity - sum(tables.pinned_words[name] for name in some)
            steps = [tables.step(one, one.name in some) for one in fused.graph]
            for keys in product(*(step.tables for step in steps)):
                cost = cheapest(steps, keys, room)
                best = min(best, cost)
    found = Pinning(tables, cold).best
    value = cold.energy_pj * cold.cycles if found is None else found.plan.energy_pj * found.plan.cycles
    assert value == pytest.approx(best, rel=1e-12)


def cheapest(steps: list[Step], keys: Any, room: float) -> float:
    """Least product of energy and cycles of a chain with tensors at these places, by trying all designs."""
    fitting, before = [], 0.0
    for i, (step, (inputs, place)) in enumerate(zip(steps, keys, strict=True)):
        if i and inputs[0] != keys[i - 1][1]:
            return math.inf
        own = step.words.get(place, 0.0)
        fitting.append([p for p in step.tables[inputs, place] if p.room + before + own <= room])
        before = own
    sums = (map(sum, zip(*((p.energy_pj, p.cycles) for p in some), strict=True)) for some in product(*fitting))
    return min((math.prod(both) for both in sums), default=math.inf)


def test_many_layers_fill_the_chip_by_gain_per_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """With more layers than all sets are tried for, weights of the largest gain per word are pinned first."""
    monkeypatch.setattr(pinning, "FEW", 1)
    monkeypatch.setattr(Pinning, "_loading", lambda self, words: (0.0, 0.0))
    for seed in range(20):
        tables = random_tables(random.Random(seed))
        cold = joined(tables.streamed, tables.fused.capacity)
        assert cold is not None
        gains = {name: 0.1 / place for place, name in enumerate(tables.fused.named, 1)}
        some = Pinning(tables, cold)
        some.__dict__["gains"] = gains
        found = some.best
        if found is not None:
            assert found.plan.energy_pj * found.plan.cycles < cold.energy_pj * cold.cycles
            assert found.room + max(step.used for step in found.plan.steps) <= tables.fused.capacity


# --------------------------------------------------------------------------------------------------------- baselines


@pytest.mark.parametrize("seed", range(16))
def test_no_baseline_is_better_than_the_plan_and_layers_alone_are_all_off_chip(seed: int) -> None:
    tables = random_tables(random.Random(seed))
    how = tables.streamed, tables.fused.capacity, tables.fused.value
    best, known = joined(*how), dict[Any, Any]()
    alone = layers_alone(*how, "D", known)
    assert best is not None and alone is not None
    assert {place.level for place in alone.places.values()} == {"D"}  # type: ignore[attr-defined]
    practice = common_practice(*how, "C", alone, "D", known)
    assert practice is not None and all(step.used <= tables.fused.capacity for step in practice.steps)
    values = [plan.energy_pj * plan.cycles for plan in (best, practice, alone)]
    assert values == sorted(values)
