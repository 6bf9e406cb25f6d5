"""Fig. 18: a standard evolution strategy, then with the paper's encodings, then with the paper's operators as well."""

from __future__ import annotations

from typing import Any

from ..rows import Rows, arithmetic_mean, finite
from ..runs import Runner, at, by, curve, effort, typical_edp

LABELS = {
    "es-lhs": "ES: Latin hypercube, direct encoding",
    "es-pfce": "+ prime factors and Cantor codes (PFCE)",
    "sparsemap-paper": "+ the paper's operators and initialisation (CEOI)",
    "sparsemap": "the default search of this program",
}
FULL = "sparsemap-paper"


def page(runner: Runner, name: str) -> dict[str, Any]:
    runs = runner.run(name)
    budget, lines, curves = runs[0].result["budget"], Rows(), {"best": Rows(), "means": Rows()}
    for workload, group in by(runs, "workload").items():
        searchers = by(group, "searcher")
        full = typical_edp(searchers[FULL])
        for searcher, mine in searchers.items():
            about, edp = {"workload": workload, "searcher": searcher}, typical_edp(mine)
            for column, every in zip(("best_score", "mean_score"), curves.values(), strict=True):
                every += [about | point for point in curve(LABELS[searcher], mine, column)]
            best = [row for row in curves["best"] if about.items() <= row.items()]
            about |= {"label": LABELS[searcher], "edp": edp, "ratio": edp / full, "seeds": len(mine)}
            about |= {"solved": len(finite(run.edp for run in mine)), "full": FULL}
            about |= {"valid": arithmetic_mean(run.valid_fraction for run in mine)}
            lines.append(about | {f"at {share:.0%}": at(best, budget * share) for share in (0.1, 0.5, 1)})
    rows = [
        {key: one[key] for key in ("workload", "searcher", "evaluations")}
        | {"best edp": one["edp"], "mean edp of a generation": other["edp"]}
        for one, other in zip(*curves.values(), strict=True)
    ]
    return {"rows": rows, "lines": lines, **curves, "hardware": runs[0].hardware, "effort": effort(runs)}
