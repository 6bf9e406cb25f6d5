"""Every picture, table and frame of a design adds up to its headline, whatever the cost model charges."""

import csv
import json
import math
from functools import cache

import attrs
import pytest
from click.testing import CliRunner
from sparsemap_plugins.reports import design_charts
from sparsemap_plugins.reports.breakdown import breakdown_lines
from sparsemap_plugins.reports.compare.sides import by_level
from sparsemap_plugins.reports.design_charts import area_chart, busy_chart, energy_scale, tree_chart
from sparsemap_plugins.reports.outcome import DesignOutcome
from sparsemap_plugins.reports.page import one, results
from sparsemap_plugins.reports.page import study as study_page

from sparsemap import Best, load_problem, search
from sparsemap.cli.main import cli
from sparsemap.csv_files import csv_text
from sparsemap.pieces.loading import load
from sparsemap.searching.breakdown import CHARGES, GATED, LOST, STALLS, Breakdown
from sparsemap.searching.result import result_of
from sparsemap.spec.units import format_energy
from sparsemap.study.networks import search_network
from sparsemap.writing import write_text

pytestmark = pytest.mark.usefixtures("blank_charts")

CLOSE = 1e-9
SINGLE = {"extends": "mobile", "name": "single", "levels": {"GLB": {"double_buffered": False}}}
CASES = [
    ("mm12", "mobile", "physical"), ("conv4", "cloud", "physical"), ("mm1", SINGLE, "physical"),
    ("mm1", "edge", "timeloop"),
]  # fmt: skip


def close(value):
    return pytest.approx(value, rel=CLOSE, abs=0)


@cache
def searched(case):
    workload, hardware, model = CASES[case]
    return search(load_problem(workload, hardware, cost_model=model), budget=400)


@pytest.fixture(scope="module", params=range(len(CASES)), ids=["leaks", "conv", "waits", "timeloop"])
def result(request):
    return searched(request.param)


@pytest.fixture(
    scope="module",
    params=["as it is", "with a charge of a stranger", "with a charge that has no name", "with a charge in levels"],
)
def outcome(request, result):
    """A design; with charges of half its energy more."""
    found = DesignOutcome.of(result.found.design)
    if request.param == "as it is":
        return found
    if "in levels" in request.param:
        levels = found.detail.energy_pj
        more = 0.5 * float(levels[..., 0].sum())
        detail = attrs.evolve(found.detail, energy_pj=1.5 * levels)
        return attrs.evolve(found, energy_pj=found.energy_pj + more, detail=detail)
    more = 0.5 * found.energy_pj
    named = {"refresh": [more]} if "stranger" in request.param else {}
    detail = attrs.evolve(found.detail, charges_pj={**found.detail.charges_pj, **named})
    return attrs.evolve(found, energy_pj=found.energy_pj + more, detail=detail)


def energy_of(chart, outcome):
    scale, _ = design_charts.energy_scale(max(sum(x.values()) for x in outcome.breakdown.energies.values()))
    return scale * math.fsum(mark.value for mark in chart.marks)


def test_charts_add_up_to_energy_and_cycles(outcome):
    charts = list(design_charts.energy_charts(outcome))
    assert [energy_of(chart, outcome) for chart in charts] == [close(outcome.energy_pj)] * 2
    assert min(mark.value for chart in charts for mark in chart.marks) >= 0
    marks = design_charts.cycles_chart(outcome).marks
    assert sum(mark.value for mark in marks if mark.part != design_charts.LIMITS[0]) == close(outcome.cycles)


