"""A compiled network as files: `schedule.json`, its listing, and the masks and blocks of all parts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs

from sparsemap.errors import SpecError
from sparsemap.files import shown, write_texts

from .durations import tile_rows
from .instructions import GROUP, Instruction, instructions_of
from .layers import BLOCK, Layer
from .machine import Machine
from .networks import read_json, read_masks
from .schedule import Planned, Schedule, Slice
from .splits import Cut, Splits

KIND = "aie2-schedule"
SCHEDULE, LISTING, MASKS = "schedule.json", "listing.txt", "masks.json"


def write_schedule(folder: Path, name: str, hardware: str, schedule: Schedule) -> list[Path]:
    """Writes a schedule, its listing, and the `masks.json` that `sparsemap prune` writes, and reads to keep parts even."""
    instructions = instructions_of(schedule)
    kept = {one.cut.layer.name: _kept(one) for one in schedule.layers if one.cut.convolves}
    table = {
        "kind": KIND,
        "network": name,
        "hardware": hardware,
        "quirks": sorted(schedule.machine.quirks),
        "seconds": schedule.seconds,
        "seconds_in_a_pipeline": instructions[-1].end,
        "machine": attrs.asdict(schedule.machine, filter=lambda field, _: field.name != "quirks"),
        "shapes": schedule.shapes,
        "concats": schedule.concats,
        "slices": {name: attrs.asdict(part) for name, part in schedule.slices.items()},
        "layers": [layer_table(planned) for planned in schedule.layers],
        "instructions": [attrs.asdict(one, filter=lambda field, value: value != field.default) for one in instructions],
    }
    texts = {
        folder / LISTING: listing(schedule, instructions),
        folder / MASKS: json.dumps({"layers": kept}) + "\n",
        folder / SCHEDULE: _json(table),
    }
    write_texts(texts)
    return list(texts)


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
    cut, splits, place = planned.cut, planned.splits, planned.placement
    layer, rates = cut.layer, cut.machine.rates
    rows, tiles = tile_rows(cut, splits)
    durations = {step: float(value) for step, value in planned.steps.of.items()}
    at_core = {"H": -(-rows // min(splits.rows, rows)), "COUT": -(-cut.row_channels // splits.co)}
    places = (*place.inputs, place.output, place.weights, *place.live)
    return {
        **attrs.asdict(layer, filter=lambda field, _: field.name != "mask"),
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


def _kept(one: Planned) -> dict[str, Any]:
    """Of a convolution its mask (if it has one), its split, and the kept blocks of every row of cores, chunk and part."""
    layer, profile = one.cut.layer, one.profile
    split = {"rows": one.cut.machine.rows, "out_blocks": one.splits.co // BLOCK, "in_blocks": one.splits.ci // BLOCK}
    return {
        **({} if layer.mask is None else {"mask": layer.mask.astype(int).tolist()}),
        "blocks": list(layer.blocks),
        "split": split,
        "kept": profile.counts.tolist(),
        "padding": profile.padding / max(1, int(profile.counts.sum())),
    }


def listing(schedule: Schedule, instructions: Sequence[Instruction]) -> str:
    """The instructions as text, one a line; times in microseconds."""
    lines = [f"; {len(schedule.layers)} layers, {schedule.seconds * 1e3:.4f} ms"]
    for layer, group in groupby(instructions, key=lambda one: one.layer):
        lines += [f"; {layer}", *map(_line, group)]
    return "\n".join(lines) + "\n"


def _line(one: Instruction) -> str:
    fields = {
        "lock": one.lock if one.lock >= 0 else "",
        "at": ",".join(f"0x{at:05X}" for at in one.address[:2]) + (",..." if len(one.address) > 2 else ""),
        "core": f"0x{one.core:04X}" if one.core >= 0 else "",
        "iter": one.iterations if one.type in GROUP else "",
        "parts": one.parts if one.parts > 1 else "",
        "chunk": one.chunk if one.type in ("LOADW", "LOADWM", "COMP") else "",
        "of": one.tensor,
        "rows": f"{one.row}+{one.rows}" if one.rows else "",
        "bytes": sum(one.bytes) or "",
    }
    said = " ".join(f"{name} {value}" for name, value in fields.items() if value != "")
    return f"{one.start * 1e6:12.3f} {one.end * 1e6:12.3f}  {one.type:7} {said}"


@attrs.frozen(eq=False)
class Compiled:
    """A schedule that was read: what `sparsemap simulate` needs."""

    network: str
    machine: Machine
    seconds: float
    shapes: Mapping[str, tuple[int, int, int]]
    concats: Mapping[str, tuple[str, ...]]
    """Concatenations by name, as the tensors that they join."""
    slices: Mapping[str, Slice]
    layers: Mapping[str, tuple[Cut, Splits, Mapping[str, int]]]
    """By name; the last are the bytes that the time model counts, by kind of step."""
    instructions: tuple[Instruction, ...]


def read_schedule(folder: Path) -> Compiled:
    """What `write_schedule` wrote; SpecError for anything else."""
    path = folder / SCHEDULE if folder.is_dir() else folder
    table = read_json(path)
    if not isinstance(table, dict) or table.get("kind") != KIND:
        raise SpecError.at(shown(path), "kind", f"expected '{KIND}', a file that `sparsemap compile` wrote")
    masks = read_masks(path.parent / MASKS)
    try:
        machine, layers = _of_table(Machine, table["machine"], quirks=frozenset(table["quirks"])), {}
        for entry in table["layers"]:
            layer = _of_table(Layer, entry, mask=masks.get(entry["name"]))
            layers[layer.name] = Cut(layer, machine), _of_table(Splits, entry), entry["volumes"]
        return Compiled(
            network=table["network"],
            machine=machine,
            seconds=table["seconds"],
            shapes={name: tuple(shape) for name, shape in table["shapes"].items()},
            concats={name: tuple(parts) for name, parts in table["concats"].items()},
            slices={name: _of_table(Slice, part) for name, part in table["slices"].items()},
            layers=layers,
            instructions=tuple(_of_table(Instruction, entry) for entry in table["instructions"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SpecError.at(shown(path), "", f"is not a whole schedule: {type(error).__name__} {error}") from None


def _of_table(cls: Any, table: Mapping[str, Any], **more: Any) -> Any:
    """An object with the fields that a table has, lists as tuples, and with `more`."""
    given = {field.name: table[field.name] for field in attrs.fields(cls) if field.name in table}
    return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}, **more)
