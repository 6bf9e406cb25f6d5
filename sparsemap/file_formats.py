"""Formats of written files: the key `format`, such as `sparsemap result 1`, names the format and its version.

A reader takes a file without the key as version 1, changes a file of an earlier version with a notice, and refuses any
other file with the name of a suitable release. CSV and Markdown files carry no key: the JSON file beside them does."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from .errors import SpecError, shortened

LOG = logging.getLogger("sparsemap")
KEY = "format"
KNOWN: dict[str, FileFormat] = {}
"""Formats by name, as far as loaded."""

TYPES: dict[str, Any] = {"a number": (int, float), "text": str, "true or false": bool, "a table": dict, "a list": list}
Migration = Callable[[dict[str, Any]], dict[str, Any]]


@attrs.frozen
class FileFormat:
    """A format of files that SparseMap writes and reads."""

    name: str
    about: str
    """The files, for a reader of the documentation."""
    version: int = 1
    migrations: Mapping[int, Migration] = attrs.field(factory=dict)
    """By earlier version, the change of a table to the next version."""
    retired: Mapping[int, str] = attrs.field(factory=dict)
    """By version without a migration, the last release of SparseMap with a reader."""
    fields: Mapping[str, str] = attrs.field(factory=dict)
    """By type of `TYPES`, names of keys; a name with `?` may also be null."""

    def __attrs_post_init__(self) -> None:
        KNOWN[self.name] = self

    @property
    def text(self) -> str:
        """Value of the key `format`."""
        return f"sparsemap {self.name} {self.version}"

    def stamped(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """The table with the key `format` in front."""
        return {KEY: self.text, **table}

    def opened(self, table: Any, file: str) -> dict[str, Any]:
        """The table of a file in the present version, without the key; SpecError for anything else."""
        if not isinstance(table, Mapping):
            raise SpecError.at(file, "", f"found {shortened(table)}, expected a table of format '{self.text}'")
        found = dict(table)
        version = self.version_in(found.pop(KEY, f"sparsemap {self.name} 1"), file)
        for old in range(version, self.version):
            found = self.migrations[old](found)
        if version < self.version:
            LOG.warning("%s: read as '%s', an earlier format", file, f"sparsemap {self.name} {version}")
        self._check(found, file)
        return found

    def _check(self, table: Mapping[str, Any], file: str) -> None:
        """SpecError for a value of another type than in `fields`; missing keys are the reader's own affair."""
        for kind, names in self.fields.items():
            for name in names.split():
                key, value = name.rstrip("?"), table.get(name.rstrip("?"))
                if key in table and not (is_a(kind, value) or (value is None and key != name)):
                    raise SpecError.at(file, key, f"found {shortened(value)}, expected {kind}")

    def version_in(self, value: Any, file: str) -> int:
        """Version in a value of the key `format`; SpecError for another format, or a version without a migration."""
        found = re.fullmatch(rf"sparsemap {re.escape(self.name)} ([1-9]\d{{0,5}})", str(value))
        version = int(found[1]) if found else 0
        if version == self.version or version in self.migrations:
            return version
        raise SpecError.at(file, KEY, f"found {shortened(value)}, expected '{self.text}'{self._remedy(version)}")

    def _remedy(self, version: int) -> str:
        from . import __version__

        if version > self.version:
            return f"; a release after SparseMap {__version__} wrote the file: update SparseMap"
        return f"; SparseMap {self.retired[version]} reads the file" if version in self.retired else ""


def is_a(kind: str, value: Any) -> bool:
    """Whether a value of JSON is of a type of `TYPES`; true and false are no numbers."""
    return isinstance(value, TYPES[kind]) and (kind == "true or false" or not isinstance(value, bool))


DESIGN = FileFormat("design", "`design.toml`: mapping, formats, workload, hardware and costs of a design")
SPEC = FileFormat("spec", "TOML files of workloads, hardware, networks and all other kinds")
RESULT = FileFormat("result", "`result.json` of a search; also for `history.csv`, `timing.csv`, `front.csv`", fields={
    "a number": "edp? energy_pj? cycles? score? bound? gap? evaluations budget proposed seed valid_fraction seconds"
    " waiting_cycles units_used units_mm2",
    "text": "count workload hardware technology space searcher objective limit",
    "true or false": "interrupted",
    "a table": "padded rejects versions identity charges lost_cycles costs bound_costs chosen fidelities proof scenarios",
    "a list": "shortfalls levels hull executed front start genome? raced",
})  # fmt: skip
NETWORK = FileFormat("network", "`network.json` of a network; also for `layers.csv`, `fused.csv`", fields={
    "a number": "edp? energy_pj? cycles? seconds? bound? gap? budget seed searches",
    "text": "network hardware technology space searcher warm_start",
    "true or false": "complete",
    "a table": "costs fused",
    "a list": "layers",
})  # fmt: skip
STUDY = FileFormat("study", "`study.json` of a study; also for `table.csv`, `comparison.csv`", fields={
    "a number": "cells ended", "a list": "columns",
})  # fmt: skip
CERTIFICATE = FileFormat("certificate", "`certificate.json` of a proving search")
CHIP = FileFormat("chip", "`design.json` of one chip for networks; also for the CSV files beside it", fields={
    "a number": "energy_pj cycles seconds area_mm2 units_mm2 edp_js power_w? budget layer_budget seed chips valid stopped worst",
    "text": "base objective share searcher judge",
    "true or false": "fuse",
    "a table": "reference platform searched units parts_mm2 executed hardware losses",
    "a list": "networks folders constraints tried layers by_network",
})  # fmt: skip
EXPECTED = FileFormat("expected", "`expected.json` of an export for another program")
MASKS = FileFormat("masks", "`masks.json`: kept blocks of pruned or compiled layers")
JOURNAL = FileFormat("journal", "`journal.bin` of a search in progress", 2)


def opened_toml(table: dict[str, Any], kind: str, file: str) -> dict[str, Any]:
    """The table of a TOML file of a kind, if known, without the key `format`; a field of a plugin with this name stays."""
    if not str(table.get(KEY, "")).startswith("sparsemap "):
        return table
    return (DESIGN if table.get("kind", kind) == DESIGN.name else SPEC).opened(table, file)
