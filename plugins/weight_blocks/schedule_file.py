"""A compiled network as files: `schedule.json`, `layers.csv`, and `masks.json` with the blocks of all parts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap.csv_files import csv_text
from sparsemap.errors import SpecError, placed
from sparsemap.file_formats import MASKS as MASKS_FORMAT
from sparsemap.file_formats import FileFormat
from sparsemap.files import read_json, shown
from sparsemap.pieces.contracts.base import Array
from sparsemap.spec.structuring import Reader
from sparsemap.writing import write_texts

from .durations import tile_rows
from .instructions import Instruction, instructions_of
from .layers import MeshLayer
from .machine import CoreMesh
from .networks import LARGEST, read_masks
from .schedule import LayerPlan, Schedule, TensorSlice, compile_layers
from .splits import Splits

KIND = "aie2-schedule"
SCHEDULE_FORMAT = FileFormat("schedule", "`schedule.json` of `sparsemap extra compile`; also for its `layers.csv`")
SCHEDULE, MASKS, LAYERS = "schedule.json", "masks.json", "layers.csv"
SIZES = ("op", "height", "width", "channels", "out_channels", "stride", "density")
SPLIT = ("co", "ci", "rows", "tiles", "passes")
"""Columns of `layers.csv`, before the seconds of the layer and of each kind of step."""
OF_LAYER = [field.name for field in attrs.fields(MeshLayer) if field.name not in ("mask", "repeats")]
"""Fields of a layer in `schedule.json`; `masks.json` holds the mask."""
LONGEST = 1 << 17
"""Largest size in a file."""


def write_schedule(folder: Path, name: str, hardware: str, schedule: Schedule) -> list[Path]:
    """Writes a schedule, a CSV of its layers, and `masks.json`, an input of `sparsemap extra prune` for even parts."""
    instructions = instructions_of(schedule)
    kept = {one.cut.layer.name: _kept(one) for one in schedule.layers if one.cut.convolves}
    table = schedule_table(name, hardware, schedule, instructions)
    layers = [one for one in table["layers"] if one["op"] != "concat"]
    keys = (*SIZES, *SPLIT, "seconds")
    lines = [{"layer": one["name"]} | {key: one[key] for key in keys} | one["durations"] for one in layers]
    texts = {
        folder / LAYERS: csv_text(lines),
        folder / MASKS: json.dumps(MASKS_FORMAT.stamped({"layers": kept})) + "\n",
        folder / SCHEDULE: _json(SCHEDULE_FORMAT.stamped(table)),
    }
    write_texts(texts)
    return list(texts)


def schedule_table(name: str, hardware: str, schedule: Schedule, instructions: Sequence[Instruction]) -> dict[str, Any]:
    """The contents of `schedule.json`: all layers in order, and all instructions, without fields at their defaults."""
    plans = {one.cut.layer.name: layer_table(one) for one in schedule.layers}
    return {
        "kind": KIND,
        "network": name,
        "hardware": hardware,
        "machine": attrs.asdict(schedule.machine, filter=lambda field, _: field.name != "listed"),
        "slices": {name: attrs.asdict(part) for name, part in schedule.slices.items()},
        "layers": [
            {key: getattr(layer, key) for key in OF_LAYER} | plans.get(layer.name, {}) for layer in schedule.network
        ],
        "shapes": schedule.shapes,
        "outputs": schedule.outputs,
        "seconds": schedule.seconds,
        "instructions": [attrs.asdict(one, filter=lambda field, value: value != field.default) for one in instructions],
    }


def _json(table: Mapping[str, Any]) -> str:
    """JSON with a line per layer and instruction."""
    parts = []
    for key, value in table.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines = ",\n  ".join(json.dumps(entry) for entry in value)
            parts.append(f' "{key}": [\n  {lines}\n ]')
        else:
            parts.append(f' "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def layer_table(planned: LayerPlan) -> dict[str, Any]:
    """A layer with sub-volume, places and times; seconds, and bytes per memory tile, row or column of cores."""
    cut, splits, place = planned.cut, planned.splits, planned.placement
    layer = cut.layer
    rows, tiles = tile_rows(cut, splits)
    at_core = {"H": -(-rows // min(splits.rows, rows)), "COUT": -(-cut.row_channels // splits.co)}
    places = (*place.inputs, place.output, place.weights, *place.live)
    return {
        **attrs.asdict(attrs.evolve(splits, tiles=tiles)),
        "splits": {
            "W": cut.machine.columns if cut.out_columns < layer.out_width else 1,
            "COUT": cut.machine.rows,
            "memory tile": {"H": tiles, "COUT": splits.passes, "CIN": 1},
            "core": {**at_core, "CIN": cut.parts(splits.ci)},
        },
        "spilled": place.spilled,
        "places": {one.tensor: [one.start, one.end] for one in places},
        "evicted": [one.tensor for one in place.evicted],
        "seconds": planned.seconds,
        "durations": {step: float(value) for step, value in planned.steps.of.items()},
        "volumes": planned.volumes,
    }


def _kept(one: LayerPlan) -> dict[str, Any]:
    """Mask (if any), split, and kept blocks of every row of cores, chunk and part of a convolution."""
    layer, profile = one.cut.layer, one.profile
    outs, ins = layer.block
    split = {"rows": one.cut.machine.rows, "out_blocks": one.splits.co // outs, "in_blocks": one.splits.ci // ins}
    found: dict[str, Any] = {} if layer.mask is None else {"mask": layer.mask.astype(int).tolist()}
    found |= {"blocks": list(layer.blocks), "split": split, "kept": profile.counts.tolist()}
    return found | {"padding": profile.padding / max(1, int(profile.counts.sum()))}


@attrs.frozen(eq=False)
class Compiled:
    """A schedule from a file, compiled again from the file's layers and sub-volumes."""

    network: str
    schedule: Schedule
    instructions: tuple[Instruction, ...]


