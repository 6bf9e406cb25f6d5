"""Cost model of the outer search: a chip costs as much as all layers of its networks on the chip."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import CostModel, Evaluation, Problem
from sparsemap.file_formats import FileFormat
from sparsemap.files import shown
from sparsemap.pieces.contracts import Array
from sparsemap.problem.constraints import broken_of
from sparsemap.problem.designs import Designs
from sparsemap.problem.load import objective_of
from sparsemap.searching.folder import ADVICE, check_file
from sparsemap.searching.journal import JournalMismatch, sealed, unsealed
from sparsemap.writing import write_text

from .genes import ChipGenes
from .judge import COSTS, Judge, Rows, moved_of
from .layers import Inner, KnownChip, Weight, with_widest
from .worth import STAGES, Leg, evaluated_chip, ruled_costs

logger = logging.getLogger("sparsemap")
LINES = FileFormat("chip-lines", "`chips.jsonl`: chips of a search in progress", fields={"a list": "networks"})
REASONS = {
    "constraint": "the chip breaks a constraint of its space",
    "no-design": "a layer has no valid design on the chip",
    "layer-failed": "the search of a layer failed",
}
BATCH = 16
"""Most chips in a batch; chips of a batch are compared and start from the same earlier chips."""
NEAR = 2
"""Earlier chips with starting designs for a chip's layers, beside the best chip."""
UNIT = 0.1
"""Distance of chips that differ in a unit; opposite ends of a list of sizes have distance 1."""
KEPT = 0.5
"""Share of a batch's chips that continue after a stage."""