def test_tables_and_data_add_up_to_energy_and_cycles(outcome):
    found = outcome.breakdown
    table, again = (
        found.to_dict(),
        Breakdown.from_dict({"energy_pj": found.energy_pj, "cycles": found.cycles, **found.to_dict()}),
    )
    spent = [row["energy_pj"] for row in table["levels"]] + list(table.get("charges", {}).values())
    assert math.fsum(spent) == close(outcome.energy_pj)
    slowest = max(row["cycles"] for row in table["levels"])
    assert slowest + table.get("waiting_cycles", 0.0) == close(outcome.cycles)
    assert again == found
    frame = pytest.importorskip("pandas") and found.to_pandas()
    assert frame["energy_pj"].sum() == close(outcome.energy_pj)
    waiting = frame["cycles"].get(STALLS, 0.0)
    assert frame["cycles"].drop(STALLS, errors="ignore").max() + waiting == close(outcome.cycles)
    assert len(set(frame.index)) == len(frame)
    for name, parts in found.energies.items():
        if CHARGES not in parts:
            assert frame.loc[name].drop(["energy_pj", "cycles"]).sum() in (0.0, close(frame["energy_pj"][name]))


def test_some_design_leaks_and_some_waits():
    found = [DesignOutcome.of(searched(case).found.design).breakdown for case in range(3)]
    assert all("leakage" in one.charges for one in found) and any(one.waiting_cycles for one in found)


def test_cycles_of_compute_units_are_products_gated_cycles_and_imbalance():
    fast = {"extends": "small", "name": "fast", "levels": {"DRAM": {"bandwidth": "unlimited"}}}
    outcome = DesignOutcome.of(search(load_problem("small-sparse", fast), budget=100, seed=1).found.design)
    found, units, (done, gated, _) = outcome.breakdown, outcome.units, outcome.computes
    assert found.limit.startswith("the MAC units") and found.lost
    assert done / units + math.fsum(found.lost.values()) == pytest.approx(found.rows[-1].cycles, abs=1.0 * len(LOST))
    assert found.lost.get(GATED, 0.0) >= gated / units - 1.0, "and cycles of gated accesses and positions"
    named = by_level(found, "cycles")
    assert math.fsum(named.values()) == close(outcome.cycles) and named.keys() >= found.lost.keys()
    assert named["MAC"] == pytest.approx(done / units, abs=1.0)


def test_the_text_has_a_row_for_everything(outcome):
    rows = {line.split()[0]: line for line in breakdown_lines(outcome.breakdown, outcome.design.problem)}
    for name, parts in outcome.breakdown.energies.items():
        assert format_energy(sum(parts.values())) in rows[name]
    assert (STALLS in rows) == bool(outcome.breakdown.waiting_cycles)
    assert outcome.limit.endswith(STALLS) <= (STALLS in rows)


def test_the_table_of_a_page_adds_up(result, tmp_path):
    result.write(tmp_path)
    page = one.page(tmp_path, load())
    (found,) = (x for section in page.sections for x in section.blocks if x.block == "table" and "share" in x.head)
    *rows, last = [[getattr(cell, "value", 0.0) for cell in row[-3:]] for row in found.rows]
    assert math.fsum(row[0] for row in rows) == close(last[0]) == close(result.found.energy_pj)
    assert math.fsum(row[1] for row in rows) == close(1.0)
    waiting = sum(row[2] for row, cells in zip(rows, found.rows, strict=False) if cells[0] == STALLS)
    assert max(row[2] for row, cells in zip(rows, found.rows, strict=False) if cells[0] != STALLS) + waiting == last[2]
    assert last[2] == result.found.cycles


def cells_of(page, title, head):
    """The column of a table under a title."""
    (table,) = (x for section in page.sections if section.title == title for x in section.blocks if x.block == "table")
    place = list(table.head).index(head)
    return {row[0]: getattr(row[place], "value", row[place]) for row in table.rows}


def clocked(name, clock):
    return load_problem("mm1", {"extends": "mobile", "name": name, "clock": clock}, cost_model="timeloop")


