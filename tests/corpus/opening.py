"""The digits in a file of the corpus, by opening it as SparseMap does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sparsemap_plugins.chips.search
import sparsemap_plugins.language_models.report
import sparsemap_plugins.pruning.prune
import sparsemap_plugins.reports.exports
import sparsemap_plugins.searchers.surrogate.model
import sparsemap_plugins.timeloop.exporter
import sparsemap_plugins.timeloop.project
import sparsemap_plugins.weight_blocks.schedule_file  # noqa: F401, formats of plugins

from sparsemap.csv_files import read_csv
from sparsemap.file_formats import CHIP, KNOWN, NETWORK, RESULT, STUDY
from sparsemap.pieces.registry import Registry
from sparsemap.problem.load import load_problem
from sparsemap.problem.network import nodes_of
from sparsemap.searching.given import load_design
from sparsemap.searching.journal import _header, designs_in, unsealed
from sparsemap.searching.written import read_result
from sparsemap.spec import toml_io

HERE = Path(__file__).parent
FILES = HERE / "files"
EXPECTED = HERE / "expected.json"
"""Digits of all files without digits of their own, by path."""
JSON_FILES = {"result.json": RESULT, "network.json": NETWORK, "study.json": STUDY, "design.json": CHIP}


def plugin_dirs() -> list[Path]:
    return sorted((FILES / "plugins").iterdir())


def every() -> Iterator[Path]:
    yield from (path for path in sorted(FILES.rglob("*")) if path.is_file())


def kind_of(path: Path) -> str:
    """Format of a file, from its key, its ending or its name; empty for files without a reader."""
    if path.suffix == ".toml":
        return str(toml_io.read(path).get("kind", "")) if path.name != "pyproject.toml" else ""
    if path.suffix in (".json", ".jsonl"):
        return str(first_table(path)["format"]).split(" ")[1]
    return {".csv": "csv", ".bin": "journal", ".npz": "surrogate" if path.stem == "surrogate" else "arrays"}.get(
        path.suffix, ""
    )


def first_table(path: Path) -> Any:
    """The table of a JSON file, or of the first line of a file with checksums."""
    first = (data := path.read_bytes()).split(b"\n")[0]
    return unsealed(first) or {} if b"crc32" in first else json.loads(data)


def digits(path: Path, registry: Registry, kind: str = "") -> Any:
    """Numbers of a file, of a known `kind` or its own, as plain data; raises the error of the reader of such files."""
    kind = kind or kind_of(path)
    if path.name in JSON_FILES:
        return read_result(path, JSON_FILES[path.name])
    if kind == "design":
        return {key: float(value) for key, value in load_design(path, registry=registry).found.numbers.items()}
    if path.suffix == ".toml" and kind:
        return of_spec(path, kind, registry)
    if kind == "journal":
        with path.open("rb", buffering=0) as file:
            header = _header(file, path) or {}
        return {"designs": designs_in(path), **{key: header.get(key) for key in ("budget", "seed")}}
    if kind == "csv":
        return len(read_csv(path))
    return of_plugin(path, kind, registry)


def of_spec(path: Path, kind: str, registry: Registry) -> Any:
    """The bound of a workload, a digest of a chip, the multiplications of a network, the type of other pieces."""
    if kind == "network":
        return [node.macs for node in nodes_of(registry.resolve(kind, path), registry, path.parent, str(path))]
    if kind in ("workload", "hardware"):
        problem = load_problem(**{"workload": "mm1", "hardware": "mobile", kind: str(path)}, registry=registry)
        return problem.bound if kind == "workload" else problem.chip.digest
    return type(registry.resolve(kind, path)).type_name


def of_plugin(path: Path, kind: str, registry: Registry) -> Any:
    """Numbers of formats that belong to plugins."""
    if kind == "schedule":
        from sparsemap_plugins.weight_blocks.schedule_file import read_schedule

        return read_schedule(path.parent).schedule.seconds
    if kind == "masks":
        from sparsemap_plugins.pruning.profile import read_splits
        from sparsemap_plugins.weight_blocks.networks import read_masks

        return [sorted(read_splits(path)), {name: int(mask.sum()) for name, mask in read_masks(path).items()}]
    if kind == "certificate":
        from sparsemap_plugins.verify.certificate import check

        return check(path, registry).confirmed
    if kind == "surrogate":
        from sparsemap_plugins.searchers.surrogate.model import Surrogate

        model = Surrogate.load(path)
        return float(model.network.predict(np.zeros((1, len(model.mean))))[0])
    if kind in KNOWN:
        return sorted(KNOWN[kind].opened(first_table(path), str(path)))
    return None


def own_digits(path: Path) -> Any:
    """The numbers that a file of a search holds itself: a design's scores, or the table of a result. None for others."""
    if path.suffix == ".toml" and "score" in (table := toml_io.read(path)):
        return table["score"]
    if path.name in JSON_FILES:
        return {key: value for key, value in json.loads(path.read_bytes()).items() if key != "format"}
    return None


def name_of(path: Path) -> str:
    return path.relative_to(FILES).as_posix()


def expected_of(registry: Registry) -> dict[str, Any]:
    """Digits of all files without digits of their own, by name; None for files without a reader."""
    found = {name_of(path): digits(path, registry) for path in every() if own_digits(path) is None}
    return {name: value for name, value in found.items() if value is not None}
