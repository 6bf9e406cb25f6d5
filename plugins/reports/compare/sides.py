"""Sides of a comparison: the folder of a search, a network or a plan, with costs and additive parts."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import attrs

from sparsemap.errors import SearchError, listed, unknown
from sparsemap.file_formats import NETWORK as NETWORK_FORMAT
from sparsemap.files import grouped
from sparsemap.pieces.contracts.hardware import BANDWIDTHS
from sparsemap.pieces.data_specs import Hardware
from sparsemap.searching.breakdown import STALLS, Breakdown
from sparsemap.searching.result import DESIGN_FILE, RESULT_FILE
from sparsemap.searching.written import read_result
from sparsemap.spec.units import UNLIMITED
from sparsemap.study.cells import NETWORK_FILES, axes_in, labels_of, read_table

NETWORK, TABLE = "network.json", "table.csv"
WHOLE = "all levels"
"""The level of operations, and of cost models without levels."""
AGAIN = "run its command again to have it back (sparsemap run NETWORK --hardware HARDWARE --out DIR)"
OF_SEARCH = (
    "edp",
    "energy_pj",
    "cycles",
    "score",
    "workload",
    "hardware",
    "evaluations",
    "budget",
    "proposed",
    "seed",
    "searcher",
)
OF_NETWORK = ("network", "hardware", "layers", "edp", "energy_pj", "cycles", "complete", "searcher", "seed")
"""Required keys of `result.json` and `network.json`."""
Table = Mapping[str, Any]


@attrs.frozen
class SidePart:
    """A layer of a network, a step of a plan, or the whole of a search."""

    name: str
    repeat: int
    costs: Breakdown
    folder: Path
    cycle_s: float
    """Seconds of a cycle; NaN without a clock."""
    about: Mapping[str, Any] = {}

    @property
    def design_file(self) -> Path:
        return self.folder / DESIGN_FILE if self.folder.is_dir() else self.folder

    @property
    def energy_pj(self) -> float:
        return self.repeat * self.costs.energy_pj if self.known else math.nan

    @property
    def seconds(self) -> float:
        return self.repeat * self.costs.cycles * self.cycle_s if self.known else math.nan

    @property
    def known(self) -> bool:
        """True with a design."""
        return self.costs.energy_pj is not None

    @property
    def limit(self) -> str:
        return self.costs.limit.removeprefix("the ")

    def design_table(self) -> dict[str, Any]:
        """Table of the design file; empty without a file."""
        return tomllib.loads(self.design_file.read_text("utf-8")) if self.design_file.is_file() else {}

    def to_dict(self) -> dict[str, Any]:
        return {"energy_pj": self.energy_pj, "seconds": self.seconds, "limit": self.limit}


def by_level(costs: Breakdown, key: str) -> dict[str, float]:
    """`energy_pj` by level and charge, or cycles by limit, lost cycles and stalls; values add up to the total."""
    if key == "energy_pj":
        return {name: sum(spent.values()) for name, spent in costs.energies.items()} or {WHOLE: costs.energy_pj}
    timed = [(row.cycles, row.name) for row in reversed(costs.rows) if row.cycles is not None]
    slowest, name = max(timed, key=itemgetter(0), default=(costs.cycles, WHOLE))
    lost = costs.lost if timed and name == costs.rows[-1].name else {}
    stalls = {STALLS: costs.waiting_cycles} if timed and costs.waiting_cycles else {}
    return {name: slowest - math.fsum(lost.values()), **lost, **stalls}


@attrs.frozen
class Compared:
    """A search or a network on a chip."""

    label: str
    subject: str
    """Name of the workload or the network."""
    hardware: str
    searched: str
    """Searcher and seed."""
    model: str
    model_type: str
    technology: str
    objective: str
    numbers: Table
    """`edp`, `energy_pj`, `cycles`, `costs`, `gap`; None without a design."""
    parts: tuple[SidePart, ...]
    folder: Path
    chip: Table
    """Hardware table of the designs; empty if unknown."""
    planned: bool = False
    """True if a plan keeps tensors between layers on chip."""
    seeds: tuple[Compared, ...] = ()
    """Results of several seeds, this one among them."""

    @property
    def searcher(self) -> str:
        return str(self.numbers["searcher"])

    @property
    def costs(self) -> Mapping[str, float]:
        return self.numbers.get("costs") or {}

    @property
    def limit(self) -> str:
        return self.parts[0].limit if len(self.parts) == 1 else ""

    @property
    def effort(self) -> str:
        """`200 designs a layer`; empty if unknown."""
        budget = self.numbers.get("budget")
        return f"{budget:,} designs" + " a layer" * ("layers" in self.numbers) if budget else ""

    @property
    def word_bits(self) -> int | None:
        bits = self.chip.get("word_bits", attrs.fields(Hardware).word_bits.default)
        return bits if self.chip else None

    @property
    def unlimited(self) -> dict[str, bool]:
        """By memory on chip: True without a limit of bandwidth."""
        inner = [level for level in self.chip.get("levels", ())[1:] if level.get("capacity")]
        return {level["name"]: not {level.get(key) for key in BANDWIDTHS} - {None, UNLIMITED} for level in inner}

    def value(self, key: str) -> float | None:
        """A cost by name; EDP in pJ * cycles instead of J * s without a clock."""
        found = self.costs.get(key)
        return self.numbers.get("edp") if found is None and key == "edp_js" else found

    def total(self, key: str) -> float:
        """Sum of `energy_pj` or `seconds` over the parts."""
        return math.fsum(getattr(part, key) for part in self.parts if part.known)


def is_result(path: Path) -> bool:
    """True for the folder of a search, a network or a study."""
    return any((path / name).is_file() for name in (RESULT_FILE, NETWORK, TABLE))


def sides_of(path: Path, planned: bool = False) -> list[Compared]:
    """Sides of a folder: a search, a network, each cell of a study, or each folder of results below.

    `planned`: networks with a plan give its steps and totals instead of layers. `SearchError` for a folder without
    results.
    """
    if (path / RESULT_FILE).is_file():
        return [_search(path)]
    if (path / NETWORK).is_file():
        return [_network(path, planned)]
    if (path / TABLE).is_file():
        below = [name for row in read_table(path) if (name := cell_folder(path, row)) is not None]
    else:
        below = [name for name in sorted(path.iterdir()) if is_result(name)] if path.is_dir() else []
    if (path / NETWORK_FILES[0]).is_file() and not any((one / NETWORK).is_file() for one in below):  # no chip's folder
        raise SearchError(f"{path}: the folder of a network, whose {NETWORK} is gone; {AGAIN}")
    if not below:
        made = f"{RESULT_FILE} of a search, {NETWORK} of a network, or {TABLE} of a study"
        raise SearchError(f"{path}: nothing to report: expected the folder of a search, with {made}")
    prefix = f"{path.resolve().name}/" if is_result(path) else ""
    return [attrs.evolve(side, label=f"{prefix}{side.label}") for name in below for side in sides_of(name, planned)]


def alike(paths: Sequence[Path]) -> tuple[list[list[Compared]], list[str]]:
    """Sides of each path by their plans; all layer by layer, with a note, if only some of a group have a plan."""
    found = [sides_of(path, planned=True) for path in paths]
    every = labelled([side for sides in found for side in sides])
    mixed = [side for group in compared(every) if len({side.planned for side in group}) > 1 for side in group]
    if not mixed:
        return found, []
    labels = [[side.label for side in mixed if side.planned is has] for has in (True, False)]
    some, others = (listed(names) if len(names) < 4 else f"{len(names)} results" for names in labels)
    note = f"All is layer by layer: {some} alone came with a plan of tensors on chip, not {others} (`run --fuse`)."
    return [sides_of(path) for path in paths], [note]


def cell_folder(study: Path, row: Mapping[str, str]) -> Path | None:
    """Folder of the cell in a row of a study's table; None without a result."""
    first = "--".join((row["workload"], row["hardware"], row["searcher"]))
    more = [row[key] for key in axes_in(row) if row.get(key)]
    folder = study / "--".join((first, *more, f"seed{row['seed']}"))
    return folder if any((folder / name).exists() for name in (RESULT_FILE, NETWORK)) else None


