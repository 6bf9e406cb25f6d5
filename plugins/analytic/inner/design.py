"""State of the chain for one design, link by link (docs/model.md); axes as for `Facts`."""

from __future__ import annotations

from sparsemap.inner.types import Real, Reals, Reals2, Reals3, Whole, Wholes, Wholes2

__all__ = ["OneDesign"]


class OneDesign:
    """One design."""

    bound: Reals2
    """(L, D) loop bounds."""
    order: Wholes2
    """(L, D) dimensions, the outermost loop first."""
    slot: Wholes2
    """(T, slots) formats."""
    chosen: Wholes
    """(A,) candidate of each place."""
    decoded: Wholes
    """(T,) the level from which inwards a tensor is uncompressed; S: none."""
    packed: Wholes2
    """(T, S) whether the level holds the tensor compressed."""
    whole: Whole
    """Whether to evaluate all links even for an invalid design."""
    reasons: Whole
    """Bits of the reasons for an invalid design."""

    product: Reals
    """(L,) product of the bounds of a group."""
    needed: Reals
    """(L,) instances needed by a group below one instance of its level."""
    extent: Reals2
    """(S + 1, D) extents of the tile of a level, over its block and all inner blocks; the last row is one word."""
    around: Reals2
    """(S, D) extents inside the temporal loops of a level."""
    words: Reals2
    """(T, S + 1) words of the tile in one instance."""
    used: Reals
    """(S + 1,) instances in use; the last entry is for compute units."""
    steps: Reals
    """(S,) temporal iterations of blocks 0 up to a level."""
    computes: Real
    turns: Real
    """Temporal iterations of the fullest unit."""
    units: Real
    """Average number of active compute units over these iterations."""
    loops: Whole
    """Number of loops with a bound above one; the next arrays list them innermost first."""
    loop_dim: Wholes
    loop_bound: Reals
    loop_block: Wholes
    loop_spatial: Wholes
    moves: Wholes2
    """(T, S) whether temporal loops replace the tile in the next inner level storing the tensor."""
    digit: Reals2
    """(L, D) digits of the last position with data, for ragged dimensions."""
    leads: Wholes
    """(D,) bits by group: loops replacing a tile."""
    outside: Wholes
    """(S + 1,) bits by group: spatial loops over the instances of a level."""
    own_share: Reals2
    """(S, D) words along a dimension in the fullest instance over the mean."""
    gives: Reals2
    """(T, S) words sent inwards by the fullest instance over the mean."""
    gets: Reals2
    """(T, S) words received by the fullest instance over the mean."""

    distinct: Reals2
    """(T, S) different tiles among the children of one instance."""
    delivered: Reals
    """(S,) words of the current tensor delivered to one child."""
    accesses: Reals
    """(S,) accesses of one instance to the current tensor for all children."""
    partition: Reals
    """(S,) words of the output ever seen by one instance."""
    reads: Reals2
    """(T, S) dense reads of one instance; `fills` and `updates` likewise."""
    fills: Reals2
    updates: Reals2
    brought: Reals2
    """(T, S) fills including positions without words (`holes`)."""
    leaving: Reals
    """(S,) words of the output leaving for the parent."""
    moved: Reals2
    """(2, R) scratch: displacement of a window's tile by the loops so far, and the first step."""

    ranks: Wholes
    """(T,) number of format ranks of a tensor, listed innermost first in the next fields."""
    form: Wholes2
    """(T, P) format of each rank, with P loops at most."""
    rank_block: Wholes2
    """(T, P) storage level of the rank's outermost loop."""
    rank_dim: Wholes2
    """(T, P) dimension of this loop."""
    rank_bound: Reals2
    """(T, P) bound of this loop."""
    rank_inside: Reals3
    """(T, P + 1, D) extents inside each rank; the last entry is the whole tensor."""
    level_ranks: Wholes2
    """(T, S) number of ranks in the tile of a level."""

    word_width: Reals2
    """(T, S) words of a level per word of a tensor (14)."""
    most: Reals2
    """(T, S) largest number of words held in a tile."""
    occupied: Reals2
    """(T, S) share of the instances with a tile."""
    kept: Reals2
    """(T, S) stored words per word of the tiles sent."""
    granule: Wholes
    """(T,) whether formats store more than nonzeros; the next fields describe the granules."""
    granule_extent: Reals2
    """(T, D) extents of a granule."""
    granule_density: Reals
    """(T,) stored words per word of the tensor."""
    granule_width: Reals
    """(T,) positions stored by padded fibers; infinity without padding."""
    granule_dim: Wholes
    """(T,) dimension of the innermost compressed rank."""
    granule_length: Reals
    """(T,) all positions of this rank."""
    granule_outer: Wholes
    """(T,) whether outer ranks leave out empty fibers."""
    part: Reals2
    """(7, D) scratch: extents of parts of a tensor."""
    factor: Reals
    """(D,) scratch: positions moving both leader and target."""
    factor_beyond: Reals
    """(D,) scratch: these positions outside the target loop."""

    acts: Wholes
    """(I,) kind of each filter: none, gate or skip."""
    effect: Reals
    """(I,) share of a child's steps removed by each filter."""
    effect_access: Reals
    """(I,) share removed of the level's accesses."""
    effect_fill: Reals
    """(I,) share removed of a child's fills."""
    effect_empty: Reals2
    """(I, T) contribution of each leader."""
    effect_words: Reals2
    """(I, T) words of the leader's tile; infinity where the filter ignores this leader."""
    saves: Wholes
    """(I,) whether a filter saves time."""
    differ: Whole
    """Whether the filters saving time lead to different counts."""
    looked: Wholes2
    """(T, S) kind of the strongest filter led by the tensor at the level."""
    scans: Whole
    """Number of scanned loops in the region of an access; described in the next fields."""
    scan: Wholes2
    """(3, P) dimension of a loop, whether the region spans the loop, whether the loop lies beyond the target loop."""
    scan_bound: Reals
    """(P,) bound of a loop."""
    targeted: Whole
    """Whether the scan has a target loop."""
    target_spatial: Whole
    """Whether the target loop is spatial."""
    shared: Whole
    """Whether several children share an access."""
    lasts: Whole
    """Whether the tile of an access stays for several steps of the scan."""
    stays: Reals
    """(D,) scratch: iterations during which a tile stays."""

    entries: Whole
    """Number of rank entries, over all tensors and levels."""
    begin: Wholes2
    """(T, S) first entry of a tile."""
    end: Wholes2
    """(T, S) end of a tile's entries."""
    entry_place: Wholes
    """(entries,) rank number, counted from the innermost."""
    entry: Reals2
    """(entries, 6) expected and largest units of metadata and payload, and bits per unit."""
    largest_bits: Reals2
    """(T, S) metadata bits of the fullest tile."""
    narrow: Whole
    """Bits of the reasons for unreadable codes."""
    rank_box: Reals2
    """(P + 1, R) scratch, by rank of one tensor: words of the rank's tile."""
    rank_below: Reals2
    """(P + 1, R) scratch: words below one position."""
    rank_group: Reals2
    """(P + 1, R) scratch: words below a group of positions."""
    rank_length: Reals
    """(P + 1,) scratch: positions of the rank."""
    rank_longest: Reals
    """(P + 1,) scratch: non-empty positions of the fullest fiber."""
    rank_positions: Reals
    """(P + 1,) scratch: positions of this rank times the positions of all ranks inside."""
    rank_pointed: Wholes
    """(P + 1,) scratch: whether the payload is offsets."""
    rank_row: Wholes
    """(P + 1,) scratch: row of the rank's format in the tables."""
    rank_key: Wholes
    """(P + 1,) scratch: key of these rank properties."""
    tile: Reals
    """(R,) scratch: words of a tile."""

    active: Reals2
    """(T, S) expected instances in use."""
    needed_share: Reals2
    """(S, T) largest share of the instances below a level used by a tensor (7.4)."""
    led_share: Reals2
    """(S, T) the same share due to the tensor as a leader."""
    filled_every: Real
    filled_most: Real
    filled_share: Real
    """Scratch: iterations of loops, largest number of iterations with a nonzero of a leader, probability of a nonzero
    in an iteration."""
    passes: Reals
    """(T,) passes over a packed tile relative to no packing (7.4); -1: not packed."""
    mean_share: Reals2
    """(T, S) mean share of a level's instances used by a tensor."""
    most_share: Reals2
    """(T, S) largest share of a level's instances used by a tensor."""
    units_share: Real
    """Share of the compute units at work while any unit works."""
    dealt: Reals
    """(T,) share of the computes without a lane because the tensor is empty there (7.4); -1: no dealing by this tensor."""
    emptied: Reals
    """(T,) share of the computes removed because the operand is zero there."""
    state: Reals2
    """(3, O) probabilities of a nonzero, zero or absent operand."""

    demand_read: Reals2
    """(T, S) words of one instance in the time of a level; `demand_written` and `demand_filled` likewise."""
    demand_written: Reals2
    demand_filled: Reals2
    level_cycles: Reals
    """(S,) cycles needed by a level."""
    slowdown: Reals
    """(S,) share of the demanded words within a level's bandwidth."""
    compute_cycles: Real
    worked_cycles: Real
    """Compute cycles with waiting for shared words, without passed positions."""
    mean_cycles: Real
    """Compute cycles of the mean lane."""
    uneven_cycles: Real
    """Compute cycles of the fullest lane, by skips of any width."""
    cycles: Real
    stepping: Whole
    """Whether units step together: at all other waiting points, a group of these units waits as one."""
    group_bound: Reals
    """(A,) by loop of `along_dim`, the bound over units stepping together; 1: none."""
    positions: Real
    """Positions of a step of a group, along loops moving several operands."""
    position_share: Real
    """Share of these positions with work."""
    step_words: Reals
    """(O,) words of each operand examined for one step of a group."""
    unit_words: Reals
    """(O,) words of each operand counting as one position of a waiting point."""
    shared_ratio: Real
    """Cycles of units waiting for shared words, over the cycles of the mean unit."""
    stay: Real
    """Steps of a block of positions over which some operands stay."""
    stay_share: Real
    """Share of the blocks with a nonzero of each of these operands."""
    waits: Reals
    """(A,) scratch: cycles of a place waiting for empty tiles."""
    unit_cycles: Reals
    """(A,) cycles of all skip units of each place."""
    compared: Reals
    """(A,) cycles per position of a skip walking along entries; -1: none."""
    entry_chance: Reals2
    """(A, T) scratch: probability of an entry; -1: not compared."""
    comparator: Reals
    """(A,) scratch: entries passed per cycle."""
    list_step: Reals
    """(T,) scratch: words of a tensor in one list position."""
    none_here: Reals
    """(T,) scratch: logarithm of the probability of no entry."""

    looks: Reals
    """(O,) words of the smallest tile examined by a skip."""
    held: Reals3
    """(S, T, D) bounds of the loops around a block keeping the inner tile stationary."""
    grows: Wholes2
    """(S, T) dimension of the next loop further out."""
    pace: Reals
    """(T,) successive tiles of a tensor at a level."""
    inside: Reals2
    """(S, D) extents of the temporal loops of a level's block and all blocks inside."""
    alongs: Whole
    """Number of loops along which units wait for each other; described in the next fields."""
    along_dim: Wholes
    along_block: Wholes
    along_stride: Reals
    along_bound: Reals
    along_every: Reals
    points: Whole
    """Number of waiting points; described in the next fields."""
    point_ratio: Reals
    point_turns: Reals
    point_units: Reals
    point_loop: Reals2
    """(points, P) bounds of the loops along which units wait."""
    depth: Real
    """Current waiting point: tiles buffered per unit."""
    grown: Whole
    """Current waiting point: dimension of the next part."""
    parts: Real
    """Current waiting point: number of parts in the run."""
    pitch: Real
    """Current waiting point: distance between parts."""
    crowd: Real
    """Current waiting point: number of waiting units."""
    volume: Real
    """Current waiting point: positions of a box of work."""
    box: Reals2
    """(O, R) words of a unit's box."""
    wide: Reals2
    """(O, D) extents for operands with equal tiles within blocks."""
    least: Reals
    """(O,) smallest number of words by which each further part counts."""
    lanes: Reals
    """(O,) number of different boxes."""
    pairs: Reals2
    """(O, O) number of places moving both operands."""
    apart: Reals2
    """(3, D) scratch: extents."""
    known: Wholes
    """(O,) scratch: start of the figures of a tile's work."""
    several: Wholes
    """(O,) scratch: operands with different parts in different units."""
    threshold: Reals2
    """(2, n) scratch: products of thresholds, and the units reaching them."""
    chance: Reals
    """(TAILS,) scratch: probabilities."""
    met: Reals
    """(MOST_MET + 1,) scratch: shares of places non-empty in all operands."""
    met_share: Reals
    """(MOST_MET + 1,) scratch: probability of each share."""
    merged: Reals2
    """(3, MERGED) scratch for maxima."""
    growth: Reals2
    """(4, 4) scratch: longest work of consecutive parts, mean, deviation and length."""
    filled: Reals2
    """(T, S) words from the parent per instance, in time."""
    drained: Reals2
    """(T, S) words to the parent."""
    sent: Reals2
    """(T, S) words to the children."""
    got: Reals2
    """(T, S) words from the children."""
    each: Reals
    """(T,) scratch: cycles to transfer all tiles of a tensor."""
    turn: Reals
    """(T,) scratch: number of these tiles."""

    energy_pj: Real
    compute_pj: Real
    tile_pj: Reals2
    """(T, S) pJ by tensor and level."""
    intersection_pj: Real
    leakage_pj: Real
    gated_pj: Real
    network_pj: Real
    shared_words_pj: Real
    leakage_pj_per_cycle: Real
