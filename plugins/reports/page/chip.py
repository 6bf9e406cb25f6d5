"""The page of `sparsemap design`: one chip for networks, to scale."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparsemap.errors import SparseMapError, listed
from sparsemap.file_formats import CHIP as CHIP_FORMAT
from sparsemap.file_formats import NETWORK as NETWORK_FORMAT
from sparsemap.files import four_digits, percent, times
from sparsemap.pieces.registry import Registry
from sparsemap.plots import COLOURS, Figure, subplots, tipped
from sparsemap.problem import design_file
from sparsemap.problem.levels import levels_of
from sparsemap.searching.written import read_result
from sparsemap.spec.units import format_count, format_energy

from ..charts import GREY, Chart, Mark, colour, dots, labels, roofs, scale, with_charges, with_units
from ..compare.sides import NETWORK, checked, sides_of
from ..design_charts import traffic
from ..outcome import DesignOutcome
from ..tables import PageTable, number, scientific, share
from ..wording import area_text, bandwidth_text, power_text, time_text
from .cards import counts_of
from .content import Headline, Page, Section, made

CHIP = "design.json"
"""Result file in a folder of `sparsemap design`."""
NETWORKS = "One run of each network, beside the given hardware with any units for free; totals count all runs. "
NETWORKS += (
    "Best of the chips tried for a network alone, none searched for it: by {}, with the designs a layer that it had."
)
OF_CHIP = (
    "edp_js", "energy_pj", "seconds", "cycles", "area_mm2", "units_mm2", "power_w", "chips", "stopped", "base", "fuse",
    "folders", "units", "parts_mm2", "tried", "layers", "hardware", "budget", "layer_budget", "seed", "searcher",
    "objective",
)  # fmt: skip
"""Required keys of `design.json`."""
COSTS = {"energy_pj": "energy", "cycles": "cycles"}
"""Costs compared between execution and claim."""
Box = tuple[float, float, float, float]
"""Left, bottom, width and height."""


def chip(folder: Path, registry: Registry) -> Page:
    """The page of a chip: floor plan, roofline with all layers, and the chips tried."""
    found = checked(folder / CHIP, read_result(folder / CHIP, CHIP_FORMAT), OF_CHIP)
    ratio = times(found["edp_js"] / _beside(found)[0]["edp_js"])
    told = {
        "edp_js": ("EDP, J · s", scientific, f"{ratio} of {found['base']}"),
        "energy_pj": ("energy", format_energy, ""),
        "seconds": ("time", time_text, f"{format_count(found['cycles'])} cycles"),
        "area_mm2": ("area", area_text, f"{area_text(found['units_mm2'])} sparse units"),
        "power_w": ("power", power_text, f"with {found['hardware']['levels'][0]['name']}"),
        "chips": ("chips", "{:,.0f}".format, f"{found['stopped']:,} stopped"),
    }
    tiles = [Headline(label, number(found[key], how, key), note) for key, (label, how, note) in told.items()]
    roofline, unmoved = _roofline(folder, found, registry)
    tried = f"Chips whose layers were all searched; the chip and {found['base']} longer than the others. "
    tried += "Zeros count as multiplications: above the roof they are skipped."
    tried += f" Without a word of {found['hardware']['levels'][0]['name']}: {listed(unmoved)}." if unmoved else ""
    about = NETWORKS.format(found["objective"])
    plan = "by plans with tensors on chip" if found["fuse"] else "layer by layer"
    sections = [
        Section("Floor plan", [_floor(found), _sizes(found, registry)], "Areas to scale, all instances of a level together."),
        Section("Chips tried, and layers on this one", [_tried(found), *roofline], tried),
        *([Section("Networks", [_networks(found)], about)] if len(found.get("by_network", ())) > 1 else []),
        Section("Layers", [_layers(found)], "All times that a layer runs, beside the given hardware with any units for free."),
    ]  # fmt: skip
    limits = found.get("constraints", ())
    judge = ", by the network that loses most" if found.get("losses") else ""
    judged = f"Chips were judged {plan}{judge}{', and had to keep ' if limits else ''}{listed(limits)}."
    title = f"A chip for {listed(found['folders'])}"
    return Page(title, [made(folder, {}, CHIP), judged], tiles, sections, (), _verdict(found))


def _verdict(found: Mapping[str, Any]) -> list[str]:
    parts = sorted(found["parts_mm2"].items(), key=lambda part: -part[1])
    most = " and ".join(f"{name} {percent(area / found['area_mm2'])}" for name, area in parts[:2])
    other, about = _beside(found)
    ratio = found["edp_js"] / other["edp_js"]
    beside = f"{percent(abs(1 - ratio), 1)} {'less' if ratio <= 1 else 'more'} EDP than {found['base']} {about}"
    names, cost = found["folders"], f"{time_text(found['seconds'])} and {format_energy(found['energy_pj'])}"
    counts = [
        f"{count:,} {name}" + f" of {size}" * bool(size) for name, count, size in counts_of(found["hardware"])[1:]
    ]
    takes = f"{listed(names)} take{'s' * (len(names) == 1)} {cost} on {area_text(found['area_mm2'])}: {listed(counts)}."
    lines = [f"{takes} That is {beside}. Of the area {most}."]
    if losses := found.get("losses"):
        name = max(losses, key=losses.__getitem__)
        free = "where each layer has any formats and units for free"
        lines.append(
            f"The largest ratio is that of {name}: {times(losses[name])} its {found['objective']} on {found['base']}, {free}."
        )
    if needs := found.get("executed"):
        shares = " and ".join(f"{needs[key]:.3f} of the {name}" for key, name in COSTS.items() if key in needs)
        need = f" and need {shares} claimed" if shares else ""
        lines.append(f"{needs['designs']:,} of {needs['of']:,} designs were executed on sampled tensors{need}.")
    return lines


def _beside(found: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The comparison for the chip: the given hardware with units shared by all layers, or free per layer."""
    if other := found.get("platform"):
        beside = "" if other["allowed"] else ", which breaks a constraint"
        return other, f"with the same units for all layers, on {area_text(other['area_mm2'])}{beside}"
    return found["reference"], "where each layer has any formats and units for free"


