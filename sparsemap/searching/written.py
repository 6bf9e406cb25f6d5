"""Forms of a result for people and files: plain data, tables, and the files of a folder."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..csv_files import csv_text
from ..errors import DesignError, PluginError, SearchError, SpecError, shortened
from ..files import percent, shown
from ..pieces.contracts.base import Array
from ..pieces.defaults import CERTIFICATE_FILE, COMMAND_FILE, DESIGN_FILE, REPORT
from ..problem.costs import BASIC
from ..spec import toml_text
from ..writing import write_texts
from .best import Best
from .result import FRONT_FILE, FRONT_FOLDER, HISTORY_FILE, PARTIAL_FOLDER, RESULT_FILE, TIMING_FILE, Result

if TYPE_CHECKING:
    from ..file_formats import FileFormat

HISTORY = {"evaluations": np.int64, "best_score": np.float64, "valid": np.int64, "mean_score": np.float64}
"""Columns of a history with their types."""
AS_THEY_ARE = (
    "bound", "gap", "evaluations", "budget", "count", "proposed", "valid_fraction", "seed", "seconds", "workload",
    "hardware", "technology", "space", "searcher", "objective", "interrupted",
)  # fmt: skip
"""Attributes of `Result` copied unchanged to `result.json`."""


def headline(result: Result) -> str:
    """Summary of a result in a line."""
    best = f"no valid design among {result.evaluations:,}" if result.best is None else result.best.headline
    near = f", within {result.gap:.2f}x of the optimum for these sizes" if result.gap else ""
    near = f", {result.gap:.3f}x of a bound that is broken" if result.broken_bound else near
    valid = percent(result.valid_fraction)
    search = f"{result.evaluations:,} designs, {valid} valid, {result.searcher}, seed {result.seed}"
    return f"Result({result.workload} on {result.hardware}: {best}{near}{f'; {search}' if result.searcher else ''})"


def html(result: Result) -> str:
    """HTML for notebooks."""
    registry = result.best.problem.registry if result.best is not None else None
    shown = registry is not None and registry.has("exporter", REPORT)
    return f"<pre style='line-height:1.25'>{escape(result.report(REPORT) if shown else repr(result))}</pre>"


def arrays(result: Result) -> dict[str, Array]:
    """The history, an array per column."""
    return {key: np.array([getattr(row, key) for row in result.history], kind) for key, kind in HISTORY.items()}


def table(result: Result, folder: Path | None = None) -> dict[str, Any]:
    """`Result.to_dict`."""
    numbers = result.best.numbers if result.best else dict.fromkeys(("edp", *BASIC, "score"))
    scenarios = {
        name: {key: _plain(x) for key, x in there.numbers.items()} | {"bound": there.problem.bound, "gap": there.gap}
        for name, there in (result.best.scenarios if result.best else {}).items()
    }
    if_any = {
        "broken_bound": result.broken_bound,
        "why_padded": result.why_padded,
        "convergence": result.convergence.to_dict() if result.convergence else {},
        "raced": [{**row, "score": _plain(row["score"])} for row in result.raced],
        "costs": {key: _plain(cost) for key, cost in result.best.costs.items()} if result.best else {},
        "units_mm2": result.best.design.units_mm2 if result.best else 0.0,
        "bound_costs": dict(result.bound_costs),
        "chosen": result.best.design.chosen if result.best else {},
        "given_up": result.given_up,
        "executed": [one.to_dict() for one in result.executed],
        "proof": result.proof.to_dict() if result.proof else {},
        "fidelities": result.best.fidelities if result.best else {},
        "scenarios": scenarios,
        "front": [{"objectives": x.objectives, **x.numbers, "genome": x.genome.tolist()} for x in result.front],
        "hull": [{"energy_pj": e, "cycles": c, "genome": genome.tolist()} for e, c, genome in result.hull],
        "start": [{**row, "file": relative_to(folder or Path(), row["file"])} for row in result.start],
        "versions": dict(result.versions),
        "identity": dict(result.identity) if folder or isinstance(result.asked, Mapping) else {},
    }
    return {
        **{key: _plain(value) for key, value in numbers.items()},
        **{key: getattr(result, key) for key in AS_THEY_ARE},
        "padded": {dim: list(sizes) for dim, sizes in result.padded.items()},
        "rejects": dict(result.rejects),
        "shortfalls": [{key: _plain(v) for key, v in attrs.asdict(s).items()} for s in result.shortfalls],
        "genome": result.best.genome.tolist() if result.best else None,
        **_levels(result),
        **{key: value for key, value in if_any.items() if value},
    }


def _levels(result: Result) -> dict[str, Any]:
    """Limit of the best design's cycles, energies in pJ and cycles by level; empty if unknown.

    A cost model failing in the detailed evaluation does not lose the result."""
    with suppress(PluginError):
        if result.best is not None and (found := result.breakdown()).known:
            return found.to_dict()
    return {}


def place(result: Result, folder: Path) -> Path:
    """`Result.place`."""
    return folder / PARTIAL_FOLDER if result.interrupted and _says_interrupted(folder) is False else folder


def files(result: Result, folder: Path) -> list[Path]:
    """`Result.files`."""
    folder = result.place(folder)
    names = [DESIGN_FILE] * (result.best is not None) + [FRONT_FILE] * bool(result.front)
    names += [CERTIFICATE_FILE] * (result.proof is not None)
    names += [HISTORY_FILE, TIMING_FILE, RESULT_FILE]
    return [path for name in names if (path := folder / name).exists()]


def write(result: Result, folder: Path, overwrite: bool = False) -> list[Path]:
    """`Result.write`."""
    from ..file_formats import RESULT

    partial, folder = folder / PARTIAL_FOLDER, result.place(folder)
    if not overwrite:
        from .folder import check_result

        check_result(folder, result.identity, partial=True)
    digits = len(str(len(result.front)))
    front = {f"{FRONT_FOLDER}/{number:0{digits}}.toml": best for number, best in enumerate(result.front, 1)}
    texts = {}
    for name, best in {DESIGN_FILE: result.best, **front}.items():
        with suppress(DesignError):
            texts[folder / name] = best.text((folder / name).parent) if best is not None else ""
    if front:
        points = [{"design": name, **best.objectives, **best.numbers, **best.costs} for name, best in front.items()]
        texts[folder / FRONT_FILE] = csv_text(points)
    texts[folder / HISTORY_FILE] = history_csv(result)
    texts[folder / CERTIFICATE_FILE] = result.proof.certificate() if result.proof and result.best else ""
    times = [{"evaluations": row.evaluations, "seconds": row.seconds} for row in result.history]
    texts[folder / TIMING_FILE] = csv_text(times, ("evaluations", "seconds"))
    texts[folder / RESULT_FILE] = json.dumps(RESULT.stamped(result.to_dict(folder)), indent=2) + "\n"
    earlier = [path for path in (folder / FRONT_FOLDER).glob("*.toml") if path.stem.isdigit()]
    texts = {path: text for path, text in texts.items() if text}
    others = {folder / name for name in (DESIGN_FILE, FRONT_FILE, CERTIFICATE_FILE, COMMAND_FILE)}
    write_texts(texts, {*others, *earlier} - texts.keys())
    if not result.interrupted and _says_interrupted(partial):
        shutil.rmtree(partial, ignore_errors=True)
    return [path for path in texts if path.parent == folder]


def design_text(best: Best, folder: Path | None = None) -> str:
    """`Best.text`."""
    from ..file_formats import DESIGN
    from ..problem import design_file

    every = {name: there.numbers.items() for name, there in best.scenarios.items()}
    finite = {name: {key: value for key, value in found if math.isfinite(value)} for name, found in every.items()}
    table = DESIGN.stamped(design_file.dump(best.design, best.numbers, finite))
    if folder is None:
        return toml_text.dumps(table)
    for density in table.get("workload", {}).get("density", {}).values():
        for key, value in density.items() if isinstance(density, dict) else ():
            absolute = isinstance(value, str) and os.path.isabs(value)
            density[key] = relative_to(folder, value) if absolute else value
    return toml_text.dumps(table)


def relative_to(folder: Path, file: str) -> str:
    """A path relative to a folder, with slashes; an empty path stays empty."""
    try:
        return Path(os.path.relpath(file, folder)).as_posix() if file else ""
    except ValueError:  # on another drive
        return file


def history_csv(result: Result) -> str:
    """One line per batch (merged in very long searches), with the best design's costs by name; floats as repr, empty
    for a missing number."""
    rows = [{name: getattr(row, name) for name in HISTORY} | dict(row.costs) for row in result.history]
    return csv_text(rows, tuple(rows[-1]) if rows else tuple(HISTORY))


def _says_interrupted(folder: Path) -> bool | None:
    """Whether the result in a folder is of an interrupted search; None without a result."""
    try:
        found = read_result(folder / RESULT_FILE)
    except (SearchError, SpecError):
        return None
    said = found.get("interrupted")
    return said if isinstance(said, bool) else None


def read_result(path: Path | str, form: FileFormat | None = None) -> dict[str, Any]:
    """The table of a `result.json`, from the path of its folder, or of a JSON file of another format (`form`).

    SearchError for an unreadable file, SpecError for a file of another format or version."""
    from ..file_formats import RESULT

    path, form = Path(path), form or RESULT
    path = path / RESULT_FILE if path.is_dir() else path
    try:
        table = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SearchError(f"{path}: {error}") from None
    if not isinstance(table, dict):
        raise SearchError(f"{path}: found {shortened(table)}, expected a table of format '{form.text}'")
    return form.opened(table, shown(path))


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
