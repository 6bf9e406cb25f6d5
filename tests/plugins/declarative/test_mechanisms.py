import numpy as np
import pytest
from encoding_problems import registry

from sparsemap import Filter, Mechanism, PluginError, evaluate, load_problem
from sparsemap.errors import SpecError
from sparsemap.problem.levels import Place
from sparsemap.testing import check_mechanism

GLB = Place("GLB", 1)
P_BY_Q, Q_BY_P, EACH = ("P", ("Q",)), ("Q", ("P",)), ("operands", ("operands",))


def build(**table):
    return registry().build("mechanism", table, "m.toml")


@pytest.mark.parametrize(
    ("name", "action", "pairs"),
    [
        ("none", "none", []),
        ("gate-p-by-q", "gate", [P_BY_Q]),
        ("gate-q-by-p", "gate", [Q_BY_P]),
        ("gate-both", "gate", [EACH]),
        ("skip-p-by-q", "skip", [P_BY_Q]),
        ("skip-q-by-p", "skip", [Q_BY_P]),
        ("skip-both", "skip", [EACH]),
    ],
)
def test_the_seven_choices_of_the_paper(name, action, pairs):
    piece = registry().get("mechanism", name)
    check_mechanism(piece)
    width = 128 if action == "skip" else None
    assert list(piece.filters(GLB)) == [Filter(target, leaders, action, width=width) for target, leaders in pairs]
    assert piece.needs_metadata(GLB) is (action == "skip")


def test_several_leaders():
    piece = build(action="gate", filters=[{"target": "Z", "leader": ["P", "Q"]}])
    assert piece.filters(GLB) == (Filter("Z", ("P", "Q"), "gate"),)
    check_mechanism(piece)


def walked(filled, lookahead):
    """Positions that a unit takes which goes to the next filled one in sight, or to the last in sight."""
    at, taken = -1, 0
    while at < len(filled) - 1:
        ahead = np.flatnonzero(filled[at + 1 : at + 1 + lookahead])
        at, taken = at + 1 + int(ahead[0] if len(ahead) else lookahead - 1), taken + 1
    return taken


@pytest.mark.parametrize(("lookahead", "density"), [(1, 0.3), (2, 0.5), (4, 0.1), (16, 0.05)])
def test_a_unit_that_looks_ahead_takes_what_no_window_passes_over(lookahead, density):
    piece = build(action="skip", filters=[{"target": "P", "leader": "Q"}], lookahead=lookahead)
    filled = np.random.default_rng(0).random(20_000) < density
    (removed,) = piece.eliminated(GLB, piece.filters(GLB)[0], np.array([1.0 - density]))
    assert walked(filled, lookahead) / len(filled) == pytest.approx(1.0 - removed, rel=0.02)
    check_mechanism(piece)


def test_a_unit_that_looks_ahead_and_sees_nothing_takes_the_last_of_each_window():
    piece = build(action="skip", filters=[{"target": "P", "leader": "Q"}], lookahead=4)
    assert piece.eliminated(GLB, piece.filters(GLB)[0], np.array([0.0, 1.0])).tolist() == [0.0, 0.75]


def test_limited_effectiveness():
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
            {"action": "gate", "filters": [{"target": "P", "leader": "Q"}], "lookahead": 4},
            "expected with action 'skip'",
        ),
        (
            {"action": "gate", "filters": [{"target": "P", "leader": "Q"}], "effectiveness": 2},
            r"m\.toml: effectiveness",
        ),
    ],
)
def test_what_is_wrong_is_told(table, message):
    with pytest.raises(SpecError, match=message):
        build(**table)


class Greedy(Mechanism):
    """Skips P by Q, and says that it removes a share which need not be empty."""

    def __init__(self, share):
        super().__init__(name="greedy")
        object.__setattr__(self, "share", share)

    def filters(self, place):
        return [Filter("P", ("Q",), "skip")]

    def eliminated(self, place, filter, empty):
        return self.share(empty)


SHARES = {
    "more than is empty": (
        lambda empty: np.minimum(1.0, empty + 0.1),
        r"returned .*, expected 0 to .*, the share that",
    ),
    "negative": (lambda empty: empty - 1.5, r"returned -.*, expected 0 to"),
    "no number": (lambda empty: empty * np.nan, r"returned nan, expected 0 to"),
    "one too few": (lambda empty: empty[1:], r"returned an array of shape .*, expected one of shape"),
    "a number": (lambda empty: 0.0, r"returned an array of shape \(\), expected one of shape"),
}


@pytest.mark.parametrize("place", ["GLB", "MAC"])
@pytest.mark.parametrize(("share", "expected"), SHARES.values(), ids=SHARES)
def test_a_mechanism_that_removes_what_is_not_empty_is_named(share, expected, place):
    table = {"name": "w", "einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 4, "k": 4, "n": 4}}
    problem = load_problem({**table, "density": {"P": 0.5, "Q": 0.5}}, "edge")
    candidates = (*problem.candidates("mechanism")[:1], Greedy(share))
    problem.space.candidates["mechanism"] = candidates
    genomes = problem.space.sample(200, np.random.default_rng(0))
    names = [name for name in problem.space.names if name.startswith("gate-skip.")]
    genomes[:, [problem.space.names.index(name) for name in names]] = 0
    genomes[:, problem.space.names.index(f"gate-skip.{place}")] = 1
    with pytest.raises(PluginError, match=rf"mechanism 'greedy': eliminated {expected}"):
        evaluate(problem, genomes)
