/* Counts that compression, filters and the compute units leave of dense traffic (6.4, 7.2, 7.3), for one design. */
#include "kernel.h"

#include <string.h>

/* What filters do to a tensor at a level. */
typedef struct {
    double own[TENSORS][LEVELS];                         /* what a level removes of what reaches it */
    double comes[TENSORS][LEVELS], goes[TENSORS][LEVELS]; /* what filters further out remove of this one (`along`) */
    double scale[3][LEVELS];   /* reads, fills, updates of the output as `drains` and `sums` count them */
    int full[TENSORS][LEVELS]; /* what is looked at is read in full (`filter-metadata`) */
} Shares;

/* Of the accesses of a tensor to a level, what filters further out remove: of those that its parent sends it, and of those
 * that it sends on. Where its child's tile stays, a filter's is what all that it meets allows (`stay`). */
void along(const Model *m, const Design *x, const Removal *removal, double (*comes)[LEVELS], double (*goes)[LEVELS]) {
    for (int t = 0; t < m->T; t++) {
        double above = 0.0, here = 0.0;
        for (int s = 0; s < m->S; s++) {
            comes[t][s] = here;
            if (m->option[STAY] && x->moves[t][s]) here = above;
            goes[t][s] = here;
            if (removal->kind[t][s] == NONE) continue;
            above = removal->share[t][s];
            here = removal->still[t][s];
        }
    }
}

/* 7.2, from the outermost level inwards. */
static void filtered(const Model *m, const Removal *removal, Counts *c, Shares *share_of) {
    for (int t = 0; t < m->T; t++) {
        int acts_above = 0;
        for (int s = 0; s < m->S; s++) {
            double share = removal->still[t][s], *own = &share_of->own[t][s], goes = share_of->goes[t][s];
            *own = 0.0;
            if (s) {
                c->read[t][s] = less(c->read[t][s], goes);
                c->fill[t][s] = less(c->fill[t][s], share_of->comes[t][s]);
                c->update[t][s] = less(c->update[t][s], goes);
            }
            if (removal->kind[t][s] == NONE) continue;
            double left = 1.0 - goes, nested = 1.0 - (1.0 - share) / positive(left);
            nested = left > 0.0 ? max2(nested, 0.0) : 0.0;
            *own = acts_above ? nested : share;
            double lost = c->read[t][s] * *own;
            c->gone_read[t][s] = t == m->output ? ceil(lost) : floor(lost);
            c->gone_update[t][s] = floor(c->update[t][s] * *own);
            c->read[t][s] -= c->gone_read[t][s];
            c->update[t][s] -= c->gone_update[t][s];
            acts_above = 1;
        }
    }
}

/* 6.3, 7.2: bits of the metadata of a tile that are read, filled, updated, and those that an action removes. */
static void metadata_bits(const Model *m, const Design *x, Counts *c, const Shares *share_of, int t, int s) {
    double words = x->words[t][s], read = x->reads[t][s] / words, fill = x->fills[t][s] / words, update = x->updates[t][s] / words;
    double comes = share_of->comes[t][s], goes = share_of->goes[t][s], own = share_of->own[t][s], bits[5] = {0};
    int child = (int)m->child[t * m->S + s], scaled = t == m->output && (m->option[DRAINS] || m->option[SUMS]);
    /* who reads the metadata of all knows which tiles of one word are left out (`pointers`) */
    if (m->option[POINTERS] && t != m->output && child >= 0 && x->words[t][child] == 1.0) own = 0.0;
    /* the ranks that the child has are gated or skipped as well */
    int inside = own == 0.0 ? -1 : child < 0 ? LOOPS + 1 : x->rank_counts[t][child] > 1 ? x->rank_counts[t][child] : 1;
    for (int i = x->begin[t][s]; i < x->end[t][s]; i++) {
        const Entry *e = &x->entry[i];
        double units[2] = {e->metadata, e->payload}, got[5][2] = {{0}}; /* read, fill, update, gone of reads, of updates */
        for (int j = 0; j < 2; j++) {
            got[0][j] = ceil(units[j] * read);
            got[1][j] = ceil(units[j] * fill);
            got[2][j] = ceil(units[j] * update);
            if (comes != 0.0 || goes != 0.0) {
                got[0][j] = less(got[0][j], goes);
                got[1][j] = less(got[1][j], comes);
                got[2][j] = less(got[2][j], goes);
            }
            if (e->place < inside) {
                got[3][j] = floor(got[0][j] * own);
                got[4][j] = floor(got[2][j] * own);
                got[0][j] -= got[3][j];
                got[2][j] -= got[4][j];
            }
            for (int k = 0; scaled && k < 3; k++) got[k][j] *= share_of->scale[k][s];
            if (e->place < inside && share_of->full[t][s]) {
                got[0][j] += got[3][j];
                got[3][j] = 0.0;
            }
        }
        for (int k = 0; k < 3; k++) bits[k] += got[k][0] * e->metadata_bits + got[k][1] * e->payload_bits;
        for (int k = 3; e->place < inside && k < 5; k++) bits[k] += got[k][0] * e->metadata_bits + got[k][1] * e->payload_bits;
    }
    c->read_bits[t][s] = bits[0];
    c->fill_bits[t][s] = bits[1];
    c->update_bits[t][s] = bits[2];
    c->gone_read_bits[t][s] = bits[3];
    c->gone_update_bits[t][s] = bits[4];
}

