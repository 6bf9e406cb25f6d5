"""Cells of a study: the searches, their names, and their folders."""

from __future__ import annotations

import hashlib
import logging
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import attrs

from ..csv_files import read_csv
from ..errors import SearchError, SpecError, shortened
from ..file_formats import STUDY
from ..pieces.defaults import COMMAND_FILE, NETWORK_FILE, PAGE_FILE, SPACE
from ..pieces.registry import is_path
from ..pieces.study_spec import Study
from ..problem.arguments import check_seed
from ..problem.project import located
from ..searching.budget import Budget
from ..searching.journal import JOURNAL_FILE, designs_in
from ..searching.result import PARTIAL_FOLDER, RESULT_FILE, broken
from ..searching.shortfalls import Shortfall
from ..searching.written import read_result
from ..spec.unstructuring import plain
from ..writing import is_temporary

logger = logging.getLogger("sparsemap")

TABLE_FILES = ("table.csv", "table.md", "study.json")
NETWORK_FILES = ("layers.csv", "layers.md", NETWORK_FILE)
FUSED_FILES = ("fused.csv", "fused.md")
STEADY_FILES = ("steady.csv", "steady.md")
PLAN_FOLDER, STEADY_FOLDER = "plan", "steady"
"""Folders for the designs of a plan, and of the plan in steady state, below the folder of a network."""
COMPARISON_FILES = ("comparison.csv", "comparison-means.csv", "comparison.md")
NAMES = ("workload", "hardware", "searcher", "seed")
AXES = {"space": "spaces", "formats": "formats", "mechanisms": "mechanisms", "cost_model": "cost_models"}
"""Further lists of a study, each with its key in the spec: columns of the tables behind the searcher, before its `axes`."""
MORE = {"formats": "format", "mechanisms": "mechanism"}
"""Axes of additional pieces in the space, and their kind."""
OWN = "own"
"""Name of a variant without additions."""
NUMBERS = ("edp", "energy_pj", "cycles", "evaluations", "valid_fraction")
COSTS = ("seconds", "power_w", "edp_js", "area_mm2")
"""Costs derived from the chip, in the tables behind `NUMBERS`; costs added by a cost model come last."""
WHY = ("rejects", "shortfalls")
"""Keys of a result to explain a missing design."""
KEPT = (
    *NUMBERS, "technology", "score", "gap", "start", "costs", "bound_costs", "limit", "units_used", "chosen", "hull",
    "convergence", *WHY,
)  # fmt: skip
"""Keys of `result.json` copied to an outcome."""
LABEL = 60
"""Largest number of characters of a workload, hardware or searcher in the name of a cell's folder."""


@attrs.frozen(kw_only=True)
class Cell:
    """A search of a study, as plain data. `workload`, `hardware` and `searcher` are names for the tables."""

    workload: str
    hardware: str
    searcher: str
    seed: int
    budget: int
    parts: Mapping[str, Any]
    """Arguments of `load_problem`, and `searcher`: names, paths of files, or tables."""
    folder: str
    count: str = "all"
    """Designs to count against the budget."""
    after: tuple[str, ...] = ()
    """Folders of cells to start from, the nearest first: this cell waits for their designs."""
    start: tuple[str, ...] = ()
    axes: Mapping[str, str] = {}
    """The cell's values on the study's varied `AXES` and `axes`."""
    bounded: bool = True
    """Whether to compute a lower bound."""
    raced: bool = True
    """Whether to try other padded sizes: tensors between layers of a plan need the same sizes in all its searches."""

    def __attrs_post_init__(self) -> None:
        """`SearchError` for a budget or seed unfit for a search: before any other cell runs."""
        Budget(self.budget, count=self.count)
        check_seed(self.seed)

    @property
    def name(self) -> str:
        return f"{self.workload} on {self.hardware} with {', '.join((self.searcher, *self.axes.values()))}, seed {self.seed}"

    @property
    def names(self) -> dict[str, Any]:
        """Names to identify the cell among all cells of its study."""
        first = {key: getattr(self, key) for key in NAMES[:3]}
        return {**first, **self.axes, "seed": self.seed}


