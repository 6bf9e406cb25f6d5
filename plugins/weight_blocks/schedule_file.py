"""A compiled network as files: `schedule.json`, its listing, and the masks that it was compiled for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from sparsemap.errors import SpecError
from sparsemap.files import read_bytes, shown, write_text
from sparsemap.pieces.contracts.base import Array

from .durations import STEPS, tile_rows
from .instructions import Instruction, instructions_of
from .layers import BLOCK, Layer
from .machine import Machine
from .networks import read_masks
from .schedule import Planned, Schedule
from .splits import Cut, Splits
from .tiling import Slice

KIND = "aie2-schedule"
SCHEDULE, LISTING, MASKS = "schedule.json", "listing.txt", "masks.json"
LARGEST = 1 << 30


def write_schedule(folder: Path, name: str, hardware: str, schedule: Schedule) -> list[Path]:
    """Writes a schedule; each file whole or not at all."""
    instructions = instructions_of(schedule)
    table = {
        "kind": KIND,
        "network": name,
        "hardware": hardware,
        "quirks": sorted(schedule.quirks),
        "seconds": schedule.seconds,
        "seconds_in_a_pipeline": instructions[-1].end,
        "machine": attrs.asdict(schedule.machine),
        "shapes": {name: list(shape) for name, shape in schedule.shapes.items()},
        "concats": {name: list(parts) for name, parts in schedule.concats.items()},
        "slices": {name: attrs.asdict(part) for name, part in schedule.slices.items()},
        "layers": [layer_table(planned) for planned in schedule.layers],
        "instructions": [_short(one) for one in instructions],
    }
    paths = [folder / SCHEDULE, folder / LISTING, folder / MASKS]
    write_text(paths[1], listing(schedule, instructions))
    write_text(paths[2], json.dumps({"layers": dict(_profile(schedule))}) + "\n")
    write_text(paths[0], _json(table))
    return paths


def _json(table: Mapping[str, Any]) -> str:
    """One line per layer and instruction."""
    parts = []
    for key, value in table.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines = ",\n  ".join(json.dumps(entry) for entry in value)
            parts.append(f' "{key}": [\n  {lines}\n ]')
        else:
            parts.append(f' "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def layer_table(planned: Planned) -> dict[str, Any]:
    """A layer with its sub-volume, places and times; seconds, and bytes per memory tile, row or column of cores."""
    cut, splits, place, steps = planned.cut, planned.splits, planned.placement, planned.steps
    layer, machine = cut.layer, cut.machine
    rows, tiles = (int(value) for value in tile_rows(cut, splits))
    chunks = -(-cut.row_channels // splits.co)
    parts = -(-cut.channels // splits.ci) if layer.op == "conv" else 1
    seconds = (
        steps.load,
        steps.load_weights,
        steps.load_core,
        steps.load_core_weights,
        steps.write,
        steps.write_core,
        steps.compute,
    )
    rates = (
        machine.load,
        machine.load_weights,
        machine.load_core,
        machine.load_core_weights,
        machine.write,
        machine.write_core,
        machine.clock_hz,
    )
    return {
        "name": layer.name,
        "op": layer.op,
        "inputs": list(layer.inputs),
        "input": [layer.height, layer.width, layer.channels],
        "output": [layer.out_height, layer.out_width, layer.out_channels],
        "kernel": list(layer.kernel),
        "stride": layer.stride,
        "padding": list(layer.padding),
        "density": layer.kept_share,
        "co": int(splits.co),
        "ci": int(splits.ci),
        "rows": int(splits.rows),
        "tiles": tiles,
        "passes": int(splits.passes),
        "splits": {
            "W": machine.columns if cut.out_columns < layer.out_width else 1,
            "COUT": machine.rows,
            "memory tile": {"H": tiles, "COUT": int(splits.passes), "CIN": 1},
            "core": {"H": -(-rows // min(splits.rows, rows)), "COUT": chunks, "CIN": parts},
        },
        "spilled": place.spilled,
        "places": {
            one.tensor: [one.start, one.end] for one in (*place.inputs, place.output, place.weights, *place.live)
        },
        "evicted": [one.tensor for one in place.evicted],
        "padding_blocks": cut.profile(splits.co, splits.ci).padding if layer.op == "conv" else 0,
        "seconds": planned.seconds,
        "durations": {step: float(value) for step, value in zip(STEPS, seconds, strict=True)},
        "volumes": {step: round(float(value) * rate) for step, value, rate in zip(STEPS, seconds, rates, strict=True)},
    }


def _profile(schedule: Schedule) -> Iterator[tuple[str, dict[str, Any]]]:
    """By convolution its mask (if it has one), its split, and the kept blocks of every row of cores, chunk and part: the
    `masks.json` that `sparsemap prune` writes, and reads to keep parts even."""
    for one in schedule.layers:
        cut, layer = one.cut, one.cut.layer
        if layer.op == "conv":
            profile = cut.profile(one.splits.co, one.splits.ci)
            yield (
                layer.name,
                {
                    **({} if layer.mask is None else {"mask": layer.mask.astype(int).tolist()}),
                    "blocks": [layer.padded_out_channels // BLOCK, layer.padded_channels // BLOCK],
                    "split": {
                        "rows": cut.machine.rows,
                        "out_blocks": int(one.splits.co) // BLOCK,
                        "in_blocks": int(one.splits.ci) // BLOCK,
                    },
                    "kept": profile.counts.tolist(),
                    "padding": profile.padding / max(1, int(profile.counts.sum())),
                },
            )


def _short(one: Instruction) -> dict[str, Any]:
    """An instruction without what is as by default."""
    found = {}
    for field in attrs.fields(Instruction):
        value = getattr(one, field.name)
        if field.default is attrs.NOTHING or value != field.default:
            found[field.name] = list(value) if isinstance(value, tuple) else value
    return found


def listing(schedule: Schedule, instructions: Sequence[Instruction]) -> str:
    """The instructions as text, one a line; times in microseconds."""
    lines = [f"; {len(schedule.layers)} layers, {schedule.seconds * 1e3:.4f} ms"]
    layer = ""
    for one in instructions:
        if one.layer != layer:
            layer = one.layer
            lines.append(f"; {layer}")
        lines.append(_line(one))
    return "\n".join(lines) + "\n"


def _line(one: Instruction) -> str:
    where = ",".join(f"0x{at:05X}" for at in one.address[:2]) + (",..." if len(one.address) > 2 else "")
    fields = [f"{one.start * 1e6:12.3f} {one.end * 1e6:12.3f}  {one.type:7}"]
    fields += [f"lock {one.lock}"] if one.lock >= 0 else []
    fields += [where] if where else []
    fields += [f"core 0x{one.core:04X}"] if one.core >= 0 else []
    fields += [f"iter {one.iterations}"] if one.type in ("LOADFM", "COMP", "WRITEFM") else []
    fields += [f"parts {one.parts}"] if one.parts > 1 else []
    fields += [f"chunk {one.chunk}"] if one.type in ("LOADW", "LOADWM", "COMP") else []
    fields += [one.tensor] if one.tensor else []
    fields += [f"rows {one.row}+{one.rows}"] if one.rows else []
    fields += [f"{sum(one.bytes)} B"] if one.bytes else []
    return " ".join(fields)


# ------------------------------------------------------------------------------------------------------------- read back


@attrs.frozen(eq=False)
class Compiled:
    """A schedule that was read: what `sparsemap simulate` needs."""

    network: str
    quirks: frozenset[str]
    machine: Machine
    seconds: float
    shapes: Mapping[str, tuple[int, int, int]]
    concats: Mapping[str, tuple[str, ...]]
    """Concatenations by name, as the tensors that they join."""
    slices: Mapping[str, Slice]
    layers: Mapping[str, tuple[Layer, Mapping[str, Any]]]
    """By name, with its table."""
    instructions: tuple[Instruction, ...]

    def cut(self, name: str) -> tuple[Cut, Splits]:
        layer, table = self.layers[name]
        splits = Splits(table["co"], table["ci"], table["rows"], table["tiles"], table["passes"])
        return Cut(layer, self.machine, self.quirks), splits


def read_schedule(folder: Path) -> Compiled:
    """What `write_schedule` wrote; SpecError for anything else."""
    path = folder / SCHEDULE if folder.is_dir() else folder
    try:
        table = json.loads(read_bytes(path, LARGEST))
    except (ValueError, RecursionError) as error:
        raise SpecError.at(shown(path), "", f"is no JSON: {error}") from None
    if not isinstance(table, dict) or table.get("kind") != KIND:
        raise SpecError.at(shown(path), "kind", f"expected '{KIND}', a file that `sparsemap compile` wrote")
    masks = read_masks(path.parent / MASKS)
    try:
        layers = {entry["name"]: (_layer(entry, masks.get(entry["name"])), entry) for entry in table["layers"]}
        instructions = tuple(
            Instruction(**{key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()})
            for entry in table["instructions"]
        )
        shapes = {name: tuple(shape) for name, shape in table["shapes"].items()}
        machine, quirks = Machine(**table["machine"]), frozenset(table["quirks"])
        slices = {name: Slice(**part) for name, part in table["slices"].items()}
        concats = {name: tuple(parts) for name, parts in table["concats"].items()}
        return Compiled(
            table["network"], quirks, machine, table["seconds"], shapes, concats, slices, layers, instructions
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SpecError.at(shown(path), "", f"is not a whole schedule: {type(error).__name__} {error}") from None


def _layer(entry: Mapping[str, Any], mask: Array | None) -> Layer:
    return Layer(
        entry["name"],
        entry["op"],
        tuple(entry["inputs"]),
        *entry["input"],
        *entry["output"],
        tuple(entry["kernel"]),
        entry["stride"],
        tuple(entry["padding"]),
        1.0 if mask is not None else entry["density"],
        mask,
    )
