"""The page of results: a network by its layers, or searches, networks and cells of studies side by side."""

from __future__ import annotations

import math
import shlex
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from sparsemap.errors import SearchError, SparseMapError, listed
from sparsemap.files import percent, times
from sparsemap.pieces.registry import Registry
from sparsemap.problem import design_file
from sparsemap.searching.breakdown import limit_alone
from sparsemap.searching.result import RESULT_FILE
from sparsemap.spec.units import format_count, format_energy
from sparsemap.study.traffic import bytes_text

from ..breakdown import breakdown_table
from ..charts import Chart, Mark, strips, waterfall
from ..compare import shares as apart
from ..compare.shares import PARTS, WORTH_NAMES, in_order, ratio, worth_of
from ..compare.sides import NETWORK, Compared, SidePart, alike, compared, gone, labelled, name_of, named, sides_of
from ..compare.verdict import uncounted, verdict
from ..network_charts import over_time, stack, timeline
from ..tables import Cell, PageLink, PageTable, PrintedNumber, number, numbers, share
from ..variants import Base, freed
from ..wording import CHIP_COSTS, COST_NAMES, change_text, chip_text, time_text
from . import design
from .cards import cards
from .content import Headline, Page, Section, counted, made, totals

BARS, FULL, FEW = 24, 200, 3
"""Most bars in a chart of layers, most results with energy and time charts, and most layers named in a verdict."""
TOLD = {
    "edp": "EDP", "energy_pj": "energy", "cycles": "cycles", "gap": "over the bound",
    "share_of_energy_pj": "of energy", "share_of_cycles": "of cycles",
}  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- a network


def network(folder: Path, registry: Registry) -> Page:
    """Costs of a network, the decisive layers or steps of its plan, and the design of each, collapsed."""
    (side,), (whole,) = sides_of(folder), sides_of(folder, planned=True)
    if not side.parts:
        raise SearchError(f"{folder}: no layer has a design yet; run its command again, which goes on where it stopped")
    found: Mapping[str, Any] = side.numbers
    count = sum(part.repeat for part in side.parts)
    after = "" if found["seconds"] is None else "without fusion or overlap"
    after = "one step after the other" if whole.planned else after
    tiles = totals(whole.numbers, "total energy times total cycles", after, "fused." if whole.planned else "")
    searched = f"{found['searches']} searches of {found['budget']:,} designs"
    tiles.append(counted("layers", count, searched))
    warnings = uncounted([whole])
    warnings += [lost] if (lost := gone(folder)) else []
    warnings += [] if found["complete"] else ["Not every layer has a design, so that there are no totals."]
    pages = dict(_designs(whole, registry, {row["layer"]: _shape(row) for row in found["layers"]}))
    charts = [chart for chart in (_bars(whole, "energy_pj"), _bars(whole, "seconds"), timeline(whole.parts)) if chart]
    about = "Numbers are of one repetition, shares of all; a name leads to its design."
    of_what = "step of the plan" if whole.planned else "layer, all repetitions"
    where = Section("Where energy and time go", charts, f"By {of_what}; one after the other.")
    layers = Section("Layers", [_layers(side, pages)], about)
    sections = [where, *([] if whole.planned else [layers]), *pages.values()]
    if whole.planned:
        sections = [*plan_sections(found["fused"], pages), *sections]
        tiles[0] = plan_headline(found["fused"])
        tiles[1:1] = [steady_headline(steady)] if (steady := found["fused"].get("steady")) else []
        tiles += [speed_headline(found["fused"])] if found["fused"].get("speed") else []
    known: Mapping[str, Any] = next((part.about for part in side.parts if part.about), {})
    title = f"{side.subject} on {side.hardware}"
    return Page(title, [made(folder, known, NETWORK)], tiles, sections, warnings, _said(whole))


def _bars(side: Compared, key: str) -> Chart:
    shares = [_share(side, part, key) for part in side.parts]
    ends = ["" if math.isnan(part) else share(part) for part in shares]
    return stack([(part.name, [part], end) for part, end in zip(side.parts, ends, strict=True)], key)


def _share(side: Compared, part: SidePart, key: str) -> float:
    """Share of a part's repetitions in the whole; NaN unless every part has a design."""
    return getattr(part, key) / side.total(key) if side.numbers["edp"] is not None else math.nan


