"""The mapping: per storage level its temporal loops, its spatial loops, and the tensors that it keeps.

Timeloop writes loops from inner to outer and calls a tensor that a level does not store bypassed. All spatial loops go
along X. Transfers between neighbours, which Timeloop assumes by default, are switched off, but for those of `links`.
"""

from __future__ import annotations

from typing import Any

from sparsemap.problem.designs import Design, Loop

from .names import Names


def mapping(design: Design, names: Names) -> dict[str, Any]:
    """The table of the file `map.yaml`."""
    problem = design.problem
    tensors = [tensor.name for tensor in problem.tensors]
    directives: list[dict[str, Any]] = []
    for mapping_level, group in zip(problem.mapping_levels, design.groups, strict=True):
        level = mapping_level.storage
        target, loops = {"target": names.levels[level]}, _loops(names, group)
        if not mapping_level.spatial:
            kept = [name for t, name in enumerate(tensors) if problem.stores(t, level)]
            lists = {"keep": kept, "bypass": [name for name in tensors if name not in kept]}
            stored = {key: listed for key, listed in lists.items() if listed}
            directives += [{**target, "type": "temporal", **loops}, {**target, "type": "bypass", **stored}]
        elif problem.levels[level].fanout > 1:  # Timeloop has no spatial loops where there is a single child
            inner = level == len(problem.levels) - 1
            alone = [name for t, name in enumerate(tensors) if not (inner and problem.links(t))]
            more = {"split": len(names.letters), **({"no_link_transfer": alone} if alone else {})}
            directives.append({**target, "type": "spatial", **loops, **more})
    return {"mapping": directives}


def _loops(names: Names, group: tuple[Loop, ...]) -> dict[str, Any]:
    bounds = {loop.dim: loop.bound for loop in group}
    factors = [f"{letter}={bounds[dim]}" for dim, letter in names.dims.items()]
    inner_to_outer = [names.dims[loop.dim] for loop in reversed(group)]
    if names.lone:
        factors.append(f"{names.lone}=1")
        inner_to_outer.append(names.lone)
    return {"factors": " ".join(factors), "permutation": "".join(inner_to_outer)}
