"""The verdict on sides of a comparison: the best one, by how much, and because of which layers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import attrs

from sparsemap.errors import SparseMapError, listed
from sparsemap.files import grouped, percent, times
from sparsemap.pieces.registry import Registry
from sparsemap.problem import design_file
from sparsemap.problem.problem import Problem
from sparsemap.searching.breakdown import limit_alone
from sparsemap.spec.units import format_energy
from sparsemap.study.comparison import OPEN, WORDS
from sparsemap.study.confidence import ratio_of
from sparsemap.study.network_result import between_text

from ..variants import Base, Values, technology_ends, unlimited_bandwidth
from ..wording import area_text, change_text, time_text
from .shares import WORTH_NAMES, groups_of, in_order, levels_of, ratio, ratios, shares_of, worth_of
from .sides import Compared, SidePart, compared, name_of

COSTS: Mapping[str, Any] = {"seconds": time_text, "energy_pj": format_energy, "area_mm2": area_text}
MOST = 0.75
"""Share of the difference after which no further layer is named."""
EQUAL = 1e-3
"""Relative difference of equal results."""
LITTLE = 0.05
"""Share below which a level is not named."""
BITS = "hardware", "word_bits"
"""Place of the word size in a design file."""
ON_CHIP = ("resides", "resident_words", "slides")
"""Keys of a workload for tensors on chip in a plan."""
PROVABLE = {"edp_js": ("edp", "edp_js"), "energy_pj": ("energy",), "seconds": ("delay", "seconds")}
"""Objectives whose bounds are bounds of a cost that ranks results."""
CHANCE = 1.5
"""Ratio that single searches of one chip reach by their seeds (`docs/results/quality.md` has the worst cells)."""


def verdict(sides: Sequence[Compared], registry: Registry | None = None) -> list[str]:
    """A paragraph per group of comparable sides, or one line over more than three; then costs outside all totals.

    With a `registry`, designs are evaluated again without limits or word sizes of one side alone."""
    return _told(sides, verdicts_of(sides, registry))


def verdict_and_data(sides: Sequence[Compared], registry: Registry) -> tuple[list[str], list[dict[str, Any]]]:
    """Like `verdict`, and as plain data, one per group of comparable sides."""
    made = verdicts_of(sides, registry)
    return _told(sides, made), [one.to_dict() for one in made]


def verdicts_of(sides: Sequence[Compared], registry: Registry | None = None) -> list[Verdict]:
    return [Verdict(found, registry) for found in compared(sides) if len(found) > 1]


def _told(sides: Sequence[Compared], made: Sequence[Verdict]) -> list[str]:
    lines = [one.text for one in made]
    return [*(lines if len(lines) <= 3 else [overall(compared(sides))]), *uncounted(sides)]


def uncounted(sides: Sequence[Compared]) -> list[str]:
    """Layers missing in the networks, and operations between layers without a plan: no total counts these."""
    lacks = dict.fromkeys(name for side in sides for name in side.numbers.get("lacks") or ())
    tables = ((side, side.numbers.get("between")) for side in sides if not side.planned)
    between = ((side.subject, name_of(side, sides), tuple(found.values())) for side, found in tables if found)
    return [f"No total counts {text}." for text in (listed(lacks), between_text(between)) if text]


def overall(groups: Sequence[Sequence[Compared]]) -> str:
    """The best hardware over many problems, by geometric means over the first side of each."""
    found: dict[str, list[float]] = {}
    for sides in groups:
        for side in sides:
            if (over := ratio(side, sides[0], worth_of(sides))) is not None:
                found.setdefault(side.hardware, []).append(over)
    means = sorted((statistics.geometric_mean(each), name) for name, each in found.items())
    (least, best), *others = means
    worth = WORTH_NAMES[worth_of(side for sides in groups for side in sides)]
    tail = ", ".join(f"{name} needs {times(mean / least)}" for mean, name in others[:4])
    return f"Over {len(groups)} problems {best} needs the least {worth}{f'; {tail} (geometric means)' if tail else ''}."


@attrs.frozen(eq=False, slots=False)
class Verdict:
    """The verdict on sides of one problem."""

    given: Sequence[Compared]
    registry: Registry | None = None

    @cached_property
    def worth(self) -> str:
        return worth_of(self.given)

    @cached_property
    def sides(self) -> list[Compared]:
        """Sides with a design for every layer, the best first."""
        return in_order((side for side in self.given if side.value(self.worth)), self.worth)

    @cached_property
    def more(self) -> float:
        """Worth of the second side over the best."""
        return ratio(self.sides[1], self.sides[0], self.worth) or 1.0

    def name(self, side: Compared) -> str:
        return name_of(side, self.given)

    @property
    def text(self) -> str:
        subject, worth = self.given[0].subject, WORTH_NAMES[self.worth]
        if len(self.sides) < 2:
            missing = listed([self.name(side) for side in self.given if side not in self.sides])
            return f"{subject}: {missing} has no design for every layer, so that nothing is compared."
        one, other = (self.name(side) for side in self.sides[:2])
        best = self.sides[0]
        rest = listed(f"{self.name(x)} needs {times(ratio(x, best, self.worth))}" for x in self.sides[2:])
        if self.more < 1 + EQUAL:
            return f"{one} and {other} are equal for {subject}{f'; {rest} their {worth}' if rest else ''}."
        head = f"{one} is better than {other} for {subject}, by {times(self.more)} in {worth}{self.interval()}."
        if self.proven:
            head += f" Proven: every design of {other}, of the sizes searched, is worse by at least {times(self.proof or 0.0)}."
        if turned := [f"{name} by {times(1 / over)}" for name, over in self.turned]:
            known = f"in {best.technology} {one} is better by {times(self.more)}, {other} in {listed(turned)}"
            head = f"Undecided between {one} and {other} for {subject}: {known} in {worth}."
        rest = f"It is the best of {len(self.sides)}; besides, {rest} its {worth}." if rest else ""
        limits = self.limits()
        seed = f"With seed {best.numbers['seed']} " if best.seeds else ""
        subject = one if limits or rest else "it" if seed else "It"
        costs = f"{seed}{subject} {self.costs()}."
        return " ".join(filter(None, (head, rest, limits, costs, self.because(), *self.doubts(), *self.counted())))

    @cached_property
    def proof(self) -> float | None:
        """Least worth of any design of the second side over the best design, by the second side's bound; None: unknown."""
        best, second = self.sides[:2]
        if second.objective not in PROVABLE.get(self.worth, ()):
            return None
        every = ((one.value(self.worth), one.numbers.get("gap")) for one in second.seeds or (second,))
        least = [value / gap for value, gap in every if value and gap]
        done = [value for one in best.seeds or (best,) if (value := one.value(self.worth))]
        return max(least) / min(done) if least and done else None

    @cached_property
    def turned(self) -> list[tuple[str, float]]:
        """Technologies at the ends of the published range that turn the verdict."""
        return [(name, over) for name, over in self.ends if over < 1 + EQUAL]

    @property
    def proven(self) -> bool:
        """Whether no further design of the second side can turn the verdict."""
        return self.proof is not None and self.proof >= 1 + EQUAL and not self.turned

    @property
    def state(self) -> str:
        """`equal`, `undecided` (the technology turns it), `proven`, `noise`, `not converged`, `likely, 3 seeds` or `one
        seed`."""
        best, found = self.sides[0], self.of_seeds
        if self.more < 1 + EQUAL:
            return "equal"
        if self.turned or self.proven:
            return "undecided" if self.turned else "proven"
        if any(map(improving, self.sides[:2])) and (found is None or found.noise):
            return OPEN
        if found is None:
            return "one seed"
        return "noise" if found.noise else f"likely, {len(best.seeds)} seeds"

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain data."""
        if len(self.sides) < 2:
            return {"subject": self.given[0].subject, "state": "no design"}
        names, found = [self.name(side) for side in self.sides[:2]], self.of_seeds
        return {
            "subject": self.given[0].subject, "best": names[0], "second": names[1], "cost": self.worth, "factor": self.more,
            "state": self.state, "proven_factor": self.proof if self.proven else None,
            "interval": [found.low, found.high] if found else None,
        }  # fmt: skip

    @cached_property
    def of_seeds(self) -> Any:
        """The mean of the ratios over seeds with its interval; None for one seed."""
        best, second = self.sides[:2]
        found = ratio_of([ratios(second, best, self.worth)]) if best.seeds else None
        return None if found is None or found.low is None else found

    def interval(self) -> str:
        """Interval of a mean over seeds."""
        best, found = self.sides[0], self.of_seeds
        if found is None:
            return ""
        word = f": {WORDS[OPEN if any(map(improving, self.sides[:2])) else 'noise']}" if found.noise else ""
        return f" ({times(found.low)} to {times(found.high)} at 95 %, {len(best.seeds)} seeds{word})"

    @cached_property
    def ends(self) -> list[tuple[str, float]]:
        """Technologies at the ends of the published range, and the worth of the second side over the best there."""
        named = self.sides[0].technology
        if self.registry is None or self.sides[0].seeds or len({side.technology for side in self.sides[:2]}) > 1:
            return []
        known = {
            name: self.over(partial(_same, change)) for name, change in technology_ends(self.registry, named).items()
        }
        return [(name, over) for name, over in known.items() if over]

    def range(self) -> str:
        """`; 1.1x in 12nm-low, 1.4x in 12nm-high`."""
        return f"; {', '.join(f'{times(over)} in {name}' for name, over in self.ends)}" if self.ends else ""

    def costs(self) -> str:
        """`takes 1.2 ms instead of 2 ms (-40 %), 3 mJ both`, areas too, and plans."""
        best, second = self.sides[:2]
        parts = []
        for key, text in COSTS.items():
            mine, theirs = best.value(key), second.value(key)
            if mine and theirs:
                rest = f"instead of {text(theirs)} ({change_text(mine, theirs)})"
                parts.append(f"{text(mine)} {'both' if math.isclose(mine, theirs, rel_tol=EQUAL) else rest}")
        plans = " and ".join(self.name(side) for side in (best, second) if side.planned)
        text = f"takes {', '.join(parts)}" + (f", with tensors on chip as planned on {plans}" if plans else "")
        built = {
            has: [self.name(x) for x in self.sides if x.chip and bool(x.chip.get("units")) is has]
            for has in (True, False)
        }
        if all(built.values()) and any(side.value("area_mm2") for side in self.sides):
            text += (
                f". Areas are counted differently: that of {listed(built[True])} has its decoders and skipping units"
            )
            text += f"; {listed(built[False])} has no `units`, so that layers take any of them at no area"
        return text

    def because(self) -> str:
        """Layers with most of the gain, or the largest gain and loss; of single designs the limits and levels."""
        best, second = self.sides[:2]
        shares = shares_of(self.sides, self.worth)
        mine, theirs = ({part.name: part for part in side.parts} for side in (best, second))

        groups = groups_of(shares)
        sums = {label: math.fsum(shares[name] for name in names) for label, names in groups.items()}

        def told(label: str) -> str:
            name, count = groups[label][0], len(groups[label])
            how = self.amounts(mine[name], theirs[name], shares[name] < 0)
            several = f"{label}, {count} layers alike, have" if count > 1 else f"{label} has"
            return f"{several} {percent(sums[label])} of it, {'each ' * (count > 1)}{how}"

        if len(shares) < 2:
            limited = f"It is limited by {best.limit}, {self.name(second)} by {second.limit}."
            levels = shares_of(self.sides, self.worth, levels_of) if len(best.parts) == len(second.parts) == 1 else {}
            named = [f"{name} {percent(x)}" for name, x in levels.items() if abs(x) >= LITTLE and math.isfinite(x)][:3]
            by = f"Of the difference {listed(named)}." if named else ""
            return " ".join(filter(None, [limited if second.limit and best.limit != second.limit else "", by]))
        if math.fsum(max(part, 0.0) for part in shares.values()) * MOST > 1.0:
            ends = (max(sums, key=lambda x: sums[x]), min(sums, key=lambda x: sums[x]))
            return f"Layers pull both ways: {'; '.join(map(told, ends))}."
        names, sum_of = list[str](), 0.0
        for label in [label for label, x in sums.items() if x > 0][:3]:
            if sum_of <= MOST:
                names.append(label)
                sum_of += sums[label]
        several = sum(len(groups[label]) for label in names) > 1
        return f"{'Layers that decide' if several else 'The layer that decides'}: {'; '.join(map(told, names))}."

    def amounts(self, part: SidePart, theirs: SidePart, loses: bool) -> str:
        """Time of a layer with the limit of the slower side, or its energy if that differs more."""
        if (part.energy_pj * theirs.seconds < theirs.energy_pj * part.seconds) != loses:
            return f"{format_energy(part.energy_pj)} instead of {format_energy(theirs.energy_pj)}"
        limit = limit_alone((part if loses else theirs).costs.limit)
        about = f"{time_text(part.seconds)} instead of {time_text(theirs.seconds)}"
        return about + (f", limited by {limit} on {self.name(self.sides[not loses])}" if limit else "")

    def limits(self) -> str:
        """Memories without a limit of bandwidth where others have one, and the ratio without any limit."""
        free = [(side, [name for name, has in side.unlimited.items() if has]) for side in self.sides]
        shares = [len(names) / max(1, len(side.unlimited)) for side, names in free]
        if len(set(shares)) == 1:
            return ""
        text = "; ".join(f"{listed(names)} of {self.name(side)}" for side, names in free if names)
        said = "without limits on chip for either"
        rest = self.apart(said, lambda x: unlimited_bandwidth(x.levels[1:])) if shares[0] != shares[1] else ""
        return f"No bandwidth limits {text}{rest}."

    def doubts(self) -> Iterator[str]:
        """Reasons why more work may turn the verdict: plans, budgets, bounds, seeds, unequal layers."""
        best = self.sides[0]
        if "layers" in best.numbers and not any(side.planned for side in self.sides):
            yield "Layer by layer every tensor travels to the outermost memory: what --fuse plans to stay on chip may turn this."
        yield from () if self.proven else self.chances()
        yield from self.other_work()

    def chances(self) -> Iterator[str]:
        """Reasons why further searches may turn the verdict."""
        best, second = self.sides[:2]
        one, other = (self.name(side) for side in (best, second))
        if best.effort != second.effort and best.effort and second.effort:
            yield f"The effort differs: {one} has {best.effort}, {other} {second.effort}."
        for side in (best, second):
            if not best.seeds and (text := improving(side)):
                yield f"{self.name(side)} has not converged ({text})."
        gaps = [float(side.numbers.get("gap") or 0.0) for side in (best, second)]
        if all(gaps) and not best.seeds and self.more < gaps[1]:
            far = f"{one} is at {times(gaps[0])} of its bound, {other} at {times(gaps[1])}"
            yield f"{far}: more designs may turn {times(self.more)}."
        searches, folders = {side.searched for side in self.sides}, {side.folder for side in self.sides}
        if not best.seeds and self.more < CHANCE and len(searches) == 1 and len(folders) > 1:
            yield "Of one seed each: so little may be chance; a study with several `seeds` tells."

    def other_work(self) -> Iterator[str]:
        """Layers whose workloads differ."""
        best, second = self.sides[:2]
        mine, theirs = ({part.name: _workload(part) for part in side.parts} for side in (best, second))
        both = [(name, mine[name], theirs[name]) for name in mine if mine[name] and theirs.get(name)]
        keys = {name: {key for key in {*a, *b} if a.get(key) != b.get(key)} for name, a, b in both}
        if names := [name for name, some in keys.items() if some]:
            few = listed(names if len(names) < 4 else [f"{len(names)} layers"])
            differ = f"{few} differ in {listed(sorted({key for some in keys.values() for key in some}))}"
            plans = {str(side.numbers.get("formats")): side for side in (best, second) if side.planned}
            ways = " and ".join(f"{self.name(side)} with --formats {way}" for way, side in plans.items())
            yield (
                f"Planned otherwise, {ways}: {differ} (matched outputs have that which the next layer reads)."
                if len(plans) == 2
                else f"Not the same work: {differ} (with --fuse outputs have the density that the next layer reads)."
            )

    def counted(self) -> Iterator[str]:
        """Cost models, technologies and word sizes where these differ, with the ratio at the smaller words."""

        def differ(what: str, way: Callable[[Compared], str]) -> str:
            groups = grouped(self.sides, way)
            told = [f"{listed(self.name(side) for side in same)} {of}" for of, same in groups.items()]
            return f"{what} differ: {'; '.join(told)}" if len(told) > 1 else ""

        if text := differ("Cost models or technologies", lambda side: f"by {side.model} in {side.technology}"):
            yield f"{text}."
        elif self.sides[0].technology:
            yield f"All in the technology {self.sides[0].technology}{self.range()}."
        bits = [side.word_bits for side in self.sides if side.word_bits]
        if len(bits) == len(self.sides) and len(set(bits)) > 1:
            few, text = min(bits[:2]), differ("Words", lambda side: f"has {side.word_bits} bits")
            yield f"{text}{self.apart(f'with {few} bits for both', lambda _: {BITS: few})}."

    def apart(self, said: str, change: Callable[[Problem], Values]) -> str:
        """The ratio of the first two sides with a change of both chips."""
        over = self.over(change)
        if not over:
            return ""
        text = f"; {said}, the same designs differ by {times(max(over, 1 / over))}"
        return text + (f", and {self.name(self.sides[1])} is better" if over < 1 else "")

    def over(self, change: Callable[[Problem], Values]) -> float | None:
        """Worth of the second side over the best, with a change of both; None where a side cannot be evaluated."""
        found = [self.changed(side, change, self.registry) for side in self.sides[:2] if self.registry]
        one, other = found or (None, None)
        return other / one if one and other else None

    @cached_property
    def bases(self) -> dict[Path, Base]:
        """Designs of parts that were read, by file."""
        return {}

    def changed(self, side: Compared, change: Callable[[Problem], Values], registry: Registry) -> float | None:
        """Worth of a side's designs after a change of their files; None if the unchanged files do not give its worth."""
        rows = list[list[tuple[float, float]]]()
        try:
            for part in side.parts:
                file = part.design_file
                if not file.is_file():  # an operation of a plan
                    rows.append([(part.energy_pj, part.seconds)] * 2)
                    continue
                if file not in self.bases:
                    self.bases[file] = Base(design_file.load(str(file), registry))
                base = self.bases[file]
                both = base.outcome, base.changed(change(base.design.problem))
                rows.append([(part.repeat * x.energy_pj, part.repeat * x.costs["seconds"]) for x in both])
        except SparseMapError:  # of another version
            return None

        def total(costs: Sequence[tuple[float, float]]) -> float | None:
            energy, seconds = (math.fsum(each) for each in zip(*costs, strict=True))
            return {"energy_pj": energy, "seconds": seconds, "edp_js": 1e-12 * energy * seconds}.get(self.worth)

        now, after = map(total, zip(*rows, strict=True))
        return after if now and math.isclose(now, side.value(self.worth) or 0.0, rel_tol=EQUAL) else None


def _same(change: Values, problem: Problem) -> Values:
    return change


def _workload(part: SidePart) -> dict[str, Any]:
    """Workload of a part's design, without its name and tensors on chip."""
    table = part.design_table().get("workload", {})
    return {key: value for key, value in table.items() if key not in ("name", *ON_CHIP)}


def improving(side: Compared) -> str:
    """The verdict on a search that still improved at its end, on the first such seed, or on layers; empty otherwise."""
    told = [one.numbers.get("convergence") or {} for one in side.seeds or (side,)]
    layers = [part for part in side.parts if part.about.get("verdict") == "improving"]
    several = f"searches of {len(layers)} of {len(side.parts)} layers still improve" if layers else ""
    return next((str(one["text"]) for one in told if one.get("state") == "improving"), several)
