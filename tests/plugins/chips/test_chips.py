"""One chip for a network: a hardware with choices, the units that it has, and the outer search over both."""

from __future__ import annotations

import csv
import itertools
import json
import math
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import attrs
import numpy as np
import pytest
from sparsemap_plugins.chips import layers
from sparsemap_plugins.chips import model as chip_model
from sparsemap_plugins.chips import search as chip_search
from sparsemap_plugins.chips.judge import MOVED
from sparsemap_plugins.chips.layers import Weight, layers_of
from sparsemap_plugins.chips.model import Tried, digest_of, hoped, segment_of, whole, worth_of
from sparsemap_plugins.chips.search import LAST, DesignTask, _finalists, designed, outer_problem
from sparsemap_plugins.chips.starts import starts_of, weights_of
from sparsemap_plugins.chips.worth import STAGES, Leg, evaluated_chip
from sparsemap_plugins.verify.run import verify
from tiny import TINY

from sparsemap import Search, SearchError, SpecError, load_problem, search
from sparsemap.cli.check import check_files
from sparsemap.errors import DesignError
from sparsemap.pieces import defaults
from sparsemap.pieces.loading import load
from sparsemap.pieces.registry import Origin
from sparsemap.problem import design_file
from sparsemap.problem.constraints import broken_of
from sparsemap.searching import budget, journal

NETWORK = """
kind = "network"
name = "two"
layers = [
  { name = "a", workload = "small-sparse", repeat = 3 },
  { name = "b", workload = "small-matmul" },
]
"""


