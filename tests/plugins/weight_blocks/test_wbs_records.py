"""Every field of every instruction counts: a schedule with one number changed does not pass."""

import copy
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.weight_blocks import simulate as simulation
from sparsemap_plugins.weight_blocks.instructions import Instruction
from sparsemap_plugins.weight_blocks.layers import MeshLayer
from sparsemap_plugins.weight_blocks.machinery import Machinery
from sparsemap_plugins.weight_blocks.schedule import compile_layers
from sparsemap_plugins.weight_blocks.schedule_file import Compiled, read_schedule, write_schedule
from sparsemap_plugins.weight_blocks.simulate import NetworkData, simulate
from wbs_layers import machine

from sparsemap import SparseMapError
from sparsemap.cli.main import cli
from sparsemap.spec.structuring import Reader

SIX = [
    MeshLayer("stem", "conv", ("x",), 12, 14, 3, 12, 14, 16, (3, 3), 1, (1, 1)),
    MeshLayer("pool", "maxpool", ("stem",), 12, 14, 16, 6, 7, 16, (3, 3), 2, (1, 1)),
    MeshLayer("wide", "conv", ("pool",), 6, 7, 16, 6, 7, 24, (3, 3), 1, (1, 1), 0.5, relu=False),
    MeshLayer("skip", "conv", ("pool",), 6, 7, 16, 6, 7, 24, (1, 1), 1, (0, 0), 0.5, relu=False),
    MeshLayer("sum", "add", ("wide", "skip"), 6, 7, 24, 6, 7, 24),
    MeshLayer("mean", "avgpool", ("sum",), 6, 7, 24, 1, 1, 24, (6, 7)),
]
SPLIT = [
    MeshLayer("deep", "conv", ("x",), 6, 7, 64, 6, 7, 32, (3, 3), 1, (1, 1), 0.5),
    MeshLayer("half", "conv", ("deep",), 6, 7, 32, 3, 4, 24, (3, 3), 2, (1, 1)),
    MeshLayer("left", "conv", ("half",), 3, 4, 24, 3, 4, 16),
    MeshLayer("right", "conv", ("half",), 3, 4, 24, 3, 4, 24),
    MeshLayer("both", "concat", ("left", "right"), 3, 4, 40, 3, 4, 40),
    MeshLayer("smooth", "avgpool", ("both",), 3, 4, 40, 3, 4, 40, (3, 3), 1, (1, 1)),
    MeshLayer("last", "conv", ("smooth",), 3, 4, 40, 1, 1, 24, (3, 4)),
]
MESHES: dict[str, tuple[list[MeshLayer], dict[str, int]]] = {
    "six": (SIX, {}),
    "parts": (SPLIT, {"weights": 1600}),
    "small tiles": (SIX, {"rows": 3, "memtile": 2500}),
    "one core": (SIX, {"columns": 1, "rows": 1}),
}


def compiled_data(folder: Path, case: str) -> tuple[Compiled, NetworkData]:
    layers, changed = MESHES[case]
    write_schedule(folder, "net", "mesh", compile_layers(layers, attrs.evolve(machine(2), **changed)))
    compiled = read_schedule(folder)
    return compiled, NetworkData.of(compiled)


