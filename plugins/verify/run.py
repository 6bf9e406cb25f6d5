"""`verify`: trials of a design against the expectation of the cost model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparsemap.errors import SparseMapError
from sparsemap.problem.designs import Designs
from sparsemap.problem.problem import Problem

from .charges import ChargedTrial, charges_of
from .comparison import COMPARED, CountComparison
from .expected import evaluate, expected, window_parts
from .report import CountRow, Verification, spread
from .simulate import Simulation
from .tally import Key, Tally, energy_action

LIMIT_SECONDS = 60.0
SECONDS_PER_COMPUTE = 1.3e-6
"""Seconds of a trial per compute, on one core of a common machine; `SECONDS_PER_TRIAL` comes on top."""
SECONDS_PER_TRIAL = 0.02
BYTES_PER_COMPUTE = 60
LIMIT_BYTES = 8e9
SHORTENED = 4_000_000
"""Most computes of a shortened design."""
QUANTITIES = ("read", "fill", "update", "metadata_read", "metadata_fill", "metadata_update")


class TooLarge(SparseMapError):
    """The problem is too large to simulate in about a minute."""


def verify(
    problem: Problem,
    designs: Designs,
    trials: int = 20,
    seed: int = 0,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
    compare: bool = False,
) -> Verification:
    """Simulate the first of `designs` on random tensors and compare every count with the cost model's.

    `TooLarge` if the estimate exceeds about a minute, unless `force`; `progress` is called after every trial.
    `compare`: also charge the first trials under every fidelity and every charge."""
    if trials < 1:
        raise SparseMapError(f"expected at least 1 trial, found {trials}")
    computes = int(np.prod([int(size) for size in problem.sizes.values()], dtype=object))
    refuse_large(computes, trials, force)
    sim = Simulation(problem, designs)
    charges, comparison = charges_of(problem), CountComparison(sim) if compare else None
    evaluation = evaluate(problem, sim.designs)
    tallies: list[Tally] = []
    for number, sequence in enumerate(np.random.SeedSequence(seed).spawn(trials)):
        compared = comparison is not None and number < COMPARED and bool(comparison.models)
        rng, charged = np.random.default_rng(sequence), compared or bool(charges)
        paid = ChargedTrial(sim, sim.trial(rng, charged, compared=compared))
        tallies.append(paid.pay(charges))
        if comparison and compared:
            comparison.add(paid)
        if progress is not None:
            progress(number + 1)
    title = f"{problem.workload.name or 'workload'} on {problem.hardware.name or 'hardware'}"
    correct = all(tally.correct for tally in tallies)
    windows = {} if charges else window_parts(sim, evaluation)
    rows = _rows(sim, tallies, *expected(sim, evaluation, trials), windows)
    notes = tuple(_notes(sim))
    costs = (comparison.fidelities(), comparison.effects(), comparison.lacking()) if comparison else ((), (), ())
    return Verification(title, trials, seed, rows, correct, notes, *costs, inconsistent=_inconsistent(sim, rows))


def _inconsistent(sim: Simulation, rows: Sequence[CountRow]) -> tuple[str, ...]:
    """Errors of formats with formulas unlike their codecs, among tensors with metadata off expectation."""
    names = {row.tensor for row in rows if "metadata" in row.quantity and row.verdict == "off"}
    ranks = [r for (t, _), r in sim.ranks.items() if sim.problem.tensors[t].name in names]
    found = dict[str, None]()
    for form in {id(form): form for each in ranks for form in each.formats if form.compressed}.values():
        from sparsemap.testing import check_format

        with np.errstate(all="ignore"):
            try:
                check_format(form)
            except (AssertionError, SparseMapError) as error:
                found[str(error)] = None
    return tuple(found)


def computes_within(trials: int) -> int:
    """Computes of a shortened design whose trials take about a minute, at most `SHORTENED`."""
    return min(int((LIMIT_SECONDS / trials - SECONDS_PER_TRIAL) / SECONDS_PER_COMPUTE), SHORTENED)


def refuse_large(computes: int, trials: int, force: bool) -> None:
    per_trial, needed = SECONDS_PER_TRIAL + computes * SECONDS_PER_COMPUTE, computes * BYTES_PER_COMPUTE
    if force or (trials * per_trial <= LIMIT_SECONDS and needed <= LIMIT_BYTES):
        return
    fitting = int(LIMIT_SECONDS / per_trial)
    advice = f"; {fitting} trials would fit in a minute" if fitting and needed <= LIMIT_BYTES else ""
    raise TooLarge(
        f"{computes:,} multiply-accumulates in each of {trials} trials: about {_duration(trials * per_trial)} and up to "
        f"{needed / 1e9:.1f} GB of memory, more than verify does without --force{advice}"
    )


def _duration(seconds: float) -> str:
    for size, unit in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _rows(
    sim: Simulation, tallies: list[Tally], means: dict[Key, float], rounding: dict[Key, float],
    windows: dict[Key, dict[str, float]],
) -> tuple[CountRow, ...]:  # fmt: skip
    count = len(tallies)
    found = []
    energy: dict[str, float] = {}
    for key in sorted({key for tally in tallies for key in tally.values} | set(means), key=_order):
        mean, stderr = spread([tally.values.get(key, 0.0) for tally in tallies])
        goal = means.get(key, 0.0)
        if stderr == 0.0 and goal != mean:
            rounding[key] = rounding.get(key, 0.0) + _rare(sim, tallies, key)
        if goal == 0 and mean == 0:
            continue
        names = dict.fromkeys(name for tally in tallies for name in tally.parts.get(key, {}))
        parts = {name: sum(tally.parts[key].get(name, 0.0) for tally in tallies) / count for name in names}
        rests = [tally.values.get(key, 0.0) - sum(tally.parts.get(key, {}).values()) for tally in tallies]
        quantity, level, tensor = key
        data = quantity.removeprefix("metadata_")
        dense = windows.get((data, level, tensor))
        if dense:
            # metadata come with every tile, shared or not
            every = dense["dense"] if data == quantity else dense["dense"] - dense["Q2"]
            scale = mean / every if every else 1.0
            parts["Q1"] = dense["Q1"] * scale
            if data == quantity:
                parts["Q2"] = parts.get("Q2", dense["Q2"] * scale)
        if level is not None and tensor is not None and quantity in QUANTITIES:
            spec = sim.problem.levels[level]
            per = sim.problem.energy_pj(level, energy_action(quantity))
            for name, amount in parts.items():
                each = 1.0 / spec.metadata_width if "metadata" in quantity else sim.words_per_word(tensor, level)
                accesses = amount * each
                energy[name] = energy.get(name, 0.0) + accesses * per
        if quantity == "energy_pj":
            parts = energy
        where = "" if level is None else sim.problem.levels[level].name
        whose = "" if tensor is None else sim.problem.tensors[tensor].name
        known = tuple((name, amount) for name, amount in sorted(parts.items()) if amount)
        slack = {"rounding": rounding.get(key, 0.0), "noise": spread(rests)[1]}
        more: Any = {"parts": known, "rest": _rest(sim, key), **slack}
        found.append(CountRow(quantity, where, whose, goal, mean, stderr, count, **more))
    return tuple(found)


def _rare(sim: Simulation, tallies: list[Tally], key: Key) -> float:
    """Most events removed by a filter too rarely to show in a trial: three in all trials (the rule of three)."""
    quantity, level, tensor = key
    if level is None or tensor is None or not sim.filtered(tensor, level):
        return 0.0
    name = quantity.removeprefix("gated_").removeprefix("skipped_")
    every = sum(tallies[0].values.get((prefix + name, level, tensor), 0.0) for prefix in ("", "gated_", "skipped_"))
    link = sim.links.get((tensor, sim.nest.child(tensor, level)))
    data = name.removeprefix("metadata_")
    tiles = sim.dense.get((data, level, tensor), (0.0, 0.0))[0] / (link.tile_words if link else 1)
    return min(every, 3.0 * every / (len(tallies) * tiles)) if tiles else 0.0


def _rest(sim: Simulation, key: Key) -> str:
    """The assumption blamed for deviations without a counted cause: filters, if any, else the zeros of Z."""
    _, level, tensor = key
    if tensor is None or level is None:
        return "Q12" if sim.guards else "?"
    if sim.filtered(tensor, level):
        return "Q12"
    return "zeros" if tensor == sim.nest.output and sim.packed[tensor] else "?"


def _order(key: Key) -> tuple[int, int, int, str]:
    quantity, level, tensor = key
    whole = level is None and quantity in ("cycles", "energy_pj")
    return 999 if whole else 99 if level is None else level, 99 if tensor is None else tensor, _rank(quantity), quantity


def _rank(quantity: str) -> int:
    for i, name in enumerate(("read", "fill", "update")):
        if quantity.endswith(name):
            return i + (3 if "metadata" in quantity else 0)
    return 9


def _notes(sim: Simulation) -> list[str]:
    names = [tensor.name for tensor in sim.problem.tensors]
    notes = []
    for t in np.flatnonzero(sim.packed).tolist():
        ranks = sim.ranks[t, sim.nest.stored(t)[0]]
        if not ranks.built:
            notes.append(f"metadata of {names[t]}, which has windows or strides, are read in proportion to the words")
        if t == sim.nest.output:
            notes.append(f"metadata of {names[t]} are those of finished tiles, in proportion to the words that move")
    thinned = sorted({names[t] for (t, _), guard in sim.guards.items() if guard.caught < 1.0 and not guard.lookahead})
    for name in thinned:
        notes.append(f"a mechanism catches only a share of the empty accesses of {name}; which ones is drawn at random")
    return notes
