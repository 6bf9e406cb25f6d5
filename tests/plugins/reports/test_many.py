"""Networks and studies next to each other: which is better, by how much, and because of which layers."""

import json
import math
import re
import shutil
from functools import cache
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner
from sparsemap_plugins.reports.charts import colour, waterfall
from sparsemap_plugins.reports.compare.shares import groups_of, shares_of
from sparsemap_plugins.reports.compare.sides import compared, sides_of
from sparsemap_plugins.reports.compare.verdict import Verdict, verdict
from sparsemap_plugins.reports.figures import figure_of
from sparsemap_plugins.reports.network_charts import coloured
from sparsemap_plugins.reports.page import html, page_of
from sparsemap_plugins.reports.page.study import rows_of

from sparsemap import load_problem, search
from sparsemap.cli.main import cli
from sparsemap.csv_files import read_csv
from sparsemap.files import percent
from sparsemap.pieces.loading import load
from sparsemap.study.comparison import compare
from sparsemap.study.networks import search_network

pytestmark = pytest.mark.usefixtures("blank_charts")

close = pytest.approx
LAYERS = [
    {"name": "square", "type": "linear", "k": 64, "n": 64, "repeat": 3},
    {"name": "last", "type": "linear", "k": 512, "n": 64},
]
NETWORK = {"name": "two", "layers": LAYERS}
CHIPS = {"slow": {"clock": "50 MHz"}, "quick": {"clock": "2 GHz"}}


@pytest.fixture(scope="module")
def chips(tmp_path_factory):
    """A folder with the network on two chips that differ in their clock."""
    folder = tmp_path_factory.mktemp("chips")
    for name, keys in CHIPS.items():
        search_network(NETWORK, {"extends": "mobile", "name": name, **keys}, budget=60, out=str(folder / name))
    return folder


@pytest.fixture(autouse=True)
def there(chips, monkeypatch):
    monkeypatch.chdir(chips)


def run(*args, code=0):
    done = CliRunner().invoke(cli, list(map(str, args)))
    assert done.exit_code == code, done.output
    return done.output


output_of = cache(run)
"""What a command says of the chips, which stay as they are."""


@cache
def page_for(*names):
    return page_of([Path(name) for name in names], load())


def sides():
    return [sides_of(Path(name))[0] for name in CHIPS]


def test_a_page_of_a_network_on_two_chips_says_which_one_and_because_of_which_layers():
    page = page_for("slow", "quick")
    slow, quick = sides()
    (said,) = page.verdict
    more = slow.costs["edp_js"] / quick.costs["edp_js"]
    assert said.startswith(f"quick is better than slow for two, by {more:.2f}x in energy x time. It takes ")
    assert re.search(r"It takes [\d.]+ us instead of [\d.]+ us \(-[\d.]+ %\), [\d.]+ [um]J instead of", said)
    assert re.search(
        r"(?:The layer|Layers?) that decides?: \w+ has \d+ % of it, [\d.]+ [nu]s instead of [\d.]+ [nu]s, limited by the",
        said,
    )
    assert [card.name for card in page.cards] == ["slow", "quick"] and not page.tiles
    (longer, *_), (shorter, *_) = (card.bars for card in page.cards)
    assert (longer.value.value, longer.share) == (close(slow.costs["seconds"]), 100.0)
    assert shorter.share == close(100 * quick.costs["seconds"] / slow.costs["seconds"])
    assert page.sections[0].title.startswith("Layers") and "quick" in html(page)


def test_shares_of_the_difference_add_up_and_the_largest_is_first():
    slow, quick = sides()
    shares = shares_of([quick, slow])
    assert math.fsum(shares.values()) == close(1.0) and list(shares.values()) == sorted(shares.values(), reverse=True)
    for gain in (0.25, 0.9, 1.1, 1.9):  # a layer that loses decides as much as one that gains
        parts = [attrs.evolve(x, cycle_s=x.cycle_s * {"square": 0.8, "last": gain}[x.name]) for x in slow.parts]
        found = list(shares_of([attrs.evolve(slow, parts=tuple(parts)), slow]).values())
        assert math.fsum(found) == close(1.0) and found == sorted(found, key=abs, reverse=True)
    time = {part.name: part.seconds for part in slow.parts}
    fast = {part.name: part.seconds for part in quick.parts}
    by_time = shares_of([quick, slow], "seconds")
    assert by_time["last"] == close((time["last"] - fast["last"]) / (sum(time.values()) - sum(fast.values())))


