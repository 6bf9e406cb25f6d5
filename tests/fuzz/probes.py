"""What has to hold between a design and a changed one, whatever the pieces: probes for random cases.

    for case in Cases(load(), densities=[{"type": "mine", ...}]).first(100):
        for probe in PROBES.values():
            probe(case, 200)

A probe gives the number of designs that it has evaluated, and raises `Broken`, which names the designs and both numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import wraps
from typing import Any

import attrs
import numpy as np
from random_problems import BANDWIDTHS, ENERGY, Case, Index
from sides import Broken, Side, compared, divided, doing, equal, reordered

from sparsemap.pieces.boundary import filters_of
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.designs import Design, Designs
from sparsemap.problem.evaluation import Evaluation
from sparsemap.problem.problem import Problem
from sparsemap.searching.best import ROUNDING
from sparsemap.searching.run import search

BUDGET = 300
"""Designs of the search that tries to get below the bound."""
ALONE = 8
"""Designs of a case that are evaluated alone."""
AIMS = ("energy_pj", "cycles", "energy_pj * cycles")
"""What it searches for, by turns."""

Probe = Callable[[Case, int], int]


def of_products(probe: Probe) -> Probe:
    """The probe, which changes a product's text, without cases that are layers."""

    @wraps(probe)
    def tried(case: Case, count: int) -> int:
        return 0 if case.layer else probe(case, count)

    return tried


# ------------------------------------------------------------------------------------------------------- other words


@of_products
def renamed(case: Case, count: int) -> int:
    """Other names of tensors and dimensions, also such as are roles of others, change no bit."""
    names = [name for name, _ in case.tensors]
    turned = dict(zip(names, [*names[1:], names[0]], strict=True))
    tensors = turned if case.number % 2 else {name: f"tensor_{place}" for place, name in enumerate(names)}
    dims = {dim: f"d{len(case.sizes) - place}" for place, dim in enumerate(case.sizes)}
    problem, other = case.problem(), case.problem(dims=dims, tensors=tensors)
    genomes = case.genomes(problem, count)
    sides = [Side(made, made.space.decode(genomes)) for made in (problem, other)]
    a, b = (side.worth for side in sides)
    if not np.array_equal(a.reasons, b.reasons):
        row = int(np.flatnonzero(a.reasons != b.reasons)[0])
        raise Broken("renamed: reasons differ", *(side.design(row) for side in sides))
    valid = np.flatnonzero(a.valid)
    one, two = (Side(side.problem, side.designs.take(valid)) for side in sides)
    return 2 * count + equal(one, two, "renamed", 0.0)


@of_products
def dims_permuted(case: Case, count: int) -> int:
    """Dimensions in another order, but for those whose order counts (`divided`)."""
    problem, tried = case.problem(), 0
    designs = case.designs(problem, count)
    pairs, counts = divided(problem, designs)
    for kept, rows in ((frozenset[tuple[str, str]](), ~counts), (pairs, counts)):
        sizes = {dim: case.sizes[dim] for dim in _turned(problem.dims, kept)}
        if rows.any() and tuple(sizes) != problem.dims:
            other, some = attrs.evolve(case, sizes=sizes).problem(), designs.take(np.flatnonzero(rows))
            to = [other.dims.index(dim) for dim in problem.dims]
            sides = Side(problem, some), Side(other, with_dims(some, other, to))
            tried += reordered(case, *sides, "dimensions permuted")
    return tried


def _turned(dims: Sequence[str], kept: Set[tuple[str, str]]) -> list[str]:
    """The dimensions from the last to the first, but for pairs that keep their order."""
    left, found = list(dims), list[str]()
    while left:
        found.append(next(dim for dim in reversed(left) if not any((other, dim) in kept for other in left)))
        left.remove(found[-1])
    return found


def with_dims(designs: Designs, other: Problem, to: Sequence[int]) -> Designs:
    """The designs in a problem whose dimension `to[d]` is dimension d here."""
    bounds, order = (np.empty_like(designs.columns[name]) for name in ("bounds", "order"))
    bounds[:, list(to)] = designs.columns["bounds"]
    order[...] = np.asarray(to, order.dtype)[designs.columns["order"]]
    return Designs({**designs.columns, "bounds": bounds, "order": order})


