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
        if (!(x->loop_bound[p] > 1.0) || !relevant[d]) continue;
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
            int64_t row = x->odd ? -1 : row_of(&run->tile[t], print);
            if (row < 0) {
                lacks(run, x, &run->tile[t], print, key, count);
                continue;
            }
            const Table *tile = &run->tile[t]; /* density, occupied, density of these, largest */
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
static double held_at(const Model *m, const double (*most)[LEVELS], int s) {
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

uint64_t metadata_capacity(const Model *m, const Design *x) {
    uint64_t found = 0;
    for (int s = 0; s < m->S; s++) {
        double bits = held_at(m, x->largest_bits, s), needed = held_at(m, x->most, s) * m->word_bits[s] + bits;
        int shared = m->shared[s] != 0.0;
        if (m->capacity[s] != INFINITY && shared && needed > m->capacity[s]) found |= (uint64_t)1 << m->capacity_bit[s];
        if (m->metadata_capacity[s] != INFINITY && !shared && bits > floor(m->metadata_capacity[s]))
            found |= (uint64_t)1 << m->metadata_bit[s];
    }
    return found;
}

/* 7.1: per leader, the probability that its tile of an access to tensor t at `level` is empty, 0 where the action does
 * nothing with this leader, and the words of that tile, infinity there. */
static void leaders_empty(const Model *m, Run *run, Design *x, int t, int level, const Action *a, int blind, Effect *found) {
    int S = m->S, D = m->D, child = (int)m->child[t * S + level], inner = child < 0 ? S : child;
    int dim[LOOPS], spatial[LOOPS], searched[LOOPS], R[LOOPS], P = 0, outermost = -1;
    double bound[LOOPS];
    const int64_t *relevant = m->relevant + t * D;
    for (int s = inner - 1; s >= level; s--)
        for (int which = 0; which < 2; which++) {
            int group = (int)(which ? m->temporal[s] : m->spatial[s]);
            if (group < 0 || (which && child < 0)) continue;
            for (int p = D - 1; p >= 0; p--, P++) {
                dim[P] = x->order[group][p];
                bound[P] = x->bound[group][dim[P]];
                spatial[P] = !which;
                /* at the compute unit only the spatial loops of the innermost level are searched for a target */
                searched[P] = child >= 0 || s == S - 1;
                outermost += searched[P];
            }
        }
    if (!P) { /* the scalar case */
        dim[0] = spatial[0] = outermost = 0;
        bound[0] = 1.0;
        searched[0] = P = 1;
    }
    int target = outermost, hit = 0, moved = 0;
    for (int p = 0; p < P && !hit; p++)
        if (bound[p] > 1.0 && relevant[dim[p]] && searched[p]) target = p, hit = 1;
    int first = hit ? spatial[target] : 0;
    double to_target[DIMS], to_region[DIMS], e[DIMS], region[DIMS];
    for (int d = 0; d < D; d++) to_target[d] = to_region[d] = 1.0;
    for (int p = 0; p < P; p++) {
        int moves = relevant[dim[p]] != 0, outside = p > target && bound[p] > 1.0;
        moved |= outside && !spatial[p] && moves;
        int spans = outside && (spatial[p] || (!moves && !moved && first));
        if (p <= target) to_target[dim[p]] *= bound[p];
        if (p <= target || spans) to_region[dim[p]] *= bound[p];
        R[p] = spans || (p == target && hit);
    }
    for (int d = 0; d < D; d++) {
        e[d] = x->extent[inner][d] * to_target[d];
        region[d] = x->extent[inner][d] * to_region[d];
    }
    double g = volume(m, t, e);
    for (int i = 0; i < a->leaders; i++) {
        int c = (int)a->leader[i], before = 0, idle = 0, several = 0;
        const int64_t *moves_c = m->relevant + c * D;
        double factor[DIMS], f[DIMS], agg = 1.0;
        for (int d = 0; d < D; d++) factor[d] = 1.0, f[d] = region[d];
        for (int p = 0; p < P; p++) {
            int both = R[p] && relevant[dim[p]] && moves_c[dim[p]], again = R[p] && moves_c[dim[p]] && before && first;
            if (both && !again) {
                agg *= bound[p];
                factor[dim[p]] *= bound[p];
            }
            idle |= again;
            before |= both;
        }
        double ratio = g / agg, need = ratio >= 1.0 ? 1.0 : ceil(1.0 / ratio);
        for (int d = 0; m->option[FILTER_METADATA] && d < D; d++) several += relevant[d] && moves_c[d] && factor[d] > 1.0;
        if (several > 1) need = 1.0;
        for (int d = 0; d < D; d++)
            if (relevant[d] && moves_c[d] && factor[d] > 1.0) {
                f[d] = ceil(f[d] / (factor[d] / need));
                if (several <= 1) need = need / factor[d];
            }
        if (need > 1.0) {
            int d = dim[target < 0 ? P - 1 : target];
            f[d] = trunc(f[d] * need);
        }
        if (blind && x->granule[c].there)
            for (int d = 0; d < D; d++) f[d] = max2(f[d], x->granule[c].extent[d]);
        found->words[i] = idle ? INFINITY : volume(m, c, f);
        found->empty[i] = idle ? 0.0 : empty_of(m, run, x, c, f);
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
        double full = 1.0;
        e->action = a;
        e->kind = kind;
        e->level = (int)a->level;
        e->passes = a->passes[candidate] != 0;
        any |= e->passes;
        leaders_empty(m, run, x, (int)a->target, e->level, a, a->blind[candidate] != 0, e);
        for (int l = 0; l < a->leaders; l++) full = full * (1.0 - e->empty[l]);
        e->share = eliminated(run, a, candidate, 1.0 - full);
        for (int l = 0; m->operands != 2 && l < a->leaders; l++) e->empty[l] = caught(run, e->empty[l], 1.0 - full, e->share);
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
            x->differ |= x->energy.share[t][s] != x->time.share[t][s] || (acts && x->energy.kind[t][s] != x->time.kind[t][s]);
    }
}

/* A rank of a tensor (6.1). */
typedef struct {
    int block, format, pointed;
    double length, longest, positions;
    double box[DIMS], below[DIMS], group[DIMS];
} Rank;

/* The ranks of tensor t, the innermost first; `counts`: how many are in the tile of every level. Returns how many. */
static int ranks_of(const Model *m, Run *run, Design *x, int t, Rank *rank, int *counts) {
    int D = m->D, S = m->S, count = 0, parts_of = m->by_shape[t] ? (m->ranks[t] ? (int)m->ranks[t] : 1) : 1;
    const int64_t *relevant = m->relevant + t * D;
    int plain = !(m->windowed[t] || m->strided[t] || m->by_shape[t]);
    double extent[DIMS], words = 1.0, positions = 1.0;
    for (int d = 0; d < D; d++) extent[d] = 1.0;
    for (int p = 0; p < x->loops; p++) {
        int d = x->loop_dim[p];
        double bound = x->loop_bound[p];
        if (!(bound > 1.0) || !relevant[d]) continue;
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
                    memcpy(into, widths, parts_of * sizeof *into);
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
            for (int i = 0; i < parts_of; i++) r->below[i] = floor(r->below[i] + (r->box[i] - r->below[i]) * share + 0.5);
            r->length = ceil(r->length / block);
        }
        if (m->groups) {
            double share = (min2(m->form_group[r->format], r->length) - 1.0) / max2(r->length - 1.0, 1.0);
            for (int i = 0; i < parts_of; i++) r->group[i] = floor(r->below[i] + (r->box[i] - r->below[i]) * share + 0.5);
        }
        r->longest = r->length;
        if (m->padded && m->form_padded[r->format]) {
            double key[2 * DIMS + 1], whole = r->box[0];
            for (int i = 1; i < parts_of; i++) whole = whole * r->box[i];
            memcpy(key, r->box, parts_of * sizeof *key);
            memcpy(key + parts_of, r->below, parts_of * sizeof *key);
            key[2 * parts_of] = volume(m, t, m->sizes) / whole;
            r->longest = min2(number(run, x, &run->longest[t], key, 2 * parts_of + 1), r->length);
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
            for (int j = 0; j < parts_of; j++)
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

/* The units of a rank of the tile of tensor t at level s (6.2): a further entry. */
static void unit(const Model *m, Run *run, Design *x, int t, int s, int place, const Rank *r, double above) {
    double key[4 * DIMS + 6];
    int n = m->by_shape[t] ? (m->ranks[t] ? (int)m->ranks[t] : 1) : 1, count = 0;
    const double *tile = m->by_shape[t] ? x->width[t][s] : &x->words[t][s];
    for (int i = 0; i < n; i++) key[count++] = tile[i];
    for (int i = 0; i < n; i++) key[count++] = min2(r->box[i], tile[i]);
    for (int i = 0; i < n; i++) key[count++] = r->below[i];
    key[count++] = r->length;
    key[count++] = above;
    key[count++] = r->format;
    key[count++] = r->positions;
    key[count++] = m->parent[t * m->S + s] >= 0 ? 1.0 : 0.0;
    for (int i = 0; m->groups && i < n; i++) key[count++] = r->group[i];
    uint64_t print = fingerprint(run, x, key, count, 8);
    int64_t row = x->odd ? -1 : row_of(&run->unit[t], print);
    if (row < 0) {
        key[count++] = r->longest; /* which follows from the others, and is asked for */
        lacks(run, x, &run->unit[t], print, key, count);
        return;
    }
    const Table *units = &run->unit[t];
    Entry *e = &x->entry[x->entries++];
    *e = (Entry){.t = t, .s = s, .place = place, .metadata = cell(units, 0, row), .payload = cell(units, 1, row),
                 .largest_metadata = cell(units, 2, row), .largest_payload = cell(units, 3, row), .metadata_bits = cell(units, 4, row),
                 .payload_bits = cell(units, 5, row)};
    if (r->pointed) {
        int bits = name_bits(run, r->positions + 1.0);
        e->payload = cell(units, 6, row);
        e->largest_payload = cell(units, 7, row);
        if (bits < 0 || bits >= m->bit_count)
            x->odd = 1;
        else
            e->payload_bits = m->bits[bits];
    }
    if (!place) e->payload = e->payload * 0.0, e->largest_payload = e->largest_payload * 0.0; /* that is the data */
}

/* 6.2: the units of every rank of every tensor at every level that stores it, and the bits of the fullest tiles. */
void metadata(const Model *m, Run *run, Design *x) {
    int S = m->S;
    x->entries = 0;
    memset(x->largest_bits, 0, sizeof x->largest_bits);
    memset(x->rank_counts, 0, sizeof x->rank_counts);
    for (int t = 0; t < m->T; t++) {
        if (!x->packed[t]) continue;
        Rank rank[LOOPS];
        int counts[LEVELS];
        int before = x->lacking;
        x->lacking = 0;
        ranks_of(m, run, x, t, rank, counts);
        if (x->lacking) continue; /* the fullest fiber of a padded rank is not known yet */
        x->lacking = before;
        int last = x->slot[t][m->R - 1];
        for (int s = 0; s < S; s++) {
            x->rank_counts[t][s] = counts[s] > 1 ? counts[s] : 1;
            if (!m->stored[t * S + s]) continue;
            int begin = x->entries;
            double all = counts[s] ? rank[counts[s] - 1].positions : 1.0, bits = 0.0;
            for (int i = 0; i < counts[s]; i++) unit(m, run, x, t, s, i, &rank[i], all / rank[i].positions);
            if (!counts[s] && m->one_word && m->form_one_word[last]) { /* a rank without width */
                Rank lone = {.format = (int)m->form_row[last], .pointed = m->form_own[last] != 0, .length = 1.0,
                             .longest = 1.0, .positions = 1.0};
                for (int i = 0; i < DIMS; i++) lone.box[i] = lone.below[i] = lone.group[i] = 1.0;
                unit(m, run, x, t, s, 0, &lone, 1.0);
            }
            for (int i = begin; i < x->entries; i++) {
                const Entry *e = &x->entry[i];
                bits += e->largest_metadata * e->metadata_bits + e->largest_payload * e->payload_bits;
            }
            x->largest_bits[t][s] = ceil(bits);
        }
    }
}
