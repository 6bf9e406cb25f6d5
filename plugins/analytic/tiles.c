/* What tiles hold (5.6, 6.5), what filters remove (7.1), and the metadata of ranks (6.1 to 6.3) of one design. */
#include "kernel.h"

#include <string.h>

static double empty_of(const Model *m, Run *run, Design *x, int t, const double *extent) {
    double of[DIMS];
    return number(run, x, &run->empty[t], of, parts(m, t, extent, of));
}

/* A number by two parts of a tensor, and by one more number if `more` is not NAN. */
static double by_two(const Model *m, Run *run, Design *x, Table *table, int t, const double *a, const double *b, double more) {
    double key[2 * DIMS + 1];
    int count = parts(m, t, a, key);
    count += parts(m, t, b, key + count);
    if (more == more) key[count++] = more;
    return number(run, x, table, key, count);
}

static int form_at(const Model *m, const Design *x, int t, int place) {
    return place < m->R ? x->slot[t][m->R - 1 - place] : m->beyond;
}

/* 6.5: the part of tensor t that its formats store or leave out together. */
static void granule_of(const Model *m, Run *run, Design *x, int t) {
    Granule *g = &x->granule[t];
    const int64_t *relevant = m->relevant + t * m->D;
    double below[DIMS], fiber[DIMS], length = 1.0;
    int place = -1, format = -1;
    g->there = g->outer = 0;
    if (!m->pads) return;
    for (int d = 0; d < m->D; d++) below[d] = 1.0;
    for (int p = 0; p < x->loops; p++) {
        int d = x->loop_dim[p];
        if (!relevant[d]) continue;
        int form = form_at(m, x, t, ++place);
        if (format >= 0) {
            g->outer |= m->form_compressed[form] != 0;
        } else if (m->form_compressed[form]) {
            format = form;
            g->dim = d;
            length = x->loop_bound[p];
        } else {
            below[d] *= x->loop_bound[p];
        }
    }
    if (format < 0) return; /* a design that compresses t has such a rank */
    memcpy(g->extent, below, sizeof below);
    memcpy(fiber, below, sizeof below);
    g->extent[g->dim] *= min2(m->form_block[format], length);
    fiber[g->dim] *= length;
    int padded = m->form_padded[format] != 0;
    if (!padded && !(volume(m, t, g->extent) > 1.0)) return;
    g->there = 1;
    g->length = length;
    g->width = INFINITY;
    g->density = 1.0 - empty_of(m, run, x, t, g->extent);
    if (!padded) return;
    double count = volume(m, t, m->sizes) / volume(m, t, fiber);
    double longest = by_two(m, run, x, &run->longest[t], t, fiber, below, count);
    double kept = g->outer ? 1.0 - empty_of(m, run, x, t, fiber) : 1.0;
    double filled = length * (1.0 - empty_of(m, run, x, t, below));
    longest = max2(longest, filled / positive(kept));
    g->width = min2(longest, length);
    g->density = kept * g->width / length;
}

/* Share of the tiles of level s that are sent by a parent that sends no empty ones, where there are granules. */
static double sent_of(const Model *m, Run *run, Design *x, int t, int s) {
    const Granule *g = &x->granule[t];
    double whole[DIMS];
    for (int d = 0; d < m->D; d++) whole[d] = max2(x->extent[s][d], g->extent[d]);
    double sent = 1.0 - empty_of(m, run, x, t, whole), tile = x->extent[s][g->dim];
    if (g->width == INFINITY) return sent;
    double positions = tile / min2(tile, g->extent[g->dim]);
    if (positions < g->length) return 1.0 - power(run, 1.0 - min2(g->density, 1.0), max2(positions, 1.0));
    return g->outer ? sent : 1.0; /* padding is sent as well */
}

static double largest_of(const Model *m, Run *run, Design *x, int t, int s) {
    const Granule *g = &x->granule[t];
    const double *tile = x->extent[m->spans[t * m->S + s]];
    double part[DIMS], words = volume(m, t, tile);
    for (int d = 0; d < m->D; d++) part[d] = min2(tile[d], g->extent[d]);
    if (g->width == INFINITY) return min2(words, by_two(m, run, x, &run->largest[t], t, tile, part, NAN));
    double positions = min2(max2(tile[g->dim] / part[g->dim], 1.0), g->length);
    return words * min2(1.0, ceil(g->width) / positions);
}

