"""Variants of a study beside each other: costs per cell, ratios to a reference, and means with intervals.

Variants are the searchers, spaces, formats, cost models or hardware of a study. A ratio divides the cost of a variant by the
reference's in a cell alike in all else, seed included: above 1 the reference is better. Cells without two valid designs have
no ratio."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

import attrs

from ..csv_files import csv_text, read_csv
from ..errors import SearchError, SpecError, listed, unknown
from ..files import four_digits, grouped, percent, times
from ..latex import latex_table
from ..markdown import markdown_table
from ..pieces.defaults import SEARCHER
from ..writing import write_texts
from .cells import AXES, COMPARISON_FILES, MORE, NAMES, OWN, axes_in, chosen_in, placed
from .confidence import LEVEL, Ratio, ratio_of

ALL = "all"
BY = ("formats", "mechanisms", "space", "cost_model", "searcher", "hardware")
"""Axes that may be compared, behind the `axes` of a study; the first that varies is the default."""
COSTS = {
    "edp": "EDP in pJ * cycles", "edp_js": "energy x time in J * s", "seconds": "time in s",
    "energy_pj": "energy in pJ", "score": "score",
}  # fmt: skip
NAMED = {"edp": "EDP", "edp_js": "energy x time", "seconds": "time", "energy_pj": "energy", "score": "score"}
UNUSED, BROKEN, OPEN, SO_FAR = "not used", "broken bound", "not converged", " so far"
"""Words for a variant no design uses, for a result below its proven bound, and for noise of searches still improving."""
WORDS = {
    "one seed": "with one seed per cell it may be noise", "noise": "noise, the seeds differ by as much",
    OPEN: "not converged, the seeds differ by as much",
    UNUSED: "no design uses it, so that it only took the search another way",
}  # fmt: skip
MANY = 5
"""Intervals of 95 % from which text warns of chance."""
SHOWN = 4
"""Values of an axis in a verdict."""
COUNTED = {"better": "less", "worse": "more"}
"""Words for cost models: counting otherwise improves no design."""
ChosenPieces = Mapping[str, Mapping[str, Sequence[str]]]
"""Places of formats and mechanisms in a design, by kind and name."""


@attrs.frozen
class CellRow:
    """The results of all variants in one cell."""

    names: Mapping[str, Any]
    """Workload, hardware, seed, and further axes of the study."""
    costs: Mapping[str, float | None]
    """Cost by variant; None without a valid design."""
    broken: tuple[str, ...] = ()
    """Variants below their proven bound."""
    improving: tuple[str, ...] = ()
    """Variants whose searches still improved at their end."""
    uses: Mapping[str, bool] = attrs.field(factory=dict)
    """By variant with added formats or mechanisms: True if the design uses one."""
    least: Mapping[str, float] = attrs.field(factory=dict)
    """By variant with a bound, the least cost of any design of the searched sizes."""

    def proof(self, *variants: str) -> float:
        """Least cost of any design of one of two variants over the design of the other; above 1, it is proven worse."""
        pairs = (variants, variants[::-1])
        return max(
            self.least.get(worse, 0.0) / cost if (cost := self.costs.get(better)) else 0.0 for better, worse in pairs
        )


@attrs.frozen
class MeanRow:
    """Mean ratios of a variant to the reference over a group of cells."""

    group: str
    variant: str
    arithmetic: float | None
    ratio: Ratio | None
    """Geometric mean."""
    cells: int
    """Cells with a ratio."""
    of: int
    better: int
    """Cells with a better reference."""
    worse: int
    broken: str = ""
    """Variants below their bound, with numbers of cells."""
    improving: bool = False
    """Whether searches of either side still improved at their end."""
    uses: int | None = None
    """Cells whose design uses an addition of the variant; None without additions."""
    proven: int = 0
    """Cells in which no further design of the worse side can turn the ratio."""
    proven_factor: float | None = None
    """Geometric mean of the least ratios of any designs, if all cells are proven."""

    @property
    def range(self) -> str:
        """`0.91x to 0.97x`."""
        known = self.ratio is not None and self.ratio.low is not None
        return f"{times(self.ratio.low)} to {times(self.ratio.high)}" if known and self.ratio else "-"

    @property
    def sure(self) -> bool:
        """Whether all cells are proven in one direction, whatever other seeds find."""
        return 0 < self.cells == self.proven and 0 in (self.better, self.worse)

    @property
    def so_far(self) -> str:
        """Behind `better` or `worse` of searches that still improve."""
        return SO_FAR if self.improving and not self.sure and self.word in COUNTED else ""

    @property
    def word(self) -> str:
        word = self.ratio.word if self.ratio else "-"
        word = OPEN if word == "noise" and self.improving else word
        if self.sure:
            word = "worse" if self.better else "better"
        return BROKEN if self.broken else UNUSED if self.uses == 0 and word in COUNTED else word

    def to_dict(self, over: str) -> dict[str, Any]:
        """Plain data; the group under the name `over`."""
        ratio, counts = self.ratio, {"cells": self.cells, "of": self.of}
        return {
            over: self.group, "variant": self.variant, "arithmetic": self.arithmetic, "geometric": ratio and ratio.mean,
            "low": ratio and ratio.low, "high": ratio and ratio.high, "word": self.word + self.so_far, **counts,
            "reference_better": self.better, "reference_worse": self.worse,
            "proven": self.proven, "proven_factor": self.proven_factor,
            **({} if self.uses is None else {"uses": self.uses}), **({"broken": self.broken} if self.broken else {}),
        }  # fmt: skip


@attrs.frozen
class Use:
    """Designs of a variant with a format or a mechanism."""

    kind: str
    name: str
    variant: str
    designs: int
    of: int
    where: Counter[str]
    """Designs by place, such as `P at GLB`."""

    @property
    def share(self) -> float:
        return self.designs / self.of


@attrs.frozen
class Comparison:
    """The cells of a study by variant."""

    reference: str
    variants: tuple[str, ...]
    """All, in the order of the study."""
    cells: tuple[CellRow, ...]
    by: str = "searcher"
    cost: str = "edp"
    """One of `COSTS`."""
    uses: tuple[Use, ...] = ()
    over: str = "hardware"
    """Axes of the groups of means, with commas."""
    technologies: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    budget: int = 0
    """Designs of the largest search; 0 if unknown."""

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(variant for variant in self.variants if variant != self.reference)

    def ratio(self, cell: CellRow, variant: str) -> float | None:
        cost, reference = cell.costs.get(variant), cell.costs.get(self.reference)
        return cost / reference if cost is not None and reference else None

    def ratios(self, cell: CellRow) -> dict[str, float | None]:
        return {name: self.ratio(cell, name) for name in self.others}

    @property
    def broken(self) -> int:
        """Results below their proven bound."""
        return sum(len(cell.broken) for cell in self.cells)

    @property
    def means(self) -> tuple[MeanRow, ...]:
        """Means per group of `over`, then over all cells if there are several groups."""
        groups = self.groups(self.over)
        groups |= {ALL: list(self.cells)} if len(groups) > 1 else {}
        return tuple(self._mean(group, variant, cells) for group, cells in groups.items() for variant in self.others)

    def groups(self, over: str) -> dict[str, list[CellRow]]:
        return grouped(self.cells, lambda cell: ", ".join(str(cell.names.get(key, ALL)) for key in over.split(", ")))

    def _mean(self, group: str, variant: str, cells: Sequence[CellRow], level: float = LEVEL) -> MeanRow:
        known = [(cell, ratio) for cell in cells if (ratio := self.ratio(cell, variant)) is not None]
        problems = grouped(known, lambda one: tuple(x for key, x in one[0].names.items() if key != "seed"))
        ratios = [ratio for found in problems.values() for _, ratio in found]
        mean = ratio_of([[ratio for _, ratio in found] for found in problems.values()], level)
        below = Counter(name for cell in cells for name in (variant, self.reference) if name in cell.broken)
        broken = " and ".join(f"{name} in {count} of {len(cells)} cells" for name, count in below.items())
        uses = [cell.uses[variant] for cell in cells if variant in cell.uses]
        counts = len(ratios), len(cells), sum(ratio > 1 for ratio in ratios), sum(ratio < 1 for ratio in ratios)
        arithmetic = math.fsum(ratios) / len(ratios) if ratios else None
        improving = any(name in cell.improving for cell in cells for name in (variant, self.reference))
        proofs = [proof for cell in cells if (proof := cell.proof(variant, self.reference)) > 1]
        least = statistics.geometric_mean(proofs) if len(proofs) == len(ratios) > 0 else None
        used = sum(uses) if uses else None
        return MeanRow(group, variant, arithmetic, mean, *counts, broken, improving, used, len(proofs), least)

    @property
    def divided(self) -> list[str]:
        """Axes with values that disagree with the mean over all cells."""
        return list(dict.fromkeys(key for row in self.means[-len(self.others) :] for key in self._against(row)))

    def _against(self, mean: MeanRow) -> dict[str, str]:
        """By axis, values that disagree with a mean, by intervals that hold together with 95 %."""
        texts: dict[str, str] = {}
        for key in dict.fromkeys(key for cell in self.cells for key in cell.names if key != "seed"):
            groups = self.groups(key)
            level = 1 - (1 - LEVEL) / len(groups)
            rows = (self._mean(group, mean.variant, cells, level) for group, cells in groups.items())
            known = ((row, row.ratio.mean) for row in rows if row.ratio)
            found = [(row, mean_of) for row, mean_of in known if row.word in COUNTED and row.word != mean.word]
            found.sort(key=lambda pair: -abs(math.log(pair[1])))
            words = [f"{row.group} {times(ratio)} ({self.called(row.word)})" for row, ratio in found[:SHOWN]]
            more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
            texts |= {key: f"; but by {key.replace('_', ' ')}: {', '.join(words)}{more}"} if words else {}
        return texts

    # -- as text

    @property
    def about(self) -> str:
        text = f"{COSTS[self.cost]}. A ratio is over {self.reference}: above 1, {self.reference} is {self.called('better')}."
        rows = sum(row.range != "-" for row in self.means)
        return text + f" The {rows} intervals are not corrected for their number." * (rows >= MANY)

    def called(self, word: str) -> str:
        return COUNTED.get(word, word) if self.by == "cost_model" else word

    def judged(self, row: MeanRow) -> str:
        """The word for a row in texts and tables."""
        return self.called(row.word) + row.so_far

    @property
    def verdict(self) -> str:
        """A sentence for each of the other variants, over all cells."""
        return f"{'; '.join(map(self._sentence, self.means[-len(self.others) :]))}.{self.counted_in}"

    def _sentence(self, row: MeanRow) -> str:
        name, reference = row.variant, self.reference
        if row.broken:
            return f"no verdict on {name}: below its proven bound is {row.broken}; do not trust these numbers"
        if row.ratio is None:
            return f"{name} has no result where {reference} has one"
        within = f" ({row.range} at 95 %)" if row.range != "-" else ""
        text = f"{name} has {times(row.ratio.mean)} the {NAMED[self.cost]} of {reference}{within}"
        text += f": {WORDS.get(row.word, self.judged(row))}"
        if self.budget and (row.so_far or row.word == OPEN):
            text += f"; searches still improve, try a budget of {4 * self.budget:,}"
        if row.proven:
            least = f", proven by at least {times(row.proven_factor)}" if row.proven_factor and row.sure else ""
            text += least or f"; proven in {row.proven} of {row.cells} cells"
        for use in self.uses:
            if use.variant == name and use.name in added(name, self.by):
                where = f", most often in {most(use.where)}" if use.where else ""
                text += f"; {use.designs} of {use.of} designs use {use.name}{where}"
        text += "".join(self._against(row).values())
        for one, other in ((name, reference), (reference, name)):
            cells = [cell for cell in self.cells if cell.costs.get(other) is not None and one in cell.costs]
            if count := sum(cell.costs[one] is None for cell in cells):
                text += f"; {one} has no design in {count} of {len(cells)} cells in which {other} has one"
        return text

    @property
    def counted_in(self) -> str:
        """The technology of all results, or a warning of several; empty if unknown."""
        groups = grouped(self.technologies.items(), lambda item: listed(item[1]))
        texts = [f"{listed(name for name, _ in some)} in {names}" for names, some in groups.items() if names]
        if len(texts) < 2:
            return f" All in the technology {next(iter(groups))}." if texts else ""
        return f" Warning: technologies differ: {'; '.join(texts)}. Ratios compare technologies as well as chips."

    def _tables(self) -> list[tuple[list[list[str]], str]]:
        """Means, chosen pieces, cells, each with its alignment."""
        names = max(len(self.cells[0].names) - 1, 1) if self.cells else 1
        uses = [(self.use_rows(), "<<>")] if self.uses else []
        return [(self.mean_rows(), "<<>"), *uses, (self.cell_rows(), "<" * names + ">")]

    def markdown(self) -> str:
        """Verdict, means, chosen pieces, cells."""
        tables = "\n".join(markdown_table(*table) for table in self._tables())
        return f"{self.about}\n\n{self.verdict}\n\n{tables}"

    _repr_markdown_ = markdown

    def to_latex(self) -> str:
        """The tables of `markdown` for a paper, with booktabs; the verdict is the first caption."""
        (means, *rest) = self._tables()
        return "\n".join([latex_table(*means, self.verdict), *(latex_table(*table) for table in rest)])

    def mean_rows(self) -> list[list[str]]:
        used = any(row.uses is not None for row in self.means)
        ends = f"{self.reference} {self.called('better')}", self.called("worse")
        proven = any(row.proven for row in self.means)
        head = [self.over, self.by, "geometric mean", "95 %", "verdict", "mean", "cells", *ends]
        head += [*(["proven"] if proven else []), *(["use it"] if used else [])]
        rows = [head]
        for row in self.means:
            mean = times(row.ratio.mean if row.ratio else None)
            means = mean, row.range, self.judged(row), times(row.arithmetic)
            counts = [f"{row.cells} of {row.of}", str(row.better), str(row.worse)]
            counts += [str(row.proven)] if proven else []
            counts += ["-" if row.uses is None else str(row.uses)] if used else []
            rows.append([row.group, row.variant, *means, *counts])
        return [row[self.by == self.over :] for row in rows]

    def use_rows(self) -> list[list[str]]:
        """Formats and mechanisms with the share of designs of each variant."""
        found = {(use.kind, use.name, use.variant): use for use in self.uses}
        rows = [["chosen", "name", *self.variants, "most often in"]]
        for kind, name in dict.fromkeys((use.kind, use.name) for use in self.uses):
            uses = [found.get((kind, name, variant)) for variant in self.variants]
            shares = [f"{percent(use.share)} ({use.designs} of {use.of})" if use else "-" for use in uses]
            rows.append([kind, name, *shares, most(sum((use.where for use in uses if use), Counter()))])
        return rows

    def cell_rows(self) -> list[list[str]]:
        names = list(self.cells[0].names) if self.cells else []
        rows = [[*names, *self.variants, *(f"ratio {name}" for name in self.others)]]
        for cell in self.cells:
            costs = [four_digits(cell.costs.get(x)) + f" {BROKEN}" * (x in cell.broken) for x in self.variants]
            rows.append([*map(str, cell.names.values()), *costs, *map(times, self.ratios(cell).values())])
        return rows

    def cells_csv(self) -> str:
        rows = [
            {**cell.names, **{f"{self.cost}:{name}": cell.costs.get(name) for name in self.variants}}
            | {f"ratio:{name}": ratio for name, ratio in self.ratios(cell).items()}
            | ({"broken_bound": "; ".join(cell.broken)} if self.broken else {})
            for cell in self.cells
        ]
        return csv_text(rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        cells = [
            {**cell.names, self.cost: dict(cell.costs), "ratio": self.ratios(cell)}
            | ({"broken_bound": cell.broken} if cell.broken else {})
            for cell in self.cells
        ]
        return {
            "by": self.by, "cost": self.cost, "reference": self.reference, "verdict": self.verdict,
            "technologies": {name: list(found) for name, found in self.technologies.items()},
            "means": [row.to_dict(self.over) for row in self.means],
            "chosen": [{**attrs.asdict(use), "share": use.share} for use in self.uses], "cells": cells,
        }  # fmt: skip

    def write(self, folder: Path, partial: bool = False, asked: str = "") -> list[Path]:
        """Writes cells and means as CSV with full precision, and both as markdown.

        A comparison with failed cells (`partial`) does not replace one of more costs (`cells.placed`). Names of the files
        contain `asked`, the argument `by` of `compare`."""
        names = files_of(asked)
        known, earlier = sum(cost is not None for cell in self.cells for cost in cell.costs.values()), 0
        with suppress(OSError, ValueError, SpecError):
            rows = (row.items() for row in read_csv(folder / names[0]))
            earlier = sum(bool(cost) for row in rows for name, cost in row if name.startswith(f"{self.cost}:"))
        folder = placed(folder, names, partial, stays=known < earlier)
        texts = (self.cells_csv(), csv_text([row.to_dict(self.over) for row in self.means]), self.markdown())
        return write_texts({folder / name: text for name, text in zip(names, texts, strict=True)})


def files_of(asked: str) -> tuple[str, ...]:
    """Names of the files of a comparison by axes with commas."""
    by = "-".join(name.strip() for name in asked.split(",")) if asked else ""
    return tuple(name.replace("comparison", f"comparison-by-{by}") if by else name for name in COMPARISON_FILES)


def compare(
    rows: Iterable[Mapping[str, Any]], reference: str = "", by: str = "", chosen: Sequence[ChosenPieces] = ()
) -> Comparison:
    """The comparison of the rows of a study's table (`Outcome.row`).

    `by` names the compared axis, then with commas the axes of the means (default: hardware). The default reference is the
    default searcher, the variant without additions, or the first. `chosen` has the pieces of each row's design."""
    rows = list(rows)
    columns = tuple(dict.fromkeys((*NAMES[:-1], *AXES, *(axes_in(rows[0]) if rows else ()))))
    variants = {key: tuple(dict.fromkeys(row[key] for row in rows if key in row)) for key in columns}
    by, over = axes_of(variants, by, reference)
    if reference and reference not in variants[by]:
        raise SearchError(f"--reference: {unknown(by.replace('_', ' '), reference, variants[by])}")
    usual = {"searcher": SEARCHER, **dict.fromkeys(MORE, OWN)}.get(by, "")
    reference = reference or (usual if usual in variants[by] else variants[by][0])
    cost = cost_of(rows, by)
    always = ("workload", "hardware", "seed")
    names = [
        name for name in (*columns, "seed")
        if name != by and any(name in x for x in rows) and (name in always or len({x.get(name) for x in rows}) > 1)
    ]  # fmt: skip
    cells = list[CellRow]()
    pairs = list(zip_longest(rows, chosen))
    for key, some in grouped(pairs, lambda pair: tuple(pair[0].get(name) for name in names)).items():
        costs = {row[by]: row.get(cost) for row, _ in some}
        broken = tuple(row[by] for row, _ in some if row.get("broken_bound"))
        improving = tuple(row[by] for row, _ in some if row.get("verdict") == "improving")
        uses = {row[by]: any(x in pieces.get(MORE[by], ()) for x in more)
                for row, pieces in some if pieces and (more := added(row[by], by))}  # fmt: skip
        least = {row[by]: row[cost] / row["gap"] for row, _ in some if row.get("gap") and row.get(cost)}
        cells.append(CellRow(dict(zip(names, key, strict=True)), costs, broken, improving, uses, least))
    chips = grouped(rows, lambda row: row["hardware"])
    counted = {
        name: tuple(dict.fromkeys(x["technology"] for x in some if x.get("technology"))) for name, some in chips.items()
    }
    designs = int(max((row.get("evaluations") or 0 for row in rows), default=0))
    return Comparison(reference, variants[by], tuple(cells), by, cost, _uses(rows, chosen, by), over, counted, designs)


