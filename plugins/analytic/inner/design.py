"""What the chain knows of one design, link by link (docs/model.md); axes as of `Facts`."""

from __future__ import annotations

from sparsemap.inner.types import Real, Reals, Reals2, Reals3, Whole, Wholes, Wholes2

__all__ = ["OneDesign"]


class OneDesign:
    """One design."""

    bound: Reals2
    """(L, D)"""
    order: Wholes2
    """(L, D) dimensions, the outermost loop first."""
    slot: Wholes2
    """(T, slots) formats."""
    chosen: Wholes
    """(A,) candidates."""
    decoded: Wholes
    """(T,) the level from which on a tensor is uncompressed; S: none."""
    packed: Wholes2
    """(T, S) whether the tensor is compressed there."""
    whole: Whole
    """Whether all links are asked for, whatever reasons are against the design."""
    reasons: Whole
    """Bits of the reasons against the design."""

    product: Reals
    """(L,) of the bounds of a group."""
    needed: Reals
    """(L,) instances that a group needs below one of its level."""
    extent: Reals2
    """(S + 1, D) of the tiles, all loops of a level's block inwards; the last: of one word."""
    around: Reals2
    """(S, D) extents below the temporal loops of a level."""
    words: Reals2
    """(T, S + 1) of the tile of an instance."""
    used: Reals
    """(S + 1,) instances in use; the last: compute units."""
    steps: Reals
    """(S,) temporal iterations up to a level."""
    computes: Real
    turns: Real
    """Temporal iterations of the fullest unit."""
    units: Real
    """Compute units at work, on average over these iterations."""
    loops: Whole
    """Loops with a bound above one, the innermost first."""
    loop_dim: Wholes
    loop_bound: Reals
    loop_block: Wholes
    loop_spatial: Wholes
    moves: Wholes2
    """(T, S) whether the tile in the next inner level that stores the tensor does not stay."""
    digit: Reals2
    """(L, D) digits of the last position of a dimension that ends early."""
    leads: Wholes
    """(D,) bits by group: loops over which a tile does not stay."""
    outside: Wholes
    """(S + 1,) bits by group: loops over the instances of a level."""
    own_share: Reals2
    """(S, D) words along a dimension of the fullest instance over the mean."""
    gives: Reals2
    """(T, S) words that the fullest instance hands on over the mean .."""
    gets: Reals2
    """(T, S) .. and that it gets."""

    distinct: Reals2
    """(T, S) different tiles among the children of one instance."""
    delivered: Reals
    """(S,) words that a child receives, of the tensor at hand .."""
    accesses: Reals
    """(S,) .. and accesses of one instance for all children .."""
    partition: Reals
    """(S,) .. and words of the output that one instance ever sees."""
    reads: Reals2
    """(T, S) dense accesses of one instance, as the next ones."""
    fills: Reals2
    updates: Reals2
    brought: Reals2
    """Fills with positions that are no words."""
    leaving: Reals
    """(S,) words of the output that the parent takes."""
    moved: Reals2
    """(2, R) scratch: how far the tile of a window has moved, and the first step."""

    ranks: Wholes
    """(T,) ranks of the formats of a tensor, the innermost first."""
    form: Wholes2
    """(T, P) of each rank, P loops at most .."""
    rank_block: Wholes2
    """.. the storage level of its outermost loop .."""
    rank_dim: Wholes2
    """.. its dimension .."""
    rank_bound: Reals2
    """.. and its bound;"""
    rank_inside: Reals3
    """(T, P + 1, D) extents inside each rank; the last: of the tensor."""
    level_ranks: Wholes2
    """(T, S) ranks of the tile of a level."""

    most: Reals2
    """(T, S) words that a tile holds at most."""
    occupied: Reals2
    """(T, S) share of the instances with a tile."""
    kept: Reals2
    """(T, S) stored words per word of these tiles."""
    granule: Wholes
    """(T,) whether formats store more than nonzeros; of the granules:"""
    granule_extent: Reals2
    """(T, D)"""
    granule_density: Reals
    """(T,) stored words per word of the tensor."""
    granule_width: Reals
    """(T,) positions that padded fibers store, infinity: they are not padded."""
    granule_dim: Wholes
    """(T,)"""
    granule_length: Reals
    """(T,) all positions along it."""
    granule_outer: Wholes
    """(T,) whether ranks outside leave empty fibers out."""
    part: Reals2
    """(7, D) scratch: extents of parts of a tensor."""
    factor: Reals
    """(D,) scratch: positions at which a leader and a target both move .."""
    factor_beyond: Reals
    """(D,) .. and those of them outside the target loop."""

    acts: Wholes
    """(I,) kind of each filter: none, gate or skip .."""
    effect: Reals
    """(I,) .. the share that it removes .."""
    effect_still: Reals
    """(I,) .. of tiles that stay as well .."""
    effect_empty: Reals2
    """(I, T) .. the part of each leader .."""
    effect_words: Reals2
    """(I, T) .. and words of the leader's tile; infinity: the filter does nothing with it."""
    saves: Wholes
    """(I,) whether a filter saves time."""
    differ: Whole
    """Whether filters that save time leave other counts."""
    looked: Wholes2
    """(T, S) kind of the strongest filter that the tensor leads there."""
    scans: Whole
    """Loops of the region of an access; of each:"""
    scan: Wholes2
    """(3, P) its dimension, whether the region spans it, whether it lies beyond the target loop .."""
    scan_bound: Reals
    """(P,) .. and its bound."""
    targeted: Whole
    """Whether there is a target loop .."""
    target_spatial: Whole
    """.. and whether it is spatial."""
    stays: Reals
    """(D,) scratch: iterations over which a tile stays."""

    entries: Whole
    """Ranks of all tensors at all levels; of each:"""
    begin: Wholes2
    """(T, S) the first one of a tile .."""
    end: Wholes2
    """(T, S) .. and the one behind its last."""
    entry_place: Wholes
    """Position from the innermost rank."""
    entry: Reals2
    """(.., 6) units of metadata and of payload, expected and at most, and the bits of one."""
    largest_bits: Reals2
    """(T, S) bits of the fullest tile."""
    narrow: Whole
    """Bits of the reasons that some code cannot be read."""
    rank_box: Reals2
    """(P + 1, R) scratch, by rank of one tensor: words of its tile .."""
    rank_below: Reals2
    """.. of the part of one position .."""
    rank_group: Reals2
    """.. and of a group of positions .."""
    rank_length: Reals
    """(P + 1,) .. its positions .."""
    rank_longest: Reals
    """.. those of the fullest fiber that are not empty .."""
    rank_positions: Reals
    """.. all of this rank and those inside .."""
    rank_pointed: Wholes
    """.. whether its payload are offsets .."""
    rank_row: Wholes
    """.. its row among the formats that tables know .."""
    rank_key: Wholes
    """.. and a key of all these."""
    tile: Reals
    """(R,) words of a tile."""

    active: Reals2
    """(T, S) instances that are expected in use."""
    needed_share: Reals2
    """(S, T) of the instances below a level the share that a tensor takes at most (7.4) .."""
    led_share: Reals2
    """(S, T) .. and that a leader alone takes."""
    filled_every: Real
    filled_most: Real
    filled_share: Real
    """Scratch: iterations of loops, those with something of a leader at most, and the chance that one has something."""
    passes: Reals
    """(T,) passes over a packed tile for every one without packing (7.4); -1: it is not packed."""
    mean_share: Reals2
    """(T, S) share of the instances of a level that a tensor takes, on average .."""
    most_share: Reals2
    """(T, S) .. and at most."""
    units_share: Real
    """Share of the compute units at work while any of them is."""
    dealt: Reals
    """(T,) share of the computes without a lane since the tensor is empty there (7.4); -1: it deals none."""
    emptied: Reals
    """(T,) share of the computes that are gone since the operand is zero there."""
    state: Reals2
    """(3, O) chances that an operand is nonzero, zero or absent."""

    demand_read: Reals2
    """(T, S) words of one instance in the time of a level."""
    demand_written: Reals2
    demand_filled: Reals2
    level_cycles: Reals
    """(S,)"""
    slowdown: Reals
    """(S,) share of the words asked for that a level can move."""
    compute_cycles: Real
    mean_cycles: Real
    """Of the mean lane."""
    cycles: Real
    waits: Reals
    """(A,) scratch: cycles that a place waits for empty tiles."""
    compared: Reals
    """(A,) cycles for each position of a skip that walks along entries; -1: none does."""
    entry_chance: Reals2
    """(A, T) scratch: chance of an entry; -1: none is compared."""
    comparator: Reals
    """(A,) scratch: entries that it passes in a cycle."""
    list_step: Reals
    """(T,) scratch: words of a tensor that are one position of a list."""
    none_here: Reals
    """(T,) scratch: logarithm of the chance of no entry."""

    looks: Reals
    """(O,) words of the smallest tile at which a skip looks."""
    held: Reals3
    """(S, T, D) bounds of the loops around a block that leave the tile inside in its place .."""
    grows: Wholes2
    """(S, T) .. and the dimension of the next one."""
    pace: Reals
    """(T,) tiles of a tensor in turn at a level."""
    inside: Reals2
    """(S, D) extents of the loops in time of a level's block and all inside."""
    alongs: Whole
    """Loops along which units wait for each other; of each:"""
    along_dim: Wholes
    along_block: Wholes
    along_stride: Reals
    along_bound: Reals
    along_every: Reals
    points: Whole
    """Points at which units wait; of each:"""
    point_ratio: Reals
    point_turns: Reals
    point_units: Reals
    point_loop: Reals2
    """Bounds of the loops along which they do."""
    depth: Whole
    """Of the point at hand: tiles for which a unit has room .."""
    grown: Whole
    """.. the dimension in which the next part lies .."""
    parts: Real
    """.. parts in the run .."""
    pitch: Real
    """.. how far apart they are .."""
    crowd: Real
    """.. units that wait .."""
    volume: Real
    """.. positions of a box .."""
    box: Reals2
    """(O, R) .. words of a unit's box .."""
    wide: Reals2
    """(O, D) .. extents for operands that are alike within blocks .."""
    least: Reals
    """(O,) .. words that several parts have each at least .."""
    lanes: Reals
    """(O,) .. different boxes .."""
    pairs: Reals2
    """(O, O) .. and places that move both operands."""
    apart: Reals2
    """(3, D) scratch: extents."""
    known: Wholes
    """(O,) scratch: where the figures of a tile's work start."""
    several: Wholes
    """(O,) scratch: operands of which units have different parts."""
    threshold: Reals2
    """(2, n) scratch: products of thresholds, and the units that reach them."""
    chance: Reals
    """(TAILS,) scratch."""
    met: Reals
    """(MOST_MET + 1,) scratch: shares of places that hold something in all operands .."""
    met_share: Reals
    """.. and how often each is."""
    merged: Reals2
    """(3, MERGED) scratch of maxima."""
    growth: Reals2
    """(4, 4) scratch: the longest work of consecutive parts, its mean, deviation and length."""
    filled: Reals2
    """(T, S) words of time of one instance from the parent, as the next ones .."""
    drained: Reals2
    """.. towards it .."""
    sent: Reals2
    """.. to the children .."""
    got: Reals2
    """.. and from them."""
    each: Reals
    """(T,) scratch: cycles in which all tiles of a tensor come .."""
    turn: Reals
    """(T,) .. and how many these are."""

    energy_pj: Real
    compute_pj: Real
    tile_pj: Reals2
    """(T, S)"""
    intersection_pj: Real
    leakage_pj: Real
    gated_pj: Real
    network_pj: Real
    leakage_pj_per_cycle: Real