static double innermost(const Model *m, const int *kind, const double *values) {
    double found = 0.0;
    for (int s = 0; s < m->S; s++)
        if (kind[s] != NONE) found = values[s];
    return found;
}

/* 7.3 */
static void computes(const Model *m, const Run *run, Design *x, const Removal *removal, Counts *c) {
    int n = m->operands;
    double left = x->computes, emptied[TENSORS] = {0}, present[TENSORS], zero[TENSORS], absent[TENSORS];
    for (int i = 0; i < n; i++) {
        int t = (int)m->operand[i];
        if (n == 2) {
            double share = innermost(m, removal->kind[t], removal->share[t]);
            left = less(left, share);
            emptied[m->operand[1 - i]] = share;
            continue;
        }
        double stay = 1.0;
        for (int u = 0; u < m->T; u++) {
            double empty = innermost(m, removal->kind[t], removal->empty[t][u]), before = emptied[u];
            emptied[u] = max2(before, empty);
            stay = stay * (before < 1.0 ? (1.0 - emptied[u]) / (1.0 - before) : 1.0);
        }
        left = less(left, 1.0 - stay);
    }
    for (int i = 0; i < n; i++) {
        int t = (int)m->operand[i];
        double reached = 1.0 - floor(1e6 * emptied[t] + 0.5) / 1e6;
        double here = reached > 0.0 ? m->rounded[t] / reached : 0.0;
        here = min2(max2(here, 0.0), 1.0);
        double rest = 1.0 - here;
        present[i] = here;
        zero[i] = x->packed[t] ? 0.0 : rest;
        absent[i] = x->packed[t] ? rest : 0.0;
        if (x->granule[t].there && x->packed[t]) { /* zeros that are stored with a granule are there (6.5) */
            double held = min2(max2(x->granule[t].density / positive(reached), here), 1.0);
            zero[i] = held - here;
            absent[i] = 1.0 - held;
        }
    }
    double nonzero = 1.0, met_absent, met_zero, idle, vanish;
    for (int i = 0; i < n; i++) nonzero = nonzero * present[i];
    if (n == 2) { /* a combination and its mirror image are added before they are multiplied, as Timeloop does */
        met_absent = left * (present[0] * absent[1] + absent[0] * present[1]) + left * (zero[0] * absent[1] + absent[0] * zero[1]);
        met_zero = left * (present[0] * zero[1] + zero[0] * present[1]) + left * (zero[0] * zero[1]);
        idle = met_absent + met_zero;
        vanish = left * (absent[0] * absent[1]);
    } else {
        int all = 1;
        met_absent = met_zero = idle = vanish = 0.0;
        for (int i = 0; i < n; i++) all *= 3;
        for (int which = 1; which < all; which++) { /* 0: all are nonzero; the first operand changes fastest */
            double chance = 1.0;
            int gone = 0;
            for (int i = 0, digits = which; i < n; i++, digits /= 3) {
                chance = chance * (digits % 3 == 0 ? present[i] : digits % 3 == 1 ? zero[i] : absent[i]);
                gone += digits % 3 == 2;
            }
            double count = chance * left;
            if (gone == n) {
                vanish = vanish + count;
                continue;
            }
            idle = idle + count;
            if (gone)
                met_absent = met_absent + count;
            else
                met_zero = met_zero + count;
        }
    }
    vanish = floor(vanish);
    int kind = unit_kind(m, x);
    double saved = kind == SKIP ? met_absent : kind == GATE ? idle : 0.0;
    if (kind != NONE) { /* with limits of its own the unit leaves out fewer */
        double share = saved / positive(left), caught = eliminated(run, &m->at_unit, x->gene[m->unit], share);
        if (caught < share) saved = left * caught;
        if (m->at_unit.plain[x->gene[m->unit]]) x->odd = 1;
    }
    saved = floor(saved);
    c->skipped = kind == SKIP ? saved : 0.0;
    c->gated = kind == GATE ? saved : 0.0;
    c->left = left;
    c->actual = trunc(left - c->skipped - c->gated - vanish);
    c->nonzero = left * nonzero;
    c->passed = kind == SKIP ? 0.0 : vanish;
}