/* 5.6, 6.5: words that tiles hold at most, the share of instances that get one, and stored words per word of these. */
void stored(const Model *m, Run *run, Design *x) {
    int S = m->S;
    memset(x->most, 0, sizeof x->most);
    for (int t = 0; t < m->T; t++) {
        x->granule[t].there = 0;
        if (x->packed[t]) granule_of(m, run, x, t);
        const Granule *g = &x->granule[t];
        for (int s = 0; s < S; s++) {
            x->occupied[t][s] = x->held[t][s] = 1.0;
            if (!m->stored[t * S + s]) continue;
            x->most[t][s] = x->words[t][s];
            if (!x->packed[t]) continue;
            int drops = m->parent[t * S + s] >= 0;
            if (g->there) {
                x->most[t][s] = largest_of(m, run, x, t, s);
                x->occupied[t][s] = drops ? sent_of(m, run, x, t, s) : 1.0;
                x->held[t][s] = min2(g->density / positive(x->occupied[t][s]), 1.0);
                continue;
            }
            int ranks = m->ranks[t] ? (int)m->ranks[t] : 1;
            const double *key = m->by_shape[t] ? x->width[t][s] : &x->words[t][s];
            int count = m->by_shape[t] ? ranks : 1;
            uint64_t print = fingerprint(run, x, key, count, 0);
            int64_t row = x->odd ? -1 : row_of(&run->tile[t].known, print);
            if (row < 0) {
                lacks(run, x, &run->tile[t], print, key, count);
                continue;
            }
            const Lookup *tile = &run->tile[t].known; /* density, occupied, density of these, largest */
            x->most[t][s] = cell(tile, 3, row);
            x->occupied[t][s] = drops ? cell(tile, 1, row) : 1.0;
            x->held[t][s] = cell(tile, drops ? 2 : 0, row);
        }
        double room = m->room[t]; /* of a tensor that resides, at its home */
        int home = (int)m->home[t];
        if (room == room) x->most[t][home] = x->most[t][home] * room / x->words[t][home];
    }
}

/* What a level must have room for, of what the tile of each tensor has at most. */
double held_at(const Model *m, const double (*most)[LEVELS], int s) {
    double found = 0.0;
    for (int t = 0; t < m->T; t++) {
        double own = m->copied ? most[t][s] * m->copies[t * m->S + s] : most[t][s];
        found = t ? found + own : own;
    }
    return found;
}

uint64_t data_capacity(const Model *m, const Design *x) {
    uint64_t found = 0;
    for (int s = 0; s < m->S; s++)
        if (m->capacity[s] != INFINITY && held_at(m, x->most, s) > m->data_words[s]) found |= (uint64_t)1 << m->capacity_bit[s];
    return found;
}

/* The same of all words of tiles, whatever they hold. */
uint64_t data_capacity_dense(const Model *m, Design *x) {
    for (int t = 0; t < m->T; t++)
        for (int s = 0; s < m->S; s++)
            if (m->stored[t * m->S + s]) x->most[t][s] = x->words[t][s];
    return data_capacity(m, x);
}

uint64_t metadata_capacity(const Model *m, const Design *x) {
    uint64_t found = x->narrow;
    for (int s = 0; s < m->S; s++) {
        double bits = held_at(m, x->largest_bits, s), needed = held_at(m, x->most, s) * m->word_bits[s] + bits;
        int shared = m->shared[s] != 0.0;
        if (m->capacity[s] != INFINITY && shared && needed > m->capacity[s]) found |= (uint64_t)1 << m->capacity_bit[s];
        if (m->metadata_capacity[s] != INFINITY && !shared && bits > floor(m->metadata_capacity[s]))
            found |= (uint64_t)1 << m->metadata_bit[s];
    }
    return found;
}

/* `stay`: per dimension, iterations of the loops outside a level over which the tile of t stays in the next one. */
static void stay_of(const Model *m, const Design *x, int t, int level, double *found) {
    int moved = x->moves[t][level];
    for (int d = 0; d < m->D; d++) found[d] = 1.0;
    for (int s = level - 1; s >= 0; s--)
        for (int p = m->D - 1; p >= 0 && !moved; p--) {
            int d = x->order[m->temporal[s]][p];
            double bound = x->bound[m->temporal[s]][d];
            moved = bound > 1.0 && m->relevant[t * m->D + d];
            if (!moved) found[d] = found[d] * bound;
        }
}