@attrs.frozen
class Outcome:
    """End of a cell: "done", "kept" from an earlier run, "failed" or "interrupted"."""

    cell: Cell
    state: str
    numbers: Mapping[str, Any] = attrs.field(factory=dict)
    """Values of `KEPT`; None without a valid design."""
    error: str = ""

    @property
    def row(self) -> dict[str, Any]:
        """The row of the cell in the tables, with the score over its bound (`gap`) and the `verdict` on convergence, if
        any; `broken_bound`, score over bound, if a result is below its proven bound."""
        gap = self.numbers.get("lowest_gap") or self.numbers.get("gap")
        costs = self.numbers.get("costs") or {}
        numbers = {key: self.numbers.get(key) for key in NUMBERS} | {"score": self.numbers.get("score")}
        wrong = {"broken_bound": gap} if broken(gap, "") else {}
        counted = {"technology": self.numbers.get("technology")}
        if self.numbers.get("gap"):
            counted["gap"] = self.numbers["gap"]
        if state := (self.numbers.get("convergence") or {}).get("state"):
            counted["verdict"] = state
        return self.cell.names | numbers | dict.fromkeys(COSTS) | {**costs} | counted | wrong


def cells_of(study: Study, folder: Path, base: Path = Path("."), what: str = "workload") -> list[Cell]:
    """Cells of a study's workloads or networks: workload, hardware, searcher, `AXES`, seed; paths relative to `base`."""
    given = study.networks if what == "network" else study.workloads
    by_searcher = study.spaces if isinstance(study.spaces, Mapping) else {}
    lists = {axis: getattr(study, key) for axis, key in AXES.items()}
    varied = {axis: values for axis, values in lists.items() if values and not isinstance(values, Mapping)}
    changes = [changes_of(name, values) for name, values in study.axes.items()]
    axes: Any = [*map(variants_of, (given, study.hardware, study.searchers, *varied.values())), *changes]
    cells = []
    for *found, seed in product(*axes, dict.fromkeys(study.seeds)):
        (label, subject), (hard_label, hard), (searcher_label, searcher), *others = found
        chosen = dict(zip((*varied, *short_names(study.axes)), others, strict=True))
        values = {axis: value for axis, (_, value) in chosen.items() if axis in varied}
        parts = {
            what: subject,
            "hardware": built_in(study.technology, hard),
            "searcher": searcher,
            "space": by_searcher.get(searcher, study.space),
            "objective": study.objective,
            "cost_model": study.cost_model,
            **{axis: value for axis, value in values.items() if axis not in MORE},
            "more": {MORE[axis]: value for axis, value in values.items() if axis in MORE and value},
        }
        labels = {axis: label for axis, (label, _) in chosen.items()}
        name = "--".join((label, hard_label, searcher_label, *labels.values(), f"seed{seed}"))
        data = {key: as_data(key, value, base) for key, value in parts.items() if value}
        for _, table in others[len(varied) :]:
            data = changed(data, table)
        cells.append(Cell(
            workload=label, hardware=hard_label, searcher=searcher_label, seed=seed, budget=study.budget,
            count=study.count, parts=data, folder=str(folder / name), axes=labels,
        ))  # fmt: skip
    return cells


