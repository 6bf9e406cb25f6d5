"""What each quirk is worth: alone on top of the sound count, and taken away from the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparsemap.plots import Figure, Panel, Report, figure, page

from ..quirks import ALL
from ..quirks import QUIRKS as COUNTED
from . import KINDS, TITLES, MeshSchedules

CORES = 4
QUIRKS = COUNTED | {"rates": "those of hardware aie2-paper-4x4: binary gigabytes, writes as slow as reads"}
"""With the paper's rates, which its hardware has."""


def report(source: MeshSchedules, name: str, quirks: str) -> Report:
    rows: list[dict[str, Any]] = []
    for network in TITLES:
        for kind, sparsity in KINDS.items():
            for quirk in QUIRKS:
                alone, without = ("paper", "none") if quirk == "rates" else ("none", "paper")
                counts = {"sound_ms": ((), "none"), "paper_ms": (ALL, "paper")}
                counts |= {"alone_ms": ({quirk} & ALL, alone), "without_ms": (ALL - {quirk}, without)}
                schedules = {key: source.schedule(network, CORES, sparsity, *count) for key, count in counts.items()}
                ms = {key: schedule.seconds * 1e3 for key, schedule in schedules.items()}
                rows.append({"network": network, "weights": kind, "quirk": quirk, **ms})
    dense = {quirk: [row for row in rows if row["weights"] == "dense" and row["quirk"] == quirk] for quirk in QUIRKS}
    lines = [["quirk", *(f"{title} {what}" for title in TITLES.values() for what in ("alone", "without"))]]
    lines += [[f"`{x}`", *(f"{c:+.1f} %" for row in mine for c in changes(row))] for x, mine in dense.items()]
    first = dense[next(iter(QUIRKS))]
    totals = (f"{TITLES[row['network']]} {row['sound_ms']:.2f} and {row['paper_ms']:.2f} ms" for row in first)
    texts = "\n".join(f"- `{quirk}`: {text}" for quirk, text in QUIRKS.items())
    text = page(__file__, name, cores=CORES, totals=", ".join(totals), table=lines, texts=texts)
    worst = max(rows, key=lambda row: abs(changes(row)[0]))
    headline = f"largest alone: {worst['quirk']}, {changes(worst)[0]:+.0f} %"
    return Report(name, headline, text, rows, lambda: draw(dense))


def changes(row: Mapping[str, Any]) -> tuple[float, float]:
    """Per cent, of the sound count with the quirk and of the paper's without."""
    return 100 * (row["alone_ms"] / row["sound_ms"] - 1), 100 * (row["without_ms"] / row["paper_ms"] - 1)


def draw(dense: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    panels = []
    for place, title in enumerate(("added to the sound count", "taken away from the paper's")):
        bars = {x: [changes(mine[at])[place] for mine in dense.values()] for at, x in enumerate(TITLES.values())}
        panels.append(Panel("change of the time, %", bars=bars, names=list(dense), flat=True, title=title))
    return figure(panels, (9.0, 3.8), sharey=True)