def read_schedule(folder: Path) -> Compiled:
    """The schedule of a file of `write_schedule`.

    Layers, sub-volumes, machine and masks are compiled again; SpecError names the first different value of the file,
    such as a field of an instruction."""
    path = folder / SCHEDULE if folder.is_dir() else folder
    table = read_json(path, LARGEST)
    if not isinstance(table, dict) or table.get("kind") != KIND:
        raise SpecError.at(shown(path), "kind", f"expected '{KIND}', a file that `sparsemap extra compile` wrote")
    table = SCHEDULE_FORMAT.opened(table, shown(path))
    with placed("", shown(path)):
        name, hardware = (_read(table, key, str) for key in ("network", "hardware"))
        schedule, instructions = _compiled_again(table, read_masks(path.parent / MASKS))
        try:
            expected = json.loads(json.dumps(schedule_table(name, hardware, schedule, instructions)))
        except ArithmeticError as error:  # times beyond all numbers
            raise SpecError.at("", "machine", f"cannot be compiled: {error!r}") from error
        for place, text in differences(table, expected):
            raise SpecError.at("", place, text)
    return Compiled(name, schedule, tuple(instructions))


def _read(table: Mapping[str, Any], key: str, cls: Any) -> Any:
    with placed(key):
        return Reader().read(cls, table.get(key))


def _compiled_again(table: Mapping[str, Any], masks: Mapping[str, Array]) -> tuple[Schedule, list[Instruction]]:
    """The schedule of the layers, sub-volumes, slices and machine in a file, with its instructions."""
    machine, slices = _read(table, "machine", CoreMesh), _read(table, "slices", dict[str, TensorSlice])
    layers: list[MeshLayer] = []
    splits: dict[str, Splits] = {}
    for index, entry in enumerate(_read(table, "layers", list[dict[str, Any]])):
        with placed(f"layers[{index}]"):
            layer = Reader().read(MeshLayer, {key: value for key, value in entry.items() if key in OF_LAYER})
            layers.append(attrs.evolve(layer, mask=masks.get(layer.name), block=machine.block))
            if layer.op != "concat":
                splits[layer.name] = Splits(*(_read(entry, key, int) for key in SPLIT))
            _check_sizes(layer, attrs.astuple(splits.get(layer.name, Splits(1, 1, 1))))
    try:
        with np.errstate(all="ignore"):
            schedule = compile_layers(layers, machine, lambda cut, _: splits[cut.layer.name], slices=slices)
            _check_inputs(schedule)
            return schedule, instructions_of(schedule)
    except (ArithmeticError, IndexError, KeyError, TypeError, ValueError, MemoryError) as error:
        raise SpecError.at("", "layers", f"cannot be compiled: {error!r}") from error


def _check_sizes(layer: MeshLayer, splits: Sequence[int]) -> None:
    """Sizes are positive, limited, and leave room for every window."""
    given, made = (layer.height, layer.width), (layer.out_height, layer.out_width)
    sizes = (*given, *made, layer.channels, layer.out_channels, *layer.kernel, layer.stride, *splits)
    if min(sizes) < 1 or max(sizes) > LONGEST:
        raise SpecError.at("", "", f"sizes are {min(sizes):,} to {max(sizes):,}, expected 1 to {LONGEST:,}")
    for size, kernel, pad, count in zip(given, layer.kernel, layer.padding, made, strict=True):
        if not 0 <= pad < kernel or (count - 1) * layer.stride - pad >= size:
            raise SpecError.at(
                "", "kernel", f"a window of {kernel} does not go {count} times over {size} with {pad} before"
            )
    if not 0 <= layer.density <= 1:
        raise SpecError.at("", "density", f"is {layer.density}, expected 0 to 1")


def _check_inputs(schedule: Schedule) -> None:
    """Layers have the sizes of their input tensors."""
    for one in schedule.layers:
        layer, given = one.cut.layer, [schedule.shapes[place.tensor] for place in one.placement.inputs]
        channels = sum(shape[2] for shape in given) // (one.cut.operands if len(given) > 1 else 1)
        if {shape[:2] for shape in given} != {(layer.height, layer.width)} or channels != layer.channels:
            raise SpecError.at("", f"layer {layer.name}", "does not have the rows, columns and channels of its inputs")
        if not one.cut.convolves and layer.channels != layer.out_channels:
            raise SpecError.at(
                "", f"layer {layer.name}", f"does not make {layer.out_channels} of {layer.channels} channels"
            )


def differences(found: Any, expected: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Place and text of every unexpected value of a table; rounding of other machines is allowed."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in [*(found.keys() - expected.keys()), *expected]:
            inside = f"{place}.{key}" if place else key
            if key in found and key in expected:
                yield from differences(found[key], expected[key], inside)
            else:
                yield inside, "missing" if key in expected else "unknown key"
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        for index, (one, other) in enumerate(zip(found, expected, strict=True)):
            yield from differences(one, other, f"{place}[{index}]")
    elif isinstance(expected, float) and isinstance(found, float) and math.isclose(found, expected, rel_tol=1e-9):
        return
    elif type(found) is not type(expected) or found != expected:
        yield place, f"is {found}, and the layers give {expected}"
