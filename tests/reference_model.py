"""Scalar reference of the analytical cost model: one design point at a time, written for reading.

`evaluate(case)` takes a case as one line of `conformance/cases-*.jsonl` holds it and returns what its `ref` holds.
The section numbers in the comments are those of the cost model specification. Levels are numbered from the innermost
(0) outwards, loops are listed innermost first. Block size 1, one cluster, one spatial axis, no link transfers.

`quirks` chooses between the evaluator's peculiarities ("timeloop-v3") and the intended behaviour ("none"); a set of
names out of Q3, Q4, Q7, Q8, Q9, Q11, Q16 keeps just those.

Run as a program it compares case files with their `ref` and prints the agreement per file.
"""

import itertools
import json
import math
import sys
import time
from dataclasses import dataclass, field

import reference_compute
from reference_compute import six_decimals
from reference_design import COMPRESSED, Design, Invalid, Rank, Tensor

ALL_QUIRKS = frozenset({"Q3", "Q4", "Q7", "Q8", "Q9", "Q11", "Q16", "Q17", "Q18", "window-positions"})
KINDS = ("read", "fill", "update")


def round_half_away(x):
    return math.floor(x + 0.5) if x >= 0 else -math.floor(-x + 0.5)


@dataclass
class Counts:
    """What one instance of a level does for one tensor; triples are [actual, gated, skipped]."""

    tensor: Tensor
    level: int
    dense: dict  # read, fill, update of the dense design
    temporal_reductions: int
    tile: int
    ranks: list
    instances: float
    expected: list = field(default_factory=list)  # expected units per rank
    largest: list = field(default_factory=list)  # units per rank of the fullest tile
    words_max: int = 0
    width: float = 1.0  # words of the level per word of the tensor
    number: str = ""  # name of the number format
    recoding: float = 0.0  # energy of decoding and encoding words, of all instances
    data: dict = field(default_factory=dict)  # kind -> triple
    metadata: dict = field(default_factory=dict)  # kind -> triple of [metadata, payload] per rank

    def metadata_bits(self, kind, which):
        return sum(rank.bits(units) for rank, units in zip(self.ranks, self.metadata[kind][which], strict=True))


# ---------------------------------------------------------------------------------------------------------------------
# Section 4: dense traffic


def delivered(design, tensor, level):
    """4.1: words one child instance receives from `level` over the whole run."""
    if level == 0:
        return design.iterations
    box = tensor.box(design.extents(level - 1))
    tile = math.prod(box)

    def new_words(shift):
        return tile - math.prod(max(0, width - abs(step)) for width, step in zip(box, shift, strict=True))

    above = [loop for loop in design.block(level, design.count - 1) if not loop.spatial and loop.bound > 1]
    total, returned, first = tile, tuple(0 for _ in box), None
    for j, loop in enumerate(above):
        # when loop j advances, all loops inside it restart
        shift = tuple(a - b for a, b in zip(tensor.shift(loop), returned, strict=True))
        returned = tuple(a + b for a, b in zip(returned, tensor.shift(loop), strict=True))
        first = first or shift
        times = (loop.bound - 1) * math.prod(outer.bound for outer in above[j + 1 :])
        total += times * (new_words(shift) if shift == first else tile)
    return total


def distinct_displacements(design, tensor, level):
    """4.2: how many different tiles the children of one instance work on; equal ones share one access."""
    places = {tuple(0 for _ in tensor.projection)}
    for loop in design.block(level):
        if loop.spatial and loop.bound > 1:
            shifts = [tensor.shift(loop, i) for i in range(loop.bound)]
            places = {tuple(a + b for a, b in zip(place, shift, strict=True)) for place in places for shift in shifts}
    return len(places)