def _said(side: Compared) -> list[str]:
    """Cost of a network, the layers with most of the time, and the gap to the bound."""
    found = side.numbers
    if found["edp"] is None:
        return []
    if side.planned:
        text = plan_verdict(found["fused"], side.subject, side.hardware)
    else:
        cost = f"{time_text(found['seconds'])} and {format_energy(found['energy_pj'])}"
        text = f"{side.subject} takes {cost} on {side.hardware}."
    most = []
    for part in sorted(side.parts, key=lambda part: -sum(_share(side, part, key) for key in PARTS))[:FEW]:
        limit = limit_alone(part.costs.limit)
        shares = [percent(_share(side, part, key)) for key in ("seconds", "energy_pj")]
        told = f"{part.name} {shares[0]} of the time and {shares[1]} of the energy"
        most.append(told + (limit and f", limited by {limit}"))
    gap = 0.0 if side.planned else found.get("gap")
    bound = f" No designs of space {found['space']} are more than {times(gap)} better." if gap else ""
    return [f"{text} Most goes to {'; '.join(most)}.{bound}"]


def _layers(side: Compared, pages: Mapping[str, Section]) -> PageTable:
    """Layers of a network, with links to their sections."""
    rows: list[list[Cell]] = []
    for i, part in enumerate(side.parts):
        edp, *others = numbers(part.about, f"layers.{i}.", list(TOLD))
        page = pages.get(part.about["searched"])
        name: Cell = PageLink(part.name, page.anchor) if page else part.name
        more = [number(part.seconds / part.repeat, time_text), number(part.costs.units_used, share), part.limit]
        rows.append([name, str(part.repeat), *more, edp if part.known else part.about["state"], *others])
    head = ["layer", "times", "time", "units in use", "limited by", *TOLD.values()]
    return PageTable(head, rows, [_shape(part.about) for part in side.parts])


def _shape(layer: Mapping[str, Any]) -> str:
    return f"{layer['type']}, sizes {layer['sizes']}; density {layer['densities']}"


def _designs(side: Compared, registry: Registry, shapes: Mapping[str, str]) -> Iterator[tuple[str, Section]]:
    """A collapsed section for each design (loop nest, cycles, free resources), by its file in a plan, else by its
    layer."""
    designs = {part.about.get("design", part.about["searched"]): part for part in reversed(side.parts) if part.known}
    designs.pop("", None)  # operations
    for key, part in reversed(designs.items()):
        try:
            base = Base(design_file.load(str(part.design_file), registry))
        except SparseMapError:  # designs of another version, or that a file cannot hold
            continue
        if not (outcome := base.outcome).valid:
            continue
        free = list(freed(base))
        better = min(free, key=lambda one: one.outcome.edp, default=None)
        costs_of = f"{time_text(outcome.costs['seconds'])}, {format_energy(outcome.energy_pj)}"
        text = f"{shapes[part.about['searched']]}. {costs_of}; limited by {outcome.column}"
        if better is not None and better.outcome.edp < outcome.edp:
            text += f"; EDP {change_text(better.outcome.edp, outcome.edp)} with {better.name} free"
        tables = [breakdown_table(outcome.breakdown, outcome.design.problem), design.one_free(outcome, free)]
        blocks = [*design.section(outcome).blocks]
        for table in filter(None, tables):  # its numbers are of another file than the page's
            rows = [[attrs.evolve(x, of="") if isinstance(x, PrintedNumber) else x for x in row] for row in table.rows]
            blocks.append(attrs.evolve(table, rows=rows))
        yield key, Section(part.name, blocks, text, f"layer-{part.folder.name.removesuffix('.toml')}")


def plan_headline(plan: Mapping[str, Any]) -> Headline:
    """EDP of the plan, and the gain over common practice."""
    (edp,) = numbers(plan, "fused.", ["edp"])
    slide = sum(bool(row.get("slides")) for row in plan["layers"])
    than = f"{times(plan['gain'])} better than" if plan["gain"] > 1.0 + 1e-9 else "as good as"
    than += " common practice" if "common_practice" in plan else " layers alone"
    note = f"{than}; {plan['stay']} of {plan['tensors']} tensors stay in {plan['home']}, {slide} slide by"
    return Headline("EDP with tensors on chip, pJ x cycles", edp, note)


