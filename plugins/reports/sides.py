"""Results as the sides of a comparison: what each costs, the parts it is the sum of, and which part decides."""

from __future__ import annotations

import math
import statistics
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from sparsemap.csv_files import read_csv
from sparsemap.errors import SearchError, listed, unknown
from sparsemap.files import grouped
from sparsemap.pieces.contracts.hardware import BANDWIDTHS
from sparsemap.pieces.data_specs import Hardware
from sparsemap.searching.breakdown import Breakdown
from sparsemap.searching.result import DESIGN_FILE, RESULT_FILE
from sparsemap.searching.written import read_result
from sparsemap.spec.units import UNLIMITED, format_energy
from sparsemap.study.cells import AXES, NETWORK_FILES, labels_of

from .tables import Cell, PageTable, number, share
from .wording import time_text

NETWORK, TABLE = "network.json", "table.csv"
Table = Mapping[str, Any]
WORTH = {"energy": "energy_pj", "delay": "seconds", "seconds": "seconds", "area": "area_mm2", "power": "power_w"}
"""The cost that ranks results, by objective; energy times seconds for all others."""
WORTH_NAMES = {
    "energy_pj": "energy", "seconds": "time", "area_mm2": "area", "power_w": "power", "edp_js": "energy x time",
    "edp": "EDP",
}  # fmt: skip


@attrs.frozen
class SidePart:
    """A layer of a network, all its repetitions together in `share`; or the whole of a search."""

    name: str
    repeat: int
    costs: Breakdown
    """Of one repetition."""
    folder: Path
    """Where its design is."""
    cycle_s: float
    """Seconds of a cycle; NaN where the clock is not known."""
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
        """Whether it has a design."""
        return self.costs.energy_pj is not None

    def design_table(self) -> dict[str, Any]:
        """The table of its design; empty where there is none."""
        return tomllib.loads(self.design_file.read_text("utf-8")) if self.design_file.is_file() else {}

    @property
    def limit(self) -> str:
        return self.costs.limit.removeprefix("the ")

    def to_dict(self) -> dict[str, Any]:
        return {"energy_pj": self.energy_pj, "seconds": self.seconds, "limit": self.limit}


@attrs.frozen
class Compared:
    """A search or a network on a chip."""

    label: str
    subject: str
    """The workload or the network."""
    hardware: str
    searcher: str
    searched: str
    """Searcher and seed."""
    model: str
    model_type: str
    technology: str
    objective: str
    numbers: Mapping[str, Any]
    """`edp`, `energy_pj`, `cycles`, `costs`, `gap`, None where there is no design."""
    parts: tuple[SidePart, ...]
    folder: Path
    word_bits: int | None = None
    """None: its hardware is not known."""
    unlimited: tuple[str, ...] = ()
    """Memories on chip without a bandwidth .."""
    limited: int = 0
    """.. and how many have one."""
    units: bool | None = None
    """Whether its hardware says which sparse units are built, whose area then counts; None: not known."""
    planned: bool = False
    """Whether tensors between layers stay on chip where a plan says so."""
    seeds: tuple[Compared, ...] = ()
    """The same searched with several seeds, of which it is one."""

    @property
    def costs(self) -> Mapping[str, float]:
        return self.numbers.get("costs") or {}

    @property
    def limit(self) -> str:
        return self.parts[0].limit if len(self.parts) == 1 else ""

    @property
    def effort(self) -> str:
        """`200 designs a layer`; empty where that is not known."""
        budget = self.numbers.get("budget")
        return f"{budget:,} designs" + " a layer" * ("layers" in self.numbers) if budget else ""

    def value(self, key: str) -> float | None:
        """A cost by name, `edp_js` as pJ * cycles in results of earlier versions."""
        found = self.costs.get(key)
        return self.numbers.get("edp") if found is None and key == "edp_js" else found


def is_result(path: Path) -> bool:
    """Whether a folder is that of a search, a network or a study."""
    return any((path / name).is_file() for name in (RESULT_FILE, NETWORK, TABLE))


