"""Designs in words: loops, short names of formats, mechanisms as in Fig. 13, the einsum of a workload, amounts."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from sparsemap import Format, Mechanism, Tensor
from sparsemap.problem.designs import Design, Loop, Rank
from sparsemap.problem.levels import Level, Place
from sparsemap.problem.problem import Problem
from sparsemap.searching.breakdown import Breakdown
from sparsemap.spec.units import format_count, format_energy, scaled_text

HARD_BLANK = "\N{NO-BREAK SPACE}"


def loop_name(loop: Loop) -> str:
    """`n3`, or `n2.3` for a dimension called n2; mapping levels count from 1, the outermost."""
    return f"{loop.dim}.{loop.group + 1}" if loop.dim[-1].isdigit() else f"{loop.dim}{loop.group + 1}"


def loop_text(loop: Loop) -> str:
    """`for n3 in [0, 4)`, or `par-for`."""
    return f"{'par-for' if loop.spatial else 'for'} {loop_name(loop)} in [0, {loop.bound})"


def symbols(formats: Sequence[Format]) -> dict[str, str]:
    """Short name by format name: its `symbol`, else its initials, with more letters if two formats share initials."""
    found: dict[str, str] = {}
    for fmt in formats:
        if fmt.name in found:
            continue
        words = [word for word in re.split(r"[^0-9A-Za-z]+", fmt.name or fmt.type_name) if word] or ["?"]
        own = str(getattr(fmt, "symbol", "") or "")
        candidates = [own] if own else []
        tail = "".join(word if word[0].isdigit() else word[0].upper() for word in words[1:])
        candidates += [words[0][:length].capitalize() + tail for length in range(1, len(words[0]) + 1)]
        found[fmt.name] = next((name for name in candidates if name not in found.values()), fmt.name)
    return found


def format_words(ranks: Sequence[Rank], short: Mapping[str, str], decoded: str = "") -> list[str]:
    """`["OP(m2)", "B(k4*n1)"]`, outer to inner, and the decoding level; a single word if no rank is compressed."""
    if not any(rank.format.compressed for rank in ranks):
        return ["uncompressed"]
    words = [f"{short[rank.format.name]}({'*'.join(map(loop_name, rank.loops))})" for rank in ranks]
    return [*words, *([f"decoded into {decoded}"] if decoded else [])]


def formats_of(design: Design) -> tuple[dict[str, str], dict[str, list[str]], list[str]]:
    """Short names by format name, `format_words` by tensor, and a legend of the short names in use."""
    problem = design.problem
    known: list[Any] = [*problem.candidates("format"), *problem.candidates("beyond-format")[:1]]
    short = symbols(known)
    ranks = {tensor.name: design.ranks(t) for t, tensor in enumerate(problem.tensors)}
    packed = [found for found in ranks.values() if any(rank.format.compressed for rank in found)]
    used = {rank.format.name for found in packed for rank in found}
    levels = [*(level.name for level in problem.levels), ""]  # none decodes
    decoded = [levels[design.decoded(t)] for t in range(len(ranks))]
    words = {name: format_words(found, short, into) for (name, found), into in zip(ranks.items(), decoded, strict=True)}
    return short, words, [f"{symbol} = {name}" for name, symbol in short.items() if name in used]


def mechanism_text(mechanism: Mechanism, place: Place, problem: Problem) -> str:
    """`Skip Q <- P`, `Gate P <-> Q`; several targets separated by commas; "" without a filter."""
    names, parts = [tensor.name for tensor in problem.tensors], []
    filters = problem.filters(mechanism, place)
    rules = [(rule.action, names[target], "+".join(names[t] for t in leaders)) for rule, target, leaders in filters]
    while rules:
        action, of, by = rules.pop(0)
        arrow = "<-"
        if (mirrored := (action, by, of)) in rules and of != by:
            rules.remove(mirrored)
            arrow = "<->"
        leads = f" {arrow} {by}" if of != by else ""  # packed by its own zeros
        parts.append(f"{action.capitalize()} {of}{leads}")
    return ", ".join(parts)


def named_mechanisms(design: Design) -> list[str]:
    """`PEB skip-all-16-ahead`: places with a mechanism name more specific than its filters."""
    problem, found = design.problem, []
    letters = {letter for tensor in problem.tensors for letter in tensor.name.lower()}
    for place in problem.places if "mechanisms" in design.batch.columns else ():
        mechanism = design.mechanism(place)
        words = re.findall(r"[a-z0-9]+", mechanism.name.lower())
        if problem.filters(mechanism, place) and any(word not in USUAL and set(word) - letters for word in words):
            found.append(f"{place.name} {mechanism.name}")
    return found


def own_pieces(design: Design) -> list[list[str]]:
    """Candidate formats and mechanisms that are not built in, with their uses in the design.

    Pieces made by a space belong to the space."""
    problem, chosen, known = design.problem, design.chosen, design.problem.registry

    def own(kind: str, name: str) -> bool:
        return known.has(kind, name) and not known.built_in(known.origin(kind, name))

    made = not known.has("space", problem.space_spec.name) or own("space", problem.space_spec.name)
    return [
        [name, ", ".join(chosen[kind].get(name, ())) or "used nowhere"]
        for kind in chosen
        for name in dict.fromkeys(piece.name for piece in problem.candidates(kind))
        if own(kind, name) or (made and not known.has(kind, name))
    ]


USUAL = ("skip", "gate", "by", "both", "all", "and")
"""Words in names of mechanisms that add nothing to the rules."""


def einsum_text(tensors: Sequence[Tensor]) -> str:
    """`Z[m, n] += P[m, k] * Q[k, n]`."""
    outputs = [tensor.text for tensor in tensors if tensor.output]
    operands = [tensor.text for tensor in tensors if not tensor.output]
    return f"{', '.join(outputs)} += {' * '.join(operands)}"


def problem_texts(problem: Problem) -> dict[str, str]:
    """The sizes of the dimensions, the densities and widths of the tensors, and the padded sizes."""
    densities = {x.name: x.density.occupancy(x.shape(problem.sizes)).density for x in problem.tensors}
    return {
        "sizes": ", ".join(f"{dim} {size}" for dim, size in problem.loops.sizes.items()),
        "density": ", ".join(f"{name} {100 * density:.3g} %" for name, density in densities.items()),
        "widths": _widths_text(problem),
        "padded": problem.padded_text,
    }


def _widths_text(problem: Problem) -> str:
    if not problem.tensor_bits.any():
        return ""
    from sparsemap.problem.widths import widths_text

    return widths_text(problem)


def wrapped(start: str, words: Sequence[str], width: int, between: str = " ") -> list[str]:
    """Words after a start, continued on aligned lines below; a word may contain blanks."""
    text, below = between.join(word.replace(" ", HARD_BLANK) for word in words), " " * len(start)
    whole: Any = {"break_long_words": False, "break_on_hyphens": False}
    lines = textwrap.wrap(text, width, initial_indent=start, subsequent_indent=below, **whole)
    return [line.replace(HARD_BLANK, " ") for line in lines]


def time_text(seconds: float) -> str:
    return scaled_text(seconds, "s")


def power_text(watts: float) -> str:
    return scaled_text(watts, "W")


def area_text(mm2: float) -> str:
    return f"{mm2:,.3g} mm2" if math.isfinite(mm2) else "-"


DENSEST_W_MM2 = 0.5
"""Power per area, without DRAM, from which a chip is doubted."""
CHIP_COSTS = {"seconds": time_text, "power_w": power_text, "area_mm2": area_text}
COST_NAMES = {"seconds": "time", "power_w": "power", "area_mm2": "area"}


def chip_text(costs: Mapping[str, float], units_mm2: float = 0.0) -> str:
    """`10.4 us, 25 W, 52.1 mm2`: costs derived from the chip; "" if none. `units_mm2`: sparse units beside the chip."""
    found = ", ".join(text(costs[name]) for name, text in CHIP_COSTS.items() if costs.get(name))
    return f"{found} + {area_text(units_mm2)} of sparse units" if found and units_mm2 else found


def density_text(problem: Problem, costs: Mapping[str, float], found: Breakdown) -> str:
    """A warning of more power per area on chip, without interfaces, than published chips have; empty below, or if unknown."""
    outside = {level.name for level in problem.levels if level.capacity_bits is None} | {"idle"}
    pj = math.fsum(math.fsum(spent.values()) for name, spent in found.energies.items() if name not in outside)
    seconds, area_mm2 = costs.get("seconds"), costs.get("area_mm2", 0.0) - float(problem.chip.interface_mm2)
    density = pj * 1e-12 / (seconds * area_mm2) if seconds and area_mm2 > 0 else 0.0
    text = f"{density:.2g} W/mm2 on chip, more than the {DENSEST_W_MM2} of the densest published chips"
    return text if density > DENSEST_W_MM2 else ""


def bandwidth_text(level: Level) -> str:
    """`read 8, write 4`, in words per cycle; "" without a limit."""
    known = {"read": level.read_bandwidth, "write": level.write_bandwidth, "both": level.bandwidth}
    return ", ".join(f"{name} {value:.4g}" for name, value in known.items() if value is not None)


def numbers_text(energy_pj: float, cycles: float) -> list[str]:
    """EDP, energy and cycles; dashes for an invalid design."""
    if not math.isfinite(energy_pj):
        return ["-", "-", "-"]
    return [f"{energy_pj * cycles:.3e}", format_energy(energy_pj), format_count(cycles)]


def change_text(new: float, old: float) -> str:
    """`-12.3 %`, or `57.3x` for a ratio of ten or more."""
    if not old:
        return "-"
    return f"{new / old:.3g}x" if new / old >= 10 else f"{100 * (new / old - 1):+.1f} %"
