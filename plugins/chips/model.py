"""The cost model of the outer search: a chip costs what all layers of its networks cost on it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import CostModel, Evaluation, Problem
from sparsemap.errors import SearchError, SpecError
from sparsemap.files import write_text
from sparsemap.pieces.contracts import Array
from sparsemap.problem.chip import Chip
from sparsemap.problem.designs import Designs
from sparsemap.problem.load import objective_of
from sparsemap.searching.identity import differences
from sparsemap.spec.expressions import Expression

from .genes import ChipGenes
from .layers import Inner, KnownChip, layers_of
from .worth import COSTS, STAGES, Race, evaluated_chip, values_of

REASONS = {
    "constraint": "the chip breaks a constraint of its space",
    "no-design": "a layer has no valid design on the chip",
    "layer-failed": "the search of a layer failed",
}
BATCH = 10
"""Chips that know of the same earlier ones, at most."""
RECENT = 20
"""Chips searched to their end whose gain from a stage on is what the next one may hope for."""
SIZES = ("capacity", "fanout", "instances", "word_bits", "bandwidth")
"""What constraints may ask of a level, as `GLB.capacity` (bits), `GLB.bandwidth` (words a cycle)."""


@attrs.define(eq=False)
class Tried:
    """The chips that were evaluated, by digest of their hardware: in memory, and as lines of a file if there is one."""

    path: Path | None = None
    jobs: int = 1
    told: Callable[[int], None] | None = None
    """Called with the number of valid chips so far."""
    reference: KnownChip | None = None
    """Designs that every layer may start from."""
    rows: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    batch: int = 0
    """Batches that the search has asked for: a chip starts from those of earlier ones and has to beat them, so that what it
    is worth does not depend on how many are evaluated at a time."""
    _pool: ProcessPoolExecutor | None = None

    def read(self, about: Mapping[str, Any]) -> None:
        """Takes what an earlier run of the same search has left; a line cut short by its end does not count. `SearchError`
        if the file is of another search."""
        if self.path is None:
            return
        if self.path.exists():
            lines = self.path.read_text("utf-8").splitlines(keepends=True)
            with suppress(ValueError):
                if lines and (found := json.loads(lines[0])) != about:
                    raise SearchError(
                        f"{self.path} is of a search that differs from this one: {differences(found, about)}. "
                        "Give another folder (--out), or remove that one"
                    )
                good = lines[:1]
                for line in lines[1:]:
                    with suppress(ValueError):
                        if line.endswith("\n"):
                            row = json.loads(line)
                            self.rows[row["digest"]] = row
                            good.append(line)
                if good:
                    write_text(self.path, "".join(good))
                    return
        write_text(self.path, json.dumps(about) + "\n")

    def add(self, row: dict[str, Any]) -> None:
        self.rows[row["digest"]] = row
        if self.path is not None:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
                file.flush()
                os.fsync(file.fileno())
        if self.told is not None:
            self.told(sum(not row["reason"] for row in self.rows.values()))

    @property
    def every(self) -> list[dict[str, Any]]:
        """All chips, in an order that does not depend on which of several jobs came first."""
        return sorted(self.rows.values(), key=lambda row: (row["batch"], row["digest"]))

    def earlier(self) -> list[dict[str, Any]]:
        """The chips of earlier batches whose layers were all searched."""
        return [row for row in self.every if row["batch"] < self.batch and whole(row)]

    def run(self, chips: Mapping[str, Mapping[str, Any]], worth: Callable[..., dict[str, Any]]) -> None:
        """Evaluates the chips that have not been, `jobs` at a time: what `worth` says of the arguments of each."""
        new = {digest: given for digest, given in chips.items() if digest not in self.rows}
        digests = list(new)
        for index, row in self.map(worth, list(new.values())):
            self.add({"digest": digests[index], "batch": self.batch, **row})

    def map(self, work: Callable[[Any], Any], given: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Results with the places of what was given, as they come, from `jobs` processes."""
        if self.jobs == 1 or len(given) < 2:
            yield from enumerate(map(work, given))
            return
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self.jobs, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)
            )
        waiting = {self._pool.submit(work, item): index for index, item in enumerate(given)}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def whole(row: Mapping[str, Any]) -> bool:
    """Whether a chip is valid, and all of its layers were searched."""
    return not row["reason"] and "stopped" not in row


