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
        return found

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


DESIGN = FileFormat("design", "`design.toml`: mapping, formats, workload, hardware and costs of a design")
SPEC = FileFormat("spec", "TOML files of workloads, hardware, networks and all other kinds")
RESULT = FileFormat("result", "`result.json` of a search; also for `history.csv`, `timing.csv`, `front.csv`")
NETWORK = FileFormat("network", "`network.json` of a network; also for `layers.csv`, `fused.csv`")
STUDY = FileFormat("study", "`study.json` of a study; also for `table.csv`, `comparison.csv`")
CERTIFICATE = FileFormat("certificate", "`certificate.json` of a proving search")
CHIP = FileFormat(
    "chip", "`design.json` of one chip for networks; also for its `layers.csv`, `front.csv`, `executed.csv`"
)
MASKS = FileFormat("masks", "`masks.json`: kept blocks of pruned or compiled layers")
JOURNAL = FileFormat("journal", "`journal.bin` of a search in progress", 2)


def opened_toml(table: dict[str, Any], kind: str, file: str) -> dict[str, Any]:
    """The table of a TOML file of a kind, if known, without the key `format`; a field of a plugin with this name stays."""
    if not str(table.get(KEY, "")).startswith("sparsemap "):
        return table
    return (DESIGN if table.get("kind", kind) == DESIGN.name else SPEC).opened(table, file)
