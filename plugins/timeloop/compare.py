"""External set-ups beside the output of their own evaluator: `sparsemap import FOLDER ... --compare`.

FOLDER is a clone of Accelergy-Project/micro22-sparseloop-artifact, of Accelergy-Project/timeloop-accelergy-exercises,
or any folder with inputs beside `timeloop-model.stats.txt`. Every set-up is imported, evaluated and compared. Deviating
or excluded set-ups are listed with the cause."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from sparsemap.errors import Mistake, SparseMapError, SpecError
from sparsemap.files import check_file, grouped
from sparsemap.markdown import markdown_table
from sparsemap.pieces.loading import load
from sparsemap.pieces.registry import Registry
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.spec.notes import Imported
from sparsemap.spec.yaml_tables import text_of

from .project import import_project

STATS = ("timeloop-model.stats.txt", "timeloop-mapper.stats.txt")
STATS_BYTES = 1 << 20
PARTS = 8
"""Most input files of a set-up in parts beside its output."""
WHOLE = ("aggregated_input.yaml", "parsed-processed-input.yaml")
CYCLES = re.compile(r"^Cycles: (\d+)$", re.M)
ENERGY = re.compile(r"^ +Energy \(total\) +: ([\d.e+-]+) pJ$", re.M)
LEVEL = re.compile(r"^=== (.+) ===$", re.M)
NETWORKS = re.compile(r"^Networks$", re.M)
SMALL = 1e-3
"""Relative deviation of an energy below which energies count as equal."""
FEW = 1e-5
"""Relative deviation of cycles explained by single counts."""
CAUSES = (
    ("stream;", "words that stream through"),
    ("neighbours hand each other no words", "words of windows that neighbours hand on"),
)
"""Text in a level's notes, and the cause of an energy deviation; notes of other levels count if no own note matches."""
LAYOUTS: dict[str, tuple[str, ...]] = {
    r"(?P<root>.*/fig12_[^/]*)/ref_outputs/[^/]+/(?P<layer>L\d+)/(?P<density>\w+)/output": (
        *("hardware-specs/designs/arch.yaml", "hardware-specs/configurations/SI-SW.yaml"),
        "mappings/mobilenet0.5-sparse/{layer}-perfect_factor.yaml",
        *("workload/mobilenet0.5-sparse/{density}/{layer}.yaml", "ert_art/ERT.yaml"),
    ),
    r"(?P<root>.*/fig1_[^/]*)/ref_outputs/output_(?P<density>[\d.]+)_(?P<format>\w+)": (
        *("arch/arch.yaml", "workload/spmspm.prob.{density}.yaml", "sparse-opt/{format}.yaml", "ert_art/ERT.yaml"),
        "ref_outputs/output_{density}_{format}/timeloop-mapper.map.yaml",
    ),
}
"""Input files of outputs without inputs beside them, for Sparseloop's artifact (MICRO 2022)."""


@attrs.frozen
class SetUp:
    """Files of a set-up, and the printed results of Timeloop."""

    group: str
    name: str
    """Folder of the output, relative to the root."""
    files: tuple[Path, ...]
    cycles: int
    energy_pj: float
    levels: Mapping[str, float]
    """pJ by storage level, the compute units first."""


def set_ups(root: Path) -> Iterator[SetUp]:
    """The set-ups below a folder with both inputs and outputs."""
    for stats in sorted(path for path in root.rglob("*.stats.txt") if path.name in STATS):
        folder = stats.parent
        files = inputs_of(folder, stats.name.partition(".")[0])
        if not files:
            continue
        check_file(stats, STATS_BYTES)
        text = text_of(stats, STATS_BYTES)
        cycles, energies = CYCLES.findall(text), ENERGY.findall(text)
        if cycles and energies:
            storage = LEVEL.split(NETWORKS.split(text)[0])[1:]
            parts = zip(*[iter(storage)] * 2, strict=True)
            levels = {level: sum(map(float, ENERGY.findall(part))) for level, part in parts}
            name = folder.relative_to(root).as_posix()
            yield SetUp(_group(root, stats), name, files, int(cycles[-1]), sum(map(float, energies)), levels)


def _group(root: Path, stats: Path) -> str:
    """Name of the folder with the reference outputs, plus the design if designs differ within the folder."""
    parts = list(stats.parent.relative_to(root).parts)
    cut = next((i for i, part in enumerate(parts) if part.replace("-", "_") in REFERENCES), len(parts))
    base = parts[cut - 1] if cut > 0 else root.name
    inside = [part for part in parts[cut + 1 :] if part not in ("output", "default_problem")]
    last = inside[-1] if inside else ""
    if base.startswith("fig15"):
        return f"{base[:5]} {last}"
    if base.startswith("fig1_"):
        return f"fig1 {last.split('_', 2)[-1]}"
    if base.startswith(("fig12", "fig13", "table7")):
        return f"{base.split('_')[0]} {last if base.startswith('fig12') else parts[cut]}"
    return base


REFERENCES = ("ref_outputs", "ref_output", "dense_outputs", "outputs")


def inputs_of(folder: Path, program: str) -> tuple[Path, ...]:
    """The input files of an output; empty if missing."""
    for place in (folder, folder.parent):
        if whole := _first(place, WHOLE):
            parts = (_first(place, (name, f"{program}.{name}")) for name in ("ERT.yaml", "map.yaml"))
            return (whole, *filter(None, parts))
    for pattern, names in LAYOUTS.items():
        if match := re.fullmatch(pattern, folder.as_posix()):
            files = tuple(Path(match["root"]) / name.format(**match.groupdict()) for name in names)
            return files if all(path.is_file() for path in files) else ()
    beside = sorted(path for path in folder.glob("*.yaml") if not path.name.startswith("timeloop-"))
    texts = "".join(text_of(path, STATS_BYTES) for path in beside[:PARTS])
    return tuple(beside) if all(re.search(rf"^{key}:", texts, re.M) for key in ("architecture", "problem")) else ()


