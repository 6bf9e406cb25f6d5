"""Timeloop v3.0.3 as export target, and its projects as workloads, hardware, spaces and designs.

`architecture`, `problem` and `sparse` make the parts of the input as plain tables; `exporter` writes them as YAML.
`importer` reads a problem file. `project` reads whole projects, with the parts in `project_yaml`, `project_hardware`,
`project_mapping` and `project_sparse`."""

from __future__ import annotations

from sparsemap import hookimpl


@hookimpl
def register_exporters():
    return {"timeloop": "exporter:TimeloopExporter"}
