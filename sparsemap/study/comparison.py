"""The variants of a study next to each other: what each costs per cell, and how it relates to a reference.

Variants are the searchers, spaces, formats, cost models or hardware of the study. The ratio of a cell is the cost that a
variant found divided by the reference's, in a cell that differs in nothing else, its seed included: above 1 the reference
is better. Cells in which one of the two found no valid design have no ratio.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

import attrs

from ..csv_files import csv_text, read_csv
from ..errors import SearchError, listed, unknown
from ..files import four_digits, grouped, percent, times
from ..markdown import markdown_table
from ..pieces.defaults import SEARCHER
from ..writing import write_texts
from .cells import AXES, COMPARISON_FILES, MORE, OWN, chosen_in, placed
from .confidence import LEVEL, Ratio, ratio_of

ALL = "all"
"""In place of a hardware: the mean over the cells of all of them."""
BY = ("formats", "mechanisms", "space", "cost_model", "searcher", "hardware")
"""What may be compared, and first what is where several vary."""
NAMES = ("workload", "hardware", "searcher", *AXES, "seed")
COSTS = {
    "edp": "EDP in pJ * cycles", "edp_js": "energy x time in J * s", "seconds": "time in s",
    "energy_pj": "energy in pJ", "score": "score",
}  # fmt: skip
"""What the variants of a study are compared by."""
NAMED = {"edp": "EDP", "edp_js": "energy x time", "seconds": "time", "energy_pj": "energy", "score": "score"}
UNUSED = "not used"
"""The word where designs differ though none uses what the variant adds: it took the search another way."""
WORDS = {
    "one seed": "with one seed per cell it may be noise", "noise": "noise, the seeds differ by as much",
    UNUSED: "no design uses it, so that it only took the search another way",
}  # fmt: skip
BROKEN = "broken bound"
"""The word where a result is below what any design can have by proof."""
MANY = 5
"""Intervals of 95 % beside which a reader is told that some miss."""
SHOWN = 4
"""Values of an axis that a verdict names."""
COUNTED = {"better": "less", "worse": "more"}
"""What is said of cost models: no design becomes better by being counted in another way."""


@attrs.frozen
class CellRow:
    """What each variant found in one cell."""

    names: Mapping[str, Any]
    """Workload, hardware and seed, and what else the study varies."""
    costs: Mapping[str, float | None]
    """By variant; None where no valid design was found, or the cell failed."""
    broken: tuple[str, ...] = ()
    """Variants whose result is below its proven bound."""
    uses: Mapping[str, bool] = attrs.field(factory=dict)
    """Of variants that add formats or mechanisms, whether the design found uses any of these."""


@attrs.frozen
class MeanRow:
    """The mean ratios of one variant to the reference, on one hardware or of another group of cells."""

    group: str
    variant: str
    arithmetic: float | None
    ratio: Ratio | None
    """The geometric mean."""
    cells: int
    """Cells with a ratio."""
    of: int
    better: int
    """Cells in which the reference is better."""
    worse: int
    broken: str = ""
    """Which of the two breaks its bound, and in how many cells."""
    uses: int | None = None
    """Cells in which the variant's design uses what the variant adds to the space; None: it adds nothing."""

    @property
    def range(self) -> str:
        """`0.91x to 0.97x`."""
        known = self.ratio is not None and self.ratio.low is not None
        return f"{times(self.ratio.low)} to {times(self.ratio.high)}" if known and self.ratio else "-"

    @property
    def word(self) -> str:
        word = self.ratio.word if self.ratio else "-"
        return BROKEN if self.broken else UNUSED if self.uses == 0 and word in COUNTED else word

    def to_dict(self, over: str) -> dict[str, Any]:
        """Plain data; `searcher`, `space` or what else it is of, is `variant`; the group is called `over`."""
        ratio = self.ratio
        numbers = {"geometric": ratio and ratio.mean, "low": ratio and ratio.low, "high": ratio and ratio.high}
        about = {over: self.group, "variant": self.variant, "arithmetic": self.arithmetic}
        counts = {"cells": self.cells, "of": self.of, "reference_better": self.better, "reference_worse": self.worse}
        more: dict[str, Any] = {} if self.uses is None else {"uses": self.uses}
        more |= {"broken": self.broken} if self.broken else {}
        return {**about, **numbers, "word": self.word, **counts, **more}


