"""Execution of designs with shorter loops, to test a search result before the search ends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs

from sparsemap.errors import SparseMapError
from sparsemap.pieces.contracts.base import Array
from sparsemap.pieces.contracts.hardware import BANDWIDTHS, FULL_ACTIONS
from sparsemap.problem.designs import Designs
from sparsemap.problem.load import load_problem
from sparsemap.problem.problem import Problem
from sparsemap.searching.best import Best
from sparsemap.searching.executed import Execution

from .comparison import FULL, CountComparison
from .simulate import Simulation

COMPUTES = 200_000
"""Multiply-accumulates of an executed design, unless all loops are at their shortest."""
LANES = 128
"""Lanes of an executed design, while temporal loops can be shortened instead of spatial loops."""
PRODUCTS = 500
"""Fewest expected products for a meaningful execution."""
TRIALS = 3
MATTERS = 0.005
"""Smallest reported error of a part of the model, as a share of the claim."""


def execution(best: Best, seed: int) -> Execution | str:
    """Execution of the design on `TRIALS` sets of tensors, charged at the fullest fidelity; or why not."""
    try:
        problem, designs = shortened(best.problem, best.design.batch, COMPUTES)
        if few := _few(problem):
            return few
        sim = Simulation(problem, designs)
    except SparseMapError as error:
        return str(error)
    claim = problem.evaluator.evaluate_designs(designs)
    if not claim.valid[0]:
        return f"with shorter loops it is invalid: {', '.join(claim.reasons_of(0))}"
    comparison = CountComparison(sim)
    comparison.run(TRIALS, seed, effects=1)
    claimed = float(claim.energy_pj[0]), float(claim.cycles[0])
    found = {one.name: one.executed for one in comparison.fidelities()} or {"": claimed}
    names = "energy_pj", "cycles"
    return Execution(
        dict(zip(names, claimed, strict=True)), dict(zip(names, found.get(FULL, claimed), strict=True)),
        _parts(comparison, claimed), {dim: int(size) for dim, size in problem.sizes.items()},
    )  # fmt: skip


def of_a_minute(problem: Problem, designs: Designs, trials: int) -> tuple[Problem, Designs, str]:
    """The problem and the first of `designs`, with shorter loops if the trials would take more than about a minute, and a
    note on these loops; "" for a whole design, also where shorter loops fit neither the densities nor the hardware."""
    from .run import TooLarge, computes_within, refuse_large

    try:
        refuse_large(math.prod(int(size) for size in problem.sizes.values()), trials, force=False)
        return problem, designs, ""
    except TooLarge:
        pass
    try:
        small, one = shortened(problem, designs, computes_within(trials))
        fits = small is not problem and bool(small.evaluator.evaluate_designs(one).valid[0])
    except SparseMapError:  # such as data of the whole tensor
        fits = False
    if not fits:
        return problem, designs, ""
    sizes = ", ".join(f"{dim} {int(size):,} of {int(problem.sizes[dim]):,}" for dim, size in small.sizes.items())
    return small, one, f"shorter loops, of about a minute: {sizes}; --force executes the whole design"


def _few(problem: Problem) -> str:
    sizes, operands = problem.sizes, (tensor for tensor in problem.tensors if not tensor.output)
    computes = math.prod(int(size) for size in sizes.values())
    products = computes * math.prod(x.density.occupancy(x.shape(sizes)).density for x in operands)
    if products >= PRODUCTS:
        return ""
    return f"too sparse: {products:,.0f} products in {computes:,} multiply-accumulates, expected {PRODUCTS} at least"


def _parts(comparison: CountComparison, claimed: tuple[float, float]) -> dict[str, tuple[float, float]]:
    known = {one.name: one for one in (*comparison.effects(), *comparison.lacking())}
    found = {}
    for name, one in known.items():
        if any(abs(part) > whole for part, whole in zip(one.analytic, claimed, strict=True)):
            continue  # the difference of two numbers that are beyond the claim says nothing
        more = (one.executed[i] - one.analytic[i] for i in (0, 1))
        energy, cycles = (part / whole for part, whole in zip(more, claimed, strict=True))
        if max(abs(energy), abs(cycles)) > MATTERS:
            found[name] = energy, cycles
    return dict(sorted(found.items(), key=lambda item: -max(map(abs, item[1]))))


def shortened(problem: Problem, designs: Designs, computes: int) -> tuple[Problem, Designs]:
    """The problem and the first of `designs` with loops halved until at most `computes` multiply-accumulates remain.

    First spatial loops are halved, down to `LANES` lanes; then temporal loops, from the outside; at last the other
    spatial loops. No loop falls below bound 2. With fewer lanes, words per cycle and leakage shrink in proportion."""
    bounds = designs.columns["bounds"][:, :, 0].copy()
    levels = list(enumerate(problem.mapping_levels))
    spatial, temporal = ([i for i, level in levels if level.spatial == kind] for kind in (True, False))
    for groups, lanes in ((spatial, LANES), (temporal, 1), (spatial, 1)):
        for group in groups:
            least = lanes if groups is spatial else 0
            while bounds.prod() > computes and bounds[spatial].prod() > least and bounds[group].max() > 2:
                loop = int(bounds[group].argmax())
                bounds[group, loop] = math.ceil(bounds[group, loop] / 2.0)
    if (bounds == designs.columns["bounds"][:, :, 0]).all():
        return problem, designs.take(slice(0, 1))
    sizes = dict(zip(problem.dims, bounds.prod(axis=0).astype(int).tolist(), strict=True))
    small = load_problem(
        _workload(problem, sizes), _hardware(problem, bounds, designs), problem.space_spec, problem.objective,
        problem.cost_model, registry=problem.registry,
    ).laid_out(sizes)  # fmt: skip
    one = designs.take(slice(0, 1))
    return small, attrs.evolve(one, columns={**one.columns, "bounds": bounds[:, :, None]})


def _workload(problem: Problem, sizes: dict[str, int]) -> Any:
    """An einsum with the new sizes over the same tensors."""
    *operands, output = problem.tensors
    einsum = f"{output.text} = {' * '.join(tensor.text for tensor in operands)}"
    table = {"type": "einsum", "name": problem.workload.name, "einsum": einsum, "dims": sizes}
    table |= {"word_bits": dict(bits)} if isinstance(bits := problem.workload.word_bits, Mapping) else {}
    return problem.registry.build("workload", table | {"density": {x.name: x.density for x in operands}})


def _hardware(problem: Problem, bounds: Array, designs: Designs) -> Any:
    """The hardware with bandwidths and leakage in proportion to the remaining lanes below each level."""
    before, levels = designs.columns["bounds"][:, :, 0], []
    groups = list(enumerate(problem.mapping_levels))
    for level, table in zip(problem.levels, problem.hardware.levels, strict=True):
        made = dict(table)
        below = [i for i, group in groups if group.spatial and group.storage >= level.index]
        share = float((bounds[below] / before[below]).prod())
        every = [i for i, group in groups if group.spatial]
        made["leakage_mw"] = problem.leakage_mw(level.index) * float((bounds[every] / before[every]).prod())
        off = level.memory.power_gated
        if off is not None:  # fewer instances are used, of as many
            outside = [i for i, group in groups if group.spatial and group.storage < level.index]
            used = [float(part[outside].prod()) for part in (before, bounds)]
            here, then = (count + (level.instances - count) * off for count in used)
            made["leakage_mw"] *= here / then if then > 0.0 else 1.0
        made["energy"] = {action: problem.energy_pj(level.index, action) for action in FULL_ACTIONS}
        for key in BANDWIDTHS:
            limit = getattr(level, key)
            if limit is not None:
                made[key] = f"{limit * share:g} words/cycle"
        levels.append(made)
    return attrs.evolve(problem.hardware, levels=tuple(levels))
