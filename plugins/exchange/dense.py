"""The dense part of a design, and the names of its losses: no other mapper has formats, skipping or densities."""

from __future__ import annotations

from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.spec.notes import Notes
from sparsemap.spec.yaml_tables import YamlSource

from .nest import Layer

COST_MODEL = "timeloop"
"""Cost model without charges, comparable with the models of other mappers."""


def dense(design: Design) -> Design:
    """The design with dense tensors, without formats and mechanisms, under the cost model without charges."""
    problem, table = design.problem, design_file.dump(design)
    workload = Layer.of(problem).table()
    workload.pop("kind")
    names = [tensor.name for tensor in problem.tensors]
    for key in ("padding", "why_padded", "decoded", "stored", "segments", "pieces", "score", "scenarios"):
        table.pop(key, None)
    table |= {"workload": workload, "cost_model": COST_MODEL, "beyond_format": "uncompressed"}
    table |= {"formats": {name: ["uncompressed"] for name in names}}
    table |= {"gate_skip": {place.name: "none" for place in problem.places}}
    return design_file.structure(table, problem.registry, "design")


def losses(design: Design, notes: Notes, program: str) -> None:
    """Notes on everything in a design that a dense mapper cannot express."""
    problem, source = design.problem, YamlSource("design.toml")

    def lost(cause: str, text: str) -> None:
        notes.missing(source, cause, text, "")

    for t, tensor in enumerate(problem.tensors):
        share = getattr(tensor.density.nominal, "density", None)
        if share != 1.0:
            lost("densities", f"{tensor.name}: {tensor.density.nominal.type_name} is dense in {program}")
        if any(tensor.inside):
            lost("positions of padding", f"{tensor.name}: zeros of the padding count as data")
        if "formats" in design.batch.columns:
            formats = sorted({one.name for one in design.slots(t)} - {"uncompressed"})
            if formats and share != 1.0:
                lost("formats", f"{tensor.name}: {', '.join(formats)}")
    if "mechanisms" in design.batch.columns:
        for place in problem.places:
            if (name := design.mechanism(place).name) != "none":
                lost("skipping and gating", f"{place.name}: {name}")
    for dim, (given, size) in problem.padded.items():
        notes.assumed(source, f"{dim} is {size}, padded from {given}")
    for level in problem.levels:
        memory = level.memory
        if any(memory.double_buffered if isinstance(memory.double_buffered, tuple) else [memory.double_buffered]):
            text = "holds the tile in use alone" if memory.usable_bits(1.0) == 1.0 else "half the capacity holds tiles"
            notes.assumed(source, f"{level.name}: double-buffered; {text}")
        for key in ("access_words", "cluster"):
            if getattr(memory, key) != 1:
                lost(key.replace("_", " "), f"{level.name}: {key} = {getattr(memory, key)}")
        for key in ("links", "streams"):
            if problem.named(level.index, key):
                lost(key, f"{level.name}: {', '.join(getattr(memory, key))}")
    if charges := getattr(problem.cost_model, "charges", ()):
        lost("charges", f"cost model {problem.cost_model.name}: {len(charges)} charges")
    if problem.recoding_pj.any():
        lost("number formats", "words change between number formats without decoders")
    if problem.resident:
        lost("tensors that reside inside", "every tensor begins and ends in the outermost memory")


def evaluated(design: Design) -> dict[str, float]:
    """Cycles and pJ of a dense design by the cost model without charges."""
    found = design.problem.cost_model.evaluate(design.batch, design.problem)
    return {"cycles": float(found.cycles[0]), "energy_pj": float(found.energy_pj[0])}