def dense_counts(design, tensor):
    """4.3 to 4.5: level -> ({read, fill, update}, temporal reductions) of one instance."""
    everywhere = range(design.count)
    share = [delivered(design, tensor, s) for s in everywhere]  # share[s]: what a child exchanges with level s
    accesses = [share[s] * distinct_displacements(design, tensor, s) for s in everywhere]
    spread = [math.prod(loop.bound for loop in design.block(s) if loop.spatial) for s in everywhere]
    stored = design.stored[tensor.name]
    for s in everywhere:
        if s not in stored and s < design.home[tensor.name]:  # its accesses go to the next level out
            accesses[s + 1] *= accesses[s] * spread[s + 1] / (share[s + 1] * spread[s + 1])
    part = [tensor.volume(design.extents(s)) for s in everywhere]
    for s in reversed(range(design.count - 1)):
        spatial = [loop for loop in design.block(s + 1) if loop.spatial and loop.bound > 1]
        part[s] = part[s + 1] * part[s] // tensor.volume(spatial[-1].extents) if spatial else part[s + 1]
        if s >= design.home[tensor.name]:
            part[s] = part[-1]

    counts = {}
    for s in stored:
        outermost = s == stored[-1]
        exchanged = 0 if outermost else share[s + 1]
        if tensor.is_output:
            # every arriving partial sum is an update; all but the first of a word are read before; a tile is
            # fetched back except its first time (a strided output has holes, and then fewer arrive than it has words)
            reads = max(0, round_half_away(accesses[s] - part[s]))
            fills = 0 if outermost else max(0, round_half_away(exchanged - part[s]))
            counts[s] = {"read": reads, "fill": fills, "update": round_half_away(accesses[s])}, reads
        else:
            counts[s] = {"read": round_half_away(accesses[s]), "fill": math.trunc(exchanged), "update": 0}, 0
    return counts


# ---------------------------------------------------------------------------------------------------------------------
# Section 6: formats


def raised_width(bits, access_bits):
    """6.2: a width has to divide the width of a metadata access."""
    return next((width for width in range(bits, 2 * bits + 1) if width and access_bits % width == 0), bits)


def build_ranks(design, tensor, level):
    """6.1: which loops each rank covers."""
    access_bits = design.hardware["metadata_width_bits"]
    ranks = [
        Rank(name, raised_width(metadata, access_bits), raised_width(payload, access_bits))
        for name, metadata, payload, *_ in design.formats(tensor, level)
    ]
    several = [row[3] if len(row) > 3 else 1 for row in design.formats(tensor, level)]  # loops that a rank takes
    if not ranks:
        return []
    child = design.child(tensor, level)
    inner = design.extents(child)
    span = design.span(tensor, level)
    loops = [loop for loop in design.block(child + 1, span)[::-1] if loop.dim in tensor.dims]  # outermost first
    below = []
    if design.is_compressed(tensor, level) and child >= 0 and tensor.volume(inner) > 1:  # pre-tiled
        bounds = [loop.bound for loop in loops]
        below = build_ranks(design, tensor, child)
        theirs = [rank.format for rank in below]
        if not below:  # decoded on its way: the tile is one rank
            below = [Rank("", 0, 0)]
            below[0].length, below[0].box = tensor.volume(inner), tensor.box(inner)
        elif len(below) > len(ranks) or theirs != [rank.format for rank in ranks[len(ranks) - len(below) :]]:
            raise Invalid("format_mapping", design.names[level])
    else:  # the ranks cover the whole tile: the innermost loop of a dim takes over what lies further in
        innermost = {loop.dim: loop for loop in loops}
        bounds = [loop.bound * (inner.get(loop.dim, 1) if loop is innermost[loop.dim] else 1) for loop in loops]
    single = [(loop, bound) for loop, bound in zip(loops, bounds, strict=True) if bound > 1]
    own = len(ranks) - len(below)
    covered = []
    for count in several[:own]:
        covered += [single[:count]] if single else []
        single = single[count:]
    if single:
        raise Invalid("format_mapping", design.names[level])
    for index, rank in enumerate(ranks):
        if index < len(covered):
            bounds = {}
            for loop, bound in covered[index]:
                bounds[loop.dim] = bounds.get(loop.dim, 1) * bound
            rank.length = tensor.volume(bounds)
            rank.box = tensor.box(covered[index][0][0].extents)
        elif index < own:  # left over: a fiber of one position
            rank.box = tensor.box(covered[-1][-1][0].extents if covered else inner)
        else:
            rank.length, rank.box = below[index - own].length, below[index - own].box
        rank.max_fibers = math.prod(outer.length for outer in ranks[:index])
    if "window-positions" not in design.quirks:  # a rank cuts the words of its box into those below a position
        tile = math.prod(tensor.box(design.extents(span)))
        for rank, below in zip(ranks, [*(rank.box for rank in ranks[1:]), [1] * len(ranks[0].box)], strict=True):
            rank.length = math.prod(math.ceil(outer / inner) for outer, inner in zip(rank.box, below, strict=True))
            rank.max_fibers = tile / math.prod(rank.box)
    return ranks


