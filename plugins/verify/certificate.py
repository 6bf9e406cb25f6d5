"""Independent check of the certificate of a proving search.

The arithmetic shares nothing with the search's bound, and little is vectorised. Only pieces come from the project:
densities, formats, objective, chip. A class of designs is a tile of the level inside the outermost, and the loop
innermost around the tile. The check

1. evaluates the design of the certificate and compares the score;
2. lists all tiles and loops anew: classes absent from the certificate count as ruled out by the bound; tiles that
   cannot fit hold no design;
3. for every class neither left nor tried, computes the unavoidable cost of its designs: words between the two outer
   levels with metadata bits (`hierarchies`), multiply-accumulates, accesses next to the units, and leakage over the
   resulting cycles; compares the score, times the factor, with the design's score; if inconclusive, tries all joint
   tiles of the next level's children;
4. counts the designs of classes reported as tried, and evaluates all (`designs`).

The check counts less cost than the bound, so it may fail to confirm a valid proof; it reports the confirmed factor."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.errors import SearchError, SpecError
from sparsemap.file_formats import CERTIFICATE
from sparsemap.pieces.contracts import Array
from sparsemap.pieces.registry import Registry
from sparsemap.problem import design_file
from sparsemap.problem.designs import Designs
from sparsemap.problem.evaluation import Evaluation
from sparsemap.problem.load import load_problem

from .unavoidable import Unavoidable

NUMBER = (int, float)
NEEDED: dict[str, Any] = {
    "design": str, "within": NUMBER, "score": NUMBER, "proved": bool, "problem": dict, "classes": dict,
}  # fmt: skip
KINDS = {str: "text", NUMBER: "a number", bool: "true or false", dict: "a table"}
OF_PROBLEM = ("workload", "hardware", "space", "objective", "cost_model")
NOISE = 1.0 - 1e-9
"""Tolerance for sums in a different order."""


@attrs.frozen
class Certified:
    """Outcome of checking a certificate."""

    title: str
    within: float
    score: float
    confirmed: float
    """Confirmed factor between the design and the optimum."""
    classes: int
    by: Mapping[str, int]
    """Number of classes by reason against better designs: bound, tried, room (no design fits), left."""
    open: tuple[str, ...]
    """Classes not ruled out by the factor."""
    wrong: tuple[str, ...]
    """Contradictions to the certificate."""

    @property
    def correct(self) -> bool:
        return not self.wrong and not self.open

    def text(self) -> str:
        parts = ", ".join(f"{count:,} by {name}" for name, count in self.by.items() if count)
        lines = [f"{self.title}: score {self.score:.6g}, {self.classes:,} classes of designs ({parts})"]
        lines += [f"WRONG: {text}" for text in self.wrong]
        if self.open:
            shown = "; ".join(self.open[:3]) + (f" and {len(self.open) - 3:,} more" if len(self.open) > 3 else "")
            lines.append(f"not confirmed within {self.within:g}x: {len(self.open):,} classes are left ({shown})")
        lines.append(f"confirmed within {self.confirmed:.4g}x of the optimum" if not self.wrong else "refuted")
        return "\n".join(lines) + "\n"

    def table(self) -> dict[str, Any]:
        return attrs.asdict(self) | {"correct": self.correct}


def check(
    path: Path, registry: Registry, along: Callable[[Sequence[Any], str], Iterable[Any]] = lambda steps, _: steps
) -> Certified:
    """Check a certificate; `SpecError` if the file or its design cannot be read.

    `along` receives the steps of each part of the work with a label and yields the steps again, for a progress display."""
    table = _read(path)
    wrong = []
    score, within = float(table["score"]), float(table["within"])
    design = design_file.load(path.parent / str(table["design"]), registry)
    given = load_problem(**{kind: table["problem"][kind] for kind in OF_PROBLEM}, registry=registry)
    problem = given.laid_out(design.problem.sizes)  # not what the space would pad to by a forecast of today
    own = float(design.problem.evaluator.score(design.problem.evaluator.evaluate_designs(design.batch))[0])
    if not math.isclose(own, score, rel_tol=1e-6):
        wrong.append(f"the design scores {own:.6g}, the certificate says {score:.6g}")
    if design_file.problem_tables(design.problem)["workload"] != design_file.problem_tables(problem)["workload"]:
        wrong.append("the design is of another workload")
    said = _said(table["classes"], problem, path)
    known = Unavoidable.of(problem)
    by = dict.fromkeys(("bound", "tried", "room", "left"), 0)
    rows, costs, left, least = [], list[tuple[float, float]](), list[str](), math.inf
    for key in along(list(_all(problem)), "classes"):
        how = said.get(key, "bound")
        if how == "bound" and not known.fits(key[:-1]):
            how = "room"
        by[how] += 1
        if how == "left":
            left.append(_name(problem, key))
        elif how == "tried":
            found = best_of_class(problem, key[:-1], key[-1])
            least = min(least, max(found, score))
            if found < score * NOISE:
                wrong.append(f"a design of {_name(problem, key)} scores {found:.6g}")
        if how in ("bound", "left"):
            rows.append((key, how))
            costs.append(known.costs(key[:-1], key[-1]))
    scores, open_ = _scores(problem, costs), list[str]()
    closer = [i for i, (_, how) in enumerate(rows) if how == "left" or scores[i] * within < score * NOISE]
    for place in along(closer, "classes looked at closely"):
        key, how = rows[place]
        if how == "bound" and table["proved"]:
            scores[place] = _scores(problem, [known.costs(key[:-1], key[-1], closely=True)])[0]
            if scores[place] * within >= score * NOISE:
                continue
        if known.holds(key[:-1]):
            open_.append(_name(problem, key))
        else:
            scores[place] = np.inf
            by[how], by["room"] = by[how] - 1, by["room"] + 1
    if bool(table["proved"]) and left:
        wrong.append("it claims a proof and has classes that are left")
    least = min(least, float(scores.min(initial=np.inf)), score)
    title = f"{problem.workload.name} on {problem.hardware.name}"
    confirmed = score / least if least > 0 else math.inf
    return Certified(title, within, score, confirmed, sum(by.values()), by, tuple(open_), tuple(wrong))


def _read(path: Path) -> dict[str, Any]:
    try:
        table = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SpecError.at(path, "", f"cannot be read as JSON: {error}") from None
    table = CERTIFICATE.opened(table, str(path))
    for key, kind in NEEDED.items():
        value = table.get(key)
        if not isinstance(value, kind) or (kind is NUMBER and isinstance(value, bool)):
            found = "nothing" if value is None else repr(value)[:40]
            raise SpecError.at(path, key, f"expected {KINDS[kind]}, found {found}")
    if strange := [key for key in OF_PROBLEM if not isinstance(table["problem"].get(key), dict)]:
        raise SpecError.at(path, f"problem.{strange[0]}", "expected a table")
    return table


def _said(columns: Mapping[str, Any], problem: Problem, path: Path) -> dict[tuple[Any, ...], str]:
    """Reason of the certificate for a class, by extents and innermost dimension."""
    names = [*problem.dims, "innermost", "by"]
    if missing := [name for name in names if not isinstance(columns.get(name), list)]:
        raise SpecError.at(path, f"classes.{missing[0]}", "expected a list")
    rows = zip(*(columns[name] for name in names), strict=False)
    return {tuple(row[:-1]): str(row[-1]) for row in rows}


def _all(problem: Problem) -> Iterator[tuple[Any, ...]]:
    """Every tile, as extents by dimension, with every possible dimension of the loop innermost around it."""
    sizes = [problem.sizes[dim] for dim in problem.dims]
    for tile in itertools.product(*([n for n in range(1, size + 1) if size % n == 0] for size in sizes)):
        around = [dim for dim, size, extent in zip(problem.dims, sizes, tile, strict=True) if size > extent]
        for dim in around or problem.dims:
            yield (*tile, dim)


def _name(problem: Problem, key: tuple[Any, ...]) -> str:
    extents = ", ".join(f"{dim} {extent}" for dim, extent in zip(problem.dims, key[:-1], strict=True))
    return f"{extents}, innermost {key[-1]}"


def _scores(problem: Problem, costs: Sequence[tuple[float, float]]) -> Array:
    """Scores by the problem's objective, from pJ and cycles."""
    energy_pj, cycles = np.array(costs, dtype=np.float64).reshape(-1, 2).T
    rows = Evaluation({"energy_pj": energy_pj, "cycles": cycles}, np.zeros(len(costs), dtype=np.uint64), ())
    return problem.evaluator.score(rows.on(problem.chip))


