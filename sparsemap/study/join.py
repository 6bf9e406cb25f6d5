"""The exact join of a network: where every tensor between layers lives, and which design each layer has, together.

Steps run one after the other on the whole chip, so that energies and cycles add. A state is what is live and where; of
the sums that reach a state only the vertices of their lower-left convex hull are kept: energy * cycles and every other
quasi-concave cost has its least value there, and vertices of a sum of sets are sums of vertices.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import attrs

from ..searching.hull import Corner, hull

Place = Hashable
"""Where a tensor lives and how it is written there, whatever the caller calls it."""
MOST_BRANCHES = 4
"""Branches of a block of which all orders are tried; those of more run in the order given."""


@attrs.frozen
class TablePoint:
    """A design of a step: what it costs, and the words of room that it needs beside the tensors that live there."""

    energy_pj: float
    cycles: float
    room: float = 0.0
    design: Any = None


@attrs.frozen
class Together:
    """The steps that are interleaved in a point, whose room is that of all of them and of what slides by in between."""

    parts: tuple[tuple[str, Place, TablePoint], ...]
    """Step, place of its output, and its point."""


@attrs.frozen(kw_only=True, slots=False)
class Step:
    """One node of the graph: `tables` has its points by the places of its inputs and of its output, (inputs, output)."""

    name: str
    inputs: tuple[str, ...]
    """Steps whose outputs it takes."""
    tables: Mapping[tuple[tuple[Place, ...], Place], Sequence[TablePoint]]
    words: Mapping[Place, float]
    """Room that its output takes by place; none where it is not named."""
    in_place: bool = False
    """Whether the output may take the place of inputs that nobody needs afterwards."""
    parts: tuple[str, ...] = ()
    """The steps, one after the other, in whose place this one runs them interleaved; its points have `Together` as designs."""

    @cached_property
    def by_inputs(self) -> dict[tuple[Place, ...], list[tuple[Place, Sequence[TablePoint]]]]:
        """By places of the inputs, the tables by place of the output."""
        found: dict[Any, list[tuple[Place, Sequence[TablePoint]]]] = {}
        for (inputs, place), points in self.tables.items():
            found.setdefault(inputs, []).append((place, points))
        return found


@attrs.frozen
class Chosen:
    """What a plan has of a step, in the order in which steps run."""

    step: str
    place: Place
    """Of its output."""
    point: TablePoint
    live: tuple[tuple[str, Place], ...]
    """The tensors that are live while it runs, its inputs and its output among them .."""
    live_words: float
    """.. and their room."""
    beside: float = 0.0
    """Room of the steps that are interleaved with it, and of what slides by between them."""

    @property
    def used(self) -> float:
        """Words in use while it runs: tensors that live and its tiles."""
        return self.live_words + self.point.room + self.beside


@attrs.frozen
class JoinedPlan:
    """The best plan, and its sums."""

    energy_pj: float
    cycles: float
    steps: tuple[Chosen, ...]

    @property
    def places(self) -> dict[str, Place]:
        """Of the outputs, by step."""
        return {chosen.step: chosen.place for chosen in self.steps}


def edp(energy_pj: float, cycles: float) -> float:
    return energy_pj * cycles


Live = tuple[tuple[str, Place], ...]
Label = tuple[float, float, Any]
"""Energy and cycles of some steps, and these as what a `Chosen` of the last one has, and those before."""
Labels = dict[Live, list[Label]]
"""By state, the hull of what led there."""
Fitting = dict[tuple[int, float], tuple[Any, Any]]
"""By points (which are kept, so that no others have their number) and words in use beside them: the hull of those that fit."""
T = TypeVar("T")


def joined(
    steps: Sequence[Step], capacity: float, value: Callable[[float, float], float] = edp, reorder: bool = True,
    groups: Sequence[Step] = (), known: Fitting | None = None,
) -> JoinedPlan | None:  # fmt: skip
    """The plan of least `value` (of pJ and cycles), exact for these tables; None if none fits into `capacity` words.

    `steps` are in an order in which they can run. Of branches that part and meet again all orders are tried, as long as
    they are few. `groups` are steps with `parts`, which stand for these where they follow each other; of one that begins
    before a block or goes on behind it, the branches of the block are in the order given. `value` has to be
    quasi-concave, and to grow with both. `known` has what several joins of the same points share.
    """
    known = {} if known is None else known
    steps, groups = matching(steps, groups)
    words, by_last = {step.name: step.words for step in steps}, _by_last(groups)
    found: list[Labels] = [{(): [(0.0, 0.0, None)]}, *({} for _ in steps)]
    for block in blocks(steps):
        first, end = block[0], block[-1] + 1
        _run(steps, found, range(first, end), set(), by_last, words, capacity, known)
        parts = branches(steps, block) if reorder else []
        for state, some in _reordered(steps, block, parts, found[first], by_last, words, capacity, known).items():
            _into(found[end], state, some)
    labels = found[-1]
    every = [label for some in labels.values() for label in some]
    if not every:
        return None
    energy_pj, cycles, link = min(every, key=lambda label: (value(label[0], label[1]), label[0]))
    chosen: list[Chosen] = []
    while link is not None:
        *one, link = link
        chosen += _parts(Chosen(*one))[::-1]
    return JoinedPlan(energy_pj, cycles, tuple(chosen[::-1]))


def _reordered(
    steps: Sequence[Step], block: Sequence[int], parts: Sequence[Sequence[int]], labels: Labels, *how: Any
) -> Labels:
    """What the labels become with the `parts` of a block in all orders, where there are several."""
    after = {name for step in steps[block[-1] + 1 :] for name in step.inputs}
    done: dict[frozenset[int], Labels] = {frozenset(): labels}
    # what so many make of the labels, whatever their order was
    for count in range(len(parts) if len(parts) > 1 else 0):
        for before in [some for some in done if len(some) == count]:
            for branch in set(range(len(parts))) - before:
                rest = [i for b, part in enumerate(parts) if b not in before | {branch} for i in part]
                end = [] if len(before) + 1 < len(parts) else block[-1:]
                needed = after.union(*(steps[i].inputs for i in (*rest, *(() if end else block[-1:]))))
                here = [steps[i] for i in (*parts[branch], *end)]
                ended: list[Labels] = [done[before], *({} for _ in here)]
                _run(here, ended, range(len(here)), needed, *how)
                into = done.setdefault(before | {branch}, {})
                for state, some in ended[-1].items():
                    _into(into, state, some)
    return done.get(frozenset(range(len(parts))), {}) if len(parts) > 1 else {}


def _parts(chosen: Chosen) -> list[Chosen]:
    """The steps that a chosen one stands for: itself, or its parts."""
    made = chosen.point.design
    if not isinstance(made, Together):
        return [chosen]
    live, found = dict(chosen.live), []
    for name, place, point in made.parts:
        live[name] = place
        beside = chosen.point.room - point.room
        found.append(Chosen(name, place, point, tuple(live.items()), chosen.live_words, beside))
    return found


def plans_with(
    steps: Sequence[Step], capacity: float, wanted: Callable[[Place], bool], groups: Sequence[Step] = (),
    known: Fitting | None = None,
) -> dict[str, list[tuple[float, float]]]:  # fmt: skip
    """By step, the hull of energies and cycles of plans whose output of this step is where it is `wanted`, with the steps in
    this order; none for steps of which no such plan fits. What is between the parts of a group is wanted."""
    known = {} if known is None else known
    steps, groups = matching(steps, groups)
    words = {step.name: step.words for step in steps}
    before: list[Labels] = [{(): [(0.0, 0.0, None)]}, *({} for _ in steps)]
    moves = []
    for begin, end, step, needed in _turns(steps, range(len(steps)), set(), _by_last(groups)):
        for state, left, place, fitting, _ in _moves(step, before[begin], needed, words, capacity, known):
            moves.append((begin, end, step, state, left, place, fitting))
            _into(before[end], left, _summed(before[begin][state], fitting))
    behind: list[Labels] = [{} for _ in before]
    behind[-1] = {state: [(0.0, 0.0, None)] for state in before[-1]}
    found: dict[str, list[Label]] = {}
    for begin, end, step, state, left, place, fitting in reversed(moves):
        if left not in behind[end]:
            continue
        rest = _summed(fitting, behind[end][left])
        _into(behind[begin], state, rest)
        plans = _summed(before[begin][state], rest)
        for name in step.parts or (step.name,):
            if name != step.name or wanted(place):
                found[name] = hull([*found.get(name, ()), *plans])
    return {name: [(energy, cycles) for energy, cycles, _ in plans] for name, plans in found.items()}


def matching(steps: Sequence[Step], groups: Sequence[Step]) -> tuple[list[Step], list[Step]]:
    """The same, with those tables whose tensors all who make and take them have where the tables say."""
    takers = {one.name: [step.name for step in steps if one.name in step.inputs] for one in steps}
    every, count = [*steps, *groups], -1
    while count != (count := sum(len(step.tables) for step in every)):
        there: dict[tuple[str, str], set[Place]] = {}
        for step in every:
            mine = step.parts or (step.name,)
            for inputs, place in step.tables:
                there.setdefault((step.name, ""), set()).add(place)
                for name, at in zip(step.inputs, inputs, strict=True):
                    for taker in takers[name]:
                        if taker in mine:
                            there.setdefault((name, taker), set()).add(at)

        def goes(step: Step, inputs: tuple[Place, ...], place: Place, there: Any = there) -> bool:
            given = dict(zip(step.inputs, inputs, strict=True))
            alike = all(given[name] == at for name, at in zip(step.inputs, inputs, strict=True))
            made = alike and all(at in there.get((name, ""), ()) for name, at in given.items())
            return made and all(place in there.get((step.name, taker), ()) for taker in takers[step.name])

        kept = ({key: some for key, some in step.tables.items() if goes(step, *key)} for step in every)
        pairs = zip(every, kept, strict=True)
        every = [one if len(some) == len(one.tables) else attrs.evolve(one, tables=some) for one, some in pairs]
    return every[: len(steps)], every[len(steps) :]


def _by_last(groups: Sequence[Step]) -> dict[str, list[Step]]:
    found: dict[str, list[Step]] = {}
    for group in groups:
        found.setdefault(group.parts[-1], []).append(group)
    return found


def _turns(
    steps: Sequence[Step], at: Iterable[int], after: set[str], groups: Mapping[str, Sequence[Step]]
) -> Iterator[tuple[int, int, Step, set[str]]]:
    """Steps, and groups of them, that end `at` steps, from and to where each goes, and the outputs that are needed then;
    `after`: those that are at the end."""
    names = tuple(step.name for step in steps)
    for index in at:
        last, end = steps[index], index + 1
        needed = after.union(*(step.inputs for step in steps[end:]))
        for step in (last, *groups.get(last.name, ())):  # of equal plans the one without chains
            begin = end - max(1, len(step.parts))
            if not step.parts or names[max(begin, 0) : end] == step.parts:
                yield begin, end, step, needed


def _run(
    steps: Sequence[Step], found: Sequence[Labels], at: Iterable[int], after: set[str],
    groups: Mapping[str, Sequence[Step]], words: Mapping[str, Mapping[Place, float]], capacity: float, known: Fitting,
) -> None:  # fmt: skip
    """Adds to the labels before and after each step what those before it become with the steps `at` some places, and with
    groups that end there; `after`: outputs that steps after all of them take."""
    for begin, end, step, needed in _turns(steps, at, after, groups):
        for state, left, place, fitting, used in _moves(step, found[begin], needed, words, capacity, known):
            here, pairs = (*state, (step.name, place)), sums(found[begin][state], fitting)
            made = [(a[0] + b[0], a[1] + b[1], (step.name, place, b[2], here, used, a[2])) for a, b in pairs]
            _into(found[end], left, made)


def _moves(
    step: Step, states: Iterable[Live], needed: set[str], words: Mapping[str, Mapping[Place, float]], capacity: float,
    known: Fitting,
) -> Iterator[tuple[Live, Live, Place, list[Corner[TablePoint]], float]]:  # fmt: skip
    """From states with this step to others: both, the place of its output, the hull of the points that fit, and the words
    that live while it runs; `needed`: outputs that later steps take."""
    for state in states:
        live = dict(state)
        tables = step.by_inputs.get(tuple(live[name] for name in step.inputs), ())
        held = {name: float(words[name].get(place, 0.0)) for name, place in state} if tables else {}
        for place, points in tables:
            own = float(step.words.get(place, 0.0))
            dying = [held[name] for name in dict.fromkeys(step.inputs) if name not in needed and held[name] > 0.0]
            replaced = min(own, sum(dying)) if step.in_place else 0.0
            used = sum(held.values()) + own - replaced
            _, fitting = known.get((id(points), used), (None, None))
            if fitting is None:
                fitting = hull((p.energy_pj, p.cycles, p) for p in points if p.room + used <= capacity)
                known[id(points), used] = points, fitting
            if not fitting:
                continue
            left = {name: part for name, part in live.items() if name in needed}
            left |= {step.name: place} if step.name in needed else {}
            yield state, tuple(sorted(left.items(), key=lambda item: item[0])), place, fitting, used


def _summed(a: Sequence[Corner[Any]], b: Sequence[Corner[Any]]) -> list[Label]:
    """The hull of all sums of two hulls, without what they are of."""
    return [(one[0] + two[0], one[1] + two[1], None) for one, two in sums(a, b)]


def _into(labels: Labels, state: Live, more: list[Label]) -> None:
    """Adds labels to those of a state, and keeps their hull; of equal ones the first."""
    labels[state] = hull([*labels.get(state, ()), *more])


def sums(
    a: Sequence[tuple[float, float, Any]], b: Sequence[tuple[float, float, T]]
) -> Iterator[tuple[tuple[float, float, Any], tuple[float, float, T]]]:
    """The pairs of two hulls that make the vertices of the hull of all their sums: edges in the order of their slopes."""
    i = j = 0
    yield a[0], b[0]
    while i < len(a) - 1 or j < len(b) - 1:
        first = j == len(b) - 1
        if not first and i < len(a) - 1:
            (ae, ac), (be, bc) = ((x[k + 1][0] - x[k][0], x[k + 1][1] - x[k][1]) for x, k in ((a, i), (b, j)))
            first = ac * be <= bc * ae
        i, j = (i + 1, j) if first else (i, j + 1)
        yield a[i], b[j]


def blocks(steps: Sequence[Step]) -> Iterator[list[int]]:
    """Runs of steps after each of which nothing but the output of its last one is needed."""
    last: dict[str, int] = {}
    for place, step in enumerate(steps):
        last |= dict.fromkeys(step.inputs, place)
    begin, reach = 0, -1
    for place, step in enumerate(steps):
        if reach <= place:
            yield list(range(begin, place + 1))
            begin = place + 1
        reach = max(reach, last.get(step.name, -1))
    if begin < len(steps):
        yield list(range(begin, len(steps)))


def branches(steps: Sequence[Step], block: Sequence[int]) -> list[list[int]]:
    """What is before the last step of a block, in parts that have nothing to do with each other but their source and may run
    in any order; of many parts the order given."""
    *inner, _ = block
    group = {index: index for index in inner}
    place = {steps[index].name: index for index in inner}
    for index in inner:  # steps that are connected within the block are of one branch
        joined_with = {group[place[name]] for name in steps[index].inputs if name in place} | {group[index]}
        group = {i: min(joined_with) if g in joined_with else g for i, g in group.items()}
    found = [[i for i in inner if group[i] == g] for g in dict.fromkeys(group.values())]
    return found if len(found) <= MOST_BRANCHES else [inner]
