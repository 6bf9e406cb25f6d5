"""The roofline of a design: computes a cycle against computes a word, data and metadata, skipped words aside."""

from __future__ import annotations

import math

import attrs

from .accesses import Accesses
from .outcome import Outcome


@attrs.frozen
class Roofline:
    rate: float
    """Computes a cycle, as carried out."""
    peak: float
    """And at most."""
    points: tuple[tuple[str, float, float], ...]
    """Each level with a bandwidth and accesses: its name, computes a word, words a cycle of all instances."""

    @property
    def span(self) -> tuple[float, float]:
        """The least and the most computes a word to be drawn."""
        seen = [x for _, word, width in self.points for x in (word, self.peak / width)]
        return min(seen) / 3, max(seen) * 3


def roofline_of(outcome: Outcome) -> Roofline | None:
    """None where the cost model gives no computes."""
    if outcome.computes is None:
        return None
    problem, (done, *_) = outcome.design.problem, outcome.computes
    points = []
    for level in problem.levels:
        width = level.bandwidth or (level.read_bandwidth or math.inf) + (level.write_bandwidth or math.inf)
        words = sum(_timed_words(found) for found in outcome.accesses.values() if found.level is level)
        if math.isfinite(width) and words:
            points.append((level.name, done / words, width * level.instances))
    return Roofline(done / outcome.cycles, float(problem.compute_instances), tuple(points))


def _timed_words(found: Accesses) -> float:
    level, rows = found.level, [row for row in found.rows if not row.name.startswith("skipped")]
    return sum(row.count * (level.metadata_width / level.word_bits if "metadata" in row.name else 1.0) for row in rows)
