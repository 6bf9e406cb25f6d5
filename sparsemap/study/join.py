"""Exact join of a network: places of all tensors between layers and designs of all layers, chosen together.

Steps run one after the other on the whole chip, so energies and cycles add. A state is the set of live tensors with
their places. Of the sums for a state only the vertices of their lower-left convex hull are kept: energy * cycles and
every other quasi-concave cost has its least value there, and vertices of a sum of sets are sums of vertices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import attrs

from ..files import grouped
from ..searching.hull import Corner, hull

Place = Hashable
"""Place and packets of a tensor, any hashable value of the caller."""
MOST_BRANCHES = 4
"""Largest number of branches of a block for trying all orders; more branches run in the original order."""


@attrs.frozen
class TablePoint:
    """A design of a step: energy, cycles and buffer words, excluding tensors kept on chip."""

    energy_pj: float
    cycles: float
    room: float = 0.0
    design: Any = None


@attrs.frozen
class Together:
    """The interleaved steps of a point; the point's room covers all steps and the sliding tensors in between."""

    parts: tuple[tuple[str, Place, TablePoint], ...]
    """Step, place of its output, and its point."""


@attrs.frozen(kw_only=True, slots=False)
class Step:
    """A node of the graph: `tables` has points by the places of the inputs and of the output, (inputs, output)."""

    name: str
    inputs: tuple[str, ...]
    """Steps producing the inputs."""
    tables: Mapping[tuple[tuple[Place, ...], Place], Sequence[TablePoint]]
    words: Mapping[Place, float]
    """Room of the output by place; 0 for other places."""
    in_place: bool = False
    """Whether the output may reuse the room of inputs without later use."""
    parts: tuple[str, ...] = ()
    """Consecutive steps replaced by this step, run interleaved; the points have `Together` as designs."""

    @cached_property
    def by_inputs(self) -> dict[tuple[Place, ...], list[tuple[Place, Sequence[TablePoint]]]]:
        """Places of the output with their points, by places of the inputs."""
        found: dict[Any, list[tuple[Place, Sequence[TablePoint]]]] = {}
        for (inputs, place), points in self.tables.items():
            found.setdefault(inputs, []).append((place, points))
        return found


@attrs.frozen
class Chosen:
    """A step of a plan, in the order of execution."""

    step: str
    place: Place
    point: TablePoint
    live: tuple[tuple[str, Place], ...]
    """Live tensors during the step, including its inputs and its output."""
    live_words: float
    beside: float = 0.0
    """Room of the other interleaved steps, and of the sliding tensors in between."""

    @property
    def used(self) -> float:
        """Words in use during the step: live tensors and tiles."""
        return self.live_words + self.point.room + self.beside


@attrs.frozen
class JoinedPlan:
    """The best plan, with its sums."""

    energy_pj: float
    cycles: float
    steps: tuple[Chosen, ...]

    @property
    def places(self) -> dict[str, Place]:
        """Places of the outputs, by step."""
        return {chosen.step: chosen.place for chosen in self.steps}


def edp(energy_pj: float, cycles: float) -> float:
    return energy_pj * cycles


Live = tuple[tuple[str, Place], ...]
Label = tuple[float, float, Any]
"""Energy and cycles of some steps, and the chain of steps: fields of the last `Chosen`, and a link to those before."""
Labels = dict[Live, list[Label]]
"""Labels by state, the hull of all ways to the state."""
Fitting = dict[tuple[int, float], tuple[Any, Any]]
"""Hull of the fitting points, by identity of the points (kept alive, so that it stays unique) and words of room."""
T = TypeVar("T")


def joined(
    steps: Sequence[Step], capacity: float, value: Callable[[float, float], float] = edp, reorder: bool = True,
    groups: Sequence[Step] = (), known: Fitting | None = None,
) -> JoinedPlan | None:  # fmt: skip
    """The plan of least `value` (of pJ and cycles), exact for these tables; None if no plan fits into `capacity` words.

    `steps` are in an executable order. Parallel branches between a fork and a join are tried in all orders, if few.
    `groups` are steps with `parts`, as replacements for consecutive parts; for a group across the border of a block,
    the branches of the block keep the original order. `value` has to be quasi-concave, and to grow with both arguments.
    `known` is a cache shared by joins of the same points."""
    known = {} if known is None else known
    steps, groups = matching(steps, groups)
    words, by_last = {step.name: step.words for step in steps}, grouped(groups, lambda one: one.parts[-1])
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
    """The labels after a block with its `parts` in all orders; empty for a single part."""
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
    """The steps behind a chosen step: itself, or its interleaved parts."""
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
    """By step, the hull of pJ and cycles of plans, in this order, with the step's output at a `wanted` place.

    Steps without a fitting plan have no entry. Outputs between the parts of a group count as wanted."""
    known = {} if known is None else known
    steps, groups = matching(steps, groups)
    words = {step.name: step.words for step in steps}
    before: list[Labels] = [{(): [(0.0, 0.0, None)]}, *({} for _ in steps)]
    taken: list[Any] = []
    by_last = grouped(groups, lambda one: one.parts[-1])
    for begin, end, step, needed in _turns(steps, range(len(steps)), set(), by_last):
        for state, left, place, fitting, _ in moves(step, before[begin], needed, words, capacity, known):
            taken.append((begin, end, step, state, left, place, fitting))
            _into(before[end], left, _summed(before[begin][state], fitting))
    behind: list[Labels] = [{} for _ in before]
    behind[-1] = {state: [(0.0, 0.0, None)] for state in before[-1]}
    found: dict[str, list[Label]] = {}
    for begin, end, step, state, left, place, fitting in reversed(taken):
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
    """The same steps and groups, with only tables whose tensor places match tables of all producers and consumers."""
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


