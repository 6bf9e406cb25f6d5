"""Tables of a served model: for a terminal, as CSV and JSON, and the figure of speed over context."""

from __future__ import annotations

import json
from pathlib import Path

from sparsemap.csv_files import csv_text
from sparsemap.errors import SearchError
from sparsemap.file_formats import FileFormat
from sparsemap.files import percent
from sparsemap.plots import COLOURS, MARKERS, Figure, plain_log, save, subplots
from sparsemap.searching.written import read_result
from sparsemap.spec.units import format_count, scaled_text
from sparsemap.study.traffic import bytes_text
from sparsemap.writing import write_texts

from .points import DECODE
from .serving import Serving
from .steps import BYTES, ServedStep

SERVING = FileFormat("serving", "`serving.json` of a language model; also for `serving.csv`")
NAME = "serving"
"""Stem of the files."""
HEAD = ["phase", "context", "batch", "time", "tokens/s", "roofline", "share", "bound by", "energy", *BYTES, "limit"]
WIDE = (12, 9, 10, 11, 7)
"""Columns that narrow terminals leave out, first to last."""


def table(serving: Serving) -> list[list[str]]:
    """A row per step: its time; energy and bytes of the outermost level per token."""
    return [HEAD, *map(_cells, serving.steps)]


def _cells(step: ServedStep) -> list[str]:
    point, roof = step.point, step.roofline
    energy = scaled_text(step.energy_pj * 1e-12 / step.tokens, "J")
    limit = f"{step.limit[0].removeprefix('bandwidth of ')} {percent(step.limit[1])}"
    context = "mean " * (step.lengths > 1) + f"{point.tokens:,.0f}"
    return [
        point.phase, context, f"{point.batch:,}", scaled_text(step.seconds, "s"), f"{step.per_s:,.4g}",
        f"{step.tokens / roof.seconds:,.4g}", percent(step.of_roofline), roof.binding, energy,
        *(bytes_text(step.moved[kind] / step.tokens) for kind in BYTES), limit,
    ]  # fmt: skip


def about(serving: Serving) -> list[str]:
    """Model, widths and searches, in lines."""
    known, loads = serving.about, serving.loads
    bits, names = serving.widths.told()
    told = [names.get(key, f"{each:g} bits") for key, each in bits.items()]
    skew = f"; busiest of {len(loads)} experts: {max(loads) * len(loads) / sum(loads):.3g}x the mean" if loads else ""
    return [
        f"{serving.model.name} on {serving.hardware}: {format_count(serving.model.parameters)} parameters; "
        f"weights {told[0]}, cache {told[1]}, activations {told[2]}{skew}",
        f"{serving.searches} searches of {known['budget']:,} designs each, {known['searcher']}, seed {known['seed']}; "
        "energy and bytes are those of a token",
        *serving.hints,
    ]


def check(folder: Path, model: str) -> None:
    """SearchError for a folder with the results of another model."""
    if (folder / f"{NAME}.json").is_file():
        other = read_result(folder / f"{NAME}.json", SERVING).get("model")
        if other != model:
            text = f"{folder} has the results of {other}; give another folder with --out, or --overwrite"
            raise SearchError(text)


def write(serving: Serving, folder: Path) -> list[Path]:
    """`serving.csv` and `serving.json`."""
    texts = {
        folder / f"{NAME}.csv": csv_text([step.row() for step in serving.steps]),
        folder / f"{NAME}.json": json.dumps(SERVING.stamped(serving.to_dict()), indent=2) + "\n",
    }
    return write_texts(texts)


def draw(serving: Serving, folder: Path) -> list[Path]:
    """Tokens per second over tokens of context or prompt, as PNG and SVG. ImportError without matplotlib."""
    return save(lambda: figure(serving), folder, NAME)


def figure(serving: Serving) -> Figure:
    """A panel per phase, a line per batch; dashed: the roofline."""
    phases = list(dict.fromkeys(step.point.phase for step in serving.steps))
    drawn, panels = subplots(1, len(phases), (3.6 * len(phases), 2.8), squeeze=False)
    for phase, axes in zip(phases, panels[0], strict=True):
        some = [step for step in serving.steps if step.point.phase == phase and step.lengths == 1]
        for index, batch in enumerate(dict.fromkeys(step.point.batch for step in some)):
            own = [step for step in some if step.point.batch == batch]
            contexts, look = [step.point.tokens for step in own], {"color": COLOURS[index % len(COLOURS)]}
            axes.plot(contexts, [s.per_s for s in own], marker=MARKERS[index % len(MARKERS)], label=f"{batch}", **look)
            axes.plot(contexts, [s.tokens / s.roofline.seconds for s in own], linestyle="--", **look)
        axes.set(xscale="log", yscale="log", ylabel="tokens/s", title=f"{phase}; dashed: roofline")
        axes.set_xlabel("context, tokens" if phase == DECODE else "prompt, tokens")
        plain_log(axes.yaxis)
        axes.set_xticks(sorted({step.point.tokens for step in some}), labels=_ticks(some))
        axes.minorticks_off()
        axes.legend(title="batch")
    return drawn


def _ticks(steps: list[ServedStep]) -> list[str]:
    found = sorted({step.point.tokens for step in steps})
    return [f"{n // 1024}k" if n % 1024 == 0 else f"{n:,}" for n in found]
