"""A Timeloop project as workload, hardware, space and design files, with a note on every value.

A part that cannot be written has a note with its place; the other parts are written all the same."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sparsemap.errors import SpecError
from sparsemap.files import shown
from sparsemap.spec.notes import Imported, Notes
from sparsemap.spec.yaml_tables import YamlSource, YamlTable

from . import project_mapping as of_mapping
from .importer import workload_table
from .project_hardware import Component, Stack, components, hardware_table
from .project_mapping import ProjectNest, directives
from .project_sparse import OLDER_QUIRKS, condenses, sparse_design, sparse_targets
from .project_yaml import merged

FILES = 500
"""Most YAML files in the folders of a project."""
PARTS_OF_A_PROJECT = ("architecture", "problem", "mapping", "sparse_optimizations", "ERT", "constraints")
HANDLED = {
    *PARTS_OF_A_PROJECT,
    *("architecture_constraints", "mapspace_constraints", "mapspace", "version", "dumped_by_timeloop_front_end"),
}
OTHER = {
    **dict.fromkeys(("compound_components", "components"), "Accelergy's components; energies come from an ERT"),
    "ART": "areas",
    "mapper": "settings of Timeloop's mapper",
    "variables": "variables",
    "globals": "settings of the front end",
}


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The files, and the YAML files of folders in order; subfolders with Timeloop's outputs are left out.

    `SpecError` if there is no file."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            written = {stats.parent for stats in path.rglob("*.stats.txt")} - {path}
            inside = sorted(file for file in path.rglob("*") if file.suffix in (".yaml", ".yml") and file.is_file())
            inside = [file for file in inside if not written.intersection(file.parents)]
            if len(inside) > FILES:
                raise SpecError.at(shown(path), "", f"has {len(inside)} YAML files; name those of one project")
            found += inside
        else:
            found.append(path)
    if not found:
        raise SpecError.at(shown(paths[0]), "", "has no YAML file")
    return list(dict.fromkeys(found))


def import_project(paths: Sequence[Path], name: str = "", older: bool = False) -> Imported:
    """The parts of a project; `SpecError` if the files are no project.

    `older`: count as evaluators before v3.0.3, such as the evaluator of Sparseloop's artifact."""
    notes, tables = Notes(), dict[str, Mapping[str, Any]]()
    project = merged(files_of(paths))
    _set_variables(project.get("architecture"), project.table("variables"))
    for key in project:
        if key not in HANDLED:
            place = getattr(project[key], "source", YamlSource("", 0, key))
            notes.missing(place, OTHER.get(key, "an unknown part"), key, "")
    if not {"architecture", "problem"} & set(project):
        raise SpecError.at(shown(paths[0]), "", "has neither an 'architecture' nor a 'problem'")
    if workload := _workload(project, name, notes):
        tables["workload"] = workload
    try:
        _rest(project, workload, older, tables, notes)
    except SpecError as problem:
        for mistake in problem.mistakes:
            stops = "design" if "hardware" in tables else "hardware"
            notes.missing(YamlSource(mistake.file, 0, mistake.path), "not understood", mistake.message, stops)
    return Imported(tables, tuple(dict.fromkeys(notes.rows)))


def _set_variables(part: Any, variables: YamlTable) -> None:
    """Replace names of variables by their numbers, in attributes of an architecture."""
    if isinstance(part, YamlTable):
        for key, value in part.items():
            named = key in ("attributes", "spatial") and isinstance(value, YamlTable)
            for name, given in value.items() if named else ():
                number = variables.get(given) if isinstance(given, str) else None
                value[name] = number if isinstance(number, int | float) else given
            _set_variables(value, variables)
    for one in part if isinstance(part, list) else ():
        _set_variables(one, variables)


def _workload(project: YamlTable, name: str, notes: Notes) -> dict[str, Any]:
    if "problem" not in project:
        notes.missing(YamlSource("", 0, "problem"), "no problem is given", "nothing to evaluate", "workload")
        return {}
    problem = project.table("problem")
    path = Path(problem.source.file or "problem.yaml")
    try:
        found = workload_table(problem, path, name)
    except SpecError as error:
        for mistake in error.mistakes:
            place = YamlSource(mistake.file, problem.source.line, mistake.path)
            notes.missing(place, "workload", mistake.message, "workload")
        return {}
    notes.taken(problem.source, found["einsum"])
    return found