def _turns(
    steps: Sequence[Step], at: Iterable[int], after: set[str], groups: Mapping[str, Sequence[Step]]
) -> Iterator[tuple[int, int, Step, set[str]]]:
    """Steps and groups that end `at` given steps: begin, end, step, outputs needed later (`after`: at the end)."""
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
    """Extends the labels by steps `at` places, and groups ending there; `after`: outputs needed after all of these."""
    for begin, end, step, needed in _turns(steps, at, after, groups):
        for state, left, place, fitting, used in moves(step, found[begin], needed, words, capacity, known):
            here, pairs = (*state, (step.name, place)), sums(found[begin][state], fitting)
            made = [(a[0] + b[0], a[1] + b[1], (step.name, place, b[2], here, used, a[2])) for a, b in pairs]
            _into(found[end], left, made)


def moves(
    step: Step, states: Iterable[Live], needed: set[str], words: Mapping[str, Mapping[Place, float]], capacity: float,
    known: Fitting,
) -> Iterator[tuple[Live, Live, Place, list[Corner[TablePoint]], float]]:  # fmt: skip
    """Transitions of a step: both states, place of the output, hull of the fitting points, live words.

    `needed`: outputs with later use."""
    for state in states:
        live = dict(state)
        tables = step.by_inputs.get(tuple(live[name] for name in step.inputs), ())
        held = {name: float(words[name].get(place, 0.0)) for name, place in state} if tables else {}
        for place, points in tables:
            own = float(step.words.get(place, 0.0))
            dying = [held[name] for name in dict.fromkeys(step.inputs) if name not in needed and held[name] > 0.0]
            replaced = min(own, sum(dying)) if step.in_place else 0.0
            used = sum(held.values()) + own - replaced
            _, fitting = known.get((id(points), capacity - used), (None, None))
            if fitting is None:
                fitting = hull((p.energy_pj, p.cycles, p) for p in points if p.room + used <= capacity)
                known[id(points), capacity - used] = points, fitting
            if not fitting:
                continue
            left = {name: part for name, part in live.items() if name in needed}
            left |= {step.name: place} if step.name in needed else {}
            yield state, tuple(sorted(left.items(), key=lambda item: item[0])), place, fitting, used


def _summed(a: Sequence[Corner[Any]], b: Sequence[Corner[Any]]) -> list[Label]:
    """The hull of all sums of two hulls, without designs."""
    return [(one[0] + two[0], one[1] + two[1], None) for one, two in sums(a, b)]


def _into(labels: Labels, state: Live, more: list[Label]) -> None:
    """Adds labels to a state and keeps the hull; of equal labels the first."""
    labels[state] = hull([*labels.get(state, ()), *more])


def sums(
    a: Sequence[tuple[float, float, Any]], b: Sequence[tuple[float, float, T]]
) -> Iterator[tuple[tuple[float, float, Any], tuple[float, float, T]]]:
    """Pairs of points of two hulls whose sums are the vertices of the hull of all sums: edges in order of slope."""
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
    """Runs of steps; after each run only the output of its last step is needed."""
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
    """Independent branches of a block before its last step; one in the original order if there are too many."""
    *inner, _ = block
    group = {index: index for index in inner}
    place = {steps[index].name: index for index in inner}
    for index in inner:  # steps that are connected within the block are of one branch
        joined_with = {group[place[name]] for name in steps[index].inputs if name in place} | {group[index]}
        group = {i: min(joined_with) if g in joined_with else g for i, g in group.items()}
    found = [[i for i in inner if group[i] == g] for g in dict.fromkeys(group.values())]
    return found if len(found) <= MOST_BRANCHES else [inner]