@attrs.frozen(kw_only=True)
class ChipModel(CostModel):
    """Energy, cycles and time of all networks together, each layer searched on the chip; area with the units that they use.

    A chip that breaks a constraint is not searched; one that has lost has the costs of the designs found by then.
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
        segment = segment_of(problem)
        tried = self.tried(problem)
        chips = {digest_of(segment.table(genes, problem)): genes for genes in designs.columns["chip"].T}
        waiting = list(chips.items())
        for some in (waiting[i : i + BATCH] for i in range(0, len(waiting), BATCH)):
            tried.batch += 1
            earlier = tried.earlier()
            race = self.race(problem, earlier)
            given = {
                digest: self.asked(problem, segment, genes, self.near(problem, segment, genes, earlier, tried), race)
                for digest, genes in some
            }
            tried.run(given, worth_of)
        rows = [tried.rows[digest_of(segment.table(genes, problem))] for genes in designs.columns["chip"].T]
        names = tuple(REASONS)
        reasons = np.array([1 << names.index(row["reason"]) if row["reason"] else 0 for row in rows], np.uint64)
        costs = {
            name: np.array([row.get(name, np.inf) if not row["reason"] else np.inf for row in rows]) for name in COSTS
        }
        return Evaluation(costs, reasons, names)

    def _values(self, problem: Problem, rows: Sequence[Mapping[str, Any]]) -> Array:
        """(n, M) what the objective says of chips."""
        objective = objective_of(problem.registry, self.inner.aim, costs=COSTS)
        return values_of(
            objective, problem.chip, *(np.array([row[name] for row in rows], np.float64) for name in COSTS)
        )

    def race(self, problem: Problem, earlier: Sequence[Mapping[str, Any]]) -> Race:
        """What chips have to beat; nothing if the objective need not be better where all layers are."""
        objective = objective_of(problem.registry, self.inner.aim, costs=COSTS)
        rivals = self._values(problem, earlier) if objective.monotone else np.zeros((0, len(objective.names)))
        gains = np.full((len(STAGES), len(objective.names)), np.nan)
        for stage in range(len(STAGES)):
            some = [(value, row["stages"][stage]) for value, row in zip(rivals, earlier, strict=False)]
            known = np.array([(value, early) for value, early in some[-RECENT:] if early])
            if len(known) and (known > 0.0).all():
                gains[stage] = (known[:, 0] / known[:, 1]).min(axis=0)
        return Race(rivals, gains)

    def rules(self, problem: Problem) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*problem.hardware.constraints, *self.constraints)))

    def asked(
        self, problem: Problem, segment: ChipGenes, genes: Array, near: Sequence[KnownChip], race: Race | None
    ) -> dict[str, Any]:
        """What `worth_of` needs to know of a chip (g,)."""
        return {
            "table": segment.table(genes, problem),
            "genes": genes.tolist(),
            "set": segment.sizes(genes, problem),
            "inner": self.inner,
            "constraints": self.rules(problem),
            "near": near,
            "race": race,
        }

    def near(
        self, problem: Problem, segment: ChipGenes, genes: Array, earlier: Sequence[Mapping[str, Any]], tried: Tried
    ) -> list[KnownChip]:
        """The chip tried before that differs in least, the better one of two, and the hardware as it stands."""
        every = segment.every(problem)
        span = np.array([max(len(gene.values) - 1, 1) if gene.unit is None else 1 for gene in every])

        def distance(row: Mapping[str, Any]) -> float:
            apart = np.abs(np.array(row["genes"]) - genes) / span
            return float(np.minimum(apart, 1.0).sum())

        found = [] if tried.reference is None else [tried.reference]
        if earlier:
            values = self._values(problem, earlier)[:, 0]
            best = min(range(len(earlier)), key=lambda i: (distance(earlier[i]), values[i], earlier[i]["digest"]))
            found.insert(0, source_of(earlier[best], segment, problem))
        return found


def segment_of(problem: Problem) -> ChipGenes:
    (segment,) = (item for item in problem.space.segments.values() if isinstance(item, ChipGenes))
    return segment


def source_of(row: Mapping[str, Any], segment: ChipGenes, problem: Problem) -> KnownChip:
    """The designs of a chip that was evaluated."""
    table = segment.table(np.array(row["genes"], np.int64), problem)
    return KnownChip(table=table, genomes=[layer["genomes"] for layer in row["layers"]])


def digest_of(table: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(table, sort_keys=True, default=str).encode()).hexdigest()[:16]


def worth_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a chip is worth, as plain data: constraints on sizes and on area without units come before any search."""
    table, inner, constraints = given["table"], given["inner"], given["constraints"]
    found = {"genes": given["genes"], "set": given["set"], "hardware": dict(table)}
    node, _ = layers_of(inner.networks, inner.plugin_dirs)[0]
    bare = inner.problem(node, {**table, "units": {}}).chip
    area = float(bare.total_area_mm2)
    if broken := broken_of(constraints, bare, {"area_mm2": area}):
        return {**found, "reason": "constraint", "error": broken}
    found |= evaluated_chip(table, inner, given["near"], given["race"], area)
    if found["reason"]:
        return found
    found["seconds"] = found["cycles"] / float(bare.clock_hz)
    if "stopped" in found:
        return {**found, "area_mm2": area}
    chip = bare
    if "units" in table:
        found["hardware"] = {**table, "units": found["units"]}
        chip = inner.problem(node, found["hardware"]).chip
    found |= {"area_mm2": float(chip.total_area_mm2), "units_mm2": float(chip.units_area_mm2)}
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
