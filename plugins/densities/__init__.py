"""Density models: how the nonzeros of a tensor are distributed (section 5)."""

from sparsemap import hookimpl


@hookimpl
def register_density_models():
    return {
        "uniform": "uniform:Uniform",
        "structured": "structured:Structured",
        "n-of-m": "structured:NOfM",
        "banded": "banded:Banded",
        "block": "block:Block",
        "gamma": "block_masks:Gamma",
        "crisp": "crisp:Crisp",
        "data": "data:ActualData",
        "grouped": "flattened:Grouped",
        "flattened": "flattened:Flattened",
    }
