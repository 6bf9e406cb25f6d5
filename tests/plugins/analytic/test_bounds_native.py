"""Compiled steps of the lower bound give what those in NumPy give, to the last bit, and leave to it what they do not know."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sparsemap_plugins.analytic import bound_uncompiled, native
from test_native import COMPILER, SOURCE, built

import sparsemap
from sparsemap.pieces.loading import load

BOUNDS = SOURCE.with_name("bounds.c")
DOORS = ("beaten", "delivered", "front", "in_classes", "inside", "shared")
SHARED = (
    "energy",
    "tiles",
    "possible",
    "base",
    "tier",
    "rows",
    "places",
    "fits",
    "log_extents",
    "units",
    "tensors",
)


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("no C compiler")
    return built(BOUNDS.read_text(), tmp_path_factory.mktemp("bounds"), "bounds")


def asked(problem: sparsemap.Problem, monkeypatch) -> dict[str, list[tuple[object, ...]]]:
    """What the bound of a problem asks of every door."""
    found = {name: [] for name in DOORS}

    def told(name):
        def answer(*given):
            found[name].append(tuple(part.copy() if isinstance(part, np.ndarray) else part for part in given))
            return None

        return answer

    monkeypatch.setattr(native, "bounds", SimpleNamespace(**{name: told(name) for name in DOORS}))
    problem.cost_model._bound(problem)
    return found


@pytest.mark.parametrize("workload", ["conv9", "mm9", "mttkrp"])
@pytest.mark.parametrize("cost_model", ["physical", "timeloop"])
def test_bounds_are_the_same_to_the_last_bit(workload, cost_model, compiled, monkeypatch, registry):
    """Of a level with filters, and with three operands."""
    found, answers = [], []

    def counted(name):
        return lambda *given: answers.append(getattr(compiled, name)(*given)) or answers[-1]

    for bounds in (SimpleNamespace(**{name: counted(name) for name in DOORS}), None):
        monkeypatch.setattr(native, "bounds", bounds)
        problem = sparsemap.load_problem(workload, "mobile", cost_model=cost_model, registry=registry)
        bound = problem.cost_model._bound(problem)
        found.append(
            [part.tobytes() for part in (*bound.by_class(), bound.energy_pj, bound.cycles, *bound.links.promise)]
        )
    assert found[0] == found[1] and answers and None not in answers


def agree(doors, given) -> bool:
    """Whether doors give what NumPy gives, for what a bound asks and with other numbers in its place."""
    rng, same = np.random.default_rng(0), []
    for name in DOORS:
        for call in given[name]:
            for some in (call, tuple(noisy(part, rng) for part in call)):
                one, other = (tuple(part.copy() if i == 0 else part for i, part in enumerate(some)) for _ in range(2))
                if (answer := getattr(doors, name)(*one)) is not None:
                    expected = getattr(bound_uncompiled, name)(*other)
                    some = slice(None) if expected is None else (slice(None), slice(expected))
                    same.append(expected in (None, answer) and one[0][some].tobytes() == other[0][some].tobytes())
    return all(same) and len(same) > 2 * len(DOORS)


def noisy(part, rng):
    """Numbers of the same order of magnitude."""
    if isinstance(part, tuple):
        return tuple(noisy(one, rng) for one in part)
    if not (isinstance(part, np.ndarray) and part.dtype == np.float64):
        return part
    return part * rng.choice([0.5, 1.0, 1.5, 1.0 + 1e-9], part.shape) if np.isfinite(part).all() else part


@pytest.mark.parametrize("cell", ["mm9/mobile", "conv9/edge"])
def test_other_numbers_give_the_same_as_well(cell, compiled, monkeypatch, registry):
    assert agree(compiled, asked(sparsemap.load_problem(*cell.split("/"), registry=registry), monkeypatch))


def test_what_is_not_known_is_left_to_numpy(compiled, monkeypatch, registry):
    given = asked(sparsemap.load_problem("mm9", "mobile", registry=registry), monkeypatch)
    call = dict(zip(SHARED, given["shared"][0], strict=True))
    assert compiled.shared(*call.values()) == len(call["tiles"])
    tensor = next(one for one in call["tensors"] if len(one) > 4)
    widths, shape, *units = call["units"]
    plan = tensor[9]

    def with_plan(place, number):
        worse = plan.copy()
        worse[place] = number
        return {"tensors": ((*tensor[:9], worse, *tensor[10:]),)}

    wrong = [
        {"tiles": call["tiles"] + call["energy"].shape[2]}, {"tiles": call["tiles"][1:]}, {"tier": call["tier"] - 1},
        {"tier": call["tier"] + len(call["energy"])}, {"rows": call["rows"] + len(call["places"])}, {"rows": call["rows"] - 99},
        {"places": call["places"] + len(call["fits"])}, {"places": call["places"] - 1}, {"fits": call["fits"][:5]},
        {"fits": call["fits"].astype(np.float64)}, {"base": call["base"][:, 1:]}, {"base": call["base"].astype(np.float32)},
        {"log_extents": call["log_extents"][:, ::2]}, {"units": (widths[1:], shape, *units)},
        {"units": (widths, shape - 1, *units)},
        {"units": (widths, shape, *units[:1])}, {"units": 3}, {"tensors": [tensor]}, {"tensors": (tensor[:3],)},
        {"tensors": (tensor,) * 9}, {"tensors": ((tensor[0][1:], *tensor[1:]),)},
        {"tensors": ((*tensor[:10], (), *tensor[11:]),)},
        {"possible": call["possible"][1:]}, {"tensors": ((*tensor[:11], ""),)},
        *(with_plan(place, 99) for place in range(len(plan))), *(with_plan(place, -1) for place in range(len(plan))),
        {"tensors": ((*tensor[:9], plan[:-1], *tensor[10:]),)}, {"tensors": ((*tensor[:9], plan[:0], *tensor[10:]),)},
    ]  # fmt: skip
    for change in wrong:
        assert compiled.shared(*(call | change).values()) is None, change
    readonly = call["energy"].copy()
    readonly.flags.writeable = False
    assert compiled.shared(readonly, *[*call.values()][1:]) is None and compiled.shared(*[*call.values()][:-1]) is None
    found, energy, tile, loop, again, own, still, moves, *within = given["in_classes"][0]
    right = found, energy, tile, loop, again, own, still, moves, *within
    assert compiled.in_classes(*right) == len(tile)
    others = {
        1: energy[:, 1:], 2: tile + energy.shape[2], 3: loop - 9, 4: again[1:], 5: own[:, 1:], 6: still.T, 7: ~moves[:, 1:],
        8: within[0] + 1, 9: within[1] + 1, 10: within[2][::-1],
    }  # fmt: skip
    for place, other in others.items():
        assert compiled.in_classes(*(other if i == place else part for i, part in enumerate(right))) is None, place


def test_a_front_has_the_pairs_that_no_other_beats(compiled):
    rng = np.random.default_rng(0)
    for n, kinds, most in ((1, 1, 4), (50, 4, 4), (400, 60, 16), (400, 400, 64), (30, 2, 1)):
        energy, cycles = rng.integers(0, kinds, (2, n)).astype(np.float64)
        energy[rng.random(n) < 0.1], cycles[rng.random(n) < 0.1] = np.inf, np.inf
        found, other = np.empty((2, 2, most))
        count = compiled.front(found, energy, cycles)
        assert count == bound_uncompiled.front(other, energy, cycles)
        assert np.array_equal(found[:, :count], other[:, :count])
    for wrong in (
        (energy[1:], cycles),
        (energy * np.nan, cycles),
        (energy[::2], cycles[::2]),
        (energy[:0], cycles[:0]),
    ):
        assert compiled.front(found, *wrong) is None


MUTANTS = [
    ("energy[i] <= energy[fast]", "energy[i] < energy[cheap] + 1.0"),
    ("r == m && less", "r == m && j < i"),
    ("idlest > 1.0 &&", ""),
    ("moves[d] ? loops[d * n + i] : turns[d * n + i]", "loops[d * n + i]"),
    ("whole[mine + k] = least_of(whole[mine + k], less[mine + k])", "whole[mine + k] = less[mine + k]"),
    ("most_of(0.0, again[t * n + i] - still[d * T + t])", "again[t * n + i] - still[d * T + t]"),
    ("along[e] = !moves[t * D + e]", "along[e] = 1"),
    ("extents[b] - most", "extents[b]"),
    ("words[b] - 1e-6", "words[b]"),
    ("bits[b] * wires + others * child[b];", "bits[b] * wires;"),
    ("one->alike[q] = like", "one->alike[q] = 0"),
    ("wide < 0 ? 0 : wide", "wide < 0 ? 1 : wide"),
    ("words[b] - cut - 1e-9", "words[b] - cut"),
    ("fits[held[b]] ? unit[w][b] : INFINITY", "unit[w][b]"),
    ("if (possible[d * n + first + b])", "if (1)"),
]


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("number", range(len(MUTANTS)))
def test_an_error_in_the_steps_is_noticed(number, tmp_path, monkeypatch, registry):
    (before, after), text = MUTANTS[number], BOUNDS.read_text()
    assert text.count(before) >= 1
    bounds = built(text.replace(before, after), tmp_path, "bounds")
    given = [asked(sparsemap.load_problem(name, "mobile", registry=registry), monkeypatch) for name in ("mm9", "conv9")]
    assert not all(agree(bounds, one) for one in given)
