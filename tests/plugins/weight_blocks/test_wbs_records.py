"""Every field of every instruction counts: a schedule with one number changed does not pass."""

import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.weight_blocks.layers import MeshLayer
from sparsemap_plugins.weight_blocks.schedule import compile_layers
from sparsemap_plugins.weight_blocks.schedule_file import Compiled, differences, read_schedule, write_schedule
from sparsemap_plugins.weight_blocks.simulate import NetworkData
from wbs_layers import machine

from sparsemap.cli.main import cli

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


def others(value: Any) -> list[Any]:
    """Other values of a JSON value."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, 2 * value + 3, -value - 7]
    if isinstance(value, float):
        return [value * 1.02 + 1e-9, value / 10 - 1e-9, -1.0]
    return ["nobody"] if isinstance(value, str) else [value[:-1], [*value, 1]]


@pytest.mark.parametrize("case", MESHES)
def test_every_changed_field_of_an_instruction_is_found_with_its_place(case: str, tmp_path: Path) -> None:
    compiled_data(tmp_path, case)
    table = json.loads((tmp_path / "schedule.json").read_text())
    assert list(differences(table, table)) == []
    for number, one in enumerate(table["instructions"]):
        for key, value in one.items():
            for other in others(value):
                changed = [*table["instructions"][:number], {**one, key: other}, *table["instructions"][number + 1 :]]
                (place, _), *_ = differences({**table, "instructions": changed}, table)
                assert place.startswith(f"instructions[{number}].{key}"), place
        assert list(differences({**one, "apart2": 1}, one)) == [("apart2", "unknown key")]


def test_instructions_that_are_left_out_come_twice_or_change_places_are_found(tmp_path: Path) -> None:
    compiled_data(tmp_path, "six")
    table = json.loads((tmp_path / "schedule.json").read_text())
    every = table["instructions"]
    for at in range(len(every) - 1):
        for records in (
            every[:at] + every[at + 1 :],
            every[:at] + every[at : at + 1] + every[at:],
            every[:at] + every[at : at + 2][::-1] + every[at + 2 :],
        ):
            assert next(differences({**table, "instructions": records}, table))[0].startswith("instructions"), at


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
    assert result.exit_code == 2 and "layers[0].durations.COMP" in result.output, result.output


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


@pytest.mark.parametrize(("key", "value"), [("quirks", [1]), ("outputs", {"mean": []})])
def test_lists_of_a_schedule_are_read_with_their_types(key: str, value: Any, tmp_path: Path) -> None:
    compiled_data(tmp_path, "six")
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    result = CliRunner().invoke(cli, ["extra", "simulate", str(tmp_path)])
    assert result.exit_code == 2 and f"schedule.json: {key}" in result.output, result.output
