"""Designs per second of every installed backend:  python -m benchmarks.backends [--batch 4096 ...] [--backend torch]

Wall-clock time of `Evaluator.evaluate` for genomes that are already where the backend computes, after one evaluation
that fills the tables; best of some repetitions. `random` genomes are mostly invalid, `repaired` ones mostly valid.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np

import sparsemap
from sparsemap.backend import NAMES, backend
from sparsemap.errors import EvaluationError
from sparsemap.pieces.loading import load
from sparsemap.problem.evaluator import Evaluator

BATCHES = (4096, 65_536, 1_048_576)
CASES = (("mm3", "cloud"), ("conv4", "cloud"))
UNIQUE = 65_536
"""Different genomes in a larger batch, which repeats them, so that the making of genomes takes no time."""


@attrs.frozen
class Timing:
    workload: str
    hardware: str
    genomes: str
    """random or repaired"""
    backend: str
    batch: int
    valid: float
    """Share of the designs."""
    seconds: float
    first_seconds: float
    """Of the first evaluation, which fills the tables."""

    @property
    def per_second(self) -> float:
        return self.batch / self.seconds


def time_backend(evaluator: Evaluator, genomes: np.ndarray, repeat: int = 3) -> tuple[float, float, float]:
    """Seconds of the first evaluation, seconds of the best later one, and the share of valid designs."""
    sent: Any = evaluator.xp.asarray(genomes)
    seconds = []
    for _ in range(repeat + 1):
        start = time.perf_counter()
        found = evaluator.evaluate(sent)  # its results are on the host: all work is done
        seconds.append(time.perf_counter() - start)
    return seconds[0], min(seconds[1:]), float(found.valid.mean())


def run(
    backends: Sequence[str], batches: Sequence[int] = BATCHES, cases: Sequence[tuple[str, str]] = CASES, repeat: int = 3
) -> Iterator[Timing]:
    registry = load()
    for workload, hardware in cases:
        problem = sparsemap.load_problem(workload, hardware, registry=registry)
        rng = np.random.default_rng(0)
        some = problem.space.sample(min(UNIQUE, max(batches)), rng)
        for kind, pool in (("random", some), ("repaired", problem.space.repair(some, rng))):
            for name in backends:
                evaluator = Evaluator(problem, backend=name)
                for batch in batches:
                    genomes = np.resize(pool, (batch, pool.shape[1]))
                    first, best, valid = time_backend(evaluator, genomes, repeat)
                    yield Timing(workload, hardware, kind, repr(evaluator.xp), batch, valid, best, first)


def installed() -> list[str]:
    found = []
    for name in NAMES:
        try:
            backend(name)
        except EvaluationError:
            continue
        found.append(name)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", action="append", help="such as torch or torch:cpu; default: all installed ones")
    parser.add_argument("--batch", type=int, nargs="+", default=BATCHES)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    print("| case | genomes | backend | batch | valid | designs/s | first evaluation |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: |")
    for row in run(args.backend or installed(), args.batch, repeat=args.repeat):
        case = f"{row.workload}, {row.hardware}"
        numbers = (f"{row.batch:,}", f"{row.valid:.0%}", f"{row.per_second:,.0f}", f"{row.first_seconds:.2f} s")
        print("| " + " | ".join((case, row.genomes, row.backend, *numbers)) + " |", flush=True)


if __name__ == "__main__":
    main()