# ------------------------------------------------------------------------------------------------------------ floor plan


def boxes_of(areas: Sequence[float], box: Box) -> list[Box]:
    """Rectangles of the given areas, filling the box; the longer side is cut where it best halves the areas."""
    if len(areas) < 2:
        return [box] * len(areas)
    left, bottom, width, height = box
    whole = math.fsum(areas)
    cut = min(range(1, len(areas)), key=lambda i: abs(math.fsum(areas[:i]) - whole / 2))
    part = math.fsum(areas[:cut]) / whole if whole else 0.5
    if width >= height:
        one, two = (left, bottom, part * width, height), (left + part * width, bottom, (1 - part) * width, height)
    else:
        below = (1 - part) * height
        one, two = (left, bottom + below, width, part * height), (left, bottom, width, below)
    return [*boxes_of(areas[:cut], one), *boxes_of(areas[cut:], two)]


def _floor(found: Mapping[str, Any]) -> Chart:
    parts = sorted(found["parts_mm2"].items(), key=lambda part: -part[1])
    whole = math.fsum(area for _, area in parts)
    tips = [f"{name}\n{area_text(area)}, {percent(area / whole, 1)}" for name, area in parts]
    marks = [Mark(area, name, tip=tip) for (name, area), tip in zip(parts, tips, strict=True)]
    *levels, units = (name for name, *_ in counts_of(found["hardware"]))
    owners = {name: name.removesuffix(" interface") for name in found["parts_mm2"]}
    names = with_charges(with_units(levels, [units]), {*owners.values()} - {*levels, units})

    def draw(width: float) -> Figure:
        from matplotlib.patches import Rectangle

        figure, axes = subplots(1, 1, (width, 0.75 * width))
        axes.axis("off")
        axes.set(xlim=(0, 1), ylim=(0, 0.7), aspect="equal")
        boxes = boxes_of([mark.value for mark in marks], (0, 0, 1, 0.7))
        for mark, (left, bottom, wide, high) in zip(marks, boxes, strict=True):
            look: Any = {"facecolor": colour(names, owners[mark.part]), "edgecolor": "white", "alpha": 0.75}
            patch = Rectangle((left, bottom), wide, high, **look)
            axes.add_patch(patch)
            tipped(patch, [mark.tip])
            if min(wide / 0.12, high / 0.07) > 1:
                text = f"{mark.part}\n{area_text(mark.value)}\n{percent(mark.value / whole)}"
                axes.text(left + wide / 2, bottom + high / 2, text, ha="center", va="center", fontsize=7.5)
        return figure

    return Chart(marks, draw, f"{area_text(whole)}, to scale")


