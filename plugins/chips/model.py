"""The cost model of the outer search: a chip costs what all layers of its networks cost on it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import CostModel, Evaluation, Problem, load_problem
from sparsemap.errors import SpecError
from sparsemap.problem.chip import Chip
from sparsemap.problem.designs import Designs
from sparsemap.spec.expressions import Expression

from .genes import ChipGenes
from .layers import Inner, evaluated_chip, layers_of, registry_of

REASONS = {
    "constraint": "the chip breaks a constraint of its space",
    "no-design": "a layer has no valid design on the chip",
    "layer-failed": "the search of a layer failed",
}
COSTS = ("energy_pj", "cycles", "seconds", "area_mm2")
SIZES = ("capacity", "fanout", "instances", "word_bits", "bandwidth")
"""What constraints may ask of a level, as `GLB.capacity` (bits), `GLB.bandwidth` (words a cycle)."""


@attrs.define(eq=False)
class Tried:
    """The chips that were evaluated, by digest of their hardware: in memory, and as lines of a file if there is one."""

    path: Path | None = None
    jobs: int = 1
    told: Callable[[int], None] | None = None
    """Called with the number of valid chips so far."""
    rows: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    _pool: ProcessPoolExecutor | None = None

    def read(self, about: str) -> None:
        """Takes what an earlier run of the same search has left; a line cut short by its end does not count."""
        if self.path is None:
            return
        if self.path.exists():
            lines = self.path.read_text("utf-8").splitlines(keepends=True)
            if lines and lines[0].rstrip("\n") == about:
                good = [lines[0]]
                for line in lines[1:]:
                    with suppress(ValueError):
                        if line.endswith("\n"):
                            row = json.loads(line)
                            self.rows[row["digest"]] = row
                            good.append(line)
                self.path.write_text("".join(good), "utf-8")
                return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(about + "\n", "utf-8")

    def add(self, row: dict[str, Any]) -> None:
        self.rows[row["digest"]] = row
        if self.path is not None:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
                file.flush()
                os.fsync(file.fileno())
        if self.told is not None:
            self.told(sum(not row["reason"] for row in self.rows.values()))

    def run(
        self, chips: Mapping[str, tuple[Any, Mapping[str, Any]]], worth: Callable[[Mapping[str, Any]], dict[str, Any]]
    ) -> None:
        """Evaluates the chips that have not been, `jobs` at a time; each comes with what a reader wants to know of it."""
        new = {digest: table for digest, (_, table) in chips.items() if digest not in self.rows}
        if self.jobs == 1 or len(new) < 2:
            for digest, table in new.items():
                self.add({"digest": digest, "set": chips[digest][0], **worth(table)})
            return
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self.jobs, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)
            )
        waiting = {self._pool.submit(worth, table): digest for digest, table in new.items()}
        try:
            for future in as_completed(waiting):
                digest = waiting[future]
                self.add({"digest": digest, "set": chips[digest][0], **future.result()})
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


@attrs.frozen(kw_only=True)
class ChipModel(CostModel):
    """Energy, cycles and time of all layers together, each searched on the chip; area with the units that they use.

    Energies and cycles of the layers are summed; a chip that breaks a constraint is not searched.
    """

    type_name: ClassVar[str] = "chip-layers"
    needs: ClassVar[tuple[str, ...]] = ("chip",)
    costs: ClassVar[tuple[str, ...]] = COSTS

    inner: Inner
    """How layers are searched."""
    constraints: tuple[str, ...] = ()
    """Besides those of the hardware."""

    def reasons(self, problem: Problem) -> Mapping[str, str]:
        return REASONS

    def tried(self, problem: Problem) -> Tried:
        return problem.remember((ChipModel.tried, self), Tried)

    def evaluate(self, designs: Designs, problem: Problem, detail: bool = False) -> Evaluation:
        (segment,) = (item for item in problem.space.segments.values() if isinstance(item, ChipGenes))
        chips = [(segment.sizes(genes, problem), segment.table(genes, problem)) for genes in designs.columns["chip"].T]
        digests = [digest_of(table) for _, table in chips]
        tried = self.tried(problem)
        rules = tuple(dict.fromkeys((*problem.hardware.constraints, *self.constraints)))
        tried.run(dict(zip(digests, chips, strict=True)), partial(worth_of, inner=self.inner, constraints=rules))
        rows = [tried.rows[digest] for digest in digests]
        names = tuple(REASONS)
        reasons = np.array([1 << names.index(row["reason"]) if row["reason"] else 0 for row in rows], np.uint64)
        costs = {
            name: np.array([row.get(name, np.inf) if not row["reason"] else np.inf for row in rows]) for name in COSTS
        }
        return Evaluation(costs, reasons, names)


def digest_of(table: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(table, sort_keys=True, default=str).encode()).hexdigest()[:16]


def worth_of(table: Mapping[str, Any], inner: Inner, constraints: tuple[str, ...]) -> dict[str, Any]:
    """What a chip is worth, as plain data: constraints on sizes and on area without units come before any search."""
    node, _ = layers_of(inner.networks, inner.plugin_dirs)[0]
    registry = registry_of(inner.plugin_dirs)
    bare = load_problem(node.piece, {**table, "units": {}}, inner.space, registry=registry)
    broken = broken_of(constraints, bare.chip, {"area_mm2": float(bare.chip.total_area_mm2)})
    if broken:
        return {"hardware": dict(table), "reason": "constraint", "error": broken}
    found = evaluated_chip(table, inner)
    if found["reason"]:
        return found
    with_units = {**table, "units": found["units"]} if "units" in table else table
    chip = load_problem(node.piece, with_units, inner.space, registry=registry).chip
    found |= {
        "hardware": dict(with_units),
        "area_mm2": float(chip.total_area_mm2),
        "units_mm2": float(chip.units_area_mm2),
    }
    found["power_w"] = found["energy_pj"] * 1e-12 / found["seconds"]
    found["edp"] = found["energy_pj"] * found["cycles"]
    broken = broken_of(constraints, chip, {key: value for key, value in found.items() if isinstance(value, float)})
    return {**found, "reason": "constraint", "error": broken} if broken else found


def broken_of(constraints: tuple[str, ...], chip: Chip, costs: Mapping[str, float]) -> str:
    """The first constraint that does not hold; those that read a cost which is not known yet are passed over."""
    values = dict(costs)
    for s, name in enumerate(chip.names):
        sizes = (chip.capacity_bits[s], chip.fanout[s], chip.instances[s], chip.word_bits[s])
        speed = min(float(chip.bandwidth[s]), float(chip.read_bandwidth[s]))
        values |= {f"{_plain(name)}__{key}": float(x) for key, x in zip(SIZES, (*sizes, speed), strict=True)}
    known = {*values, "energy_pj", "cycles", "seconds", "power_w", "area_mm2", "edp"}
    for text in constraints:
        plain = re.sub(r"([A-Za-z_]\w*)\.([a-z_]+)", lambda m: f"{_plain(m[1])}__{m[2]}", text)
        try:
            rule = Expression.parse(plain, known)
        except ValueError as error:
            wanted = f"costs, and {', '.join(SIZES)} of {', '.join(chip.names)}"
            raise SpecError.at(
                "", "constraints", f"{text!r}: {str(error).replace('__', '.')}; may use {wanted}"
            ) from None
        if rule.names <= values.keys() and not bool(rule(values)):
            return text
    return ""


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)