def steady_headline(steady: Mapping[str, Any]) -> Headline:
    """EDP in steady state, and the amount of pinned weights."""
    (edp,) = numbers(steady, "fused.steady.", ["edp"])
    words = format_count(sum(steady["pinned"].values()))
    return Headline(
        "EDP from the second inference on, pJ x cycles",
        edp,
        f"weights of {len(steady['pinned'])} layers stay, {words} words",
    )


def speed_headline(plan: Mapping[str, Any]) -> Headline:
    """Inferences per second of a plan, with its operations per second beside the roofline."""
    told = plan["speed"]
    per_second = number(told["inferences_per_s"], "{:,.4g}".format, "fused.speed.inferences_per_s")
    roof = f"{told['tops']:,.3g} TOPS, zeros included; dense roofline {told['roof_tops']:,.3g} TOPS"
    return Headline("inferences per second", per_second, f"{roof}; {told['tops_per_w']:,.3g} TOPS/W")


def plan_verdict(plan: Mapping[str, Any], network: str, hardware: str) -> str:
    """The opening sentences of a page: cost of the network by its plan, without a search for a plan, layer by layer,
    and in steady state."""
    seconds = (plan["costs"]["seconds"] or 0.0) / plan["cycles"]

    def told(costs: Mapping[str, Any]) -> str:
        return f"{time_text(seconds * costs['cycles'])} and {format_energy(costs['energy_pj'])}"

    too = "" if plan["operations"].startswith("not") else ", operations between layers too"
    text = f"With tensors on chip {network} takes {told(plan)} on {hardware}; "
    if practice := plan.get("common_practice"):
        text += f"with tensors kept where they fit, without a search for a plan, {told(practice)}; "
    text += f"layer by layer{too}, {told(plan['layer_by_layer'])}."
    if ahead := plan.get("ahead"):
        cycles = {"energy_pj": plan["energy_pj"], "cycles": ahead["cycles"]}
        text += f" With weights fetched while earlier steps leave {plan['traffic'][0]['level']} idle, {told(cycles)}."
    if steady := plan.get("steady"):
        text += f" From the second inference on, with pinned weights, it takes {told(steady)}."
    return text + (f" By proof for these sizes the best plan is within {times(plan['gap'])}." if plan["gap"] else "")


def plan_sections(plan: Mapping[str, Any], pages: Mapping[str, Section]) -> list[Section]:
    """Sections of a complete plan, from `FusedResult.to_dict`; `pages` of its designs, by file."""
    home, peak = plan["home"], plan["peak"]
    most = f"At most {percent(peak['words'] / plan['capacity'])}, at {peak['layer']}."
    moved = "Layers between which a tensor slides by take turns. Operations between layers are "
    moved += f"{plan['operations']}, formats of what is handed over {plan['formats']}."
    found = [
        Section(f"What is in {home}", [over_time(plan)], f"Words by time, one step after the other. {most}"),
        Section("Steps of the plan", [_steps(plan, pages)], f"In the order in which they run. {moved}"),
    ]
    found += [_traffic(plan, "")] if plan.get("traffic") else []
    if steady := plan.get("steady"):
        load = f"{format_energy(steady['loading']['energy_pj'])} and {format_count(steady['loading']['cycles'])} cycles"
        text = f"Pinned weights stay in {home} from one inference to the next; loading them once takes {load}."
        whole = {**steady, "capacity": plan["capacity"], "home": home}
        found.append(
            Section("From the second inference on", [over_time(whole), _steps(steady, pages, "steady.")], text)
        )
        found += [_traffic(steady, " from the second inference on")] if steady.get("traffic") else []
    return found


def _traffic(plan: Mapping[str, Any], when: str) -> Section:
    """Bytes by level, of weights and of activations, and bytes per second."""
    rows: list[list[Cell]] = []
    for row in plan["traffic"]:
        kinds = row["weights_bytes"], row["activations_bytes"]
        told = (number(count, bytes_text) for count in (*kinds, sum(kinds), sum(kinds) / plan["costs"]["seconds"]))
        rows.append([row["level"], *told])
    head = ["level", "weights", "activations", "together", "per second"]
    return Section(
        f"Bytes read and written{when}", [PageTable(head, rows)], "With metadata, of all instances of a level."
    )


