"""The vectorised model against the scalar reference model, over random problems the case files do not have."""

from __future__ import annotations

import cases as conformance
import check
import pytest
import random_cases
import reference_model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsemap.pieces.loading import load
from sparsemap.pieces.registry import Origin

REGISTRY = load()
for name, own in random_cases.NUMBERS.items():
    whole, scale = divmod(own["bits"], 1.0)
    about = {"bits": int(whole), "block": 32, "scale_bits": int(scale * 32), "decode_pj": own["pj"]}
    REGISTRY.add_spec({"kind": "number-format", "name": name, **about}, Origin("tests"))


def wrapped(value: object) -> bool:
    """Q11: a count fell below zero and the evaluator's unsigned number wrapped around; there is nothing to compare."""
    if isinstance(value, dict | list):
        return any(wrapped(part) for part in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, int | float) and value > 2**60


def agree(case: dict, quirks: str) -> None:
    expected = reference_model.evaluate(case, quirks)
    if wrapped(expected) or (expected.get("reason") == "abort" and "level" in expected):
        return
    found = conformance.evaluate(case, REGISTRY, quirks)
    if not expected["valid"]:
        assert found["valid"] is False, expected
        return
    off = [row for row in check.compare(expected, found) if not row[1]]
    assert not off, (off[:5], case)


@pytest.mark.parametrize("quirks", ["timeloop-v3", "none"])
@settings(max_examples=80, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_quantity_agrees_on_random_problems(quirks: str, data: st.DataObject) -> None:
    agree(data.draw(random_cases.cases()), quirks)


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_five_storage_levels_agree(data: st.DataObject) -> None:
    agree(data.draw(random_cases.cases(levels=(5, 5))), "none")


@pytest.mark.parametrize("quirks", ["timeloop-v3", "none"])
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_tensors_that_reside_on_chip_agree(quirks: str, data: st.DataObject) -> None:
    agree(data.draw(random_cases.resident_cases()), quirks)


@pytest.mark.parametrize("quirks", ["timeloop-v3", "none"])
@settings(max_examples=80, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_words_in_number_formats_agree(quirks: str, data: st.DataObject) -> None:
    agree(data.draw(random_cases.number_cases()), quirks)


def test_a_problem_of_one_word_agrees() -> None:
    """Sizes of 1 everywhere: no loop moves anything, tensors have one word."""
    case = {
        "workload": {
            "dims": {"m": 1, "k": 1, "n": 1},
            "tensors": {
                "P": {"proj": [[["m", 1]], [["k", 1]]], "density": {"type": "uniform", "value": 0.5}},
                "Q": {"proj": [[["k", 1]], [["n", 1]]], "density": {"type": "uniform", "value": 0.5}},
                "Z": {"proj": [[["m", 1]], [["n", 1]]], "density": {"type": "structured", "value": 1.0}, "output": True},
            },
        },
        "hw": {
            "word_bits": 16,
            "metadata_width_bits": 32,
            "levels": {
                name: {
                    "instances": 1, "capacity_words": None, "metadata_capacity_bits": None, "read_bw": 1,
                    "write_bw": 1, "energy": {"read": 1.0, "write": 1.0, "metadata_read": 1.0, "metadata_write": 1.0},
                }
                for name in ("DRAM", "GLB")
            },
            "mac": {"instances": 1, "energy": {"compute": 1.0}},
        },
        "mapping": {"L1_T": [["m", 1], ["k", 1], ["n", 1]], "L2_T": [["m", 1], ["k", 1], ["n", 1]]},
        "sparse": {"formats": {}, "ranks": {}, "actions": {}, "compute": "gate"},
    }  # fmt: skip
    case["sparse"]["ranks"] = {t: {"DRAM": [], "GLB": []} for t in "PQZ"}
    agree(case, "none")
