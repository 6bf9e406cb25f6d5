"""Results of networks with a plan of tensors on chip: every number of a page, a comparison or a text says of what it is."""

import json
import math
import re
import shutil
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner
from sparsemap_plugins.reports.compare.sides import sides_of
from sparsemap_plugins.reports.page import html, page_of
from sparsemap_plugins.reports.tables import PageLink

from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.spec import units
from sparsemap.study.networks import search_network

pytestmark = pytest.mark.usefixtures("blank_charts")

LAYERS = [
    {"name": "a", "type": "linear", "k": 64, "n": 64},
    {"name": "b", "type": "linear", "k": 64, "n": 64},
    {"name": "sum", "type": "add", "inputs": ["a", "b"]},
    {"name": "c", "type": "linear", "k": 64, "n": 64},
]
NETWORK = {"name": "three", "input": [64], "layers": LAYERS}
TOML = "".join(
    "[[layers]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in layer.items()) for layer in LAYERS
)
PLANNED = "with tensors on chip as planned"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The network on a chip with a plan, and on two chips without."""
    folder = tmp_path_factory.mktemp("runs")
    for name, chip, fuse in (
        ("plan", "slow", True),
        ("slow", "slow", False),
        ("quick", "quick", False),
    ):
        hardware = {"extends": "mobile", "name": chip, "clock": {"slow": "500 MHz", "quick": "1 GHz"}[chip]}
        search_network(NETWORK, hardware, budget=20, out=str(folder / name), fuse=fuse)
    return folder


@pytest.fixture(autouse=True)
def there(runs, monkeypatch):
    monkeypatch.chdir(runs)


def run(*args):
    done = CliRunner().invoke(cli, list(map(str, args)))
    assert done.exit_code == 0, done.output
    return done.output


output_of = cache(run)
"""What a command says of the runs, which stay as they are."""


@cache
def page_for(*names):
    return page_of([Path(name) for name in names], load())


def network(name):
    return json.loads((Path(name) / "network.json").read_text())


def test_cards_and_charts_of_a_plan_are_those_of_the_plan():
    page, plan = page_for("plan"), network("plan")["fused"]
    tiles = {tile.label: tile.value for tile in page.tiles}
    told = {
        "EDP with tensors on chip, pJ x cycles": "edp",
        "energy": "energy_pj",
        "cycles": "cycles",
        "gap to the bound": "gap",
    }
    costs = {"time": "costs.seconds", "power": "costs.power_w"}
    for label, key in {**told, **costs}.items():
        (*path, last) = key.split(".")
        assert tiles[label].value == (plan["costs"] if path else plan)[last] and tiles[label].of == f"fused.{key}"
    assert "EDP, pJ · cycles" not in tiles and not any("without fusion" in tile.note for tile in page.tiles)
    where = next(section for section in page.sections if section.title == "Where energy and time go")
    assert {mark.part for mark in where.blocks[2].marks} == {row["layer"] for row in plan["layers"]}
    files = {row["design"]: row for row in reversed(plan["layers"]) if row["design"]}
    folded = [section for section in page.sections if section.anchor]
    assert [section.title for section in folded] == [row["layer"] for row in reversed(files.values())]
    assert all(
        section.text.split("; limited by")[0].endswith(
            units.format_energy(files[f"plan/{section.title}.toml"]["energy_pj"])
        )
        for section in folded
    )
    steps = next(section for section in page.sections if section.title == "Steps of the plan").blocks[0]
    assert {cell.anchor for cell, *_ in steps.rows if isinstance(cell, PageLink)} == {x.anchor for x in folded}
    assert not any(section.title == "Layers" or "without" in section.title for section in page.sections)
    assert f"By proof for these sizes the best plan is within {plan['gap']:.2f}x." in page.verdict[0]
    assert "more than" not in "".join(page.verdict) and html(page)


def test_a_study_of_plans_has_the_gaps_of_plans(tmp_path):
    (tmp_path / "three.toml").write_text('kind = "network"\nname = "three"\ninput = [64]\n' + TOML)
    about = (
        'kind = "study"\nname = "fused"\nbudget = 20\nfuse = true\nnetworks = ["three.toml"]\nhardware = ["mobile"]\n'
    )
    (tmp_path / "fused.toml").write_text(about)
    run("run", tmp_path / "fused.toml", "--out", tmp_path / "out", "-q")
    (file,) = (tmp_path / "out").glob("*/network.json")
    found = json.loads(file.read_text())
    tables = {section.title: section.blocks[0] for section in page_of([tmp_path / "out"], load()).sections}
    cells = dict(zip(tables["Cells"].head, tables["Cells"].rows[0], strict=True))
    assert found["fused"]["gap"] != found["gap"]
    assert cells["over the bound"].value == tables["Gaps to the bound"].rows[0][2].value == found["fused"]["gap"]


OF_TWO = "No total counts 1 operation between layers, which moves 26.5 nJ and 6 cycles on slow, 26.5 nJ and 12 cycles on quick"


def test_operations_that_no_total_counts_are_told_wherever_totals_are():
    one = "No total counts 1 operation between layers, which moves 26.5 nJ and 6 cycles (counted with --fuse)."
    assert one in page_for("slow").warnings and "No total counts" not in html(page_for("plan"))
    page = page_for("slow", "quick")
    assert f"{OF_TWO} (counted with --fuse)." in page.verdict and OF_TWO in output_of("compare", "slow", "quick")


def test_a_verdict_without_plans_says_that_they_may_turn_it():
    told = (
        " Layer by layer every tensor travels to the outermost memory: what --fuse plans to stay on chip may turn this."
    )
    assert told in page_for("slow", "quick").verdict[0]
    assert told not in "".join(page_for("plan", "plan").verdict)


def test_the_table_of_several_chips_tells_of_operations_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("three.toml").write_text('kind = "network"\nname = "three"\ninput = [64]\n' + TOML)
    args = "run", "three.toml", "--hardware", "mobile,edge-16gbps", "--budget", 20
    said = run(*args, "--no-fuse", "--out", "out")
    assert re.search(
        r"^besides  1 operation between layers, which moves .* on mobile, .* on edge-16gbps \(counted", said, re.M
    )
    assert "besides" not in run(*args, "--out", "plans")
    told = "".join(page_of([Path("out")], load()).verdict)
    assert told.count("No total counts 1 operation") == 1


def test_a_plan_is_not_compared_with_a_run_without_one():
    """Both are told layer by layer, and the chip with the quicker clock wins."""
    first = "All is layer by layer: plan alone came with a plan of tensors on chip, not slow (`run --fuse`)."
    page = page_for("plan", "slow")
    assert page.verdict[:2] == [first, "plan and slow are equal for three."]
    said = output_of("compare", "plan", "quick").splitlines()
    assert said[0] == first.replace("slow", "quick") and said[1].startswith("quick is better than slow for three, by")
    assert "layer by layer" not in output_of("compare", "plan", "plan") + output_of("compare", "slow", "quick")
    table = json.loads(output_of("compare", "plan", "slow", "--json"))
    assert table["a"]["energy_pj"] == network("plan")["energy_pj"] and table["verdict"] == page.verdict


def test_a_design_without_identity_is_told_with_its_cost_model(runs, tmp_path):
    """As those of `sparsemap design` are."""
    bare = shutil.copytree(runs / "slow", tmp_path / "bare")
    for file in bare.glob("*/result.json"):
        found = json.loads(file.read_text())
        file.write_text(json.dumps({key: value for key, value in found.items() if key != "identity"}))
    (side,), (other,) = sides_of(bare), sides_of(runs / "slow")
    assert (side.model, side.model_type, side.technology) == (other.model, other.model_type, other.technology)
    assert "technologies differ" not in run("compare", bare, "slow")


def test_shares_of_layers_are_of_their_own_chip(runs):
    lines = output_of("explain", ".").splitlines()
    head = next(line for line in lines if "of time" in line)
    rows = {
        line.split()[0]: line[: head.index("of time") + 7].split()[-2] for line in lines if "/" in line.split(" ")[0]
    }
    assert {name: share for name, share in rows.items() if "quick/" in name} == dict.fromkeys(
        (f"quick/{name}" for name in "abc"), "33"
    )


def test_texts_of_a_folder_with_a_plan_are_of_the_plan():
    """Totals of `explain` are those of the run, its steps those of the plan; so are designs that are shown."""
    plan, told = network("plan")["fused"], json.loads(output_of("explain", "plan", "--json"))
    costs = [(row["layer"], row["energy_pj"]) for row in plan["layers"]]
    assert [(row["layer"], pytest.approx(row["energy_pj"], rel=1e-12)) for row in told["layers"]] == costs
    assert told["free"][""]["energy_pj"] == pytest.approx(plan["energy_pj"], rel=1e-12)
    assert told["free"][""]["seconds"] == pytest.approx(plan["costs"]["seconds"], rel=1e-12)
    explained = output_of("explain", "plan")
    time, energy = units.scaled_text(plan["costs"]["seconds"], "s"), units.format_energy(plan["energy_pj"])
    assert explained.splitlines()[1] == f"{time}, {energy}, {PLANNED}"
    (file,) = re.findall("`sparsemap explain (.*)`", explained)
    assert file.startswith("plan/plan/") and "limit" in run("explain", file)
    assert PLANNED in output_of("explain", ".") and PLANNED not in output_of("explain", "slow")
    shown = re.findall("^# (.*)$", run("show", "summary", "plan"), re.M)
    assert shown == list(dict.fromkeys(row["design"] for row in plan["layers"] if row["design"]))
    assert re.findall("^# (.*)$", run("show", "summary", "slow"), re.M) == ["a"]


def test_an_operation_of_a_plan_is_told_without_what_a_level_takes_of_it():
    (row,) = (row for row in json.loads(output_of("explain", "plan", "--json"))["layers"] if row["layer"] == "sum")
    (step,) = (step for step in network("plan")["fused"]["layers"] if step["layer"] == "sum")
    levels = {level["name"]: level for level in step["by_level"]["levels"]}
    for name, level in levels.items():
        left = math.fsum(other["energy_pj"] for other in levels.values() if other is not level)
        assert row["free"][f"energy of {name}"]["energy_pj"] == pytest.approx(left, abs=1e-9)
    cycles = {name: level["cycles"] for name, level in levels.items()}
    slowest = max(cycles, key=lambda name: cycles[name])
    rest = max(count for name, count in cycles.items() if name != slowest)
    assert row["free"][f"bandwidth of {slowest}"]["seconds"] == pytest.approx(rest / 500e6)
    assert row["free"]["charge drains"]["seconds"] == step["cycles"] / 500e6


@pytest.mark.parametrize(("objective", "cost"), [("edp_js", "edp_js"), ("energy", "energy_pj")])
def test_the_gap_of_a_plan_is_that_of_its_objective(objective, cost):
    hardware = {"extends": "mobile", "name": "mobile-too"}
    plan = search_network(NETWORK, hardware, budget=20, fuse=True, objective=objective)
    assert plan.gap == pytest.approx(plan.costs[cost] / plan.bound) and 1.0 <= plan.gap < 10.0
