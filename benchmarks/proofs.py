"""Quality and proofs of the default search: `python benchmarks/proofs.py [--jobs 16] [--seeds 5] [--out DIR]`.

Searches every workload of the paper on its platforms in the default space and cost model, once per seed; smaller
budgets are the first designs of a search. EDP over the best known of the cell: of these searches, of an earlier table
(`--known`), and of a long search per cell (`--long`). Then proves each cell (`search --prove`) and checks the
certificate. With `--work` every search leaves its row in a folder, and is not repeated for the same state of the code;
`--minutes` ends early."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import HARDWARE, WORKLOADS, asked, mean, publish

from sparsemap import load_problem, search
from sparsemap.files import read_json
from sparsemap.pieces.loading import load
from sparsemap.searching.folder import search_into
from sparsemap.writing import write_text

BUDGETS = (500, 2000, 20_000)
LONG = 1000
"""The seed of the long searches."""
Row = dict[str, Any]


def searched(workload: str, hardware: str, seed: int, budget: int) -> Row:
    """The best EDP at every budget, and the bound."""
    problem = load_problem(workload, hardware, registry=load())
    start = time.process_time()
    found = search(problem, budget, seed)
    row: Row = {"kind": "search", "workload": workload, "hardware": hardware, "seed": seed, "bound": found.bound}
    for some in {*BUDGETS, budget}:
        scores = [batch.best_score for batch in found.history if batch.evaluations <= some]
        row[f"edp {some}"] = min(scores, default=float("inf"))
    return row | {"seconds": time.process_time() - start}


def proved(workload: str, hardware: str, seed: int, budget: int, within: float) -> Row:
    """Result of a proving search of a cell, and of the check of its certificate."""
    from sparsemap_plugins.verify.certificate import check

    registry = load()
    problem = load_problem(workload, hardware, registry=registry)
    with tempfile.TemporaryDirectory() as folder:
        how = {"type": "prove", "within": within, "searcher": "sparsemap"}
        found = search_into(folder, problem, budget, seed, how)
        checked = check(Path(folder) / "certificate.json", registry)
    assert found.proof is not None
    return {
        "kind": "proof", "workload": workload, "hardware": hardware, "seed": seed, "designs": found.evaluations,
        "gap": found.proof.gap, "proved": found.proof.proved, "left": len(found.proof.left),
        "classes": len(found.proof.least), "edp": found.found.edp, "checked": checked.correct,
        "confirmed": checked.confirmed, "wrong": len(checked.wrong),
    }  # fmt: skip


def kept(work: Path | None, row_of: Callable[..., Row], *given: Any) -> Row:
    """A row of these arguments, from the folder or new, then written whole or not at all."""
    path = work / f"{'-'.join(map(str, (row_of.__name__, *given)))}.json" if work else None
    if path and path.exists():
        return dict(read_json(path))
    row = row_of(*given)
    if path:
        write_text(path, json.dumps(row))
    return row


def all_rows(options: argparse.Namespace) -> list[Row]:
    cells = list(product(WORKLOADS, HARDWARE))
    wanted: list[tuple[Any, ...]] = [(searched, *cell, 0, options.budget) for cell in cells]
    wanted += [(proved, *cell, 0, options.budget, options.within) for cell in cells]
    wanted += [(searched, *cell, seed, options.budget) for seed in range(1, options.seeds) for cell in cells]
    wanted += [(searched, *cell, LONG, options.long) for cell in cells if options.long]
    with ProcessPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(kept, options.work, *one) for one in wanted]
        return [job.result() for job in jobs]


def best_known(rows: Sequence[Row]) -> dict[tuple[str, str], float]:
    """EDP by cell."""
    found: dict[tuple[str, str], float] = {}
    for row in rows:
        cell = row["workload"], row["hardware"]
        values = [float(row[key]) for key in row if key.startswith(("edp", "best")) and row[key] not in (None, "")]
        found[cell] = min([found.get(cell, float("inf")), *values])
    return found


def quality_table(rows: Sequence[Row], best: Mapping[tuple[str, str], float]) -> list[list[str]]:
    head = ["designs", "hardware", "searches", "over best known", "worst", "which", "within 5 %"]
    lines = [[*head, "worst seed over best seed"]]
    for budget in BUDGETS:
        over = [(row, row.get(f"edp {budget}", np.nan) / best[row["workload"], row["hardware"]]) for row in rows]
        for hardware in ("all", *HARDWARE):
            mine = [(row, x) for row, x in over if hardware in ("all", row["hardware"]) and np.isfinite(x)]
            if not mine:
                continue
            row, worst = max(mine, key=lambda pair: pair[1])
            cells: dict[tuple[str, str], list[float]] = {}
            for one, x in mine:
                cells.setdefault((one["workload"], one["hardware"]), []).append(x)
            apart = max(max(values) / min(values) for values in cells.values())
            near = np.mean([x <= 1.05 for _, x in mine])
            lines.append([
                f"{budget:,}", hardware, str(len(mine)), f"{mean(x for _, x in mine):.3f}x", f"{worst:.2f}x",
                f"{row['workload']} on {row['hardware']}", f"{100 * near:.0f} %", f"{apart:.2f}x",
            ])  # fmt: skip
    return lines


def over_bound(row: Row, best: Mapping[tuple[str, str], float]) -> float:
    """The best known EDP over the lower limit of a proof's classes."""
    return best[row["workload"], row["hardware"]] / row["edp"] * row["gap"]


def proof_table(rows: Sequence[Row], best: Mapping[tuple[str, str], float]) -> list[list[str]]:
    lines = [["hardware", "cells", "proved", "confirmed by the check", "refuted", "gap, geometric mean", "largest gap"]]
    for hardware in ("all", *HARDWARE):
        mine = [row for row in rows if hardware in ("all", row["hardware"])]
        if mine:
            gaps = [over_bound(row, best) for row in mine]
            counts = (sum(row[key] > 0 for row in mine) for key in ("proved", "checked", "wrong"))
            lines.append([hardware, str(len(mine)), *map(str, counts), f"{mean(gaps):.3f}x", f"{max(gaps):.2f}x"])
    return lines


def main() -> None:
    given = asked(
        __doc__.split("\n")[0], jobs=2, seeds=3, budget=BUDGETS[-1], within=1.02,
        long={"type": int, "default": 0, "help": "designs of one long search per cell"},
        work={"type": Path, "help": "folder of the rows, which goes on there"},
        out={"type": Path, "help": "where the page and its rows go"},
    )  # fmt: skip
    rows = all_rows(given)
    searches = [row for row in rows if row["kind"] == "search" and row["seed"] != LONG]
    best = best_known(rows)
    proofs = sorted((row for row in rows if row["kind"] == "proof"), key=lambda row: over_bound(row, best))
    cells = [["workload", "hardware", "best known EDP", "gap", "classes left", "designs", "check confirms"]]
    cells += [
        [row["workload"], row["hardware"], f"{best[row['workload'], row['hardware']]:.4g}", f"{over_bound(row, best):.3f}x",
         f"{row['left']:,} of {row['classes']:,}", f"{row['designs']:,}", f"{row['confirmed']:.3f}x"]
        for row in proofs
    ]  # fmt: skip
    seconds = mean(max(row["seconds"], 1e-3) for row in searches) if searches else 0.0
    tables = {"quality": quality_table(searches, best), "proofs": proof_table(proofs, best), "cells": cells}
    publish("proofs", given.out and given.out / "proofs.md", rows, given=given, seconds=seconds, **tables)


if __name__ == "__main__":
    main()
