"""Designs for a range of densities: the density `range`, the objective `robust`, and the verb `extra sweep`."""

from __future__ import annotations

from sparsemap import hookimpl


@hookimpl
def register_density_models():
    return {"range": "density:Range"}


@hookimpl
def register_objectives():
    return {"robust": "objective:Robust"}
