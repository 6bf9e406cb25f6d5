"""The join is the optimum of its tables: of the page's cases, and of random graphs all of whose plans are tried."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import attrs
import pytest

from sparsemap.study.interleaved import Member, interleaved
from sparsemap.study.join import Chosen, Step, TablePoint, Together, blocks, branches, hull, joined, plans_with
from sparsemap.study.packets import TensorPlace
from sparsemap.study.slides import Slide
from sparsemap.study.thinning import thinned

CASES = [json.loads(line) for line in Path(__file__).with_name("residency-cases.jsonl").read_text().splitlines()]


def every_plan(steps: list[Step], capacity: float) -> Iterator[tuple[float, float, dict[str, object]]]:
    """Sums and places of all plans that fit, with the steps in this order."""
    last = {name: place for place, step in enumerate(steps) for name in step.inputs}
    for keys in product(*(step.tables for step in steps)):
        places = {step.name: place for step, (_, place) in zip(steps, keys, strict=True)}
        if any(tuple(places[n] for n in s.inputs) != given for s, (given, _) in zip(steps, keys, strict=True)):
            continue
        fitting = []
        for now, (step, key) in enumerate(zip(steps, keys, strict=True)):
            live = [s for at, s in enumerate(steps) if at == now or (at < now and last.get(s.name, -1) >= now)]
            used = sum(s.words.get(places[s.name], 0.0) for s in live)
            if step.in_place:
                dying = [n for n in step.inputs if last[n] == now]
                words = {s.name: s.words for s in steps}
                held = [words[n].get(places[n], 0.0) for n in dying]
                used -= min(step.words.get(places[step.name], 0.0), sum(held))
            fitting.append([p for p in step.tables[key] if p.room + used <= capacity])
        for points in product(*fitting):
            yield sum(p.energy_pj for p in points), sum(p.cycles for p in points), places


def of_case(case: dict) -> tuple[list[Step], float]:
    steps = []
    for node in case["nodes"]:
        tables = {}
        for key, points in node["points"].items():
            *given, place = key.split(",")
            outside = node["inputs"] == ["input"]
            if not outside or given == ["dram"]:
                tables[() if outside else tuple(given), place] = [TablePoint(*map(float, p)) for p in points]
        inputs = tuple(name for name in node["inputs"] if name != "input")
        words = {"chip": float(case["words"].get(node["name"], 0.0))}
        steps.append(Step(name=node["name"], inputs=inputs, tables=tables, words=words))
    return steps, float(case["room"])


@pytest.mark.parametrize("case", [case for case in CASES if case["kind"] == "join"], ids=lambda case: case["id"])
def test_the_worked_joins_have_the_plan_of_the_page(case: dict) -> None:
    steps, room = of_case(case)
    found, best = joined(steps, room), case["answer"]["best"]
    assert found is not None
    assert (found.energy_pj, found.cycles) == (best["energy"], best["cycles"])
    assert {name: place for name, place in found.places.items() if name in best["homes"]} == best["homes"]
    assert [[c.point.energy_pj, c.point.cycles, c.point.room] for c in found.steps] == best["points"]
    assert all(chosen.used <= room for chosen in found.steps)


def random_steps(rng: random.Random) -> tuple[list[Step], float]:
    """A chain, with a branch over some of it that ends in a sum."""
    count = rng.randint(2, 4)
    names = [f"n{i}" for i in range(count)]
    given: list[tuple[str, ...]] = [() if i == 0 else (names[i - 1],) for i in range(count)]
    if count > 2 and rng.random() < 0.7:
        given[-1] = tuple(dict.fromkeys((names[rng.randrange(count - 1)], names[-2])))
    if count == 4 and rng.random() < 0.5:
        given[2], given[3] = (names[0],), (names[1], names[2])
    steps = []
    for name, inputs in zip(names, given, strict=True):
        tables = {}
        for key in product(*(["dram", "chip"] for _ in inputs)):
            for place in ("dram", "chip"):
                points = [TablePoint(*(rng.randint(1, 60) for _ in range(3))) for _ in range(rng.randint(1, 2))]
                tables[key, place] = points
        words = {"chip": float(rng.randint(1, 40))}
        steps.append(Step(name=name, inputs=inputs, tables=tables, words=words, in_place=rng.random() < 0.3))
    return steps, float(rng.randint(40, 120))


@pytest.mark.parametrize("seed", range(60))
def test_no_plan_is_better_than_the_joined_one(seed: int) -> None:
    steps, capacity = random_steps(random.Random(seed))
    for value in (lambda e, c: e * c, lambda e, c: e * c * c, lambda e, c: e + 3 * c):
        found = joined(steps, capacity, value, reorder=False)
        plans = [value(energy, cycles) for energy, cycles, _ in every_plan(steps, capacity)]
        assert (found is None) == (not plans)
        if found is not None:
            assert value(found.energy_pj, found.cycles) == min(plans)
            assert found.energy_pj == sum(chosen.point.energy_pj for chosen in found.steps)


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_branches_is_part_of_the_plan(seed: int) -> None:
    rng = random.Random(seed)

    def step(name: str, *inputs: str) -> Step:
        keys = product(product(*(["dram", "chip"] for _ in inputs)), ["dram", "chip"])
        tables = {key: [TablePoint(*(rng.randint(1, 60) for _ in range(3)))] for key in keys}
        return Step(name=name, inputs=inputs, tables=tables, words={"chip": float(rng.randint(1, 40))})

    steps = [step("x"), step("a", "x"), step("b", "x"), step("b2", "b"), step("y", "a", "b2")]
    capacity = float(rng.randint(60, 120))
    tried = [min((e * c for e, c, _ in every_plan(o, capacity)), default=math.inf) for o in allowed(steps)]
    found = joined(steps, capacity)
    assert min(tried) == (math.inf if found is None else found.energy_pj * found.cycles)


def allowed(steps: list[Step]) -> Iterator[list[Step]]:
    x, a, b, b2, y = steps
    yield [x, a, b, b2, y]
    yield [x, b, b2, a, y]


@pytest.mark.parametrize("seed", range(30))
def test_steps_that_run_interleaved_are_part_of_the_plan(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(2, 4)

    def table(*keys: tuple[tuple[str, ...], str]) -> dict[tuple[tuple[str, ...], str], list[TablePoint]]:
        return {key: [TablePoint(*(rng.randint(1, 60) for _ in range(3))) for _ in range(2)] for key in keys}

    steps = [
        Step(
            name=f"n{i}",
            inputs=(f"n{i - 1}",) if i else (),
            tables=table(*product([("dram",), ("chip",)] if i else [()], ["dram", "chip"])),
            words={"chip": float(rng.randint(1, 40))},
        )
        for i in range(count)
    ]
    capacity, plans = float(rng.randint(60, 120)), []
    groups = []
    for first, last in [(0, 1), (count - 2, count - 1), (0, count - 1)]:
        names = tuple(f"n{i}" for i in range(first, last + 1))
        parts = [(name, "slides", TablePoint(1.0, 1.0, 1.0)) for name in names]
        points = {
            key: [
                attrs.evolve(point, design=Together((*parts[:-1], (names[-1], key[1], parts[-1][2])))) for point in some
            ]
            for key, some in table(
                *((steps[first].inputs and (p,), o) for p in ("dram", "chip") for o in ("dram",))
            ).items()
        }
        groups.append(Step(name=names[-1], inputs=steps[first].inputs, tables=points, words={}, parts=names))
    for chosen in product([False, True], repeat=len(groups)):
        some = [group for group, used in zip(groups, chosen, strict=True) if used]
        covered = [name for group in some for name in group.parts]
        if len(covered) == len(set(covered)):
            by_first = {group.parts[0]: group for group in some}
            left = [by_first.get(s.name, s) for s in steps if s.name not in covered or s.name in by_first]
            plans += [energy * cycles for energy, cycles, _ in every_plan(left, capacity)]
    found = joined(steps, capacity, groups=groups)
    assert (found is None) == (not plans)
    if found is not None:
        assert found.energy_pj * found.cycles == min(plans)
        assert [chosen.step for chosen in found.steps] == [step.name for step in steps]


@pytest.mark.parametrize("seed", range(40))
def test_steps_run_interleaved_across_the_end_of_a_block(seed: int) -> None:
    """x, a and b take it, y sums them, z follows: chains end at y, and go on from it or from b to z."""
    rng = random.Random(seed)
    takes = {"x": (), "a": ("x",), "b": ("x",), "y": ("a", "b"), "z": ("y",)}

    def made(name: str, inputs: tuple[str, ...], parts: tuple[str, ...] = ()) -> Step:
        keys = product(product(*(["dram", "chip"] for _ in inputs)), ["dram", "chip"])
        tables = {key: [TablePoint(*(rng.randint(1, 60) for _ in range(3))) for _ in range(2)] for key in keys}
        return Step(name=name, inputs=inputs, tables=tables, words={"chip": float(rng.randint(1, 20))}, parts=parts)

    steps, capacity, plans = [made(*one) for one in takes.items()], float(rng.randint(60, 120)), []
    groups = [
        made(parts[-1], tuple(n for part in parts for n in takes[part] if n not in parts), parts)
        for parts in (("b", "y"), ("y", "z"), ("b", "y", "z"))
    ]
    groups = [attrs.evolve(group, words=next(s.words for s in steps if s.name == group.name)) for group in groups]
    for group in (None, *groups):
        left = [step for step in steps if not group or step.name not in group.parts]
        some = (
            left
            if group is None
            else [s for s in steps[:4] if s in left] + [group, *(s for s in steps[4:] if s in left)]
        )
        plans += [energy * cycles for energy, cycles, _ in every_plan(some, capacity)]
    found = joined(steps, capacity, groups=groups, reorder=False)
    assert min(plans, default=math.inf) == (math.inf if found is None else found.energy_pj * found.cycles)
    free = joined(steps, capacity, groups=groups)  # with branches in any order
    assert found is None or (free is not None and free.energy_pj * free.cycles <= found.energy_pj * found.cycles)
    least = plans_with(steps, capacity, lambda place: True, groups)
    assert found is None or min(e * c for e, c in least["x"]) == found.energy_pj * found.cycles


def test_blocks_end_where_one_tensor_is_left_and_branches_change_places() -> None:
    def step(name: str, *inputs: str) -> Step:
        return Step(name=name, inputs=inputs, tables={}, words={})

    steps = [step("x"), step("a", "x"), step("b", "x"), step("y", "a", "b"), step("z", "y")]
    assert list(blocks(steps)) == [[0], [1, 2, 3], [4]]
    assert branches(steps, [1, 2, 3]) == [[1], [2]]
    many = [step("x"), *(step(f"b{i}", "x") for i in range(5)), step("y", *(f"b{i}" for i in range(5)))]
    assert branches(many, list(range(1, 7))) == [list(range(1, 6))]  # too many branches: the order of the file
    assert branches(many, [1, 2, 3, 6]) == [[1], [2], [3]]


def test_a_hull_keeps_what_any_weight_may_want() -> None:
    points = [(10.0, 10.0, "a"), (3.0, 30.0, "b"), (7.0, 21.0, "inside"), (3.0, 31.0, "worse"), (30.0, 10.0, "worse")]
    assert [name for _, _, name in hull(points)] == ["b", "a"]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_has_the_hull_of_every_room(seed: int) -> None:
    rng = random.Random(seed)
    points = [(rng.randint(1, 30), rng.randint(1, 30), rng.randint(1, 6)) for _ in range(40)]
    left = thinned(points, lambda point: point)
    assert len(left) < len(points)
    for room in range(1, 7):
        every, some = ([corner[:2] for corner in hull(p for p in of if p[2] <= room)] for of in (points, left))
        assert every == some


def test_a_plan_that_does_not_fit_is_none() -> None:
    step = Step(name="a", inputs=(), tables={((), "dram"): [TablePoint(1.0, 1.0, 5.0)]}, words={})
    assert joined([step], 4.0) is None
    found = joined([step], 5.0)
    assert found is not None and found.steps == (Chosen("a", "dram", TablePoint(1.0, 1.0, 5.0), (("a", "dram"),), 0.0),)


@pytest.mark.parametrize(("capacity", "chains"), [(0.0, 0), (8.0, 0), (30.0, 1)])
def test_a_chain_that_does_not_fit_is_left_out_and_so_are_longer_ones(capacity: float, chains: int) -> None:
    """Three layers in a row, that run interleaved or not at all: each needs a word beside what slides by."""
    chip = TensorPlace("chip")
    slide = Slide(made="p", taken="p", rows=8, steps=8, stride=1, reach=1, across=4)
    members = [
        Member(
            name=name,
            inputs=before,
            stuck=frozenset([*before, name][: len(before) + (name != "c")]),
            slides=(slide,) if name != "c" else (),
            words=32,
            sizes={"p": 8},
            tables={((chip,) * len(before), chip): {("p", 8): [TablePoint(1.0, 1.0, 1.0)]}},
            alike=name,
        )
        for name, before in (("a", ()), ("b", ("a",)), ("c", ("b",)))
    ]
    found = [step.parts for step in interleaved(members, "chip", capacity) if step.tables]
    assert found == [("a", "b", "c")][:chains]


def test_packets_that_slide_by_are_whole_and_equal_or_rewritten() -> None:
    """Two layers, with channels (rank 0) or lines (rank 1) in packets of 4, in turns of 2 lines."""
    slide = Slide(made="p", taken="p", rows=8, steps=8, stride=1, reach=1, across=4, rank=1)
    chip, outside, channels, lines = TensorPlace("chip"), TensorPlace("dram"), ((0, 4, "bits"),), ((1, 4, "bits"),)

    def chains(written: Any, read: Any, convert: Any = None, turns: int = 4) -> list[TablePoint]:
        point, places = {("p", 4): [TablePoint(1.0, 1.0, 1.0)]}, [attrs.evolve(chip, packet=p) for p in (written, read)]
        then = {("p", turns): point["p", 4]}
        a = Member(name="a", inputs=(), slides=(slide,), words=32, sizes={"p": 8}, tables={((), places[0]): point},
                   written={(): 32.0, channels: 20.0}, alike="a")  # fmt: skip
        b = Member(name="b", inputs=("a",), sizes={"p": 8}, tables={((places[1],), outside): then},
                   read={(): 32.0, channels: 20.0}, alike="b")  # fmt: skip
        return [
            p for step in interleaved([a, b], "chip", 100.0, convert) for some in step.tables.values() for p in some
        ]

    assert [p.room for p in chains(channels, channels)] == [2 + 2 * 4]
    assert not chains(lines, lines) and not chains((), channels)
    (found,) = chains((), channels, lambda name, read, written: (read + written, {"a": 32}[name]))
    assert (found.energy_pj, found.cycles, found.room) == (2 + 32 + 20, 2 + 32, 2 + 2 * 4 + 2 * 4)
    assert found.design.parts[0][2].design.point.energy_pj == 1.0
    # of a tensor that is rewritten, what is made at once and what lives of the other copy have room together
    for turns, live in ((2, 4), (8, 2)):
        rewritten = chains((), channels, lambda name, read, written: (0.0, 0.0), turns)
        assert [p.room for p in rewritten] == [2 + live * 4 + 2 * 4]
        assert [p.room for p in chains(channels, channels, turns=turns)] == [2 + live * 4]