@attrs.define(eq=False)
class Tried:
    """Evaluated chips by digest of the hardware, in memory and optionally as lines of a file."""

    path: Path | None = None
    jobs: int = 1
    told: Callable[[int], None] | None = None
    """Called with the number of valid chips so far."""
    reference: KnownChip | None = None
    """Starting designs for every layer."""
    given: Mapping[str, Any] = attrs.field(factory=dict)
    """Costs of the given hardware for the judge."""
    weights: Sequence[Weight] = ()
    """By distinct layer, the division of designs during the comparison of chips."""
    spared: str = ""
    """Digest of a chip that is always searched to its end."""
    rows: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    """Final row of each chip, by digest."""
    lines: dict[tuple[str, int, int], dict[str, Any]] = attrs.field(factory=dict)
    """Rows of an earlier run of the search, by digest, batch and stage."""
    batch: int = 0
    """Batches so far: a chip starts only from earlier batches, so its worth does not depend on the number of jobs."""
    _pools: list[ProcessPoolExecutor] = attrs.field(factory=list)
    _homes: dict[str, int] = attrs.field(factory=dict)
    """Number of the pool with a chip's searches, by digest of the chip."""

    def read(self, about: Mapping[str, Any], overwrite: bool) -> None:
        """Read the rows of an earlier run of the same search; damaged or truncated lines are left out.

        `JournalMismatch` if the file belongs to another search, unless `overwrite` discards it (`folder.check_file`)."""
        if self.path is None:
            return
        rows = list[dict[str, Any]]()
        if self.path.exists() and not overwrite:
            *complete, _ = self.path.read_bytes().split(b"\n")
            first, *lines = complete or [sealed(LINES.stamped(about)).encode()]
            if (found := unsealed(first)) is None:
                raise JournalMismatch(f"{shown(self.path)} is damaged: its first line says of no search. {ADVICE}")
            found = LINES.opened(found, shown(self.path))
            if found != about:
                check_file(self.path, ", ".join(found.get("networks", ())), found, about)
                lines = []
            rows = [row for line in lines if (row := unsealed(line)) is not None]
            if lost := len(lines) - len(rows):
                text = "%s: %d of %d lines are damaged; these chips are searched again"
                logger.warning(text, shown(self.path), lost, len(lines))
        self.lines |= {(row["digest"], row["batch"], row["stage"]): row for row in rows}
        write_text(self.path, "".join(f"{sealed(row)}\n" for row in (LINES.stamped(about), *rows)))

    def add(self, row: dict[str, Any]) -> None:
        """Record the row of a chip's stage."""
        self.lines[row["digest"], row["batch"], row["stage"]] = row
        if self.path is not None:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(f"{sealed(row)}\n")
                file.flush()
                os.fsync(file.fileno())

    def take(self, row: dict[str, Any]) -> None:
        """Take the final row of a chip. Of two complete rows of a chip, the better result stays."""
        known = self.rows.get(row["digest"])
        if known is None or not whole(known) or (whole(row) and row["value"] <= known["value"]):
            self.rows[row["digest"]] = row
        if self.told is not None:
            self.told(sum(not row["reason"] for row in self.rows.values()))

    @property
    def every(self) -> list[dict[str, Any]]:
        """All chips, in an order independent of the jobs' timing."""
        return sorted(self.rows.values(), key=lambda row: (row["batch"], row["digest"]))

    def earlier(self) -> list[dict[str, Any]]:
        """The valid chips of earlier batches."""
        return [row for row in self.every if row["batch"] < self.batch and not row["reason"]]

    def run(
        self, chips: Mapping[str, Mapping[str, Any]], stage: int, worth: Callable[..., dict[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        """Rows of the chips after a stage, by digest, `jobs` at a time; `worth` maps each chip's arguments to a row."""
        new = [digest for digest in chips if (digest, self.batch, stage) not in self.lines]
        for index, row in self.map(worth, [chips[digest] for digest in new], new):
            self.add({"digest": new[index], "batch": self.batch, "stage": stage, **row})
        return {digest: self.lines[digest, self.batch, stage] for digest in chips}

    def map(
        self, work: Callable[[Any], Any], given: Sequence[Any], keys: Sequence[str] = ()
    ) -> Iterator[tuple[int, Any]]:
        """(position, result) of each item of `given`, in order of completion, from `jobs` processes.

        Work with a key goes to the last process with the key, where it resumes, unless another process is idle."""
        if self.jobs == 1:
            yield from enumerate(map(work, given))
            return
        if not self._pools:
            quiet = get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)
            self._pools = [ProcessPoolExecutor(1, *quiet) for _ in range(self.jobs)]
        homes = [self._homes.get(key) for key in keys] or [None] * len(given)
        waiting, running = list(range(len(given))), dict[Future[Any], tuple[int, int]]()
        try:
            while waiting or running:
                for pool in sorted({*range(self.jobs)} - {pool for _, pool in running.values()})[: len(waiting)]:
                    index = min(waiting, key=lambda i: {pool: 0, None: 1}.get(homes[i], 2))
                    waiting.remove(index)
                    running[self._pools[pool].submit(work, given[index])] = index, pool
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    index, pool = running.pop(future)
                    self._homes |= dict.fromkeys(keys[index : index + 1], pool)
                    yield index, future.result()
        except BaseException:
            self.close(wait=False)
            raise

    def close(self, wait: bool = True) -> None:
        """End the processes; `wait` for their end."""
        for pool in self._pools:
            pool.shutdown(wait, cancel_futures=True)
        self._pools = []
        self._homes.clear()


def whole(row: Mapping[str, Any]) -> bool:
    """Whether a chip is valid and all its layers were searched."""
    return not row["reason"] and "stopped" not in row


def hoped(row: Mapping[str, Any]) -> dict[str, float]:
    """Costs of a completely searched chip, extrapolated to more designs.

    In logarithms, each cost falls again by half its fall in the last stage."""
    before, now = row["course"][-2:]
    return {name: end * math.sqrt(end / before[name]) for name, end in now.items()}


@attrs.frozen(kw_only=True)
class ChipModel(CostModel):
    """Energy, cycles and time of all networks together, each layer searched on the chip; area with the units in use.

    A chip that breaks a constraint is not searched. The chips of a batch are compared after each of `STAGES` of their
    searches, and the better half continues. A chip proposed again is searched further, from its designs.

    Costs are extrapolated to a longer search (`hoped`), so that chips with good starting designs are not favoured over
    new chips. A stopped chip takes its last costs times the best chip's extrapolated gain since then."""

    type_name: ClassVar[str] = "chip-layers"
    needs: ClassVar[tuple[str, ...]] = ("chip",)

    inner: Inner
    """Settings of the layer searches."""

    @property
    def costs(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*COSTS, *self.ratios)

    @property
    def aim(self) -> Any:
        return objective_of(self.inner.registry, self.inner.aim, costs=COSTS)

    @property
    def ratios(self) -> tuple[str, ...]:
        """Costs for the judge "worst": for each value of the objective, the largest ratio of a network."""
        return tuple(f"worst_{i + 1}" for i in range(len(self.aim.names))) if self.inner.judged else ()

    def judge(self, problem: Problem) -> Judge:
        given = self.tried(problem).given
        return Judge(objective=self.aim, chip=problem.chip, networks=self.inner.judged, given=given)

    def reasons(self, problem: Problem) -> Mapping[str, str]:
        return REASONS

    def tried(self, problem: Problem) -> Tried:
        return problem.remember((ChipModel.tried, self), Tried)

    def evaluate(self, designs: Designs, problem: Problem, detail: bool = False) -> Evaluation:
        segment = segment_of(problem)
        tried = self.tried(problem)
        digests = [digest_of(segment.table(genes, problem)) for genes in designs.columns["chip"].T]
        waiting = list(dict(zip(digests, designs.columns["chip"].T, strict=True)).items())
        costs = dict[str, Mapping[str, float]]()
        for some in (waiting[i : i + BATCH] for i in range(0, len(waiting), BATCH)):
            tried.batch += 1
            costs |= self._raced(problem, segment, tried, dict(some))
        names = tuple(REASONS)
        rows = [costs[digest] for digest in digests]
        reasons = np.array([1 << names.index(row["reason"]) if row["reason"] else 0 for row in rows], np.uint64)
        found = {name: np.array([np.inf if row["reason"] else row.get(name, np.inf) for row in rows]) for name in COSTS}
        if self.ratios:
            valid = [i for i, row in enumerate(rows) if not row["reason"]]
            values = np.full((len(rows), len(self.ratios)), np.inf)
            values[valid] = self.values(problem, [rows[i] for i in valid])
            found |= dict(zip(self.ratios, values.T, strict=True))
        return Evaluation(found, reasons, names)

    def _raced(
        self, problem: Problem, segment: ChipGenes, tried: Tried, chips: Mapping[str, Array]
    ) -> dict[str, dict[str, Any]]:
        """A row for each chip of a batch, by digest."""
        rows: dict[str, dict[str, Any]] = {}
        for digest, genes in chips.items():
            if broken := segment.broken(genes, problem):
                about = {"digest": digest, "batch": tried.batch, "genes": genes.tolist()}
                rows[digest] = {**about, "reason": "constraint", "error": broken}
        earlier, fit = tried.earlier(), {digest: genes for digest, genes in chips.items() if digest not in rows}
        near = {digest: self.near(problem, segment, genes, earlier, tried) for digest, genes in fit.items()}
        going = list(near)
        seed = int(np.random.SeedSequence([self.inner.seed, tried.batch]).generate_state(1)[0])  # of all: they go on
        for stage in range(len(STAGES)):
            leg = Leg(stage=stage, weights=tried.weights, seed=seed)
            asked = {one: self.asked(problem, segment, chips[one], near[one], leg) for one in going}
            for digest, row in tried.run(asked, stage, worth_of).items():
                now = {name: row.get(name, np.inf) for name in moved_of(self.inner.judged)}
                course = [*rows.get(digest, {}).get("course", ()), now]
                rows[digest] = {**row, "course": course}
            going = [digest for digest in going if not rows[digest]["reason"]]
            if stage < len(STAGES) - 1:
                best = self.ranked(problem, [rows[digest] for digest in going])
                for place in best[math.ceil(KEPT * len(going)) :]:
                    if going[place] != tried.spared:
                        rows[going[place]]["stopped"] = STAGES[stage]
                going = [digest for digest in going if "stopped" not in rows[digest]]
        for row in rows.values():
            tried.take(row if row["reason"] else row | {"value": self.value(problem, row)})
        return {digest: self._hoped(problem, row, [rows[one] for one in going]) for digest, row in rows.items()}

    def ranked(self, problem: Problem, rows: Sequence[Mapping[str, Any]]) -> list[int]:
        """Positions of chips, best first: by the number of dominating chips, then by the first value."""
        values = self.values(problem, rows)
        beaten = [int(((values <= mine).all(axis=1) & (values < mine).any(axis=1)).sum()) for mine in values]
        return sorted(range(len(rows)), key=lambda i: (beaten[i], *values[i].tolist(), i))

    def _hoped(self, problem: Problem, row: dict[str, Any], ended: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """A valid chip with extrapolated costs; any other chip unchanged."""
        if row["reason"] or not ended:
            return row
        if "stopped" not in row:
            return row | hoped(row)
        best, stage = ended[self.ranked(problem, ended)[0]], len(row["course"]) - 1
        then = best["course"][stage]
        return row | {name: row[name] * end / then[name] for name, end in hoped(best).items()}

    def values(self, problem: Problem, rows: Rows) -> Array:
        """(n, M) values of chips to the judge."""
        return self.judge(problem).values(rows)

    def value(self, problem: Problem, row: Mapping[str, Any]) -> float:
        """The first value of a chip."""
        return float(self.values(problem, [row])[0, 0])

    def asked(
        self, problem: Problem, segment: ChipGenes, genes: Array, near: Sequence[KnownChip], leg: Leg | None
    ) -> dict[str, Any]:
        """Arguments of `worth_of` for a chip (g,)."""
        chip = {"table": segment.table(genes, problem), "genes": genes.tolist(), "set": segment.sizes(genes, problem)}
        return {**chip, "inner": self.inner, "constraints": segment.rules(problem), "near": near, "leg": leg}

    def near(
        self, problem: Problem, segment: ChipGenes, genes: Array, earlier: Sequence[Mapping[str, Any]], tried: Tried
    ) -> list[KnownChip]:
        """Chips with starting designs: the best earlier one, the `NEAR` most similar, and the unchanged hardware."""
        every = segment.every(problem)
        span = np.array([max(len(gene.values) - 1, 1) if gene.unit is None else 1 / UNIT for gene in every])

        def distance(row: Mapping[str, Any]) -> float:
            apart = np.abs(np.array(row["genes"]) - genes)
            return float((np.where([gene.unit is None for gene in every], apart, apart > 0) / span).sum())

        found = [] if tried.reference is None else [tried.reference]
        if earlier:
            values = self.values(problem, earlier)[:, 0]
            ranked = sorted(range(len(earlier)), key=lambda i: (distance(earlier[i]), values[i], earlier[i]["digest"]))
            best = min(ranked, key=lambda i: values[i])
            chosen = dict.fromkeys([*ranked[:1], best, *ranked[1:NEAR]])
            found = [source_of(earlier[i], segment, problem) for i in chosen] + found
        return found


def segment_of(problem: Problem) -> ChipGenes:
    (segment,) = (item for item in problem.space.segments.values() if isinstance(item, ChipGenes))
    return segment


def source_of(row: Mapping[str, Any], segment: ChipGenes, problem: Problem) -> KnownChip:
    """Starting designs of an evaluated chip."""
    table = segment.table(np.array(row["genes"], np.int64), problem)
    return KnownChip(table=table, genomes=[layer["genomes"] for layer in row["layers"]])


def digest_of(table: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(table, sort_keys=True, default=str).encode()).hexdigest()[:16]


def worth_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Worth of a chip, or result of a leg of its search, as plain data."""
    table, inner, leg = given["table"], given["inner"], given["leg"]
    found = {"genes": given["genes"], "set": given["set"], "hardware": dict(table)}
    found |= evaluated_chip(table, inner, given["near"], leg)
    if found["reason"]:
        return found
    if "units" in table and (leg is None or leg.stage == len(STAGES) - 1):
        found["hardware"] = {**table, "units": found["units"]}
    on_chip = partial(inner.problem, table=found["hardware"])
    chip = with_widest(inner.networks, inner.plugin_dirs, on_chip).chip
    costs = ruled_costs(found, chip)
    found |= costs
    if leg is not None and leg.stage < len(STAGES) - 1:
        return found
    broken = broken_of(given["constraints"], chip, costs)
    return {**found, "reason": "constraint", "error": broken} if broken else found
