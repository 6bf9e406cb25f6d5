"""What each quirk is worth: alone on top of the sound count, and taken away from the paper's."""

from __future__ import annotations

from collections.abc import Sequence

from sparsemap.files import markdown_table
from sparsemap.plots import COLOURS, Figure, Report, subplots

from ..quirks import ALL, QUIRKS
from .cells import SPARSITY, TITLES, Cells

CORES = 4


def report(source: Cells, name: str, quirks: str) -> Report:
    rows = []
    for network in TITLES:
        for kind, sparsity in (("dense", 0.0), ("sparse", SPARSITY)):
            sound = source.schedule(network, CORES, sparsity, "none").seconds
            paper = source.schedule(network, CORES, sparsity, "paper").seconds
            for quirk in QUIRKS:
                alone = source.schedule(network, CORES, sparsity, (quirk,)).seconds
                without = source.schedule(network, CORES, sparsity, ALL - {quirk}).seconds
                rows.append(
                    {
                        "network": network,
                        "weights": kind,
                        "quirk": quirk,
                        "sound_ms": sound * 1e3,
                        "paper_ms": paper * 1e3,
                    }
                    | {"alone_ms": alone * 1e3, "without_ms": without * 1e3}
                )
    lines = [
        ["quirk", *(f"{title} {what}" for title in TITLES.values() for what in ("alone", "without")), "what it is"]
    ]
    for quirk, text in QUIRKS.items():
        mine = [row for row in rows if row["quirk"] == quirk and row["weights"] == "dense"]
        changes = [
            f"{100 * change:+.1f} %"
            for row in mine
            for change in (row["alone_ms"] / row["sound_ms"] - 1, row["without_ms"] / row["paper_ms"] - 1)
        ]
        lines.append([f"`{quirk}`", *changes, text])
    totals = ", ".join(
        f"{TITLES[row['network']]} {row['sound_ms']:.2f} and {row['paper_ms']:.2f} ms"
        for row in rows
        if row["quirk"] == next(iter(QUIRKS)) and row["weights"] == "dense"
    )
    text = (
        f"# What each quirk is worth\n\n`sparsemap wbs {name}`: change of the time of dense networks on {CORES} x {CORES} "
        "cores if one quirk is added to the sound count (alone), and if it is taken away from all of them (without). "
        f"Sound and with all of them: {totals}. Quirks overlap: the changes do not add up. `{name}.csv` has those of "
        "sparse networks as well.\n\n" + markdown_table(lines)
    )
    worst = max(rows, key=lambda row: abs(row["alone_ms"] / row["sound_ms"] - 1))
    headline = f"largest alone: {worst['quirk']}, {100 * (worst['alone_ms'] / worst['sound_ms'] - 1):+.0f} %"
    return Report(name, headline, text, rows, lambda: draw(rows))


def draw(rows: Sequence[dict]) -> Figure:  # type: ignore[type-arg]
    figure, axes = subplots(1, 2, (9.0, 3.8), sharey=True)
    names = list(QUIRKS)[::-1]
    for axis, (key, base, title) in zip(
        axes,
        (
            ("alone_ms", "sound_ms", "added to the sound count"),
            ("without_ms", "paper_ms", "taken away from the paper's"),
        ),
        strict=True,
    ):
        for index, (network, label) in enumerate(TITLES.items()):
            mine = {row["quirk"]: row for row in rows if row["network"] == network and row["weights"] == "dense"}
            change = [100 * (mine[name][key] / mine[name][base] - 1) for name in names]
            heights = [place + 0.26 * (1 - index) for place in range(len(names))]
            axis.barh(heights, change, 0.26, color=COLOURS[index], label=label)
        axis.set_title(title)
        axis.set_xlabel("change of the time, %")
        axis.axvline(0, color="black", linewidth=0.8)
    axes[0].set_yticks(range(len(names)), names)
    axes[1].legend()
    return figure