def _uses(rows: Sequence[Mapping[str, Any]], chosen: Sequence[ChosenPieces], by: str) -> tuple[Use, ...]:
    known = [(row[by], chosen_in([{"chosen": pieces}])) for row, pieces in zip(rows, chosen, strict=False) if pieces]
    counts = Counter(variant for variant, _ in known)
    mine = [(MORE[by], name) for variant in counts for name in added(variant, by)]
    every = sorted({(kind, name) for _, found in known for kind in found for name in found[kind]})
    return tuple(
        Use(kind, name, variant, len(found), of, Counter(place for places in found for place in places))
        for kind, name in dict.fromkeys([*mine, *every])
        for variant, of in counts.items()
        for found in [[x[kind][name] for one, x in known if one == variant and name in x.get(kind, ())]]
    )


def most(where: Counter[str]) -> str:
    """The two most frequent places."""
    return " and ".join(place for place, _ in where.most_common(2)) or "-"


def added(variant: str, by: str) -> list[str]:
    """Formats or mechanisms that a variant adds to the space."""
    return variant.split("+") if by in MORE and variant != OWN else []


def compared_axes(columns: Iterable[str]) -> tuple[str, ...]:
    """Axes that may be compared, of a table with these columns before the seed: a study's own `axes` first."""
    return (*(key for key in columns if key not in (*BY, "workload")), *BY)


