"""What has to hold between a design and a changed one, on random problems, for as long as one likes.

    python tests/fuzz/metamorphic.py --minutes 30
    python tests/fuzz/metamorphic.py --family mixed --probe one-by-one --alone 100 --minutes 30

Cases are numbered, and a number always stands for the same case; `--first N --only` tries a single one, `--probe NAME` one
probe. Design files of what is broken go to `--out`.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import attrs
import numpy as np
from probes import ALONE, PROBES
from random_problems import SHARES, Case, Cases
from sides import Broken
from sparsemap_plugins.densities.data import DataOccupancy

from sparsemap import DensityModel, Occupancy
from sparsemap.errors import SpecError
from sparsemap.pieces.loading import load
from sparsemap.pieces.registry import Registry
from sparsemap.writing import write_text

DESIGNS = 200
"""Random designs of every case."""
PATTERNS = [
    {"type": "structured", "density": 0.5},
    {"type": "n-of-m", "n": 2, "m": 4},
    {"type": "block", "density": 0.25, "block": [2, 2]},
    {"type": "banded", "half_width": 2},
]
LED_BY_OUTPUT = [
    {"name": f"{action}-{target}-by-z".lower(), "action": action, "filters": [{"target": target, "leader": "Z"}]}
    for action in ("gate", "skip")
    for target in "PQ"
]
SPACES = [
    "full",
    "full",
    "paper",
    {"extends": "full", "formats": {"candidates": ["uncompressed", "ellpack", "bitmask", "blocked-bitmask"]}},
    {"extends": "full", "formats": {"candidates": ["uncompressed", "nm-offset", "run-length", "coordinate"]}},
    {"extends": "paper", "gate-skip": {"candidates": ["none", "skip-all", *LED_BY_OUTPUT]}},
]


CRISP = {"type": "crisp", "n": 1, "m": 2, "block": [2, 4], "keep": 1}
PADDED = [
    {"extends": "full", "formats": {"candidates": ["uncompressed", "ellpack", *others]}}
    for others in ([], ["bitmask"], ["nm-offset", "coordinate"])
]
"""Spaces in which formats pad their fibers to the fullest one."""


@attrs.frozen(kw_only=True)
class Drawn(DensityModel):
    """Actual data of any shape: a tensor that is drawn."""

    type_name: ClassVar[str] = "drawn"
    density: float = 0.3

    def occupancy(self, shape: tuple[int, ...]) -> Occupancy:
        if not shape:
            raise SpecError.at("", "", "drawn: a single word is no data")
        drawn = np.random.default_rng(0).random(shape) < self.density
        return DataOccupancy(shape, np.array(np.nonzero(drawn)), "the drawn tensor", True)


EVERY = [
    *SHARES, *2 * PATTERNS, *3 * [CRISP], *2 * [Drawn(name="drawn")],
    {"type": "range", "low": 0.1, "high": 0.5},
    *({"type": "grouped", "n": [2], "m": 4, "rank": rank, "of": Drawn(name="drawn", density=0.1)} for rank in (0, 1)),
]  # fmt: skip
"""Densities of every type; `flattened` and `gamma` become actual data."""


def window(rng: random.Random) -> dict[str, Any]:
    """What convolutions have in common: strides, dilations, and padding that differs from side to side."""
    taps = {name: rng.choice((1, 2, 3, 3, 5)) for name in "rs"}
    rows = {name: rng.choice((1, 2, 3, 4, 6, 7, 8)) for name in "pq"}
    sides = [[rng.randrange(n) for _ in range(2)] for n in taps.values()]
    return {**rows, **taps, "stride": rng.choice((1, 1, 2, 3)), "dilation": rng.choice((1, 1, 2)), "padding": sides}


def depthwise(rng: random.Random) -> dict[str, Any]:
    return {"type": "depthwise", "c": rng.choice((1, 4, 6, 16, 30, 60)), **window(rng)}


def conv2d(rng: random.Random) -> dict[str, Any]:
    return {"type": "conv2d", "k": rng.choice((1, 2, 4, 6)), "c": rng.choice((1, 3, 4)), **window(rng)}


def product(rng: random.Random) -> None:
    """No layer: the case is a product."""


def cases_of(registry: Registry, family: str = "products") -> Cases:
    """Cases on all kinds of patterns, formats and mechanisms, under both cost models. The family `padded` has padded formats
    over every kind of pattern, `layers` convolutions with strides, dilations and padding, `wide` levels that read several
    words at once, `mixed` all of these, `shared` levels with every way to share words."""
    if family == "shared":
        ways = {"shared_words": ("lock-step", "separate", 1, 2, 8), "vectors": (False, False, True)}
        return Cases(registry, PADDED, densities=EVERY, layers=[product, product, conv2d], keys=ways)
    if family == "mixed":
        kinds, keys = [product, depthwise, conv2d], {"access_words": (1, 1, 2, 4)}
        return Cases(registry, PADDED, densities=EVERY, layers=kinds, keys=keys)
    if family == "padded":
        return Cases(registry, PADDED, densities=[*SHARES, *PATTERNS, *2 * [CRISP]])
    if family == "wide":
        return Cases(
            registry, SPACES, densities=[*SHARES, *PATTERNS, *2 * [CRISP]], keys={"access_words": (1, 2, 4, 8)}
        )
    if family == "layers":
        return Cases(registry, SPACES, densities=[*SHARES, 1.0, 1.0, 1.0], layers=[depthwise, conv2d])
    return Cases(registry, SPACES, densities=[*SHARES, *PATTERNS])


FAMILIES = "products", "padded", "layers", "wide", "mixed", "shared"


def tried(case: Case, probes: list[str], counts: Counter[str], alone: int = ALONE) -> Iterator[tuple[str, Exception]]:
    """Tries probes on a case: counts the designs evaluated (`alone` of them by themselves), yields what is broken."""
    for name in probes:
        try:
            probe = partial(PROBES[name], alone=alone) if name == "one-by-one" else PROBES[name]
            counts[name] += probe(case, DESIGNS)
        except Exception as error:
            counts[f"{name}: broken"] += 1
            yield name, error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long to try (5)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", action="store_true", help="try the first case only, and print tracebacks")
    parser.add_argument(
        "--probe", action="append", choices=PROBES, help="try this probe only; may be given several times"
    )
    parser.add_argument("--designs", type=float, default=float("inf"), help="end when so many are evaluated")
    parser.add_argument("--alone", type=int, default=ALONE, help=f"designs of a case evaluated alone ({ALONE})")
    parser.add_argument("--out", type=Path, help="folder for the designs of what is broken")
    parser.add_argument("--family", choices=FAMILIES, default="products", help="what the cases are (products)")
    options = parser.parse_args()
    cases, probes = cases_of(load(), options.family), options.probe or list(PROBES)
    counts, number, end = Counter[str](), options.first, time.monotonic() + 60 * options.minutes
    told = time.monotonic()
    while time.monotonic() < end and sum(counts.values()) < options.designs:
        case = cases.case(number)
        for name, error in tried(case, probes, counts, options.alone):
            print(f"{number} ({name}, {case.cost_model}): {type(error).__name__}: {error}"[:600], flush=True)
            if options.only:
                print(case, *traceback.format_exception(error), sep="\n")
            if options.out and isinstance(error, Broken):
                for place, text in enumerate(error.files()):
                    write_text(options.out / f"{number}-{name}-{place}.toml", text)
        number += 1
        if options.only:
            break
        if time.monotonic() > told + 30:
            told = time.monotonic()
            print(summary(number - options.first, counts), flush=True)
    print(summary(number - options.first, counts))
    return 1 if any(": broken" in name for name in counts) else 0


def summary(cases: int, counts: Counter[str]) -> str:
    designs = {name: count for name, count in counts.items() if ": broken" not in name}
    by_probe = ", ".join(f"{name} {designs.get(name, 0):,}" for name in designs)
    broken = sum(counts.values()) - sum(designs.values())
    return f"{cases:,} cases, {sum(designs.values()):,} designs evaluated, {broken} broken ({by_probe})"


if __name__ == "__main__":
    sys.exit(main())
