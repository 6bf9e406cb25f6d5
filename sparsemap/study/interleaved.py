"""Interleaved layers: chains of layers with sliding tensors in between, as steps of a join.

All tiles of a chain stay on chip, beside the live parts in between; so each layer has the traffic of a layer alone
with these tensors on chip, and energies and cycles add."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import attrs
import numpy as np

from .join import Step, TablePoint, Together
from .packets import PLAIN, Packet, TensorPlace, followed
from .slides import Outermost, Slide
from .thinning import thinned, thinned_rows

MOST_LAYERS = 8
Inputs = tuple[TensorPlace, ...]
Turn = tuple[Outermost, Packet, Packet] | None
"""Outermost loop of a layer, and packets of the sliding tensors into and out of it; None: the last layer's."""
Convert = Callable[[str, float, float], tuple[float, float]]
"""pJ and cycles of converting the output of a node on chip, from the node's name, words read, and words written."""


@attrs.frozen(kw_only=True, eq=False)
class Member:
    """A node of the graph, with the data for chains."""

    name: str
    inputs: tuple[str, ...]
    """Nodes producing the inputs."""
    stuck: frozenset[str] = frozenset()
    """Names among the inputs and the node itself with outputs too large or otherwise unfit to stay on chip as a whole."""
    slides: tuple[Slide, ...] = ()
    """Ranks for the output to slide along, into the next node."""
    words: int = 0
    share: float = 1.0
    """Room of a word of the output."""
    sizes: Mapping[str, int] = attrs.field(factory=dict)
    tables: Mapping[tuple[Inputs, TensorPlace], Mapping[Outermost, Sequence[TablePoint]]] = attrs.field(factory=dict)
    """Points by places of the inputs and of the output, then by the outermost loop of the design."""
    written: Mapping[Packet, float] = attrs.field(factory=dict)
    """Words plus metadata of the output, by the packets written by designs."""
    read: Mapping[Packet, float] = attrs.field(factory=dict)
    """Words plus metadata of the sliding input, by the packets read by designs."""
    alike: Any = None
    """Key, equal for nodes with equal tables."""

    def role(self, sliding: str, home: TensorPlace, slides: bool) -> tuple[Any, ...]:
        """Key for the node's points in a chain: the sliding input, barred tensors, and the sliding output."""
        stays = tuple(name in self.stuck for name in (*self.inputs, self.name))
        return self.alike, self.inputs.index(sliding) if sliding else -1, stays, slides and self.slides


@attrs.frozen
class _Row:
    """Points of the layers of a chain, and the places of their outputs; None for the last output if sliding."""

    energy_pj: float
    cycles: float
    room: float
    parts: tuple[tuple[TensorPlace | None, TablePoint], ...]

    @property
    def costs(self) -> tuple[float, float, float]:
        return self.energy_pj, self.cycles, self.room

    def after(self, slid: _Slid, place: TensorPlace | None, point: TablePoint) -> _Row:
        *before, (_, last) = self.parts
        last = followed(last, slid.energy_pj, slid.cycles, last.room) if slid.converts else last
        energy, cycles = self.energy_pj + slid.energy_pj + point.energy_pj, self.cycles + slid.cycles + point.cycles
        room = self.room + slid.place.words + point.room
        return _Row(energy, cycles, room, (*before, (slid.place, last), (place, point)))


@attrs.frozen
class _Slid:
    """Live part of a tensor between two layers, and the cost of converting the tensor for the second layer."""

    place: TensorPlace
    energy_pj: float = 0.0
    cycles: float = 0.0
    converts: bool = False


Chains = dict[tuple[Inputs, TensorPlace | None], dict[Turn, list[_Row]]]
"""Rows by places of the inputs and of the last output (None: sliding), then by the turn of the last layer."""


def interleaved(nodes: Sequence[Member], home: str, capacity: float, convert: Convert | None = None) -> Iterator[Step]:
    """Chains of consecutive nodes with a total room of at most `capacity` words of the level `home`."""
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
            ended = _extended(known, history, before, after, TensorPlace(home), capacity, convert, slides=False)
            if ended:
                yield _step(nodes[first : last + 1], ended, home)
            if not after.slides:
                break
            chains = _extended(known, history, before, after, TensorPlace(home), capacity, convert, slides=True)
            history = (*history, after.role(before.name, TensorPlace(home), True))


def _roles(
    one: Member, sliding: str, home: TensorPlace, slides: bool
) -> dict[tuple[Inputs, TensorPlace | None], dict[Turn, list[TablePoint]]]:
    """Points of a node in a chain, by places of the inputs except the sliding input, and of the output."""
    found: dict[Any, dict[Turn, list[TablePoint]]] = {}
    for (inputs, place), by_loop in one.tables.items():
        others = [(name, at) for name, at in zip(one.inputs, inputs, strict=True) if name != sliding]
        slid = [at for name, at in zip(one.inputs, inputs, strict=True) if name == sliding]
        if any(at.level != home.level for at in (*slid, *([place] if slides else []))):
            continue
        packets = slid[0].packet if slid else PLAIN, place.packet if slides else PLAIN
        kept = [*others, *([] if slides else [(one.name, place)])]
        if any(at.level == home.level and name in one.stuck for name, at in kept):
            continue
        for loop, points in by_loop.items():
            key = tuple(at for _, at in others), None if slides else place
            found.setdefault(key, {}).setdefault((loop, *packets), []).extend(points)
    return {
        key: {loop: thinned(some, lambda p: (p.energy_pj, p.cycles, p.room)) for loop, some in by_loop.items()}
        for key, by_loop in found.items()
    }


