"""Agreement with the reference evaluator on case files.

    python tests/conformance/check.py tests/conformance/cases-*.jsonl [--quirks timeloop-v3] [--out RESULTS.jsonl]

Prints, per family, cases, quantities, the share within tolerance (counts and cycles within 1 or 1e-6 relative, energies
1e-6 relative, validity and its reason equal) and the worst deviation. Exits with 1 if a family agrees in fewer than
`--at-least` percent of its quantities (99.9: what rounding noise in tiles of many thousand words leaves of family K).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

sys.path.insert(0, str(Path(__file__).parent))

import cases

from sparsemap.pieces.loading import load

FLOATS = ("energy", "edp", "instances_avg", "slowdown")


@attrs.define
class Tally:
    cases: int = 0
    invalid: int = 0
    quantities: int = 0
    within: int = 0
    perfect: int = 0
    worst: float = 0.0
    examples: list[str] = attrs.field(factory=list)


def compare(expected: Any, found: Any, path: str = "") -> Iterator[tuple[str, bool, float]]:
    """(path, within tolerance, relative deviation) of every quantity of `expected`."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            inner = f"{path}.{key}" if path else key
            if not isinstance(found, dict) or key not in found:
                if _nothing(value):
                    continue
                yield inner, False, float("inf")
            else:
                yield from compare(value, found[key], inner)
    elif isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            yield path, _nothing(expected) and _nothing(found), 0.0
            return
        for i, (a, b) in enumerate(zip(expected, found, strict=True)):
            yield from compare(a, b, f"{path}[{i}]")
    elif isinstance(expected, bool | str) or expected is None:
        yield path, expected == found or expected is None, 0.0 if expected == found else float("inf")
    else:
        name = path.rsplit(".", 1)[-1]
        found = float("nan") if found is None else float(found)
        difference = abs(found - expected)
        relative = difference / max(abs(expected), 1e-300) if difference else 0.0
        close = relative <= 1e-6 if name in FLOATS else difference <= 1 or relative <= 1e-6
        yield path, bool(close), 0.0 if name not in FLOATS and difference <= 1 else relative


def _nothing(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_nothing(v) for v in value.values())
    if isinstance(value, list):
        return all(_nothing(v) for v in value)
    return value in (0, None)


def expectation(ref: dict[str, Any]) -> dict[str, Any]:
    """What has to agree: all of a valid case; validity and reason (with level and figures where known) otherwise."""
    if ref["valid"]:
        return ref
    return {key: ref[key] for key in ("valid", "reason", "level", "needed_available") if ref.get(key) not in (None, [])}


def run(files: list[Path], quirks: str, registry: Any) -> Iterator[tuple[str, Tally, list[str]]]:
    """Family after family: its name, its tally, and a line of JSON per case."""
    families: dict[str, list[dict[str, Any]]] = {}
    for file in files:
        for case in map(json.loads, file.read_text().splitlines()):
            families.setdefault(case["family"], []).append(case)
    for family, members in sorted(families.items()):
        tally, lines = Tally(), []
        for case in members:
            found = cases.evaluate(case, registry, quirks)
            lines.append(json.dumps({"id": case["id"], "result": found}))
            tally.cases += 1
            tally.invalid += not case["ref"]["valid"]
            rows = list(compare(expectation(case["ref"]), found))
            off = [row for row in rows if not row[1]]
            tally.quantities += len(rows)
            tally.within += len(rows) - len(off)
            tally.perfect += not off
            tally.worst = max([tally.worst, *(row[2] for row in rows)])
            if off:
                tally.examples.append(f"{case['id']}: {len(off)} of {len(rows)}, such as {off[0][0]}")
        yield family, tally, lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="CASES.jsonl")
    parser.add_argument("--quirks", default="timeloop-v3", help="timeloop-v3 (default) or none")
    parser.add_argument("--out", type=Path, help="write one result per case to this file")
    parser.add_argument("--examples", type=int, default=3, help="disagreeing cases shown per family")
    parser.add_argument("--at-least", type=float, default=99.9, metavar="PERCENT", help="agreement needed per family")
    options = parser.parse_args(arguments)
    print(f"{'family':8}{'cases':>7}{'invalid':>9}{'quantities':>12}{'within':>11}{'whole cases':>13}{'worst':>10}")
    agrees, results = True, list[str]()
    for family, t, lines in run(options.files, options.quirks, load()):
        share = 100.0 * t.within / max(1, t.quantities)
        print(f"{family:8}{t.cases:7}{t.invalid:9}{t.quantities:12}{share:10.3f}%{t.perfect:13}{t.worst:10.1e}")
        for example in t.examples[: options.examples]:
            print(f"         {example}")
        sys.stdout.flush()
        agrees &= 100.0 * t.within >= options.at_least * t.quantities
        results += lines
    if options.out is not None:
        options.out.write_text("\n".join(results) + "\n")
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