def test_a_layer_and_a_level_have_one_share_in_text_table_chart_and_data(tmp_path):
    """That of the net difference: here "last" gives back most of what "square" gains."""
    shutil.copytree("slow", tmp_path / "slow"), shutil.copytree("slow", tmp_path / "other")
    table = json.loads((tmp_path / "other" / "network.json").read_text())
    factors = {"square": 0.5, "last": 1.5}
    for row in table["layers"]:
        row["energy_pj"] *= factors[row["layer"]]
    table["energy_pj"] = math.fsum(row["repeat"] * row["energy_pj"] for row in table["layers"])
    table["costs"] = {key: x * table["energy_pj"] / table["costs"]["energy_pj"] if key in ("energy_pj", "edp_js") else x
                      for key, x in table["costs"].items()}  # fmt: skip
    table["hardware"] = "other"
    (tmp_path / "other" / "network.json").write_text(json.dumps(table))
    paths = [tmp_path / "slow", tmp_path / "other"]
    data = json.loads(run("compare", *paths, "--json"))
    told, levels = ({row[kind]: row["share"] for row in data[f"{kind}s"]} for kind in ("layer", "level"))
    assert math.fsum(told.values()) == close(1.0) and min(told.values()) < 0 < max(told.values())
    assert list(told.values()) == sorted(told.values(), key=abs, reverse=True)
    section = next(x for x in page_of(paths, load()).sections if x.title.startswith("Layers"))
    falls = {block.title.removeprefix("difference by "): block.marks for block in section.blocks[:2]}
    of_level, of_layer, bars, _ = section.blocks[2:]
    assert [(name, cell.value) for name, _, cell, *_ in of_layer.rows] == list(told.items())
    assert math.fsum(levels.values()) == close(1.0)
    assert [(name, cell.value) for name, cell, *_ in of_level.rows] == list(levels.items())
    for kind, shares in {"layer": told, "level": levels}.items():
        assert {mark.row: mark.value / 100 for mark in falls[kind]} == {name: close(x) for name, x in shares.items()}
    assert list(dict.fromkeys(mark.row.split(",")[0] for mark in bars.marks)) == list(told)
    printed = run("compare", *paths)
    for name, part in told.items():
        assert re.search(rf"^{name} .* {percent(part, 1)} ", printed, re.M)
        assert f"{name} has {percent(part)} of it" in printed
    (section,) = [x for x in page_for("slow", "quick").sections if x.title.startswith("Layers")]
    assert "shares are of what quick gains over slow in energy x time, negative where it loses" in section.text
    assert "shares are of what quick gains over slow in energy x time" in output_of("compare", "slow", "quick")


def test_layers_alike_share_a_line_of_the_verdict_and_a_bar():
    """Of equal shares whose names differ in numbers; forms that several groups have are told by first and last name."""
    shares = {
        "layer.0.up": 0.25,
        "layer.1.up": 0.25,
        "layer.0.q": 0.2,
        "head": 0.4,
        "layer.1.q": -0.05,
        "layer.2.q": -0.05,
    }
    groups = groups_of(shares)
    assert list(groups.items()) == [
        ("layer.*.up", ["layer.0.up", "layer.1.up"]), ("head", ["head"]), ("layer.0.q", ["layer.0.q"]),
        ("layer.1.q .. layer.2.q", ["layer.1.q", "layer.2.q"]),
    ]  # fmt: skip
    many = waterfall({str(i): 1 / 40 for i in range(40)}, "")
    assert len(many.marks) == 13 and many.marks[-1].row == "28 more"
    assert math.fsum(mark.value for mark in many.marks) == close(100.0)