def _search(path: Path) -> Compared:
    table = checked(path, read_result(path), OF_SEARCH)
    costs = table.get("costs") or {}
    cycle = costs["seconds"] / costs["cycles"] if costs.get("seconds") else math.nan
    part = SidePart(table["workload"], 1, Breakdown.from_dict(table), path, cycle, table)
    return _side(path, table["workload"], table, table, [part])


def _side(path: Path, subject: str, table: Table, known: Table, parts: Sequence[SidePart], **more: Any) -> Compared:
    """`known`: the table of a search, or of a layer, with cost model and objective."""
    # results without an identity, such as those of a designed chip, are told by their first design
    identity = known.get("identity") or next(filter(None, (part.design_table() for part in parts)), {})
    model, chip = identity.get("cost_model", {}), identity.get("hardware", {})
    of = known.get("technology") or chip.get("technology") or ""
    return Compared(
        label=path.resolve().name, subject=subject, hardware=table["hardware"],
        searched=f"{table['searcher']}, seed {table['seed']}", model=model.get("name") or "", model_type=model.get("type") or "",
        technology=of if isinstance(of, str) else of.get("name", "its own"), objective=known.get("objective", ""),
        numbers=table, parts=tuple(parts), folder=path, chip=chip, **more,
    )  # fmt: skip


