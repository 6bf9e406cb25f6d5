"""Layers that run interleaved: chains of them, between which tensors slide by, as steps of a join.

All layers of a chain have their tiles on chip all the time, beside what lives of the tensors between them, so that each
moves what it does alone with these tensors on chip, and energies and cycles add.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import attrs
import numpy as np

from .join import Step, TablePoint, Together
from .packets import TensorPlace
from .slides import Outermost, Slide
from .thinning import thinned, thinned_rows

MOST_LAYERS = 8
"""Layers of a chain."""


@attrs.frozen(kw_only=True, eq=False)
class Member:
    """A node of the graph as chains need it."""

    name: str
    inputs: tuple[str, ...]
    """Nodes whose outputs it takes."""
    stuck: frozenset[str] = frozenset()
    """Those of them, and itself, whose outputs cannot live on chip as a whole."""
    slides: tuple[Slide, ...] = ()
    """Along which ranks its output may slide by, into the next node."""
    words: int = 0
    """Of its output."""
    sizes: Mapping[str, int] = attrs.field(factory=dict)
    tables: Mapping[tuple[tuple[TensorPlace, ...], TensorPlace], Mapping[Outermost, Sequence[TablePoint]]] = (
        attrs.field(factory=dict)
    )
    """By places of the inputs and of the output, and by the outermost loop of the design."""
    alike: Any = None
    """Equal for nodes with equal tables."""

    def role(self, sliding: str, home: TensorPlace, slides: bool) -> tuple[Any, ...]:
        """What its points depend on in a chain: which input slides by, which tensors may not stay, and whether its output
        slides by."""
        stays = tuple(name in self.stuck for name in (*self.inputs, self.name))
        return self.alike, self.inputs.index(sliding) if sliding else -1, stays, slides and self.slides


@attrs.frozen
class _Row:
    """Points of the layers of a chain, and the places of their outputs; that of the last one is None if it slides by."""

    energy_pj: float
    cycles: float
    room: float
    parts: tuple[tuple[TensorPlace | None, TablePoint], ...]

    @property
    def costs(self) -> tuple[float, float, float]:
        return self.energy_pj, self.cycles, self.room

    def after(self, slid: TensorPlace, place: TensorPlace | None, point: TablePoint) -> _Row:
        *before, (_, last) = self.parts
        room = self.room + slid.words + point.room
        parts = (*before, (slid, last), (place, point))
        return _Row(self.energy_pj + point.energy_pj, self.cycles + point.cycles, room, parts)


Chains = dict[tuple[tuple[TensorPlace, ...], TensorPlace | None], dict[Outermost, list[_Row]]]
"""By places of the inputs and of the last output (None: it slides by), and by the outermost loop of the last layer."""


def interleaved(nodes: Sequence[Member], home: str, capacity: float) -> Iterator[Step]:
    """The chains of nodes that follow each other, as far as they fit into `capacity` words of the level `home`."""
    known: dict[Any, Chains] = {}
    for first, one in enumerate(nodes):
        if not one.slides:
            continue
        history: tuple[Any, ...] = (one.role("", TensorPlace(home), True),)
        if history not in known:
            rows = _roles(one, "", TensorPlace(home), slides=True)
            known[history] = {
                key: {at: [_Row(p.energy_pj, p.cycles, p.room, ((None, p),)) for p in some] for at, some in by.items()}
                for key, by in rows.items()
            }
        chains = known[history]
        for last in range(first + 1, min(first + MOST_LAYERS, len(nodes))):
            before, after = nodes[last - 1], nodes[last]
            if not before.slides or not chains:
                break
            ended = _extended(known, history, before, after, TensorPlace(home), capacity, slides=False)
            if ended:
                yield _step(nodes[first : last + 1], ended, home)
            if not after.slides:
                break
            chains = _extended(known, history, before, after, TensorPlace(home), capacity, slides=True)
            history = (*history, after.role(before.name, TensorPlace(home), True))


def _roles(
    one: Member, sliding: str, home: TensorPlace, slides: bool
) -> dict[tuple[tuple[TensorPlace, ...], TensorPlace | None], dict[Outermost, list[TablePoint]]]:
    """The points of a node in a chain, by places of its inputs but for the one that slides by, and of its output."""
    found: dict[Any, dict[Outermost, list[TablePoint]]] = {}
    for (inputs, place), by_loop in one.tables.items():
        others = [(name, at) for name, at in zip(one.inputs, inputs, strict=True) if name != sliding]
        slid = [at for name, at in zip(one.inputs, inputs, strict=True) if name == sliding]
        if any(at != home for at in slid) or (slides and place != home):
            continue
        kept = [*others, *([] if slides else [(one.name, place)])]
        if any(at.level == home.level and name in one.stuck for name, at in kept):
            continue
        for loop, points in by_loop.items():
            key = tuple(at for _, at in others), None if slides else place
            found.setdefault(key, {}).setdefault(loop, []).extend(points)
    return {
        key: {loop: thinned(some, lambda p: (p.energy_pj, p.cycles, p.room)) for loop, some in by_loop.items()}
        for key, by_loop in found.items()
    }


def _extended(
    known: dict[Any, Chains], history: tuple[Any, ...], before: Member, after: Member, home: TensorPlace, capacity: float,
    slides: bool,
) -> Chains:  # fmt: skip
    """Chains with one more layer."""
    name = (*history, after.role(before.name, home, slides))
    if name in known:
        return known[name]
    found: dict[Any, list[dict[Outermost, list[_Row]]]] = {}
    roles = _roles(after, before.name, home, slides)
    live: Any = known.setdefault((before.alike, before.slides, after.alike), {})
    for (given, _), by_loop in known[history].items():
        for (more, place), by_next in roles.items():
            for pair in product(by_loop, by_next):
                if pair not in live:
                    live[pair] = _slid(before, pair[0], after, pair[1], home)
            made = found.setdefault(((*given, *more), place), [])
            parts = {at: {at: points} for at, points in by_next.items()} if slides else {None: by_next}
            made.append({at: _sums(by_loop, some, live, place, capacity) for at, some in parts.items()})
    known[name] = {key: _merged(some) for key, some in found.items()}
    return known[name]


def _sums(
    by_loop: Mapping[Outermost, Sequence[_Row]],
    by_next: Mapping[Outermost, Sequence[TablePoint]],
    live: Mapping[Any, TensorPlace | None],
    place: TensorPlace | None,
    capacity: float,
) -> list[_Row]:
    """Rows with one more layer, of every row and every point that go together: those that fit and are worth keeping."""
    rows = [(i, row) for i, some in enumerate(by_loop.values()) for row in some]
    points = [(i, point) for i, some in enumerate(by_next.values()) for point in some]
    if not rows or not points:
        return []
    between = [[live[loop, following] for following in by_next] for loop in by_loop]
    words = np.array([[np.inf if slid is None else slid.words for slid in some] for some in between])
    first, second = np.array([i for i, _ in rows]), np.array([i for i, _ in points])
    mine = np.array([row.costs for _, row in rows])
    theirs = np.array([(point.energy_pj, point.cycles, point.room) for _, point in points])
    room = (mine[:, 2:] + words[np.ix_(first, second)]) + theirs[:, 2]
    one, two = np.nonzero(room <= capacity)
    order = np.lexsort((two, one, second[two], first[one]))  # loop by loop: of equal ones the first is kept
    one, two = one[order], two[order]
    kept = thinned_rows(mine[one, 0] + theirs[two, 0], mine[one, 1] + theirs[two, 1], room[one, two])
    found = []
    for i, j in zip(one[kept].tolist(), two[kept].tolist(), strict=True):
        slid = between[first[i]][second[j]]
        assert slid is not None
        found.append(rows[i][1].after(slid, place, points[j][1]))
    return found


def _merged(some: Sequence[Mapping[Outermost, list[_Row]]]) -> dict[Outermost, list[_Row]]:
    """Tables of the same places as one."""
    found: dict[Outermost, list[_Row]] = {}
    for by_loop in some:
        for loop, rows in by_loop.items():
            found.setdefault(loop, []).extend(rows)
    return {
        loop: thinned(rows, lambda row: row.costs) if len(some) > 1 else rows for loop, rows in found.items() if rows
    }


def _slid(
    before: Member, loop: Outermost, after: Member, following: Outermost, home: TensorPlace
) -> TensorPlace | None:
    """What lives of the tensor between two layers with these outermost loops; None: they cannot run interleaved."""
    best: TensorPlace | None = None
    for slide in before.slides:
        if (loop and loop[0] != slide.made) or (following and following[0] != slide.taken):
            continue
        made, taken = (
            one.sizes[dim] // (at[1] if at else 1)
            for one, dim, at in ((before, slide.made, loop), (after, slide.taken, following))
        )
        live = slide.live(made, taken)
        if best is None or live * slide.across < best.words:
            text = f"{live} of {slide.rows} {slide.made}"
            best = attrs.evolve(home, slides=text, words=float(live * slide.across))
    return best


def _step(members: Sequence[Member], chains: Chains, home: str) -> Step:
    """A chain as a step of the join."""
    names = tuple(one.name for one in members)
    tables: dict[Any, list[TablePoint]] = {}
    for (inputs, place), by_loop in chains.items():
        assert place is not None
        for row in (row for rows in by_loop.values() for row in rows):
            together = Together(tuple((name, at, point) for name, (at, point) in zip(names, row.parts, strict=True)))
            tables.setdefault((inputs, place), []).append(TablePoint(row.energy_pj, row.cycles, row.room, together))
    outside = tuple(name for one in members for name in one.inputs if name not in names)
    words = {place: float(members[-1].words) for _, place in tables if place.level == home}
    return Step(name=names[-1], inputs=outside, tables=tables, words=words, parts=names)
