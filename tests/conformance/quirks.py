"""What each defect of the reference evaluator does to the reference cases: how many it touches, and by how much.

    python tests/conformance/quirks.py tests/conformance/cases-*.jsonl

Evaluates every case without quirks and with one quirk at a time. A case is touched if any quantity changes; sizes are
relative changes of energy and cycles. Then compares the default (all fixed) with the evaluator on the untouched cases.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import cases
import check
import numpy as np
from sparsemap_plugins.analytic.quirks import QUIRKS

from sparsemap.pieces.loading import load


def change(base: dict[str, Any], other: dict[str, Any], key: str) -> float:
    if not (base["valid"] and other["valid"]):
        return float("inf") if base["valid"] != other["valid"] else 0.0
    return abs(other[key] - base[key]) / max(abs(base[key]), 1e-300)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="CASES.jsonl")
    options = parser.parse_args()
    registry = load()
    rows = [json.loads(line) for file in options.files for line in file.read_text().splitlines()]
    fixed = [cases.evaluate(case, registry, "none") for case in rows]
    touched = np.zeros(len(rows), dtype=bool)
    print(
        f"| {'quirk':5} | {'cases':>5} | {'energy, median':>14} | {'energy, most':>12} | {'cycles, most':>12} | what |"
    )
    print("|-------|------:|---------------:|-------------:|-------------:|------|")
    for name, text in QUIRKS.items():
        with_quirk = [cases.evaluate(case, registry, name) for case in rows]
        differs = np.array([a != b for a, b in zip(fixed, with_quirk, strict=True)])
        touched |= differs
        pairs = [(a, b) for a, b, d in zip(fixed, with_quirk, differs, strict=True) if d]
        energy = [change(a, b, "energy") for a, b in pairs] or [0.0]
        cycles = [change(a, b, "cycles") for a, b in pairs] or [0.0]
        print(
            f"| {name:5} | {len(pairs):5} | {np.median(energy):14.2%} | {max(energy):12.2%} | {max(cycles):12.2%} | {text} |"
        )
    # families as in check.py, with the untouched cases only
    quantities = within = whole = 0
    for case, found, skip in zip(rows, fixed, touched, strict=True):
        if skip:
            continue
        compared = list(check.compare(check.expectation(case["ref"]), found))
        quantities += len(compared)
        within += sum(row[1] for row in compared)
        whole += all(row[1] for row in compared)
    count = int((~touched).sum())
    print(
        f"\n{count} of {len(rows)} cases are touched by no quirk; on them the default agrees in "
        f"{100 * within / max(1, quantities):.3f} % of {quantities} quantities, {whole} cases whole"
    )


if __name__ == "__main__":
    main()