ChosenPieces = Mapping[str, Mapping[str, Sequence[str]]]
"""Formats and mechanisms of a design, by kind and name, and where they are."""


@attrs.frozen
class Use:
    """How many designs of a variant use a format or a mechanism."""

    kind: str
    name: str
    variant: str
    designs: int
    of: int
    where: Counter[str]
    """How many of them use it there, such as `P at GLB`."""

    @property
    def share(self) -> float:
        return self.designs / self.of


@attrs.frozen
class Comparison:
    """The cells of a study by variant."""

    reference: str
    variants: tuple[str, ...]
    """All of them, in the order of the study."""
    cells: tuple[CellRow, ...]
    by: str = "searcher"
    cost: str = "edp"
    """One of `COSTS`."""
    uses: tuple[Use, ...] = ()
    over: str = "hardware"
    """What the means are of, a mean for each value; several names with commas."""
    technologies: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """By hardware, the technologies of its results."""

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(variant for variant in self.variants if variant != self.reference)

    def ratio(self, cell: CellRow, variant: str) -> float | None:
        cost, reference = cell.costs.get(variant), cell.costs.get(self.reference)
        return cost / reference if cost is not None and reference else None

    @property
    def broken(self) -> int:
        """How many results are below their proven bound."""
        return sum(len(cell.broken) for cell in self.cells)

    @property
    def means(self) -> tuple[MeanRow, ...]:
        """Per hardware, or what else they are `over`, then over all cells if there are several."""
        groups = self.groups(self.over)
        groups |= {ALL: list(self.cells)} if len(groups) > 1 else {}
        return tuple(self._mean(group, variant, cells) for group, cells in groups.items() for variant in self.others)

    def groups(self, over: str) -> dict[str, list[CellRow]]:
        return grouped(self.cells, lambda cell: ", ".join(str(cell.names.get(key, ALL)) for key in over.split(", ")))

    def _mean(self, group: str, variant: str, cells: Sequence[CellRow], level: float = LEVEL) -> MeanRow:
        problems: dict[tuple[Any, ...], list[float]] = {}
        for cell in cells:
            if (ratio := self.ratio(cell, variant)) is not None:
                problems.setdefault(tuple(x for key, x in cell.names.items() if key != "seed"), []).append(ratio)
        ratios = [ratio for found in problems.values() for ratio in found]
        arithmetic = math.fsum(ratios) / len(ratios) if ratios else None
        better, worse = sum(ratio > 1 for ratio in ratios), sum(ratio < 1 for ratio in ratios)
        mean = ratio_of(problems.values(), level)
        below = Counter(name for cell in cells for name in (variant, self.reference) if name in cell.broken)
        broken = " and ".join(f"{name} in {count} of {len(cells)} cells" for name, count in below.items())
        known = [cell.uses[variant] for cell in cells if variant in cell.uses]
        uses = sum(known) if known else None
        return MeanRow(group, variant, arithmetic, mean, len(ratios), len(cells), better, worse, broken, uses)

    @property
    def divided(self) -> list[str]:
        """Axes whose values say what the mean over them does not."""
        return list(dict.fromkeys(key for row in self.means[-len(self.others) :] for key in self._against(row)))

    def _against(self, mean: MeanRow) -> dict[str, str]:
        """By axis the values whose intervals, of 95 % for all of them together, say what the mean does not."""
        texts: dict[str, str] = {}
        for key in dict.fromkeys(key for cell in self.cells for key in cell.names if key != "seed"):
            groups = self.groups(key)
            level = 1 - (1 - LEVEL) / len(groups)
            rows = [self._mean(group, mean.variant, cells, level) for group, cells in groups.items()]
            against = [row for row in rows if row.word in COUNTED and row.word != mean.word]
            told = [(row, row.ratio.mean) for row in against if row.ratio]
            told.sort(key=lambda pair: -abs(math.log(pair[1])))
            words = [f"{row.group} {times(ratio)} ({self.called(row.word)})" for row, ratio in told[:SHOWN]]
            more = f" and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
            texts |= {key: f"; but by {key.replace('_', ' ')}: {', '.join(words)}{more}"} if words else {}
        return texts

    # -- as text

    def cells_csv(self) -> str:
        rows = [
            {**cell.names}
            | {f"{self.cost}:{name}": cell.costs.get(name) for name in self.variants}
            | {f"ratio:{name}": self.ratio(cell, name) for name in self.others}
            | ({"broken_bound": "; ".join(cell.broken)} if self.broken else {})
            for cell in self.cells
        ]
        return csv_text(rows)

    @property
    def about(self) -> str:
        text = f"{COSTS[self.cost]}. A ratio is over {self.reference}: above 1, {self.reference} is {self.called('better')}."
        rows = sum(row.range != "-" for row in self.means)
        chance = f" Of {rows} intervals of 95 %, each by itself, one in 20 misses by chance."
        return text + chance * (rows >= MANY)

    def called(self, word: str) -> str:
        """The word of a row, as is fit for what is compared."""
        return COUNTED.get(word, word) if self.by == "cost_model" else word

    @property
    def verdict(self) -> str:
        """A sentence for each of the other variants, over all cells."""
        texts = []
        for row in self.means[-len(self.others) :]:
            if row.broken:
                below = f"below its proven bound is {row.broken}; do not trust these numbers"
                texts.append(f"no verdict on {row.variant}: {below}")
                continue
            if row.ratio is None:
                texts.append(f"{row.variant} has no result where {self.reference} has one")
                continue
            within = f" ({row.range} at 95 %)" if row.range != "-" else ""
            text = f"{row.variant} has {times(row.ratio.mean)} the {NAMED[self.cost]} of {self.reference}{within}"
            text += f": {WORDS.get(row.word, self.called(row.word))}"
            for use in self.uses:
                if use.variant == row.variant and use.name in added(row.variant, self.by):
                    where = f", most often in {most(use.where)}" if use.where else ""
                    text += f"; {use.designs} of {use.of} designs use {use.name}{where}"
            text += "".join(self._against(row).values())
            texts.append(text + self._without(row.variant, self.reference) + self._without(self.reference, row.variant))
        return f"{'; '.join(texts)}.{self.counted_in}"

    @property
    def counted_in(self) -> str:
        """The technology of all results, or a warning that technologies differ; empty where none is known."""
        groups = grouped(self.technologies.items(), lambda item: listed(item[1]))
        told = [f"{listed(name for name, _ in some)} in {names}" for names, some in groups.items() if names]
        if len(told) < 2:
            return f" All in the technology {next(iter(groups))}." if told else ""
        return f" Warning: technologies differ: {'; '.join(told)}. Ratios compare technologies as well as chips."

    def _without(self, variant: str, other: str) -> str:
        """In how many cells in which another variant has a design this one has none."""
        cells = [cell for cell in self.cells if cell.costs.get(other) is not None and variant in cell.costs]
        count = sum(cell.costs[variant] is None for cell in cells)
        return f"; {variant} has no design in {count} of {len(cells)} cells in which {other} has one" if count else ""

    def markdown(self) -> str:
        """The verdict, the means, what was chosen, then the cells."""
        uses = f"{markdown_table(self.use_rows(), '<<>')}\n" if self.uses else ""
        names = max(len(self.cells[0].names) - 1, 1) if self.cells else 1
        cells = markdown_table(self.cell_rows(), "<" * names + ">")
        return f"{self.about}\n\n{self.verdict}\n\n{markdown_table(self.mean_rows(), '<<>')}\n{uses}{cells}"

    def mean_rows(self) -> list[list[str]]:
        ends = f"{self.reference} {self.called('better')}", self.called("worse")
        used = any(row.uses is not None for row in self.means)
        head = [self.over, self.by, "geometric mean", "95 %", "", "mean", "cells", *ends, *(["use it"] if used else [])]
        rows = [head]
        for row in self.means:
            counts = [f"{row.cells} of {row.of}", str(row.better), str(row.worse)]
            counts += ["-" if row.uses is None else str(row.uses)] if used else []
            means = times(row.ratio.mean if row.ratio else None), row.range, self.called(row.word)
            rows.append([row.group, row.variant, *means, times(row.arithmetic), *counts])
        return [row[self.by == self.over :] for row in rows]

    def use_rows(self) -> list[list[str]]:
        """What the designs use, the share of the designs of each variant."""
        names = dict.fromkeys((use.kind, use.name) for use in self.uses)
        found = {(use.kind, use.name, use.variant): use for use in self.uses}
        rows = [["chosen", "name", *self.variants, "most often in"]]
        for kind, name in names:
            uses = [found.get((kind, name, variant)) for variant in self.variants]
            told = [f"{percent(use.share)} ({use.designs} of {use.of})" if use else "-" for use in uses]
            rows.append([kind, name, *told, most(sum((use.where for use in uses if use), Counter()))])
        return rows

    def cell_rows(self) -> list[list[str]]:
        names = list(self.cells[0].names) if self.cells else []
        rows = [[*names, *self.variants, *(f"ratio {name}" for name in self.others)]]
        for cell in self.cells:
            ratios = [times(self.ratio(cell, name)) for name in self.others]
            words = [f" {BROKEN}" * (name in cell.broken) for name in self.variants]
            costs = [four_digits(cell.costs.get(x)) + word for x, word in zip(self.variants, words, strict=True)]
            rows.append([*map(str, cell.names.values()), *costs, *ratios])
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        cells = [
            {**cell.names, self.cost: dict(cell.costs), "ratio": {name: self.ratio(cell, name) for name in self.others}}
            | ({"broken_bound": cell.broken} if cell.broken else {})
            for cell in self.cells
        ]
        about: dict[str, Any] = {"by": self.by, "cost": self.cost, "reference": self.reference, "verdict": self.verdict}
        about["technologies"] = {name: list(found) for name, found in self.technologies.items()}
        uses = [{**attrs.asdict(use), "share": use.share} for use in self.uses]
        return {**about, "means": [row.to_dict(self.over) for row in self.means], "chosen": uses, "cells": cells}

    def write(self, folder: Path, partial: bool = False, asked: str = "") -> list[Path]:
        """Writes cells and means as CSV with full precision, and both as markdown; each file whole or not at all. Where
        cells have failed (`partial`), a comparison of more costs does not give way (`cells.placed`). What is `asked` for (see
        `compare`) is in the names of the files: other comparisons stay."""
        names = files_of(asked)
        known, earlier = sum(cost is not None for cell in self.cells for cost in cell.costs.values()), 0
        with suppress(OSError, ValueError, csv.Error):
            told = (row.items() for row in read_csv(folder / names[0]))
            earlier = sum(bool(cost) for row in told for name, cost in row if name.startswith(f"{self.cost}:"))
        folder = placed(folder, names, partial, stays=known < earlier)
        texts = (self.cells_csv(), csv_text([row.to_dict(self.over) for row in self.means]), self.markdown())
        return write_texts({folder / name: text for name, text in zip(names, texts, strict=True)})


