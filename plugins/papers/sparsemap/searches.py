"""Fig. 10: searches with loop orders as Cantor codes, and with the same orders under codes in random order. Fig. 17: EDPs
of search methods on the convolutions of a pruned VGG16, and shares of valid designs. Fig. 18: a standard evolution
strategy, then with the paper's encodings, then with the paper's operators as well."""

from __future__ import annotations

import statistics
from typing import Any

from sparsemap.errors import SearchError

from ..rows import Row, Rows, arithmetic_mean, finite, ratio
from ..runs import Runner, at, by, curve, edps_of, effort, typical_edp

STUDIES = {"fig-10": "Cantor codes", "fig-10-random-codes": "random codes"}
MOVES = {"sparsemap-paper": "any value", "sparsemap-paper-neighbours": "a neighbouring value"}
"""New values of a mutated gene, by searcher. With any value, the order of the codes is invisible to the search."""
SHARES = (0.05, 0.1, 0.25, 0.5, 1)
NEAR = 1.05


def fig_10(runner: Runner, name: str) -> dict[str, Any]:
    found = {label: by(runner.run(study), "searcher") for study, label in STUDIES.items()}
    first = found[STUDIES["fig-10"]]["sparsemap-paper"]
    where, budget = f"{first[0].workload} on {first[0].hardware}", first[0].result["budget"]
    every = [statistics.median(run.edp for run in runs) for searchers in found.values() for runs in searchers.values()]
    if not (solved := finite(every)):
        raise SearchError(f"no search of {where} found a valid design among {budget:,}; a larger --scale has more")
    target, lines, curves = NEAR * max(solved), Rows(), Rows()
    for searcher, moves in MOVES.items():
        for codes, searchers in found.items():
            runs, about = searchers[searcher], {"codes": codes, "mutation to": moves}
            points, edps = curve(codes, runs), [run.edp for run in runs]
            ends: Row = {"mean": typical_edp(runs), "lowest": min(edps), "highest": max(edps)}
            ends |= {"designs": statistics.median_high(run.designs_to(target) for run in runs)}
            lines.append(about | {f"at {share:.0%}": at(points, budget * share) for share in SHARES} | ends)
            curves += [about | point for point in points]
    ratios = []
    for moves, (cantor, random) in lines.by("mutation to").items():
        ratios.append({"moves": moves, "ratio": random["mean"] / cantor["mean"]})
    return {
        "rows": curves.only(("codes", "mutation to", "evaluations", "edp", "lowest", "highest")), "curves": curves,
        "lines": lines, "ratios": ratios, "where": where, "effort": effort(first), "target": target, "near": NEAR - 1,
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- Fig. 17

METHODS = {
    "sparsemap": "SparseMap (default)", "sparsemap-paper": "SparseMap (paper)", "pso": "PSO", "mcts": "MCTS",
    "tbpsa": "TBPSA", "ppo": "PPO", "dqn": "DQN",
}  # fmt: skip
REFERENCE = "sparsemap-paper"
"""The paper's method; the default search stands beside it."""


def fig_17(runner: Runner, name: str) -> dict[str, Any]:
    runs = runner.run(name)
    edps, columns = edps_of(runs, "workload"), ("workload", "searcher", "seed", "edp", "valid_fraction")
    rows = Rows(run.columns(*columns) | {"seconds": float(run.result["seconds"])} for run in runs)
    cells = []
    for searcher, own in rows.by("searcher").items():
        valid, seconds = own.valid_fraction.mean, own.seconds.mean
        about = {"label": METHODS[searcher], "valid": valid, "percent": 100 * valid, "seconds": seconds}
        for workload, found in edps.items():
            ratios = {
                "ratio": ratio(found[searcher], found[REFERENCE]),
                "over best": found[searcher] / min(found.values()),
            }
            cells.append(about | ratios | {"workload": workload, "edp": found[searcher]})
    fields = {"count": len(edps), "hardware": runs[0].hardware, "effort": effort(runs), "reference": METHODS[REFERENCE]}
    return {"rows": rows, "cells": cells, **fields}


# ------------------------------------------------------------------------------------------------------------- Fig. 18

PARTS = {
    "es-lhs": "ES: Latin hypercube, direct encoding",
    "es-pfce": "+ prime factors and Cantor codes (PFCE)",
    "sparsemap-paper": "+ the paper's operators and initialisation (CEOI)",
    "sparsemap": "the default search of this program",
}
FULL = "sparsemap-paper"


def fig_18(runner: Runner, name: str) -> dict[str, Any]:
    runs = runner.run(name)
    budget, lines, curves = runs[0].result["budget"], Rows(), {"best": Rows(), "means": Rows()}
    for workload, group in by(runs, "workload").items():
        searchers = by(group, "searcher")
        full = typical_edp(searchers[FULL])
        for searcher, mine in searchers.items():
            about, edp = {"workload": workload, "searcher": searcher}, typical_edp(mine)
            for column, every in zip(("best_score", "mean_score"), curves.values(), strict=True):
                every += [about | point for point in curve(PARTS[searcher], mine, column)]
            best = [row for row in curves["best"] if about.items() <= row.items()]
            about |= {"label": PARTS[searcher], "edp": edp, "ratio": edp / full, "seeds": len(mine)}
            about |= {"solved": len(finite(run.edp for run in mine)), "full": FULL}
            about |= {"valid": arithmetic_mean(run.valid_fraction for run in mine)}
            lines.append(about | {f"at {share:.0%}": at(best, budget * share) for share in (0.1, 0.5, 1)})
    rows = [
        {key: one[key] for key in ("workload", "searcher", "evaluations")}
        | {"best edp": one["edp"], "mean edp of a generation": other["edp"]}
        for one, other in zip(*curves.values(), strict=True)
    ]
    return {"rows": rows, "lines": lines, **curves, "hardware": runs[0].hardware, "effort": effort(runs)}