def metadata_units(ranks, model, box, k):
    """6.2: [metadata, payload] units of every rank for a tile with k nonzeros."""
    word = [1] * len(box)
    # chance that the tile under a fiber is empty; for the top rank that is the whole tile, so 1 if k is 0 and else 0
    # (but not for banded tensors with Q4)
    empty = [model.empty_given(below, box, k) for below in (box, *(rank.box for rank in ranks[1:]), word)]
    units = []
    for index, rank in enumerate(ranks):
        fibers = rank.max_fibers * (1 - empty[index])
        positions = rank.length * (1 - empty[index + 1])
        if index > 0 and rank.length == 1:
            units.append([0.0, 0.0])
        elif rank.format in ("UOP", "U"):
            units.append([0.0, fibers * (rank.length + 1)])
        elif rank.format == "B":
            units.append([fibers * rank.length, fibers * math.ceil(positions)])
        elif rank.format == "CP":
            units.append([fibers * math.ceil(positions)] * 2)
        elif rank.format == "RLE":
            units.append([fibers * positions] * 2)
        else:  # UB
            units.append([float(rank.max_fibers * rank.length)] * 2)
    for unit in reversed(units):
        if any(unit):  # the payload of the lowest rank in use is the data itself
            unit[1] = 0.0
            break
    return units


def sparse_counts(design, tensor, level, dense, temporal_reductions):
    """5.6 and 6.3, 6.4: occupancy, metadata and counts of one level before any action."""
    model, box = tensor.model, tensor.box(design.extents(design.span(tensor, level)))
    tile, ranks = math.prod(box), build_ranks(design, tensor, level)
    counts = Counts(tensor, level, dense, temporal_reductions, tile, ranks, design.instances[level])
    counts.words_max = tile
    counts.data = {kind: [dense[kind], 0, 0] for kind in KINDS}
    if not design.is_sparse:
        return counts
    smallest, largest = model.smallest(box), model.largest(box)
    table = [(k, p) for k, p in model.occupancies(box) if p and smallest <= k <= largest]
    held = (
        level
        if "Q18" not in design.quirks and design.parent(tensor, level) is not None
        else design.parent(tensor, level)
    )
    if design.formats(tensor, held) and table:  # empty tiles are never sent
        # Q3: what is dropped is the first occupancy of the table, whether it is 0 or not
        dropped = smallest == 0 if "Q3" in design.quirks else table[0][0] == 0
        if dropped:
            sent = 1 - table[0][1]
            counts.instances *= sent
            table = [(k, p / sent) for k, p in table[1:]] if sent else []
    occupancy = 0.0
    for k, p in table:
        occupancy += p * k
    if counts.ranks:
        counts.words_max = largest
        counts.largest = metadata_units(counts.ranks, model, box, largest)
        counts.expected = [[0.0, 0.0] for _ in counts.ranks]
        for k, p in table:
            for total, units in zip(counts.expected, metadata_units(counts.ranks, model, box, k), strict=True):
                total[0] += p * units[0]
                total[1] += p * units[1]
        zeros = 1 - occupancy / counts.tile
        for kind in KINDS:
            amount = dense[kind]
            counts.data[kind][0] = amount - math.floor(amount * zeros)
            tiles = amount / counts.tile  # how often the whole tile is streamed
            accesses = [[math.ceil(unit * tiles) for unit in units] for units in counts.expected]
            counts.metadata[kind] = [accesses, *([[0, 0] for _ in counts.ranks] for _ in range(2))]
    return counts