def sides_of(path: Path, planned: bool = False) -> list[Compared]:
    """The folder of a search or of a network as a side, that of a study as a side per cell, any other one that has such
    folders as their sides; `SearchError` where there are none. `planned`: of networks with a plan its steps and totals,
    otherwise layer by layer."""
    if (path / RESULT_FILE).is_file():
        return [_search(path)]
    if (path / NETWORK).is_file():
        return [_network(path, planned)]
    if (path / TABLE).is_file():
        below = [name for row in read_csv(path / TABLE) if (name := cell_folder(path, row)) is not None]
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
    """The sides of each path, by their plans; but all layer by layer where some of those that are compared have a plan and
    others have none, and a sentence that says so."""
    found = [sides_of(path, planned=True) for path in paths]
    every = labelled([side for sides in found for side in sides])
    mixed = [side for group in compared(every) if len({side.planned for side in group}) > 1 for side in group]
    if not mixed:
        return found, []
    told = [[side.label for side in mixed if side.planned is has] for has in (True, False)]
    some, others = (listed(names) if len(names) < 4 else f"{len(names)} results" for names in told)
    said = f"All is layer by layer: {some} alone came with a plan of tensors on chip, not {others} (`run --fuse`)."
    return [sides_of(path) for path in paths], [said]


def cell_folder(study: Path, row: Mapping[str, str]) -> Path | None:
    """The folder of the cell of a study that a row of its table is of; None where it is not there."""
    first = "--".join((row["workload"], row["hardware"], row["searcher"]))
    more = [row[key] for key in AXES if row.get(key)]
    folder = study / "--".join((first, *more, f"seed{row['seed']}"))
    return folder if folder.is_dir() and any((folder / name).exists() for name in (RESULT_FILE, NETWORK)) else None


def _search(path: Path) -> Compared:
    table = checked(path, read_result(path), OF_SEARCH)
    costs = table.get("costs") or {}
    cycle = costs["seconds"] / costs["cycles"] if costs.get("seconds") else math.nan
    part = SidePart(table["workload"], 1, Breakdown.from_dict(table), path, cycle, table)
    return _side(path, table["workload"], table, table, [part])


def _side(path: Path, subject: str, table: Table, known: Table, parts: Sequence[SidePart]) -> Compared:
    """`known`: the table of a search, that of a layer for a network, which says cost model and objective."""
    # results without an identity, such as those of a designed chip, are told by their first design
    identity = known.get("identity") or next(filter(None, (part.design_table() for part in parts)), {})
    model, chip = identity.get("cost_model", {}), identity.get("hardware", {})
    of = known.get("technology") or chip.get("technology") or ""
    names = model.get("name") or "", model.get("type") or "", of if isinstance(of, str) else of.get("name", "its own")
    about = table["hardware"], str(table["searcher"]), f"{table['searcher']}, seed {table['seed']}", *names
    bits = chip.get("word_bits", attrs.fields(Hardware).word_bits.default) if chip else None
    inner = [level for level in chip.get("levels", ())[1:] if level.get("capacity")]
    free = tuple(x["name"] for x in inner if not {x.get(key) for key in BANDWIDTHS} - {None, UNLIMITED})
    units = bool(chip.get("units")) if chip else None
    ends: Any = known.get("objective", ""), table, tuple(parts), path, bits, free, len(inner) - len(free), units
    return Compared(path.resolve().name, subject, *about, *ends)


def _network(path: Path, planned: bool) -> Compared:
    table = checked(path, read_result(path / NETWORK), OF_NETWORK)
    cycle = table["seconds"] / table["cycles"] if table.get("seconds") else math.nan
    folders = {name: path / label for name, label in labels_of(row["searched"] for row in table["layers"]).items()}
    results = {name: result_of(folder) for name, folder in folders.items()}
    known = next(filter(None, results.values()), {})
    if planned and (plan := plan_in(table)):
        by_step = [Breakdown.from_dict(row, row["by_level"]) for row in plan["layers"]]
        rows = zip(plan["layers"], by_step, strict=True)
        steps = [SidePart(row["layer"], 1, each, path / row["design"], cycle, row) for row, each in rows]
        return attrs.evolve(_side(path, table["network"], {**table, **plan}, known, steps), planned=True)
    parts = []
    for layer in table["layers"]:
        found = results[layer["searched"]]
        if found is not None and layer["energy_pj"] is not None:  # a layer that was stopped, or has no design
            costs, folder = Breakdown.from_dict(layer, found), folders[layer["searched"]]
            parts.append(SidePart(layer["layer"], layer["repeat"], costs, folder, cycle, layer))
    return _side(path, table["network"], table, known, parts)


