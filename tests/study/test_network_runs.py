"""Searches of networks: equal layers once, totals over all, and results that depend on neither jobs nor interruptions."""

from __future__ import annotations

import csv
import json
import math
import re
from inspect import signature
from pathlib import Path
from typing import Any, Literal, get_overloads, get_type_hints

import pytest
from click.testing import CliRunner

from sparsemap import Budget, DesignError, SearchError, load_problem, search, search_network
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.pieces.study_spec import Study
from sparsemap.problem.network import Node, nodes_of
from sparsemap.spec import toml_text
from sparsemap.study.fused_result import FusedResult
from sparsemap.study.network_result import NetworkResult
from sparsemap.study.plan import earlier
from sparsemap.study.study import run_study

CONV = {"type": "conv2d", "k": 8, "c": 8, "p": 6, "q": 6, "r": 3, "s": 3, "padding": 1}
TINY: dict[str, Any] = {
    "name": "tiny",
    "input": [8, 6, 6],
    "layers": [
        {"name": "first", **CONV},
        {"name": "second", **CONV, "repeat": 2},
        {"name": "mean", "type": "global-average"},
        {"name": "fc", "type": "linear", "k": 8, "n": 10, "density": {"Q": 0.5}},
        {"name": "again", "type": "linear", "k": 10, "n": 16},
    ],
}
BUDGET = 100
SPACE = "paper"  # whose bounds are made soon


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"budget": 0}, "the budget is 0 designs, expected a whole number, at least 1"),
        ({"budget": "60"}, "the budget is '60' designs, expected a whole number, at least 1"),
        ({"seed": -1}, "the seed is -1, expected a whole number, at least 0"),
        ({"seed": 1.5}, "the seed is 1.5, expected a whole number, at least 0"),
        ({"count": "vaild"}, "no count 'vaild'; did you mean 'valid'?"),
    ],
)
def test_what_no_search_takes_is_refused_before_any_layer_is_searched(tmp_path, given, text):
    for more in ({}, {"jobs": 2}, {"fuse": True}, {"overwrite": True}):
        with pytest.raises(SearchError, match=re.escape(text)):
            search_network(TINY, "mobile", out=tmp_path / "out", **{"budget": 60, **given}, **more)
    assert not (tmp_path / "out").exists()
    with pytest.raises(SearchError, match=re.escape(text)):
        search(
            load_problem("mm1", "mobile"),
            given.get("budget", Budget(60, count=given.get("count", "all"))),
            given.get("seed", 0),
        )