def _steps(plan: Mapping[str, Any], pages: Mapping[str, Section], path: str = "") -> PageTable:
    rows: list[list[Cell]] = []
    for i, row in enumerate(plan["layers"]):
        at = f"fused.{path}layers.{i}."
        inputs, output = dict.fromkeys(row["from_places"]), filter(None, [row["place"], row.get("slides")])
        used = number(row["used_words"], format_count, f"{at}used_words")
        busy = number(row["utilisation"], percent, f"{at}utilisation")
        told = [*numbers(row, at, ["energy_pj", "cycles"]), used, busy]
        page = pages.get(row["design"])
        name: Cell = PageLink(row["layer"], page.anchor) if page else row["layer"]
        rows.append([name, ", ".join(inputs), ", ".join(output), *told, row["limit"] or "-", row["why"] or "-"])
    head = "step,inputs from,output to,energy,cycles,words in use,utilisation,limited by,why not"
    return PageTable(head.split(","), rows)


# ------------------------------------------------------------------------------------------------------- several results


def comparison(paths: Sequence[Path], registry: Registry, reference: str = "") -> Page:
    """The best result with reasons, numbers, ratios, layers, and energy and time of each result.

    Ratios are to the reference, or else to the first result, within each problem."""
    each, note = alike(paths)
    sides = labelled([side for found in each for side in found])
    worth = worth_of(sides)
    groups = compared(sides)
    found = [[side for side in group if side.numbers["edp"] is not None] for group in groups]
    given = named(reference, sides) if reference else None
    several = [group for group in found if len(group) > 1]
    first = {id(side): given if given in group else group[0] for group in several for side in group}
    points, rows, over_first = list[Mark](), [], f"{WORTH_NAMES[worth]} over {given.label if given else 'the first'}"
    ratios: dict[tuple[str, ...], list[float]] = {}
    for i, side in enumerate(sides):
        base = first.get(id(side))
        over = ratio(side, base, worth) if base else None
        if base and over is not None:
            model = f", {side.model}" if side.model not in ("", sides[0].model) else ""
            tip = f"{side.label}: {side.searched}\n{WORTH_NAMES[worth]} {times(over)} of {base.label}"
            points.append(Mark(over, side.searcher, f"{side.subject} on {side.hardware}{model}", tip=tip))
            ratios.setdefault((side.hardware, side.searcher), []).append(over)
        edp, energy, cycles, gap = numbers(side.numbers, f"{i}.", ("edp", "energy_pj", "cycles", "gap"))
        of_chip = zip(COST_NAMES.values(), numbers(side.costs, f"{i}.costs.", tuple(CHIP_COSTS)), strict=True)
        about = {"result": side.label, "workload": side.subject, "hardware": side.hardware, "cost model": side.model}
        told = {"energy": energy, over_first: number(over, times), "EDP": edp, "cycles": cycles, "over the bound": gap}
        rows.append({**about, "searcher": side.searched, **dict(of_chip), **told, "limited by": side.limit})
    texts = ("workload", "hardware", "cost model", "searcher", "limited by")  # told above the table where all have one
    head = [key for key in rows[0] if key not in texts or len({row[key] for row in rows}) > 1]
    blocks: list[Any] = [PageTable(head, [[row[key] for key in head] for row in rows])]
    if len(points) > len({(point.row, point.part) for point in points}):  # seeds, or other repetitions
        blocks.append(spread(["hardware", "searcher"], ratios, "results"))
    if points:
        blocks.append(strips(points, over_first, list(dict.fromkeys(side.searcher for side in sides))))
    to = f"{given.label}, or the first" if given else "the first"
    text = f"Ratios are to {to} result of the same problem; times are at the clock of each chip."
    if alone := [group[0].subject for group in found if len(group) == 1]:
        text += f" {listed(dict.fromkeys(alone))}: one result only, so without a ratio (problems match by name)."
    sections = [Section("Results", blocks, text)]
    if decided := layer_blocks(sides):
        layers, text = decided
        sections.insert(0, Section("Layers, those that decide first", layers, text))
    known = [side for side in sides if side.parts and side.numbers["edp"] is not None][:FULL]
    if not decided and len(known) == len(sides) == 2 and len(groups) == 1:
        ordered = in_order(known, worth)
        if levels := _level_blocks(ordered, worth):
            text = f"{apart.shares_text(ordered, worth)}."
            sections.insert(0, Section("Difference by level", levels, text[:1].upper() + text[1:]))
    if any(part.costs.known for side in known for part in side.parts):
        bars = [(name_of(side, sides), side.parts, "") for side in known]
        text = "By level and charge, and by what limits it; bars add up to the whole."
        sections.append(Section("Energy and time", [stack(bars, key) for key in PARTS], text))
    names_of = " or ".join(name_of(side, sides) for side in sides)
    beside = cards(sides) if len(groups) == 1 else []
    tiles = [_tile(side, name_of(side, sides)) for side in sides if side.costs] if len(sides) < 7 and not beside else []
    title = f"{sides[0].subject}: {names_of}" if len(sides) < 4 and len(groups) == 1 else f"{len(sides)} results"
    files = [side.folder / name for side in sides for name in (RESULT_FILE, NETWORK) if (side.folder / name).exists()]
    newest = max(files, key=lambda file: file.stat().st_mtime)
    words = shlex.join(["sparsemap", "report", *map(str, paths), *(["--reference", reference] if reference else [])])
    searched = (", ".join(filter(None, (f"{x.subject}: {x.searched}", x.effort))) for x in sides[:4])
    lines = [made(newest.parent, {}, newest.name, words), *dict.fromkeys(searched)]
    return Page(title, lines, tiles, sections, verdict=[*note, *verdict(sides, registry)], cards=beside)