# ---------------------------------------------------------------------------------------------------------------------
# Section 7: gating and skipping


def eliminated_share(design, level, action):
    """7.1: (level that acts, share of the target's accesses an action eliminates, chance that each leader is empty)."""
    tensors = {t.name: t for t in design.tensors}
    target = tensors[action["target"]]
    acting = level if level in design.stored[target.name] else design.parent(target, level)
    child = design.child(target, acting)
    loops = design.block(child + 1, acting)

    found = None
    if child >= 0:
        found = next((loop for loop in loops if loop.bound > 1 and loop.dim in target.dims), None)
    else:
        lowest = design.block(0)
        for loop, outer in itertools.pairwise(lowest):
            if not outer.spatial or (loop.spatial and loop.bound > 1 and loop.dim in target.dims):
                found = loop
                break
    found = found or loops[-1]
    scalar = child < 0 and not found.spatial  # one operation at a time
    base = dict.fromkeys(design.dims, 1) if scalar else found.extents

    region, enlarging, stationary = dict(base), [found], found.spatial and child >= 0
    for loop in loops[loops.index(found) + 1 :]:
        if loop.bound == 1:
            continue
        if loop.spatial or (stationary and loop.dim not in target.dims):
            region[loop.dim] *= loop.bound
            enlarging.append(loop)
        elif loop.dim in target.dims:  # here the stationary run of the tile ends
            stationary = False

    effectual, leaders = 1.0, {}
    for name in action["on"]:
        empty = leader_emptiness(design, target, tensors[name], base, region, [] if scalar else enlarging)
        effectual *= 1 - empty
        leaders[name] = empty
    return acting, 1 - effectual, leaders


def leader_emptiness(design, target, leader, base, region, enlarging):
    """7.1: chance that the words of the leader that one access of the target meets are all zero."""
    shared = target.dims & leader.dims
    region, divided, together = dict(region), {}, 1
    for loop in enlarging:
        if enlarging[0].spatial and divided and loop.dim in leader.dims:
            return 0.0  # ineffective: accesses for different leader tiles are mixed
        if loop.dim in shared:
            divided[loop.dim] = divided.get(loop.dim, 1) * loop.bound
            together *= loop.bound
    needed = math.ceil(1 / (target.volume(base) / together))
    for dim in design.dims:
        if dim in divided:
            region[dim] = math.ceil(region[dim] / (divided[dim] / needed))
            needed = needed / divided[dim]
    if needed > 1 and enlarging:
        region[enlarging[0].dim] = math.trunc(region[enlarging[0].dim] * needed)
    return leader.model.empty(leader.box(region))


def chosen_actions(design):
    """7.1: (tensor, level) -> (kind, share, leaders), gating before skipping, from inner to outer level."""
    chosen = {}
    for kind in ("gate", "skip"):
        for level in range(design.count):
            for action in design.actions(level):
                lives = min(design.home[name] for name in (action["target"], *action["on"]))
                if action["type"] == kind and level <= lives:  # no tensor filters or is filtered outside its home
                    acting, share, leaders = eliminated_share(design, level, action)
                    key = action["target"], acting
                    if key not in chosen or share > chosen[key][1]:
                        chosen[key] = kind, share, leaders
    return chosen


def remove(units, share):
    """Accesses that never happen, per rank."""
    return [[x - math.floor(x * share) for x in unit] for unit in units]


