"""Checks of one design: bounds, fan-out, formats, mechanisms, capacities (docs/model.md, section 10). Each failed check
sets the bit of a reason."""

from __future__ import annotations

from sparsemap.inner.primitives import floor, inf
from sparsemap.inner.types import Real, Whole

from .design import OneDesign
from .facts import Facts


def mark(x: OneDesign, bit: Whole, wrong: Whole) -> None:
    """Add a reason if `wrong`."""
    if wrong and bit >= 0:
        x.reasons |= 1 << bit


def check_loops(m: Facts, x: OneDesign) -> None:
    """Check that bounds multiply to the sizes, and that a sliding tensor slides along the outermost loop."""
    for d in range(m.D):
        product = 1.0
        for g in range(m.L):
            product *= x.bound[g, d]
        mark(x, m.factor_bit[d], product != m.sizes[d])
    for t in range(m.T):
        if m.slides[t] >= 0:
            mark(x, m.slides_bit[t], outermost(m, x, t) != m.slides[t])


def check_fanout(m: Facts, x: OneDesign) -> None:
    for s in range(m.S):
        if m.spatial[s] >= 0:
            mark(x, m.fanout_bit[m.spatial[s]], x.needed[m.spatial[s]] > m.fanout[s])


def outermost(m: Facts, x: OneDesign, t: Whole) -> Whole:
    """Dimension of the outermost loop around the home of tensor t; without a loop there, the dimension of `slides`."""
    for s in range(m.home[t]):
        for p in range(m.D):
            d = x.order[m.temporal[s], p]
            if x.bound[m.temporal[s], d] > 1.0:
                return d
    return m.slides[t]


def loops_within(m: Facts, x: OneDesign, t: Whole, s: Whole) -> Whole:
    """Ranks of tensor t in the tile of level s: loops moving the tensor; all loops of a tile decoded as a whole count
    as a single rank."""
    count = 0
    inside = 0
    for p in range(x.loops):
        if m.relevant[t, x.loop_dim[p]]:
            if x.loop_block[p] >= s:
                count += 1
            if x.loop_block[p] >= x.decoded[t]:
                inside += 1
    return max(count - inside, 0) + (1 if inside > 0 else 0)


def several_inside(m: Facts, x: OneDesign, t: Whole) -> Whole:
    """Whether the innermost rank covers several loops, in a tile decoded as a whole."""
    inside = 0
    for p in range(x.loops):
        if m.relevant[t, x.loop_dim[p]] and x.loop_block[p] >= x.decoded[t]:
            inside += 1
    return inside > 1


def ends_inside(m: Facts, x: OneDesign, t: Whole, place: Whole) -> Whole:
    """Whether the rank at a place is the innermost, or the first outside the tile of some inner level."""
    if place == 0:
        return 1
    for s in range(1, m.S):
        if m.stored[t, s] and loops_within(m, x, t, s) == place:
            return 1
    return 0


def check_formats(m: Facts, x: OneDesign) -> None:
    """Check format order, decoding levels, streams and metadata of leaders; set `packed`, the levels with compressed
    tensors."""
    for t in range(m.T):
        compresses = check_order(m, x, t)
        for s in range(m.S):
            x.packed[t, s] = compresses and s < x.decoded[t]
        if compresses:
            mark(x, m.decoding_bit[t], not m.decodes[t, x.decoded[t]])
        for s in range(m.S):
            if m.streamed[t, s]:
                mark(x, m.streaming_bit[t], x.packed[t, s])
    for i in range(m.need_place.shape[0]):
        place = m.need_place[i]
        if m.needy[i, x.chosen[place]]:
            mark(x, m.place_bit[place], not x.packed[m.need_tensor[i], m.need_level[i]])
    for i in range(m.deals):
        if m.deal_chosen[i, x.chosen[m.deal_gene[i]]]:
            mark(x, m.place_bit[m.deal_gene[i]], undealt(m, x, i))


