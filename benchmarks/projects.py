"""Clones of public repositories with Timeloop projects: `python benchmarks/projects.py CLONE... [--most 10] [--out
PAGE]`.

A row per clone, of at most so many cases each, evenly: set-ups with an output beside their inputs, equal cycles and
energies within 0.1 % under the rules of v3.0.3 or of evaluators before; then architectures, each with the parts beside
it and the nearest problem, imported hardware and designs, and missing parts."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import publish, say
from sparsemap_plugins.timeloop.compare import CaseOutcome, outcome, set_ups
from sparsemap_plugins.timeloop.project import import_project

from sparsemap.errors import SparseMapError
from sparsemap.pieces.loading import load

FILES = 5000
"""Limit of files of a clone."""
PARTS = ("architecture", "problem", "mapping", "sparse_optimizations", "ERT")
HEAD = ["repository", "outputs", "evaluated", "cycles", "energy", "projects", "hardware", "designs", "what is lacking"]


def projects(root: Path) -> Iterator[list[Path]]:
    """By file with an architecture, the unambiguous parts beside it, and the nearest problem."""
    parts: dict[str, dict[Path, list[Path]]] = {part: {} for part in PARTS}
    found = sorted(path for path in root.rglob("*.y*ml") if not re.match("timeloop-|flattened_", path.name))
    for path in some(found, FILES):
        head = path.read_text("utf-8", "replace")[: 1 << 20] if path.is_file() else ""
        for part in PARTS:
            if re.search(rf"^{part}:", head, re.M):
                parts[part].setdefault(path.parent, []).append(path)
    for folder, architectures in parts["architecture"].items():
        beside = [parts[part].get(folder, []) for part in PARTS[2:]]
        problem = next(near(folder, root, parts["problem"]), None)
        for path in architectures if problem else ():
            yield list(dict.fromkeys([path, problem, *(found[0] for found in beside if len(found) == 1)]))


def near(folder: Path, root: Path, known: dict[Path, list[Path]]) -> Iterator[Path]:
    """The files of folders, nearest common folder first."""
    for above in (folder, *folder.parents):
        yield from (files[0] for other, files in sorted(known.items()) if other == above or above in other.parents)
        if above == root:
            return


def some(found: list[Any], most: int) -> list[Any]:
    """A number of items, evenly."""
    return [found[i * len(found) // most] for i in range(most)] if len(found) > most else found


def better(one: Any, registry: Any) -> CaseOutcome:
    """The outcome under the rules with the better agreement."""
    tried = [outcome(one, registry, older) for older in (False, True)]
    return min(tried, key=lambda found: (not found.cycles, abs(found.cycles - 1) + abs(found.energy - 1)))


def plain(cause: str) -> str:
    """A cause without names and numbers, to merge equal causes."""
    return re.sub(r"line \d+: |'[^']*'|\d+", "", cause)[:100]


def row(root: Path, most: int, registry: Any) -> list[str]:
    outcomes = [better(one, registry) for one in some(list(set_ups(root)), most)]
    done = [one for one in outcomes if one.cycles]
    causes = Counter(plain(reason) for one in outcomes for reason in one.reasons)
    tried = some(list(projects(root)), most)
    parts: Counter[str] = Counter()
    for files in tried:
        try:
            imported = import_project(files)
        except SparseMapError as error:
            causes[plain(error.mistakes[0].message if hasattr(error, "mistakes") else str(error))] += 1
            continue
        parts.update(list(imported.tables))
        if "design" not in imported.tables:
            stops = [f"{note.cause}: {note.text}" for note in imported.missing if note.stops] or ["no mapping"]
            causes[plain(stops[0])] += 1
    equal, close = sum(abs(one.cycles - 1) < 1e-9 for one in done), sum(abs(one.energy - 1) < 1e-3 for one in done)
    told = "; ".join(f"{cause} ({count})" for cause, count in causes.most_common(4))
    numbers = [len(outcomes), len(done), equal, close, len(tried), parts["hardware"], parts["design"]]
    return [root.name.replace("+", "/"), *map(str, numbers), told]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clones", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=10)
    parser.add_argument("--out", type=Path)
    given, registry, rows = parser.parse_args(), load(), []
    for root in given.clones:
        rows.append(row(root, given.most, registry))
        say(*rows[-1])
    publish("projects", given.out, about=__doc__, table=[HEAD, *rows])


if __name__ == "__main__":
    main()
