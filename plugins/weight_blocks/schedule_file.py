"""A compiled network as files: `schedule.json`, its listing, and the masks and blocks of all parts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs

from sparsemap.csv_files import csv_text
from sparsemap.errors import Mistake, SpecError, unknown
from sparsemap.files import read_json, shown
from sparsemap.pieces.contracts.base import Array
from sparsemap.spec.structuring import Reader, collecting
from sparsemap.writing import write_texts

from .durations import tile_rows
from .instructions import GROUP, Instruction, instructions_of
from .layers import MeshLayer, round_up
from .machine import MOST_BYTES, CoreMesh
from .networks import LARGEST, read_masks
from .quirks import quirks_of
from .schedule import LayerPlan, Schedule, TensorSlice
from .splits import Cut, Splits

KIND = "aie2-schedule"
SCHEDULE, LISTING, MASKS, LAYERS = "schedule.json", "listing.txt", "masks.json", "layers.csv"
SIZES = ("op", "height", "width", "channels", "out_channels", "stride", "repeats", "density")
SPLIT = ("co", "ci", "rows", "tiles", "passes")
"""Fields of a sub-volume in a layer's line of `layers.csv`; the line ends with the seconds in total and by kind of
step.
"""


def write_schedule(folder: Path, name: str, hardware: str, schedule: Schedule) -> list[Path]:
    """Write a schedule, its layers as CSV, its listing, and a `masks.json`.

    `sparsemap extra prune` writes the same `masks.json`, and reads it to keep parts even.
    """
    instructions = instructions_of(schedule)
    kept = {one.cut.layer.name: _kept(one) for one in schedule.layers if one.cut.convolves}
    layers = [layer_table(planned) for planned in schedule.layers]
    table = {
        "kind": KIND,
        "network": name,
        "hardware": hardware,
        "quirks": sorted(schedule.machine.quirks),
        "seconds": schedule.seconds,
        "machine": attrs.asdict(schedule.machine, filter=lambda field, _: field.name != "quirks"),
        "shapes": schedule.shapes,
        "slices": {name: attrs.asdict(part) for name, part in schedule.slices.items()},
        "outputs": schedule.outputs,
        "layers": layers,
        "instructions": [attrs.asdict(one, filter=lambda field, value: value != field.default) for one in instructions],
    }
    keys = (*SIZES, *SPLIT, "seconds")
    lines = [{"layer": one["name"]} | {key: one[key] for key in keys} | one["durations"] for one in layers]
    texts = {
        folder / LAYERS: csv_text(lines),
        folder / LISTING: listing(schedule, instructions),
        folder / MASKS: json.dumps({"layers": kept}) + "\n",
        folder / SCHEDULE: _json(table),
    }
    write_texts(texts)
    return list(texts)


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
    """A layer with its sub-volume, places and times; seconds, and bytes per memory tile, row or column of cores."""
    cut, splits, place = planned.cut, planned.splits, planned.placement
    layer, rates = cut.layer, cut.machine.rates
    rows, tiles = tile_rows(cut, splits)
    durations = {step: float(value) for step, value in planned.steps.of.items()}
    at_core = {"H": -(-rows // min(splits.rows, rows)), "COUT": -(-cut.row_channels // splits.co)}
    places = (*place.inputs, place.output, place.weights, *place.live)
    return {
        **attrs.asdict(layer, filter=lambda field, _: field.name != "mask"),
        "inputs": [source.tensor for source in place.inputs],
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
        "durations": durations,
        "volumes": {step: round(seconds * rates[step]) for step, seconds in durations.items()},
    }


def _kept(one: LayerPlan) -> dict[str, Any]:
    """Mask of a convolution (if any), its split, and the kept blocks of every row of cores, chunk and part."""
    layer, profile = one.cut.layer, one.profile
    outs, ins = layer.block
    split = {"rows": one.cut.machine.rows, "out_blocks": one.splits.co // outs, "in_blocks": one.splits.ci // ins}
    found: dict[str, Any] = {} if layer.mask is None else {"mask": layer.mask.astype(int).tolist()}
    found |= {"blocks": list(layer.blocks), "split": split, "kept": profile.counts.tolist()}
    return found | {"padding": profile.padding / max(1, int(profile.counts.sum()))}


def listing(schedule: Schedule, instructions: Sequence[Instruction]) -> str:
    """The instructions as text, one per line; times in microseconds."""
    lines = [f"; {len(schedule.layers)} layers, {schedule.seconds * 1e3:.4f} ms"]
    for layer, group in groupby(instructions, key=lambda one: one.layer):
        lines += [f"; {layer}", *map(_line, group)]
    return "\n".join(lines) + "\n"


def _line(one: Instruction) -> str:
    fields = {
        "lock": ",".join(map(str, one.lock)),
        "at": ",".join(f"0x{at:05X}" for at in one.address[:2]) + (",..." if len(one.address) > 2 else ""),
        "core": ",".join(f"0x{at:04X}" for at in one.core),
        "iter": one.iterations if one.type in GROUP else "",
        "parts": one.parts if one.parts > 1 else "",
        "of": ",".join(one.tensor),
        "rows": f"{one.rows[0]}+{one.rows[1]}" if one.rows else "",
        "channels": f"{one.channels[0]}+{one.channels[1]}" if one.channels else "",
        "bytes": sum(one.bytes) or "",
    }
    said = " ".join(f"{name} {value}" for name, value in fields.items() if value != "")
    return f"{one.start * 1e6:12.3f} {one.end * 1e6:12.3f}  {one.type:7} {said}"


@attrs.frozen(eq=False)
class CompiledLayer:
    """A layer read from a schedule, with the counts of the time model."""

    cut: Cut
    splits: Splits
    seconds: float
    volumes: Mapping[str, int]
    """Bytes (COMP: cycles) by kind of step."""


@attrs.frozen(eq=False)
class Compiled:
    """A schedule read from a file, the input of `sparsemap extra simulate`."""

    network: str
    machine: CoreMesh
    seconds: float
    shapes: Mapping[str, tuple[int, int, int]]
    slices: Mapping[str, TensorSlice]
    outputs: Mapping[str, tuple[str, ...]]
    layers: Mapping[str, CompiledLayer]
    instructions: tuple[Instruction, ...]


def read_schedule(folder: Path) -> Compiled:
    """Read the output of `write_schedule`; SpecError for any other file, with the wrong record and key."""
    path = folder / SCHEDULE if folder.is_dir() else folder
    table = read_json(path, LARGEST)
    if not isinstance(table, dict) or table.get("kind") != KIND:
        raise SpecError.at(shown(path), "kind", f"expected '{KIND}', a file that `sparsemap extra compile` wrote")
    masks = read_masks(path.parent / MASKS)
    mistakes: list[Mistake] = []

    def read(key: str, cls: Any, default: Any = None) -> Any:
        with collecting(mistakes, key):
            if key not in table:
                raise ValueError("missing")
            return Reader(shown(path)).read(cls, table[key])
        return default

    network, seconds = read("network", str), read("seconds", float)
    shapes = read("shapes", dict[str, tuple[int, int, int]], {})
    slices, instructions = read("slices", dict[str, TensorSlice], {}), read("instructions", list[Instruction], [])
    outputs = read("outputs", dict[str, tuple[str, ...]], {})
    machine = read("machine", CoreMesh)
    with collecting(mistakes, "quirks"):
        named = Reader(shown(path)).read(list[str], table.get("quirks", []))
        machine = machine and attrs.evolve(machine, quirks=quirks_of(named))
    layers = {}
    for index, entry in enumerate(read("layers", list[dict[str, Any]], [])):
        with collecting(mistakes, f"layers[{index}]"):
            found = _layer(entry, machine, masks, shapes) if machine else None
            if found:
                layers[found.cut.layer.name] = found
    with collecting(mistakes, "shapes"):
        _check_shapes(shapes, slices, machine)
    with collecting(mistakes, "outputs"):
        known = shapes.keys() | {part.tensor for part in slices.values()}
        for output, parts in outputs.items():
            for name in parts or ("",):
                if name not in known:
                    raise SpecError.at("", output, unknown("tensor", name, known))
    if mistakes:
        raise SpecError(mistakes).within("", shown(path))
    return Compiled(network, machine, seconds, shapes, slices, outputs, layers, tuple(instructions))


def _check_shapes(
    shapes: Mapping[str, tuple[int, int, int]], slices: Mapping[str, TensorSlice], machine: CoreMesh | None
) -> None:
    total = 0
    for name, (height, width, channels) in shapes.items():
        if min(height, width, channels) < 1:
            raise SpecError.at("", name, f"is {height} x {width} x {channels}, expected sizes of at least 1")
        total += height * width * round_up(channels, machine.grain if machine else 1)
    if total > MOST_BYTES // 4:
        raise ValueError(f"all tensors together have {total:,} bytes, more than {MOST_BYTES // 4:,}")
    for name, part in slices.items():
        if name not in shapes or part.first < 0 or part.rows != shapes[name][0]:
            raise SpecError.at("", name, "a slice whose rows are not those of its tensor")


def _check_sizes(layer: MeshLayer, given: Sequence[tuple[int, int, int]], made: tuple[int, int, int]) -> None:
    """Check the sizes of a layer against its tensors, and its windows."""
    channels = sum(shape[2] for shape in given) // (max(1, len(given)) if layer.op == "add" else 1)
    if not given or {shape[:2] for shape in given} != {(layer.height, layer.width)} or channels != layer.channels:
        raise SpecError.at("", "inputs", "do not have the rows, columns and channels of the layer")
    if made != (layer.out_height, layer.out_width, layer.out_channels):
        raise SpecError.at("", "name", f"its tensor is {' x '.join(map(str, made))}, which the layer does not make")
    if layer.op not in ("conv", "maxpool", "avgpool", "add") or (layer.op != "conv" and layer.channels != made[2]):
        raise SpecError.at("", "op", f"'{layer.op}' does not make {made[2]} channels of {layer.channels}")
    image, out = (layer.height, layer.width), made[:2]
    for size, kernel, pad, count in zip(image, layer.kernel, layer.padding, out, strict=True):
        if not 0 <= pad < kernel or (count - 1) * layer.stride - pad >= size:
            text = f"a window of {kernel} does not go {count} times over {size} with {pad} before"
            raise SpecError.at("", "kernel", text)
    if not 0 <= layer.density <= 1:
        raise SpecError.at("", "density", f"is {layer.density}, expected 0 to 1")


def _layer(
    entry: Mapping[str, Any], machine: CoreMesh, masks: Mapping[str, Array], shapes: Mapping[str, tuple[int, int, int]]
) -> CompiledLayer:
    of_layer, of_splits = ([x.name for x in attrs.fields(cls) if x.name != "mask"] for cls in (MeshLayer, Splits))
    for key in (*of_layer, *of_splits, "seconds", "volumes"):
        if key not in entry:
            raise SpecError.at("", key, "missing")
    layer = Reader().read(MeshLayer, {key: entry[key] for key in of_layer})
    layer = attrs.evolve(layer, mask=masks.get(layer.name), block=machine.block)
    splits = Splits(**Reader().read(dict[str, int], {key: entry[key] for key in of_splits}))
    names = ("height", "width", "channels", "out_height", "out_width", "out_channels", "stride")
    sizes = {key: getattr(layer, key) for key in names} | {"kernel": min(layer.kernel)}
    for key, value in (sizes | attrs.asdict(splits)).items():
        if value < 1:
            raise SpecError.at("", key, f"is {value}, expected at least 1")
    for key in (layer.name, *layer.inputs):
        if key not in shapes:
            raise SpecError.at("", "name" if key == layer.name else "inputs", unknown("tensor", key, shapes))
    _check_sizes(layer, [shapes[source] for source in layer.inputs], shapes[layer.name])
    cut = Cut(layer, machine)
    if layer.op == "conv" and (layer.padded_channels % splits.ci or splits.co % layer.grain or splits.ci % layer.grain):
        raise SpecError.at("", "ci", f"chunks of {splits.co} x {splits.ci} channels do not divide the layer")
    if layer.mask is not None and layer.mask.shape != layer.blocks:
        raise SpecError.at("", "name", f"masks.json has {layer.mask.shape} blocks of it, expected {layer.blocks}")
    seconds, volumes = Reader().read(float, entry["seconds"]), Reader().read(dict[str, int], entry["volumes"])
    return CompiledLayer(cut, splits, seconds, volumes)