def split(design, counts, by_level, kind, share):
    """7.2(3): a part of the accesses of a level is gated or skipped instead of done."""
    which = 1 if kind == "gate" else 2

    def gone(x, rounding=math.floor):
        return rounding(x * share)

    for name in ("read", "update"):
        triple = counts.data[name]
        amount = gone(triple[0], math.ceil if counts.tensor.is_output and name == "read" else math.floor)
        triple[0] -= amount
        triple[which] = amount % 2**64  # Q11: a negative share wraps around in the evaluator's counters
    child = design.child(counts.tensor, counts.level)
    below = len(by_level[child].ranks) if child >= 0 else len(counts.ranks)
    if "Q17" not in design.quirks:
        below = max(below, 1)
    for name in ("read", "update"):
        for index in range(len(counts.ranks) - min(below, len(counts.ranks)), len(counts.ranks)):
            actual = counts.metadata[name][0][index]
            amount = [gone(x) for x in actual]
            counts.metadata[name][0][index] = [x - y for x, y in zip(actual, amount, strict=True)]
            counts.metadata[name][which][index] = [x % 2**64 for x in amount]


def apply_actions(design, tensor, by_level, actions):
    """7.2: combine the actions on one tensor from outer to inner; the action that reaches the MACs, or None."""
    stored, done, at_compute = design.stored[tensor.name], set(), None
    for level in reversed(stored):
        if (tensor.name, level) not in actions:
            continue
        kind, share, _ = actions[tensor.name, level]
        for inner in [s for s in reversed(stored) if s < level]:
            counts = by_level[inner]
            for triple in counts.data.values():
                triple[0] -= math.floor(triple[0] * share)
            acts_too = (tensor.name, inner) in actions
            if counts.ranks:
                if "Q7" not in design.quirks:
                    for triple in counts.metadata.values():
                        triple[0] = remove(triple[0], share)
                elif len(by_level[level].ranks) == 1:
                    for name in ("read", "fill"):
                        triple = counts.metadata[name]
                        triple[0][:1] = remove(triple[0][:1], share)
                if acts_too and "Q8" in design.quirks:
                    counts.metadata["read"][0] = [list(unit) for unit in counts.metadata["update"][0]]
            if acts_too:
                inner_kind, inner_share, _ = actions[tensor.name, inner]
                left = 1 - (1 - inner_share) / (1 - share) if share < 1 else 0.0  # of what still arrives
                split(design, counts, by_level, inner_kind, left if "Q11" in design.quirks else max(left, 0.0))
                done.add(inner)
                break
        else:
            at_compute = actions[tensor.name, level]
        if level not in done:
            split(design, by_level[level], by_level, kind, share)
    return at_compute


def compute_triple(design, at_compute):
    """7.2(4) and 7.3: [actual, gated, skipped] computes of the whole chip."""
    total = design.macs * design.iterations
    if not design.is_sparse:
        return [total, 0, 0]
    operands = [t for t in design.tensors if not t.is_output]
    if len(operands) != 2:
        number = {t.name: position for position, t in enumerate(operands)}
        rows = []
        for t in operands:
            action = at_compute.get(t.name)
            if action is not None:
                action = (*action[:2], {number.get(name, name): empty for name, empty in action[2].items()})
            has_metadata = bool(design.formats(t, design.stored[t.name][0]))
            rows.append((t.model.scalar_density, has_metadata, action))
        return reference_compute.triple(total, rows, design.sparse.get("compute"), "Q16" in design.quirks)
    shares = {name: action[1] for name, action in at_compute.items() if action is not None}
    for tensor in operands:
        if shares.get(tensor.name) is not None:
            total -= math.floor(total * shares[tensor.name])
    states = []
    for tensor, other in zip(operands, reversed(operands), strict=True):
        nonzero = six_decimals(tensor.model.scalar_density)
        if shares.get(other.name) is not None:
            # what was filtered on this tensor no longer meets an empty word of it
            present = 1 - six_decimals(shares[other.name])
            nonzero = nonzero / present if present else 1.0
        if nonzero > 1 + 1e-5 and "Q9" in design.quirks:
            raise Invalid("abort")
        nonzero = min(nonzero, 1.0)
        rest = "absent" if design.formats(tensor, design.stored[tensor.name][0]) else "zero"
        states.append({"nonzero": nonzero, "zero": 0.0, "absent": 0.0} | {rest: 1 - nonzero})
    first, second = states

    def met(a, b):
        chance = first[a] * second[b]
        return total * (chance if a == b else chance + first[b] * second[a])

    present_zero = met("nonzero", "zero") + met("zero", "zero")
    one_absent = met("nonzero", "absent") + met("zero", "absent")
    gated = skipped = 0
    if design.sparse.get("compute") == "gate":
        gated = math.floor(present_zero + one_absent)
    elif design.sparse.get("compute") == "skip":
        skipped = math.floor(one_absent)
    return [math.trunc(total - skipped - gated - math.floor(met("absent", "absent"))), gated, skipped]


