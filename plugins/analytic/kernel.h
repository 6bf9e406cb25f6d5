/* The model per design (docs/model.md), equal to the NumPy chain to the last bit; numbers in brackets are its sections.
 *
 * A `Model` is what does not change from design to design, a `Run` one call, with the tables and what they lack, a `Design`
 * what is known of one design. Every function does one link of the chain for one design. Floating point is in the order of
 * NumPy's; powers, logarithms and exponentials are NumPy's own loops, so that their last bits are the same.
 */
#ifndef SPARSEMAP_KERNEL_H
#define SPARSEMAP_KERNEL_H

#include <math.h>
#include <stdint.h>

#include "../../sparsemap/loops.h"
#include "lookup.h"

enum {
    DIMS = 12,
    SLOTS = 32,
    TENSORS = 5, /* four operands and the output */
    LEVELS = 8,
    GROUPS = 2 * LEVELS,
    LOOPS = DIMS * GROUPS + 1, /* and the rank of a tile of one word */
    ACTIONS = 64,
    TAILS = 21,   /* thresholds of a tile's work (charges/maxima.py) */
};
enum { NONE, GATE, SKIP };
enum { GATE_TIME, POSITIONS, DRAINS, SUMS, HOLES, REMAINDERS, FILTER_METADATA, STAY, POINTERS, IMBALANCE, INTERSECTION, OVERLAP, LEAKAGE, GATED,
       NETWORK, OPTIONS };
enum { CHARGES = 4 }; /* those that cost energy: intersection, leakage, gated, network */
/* prices of one access, in this order in `Model.price` */
enum { READ, WRITE, GATED_READ, GATED_UPDATE, SKIPPED_READ, SKIPPED_UPDATE, METADATA_READ, METADATA_WRITE,
       GATED_METADATA_READ, GATED_METADATA_UPDATE, SKIPPED_METADATA_READ, SKIPPED_METADATA_UPDATE, PRICES };

typedef struct {
    int64_t gene, target, level, place, leaders;
    const int64_t *leader, *holder; /* of each leader, the level that hands it over there */
    const int64_t *kind, *blind, *passes, *plain; /* by candidate; plain: what it removes is for Python */
    const double *width, *lookahead, *effectiveness; /* lookahead: 0 if there is no limit */
} Action;

typedef struct {
    int D, T, S, L, R, A, M, F, output, operands, actions, needs, beyond, unit;
    int every_fiber, pads, blocks, groups, padded, ends, one_word, copied, clustered;
    int option[OPTIONS];
    const int64_t *temporal, *spatial, *block, *inwards;
    const int64_t *relevant, *ranks, *terms, *windowed, *strided, *straight, *by_shape, *stored, *parent, *child, *spans, *home, *operand;
    const int64_t *factor_bit, *fanout_bit, *order_bit, *entry_bit, *place_bit, *capacity_bit, *metadata_bit, *group_level;
    const int64_t *form_compressed, *form_padded, *form_anywhere, *form_linked, *form_offsets, *form_ends, *form_own,
        *form_one_word, *form_row, *gaps, *cut, *need, *depth, *steals, *rank_of, *alike;
    const double *sizes, *form_block, *form_group, *density, *rounded, *room, *copies;
    const double *fanout, *data_words, *capacity, *shared, *metadata_capacity, *word_bits, *metadata_width,
        *cluster, *instances, *read_bandwidth, *write_bandwidth, *bandwidth, *lookahead, *price, *mac, *extra, *leakage,
        *asleep, *side, *add_word, *add_metadata;
    const double *lane_logs, *deviations, *normal_means, *normal_deviations, *limits, *normal_at, *normal_below;
    const double *bits, *rare, *blocks_of; /* of operands that are alike within blocks: log(1 - density), words by dimension */
    const double *last; /* positions that there are, by dimension, and their product */
    int ragged;         /* loops end before their bounds */
    double clock, gated_each, gated_passed, wire;
    int lanes, lane_count, bit_count, lane_one, lane_two; /* lanes: of `deviations`; lane_count: of the tables */
    int normals; /* of `normal_at` */
    int alikes, shares; /* some operands are alike within blocks, some levels share their work */
    Action action[ACTIONS], at_unit; /* at_unit: what the compute unit does, if `unit` is not -1 */
} Model;

