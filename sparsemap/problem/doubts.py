"""Hardware that costs nothing in the model and much in silicon: sentences for warnings before a search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..errors import listed

if TYPE_CHECKING:
    from .levels import Level
    from .problem import Problem

WIDEST = 1 / 8
"""Largest share of a memory on chip to read or write per cycle without a doubt."""
PORTS_BITS = 1 << 16
"""Bits per cycle of a memory on chip below which no share is doubted."""


def doubts(problem: Problem) -> list[str]:
    """Sentences on the levels of a problem: memories without capacity, narrow words, wide ports, and the technology's own."""
    inner = problem.levels[1:]
    names = [level.name for level in inner if level.capacity_bits is None]
    has = "have" if len(names) > 1 else "has"
    found = [f"{listed(names)} {has} no capacity: unlimited, without area and leakage"] if names else []
    highest, clock = problem.technology.clock_hz(), problem.levels[0].clock_hz
    if highest and clock > highest * (1 + 1e-9):
        text = "clock: {:g} GHz is above {:.3g} GHz, the highest of published accelerators at this voltage"
        found.append(text.format(clock / 1e9, highest / 1e9))
    for level in inner:
        found += [f"{level.name}: {text}" for text in (*_own(problem, level), *problem.technology.doubts(level))]
    return [*found, *(_skips(problem) if problem.space_spec is not None else ())]  # a check of hardware has no space


def _skips(problem: Problem) -> Iterator[str]:
    """Mechanisms of the space with skips that pass any number of positions per cycle, or by units without a size."""
    wide, free = set(), set()
    for place in problem.places:
        s = place.storage
        sight = problem.hardware.compute.lookahead if s is None else problem.levels[s].memory.lookahead
        for mechanism in problem.candidates("mechanism"):
            skips = [rule for rule, *_ in problem.filters(mechanism, place) if rule.action == "skip"]
            name = str(mechanism.name or mechanism.type_name)
            if sight is None and any(rule.width is None and rule.lookahead is None for rule in skips):
                wide.add(name)
            if skips and not mechanism.unit_macs:
                free.add(name)
    for name in sorted(wide):
        yield f"mechanism '{name}': skips pass any number of positions per cycle; expected a width"
    for name in sorted(free):
        yield f"mechanism '{name}': skips take neither area nor energy; expected unit_macs"


def _own(problem: Problem, level: Level) -> Iterator[str]:
    word = problem.hardware.word_bits
    if level.word_bits < word and not problem.tensor_bits[:, level.index].all():
        yield f"words of {level.word_bits} bits hold the tensors' words of {word} bits; expected word_bits from {word} on"
    widths = [width for width in (level.bandwidth, level.read_bandwidth, level.write_bandwidth) if width is not None]
    bits = max(widths, default=0.0) * level.word_bits
    if level.capacity_bits is not None and bits > max(PORTS_BITS, WIDEST * level.capacity_bits):
        share = bits / level.capacity_bits
        yield f"{bits:,.0f} bits per cycle are {share:.2g} times its capacity; their banks have area, but no energy"
