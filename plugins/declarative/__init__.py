"""Types usable without Python: all properties of a piece are in its TOML spec."""

from __future__ import annotations

from sparsemap import hookimpl


@hookimpl
def register_technologies():
    return {"table": "technologies:TableTechnology", "hwcomponents": "estimators:EstimatedTechnology"}


@hookimpl
def register_formats():
    return {"expression": "formats:ExpressionFormat"}


@hookimpl
def register_mechanisms():
    return {"filters": "mechanisms:FilterMechanism"}


@hookimpl
def register_objectives():
    return {"expression": "objectives:ExpressionObjective"}
