"""The verb `sparsemap extra sweep`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click


@click.command("sweep")
@click.argument("designs", nargs=-1, required=True, type=click.Path(), metavar="DESIGN...")
@click.option("--tensor", required=True, metavar="NAME", help="Whose density: a tensor's name, or its role P, Q or Z.")
@click.option(
    "--densities", default="1:0.05:0.1", show_default=True, metavar="FIRST:LAST:STEP|LIST",
    help="From FIRST to LAST, both included, or with commas between them.",
)  # fmt: skip
@click.option(
    "--objective", default="", metavar="NAME|EXPRESSION",
    help="What is compared.  [default: edp; edp_js, in seconds, where the designs' clocks differ]",
)  # fmt: skip
@click.option("--plugin-dir", "plugin_dirs", multiple=True, metavar="DIR", type=click.Path(), help="Folder of plugins.")
def sweep(designs: tuple[str, ...], tensor: str, densities: str, objective: str, plugin_dirs: tuple[str, ...]) -> None:
    """Evaluate designs over densities of a tensor.

    All other densities stay, but those that follow from it, such as the output's. The best design at each density is
    marked; where one is invalid, the reason is named.
    """
    from sparsemap.cli.stdout import answer
    from sparsemap.pieces.loading import load
    from sparsemap.problem import design_file
    from sparsemap.problem.load import objective_of

    from .sweep import densities_of, over_best, swept, table_text

    try:
        wanted = densities_of(densities)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--densities") from None
    registry = load(plugin_dirs=plugin_dirs)
    files = list(dict.fromkeys(designs))
    loaded = {file: design_file.load(file, registry) for file in files}
    clocks = {design.problem.clock_hz for design in loaded.values()}
    objective = objective or ("edp" if len(clocks) == 1 else "edp_js")
    judge = objective_of(registry, objective)
    if len(judge.names) > 1:
        raise click.BadParameter(f"{objective!r} has several values, expected one", param_hint="--objective")
    points = {file: swept(design, tensor, wanted, judge, file) for file, design in loaded.items()}
    means = over_best(points)
    rows: list[dict[str, Any]] = []
    for file, found in points.items():
        problem, mean = loaded[file].problem, means[file]
        about = {"design": file, "workload": problem.workload.name, "hardware": problem.hardware.name}
        rows.append({**about, "over_best": mean if mean == mean else None, "points": [p.to_dict() for p in found]})
    named = {label: points[file] for file, label in labels_of(files).items()}
    text = table_text(tensor, judge.unit, judge.name or judge.type_name, named)
    answer({"tensor": tensor, "objective": objective, "unit": judge.unit, "designs": rows}, text)


def labels_of(files: list[str]) -> dict[str, str]:
    """Labels of files: the folder of a search's design, or the stem, if distinct."""
    short = {file: Path(file).parent.name if Path(file).name == "design.toml" else Path(file).stem for file in files}
    counts = Counter(short.values())
    return {file: name if name and counts[name] == 1 else file for file, name in short.items()}


VERBS = (sweep,)
