"""Unavoidable cost of all designs with a given tile and innermost loop, in scalar arithmetic (`certificate`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import attrs

from sparsemap import Format, Occupancy, Problem
from sparsemap.errors import SpecError
from sparsemap.pieces.contracts import Array, Tensor
from sparsemap.problem.chip import Chip

from .further_in import LESS, FurtherIn, NextToUnits, delivered, touched
from .hierarchies import cheapest, words_of


@attrs.frozen
class OneTensor:
    tensor: Tensor
    occupancy: Occupancy
    density: float
    words: float
    once: float
    """Words of the data."""
    copies: tuple[float, ...]
    """Tiles of the tensor held at a time, by level."""
    others: float
    """Product of the densities of all other tensors, the smallest share left by filters."""
    bits: dict[tuple[int, ...], float] | None
    """Bits of `hierarchies.cheapest`."""
    chip: Chip
    """The chip in words of the tensor."""

    def told(self, extents: dict[str, int], coded: bool) -> float:
        """Metadata bits per nonzero in the outermost level."""
        held = self.words * self.density
        if not coded or held <= 0.0:
            return 0.0
        if self.bits is not None:
            return self.bits[tuple(extents[dim] for dim in self.tensor.dims)] / held
        return readable(self.words, held) / held if hasattr(self.occupancy, "placements_bits") else 0.0


@attrs.frozen(eq=False)
class Unavoidable:
    problem: Problem
    tensors: tuple[OneTensor, ...]
    charges: frozenset[str]
    coded: bool
    """Whether metadata are decodable codes, and only nonzeros and metadata are stored."""
    formats: tuple[Format, ...]
    fullest: dict[tuple[int, ...], float] = attrs.field(factory=dict)
    """Bits of the fullest tiles, by tensor and extents, cached."""
    units: NextToUnits = attrs.field(init=False, default=attrs.Factory(lambda self: NextToUnits(self), takes_self=True))
    further: FurtherIn = attrs.field(init=False, default=attrs.Factory(lambda self: FurtherIn(self), takes_self=True))

    @classmethod
    def of(cls, problem: Problem) -> Unavoidable:
        """Bounds for a problem; `SpecError` for a cost model or levels outside this arithmetic."""
        model = problem.cost_model
        if not getattr(model, "bounded", False) or problem.mapping_levels[0].spatial or len(problem.levels) < 2:
            text = "certificates can be checked of the cost model 'analytic' without quirks, with one outermost memory"
            raise SpecError.at("certificate", "problem", text)
        if any(level.spatial and level.storage == 0 for level in problem.mapping_levels) or problem.scenarios:
            raise SpecError.at("certificate", "problem", "there are instances below the outermost memory, or scenarios")
        charges = frozenset(charge.type_name for charge in getattr(model, "charges", ()))
        formats: tuple[Format, ...] = (*problem.candidates("format"), *problem.candidates("beyond-format"))
        pads = any(f.block > 1 or f.padded or (f.below_compressed and not f.compressed) for f in formats)
        coded = "run-lengths" in charges and not pads
        known = not (any(f.flattened or f.group > 1 for f in formats) or problem.space.provides("decoded"))
        shapes = [tensor.shape(problem.sizes) for tensor in problem.tensors]
        occupancies = [t.density.occupancy(shape) for t, shape in zip(problem.tensors, shapes, strict=True)]
        found, ends = [], problem.loops.sizes if "remainders" in charges else problem.sizes
        for t, tensor in enumerate(problem.tensors):
            bits = None
            if coded and known:
                bits = cheapest(tensor, dict(problem.sizes), occupancies[t], formats, "pointers" in charges)
            others = math.prod(min(1.0, o.density) for i, o in enumerate(occupancies) if i != t)
            copies = tuple(float(n) if "overlap" in charges else 1.0 for n in problem.buffers[:, t])
            density, words = min(1.0, occupancies[t].density), float(math.prod(shapes[t]))
            once = words * math.prod(ends[dim] / problem.sizes[dim] for dim in tensor.dims)
            found.append(
                OneTensor(tensor, occupancies[t], density, words, once, copies, others, bits, problem.in_words_of(t))
            )
        return cls(problem, tuple(found), charges, coded, formats)

    @cached_property
    def skips(self) -> bool:
        """Whether a mechanism at any place spares a compute its cycle."""
        problem, slow = self.problem, {"gate"} if "gate-time" in self.charges else set()
        pairs = itertools.product(problem.candidates("mechanism"), problem.places)
        return any(rule.action not in slow for pair in pairs for rule, *_ in problem.filters(*pair))

    def fits(self, tile: Sequence[int], level: int = 1) -> bool:
        """Whether a design may hold the tile in a level, by default the level inside the outermost."""
        chip = self.problem.chip
        room = float(chip.capacity_bits[level])
        extents, needed = dict(zip(self.problem.dims, tile, strict=True)), 0.0
        for t, own in enumerate(self.tensors):
            words, word = words_of(own.tensor, extents), float(own.chip.word_bits[level])
            if not self.problem.stores(t, level) or any(c > 1 for rank in own.tensor.ranks for _, c in rank):
                continue
            if own.occupancy.by_shape:
                needed += own.copies[level] * math.floor(words * own.density * LESS) * word
                continue
            most = min(float(words), float(own.occupancy.largest((words,))))
            if self.coded and bool(chip.shared_capacity[level]) and hasattr(own.occupancy, "placements_bits"):
                most = min(float(words), most + readable(words, most) / word)
            needed += own.copies[level] * most * word
        return needed <= room

    def holds(self, tile: Sequence[int]) -> bool:
        """Whether the level inside the outermost may hold the tile, with the cheapest hierarchy of ranks for compressed
        tiles."""
        chip, needed = self.problem.chip, 0.0
        extents = dict(zip(self.problem.dims, tile, strict=True))
        for t, own in enumerate(self.tensors):
            words, word = float(words_of(own.tensor, extents)), float(own.chip.word_bits[1])
            if not self.problem.stores(t, 1) or any(c > 1 for rank in own.tensor.ranks for _, c in rank):
                continue
            if own.bits is None or not self.coded or not bool(chip.shared_capacity[1]):
                return True
            key = t, *(extents[dim] for dim in own.tensor.dims)
            if key not in self.fullest:
                sizes = {dim: extents[dim] for dim in own.tensor.dims}
                pointers = "pointers" in self.charges
                bits = cheapest(own.tensor, sizes, own.occupancy, self.formats, pointers, fullest=True)
                self.fullest[key] = min(bits.values()) * LESS if bits else 0.0
            most = min(words, float(own.occupancy.largest((int(words),))))
            needed += own.copies[1] * min(words, most + self.fullest[key] / word) * word
        return needed <= float(chip.capacity_bits[1])

    def costs(self, tile: Sequence[int], innermost: str, closely: bool = False) -> tuple[float, float]:
        """Least pJ and cycles; `closely`: try all tiles further in."""
        problem, chip = self.problem, self.problem.chip
        extents = dict(zip(problem.dims, tile, strict=True))
        width = float(chip.metadata_width[0])
        filtered = any(place.storage == 0 for place in problem.places)
        pj = read = written = handed = 0.0
        for t, own in enumerate(self.tensors):
            told, d, price = own.told(extents, self.coded), own.density, own.chip.energy_pj
            word, wide = float(own.chip.word_bits[0]), float(own.chip.word_bits[0]) / float(chip.word_bits[0])
            kept = d * (own.others if filtered else 1.0) * LESS
            below = problem.stores(t, 1)
            loops = self.around(own.tensor, extents)
            moved = max(0.0, delivered(own.tensor, extents, loops, innermost) if below else 0.0) * self.inside[t]
            if own.tensor.output and below and not filtered and "sums" in self.charges:
                spent, back, come = self._sums(own, max(moved, own.once), told)
                pj, read, written = pj + spent, read + back * wide, written + come * wide
            elif own.tensor.output:
                arrive, again = max(own.once, moved) * kept, max(0.0, (moved - own.once) * kept - 1.0)
                if "sums" in self.charges:  # of a word that is visited V times at least d (V + 1) / 2 sums are not zero
                    arrive, again = max(own.once * kept, arrive / 2.0) if below else 0.0, again / 2.0 if below else 0.0
                pj += arrive * _each(price, "write", 0, told, width, d)
                pj += arrive * float(price["read"][1]) if below and "drains" in self.charges else 0.0  # where it leaves
                pj += again * (_each(price, "read", 0, told, width, d) + (float(price["write"][1]) if below else 0.0))
                written += arrive * wide * min(1.0 + told / word, 1.0 / d)
                read += again * wide * min(1.0 + told / word, 1.0 / d)
            else:
                sent = max(moved, touched(own.tensor, problem.sizes) * self.inside[t]) * kept
                pj += sent * (_each(price, "read", 0, told, width, d) + (float(price["write"][1]) if below else 0.0))
                read += sent * wide * min(1.0 + told / word, 1.0 / d)
            handed += self._handed_on(t, moved)
        handed += self.units.least_pj([problem.sizes[dim] for dim in problem.dims])
        pj += max(handed, self.further.least_pj(tile, innermost) if closely else 0.0)
        computes, actual, last = self.units.computes, self.units.actual, len(problem.levels) - 1
        pj += actual * float(chip.mac_pj["compute"])
        lanes, instances = float(chip.fanout[last]), float(chip.instances[last])
        limits = float(chip.read_bandwidth[0]), float(chip.write_bandwidth[0]), float(chip.bandwidth[0])
        loads = zip((read, written, read + written), limits, strict=True)
        cycles = max(math.floor(words / limit * LESS) for words, limit in loads)
        steps = actual if self.skips or "positions" not in self.charges else computes
        cycles = max(cycles, math.floor(steps / (lanes * instances) * LESS))
        if "leakage" in self.charges:
            counts = [1 + (int(n) - 1) * float(off) for n, off in zip(chip.instances[:-1], chip.asleep, strict=True)]
            milliwatts = sum(n * float(each) for n, each in zip(counts, chip.leakage_mw, strict=True))
            pj += cycles * milliwatts * 1e9 / float(chip.clock_hz)
        return pj, cycles

    @cached_property
    def ends(self) -> Mapping[str, int]:
        """End of the loops of every dimension."""
        return self.problem.loops.sizes if "remainders" in self.charges else self.problem.sizes

    def around(self, tensor: Tensor, extents: Mapping[str, int]) -> dict[str, int]:
        """Turns of the loops around a tile.

        A dimension that does not move the tensor counts only turns with data. A dimension that does counts all turns,
        with the data's share in `inside`."""
        sizes = self.problem.sizes
        return {d: sizes[d] // n if d in tensor.dims else -(-self.ends[d] // n) for d, n in extents.items()}

    def met(self, t: int, extents: Mapping[str, int]) -> float:
        """Smallest share of a tensor's accesses left by filters, for words that serve the computes of a tile.

        An access is left if no other tensor is empty over these computes."""
        kept = 1.0
        for own in self.tensors[:t] + self.tensors[t + 1 :]:
            held = {dim: 1 if dim in self.tensors[t].tensor.dims else extent for dim, extent in extents.items()}
            alone = own.occupancy.by_shape or any(len(rank) > 1 for rank in own.tensor.ranks)
            kept *= own.density if alone else 1.0 - float(own.occupancy.empty((words_of(own.tensor, held),)))
        return kept

    def each_handed(self, own: OneTensor, level: int, copies: int = 1) -> float:
        """pJ of a word between a level and `copies` children."""
        price, wires = own.chip.energy_pj, self._wires(own, level, copies)
        if own.tensor.output:
            leaves = float(price["read"][level + 1]) if "drains" in self.charges else 0.0
            return float(price["write"][level]) + leaves + wires
        return float(price["read"][level]) + copies * float(price["write"][level + 1]) + wires

    def _wires(self, own: OneTensor, level: int, copies: int) -> float:
        """pJ of a word of a tensor in the wire tree of a level, towards `copies` of its children."""
        chip, leaves = self.problem.chip, float(self.problem.chip.fanout[level])
        if "network" not in self.charges or leaves <= 1.0:
            return 0.0
        below = float(chip.mac_area_mm2)
        for inner in range(len(self.problem.levels) - 1, level, -1):
            below = float(chip.area_mm2[inner]) + float(chip.fanout[inner]) * below
        root = math.sqrt(copies)
        length = math.sqrt(leaves * below) * (1.5 * (root - 1.0) + root - copies / math.sqrt(leaves))
        return length * float(chip.wire_pj_per_bit_mm) * float(own.chip.word_bits[level]) * LESS

    @cached_property
    def inside(self) -> list[float]:
        """By tensor, the smallest share of words of the data among the words of tiles."""
        ends = {dim: end / self.problem.sizes[dim] for dim, end in self.ends.items()}
        pairs = zip(self.tensors, self.taken, strict=True)
        return [share * math.prod(ends[dim] for dim in own.tensor.dims) for own, share in pairs]

    @cached_property
    def taken(self) -> list[float]:
        """By tensor, the share of real words among the operands of all computes."""
        holes = "holes" in self.charges
        words = [own.tensor.words(self.ends) if holes and not own.tensor.output else () for own in self.tensors]
        return [math.prod(float(there.mean()) for there in ranks) for ranks in words]

    def _sums(self, own: OneTensor, moved: float, told: float) -> tuple[float, float, float]:
        """(pJ, words read, words written) of partial sums that reach the outermost level `moved` times and return after
        the first.

        A compressed sum moves only if it is nonzero: after visit i of V, with probability 1 - (1 - d)^(i/V). An
        uncompressed sum always moves."""
        chip, d = own.chip, own.density
        price, word = chip.energy_pj, float(chip.word_bits[0])
        visits = moved / own.once
        left = math.exp(math.log(1.0 - d) / visits) if d < 1.0 else 0.0
        nonzero = moved * (1.0 - left * d / (visits * (1.0 - left))) if d > 0.0 else 0.0
        ways = []
        packed = [(nonzero, nonzero - own.once * d, told)] if told < math.inf else []  # else nothing is compressed
        for come, back, bits in (*packed, (moved, moved - own.once, 0.0)):
            come, back = max(0.0, come * LESS - 4.0), max(0.0, back * LESS - 4.0)
            each = bits / float(chip.metadata_width[0])
            prices = ((float(price[way][0]), float(price[f"metadata_{way}"][0])) for way in ("write", "read"))
            put, get = (word + each * told for word, told in prices)
            leave = float(price["read"][1]) if "drains" in self.charges else 0.0
            size = 1.0 + bits / word
            ways.append((come * (put + leave) + back * (get + float(price["write"][1])), back * size, come * size))
        pj, read, written = map(min, zip(*ways, strict=True))
        return pj, read, written

    def _handed_on(self, t: int, moved: float) -> float:
        """pJ of the levels between the outermost and the innermost: every arriving word moves on at least once."""
        problem, own, pj = self.problem, self.tensors[t], 0.0
        once = touched(own.tensor, problem.sizes) * self.inside[t]
        count = max(0.0, max(moved, once) * own.density * own.others * LESS - 1.0)
        if own.tensor.output and "sums" in self.charges:
            count = max(0.0, once * min(own.density, self.met(t, problem.sizes)) * LESS - 1.0)
        for level in range(1, len(problem.levels) - 1):
            if problem.stores(t, level) and problem.stores(t, level + 1):
                pj += count * self.each_handed(own, level)
        return pj


def _each(price: Mapping[str, Array], action: str, level: int, bits: float, width: float, density: float) -> float:
    """pJ of a nonzero, with its metadata or with all the zeros, whichever is less."""
    word, told = float(price[action][level]), float(price[f"metadata_{action}"][level])
    return min(word + bits * told / width, word / density if density > 0.0 else math.inf)


def readable(words: float, held: float) -> float:
    """Least mean bits of a decodable code for the positions of `held` among `words`; one word may be known outside."""
    log = math.lgamma(words + 1) - math.lgamma(held + 1) - math.lgamma(words - held + 1)
    bits = max(0.0, log / math.log(2.0) - 1.0)
    return max(0.0, bits - math.log2(1.0 + bits) - math.log2(math.e)) * LESS
