"""The pipeline of a group of iterations as events: loads, computations and writes with a number of buffers for each."""

from __future__ import annotations

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array


@attrs.frozen(eq=False)
class Pipeline:
    """(n,) seconds since the start of the group."""

    loads: Array
    """When the load of an iteration starts, and so on."""
    computes: Array
    writes: Array
    end: float


def pipeline(load: Array, compute: Array, write: Array, buffers: int = 2) -> Pipeline:
    """Runs iterations that take (n,) seconds each; a stage does one at a time, in order.

    A load waits for a free input buffer, which the computation of an earlier iteration frees at its end; a computation
    waits for its input and for a free output buffer, which a write frees. With two buffers and constant stages the end
    is n * max + (load + compute + write - max).
    """
    count = len(load)
    starts = np.zeros((3, count))
    ends = np.zeros((3, count))
    for k in range(count):
        free_input = ends[1, k - buffers] if k >= buffers else 0.0
        starts[0, k] = max(ends[0, k - 1] if k else 0.0, free_input)
        ends[0, k] = starts[0, k] + load[k]
        free_output = ends[2, k - buffers] if k >= buffers else 0.0
        starts[1, k] = max(ends[0, k], ends[1, k - 1] if k else 0.0, free_output)
        ends[1, k] = starts[1, k] + compute[k]
        starts[2, k] = max(ends[1, k], ends[2, k - 1] if k else 0.0)
        ends[2, k] = starts[2, k] + write[k]
    return Pipeline(*starts, float(ends[2, -1]) if count else 0.0)


def constant(load: float, compute: float, write: float, count: int, buffers: int = 2) -> float:
    """The end of a pipeline of constant stages, without its events where a formula has it."""
    if buffers == 2:
        longest = max(load, compute, write)
        return count * longest + (load + compute + write - longest)
    ones = np.ones(count)
    return pipeline(load * ones, compute * ones, write * ones, buffers).end