/* 7.1: per leader, the probability that its tile of an access to tensor t at `level` is empty, 0 where the action does
 * nothing with this leader, and the words of that tile, infinity there. `stays`: all that the tile of t meets in the child. */
static void leaders_empty(const Model *m, Run *run, Design *x, int t, int level, const Action *a, int blind, const double *stays,
                          double *empty, double *words) {
    int S = m->S, D = m->D, child = (int)m->child[t * S + level], inner = child < 0 ? S : child;
    int dim[LOOPS], R[LOOPS], P = 0, hit = 0, first = 0, moved = 0;
    double bound[LOOPS], e[DIMS], region[DIMS];
    const int64_t *relevant = m->relevant + t * D;
    for (int d = 0; d < D; d++) e[d] = region[d] = 1.0;
    for (int p = 0; p < x->loops; p++) { /* those between the level and its child, at the unit only the spatial ones */
        int block = x->loop_block[p], d = x->loop_dim[p], of = x->loop_spatial[p], moves = relevant[d] != 0;
        if (block < level || block >= inner || (child < 0 && !of)) continue;
        /* at the compute unit only the spatial loops of the innermost level are searched for a target */
        int inside = !hit && (child >= 0 || block == S - 1), outside = !inside;
        moved |= outside && !of && moves;
        int spans = outside && (of || (!moves && !moved && first));
        if (inside && moves) {
            hit = 1;
            first = of;
        }
        if (inside) e[d] *= x->loop_bound[p];
        if (inside || spans) region[d] *= x->loop_bound[p];
        R[P] = spans || (inside && moves);
        bound[P] = x->loop_bound[p];
        dim[P++] = d;
    }
    for (int d = 0; d < D; d++) {
        e[d] = x->extent[inner][d] * e[d];
        region[d] = x->extent[inner][d] * region[d];
    }
    double g = volume(m, t, e);
    /* Timeloop has no co-iterated loops where a word serves a single compute */
    int shares = m->option[FILTER_METADATA] || child >= 0 || m->spatial[S - 1] >= 0;
    for (int i = 0; i < a->leaders; i++) {
        int c = (int)a->leader[i], before = 0, idle = 0;
        const int64_t *moves_c = m->relevant + c * D;
        double factor[DIMS], f[DIMS], agg = 1.0, need = 1.0;
        for (int d = 0; d < D; d++) factor[d] = 1.0, f[d] = region[d];
        for (int p = 0; p < P; p++) {
            int both = shares && R[p] && relevant[dim[p]] && moves_c[dim[p]], again = R[p] && moves_c[dim[p]] && before && first;
            if (both && !again) {
                agg *= bound[p];
                factor[dim[p]] *= bound[p];
            }
            idle |= again;
            before |= both;
        }
        if (!m->option[FILTER_METADATA] && g / agg < 1.0) need = ceil(1.0 / (g / agg));
        for (int d = 0; d < D; d++)
            if (relevant[d] && moves_c[d] && factor[d] > 1.0) {
                f[d] = ceil(f[d] / (factor[d] / need));
                if (!m->option[FILTER_METADATA]) need = need / factor[d];
            }
        for (int d = 0; stays && d < D; d++) f[d] = f[d] * stays[d];
        if (blind && x->granule[c].there)
            for (int d = 0; d < D; d++) f[d] = max2(f[d], x->granule[c].extent[d]);
        words[i] = idle ? INFINITY : volume(m, c, f);
        empty[i] = idle ? 0.0 : empty_of(m, run, x, c, f);
    }
}

/* The strongest action of every tensor at every level; gating is processed before skipping, the larger share wins. */
static void strongest(const Model *m, const Design *x, int timed, Removal *found) {
    memset(found, 0, sizeof *found);
    for (int which = GATE; which <= SKIP; which++)
        for (int i = 0; i < x->effects; i++) {
            const Effect *e = &x->effect[i];
            int t = (int)e->action->target, s = e->level;
            if (e->kind != which || (timed && !saves(m, e))) continue;
            if (found->kind[t][s] != NONE && !(e->share > found->share[t][s])) continue;
            found->kind[t][s] = which;
            found->share[t][s] = e->share;
            found->still[t][s] = e->still;
            for (int c = 0; c < m->T; c++) found->empty[t][c][s] = 0.0;
            for (int l = 0; l < e->action->leaders; l++) found->empty[t][e->action->leader[l]][s] = e->empty[l];
        }
}

