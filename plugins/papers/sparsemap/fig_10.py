"""Fig. 10: searches with loop orders as Cantor codes, and with the same orders under codes in random order."""

from __future__ import annotations

import statistics
from typing import Any

from sparsemap.errors import SearchError

from ..rows import Row, Rows, finite
from ..runs import Runner, at, by, curve, effort, typical_edp

STUDIES = {"fig-10": "Cantor codes", "fig-10-random-codes": "random codes"}
MOVES = {"sparsemap-paper": "any value", "sparsemap-paper-neighbours": "a neighbouring value"}
"""New values of a mutated gene, by searcher. With any value, the order of the codes is invisible to the search."""
SHARES = (0.05, 0.1, 0.25, 0.5, 1)
NEAR = 1.05


def page(runner: Runner, name: str) -> dict[str, Any]:
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