def _rest(
    project: YamlTable, workload: Mapping[str, Any], older: bool, tables: dict[str, Mapping[str, Any]], notes: Notes
) -> None:
    if "architecture" not in project:
        notes.missing(YamlSource("", 0, "architecture"), "no architecture is given", "no hardware", "hardware")
        return
    *parts, compute = components(project, notes)
    names = [part.name for part in parts]
    targets = sparse_targets(project, [*parts, compute])
    tensors = _tensors(project)
    listed_rows = isinstance(project.get("mapping") or [], list)
    mapping = project.rows("mapping") if listed_rows else project.table("mapping").rows("targets")
    mapped = list(directives(mapping, names))
    constraints = list(directives(of_mapping.constraint_rows(project, parts), [*names, compute.name]))
    of_mapping.list_unread(mapped, notes, "design")
    of_mapping.list_unread(constraints, notes)
    listed = {one.target for one in mapped if one.kind == "lists"}
    decisive = mapped if listed or not constraints else constraints
    if "nodes" in project.table("architecture"):  # v0.4 has the lists of nodes wherever a mapping has none
        decisive = [*mapped, *(one for one in constraints if one.target not in listed)]
    bypass = of_mapping.bypass_of(decisive, list(tensors))
    idle = {p.name for p in parts if p.dummy or (tensors and set(bypass.get(p.name, [])) >= set(tensors))}
    below = dict(zip(names, [*parts[1:], compute], strict=True))
    spread = {part.name for part in parts if below[part.name].instances != part.instances}
    looped, busy = [one for one in mapped if one.kind != "lists"], set[str]()
    sizes = _sizes(project) if looped else {}
    for one in looped:
        factors = of_mapping.factors_of(one.row, list(sizes))
        busy |= {one.target for dim, (_, number) in factors.items() if number != 1 and sizes[dim] > 1}
    optimized = ("action_optimization", "compute_optimization")
    acting = [name for name, own in targets.items() if any(map(own.get, optimized))]
    told = {*acting, *(names[-1:] if acting else ())}  # filters look at the loops of the innermost level
    hollow = [name for name in names if name in idle & (spread | busy | told) and tensors]
    bypass |= {name: list(tensors) for name in hollow}  # levels that only spread count traffic of their own kind
    dummies = [name for name in names if name in idle and name not in hollow]
    levels = [part for part in parts if part.name not in dummies]
    if not [level for level in levels if level.name not in hollow]:
        notes.missing(project.table("architecture").source, "no level stores anything", ", ".join(names), "hardware")
        return
    if dummies and parts[0].name in dummies:
        notes.assumed(parts[0].table.source, f"{parts[0].name} stores nothing and is left out")
    for level in levels:
        if (passed := bypass.get(level.name)) and level.name not in hollow:
            notes.taken(level.table.source, f"{level.name}: {', '.join(passed)} pass by")
    stack = Stack(levels, compute, tensors, bypass, hollow, targets, acting)
    hardware = hardware_table(project, stack, notes)
    if notes.stops("hardware"):
        return
    streams = {one.target: one.row.names("stream") for one in decisive if older and one.kind == "lists"}
    rows = []
    for row in hardware["levels"]:  # of a level's list of streams, what passes by
        named = [f"name:{name}" for name in streams.get(row["name"], [])]
        passing = [name for name in named if name in row.get("bypass", [])]
        rows.append({**row, "streams": passing} if passing else row)
    inner = next((one for one in mapped if one.kind == "spatial" and one.target == levels[-1].name), None)
    if inner is not None and (linked := [name for name in tensors if name not in inner.row.names("no_link_transfer")]):
        rows[-1] = rows[-1] | {"links": [f"name:{name}" for name in linked]}
    tables["hardware"] = {**hardware, "levels": rows, "name": "imported"}
    if not workload:
        return
    sizes = sizes or _sizes(project)
    model = {"extends": "timeloop", "quirks": OLDER_QUIRKS} if older else "timeloop"
    space = of_mapping.space_table(constraints, hardware["levels"], hollow, sizes, list(tensors), notes)
    tables["space"] = {**space, "cost_model": model, "name": "imported"}
    _design(project, stack, mapped, sizes, older, tables, notes)


def _design(
    project: YamlTable, stack: Stack, mapped: list[Any], sizes: Mapping[str, int], older: bool,
    tables: dict[str, Mapping[str, Any]], notes: Notes,
) -> None:  # fmt: skip
    if not mapped:
        notes.assumed(project.at("mapping"), "no mapping is given; there is no design")
        return
    if (nest := of_mapping.nest_of(mapped, sizes, notes)) is None:
        return
    condensed = [name for name, own in stack.targets.items() if condenses(own)]
    _check_fanouts(nest, [level for level in stack.levels if level.name not in condensed], tables["hardware"], notes)
    dense = [name for name, given in tables["workload"]["density"].items() if given.get("density") == 1.0]
    places = [row["name"] for row in tables["hardware"]["levels"] if row.get("gate_skip")]
    sparse = sparse_design(stack, places, dense, nest, older, notes)
    if sparse is None or notes.stops("design"):
        return
    inlined = {part: {**tables[part]} for part in ("workload", "hardware")}
    for table in inlined.values():
        table.pop("kind", None)
    tables["design"] = {
        "kind": "design", "name": "imported", **inlined,
        "cost_model": tables["space"]["cost_model"], "mapping": nest.table([level.name for level in stack.levels]),
        "formats": dict(sparse.formats), "beyond_format": "uncompressed",
        **({"decoded": dict(sparse.decoded)} if sparse.decoded else {}), "gate_skip": dict(sparse.mechanisms),
        **({"pieces": dict(sparse.pieces)} if sparse.pieces else {}),
    }  # fmt: skip
    notes.taken(mapped[0].row.source, f"mapping of {len(stack.levels)} levels")


def _check_fanouts(nest: ProjectNest, levels: Sequence[Component], hardware: Mapping[str, Any], notes: Notes) -> None:
    rows = {row["name"]: row for row in hardware["levels"]}
    for level in levels:
        row = rows[level.name]
        spread = math.prod(bound for _, bound in nest.loops.get((level.name, "S"), ()))
        if spread > row.get("fanout", 1):
            text = f"{level.name}: {spread} at once on {row.get('fanout', 1)} instances"
            notes.missing(level.table.source, "more spatial iterations than instances", text)


def _tensors(project: YamlTable) -> dict[str, set[str]]:
    """Dimensions by tensor."""
    shape = project.table("problem").get("shape")
    if not isinstance(shape, YamlTable):
        return {}
    spaces = shape.rows("data_spaces")
    return {str(x.get("name")): set(re.findall(r"\w+", json.dumps(x.get("projection")))) for x in spaces}


def _sizes(project: YamlTable) -> dict[str, int]:
    problem = project.table("problem")
    instance = problem.table("instance") or problem
    return {str(dim): int(instance.number(str(dim)) or 1) for dim in problem.table("shape").names("dimensions")}