/* How much of what is empty a mechanism with limits removes (`Filter.reached`). */
double eliminated(const Run *run, const Action *a, int candidate, double empty) {
    double lookahead = a->lookahead[candidate], effectiveness = a->effectiveness[candidate], share;
    if (lookahead > 0.0) {
        double unseen = lookahead == 1.0 ? empty : lookahead == 2.0 ? empty * empty : power(run, empty, lookahead);
        share = (unseen < 1.0 ? (empty - unseen) / (1.0 - unseen) : 1.0 - 1.0 / lookahead) * effectiveness;
    } else {
        share = effectiveness == 1.0 ? empty : empty * effectiveness;
    }
    return min2(share, empty);
}

/* What a mechanism that removes `share` of the `possible` catches of one leader's empty tiles. */
static double caught(const Run *run, double empty, double possible, double share) {
    if (!(share < possible)) return empty;
    if (!(possible < 1.0)) return min2(empty, share);
    return 1.0 - power(run, 1.0 - empty, one(&run->log1p, -share) / one(&run->log1p, -possible));
}

/* The share that an action removes where its leaders' tiles are empty with these chances; with other than two operands
 * these become what it catches of each leader. */
static double removed(const Model *m, const Run *run, const Action *a, int candidate, double *empty) {
    double full = 1.0;
    for (int l = 0; l < a->leaders; l++) full = full * (1.0 - empty[l]);
    double share = eliminated(run, a, candidate, 1.0 - full);
    for (int l = 0; m->operands != 2 && l < a->leaders; l++) empty[l] = caught(run, empty[l], 1.0 - full, share);
    return share;
}

void filters(const Model *m, Run *run, Design *x) {
    int any = 0;
    x->effects = 0;
    memset(x->led, 0, sizeof x->led);
    for (int i = 0; i < m->actions; i++) {
        const Action *a = &m->action[i];
        int candidate = x->gene[a->gene], kind = (int)a->kind[candidate];
        if (kind == NONE) continue;
        if (a->plain[candidate]) x->odd = 1;
        Effect *e = &x->effect[x->effects++];
        for (int l = 0; l < a->leaders; l++) {
            int *led = &x->led[a->leader[l]][a->holder[l]];
            *led = kind > *led ? kind : *led;
        }
        e->action = a;
        e->kind = kind;
        e->level = (int)a->level;
        e->passes = a->passes[candidate] != 0;
        any |= e->passes;
        int t = (int)a->target, blind = a->blind[candidate] != 0;
        leaders_empty(m, run, x, t, e->level, a, blind, NULL, e->empty, e->words);
        e->share = e->still = removed(m, run, a, candidate, e->empty);
        if (m->option[STAY] && e->level && m->child[t * m->S + e->level] >= 0) {
            double stays[DIMS], empty[TENSORS], words[TENSORS];
            stay_of(m, x, t, e->level, stays);
            leaders_empty(m, run, x, t, e->level, a, blind, stays, empty, words);
            e->still = removed(m, run, a, candidate, empty);
        }
    }
    strongest(m, x, 0, &x->energy);
    x->differ = 0;
    x->saving = &x->energy;
    if (!m->option[GATE_TIME] || !any) return;
    strongest(m, x, 1, &x->time);
    x->saving = &x->time;
    for (int t = 0; t < m->T; t++) {
        int acts = 0;
        for (int s = 0; s < m->S; s++) acts |= x->time.kind[t][s] != NONE;
        for (int s = 0; s < m->S; s++)
            x->differ |= x->energy.share[t][s] != x->time.share[t][s] || x->energy.still[t][s] != x->time.still[t][s] ||
                         (acts && x->energy.kind[t][s] != x->time.kind[t][s]);
    }
}