# ---------------------------------------------------------------------------------------------------------------------
# Sections 8 to 10: cycles, energy, validity


def level_slowdown(design, level, all_counts, cycles):
    """8: words per cycle of an average instance against the bandwidth; skipped accesses take none.

    The words of each tensor are divided by the cycles before they are added, the rounding of which can be seen.
    """
    word_bits, demand = design.hardware["word_bits"], {"read": 0.0, "write": 0.0}
    for counts in all_counts:
        for port, kinds in (("read", ("read",)), ("write", ("fill", "update"))):
            words = sum(counts.data[kind][0] + counts.data[kind][1] for kind in kinds) * counts.width
            if counts.ranks:
                words += sum(counts.metadata_bits(kind, i) for kind in kinds for i in (0, 1)) // word_bits
            if counts.instances:
                demand[port] += math.ceil(words / (design.instances[level] / counts.instances)) / cycles
    limits = [1.0]
    for port, name in (("read", "read_bw"), ("write", "write_bw")):
        bandwidth = design.levels[level].get(name)
        if bandwidth is not None and demand[port]:
            limits.append(bandwidth / demand[port])
    return min(limits)


def access_energy(design, counts):
    """9: energy of one instance."""
    price, width = design.levels[counts.level]["energy"], design.hardware["metadata_width_bits"]
    total = 0.0
    for kind in KINDS:
        full = "read" if kind == "read" else "write"
        for i, prefix in enumerate(("", "gated_", "skipped_")):
            total += counts.data[kind][i] * counts.width * price.get(prefix + (kind if prefix else full), 0.0)
            if counts.ranks:
                accesses = -(-counts.metadata_bits(kind, i) // width)
                total += accesses * price.get(f"{prefix}metadata_{kind if prefix else full}", 0.0)
    return total


def check_formats(design):
    """10(2), before anything is counted."""
    for tensor in design.tensors:
        stored = design.stored[tensor.name]
        decoder = design.count - 1 - design.sparse.get("decoded", {}).get(tensor.name, design.count)
        if decoder >= design.home[tensor.name] and COMPRESSED & set(design.sparse["formats"][tensor.name]):
            raise Invalid("decoding", design.names[decoder])  # nothing comes in where a tensor resides
        for level in stored:
            flags = [rank[0] in COMPRESSED for rank in design.formats(tensor, level)]
            if flags != sorted(flags):
                raise Invalid("format_order")
        for level, child in zip(stored[:0:-1], stored[-2::-1], strict=True):
            here, there = design.is_compressed(tensor, level), design.is_compressed(tensor, child)
            if here and not there and tensor.name not in design.sparse.get("decoded", {}):  # the hardware cannot
                raise Invalid("format_mapping", design.names[level])
            if there and not here:
                raise Invalid("abort", design.names[level])
            if here and len(design.formats(tensor, child)) > len(design.formats(tensor, level)):
                raise Invalid("format_mapping", design.names[level])
    for level in range(design.count):
        for tensor in design.tensors:
            build_ranks(design, tensor, level)


def check_capacity(design, level, all_counts):
    """10(4): only the largest possible occupancy counts."""
    hardware, name = design.levels[level], design.names[level]
    words = sum(counts.words_max * counts.width for counts in all_counts)
    bits = sum(
        math.ceil(sum(rank.bits(units) for rank, units in zip(counts.ranks, counts.largest, strict=True)))
        for counts in all_counts
    )
    for reason, needed, key in (
        ("capacity", words, "capacity_words"),
        ("metadata_capacity", bits, "metadata_capacity_bits"),
    ):
        available = hardware.get(key)
        if available is not None and needed > available:
            raise Invalid(reason, name, [needed, math.floor(available)])
    if design.instances[level] > hardware["instances"]:
        raise Invalid("fanout", name, [design.instances[level], hardware["instances"]])


def choose_widths(design, tensor, by_level):
    """14: a level that has sums come back holds them in no fewer bits than the level inside."""
    word, inside, number, named = design.hardware["word_bits"], 0, "", design.hardware.get("numbers", {})
    own = any(tensor.name in row.get("bits", {}) for row in (design.hardware, *design.levels))
    for level in sorted(by_level):
        bits = design.levels[level].get("bits", {}).get(tensor.name) or design.hardware.get("bits", {}).get(
            tensor.name, word
        )
        name, bits = (bits, named[bits]["bits"]) if bits in named else ("", bits)
        if tensor.is_output and own and by_level[level].dense["read"] > 0 and inside > bits:
            name, bits = number, inside
        by_level[level].width, by_level[level].number, inside, number = bits / word, name, bits, name


def count_recoding(design, tensor, by_level):
    """14: words that two levels, or the innermost level and the compute units, have in different number formats."""
    price = {"": 0.0, **{name: one["pj"] for name, one in design.hardware.get("numbers", {}).items()}}

    def words(level, kind):
        return by_level[level].data[kind][0] * by_level[level].instances

    levels = sorted(by_level)
    for level, outer in itertools.pairwise(levels):
        here, there = by_level[level].number, by_level[outer].number
        if here != there:
            moved = words(level, "fill") + (words(outer, "update") if tensor.is_output else 0)
            by_level[level].recoding += moved * (price[here] + price[there])
    moved = words(levels[0], "read") + (words(levels[0], "update") if tensor.is_output else 0)
    by_level[levels[0]].recoding += moved * price[by_level[levels[0]].number]


def evaluate(case: dict, quirks: str | frozenset = "timeloop-v3") -> dict:
    """The `ref` entry of a case."""
    quirks = {"timeloop-v3": ALL_QUIRKS, "none": frozenset()}[quirks] if isinstance(quirks, str) else frozenset(quirks)
    try:
        return evaluate_design(Design(case, quirks))
    except Invalid as invalid:
        return invalid.ref


def evaluate_design(design):
    check_formats(design)
    if design.macs > design.hardware["mac"]["instances"]:
        raise Invalid("fanout", "MAC", [design.macs, design.hardware["mac"]["instances"]])
    counts = {t.name: {} for t in design.tensors}  # tensor -> level -> Counts
    for tensor in design.tensors:
        for level, (dense, reductions) in dense_counts(design, tensor).items():
            counts[tensor.name][level] = sparse_counts(design, tensor, level, dense, reductions)
        choose_widths(design, tensor, counts[tensor.name])
    at_level = [[by[s] for by in counts.values() if s in by] for s in range(design.count)]
    for level in range(design.count):
        check_capacity(design, level, at_level[level])

    actions, at_compute = chosen_actions(design), {}
    for tensor in design.tensors:
        at_compute[tensor.name] = apply_actions(design, tensor, counts[tensor.name], actions)
        count_recoding(design, tensor, counts[tensor.name])
    computes = compute_triple(design, at_compute)

    prices = [design.hardware["mac"]["energy"].get(name, 0.0) for name in ("compute", "gated", "skipped")]
    cycles = math.ceil((computes[0] + computes[1]) / design.macs)
    compute = {
        "cycles": cycles,
        "instances": design.macs,
        "instances_avg": design.macs,
        "algorithmic": design.macs * design.iterations,
        "computes": computes,
        "energy": sum(count * price for count, price in zip(computes, prices, strict=True)),
    }
    levels = {}
    span = max(cycles, 1)  # when no compute is left the evaluator divides by zero; the words still take their time
    for level, name in enumerate(design.names):
        slowdown = level_slowdown(design, level, at_level[level], span)
        tensors = {c.tensor.name: tensor_result(design, c) for c in at_level[level]}
        levels[name] = {
            "cycles": math.ceil(span / slowdown),
            "slowdown": slowdown,
            "tensors": tensors,
            "energy": sum(entry["energy"] for entry in tensors.values()),
        }
    energy = compute["energy"] + sum(entry["energy"] for entry in levels.values())
    slowest = max([cycles, *(entry["cycles"] for entry in levels.values())])
    return {
        "valid": True,
        "levels": levels,
        "compute": compute,
        "energy": energy,
        "cycles": slowest,
        "edp": energy * slowest,
    }


def tensor_result(design, counts):
    reductions, updates = counts.temporal_reductions, counts.dense["update"]
    if design.is_sparse and updates:
        reductions = math.ceil(reductions * counts.data["update"][0] / updates)
    result = {
        "tile_words": counts.tile,
        "data_words_max": counts.words_max,
        "instances_max": design.instances[counts.level],
        "instances_avg": counts.instances,
        **{kind + "s": counts.dense[kind] for kind in KINDS},
        **{kind: counts.data[kind] for kind in KINDS},
        "temporal_reductions": reductions,
        "energy": access_energy(design, counts) * counts.instances + counts.recoding,
    }
    if counts.ranks:
        largest = [[math.ceil(unit) for unit in units] for units in counts.largest]
        result["md_max"] = largest
        result["md_bits_max"] = sum(r.bits(units) for r, units in zip(counts.ranks, largest, strict=True))
        for kind in KINDS:
            result[f"md_{kind}"] = counts.metadata[kind]
            result[f"md_{kind}_bits"] = [counts.metadata_bits(kind, i) for i in range(3)]
    return result


# ---------------------------------------------------------------------------------------------------------------------
# Comparison with the reference cases


def quantities(found, expected, path=""):
    """All numbers of two `ref` entries side by side: (path, found, expected)."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            yield from quantities(found.get(key) if isinstance(found, dict) else None, value, f"{path}.{key}")
    elif isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            found = [None] * len(expected)
        for index, value in enumerate(expected):
            yield from quantities(found[index], value, f"{path}[{index}]")
    else:
        yield path, found, expected


def deviation(path, found, expected):
    """How far off, in units of what is tolerated: counts and cycles 1 or 1e-6, all else 1e-6 relative."""
    if found is None or isinstance(expected, (str, bool)):
        return 0.0 if found == expected else math.inf
    difference = abs(found - expected)
    relative = difference / max(abs(expected), 1e-300) / 1e-6 if difference else 0.0
    return relative if isinstance(expected, float) else min(difference, relative)


def compare(path, stride=1, quirks="timeloop-v3"):
    """(cases, quantities, quantities exactly equal, list of (deviation, case id, path, found, expected) beyond it)."""
    cases = total = exact = 0
    wrong = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number % stride:
                continue
            case = json.loads(line)
            cases += 1
            for name, found, expected in quantities(evaluate(case, quirks), case["ref"]):
                total += 1
                exact += found == expected
                size = deviation(name, found, expected)
                if size > 1:
                    wrong.append((size, case["id"], name, found, expected))
    return cases, total, exact, wrong


def main(paths):
    print(f"{'file':16}{'cases':>7}{'quantities':>12}{'equal':>11}{'tolerated':>11}{'seconds':>9}  worst")
    for path in paths:
        started = time.perf_counter()
        cases, total, exact, wrong = compare(path)
        worst = max(wrong, default="", key=lambda entry: entry[0])
        print(
            f"{path.rsplit('/', 1)[-1]:16}{cases:7}{total:12}{exact / total:11.4%}{1 - len(wrong) / total:11.4%}"
            f"{time.perf_counter() - started:9.1f}  {worst}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