def _sizes(found: Mapping[str, Any], registry: Registry) -> PageTable:
    """Sizes of the chip and its units, level by level."""
    parts, units = found["parts_mm2"], found["units"]
    levels, rows = levels_of(registry.build("hardware", found["hardware"]), registry), []
    widths = {level.name: bandwidth_text(level) for level in levels}
    specs = {level["name"]: level for level in found["hardware"]["levels"]}
    for name, count, size in counts_of(found["hardware"]):
        skips, spec = ", ".join(units["mechanisms"].get(name, ())) or "-", specs.get(name, {})
        built = ", ".join(filter(None, [spec.get("cells"), "two copies" if spec.get("double_buffered") else ""]))
        sizes = [f"{count:,}", str(size or "-"), built or "-", widths.get(name) or "-"]
        rows.append([name, *sizes, number(parts.get(name, parts.get(f"{name} interface")), area_text), skips])
    packed = "; ".join(f"{of} {', '.join(names)}" for of, names in units["formats"].items() if names) or "-"
    rows.append(["sparse units", *["-"] * 4, number(parts.get("sparse units"), area_text), f"formats {packed}"])
    return PageTable(["part", "instances", "capacity", "cells", "words a cycle", "area", "skips and formats"], rows)


# --------------------------------------------------------------------------------------------------------- chips, layers


def _tried(found: Mapping[str, Any]) -> Chart:
    """EDP over area of the chips tried, with the Pareto front as steps, and the chosen chip.

    For the judge "worst", the largest ratio of a network in place of EDP."""
    key, name = ("worst", "worst network over given hardware") if found.get("losses") else ("edp_js", "EDP, J s")
    rows = sorted(found["tried"], key=lambda row: (row["area_mm2"], row[key]))
    front: list[Any] = []
    for row in sorted([*rows, found], key=lambda row: (row["area_mm2"], row[key])):
        if not front or row[key] < front[-1][key]:
            front.append(row)

    def tip(row: Mapping[str, Any]) -> str:
        sizes = ", ".join(f"{key.removeprefix('levels.')} {value}" for key, value in row["set"].items())
        return f"{area_text(row['area_mm2'])}, {row['edp_js']:.3e} J s, {power_text(row['power_w'])}\n{sizes}"

    marks = [Mark(row["area_mm2"], "tried", at=row[key], tip=tip(row)) for row in rows]
    other, given = _beside(found)[0], list[Mark]()
    if area := other.get("area_mm2"):
        given.append(Mark(area, "given", at=other[key], tip=f"{found['base']}\n{area_text(area)}"))
    chosen = Mark(found["area_mm2"], "chosen", at=found[key], tip=f"the chip\n{area_text(found['area_mm2'])}")

    def draw(width: float) -> Figure:
        figure, axes = subplots(1, 1, (width, 0.6 * width + 0.4))
        dots(axes, marks, s=16, color=GREY, label="tried")
        steps = [row["area_mm2"] for row in front], [row[key] for row in front]
        axes.step(*steps, where="post", color=COLOURS[0], label="front")
        dots(axes, [chosen], s=70, marker="*", color=COLOURS[1], label="the chip", zorder=4)
        label = f"{found['base']}, shared units" if given else ""
        dots(axes, given, s=40, marker="X", color=COLOURS[2], zorder=3, label=label)
        base = found["reference"].get(key, 1.0)
        axes.axhline(base, color=COLOURS[2], linestyle="--", label=f"{found['base']}, any units")
        scale(axes.yaxis, [*(m.at for m in [*marks, *given]), chosen.at, base], 2.0)  # chips that lost are far off
        scale(axes.xaxis, [*(m.value for m in [*marks, *given]), chosen.value])
        axes.set(xlabel="area, mm2", ylabel=name)
        labels(figure, axes)
        return figure

    return Chart([*marks, *given, chosen], draw, f"{name.split(',')[0]} over area")