/* The ranks of tensor t, the innermost first; `counts`: how many are in the tile of every level. Returns how many. */
static int ranks_of(const Model *m, Run *run, Design *x, int t, int n, Rank *rank, int *counts) {
    int D = m->D, S = m->S, count = 0;
    const int64_t *relevant = m->relevant + t * D;
    int plain = !(m->windowed[t] || m->strided[t] || m->by_shape[t]);
    double extent[DIMS], words = 1.0, positions = 1.0;
    for (int d = 0; d < D; d++) extent[d] = 1.0;
    for (int p = 0; p < x->loops; p++) {
        int d = x->loop_dim[p];
        double bound = x->loop_bound[p];
        if (!relevant[d]) continue;
        Rank *r = &rank[count];
        r->block = x->loop_block[p];
        r->format = form_at(m, x, t, count++);
        r->pointed = 0;
        if (plain) { /* words are products of bounds */
            r->length = bound;
            words = words * bound;
            r->positions = r->box[0] = words;
            r->below[0] = words / bound;
        } else {
            double widths[DIMS], part = 1.0, coefficient = 1.0;
            for (int which = 0; which < 2; which++) { /* below this loop, and with it */
                for (int i = 0; i < m->ranks[t]; i++) {
                    const int64_t *term = m->terms + (t * D + i) * 5;
                    widths[i] = 1.0;
                    for (int j = 0; j < term[0]; j++) {
                        widths[i] = widths[i] + (double)term[2 + 2 * j] * (extent[term[1 + 2 * j]] - 1.0);
                        if (term[1 + 2 * j] == d) coefficient = (double)term[2 + 2 * j];
                    }
                }
                double *into = which ? r->box : r->below;
                if (m->by_shape[t]) {
                    memcpy(into, widths, n * sizeof *into);
                } else {
                    part = widths[0];
                    for (int i = 1; i < m->ranks[t]; i++) part = part * widths[i];
                    into[0] = part;
                }
                if (!which) extent[d] = extent[d] * bound;
            }
            r->length = (bound - 1.0) * coefficient + 1.0;
            positions = positions * r->length;
            r->positions = positions;
        }
        if (m->blocks) { /* the positions of such a rank are its blocks */
            double block = min2(m->form_block[r->format], r->length), share = (block - 1.0) / (r->length - 1.0);
            for (int i = 0; i < n; i++) r->below[i] = floor(r->below[i] + (r->box[i] - r->below[i]) * share + 0.5);
            r->length = ceil(r->length / block);
        }
        if (m->groups) {
            double share = (min2(m->form_group[r->format], r->length) - 1.0) / max2(r->length - 1.0, 1.0);
            for (int i = 0; i < n; i++) r->group[i] = floor(r->below[i] + (r->box[i] - r->below[i]) * share + 0.5);
        }
        r->longest = r->length;
        if (m->padded && m->form_padded[r->format]) {
            double key[2 * DIMS + 1], whole = r->box[0];
            for (int i = 1; i < n; i++) whole = whole * r->box[i];
            memcpy(key, r->box, n * sizeof *key);
            memcpy(key + n, r->below, n * sizeof *key);
            key[2 * n] = volume(m, t, m->sizes) / whole;
            r->longest = min2(number(run, x, &run->longest[t], key, 2 * n + 1), r->length);
        }
    }
    for (int s = 0; s < S; s++) {
        int from = (int)m->spans[t * S + s];
        counts[s] = 0;
        for (int i = 0; i < count; i++) counts[s] += rank[i].block >= from;
    }
    int packed = count; /* the innermost compressed one */
    for (int i = count - 1; i >= 0; i--)
        if (m->form_compressed[rank[i].format]) packed = i;
    if (m->pads || m->every_fiber) { /* what the next compressed rank outside keeps together (6.5) */
        int next = -1;
        for (int i = count - 1; i >= 0; i--) {
            for (int j = 0; j < n; j++)
                if (next >= 0 || m->every_fiber) rank[i].box[j] = next >= 0 ? rank[next].below[j] : INFINITY;
            if (m->form_compressed[rank[i].format]) next = i;
        }
    }
    if (m->option[POINTERS]) /* the innermost rank outside the child's tile has an offset for each position */
        for (int s = 0; s < S; s++) {
            int child = (int)m->child[t * S + s];
            if (!m->stored[t * S + s] || child < 0 || counts[child] >= counts[s]) continue;
            int offsets = x->energy.kind[t][s] != NONE;
            for (int block = s; block < child; block++)
                for (int d = 0; m->spatial[block] >= 0 && d < D; d++)
                    offsets |= relevant[d] && x->bound[m->spatial[block]][d] > 1.0;
            Rank *r = &rank[counts[child]];
            r->pointed |= offsets && packed < counts[child] && !m->form_linked[r->format];
        }
    for (int i = 0; i < count; i++) {
        int told = 0, form = rank[i].format;
        if (m->every_fiber && i + 1 < count) {
            int above = rank[i + 1].format;
            int tells = m->form_compressed[above] && m->form_block[above] == 1.0 && !m->form_padded[above];
            told = tells + 2 * (m->form_offsets[above] || rank[i + 1].pointed);
        }
        rank[i].format = (int)m->form_row[told * m->F + form] * 2 + (m->form_own[form] != 0); /* taken apart below */
    }
    for (int i = 0; i < count; i++) {
        rank[i].pointed |= rank[i].format & 1;
        rank[i].format >>= 1;
    }
    return count;
}