def files_of(asked: str = "") -> tuple[str, ...]:
    """Names of the files of a comparison, by what it is by and over where that was asked for."""
    by = "-".join(name.strip() for name in asked.split(",")) if asked else ""
    return tuple(name.replace("comparison", f"comparison-by-{by}") if by else name for name in COMPARISON_FILES)


def compare(
    rows: Iterable[Mapping[str, Any]], reference: str = "", by: str = "", chosen: Sequence[ChosenPieces] = ()
) -> Comparison:
    """The comparison of the rows of a study's table (`Outcome.row`) by one of the names that vary, see `axes_of`.

    The reference is the default searcher, the variant that adds nothing, or else the first one, unless it is named. Names
    behind what is compared, with commas, are what the means are of, in place of the hardware; a workload always is.
    `chosen` has the formats and mechanisms of each row's design by kind, and where they are (`Design.chosen`)."""
    rows = list(rows)
    variants = {key: tuple(dict.fromkeys(row[key] for row in rows if key in row)) for key in NAMES[:-1]}
    by, over = axes_of(variants, by, reference)
    reference = checked_reference(by, variants[by], reference)
    cost = cost_of(rows, by)
    found: dict[tuple[Any, ...], dict[str, float | None]] = {}
    broken: dict[tuple[Any, ...], list[str]] = {}
    names = [name for name in NAMES if name != by and any(name in row for row in rows) and _told(name, rows)]
    used: dict[tuple[Any, ...], dict[str, bool]] = {}
    for row, pieces in zip_longest(rows, chosen):
        key = tuple(row.get(name) for name in names)
        found.setdefault(key, {})[row[by]] = row.get(cost)
        broken.setdefault(key, []).extend([row[by]] if row.get("broken_bound") else [])
        uses, more = used.setdefault(key, {}), added(row[by], by)
        if pieces and more:
            uses[row[by]] = any(name in pieces.get(MORE[by], ()) for name in more)
    cells = tuple(CellRow(dict(zip(names, x, strict=True)), found[x], tuple(broken[x]), used[x]) for x in found)
    counted: dict[str, dict[str, None]] = {}
    for row in rows:
        counted.setdefault(row["hardware"], {}).update({row["technology"]: None} if row.get("technology") else {})
    technologies = {name: tuple(some) for name, some in counted.items()}
    return Comparison(reference, variants[by], cells, by, cost, _uses(rows, chosen, by), over, technologies)


