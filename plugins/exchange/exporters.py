"""Exporters of the dense part of a design for accelforge and ZigZag, with expected numbers and the list of losses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from sparsemap import Exporter
from sparsemap.file_formats import EXPECTED
from sparsemap.markdown import markdown_text
from sparsemap.problem.problem import Problem
from sparsemap.searching.result import Result
from sparsemap.spec.notes import Notes, markdown
from sparsemap.spec.yaml_text import yaml_text
from sparsemap.writing import write_texts

from . import accelforge, zigzag
from .dense import dense, evaluated, losses
from .nest import Layer, Nest, PlainChip

Files = dict[str, Any]


class _DenseExporter(Exporter):
    """A folder with the YAML files of a program, `losses.md`, and the numbers of the dense design in `expected.json`."""

    program: ClassVar[str]
    made: ClassVar[Callable[..., Files]]

    def write(self, result: Result, problem: Problem, path: Path) -> Iterator[Path]:
        design = result.found.design
        notes, plain = Notes(), dense(design)
        losses(design, notes, self.program)
        chip, layer, nest = PlainChip.of(plain.problem), Layer.of(plain.problem), Nest.of(plain)
        files = type(self).made(chip, layer, nest, notes)
        title = f"{problem.workload.name} on {problem.hardware.name}"
        texts = {Path(path) / name: yaml_text(table, f"{title}, for {self.program}.") for name, table in files.items()}
        texts[Path(path) / "expected.json"] = json.dumps(EXPECTED.stamped(evaluated(plain)), indent=2) + "\n"
        texts[Path(path) / "losses.md"] = markdown(notes.rows, f"{markdown_text(title)}, for {self.program}")
        yield from write_texts(texts)


class AccelforgeExporter(_DenseExporter):
    """Architecture, workload and mapping of accelforge: `arch.yaml`, `workload.yaml`, `mapping.yaml`."""

    type_name: ClassVar[str] = "accelforge"
    program: ClassVar[str] = "accelforge"
    made: ClassVar[Callable[..., Files]] = staticmethod(accelforge.tables)


class ZigzagExporter(_DenseExporter):
    """Accelerator, workload and mapping of ZigZag, and the places of loops in memories as `loops.yaml`."""

    type_name: ClassVar[str] = "zigzag"
    program: ClassVar[str] = "ZigZag"
    made: ClassVar[Callable[..., Files]] = staticmethod(zigzag.tables)
