"""Designs of two problems that belong together, and the comparison of what they are worth."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import attrs
import numpy as np
from random_problems import BANDWIDTHS, ENERGY, Case

from sparsemap.errors import DesignError
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design, Designs
from sparsemap.problem.evaluation import Evaluation
from sparsemap.problem.levels import Place
from sparsemap.problem.problem import Problem
from sparsemap.searching.best import ROUNDING
from sparsemap.spec import toml_text

ROUNDED = 1e-5
"""What the rounding of probabilities to six decimals, as Timeloop has it, may make of another order of factors."""
TURNED = 4.0
"""Counts of an instance that rounding may turn: of each tensor and of the computes."""


class Broken(AssertionError):
    """Two designs whose numbers are not as they have to be."""

    def __init__(self, text: str, *designs: Design) -> None:
        super().__init__(text)
        self.designs = designs

    def files(self) -> list[str]:
        """The designs as texts of design files."""
        texts = []
        for design in self.designs:
            try:
                texts.append(toml_text.dumps(design_file.dump(design)))
            except DesignError as error:
                texts.append(f"# {error}\n")
        return texts


@attrs.frozen
class Side:
    """Designs of one of two problems that belong together, with what they are worth."""

    problem: Problem
    designs: Designs

    @property
    def worth(self) -> Evaluation:
        return self.problem.evaluator.evaluate_designs(self.designs)

    def design(self, row: int) -> Design:
        return Design.of(self.problem, self.designs.take(np.array([row])))


def compared(one: Side, other: Side, low: Any, high: Any, what: str, slack_cycles: float = 0.0) -> int:
    """Raises `Broken` unless every design of the other side is valid and its numbers are `low` to `high` times those of
    the first side, cycles within `slack_cycles` more. `low` and `high` are numbers, or tables by key."""
    a, b = one.worth, other.worth
    for row in np.flatnonzero(a.valid & ~b.valid)[:1]:
        reasons = ", ".join(b.reasons_of(row))
        raise Broken(f"{what}: a valid design becomes invalid ({reasons})", one.design(row), other.design(row))
    for key, slack in (("energy_pj", 0.0), ("cycles", slack_cycles)):
        lowest, highest = (limit[key] if isinstance(limit, Mapping) else limit for limit in (low, high))
        x, y = getattr(a, key)[a.valid], getattr(b, key)[a.valid]
        wrong = np.flatnonzero(~((y >= lowest * x - slack) & (y <= highest * x)))
        if wrong.size:
            row = int(np.flatnonzero(a.valid)[wrong[0]])
            before, after = float(x[wrong[0]]), float(y[wrong[0]])
            text = f"{what}: {key} {before!r} becomes {after!r}, expected {lowest:g} to {highest:g} times as much"
            raise Broken(f"{text} ({wrong.size} of {len(x)} designs)", one.design(row), other.design(row))
    return 2 * len(a)


def equal(one: Side, other: Side, what: str, within: float = ROUNDING) -> int:
    return compared(one, other, 1.0 - within, 1.0 + within, what)


def reordered(case: Case, one: Side, other: Side, what: str) -> int:
    """Raises `Broken` unless the designs are worth the same, where numbers are added and multiplied in another order.

    Without filters they are to within rounding and the one cycle that it turns where cycles are rounded up. With filters,
    probabilities are rounded to six decimals and counts up to whole numbers, as Timeloop does it, which may turn single
    counts, one in every instance at most.
    """
    columns, places = one.designs.columns, one.problem.places
    filters = np.zeros(len(one.designs), bool)
    for gene, place in enumerate(places):
        acts = np.array([bool(doing(one.problem, place, m)[0]) for m in one.problem.candidates("mechanism")])
        filters |= acts[columns["mechanisms"][gene]]
    a, b = one.worth, other.worth
    spatial = [level.spatial for level in one.problem.mapping_levels]
    lanes = columns["bounds"][spatial].prod(axis=(0, 1)) if any(spatial) else np.ones(len(filters))
    slowest = min([1.0, *(level[key] for level in case.levels for key in BANDWIDTHS if key in level)])
    most_pj = sum(max(level[ENERGY].values()) for level in case.levels) + max(case.compute[ENERGY].values())
    later_pj = np.where(a.cycles != b.cycles, a.energy_pj / np.maximum(a.cycles, 1.0), 0.0)
    within = np.where(filters, ROUNDED, ROUNDING)
    for key, slack in (
        ("energy_pj", np.where(filters, TURNED * most_pj * lanes, later_pj)),
        ("cycles", np.where(filters, TURNED / slowest * lanes, 1.0)),
    ):
        x, y = getattr(a, key), getattr(b, key)
        with np.errstate(invalid="ignore"):
            wrong = np.flatnonzero((a.valid != b.valid) | (a.valid & (np.abs(x - y) > within * x + slack)))
        if wrong.size:
            row = int(wrong[0])
            text = f"{what}: {key} {float(x[row])!r} becomes {float(y[row])!r}"
            raise Broken(f"{text} ({wrong.size} of {len(filters)} designs)", one.design(row), other.design(row))
    return 2 * len(filters)


def doing(problem: Problem, place: Place, mechanism: Any) -> Any:
    """What a mechanism does at a place, by the names of tensors."""
    names, rules = [tensor.name for tensor in problem.tensors], set()
    for rule, target, leaders in problem.filters(mechanism, place):
        bare = str(attrs.evolve(rule, target="", leaders=()))
        rules.add((bare, names[target], frozenset(names[leader] for leader in leaders)))
    return frozenset(rules), mechanism.needs_metadata(place)


def divided(problem: Problem, designs: Designs) -> tuple[frozenset[tuple[str, str]], Array]:
    """Pairs of dimensions, in their order, and (B,) bool: the designs where this order counts.

    Timeloop divides the tile of a leader, which several instances share, by loops that move the target as well, in the
    order of their dimensions; a model without charges does the same. So it counts where a filter at storage has a target
    and a leader with several dimensions in common, one of them over space; anywhere, where an access takes several words.
    """
    pairs, found = set[tuple[str, str]](), np.zeros(len(designs), bool)
    if getattr(problem.cost_model, "charges", ()):
        return frozenset(), found
    wide = any(level.memory.access_words > 1 for level in problem.levels)
    spatial = [level.spatial or wide for level in problem.mapping_levels]
    over_space: Array = np.any(designs.columns["bounds"][spatial] > 1, axis=0)
    for gene, place in enumerate(problem.places):
        for index, mechanism in enumerate(problem.candidates("mechanism")):
            for _, target, leaders in problem.filters(mechanism, place) if place.storage is not None else ():
                for leader in leaders:
                    common = set(problem.tensors[target].dims) & set(problem.tensors[leader].dims)
                    if len(common) > 1:
                        pairs |= set(combinations([dim for dim in problem.dims if dim in common], 2))
                        shared = over_space[[dim in common for dim in problem.dims]].any(axis=0)
                        found |= shared & (designs.columns["mechanisms"][gene] == index)
    return frozenset(pairs), found