def _told(name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a column tells something: of the searchers and what else a study may vary, if there are several."""
    return name in ("workload", "hardware", "seed") or len({row.get(name) for row in rows}) > 1


def _uses(rows: Sequence[Mapping[str, Any]], chosen: Sequence[ChosenPieces], by: str) -> tuple[Use, ...]:
    known = [(row[by], chosen_in([{"chosen": pieces}])) for row, pieces in zip(rows, chosen, strict=False) if pieces]
    counts = Counter(one for one, _ in known)
    mine = [(MORE[by], name) for one in counts for name in added(one, by)]
    every = sorted({(kind, one) for _, found in known for kind in found for one in found[kind]})
    names = dict.fromkeys([*mine, *every])
    return tuple(
        Use(kind, name, variant, len(found), of, Counter(place for places in found for place in places))
        for kind, name in names
        for variant, of in counts.items()
        for found in [[x[kind][name] for one, x in known if one == variant and name in x.get(kind, ())]]
    )


def most(where: Counter[str]) -> str:
    """The two places that are counted most."""
    return " and ".join(place for place, _ in where.most_common(2)) or "-"


def added(variant: str, by: str) -> list[str]:
    """The formats or mechanisms that a variant adds to the space, if that is what is compared."""
    return variant.split("+") if by in MORE and variant != OWN else []


def axes_of(variants: Mapping[str, Sequence[str]], by: str = "", reference: str = "") -> tuple[str, str]:
    """What a study is compared by: what is named first, what has the reference, or the first of `BY` that varies; and what
    the means are over."""
    several = [key for key in BY if len(variants.get(key, ())) > 1]
    if not several:
        needed = "a comparison needs two searchers, formats, spaces or hardware or more"
        raise SearchError(f"{needed}, the study has {len(variants.get('searcher', ()))}")
    known = [*several, *(key for key in variants if key not in BY and len(variants[key]) > 1)]
    asked = [name.strip() for name in by.split(",")] if by else []
    for name in asked:
        if name not in known:
            raise SearchError(f"--by: {unknown('column of several', name, known)}")
    named = next((key for key in several if reference in variants[key]), several[0])
    first = asked[0] if asked and asked[0] in BY else named
    return first, ", ".join(name for name in dict.fromkeys(asked) if name != first) or "hardware"


def checked_reference(by: str, variants: Sequence[str], reference: str = "") -> str:
    """The reference among the variants of a study."""
    if reference and reference not in variants:
        raise SearchError(f"--reference: {unknown(by.replace('_', ' '), reference, variants)}")
    usual = {"searcher": SEARCHER, **dict.fromkeys(MORE, OWN)}.get(by, "")
    return reference or (usual if usual in variants else variants[0])


def cost_of(rows: Sequence[Mapping[str, Any]], by: str) -> str:
    """The cost that the rows were searched for, one of `COSTS`; between hardware in seconds, so that clocks count."""
    known = [row for row in rows if row.get("edp") is not None]
    clocks = by == "hardware" and all(row.get("seconds") for row in known)
    for cost, timed in (("edp", "edp_js"), ("cycles", "seconds"), ("energy_pj", "energy_pj")):
        if all(row.get("score") in (None, row.get(cost)) for row in known):
            return timed if clocks or cost == "cycles" else cost
    return "score"
