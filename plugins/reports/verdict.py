"""The verdict on results next to each other: which one is best, by how much, and because of which parts."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sparsemap.errors import SparseMapError, listed
from sparsemap.files import grouped, percent, times
from sparsemap.pieces.registry import Registry
from sparsemap.problem import design_file
from sparsemap.problem.problem import Problem
from sparsemap.searching.breakdown import WAITING
from sparsemap.spec.units import format_energy
from sparsemap.study.comparison import WORDS as WORDS_OF
from sparsemap.study.confidence import ratio_of
from sparsemap.study.network_result import between_text

from .amounts import change_text
from .sides import WORTH_NAMES, Compared, SidePart, compared, deciding, in_order, name_of, ratio, ratios, worth_of
from .variants import Base, Values, unlimited_bandwidth
from .wording import area_text, time_text

TOLD: Mapping[str, Any] = {"seconds": time_text, "energy_pj": format_energy, "area_mm2": area_text}
"""What a verdict says of two chips."""
MOST = 0.75
"""Of a difference: the parts that a verdict names make up so much of it, if three do."""
EQUAL = 1e-3
"""Results that differ by less are called equal."""
WORDS = "hardware", "word_bits"
"""Where a design file has the size of words."""
ON_CHIP = ("resides", "resident_words", "slides")
"""What a workload says of tensors that a plan has on chip."""
CHANCE = 1.5
"""Single searches of one chip may be so far apart by their seeds (`docs/results/quality.md` has the worst cells)."""


def verdict(sides: Sequence[Compared], registry: Registry | None = None) -> list[str]:
    """A sentence or two for each problem that several sides have: which one is best, by how much, because of which parts.
    The `registry` reads their designs, which tell what limits of bandwidth are worth that only some sides have."""
    groups = compared(sides)
    lines = [_best(found, registry) for found in groups if len(found) > 1]
    several = [text for text in lines if text]
    return [*(several if len(several) <= 3 else [overall(groups)]), *uncounted(sides)]


def uncounted(sides: Sequence[Compared]) -> list[str]:
    """What no total of these sides counts: what the networks lack, and operations between layers without a plan."""
    lacks = dict.fromkeys(name for side in sides for name in side.numbers.get("lacks") or ())
    tables = ((side, side.numbers.get("between")) for side in sides if not side.planned)
    between = ((side.subject, name_of(side, sides), tuple(found.values())) for side, found in tables if found)
    return [f"No total counts {text}." for text in (listed(lacks), between_text(between)) if text]


def _best(sides: Sequence[Compared], registry: Registry | None) -> str:
    worth = worth_of(sides)
    known = in_order((side for side in sides if side.value(worth)), worth)
    if len(known) < 2:
        missing = listed([name_of(side, sides) for side in sides if side not in known])
        return f"{sides[0].subject}: {missing} has no design for every layer, so that nothing is compared."
    best, second = known[:2]
    more = ratio(second, best, worth) or 1.0
    one, other = (name_of(side, sides) for side in (best, second))
    rest = [f"{name_of(side, sides)} needs {times(ratio(side, best, worth))}" for side in known[2:]]
    if more < 1 + EQUAL:
        also = f"; {listed(rest)} their {WORTH_NAMES[worth]}" if rest else ""
        return f"{one} and {other} are equal for {best.subject}{also}."
    by = f"{times(more)} in {WORTH_NAMES[worth]}{_seeds(best, second, worth)}"
    text = f"{one} is better than {other} for {best.subject}, by {by}. "
    if rest:
        text += f"It is the best of {len(known)}; besides, {listed(rest)} its {WORTH_NAMES[worth]}. "
    text += (limits := _limits(known, worth, registry))
    plans = [name_of(side, sides) for side in (best, second) if side.planned]
    where = f", with tensors on chip as planned on {' and '.join(plans)}" if plans else ""
    seed = f"With seed {best.numbers['seed']} " if best.seeds else ""
    text += f"{seed}{one if limits or rest else 'it' if seed else 'It'} takes {costs_text(best, second)}{where}."
    text += _areas(known)
    if len(shares := deciding(best, second, worth)) > 1:
        text += _decide(best, second, shares, (one, other))
    elif second.limit and best.limit != second.limit:
        text += f" It is limited by {best.limit}, {other} by {second.limit}."
    if "layers" in best.numbers and not any(side.planned for side in known):
        text += " Layer by layer every tensor travels to the outermost memory: what --fuse plans to stay on chip may turn this."
    text += _effort(best, second, more, (one, other)) + _chance(known, more)
    return text + _unlike(best, second) + _counted(known, worth, registry)


def _decide(best: Compared, second: Compared, shares: Mapping[str, float], names: tuple[str, str]) -> str:
    """The layers by which the better one is better; where others take much of it back, those that gain and lose most."""
    mine, theirs = ({part.name: part for part in side.parts} for side in (best, second))
    gains = math.fsum(max(part, 0.0) for part in shares.values())
    if gains * MOST > 1.0:
        ends = [end(shares, key=lambda name: shares[name]) for end in (max, min)]
        parts = [
            f"{name} has {percent(shares[name])} of it, {_amounts(mine[name], theirs[name], names, shares[name] < 0)}"
            for name in ends
        ]
        return f" Layers pull both ways: {'; '.join(parts)}."
    parts, share = [], 0.0
    for name, part in [row for row in shares.items() if row[1] > 0][:3]:
        if share > MOST:
            break
        parts.append(f"{name} has {percent(part)} of it, {_amounts(mine[name], theirs[name], names)}")
        share += part
    return f" {'Layers that decide' if len(parts) > 1 else 'The layer that decides'}: {'; '.join(parts)}."


def _unlike(side: Compared, other: Compared) -> str:
    """The layers that are not the same on both sides, such as those whose outputs have a density with a plan alone."""
    mine, theirs = ({part.name: _workload(part) for part in one.parts} for one in (side, other))
    both = [(name, mine[name], theirs[name]) for name in mine if mine[name] and theirs.get(name)]
    keys = {name: {key for key in {*a, *b} if a.get(key) != b.get(key)} for name, a, b in both}
    if not (names := [name for name, some in keys.items() if some]):
        return ""
    what = listed(sorted({key for some in keys.values() for key in some}))
    few = names if len(names) < 4 else [f"{len(names)} layers"]
    plans = {str(one.numbers.get("formats")): one for one in (side, other) if one.planned}
    if len(plans) == 2:
        told = " and ".join(f"{name_of(one, (side, other))} with --formats {way}" for way, one in plans.items())
        why = "matched outputs have that which the next layer reads"
        return f" Planned otherwise, {told}: {listed(few)} differ in {what} ({why})."
    return f" Not the same work: {listed(few)} differ in {what} (with --fuse outputs have the density that the next layer reads)."


def _workload(part: SidePart) -> dict[str, Any]:
    """The workload of the design of a part, but for its name and for what of it is on chip."""
    table = part.design_table().get("workload", {})
    return {key: value for key, value in table.items() if key not in ("name", *ON_CHIP)}


def _seeds(best: Compared, second: Compared, worth: str) -> str:
    """How sure a mean over seeds is."""
    found = ratio_of([ratios(second, best, worth)])
    if found is None or found.low is None or not best.seeds:
        return ""
    word = f": {WORDS_OF['noise']}" if found.noise else ""
    return f" ({times(found.low)} to {times(found.high)} at 95 %, {len(best.seeds)} seeds{word})"


def _effort(best: Compared, second: Compared, more: float, names: tuple[str, str]) -> str:
    """Where one had more designs than the other; and where more of them may turn the verdict, since the worse one is farther
    from its bound than from the better one."""
    text, gaps = "", [float(side.numbers.get("gap") or 0.0) for side in (best, second)]
    if best.effort != second.effort and best.effort and second.effort:
        text = f" The effort differs: {names[0]} has {best.effort}, {names[1]} {second.effort}."
    if all(gaps) and not best.seeds and more < gaps[1]:
        text += f" {names[0]} is at {times(gaps[0])} of its bound, {names[1]} at {times(gaps[1])}: "
        text += f"more designs may turn {times(more)}."
    return text


def _chance(sides: Sequence[Compared], more: float) -> str:
    """A word where the sides are single searches that are close to each other."""
    searches, folders = {side.searched for side in sides}, {side.folder for side in sides}
    if sides[0].seeds or more >= CHANCE or len(searches) > 1 or len(folders) < 2:
        return ""
    return " Of one seed each: so little may be chance; a study with several `seeds` tells."


def _counted(sides: Sequence[Compared], worth: str, registry: Registry | None) -> str:
    """Who is counted by which cost model and technology, and with words of which size, where these differ; what the words
    are worth."""

    def differ(what: str, way: Callable[[Compared], str]) -> str:
        told = [f"{listed(name_of(side, sides) for side in same)} {of}" for of, same in grouped(sides, way).items()]
        return f" {what} differ: {'; '.join(told)}." if len(told) > 1 else ""

    text = differ("Cost models or technologies", lambda side: f"by {side.model} in {side.technology}")
    if not text and sides[0].technology:
        text = f" All in the technology {sides[0].technology}."
    bits = [side.word_bits for side in sides if side.word_bits]
    if len(bits) == len(sides) and len(set(bits)) > 1:
        text += differ("Words", lambda side: f"has {side.word_bits} bits").removesuffix(".")
        few = min(bits[:2])
        text += f"{_apart(sides, worth, registry, f'with {few} bits for both', lambda _: {WORDS: few})}."
    return text


def _limits(sides: Sequence[Compared], worth: str, registry: Registry | None) -> str:
    """Which of these, the best first, have no limits of bandwidth where others have some, and how far the first two are apart
    if neither has any."""
    free = [f"{listed(side.unlimited)} of {name_of(side, sides)}" for side in sides if side.unlimited]
    shares = [len(side.unlimited) / max(1, len(side.unlimited) + side.limited) for side in sides]
    if len(set(shares)) == 1:
        return ""
    text = f"No bandwidth limits {'; '.join(free)}"
    if shares[0] != shares[1]:
        said = "without limits on chip for either"
        text += _apart(sides, worth, registry, said, lambda problem: unlimited_bandwidth(problem.levels[1:]))
    return f"{text}. "


def _apart(
    sides: Sequence[Compared], worth: str, registry: Registry | None, said: str, change: Callable[[Problem], Values]
) -> str:
    """How far the designs of the first two, the best one first, are apart with something about both chips changed."""
    one, other = (_changed(side, worth, registry, change) if registry else None for side in sides[:2])
    if not one or not other:
        return ""
    text = f"; {said}, the same designs differ by {times(max(one, other) / min(one, other))}"
    return text + (f", and {name_of(sides[1], sides)} is better" if one > other else "")


def _changed(side: Compared, worth: str, registry: Registry, change: Callable[[Problem], Values]) -> float | None:
    """The worth of a side's designs with a change of their files; None where they do not have the side's worth."""
    found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    try:
        for part in side.parts:
            if not part.design_file.is_file():  # an operation of a plan
                for costs in found.values():
                    costs.append((part.energy_pj, part.seconds))
                continue
            base = Base(design_file.load(str(part.design_file), registry))
            for free, each in {False: base.outcome, True: base.changed(change(base.design.problem))}.items():
                found[free].append((part.repeat * each.energy_pj, part.repeat * each.costs["seconds"]))
    except SparseMapError:  # of another version
        return None

    def total(free: bool) -> float | None:
        energy, seconds = (math.fsum(costs) for costs in zip(*found[free], strict=True))
        return {"energy_pj": energy, "seconds": seconds, "edp_js": 1e-12 * energy * seconds}.get(worth)

    now = total(False)
    return total(True) if now and math.isclose(now, side.value(worth) or 0.0, rel_tol=EQUAL) else None


def costs_text(side: Compared, other: Compared) -> str:
    """`1.2 ms instead of 2 ms (-40 %), 3 mJ instead of 2 mJ (+50 %)`, and areas."""
    parts = []
    for key, text in TOLD.items():
        mine, theirs = side.value(key), other.value(key)
        if mine and theirs:
            rest = f"instead of {text(theirs)} ({change_text(mine, theirs)})"
            parts.append(f"{text(mine)} {'both' if math.isclose(mine, theirs, rel_tol=EQUAL) else rest}")
    return ", ".join(parts)


def _areas(sides: Sequence[Compared]) -> str:
    """A word where the areas of some sides have their sparse units and those of others do not."""
    built = {has: listed(name_of(side, sides) for side in sides if side.units is has) for has in (True, False)}
    if not all(built.values()) or not any(side.value("area_mm2") for side in sides):
        return ""
    some = f"Areas are counted differently: that of {built[True]} has its decoders and skipping units"
    return f" {some}; {built[False]} has no `units`, so that layers take any of them at no area."


def _amounts(part: SidePart, theirs: SidePart, names: tuple[str, str], loses: bool = False) -> str:
    """What is told of a layer is what is less in it by more, or more if it `loses`: its time, with what limits the slower
    side, or its energy."""
    if (part.energy_pj * theirs.seconds < theirs.energy_pj * part.seconds) != loses:
        return f"{format_energy(part.energy_pj)} instead of {format_energy(theirs.energy_pj)}"
    limit = (part if loses else theirs).costs.limit.removesuffix(f", {WAITING}")
    about = f"{time_text(part.seconds)} instead of {time_text(theirs.seconds)}"
    return about + (f", limited by {limit} on {names[not loses]}" if limit else "")


def overall(groups: Sequence[Sequence[Compared]]) -> str:
    """Which hardware or folder is best over many problems, by the geometric mean over the first one's."""
    ratios: dict[str, list[float]] = {}
    for sides in groups:
        worth = worth_of(sides)
        for side in sides:
            if (found := ratio(side, sides[0], worth)) is not None:
                ratios.setdefault(side.hardware, []).append(found)
    means = sorted((statistics.geometric_mean(found), name) for name, found in ratios.items())
    (least, best), *others = means
    worth = WORTH_NAMES[worth_of([side for sides in groups for side in sides])]
    tail = ", ".join(f"{name} needs {times(mean / least)}" for mean, name in others[:4])
    tail = f"; {tail} (geometric means)" if tail else ""
    return f"Over {len(groups)} problems {best} needs the least {worth}{tail}."