def test_chips_of_different_clocks_are_compared_by_time(tmp_path):
    """The same design has the same pJ * cycles on both chips, and a quarter of the time on the faster one."""
    slow, fast = clocked("slow", "500 MHz"), clocked("fast", "2 GHz")
    best = search(slow, budget=300).found
    for problem in (slow, fast):
        result_of(problem, Best(problem, best.genome, best.own_costs, best.score)).write(
            tmp_path / problem.hardware.name
        )
    page = results.comparison([tmp_path / "slow", tmp_path / "fast"], load())
    assert list(cells_of(page, "Results", "energy x time over the first").values()) == [1.0, close(0.25)]
    assert list(cells_of(page, "Results", "time").values()) == [close(best.seconds), close(best.seconds / 4)]
    for key in ("power", "area"):
        assert all(value > 0 for value in cells_of(page, "Results", key).values())


def study_of(rows, folder):
    write_text(folder / "table.csv", csv_text(rows))
    return study_page.study(folder)


def row(workload, hardware, searcher, seed, edp, seconds):
    numbers = {"edp": edp, "energy_pj": 2.0, "cycles": edp / 2, "valid_fraction": 1.0, "seconds": seconds}
    about = {"workload": workload, "hardware": hardware, "searcher": searcher, "seed": seed}
    return about | numbers | {"power_w": 1.0, "edp_js": 2e-12 * seconds, "area_mm2": 3.0}


def test_a_study_has_geometric_means_and_ranks_hardware_by_time(tmp_path):
    rows = [row(w, h, s, 0, *n) for (w, h, s), n in {
        ("a", "slow", "sparsemap"): (10.0, 4e-3), ("b", "slow", "sparsemap"): (10.0, 4e-3),
        ("a", "slow", "random"): (20.0, 8e-3), ("b", "slow", "random"): (80.0, 32e-3),
        ("a", "fast", "sparsemap"): (30.0, 1e-3), ("b", "fast", "sparsemap"): (30.0, 2e-3),
    }.items()]  # fmt: skip
    page = study_of(rows, tmp_path)
    assert cells_of(page, "Searchers", "geometric mean")["slow"] == close(4.0)  # of 2 and 8
    assert cells_of(page, "Searchers", "verdict")["slow"] == "one seed"
    assert list(cells_of(page, "Hardware", "geometric mean").values()) == [close((0.25 * 0.5) ** 0.5)]
    assert page.verdict[1] == "fast has 0.35x the energy x time of slow: with one seed per cell it may be noise."
    assert [tile.value.value for tile in page.tiles[:1]] == [6]


def test_least_and_spread_of_seeds_are_of_the_cell(tmp_path):
    rows = [row("a", "slow", "sparsemap", seed, edp, 1e-3) for seed, edp in enumerate((30.0, 10.0, 20.0))]
    page = study_of(rows, tmp_path)
    assert cells_of(page, "Cells", "least EDP") == {"a": 10.0}
    assert cells_of(page, "Cells", "most over least EDP") == {"a": 3.0}
    assert cells_of(page, "Cells", "seeds") == {"a": "3 of 3"}


def test_the_best_seed_of_a_cell_is_that_of_the_objective(tmp_path):
    costs = zip((30.0, 10.0), (2.0, 6.0), strict=True)
    rows = [
        row("a", "slow", "sparsemap", i, edp, 1e-3) | {"energy_pj": e, "score": e} for i, (edp, e) in enumerate(costs)
    ]
    page = study_of(rows, tmp_path)
    assert cells_of(page, "Cells", "least energy") == {"a": 2.0} and cells_of(page, "Cells", "EDP") == {"a": 30.0}
    assert cells_of(page, "Cells", "most over least energy") == {"a": 3.0}


def stacks(page):
    """By title of the section, the values of the bars by row."""
    found = {}
    for section in page.sections:
        for chart in (block for block in section.blocks if block.block == "chart"):
            bars = found.setdefault(chart.title, {})
            for mark in chart.marks:
                bars[mark.row] = bars.get(mark.row, 0.0) + mark.value
    return found


