"""HTML of a problem for notebooks."""

from __future__ import annotations

from html import escape

from ..spec import units
from .problem import Problem


def html_of(problem: Problem) -> str:
    """Table of sizes, tensors with densities, levels, and the number of genes."""
    shapes = {tensor.name: tensor.shape(problem.sizes) for tensor in problem.tensors}
    densities = {tensor.name: tensor.density.occupancy(shapes[tensor.name]).density for tensor in problem.tensors}
    rows = {
        "sizes": ", ".join(f"{dim} {size:,}" for dim, size in problem.sizes.items()),
        "tensors": ", ".join(
            f"{name} {' x '.join(map(str, shapes[name]))}, {100 * share:.3g} % nonzero"
            for name, share in densities.items()
        ),
        "levels": ", ".join(f"{x.name} {units.format_bits(x.capacity_bits)} x {x.instances:,}" for x in problem.levels),
        "compute units": f"{problem.compute_instances:,} {problem.compute_name}",
        "space": f"{problem.space_spec.name}, {len(problem.space)} genes",
        "cost model": problem.cost_model.name,
        "objective": problem.objective.name or problem.objective.type_name,
    }
    cells = "".join(f"<tr><th>{escape(key)}</th><td>{escape(text)}</td></tr>" for key, text in rows.items())
    return f"<table><caption>{escape(problem.title)}</caption>{cells}</table>"