def _network(path: Path, planned: bool) -> Compared:
    table = checked(path, read_result(path / NETWORK, NETWORK_FORMAT), OF_NETWORK)
    cycle = table["seconds"] / table["cycles"] if table.get("seconds") and table["cycles"] else math.nan
    folders = {name: path / label for name, label in labels_of(row["searched"] for row in table["layers"]).items()}
    results = {name: result_of(folder) for name, folder in folders.items()}
    known = next(filter(None, results.values()), {})
    if planned and (plan := plan_in(table)):
        rows = [(row, Breakdown.from_dict(row, row["by_level"])) for row in plan["layers"]]
        steps = [SidePart(row["layer"], 1, each, path / row["design"], cycle, row) for row, each in rows]
        return _side(path, table["network"], {**table, **plan}, known, steps, planned=True)
    parts = []
    for layer in table["layers"]:
        found = results[layer["searched"]]
        if found is not None and layer["energy_pj"] is not None:  # a layer that was stopped, or has no design
            costs, folder = Breakdown.from_dict(layer, found), folders[layer["searched"]]
            parts.append(SidePart(layer["layer"], layer["repeat"], costs, folder, cycle, layer))
    return _side(path, table["network"], table, known, parts)


def gone(path: Path) -> str:
    """Layers of a network without result or design files, and the way to restore the files; empty if all are there."""
    rows = read_result(path / NETWORK, NETWORK_FORMAT).get("layers", ()) if (path / NETWORK).is_file() else ()
    folders = labels_of(row["searched"] for row in rows)
    found = {row["searched"] for row in rows if row.get("energy_pj") is not None}
    names = [
        name for name, label in folders.items()
        if name in found and not all((path / label / file).is_file() for file in (RESULT_FILE, DESIGN_FILE))
    ]  # fmt: skip
    return f"{path}: the files of {listed(names)} are gone; {AGAIN}" if names else ""


def plan_in(network: Table) -> dict[str, Any]:
    """The complete plan of a network, or an empty table."""
    plan = network.get("fused") or {}
    return plan if plan.get("complete") else {}


def result_of(path: Path) -> dict[str, Any]:
    """The `result.json` of a folder; empty without one."""
    try:
        return read_result(path)
    except SearchError:
        return {}


def checked(path: Path, table: Any, keys: Iterable[str]) -> dict[str, Any]:
    """A table of a file; `SearchError` for a missing key."""
    for key in keys:
        if not isinstance(table, dict) or key not in table:
            raise SearchError(f"{path}: has no '{key}': not a result as SparseMap writes it")
    if len({table[key] is None for key in ("edp", "energy_pj", "cycles") if key in keys}) > 1:
        raise SearchError(f"{path}: has some of 'edp', 'energy_pj' and 'cycles', expected all or none")
    return table


def labelled(sides: Sequence[Compared]) -> list[Compared]:
    """Sides with distinct labels: name of the folder, or its path."""
    for names in ([side.label for side in sides], [str(side.folder) for side in sides]):
        if len(set(names)) == len(names):
            return [attrs.evolve(side, label=name) for side, name in zip(sides, names, strict=True)]
    return [attrs.evolve(side, label=f"{side.folder} ({at})") for at, side in enumerate(sides, 1)]


def named(name: str, sides: Sequence[Compared]) -> Compared:
    """The side of a label, a folder or a hardware; `SearchError` for other names."""
    found = [side for side in sides if name in (side.label, side.hardware) or Path(name) == side.folder]
    if not found:
        raise SearchError(f"--reference: {unknown('result', name, [side.label for side in sides])}")
    return found[0]


def name_of(side: Compared, sides: Sequence[Compared]) -> str:
    """The hardware if all differ, else the label."""
    known = [one.hardware for one in sides]
    return side.hardware if len(set(known)) == len(known) else side.label


def compared(sides: Iterable[Compared]) -> list[list[Compared]]:
    """Groups of comparable sides: the same subject and cost model, or models of different types on different chips."""
    found: list[list[Compared]] = []
    for every in grouped(sides, lambda side: side.subject).values():
        models = grouped(every, lambda side: side.model)
        counted = {(side.hardware, side.model) for side in every}
        own = len({hardware for hardware, _ in counted}) == len(counted)
        together = own and len({side.model_type for side in every}) == len(models)
        found += [every] if together else models.values()
    return found
