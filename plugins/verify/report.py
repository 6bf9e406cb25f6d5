"""Expected and measured values of every quantity, and the model assumptions behind deviations."""

from __future__ import annotations

import math
import statistics
import tomllib
from collections.abc import Sequence
from pathlib import Path

import attrs

from sparsemap.files import aligned
from sparsemap.study.confidence import quantile

from .comparison import ExecutedCost

TEXTS = tomllib.loads((Path(__file__).parent / "_texts" / "report.toml").read_text("utf-8"))
VERDICTS, ASSUMPTIONS = TEXTS["verdicts"], TEXTS["assumptions"]
ORDER = list(ASSUMPTIONS)
DERIVED = ("cycles", "energy_pj", "level_cycles", "compute_cycles")
"""Quantities derived from the others."""


@attrs.frozen
class CountRow:
    """A quantity, as a total over all instances."""

    quantity: str
    level: str
    """Empty for the compute units and for the whole design."""
    tensor: str
    expected: float
    mean: float
    stderr: float
    trials: int
    rounding: float = 0.0
    """Largest distance of the model's counts from the mean caused by rounding."""
    noise: float = 0.0
    """Standard error of the remainder after the known parts."""
    parts: tuple[tuple[str, float], ...] = ()
    """Assumptions of the model with their known contributions to the deviation."""
    rest: str = "?"
    """The assumption blamed for the deviation beyond the known parts."""

    @property
    def deviation(self) -> float:
        """Measured minus expected."""
        return self.mean - self.expected

    @property
    def margin(self) -> float:
        """Half of the 95 % confidence interval of the mean."""
        return self._quantile * self.stderr

    @property
    def _quantile(self) -> float:
        return quantile(self.trials - 1) if self.trials > 1 else 0.0

    @property
    def verdict(self) -> str:
        """A key of `VERDICTS`."""
        off, slack = abs(self.deviation), self.margin + self.rounding
        if off <= 1e-9 * max(abs(self.expected), abs(self.mean)):
            return "exact"
        if off <= self.margin:
            return "within"
        known = math.fsum(amount for _, amount in self.parts)
        if abs(known) <= 0.5 * off:
            if off <= slack:
                return "rounding"
            if off <= 2.0 * self.margin:
                return "chance"
        if abs(self.unexplained) <= self.rounding + 2.0 * self._quantile * max(self.stderr, self.noise):
            return "explained"
        return "follows" if self.quantity in DERIVED else "off"

    @property
    def unexplained(self) -> float:
        """Deviation beyond the known parts."""
        return self.deviation - math.fsum(amount for _, amount in self.parts)

    @property
    def causes(self) -> tuple[tuple[str, float], ...]:
        """Assumptions with a notable contribution to this row's deviation, and the contribution."""
        if self.verdict not in ("explained", "follows", "off"):
            return ()
        found = [(name, amount) for name, amount in self.parts if abs(amount) > 0.02 * abs(self.deviation)]
        if self.verdict == "off":
            found.append((self.rest, self.unexplained))
        return tuple(found)


