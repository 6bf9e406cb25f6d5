"""The page of a result is one file: every number in it is that of the result, and names do nothing in it."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner
from sparsemap_plugins.reports import page as pages_of
from sparsemap_plugins.reports.page import html, page_of
from sparsemap_plugins.reports.page.content import Page, Section, compact, typeset
from sparsemap_plugins.reports.tables import PageTable, PrintedNumber, number

from sparsemap import load_problem, search
from sparsemap.cli.main import cli
from sparsemap.cli.networks import Live
from sparsemap.csv_files import read_csv
from sparsemap.pieces.loading import load
from sparsemap.spec import toml_text
from sparsemap.spec.units import format_count, format_energy
from sparsemap.study.networks import search_network

pytest.importorskip("jinja2", reason="pages need the extra `report`")
pytest.importorskip("matplotlib", reason="pages need the extra `report`")
BOLD = '"<b onclick=x>"'
EVIL = "<script>document.title='owned'</script>"


class Reader(HTMLParser):
    """The texts and values of numbers by where they are from, what marks and loops tell, and what would be loaded."""

    def __init__(self, text):
        super().__init__()
        self.numbers, self.tips, self.loads, self.scripts, self._of = {}, [], [], 0, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        at = dict(attrs)
        self.scripts += tag == "script"
        self.tips += [at[key] for key in ("data-tip", "aria-label") if key in at]
        self.loads += [
            at[key] for key in ("src", "href", "xlink:href") if key in at and at[key] != "data:," and at[key][0] != "#"
        ]
        self._of = (at.get("data-of"), float(at["value"])) if tag == "data" else None

    def handle_data(self, data):
        if self._of and self._of[0]:
            self.numbers[self._of[0]] = (self._of[1], data)
        self._of = None


def at(table, place):
    """The value in a table at such as `levels.0.by_tensor.P`."""
    for key in place.split("."):
        table = table[int(key)] if isinstance(table, list) else table[key]
    return float(table)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("front")
    search(load_problem("mm3", "cloud", objective="pareto:energy,delay"), budget=600, seed=1).write(path)
    return path


def read(*paths):
    text = html(page_of(paths, load()))
    assert len(text) < 3e6
    assert not re.search(r"\bNaN\b|\bInfinity\b|undefined|>nan<|>inf<", text)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttp", text)
    found = Reader(text)
    assert (found.loads, found.scripts) == ([], 1)
    return found


@pytest.fixture(scope="module")
def found(folder):
    return read(folder)


def test_every_number_of_a_search_is_that_of_its_result(folder, found):
    table = json.loads((folder / "result.json").read_text("utf-8"))
    for place, (value, _) in found.numbers.items():
        assert value == at(table, place), place
    wanted = {
        "edp", "energy_pj", "cycles", "evaluations", "levels.0.by_tensor.P", "levels.2.energy_pj", "levels.3.cycles",
    }  # fmt: skip
    assert wanted <= found.numbers.keys()
    assert {f"front.{i}.objectives.delay" for i in range(len(table["front"]))} <= found.numbers.keys()
    assert found.numbers["energy_pj"][1] == typeset(format_energy(table["energy_pj"]))


def test_marks_and_loops_tell_formulas_with_numbers(found):
    tips = "\n\n".join(found.tips)
    assert re.search(r"Q at PEB\nread [\d.]+ M × [\d.]+ pJ = [\d.]+ µJ\nfill", tips)
    assert re.search(r"DRAM: [\d,]+ cycles = [\d,]+ cycles of the MAC units / 0\.\d+", tips)
    assert re.search(r"\d+ steps of \w, one after the other\n(.+\n)*[PQ]\[., .\]: brings the next tile", tips)
    assert re.search(r"one after the other\n(.+\n)*[PQ]\[., .\]: the tile stays", tips)
    assert re.search(r"GLB: [\d.]+ computes a word\n[\d.]+ computes a cycle; its roof there is", tips)


@pytest.fixture(scope="module")
def evil(folder, tmp_path_factory):
    """The page of a search whose workload and a memory are called like elements of HTML."""
    evil = tmp_path_factory.mktemp("evil")
    shutil.copytree(folder, evil, dirs_exist_ok=True)
    text = (folder / "design.toml").read_text("utf-8").replace('name = "mm3"', f'name = "{EVIL}"')
    text = text.replace('name = "PEB"', f"name = {BOLD}").replace("PEB =", f"{BOLD} =")
    (evil / "design.toml").write_text(text, "utf-8")
    table = (folder / "result.json").read_text("utf-8").replace('"PEB"', BOLD).replace('"mm3"', json.dumps(EVIL))
    (evil / "result.json").write_text(table, "utf-8")
    (evil / "report.html").write_text(html(page_of([evil], load())), "utf-8")
    return evil / "report.html"


def test_names_are_text(evil):
    page = evil.read_text("utf-8")
    assert "<script>document" not in page and "<b onclick" not in page
    assert "&lt;script&gt;document" in page and "&lt;b onclick" in page


def test_a_network_has_its_layers_and_totals(tmp_path):
    first = {"name": "first", "type": "conv2d", "k": 8, "c": 4, "p": 8, "q": 8, "r": 3, "s": 3, "padding": 1}
    second = {"name": "second", "type": "linear", "k": 512, "n": 10}
    two = {"name": "two", "input": [4, 8, 8], "layers": [first, second]}
    result = search_network(two, "edge", budget=60, out=str(tmp_path / "out"), fuse=False)
    found, table = read(tmp_path / "out"), json.loads(json.dumps(result.to_dict()))
    assert {"edp", "energy_pj", "cycles", "layers.0.edp", "layers.1.share_of_cycles"} <= found.numbers.keys()
    assert all(value == at(table, place) for place, (value, _) in found.numbers.items())
    assert any(re.match(r"second, DRAM\n[\d.]+ [num]J, [\d.]+ %", tip) for tip in found.tips)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    table = 'kind = "study"\nname = "few"\nworkloads = ["mm1"]\nhardware = ["cloud"]\nseeds = [0, 1]\nbudget = 100\n'
    (folder / "few.toml").write_text(table + 'searchers = ["sparsemap", "random"]\nout = "out"', "utf-8")
    done = CliRunner().invoke(
        cli, ["run", str(folder / "few.toml"), "--out", str(folder / "out"), "--json", "--report"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["workload"] == "mm1"
    return folder / "out"


def test_a_study_has_its_cells_and_their_spread_over_seeds(study, monkeypatch):
    rows = read_csv(study / "table.csv")
    found = Reader((study / "report.html").read_text("utf-8"))
    for place, (value, _) in found.numbers.items():
        row, key = place.split(".")
        assert value == float(rows[int(row)][key])
    assert (
        len([tip for tip in found.tips if re.match(r"mm1 on cloud, random, seed \d\n.* EDP over sparsemap", tip)]) == 2
    )
    monkeypatch.chdir(study.parent)
    assert CliRunner().invoke(cli, ["run", "few.toml", "-q"]).exit_code == 0  # the page is a file of the study


def test_the_page_of_a_running_study_reloads_itself_and_counts_its_cells(tmp_path, monkeypatch):
    table = 'kind = "study"\nname = "few"\nworkloads = ["mm1"]\nhardware = ["edge"]\nseeds = [0, 1, 2]\nbudget = 10\n'
    (tmp_path / "few.toml").write_text(table, "utf-8")
    monkeypatch.setattr(Live, "PAUSE_S", 0.0)
    pages = []
    monkeypatch.setattr(pages_of, "html", lambda *given: pages.append(html(*given)) or pages[-1])
    done = CliRunner().invoke(cli, ["run", str(tmp_path / "few.toml"), "--out", str(tmp_path / "out"), "--report"])
    assert done.exit_code == 0, done.output
    assert ["http-equiv" in page for page in pages][0 :: len(pages) - 1] == [True, False]
    assert "cells have ended" not in pages[-1]
    assert "1 of 3 cells have ended." in pages[0]


def test_a_running_study_of_networks_has_no_page_before_its_first_total(tmp_path, monkeypatch):
    layers = [{"name": name, "type": "linear", "k": k, "n": 16} for name, k in (("one", 16), ("two", 32))]
    study = {"kind": "study", "name": "nets", "networks": ["net.toml"], "hardware": ["edge", "mobile"], "budget": 5}
    (tmp_path / "net.toml").write_text(toml_text.dumps({"kind": "network", "layers": layers}), "utf-8")
    (tmp_path / "nets.toml").write_text(toml_text.dumps(study), "utf-8")
    monkeypatch.setattr(Live, "PAUSE_S", 0.0)
    done = CliRunner().invoke(cli, ["run", str(tmp_path / "nets.toml"), "--out", str(tmp_path / "out"), "--report"])
    assert done.exit_code == 0 and "no report" not in done.output and "shows the cells as they end" in done.output
    assert {"gap", "verdict"} <= read_csv(tmp_path / "out" / "table.csv")[0].keys() | {"verdict"}


def test_results_are_put_side_by_side(study):
    cells = [study / f"mm1--cloud--{name}--seed{seed}" for name in ("sparsemap", "random") for seed in (0, 1)]
    found = read(*cells)
    for place, (value, _) in found.numbers.items():
        row, key = place.split(".", 1)
        assert value == at(json.loads((cells[int(row)] / "result.json").read_text("utf-8")), key)
    assert any("energy x time 1.00x of mm1--cloud--sparsemap--seed0" in tip for tip in found.tips)


def test_amounts_of_a_column_have_one_unit():
    def column(*energies):
        table = PageTable(["", "energy"], [["a", number(x, format_energy)] for x in energies])
        return [x if isinstance(x, str) else x.text for _, x in compact(table).rows]

    assert column(3.9e6, 113e3, 11e3, None, 0.0) == ["3.9 uJ", "0.113 uJ", "0.011 uJ", "-", "0 uJ"]
    assert column(3.9e6, 1.1e6) == ["3.9 uJ", "1.1 uJ"] and column(3.9e9, 11.0) == ["3.9 mJ", "11 pJ"]


def test_columns_of_zeros_or_ones_are_left_out_of_several_rows():
    rows = [
        [name, "1", number(0.0, format_energy), number(size, format_energy)] for name, size in (("a", 3.0), ("b", 0.0))
    ]
    table = PageTable(["", "times", "idle", "energy"], rows)
    assert compact(table).head == ["", "energy"] and compact(table).rows[0][1].text == "3 pJ"
    assert compact(attrs.evolve(table, rows=rows[:1])).head == table.head


def test_pages_have_the_units_of_print_and_names_stay():
    assert typeset("2 us, 3 uJ, 4 mm2, 0.5 W/mm2; energy, uJ") == "2 µs, 3 µJ, 4 mm², 0.5 W/mm²; energy, µJ"
    assert typeset("mm2 on us, uJ and mm2") == "mm2 on us, uJ and mm2"


def test_what_cannot_be_reported_is_said(study, folder, tmp_path, monkeypatch):
    def said(*args):
        done = CliRunner().invoke(cli, list(map(str, args)))
        assert done.exit_code == 2
        return done.output

    assert "nothing to report: expected the folder of a search" in said("report", tmp_path)
    assert "nothing to report: expected the folder of a search" in said("report", folder, tmp_path)
    (tmp_path / "table.csv").write_text("workload,seed\nmm1,0\n", "utf-8")
    assert "table.csv: has no 'hardware': not a result as SparseMap writes it" in said("report", tmp_path)
    (tmp_path / "result.json").write_text("[]", "utf-8")
    assert "found [], expected a table of format 'sparsemap result 1'" in said("report", tmp_path)
    (tmp_path / "result.json").write_text("{}", "utf-8")
    assert "has no 'edp': not a result as SparseMap writes it" in said("report", tmp_path)
    (tmp_path / "result.json").write_text("{", "utf-8")
    assert "result.json: Expecting property name" in said("report", tmp_path)
    assert "--report needs a folder for the report: --out DIR" in said("search", "mm1", "edge", "--report")
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    assert "report.html needs the package 'matplotlib', which is not installed; try: pip install" in said(
        "report", folder
    )
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize(
    "words",
    [("search", "mm1"), ("run", "few.toml"), ("run", "two.toml", "--hardware")],
    ids=["search", "study", "network"],
)
def test_a_search_says_first_that_there_will_be_no_report(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    layer = '{ name = "a", type = "linear", k = 8, n = 10 }'
    Path("two.toml").write_text(f'kind = "network"\nname = "two"\ninput = [8]\nlayers = [{layer}]\n', "utf-8")
    study = 'kind = "study"\nname = "few"\nworkloads = ["mm1"]\nhardware = ["edge"]\nseeds = [0]\nbudget = 40\n'
    Path("few.toml").write_text(study + 'searchers = ["random"]\n', "utf-8")
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    budget = () if words[1] == "few.toml" else ("edge", "--budget", "40")
    done = CliRunner().invoke(cli, [*words, *budget, "--out", "out", "--report"])
    assert done.exit_code == 0, done.output
    first, *others = done.stderr.splitlines()
    assert first.startswith("no report will be written: report.html needs the package 'matplotlib'")
    assert others and not any("report" in line for line in others) and not Path("out", "report.html").exists()
    assert any(Path("out").iterdir())


def test_a_search_without_a_valid_design_says_why(tmp_path):
    small = load_problem("mm1", {"extends": "edge", "levels": {"PEB": {"capacity": "2 B"}}})
    search(small, budget=50).write(tmp_path)
    text = html(page_of([tmp_path], load()))
    assert "None of 50 designs is valid." in text and "capacity:PEB" in text


# ---------------------------------------------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def opened(browser, evil):
    """That page, and what the browser complained of or asked for."""
    page, trouble = browser.new_page(viewport={"width": 1400, "height": 900}), []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: trouble.append(request.url) if request.url != evil.as_uri() else None)
    page.goto(evil.as_uri())
    return page, trouble


def test_the_page_asks_for_nothing_and_its_names_do_not_run(opened):
    page, trouble = opened
    assert [text for text in trouble if not text.startswith("data:")] == []
    assert page.title() == page.inner_text("h1") == f"{EVIL} on cloud"


def test_a_reader_sees_the_numbers_of_the_result(opened, folder):
    page, table = opened[0], json.loads((folder / "result.json").read_text("utf-8"))
    seen = page.eval_on_selector_all("data[data-of]", "all => all.map(x => [x.dataset.of, x.innerText])")
    told = {
        "energy_pj": lambda x: typeset(format_energy(x)),
        "cycles": format_count,
        "edp": "{:.3e}".format,
        "evaluations": "{:,.0f}".format,
    }
    checked = [
        (place, text, told[key](at(table, place))) for place, text in seen if (key := place.split(".")[-1]) in told
    ]
    assert len(checked) > 15
    assert [row for row in checked if row[1] != row[2]] == []


def test_pointing_shows_the_formula(opened):
    page, _ = opened
    page.hover("svg [aria-label^='Z at DRAM']")
    assert re.match(r"Z at DRAM\nupdate [\d,]+ × [\d.]+ pJ = [\d.]+ µJ", page.inner_text("#tip"))
    page.hover(".loop >> nth=0")
    assert "one after the other\n" in page.inner_text("#tip")
    page.hover("h1")
    assert not page.is_visible("#tip")


@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_fits_phone_and_screen_light_dark_and_paper(opened, width):
    page, _ = opened
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    grounds = []
    for how in ({"color_scheme": "light"}, {"color_scheme": "dark"}, {"color_scheme": "dark", "media": "print"}):
        page.emulate_media(**{"media": "screen", **how})
        ink, ground = page.evaluate("(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))")
        assert page.evaluate("getComputedStyle(document.querySelector('.chart text')).fill") == ink
        grounds.append(ground)
    assert grounds == ["rgb(255, 255, 255)", "rgb(21, 23, 26)", "rgb(255, 255, 255)"]


SORTED = """() => {
  const own = (row) => [...row.cells].some((cell) => cell.querySelector("data"));
  const table = [...document.querySelectorAll(".table table")].find((one) => [...one.tBodies[0].rows].filter(own).length > 2);
  const i = [...table.tBodies[0].rows].find(own).cells.length - 1 - [...[...table.tBodies[0].rows].find(own).cells].reverse()
    .findIndex((cell) => cell.querySelector("data"));
  const head = table.tHead.rows[0].cells[i];
  const column = () => [...table.tBodies[0].rows].filter((row) => row.cells[0].textContent.trim() !== "total")
    .map((row) => row.cells[i].querySelector("data")).filter((x) => x).map((x) => +x.value);
  head.click(); const up = column();
  head.click(); return [up, column(), head.getAttribute("aria-sort")];
}"""
"""Click twice on the head of the last column of numbers of the first table with three rows of numbers."""


def test_a_click_on_a_head_sorts_the_table_by_value_and_total_stays_last(opened):
    up, down, state = opened[0].evaluate(SORTED)
    assert len(up) > 2 and up == sorted(up) and down == up[::-1] and state == "descending"


def test_long_tables_have_a_filter_and_a_head_that_stays(browser, tmp_path):
    rows = [["name", "n"], *([f"row {i}", PrintedNumber(i, str(i))] for i in range(30))]
    made = Page("a page", [], [], [Section("Rows", [PageTable(rows[0], rows[1:])])])
    (tmp_path / "a.html").write_text(html(made), "utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "a.html").as_uri())
    page.fill(".filter", "ROW 2")
    assert page.locator("tbody tr:visible").count() == 12  # 2, 12, and 20 to 29
    page.fill(".filter", "")
    assert page.evaluate("getComputedStyle(document.querySelector('th')).position") == "sticky"


def test_power_per_area_beyond_published_chips_is_told(tmp_path):
    """64 MACs of 1 mm2 or so, fed at 4.5 GHz: many watts on few square millimetres."""
    hot = {"extends": "mobile", "name": "hot", "clock": "4.5 GHz", "levels": {"DRAM": {"bandwidth": "1024 GB/s"}}}
    found = search(load_problem("mm3", hot), budget=100)
    assert re.search(
        r"power +[\d.]+ W/mm2 on chip, more than the 0.5 of the densest published chips", found.report("summary")
    )
    found.write(tmp_path)
    assert any("W/mm2 on chip" in text for text in page_of([tmp_path], load()).warnings)
    assert "W/mm2" not in search(load_problem("mm3", "mobile"), budget=100).report("summary")