/* ceil(log2) of a whole number from 1 on, at least 1. */
static int name_bits(const Run *run, double positions) {
    if (!(positions < 1099511627776.0)) return (int)ceil(one(&run->log2, positions)); /* where a double rounds it */
    int bits = 1;
    for (int64_t reach = 2; (double)reach < positions; reach *= 2) bits++;
    return bits;
}

/* A component of a fingerprint. */
static inline uint64_t hashed(const Run *run, Design *x, double value, int place) {
    if (!(value < 9.2e18)) {
        x->odd = 1;
        return 0;
    }
    return (uint64_t)(int64_t)value * (uint64_t)run->factors[place];
}

/* Lists what is asked of a rank that its table lacks, in the order of `Ranks`. */
static void unit_lacks(const Model *m, Run *run, Design *x, const Asked *a, int n) {
    double key[4 * DIMS + 6];
    int count = 0, t = a->t;
    const double *tile = m->by_shape[t] ? x->width[t][a->s] : &x->words[t][a->s];
    for (int i = 0; i < n; i++) key[count++] = tile[i];
    for (int i = 0; i < n; i++) key[count++] = min2(a->rank->box[i], tile[i]);
    for (int i = 0; i < n; i++) key[count++] = a->rank->below[i];
    key[count++] = a->rank->length;
    key[count++] = a->above;
    key[count++] = a->rank->format;
    key[count++] = a->rank->positions;
    key[count++] = m->parent[t * m->S + a->s] >= 0 ? 1.0 : 0.0;
    for (int i = 0; m->groups && i < n; i++) key[count++] = a->rank->group[i];
    key[count++] = a->rank->longest;
    lacks(run, x, &run->unit[t], a->key, key, count);
}