@attrs.frozen
class Verification:
    """Result of `verify`."""

    title: str
    trials: int
    seed: int
    rows: tuple[CountRow, ...]
    correct: bool
    """Whether the output equalled the dense product in every trial."""
    notes: tuple[str, ...] = ()
    fidelities: tuple[ExecutedCost, ...] = ()
    """Cost models with the design valid, against its execution."""
    effects: tuple[ExecutedCost, ...] = ()
    """Increment of each charge."""
    lacking: tuple[ExecutedCost, ...] = ()
    """Executed increments of charges missing in the problem's cost model."""
    inconsistent: tuple[str, ...] = ()
    """Errors of formats with formulas unlike their codecs."""

    @property
    def missed(self) -> dict[str, tuple[float, float]]:
        """By charge missing in the cost model, the executed increments as shares of the claimed energy and cycles."""
        claim = self.row("energy_pj").expected, self.row("cycles").expected
        shares = {x.name: (x.executed[0] / claim[0], x.executed[1] / claim[1]) for x in self.lacking}
        return {name: both for name, both in shares.items() if any(both)}

    def row(self, quantity: str, level: str = "", tensor: str = "") -> CountRow:
        for row in self.rows:
            if (row.quantity, row.level, row.tensor) == (quantity, level, tensor):
                return row
        raise KeyError(f"no quantity '{quantity}' at level '{level}' of tensor '{tensor}'")

    @property
    def off(self) -> tuple[CountRow, ...]:
        return tuple(row for row in self.rows if row.verdict == "off")

    def table(self) -> dict[str, object]:
        """Plain data, for JSON."""
        names = ("quantity", "level", "tensor", "expected", "mean", "stderr", "margin", "deviation", "verdict")
        rows = [{name: getattr(row, name) for name in names} | {"causes": dict(row.causes)} for row in self.rows]
        head = {"title": self.title, "trials": self.trials, "seed": self.seed, "output_correct": self.correct}

        def told(kind: str, costs: Sequence[ExecutedCost]) -> list[dict[str, object]]:
            return [{kind: x.name, "analytic": list(x.analytic), "executed": list(x.executed)} for x in costs]

        models, charges = told("cost_model", self.fidelities), told("charge", self.effects)
        found = {**head, "rows": rows, "notes": list(self.notes), "cost_models": models, "charges": charges}
        found["inconsistent_formats"] = list(self.inconsistent)
        return found | {"missed": {name: list(shares) for name, shares in self.missed.items()}}

    def text(self) -> str:
        lines = [
            f"{self.title}: {self.trials} trials, seed {self.seed}; counts are totals over all instances",
            f"output equal to the dense product: {'yes, in every trial' if self.correct else 'NO'}",
            "",
            *_columns(self.rows),
            "",
            *self._summary(),
            *self._ratios(),
        ]
        return "\n".join(lines) + "\n"

    def _ratios(self) -> list[str]:
        if not self.fidelities:
            return []
        cells = [["cost model", "energy, pJ", "cycles", "executed / analytic: energy", "cycles", "EDP"]]
        for one in self.fidelities:
            cells.append([one.name, *map(_number, one.analytic), *map(_shown, (*one.ratios, math.prod(one.ratios)))])
        lines = ["", "Executed over analytic, each cost model by its own semantics:", *aligned(cells, "<>>>>>", gap=2)]
        if self.effects:
            cells = [["charge", "adds pJ", "executed", "ratio", "adds cycles", "executed", "ratio"]]
            for charge in self.effects:
                cells.append([charge.name])
                for analytic, executed, ratio in zip(charge.analytic, charge.executed, charge.ratios, strict=True):
                    cells[-1] += [_number(analytic), _number(executed), _shown(ratio)]
            lines += ["", "What each charge adds to the others, analytic and executed:"]
            lines += aligned(cells, "<>>>>>>", gap=2)
        if missed := self.missed:
            lines += ["", "What execution adds to the claim for charges that the cost model lacks:"]
            cells = [[name, *(f"{100.0 * x:+.1f} %" for x in shares)] for name, shares in missed.items()]
            lines += aligned([["charge", "energy", "cycles"], *cells], "<>>", gap=2)
        return lines

    def _summary(self) -> list[str]:
        counts = {verdict: sum(row.verdict == verdict for row in self.rows) for verdict in VERDICTS}
        lines = [f"{count} of {len(self.rows)} {VERDICTS[verdict]}" for verdict, count in counts.items() if count]
        largest: dict[str, tuple[float, CountRow]] = {}
        for row in self.rows:
            for name, amount in row.causes:
                if name not in largest or _share(amount, row) > _share(*largest[name]):
                    largest[name] = amount, row
        if largest:
            lines += ["", "What the deviations come from (measured minus expected, where it matters most):"]
        for name in sorted(largest, key=ORDER.index):
            amount, row = largest[name]
            where = " ".join(part for part in (row.level, row.tensor, row.quantity.replace("_", " ")) if part)
            lines.append(f"  {name:8}{_signed(amount)} ({_percent(amount, row)}) on {where}: {ASSUMPTIONS[name]}")
        lines += [f"  note: {note}" for note in self.notes]
        return lines + [f"INCONSISTENT FORMAT: {error}" for error in self.inconsistent]


def _share(amount: float, row: CountRow) -> float:
    return abs(amount) / max(abs(row.expected), 1.0)


def _percent(amount: float, row: CountRow) -> str:
    return f"{100.0 * amount / row.expected:+.1f} %" if row.expected else "expected 0"


def _shown(ratio: float) -> str:
    return "-" if math.isnan(ratio) else f"{ratio:.3f}"


def _number(value: float) -> str:
    if value == round(value) and abs(value) < 1e12:
        return str(round(value))
    return f"{value:.3f}" if abs(value) < 1e6 else f"{value:.6g}"


def _signed(value: float) -> str:
    return ("+" if value >= 0 else "") + _number(value)


def _columns(rows: Sequence[CountRow]) -> list[str]:
    head = ("level", "tensor", "quantity", "expected", "measured", "+- 95 %", "deviation", "verdict")
    cells = [head]
    for row in rows:
        deviation = "0" if row.verdict == "exact" else f"{_signed(row.deviation)} ({_percent(row.deviation, row)})"
        causes = [name for name, _ in row.causes]
        verdict = row.verdict + (f": {', '.join(causes)}" if causes else "")
        cells.append(
            (row.level or "-", row.tensor or "-", row.quantity.replace("_", " "), _number(row.expected),
             _number(row.mean), _number(row.margin), deviation, verdict)
        )  # fmt: skip
    return aligned(cells, "<<<>>>><", gap=2)


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard error."""
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return statistics.fmean(values), error