def others(name: str, value: Any, rng: np.random.Generator) -> list[Any]:
    """Other values of a field."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, 2 * value + 3, value + 32, -value - 7, int(rng.integers(-100, 1000))]
    if isinstance(value, float):
        return [value * 1.02 + 1e-9, value / 10 - 1e-9, value * 10 + 1e-6, -1.0]
    if isinstance(value, str):
        names = {"type": ["LOAD", "LOADW", "LOADFM", "LOADWM", "WRITE", "WRITEFM", "COMP"]}
        names |= {"op": ["conv", "maxpool", "avgpool", "add"], "layer": [layer.name for layer in SIX + SPLIT]}
        return [*names.get(name, []), "x", "nobody"]
    found: list[Any] = [value[:-1], (*value, value[-1] if value else 1)]
    for at in range(len(value)):
        found += [(*value[:at], other, *value[at + 1 :]) for other in others(name, value[at], rng)]
    if name == "tensor":
        found += [(layer.name,) for layer in SIX]
    return found


def mutations(compiled: Compiled, seed: int = 0) -> Iterator[tuple[int, str, Any]]:
    rng = np.random.default_rng(seed)
    for number, one in enumerate(compiled.instructions):
        for field in attrs.fields(Instruction):
            value = getattr(one, field.name)
            for other in others(field.name, value, rng):
                if other != value:
                    yield number, field.name, other


READER = Reader()


def passes(compiled: Compiled, data: NetworkData, number: int, name: str, value: Any) -> bool:
    """Whether a schedule with another value is taken for correct; an error without a record counts as such."""
    table = {**attrs.asdict(compiled.instructions[number]), name: value}
    try:
        changed = READER.read(Instruction, table)
        records = (*compiled.instructions[:number], changed, *compiled.instructions[number + 1 :])
        return simulate(attrs.evolve(compiled, instructions=records), data).correct
    except SparseMapError as error:
        return not str(error)


class Resumed:
    """Executes of a schedule with another record only what does not come before it: groups before it leave the memories as
    they do in the schedule itself, which is executed once."""

    def __init__(self, compiled: Compiled, data: NetworkData, monkeypatch: pytest.MonkeyPatch) -> None:
        self.compiled, self.data, self.run = compiled, data, simulation._run
        self.known: dict[int, dict[str, Any]] = {}
        """The memories after a group, by the number of its last record; nothing writes to these."""
        self.other: int | None = None
        """The number of the record that is another one."""
        monkeypatch.setattr(simulation, "_run", self._run)
        assert simulate(compiled, data).correct

    def passes(self, number: int, name: str, value: Any) -> bool:
        self.other = number
        return passes(self.compiled, self.data, number, name, value)

    def _run(self, machinery: Machinery, group: Sequence[Instruction]) -> None:
        first, last = (machinery.numbers[id(one)] for one in (group[0], group[-1]))
        if self.other is None:
            self.run(machinery, group)
            self.known[last] = memories(machinery)
        elif last < self.other and last in self.known:
            vars(machinery).update(self.known[last])
        else:
            if first - 1 in self.known and self.known[first - 1]["tiles"] is machinery.tiles:
                vars(machinery).update(memories(machinery))
            self.run(machinery, group)


def memories(machinery: Machinery) -> dict[str, Any]:
    """A copy of all that the execution of a group changes."""
    fixed = ("compiled", "weights", "machine", "names", "tags", "numbers", "ddr")
    found = {name: copy.deepcopy(value) for name, value in vars(machinery).items() if name not in fixed}
    ddr = copy.copy(machinery.ddr)
    ddr.update({name: array.copy() for name, array in machinery.ddr.items()})
    return {**found, "ddr": ddr}


@pytest.mark.parametrize("case", MESHES)
def test_some_changed_fields_are_all_found(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, data = compiled_data(tmp_path, case)
    every = list(mutations(compiled))
    chosen = np.random.default_rng(1).choice(len(every), 150, replace=False)
    resumed = Resumed(compiled, data, monkeypatch)
    assert [every[n] for n in chosen if resumed.passes(*every[n])] == []


@pytest.mark.slow
@pytest.mark.parametrize("case", MESHES)
def test_all_changed_fields_are_found(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, data = compiled_data(tmp_path, case)
    resumed = Resumed(compiled, data, monkeypatch)
    assert [one for one in mutations(compiled) if resumed.passes(*one)] == []


def test_instructions_that_are_left_out_come_twice_or_change_places_are_found(tmp_path: Path) -> None:
    compiled, data = compiled_data(tmp_path, "six")
    every = compiled.instructions
    for at in range(len(every)):
        for records in (
            every[:at] + every[at + 1 :],
            every[:at] + every[at : at + 1] + every[at:],
            every[:at] + every[at : at + 2][::-1] + every[at + 2 :],
        ):
            if records != every:
                with suppress(SparseMapError):
                    assert not simulate(attrs.evolve(compiled, instructions=records), data).correct, at


def test_computations_that_are_said_to_take_a_tenth_of_their_time_fail(tmp_path: Path) -> None:
    compiled_data(tmp_path, "six")
    path = tmp_path / "schedule.json"
    table = json.loads(path.read_text())
    for one in table["instructions"]:
        if one["type"] == "COMP":
            one["seconds"] /= 10
    for layer in table["layers"]:
        layer["durations"]["COMP"] /= 10
        layer["volumes"]["COMP"] //= 10
    path.write_text(json.dumps(table))
    result = CliRunner().invoke(cli, ["extra", "simulate", str(tmp_path)])
    assert result.exit_code == 1 and "COMP of stem" in result.output, result.output


BY_HAND = {
    "instructions.3.iterations": 10**9,
    "instructions.3.seconds": -1.0,
    "instructions.3.start": float("nan"),
    "instructions.3.rows": [0, 10**12, 1, 0],
    "instructions.3.columns": [0, 2**40, 0],
    "instructions.3.core": ["a"],
    "instructions.3.type": "COPY",
    "instructions.3.layer": None,
    "instructions.3.unknown": 1,
    "instructions.0.address": [-(2**50)],
    "layers.2.kernel": [0, 0],
    "layers.2.ci": 24,
    "layers.2.out_channels": -4,
    "layers.2.inputs": ["nobody"],
    "layers.2.volumes": {"COMP": "many"},
    "layers.2.seconds": "inf",
    "machine.columns": 10**9,
    "machine.rows": 0,
    "machine.clock_hz": -1.0,
    "machine.index": "u8",
    "shapes.stem": [10**9, 10**9, 10**9],
    "shapes.pool": [6, 7],
    "quirks": ["gibb"],
    "seconds": None,
}


@pytest.mark.parametrize("place", BY_HAND)
def test_schedules_edited_by_hand_are_told_by_record(place: str, tmp_path: Path) -> None:
    compiled_data(tmp_path, "six")
    path = tmp_path / "schedule.json"
    table = json.loads(path.read_text())
    *way, last = place.split(".")
    inside = table
    for key in way:
        inside = inside[int(key)] if isinstance(inside, list) else inside[key]
    inside[last] = BY_HAND[place]
    path.write_text(json.dumps(table))
    result = CliRunner().invoke(cli, ["extra", "simulate", str(tmp_path)])
    named = f"{way[0]}[{way[1]}]" if way and way[0] in ("instructions", "layers") else way[0] if way else last
    assert result.exit_code in (1, 2) and named in result.output and "Traceback" not in result.output, result.output
    assert isinstance(result.exception, SystemExit)


def test_times_alone_tell_which_record_does_not_run_with_the_others_of_its_group(tmp_path: Path) -> None:
    compiled, _ = compiled_data(tmp_path, "six")
    at = next(n for n, one in enumerate(compiled.instructions) if one.type == "LOADFM")
    records = list(compiled.instructions)
    records[at] = attrs.evolve(records[at], group=10**6)
    with pytest.raises(SparseMapError, match=rf"instructions\[{at}\], LOADFM of .*: runs with nothing"):
        simulate(attrs.evolve(compiled, instructions=tuple(records)))


def test_times_alone_tell_which_record_runs_more_often_than_its_layer_has_rows(tmp_path: Path) -> None:
    compiled, _ = compiled_data(tmp_path, "six")
    at = next(n for n, one in enumerate(compiled.instructions) if one.type == "LOADFM")
    records = [attrs.evolve(one, iterations=10**9) if n == at else one for n, one in enumerate(compiled.instructions)]
    with pytest.raises(SparseMapError, match=rf"instructions\[{at}\], LOADFM of .*: has 1,000,000,000 iterations"):
        simulate(attrs.evolve(compiled, instructions=tuple(records)))


def test_schedules_changed_at_random_end_in_a_result_or_a_clear_error(tmp_path: Path) -> None:
    compiled_data(tmp_path, "six")
    path = tmp_path / "schedule.json"
    text, rng = path.read_text(), np.random.default_rng(3)
    values = [-1, 0, 2, 10**9, 2**62, 1.5, float("nan"), None, "x", [], [1], {}, True]
    for _ in range(60):
        table = json.loads(text)
        for _ in range(int(rng.integers(1, 4))):
            inside, last = table, str(rng.choice(list(table)))
            while isinstance(inside[last], dict | list) and inside[last]:
                inside = inside[last]
                keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
                last = keys[int(rng.integers(len(keys)))]
            inside[last] = values[int(rng.integers(len(values)))]
        path.write_text(json.dumps(table))
        result = CliRunner().invoke(cli, ["extra", "simulate", str(tmp_path)])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception


def test_inputs_that_are_read_from_another_address_are_found_though_no_weights_meet_them(tmp_path: Path) -> None:
    layers = [
        MeshLayer("first", "conv", ("x",), 8, 3, 8, 8, 3, 32, (3, 3), 1, (1, 1)),
        MeshLayer("second", "conv", ("first",), 8, 3, 32, 3, 1, 16, (1, 1), 3, (0, 0), 0.0),
    ]
    write_schedule(tmp_path, "net", "mesh", compile_layers(layers, attrs.evolve(machine(2), columns=1)))
    compiled = read_schedule(tmp_path)
    data = NetworkData.of(compiled)
    assert simulate(compiled, data).correct
    loads = [n for n, one in enumerate(compiled.instructions) if (one.type, one.layer) == ("LOADFM", "second")]
    assert loads
    for number in loads:
        address = compiled.instructions[number].address[0]
        assert not passes(compiled, data, number, "address", (address + 1,))


@pytest.mark.parametrize(("key", "value"), [("quirks", [1]), ("outputs", {"mean": []})])
def test_lists_of_a_schedule_are_read_with_their_types(key: str, value: Any, tmp_path: Path) -> None:
    compiled_data(tmp_path, "six")
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    result = CliRunner().invoke(cli, ["extra", "simulate", str(tmp_path)])
    assert result.exit_code == 2 and f"schedule.json: {key}" in result.output, result.output