def test_bars_of_a_comparison_add_up(result, tmp_path):
    result.write(tmp_path / "a")
    table = json.loads((tmp_path / "a" / "result.json").read_text("utf-8"))
    old = {key: value for key, value in table.items() if key not in ("charges", "waiting_cycles")}
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "result.json").write_text(json.dumps(old), "utf-8")  # as files were before charges had names
    found = stacks(results.comparison([tmp_path / "a", tmp_path / "b"], load()))
    energy_pj, seconds = result.found.energy_pj, result.found.seconds
    assert list(found["energy"].values()) == [close(energy_pj / energy_scale(energy_pj)[0])] * 2
    times = list(found["time"].values())
    assert times[0] == times[1] and times[0] / seconds in (close(1e3), close(1e6))


def test_bars_of_a_network_add_up_to_its_layers(tmp_path):
    square = {"name": "square", "type": "linear", "k": 64, "n": 64, "repeat": 3}
    last = {"name": "last", "type": "linear", "k": 64, "n": 8}
    network = {"name": "two", "input": [64], "layers": [square, last]}
    result = search_network(network, "mobile", budget=60, out=str(tmp_path), fuse=False)
    found = stacks(results.network(tmp_path, load()))
    largest = max(layer.repeat * layer.energy_pj for layer in result.layers)
    assert math.fsum(found["energy"].values()) == close(result.energy_pj / energy_scale(largest)[0])
    assert math.fsum(found["time"].values()) / result.seconds in (close(1e3), close(1e6), close(1e9))


def test_exports_and_explanations_add_up(result, tmp_path):
    result.write(tmp_path)
    said = CliRunner().invoke(cli, ["explain", str(tmp_path), "energy", "--json"])
    table = json.loads(said.output)
    spent = [row["energy_pj"] for row in table["levels"]] + list(table.get("charges", {}).values())
    assert math.fsum(spent) == close(table["energy_pj"]) == close(result.found.energy_pj)
    rows = csv.DictReader(result.report("csv").splitlines())
    assert math.fsum(float(row["energy_pj"]) for row in rows) == close(result.found.energy_pj)


def test_pictures_of_the_chip_add_up(result):
    outcome = DesignOutcome.of(result.found.design)
    area = area_chart(outcome)
    assert math.fsum(mark.value for mark in area.marks) == close(result.found.area_mm2)
    busy = busy_chart(outcome)
    rows = {mark.row for mark in busy.marks}
    assert math.fsum(mark.value for mark in busy.marks) == close(len(rows) * result.found.cycles)
    tree = {mark.row: mark for mark in tree_chart(outcome).marks}
    assert tree["MAC"].at == close(outcome.breakdown.units_used) and tree["DRAM"].at == 1.0


def test_a_gate_at_a_memory_loses_cycles_and_no_lane_waits():
    """Accesses gated at a buffer keep their cycles: dense steps, of which none is imbalance."""
    gated = {"extends": "small", "name": "gated", "levels": {"DRAM": {"bandwidth": "unlimited"}}}
    space = {"extends": "small", "gate-skip": {"candidates": ["none", "gate-both"]}}
    made = load_problem({"extends": "small-sparse", "density": {"P": 0.1, "Q": 0.1}}, gated, space=space)
    outcome = DesignOutcome.of(search(made, budget=200).found.design)
    found, (done, *_) = outcome.breakdown, outcome.computes
    dense = math.prod(made.sizes.values()) / outcome.units
    assert found.rows[-1].cycles == close(dense) and found.lost == {GATED: close(dense - done / outcome.units)}


def test_variants_of_one_workload_have_rows_of_their_own(tmp_path):
    costs = {"sparsemap": (10.0, 12.0), "random": (20.0, 30.0), "gamma": (15.0, 16.0)}
    rows = [row("a", "slow", name, seed, edp, 1e-3) for name, each in costs.items() for seed, edp in enumerate(each)]
    (section,) = (one for one in study_of(rows, tmp_path).sections if one.title == "Searchers")
    (chart,) = (block for block in section.blocks if hasattr(block, "marks"))
    assert sorted(mark.row for mark in chart.marks) == ["gamma", "gamma", "random", "random"]