def axes_of(variants: Mapping[str, Sequence[str]], by: str, reference: str) -> tuple[str, str]:
    """The compared axis (first of `by`, the reference's, or the first of `BY` that varies), and the means' axes."""
    compared = compared_axes(variants)
    several = [key for key in compared if len(variants.get(key, ())) > 1]
    if not several:
        needed = "a comparison needs two searchers, formats, spaces or hardware or more"
        raise SearchError(f"{needed}, the study has {len(variants.get('searcher', ()))}")
    known = [*several, *(key for key in variants if key not in compared and len(variants[key]) > 1)]
    asked = [name.strip() for name in by.split(",")] if by else []
    for name in asked:
        if name not in known:
            raise SearchError(f"--by: {unknown('column of several', name, known)}")
    named = next((key for key in several if reference in variants[key]), several[0])
    first = asked[0] if asked and asked[0] in compared else named
    return first, ", ".join(name for name in dict.fromkeys(asked) if name != first) or "hardware"


def cost_of(rows: Sequence[Mapping[str, Any]], by: str) -> str:
    """The cost of the searches, one of `COSTS`; between hardware in seconds, which count clocks."""
    known = [row for row in rows if row.get("edp") is not None]
    clocks = by == "hardware" and all(row.get("seconds") for row in known)
    for cost, timed in (("edp", "edp_js"), ("cycles", "seconds"), ("energy_pj", "energy_pj")):
        if all(row.get("score") in (None, row.get(cost)) for row in known):
            return timed if clocks or cost == "cycles" else cost
    return "score"
