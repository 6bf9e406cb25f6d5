"""The worked examples 12.1 to 12.10 of the model's specification, to the digit, on the vectorised model; quirks and bypass.

The examples stand in `test_reference_model.py`, where the scalar model runs them; here the same assertions are made of
what the search uses.
"""

from __future__ import annotations

import inspect

import cases
import pytest
import test_reference_model as examples

from sparsemap.pieces.loading import load

REGISTRY = load()
MORE = ("test_q3_dense", "test_q7_and_q8", "test_bypass", "test_invalid_designs")
WORKED = {name: test for name, test in vars(examples).items() if name.startswith(("test_12_", *MORE))}


def vectorised(case: dict, quirks: str | frozenset[str] = "timeloop-v3") -> dict:
    return cases.evaluate(case, REGISTRY, quirks if isinstance(quirks, str) else sorted(quirks))


@pytest.mark.parametrize("nonzeros", [1, 2, 3, 5, 7, 9, 11, 13, 15, 64])
def test_q9_low_density_behind_a_filter(nonzeros: int) -> None:
    """Where Timeloop stops with "illegal operand probability", a design is invalid; without the quirk it ends at 1."""
    case = examples.few_of_128_behind_a_filter(nonzeros)
    stops = not examples.evaluate(case)["valid"]
    assert stops == (nonzeros % 2 == 1 and nonzeros < 13)
    expected = {"valid": False, "reason": "operand_probability"}
    assert vectorised(case) == expected if stops else vectorised(case)["valid"]
    assert vectorised(case, "none")["energy"] == pytest.approx(examples.evaluate(case, "none")["energy"], rel=1e-12)


@pytest.mark.parametrize("name", WORKED)
def test_worked_example(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "evaluate", vectorised)
    variants = [False, True] if inspect.signature(WORKED[name]).parameters else [None]
    for variant in variants:
        WORKED[name]() if variant is None else WORKED[name](variant)