/* A table of `occupancy.lookup`, and the rows that it lacks: what Python needs to make them. */
typedef struct {
    Lookup known;
    double *lacking;
    int64_t lacks, room;
    int width;
} Table;

typedef struct {
    const int64_t *factors;
    Table tile[TENSORS], empty[TENSORS], largest[TENSORS], longest[TENSORS], unit[TENSORS], gap[TENSORS][DIMS];
    Table work[TENSORS], meeting, ratio;
    Ufunc power, log2, exp, hypot, log1p, log;
    uint64_t *asked; /* keys that are on a list already */
    int64_t asked_count;
    int asked_bits;
    int failed; /* out of memory */
} Run;

/* A rank of a tensor (6.1), and the part of its fingerprint that is the same at all levels. */
typedef struct {
    int block, format, pointed;
    uint64_t key;
    double length, longest, positions;
    double box[DIMS], below[DIMS], group[DIMS];
} Rank;

/* What is asked of a rank of a tile at a level that stores its tensor. */
typedef struct {
    int t, s, place;
    const Rank *rank;
    double above;
    uint64_t key;
    int64_t row;
} Asked;

/* What tables say of it (6.2). */
typedef struct {
    int place;
    double metadata, payload, largest_metadata, largest_payload, metadata_bits, payload_bits;
} Entry;

typedef struct {
    int kind[TENSORS][LEVELS];
    double share[TENSORS][LEVELS], still[TENSORS][LEVELS], empty[TENSORS][TENSORS][LEVELS];
} Removal;

typedef struct {
    const Action *action;
    int kind, passes, level;
    double share, still, empty[TENSORS], words[TENSORS]; /* still: of tiles that stay in the next level */
} Effect;

/* Counts with all filters, or with those that save time. */
typedef struct {
    double read[TENSORS][LEVELS], fill[TENSORS][LEVELS], update[TENSORS][LEVELS];
    double gone_read[TENSORS][LEVELS], gone_update[TENSORS][LEVELS];
    double read_bits[TENSORS][LEVELS], fill_bits[TENSORS][LEVELS], update_bits[TENSORS][LEVELS];
    double gone_read_bits[TENSORS][LEVELS], gone_update_bits[TENSORS][LEVELS];
    double leaving[LEVELS];
    double actual, gated, skipped, left, passed, nonzero;
} Counts;

/* The granule of a tensor (6.5). */
typedef struct {
    int there, dim, outer;
    double extent[DIMS], density, width, length;
} Granule;

/* What thins the work of compute units, and where it stays with one tile (charges/imbalance.py). */
typedef struct {
    double looks[TENSORS]; /* by operand, words of the smallest tile at which a skip looks */
    double held[LEVELS][TENSORS][DIMS];
    int grows[LEVELS][TENSORS];
} Thinned;

typedef struct {
    int lacking; /* some table has no row yet */
    int odd;     /* a number that no table takes: for NumPy */
    double bound[GROUPS][DIMS];
    int order[GROUPS][DIMS];
    int slot[TENSORS][SLOTS], gene[LEVELS + 1];
    int packed[TENSORS];
    /* the nest (3) */
    double extent[LEVELS + 1][DIMS], below_spatial[LEVELS][DIMS], product[GROUPS], used[LEVELS + 1], steps[LEVELS], computes;
    double turn[GROUPS][DIMS], turns, units; /* turn: digits of the last positions; turns, units: of the run (remainders) */
    unsigned leads[TENSORS][LEVELS][DIMS], outside[LEVELS + 1]; /* bits by group: loops in time, loops over instances */
    double own[LEVELS][DIMS], gives[TENSORS][LEVELS], gets[TENSORS][LEVELS]; /* the fullest instance over the mean */
    double width[TENSORS][LEVELS][DIMS], words[TENSORS][LEVELS + 1];
    /* loops with a bound above one, the innermost first */
    int loops, loop_dim[LOOPS], loop_block[LOOPS], loop_spatial[LOOPS];
    double loop_bound[LOOPS];
    int moves[TENSORS][LEVELS]; /* the tile in the next level that stores the tensor does not stay */
    /* traffic (4) */
    double distinct[TENSORS][LEVELS], reads[TENSORS][LEVELS], fills[TENSORS][LEVELS], updates[TENSORS][LEVELS];
    double brought[TENSORS][LEVELS], leaving[LEVELS];
    /* stored tiles (5.6, 6.5) */
    double most[TENSORS][LEVELS], occupied[TENSORS][LEVELS], held[TENSORS][LEVELS];
    Granule granule[TENSORS];
    /* filters (7.1) */
    int effects, led[TENSORS][LEVELS]; /* led: the strongest filter that the tensor leads at the level */
    Effect effect[ACTIONS];
    Removal energy, time;
    const Removal *saving; /* that of the filters that save time */
    int differ;            /* whether these leave other counts */
    /* metadata (6.2) */
    int rank_counts[TENSORS][LEVELS], begin[TENSORS][LEVELS], end[TENSORS][LEVELS]; /* entries of each tile */
    Rank *rank; /* LOOPS of each tensor */
    Asked *asked;
    Entry *entry;
    double largest_bits[TENSORS][LEVELS];
    uint64_t narrow;
    double active[TENSORS][LEVELS];
    Counts counts[2]; /* energy, time */
    const Counts *timed;
    double comes[TENSORS][LEVELS]; /* of the filters that save time, as of `along` */
    Thinned thin;
    double cycles, energy_pj;
    /* where these come from */
    double compute_cycles, level_cycles[LEVELS], compute_pj, charge_pj[CHARGES], tile_pj[TENSORS][LEVELS];
    double demand_read[TENSORS][LEVELS], demand_written[TENSORS][LEVELS], demand_filled[TENSORS][LEVELS];
} Design;

