"""Entry points of a program: load a problem, evaluate designs. `search` is in `sparsemap.searching.run`."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import attrs

from ..errors import EvaluationError, Mistake, SpecError, shortened, unknown
from ..pieces import defaults
from ..pieces.contracts import Array, Piece
from ..pieces.registry import Registry, is_path
from .costs import ALIASES, BASIC, DERIVED
from .evaluation import Evaluation
from .problem import Problem

Reference = str | os.PathLike[str] | Mapping[str, Any] | Piece


def load_problem(
    workload: Reference,
    hardware: Reference,
    space: Reference | None = None,
    objective: Reference = defaults.OBJECTIVE,
    cost_model: Reference | None = None,
    plugin_dirs: Sequence[str | os.PathLike[str]] = (),
    registry: Registry | None = None,
    more: Mapping[str, Sequence[str]] | None = None,
) -> Problem:
    """A workload on a hardware, ready to be searched or evaluated.

    Each part is the name of a spec, the path of a TOML file, a table, or the object itself:

        problem = load_problem("mm3", "cloud")
        problem = load_problem("my-layer.toml", {"extends": "edge", "clock": "2 GHz"})

    Defaults: `space` is the hardware's or the usual space, `cost_model` is the space's or the usual model. `more` adds
    candidates to the space by kind and name, such as `{"format": ["mine"]}`.

    `registry` saves loading the plugins again; otherwise all plugins are loaded, including plugins in `plugin_dirs`."""
    if registry is None:
        from ..pieces.loading import load

        registry = load(plugin_dirs=plugin_dirs)
    return make_problem(registry, workload, hardware, space, objective, cost_model, more=more)


def make_problem(
    registry: Registry,
    workload: Any,
    hardware: Any,
    space: Any,
    objective: Any,
    cost_model: Any,
    file: str = "",
    more: Mapping[str, Sequence[str]] | None = None,
) -> Problem:
    """The problem of these parts; `file` is the file of any tables among the parts."""
    given = {"workload": workload, "hardware": hardware}
    built = {kind: piece_of(registry, kind, part, file) for kind, part in given.items()}
    space = space or built["hardware"].space or defaults.SPACE
    built["space"] = piece_of(registry, "space", space, file)
    added: dict[str, Iterable[str]] = {**(more or {})}
    if space == defaults.SPACE and (units := built["hardware"].units):  # other spaces have their candidates on purpose
        for kind, names in units.names.items():
            known = [name for name in names if registry.has(kind, name)]  # of others the chip tells
            added |= {kind: dict.fromkeys((*added.get(kind, ()), *known))} if known else {}
    if added:
        both = {kind: (*built["space"].more.get(kind, ()), *names) for kind, names in added.items()}
        built["space"] = attrs.evolve(built["space"], more={**built["space"].more, **both})
    parts = {"workload": workload, "hardware": hardware, "space": space}
    model = piece_of(registry, "cost-model", cost_model or built["space"].cost_model or defaults.COST_MODEL, file)
    aim = objective_of(registry, objective, file, model.costs)
    view, machine = built["space"].view, built["hardware"]
    workload = built["workload"].viewed(view) if view else built["workload"]
    return Problem(
        workload=workload,
        hardware=attrs.evolve(machine, word_bits=bits) if (bits := workload.machine_bits) else machine,
        space_spec=built["space"],
        cost_model=model,
        objective=aim,
        registry=registry,
        files={kind: _file(registry, kind, value, file) for kind, value in parts.items()},
    )


def piece_of(registry: Registry, kind: str, value: Any, file: str = "") -> Any:
    """A piece by name, path of a TOML file, table, or the piece itself."""
    if isinstance(value, str | os.PathLike):
        return registry.resolve(kind, value)
    return registry.build(kind, value, file, kind.replace("-", "_"))


def objective_of(registry: Registry, value: Any, file: str = "", costs: Collection[str] = BASIC) -> Any:
    """An objective, as `piece_of` finds it, or by its text: `energy_pj * cycles**2`, `pareto:energy,delay`, the name of
    a cost. `SpecError` for a cost neither among the `costs` of the cost model nor derived from them."""
    known = {*costs, *DERIVED, *ALIASES}
    if isinstance(value, str) and not value.endswith(".toml"):
        named = value in known and not registry.has("objective", value)
        found = registry.build("objective", f"({value})" if named else value, file)
    else:
        found = piece_of(registry, "objective", value, file)
    if strange := [unknown("cost", name, known) for name in found.costs if name not in known]:
        raise SpecError([Mistake(file, "objective", text) for text in strange])
    return found


def evaluate(problem: Problem, genomes: Array) -> Evaluation:
    """Energy, cycles and validity of genomes, (B, G) integers within the bounds of `problem.space`."""
    if not isinstance(problem, Problem):
        text = "expected a Problem, as load_problem(WORKLOAD, HARDWARE) makes it"
        raise EvaluationError(f"evaluate: the problem is {shortened(problem)}, {text}")
    return problem.evaluator.evaluate(genomes)


def _file(registry: Registry, kind: str, value: Any, file: str) -> str:
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        return text if is_path(text) else registry.origin(kind, text).file or text
    return file or kind
