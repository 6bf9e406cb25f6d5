"""Each charge is left out in turn: what a search then takes for nothing, `verify` finds, and says which charge it is."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from sparsemap_plugins.verify import verify
from verify_designs import MATMUL, registry

from sparsemap import Search, load_problem

ACCESSES = ("read", "write", "metadata_read", "metadata_write")
GATES = ["none", "gate-p-by-q", "gate-q-by-p", "gate-both", "gate-z-by-both", "gate-all"]
SPACES = {"gate-time": GATES, "gated": GATES, "stay": ["skip-p-by-q", "none"]}
"""What a search may choose where only some mechanisms make a charge matter."""
PRODUCT = {"type": "einsum", "einsum": MATMUL, "dims": {"m": 8, "k": 32, "n": 8}, "density": {"P": 0.2, "Q": 0.3}}
RARE = PRODUCT | {"dims": {"m": 64, "k": 4, "n": 16}, "density": {"P": 0.9, "Q": 0.05}}
"""Tiles of P that stay meet words of Q that are nearly all zero."""
PRIMES = PRODUCT | {"dims": {"m": 13, "k": 29, "n": 11}}
"""Sizes that are padded."""
SIZES = {"k": 4, "c": 2, "p": 4, "q": 4, "r": 3, "s": 3}
PADDED = {"type": "conv2d", "stride": [1, 1], "padding": 1, "density": {"P": 0.5, "Q": 0.3}, **SIZES}
"""More than half of the words of the image are around it."""
CHARGES = [charge.type_name for charge in registry().resolve("cost-model", "physical").charges]


def hole(charge, budget=400):
    """A problem under `physical` without the charge, and of a search's designs the one that it weighs most on."""
    skips = {"gate_skip": charge != "positions"}
    own = {"vectors": True} if charge == "vectors" else {}
    stay = charge == "stay"
    dear = {"energy": dict.fromkeys(ACCESSES, 50.0), "capacity": "4096 words"} if stay else {}
    off_chip = {"energy": dict.fromkeys(ACCESSES, 1.0)}
    if charge not in ("imbalance", "intersection", "vectors"):
        off_chip["bandwidth"] = "4 words/cycle"
    levels = [
        {"name": "DRAM", "class": "dram", **off_chip, **skips},
        {"name": "Buffer", "class": "sram", "capacity": "768 words", "fanout": 8, "lookahead": 4, **skips} | dear,
        {"name": "Registers", "class": "sram", "capacity": f"{128 if stay else 48} words", "fanout": 2, **skips} | own,
    ]
    table = {
        "workload": {"holes": PADDED, "stay": RARE, "remainders": PRIMES}.get(charge, PRODUCT),
        "hardware": {"levels": levels, "compute": {"lookahead": 1, **skips}},
    }  # fmt: skip
    parts = [registry().build(kind, spec) for kind, spec in table.items()]
    space = {"extends": "full", "gate-skip": {"candidates": SPACES[charge]}} if charge in SPACES else "full"
    problem = load_problem(*parts, space=space, cost_model="physical", registry=registry())
    left = tuple(one for one in problem.cost_model.charges if one.type_name != charge)
    lacking = problem.variant(cost_model=attrs.evolve(problem.cost_model, charges=left))
    run, seen = Search(lacking, budget=budget, seed=0), []
    while (genomes := run.ask()) is not None:
        seen.append(genomes)
        run.tell(lacking.evaluator.evaluate(genomes))
    seen = np.concatenate(seen)
    with_it, without = (one.evaluator.evaluate(seen) for one in (problem, lacking))
    good = np.flatnonzero(with_it.valid & without.valid & (without.edp < 10 * np.nanmin(without.edp[without.valid])))
    weights = np.abs(np.log(with_it.edp[good] / without.edp[good]))
    return lacking, lacking.space.decode(seen[good[weights.argmax()]][None])


@pytest.mark.slow
@pytest.mark.parametrize("charge", CHARGES)
def test_verify_names_the_charge_that_a_cost_model_lacks(charge) -> None:
    found = verify(*hole(charge), trials=1, compare=True)
    assert list(found.missed) == [charge]
    energy, cycles = found.missed[charge]
    if charge in ("sums", "holes", "remainders"):  # discounts: without them a claim is too high
        assert energy < -0.001
    elif charge == "stay":  # both: more accesses, and fewer steps of children and lanes
        assert max(abs(energy), abs(cycles)) > 0.002
    else:
        assert max(energy, cycles) > 0.002
    assert f"\n{charge} " in found.text() and found.table()["missed"] == {charge: [energy, cycles]}


def test_a_model_with_all_charges_lacks_none() -> None:
    problem, designs = hole("overlap", budget=60)
    assert verify(problem, designs, trials=1, compare=True).missed["overlap"][1] > 0.0
    problem = problem.variant(cost_model=registry().resolve("cost-model", "physical"))
    assert not verify(problem, designs, trials=1, compare=True).missed