AGAIN = "run its command again to have it back (sparsemap run NETWORK --hardware HARDWARE --out DIR)"
"""What to do where files of a network are gone."""


def gone(path: Path) -> str:
    """The layers of a network whose folders have no result or no design any more, and what to do; empty where all have."""
    table = read_result(path / NETWORK) if (path / NETWORK).is_file() else {}
    rows, files = table.get("layers", ()), (RESULT_FILE, DESIGN_FILE)
    folders, found = (
        labels_of(row["searched"] for row in rows),
        {x["searched"] for x in rows if x.get("energy_pj") is not None},
    )
    lost = {name for name, label in folders.items() if not all((path / label / file).is_file() for file in files)}
    names = [name for name in folders if name in found & lost]
    return f"{path}: the files of {listed(names)} are gone; {AGAIN}" if names else ""


def plan_in(network: Mapping[str, Any]) -> dict[str, Any]:
    """The plan of a network where there is a complete one; empty otherwise."""
    plan = network.get("fused") or {}
    return plan if plan.get("complete") else {}


def result_of(path: Path) -> dict[str, Any]:
    """The `result.json` of a folder; nothing if it is not there."""
    try:
        return read_result(path)
    except SearchError:
        return {}


OF_SEARCH = ("edp", "energy_pj", "cycles", "score", "workload", "hardware", "evaluations", "budget", "proposed", "seed")
OF_NETWORK = ("network", "hardware", "layers", "edp", "energy_pj", "cycles", "complete", "searcher", "seed")


def checked(path: Path, table: Any, keys: Iterable[str]) -> dict[str, Any]:
    """A table of a file; `SearchError` if it lacks one of the keys."""
    for key in keys:
        if not isinstance(table, dict) or key not in table:
            raise SearchError(f"{path}: has no '{key}': not a result as SparseMap writes it")
    return table


def labelled(sides: Sequence[Compared]) -> list[Compared]:
    """With labels that tell sides apart: the folder, or its whole path."""
    for names in ([side.label for side in sides], [str(side.folder) for side in sides]):
        if len(set(names)) == len(names):
            return [attrs.evolve(side, label=name) for side, name in zip(sides, names, strict=True)]
    return [attrs.evolve(side, label=f"{side.folder} ({at})") for at, side in enumerate(sides, 1)]


def named(name: str, sides: Sequence[Compared]) -> Compared:
    """The side that a label, a folder or a hardware stands for; `SearchError` where there is none."""
    found = [side for side in sides if name in (side.label, side.hardware) or Path(name) == side.folder]
    if not found:
        raise SearchError(f"--reference: {unknown('result', name, [side.label for side in sides])}")
    return found[0]


def compared(sides: Iterable[Compared]) -> list[list[Compared]]:
    """Sides that are compared with each other: of one subject and cost model; of several models where each is of a type
    of its own, and counts chips that the others do not."""
    found: list[list[Compared]] = []
    for every in grouped(sides, lambda side: side.subject).values():
        models = grouped(every, lambda side: side.model)
        counted = {(side.hardware, side.model) for side in every}
        own = len({hardware for hardware, _ in counted}) == len(counted)
        together = own and len({side.model_type for side in every}) == len(models)
        found += [every] if together else models.values()
    return found


# ------------------------------------------------------------------------------------------------------------ rankings


def worth_of(sides: Iterable[Compared]) -> str:
    """The cost that ranks these sides: that of their objective if they have one in common."""
    objectives = {side.objective for side in sides}
    return WORTH.get(next(iter(objectives)), "edp_js") if len(objectives) == 1 else "edp_js"