def changes_of(axis: str, values: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """The variants of one of a study's `axes`, each with its label, as tables of values by key of a part."""
    tables = values if isinstance(values, Mapping) else {_short(value): {axis: value} for value in values}
    return [(label, tables[name]) for name, label in labels_of(tables).items()]


def short_names(axes: Iterable[str]) -> list[str]:
    """Names of axes as columns: `GLB.capacity` for `hardware.levels.GLB.capacity`, unless two would have one name."""
    names = {axis: re.sub(r"^(hardware\.levels|hardware|workload|space)\.", "", axis) for axis in axes}
    every = [*names.values(), *NAMES, *AXES]
    return [short if every.count(short) == 1 else axis for axis, short in names.items()]


def _short(value: Any) -> str:
    """`64-KB`, `0.5`, `a+b`."""
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def changed(parts: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Parts of a search with other values, by key: `hardware.levels.GLB.capacity`."""
    found = dict(parts)
    for path, value in values.items():
        part, *keys = path.split(".")
        table = found.get(part) or SPACE
        found[part] = _with(
            table if isinstance(table, Mapping) else {"extends": table, "name": Path(table).stem}, keys, value
        )
    return found


def _with(table: Mapping[str, Any], keys: Sequence[str], value: Any) -> dict[str, Any]:
    """A table with a value below these keys."""
    first, *rest = keys
    below = table.get(first)
    inner = _with(below if isinstance(below, Mapping) else {}, rest, value) if rest else plain(value)
    return {**table, first: inner}


def axes_in(row: Iterable[str]) -> tuple[str, ...]:
    """Columns of a study's table between the searcher and the seed."""
    names = list(row)
    return tuple(name for name in names[: names.index("seed")] if name not in NAMES) if "seed" in names else ()


def variants_of(values: Iterable[Any]) -> list[tuple[str, Any]]:
    """Each distinct name, path, table or list of names, with its label (`labels_of`)."""
    named = {_said(value): value for value in values}
    return [(label, named[text]) for text, label in labels_of(named).items()]


def _said(value: Any) -> str:
    if isinstance(value, Mapping):
        if (name := value.get("name")) and isinstance(name, str):
            return name
        return "-".join(f"{x}" for pair in value.items() for x in pair if x != "extends").replace("/", "-")
    return ("+".join(value) or OWN) if isinstance(value, tuple) else value


def no_design(found: Mapping[str, Any]) -> str:
    """Reason for a missing design: lacking resources of the nearest design, or the most frequent rejection."""
    rows: list[dict[str, Any]] = found.get("shortfalls") or []
    known: Any = ({key: math.nan if x is None else x for key, x in row.items()} for row in rows)
    lacks = [str(Shortfall(**row)) for row in known] or list(found.get("rejects") or ())[:1]
    return ": ".join(["no valid design was found", *filter(None, ["; ".join(lacks)])])


def chosen_in(results: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, list[str]]]:
    """Places by kind and name of the formats and mechanisms in several results, such as the layers of a network."""
    found: dict[str, dict[str, list[str]]] = {}
    for result in results:
        for kind, names in (result.get("chosen") or {}).items():
            for name in names:
                known = found.setdefault(kind, {}).setdefault(name, [])
                if isinstance(names, Mapping):  # not a result of an earlier version
                    known += [place for place in names[name] if place not in known]
    return found


def as_data(key: str, value: Any, base: Path) -> Any:
    """A part of a search as plain data, with paths relative to `base`. `SpecError` for a value without a TOML form."""
    try:
        return plain(located(key, value, base))
    except TypeError as error:
        raise SpecError.at("", key, str(error)) from None


def placed(folder: Path, names: Iterable[str], partial: bool, stays: bool) -> Path:
    """Folder for tables: `folder`, or `partial` below if complete tables stay; complete tables remove partial ones."""
    beside = folder / PARTIAL_FOLDER
    if partial and stays:
        logger.warning("%s has the tables of this run, which is not complete; those of the complete run stay", beside)
        return beside
    if not partial:
        for name in names:
            (beside / name).unlink(missing_ok=True)
        with suppress(OSError):  # it holds something else, or is not there
            beside.rmdir()
    return folder


def read_table(folder: Path) -> list[dict[str, str]]:
    """Rows of a study's `table.csv`, after `check_table`."""
    check_table(folder)
    return read_csv(folder / TABLE_FILES[0])


def check_table(folder: Path) -> None:
    """SpecError if the `study.json` of a folder names another format or version."""
    if (folder / TABLE_FILES[2]).is_file():
        read_result(folder / TABLE_FILES[2], STUDY)


def built_in(technology: Any, hardware: Any) -> Any:
    """The hardware in this technology, or in its own."""
    table = hardware if isinstance(hardware, Mapping) else {"extends": hardware, "name": hardware}
    return {**table, "technology": plain(technology)} if technology else hardware


def running(cells: Iterable[Cell]) -> tuple[int, int]:
    """Number of cells or layers with a running search, and about how many designs these evaluated."""
    folders = [[Path(cell.folder, JOURNAL_FILE), *Path(cell.folder).glob(f"*/{JOURNAL_FILE}")] for cell in cells]
    counts = [count for journals in folders if (count := sum(map(designs_in, journals)))]
    return len(counts), sum(counts)


def folder_of(study: Study, out: str | os.PathLike[str] = "") -> Path:
    """Folder for the results of a study: `out`, or else the study's own setting.

    The setting may come from a stranger, so the folder must be below the working directory, and new, empty, or a study's."""
    if out:
        return not_of_a_search(out)
    if not study.out:
        raise SearchError(f"study '{study.name}' does not say where its results go: set 'out' in it, or give a folder")
    here, folder = Path.cwd().resolve(), Path(study.out).resolve()
    said = f"study '{study.name}': out = {shortened(study.out)}"
    if study.out.startswith("~") or here not in folder.parents:
        raise SearchError(f"{said} is not below the working directory; give --out")
    try:
        foreign = [entry.name for entry in folder.iterdir() if not _is_of_study(entry)] if folder.is_dir() else []
    except OSError as error:
        raise SearchError(f"{said}: {error.strerror}; give another folder with --out") from None
    if foreign:
        raise SearchError(f"{said} holds {foreign[0]!r}, which is not of a study; give another folder with --out")
    return folder


def not_of_a_search(out: str | os.PathLike[str]) -> Path:
    """A folder for the results of many searches; `SearchError` if it already belongs to a single search."""
    folder = Path(out).expanduser().resolve()
    if (folder / RESULT_FILE).is_file():
        text = f"holds the result of a search, {RESULT_FILE}; choose another folder for those of a run"
        raise SearchError(f"{folder} {text}")
    return folder


def _is_of_study(entry: Path) -> bool:
    """Whether a study made this file or folder."""
    if not entry.is_dir():
        return _is_table(entry) or entry.name in (PAGE_FILE, COMMAND_FILE) or is_temporary(entry)
    if entry.name == PARTIAL_FOLDER:
        return all(_is_table(below) or is_temporary(below) for below in entry.iterdir())
    return re.fullmatch(r".+--.+--.+--seed-?\d+", entry.name) is not None and _is_result(entry, layers=True)


def _is_table(entry: Path) -> bool:
    by = re.fullmatch(r"comparison-by-[a-z_-]+?((-means)?\.csv|\.md)", entry.name)
    return by is not None or entry.name in (*TABLE_FILES, *COMPARISON_FILES)


def _is_result(folder: Path, layers: bool) -> bool:
    """Whether everything in this folder was written by a search, or by the searches of a network's layers."""
    return (folder / RESULT_FILE).is_file() or all(
        below.name in (PLAN_FOLDER, STEADY_FOLDER) or _is_result(below, layers=False)
        if layers and below.is_dir()
        else below.name in (JOURNAL_FILE, *NETWORK_FILES, *FUSED_FILES, *STEADY_FILES, PAGE_FILE, COMMAND_FILE)
        or is_temporary(below)
        for below in folder.iterdir()
    )


def labels_of(references: Iterable[str]) -> dict[str, str]:
    """Labels of names and paths: a file without folder and ending, if unambiguous."""
    references = list(dict.fromkeys(references))
    stems = [Path(text).stem if is_path(text) else text for text in references]
    long = [re.sub(r"\.(toml|ya?ml)$", "", text) if is_path(text) else text for text in references]
    labels = [stem if stems.count(stem) == 1 else text for stem, text in zip(stems, long, strict=True)]
    slugs = [re.sub(r"[^0-9A-Za-z._+=-]+", "-", label).strip("-.") or "unnamed" for label in labels]
    digests = [hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:6] for text in references]
    return {
        text: slug if slugs.count(slug) == 1 and len(slug) <= LABEL else f"{slug[:LABEL]}-{digest}"
        for text, slug, digest in zip(references, slugs, digests, strict=True)
    }