def _tile(side: Compared, label: str) -> Headline:
    """The time of a side, with energy, power and area in the note."""
    rest = {key: value for key, value in side.costs.items() if key != "seconds"}
    note = ", ".join(filter(None, [format_energy(side.numbers["energy_pj"]), chip_text(rest)]))
    return Headline(label, number(side.value("seconds"), time_text), note)


def layer_blocks(sides: Sequence[Compared]) -> tuple[list[PageTable | Chart], str] | None:
    """Layers of the first network with several sides: a table, charts of the decisive layers, and a text.

    Decisive layers are ordered by the difference between the best and the next side. None if no two sides have layers
    in common."""
    for group in compared(side for side in sides if len(side.parts) > 1):
        same = [side for side in group if side.numbers["edp"] is not None]
        if len(same) > 1:
            worth = worth_of(same)
            ordered = in_order(same, worth)
            shares = apart.shares_of(ordered, worth)
            if not shares:  # they are equal
                continue
            parts = {name_of(side, same): {part.name: part for part in side.parts} for side in ordered}
            few = list(shares)[: max(1, BARS // len(same))]
            bars = [(f"{name}, {chip}", [has[name]], "") for name in few for chip, has in parts.items() if name in has]
            every = [part for side in ordered for part in side.parts]
            text = f"Of all repetitions; {apart.shares_text(ordered, worth)}."
            more = len(shares) - len(few)
            text += f" Charts have the first {len(few)}; the table has {more} more." if more else ""
            charts = [stack(bars, key, among=every) for key in PARTS]
            sums = {
                label: math.fsum(shares[name] for name in names) for label, names in apart.groups_of(shares).items()
            }
            by_layer, *by_level = waterfall(sums, "difference by layer"), *_level_blocks(ordered, worth)
            return [by_layer, *by_level, apart.layer_table(ordered, shares), *charts], text
    return None


def _level_blocks(ordered: Sequence[Compared], worth: str) -> list[PageTable | Chart]:
    """Shares of levels in the difference of the first two sides."""
    shares = apart.shares_of(ordered, worth, apart.levels_of)
    return [waterfall(shares, "difference by level"), apart.level_table(ordered, worth)] if shares else []


def spread(head: Sequence[str], found: Mapping[tuple[str, ...], Sequence[float]], of: str) -> PageTable:
    """Means and range of ratios, a row for each group."""
    rows: list[list[Cell]] = []
    for names, each in found.items():
        means = statistics.geometric_mean(each), min(each), statistics.median(each), max(each)
        rows.append([*names, *(number(mean, times) for mean in means), f"{len(each)}"])
    return PageTable([*head, "geometric mean", "least", "median", "most", of], rows)
