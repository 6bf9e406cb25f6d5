"""Weights fetched ahead, counted by hand."""

import attrs
import numpy as np
import pytest

from sparsemap.study.networks import search_network
from sparsemap.study.prefetch import Turn, prefetched


def test_weights_come_while_the_step_before_computes():
    """1,000 and 200 cycles of computing, 100 and 400 words at a word a cycle, 300 words of free room."""
    first = Turn(name="first", cycles=1000.0, busy=100.0, free=300.0)
    second = Turn(name="second", cycles=400.0, floor=200.0, busy=400.0, fetched=400.0, words=400.0, free=300.0)
    found = prefetched([first, second])
    assert found.cycles == 1200.0 and found.words == {"second": 200.0}
    assert prefetched([attrs.evolve(first, free=150.0), second]).cycles == 1250.0
    assert prefetched([first, attrs.evolve(second, free=50.0)]).cycles == 1350.0


def test_what_comes_ahead_frees_the_off_chip_level_for_later_weights():
    """The second step saves 60 of 100 cycles; its 40 idle cycles then fetch for the third."""
    first = Turn(name="first", cycles=60.0, busy=0.0, free=100.0)
    second = Turn(name="second", cycles=100.0, floor=20.0, busy=60.0, fetched=60.0, words=6.0, free=100.0)
    third = Turn(name="third", cycles=100.0, floor=10.0, busy=100.0, fetched=100.0, words=100.0, free=100.0)
    assert prefetched([first, second, third]).cycles == 60.0 + 40.0 + 60.0


def test_room_is_held_until_the_step_of_the_words():
    """Words for the third step take room during the second, which has 10 words."""
    first = Turn(name="first", cycles=100.0, busy=0.0, free=100.0)
    second = Turn(name="second", cycles=5.0, busy=5.0, free=10.0)
    third = Turn(name="third", cycles=100.0, floor=0.0, busy=100.0, fetched=100.0, words=100.0, free=100.0)
    found = prefetched([first, second, third])
    assert found.words == {"third": 10.0} and found.cycles == 195.0


def test_no_plan_is_faster_than_its_transfers_or_its_steps_with_weights_on_chip():
    rng = np.random.default_rng(0)
    for _ in range(300):
        turns = []
        for i in range(int(rng.integers(1, 9))):
            cycles, busy, floor = 100.0, *(100.0 * rng.random(2))
            about = {"fetched": busy * rng.random() + 1e-3, "words": 50.0 * rng.random() + 1e-3}
            turns.append(Turn(name=str(i), cycles=cycles, busy=busy, floor=floor, free=60.0 * rng.random(), **about))
        found = prefetched(turns)
        assert max(sum(x.busy for x in turns), sum(x.floor for x in turns)) <= found.cycles * (1 + 1e-12)
        assert found.cycles <= 100.0 * len(turns) and "0" not in found.words
        assert all(found.words.get(x.name, 0.0) <= min(x.words, x.free) * (1 + 1e-12) for x in turns)


def test_a_plan_says_what_prefetching_saves_and_no_step_beats_its_weights_on_chip(tmp_path):
    layers = [
        {"name": "wide", "type": "conv2d", "k": 8, "c": 8, "p": 32, "q": 32, "r": 3, "s": 3, "padding": 1},
        {"name": "last", "type": "linear", "k": 8192, "n": 64},
    ]
    network = {"name": "two", "input": [8, 32, 32], "layers": layers}
    found = search_network(network, "mobile", budget=60, out=str(tmp_path))
    ahead = found.ahead
    assert ahead is not None and 0.0 < found.cycles - ahead.cycles <= found.rows[-1].cycles
    assert ahead.words.keys() == {"last"} and "ahead    weights of 1 layer" in found.totals_text()
    assert found.to_dict()["ahead"]["cycles"] == ahead.cycles
    assert found.to_dict()["ahead"]["edp"] == pytest.approx(found.energy_pj * ahead.cycles)
