"""Small designs counted by hand: what the machine does, held against execution and against the analytic model.

Every file `*.toml` of this folder has designs with a derivation beside each number. `counts` hold for both programs,
`executed` and `modelled` for one of them: the model where the number is the mean over all placements of the nonzeros, or
a formula of docs/model.md worked out by hand; where the model approximates the mean, `within` says how well. Words and
bits are totals over all instances."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sparsemap_plugins.verify.charges import ChargedTrial
from sparsemap_plugins.verify.simulate import Simulation

from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design

pytestmark = pytest.mark.installed
REGISTRY = load(env={})
DESIGNS = [
    one for file in sorted(Path(__file__).parent.glob("*.toml")) for one in tomllib.loads(file.read_text())["design"]
]
PRODUCT = "Z[m, n] = P[m, k] * Q[k, n]"
PRICES = {"DRAM": 100.0, "Outer": 20.0, "Buffer": 10.0, "Registers": 1.0}
"""pJ of a word read or written; 32 bits of metadata cost a quarter, a product costs 1, what is held back nothing."""
MACHINE = ["gate-time", "positions", "drains", "sums", "holes", "filter-metadata", "stay", "run-lengths", "pointers"]
"""Charges of each design: what moves, and which steps take place. Designs add charges of time and of energy."""
ACTIONS = {"reads": "read", "fills": "fill", "updates": "update", "bits read": "metadata_read"}
ACTIONS |= {"bits filled": "metadata_fill", "bits updated": "metadata_update"}
BITS = {"bits read": "read", "bits filled": "fill", "bits updated": "update"}
TOTALS = {"computes": "compute", "cycles": "cycles", "energy": "energy_pj"}


def energies(word: float) -> dict[str, float]:
    spent = {"read": word, "write": word, "metadata_read": word / 4, "metadata_write": word / 4}
    names = [f"{part}{action}" for part in ("", "metadata_") for action in ("read", "fill", "update")]
    return {f"{kind}_{name}": 0.0 for kind in ("gated", "skipped") for name in names} | spent


def made(given: dict[str, Any], folder: Path) -> Design:
    """The design of a table, with the words it lists as data."""
    sizes, levels = given["sizes"], [{"name": "DRAM", "class": "dram", **given.get("DRAM", {})}, *given["levels"]]
    wide = {"class": "sram", "capacity": "1 MB", "gate_skip": True}
    levels = [{**(wide if i else {}), "energy": energies(PRICES[x["name"]]), **x} for i, x in enumerate(levels)]
    density: dict[str, Any] = {}
    einsum = given.get("einsum", PRODUCT)
    for tensor in "PQR":
        if f"{tensor}[" in einsum:
            density[tensor] = 1.0
        if tensor in given.get("words", {}):
            np.save(folder / f"{tensor}.npy", words(given, tensor))
            density[tensor] = {"type": "data", "file": str(folder / f"{tensor}.npy")}
    groups = {f"L{i}_{part}": [] for i, x in enumerate(levels, 1) for part in "TS" if part == "T" or "fanout" in x}
    groups |= given["loops"]
    loops = {
        name: [*(f"{d}=1" for d in sizes if d not in {x.split("=")[0] for x in own}), *own]
        for name, own in groups.items()
    }
    formats = {t: given.get("formats", {}).get(t, ["uncompressed"]) for t in [*density, "Z"]}
    table = {
        "workload": {"einsum": einsum, "dims": sizes, "density": density | given.get("density", {})},
        "hardware": {
            "technology": "12nm",
            "levels": levels,
            "compute": {"gate_skip": True, "energy": {"compute": 1.0, "gated": 0.0, "skipped": 0.0}}
            | given.get("unit", {}),
        },
        "mapping": loops,
        "beyond_format": "offset-pair",
        "formats": {t: [*["uncompressed"] * (6 - len(own)), *own] for t, own in formats.items()},
        "gate_skip": {x["name"]: "none" for x in levels if x.get("gate_skip")}
        | {"MAC": "none"}
        | given.get("filters", {}),
        "pieces": given.get("pieces", {}),
        "cost_model": {"type": "analytic", "charges": given.get("only", MACHINE) + given.get("charges", [])},
        **{name: given[name] for name in ("padding", "decoded") if name in given},
    }
    return design_file.structure(table, REGISTRY)


def words(given: dict[str, Any], tensor: str) -> np.ndarray:
    """The 0 and 1 of a tensor: a text, or nested lists of texts, a digit for each word; blanks are for the reader."""

    def digits(part: Any) -> Any:
        return [float(x) for x in part.replace(" ", "")] if isinstance(part, str) else [digits(x) for x in part]

    return np.array(digits(given["words"][tensor]))


def executed(design: Design, given: dict[str, Any]) -> dict[str, float]:
    sim = Simulation(design.problem, design.batch)
    data = None
    if "density" in given:  # which draws other words for the execution than those listed
        data = {t: np.ones(np.prod(sim.nest.shape(t))) for t in sim.nest.operands}
        data |= {"PQR".index(name): words(given, name).reshape(-1) for name in given["words"]}
    trial = sim.trial(np.random.default_rng(0), charged=True, given=data)
    assert trial.energy.tally.correct and trial.time.tally.correct
    found = ChargedTrial(sim, trial).pay(design.problem.cost_model.charges).values
    totals = {name: found.get((key, None, None), 0.0) for name, key in TOTALS.items()}
    places = [(s, t) for s in range(len(design.problem.levels)) for t in range(len(design.problem.tensors))]
    return totals | {
        f"{design.problem.levels[s].name}.{design.problem.tensors[t].name} {name}": found.get((key, s, t), 0.0)
        for s, t in places
        for name, key in ACTIONS.items()
    }


def modelled(design: Design) -> dict[str, float]:
    found = design.problem.evaluator.evaluate_designs(design.batch, detail=True)
    assert found.valid[0], found.reasons_of(0)
    detail = found.detail
    every = {"computes": detail.computes[0], "cycles": found.cycles[0], "energy": found.energy_pj[0]}
    for t, cells in enumerate(detail.cells):
        for s, cell in enumerate(cells):
            if cell is not None:
                counts = {"reads": cell.read, "fills": cell.fill, "updates": cell.update}
                counts |= {name: cell.bits.get(key, [0.0]) for name, key in BITS.items()}
                where = f"{design.problem.levels[s].name}.{design.problem.tensors[t].name}"
                active = detail.instances_active[t, s, 0]
                every |= {f"{where} {name}": count[0] * active for name, count in counts.items()}
    return {name: float(value) for name, value in every.items()}


def cases(which: str) -> list[Any]:
    """The designs with numbers for one of the programs. One that is known to miss them has the reason, and has to."""
    found = []
    for one in DESIGNS:
        if "counts" in one or which in one:
            missed = one.get(f"{which} differs")
            marks = [pytest.mark.xfail(reason=missed, strict=True, raises=AssertionError)] if missed else []
            found.append(pytest.param(one, id=one["name"].replace(" ", "-"), marks=marks))
    return found


def differing(given: dict[str, Any], which: str, found: dict[str, float]) -> dict[str, tuple[float, float]]:
    """Quantities that differ: what the hand counted, and what was found."""
    counted = given.get("counts", {}) | given.get(which, {})
    within = given.get("within", 1e-9) if which == "modelled" else 1e-9
    return {name: (x, found[name]) for name, x in counted.items() if found[name] != pytest.approx(x, rel=within)}


@pytest.mark.parametrize("given", cases("executed"))
def test_an_execution_counts_what_a_hand_counts(given, tmp_path) -> None:
    assert differing(given, "executed", executed(made(given, tmp_path), given)) == {}


@pytest.mark.parametrize("given", cases("modelled"))
def test_the_model_counts_what_a_hand_counts(given, tmp_path) -> None:
    assert differing(given, "modelled", modelled(made(given, tmp_path))) == {}


@pytest.mark.parametrize("given", [pytest.param(one, id=one["name"]) for one in DESIGNS if "refused" in one])
def test_the_model_refuses_what_does_not_fit(given, tmp_path) -> None:
    design = made(given, tmp_path)
    assert list(design.problem.evaluator.evaluate_designs(design.batch).reasons_of(0)) == given["refused"]


def test_every_number_is_derived() -> None:
    assert len({one["name"] for one in DESIGNS}) == len(DESIGNS) >= 30
    assert all(one["because"] and one["covers"] for one in DESIGNS)