def test_layers_whose_files_are_gone_are_named_with_what_to_do(tmp_path):
    shutil.copytree("slow", tmp_path / "less")
    (tmp_path / "less" / "last" / "design.toml").unlink()
    said = run("report", tmp_path / "less", code=2)
    assert "less: the files of last are gone; run its command again to have it back" in said
    assert any("the files of last are gone" in text for text in page_of([tmp_path / "less"], load()).warnings)
    (tmp_path / "less" / "network.json").unlink()
    assert "the folder of a network, whose network.json is gone; run its command" in run(
        "report", tmp_path / "less", code=2
    )


def test_a_layer_leads_to_its_design():
    text = html(page_for("slow"))
    for name in ("square", "last"):
        assert f'<a href="#layer-{name}">{name}</a>' in text and f'<details id="layer-{name}">' in text
    (first, *_) = page_for("slow").verdict
    assert re.match(r"two takes [\d.]+ [um]s and [\d.]+ [um]J on slow\. Most goes to \w+ \d+ % of the time", first)


def test_equal_results_have_a_page(chips):
    page = page_of([chips / "slow"] * 2, load())
    assert page.verdict[0].endswith("are equal for two.") and html(page)
    assert re.search(r"sparsemap report .*; \d{4}-\d\d-\d\d; sparsemap ", page.lines[0])


def test_pages_and_figures_divide_by_the_reference_that_is_named(tmp_path, monkeypatch):
    slow, quick = sides()
    for name in ("quick", "./quick/"):
        page = page_of([Path("slow"), Path("quick")], load(), name)
        (section,) = [section for section in page.sections if section.title == "Results"]
        table = section.blocks[0]
        at = table.head.index("energy x time over quick")
        assert [row[at].value for row in table.rows] == [close(slow.costs["edp_js"] / quick.costs["edp_js"]), 1.0]
        assert section.text.startswith("Ratios are to quick")
    page = page_for("slow", "quick")
    assert any(section.text.startswith("Ratios are to the first result") for section in page.sections)
    assert "--reference: no result 'quik'; did you mean 'quick'?" in run(
        "report", "slow", "quick", "--reference", "quik", code=2
    )
    assert "--reference is for several results" in run("report", "slow", "--reference", "slow", code=2)
    assert "is for the kind ratios" in run(
        "plot", "slow", "--kind", "energy", "--reference", "a", "-o", "a.svg", code=2
    )
    monkeypatch.chdir(tmp_path)
    about = 'kind = "study"\nname = "two"\nbudget = 20\nout = "out"\nsearchers = ["random", "sparsemap"]'
    Path("two.toml").write_text(f'{about}\nworkloads = ["mm1"]\nhardware = ["edge-16gbps", "mobile"]\n')
    run("run", "two.toml", "-q")
    (axes,) = figure_of(Path("out"), "ratios", "random").axes
    assert "over random" in axes.get_xlabel()
    run("plot", "out", "--kind", "ratios", "--by", "searcher", "-o", "by.svg")
    assert "--by is for the kinds ratios and response" in run(
        "plot", "out", "--kind", "energy", "--by", "hardware", "-o", "a.svg", code=2
    )
    page = page_of([Path("out")], load(), "mobile")
    assert [": above 1, " in s.text and s.text.split(": above 1, ")[1].split(" is")[0] for s in page.sections[:2]] == [
        "sparsemap",
        "mobile",
    ]
    assert "--reference: no searcher 'mobil'" in run("report", "out", "--reference", "mobil", code=2)


def test_what_no_total_counts_is_told_wherever_networks_are_compared_or_planned(tmp_path):
    network = {**NETWORK, "input": [64], "layers": LAYERS[:1], "lacks": ["Fancy 'x'"]}
    for name in CHIPS:
        plan = search_network(network, {"extends": "mobile", "name": name}, budget=20, out=tmp_path / name, fuse=True)
    assert "\nwithout  Fancy 'x'\n" in plan.totals_text()
    page = page_of([tmp_path / name for name in CHIPS], load())
    assert "No total counts Fancy 'x'." in page.verdict[-1]