MOST = 20_000_000
"""Most designs evaluated per class."""
BLOCK = 4096


def best_of_class(problem: Problem, tile: Sequence[int], innermost: str) -> float:
    """Least score of all designs with a tile inside the outermost level and a loop innermost around the tile."""
    choices = _choices(problem)
    mappings = list(_mappings(problem, tile, innermost))
    count = len(mappings) * len(choices[0])
    if count > MOST:
        raise SearchError(f"a class that was tried has {count:,} designs here, more than {MOST:,}")
    per, best = max(1, BLOCK // len(choices[0])), math.inf
    for start in range(0, len(mappings), per):
        bounds, order = (np.stack(part, axis=-1) for part in zip(*mappings[start : start + per], strict=True))
        times, kept = bounds.shape[-1], len(choices[0])
        designs = Designs({
            "bounds": np.repeat(bounds.astype(np.float64), kept, axis=-1),
            "order": np.repeat(order.astype(np.int8), kept, axis=-1),
            "formats": np.tile(choices[0].T.reshape(*_slots(problem), kept), times).astype(np.int8),
            "mechanisms": np.tile(choices[1].T, times).astype(np.int8),
        })  # fmt: skip
        for rows in np.array_split(np.arange(len(designs)), -(-len(designs) // BLOCK)):
            some = problem.evaluator.evaluate_designs(designs.take(rows))
            best = min(best, float(problem.evaluator.score(some).min()))
    return best


def _slots(problem: Problem) -> tuple[int, int]:
    """Number of tensors, and format slots of each."""
    formats = problem.space.decode(problem.space.low[None]).columns["formats"]
    return formats.shape[0], formats.shape[1]


def _choices(problem: Problem) -> tuple[Array, Array]:
    """Every string of formats (n, T * R), with every string of mechanisms (n, A)."""
    tensors, slots = _slots(problem)
    formats = itertools.product(range(len(problem.candidates("format"))), repeat=tensors * slots)
    mechanisms = itertools.product(range(len(problem.candidates("mechanism"))), repeat=len(problem.places))
    pairs = list(itertools.product(formats, mechanisms))
    return np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])


def _mappings(problem: Problem, tile: Sequence[int], innermost: str) -> Iterator[tuple[Array, Array]]:
    """Bounds and order (L, D) of every mapping of the class; loops with bound 1 come last, in a fixed order."""
    dims, levels = problem.dims, problem.mapping_levels
    wholes = zip((problem.sizes[dim] for dim in dims), tile, strict=True)
    per_dim = [[(size // n, *rest) for rest in _factors(n, len(levels) - 1)] for size, n in wholes]
    for columns in itertools.product(*per_dim):
        bounds = np.array(columns).T
        if any(level.spatial and bounds[i].prod() > level.limit for i, level in enumerate(levels)):
            continue
        orders = []
        for i, level in enumerate(levels):
            busy = [d for d in range(len(dims)) if bounds[i, d] > 1]
            idle = [d for d in range(len(dims)) if bounds[i, d] == 1]
            every = [busy] if level.spatial else itertools.permutations(busy)
            orders.append([(*some, *idle) for some in every])
        around = [d for d in range(len(dims)) if bounds[0, d] > 1]
        for chosen in itertools.product(*orders):
            if not around or dims[chosen[0][len(around) - 1]] == innermost:
                yield bounds, np.array(chosen)


def _factors(number: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Every ordered product of `parts` factors equal to a number."""
    if parts == 0:
        if number == 1:
            yield ()
        return
    for first in (n for n in range(1, number + 1) if number % n == 0):
        for rest in _factors(number // first, parts - 1):
            yield (first, *rest)
