"""Data kept by a hardware beyond the nonzeros of tensors: the key `stored` of a space."""

from __future__ import annotations

import attrs

from ..pieces.contracts import Loops
from .problem import OPERANDS, OUTPUT, Problem


def as_stored(loops: Loops, problem: Problem) -> Loops:
    """The loops with the densities of the stored data."""
    stored = problem.space_spec.stored
    output = next(tensor for tensor in loops.tensors if tensor.output)
    names = iter(OPERANDS)
    tensors = []
    for tensor in loops.tensors:
        given = stored.get(OUTPUT if tensor.output else next(names))
        summed = (i for i, rank in enumerate(tensor.ranks) if not {dim for dim, _ in rank} & {*output.dims})
        if given is not None and (rank := next(summed, None)) is not None:
            table = {**given, "of": tensor.density, "rank": rank}
            density = problem.registry.build("density", table, problem.file_of("space"), "stored")
            tensor = attrs.evolve(tensor, density=density)
        tensors.append(tensor)
    return attrs.evolve(loops, tensors=tuple(tensors))
