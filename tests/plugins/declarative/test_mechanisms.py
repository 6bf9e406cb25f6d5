import numpy as np
import pytest
from encoding_problems import registry

from sparsemap.errors import SpecError
from sparsemap.pieces.contracts import Filter
from sparsemap.problem.problem import Place
from sparsemap.testing import check_mechanism

GLB = Place("GLB", 1)
P_BY_Q, Q_BY_P = ("P", ("Q",)), ("Q", ("P",))


def build(**table):
    return registry().build("mechanism", table, "m.toml")


@pytest.mark.parametrize(
    ("name", "action", "pairs"),
    [
        ("none", "none", []),
        ("gate-p-by-q", "gate", [P_BY_Q]),
        ("gate-q-by-p", "gate", [Q_BY_P]),
        ("gate-both", "gate", [P_BY_Q, Q_BY_P]),
        ("skip-p-by-q", "skip", [P_BY_Q]),
        ("skip-q-by-p", "skip", [Q_BY_P]),
        ("skip-both", "skip", [P_BY_Q, Q_BY_P]),
    ],
)
def test_the_seven_choices_of_the_paper(name, action, pairs):
    piece = registry().get("mechanism", name)
    check_mechanism(piece)
    assert list(piece.filters(GLB)) == [Filter(target, leaders, action) for target, leaders in pairs]
    assert piece.needs_metadata(GLB) is (action == "skip")


def test_several_leaders():
    piece = build(action="gate", filters=[{"target": "Z", "leader": ["P", "Q"]}])
    assert piece.filters(GLB) == (Filter("Z", ("P", "Q"), "gate"),)
    check_mechanism(piece)


def test_limited_look_ahead():
    piece = build(action="skip", filters=[{"target": "P", "leader": "Q"}], effectiveness=0.75)
    empty = np.array([0.0, 0.5, 1.0])
    assert piece.eliminated(GLB, piece.filters(GLB)[0], empty).tolist() == [0, 0.375, 0.75]
    check_mechanism(piece)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"action": "jump"}, r"m\.toml: action: .*'gate'"),
        ({"action": "gate"}, "expected at least one filter with action 'gate', found 0"),
        ({"action": "none", "filters": [{"target": "P", "leader": "Q"}]}, "expected no filters with action 'none'"),
        ({"action": "gate", "filters": [{"target": "P", "leader": "P"}]}, r"filters\[0\].*'P' cannot lead itself"),
        ({"action": "gate", "filters": [{"target": "P", "leader": 3}]}, r"filters\[0\]\.leader: expected the name"),
        ({"action": "gate", "filters": [{"target": "P", "leeder": "Q"}]}, "did you mean 'leader'"),
        (
            {"action": "gate", "filters": [{"target": "P", "leader": "Q"}], "effectiveness": 2},
            r"m\.toml: effectiveness",
        ),
    ],
)
def test_what_is_wrong_is_told(table, message):
    with pytest.raises(SpecError, match=message):
        build(**table)
