"""The mapping: per storage level its temporal loops, its spatial loops, and the tensors that it keeps.

Timeloop writes loops from inner to outer and calls a tensor that a level does not store bypassed. All spatial loops go
along X. Transfers between neighbours, which Timeloop assumes by default and SparseMap does not count, are switched off.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemap.problem.designs import Designs
from sparsemap.problem.problem import Problem

from .names import Names


def mapping(problem: Problem, designs: Designs, names: Names) -> dict[str, Any]:
    """The table of the file `map.yaml`, of the first design."""
    bounds, order = designs.bounds[0], designs.order[0]
    tensors = [tensor.name for tensor in problem.tensors]
    directives: list[dict[str, Any]] = []
    for group, mapping_level in enumerate(problem.mapping_levels):
        level = mapping_level.storage
        loops = _loops(problem, names, bounds[group], order[group])
        if not mapping_level.spatial:
            directives.append({"target": names.levels[level], "type": "temporal", **loops})
            directives.append(_stored(problem, level, names.levels[level]))
        elif problem.levels[level].fanout > 1:  # Timeloop has no spatial loops where there is a single child
            directives.append(
                {
                    "target": names.levels[level],
                    "type": "spatial",
                    **loops,
                    "split": len(names.letters),
                    "no_link_transfer": tensors,
                }
            )
    return {"mapping": directives}


def _loops(problem: Problem, names: Names, bounds: np.ndarray, order: np.ndarray) -> dict[str, Any]:
    factors = [f"{letter}={int(bound)}" for letter, bound in zip(names.dims.values(), bounds, strict=True)]
    inner_to_outer = [names.dims[problem.dims[int(d)]] for d in order[::-1]]
    if names.lone:
        factors.append(f"{names.lone}=1")
        inner_to_outer.append(names.lone)
    return {"factors": " ".join(factors), "permutation": "".join(inner_to_outer)}


def _stored(problem: Problem, level: int, name: str) -> dict[str, Any]:
    kept = [tensor.name for t, tensor in enumerate(problem.tensors) if problem.stores(t, level)]
    passed = [tensor.name for t, tensor in enumerate(problem.tensors) if not problem.stores(t, level)]
    lists = {"keep": kept, "bypass": passed}
    return {"target": name, "type": "bypass", **{key: tensors for key, tensors in lists.items() if tensors}}
