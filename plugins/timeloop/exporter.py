"""Writes a design as the complete input of `timeloop-model`, with a README: how to run it, and what it should say."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs

from sparsemap import Exporter
from sparsemap.errors import DesignError
from sparsemap.files import write_text
from sparsemap.problem.designs import Design
from sparsemap.problem.problem import Problem
from sparsemap.searching.result import Result

from . import yaml_text
from .architecture import architecture, area_table, energy_table
from .mapping import mapping
from .names import Names
from .problem import problem_table
from .sparse import sparse_optimizations

COLUMNS = ("bounds", "order", "formats", "mechanisms")
QUIRKS = "timeloop-v3"


@attrs.frozen(kw_only=True)
class TimeloopExporter(Exporter):
    """A folder with the input files of Timeloop v3.0.3, `README.md`, and the expected numbers in `expected.json`."""

    type_name: ClassVar[str] = "timeloop"

    def write(self, result: Result, problem: Problem, path: Path) -> Iterator[Path]:
        best = result.found
        texts = {
            name: yaml_text.dumps(table, f"{problem.workload.name} on {problem.hardware.name}: {ABOUT[name]}.")
            for name, table in tables(best.design).items()
        }
        own = {"cycles": float(best.cycles), "energy_pj": float(best.energy_pj)}
        if not all(map(math.isfinite, own.values())):
            raise DesignError("the design is not valid; there are no numbers to compare Timeloop's with")
        there = expected(best.design, own)
        texts["README.md"] = readme(problem, list(texts), own, there)
        texts["expected.json"] = json.dumps(there, indent=2) + "\n"
        if "sparse-opt.yaml" not in texts:
            (Path(path) / "sparse-opt.yaml").unlink(missing_ok=True)  # of another design
        for name, text in texts.items():
            write_text(Path(path) / name, text)
            yield Path(path) / name


ABOUT = {
    "arch.yaml": "storage levels from the outermost inwards, then the compute units",
    "problem.yaml": "dimensions, tensors and densities",
    "map.yaml": "loops per level, permutations from inner to outer",
    "sparse-opt.yaml": "compression formats, gating and skipping",
    "ERT.yaml": "energies per action in pJ",
    "ART.yaml": "no areas",
}


def tables(design: Design) -> dict[str, dict[str, Any]]:
    """The tables of the input files by file name; `DesignError` for what Timeloop v3.0.3 cannot be told."""
    problem = design.problem
    foreign = [name for name in problem.cost_model.needs if name not in COLUMNS]
    if foreign:
        model = problem.cost_model.name
        raise DesignError(f"Timeloop knows nothing of column '{foreign[0]}', which cost model '{model}' needs")
    names = Names.of(problem)
    sparse = sparse_optimizations(design, names)
    found = {
        "arch.yaml": architecture(problem, names),
        "problem.yaml": problem_table(problem, names),
        "map.yaml": mapping(design, names),
        "sparse-opt.yaml": sparse,
        "ERT.yaml": energy_table(problem, names),
        "ART.yaml": area_table(names),
    }
    return {name: table for name, table in found.items() if table is not None}


def expected(design: Design, own: dict[str, float]) -> dict[str, float | None]:
    """What Timeloop should print: the cost model's numbers with Timeloop's defects and without charges, None where it
    should stop instead.

    A cost model that does not know the defects is taken at its word (`own`).
    """
    model: Any = design.problem.cost_model
    if "quirks" not in attrs.fields_dict(type(model)):
        return {**own}
    evaluation = attrs.evolve(model, quirks=QUIRKS, charges=()).evaluate(design.batch, design.problem)
    found = {"cycles": float(evaluation.cycles[0]), "energy_pj": float(evaluation.energy_pj[0])}
    return {key: value if math.isfinite(value) else None for key, value in found.items()}


def readme(problem: Problem, files: list[str], own: Mapping[str, float], there: Mapping[str, float | None]) -> str:
    """How to run Timeloop on the files, and what it should say."""
    lines = [
        f"# {problem.workload.name} on {problem.hardware.name}, for Timeloop v3.0.3",
        "",
        "Run, in this folder:",
        "",
        f"    timeloop-model {' '.join(files)}",
        "",
        *_numbers(problem, "sparse-opt.yaml" in files, own, there),
        "",
        "Notes:",
        "",
        *(f"- {note}" for note in _notes(problem)),
    ]
    return "\n".join(lines) + "\n"


def _numbers(problem: Problem, sparse: bool, own: Mapping[str, float], there: Mapping[str, float | None]) -> list[str]:
    cycles, energy_pj = there["cycles"], there["energy_pj"]
    mine = f"{own['cycles']:.0f} cycles and {own['energy_pj']!r} pJ"
    if cycles is None or energy_pj is None:
        return [f"Timeloop is expected to stop on this design, by a defect of its own; without it: {mine}."]
    computes = math.prod(problem.sizes.values())
    word = "Algorithmic-Compute" if sparse else "Compute"
    lines = [
        "Expected:",
        "",
        f"- Cycles: {cycles:.0f}",
        f"- Energy: {energy_pj!r} pJ ({energy_pj / 1e6:.2f} uJ; `Total` = {energy_pj * 1000 / computes:.2f} fJ/{word})",
        "",
        f"`timeloop-model.stats.txt` rounds the energy to 0.01 uJ; `Total` below `fJ/{word}`, times {computes} "
        "computes, is more exact, and `timeloop-model.map+stats.xml` has all digits per level and tensor. In tiles of "
        "about a thousand words and more, single counts may be one more or less than expected, because Timeloop's own "
        "arithmetic decides which way a `ceil` goes there; the energy then differs by up to some 1e-5 of itself.",
    ]
    if dict(own) != dict(there):
        beyond = ", which charges for what Timeloop leaves out" if getattr(problem.cost_model, "charges", ()) else ""
        lines += ["", f"By cost model `{problem.cost_model.name}`, without Timeloop's defects{beyond}: {mine}."]
    return lines


def _notes(problem: Problem) -> list[str]:
    names = Names.of(problem)
    notes = [
        "The energy table is given, so Accelergy is not called, and it lists every action, because Timeloop takes the "
        "energy of another action for one that is missing.",
        "Networks and address generation are set to zero. Adders are taken to be free, as they are in Timeloop's "
        "public energy model (`pat-public`).",
        "Timeloop lets neighbours hand words to each other unless told otherwise; SparseMap does not count that, so "
        "`no_link_transfer` is set in every spatial directive.",
        "Data and metadata are separate memories in Timeloop. Where they share one in SparseMap, each is given all "
        "of it.",
    ]
    renamed = [f"`{letter}` is `{dim}`" for dim, letter in names.dims.items() if letter != dim]
    if renamed:
        notes.append(f"Timeloop's dimensions have one letter: {', '.join(renamed)}.")
    padded = [f"`{dim}` from {given} to {size}" for dim, (given, size) in problem.padded.items()]
    if padded:
        notes.append(f"Padded dimensions: {', '.join(padded)}.")
    return notes
