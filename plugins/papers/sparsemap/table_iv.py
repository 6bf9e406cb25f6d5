"""Table IV: EDP of SparseMap, SAGE-like and a Sparseloop mapper beside the paper's, and the reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from sparsemap.csv_files import read_csv

from ..rows import Row, finite, ratio
from ..runs import Runner, StudyRun, by, typical_edp

OURS = "sparsemap"
BASELINES = {"sage-like": "SAGE-like", "random-pruned": "Sparseloop mapper"}
ALL = (OURS, *BASELINES)
PRINTED = {"sage-like": "sage_like", "random-pruned": "sparseloop", "sparsemap": "sparsemap"}
"""Column of the paper's table by searcher."""
CLAIMS = {
    ("sage-like", "edge"): 26.8, ("sage-like", "mobile"): 19.2, ("sage-like", "cloud"): 171.4,
    ("random-pruned", "edge"): 8.8, ("random-pruned", "mobile"): 4.5, ("random-pruned", "cloud"): 158.9,
}  # fmt: skip
"""Average reductions in Sections V-D and V-E of the paper."""


def printed() -> dict[tuple[str, str], dict[str, float]]:
    """The paper's EDPs by workload and platform, then searcher."""
    rows = read_csv(Path(__file__).with_name("table-iv.csv"))
    return {
        (row["workload"], row["platform"]): {name: float(row[column]) for name, column in PRINTED.items()}
        for row in rows
    }


def platform_of(hardware: str) -> str:
    """The paper's platform of a hardware: `edge-16gbps` is another reading of its edge."""
    return hardware.partition("-")[0]


def page(runner: Runner, name: str) -> dict[str, Any]:
    runs = runner.run(name)
    rows = cells(runs)
    about = {"runs": runs, "seed": len({run.seed for run in runs}), "hardware": ", ".join(by(runs, "hardware"))}
    return {"rows": rows, "pairs": pairs(rows), **about}


def cells(runs: Sequence[StudyRun]) -> list[dict[str, Any]]:
    """A row per workload and hardware."""
    paper, rows = printed(), []
    for (workload, hardware), group in by(runs, "workload", "hardware").items():
        found = by(group, "searcher")
        ours, theirs = found[OURS], paper.get((workload, platform_of(hardware)), {})
        best = min(ours, key=lambda run: run.edp).result
        names = ("bound", "energy_pj", "cycles", "gap")
        numbers = {name: math.nan if best[name] is None else float(best[name]) for name in names}
        row: dict[str, Any] = {"workload": workload, "hardware": hardware}
        row |= {f"edp:{name}": typical_edp(found.get(name, ())) for name in ALL}
        row |= {f"ratio:{name}": ratio(row[f"edp:{name}"], row[f"edp:{OURS}"]) for name in BASELINES}
        row |= {f"paper edp:{name}": theirs.get(name, math.nan) for name in ALL}
        row |= {f"paper ratio:{name}": ratio(theirs[name], theirs[OURS]) if theirs else math.nan for name in BASELINES}
        row |= {f"failed seeds:{name}": sum(x.edp == math.inf for x in found.get(name, ())) for name in ALL}
        row["bound"] = numbers["bound"]
        row |= {f"possible:{name}": ratio(row[f"edp:{name}"], numbers["bound"]) for name in BASELINES}
        edps = finite(run.edp for run in ours)
        row["spread"] = max(edps) / min(edps) if edps else math.nan
        rows.append(row | {name: numbers[name] for name in ("energy_pj", "cycles", "gap")})
    return rows


def pairs(rows: Sequence[Row]) -> list[Row]:
    """A row per baseline and cell, with the reductions of the paper, and of any search by the proven bound."""
    found = []
    for (baseline, title), row in product(BASELINES.items(), rows):
        own = {"baseline": baseline, "title": title, "workload": row["workload"], "hardware": row["hardware"]}
        own |= {column: row[f"{column}:{baseline}"] for column in ("ratio", "paper ratio", "possible")}
        own |= {"better": own["ratio"] > 1, "none": not math.isfinite(row[f"edp:{baseline}"])}
        found.append(own | {"claim": CLAIMS.get((baseline, platform_of(row["hardware"])), math.nan)})
    return found
