"""Part of a network's page about tensors on chip: contents over time, and every step of the plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparsemap.files import percent, times
from sparsemap.spec.units import format_count, format_energy

from ..network_charts import over_time
from ..tables import Cell, PageLink, PageTable, number, numbers
from ..wording import time_text
from .content import Headline, Section


def headline(plan: Mapping[str, Any]) -> Headline:
    """EDP of the plan, and the gain over layer by layer."""
    (edp,) = numbers(plan, "fused.", ["edp"])
    slide = sum(bool(row.get("slides")) for row in plan["layers"])
    gain = plan["gain"]
    than = f"{times(gain)} better" if gain >= 1.0 else f"{times(1.0 / gain)} worse"
    note = f"{than}; {plan['stay']} of {plan['tensors']} tensors stay in {plan['home']}, {slide} slide by"
    return Headline("EDP with tensors on chip", edp, note)


def verdict(plan: Mapping[str, Any], network: str, hardware: str) -> str:
    """The opening sentence of a page: cost of the network by its plan, and layer by layer."""
    seconds = (plan["costs"]["seconds"] or 0.0) / plan["cycles"]
    both = (plan, plan["layer_by_layer"])
    planned, apart = (f"{time_text(seconds * x['cycles'])} and {format_energy(x['energy_pj'])}" for x in both)
    too = "" if plan["operations"].startswith("not") else ", operations between layers too"
    bound = f" By proof for these sizes the best plan is within {times(plan['gap'])}." if plan["gap"] else ""
    return f"With tensors on chip {network} takes {planned} on {hardware}; layer by layer{too}, {apart}.{bound}"


def sections(plan: Mapping[str, Any], pages: Mapping[str, Section]) -> list[Section]:
    """Sections of a complete plan, from `FusedResult.to_dict`; `pages` of its designs, by file."""
    home, peak = plan["home"], plan["peak"]
    most = f"At most {percent(peak['words'] / plan['capacity'])}, at {peak['layer']}."
    moved = "Layers between which a tensor slides by take turns. Operations between layers are "
    moved += f"{plan['operations']}, formats of what is handed over {plan['formats']}."
    return [
        Section(f"What is in {home}", [over_time(plan)], f"Words by time, one step after the other. {most}"),
        Section("Steps of the plan", [_steps(plan, pages)], f"In the order in which they run. {moved}"),
    ]


def _steps(plan: Mapping[str, Any], pages: Mapping[str, Section]) -> PageTable:
    rows: list[list[Cell]] = []
    for i, row in enumerate(plan["layers"]):
        at = f"fused.layers.{i}."
        inputs, output = dict.fromkeys(row["from_places"]), filter(None, [row["place"], row.get("slides")])
        used = number(row["used_words"], format_count, f"{at}used_words")
        busy = number(row["utilisation"], percent, f"{at}utilisation")
        told = [*numbers(row, at, ["energy_pj", "cycles"]), used, busy]
        page = pages.get(row["design"])
        name: Cell = PageLink(row["layer"], page.anchor) if page else row["layer"]
        rows.append([name, ", ".join(inputs), ", ".join(output), *told, row["limit"] or "-", row["why"] or "-"])
    head = "step,inputs from,output to,energy,cycles,words in use,utilisation,limited by,why not"
    return PageTable(head.split(","), rows)
