"""Exporter of a design as the complete input of `timeloop-model`, with a README of the commands and expected output.

Timeloop concatenates its input files, so each is a block mapping without document marks."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Exporter
from sparsemap.errors import DesignError
from sparsemap.file_formats import EXPECTED
from sparsemap.markdown import markdown_text
from sparsemap.plots import page
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.problem.problem import Problem
from sparsemap.searching.result import Result
from sparsemap.spec.yaml_text import yaml_text
from sparsemap.writing import write_text

from .architecture import architecture, area_table, energy_table, in_one_width
from .problem import Names, mapping, problem_table
from .sparse import crashing, sparse_optimizations

COLUMNS = ("bounds", "order", "formats", "mechanisms", "decoded")
QUIRKS = "timeloop-v3"


class TimeloopExporter(Exporter):
    """A folder with the input files of Timeloop v3.0.3, `README.md`, and the expected numbers in `expected.json`."""

    type_name: ClassVar[str] = "timeloop"

    def write(self, result: Result, problem: Problem, path: Path) -> Iterator[Path]:
        best = result.found
        written, looks = unlimited(best.design)
        title = f"{problem.workload.name} on {problem.hardware.name}"
        texts = {name: yaml_text(table, f"{title}: {ABOUT[name]}.") for name, table in tables(written).items()}
        own = {"cycles": float(best.cycles), "energy_pj": float(best.energy_pj)}
        if not all(map(math.isfinite, own.values())):
            raise DesignError("the design is not valid; there are no numbers to compare Timeloop's with")
        there = expected(written, own)
        texts["README.md"] = readme(problem, list(texts), own, there, looks)
        texts["expected.json"] = json.dumps(EXPECTED.stamped(there.numbers), indent=2) + "\n"
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
    """The tables of the input files by file name; `DesignError` for a design that Timeloop v3.0.3 cannot express."""
    problem = in_one_width(design.problem)
    foreign = [name for name in problem.cost_model.needs if name not in COLUMNS]
    if foreign:
        model = problem.cost_model.name
        raise DesignError(f"Timeloop knows nothing of column '{foreign[0]}', which cost model '{model}' needs")
    if problem.resident:
        name, level = next((problem.tensors[t].name, problem.levels[s].name) for t, s in problem.resident)
        text = "Timeloop has every tensor begin and end in the outermost level"
        raise DesignError(f"'{name}' resides in {level}; {text}")
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


@attrs.frozen
class Expectation:
    """Expected numbers from Timeloop, or the reason for a stop."""

    cycles: float | None = None
    energy_pj: float | None = None
    stop: str = ""

    @property
    def numbers(self) -> dict[str, float | None]:
        return {"cycles": self.cycles, "energy_pj": self.energy_pj}


DEFECT = "by a defect of its own"


def expected(design: Design, own: Mapping[str, float]) -> Expectation:
    """The cost model's numbers with Timeloop's defects and without charges, or the reason why Timeloop should stop.

    For a cost model without the defects, its own numbers (`own`)."""
    model: Any = design.problem.cost_model
    if "quirks" not in attrs.fields_dict(type(model)):
        return Expectation(own["cycles"], own["energy_pj"])
    problem = apart(design.problem)
    evaluation = attrs.evolve(model, quirks=QUIRKS, charges=()).evaluate(design.batch, problem)
    if not evaluation.valid[0]:
        full = [reason for reason in evaluation.reasons_of(0) if "capacity" in reason.partition(":")[0]]
        if not full:
            return Expectation(stop=DEFECT)
        text = f"since it does not fit as Timeloop counts it ({', '.join(full)})"
        return Expectation(stop=f"{text}: Timeloop counts a run length per nonzero, not what an encoder writes")
    if tensor := crashing(design):
        text = f"{DEFECT}: '{tensor}' is all nonzeros but not dense, which leaves it without counts of metadata where "
        return Expectation(stop=f"{text}it is filtered, and it reads them all the same (segmentation fault)")
    return Expectation(float(evaluation.cycles[0]), float(evaluation.energy_pj[0]))


def apart(problem: Problem) -> Problem:
    """The problem with the memories given to Timeloop: separate memories of the full size for data and metadata."""
    problem = in_one_width(problem)
    chip = problem.chip
    shared = np.asarray(chip.shared_capacity)
    room = np.where(shared, chip.capacity_bits, chip.metadata_capacity_bits)
    return problem.on(attrs.evolve(chip, shared_capacity=np.zeros_like(shared), metadata_capacity_bits=room))


def unlimited(design: Design) -> tuple[Design, list[str]]:
    """The design with unlimited lookahead, as in Timeloop, and the names of mechanisms with limited lookahead.

    The same design if no mechanism is limited."""
    chosen: dict[str, Any] = {design.mechanism(place).name: design.mechanism(place) for place in design.problem.places}
    limited = (name for name, one in chosen.items() if "lookahead" in attrs.fields_dict(type(one)))
    looks = [name for name in limited if chosen[name].lookahead is not None]
    if not looks or any(name not in COLUMNS for name in design.batch.columns):
        return design, []
    table = design_file.dump(design)
    for name in looks:
        table["pieces"]["mechanism"][name].pop("lookahead")
    return design_file.structure(table, design.problem.registry, "design"), looks


def readme(
    problem: Problem, files: list[str], own: Mapping[str, float], there: Expectation, looks: Sequence[str]
) -> str:
    """README with the commands for Timeloop and the expected output."""
    model, names = problem.cost_model, Names.of(problem)
    mine = f"{own['cycles']:.0f} cycles and {own['energy_pj']!r} pJ"
    if there.cycles is None or there.energy_pj is None:
        numbers = f"Timeloop is expected to stop on this design, {there.stop}. "
        numbers += f"Without that, by cost model `{model.name}`: {mine}.\n"
    else:
        computes, uj = math.prod(problem.sizes.values()), there.energy_pj / 1e6
        word = "Algorithmic-Compute" if "sparse-opt.yaml" in files else "Compute"
        told: Any = {"there": there, "uj": uj, "word": word, "computes": computes}
        numbers = page(__file__, "readme-expected", total=there.energy_pj * 1000 / computes, **told)
        if dict(own) != there.numbers:
            beyond = ", which charges for what Timeloop leaves out" if getattr(model, "charges", ()) else ""
            numbers += f"\nBy cost model `{model.name}`, without Timeloop's defects{beyond}: {mine}.\n"
    if looks:
        numbers += "\n" + page(__file__, "readme-looks", names=" and ".join(f"`{name}`" for name in looks), mine=mine)
    notes = []
    if renamed := ", ".join(f"`{letter}` is `{dim}`" for dim, letter in names.dims.items() if letter != dim):
        notes.append(f"- Timeloop's dimensions have one letter: {renamed}.")
    if padded := ", ".join(f"`{dim}` from {given} to {size}" for dim, (given, size) in problem.padded.items()):
        notes.append(f"- Padded dimensions: {padded}.")
    title = markdown_text(f"{problem.workload.name} on {problem.hardware.name}")
    return page(__file__, "readme", title=title, files=" ".join(files), numbers=numbers, notes="\n".join(notes))