static inline void prefetch(const char *place) {
#if defined(__GNUC__)
    __builtin_prefetch(place);
#else
    (void)place;
#endif
}

static inline double less(double count, double share) { return count - floor(count * share); }

/* Powers: NumPy's too are exact where the exponent is 1 or the base is 0 or 1. */
static inline double power(const Run *run, double base, double exponent) {
    if (exponent == 1.0 || base == 1.0) return base;
    if (exponent == 0.0) return 1.0;
    if (base == 0.0 && exponent > 0.0) return 0.0;
    return two(&run->power, base, exponent);
}

/* What the compute unit does with empty operands. */
static inline int unit_kind(const Model *m, const Design *x) {
    return m->unit < 0 ? NONE : (int)m->at_unit.kind[x->gene[m->unit]];
}

/* Figures of the work with a tile: maxima, moments, values and shares (`WorkTiles`). */
static inline int work_width(const Model *m) { return m->lane_count + 2 + 2 * TAILS; }

/* Whether an effect saves time (`gate-time`). */
static inline int saves(const Model *m, const Effect *e) { return !(m->option[GATE_TIME] && e->passes); }

/* tables.c */
uint64_t fingerprint(const Run *run, Design *x, const double *values, int count, int first);
void coming(const Table *table, uint64_t key);
void noted(Run *run, Design *x, Table *table, uint64_t key, const double *values, int count);
void lacks(Run *run, Design *x, Table *table, uint64_t key, const double *values, int count);
double number(Run *run, Design *x, Table *table, const double *values, int count);

/* nest.c */
int box(const Model *m, int t, const double *extent, double *widths);
double volume(const Model *m, int t, const double *extent);
int parts(const Model *m, int t, const double *extent, double *found);
uint64_t checked(const Model *m, Design *x);
void nest(const Model *m, Design *x);
void traffic(const Model *m, Run *run, Design *x);

/* tiles.c */
double eliminated(const Run *run, const Action *a, int candidate, double empty);
void stored(const Model *m, Run *run, Design *x);
double held_at(const Model *m, const double (*most)[LEVELS], int s);
uint64_t data_capacity(const Model *m, const Design *x);
uint64_t data_capacity_dense(const Model *m, Design *x);
void filters(const Model *m, Run *run, Design *x);
void metadata(const Model *m, Run *run, Design *x);
uint64_t metadata_capacity(const Model *m, const Design *x);

/* counts.c */
void along(const Model *m, const Design *x, const Removal *removal, double (*comes)[LEVELS], double (*goes)[LEVELS]);
void counted(const Model *m, Run *run, Design *x);

/* cost.c */
void cycled(const Model *m, Run *run, Design *x);
void costed(const Model *m, Run *run, Design *x);

double whole(double cycles);

/* waiting.c */
void thinned(const Model *m, const Run *run, Design *x);
double waiting_ratio(const Model *m, Run *run, Design *x);
double overlapped(const Model *m, Run *run, Design *x, double mean, double compute, const double *level);

#endif
