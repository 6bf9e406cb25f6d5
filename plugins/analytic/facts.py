"""Build the constants of a problem, a model and a chip (`inner/facts.py`), and records for one design."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sparsemap import Mechanism
from sparsemap.pieces.contracts import box
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.chip import Chip

from .actions import Action
from .charges.alike import blocks_of, rarity
from .charges.maxima import DEVIATIONS, NORMAL, NORMAL_MAXIMA, lanes_for, limits_of, rank_of
from .inner import facts as records
from .inner import functions
from .prepared import ModelTables
from .prices import gated_extra, price, tree_sides
from .validity import data_words

PRICED = (
    "read", "write", "gated_read", "gated_update", "skipped_read", "skipped_update", "metadata_read", "metadata_write",
    "gated_metadata_read", "gated_metadata_update", "skipped_metadata_read", "skipped_metadata_update",
)  # fmt: skip
"""Actions of `Facts.price_pj`, row by row."""
TERMS = 2
"""Largest number of dimensions moving along a rank."""


def facts_of(known: ModelTables, chip: Chip, slots: int) -> Any:
    """Constants for the compiled chain. `slots`: formats per tensor in a genome."""
    facts = functions.Facts()
    for part in (_problem, _options, _formats, _actions, _bits, _chip, _waiting):
        for name, value in part(known, chip).items():
            kind = records.Facts.__annotations__[name]
            setattr(facts, name, value if kind in ("Real", "Whole") else _array(value, kind))
    facts.slots = slots
    return facts


def _array(value: Any, kind: str) -> Array:
    """Contiguous array of doubles or whole numbers."""
    return np.array(value, dtype=np.float64 if kind.startswith("Real") else np.int64, order="C")


def _or(level: int | None) -> int:
    return -1 if level is None else level


def _table(rows: Iterable[Iterable[Any]], width: int, fill: Any, kind: Any = np.int64) -> Array:
    """(n, width) array of rows, padded with `fill`."""
    lists = [list(row) for row in rows]
    found = np.full((len(lists), max(width, 1)), fill, dtype=kind)
    for row, values in zip(found, lists, strict=True):
        row[: len(values)] = values
    return found


def _problem(known: ModelTables, chip: Chip) -> dict[str, Any]:
    lay, problem, tensors = known.layout, known.layout.problem, range(known.layout.T)
    most = max(1, *(len(ranks) for ranks in lay.ranks))
    terms = np.zeros((lay.T, most), dtype=np.int64)
    dims, factors = np.zeros((lay.T, most, TERMS), dtype=np.int64), np.zeros((lay.T, most, TERMS))
    for t, ranks in enumerate(lay.ranks):
        for r, rank in enumerate(ranks):
            terms[t, r] = len(rank)
            for i, (d, factor) in enumerate(rank):
                dims[t, r, i], factors[t, r, i] = d, factor
    levels = range(lay.S)
    joint = known.joint
    shares = {t: 1.0 if joint is None else joint.share([t]) for t in tensors}
    kept = [[there is not None for there in gaps] for gaps in lay.gaps]
    residents = {t: room for (t, _), room in problem.resident.items()}
    unnamed = [t in residents and lay.tensors[t].name not in problem.workload.resident_words for t in tensors]
    return {
        "D": lay.D, "T": lay.T, "S": lay.S, "L": len(problem.mapping_levels), "output": lay.output,
        "operand": lay.operands, "sizes": lay.sizes, "ends": lay.ends, "ragged": int(lay.ragged),
        "temporal": lay.temporal, "spatial": [_or(group) for group in lay.spatial], "block": lay.block,
        "inwards": lay.inwards, "relevant": lay.relevant, "ranks": [len(ranks) for ranks in lay.ranks], "terms": terms,
        "term_dim": dims, "term_factor": factors, "windowed": lay.windowed, "strided": lay.holes,
        "by_shape": [table.by_shape for table in known.tables], "stored": lay.stored, "streamed": lay.streamed,
        "parent": [[_or(lay.parent(t, s)) for s in levels] for t in tensors],
        "child": [[_or(lay.child(t, s)) for s in levels] for t in tensors],
        "spans": [[lay.spans(t, s) for s in levels] for t in tensors],
        "innermost": [lay.innermost(t) for t in tensors], "home": list(problem.homes), "linked": lay.linked,
        "slides": [problem.slides.get(t, -1) for t in tensors], "room": [residents.get(t, np.nan) for t in tensors],
        "turned": unnamed, "volumes": [float(np.prod(box(ranks, lay.sizes))) for ranks in lay.ranks],
        "copies": np.ones((lay.T, lay.S)) if known.copies is None else known.copies,
        "gaps": _table(kept, most, 0), "cut": lay.cut,
        "density": [float(occupancy.density) for occupancy in lay.occupancies],
        "rounded": [float(np.floor(1e6 * occupancy.density + 0.5) / 1e6) for occupancy in lay.occupancies],
        "joint": int(joint is not None), "actual": [joint is not None and t in joint.tensors for t in tensors],
        "own_nonzeros": [float(shares[t]) for t in tensors],
        "nonzeros": np.full((2, 2), 0.0 if joint is None else joint.share(lay.operands)),
        "decodes": np.append(problem.decodes.T, np.ones((lay.T, 1), dtype=bool), axis=1),
        "recoding_pj": problem.recoding_pj, "recodes": int(problem.recoding_pj.any()),
    }  # fmt: skip


def _options(known: ModelTables, chip: Chip) -> dict[str, Any]:
    options, quirks = known.options, known.quirks
    named = ("gate_time", "positions", "drains", "sums", "holes", "filter_metadata", "stay", "pointers",
             "imbalance", "shared_words", "vectors", "intersection", "overlap", "leakage", "gated", "network")  # fmt: skip
    found = {name: int(getattr(options, name)) for name in named}
    found["vectors"] = int(options.vectors and known.layout.problem.levels[-1].memory.vectors)
    numbered = {name.lower(): int(name in quirks) for name in ("Q7", "Q8", "Q11", "Q16", "Q17", "Q18")}
    others = ("first-fills", "short-tiles", "window-positions")
    return found | numbered | {name.replace("-", "_"): int(name in quirks) for name in others}


def _formats(known: ModelTables, chip: Chip) -> dict[str, Any]:
    forms = known.formats
    alone = (forms.block > 1) | forms.padded | np.array([form.group > 1 for form in forms.formats], dtype=bool)
    return {
        "beyond": forms.beyond, "compressed": forms.compressed, "padded": forms.padded, "anywhere": forms.anywhere,
        "payload_links": forms.linked, "offsets": forms.offsets, "needs_ends": forms.needs_ends,
        "own_offsets": forms.own_offsets, "of_one_word": forms.of_one_word, "flattened": forms.flattened,
        "alone": alone, "form_block": forms.block, "form_group": forms.group, "asked": forms.row,
        "pads": int(forms.pads), "every_fiber": int(forms.every_fiber), "grouped": int((forms.group > 1).any()),
    }  # fmt: skip


def actions_of(known: ModelTables) -> list[Action]:
    """Filters at storage, from inner to outer places; then the compute unit's action, if the problem has a place for
    it."""
    places = known.places
    at_storage = [action for action in places.actions if action.place.storage is not None]
    unit = [] if places.compute is None else [places.compute]
    return sorted(at_storage, key=lambda action: -(action.place.storage or 0)) + unit


def _actions(known: ModelTables, chip: Chip) -> dict[str, Any]:
    lay, places, actions = known.layout, known.places, actions_of(known)
    count, T, joint = max(1, len(places.mechanisms)), lay.T, known.joint
    levels = [action.place.storage for action in actions]
    holders = [[] if s is None else [lay.holder(c, s) for c in a.leaders] for a, s in zip(actions, levels, strict=True)]
    target = [0 if s is None else lay.holder(a.target, s) for a, s in zip(actions, levels, strict=True)]
    rules = [[action.filters.get(m) for m in range(count)] for action in actions]
    own = [[m in a.filters and _speaks(places.mechanisms[m]) for m in range(count)] for a in actions]
    led = []
    for action in actions:
        mine = [c for c in action.leaders if joint is not None and c in joint.tensors]
        led.append(
            (joint.share(mine), joint.share([action.target, *mine])) if joint is not None and mine else (-1.0, -1.0)
        )
    needs = [(gene, t, needy, lay.problem.places[gene].storage) for gene, t, needy in places.needs]
    deals = sorted(places.deals, key=lambda deal: deal.level)
    whole, real = np.int64, np.float64
    return {
        "filters": len(actions) - (places.compute is not None),
        "unit": -1 if places.compute is None else places.compute.gene,
        "gene": _list(action.gene for action in actions), "target": _list(action.target for action in actions),
        "level": _list(target), "place": _list(0 if s is None else s for s in levels),
        "leaders": _list(len(action.leaders) for action in actions),
        "leader": _table((action.leaders for action in actions), T, 0), "holder": _table(holders, T, 0),
        **{name: _table((getattr(a, name) for a in actions), count, 0, whole) for name in ("kind", "blind", "passes")},
        "entries": _table((a.entries & known.options.intersection for a in actions), count, 0, whole),
        "own_share": _table(own, count, 0), "width": _table((a.width for a in actions), count, np.inf, real),
        "lookahead": _table([[rule.lookahead or 0.0 if rule else 0.0 for rule in row] for row in rules], count, 0.0, real),
        "effectiveness": _table([[rule.effectiveness if rule else 1.0 for rule in row] for row in rules], count, 1.0, real),
        "unit_pj": np.array([float(chip.unit_pj) * x.unit_macs for x in places.mechanisms] or [0.0]),
        "led_nonzeros": _table(led, 2, -1.0, real),
        "need_place": _list(gene for gene, *_ in needs), "need_tensor": _list(t for _, t, *_ in needs),
        "need_level": _list(lay.innermost(t) if s is None else lay.holder(t, s) for _, t, _, s in needs),
        "needy": _table((needy for _, _, needy, _ in needs), count, 0),
        "deals": len(deals), "deal_level": _list(deal.level for deal in deals),
        "deal_gene": _list(deal.gene for deal in deals), "deal_target": _list(deal.target for deal in deals),
        "deal_leaders": _list(len(deal.leaders) for deal in deals),
        "deal_leader": _table((deal.leaders for deal in deals), T, 0),
        "deal_packs": _list(deal.packs for deal in deals), "deal_chosen": _table((deal.chosen for deal in deals), count, 0),
    }  # fmt: skip


def _list(values: Iterable[Any]) -> Array:
    return np.array(list(values), dtype=np.int64)


def _speaks(mechanism: Mechanism) -> bool:
    """Whether a plugin overrides the share removed by the mechanism."""
    return type(mechanism).eliminated is not Mechanism.eliminated


def _bits(known: ModelTables, chip: Chip) -> dict[str, Any]:
    lay, at = known.layout, {name: i for i, name in enumerate(known.reasons.names)}
    groups = [(m.spatial, chip.names[m.storage]) for m in lay.problem.mapping_levels]
    tensors = {"slides": "slides", "order": "format-order", "entry": "entry-bits", "decoding": "decoding",
               "streaming": "streaming", "probability": "operand-probability"}  # fmt: skip
    return {
        "factor_bit": [at[f"factors:{dim}"] for dim in lay.dims],
        "fanout_bit": [at[f"fanout:{name}"] if spatial else -1 for spatial, name in groups],
        "place_bit": _list(at[f"mechanism:{place.name}"] for place in lay.problem.places),
        "capacity_bit": [at.get(f"capacity:{name}", -1) for name in chip.names],
        "metadata_bit": [at.get(f"metadata-capacity:{name}", -1) for name in chip.names],
        **{f"{own}_bit": [at.get(f"{name}:{t.name}", -1) for t in lay.tensors] for own, name in tensors.items()},
    }


def _chip(known: ModelTables, chip: Chip) -> dict[str, Any]:
    compute, levels = float(chip.mac_pj["compute"]), known.layout.problem.levels
    extra = [gated_extra(chip, action) for action in ("read", "update", "metadata_read", "metadata_update")]
    reals = {name: np.asarray(getattr(chip, name), dtype=np.float64) for name in (
        "fanout", "capacity_bits", "metadata_capacity_bits", "word_bits", "access_words", "metadata_width",
        "read_bandwidth", "write_bandwidth", "bandwidth", "queue_pj", "leakage_mw", "asleep",
    )}  # fmt: skip
    charged, memories = known.options.shared_words, [level.memory for level in levels]
    alone = [charged and memory.shared_words == "separate" for memory in memories]
    waits = [charged and not (own or memory.shares_work) for own, memory in zip(alone, memories, strict=True)]
    width, output = known.layout.problem.widths(chip), known.layout.output
    own = bool(known.layout.problem.tensor_bits[output].any())
    bits = [width[output, s] * reals["word_bits"][s] for s in range(len(chip)) if known.layout.stored[output, s]]
    return reals | {
        "word_width": width, "widens": int(own and bits != sorted(bits, reverse=True)),
        "queue": [x.queue_words if wait else np.inf for x, wait in zip(memories, waits, strict=True)], "separate": alone,
        "data_words": [float(data_words(chip, s)) for s in range(len(chip))], "shared": chip.shared_capacity,
        "cluster": [float(level.memory.cluster) for level in levels], "sight": chip.lookahead,
        "instances": chip.instances[:-1].astype(np.float64),
        "price_pj": np.concatenate([price(chip, action).T for action in PRICED]),
        "extra_pj": np.concatenate([part.T for part in extra]),
        "decode_pj": chip.energy_pj["decode"], "encode_pj": chip.energy_pj["encode"],
        "add_word_pj": chip.add_pj,
        "side_mm": [float(side) for side in tree_sides(chip)], "mac_pj": compute,
        "mac_gated_pj": float(chip.mac_pj["gated"]), "mac_skipped_pj": float(chip.mac_pj["skipped"]),
        "mac_extra_pj": max(0.0, float(chip.gated_residual) * compute - float(chip.mac_pj["gated"])),
        "mac_passed_pj": float(chip.gated_residual) * compute, "wire_pj": float(chip.wire_pj_per_bit_mm),
        "clock_hz": float(chip.clock_hz),
    }  # fmt: skip


def _waiting(known: ModelTables, chip: Chip) -> dict[str, Any]:
    lay, problem = known.layout, known.layout.problem
    shares = [level.memory.shares_work for level in problem.levels]
    most = max(1, *(len(ranks) for ranks in lay.ranks))
    words = [lay.alike.get(t, ()) for t in lay.operands]
    return {
        "buffers": problem.buffers, "steals": shares,
        "sharing": int(any(own and group is not None for own, group in zip(shares, lay.spatial, strict=True))),
        "rank_of": [rank_of(lay, t) for t in range(lay.T)],
        "limits": _table((limits_of(known, t) for t in lay.operands), most, 1.0, np.float64),
        "alike": [t in lay.alike for t in lay.operands], "alike_words": _table(words, most + 1, 1.0, np.float64),
        "rarity": [rarity(lay.occupancies[t].density) for t in lay.operands],
        "block_steps": [blocks_of(lay, t) for t in lay.operands], "lanes": lanes_for(float(chip.instances[-1].max())),
        "deviations": DEVIATIONS, "normal_means": NORMAL_MAXIMA[0], "normal_deviations": NORMAL_MAXIMA[1],
        "normal_at": NORMAL[0], "normal_below": NORMAL[1],
    }  # fmt: skip


def room_for(facts: Any, places: int) -> tuple[Any, Any, Any]:
    """Records of one design, of the counts with all filters, and of the counts with the filters saving time. `places`:
    number of places of mechanisms."""
    D, T, S, L, O = facts.D, facts.T, facts.S, facts.L, facts.T - 1
    P, R, F, A = L * D + 1, max(D, 1) + 1, max(1, facts.filters) + 1, max(1, places)
    sizes = {
        "bound": (L, D), "product": (L,), "needed": (L,), "extent": (S + 1, D), "around": (S, D),
        "words": (T, S + 1), "used": (S + 1,), "steps": (S,), "loop_bound": (P,), "digit": (L, D), "own_share": (S, D),
        "delivered": (S,), "accesses": (S,), "partition": (S,), "leaving": (S,), "moved": (2, R), "rank_bound": (T, P),
        "rank_inside": (T, P + 1, D), "granule_extent": (T, D), "part": (7, D), "factor": (D,), "factor_beyond": (D,),
        "effect": (F,), "effect_access": (F,), "effect_fill": (F,), "effect_empty": (F, T), "effect_words": (F, T),
        "scan_bound": (P,), "stays": (D,), "entry": (T * S * P, 6), "rank_box": (P + 1, R), "rank_below": (P + 1, R),
        "rank_group": (P + 1, R), "unit_cycles": (A,), "rank_length": (P + 1,), "rank_longest": (P + 1,),
        "rank_positions": (P + 1,), "tile": (R,), "needed_share": (S, T),
        "led_share": (S, T), "state": (3, O), "level_cycles": (S,), "slowdown": (S,), "waits": (A,), "compared": (A,),
        "entry_chance": (A, T), "comparator": (A,), "list_step": (T,), "none_here": (T,), "looks": (O,), "held": (S, T, D),
        "step_words": (O,), "unit_words": (O,), "group_bound": (P,),
        "inside": (S, D), "along_stride": (P,), "along_bound": (P,), "along_every": (P,), "point_ratio": (T * S + 2,),
        "point_turns": (T * S + 2,), "point_units": (T * S + 2,), "point_loop": (T * S + 2, P), "box": (O, R),
        "wide": (O, D), "least": (O,), "lanes": (O,), "pairs": (O, O), "apart": (3, D),
        "threshold": (2, 2 * functions.TAILS * (20 * O + functions.TAILS)), "chance": (functions.TAILS,), "growth": (4, 4),
        "met": (functions.MOST_MET + 1,), "met_share": (functions.MOST_MET + 1,), "merged": (3, functions.MERGED),
    }  # fmt: skip
    for name in ("gives", "gets", "distinct", "reads", "fills", "updates", "brought", "most", "occupied", "kept", "largest_bits",
                 "active", "demand_read", "demand_written", "demand_filled", "filled", "drained", "sent", "got", "tile_pj",
                 "mean_share", "most_share", "word_width"):  # fmt: skip
        sizes[name] = (T, S)
    for name in (
        "granule_density",
        "granule_width",
        "granule_length",
        "dealt",
        "passes",
        "emptied",
        "pace",
        "each",
        "turn",
    ):
        sizes[name] = (T,)
    wholes = {
        "order": (L, D), "slot": (T, facts.slots), "chosen": (A,), "decoded": (T,), "packed": (T, S), "loop_dim": (P,),
        "loop_block": (P,), "loop_spatial": (P,), "moves": (T, S), "leads": (D,), "outside": (S + 1,), "ranks": (T,),
        "form": (T, P), "rank_block": (T, P), "rank_dim": (T, P), "level_ranks": (T, S), "granule": (T,),
        "granule_dim": (T,), "granule_outer": (T,), "acts": (F,), "saves": (F,), "looked": (T, S), "scan": (3, P),
        "begin": (T, S), "end": (T, S), "entry_place": (T * S * P,), "rank_pointed": (P + 1,), "rank_row": (P + 1,),
        "rank_key": (P + 1,), "grows": (S, T), "along_dim": (P,), "along_block": (P,), "known": (O,), "several": (O,),
    }  # fmt: skip
    design = _with_room(functions.OneDesign(), sizes, wholes)
    reals = ("read", "fill", "update", "gone_read", "gone_update", "read_bits", "fill_bits", "update_bits", "gone_read_bits",
             "gone_update_bits", "share", "accessed", "filled", "own", "comes", "goes")  # fmt: skip
    counts = dict.fromkeys(reals, (T, S)) | {"leaving": (S,), "led": (T, T, S), "scale": (3, S), "there": (O,)}
    counts["ranks"] = (T * S * P, 10)
    every, timed = (_with_room(functions.Counts(), counts, {"kind": (T, S), "impossible": (O,)}) for _ in range(2))
    return design, every, timed


def _with_room(record: Any, reals: dict[str, tuple[int, ...]], wholes: dict[str, tuple[int, ...]]) -> Any:
    for sizes, kind in ((reals, np.float64), (wholes, np.int64)):
        for name, size in sizes.items():
            setattr(record, name, np.zeros(size, dtype=kind))
    return record