def _first(place: Path, names: Sequence[str]) -> Path | None:
    return next((place / name for name in names if (place / name).is_file()), None)


# ------------------------------------------------------------------------------------------------------------- comparison


@attrs.frozen
class CaseOutcome:
    """Comparison of a set-up: ratios to Timeloop's cycles and energy, or the reasons against a comparison."""

    set_up: SetUp
    imported: Imported | None
    cycles: float = 0.0
    energy: float = 0.0
    levels: Mapping[str, float] = attrs.field(factory=dict)
    """pJ by storage level, for levels that Timeloop prints too."""
    reasons: tuple[str, ...] = ()
    """Reasons for an exclusion or deviation."""


def outcome(one: SetUp, registry: Registry, older: bool = False) -> CaseOutcome:
    """Import, evaluate and compare a set-up; `older`: count as evaluators before v3.0.3."""
    imported: Imported | None = None
    try:
        imported = import_project(one.files, older=older)
        design = designed(imported, registry, {} if older else {"quirks": "timeloop-v3"})
        evaluation = design.problem.cost_model.evaluate(design.batch, design.problem, detail=True)
    except SparseMapError as error:
        return CaseOutcome(one, imported, reasons=tuple(str(error).splitlines()))
    if not evaluation.valid[0]:
        return CaseOutcome(one, imported, reasons=(f"not valid: {', '.join(evaluation.reasons_of(0))}",))
    cycles, energy = float(evaluation.cycles[0]) / one.cycles, float(evaluation.energy_pj[0]) / one.energy_pj
    reasons = ["cycles: single counts" if abs(cycles - 1) < FEW else "cycles"] if abs(cycles - 1) > 1e-9 else []
    assert evaluation.detail is not None and evaluation.detail.energy_pj is not None
    names, each = [level.name for level in design.problem.levels], evaluation.detail.energy_pj.sum(axis=(0, 2))
    ours = {name: float(pj) for name, pj in zip(names, each, strict=True) if name in one.levels}
    if abs(energy - 1) > SMALL:
        off = [name for name, pj in ours.items() if abs(pj - one.levels[name]) > SMALL * one.energy_pj]
        reasons += [f"energy: {name}, {_cause(imported, name)}" for name in off]
    return CaseOutcome(one, imported, cycles, energy, ours, tuple(reasons))


def designed(imported: Imported, registry: Registry, model: Mapping[str, Any]) -> Design:
    """The design of a project, with changed keys of the cost model; `SpecError` with all causes if there is none."""
    if "design" not in imported.tables:
        causes = dict.fromkeys(f"{note.cause}: {note.text}" for note in imported.missing if note.stops)
        raise SpecError(Mistake("", "", cause) for cause in causes or ("no mapping",))
    table = dict(imported.tables["design"])
    table["cost_model"] = {"extends": table["cost_model"], **model} if model else table["cost_model"]
    return design_file.structure(table, registry, "design.toml")


def _cause(imported: Imported, level: str) -> str:
    texts = [note.text for note in imported.notes]
    own = [text for text in texts if text.startswith(f"{level}:")]
    found = (cause for some in (own, texts) for sign, cause in CAUSES if any(sign in text for text in some))
    return next(found, "other counts")


def compared(roots: Sequence[Path], older: bool = False) -> list[CaseOutcome]:
    """Comparisons of the set-ups below folders."""
    registry = load()
    return [outcome(one, registry, older) for root in roots for one in set_ups(root)]


def rows(outcomes: Sequence[CaseOutcome]) -> list[dict[str, Any]]:
    """Cycles and energy of every set-up beside the reference; 0 for excluded set-ups."""
    found = []
    for one in outcomes:
        given = one.set_up
        levels = (f"{name} {pj:,.0f} ({given.levels[name]:,.0f})" for name, pj in one.levels.items())
        found.append({
            "group": given.group, "set_up": given.name,
            "cycles": round(one.cycles * given.cycles), "reference_cycles": given.cycles,
            "energy_pj": one.energy * given.energy_pj, "reference_energy_pj": given.energy_pj,
            "levels_pj": "; ".join(levels), "reason": "; ".join(one.reasons),
        })  # fmt: skip
    return found


def report(outcomes: Sequence[CaseOutcome]) -> str:
    """A table of set-ups by group, with the causes of deviations and exclusions."""
    if not outcomes:
        return "no set-up with inputs and a reference output"
    head = "set-ups,tried,evaluated,cycles equal,cycles ratio,energy within 0.1 %,energy ratio,cause"
    table = [_row(name, found) for name, found in sorted(grouped(outcomes, lambda one: one.set_up.group).items())]
    return markdown_table([head.split(","), *table, [*_row("all", outcomes)[:-1], ""]], "<>>>>>><")


def _row(name: str, found: Sequence[CaseOutcome]) -> list[str]:
    done = [one for one in found if one.cycles]
    equal = sum(abs(one.cycles - 1) < 1e-9 for one in done)
    close = sum(abs(one.energy - 1) < SMALL for one in done)
    spans = []
    for key in ("cycles", "energy"):
        low, high = (f"{of((getattr(one, key) for one in done), default=0.0):.4f}" for of in (min, max))
        spans.append("-" if not done else low if low == high else f"{low} to {high}")
    causes = Counter(reason for one in found for reason in one.reasons)
    told = "; ".join(f"{reason} ({count})" for reason, count in sorted(causes.items()))
    return [name, str(len(found)), str(len(done)), str(equal), spans[0], str(close), spans[1], told]