def test_a_seed_that_no_search_takes_is_refused_before_any_cell_of_a_study_runs(tmp_path):
    parts = {"name": "s", "hardware": ["mobile"], "budget": 60, "seeds": [0, -1]}
    toml_text.write(tmp_path / "tiny.toml", {"kind": "network", **TINY})
    for study in ({"workloads": ["mm1"], **parts}, {"networks": [str(tmp_path / "tiny.toml")], **parts}):
        with pytest.raises(SearchError, match="the seed is -1, expected a whole number, at least 0"):
            run_study(study, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def searched(out: Path | str = "", **given: Any) -> NetworkResult:
    return search_network(
        TINY, "edge-16gbps", fuse=False,
        **{"budget": BUDGET, "seed": 3, "out": out, "warm_start": "off", "space": SPACE, **given},
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("network")


@pytest.fixture(scope="module")
def result(folder: Path) -> NetworkResult:
    return searched(folder)


def test_equal_layers_are_searched_once_and_operations_not_at_all(result: NetworkResult, folder: Path):
    assert [(layer.layer, layer.searched, layer.repeat) for layer in result.layers] == [
        ("first", "first", 1), ("second", "first", 2), ("fc", "fc", 1), ("again", "again", 1),
    ]  # fmt: skip
    assert result.searches == 3 and result.layers[0].edp == result.layers[1].edp
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["again", "fc", "first"]
    assert (folder / "first" / "design.toml").exists()


def test_totals_are_sums_over_the_layers_and_their_product(result: NetworkResult, folder: Path):
    with (folder / "layers.csv").open() as file:
        rows = list(csv.DictReader(file))
    energy, cycles = (
        math.fsum(int(row["repeat"]) * float(row[key]) for row in rows) for key in ("energy_pj", "cycles")
    )
    assert (result.energy_pj, result.cycles, result.edp) == (energy, cycles, energy * cycles)
    assert result.seconds == pytest.approx(cycles / 1e9)
    assert math.isclose(sum(float(row["share_of_energy_pj"]) for row in rows), 1.0)
    table = json.loads((folder / "network.json").read_text())
    assert table["edp"] == result.edp and table["complete"] and len(table["layers"]) == 4
    table_text = (folder / "layers.md").read_text()
    assert "| fc         | m 1 k 8 n 10            | P 1 Q 0.5 |     1 |" in table_text, "with sizes and densities"
    assert re.search(r"\| all layers \| +\| +\| +5 \|", table_text)


def test_no_designs_of_the_layers_have_a_lower_product_than_the_bound(result: NetworkResult):
    assert result.bound is not None and result.edp is not None and 0 < result.bound <= result.edp
    for layer in result.layers:
        assert layer.energy_pj and layer.cycles and layer.bound_energy_pj and layer.bound_cycles
        assert layer.bound_energy_pj <= layer.energy_pj and layer.bound_cycles <= layer.cycles


def test_a_layer_ends_as_a_search_of_its_own(result: NetworkResult):
    registry = load()
    nodes = {node.name: node for node in nodes_of(registry.build("network", TINY), registry)}
    for layer in result.layers:
        problem = load_problem(nodes[layer.searched].piece, "edge-16gbps", SPACE, registry=registry)
        assert search(problem, BUDGET, 3).found.edp == layer.edp


def test_a_run_that_is_repeated_keeps_what_has_ended(result: NetworkResult, folder: Path):
    (folder / "fc" / "result.json").unlink()
    again = searched(folder)
    assert [layer.state for layer in again.layers] == ["kept", "kept", "done", "kept"]
    assert again.totals == result.totals


def test_a_layer_that_fails_is_named_and_the_others_go_on(tmp_path: Path):
    (tmp_path / "fc").write_text("in the way of the layer's folder")
    found = searched(tmp_path)
    assert [layer.state for layer in found.layers] == ["done", "done", "failed", "done"]
    assert "fc" in found.layers[2].error and found.layers[2].edp is None
    assert found.edp is None and not found.complete
    assert "| incomplete |" in (tmp_path / "layers.md").read_text()
    assert json.loads((tmp_path / "network.json").read_text())["energy_pj"] is None


def test_a_layer_without_a_valid_design_makes_the_totals_incomplete():
    small = {"extends": "small", "levels": {"DRAM": {"capacity": "1 B"}}}
    found = search_network(TINY, small, budget=20, fuse=False)
    reasons = [layer.error.split(": ", 1) for layer in found.layers]
    assert {what for what, _ in reasons} == {"no valid design was found"} and found.edp is None
    assert all(why.startswith("DRAM: needs ") for _, why in reasons)


# -------------------------------------------------------------------------------------------------------- the command


def run(*args: object, code: int = 0) -> Any:
    done = CliRunner().invoke(cli, ["run", *map(str, args)])
    assert done.exit_code == code, (done.stdout, done.stderr, done.exception)
    return done


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(toml_text.dumps({"kind": "network", **TINY}))
    return "tiny.toml"


def test_the_command_prints_a_row_per_search_and_the_totals(tiny: str, result: NetworkResult, folder: Path):
    given = (
        tiny, "--hardware", "edge-16gbps", "--budget", BUDGET, "--seed", 3, "--warm-start", "off", "--space", SPACE,
        "--no-fuse",
    )  # fmt: skip
    text = run(*given).stdout
    assert sorted(path.name for path in Path().iterdir()) == ["tiny.toml"]  # nothing is written without --out
    assert "first and 1 more      3" in text and "tiny on edge-16gbps: 5 layers, 3 searches of 100 designs each" in text
    costs = result.costs
    assert f"EDP      {costs['edp_js']:.4g} J * s ({result.edp:.4g} pJ * cycles)" in text
    assert f"W on the mean, {costs['area_mm2']:.3g} mm2" in text
    limits = [(layer.limit or "").split(",")[0].removeprefix("the ") for layer in result.layers]
    most = max(
        limits,
        key=lambda name: sum(x.repeat * x.cycles for x, y in zip(result.layers, limits, strict=True) if y == name),
    )
    assert f"\nlimits   {most} in " in text and " of the cycles" in text
    table = json.loads(run(*given, "--json", "--out", folder).stdout)
    assert {key: table[key] for key in result.totals} == result.totals


def test_what_is_wrong_is_said_before_anything_is_searched(tiny: str):
    assert "'resnet50' is a network; say on which hardware: --hardware NAME" in run("resnet50", code=2).stderr
    assert "--budget is for a network" in run("fig-2", "--budget", 100, code=2).stderr
    assert "no network 'resnet5'; did you mean 'resnet50'?" in run("resnet5", "--hardware", "edge", code=2).stderr
    assert "no hardware 'egde'; did you mean 'edge'?" in run(tiny, "--hardware", "egde", code=2).stderr
    Path("net.onnx").write_text("a model")
    said = run("net.onnx", "--hardware", "edge", code=2).stderr
    assert "net.onnx is no TOML or YAML file" in said and "`sparsemap import` makes a network of a model" in said
    wrong = Path(tiny).read_text().replace("k = 10", "k = 11")
    Path("wrong.toml").write_text(wrong)
    assert "wrong.toml: layers[4]: 'again' is given 10" in run("wrong.toml", "--hardware", "edge", code=2).stderr


def test_a_level_on_chip_without_a_capacity_is_told_once_by_every_verb(tiny: str, caplog: pytest.LogCaptureFixture):
    levels = [{"name": "DRAM", "class": "dram"}, {"name": "GLB", "class": "sram"}]
    hardware = {"kind": "hardware", "name": "open", "levels": levels, "compute": {"name": "MAC"}}
    Path("open.toml").write_text(toml_text.dumps(hardware))
    said = "GLB has no capacity: unlimited, without area and leakage"
    for given in (["check", "open.toml"], ["search", "mm1", "open.toml", "--budget", "20"],
                  ["run", tiny, "--hardware", "open.toml", "--budget", "10"]):  # fmt: skip
        done = CliRunner().invoke(cli, given)
        assert done.exit_code == 0 and caplog.text.count(said) == 1, (given, caplog.text)
        caplog.clear()


# -------------------------------------------------------------------------------------------------------- warm starts


def layers(*tables: dict[str, Any]) -> list[Node]:
    return list(nodes_of(load().build("network", {"name": "net", "layers": list(tables)}), load()))


def test_a_layer_starts_from_the_most_similar_layers_before_it():
    a, b, c, d = layers(
        {"name": "a", **CONV},
        {"name": "b", **CONV, "k": 64, "p": 3},
        {"name": "c", **CONV, "c": 4},
        {"name": "d", **CONV, "c": 2},
    )
    assert earlier([a, b, c, d], "edit") == {"a": [], "b": ["a"], "c": ["a", "b"], "d": ["c", "a", "b"]}
    assert earlier([a, b, c, d], "previous") == {"a": [], "b": ["a"], "c": ["b"], "d": ["c"]}
    assert earlier([a, b, c, d], "off") == {"a": [], "b": [], "c": [], "d": []}


def test_warm_starts_do_not_depend_on_jobs_and_are_told(tmp_path: Path):
    one = searched(tmp_path / "one", warm_start="edit")  # with `off` layers wait for nothing, which is the simpler case
    two = searched(tmp_path / "two", warm_start="edit", jobs=2)
    assert [layer.start for layer in one.layers] == ["", "", "first", "fc first"]
    assert one.layers[3].start_distance == 2 and one.layers[3].start_ratio >= 1
    assert one.to_dict() == two.to_dict()


def test_a_source_that_changes_has_what_follows_it_searched_again(tmp_path: Path):
    searched(tmp_path, warm_start="edit")
    (tmp_path / "first" / "result.json").unlink()
    again = [layer.state for layer in searched(tmp_path, warm_start="edit").layers]
    assert again == ["done", "done", "kept", "kept"]  # the same design was found again
    network = {**TINY, "layers": [{"name": "first", **CONV, "k": 16}, *TINY["layers"][3:]]}
    del network["input"]
    given = {"budget": BUDGET, "seed": 3, "out": tmp_path, "warm_start": "edit", "space": SPACE}
    with pytest.raises(SearchError, match=r"first/result\.json is of another search"):
        search_network(network, "edge-16gbps", **given, fuse=False)
    changed = search_network(network, "edge-16gbps", **given, fuse=False, overwrite=True)
    assert [layer.state for layer in changed.layers] == ["done", "done", "done"]


def test_a_layer_whose_design_is_gone_is_searched_again_so_that_all_totals_stay(tmp_path: Path):
    before = searched(tmp_path, warm_start="edit")
    design = tmp_path / "first" / "design.toml"
    text = design.read_text()
    design.unlink()
    again = searched(tmp_path, warm_start="edit")
    assert [layer.state for layer in again.layers] == ["done", "done", "kept", "kept"]
    assert again.totals == before.totals and design.read_text() == text


def test_a_run_starts_from_the_designs_of_another_one_on_other_hardware(
    result: NetworkResult, folder: Path, tmp_path: Path
):
    found = search_network(
        TINY, "mobile", budget=40, start=[folder], warm_start="off", out=tmp_path, space=SPACE, fuse=False
    )
    assert [layer.start.split()[0] for layer in found.layers] == ["first", "first", "fc", "again"]
    assert {layer.start_distance for layer in found.layers} == {0.0}
    with pytest.raises(SearchError, match="is in the folder of this run"):
        search_network(TINY, "mobile", budget=40, start=[tmp_path], out=tmp_path)
    with pytest.raises(DesignError, match="does not have L4_T, L4_S"):
        search_network(TINY, "clustered", budget=40, start=[folder])


def test_warm_starts_need_a_searcher_that_takes_designs():
    with pytest.raises(SearchError, match="searcher 'random' cannot start from designs"):
        searched(searcher="random", warm_start="edit")
    assert searched(searcher="random", budget=1, warm_start=None).warm_start == "off"
    with pytest.raises(SearchError, match="no choice 'edot'; did you mean 'edit'"):
        searched(warm_start="edot")


# ---------------------------------------------------------------------------------------------------------- in studies


def test_a_study_has_a_row_for_each_network_with_its_totals(tiny: str, tmp_path: Path):
    table = {"kind": "study", "name": "s", "networks": [tiny], "workloads": ["mm1"], "hardware": ["edge-16gbps"]}
    given = {"budget": 100, "count": "valid", "warm_start": "edit", "space": SPACE}
    Path("study.toml").write_text(toml_text.dumps(table | given | {"fuse": False}))
    rows = json.loads(run("study.toml", "--out", "one", "--json").stdout)
    alone = search_network(TINY, "edge-16gbps", **given, fuse=False)
    assert [(row["workload"], row["searcher"]) for row in rows] == [("mm1", "sparsemap"), ("tiny", "sparsemap")]
    assert (rows[1]["edp"], rows[1]["cycles"], rows[1]["evaluations"]) == (alone.edp, alone.cycles, 3 * 100)
    assert json.loads(Path("one/tiny--edge-16gbps--sparsemap--seed0/network.json").read_text())["edp"] == alone.edp
    assert "2 kept from earlier" in run("study.toml", "--out", "one").stderr


def test_a_study_keeps_a_network_whose_layers_have_not_all_ended(tiny: str, tmp_path: Path):
    study = Study(name="s", networks=(tiny,), hardware=("edge-16gbps",), budget=50, out="out")
    folder = tmp_path / "out" / "tiny--edge-16gbps--sparsemap--seed0"
    folder.mkdir(parents=True)
    (folder / "fc").write_text("in the way of the layer's folder")
    (outcome,) = run_study(study, out="out")
    assert outcome.state == "failed" and "fc: " in outcome.error and outcome.row["edp"] is None
    (folder / "fc").unlink()
    (outcome,) = run_study(study)  # into the folder that the study names, since it is the study's
    assert outcome.state == "done" and outcome.row["edp"] > 0


def test_a_study_needs_something_to_search():
    with pytest.raises(ValueError, match="neither has workloads"):
        Study(name="s", hardware=("edge",))


def test_types_tell_a_network_from_a_plan():
    whole = get_type_hints(search_network)
    results = [
        (Literal[False], NetworkResult),
        (Literal[True], FusedResult),
        (bool | None, NetworkResult | FusedResult),
    ]
    for over, result in zip(get_overloads(search_network), results, strict=True):
        assert {*signature(over).parameters} == {*signature(search_network).parameters}
        own = get_type_hints(over)
        assert all(own[name] == whole[name] for name in own if name not in ("fuse", "return"))
        assert (own["fuse"], own["return"]) == result
