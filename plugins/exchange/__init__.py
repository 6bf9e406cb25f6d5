"""Dense designs of other mappers, accelforge and ZigZag, as import and export.

`nest` is the plain form between both sides: memories, temporal loops with the place of every tensor, spatial loops.
`accelforge` and `zigzag` make the YAML files of a nest, `from_accelforge` and `from_zigzag` read files as a nest, and
`allocation` places loops in memories as ZigZag does. Notes name every value without a counterpart."""

from __future__ import annotations

from sparsemap import hookimpl


@hookimpl
def register_exporters():
    return {"accelforge": "exporters:AccelforgeExporter", "zigzag": "exporters:ZigzagExporter"}