/* In how many places the products of a word are added, if so many words arrive from or leave an instance of level s. */
static double holders(const Model *m, const Design *x, int s, double words, int child) {
    int t = m->output;
    double once = x->leaving[child] - x->fills[t][child];
    double visits = once > 0.0 ? x->leaving[child] / once : 1.0;
    return max2(1.0, words * x->used[s] / (x->words[t][0] * max2(visits, 1.0)));
}

/* Shares of the words of a tile of the output that leave, and that come back (charges/drains.py). */
static void partial(const Model *m, const Run *run, const Design *x, double words, double back, double places, double kept,
                    double *leave, double *come) {
    *leave = *come = kept;
    if (!m->option[SUMS] || !x->packed[m->output]) return;
    double once = words - back, visits = once > 0.0 ? max2(1.0, words / once) : 1.0;
    double empty = power(run, 1.0 - min2(1.0, m->density[m->output]), 1.0 / places), d = 1.0 - empty;
    double none = power(run, empty, 1.0 / visits), gap = none < 1.0 ? 1.0 - none : 1.0;
    double leaves = none < 1.0 ? 1.0 - none * d / (visits * gap) : 0.0;
    double comes = visits > 1.0 ? (visits * leaves - d) / (visits - 1.0) : 0.0;
    leaves = min2(max2(leaves, 0.0), 1.0);
    comes = min2(max2(comes, 0.0), 1.0);
    double brings_none = max2(0.0, 1.0 - (1.0 - none) / positive(kept));
    double ratio = none > 0.0 ? brings_none / none : 1.0;
    *leave = kept * (1.0 - ratio * (1.0 - leaves));
    *come = kept * comes;
}

/* The share of the updates of level s, next to the compute units, that any of the computes they add leaves. */
static double happens_at(const Model *m, const Run *run, const Design *x, const Counts *c, int s) {
    double computes = m->ragged ? x->computes / x->used[s] : x->used[m->S] / x->used[s] * x->steps[m->S - 1];
    double together = max2(1.0, computes / positive(x->updates[m->output][s]));
    double carried = (x->packed[m->output] ? c->nonzero : c->actual) / x->computes;
    return 1.0 - power(run, 1.0 - min2(max2(carried, 0.0), 1.0), together);
}

