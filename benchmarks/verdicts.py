"""Verdicts on pairs of chips: how many are proven, and whether long searches contradict one.

A pair is a workload of Table III on two chips: a platform, and the platform with other sizes. Pairs within 2x in EDP
count, the first `--pairs` of a random series. The long searches have other seeds. `python benchmarks/verdicts.py --out
docs/results/verdicts.md` writes the page."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import WORKLOADS, asked, publish, say
from sparsemap_plugins.reports.compare.sides import labelled, sides_of
from sparsemap_plugins.reports.compare.verdict import Verdict, verdicts_of

from sparsemap import load_problem, search
from sparsemap.files import times
from sparsemap.markdown import markdown_table
from sparsemap.pieces.loading import load

KEY = 20_261_201
"""Part of the seed of the draws."""
CHIPS = ("edge-16gbps", "mobile", "cloud")
SIZES = {
    "edge-16gbps": {"DRAM.bandwidth": "16 GB/s", "GLB.capacity": "128 KB", "GLB.fanout": "256"},
    "mobile": {"DRAM.bandwidth": "32 GB/s", "GLB.capacity": "16 MB", "PEB.capacity": "32 KB", "PEB.fanout": "64"},
    "cloud": {"DRAM.bandwidth": "128 GB/s", "GLB.capacity": "64 MB", "PEB.capacity": "128 KB", "PEB.fanout": "64"},
}
"""Sizes of the platforms that a pair changes."""
FACTORS = (0.25, 0.5, 2.0, 4.0)
WITHIN = 2.0
"""Largest ratio of EDP of a pair."""


def drawn() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Workload, platform, and the table of a chip with one to three other sizes."""
    rng = np.random.default_rng(KEY)
    while True:
        workload, base = (str(rng.choice(names)) for names in (WORKLOADS, CHIPS))
        names = rng.permutation(list(SIZES[base]))[: int(rng.integers(1, 4))]
        levels: dict[str, dict[str, Any]] = {}
        for name in names:
            level, key = str(name).split(".")
            size, _, unit = SIZES[base][str(name)].partition(" ")
            value = float(size) * float(rng.choice(FACTORS))
            levels.setdefault(level, {})[key] = f"{value:g} {unit}" if unit else max(1, int(value))
        yield workload, base, {"extends": base, "name": f"{base}-changed", "levels": levels}


def of_pair(workload: str, chips: tuple[Any, Any], budget: int, long: int, folder: Path) -> dict[str, Any] | None:
    """The verdict of two searches, and the least energy x time of long searches; None for a pair far apart."""
    registry, paths = load(), [folder / name for name in ("one", "two")]
    for chip, path in zip(chips, paths, strict=True):
        search(load_problem(workload, chip, registry=registry), budget=budget, out=str(path))
    (found,) = verdicts_of(labelled([side for path in paths for side in sides_of(path)]), registry)
    if not 1.0 < found.more <= WITHIN:
        return None
    turned = _turned(workload, chips, found, long) if found.state == "proven" else ""
    changed = ", ".join(
        f"{level}.{key} = {size}" for level, sizes in chips[1]["levels"].items() for key, size in sizes.items()
    )
    least = times(found.proof) if found.state == "proven" else ""
    return {
        "workload": workload, "chip": chips[0], "other": changed, "better": found.sides[0].hardware,
        "by": times(found.more), "verdict": found.state, "at least": least, "contradicted": turned,
    }  # fmt: skip


def _turned(workload: str, chips: tuple[Any, Any], found: Verdict, long: int) -> str:
    """Whether a long search of the worse chip finds a design as good as the better chip's: `yes`, or `no` with its ratio."""
    best, second = found.sides[:2]
    (chip,) = (c for c in chips if (c if isinstance(c, str) else c["name"]) == second.hardware)
    costs = [search(load_problem(workload, chip), budget=long, seed=seed).found.costs["edp_js"] for seed in (1, 2)]
    over = min(costs) / (best.value("edp_js") or 1.0)
    return f"{'no' if over > 1.0 else 'yes'}, {times(over)}"


def main() -> None:
    given = asked(__doc__, pairs=10, budget=2_000, long=20_000, out="")
    rows, tried = list[dict[str, Any]](), 0
    for workload, base, changed in drawn():
        tried += 1
        with tempfile.TemporaryDirectory() as folder:
            row = of_pair(workload, (base, changed), given.budget, given.long, Path(folder))
        if row is not None:
            rows.append(row)
            say(*row.values())
        if len(rows) == given.pairs:
            break
    states = Counter(row["verdict"] for row in rows)
    table = markdown_table([list(rows[0]), *([str(x) for x in row.values()] for row in rows)], "<<<<><>>")
    contradicted = sum(row["contradicted"].startswith("yes") for row in rows)
    publish(
        "verdicts", Path(given.out) if given.out else None, pairs=given.pairs, tried=tried, budget=given.budget,
        long=given.long, proven=states["proven"], contradicted=contradicted, table=table,
    )  # fmt: skip


if __name__ == "__main__":
    main()
