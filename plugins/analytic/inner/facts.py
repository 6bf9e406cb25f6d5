"""Records of the model: what a problem, a model and a chip fix, and what the chain knows of one design.

Axes: dimensions D, tensors T, storage levels S (0 is the outermost), mapping groups L, ranks R of a tensor, formats F,
places of mechanisms A, candidates for a place M, filters I, operands O. Levels and groups that do not exist are -1.
"""

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
    """What problem, model and chip fix."""

    D: Whole
    T: Whole
    S: Whole
    L: Whole
    slots: Whole
    """Formats that a genome names for each tensor."""
    output: Whole
    """The tensor that computes update."""
    operand: Wholes
    """(O,) the other tensors."""
    sizes: Reals
    """(D,)"""
    ends: Reals
    """(D,) positions with data, at most `sizes`."""
    ragged: Whole
    """Whether loops of some dimension end before their bounds do."""
    temporal: Wholes
    """(S,) mapping group of the loops in time of a level's block."""
    spatial: Wholes
    """(S,) mapping group of the loops over the children of a level."""
    block: Wholes
    """(L,) storage level of a mapping group."""
    inwards: Wholes
    """(L,) mapping groups, the innermost first."""
    relevant: Wholes2
    """(T, D) whether a dimension moves a tensor."""
    ranks: Wholes
    """(T,) ranks of a tensor."""
    terms: Wholes2
    """(T, R) dimensions that move along a rank, at most two."""
    term_dim: Wholes3
    """(T, R, 2)"""
    term_factor: Reals3
    """(T, R, 2) words by which one step of a dimension moves."""
    windowed: Wholes
    """(T,) whether two dimensions move along some rank."""
    strided: Wholes
    """(T,) whether a dimension moves by more than one word."""
    by_shape: Wholes
    """(T,) whether tables ask for the words of each rank, not for all words together."""
    stored: Wholes2
    """(T, S)"""
    streamed: Wholes2
    """(T, S) whether words pass through the level on their way in."""
    parent: Wholes2
    """(T, S) the next outer level that stores the tensor."""
    child: Wholes2
    """(T, S) the next inner level that stores the tensor."""
    spans: Wholes2
    """(T, S) the level whose tile a level holds: 0 where the whole tensor resides."""
    innermost: Wholes
    """(T,) the innermost level that stores the tensor."""
    home: Wholes
    """(T,) the outermost level that stores the tensor."""
    linked: Wholes
    """(T,) whether compute units hand words on to their neighbours."""
    slides: Wholes
    """(T,) the dimension whose loop is the outermost around the home of a tensor that slides by; -1: it does not."""
    room: Reals
    """(T,) words that a tensor takes at its home; NaN: those of its tile."""
    turned: Wholes
    """(T,) whether it takes those of one turn of the loop of `slides` there."""
    volumes: Reals
    """(T,) words of the whole tensor."""
    copies: Reals2
    """(T, S) tiles for which a level has room."""
    gaps: Wholes2
    """(T, R) whether some positions along a rank are no words."""
    cut: Wholes2
    """(T, D) whether the words along a dimension are its share of the padded size."""
    density: Reals
    """(T,)"""
    rounded: Reals
    """(T,) the density in millionths, as Timeloop rounds it."""
    nonzeros: Reals2
    """(O, O) share of all computes at which two operands of actual data both hold a nonzero, one of them on the diagonal."""
    led_nonzeros: Reals2
    """(I, 2) share of the computes at which the leaders of a filter that are actual data hold a nonzero, and at which the
    target does as well; a negative share: none of them is actual data."""
    joint: Whole
    """Whether the nonzeros of both operands are counted together."""
    actual: Wholes
    """(T,) whether a tensor is among those whose nonzeros are counted together."""
    own_nonzeros: Reals
    """(T,) share of the computes at which such a tensor holds a nonzero."""

    gate_time: Whole
    positions: Whole
    drains: Whole
    sums: Whole
    holes: Whole
    filter_metadata: Whole
    stay: Whole
    pointers: Whole
    imbalance: Whole
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
    """Timeloop's mistakes to repeat (`quirks.py`)."""

    beyond: Whole
    """Format of ranks outside the last slot."""
    compressed: Wholes
    """(F,) as the next ones."""
    padded: Wholes
    anywhere: Wholes
    payload_links: Wholes
    """Whether positions lead to the rank below by payload with bits."""
    offsets: Wholes
    needs_ends: Wholes
    own_offsets: Wholes
    of_one_word: Wholes
    flattened: Wholes
    alone: Wholes
    """Whether the format takes ranks of a single loop only."""
    form_block: Reals
    form_group: Reals
    """Positions that a format stores, and that its code lists, together."""
    asked: Wholes2
    """(4, F) row of the tables of ranks, by what the rank above says: 1 its fibers are filled, 2 their ends."""
    pads: Whole
    """Whether any format stores more than nonzeros."""
    every_fiber: Whole
    """Whether codes of all fibers count, empty ones too."""
    grouped: Whole
    """Whether any code lists positions in groups."""
    decodes: Wholes2
    """(T, S + 1) whether a level can hold the tensor decoded."""

    filters: Whole
    """I, filters at storage, those at inner places first; row I is the compute unit's."""
    gene: Wholes
    """(I + 1,) place of the mechanism."""
    target: Wholes
    """(I + 1,)"""
    level: Wholes
    """(I + 1,) level that hands the target over there."""
    place: Wholes
    """(I + 1,) level of the place."""
    leaders: Wholes
    """(I + 1,) how many."""
    leader: Wholes2
    """(I + 1, T)"""
    holder: Wholes2
    """(I + 1, T) level that hands the leader over there."""
    kind: Wholes2
    """(I + 1, M) by candidate, as the next ones: none, gate or skip."""
    blind: Wholes2
    """Whether it looks at metadata alone."""
    passes: Wholes2
    """Whether the cycle of a filtered access passes."""
    entries: Wholes2
    """Whether a skip walks along entries, not positions."""
    own_share: Wholes2
    """Whether a plugin says which share is removed."""
    width: Reals2
    """Positions that a skip passes in a cycle; infinity: any number."""
    lookahead: Reals2
    """Positions that it sees; 0: all."""
    effectiveness: Reals2
    unit: Whole
    """Place of the compute unit's mechanism."""
    need_place: Wholes
    """(N,) a place .."""
    need_tensor: Wholes
    """(N,) .. a tensor .."""
    need_level: Wholes
    """(N,) .. the level that hands it over there .."""
    needy: Wholes2
    """(N, M) .. and whether a candidate for that place needs metadata of the tensor."""
    deals: Whole
    """Filters that deal work out to lanes (7.4), the outermost level first."""
    deal_level: Wholes
    deal_gene: Wholes
    deal_target: Wholes
    deal_leaders: Wholes
    deal_leader: Wholes2
    """(.., T)"""
    deal_packs: Wholes
    deal_chosen: Wholes2
    """(.., M) whether a candidate does so."""

    factor_bit: Wholes
    """(D,) bit of a reason, as the next ones; -1: none."""
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
    """(S,) as the next ones."""
    data_words: Reals
    """Words of data for which an instance has room."""
    capacity_bits: Reals
    shared: Wholes
    """Whether metadata share the room of the data."""
    metadata_capacity_bits: Reals
    word_bits: Reals
    access_words: Reals
    metadata_width: Reals
    """Bits of an access to metadata."""
    cluster: Reals
    """Instances that an access reaches together."""
    instances: Reals
    read_bandwidth: Reals
    write_bandwidth: Reals
    bandwidth: Reals
    """Words per cycle."""
    sight: Reals
    """(S + 1,) positions that a skipping unit sees in a cycle; the last: at the compute units."""
    price_pj: Reals2
    """(12, S) of an access, by READ and so on."""
    extra_pj: Reals2
    """(4, S) of a gated read, update, metadata read and metadata update above its own price (`gated`)."""
    decode_pj: Reals
    encode_pj: Reals
    add_word_pj: Reals
    """(S + 1,) the last: at the compute units."""
    add_metadata_pj: Reals
    leakage_mw: Reals
    asleep: Reals
    """Share of its leakage that an instance without use takes."""
    side_mm: Reals
    """Of the square over all children of one instance."""
    mac_pj: Real
    mac_gated_pj: Real
    mac_skipped_pj: Real
    mac_extra_pj: Real
    """Of a gated compute above its own price (`gated`)."""
    mac_passed_pj: Real
    """Of an empty position (`gated`, `positions`)."""
    wire_pj: Real
    """Of a bit and a mm."""
    clock_hz: Real

    buffers: Wholes2
    """(S, T) tiles of a tensor for which a level has room."""
    steals: Wholes
    """(S,) whether the children of a level share their work."""
    sharing: Whole
    """Whether those of any level do."""
    rank_of: Wholes2
    """(T, D) the rank along which a dimension moves, 0 if it moves along none."""
    limits: Reals2
    """(O, R) words of an operand that a lane can have at most."""
    alike: Wholes
    """(O,) whether tiles of an operand are alike within blocks."""
    alike_words: Reals2
    """(O, R + 1) words of such a block, 1 for other operands."""
    rarity: Reals
    """(O,) logarithm of the chance that a word of such an operand is empty."""
    block_steps: Reals2
    """(O, D) steps of a dimension within a block."""
    lanes: Whole
    """Numbers of units 2^(i - 2) for which tables have maxima."""
    deviations: Reals
    """(lanes,) deviation of the maximum of so many normal numbers over what it exceeds their mean by."""
    normal_means: Reals
    """(lanes,) mean of that maximum .."""
    normal_deviations: Reals
    """(lanes,) .. and its deviation."""
    normal_at: Reals
    """(n,) numbers, evenly spaced .."""
    normal_below: Reals
    """(n,) .. and the chance that a normal number is below."""
