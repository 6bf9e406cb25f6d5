"""Quality of searches: `python benchmarks/quality.py [--half tune] [--count 20] [--known FILE]`.

Searches random problems of `drawn.py`: the even half for tuning, the odd half (`--half report`) for reporting only;
`--half paper` are the 84 cells of the paper. EDP over the best known of a problem, of any sizes of its dimensions;
`--known` keeps the best known designs' EDP in a CSV file and improves it. `--searchers A,B` compares searchers,
`--usual-sizes` tries no other sizes; `--long N` adds a search of N designs per searcher and problem to the best known."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import attrs
from common import HARDWARE, WORKLOADS, asked, mean, publish, say
from drawn import problem_of, text_of

from sparsemap import load_problem, search
from sparsemap.csv_files import csv_text, read_csv
from sparsemap.pieces.loading import load
from sparsemap.searching.best import gap_of
from sparsemap.searching.convergence import convergence_of
from sparsemap.writing import write_text

BUDGETS = (500, 2_000, 20_000)
VERDICTS = (500, 2_000)
"""Budgets whose verdict is compared with ten times the designs; a search begins like one with a smaller budget."""
WRONG = 1.03
"""Gain by ten times the designs that refutes `converged`."""
LONG_SEED = 1000
STATES = ("proved", "converged", "improving")
KNOWN = Path(__file__).with_name("known.csv")
Row = dict[str, Any]


def searched(number: int, searcher: str, seed: int, budget: int, half: str, raced: bool) -> Row:
    """Best score of a search at each budget, its bound, and processor seconds."""
    with tempfile.TemporaryDirectory() as folder:
        if half == "paper":
            workload, hardware = WORKLOADS[number // len(HARDWARE)], HARDWARE[number % len(HARDWARE)]
            problem, text = load_problem(workload, hardware, registry=load()), f"{workload} on {hardware}"
        else:
            problem, text = problem_of(number, Path(folder), load()), text_of(number, Path(folder))
        problem = attrs.evolve(problem, raced=raced)
        start = time.process_time()
        found = search(problem, budget, seed, searcher)
        row: Row = {"number": number, "searcher": searcher, "seed": seed, "budget": budget}
        row["problem"] = text
        for some in BUDGETS:
            scores = [batch.best_score for batch in found.history if batch.evaluations <= some]
            row[f"edp {some}"] = min(scores, default=float("inf")) if some <= budget else ""
        for some in VERDICTS:
            rows = [batch for batch in found.history if batch.evaluations <= some]
            verdict = convergence_of(rows, gap_of(rows[-1].best_score, found.bound) if rows else None)
            later = min(batch.best_score for batch in found.history if batch.evaluations <= 10 * some)
            row[f"verdict {some}"] = verdict.state if verdict else ""
            row[f"later {some}"] = rows[-1].best_score / later if verdict and 10 * some <= budget else ""
        best = found.best.score if found.best else float("inf")
        return row | {"best": best, "gap": found.gap, "seconds": time.process_time() - start}


def known_of(file: Path, rows: Iterable[Row]) -> dict[int, float]:
    """Best known EDP by problem, of a file and of these rows; the file is improved."""
    before = {int(row["number"]): row for row in read_csv(file)} if file.exists() else {}
    for row in rows:
        there = before.get(row["number"])
        if there is None or row["best"] < float(there["edp"]):
            by = f"{row['searcher']} {row['budget']}, seed {row['seed']}"
            before[row["number"]] = {"number": row["number"], "edp": f"{row['best']:.6e}", "by": by}
    write_text(file, csv_text([before[number] for number in sorted(before)], ("number", "edp", "by")))
    return {number: float(row["edp"]) for number, row in before.items()}


def excess(rows: list[Row], known: dict[int, float], budget: int) -> tuple[float, float, int]:
    """Geometric mean and worst EDP over the best known, and the problem of the worst."""
    over = [(row[f"edp {budget}"] / known[row["number"]], row["number"]) for row in rows if row[f"edp {budget}"]]
    worst, number = max(over)
    return mean(one for one, _ in over), worst, number


def main() -> None:
    given = asked(
        __doc__, half={"choices": ["tune", "report", "paper"], "default": "tune"}, first=0, count=20, seeds=2, budget=20_000,
        searchers="sparsemap", usual_sizes={"action": "store_true"}, long=0, jobs=2, known={"type": Path, "default": KNOWN},
        out={"type": Path, "default": None},
    )  # fmt: skip
    places = range(given.first, given.first + given.count)
    numbers = [place if given.half == "paper" else 2 * place + (given.half == "report") for place in places]
    names = given.searchers.split(",")
    how = given.half, not given.usual_sizes
    jobs = [(n, name, seed, given.budget, *how) for n in numbers for name in names for seed in range(given.seeds)]
    jobs += [(n, name, LONG_SEED, given.long, *how) for n in numbers for name in names if given.long]
    rows = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for row in pool.map(searched, *zip(*jobs, strict=True)):
            rows.append(row)
            if given.half != "report":
                say(row["number"], row["searcher"], *(f"{row[f'edp {b}'] or 0:.4g}" for b in BUDGETS), row["problem"])
    known = known_of(given.known, rows)
    searches = [row for row in rows if row["seed"] != LONG_SEED]
    table, verdicts = [], []
    for name in names:
        mine = [row for row in searches if row["searcher"] == name]
        for budget in (some for some in BUDGETS if some <= given.budget):
            over, worst, number = excess(mine, known, budget)
            table.append({"searcher": name, "designs": f"{budget:,}", "over best known": f"{over:.3f}x",
                          "worst": f"{worst:.2f}x", "of problem": number})  # fmt: skip
        gaps = [row["gap"] for row in mine if row["gap"]]
        table[-1] |= {"over the bound": f"{mean(gaps):.2f}x", "above 2x": sum(gap > 2 for gap in gaps),
                      "processor s": f"{mean(row['seconds'] for row in mine):.2f}"}  # fmt: skip
        for budget in (some for some in VERDICTS if 10 * some <= given.budget):
            of = {state: [row for row in mine if row[f"verdict {budget}"] == state] for state in STATES}
            wrong = sum(row[f"later {budget}"] > WRONG for row in of["converged"])
            verdicts.append({"searcher": name, "designs": f"{budget:,}", **{state: len(of[state]) for state in STATES},
                             "wrong": wrong})  # fmt: skip
    about = {"half": given.half, "searchers": given.searchers, "problems": len(numbers), "seeds": given.seeds}
    about |= {"table": table_of(table), "verdicts": table_of(verdicts), "wrong": f"{100 * WRONG - 100:.0f}"}
    publish("quality", given.out, rows if given.half != "report" else (), **about)


def table_of(rows: list[Row]) -> list[list[str]]:
    """A header, and the rows."""
    head = list(dict.fromkeys(key for row in rows for key in row))
    return [head, *([str(row.get(key, "")) for key in head] for row in rows)]


if __name__ == "__main__":
    main()
