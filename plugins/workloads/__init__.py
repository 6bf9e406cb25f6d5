"""Workloads: ways to say which tensors are multiplied."""

from sparsemap import hookimpl

from .einsum import EinsumWorkload


@hookimpl
def register_workload_kinds():
    return [EinsumWorkload]