def ratios(side: Compared, base: Compared, worth: str) -> list[float]:
    """A side's worth over another's, seed by seed; both by energy times seconds, or both by pJ * cycles where one has no
    clock; empty where that is not known."""
    found = []
    for one, other in zip(side.seeds or (side,), base.seeds or (base,), strict=False):
        key = "edp" if worth == "edp_js" and not all("edp_js" in x.costs for x in (one, other)) else worth
        values = [x.numbers.get("edp") if key == "edp" else x.value(key) for x in (one, other)]
        found += [values[0] / values[1]] if values[0] is not None and values[1] else []
    return found


def ratio(side: Compared, base: Compared, worth: str) -> float | None:
    """The geometric mean of `ratios`, if there are any."""
    found = ratios(side, base, worth)
    return None if not found else found[0] if len(found) == 1 else statistics.geometric_mean(found)


def in_order(sides: Iterable[Compared], worth: str) -> list[Compared]:
    """The best first, over all seeds."""

    def mean(side: Compared) -> float:
        values = [one.value(worth) for one in side.seeds or (side,)]
        return math.exp(math.fsum(math.log(x) if x else math.inf for x in values) / len(values))

    return sorted(sides, key=mean)


def deciding(side: Compared, other: Compared, worth: str = "edp_js") -> dict[str, float]:
    """By part that both have, what it has of the difference between two sides, the largest first, negative where it is worse;
    they add up to 1.

    A part weighs what it takes more of the energy, of the time, or of both, as shares of the mean of the two sides."""
    theirs, weights = {part.name: part for part in other.parts if part.known}, {}
    means = {key: (value(side, key) + value(other, key)) / 2 for key in PARTS if worth in ("edp_js", key)}
    for part in side.parts:
        if part.known and (match := theirs.get(part.name)):
            shares_of = ((getattr(match, key) - getattr(part, key)) / mean for key, mean in means.items())
            weights[part.name] = math.fsum(shares_of)
    whole = math.fsum(weights.values())
    shares = {name: weight / whole for name, weight in weights.items()} if whole else {}
    return dict(sorted(shares.items(), key=lambda row: -abs(row[1])))


def ranked(sides: Sequence[Compared]) -> tuple[list[Compared], dict[str, float]]:
    """The best first, and what parts have of its difference to the next one (`deciding`)."""
    worth = worth_of(sides)
    ordered = in_order(sides, worth)
    return ordered, deciding(ordered[0], ordered[1], worth)


def shares_text(sides: Sequence[Compared], worth: str) -> str:
    """Of what the shares of `layer_table` are; the best side first."""
    best, second = (name_of(side, sides) for side in sides[:2])
    return f"shares are of what {best} gains over {second} in {WORTH_NAMES[worth]}, negative where it loses"


def layer_table(sides: Sequence[Compared], shares: Mapping[str, float]) -> PageTable:
    """Layers, those that decide first, with what they take on each side in all repetitions."""
    parts = {name_of(side, sides): {part.name: part for part in side.parts} for side in sides}
    head = ["layer", "times", "share", *(each for x in parts for each in (f"time, {x}", "energy", "limited by"))]
    rows: list[list[Cell]] = []
    for name, part_of in shares.items():
        both = [has.get(name) for has in parts.values()]
        rows.append([name, next(str(part.repeat) for part in both if part), number(part_of, share)])
        for part in both:
            costs = (part.seconds, part.energy_pj) if part else (None, None)
            rows[-1] += [number(costs[0], time_text), number(costs[1], format_energy), part.limit if part else ""]
    return PageTable(head, rows)


PARTS = ("energy_pj", "seconds")
"""Costs that add up over the parts."""


def value(side: Compared, key: str) -> float:
    return math.fsum(getattr(part, key) for part in side.parts if part.known)


def name_of(side: Compared, sides: Sequence[Compared]) -> str:
    """The hardware where that tells the sides apart, else the label."""
    known = [one.hardware for one in sides]
    return side.hardware if len(set(known)) == len(known) else side.label
