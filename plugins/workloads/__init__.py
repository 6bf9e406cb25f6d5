"""Workloads: ways to say which tensors are multiplied; and the operations between the layers of networks."""

from sparsemap import hookimpl

from .einsum import EinsumWorkload
from .layers import Conv2d, Depthwise, Linear, MatMul
from .operations import Add, AveragePool, Concat, GlobalAverage, MaxPool, Multiply, Prepend, Take


@hookimpl
def register_workload_kinds():
    return [EinsumWorkload, Conv2d, Depthwise, Linear, MatMul]


@hookimpl
def register_operations():
    return [MaxPool, AveragePool, GlobalAverage, Add, Multiply, Concat, Prepend, Take]