/* `drains`, `sums`: the output's counts; metadata go with their words. */
static void drained(const Model *m, const Run *run, const Design *x, const Removal *removal, Counts *c, Shares *share_of) {
    int t = m->output, S = m->S;
    double read[LEVELS], fill[LEVELS], update[LEVELS];
    for (int s = 0; s < S; s++) {
        double above = 1.0 - share_of->comes[t][s], leave, come; /* shares that filters leave */
        double here = 1.0 - (removal->kind[t][s] != NONE ? removal->still[t][s] : share_of->goes[t][s]);
        read[s] = c->read[t][s];
        fill[s] = c->fill[t][s];
        update[s] = c->update[t][s];
        c->leaving[s] = x->leaving[s];
        if (m->stored[t * S + s]) {
            double occupied = x->occupied[t][s], used = x->packed[t] && occupied > 0.0 ? occupied : 1.0;
            double reads = x->reads[t][s] - (m->option[DRAINS] ? x->leaving[s] : 0.0), updates = x->updates[t][s];
            int child = (int)m->child[t * S + s];
            if (s) {
                partial(m, run, x, x->leaving[s], x->fills[t][s], holders(m, x, s, x->leaving[s], s), above, &leave, &come);
                c->leaving[s] = x->leaving[s] * leave / used;
                fill[s] = x->fills[t][s] * come / used;
            }
            if (child < 0) {
                double happens = m->option[SUMS] ? min2(happens_at(m, run, x, c, s), here) : here;
                double words = updates - reads, visits = words > 0.0 ? updates / words : 0.0;
                double touched = words * (1.0 - power(run, 1.0 - happens, visits)), done = updates * happens;
                update[s] = done / used;
                read[s] = (done - touched) / used;
            } else {
                double places = holders(m, x, s, updates, child);
                partial(m, run, x, x->leaving[child], x->fills[t][child], places, here, &leave, &come);
                update[s] = updates * leave / used;
                read[s] = reads * come / used;
            }
            if (m->option[DRAINS]) read[s] += c->leaving[s];
        }
        read[s] = max2(read[s], 0.0);
    }
    for (int s = 0; s < S; s++) {
        share_of->scale[0][s] = read[s] / positive(c->read[t][s]);
        share_of->scale[1][s] = fill[s] / positive(c->fill[t][s]);
        share_of->scale[2][s] = update[s] / positive(c->update[t][s]);
        c->gone_read[t][s] = min2(c->gone_read[t][s], max2(x->reads[t][s] - read[s], 0.0));
        c->gone_update[t][s] = min2(c->gone_update[t][s], max2(x->updates[t][s] - update[s], 0.0));
        c->read[t][s] = read[s];
        c->fill[t][s] = fill[s];
        c->update[t][s] = update[s];
    }
}

/* `filter-metadata`: no filter of a leader holds back what the filter looks at there. */
static void read_in_full(const Model *m, const Design *x, Counts *c, Shares *share_of) {
    for (int t = 0; t < m->T; t++)
        for (int s = 0; s < m->S; s++) {
            int full = share_of->full[t][s] = m->option[FILTER_METADATA] && x->led[t][s] >= GATE;
            if (!full || x->packed[t]) continue;
            c->read[t][s] = c->read[t][s] + c->gone_read[t][s];
            c->gone_read[t][s] = 0.0;
        }
}

static void counts_with(const Model *m, const Run *run, Design *x, const Removal *removal, Counts *c) {
    Shares share_of;
    memset(c, 0, sizeof *c);
    for (int t = 0; t < m->T; t++)
        for (int s = 0; s < m->S; s++) {
            if (!m->stored[t * m->S + s]) continue;
            double emptiness = 1.0 - x->held[t][s];
            c->read[t][s] = less(x->reads[t][s], emptiness);
            c->fill[t][s] = less(x->fills[t][s], emptiness);
            c->update[t][s] = less(x->updates[t][s], emptiness);
        }
    along(m, x, removal, share_of.comes, share_of.goes);
    filtered(m, removal, c, &share_of);
    computes(m, run, x, removal, c);
    if (m->option[DRAINS] || m->option[SUMS]) drained(m, run, x, removal, c, &share_of);
    read_in_full(m, x, c, &share_of);
    for (int t = 0; t < m->T; t++)
        for (int s = 0; s < m->S; s++)
            if (x->end[t][s] > x->begin[t][s]) metadata_bits(m, x, c, &share_of, t, s);
}

void counted(const Model *m, Run *run, Design *x) {
    for (int t = 0; t < m->T; t++)
        for (int s = 0; s < m->S; s++) x->active[t][s] = (m->stored[t * m->S + s] ? x->used[s] : 0.0) * x->occupied[t][s];
    counts_with(m, run, x, &x->energy, &x->counts[0]);
    if (x->differ) counts_with(m, run, x, &x->time, &x->counts[1]);
    x->timed = &x->counts[x->differ];
}