@of_products
def operands_permuted(case: Case, count: int) -> int:
    """Operands in the reverse order, with mechanisms that do the same to the same tensors."""
    output, *operands = case.tensors
    if len(operands) < 2:
        return 0
    swapped = attrs.evolve(case, tensors=(output, *reversed(operands)))
    problem, other = case.problem(), swapped.problem()
    designs = case.designs(problem, count)
    mechanisms, there = designs.columns["mechanisms"].copy(), np.ones(len(designs), bool)
    for gene, (place, again) in enumerate(zip(problem.places, other.places, strict=True)):
        known = {doing(other, again, m): index for index, m in enumerate(other.candidates("mechanism"))}
        same = np.array([known.get(doing(problem, place, m), -1) for m in problem.candidates("mechanism")])
        mechanisms[gene] = same[mechanisms[gene]]
        there &= mechanisms[gene] >= 0
    names = [tensor.name for tensor in problem.tensors]
    formats = designs.columns["formats"][[names.index(tensor.name) for tensor in other.tensors]]
    rows, to = np.flatnonzero(there), [other.dims.index(dim) for dim in problem.dims]
    made = with_dims(Designs({**designs.columns, "formats": formats, "mechanisms": mechanisms}), other, to)
    return reordered(case, Side(problem, designs.take(rows)), Side(other, made.take(rows)), "operands permuted")


