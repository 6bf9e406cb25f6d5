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


@pytest.mark.parametrize("name", WORKED)
def test_worked_example(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "evaluate", vectorised)
    variants = [False, True] if inspect.signature(WORKED[name]).parameters else [None]
    for variant in variants:
        WORKED[name]() if variant is None else WORKED[name](variant)