def test_colours_do_not_depend_on_the_order_of_results_nor_on_other_charges():
    (part, *_) = sides()[0].parts
    bare = attrs.evolve(part, costs=attrs.evolve(part.costs, charges=dict([*part.costs.charges.items()][-1:])))
    assert len(part.costs.charges) > 1
    both = coloured([part, bare], "energy_pj")
    assert both == coloured([bare, part], "energy_pj")
    for name in part.costs.charges:
        alone = attrs.evolve(part, costs=attrs.evolve(part.costs, charges={name: 1.0}))
        assert colour(coloured([alone], "energy_pj"), name) == colour(both, name)
    assert len({colour(both, name) for name in both if name}) == sum(map(bool, both))


def test_diff_and_explain_take_networks():
    assert "quick is better than slow for two" in output_of("compare", "slow", "quick")
    table = json.loads(output_of("compare", "slow", "quick", "--json"))
    assert [row["layer"] for row in table["layers"]] == list(shares_of([sides()[1], sides()[0]]))
    said = output_of("explain", "slow")
    assert "with one thing free in every layer" in said and "`sparsemap explain slow/" in said
    free = said.split("with one thing free in every layer")[1].split("`sparsemap explain")[0].splitlines()
    names = [line.strip().split("  ")[0] for line in free if "%" in line]
    kinds = [not name.startswith(("bandwidth", "capacity", "metadata", "charge intersection")) for name in names]
    assert kinds == sorted(kinds) and not kinds[0], "what can be built stands above energies"
    table = json.loads(output_of("explain", "slow", "energy", "--json"))
    slow = sides()[0]
    assert table["free"][""]["energy_pj"] == close(slow.costs["energy_pj"])
    assert table["free"][""]["seconds"] == close(slow.costs["seconds"])
    assert "of many designs only edp, energy, cycles can be explained" in run("explain", "slow", "GLB", code=2)
    assert "name the folder of one of them" in run("explain", "slow", "--budget", 5, code=2)


def test_all_levels_free_in_every_layer_are_worth_no_less_than_one_of_them(tmp_path):
    """In sums over layers too, of which some gain no more by all levels than by one."""
    levels = [{"name": "DRAM", "class": "dram", "bandwidth": "2 GB/s"},
              {"name": "GLB", "class": "sram", "capacity": "64 KB", "bandwidth": "4000 GB/s", "fanout": 64}]  # fmt: skip
    search_network(
        NETWORK, {"name": "thin", "levels": levels, "compute": {"name": "MAC"}}, budget=20, out=str(tmp_path)
    )
    table = json.loads(run("explain", tmp_path, "cycles", "--json"))
    for found in (*(layer["free"] for layer in table["layers"]), table["free"]):
        least = min(found[f"bandwidth of {level}"]["seconds"] for level in ("DRAM", "GLB"))
        assert found["bandwidth of all levels"]["seconds"] <= least < table["free"][""]["seconds"]
    each = [layer["repeat"] * layer["free"]["bandwidth of all levels"]["seconds"] for layer in table["layers"]]
    assert table["free"]["bandwidth of all levels"]["seconds"] == close(math.fsum(each))
    assert "of all levels" not in run("explain", tmp_path, "cycles")


def test_show_goes_through_the_layers():
    said = output_of("show", "loop-nest", "slow")
    assert re.findall(r"^# (\w+)$", said, re.M) == ["square", "last"]
    assert list(json.loads(output_of("show", "breakdown", "slow", "--json"))) == ["square", "last"]


def test_layers_are_drawn(tmp_path):
    run("plot", "slow", "--kind", "energy", "-o", tmp_path / "e.svg")
    assert (tmp_path / "e.svg").stat().st_size > 5000
    assert "only energy, cycles, timeline, ratios, response can be drawn, not roofline" in run(
        "plot", "slow", "--kind", "roofline", "-o", "r.svg", code=2
    )