def _extended(
    known: dict[Any, Chains], history: tuple[Any, ...], before: Member, after: Member, home: TensorPlace, capacity: float,
    convert: Convert | None, slides: bool,
) -> Chains:  # fmt: skip
    """Chains extended by a layer."""
    name = (*history, after.role(before.name, home, slides))
    if name in known:
        return known[name]
    found: dict[Any, list[dict[Turn, list[_Row]]]] = {}
    roles = _roles(after, before.name, home, slides)
    live: Any = known.setdefault((before.alike, before.slides, after.alike), {})
    for (given, _), by_loop in known[history].items():
        for (more, place), by_next in roles.items():
            for pair in product(by_loop, by_next):
                if pair not in live:
                    live[pair] = _slid(before, pair[0], after, pair[1], home, convert)
            fitting = {at: some for at, some in by_next.items() if any(live[turn, at] for turn in by_loop)}
            if not fitting:
                continue
            found.setdefault(((*given, *more), place), []).append(_sums(by_loop, fitting, live, place, capacity))
    known[name] = {}
    for key, tables in found.items():  # of the same places
        merged = known[name][key] = dict[Turn, list[_Row]]()
        for loop, rows in ((loop, rows) for table in tables for loop, rows in table.items() if rows):
            merged.setdefault(loop, []).extend(rows)
        if len(tables) > 1:
            known[name][key] = {loop: thinned(rows, lambda row: row.costs) for loop, rows in merged.items()}
    return known[name]


def _sums(
    by_loop: Mapping[Turn, Sequence[_Row]], by_next: Mapping[Turn, Sequence[TablePoint]],
    live: Mapping[Any, _Slid | None], place: TensorPlace | None, capacity: float,
) -> dict[Turn, list[_Row]]:  # fmt: skip
    """Rows extended by fitting, compatible points, thinned; by turn of the point if its output slides (no `place`)."""
    by_loop = {loop: some for loop, some in by_loop.items() if any(live[loop, following] for following in by_next)}
    rows = [(i, row) for i, some in enumerate(by_loop.values()) for row in some]
    points = [(i, point) for i, some in enumerate(by_next.values()) for point in some]
    if not rows or not points:
        return {}
    between = [[live[loop, following] for following in by_next] for loop in by_loop]
    none = _Slid(TensorPlace("", words=math.inf))
    costs = [[(at.energy_pj, at.cycles, at.place.words) for at in (slid or none for slid in some)] for some in between]
    energy, cycles, words = np.array(costs).transpose(2, 0, 1)
    first, second = np.array([i for i, _ in rows]), np.array([i for i, _ in points])
    mine = np.array([row.costs for _, row in rows])
    theirs = np.array([(point.energy_pj, point.cycles, point.room) for _, point in points])
    room = (mine[:, 2:] + words[np.ix_(first, second)]) + theirs[:, 2]
    one, two = np.nonzero(room <= capacity)
    order = np.lexsort((two, one, second[two], first[one]))  # loop by loop: of equal ones the first is kept
    one, two = one[order], two[order]
    pair = first[one], second[two]
    energy, cycles = mine[one, 0] + energy[pair] + theirs[two, 0], mine[one, 1] + cycles[pair] + theirs[two, 1]
    room = room[one, two]
    found: dict[Turn, list[_Row]] = {}
    for number, turn in enumerate(by_next if place is None else [None]):
        mask = np.flatnonzero(pair[1] == number) if place is None else np.arange(len(one))
        made = found.setdefault(turn, [])
        for k in mask[thinned_rows(energy[mask], cycles[mask], room[mask])].tolist():
            slid = between[pair[0][k]][pair[1][k]]
            assert slid is not None
            made.append(rows[one[k]][1].after(slid, place, points[two[k]][1]))
    return found


def _slid(
    before: Member, turn: Turn, after: Member, following: Turn, home: TensorPlace, convert: Convert | None
) -> _Slid | None:
    """Live part between two layers at these turns, in the second's packets; None if they cannot interleave."""
    assert turn is not None and following is not None
    (loop, _, made_in), (then, taken_in, _) = turn, following
    converts, best = made_in != taken_in, None
    for slide in before.slides if convert or not converts else ():
        if (loop and loop[0] != slide.made) or (then and then[0] != slide.taken):
            continue
        made = before.sizes[slide.made] // (loop[1] if loop else 1)
        taken = after.sizes[slide.taken] // (then[1] if then else 1)
        packed = [some for some in (made_in, taken_in) if some]
        sizes = [math.prod(bound for rank, bound, _ in some if rank == slide.rank) for some in packed]
        if not all(slide.whole(size, made, taken) for size in sizes):
            continue
        live, copied = slide.live(made, taken), made if converts else 0  # a turn has both copies
        words = (live + copied) * slide.across * before.share
        if best is None or words < best.words:
            best = attrs.evolve(
                home, packet=taken_in, slides=f"{live} of {slide.rows} {slide.name or slide.made}", words=words
            )
    if best is None:
        return None
    if not converts or convert is None:
        return _Slid(best)
    return _Slid(best, *convert(before.name, before.written[made_in], after.read[taken_in]), converts=True)


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
    words = {place: members[-1].words * members[-1].share for _, place in tables if place.level == home}
    return Step(name=names[-1], inputs=outside, tables=tables, words=words, parts=names)
