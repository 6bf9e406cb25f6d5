"""Networks whose tensors stay on chip: the plan is the optimum of its tables, its totals are sums, and it says why not."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.analytic import model
from sparsemap_plugins.analytic.bound import LowerBound
from sparsemap_plugins.reports.compare.sides import sides_of
from sparsemap_plugins.reports.compare.verdict import verdict
from sparsemap_plugins.workloads.operations import Concat

from sparsemap import SearchError, SparseMapError, load_problem, run_study, search_network
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.spec import toml_text
from sparsemap.study.fused import FusedPlan
from sparsemap.study.fused_result import FusedResult
from sparsemap.study.graph import passed
from sparsemap.study.network_result import NetworkResult
from sparsemap.study.packets import PLAIN, packet_of, packets, uncompressed
from sparsemap.study.plan import plan_of

CONV = {"type": "conv2d", "k": 8, "c": 8, "p": 6, "q": 6, "r": 3, "s": 3, "padding": 1}
BLOCK: dict[str, Any] = {
    "name": "block",
    "input": [8, 6, 6],
    "layers": [
        {"name": "first", **CONV},
        {"name": "second", **CONV, "repeat": 2},
        {"name": "sum", "type": "add", "inputs": ["second", "first"]},
        {"name": "last", "type": "conv2d", "k": 4, "c": 8, "p": 3, "q": 3, "stride": 2},
    ],
}
CHIP: dict[str, Any] = {
    "extends": "small",
    "name": "chip",
    "levels": [
        {"name": "DRAM", "class": "dram", "bandwidth": "2 GB/s"},
        {"name": "Buffer", "class": "sram", "capacity": "1600 words", "fanout": 8, "gate_skip": True},
    ],
}


def planned(
    out: Path | str = "", network: Mapping[str, Any] = BLOCK, hardware: Any = CHIP, **given: Any
) -> FusedResult:
    given = {"budget": 60, "seed": 1, "out": out, "space": "paper", **given}
    found = search_network(network, hardware, fuse=True, **given)
    assert isinstance(found, FusedResult)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fused")


@pytest.fixture(scope="module")
def result(folder: Path) -> FusedResult:
    return planned(folder)


def test_a_study_of_networks_plans_them_as_the_network_alone(folder: Path, result: FusedResult, tmp_path: Path) -> None:
    (tmp_path / "block.toml").write_text(toml_text.dumps({"kind": "network", **BLOCK}))
    study = {
        "kind": "study", "name": "two", "networks": ["block.toml"],
        "hardware": [CHIP, {**CHIP, "name": "other", "clock": "2 GHz"}],
    }  # fmt: skip
    study |= {"budget": 60, "seeds": [1], "space": "paper", "fuse": True}
    done = run_study(study, out=tmp_path / "out", base=tmp_path)
    assert [one.state for one in done] == ["done", "done"] and done[0].row["edp"] == result.edp
    assert done[1].row["seconds"] == done[1].row["cycles"] / 2e9
    for side, one in zip(sides_of(tmp_path / "out", planned=True), done, strict=True):
        assert math.fsum(part.costs.cycles for part in side.parts) == side.numbers["cycles"] == one.row["cycles"]
    sides = sides_of(tmp_path / "out", planned=True)
    assert verdict(sides)[0].count("with tensors on chip as planned on other and ") == 1
    again = run_study(study, out=tmp_path / "out", base=tmp_path)
    assert [(one.state, one.row) for one in again] == [("kept", one.row) for one in done]
    assert not [name for name in (tmp_path / "out").iterdir() if name.is_dir() and not (name / "plan").is_dir()]


@pytest.mark.parametrize(("budget", "bounds"), [(60, 4), (1000, 6)])
def test_short_searches_with_tensors_on_chip_ask_for_no_bound(
    monkeypatch: pytest.MonkeyPatch, budget: int, bounds: int
) -> None:
    asked: list[frozenset[str]] = []

    class Counted(LowerBound):
        def __init__(self, layout: Any, *given: Any) -> None:
            asked.append(frozenset(layout.problem.workload.resides))
            super().__init__(layout, *given)

    monkeypatch.setattr(model, "LowerBound", Counted)
    planned(budget=budget)
    assert len(asked) == bounds and asked.count(frozenset()) == 2  # by itself, for the plan, and for a long search


def test_results_are_told_in_a_line(result: FusedResult) -> None:
    assert re.fullmatch(
        r"FusedResult\(block on chip: EDP .* cycles, .* of the optimum for these sizes; 2 searches of 60 designs, .*\)",
        repr(result),
    )
    assert re.fullmatch(r"NetworkResult\(block on chip: EDP [^\n]{40,140}\)", repr(result.base))


def test_totals_are_sums_of_the_steps_and_no_worse_than_layer_by_layer(result: FusedResult) -> None:
    assert [row.layer for row in result.rows] == ["first", "second#1", "second#2", "sum", "last"]
    assert result.energy_pj == math.fsum(row.energy_pj for row in result.rows)
    assert result.cycles == math.fsum(row.cycles for row in result.rows)
    assert result.edp == result.energy_pj * result.cycles <= math.prod(result.layer_by_layer)
    assert result.seconds == result.costs["seconds"] == result.cycles / result.base.chip.clock_hz
    assert result.bound is not None and result.bound <= result.edp
    assert result.base.energy_pj is not None
    added = result.layer_by_layer[0] - result.base.energy_pj
    assert added == pytest.approx(3 * 288 * 0.5 * (512 + 512), rel=1.0)  # the sum reads two tensors and writes one


def test_what_lives_and_works_fits_at_every_step(result: FusedResult) -> None:
    words = {row.layer: row.words for row in result.rows}
    for row in result.rows:
        assert row.used_words <= result.capacity
        assert row.used_words >= sum(words[name] for name in row.live) - (words[row.layer] if row.type == "add" else 0)
    places = {row.layer: row.place for row in result.rows} | {"input": "DRAM"}
    assert all(tuple(places[n] for n in row.inputs) == row.from_places for row in result.rows)
    assert result.stays[1] == 4 and result.stays[0] > 0
    assert result.rows[-1].why == "the network's output"
    assert all((row.why == "") == (row.place == "Buffer") for row in result.rows)


def test_the_designs_of_the_plan_cost_what_it_says(folder: Path, result: FusedResult) -> None:
    fused = FusedPlan.of(plan_of(load(), BLOCK, CHIP, folder, 60, 1, None, "paper", "edp", None))
    for content, group in fused.layers.items():
        for one in group:
            row = next(row for row in result.rows if row.layer == one.name)
            problem = fused.variant(content, row.kept)
            assert [problem.tensors[t].name for t, home in enumerate(problem.homes) if home] == sorted(row.kept)
            assert row.utilisation is not None and 0 < row.utilisation <= 1
            written = design_file.load(folder / row.design, load())
            there = written.problem.evaluator.evaluate_designs(written.batch)
            assert there.valid[0] and (there.energy_pj[0], there.cycles[0]) == (row.energy_pj, row.cycles)
            assert dict(written.problem.workload.resides) == dict.fromkeys(row.kept, "Buffer")
            spent = sum(level["energy_pj"] for level in row.by_level["levels"])
            assert spent + sum(row.by_level.get("charges", {}).values()) == pytest.approx(row.energy_pj)


@pytest.mark.parametrize(("inner", "formats"), [("Buffer", "matched"), ("PE", "free")])
def test_designs_in_which_tensors_pass_by_or_are_decoded_mix_in_a_plan(
    inner: str, formats: str, tmp_path: Path
) -> None:
    """Genes mean the same wherever a tensor lives; the level that it lives in neither decodes it nor lets it pass."""
    levels: list[dict[str, Any]] = [*CHIP["levels"], {"name": "PE", "class": "regfile", "capacity": "64 words"}]
    hardware = {
        "extends": "small",
        "name": "chip",
        "converter": {"words_per_cycle": 4, "pj": 1.0, "area_mm2": 0.01},
        "levels": [{**level, "decodes": level["name"] == inner} for level in levels],
    }
    first, second = ({**CONV, "name": name, "density": {"P": 0.3}} for name in ("first", "second"))
    segments = ["orders", "tiling", "formats", "decoding", "passing", "gate-skip"]
    space = {"extends": "paper", "segments": segments, "passing": {"levels": {"Buffer": ["P", "Z"]}}}
    network = {"name": "two", "input": [8, 6, 6], "layers": [first, second]}
    found = planned(tmp_path, network, hardware, space=space, formats=formats, budget=24)
    assert found.complete and found.stays[0] > 0
    for row in found.rows:
        if row.design:
            written = design_file.load(tmp_path / row.design, load())
            there = written.problem.evaluator.evaluate_designs(written.batch)
            assert there.valid[0] and (there.energy_pj[0], there.cycles[0]) == (row.energy_pj, row.cycles)


@pytest.mark.slow
def test_jobs_change_nothing(result: FusedResult, tmp_path: Path) -> None:
    assert planned(tmp_path, jobs=2).to_dict() == result.to_dict()


def test_a_run_goes_on_where_it_was(folder: Path, result: FusedResult) -> None:
    written = json.loads((folder / "network.json").read_text())
    assert written["fused"]["edp"] == result.edp and written["edp"] == result.base.edp
    assert (folder / "fused.csv").read_text().count("\n") == 1 + len(result.rows)
    again = planned(folder)
    assert again.to_dict() == result.to_dict()
    assert all(layer.state == "kept" for layer in again.base.layers)


def test_a_plan_is_never_worse_than_the_one_whose_designs_it_starts_from(tmp_path: Path) -> None:
    conv = {**CONV, "p": 12, "q": 12}
    some = [{"name": name, **conv, "density": {"Q": q}} for name, q in (("a", 1.0), ("b", 0.3))]
    network = {"name": "net", "input": [8, 12, 12], "layers": [*some, {**BLOCK["layers"][3], "p": 6, "q": 6}]}
    hardware = {**CHIP, "levels": [CHIP["levels"][0], {**CHIP["levels"][1], "capacity": "700 words"}]}
    for formats in ("matched", "free"):
        best = planned(tmp_path / formats, network, hardware, budget=100, formats=formats)
        again = planned("", network, hardware, budget=12, seed=5, start=[tmp_path / formats], formats=formats)
        assert again.edp <= best.edp * (1 + 1e-12)
        layers = {layer.layer: layer.edp for layer in best.base.layers}
        assert all((layer.edp or math.inf) <= (layers[layer.layer] or 0) for layer in again.base.layers)


def test_a_tensor_that_does_not_fit_is_named_with_its_size() -> None:
    tight = {**CHIP, "levels": [CHIP["levels"][0], {**CHIP["levels"][1], "capacity": "287 words"}]}
    last = [{"name": "mean", "type": "global-average"}, {"name": "last", "type": "linear", "m": 1, "k": 8, "n": 4}]
    found = planned(hardware=tight, budget=30, network={**BLOCK, "layers": [BLOCK["layers"][0], *last]})
    assert found.rows[0].why == "288 words, Buffer holds 287" and found.rows[0].place == "DRAM"
    assert found.edp <= math.prod(found.layer_by_layer)


LINES: dict[str, Any] = {
    "name": "lines",
    "input": [2, 24, 24],
    "layers": [
        {"name": "widen", "type": "conv2d", "k": 24, "c": 2, "p": 24, "q": 24},
        {"name": "each", "type": "depthwise", "c": 24, "p": 24, "q": 24, "r": 3, "s": 3, "padding": 1},
        {"name": "narrow", "type": "conv2d", "k": 2, "c": 24, "p": 24, "q": 24},
    ],
}


def test_layers_run_interleaved_where_what_is_between_them_does_not_fit(tmp_path: Path) -> None:
    small = {**CHIP, "levels": [CHIP["levels"][0], {**CHIP["levels"][1], "capacity": "5000 words"}]}
    found = planned(tmp_path, network=LINES, hardware=small)
    widen, each, narrow = found.rows
    assert (widen.place, each.place) == ("Buffer", "Buffer") and widen.words == each.words == 13_824 > found.capacity
    assert widen.slides and each.slides and widen.used_words == each.used_words == narrow.used_words <= 5000
    assert sum(row.kept_words["Z"] for row in (widen, each)) < narrow.used_words
    assert found.edp == found.energy_pj * found.cycles < math.prod(found.layer_by_layer) / 4
    for row in found.rows:
        written = design_file.load(tmp_path / row.design, load())
        assert dict(written.problem.workload.slides) == row.walks and row.walks
        there = written.problem.evaluator.evaluate_designs(written.batch)
        assert there.valid[0] and (there.energy_pj[0], there.cycles[0]) == (row.energy_pj, row.cycles)
        moved = {name: there["reads"] for name, there in row.by_level["levels"][0].get("tensors", {}).items()}
        assert not set(moved) & set(row.kept)


def test_a_tensor_is_in_no_plan_on_chip_where_designs_leave_it_no_room() -> None:
    """A line would fit, the tiles beside it do not: there is no plan to compare with."""
    layers = [{"name": n, "type": "conv2d", "k": 8, "c": 8, "p": 6, "q": 6, "r": 3, "s": 3, "padding": 1} for n in "ab"]
    chip = {**CHIP, "levels": [CHIP["levels"][0], {**CHIP["levels"][1], "capacity": "170 words"}]}
    found = planned(network={"name": "pair", "input": [8, 6, 6], "layers": layers}, hardware=chip)
    assert found.complete and found.stays == (0, 1) and found.rows[0].why.startswith("no room beside tiles")


def test_without_shapes_nothing_stays() -> None:
    network = {"name": "list", "layers": BLOCK["layers"][:1] + BLOCK["layers"][-1:]}
    found = planned(network=network, budget=30)
    assert found.rows[0].why == "the network does not say its shape" and found.stays == (0, 1)


def test_operations_are_limited_by_what_they_move() -> None:
    small = {**CHIP, "levels": [CHIP["levels"][0], {**CHIP["levels"][1], "capacity": "300 words"}]}
    result = planned(hardware=small)
    (row,) = [row for row in result.rows if row.type == "add"]
    rows = {level["name"]: level for level in row.by_level["levels"]}
    slowest = max(rows.values(), key=lambda level: level["cycles"])
    assert row.limit == f"bandwidth of {slowest['name']}" and slowest["cycles"] == row.cycles
    assert math.fsum(level["energy_pj"] for level in rows.values()) == pytest.approx(row.energy_pj)
    (told,) = re.findall(r"limits   (.*)", result.totals_text())
    shares = [int(share) for share in re.findall(r"in (\d+) %", told)]
    assert 100 - len(shares) <= sum(shares) <= 100


def test_free_operations_cost_nothing() -> None:
    found = planned(operations="free", budget=30)
    assert next(row for row in found.rows if row.layer == "sum").energy_pj == 0.0
    assert math.prod(found.layer_by_layer) <= found.base.edp * (1 + 1e-12)
    with pytest.raises(SearchError, match="'fre'"):
        planned(operations="fre")


@pytest.mark.parametrize("operations", ["counted", "free"])
@pytest.mark.parametrize("rows", [63, 1])
def test_rows_that_a_network_keeps_are_read_from_where_they_live(rows: int, operations: str) -> None:
    """A decoder's keys and an image's class token: no plan, and no bound of plans, has them on chip for nothing."""
    layers = [
        {"name": "project", "type": "linear", "k": 16, "n": 16},
        {"name": "keys", "type": "prepend", "rows": rows},
        {"name": "scores", "type": "matmul", "h": 1, "m": 1, "k": 16, "n": rows + 1, "inputs": ["project", "keys"]},
    ]
    found = planned(network={"name": "kept", "input": [16], "layers": layers}, operations=operations)
    assert {row.layer: row.place for row in found.rows}["keys"] == "Buffer"
    chip, words = found.base.chip, rows * 16
    moved = 16 if operations == "counted" and found.rows[0].place == "DRAM" else 0
    (keys,) = (row for row in found.rows if row.layer == "keys")
    read, write = (float(chip.energy_pj[action][s]) for action, s in (("read", 0), ("write", 1)))
    assert keys.energy_pj == pytest.approx((words + moved) * (read + write))
    assert keys.cycles == math.ceil((words + moved) / chip.bandwidth[0]) and keys.limit == "bandwidth of DRAM"
    least = words + 16 * 16, (words + 16 * 16) / chip.bandwidth[0]  # with the weights
    assert found.bound is not None and least[0] * read * least[1] <= found.bound <= found.edp
    assert found.layer_by_layer[1] >= least[1]


@pytest.mark.parametrize("home", [0, 1])
def test_an_operation_without_words_of_its_own_moves_what_changes_its_place(home: int) -> None:
    """By (words, level) of its inputs, and what it has besides: of a row that is taken no more than that row."""
    chip = load_problem("mm1", "small").chip
    for given, size in (([(60, 0)], 8), ([(60, 1)], 8), ([(60, 1)], 100), ([(60, 0), (20, 1)], 80), ([(60, 0)], 100)):
        left, kept = [(min(words, size), level) for words, level in given if level != home], size - sum(dict(given))
        left += [(kept, 0)] if kept > 0 and home else []
        moved = sum(words for words, _ in left)
        energy = sum(words * chip.energy_pj["read"][level] for words, level in left)
        told = passed(Concat(), [(*one, chip) for one in given], (size, home, chip))
        assert told[0] == pytest.approx(energy + moved * chip.energy_pj["write"][home])
        assert (told[1] > 0) == (moved > 0)


def enlarged(kind: str, **more: Any) -> dict[str, Any]:
    """An image of which every word is there four times, joined with another one, and layers around."""
    wide = {"type": "conv2d", "k": 2, "p": 12, "q": 12, "r": 3, "s": 3, "padding": 1}
    layers = [
        {"name": "skip", **wide, "c": 2},
        {"name": "small", "type": "conv2d", "k": 4, "c": 2, "p": 6, "q": 6, "r": 2, "s": 2, "stride": 2},
        {"name": "up", "type": kind, "shape": [4, 12, 12], **more},
        {"name": "both", "type": "concat", "inputs": ["up", "skip"]},
        {"name": "moved", "type": "view", "shape": [6, 144]},
        {"name": "rows", "type": "linear", "m": 6, "k": 144, "n": 4},
        {"name": "last", **wide, "c": 6, "inputs": ["both"]},
    ]
    return {"name": "enlarged", "input": [2, 12, 12], "layers": layers}


def test_a_product_of_data_equal_to_a_layer_with_weights_has_its_own_search_and_places():
    """As in attention: the projection behind it has the sizes of scores times values."""
    product, dense = {"m": 16, "k": 16, "n": 16}, {"density": {"Q": 0.9}}
    layers = [
        {"name": "values", "type": "linear", **product, **dense},
        {"name": "scores", "type": "linear", **product, **dense, "inputs": ["values"]},
        {"name": "context", "type": "matmul", **product, "inputs": ["scores", "values"]},
        {"name": "out", "type": "linear", **product},
    ]
    for some in (
        layers,
        [*layers[:2], {**layers[3], "inputs": ["scores"]}, {**layers[2], "inputs": ["scores", "out"]}],
    ):
        found = search_network({"name": "attention", "input": [16, 16], "layers": some}, "edge", budget=20)
        assert found.searches == 3 and {row.layer: row.weights for row in found.rows}["context"] == ""
        weights = found.steady.pinned if found.steady else {}
        assert "context" not in weights and (found.ahead is None or "context" not in found.ahead.words)


def test_words_that_repeat_live_and_move_once() -> None:
    """Through views and concatenations; what is read of them is counted as often as it is read."""
    views, steps = planned(network=enlarged("view", factor=4)), planned(network=enlarged("transform"))
    words = {row.layer: row.words for row in views.rows}
    assert words["small"] == words["up"] == 4 * 36 and words["both"] == words["moved"] == 4 * 36 + 2 * 144
    places = {row.layer: row.place for row in views.rows}
    for name, before in (("up", "small"), ("moved", "both")):
        row = next(row for row in views.rows if row.layer == name)
        assert places[name] != places[before] or row.energy_pj == row.cycles == 0
    assert views.layer_by_layer[0] < steps.layer_by_layer[0] and views.edp < steps.edp


def test_words_that_take_each_others_place_live_by_turns_and_move_all() -> None:
    """As the states of a recurrent layer: six of them, one after the other."""
    layers = [
        {"name": "states", "type": "transform", "shape": [6, 60], "factor": 6, "inputs": []},
        {"name": "gates", "type": "linear", "m": 6, "k": 60, "n": 4, "inputs": ["states"]},
    ]
    found = planned(network={"name": "steps", "input": [60], "layers": layers})
    states, gates = found.rows
    assert states.place == "Buffer" and states.words == 360 and states.live_words == 60 and gates.kept_words["P"] == 60
    chip = found.base.chip
    assert states.energy_pj == pytest.approx(360 * float(chip.energy_pj["write"][1]))


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"type": "view", "shape": [4, 12, 12], "factor": 2}, "expected 288 words, of which its shape has 2 copies"),
        ({"type": "transform", "shape": [5], "factor": 2}, "factor = 2 does not divide the 5 words of its shape"),
    ],
)
def test_factors_that_do_not_fit_are_told(table: dict[str, Any], told: str) -> None:
    layers = [{"name": "small", "type": "conv2d", "k": 4, "c": 2, "p": 6, "q": 6}, table]
    with pytest.raises(SparseMapError, match=re.escape(told)):
        planned(network={"name": "odd", "input": [2, 6, 6], "layers": layers})


def test_a_layer_has_the_same_sizes_wherever_its_tensors_live() -> None:
    """Its genomes are designs of both; "up" alone is laid out larger, for tiles that fit."""
    layers = [{"type": "linear", "m": 512, "k": k, "n": n} for k, n in ((1024, 4096), (4096, 1024))]
    network = {"name": "wide", "input": [512, 1024], "layers": layers}
    plan = plan_of(load(), network, "edge-16gbps", Path("unused"), 60, 1, None, None, "edp", None)
    fused, padded = FusedPlan.of(plan), []
    for cells in fused.searched.values():
        alone, *others = (fused.loaded(cell) for cell in cells.values())
        assert others and all(one.sizes == alone.sizes for one in others)
        assert all(one.padded_text == alone.padded_text for one in others)
        padded.append(bool(alone.padded))
    assert any(padded)


def test_searches_of_a_plan_try_no_other_sizes() -> None:
    """Designs of a layer are evaluated with other tensors on chip, in the genes of one choice of sizes."""
    plan = plan_of(load(), BLOCK, "edge-16gbps", Path("unused"), 1000, 0, None, None, "edp", None)
    fused = FusedPlan.of(plan)
    assert not any(cell.raced for cell in fused.cells)
    folders = [cell.folder for cell in plan.cells]
    assert [cell.folder for cell in fused.cells][: len(folders)] == folders and len(fused.cells) > len(folders)


def test_what_is_broadcast_is_not_made_where_it_was_written() -> None:
    gate = [
        {"name": "mean", "type": "global-average"},
        {**CONV, "name": "up", "p": 1, "q": 1, "r": 1, "s": 1, "padding": 0},
    ]
    for before, into in (([], {"gated": "second"}), (gate, {})):
        last = {"name": "gated", "type": "multiply", "inputs": ["first", before[-1]["name"] if before else "second"]}
        layers = [{"name": "first", **CONV}, *(before or [{"name": "second", **CONV}]), last]
        plan = plan_of(load(), {**BLOCK, "layers": layers}, CHIP, Path("unused"), 60, 1, None, "paper", "edp", None)
        assert FusedPlan.of(plan, "fused").fused_into == into


def test_hardware_without_a_level_that_is_there_once_is_refused() -> None:
    spread = {**CHIP, "levels": [{**CHIP["levels"][0], "fanout": 4}, CHIP["levels"][1]]}
    with pytest.raises(SearchError, match="no level of 'chip' on chip is there once"):
        planned(hardware=spread, budget=20)


def test_the_command_prints_where_every_tensor_lives(folder: Path, result: FusedResult, tmp_path: Path) -> None:
    network, chip = tmp_path / "block.toml", tmp_path / "chip.toml"
    network.write_text(toml_text.dumps({"kind": "network", **BLOCK}))
    chip.write_text(toml_text.dumps({"kind": "hardware", **CHIP}))
    given = [
        "run", str(network), "--hardware", str(chip), "--budget", "60", "--seed", "1", "--space", "paper", "--fuse",
    ]  # fmt: skip
    found = CliRunner().invoke(cli, [*given, "--out", str(folder)])
    assert found.exit_code == 0, found.output
    assert f"{result.stays[0]} of 4 tensors between layers stay in Buffer, 0 of them slide by" in found.output
    assert ", proven for these sizes: the best plan is within " in found.output  # sizes may be padded


SPARSE = {"density": {"P": 0.3, "Q": 0.5, "Z": 0.3}}
PAIR: dict[str, Any] = {
    "name": "pair",
    "input": [8, 8, 8],
    "layers": [
        {"name": "one", "type": "conv2d", "k": 8, "c": 8, "p": 8, "q": 8, **SPARSE},
        {"name": "two", "type": "conv2d", "k": 8, "c": 8, "p": 8, "q": 8, **SPARSE},
    ],
}


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    fused = FusedPlan.of(plan_of(load(), PAIR, CHIP, Path("unused"), 60, 1, None, "paper", "edp", None))
    base = fused.plan.problem(fused.plan.cells[0])
    genomes = base.space.guess(200, np.random.default_rng(0))
    edges = [t for t, tensor in enumerate(base.tensors) if tensor.name in "PZ"]
    plain = np.array(uncompressed(base, [tuple(g) for g in genomes.tolist()], edges))
    told = packets(base, base.space.decode(plain), edges)
    assert len(plain) == 400 and set(told) == {(PLAIN, PLAIN)}
    before, after = (base.space.decode(some).columns for some in (genomes, plain[:200]))
    assert np.array_equal(before["bounds"], after["bounds"]) and np.array_equal(before["order"], after["order"])
    assert len(set(packets(base, base.space.decode(genomes), edges))) > 100

    free, matched = (
        planned(tmp_path / formats, network=PAIR, formats=formats, budget=40) for formats in ("free", "matched")
    )
    assert free.edp <= matched.edp
    one, two = (next(row for row in matched.rows if row.layer == name) for name in ("one", "two"))
    assert two.from_places == (one.place,)
    made, read = (design_file.load(tmp_path / "matched" / row.design, load()) for row in (one, two))
    assert packet_of(made, 2) == packet_of(read, 0) and (packet_of(read, 0) != PLAIN) == one.packed


def test_packets_begin_at_the_outermost_compressed_rank() -> None:
    design = design_file.structure(
        {
            "cost_model": "timeloop",
            "workload": {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 4, "k": 8, "n": 2},
                         "density": {"P": 0.5, "Q": 1.0}},
            "hardware": "small",
            "mapping": {"L1_T": ["k=2"], "L2_T": ["n=2", "m=4"], "L2_S": ["k=4"]},
            "formats": {t: ["uncompressed"] * 4 for t in "QZ"} | {"P": ["uncompressed"] * 2 + ["bitmask", "coordinate"]},
            "beyond_format": "uncompressed",
            "gate_skip": {"Buffer": "none", "MAC": "none"},
        },
        load(),
    )  # fmt: skip
    assert packet_of(design, 0) == ((0, 4, "bitmask"), (1, 4, "coordinate"))
    assert packet_of(design, 1) == PLAIN


def test_a_tensor_that_a_level_does_not_store_passes_by_in_the_plan_too(tmp_path: Path) -> None:
    levels = [CHIP["levels"][0], {**CHIP["levels"][1], "bypass": ["Z"]}]
    found = planned(tmp_path, hardware={**CHIP, "levels": levels}, budget=30)
    assert (
        found.stays[0] == 0
        and found.steady is not None
        and set(found.steady.pinned) <= {row.layer for row in found.rows}
    )
    assert [row.why for row in found.rows[:2]] == [
        f"Buffer does not store it for {x} (bypass)" for x in ("first", "second#1")
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"network": {"name": "list", "layers": BLOCK["layers"][:1]}}, "'list' is a list of layers, which does not say its"),
        ({"objective": "pareto:energy_pj,cycles"}, "objective 'pareto:energy_pj,cycles' has several values for a design"),
        ({"hardware": {**CHIP, "levels": [{**CHIP["levels"][0], "fanout": 4}, CHIP["levels"][1]]}}, "is there once"),
    ],
)  # fmt: skip
def test_a_network_without_a_plan_says_why_first_and_claims_no_gain(change: Any, why: str, tmp_path: Path) -> None:
    given = {"network": BLOCK, "hardware": CHIP, "budget": 20, "seed": 1, "space": "paper"} | change
    found = search_network(**given)
    assert isinstance(found, NetworkResult) and why in found.unplanned and why in found.to_dict()["unplanned"]
    assert "better" not in found.totals_text()
