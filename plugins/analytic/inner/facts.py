"""Constants of a problem, a model and a chip for the compiled chain (docs/model.md).

Axes: dimensions D, tensors T, storage levels S (0 is the outermost), mapping groups L, ranks R of a tensor, formats F,
places of mechanisms A, candidates for a place M, filters I, operands O. Levels and groups that do not exist are -1."""

from __future__ import annotations

from sparsemap.inner.types import Real, Reals, Reals2, Reals3, Whole, Wholes, Wholes2, Wholes3

__all__ = ["Facts"]

NONE = 0
GATE = 1
SKIP = 2
"""Kinds of filters."""
READ = 0
WRITE = 1
GATED_READ = 2
GATED_UPDATE = 3
SKIPPED_READ = 4
SKIPPED_UPDATE = 5
METADATA_READ = 6
METADATA_WRITE = 7
GATED_METADATA_READ = 8
GATED_METADATA_UPDATE = 9
SKIPPED_METADATA_READ = 10
SKIPPED_METADATA_UPDATE = 11
"""Rows of `Facts.price_pj`."""


class Facts:
    """Constants of problem, model and chip."""

    D: Whole
    T: Whole
    S: Whole
    L: Whole
    slots: Whole
    """Formats per tensor in a genome."""
    output: Whole
    """Index of the output tensor, updated by computes."""
    operand: Wholes
    """(O,) indices of the operands."""
    sizes: Reals
    """(D,) product of the loop bounds of a dimension."""
    ends: Reals
    """(D,) positions with data, at most `sizes`."""
    ragged: Whole
    """Whether data of some dimension end before the loop bounds do."""
    temporal: Wholes
    """(S,) mapping group of the temporal loops of a level's block."""
    spatial: Wholes
    """(S,) mapping group of the spatial loops over the children of a level."""
    block: Wholes
    """(L,) storage level of a mapping group."""
    inwards: Wholes
    """(L,) mapping groups, the innermost first."""
    relevant: Wholes2
    """(T, D) whether a dimension moves a tensor."""
    ranks: Wholes
    """(T,) ranks of a tensor."""
    terms: Wholes2
    """(T, R) number of dimensions moving along a rank, at most two."""
    term_dim: Wholes3
    """(T, R, 2) index of each of these dimensions."""
    term_factor: Reals3
    """(T, R, 2) words moved by one step of a dimension."""
    windowed: Wholes
    """(T,) whether two dimensions move along some rank."""
    strided: Wholes
    """(T,) whether a dimension moves by more than one word."""
    by_shape: Wholes
    """(T,) whether table arguments are the words of each rank instead of the total words."""
    stored: Wholes2
    """(T, S) whether a level stores a tensor."""
    streamed: Wholes2
    """(T, S) whether words stream through the level on their way in."""
    parent: Wholes2
    """(T, S) the next outer level storing the tensor."""
    child: Wholes2
    """(T, S) the next inner level storing the tensor."""
    spans: Wholes2
    """(T, S) the level defining the tile held by a level: 0 where the whole tensor resides."""
    innermost: Wholes
    """(T,) the innermost level storing the tensor."""
    home: Wholes
    """(T,) the outermost level storing the tensor (home)."""
    linked: Wholes
    """(T,) whether compute units pass words on to neighbours (4.6)."""
    slides: Wholes
    """(T,) for a sliding tensor, the dimension required of the outermost loop around its home; -1: not sliding (13)."""
    room: Reals
    """(T,) words occupied by a resident tensor at its home; NaN: the words of the tile."""
    turned: Wholes
    """(T,) whether a sliding tensor occupies the words of one turn of the `slides` loop at its home."""
    volumes: Reals
    """(T,) words of the whole tensor."""
    copies: Reals2
    """(T, S) tiles with reserved room in a level."""
    gaps: Wholes2
    """(T, R) whether some positions along a rank hold no word (padding, holes)."""
    cut: Wholes2
    """(T, D) whether words along a dimension scale with the dimension's share of the padded size."""
    density: Reals
    """(T,)"""
    rounded: Reals
    """(T,) the density rounded to millionths, as in Timeloop."""
    nonzeros: Reals2
    """(O, O) share of all computes with nonzeros in two operands of actual data; on the diagonal, in a single operand."""
    led_nonzeros: Reals2
    """(I, 2) share of computes with nonzeros in all actual-data leaders of a filter; the same with a nonzero in the
    target too. Negative: no leader is actual data."""
    joint: Whole
    """Whether nonzeros of both operands are counted together (7.5)."""
    actual: Wholes
    """(T,) whether the joint count includes the tensor."""
    own_nonzeros: Reals
    """(T,) share of the computes with a nonzero in a tensor of the joint count."""

    gate_time: Whole
    positions: Whole
    drains: Whole
    sums: Whole
    holes: Whole
    filter_metadata: Whole
    stay: Whole
    pointers: Whole
    imbalance: Whole
    shared_words: Whole
    vectors: Whole
    intersection: Whole
    overlap: Whole
    leakage: Whole
    gated: Whole
    network: Whole
    """Charges (docs/model.md)."""
    q7: Whole
    q8: Whole
    q11: Whole
    q16: Whole
    q17: Whole
    q18: Whole
    first_fills: Whole
    short_tiles: Whole
    window_positions: Whole
    """Timeloop's defects to reproduce (`quirks.py`)."""

    beyond: Whole
    """Format of ranks beyond the last slot."""
    compressed: Wholes
    """(F,) flags of each format, here and in the fields down to `alone`."""
    padded: Wholes
    anywhere: Wholes
    payload_links: Wholes
    """Whether payload with bits leads from positions to the rank below."""
    offsets: Wholes
    needs_ends: Wholes
    own_offsets: Wholes
    of_one_word: Wholes
    flattened: Wholes
    alone: Wholes
    """Whether the format requires ranks of a single loop."""
    form_block: Reals
    form_group: Reals
    """(F,) positions stored together by a format (`form_block`) and listed together by its code (`form_group`)."""
    asked: Wholes2
    """(4, F) row of a format in the tables of ranks, by knowledge from the rank above: 1 filled fibers, 2 fiber ends, 3
    both."""
    pads: Whole
    """Whether any format stores more than nonzeros (6.5)."""
    every_fiber: Whole
    """Whether the codes of all fibers count, including empty fibers."""
    grouped: Whole
    """Whether any code lists positions in groups."""
    decodes: Wholes2
    """(T, S + 1) whether a level can hold the tensor decoded; always true in column S, without decoding."""

    filters: Whole
    """Number I of filters at storage, sorted from inner to outer places; row I is the compute unit's filter."""
    gene: Wholes
    """(I + 1,) index of the mechanism's place."""
    target: Wholes
    """(I + 1,)"""
    level: Wholes
    """(I + 1,) level delivering the target at the place."""
    place: Wholes
    """(I + 1,) level of the place."""
    leaders: Wholes
    """(I + 1,) number of leaders."""
    leader: Wholes2
    """(I + 1, T)"""
    holder: Wholes2
    """(I + 1, T) level delivering the leader at the place."""
    kind: Wholes2
    """(I + 1, M) filter kind of each candidate: none, gate or skip. Fields down to `effectiveness` have the same shape."""
    blind: Wholes2
    """Whether the filter looks at metadata alone."""
    passes: Wholes2
    """Whether the cycle of a filtered access passes."""
    entries: Wholes2
    """Whether a skip walks along entries instead of positions."""
    own_share: Wholes2
    """Whether a plugin computes the share removed."""
    width: Reals2
    """Positions passed by a skip per cycle; infinity: any number."""
    lookahead: Reals2
    """Positions visible to a skip; 0: all."""
    effectiveness: Reals2
    unit: Whole
    """Place of the compute unit's mechanism."""
    need_place: Wholes
    """(N,) place of a metadata requirement."""
    need_tensor: Wholes
    """(N,) tensor of a metadata requirement."""
    need_level: Wholes
    """(N,) level delivering the tensor at the place."""
    needy: Wholes2
    """(N, M) whether a candidate for the place needs metadata of the tensor."""
    deals: Whole
    """Number of filters dealing work out to lanes (7.4), sorted from outer to inner levels."""
    deal_level: Wholes
    deal_gene: Wholes
    deal_target: Wholes
    deal_leaders: Wholes
    deal_leader: Wholes2
    """(deals, T) leaders of each."""
    deal_packs: Wholes
    deal_chosen: Wholes2
    """(deals, M) whether a candidate applies the filter."""

    factor_bit: Wholes
    """(D,) bit of the reason `factors`; in all fields of bits, -1 means no reason."""
    fanout_bit: Wholes
    """(L,)"""
    slides_bit: Wholes
    """(T,)"""
    order_bit: Wholes
    """(T,)"""
    entry_bit: Wholes
    """(T,)"""
    place_bit: Wholes
    """(A,)"""
    decoding_bit: Wholes
    """(T,)"""
    streaming_bit: Wholes
    """(T,)"""
    capacity_bit: Wholes
    """(S,)"""
    metadata_bit: Wholes
    """(S,)"""
    probability_bit: Wholes
    """(T,)"""

    fanout: Reals
    """(S,) children below one instance; fields down to `bandwidth` have the same shape, unless stated."""
    data_words: Reals
    """Data words with room in one instance."""
    capacity_bits: Reals
    shared: Wholes
    """Whether metadata share the memory of the data."""
    metadata_capacity_bits: Reals
    word_bits: Reals
    word_width: Reals2
    """(T, S) words of a level per word of a tensor, below 1 for packed words."""
    recoding_pj: Reals3
    """(T, S + 1, S + 1) pJ to hand a word between two levels with different number formats; the last: compute units."""
    recodes: Whole
    widens: Whole
    """Whether a level holds the output in fewer bits than a level inside."""
    access_words: Reals
    metadata_width: Reals
    """Bits of one metadata access."""
    cluster: Reals
    """Instances served by one access."""
    instances: Reals
    read_bandwidth: Reals
    write_bandwidth: Reals
    bandwidth: Reals
    """Words per cycle."""
    sight: Reals
    """(S + 1,) positions visible to a skipping unit per cycle; the last entry is for the compute units."""
    price_pj: Reals2
    """(12, S) pJ of an access, by action from `READ` on."""
    extra_pj: Reals2
    """(4, S) pJ of a gated read, update, metadata read and metadata update above the listed gated price (`gated`)."""
    decode_pj: Reals
    encode_pj: Reals
    add_word_pj: Reals
    """(S + 1,) pJ of an addition of one word; the last entry is for the compute units."""
    unit_pj: Reals
    """(M,) pJ of a cycle of the unit of each mechanism (`intersection`)."""
    queue: Reals
    """(S,) words of a unit's queue of words shared below a level; 0: units step together, infinity: no unit waits."""
    separate: Wholes
    """(S,) whether units below a level read and update a word each."""
    queue_pj: Reals
    """(S,) pJ of a word passing a queue."""
    leakage_mw: Reals
    asleep: Reals
    """(S,) share of the leakage left in an unused instance."""
    side_mm: Reals
    """(S,) side in mm of the square over all children of one instance."""
    mac_pj: Real
    mac_gated_pj: Real
    mac_skipped_pj: Real
    mac_extra_pj: Real
    """pJ of a gated compute above the listed gated price (`gated`)."""
    mac_passed_pj: Real
    """pJ of an empty position (`gated`, `positions`)."""
    wire_pj: Real
    """pJ per bit and mm of wire."""
    clock_hz: Real

    buffers: Wholes2
    """(S, T) tiles of a tensor buffered at a level."""
    steals: Wholes
    """(S,) whether the children of a level share work (`work_stealing`)."""
    sharing: Whole
    """Whether the children of any level share work."""
    rank_of: Wholes2
    """(T, D) the rank moved by a dimension; 0 for a dimension without a rank."""
    limits: Reals2
    """(O, R) largest number of words of an operand in one lane, by rank."""
    alike: Wholes
    """(O,) whether all tiles of an operand within a block hold equally many nonzeros (`imbalance`)."""
    alike_words: Reals2
    """(O, R + 1) words of this block by rank; 1 for other operands."""
    rarity: Reals
    """(O,) logarithm of the probability of an empty word of an operand."""
    block_steps: Reals2
    """(O, D) steps of a dimension within a block."""
    lanes: Whole
    """Number of entries in tables of maxima; entry i is for 2^(i - 2) units."""
    deviations: Reals
    """(lanes,) standard deviation of the maximum of normal variables over the excess of this maximum above their mean."""
    normal_means: Reals
    """(lanes,) expected maximum of standard normal variables."""
    normal_deviations: Reals
    """(lanes,) standard deviation of this maximum."""
    normal_at: Reals
    """(n,) evenly spaced points of the standard normal distribution."""
    normal_below: Reals
    """(n,) probability of a normal variable below each point."""