def undealt(m: Facts, x: OneDesign, i: Whole) -> Whole:
    """Whether a dealing filter is impossible (7.4): formats of the leaders store whole blocks or padding instead of
    positions, or the tile to pack has windows, strides or a child."""
    t = m.deal_target[i]
    for j in range(m.deal_leaders[i]):
        for slot in range(m.slots):
            form = x.slot[m.deal_leader[i, j], slot]
            if m.form_block[form] > 1.0 or m.padded[form]:
                return 1
    if not m.deal_packs[i]:
        return 0
    return m.windowed[t] or m.strided[t] or m.child[t, held_level(m, t, m.deal_level[i])] >= 0


def held_level(m: Facts, t: Whole, s: Whole) -> Whole:
    """Level delivering tensor t at level s: s or the next outer level storing the tensor."""
    return s if m.stored[t, s] else m.parent[t, s]


def check_order(m: Facts, x: OneDesign, t: Whole) -> Whole:
    """Whether formats compress tensor t; marks an invalid order. Every format below a compressed rank must allow this.
    A format without ends of its fibers lies below a rank with offsets. Ranks of several loops have no blocks, padding
    or groups, and stay within the tile of a level."""
    count = loops_within(m, x, t, 0)
    beyond = count > m.slots
    told = beyond and m.offsets[m.beyond]
    broken = beyond and m.flattened[m.beyond]
    compresses = 0
    several = 0
    for slot in range(m.slots):
        form = x.slot[t, slot]
        place = m.slots - 1 - slot
        used = count > place
        flat = used and m.flattened[form]
        if flat and ends_inside(m, x, t, place):
            broken = 1
        if place == 0 and x.decoded[t] < m.S and several_inside(m, x, t):
            several = 1
        if used and several and m.alone[form]:
            broken = 1
        several = flat
        if used and not flat:
            if compresses and not m.anywhere[form]:
                broken = 1
            if m.needs_ends[form] and not told:
                broken = 1
        told = used and not flat and m.offsets[form]
        if used and not flat and m.compressed[form]:
            compresses = 1
    mark(x, m.order_bit[t], broken)
    return compresses


def words_of(m: Facts, x: OneDesign, s: Whole) -> Real:
    """Words of level s needed for the largest tile of each tensor, including copies."""
    found = 0.0
    for t in range(m.T):
        found += x.most[t, s] * m.copies[t, s] * x.word_width[t, s]
    return found


def metadata_of(m: Facts, x: OneDesign, s: Whole) -> Real:
    """Bits of metadata at level s for the largest tile of each tensor, including copies."""
    found = 0.0
    for t in range(m.T):
        found += x.largest_bits[t, s] * m.copies[t, s]
    return found


def check_data(m: Facts, x: OneDesign) -> None:
    for s in range(m.S):
        if m.capacity_bits[s] < inf:
            mark(x, m.capacity_bit[s], words_of(m, x, s) > m.data_words[s])


def check_dense(m: Facts, x: OneDesign) -> Whole:
    """Whether tiles would not fit without any zero word."""
    for s in range(m.S):
        words = 0.0
        for t in range(m.T):
            if m.stored[t, s]:
                words += x.words[t, s] * m.copies[t, s] * m.word_width[t, s]
        if words > m.data_words[s]:
            return 1
    return 0


def check_metadata(m: Facts, x: OneDesign) -> None:
    x.reasons |= x.narrow
    if m.widens:
        check_data(m, x)
    for s in range(m.S):
        bits = metadata_of(m, x, s)
        if m.capacity_bits[s] < inf and m.shared[s]:
            mark(x, m.capacity_bit[s], words_of(m, x, s) * m.word_bits[s] + bits > m.capacity_bits[s])
        if m.metadata_capacity_bits[s] < inf and not m.shared[s]:
            mark(x, m.metadata_bit[s], bits > floor(m.metadata_capacity_bits[s]))