def _designs(folder: Path, found: Mapping[str, Any]) -> Iterator[tuple[str, int, int, Path]]:
    """Layer name, number of runs, multiplications, and file of every design of the chip."""
    for name in found["folders"]:
        rows = read_result(folder / name / NETWORK, NETWORK_FORMAT).get("fused", {}).get("layers", [])
        files = Counter(row["design"] for row in rows if row["design"])
        first = {row["design"]: row for row in reversed(rows)}
        for file, count in files.items():
            yield first[file]["layer"], count, first[file]["macs"], folder / name / file
        if not rows:
            for part in sides_of(folder / name)[0].parts:
                yield part.name, part.repeat, part.about["macs"], part.folder / "design.toml"


def _roofline(folder: Path, found: Mapping[str, Any], registry: Registry) -> tuple[list[Chart], list[str]]:
    """Multiplications per cycle against multiplications per word of the outermost level, and the layers without such
    words.

    A point per design, if the level has a bandwidth."""
    marks, weights, unmoved, width, peak = [], list[float](), list[str](), math.inf, 0.0
    for name, count, macs, file in _designs(folder, found):
        try:
            outcome = DesignOutcome.of(design_file.load(str(file), registry))
        except SparseMapError:  # designs of another version
            continue
        outer, peak = outcome.design.problem.levels[0], float(outcome.design.problem.compute_instances)
        words, width = traffic(outcome, outer)
        if words and math.isfinite(width) and outcome.valid:
            told = f"{macs / words:.3g} multiplications a word of {outer.name}, {macs / outcome.cycles:,.4g} a cycle"
            tip = f"{name}, {count} times\n{told}\nlimited by {outcome.column}"
            marks.append(Mark(macs / words, at=macs / outcome.cycles, tip=tip))
            weights.append(count * outcome.cycles)
        elif not words:
            unmoved.append(name)
    sizes = [14 + 200 * weight / math.fsum(weights) for weight in weights]
    names = f"multiplications per word of {found['hardware']['levels'][0]['name']}", "multiplications per cycle"
    return [roofs(marks, peak, {"": width}, *names, sizes)] if marks else [], list(dict.fromkeys(unmoved))


def _networks(found: Mapping[str, Any]) -> PageTable:
    head = ["network", "runs", "energy", "time", "EDP in J s", "EDP, chip over given hardware"]
    told = {"energy_pj": format_energy, "seconds": time_text, "edp_js": "{:.4g}".format, "edp_over_free": times}
    rows, beside = [], all("own" in row for row in found["by_network"])  # earlier files have no chips beside
    head += ["chip over best tried", "best tried for it", "designs a layer"] if beside else []
    for i, row in enumerate(found["by_network"]):
        numbers = [number(row[key], how, f"by_network.{i}.{key}") for key, how in told.items()]
        if beside:
            own, of = row["own"], f"by_network.{i}.own"
            numbers.append(number(own["over_own"], four_digits, f"{of}.over_own"))
            numbers += [own["name"], number(own["designs"], "{:,.0f}".format, f"{of}.designs")]
        rows.append([row["network"], f"{row['runs']:g}", *numbers])
    return PageTable(head, rows)


def _layers(found: Mapping[str, Any]) -> PageTable:
    head = ["layer", "times", "energy", "cycles", "of energy", "of cycles", "EDP, chip over given hardware"]
    told = {"energy_pj": format_energy, "cycles": format_count, "share_of_energy": share, "share_of_cycles": share}
    rows = []
    for i, row in sorted(enumerate(found["layers"]), key=lambda pair: -pair[1]["cycles"]):
        numbers = [number(row[key], how, f"layers.{i}.{key}") for key, how in told.items()]
        ratio = number(row["edp_over_free"], times, f"layers.{i}.edp_over_free")
        rows.append([row["layer"], f"{row['times']:g}", *numbers, ratio])
    return PageTable(head, rows)
