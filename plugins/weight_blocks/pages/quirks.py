"""What each quirk is worth: alone on top of the sound count, and taken away from the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparsemap.files import markdown_table
from sparsemap.plots import COLOURS, Figure, Report, subplots

from ..quirks import ALL, QUIRKS
from . import KINDS, TITLES, MeshSchedules

CORES = 4


def report(source: MeshSchedules, name: str, quirks: str) -> Report:
    rows: list[dict[str, Any]] = []
    for network in TITLES:
        for kind, sparsity in KINDS.items():
            for quirk in QUIRKS:
                counts = {"sound_ms": "none", "paper_ms": "paper", "alone_ms": (quirk,), "without_ms": ALL - {quirk}}
                schedules = {key: source.schedule(network, CORES, sparsity, count) for key, count in counts.items()}
                ms = {key: schedule.seconds * 1e3 for key, schedule in schedules.items()}
                rows.append({"network": network, "weights": kind, "quirk": quirk, **ms})
    lines = [
        ["quirk", *(f"{title} {what}" for title in TITLES.values() for what in ("alone", "without")), "what it is"]
    ]
    dense = [row for row in rows if row["weights"] == "dense"]
    for quirk, text in QUIRKS.items():
        mine = [row for row in dense if row["quirk"] == quirk]
        lines.append([f"`{quirk}`", *(f"{change:+.1f} %" for row in mine for change in changes(row)), text])
    first = [row for row in dense if row["quirk"] == next(iter(QUIRKS))]
    totals = (f"{TITLES[row['network']]} {row['sound_ms']:.2f} and {row['paper_ms']:.2f} ms" for row in first)
    text = (
        f"# What each quirk is worth\n\n`sparsemap wbs {name}`: change of the time of dense networks on {CORES} x {CORES} "
        "cores if one quirk is added to the sound count (alone), and if it is taken away from all of them (without). "
        f"Sound and with all of them: {', '.join(totals)}. Quirks overlap: the changes do not add up. `{name}.csv` has "
        "those of sparse networks as well.\n\n" + markdown_table(lines)
    )
    worst = max(rows, key=lambda row: abs(changes(row)[0]))
    headline = f"largest alone: {worst['quirk']}, {changes(worst)[0]:+.0f} %"
    return Report(name, headline, text, rows, lambda: draw(dense))


def changes(row: dict[str, Any]) -> tuple[float, float]:
    """Per cent, of the sound count with the quirk and of the paper's without."""
    return 100 * (row["alone_ms"] / row["sound_ms"] - 1), 100 * (row["without_ms"] / row["paper_ms"] - 1)


def draw(rows: Sequence[dict[str, Any]]) -> Figure:
    figure, axes = subplots(1, 2, (9.0, 3.8), sharey=True)
    names = list(QUIRKS)[::-1]
    for place, title in enumerate(("added to the sound count", "taken away from the paper's")):
        for index, (network, label) in enumerate(TITLES.items()):
            mine = {row["quirk"]: changes(row)[place] for row in rows if row["network"] == network}
            heights = [at + 0.26 * (1 - index) for at in range(len(names))]
            axes[place].barh(heights, [mine[name] for name in names], 0.26, color=COLOURS[index], label=label)
        axes[place].set(title=title, xlabel="change of the time, %")
        axes[place].axvline(0, color="black", linewidth=0.8)
    axes[0].set_yticks(range(len(names)), names)
    axes[1].legend()
    return figure
