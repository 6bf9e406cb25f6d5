"""Workloads: descriptions of multiplied tensors, and the operations between the layers of networks."""

from sparsemap import hookimpl


@hookimpl
def register_workload_kinds():
    return {
        "einsum": "einsum:EinsumWorkload",
        "conv2d": "layers:Conv2d",
        "conv3d": "frames:Conv3d",
        "depthwise": "layers:Depthwise",
        "linear": "layers:Linear",
        "matmul": "layers:MatMul",
    }


@hookimpl
def register_operations():
    return {
        "max-pool": "operations:MaxPool",
        "average-pool": "operations:AveragePool",
        "global-average": "operations:GlobalAverage",
        "add": "operations:Add",
        "multiply": "operations:Multiply",
        "gelu": "operations:Gelu",
        "softmax": "operations:Softmax",
        "norm": "operations:Norm",
        "concat": "operations:Concat",
        "prepend": "operations:Prepend",
        "take": "operations:Take",
        "view": "operations:View",
        "outside": "operations:Outside",
        "transform": "operations:Transform",
    }