def test_figures_of_a_study_name_what_its_cells_differ_by(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    about = 'kind = "study"\nname = "worth"\nbudget = 60\nseeds = [0, 1]\nout = "out"\nformats = [[], ["two-level-bitmask"]]'
    Path("worth.toml").write_text(f'{about}\nworkloads = ["mm1"]\nhardware = ["edge-16gbps", "mobile"]\n')
    run("run", "worth.toml", "-q")
    rows = read_csv(Path("out/table.csv"))
    (axes,) = figure_of(Path("out"), "energy").axes
    names = [f"{row['hardware']} {row['formats']}" for row in rows]
    assert [text.get_text() for text in axes.get_yticklabels()] == list(dict.fromkeys(names))
    least = min(
        (float(row["edp"]), float(row["energy_pj"])) for row, name in zip(rows, names, strict=True) if name == names[0]
    )
    first = math.fsum(bar.get_width() for bar in axes.patches if bar.get_y() < 0.4)
    assert first == close(least[1] / {"uJ": 1e6, "nJ": 1e3}[axes.get_xlabel().split()[-1]])
    (axes,) = figure_of(Path("out"), "ratios").axes
    means = [row.ratio.mean for row in compare(rows_of(Path("out"))).means]
    assert [line.get_xdata()[0] for line in axes.get_lines() if line.get_marker() == "o"] == close(means)
    assert "needs the folder of a study" in run(
        "plot",
        "out/" + sorted(x.name for x in Path("out").iterdir() if x.is_dir())[0],
        "--kind",
        "ratios",
        "-o",
        "r.svg",
        code=2,
    )


def test_a_study_over_hardware_compares_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    layers = json.dumps(LAYERS).replace('": ', '" = ').replace('"name"', "name")
    layers = re.sub(r'"(\w+)" = ', r"\1 = ", layers)
    Path("two.toml").write_text(f'kind = "network"\nname = "two"\nlayers = {layers}\n')
    chips = ", ".join(f'{{ extends = "mobile", name = "{n}", clock = "{c["clock"]}" }}' for n, c in CHIPS.items())
    about = 'kind = "study"\nname = "chips"\nbudget = 60\nobjective = "edp"\nnetworks = ["two.toml"]'
    Path("chips.toml").write_text(f"{about}\nhardware = [{chips}]\n")
    run("run", "chips.toml", "--out", "out", "-q")
    page = page_of([Path("out")], load())
    assert page.verdict[0].startswith("quick is better than slow for two, by ")
    layers, chips = page.sections[:2]
    assert chips.title == "Hardware" and "ayer" in page.verdict[0] and layers.title.startswith("Layers")
    assert "shares are of what quick gains over slow in energy x time, negative where it loses" in layers.text
    said = run("compare", "chips.toml", "--out", "out")
    assert "energy x time in J * s" in said and "quick has 0." in said
    assert "the energy x time of out (geometric mean of 2 cells)" in run("compare", "out", "out")


def test_the_verdict_of_a_study_is_over_all_its_seeds(tmp_path, monkeypatch):
    """As the comparison says it, with the interval; and the design that is told is of a seed that is named."""
    monkeypatch.chdir(tmp_path)
    Path("two.toml").write_text(
        'kind = "network"\nname = "two"\n[[layers]]\nname = "a"\ntype = "linear"\nk = 512\nn = 64\n'
        '[[layers]]\nname = "b"\ntype = "linear"\nk = 96\nn = 64\n'
    )
    chips = '{ extends = "mobile", name = "slow", clock = "800 MHz" }, { extends = "mobile", name = "quick" }'
    about = 'kind = "study"\nname = "chips"\nbudget = 20\nnetworks = ["two.toml"]\nseeds = [0, 1, 2]'
    Path("chips.toml").write_text(f"{about}\nhardware = [{chips}]\n")
    run("run", "chips.toml", "--out", "out", "-q")
    said, told, *_ = page_of([Path("out")], load()).verdict
    (mean,) = compare(rows_of(Path("out"))).means[-1:]
    ratio = max(mean.ratio.mean, 1 / mean.ratio.mean)
    assert f" by {ratio:.2f}x in energy x time (" in said and " at 95 %, 3 seeds" in said
    assert "one seed" not in said + told and re.search(r"With seed [012] it takes", said)


def test_a_chip_that_only_its_own_cost_model_counts_is_compared_and_the_models_are_named():
    """Of two models of one type neither is compared with the other, nor are two models of a chip."""
    slow, quick = sides()
    names = dict.fromkeys(("label", "hardware", "model", "model_type", "technology"), "mesh")
    mesh = attrs.evolve(quick, **names)
    (said,) = verdict([slow, mesh])
    assert said.startswith("mesh is better than slow") and said.endswith(
        "differ: mesh by mesh in mesh; slow by physical in 12nm-recommended."
    )
    assert len(compared([slow, attrs.evolve(mesh, hardware="slow")])) == 2
    assert len(compared([slow, attrs.evolve(mesh, model_type="analytic")])) == 2


def test_single_searches_that_are_close_and_work_that_is_not_the_same_are_told(tmp_path):
    slow, quick = sides()
    near, far = (attrs.evolve(quick, label="x", hardware="x", numbers={**slow.numbers, "gap": 2, "costs": {"edp_js": value}})
                 for value in (slow.costs["edp_js"] * 1.2, slow.costs["edp_js"] * 2.0))  # fmt: skip
    assert "Of one seed each: so little may be chance" in verdict([slow, near])[0]
    assert "chance" not in verdict([slow, far])[0]
    assert "chance" not in verdict([slow, attrs.evolve(near, searched="sparsemap, seed 1")])[0]
    assert "Not the same work" not in verdict([slow, quick])[0]
    sparser = [dict(layer, density={"P": 0.5}) for layer in LAYERS]
    search_network({**NETWORK, "layers": sparser}, "mobile", budget=60, out=str(tmp_path))
    (said,) = verdict([slow, *sides_of(tmp_path)])
    assert "Not the same work: square, last differ in density" in said
    plans = [attrs.evolve(side, planned=True, label=way, hardware=way, numbers={**side.numbers, "formats": way})
             for side, way in ((slow, "matched"), (*sides_of(tmp_path), "free"))]  # fmt: skip
    (said,) = verdict(plans)
    assert "free with --formats free and matched with --formats matched: square, last differ in density" in said
    assert "Not the same work" not in said


def test_areas_of_which_only_some_have_their_sparse_units_are_told():
    slow, quick = sides()
    assert slow.chip and "Areas are counted" not in verdict([slow, quick])[0]
    (said,) = verdict([attrs.evolve(slow, chip={**slow.chip, "units": {"formats": {}}}), quick])
    assert "that of slow has its decoders and skipping units; quick has no `units`, so that layers take any" in said


def test_other_budgets_and_bounds_that_are_farther_than_the_other_side_are_told():
    slow, _ = sides()
    found = dict(zip(("edp_js", "seconds", "energy_pj"), (1.1, 1.1, 1.0), strict=True))
    less = {**slow.numbers, "budget": 40, "gap": 2.2, "costs": {key: slow.costs[key] * of for key, of in found.items()}}
    near = attrs.evolve(slow, label="x", hardware="x", numbers=less)
    best = attrs.evolve(slow, numbers={**slow.numbers, "gap": 2.3})
    (said,) = verdict([best, near])
    assert "The effort differs: slow has 60 designs a layer, x 40 designs a layer." in said
    assert "slow is at 2.30x of its bound, x at 2.20x: more designs may turn 1.10x." in said
    (said,) = verdict([best, attrs.evolve(near, numbers={**less, "budget": 60, "gap": 1.05})])
    assert "effort" not in said and "of its bound" not in said


def test_a_bound_above_the_other_result_proves_a_verdict_and_silences_doubts():
    slow, _ = sides()
    costs = {key: slow.costs[key] * of for key, of in (("edp_js", 1.5), ("seconds", 1.5), ("energy_pj", 1.0))}
    other = attrs.evolve(
        slow, label="x", hardware="x", numbers={**slow.numbers, "costs": costs, "gap": 1.2, "budget": 1}
    )
    found = Verdict([slow, other])
    assert found.state == "proven" and found.to_dict()["proven_factor"] == pytest.approx(1.25)
    assert "Proven: every design of x, of the sizes searched, is worse by at least 1.25x." in found.text
    assert "effort differs" not in found.text and "one seed" not in found.text
    open_ = Verdict([slow, attrs.evolve(other, numbers={**other.numbers, "gap": 1.6})])
    assert open_.state == "one seed" and open_.to_dict()["proven_factor"] is None
    assert Verdict([slow, attrs.evolve(other, objective="energy")]).state == "one seed"  # the bound is of another cost


def test_the_page_names_searcher_and_budget():
    assert any("sparsemap, seed 0, 60 designs a layer" in x for x in page_for("slow", "quick").lines)


def test_where_layers_pull_both_ways_the_most_for_and_against_is_told():
    slow, _ = sides()
    parts = [attrs.evolve(x, cycle_s=x.cycle_s * {"square": 0.25, "last": 1.1}[x.name]) for x in slow.parts]
    worth = math.prod(math.fsum(getattr(x, key) for x in parts) for key in ("energy_pj", "seconds")) * 1e-12
    numbers = {**slow.numbers, "costs": {"edp_js": worth}}
    (said,) = verdict([slow, attrs.evolve(slow, hardware="x", label="x", parts=tuple(parts), numbers=numbers)])
    x = attrs.evolve(slow, parts=tuple(parts))
    square, last = (percent(shares_of([x, slow])[name]) for name in ("square", "last"))
    assert "x is better than slow" in said and last.startswith("-")
    assert re.search(
        rf" Layers pull both ways: square has {square} of it, [\d.]+ [un]s instead of [\d.]+ [un]s, limited by .* on slow; "
        rf"last has {last} of it, [\d.]+ [un]s instead of [\d.]+ [un]s, limited by .* on x\.",
        said,
    )


def test_of_more_than_two_chips_all_are_ranked():
    _, quick = sides()
    worse = [
        attrs.evolve(quick, label=name, hardware=name, numbers=quick.numbers | {"gap": 9, "costs": {"edp_js": cost}})
        for name, more in (("far", 3.0), ("mid", 2.0), ("near", 1.5))
        for cost in [more * quick.costs["edp_js"]]
    ]
    (said,) = verdict([*worse, quick])
    assert said.startswith("quick is better than near for two, by 1.50x in energy x time. It is the best of 4; ")
    assert "besides, mid needs 2.00x, far needs 3.00x its energy x time. quick takes " in said
    (said,) = verdict([quick, attrs.evolve(quick, label="same", hardware="same"), worse[0]])
    assert said == "quick and same are equal for two; far needs 3.00x their energy x time."


def test_amounts_between_layers_are_of_the_side_even_if_chips_share_a_name():
    counted = {"count": 2, "energy_pj": 1e6, "cycles": 100.0}
    slow, quick = (
        attrs.evolve(side, hardware="same", numbers={**side.numbers, "between": {**counted, "cycles": cycles}})
        for side, cycles in zip(sides(), (100.0, 200.0), strict=True)
    )
    assert "1 uJ and 100 cycles on slow, 1 uJ and 200 cycles on quick" in verdict([slow, quick])[-1]


def test_words_of_other_sizes_and_missing_limits_are_told():
    """What a chip wins by what its file leaves out is not won by its design."""
    slow, quick = sides()
    assert slow.word_bits == 16 and not any(slow.unlimited.values())
    levels = [{key: x for key, x in one.items() if "bandwidth" not in key} for one in quick.chip["levels"]]
    (said,) = verdict([slow, attrs.evolve(quick, chip={**quick.chip, "word_bits": 8, "levels": levels})])
    assert said.endswith(" Words differ: quick has 8 bits; slow has 16 bits.")
    assert " in energy x time. No bandwidth limits GLB, PEB of quick. quick takes " in said
    assert "bandwidth limits" not in verdict([slow, quick])[0]
    assert "bandwidth limits" not in verdict([attrs.evolve(x, chip={"levels": levels}) for x in (slow, quick)])[0]


def test_it_is_told_what_limits_are_worth_that_one_of_two_chips_has(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    levels = [
        {"name": "DRAM", "class": "dram", "bandwidth": "100 GB/s"},
        {"name": "GLB", "class": "sram", "capacity": "512 KB", "fanout": 64},
    ]
    for name, limits in (("bare", {}), ("limited", {"bandwidth": "20 GB/s"}), ("free", {"bandwidth": "unlimited"})):
        chip = {"name": name, "levels": [levels[0], {**levels[1], **limits}], "compute": {"name": "MAC"}}
        search_network(NETWORK, chip, budget=60, out=name)
    (said,) = page_of([Path("limited"), Path("bare")], load()).verdict
    (found,) = re.findall(
        r"bare is better than limited for two, by ([\d.]+)x in energy x time\.(?: Proven: [^.]+\.\d+x\.)? "
        r"No bandwidth limits GLB of bare; without limits on chip for either, the same designs differ by "
        r"([\d.]+)x(?:, and limited is better)?\. bare takes",
        said,
    )
    assert float(found[0]) > 2 * float(found[1]) >= 2
    assert found[1] in run("compare", "limited", "bare")
    assert sides_of(Path("free"))[0].unlimited == sides_of(Path("bare"))[0].unlimited == {"GLB": True}


def test_it_is_told_what_words_of_other_sizes_are_worth(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, bits in (("narrow", 8), ("wide", 16)):
        search_network(NETWORK, {"extends": "mobile", "name": name, "word_bits": bits}, budget=60, out=name)
    (said,) = page_of([Path("wide"), Path("narrow")], load()).verdict
    (found,) = re.findall(
        r"narrow is better than wide for two, by ([\d.]+)x in .* Words differ: narrow has 8 bits; wide has 16 bits; "
        r"with 8 bits for both, the same designs differ by ([\d.]+)x(?:, and wide is better)?\.",
        said,
    )
    assert float(found[0]) > 1.5 * float(found[1]) >= 1.5


def test_a_folder_of_results_is_their_comparison(chips):
    both = run("explain", chips, "--json")
    assert {row["layer"] for row in json.loads(both)["layers"]} == {
        f"{chip}/{x['name']}" for chip in CHIPS for x in LAYERS
    }
    assert page_of([chips], load()).verdict == page_for("quick", "slow").verdict
    assert list(json.loads(run("show", "breakdown", chips, "--json"))) == [
        f"{chip}/{x['name']}" for chip in sorted(CHIPS) for x in sorted(LAYERS, key=lambda x: x["name"])
    ]


def test_a_verdict_holds_at_both_ends_of_the_technology_or_is_undecided(tmp_path) -> None:
    """A chip that mostly leaks against a chip with dearer reads: the published range of leakage decides."""
    registry = load()
    levels = registry.spec("hardware", "mobile")["levels"]

    def side(name, standard, clock, folder):
        dram = levels[0] | {"standard": standard, "idle": "self-refresh"}
        chip = {"extends": "mobile", "name": name, "clock": clock, "levels": [dram, *levels[1:]]}
        search_network(NETWORK, chip, budget=60, objective="energy", out=str(folder / name))
        return sides_of(folder / name)[0]

    leaks, reads = side("leaks", "hbm2", "2.5 MHz", tmp_path), side("reads", "lpddr4", "1 GHz", tmp_path)
    said = verdict([leaks, reads], registry)[0]
    assert said.startswith("Undecided between leaks and reads for two: in 12nm-recommended")
    said = verdict([side("leaks", "hbm2", "400 MHz", tmp_path / "faster"), reads], registry)[0]
    assert re.search(r"by 1\.\d+x in energy\..* 12nm-recommended; 1\.\d+x in 12nm-low, 1\.\d+x in 12nm-high\.$", said)


def test_a_page_of_a_study_tells_searches_that_still_improve_from_noise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text(
        "workload,hardware,searcher,seed,edp,energy_pj,cycles,evaluations,valid_fraction,verdict\n"
        + "".join(f"w,h,{name},{seed},{edp},1,1,600,1,improving\n"
                  for name, costs in (("a", (1.0, 1.0, 1.0)), ("b", (0.8, 1.1, 0.9))) for seed, edp in enumerate(costs))
    )  # fmt: skip
    assert "not converged" in "".join(page_of([Path()], load()).verdict)


def test_a_page_of_a_search_has_its_verdict(tmp_path):
    problem = load_problem("mm1", "edge-16gbps")
    found = search(problem, 250)
    found.write(tmp_path)
    assert f"The search: {found.convergence.text}." in page_of([tmp_path], load()).verdict[0]