/* 6.2: the units of every rank of every tensor at every level that stores it, and the bits of the fullest tiles. */
void metadata(const Model *m, Run *run, Design *x) {
    enum { FIRST = 8 }; /* component of a fingerprint of ranks */
    int S = m->S, asked = 0, entries = 0;
    x->narrow = 0; /* reasons: codes that cannot be read */
    memset(x->largest_bits, 0, sizeof x->largest_bits);
    memset(x->begin, 0, sizeof x->begin);
    memset(x->end, 0, sizeof x->end);
    memset(x->rank_counts, 0, sizeof x->rank_counts);
    for (int t = 0; t < m->T; t++) {
        if (!x->packed[t]) continue;
        int n = m->by_shape[t] && m->ranks[t] ? (int)m->ranks[t] : 1, counts[LEVELS], before = x->lacking;
        Rank *rank = x->rank + t * LOOPS;
        x->lacking = 0;
        int all_ranks = ranks_of(m, run, x, t, n, rank, counts), lacking = x->lacking;
        x->lacking |= before;
        for (int s = 0; s < S; s++) x->rank_counts[t][s] = counts[s] > 1 ? counts[s] : 1;
        if (lacking) continue; /* the fullest fiber of a padded rank is not known yet */
        if (FIRST + 4 * n + 6 > FACTORS) {
            x->odd = 1;
            return;
        }
        int last = x->slot[t][m->R - 1];
        if (m->one_word && m->form_one_word[last]) { /* a tile of one word has a rank without width */
            Rank *lone = &rank[all_ranks++];
            *lone = (Rank){.format = (int)m->form_row[last], .pointed = m->form_own[last] != 0, .length = 1.0, .longest = 1.0,
                           .positions = 1.0};
            for (int i = 0; i < n; i++) lone->box[i] = lone->below[i] = lone->group[i] = 1.0;
        }
        for (int i = 0; i < all_ranks; i++) {
            Rank *r = &rank[i];
            r->key = hashed(run, x, r->length, FIRST + 3 * n) + hashed(run, x, r->format, FIRST + 3 * n + 2) +
                     hashed(run, x, r->positions, FIRST + 3 * n + 3);
            for (int j = 0; j < n; j++) {
                r->key += hashed(run, x, r->below[j], FIRST + 2 * n + j);
                if (m->groups) r->key += hashed(run, x, r->group[j], FIRST + 3 * n + 5 + j);
            }
            uint64_t bits; /* of a mean, which is not whole */
            memcpy(&bits, &r->longest, sizeof bits);
            r->key += bits * (uint64_t)run->factors[FIRST + 3 * n + 5 + (m->groups ? n : 0)];
        }
        for (int s = 0; s < S; s++) {
            if (!m->stored[t * S + s]) continue;
            int lone = !counts[s] && m->one_word && m->form_one_word[last], count = lone ? 1 : counts[s];
            const double *tile = m->by_shape[t] ? x->width[t][s] : &x->words[t][s];
            double all = counts[s] ? rank[counts[s] - 1].positions : 1.0;
            uint64_t key = m->parent[t * S + s] >= 0 ? (uint64_t)run->factors[FIRST + 3 * n + 4] : 0;
            for (int j = 0; count && j < n; j++) key += hashed(run, x, tile[j], FIRST + j);
            for (int i = 0; i < count; i++) {
                Asked *a = &x->asked[asked++];
                a->t = t;
                a->s = s;
                a->place = i;
                a->rank = &rank[lone ? all_ranks - 1 : i];
                a->above = all / a->rank->positions;
                a->key = key + a->rank->key + hashed(run, x, a->above, FIRST + 3 * n + 1);
                for (int j = 0; j < n; j++) a->key += hashed(run, x, min2(a->rank->box[j], tile[j]), FIRST + n + j);
                a->key |= 1;
                coming(&run->unit[t], a->key);
            }
        }
    }
    if (x->odd) return;
    for (int i = 0; i < asked; i++) {
        Asked *a = &x->asked[i];
        a->row = row_of(&run->unit[a->t].known, a->key);
        if (a->row >= 0)
            prefetch((const char *)(run->unit[a->t].known.data + a->row * run->unit[a->t].known.width));
        else
            unit_lacks(m, run, x, a, m->by_shape[a->t] && m->ranks[a->t] ? (int)m->ranks[a->t] : 1);
    }
    if (x->lacking) return;
    double sums[TENSORS][LEVELS] = {{0}};
    for (int i = 0; i < asked; i++) {
        const Asked *a = &x->asked[i];
        const Lookup *units = &run->unit[a->t].known;
        Entry *e = &x->entry[entries];
        if (!a->place) x->begin[a->t][a->s] = entries;
        x->end[a->t][a->s] = ++entries;
        e->place = a->place;
        e->metadata = cell(units, 0, a->row);
        e->largest_metadata = cell(units, 2, a->row);
        e->metadata_bits = cell(units, 4, a->row);
        if (cell(units, 8, a->row) > 0.0) x->narrow |= (uint64_t)1 << m->entry_bit[a->t];
        if (a->rank->pointed) {
            int bits = name_bits(run, a->rank->positions + 1.0);
            e->payload = cell(units, 6, a->row);
            e->largest_payload = cell(units, 7, a->row);
            if (bits < 0 || bits >= m->bit_count)
                x->odd = 1;
            else
                e->payload_bits = m->bits[bits];
        } else {
            e->payload = cell(units, 1, a->row);
            e->largest_payload = cell(units, 3, a->row);
            e->payload_bits = cell(units, 5, a->row);
        }
        if (!a->place) e->payload = e->payload * 0.0, e->largest_payload = e->largest_payload * 0.0; /* that is the data */
        sums[a->t][a->s] += e->largest_metadata * e->metadata_bits + e->largest_payload * e->payload_bits;
    }
    for (int t = 0; t < m->T; t++)
        for (int s = 0; s < S; s++) x->largest_bits[t][s] = ceil(sums[t][s]);
}