BLOCK = str(Path(__file__).parents[3] / "benchmarks" / "specs" / "bert-block-2of4.toml")
LITTLE = {"a": "m = 4, k = 2", "b": "m = 2, k = 4"}


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.fixture
def task(tmp_path: Path) -> DesignTask:
    (tmp_path / "chip.toml").write_text(TINY)
    (tmp_path / "network.toml").write_text(NETWORK)
    return DesignTask(
        networks=(str(tmp_path / "network.toml"),),
        hardware=str(tmp_path / "chip.toml"),
        out=tmp_path / "out",
        space="small",
        budget=4,
        layer_budget=10,
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
        ({"low": 1, "high": 8, "factor": 1}, "expected a factor above 1"),
        (
            {"low": "1 KB", "high": "8 KB", "step": "1 bit"},
            "expected a step above 0, a number in the unit of low and high",
        ),
        ({"low": "1 KB", "high": "8 KB", "step": 0}, "expected a step above 0"),
        ({"low": "1 KB", "high": "8 KB", "factor": 1.0000001}, "expected 1,000 values at most, not 20,794,4"),
        ({"low": 1, "high": 1001, "step": 1}, "expected 1,000 values at most, not 1,001"),
        ({"low": 1, "high": math.inf, "step": 1}, "expected 1,000 values at most, not inf"),
        ({"low": 1, "high": 8, "factor": math.nan}, "expected a factor above 1"),
        ({"low": math.nan, "high": 8, "step": 1}, "expected 0 < low <= high"),
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


def test_a_design_that_uses_what_the_chip_has_not_is_refused_wherever_it_is_read(registry, tmp_path):
    free = load_problem("small-sparse", {"extends": "small", "name": "c"}, "small", registry=registry)
    table = design_file.dump(search(free, 300, seed=0).found.design)
    table["formats"]["P"] = ["bitmask"] * len(table["formats"]["P"])
    table["formats"]["Q"] = table["formats"]["Z"] = ["uncompressed"] * len(table["formats"]["P"])
    table["gate_skip"] = dict.fromkeys(table["gate_skip"], "gate-p-by-q")
    design_file.structure(table, registry)
    place = next(iter(table["gate_skip"]))
    for units, path in (
        ({"formats": {"P": ["bitmask"]}}, f"gate_skip.{place}"),
        ({"formats": {"Q": ["bitmask"]}}, "formats.P"),
    ):
        table["hardware"] = {**table["hardware"], "units": units}
        with pytest.raises(SpecError, match=f"{path}: '.+', which the units of hardware 'c' do not have"):
            design_file.structure(table, registry)


def test_check_says_what_is_not_built_where_units_say_nothing_of_it(registry, tmp_path, caplog):
    file = tmp_path / "chip.toml"
    for units, word in {
        "[units.formats]\nP = ['bitmask']": "mechanism",
        "[units.mechanisms]\nMAC = ['gate-both']": "format",
    }.items():
        file.write_text(f'kind = "hardware"\nname = "c"\nextends = "small"\n{units}\n')
        ((_, mistakes),) = check_files([str(file)], registry)
        assert not mistakes
        assert f"units: names no {word}s, so that none is built" in caplog.messages[-1]


def test_check_says_which_units_take_no_area(tmp_path, caplog):
    mine = {"kind": "format", "name": "mine", "compressed": True, "lists": "mask"}
    registry = load()
    registry.add_spec(mine, Origin(""))
    units = "[units.formats]\nP = ['bitmask', 'mine', 'uncompressed']\n[units.mechanisms]\nMAC = ['gate-both', 'none']"
    (tmp_path / "chip.toml").write_text(f'kind = "hardware"\nname = "c"\nextends = "edge"\n{units}\n')
    ((_, mistakes),) = check_files([str(tmp_path / "chip.toml")], registry)
    assert not mistakes and caplog.messages[-1].endswith("units: mine takes no area, as its unit_macs is 0")


def test_the_usual_space_takes_up_the_units_that_it_lacks_and_others_say_so_once(registry, caplog):
    units = {
        "formats": {"P": ["bitmask"], "Q": ["nm-offset"], "S": ["ellpack"]},
        "mechanisms": {"MAC": ["gate-both"]},
    }
    given = {"extends": "small", "name": "c", "units": units}
    rng = np.random.default_rng(0)

    def chosen(space, hardware):
        problem = load_problem("small-sparse", hardware, space, registry=registry)
        formats = problem.space.decode(problem.space.sample(500, rng)).formats
        return [{problem.candidates("format")[i].name for i in np.unique(formats[:, t])} for t in range(3)]

    for space in (None, defaults.SPACE):
        plain = {"uncompressed", "offset-pair"}
        assert chosen(space, given) == [plain | {"bitmask"}, plain | {"nm-offset"}, plain]
    assert not caplog.messages
    for _ in range(2):
        assert chosen("paper", given) == [plain | {"bitmask"}, plain, plain]
    assert len(caplog.messages) == 1
    assert "units.formats: no design uses nm-offset, ellpack, which" in caplog.messages[0]
    empty, bare = (
        load_problem("small-sparse", {**given, "units": some}, registry=registry) for some in ({"formats": {}}, None)
    )
    assert [x.name for x in empty.candidates("format")] == [x.name for x in bare.candidates("format")]
    assert bare.space_spec == registry.resolve("space", defaults.SPACE)


def test_check_says_which_units_have_no_tensor_no_gate_or_no_candidate(registry, tmp_path, caplog):
    units = "[units.formats]\nP = ['nm-offset']\nX = ['bitmask']\n[units.mechanisms]\nDRAM = ['gate-both']"
    file, study = tmp_path / "chip.toml", tmp_path / "study.toml"
    file.write_text(f'kind = "hardware"\nname = "c"\nextends = "edge"\n{units}\n')
    study.write_text('kind = "study"\nname = "s"\nworkloads = ["mm1", "mm2"]\nhardware = ["chip.toml"]\n')
    ((_, mistakes), (_, here)) = check_files([str(file), str(study)], load())
    assert not mistakes and [str(one.message) for one in here] == ["no tensor 'X'; known: P, Q, Z"]
    assert here[0].path == "c: units.formats.X"
    told = "\n".join(caplog.messages)
    assert "units.formats.X: is no role (P, Q, R, S, Z)" in told
    assert "units.mechanisms.DRAM: has no gate_skip" in told
    file.write_text(f'kind = "hardware"\nname = "c"\nextends = "edge"\nspace = "paper"\n{units.replace("X", "Q")}\n')
    ((_, mistakes),) = check_files([str(file)], load())
    assert not mistakes and "no design uses nm-offset, which is no candidate of space 'paper'" in caplog.messages[-1]


# -------------------------------------------------------------------------------------------------------- the search


PLACES = {True: "plan/*.toml", False: "*/design.toml"}
"""Of the designs in the folder of a network, by whether it is planned."""


@pytest.mark.parametrize("fuse", [True, False])
def test_a_chip_for_two_layers_adds_up_and_its_files_give_the_same(task, registry, fuse):
    result = designed(attrs.evolve(task, fuse=fuse, budget=3))
    layers = result.final["layers"]
    assert [row["times"] for row in layers] == [3, 1]
    for key in ("energy_pj", "cycles"):
        assert result.final[key] == math.fsum(row[key] for row in layers)
    assert len(result.rows()) == 2
    between = {key: 7.0 + result.final[key] for key in ("energy_pj", "cycles")}  # as operations of a plan add
    *_, rest = attrs.evolve(result, final=result.final | between).rows()
    assert (rest["layer"], rest["energy_pj"], rest["cycles"]) == (
        "between the layers",
        pytest.approx(7.0),
        pytest.approx(7.0),
    )
    executed = {row["design"] for row in csv.DictReader((task.out / "executed.csv").open())}
    assert executed == {str(file.relative_to(task.out)) for file in (task.out / "network").glob(PLACES[fuse])}
    hardware = registry.resolve("hardware", str(task.out / "chip.toml"))
    assert hardware.units is not None and not hardware.choices
    problem = load_problem("small-sparse", hardware, "small", registry=registry)
    assert float(problem.chip.total_area_mm2) == result.final["area_mm2"]
    found = json.loads((task.out / "design.json").read_text())
    assert found["edp_js"] == result.edp_js and found["chips"] >= 3
    network = json.loads((task.out / "network" / "network.json").read_text())
    steps = network["fused"]["layers"] if fuse else network["layers"]
    totals = network["fused"] if fuse else network
    for key in ("energy_pj", "cycles"):
        assert totals[key] == found[key] == math.fsum(step.get("repeat", 1) * step[key] for step in steps)
    for step in steps:
        file = step["design"] if fuse else f"{step['searched']}/design.toml"
        design = design_file.load(task.out / "network" / file, registry)
        again = design.problem.evaluator.evaluate_designs(design.batch)
        assert (again.energy_pj[0], again.cycles[0]) == (step["energy_pj"], step["cycles"])
        assert design.problem.hardware.units == hardware.units
        assert verify(design.problem, design.batch, 2, 0).correct


def test_one_relative_folder_in_two_working_folders_is_two_folders(task, tmp_path, monkeypatch):
    """A cache of plans by the relative path sent the second chip's designs to the first one's folder."""
    folders = []
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        folders += [Path(one.plan.folder) for one in layers.wholes_on({"extends": "small"}, task.inner, "chip")]
    assert folders == [tmp_path / place / "chip" / "network" for place in ("one", "two")]


def test_an_edited_network_is_read_again(task, tmp_path):
    """A cache by file name answered with the network as it was in the first run of a notebook."""
    network = tmp_path / "network.toml"
    times = []
    for repeat in (3, 30):
        network.write_text(NETWORK.replace("repeat = 3", f"repeat = {repeat}"))
        times.append(designed(attrs.evolve(task, out=tmp_path / f"out-{repeat}")).final["cycles"])
    assert times[1] > 2 * times[0]


def test_a_stopped_search_goes_on_and_ends_the_same_with_two_jobs_too(task, tmp_path, monkeypatch):
    whole = designed(task)
    stopped = attrs.evolve(task, out=tmp_path / "stopped")
    count = itertools.count()

    def worth(given):
        if next(count) == 4:
            raise KeyboardInterrupt
        return worth_of(given)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(chip_model, "worth_of", worth)
        designed(stopped)
    file = stopped.out / "chips.jsonl"
    kept = file.read_text().splitlines()
    assert len(kept) == 5
    file.write_text("\n".join(kept) + "\n" + whole_line(kept[-1])[:40])  # killed while it wrote
    again = designed(attrs.evolve(stopped, jobs=2))
    for name in ("design.json", "chip.toml", "layers.csv", "front.csv"):
        assert (stopped.out / name).read_text() == (task.out / name).read_text()
    assert whole.edp_js == again.edp_js


def whole_line(line: str) -> str:
    return json.dumps({**json.loads(line), "digest": "cut"})


@pytest.mark.slow
def test_a_command_that_is_killed_ends_the_same_when_it_is_run_again(task):
    """SIGKILL, some chips on."""
    words = [*task.networks, str(task.hardware), "--space", "small", "--budget", "8", "--layer-budget", "10", "-q"]
    command = [sys.executable, "-m", "sparsemap", "design", *words, "--out"]
    subprocess.run([*command, str(task.out)], check=True)
    other, kept = task.out.with_name("killed"), task.out.with_name("killed") / "chips.jsonl"
    process = subprocess.Popen([*command, str(other)])
    while process.poll() is None and not (kept.exists() and len(kept.read_text().splitlines()) > 3):
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert not (other / "design.json").exists()
    subprocess.run([*command, str(other)], check=True)
    for name in ("design.json", "chip.toml", "layers.csv", "front.csv"):
        assert (other / name).read_text() == (task.out / name).read_text()


def test_chips_of_different_sizes_race_those_first_that_may_cost_least(task):
    """Of those with the same sizes one; none that may cost a quarter more than the best."""
    problem = outer_problem(task)

    def ended(size: int, now: float, before: float) -> dict:
        costs, then = (dict.fromkeys(MOVED, cost) | {"area_mm2": 1.0} for cost in (now, before))
        course = [{name: some[name] for name in MOVED} for some in (then, then, costs)]
        return {"set": {"size": size}, "course": course, "edp": now**2, "reason": "", **costs}

    rows = [ended(1, 10.0, 10.0), ended(1, 9.9, 9.9), ended(2, 10.5, 12.5), ended(3, 10.6, 10.6), ended(4, 12.0, 12.0)]
    found = _finalists(problem, problem.cost_model, rows)
    assert [rows.index(row) for row in found] == [2, 1, 3]


def test_half_of_those_that_race_leave_at_each_turn(task, monkeypatch):
    """The two that are left are searched longer."""
    told = list[tuple[str, int]]()

    def evaluated(table, inner, near=(), leg=None, folder="", run=map):
        told.append((json.dumps(table["levels"]), 0 if leg is None else leg.seed - task.seed))
        return evaluated_chip(table, inner, near, leg, folder, run)

    monkeypatch.setattr(chip_search, "CLOSE", 1e9)
    monkeypatch.setattr(chip_search, "evaluated_chip", evaluated)
    designed(attrs.evolve(task, budget=12, fuse=False))
    counts = [len({chip for chip, turn in told if turn == at}) for at in range(1, 1 + max(turn for _, turn in told))]
    assert counts[0] > LAST and [*counts[1:], LAST] == [max(LAST, count // 2) for count in counts]


DAMAGES = {
    "digit": lambda text: re.sub(
        r'("(?:energy_pj|seed)": )(\d)', lambda found: found[1] + str(9 - int(found[2])), text
    ),
    "bit": lambda text: re.sub('"(energy_pj|seed)"', '"\xea"', text),
    "empty": lambda text: "",
}


def damaged(file: Path, how: str, line: int = -1) -> None:
    lines = file.read_text("utf-8").split("\n")
    lines[line] = DAMAGES[how](lines[line])
    file.write_bytes("\n".join(lines).encode("latin-1"))


def test_damaged_files_of_a_search_of_chips_are_named_and_change_nothing(task, caplog):
    """One digit, or much more: chips and reference designs are searched again."""
    task = attrs.evolve(task, budget=3, layer_budget=16, fuse=False)
    designed(task)
    names = ("design.json", "chip.toml", "layers.csv", "front.csv", "chips.jsonl", "reference/reference.json")
    before = {name: (task.out / name).read_bytes() for name in names}
    chips = task.out / "chips.jsonl"
    for how in DAMAGES:
        for line in (1, -2):
            damaged(chips, how, line)
            designed(task)
            assert "chips.jsonl: 1 of " in caplog.text, how
            assert "lines are damaged; these chips are searched again" in caplog.text, how
            caplog.clear()
            assert sorted(chips.read_text().splitlines()) == sorted(before["chips.jsonl"].decode().splitlines())
            assert all((task.out / name).read_bytes() == before[name] for name in names if name != "chips.jsonl")
        damaged(task.out / "reference" / "reference.json", how)
        designed(task)
        assert "reference.json is damaged; the reference designs are searched again" in caplog.text, how
        caplog.clear()
        assert all((task.out / name).read_bytes() == before[name] for name in names if name != "chips.jsonl")
        damaged(chips, how, 0)
        with pytest.raises(SearchError, match=r"chips\.jsonl is damaged: its first line .* \(--overwrite, in Python"):
            designed(task)
        if how != [*DAMAGES][-1]:
            chips.write_bytes(before["chips.jsonl"])
    assert designed(attrs.evolve(task, overwrite=True)) and chips.read_bytes() == before["chips.jsonl"]


def test_a_line_is_read_as_it_was_written_or_not_at_all():
    row = {"edp": 1.25e-12, "genes": [1, 2], "name": "a\n\u2028", "inf": math.inf, "inner": {"crc32": 5}}
    line = journal.sealed(row).encode()
    assert journal.unsealed(line) == row and json.loads(line)["edp"] == row["edp"] and b"\n" not in line
    for place, byte in enumerate(line):
        for other in {byte ^ 1, byte ^ 128, ord("}"), ord("9")} - {byte}:
            assert journal.unsealed(line[:place] + bytes([other]) + line[place + 1 :]) is None
        assert journal.unsealed(line[:place]) is None
    assert journal.unsealed(b"5") is journal.unsealed(b"") is journal.unsealed(json.dumps(row).encode()) is None


@pytest.mark.parametrize(
    ("first", "second", "stays"),
    [((2.0, {}), (1.0, {}), 1.0), ((1.0, {}), (2.0, {}), 1.0), ((2.0, {"stopped": 1}), (3.0, {}), 3.0),
     ((2.0, {}), (1.0, {"stopped": 1}), 2.0), ((2.0, {"stopped": 1}), (3.0, {"stopped": 1}), 3.0),
     ((2.0, {}), (1.0, {"reason": "no-design"}), 2.0), ((2.0, {"reason": "no-design"}), (3.0, {}), 3.0)],
)  # fmt: skip
def test_of_a_chip_that_is_searched_twice_the_better_result_stays(first, second, stays):
    """Of those that were searched to their end; else the latest."""
    tried, counts = Tried(), list[int]()
    tried.told = counts.append
    for value, more in (first, second):
        tried.take({"digest": "a", "batch": 0, "value": value, "reason": "", **more})
    assert [row["value"] for row in tried.every] == [stays]
    assert counts[-1] == 1


def test_two_searches_of_chips_cannot_write_to_one_folder(task, monkeypatch):
    monkeypatch.setattr(journal, "WAIT_SECONDS", 0)
    task = attrs.evolve(task, budget=1, fuse=False)
    with (
        journal.Journal(task.out / "journal.bin", {}),
        pytest.raises(SearchError, match="another search is writing it"),
    ):
        designed(task)
    assert [path.name for path in task.out.iterdir()] == ["journal.bin"]
    (task.out / "journal.bin").unlink()
    designed(task)
    assert not (task.out / "journal.bin").exists()


def test_chips_of_another_search_stay_and_what_differs_is_named(task):
    task = attrs.evolve(task, budget=1, fuse=False)
    designed(task)
    file = task.out / "chips.jsonl"
    older = file.read_text()
    other = attrs.evolve(task, seed=task.seed + 1)
    with pytest.raises(
        SearchError, match=r"chips.jsonl is of another search, .*; seed is .* \(--overwrite, in Python overwrite=True\)"
    ):
        designed(other)
    assert file.read_text() == older
    designed(attrs.evolve(other, overwrite=True))
    assert json.loads(file.read_text().splitlines()[0])["seed"] == other.seed


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('"levels.Bufer.fanout" = [2, 4]', "choices.levels.Bufer.fanout: no level 'Bufer'; did you mean 'Buffer'"),
        ('"levels.Buffer.fannout" = [2, 4]', "choices.levels.Buffer.fannout: unknown key; did you mean 'fanout'"),
        ('"levels.Buffer.capacity" = ["1 KB", "2 QB"]', "choices.levels.Buffer.capacity: '2 QB': unknown unit 'QB'"),
        ('"levels.Buffer.fanout" = [2, 0]', "choices.levels.Buffer.fanout: .*0"),
        ('clok = ["1 GHz"]', "choices.clok: unknown key; did you mean 'clock'"),
    ],
)
def test_what_no_chip_can_have_is_said_before_anything_is_searched(task, tmp_path, registry, line, text):
    file = tmp_path / "typo.toml"
    file.write_text(TINY.split("levels.")[0] + f"[choices]\n{line}\n")
    with pytest.raises(SpecError, match=text) as caught:
        designed(attrs.evolve(task, hardware=str(file)))
    assert str(caught.value).startswith(str(file)) and not task.out.exists()
    ((_, mistakes),) = check_files([str(file)], registry)
    assert [m.message for m in mistakes] == [m.message for m in caught.value.mistakes]


@pytest.mark.parametrize(
    ("objective", "inner"),
    [("energy", "energy"), ("edp_js", "edp_js"), ("pareto:edp,area", "edp"), ("power", "edp"), ("area", "edp")],
)
def test_layers_are_searched_for_what_the_chip_is_good_for(task, objective, inner):
    assert attrs.evolve(task, objective=objective).inner.objective == inner


def test_the_better_half_of_a_batch_goes_on_and_the_given_hardware_always(task):
    result = designed(attrs.evolve(task, budget=12, layer_budget=20, fuse=False))
    assert result.stopped and f"{result.stopped} stopped" in "\n".join(result.text())
    lines = [json.loads(line) for line in (task.out / "chips.jsonl").read_text().splitlines()[1:]]
    spared = {lines[0]["digest"]}  # the given hardware with the units of its layers begins
    for batch in {line["batch"] for line in lines}:
        for stage in range(len(STAGES) - 1):
            here, after = (
                {line["digest"]: line for line in lines if (line["batch"], line["stage"]) == (batch, at)}
                for at in (stage, stage + 1)
            )
            valid = {digest: line for digest, line in here.items() if not line["reason"]}
            best = sorted(valid, key=lambda digest: valid[digest]["edp"])[: -(-len(valid) // 2)]
            assert set(best) <= set(after) <= set(best) | spared
    assert spared & {row["digest"] for row in result.valid}


def test_a_chip_that_is_stopped_never_counts_as_better_than_those_that_went_on(task):
    problem = outer_problem(attrs.evolve(task, budget=20))
    tried = problem.cost_model.tried(problem)
    tried.weights = [Weight(layer=1.0, stays={"": 1.0})] * 2
    genomes = problem.space.repair(problem.space.sample(12, np.random.default_rng(0)), np.random.default_rng(1))
    scores = problem.evaluator.score(problem.evaluator.evaluate(genomes))
    rows = [tried.rows[digest_of(segment_of(problem).table(genes, problem))] for genes in genomes]
    ended = [score for score, row in zip(scores, rows, strict=True) if whole(row)]
    stopped = [score for score, row in zip(scores, rows, strict=True) if "stopped" in row]
    assert ended and stopped and min(ended) <= min(stopped)
    best, before = int(np.argmin(scores)), [row["edp"] for row in rows]
    problem.evaluator.evaluate(genomes[[best]])
    assert tried.rows[rows[best]["digest"]]["edp"] <= before[best] * (1 + 1e-12)  # searched on from its own designs


def test_a_chip_costs_what_it_may_cost_with_half_as_much_less_again_as_its_last_stage_has_made_it(task):
    """So one that is still on its way counts as better than one that has ended a little lower."""
    ended = {"course": [dict.fromkeys(MOVED, 4.0)] * 3}
    going = {
        "course": [dict.fromkeys(MOVED, 9.0), dict.fromkeys(MOVED, 7.0) | {"energy_pj": 6.0}, dict.fromkeys(MOVED, 4.2)]
    }
    assert hoped(ended) == {"energy_pj": 4.0, "cycles": 4.0, "seconds": 4.0}
    assert hoped(going)["energy_pj"] == pytest.approx(4.2 * math.sqrt(0.7)) and hoped(going)["cycles"] < 4.0


def test_the_search_of_a_chip_that_goes_on_does_not_begin_again(task, monkeypatch):
    begun = list[int]()

    class Counted(layers.Search):
        def __init__(self, *given):
            begun.append(given[2])
            super().__init__(*given)

    monkeypatch.setattr(layers, "Search", Counted)
    problem = outer_problem(attrs.evolve(task, fuse=False))
    problem.cost_model.tried(problem).weights = [Weight(layer=1.0, stays={"": 1.0})] * 2
    genomes = problem.space.canonical(
        problem.space.repair(problem.space.sample(6, np.random.default_rng(0)), np.random.default_rng(1))
    )
    problem.evaluator.evaluate(genomes)
    assert len(begun) == 2 * len(np.unique(genomes, axis=0))


def test_a_process_that_has_not_the_searches_of_a_chip_does_them_again_as_they_were():
    """Those with tensors on chip start from what those without had by the first stage."""
    task = DesignTask(networks=(BLOCK,), hardware="mobile-space", out=Path("none"), layer_budget=24)
    problem = outer_problem(task)
    table = segment_of(problem).table(problem.space.sample(1, np.random.default_rng(0))[0], problem)
    legs = [Leg(stage=stage, weights=[Weight(layer=1.0, stays={"": 0.5, "P": 0.5})] * 5, seed=3) for stage in (0, 1)]
    layers._LAST.clear()
    went_on = [evaluated_chip(table, task.inner, leg=leg) for leg in legs][-1]
    layers._LAST.clear()
    assert evaluated_chip(table, task.inner, leg=legs[1]) == went_on and not went_on["reason"]


def test_a_chip_goes_on_in_the_process_that_has_its_searches():
    """Whatever its place in the next stage; the work here says which process it is in."""
    tried = Tried(jobs=2)
    try:
        one, other = dict(tried.map(os.readlink, ["/proc/self"] * 2, ["a", "b"])).values()
        again = dict(tried.map(os.readlink, ["/proc/self"] * 2, ["b", "a"]))
        first = dict(tried.map(os.readlink, ["/proc/self"] * 2, ["a", "b"]))
        assert first == {0: again[1], 1: again[0]} and {one, other} == {*first.values()} and one != other
        assert [index for index, _ in tried.map(os.readlink, ["/proc/self"])] == [0]
    finally:
        tried.close()


@pytest.mark.parametrize("limit", [0.02, 0.5])
def test_chips_are_repaired_to_hold_what_needs_no_search(task, limit):
    """With all their units, so that no search is spent on a chip that turns out to be too large."""
    chip = largest_chip(task)
    area = float(chip.interface_mm2 + limit * (chip.total_area_mm2 - chip.interface_mm2))
    problem = outer_problem(attrs.evolve(task, constraints=(f"area_mm2 <= {area!r}",)))
    segment, rng = segment_of(problem), np.random.default_rng(0)
    genomes = problem.space.sample(60, rng)
    held = np.array([not segment.broken(genes, problem) for genes in genomes])
    repaired = problem.space.repair(genomes, rng)
    assert not held.all() and np.array_equal(repaired[held], genomes[held])
    assert not any(segment.broken(genes, problem) for genes in repaired) or limit < 0.1


def largest_chip(task):
    """The largest chip of the space, with no units."""
    problem = outer_problem(task)
    segment = segment_of(problem)
    largest = [len(gene.values) - 1 if gene.unit is None else 0 for gene in segment.every(problem)]
    return task.layer_on(segment.table(np.array(largest), problem)).chip


def test_what_a_search_starts_from_is_the_given_hardware_and_sizes_of_all_kinds_within_the_area(task):
    """Where the given hardware is itself too large, it comes with a smaller size."""
    problem = outer_problem(task)
    own = segment_of(problem).own(problem, {"formats": {"P": ["bitmask"]}, "mechanisms": {}})
    area = float(task.layer_on(segment_of(problem).table(own, problem)).chip.total_area_mm2)
    reference = {"used_most": {"formats": {"P": ["bitmask"]}, "mechanisms": {}}}
    starts = starts_of(problem, reference, 20, seed=0)
    assert np.array_equal(starts[0], own)
    assert [set(sizes) for sizes in starts[:, :2].T.tolist()] == [{0, 1, 2}, {0, 1, 2}]  # 256 words break a constraint
    larger = own + np.array([gene.unit is None for gene in segment_of(problem).every(problem)])
    values = [gene.values[int(g)] for gene, g in zip(segment_of(problem).every(problem), larger, strict=True)][:2]
    levels = {"Buffer": {"capacity": values[0], "fanout": values[1]}}
    hardware = {"extends": "small", "name": "s", "technology": "12nm-recommended", "levels": levels}
    hardware |= {"choices": dict(problem.hardware.choices)}
    limited = outer_problem(attrs.evolve(task, hardware=hardware, constraints=(f"area_mm2 <= {area!r}",)))
    starts = starts_of(limited, reference, 20, seed=0)
    assert len(starts) > 2 and not any(segment_of(limited).broken(genes, limited) for genes in starts)
    assert (starts[:, :2] != larger[:2]).any(axis=1).all()


def test_layers_that_hardly_count_get_a_quarter_of_the_designs_and_tensors_that_stay_get_most():
    layers = [{"energy_pj": size, "cycles": size, "stays": {"": 1, "P-Z": 3}} for size in (8.0, 4.0, 0.0)]
    found = weights_of({"layers": layers}, "sum")
    assert [weight.layer for weight in found] == [1.0, 1.0, 0.25]
    assert [found[0].share(kept) for kept in ((), ("P",), ("P", "Z"), ("P", "Q", "Z"))] == [0.5, 0.25, 1.0, 1.0]


def test_a_chip_that_was_made_but_not_chosen_is_tried_later(task):
    """80 chips hold the constraint."""
    (task.out.parent / "chip.toml").write_text(EIGHTY)
    problem = outer_problem(attrs.evolve(task, share="sizes"))
    run, tried = Search(problem, "chips", 1000, seed=0), set()
    while (genomes := run.ask()) is not None:
        tried |= set(map(tuple, genomes.tolist()))
        run.tell(1.0 + genomes.sum(axis=1))
    assert len(tried) == 80


def test_equal_chips_are_written_once(task):
    problem = outer_problem(attrs.evolve(task, budget=2))
    segment, rng = segment_of(problem), np.random.default_rng(0)
    genomes = problem.space.sample(400, rng)
    canonical = problem.space.canonical(genomes)
    assert np.array_equal(problem.space.canonical(canonical), canonical)
    tables = [digest_of(segment.table(genes, problem)) for genes in genomes]
    assert tables == [digest_of(segment.table(genes, problem)) for genes in canonical]
    assert len(np.unique(canonical, axis=0)) == len(set(tables)) < len(np.unique(genomes, axis=0))


def test_a_level_that_is_left_out_has_one_size():
    varied = {"levels.PEB.present": [True, False], "levels.PEB.capacity": ["64 KB", "32 KB"]}
    task = DesignTask(
        networks=("bert-base",),
        hardware={"extends": "mobile", "name": "m", "choices": varied},
        out=Path("none"),
    )
    problem = outer_problem(task)
    genomes = np.zeros((4, len(problem.space)), np.int64)
    genomes[:, :2] = [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert problem.space.canonical(genomes)[:, :2].tolist() == [[0, 0], [0, 1], [1, 0], [1, 0]]


@pytest.mark.parametrize("fuse", [True, False])
def test_no_result_is_worse_than_the_given_hardware_with_its_best_units(task, fuse):
    """Whatever the search tries after it, and however few chips."""
    for seed, chips in ((0, 1), (1, 4)):
        result = designed(
            attrs.evolve(task, fuse=fuse, seed=seed, budget=chips, layer_budget=6, out=task.out / str(seed))
        )
        shared, free = (result.to_dict()[key]["edp_js"] for key in ("platform", "reference"))
        assert result.platform["allowed"] and result.edp_js <= shared * (1 + 1e-12) and free <= shared


def test_constraints_hold_and_one_that_cannot_be_read_is_named(task, tmp_path, monkeypatch):
    result = designed(attrs.evolve(task, budget=2, fuse=False))
    assert all(row["set"]["levels.Buffer.capacity"] != "256 words" for row in result.valid)
    for text, said in [("Buffer.capcity <= 3", "did you mean 'Buffer.capacity'"), ("area_mm2 <", "area_mm2 <")]:
        with pytest.raises(SpecError, match=said):
            designed(attrs.evolve(task, constraints=(text,)))
    monkeypatch.setattr(budget, "PROPOSALS", 2)
    with pytest.raises(SearchError, match=r"none of \d+ chips is valid: \d+ of area_mm2 <= 1e-9"):
        designed(attrs.evolve(task, constraints=("area_mm2 <= 1e-9",), out=tmp_path / "none"))


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("GLB.capacity <= 16 MB", False), ("GLB.capacity<=15MB", True), ("GLB.capacity <= 134217728", False),
        ("bert-base-90.seconds <= 5 ms", True), ("bert-base-90.seconds <= 6000us", False), ("power_w < 0.5 W", False),
        ("energy_pj <= 3 mJ", False), ("energy_pj <= 1.9e6 nJ", True), ("area_mm2 <= 2e1 mm2", False),
    ],
)  # fmt: skip
def test_constraints_take_amounts_with_units_and_names_with_dashes(text, broken, registry):
    chip = load_problem("mm1", "mobile", registry=registry).chip
    costs = {"bert-base-90.seconds": 0.006, "energy_pj": 2e9, "area_mm2": 20.0, "power_w": 0.4}
    assert broken_of((text,), chip, costs) == text * broken


EIGHTY = """
kind = "hardware"
name = "eighty"
extends = "small"
technology = "12nm-recommended"
constraints = ["Buffer.capacity * Buffer.fanout <= 64 * 16 * 4"]
compute.gate_skip = false
[choices]
"levels.Buffer.capacity" = ["8 words", "16 words", "32 words", "64 words", "128 words", "256 words"]
"levels.Buffer.fanout" = [1, 2, 4, 8, 16]
"levels.Buffer.bandwidth" = ["1 words/cycle", "2 words/cycle", "4 words/cycle", "8 words/cycle"]
[units]
formats = { P = ["bitmask"] }
mechanisms = { Buffer = ["skip-q-by-p"] }
"""


@pytest.mark.slow
def test_of_every_chip_and_every_mapping_the_best_is_found_by_most_seeds(tmp_path, registry):
    """Every design of both layers is evaluated on all 80 chips that hold the constraint, of which one is the best; then three
    searches look for it, which try half of them, with 40 designs a layer: fewer designs a layer miss it more often."""
    (tmp_path / "chip.toml").write_text(EIGHTY)
    layer = 'einsum = "Z[m] = P[m, k] * Q[k]", density = { P = 0.5, Q = 0.5 }'
    layers = [f'{{ name = "{n}", type = "einsum", dims = {{ {d} }}, {layer} }}' for n, d in LITTLE.items()]
    (tmp_path / "network.toml").write_text(f'kind = "network"\nname = "two"\nlayers = [{", ".join(layers)}]\n')
    task = DesignTask(
        networks=(str(tmp_path / "network.toml"),),
        hardware=str(tmp_path / "chip.toml"),
        out=tmp_path / "out",
        space="small",
        share="sizes",
        fuse=False,
        budget=40,
        layer_budget=40,
    )
    problem = outer_problem(task)
    segment, known = segment_of(problem), list[float]()
    for genes in itertools.product(*(range(high + 1) for high in problem.space.high)):
        table = segment.table(np.array(genes), problem)
        if broken_of(problem.hardware.constraints, task.layer_on(table).chip, {}):
            continue
        energy = cycles = 0.0
        for node, _ in layers_of(task.networks, ()):
            found = search(task.inner.problem(node, table), 10**6, searcher="exhaustive").found
            energy, cycles = energy + found.energy_pj, cycles + found.cycles
        known.append(energy * 1e-12 * cycles / float(problem.chip.clock_hz))
    best, next_best = sorted(known)[:2]
    assert len(known) == 80 and next_best > best * (1 + 1e-6)
    ends = [designed(attrs.evolve(task, seed=seed, out=tmp_path / str(seed))).edp_js for seed in range(3)]
    assert min(ends) == pytest.approx(best, rel=1e-12)
    assert sum(end <= best * (1 + 1e-12) for end in ends) >= 2


def test_designs_of_the_search_start_the_layers_of_the_chip(task):
    """So the chip as it is written is never worse than the search saw it."""
    result = designed(attrs.evolve(task, budget=3))
    assert result.edp_js <= result.searched["energy_pj"] * 1e-12 * result.searched["seconds"]


def test_the_supply_voltage_may_vary_and_the_clock_follows(task, tmp_path):
    """Each chip runs at the clock of its voltage, and energy of arithmetic follows the supply."""
    (tmp_path / "chip.toml").write_text(
        'kind = "hardware"\nname = "volts"\nextends = "small"\nclock = "max"\n'
        'technology = { extends = "12nm-recommended", voltage = { choices = [0.5, 0.8, 1.0] } }\n'
    )
    found = designed(attrs.evolve(task, budget=3))
    ghz = {0.5: 0.735, 0.8: 1.287, 1.0: 1.506}
    with (task.out / "chip.toml").open("rb") as file:
        voltage = tomllib.load(file)["technology"]["voltage"]
    assert found.final["cycles"] / found.final["seconds"] == pytest.approx(ghz[voltage] * 1e9)