@of_products
def loops_split(case: Case, count: int) -> int:
    """A dimension as two, the outer loops of the one and the inner loops of the other, without sums in indices."""
    summed = {dim for _, indices in case.tensors for index in indices if len(index) > 1 for _, dim in index}
    plain = [dim for dim, size in case.sizes.items() if size in (4, 6, 8, 12, 16, 24) and dim not in summed]
    if not plain or any(not isinstance(value, float) for value in case.density.values()):
        return 0  # patterns with a shape are other patterns in more ranks
    whole = plain[case.number % len(plain)]
    inner = 2 if case.sizes[whole] % 4 else 4
    parts = {f"{whole}1": case.sizes[whole] // inner, f"{whole}0": inner}
    sizes = {k: v for dim, size in case.sizes.items() for k, v in (parts if dim == whole else {dim: size}).items()}
    pair: list[Index] = [((1, dim),) for dim in parts]
    tensors = tuple(
        (name, tuple(made for index in indices for made in (pair if index == ((1, whole),) else [index])))
        for name, indices in case.tensors
    )
    split = attrs.evolve(case, sizes=sizes, tensors=tensors)
    problem, merged = split.problem(), case.problem()
    designs = split.designs(problem, count)
    bounds, order = designs.columns["bounds"], designs.columns["order"]
    outer, within = (problem.dims.index(dim) for dim in parts)
    levels = np.arange(len(bounds))[:, None]
    last = np.where(bounds[:, outer] > 1, levels, -1).max(axis=0)
    first = np.where(bounds[:, within] > 1, levels, len(bounds)).min(axis=0)
    rows = np.flatnonzero((last < first) & ~divided(problem, designs)[1])
    if not rows.size:
        return 0
    bounds, order = bounds[..., rows], order[..., rows]
    made = np.ones((len(bounds), len(merged.dims), rows.size))
    to = [merged.dims.index(dim if dim not in parts else whole) for dim in problem.dims]
    for axis, place in enumerate(to):
        made[:, place] *= bounds[:, axis]
    # of the two loops, the one that runs keeps its place
    runs = np.where(bounds[:, outer] > 1, outer, within)[:, None]
    idle = outer + within - runs
    kept = np.sort(np.where(order != idle, np.arange(order.shape[1])[None, :, None], order.shape[1]), axis=1)[:, :-1]
    turned = np.asarray(to, order.dtype)[np.take_along_axis(order, kept, axis=1)]
    columns = {**designs.take(rows).columns, "bounds": made, "order": np.ascontiguousarray(turned)}
    return reordered(case, Side(problem, designs.take(rows)), Side(merged, Designs(columns)), "loops split")


def idle_loops_moved(case: Case, count: int) -> int:
    """Loops of bound one anywhere in the order of their level change no bit."""
    problem = case.problem()
    designs = case.designs(problem, count)
    bounds, order = designs.columns["bounds"], designs.columns["order"]
    place = np.random.default_rng(case.number).random(order.shape)
    busy = np.take_along_axis(bounds, order.astype(np.int64), axis=1) > 1.0
    ascending = np.sort(np.where(busy, place, 1.0), axis=1)  # busy loops keep their order
    place = np.where(busy, np.take_along_axis(ascending, np.cumsum(busy, axis=1) - busy, axis=1), place)
    moved = np.take_along_axis(order, np.argsort(place, axis=1), axis=1)
    other = Designs({**designs.columns, "order": np.ascontiguousarray(moved)})
    return equal(Side(problem, designs), Side(problem, other), "idle loops moved", 0.0)


# ------------------------------------------------------------------------------------------------------ other hardware


def energies_scaled(case: Case, count: int) -> int:
    """All energies doubled: the energy doubles without charges, and at most doubles with them; cycles stay."""

    def doubled(table: Mapping[str, Any]) -> dict[str, Any]:
        return {**table, ENERGY: {action: 2.0 * pj for action, pj in table[ENERGY].items()}}

    problem = case.problem()
    other = attrs.evolve(case, levels=tuple(map(doubled, case.levels)), compute=doubled(case.compute)).problem()
    designs = case.designs(problem, count)
    least = 1.0 if getattr(problem.cost_model, "charges", ()) else 2.0
    low, high = {"energy_pj": least, "cycles": 1.0}, {"energy_pj": 2.0, "cycles": 1.0}
    low, high = ({key: x * (1 + r) for key, x in limit.items()} for limit, r in ((low, -ROUNDING), (high, ROUNDING)))
    return compared(Side(problem, designs), Side(other, designs), low, high, "energies doubled")


def bandwidths_scaled(case: Case, count: int) -> int:
    """All bandwidths doubled: half the cycles, rounded level by level, or more, no cycle more; no more energy, and without
    charges no less. Without `network`, since wires are longer where bandwidth takes more banks."""
    spec = case.registry.spec("cost-model", case.cost_model)
    bare = {**spec, "charges": [name for name in spec.get("charges", ()) if name != "network"]}
    case = attrs.evolve(case, cost_model=bare)
    levels = tuple({key: 2 * x if key in BANDWIDTHS else x for key, x in level.items()} for level in case.levels)
    problem, other = case.problem(), attrs.evolve(case, levels=levels).problem()
    designs = case.designs(problem, count)
    least = 0.0 if getattr(problem.cost_model, "charges", ()) else 1.0 - ROUNDING
    low, sides = {"energy_pj": least, "cycles": 0.5 - ROUNDING}, (Side(problem, designs), Side(other, designs))
    return compared(*sides, low, 1.0 + ROUNDING, "bandwidths doubled", slack_cycles=float(len(levels)))


def level_inserted(case: Case, count: int) -> int:
    """A level with a fan-out of one that stores nothing and runs no loop."""
    place = 1 + case.number % (len(case.levels) - 1)
    names = tuple(name for name, _ in case.tensors)
    added = {"name": "Added", "bypass": names, ENERGY: case.levels[place][ENERGY]}
    levels = (*case.levels[:place], added, *case.levels[place:])
    problem, other = case.problem(), attrs.evolve(case, levels=levels).problem()
    designs = case.designs(problem, count)
    at = sum(level.storage < place for level in problem.mapping_levels)
    bounds, order = designs.columns["bounds"], designs.columns["order"]
    idle = np.ones((1, *bounds.shape[1:]))
    columns = {
        **designs.columns,
        "bounds": np.concatenate([bounds[:at], idle, bounds[at:]]),
        "order": np.concatenate([order[:at], order[at : at + 1], order[at:]]),
    }
    return equal(Side(problem, designs), Side(other, Designs(columns)), "level inserted")


# --------------------------------------------------------------------------------------------------- what is at least so


def dense(case: Case, count: int) -> int:
    """Where nothing is zero, no format and no mechanism saves energy or cycles."""
    full = attrs.evolve(case, density={name: 1.0 for name, _ in case.tensors})
    problem = full.problem()
    designs = full.designs(problem, count)
    plain = [index for index, chosen in enumerate(problem.candidates("format")) if not _costs(chosen)]
    acts = [any(filters_of(chosen, place) for place in problem.places) for chosen in problem.candidates("mechanism")]
    nothing = [index for index, act in enumerate(acts) if not act]
    if not plain or (problem.places and not nothing):
        return 0
    columns = dict(designs.columns)
    columns["formats"] = np.full_like(columns["formats"], plain[0])
    if problem.places:
        columns["mechanisms"] = np.full_like(columns["mechanisms"], nothing[0])
    return compared(Side(problem, designs), Side(problem, Designs(columns)), 0.0, 1.0 + ROUNDING, "dense and plain")


def _costs(chosen: Any) -> bool:
    """Whether a format writes anything about a fiber of four positions, two of them filled."""
    from sparsemap.testing import fibers

    units = chosen.units(fibers(8))
    bits = [units.metadata * np.asarray(units.metadata_bits), units.payload * np.asarray(units.payload_bits)]
    return bool(chosen.compressed or any(np.any(part > 0) for part in bits))


def one_by_one(case: Case, count: int, alone: int = ALONE) -> int:
    """A design evaluated alone, with empty tables, has the costs that it has in a batch, bit by bit; counts those
    evaluated alone."""
    designs = case.designs(case.problem(), count)
    whole, few = case.problem().evaluator.evaluate_designs(designs), min(len(designs), alone)
    for row in range(len(designs) - few, len(designs)):
        case.problem().cost_model.forget()
        single = Side(attrs.evolve(case).problem(), designs.take(np.array([row])))
        for key in ("energy_pj", "cycles"):
            if (x := float(getattr(whole, key)[row])) != (y := float(getattr(single.worth, key)[0])):
                raise Broken(f"one by one: {key} {x!r} among others, {y!r} alone", single.design(0))
    return few


def above_bound(case: Case, count: int) -> int:
    """No design, random or searched for, is below the bound of the cost model."""
    problem = case.problem()
    bound = problem.lower_bound
    if bound is None:
        return 0
    designs = case.designs(problem, count)
    worth, tried = problem.evaluator.evaluate_designs(designs), count + len(designs)
    check_above(problem, bound, designs, worth.energy_pj, worth.cycles)
    aimed = case.problem(AIMS[case.number % len(AIMS)])
    found = search(aimed, BUDGET, case.number)
    tried += found.evaluations
    if found.best is not None:
        energy_pj, cycles = np.array([found.best.energy_pj]), np.array([found.best.cycles])
        check_above(aimed, bound, found.best.design.batch, energy_pj, cycles)
        if found.broken_bound:
            raise Broken(f"bound of {aimed.objective}: {found.broken_bound}", found.best.design)
    return tried


def check_above(problem: Problem, bound: Evaluation, designs: Designs, energy_pj: Array, cycles: Array) -> None:
    """Raises `Broken` for the first design that is below every pair of the bound in energy or cycles."""
    near = 1.0 + ROUNDING
    above = (energy_pj[:, None] * near >= bound.energy_pj) & (cycles[:, None] * near >= bound.cycles)
    below = np.flatnonzero(~above.any(axis=1))
    if below.size:
        row = int(below[0])
        pairs = zip(bound.energy_pj.tolist()[:4], bound.cycles.tolist()[:4], strict=True)
        least = "; ".join(f"{pj!r} pJ and {steps!r} cycles" for pj, steps in pairs)
        text = f"bound: {float(energy_pj[row])!r} pJ and {float(cycles[row])!r} cycles, though no design is below "
        raise Broken(f"{text}{least} ({below.size} designs)", Design.of(problem, designs.take(np.array([row]))))


PROBES: Mapping[str, Probe] = {
    probe.__name__.replace("_", "-"): probe
    for probe in (
        renamed, dims_permuted, operands_permuted, loops_split, idle_loops_moved, energies_scaled, bandwidths_scaled,
        level_inserted, dense, one_by_one, above_bound,
    )
}  # fmt: skip
"""By name, what is tried on every case."""
