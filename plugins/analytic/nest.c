/* Checks of loops and formats (10), the loop nest (3) and dense traffic (4) of one design. */
#include "kernel.h"

#include <string.h>

/* Words per rank of the box of tensor t for extents (1); one word for a tensor without ranks. Returns how many. */
int box(const Model *m, int t, const double *extent, double *widths) {
    int count = (int)m->ranks[t];
    if (m->straight[t]) { /* a rank is a dimension */
        for (int r = 0; r < count; r++) widths[r] = extent[m->terms[(t * m->D + r) * 5 + 1]];
        if (!count) widths[count++] = 1.0;
        return count;
    }
    for (int r = 0; r < count; r++) {
        const int64_t *term = m->terms + (t * m->D + r) * 5;
        double width = 1.0;
        int first = 1;
        for (int i = 0; i < term[0]; i++) {
            double of = extent[term[1 + 2 * i]], c = (double)term[2 + 2 * i];
            if (first && term[2 + 2 * i] == 1)
                width = of;
            else
                width = c * (of - 1.0) + width;
            first = 0;
        }
        widths[r] = width;
    }
    if (!count) widths[count++] = 1.0;
    return count;
}

double volume(const Model *m, int t, const double *extent) {
    double widths[DIMS];
    int count = box(m, t, extent, widths);
    double found = widths[0];
    for (int r = 1; r < count; r++) found = found * widths[r];
    return found;
}

/* What the tables of t want to know of a part with these extents: words, or words per rank. Returns how many. */
int parts(const Model *m, int t, const double *extent, double *found) {
    if (m->by_shape[t]) return box(m, t, extent, found);
    found[0] = volume(m, t, extent);
    return 1;
}

/* The order of the formats of tensor t (6.1); sets whether they compress it. */
static int broken_order(const Model *m, Design *x, int t, const int *busy) {
    int count = 0, broken = 0, any = 0;
    for (int d = 0; d < m->D; d++) count += m->relevant[t * m->D + d] ? busy[d] : 0;
    int told = m->ends && count > m->R && m->form_offsets[m->beyond];
    for (int slot = 0; slot < m->R; slot++) {
        int form = x->slot[t][slot], used = count >= m->R - slot;
        broken |= any && used && !m->form_anywhere[form];
        if (m->ends) {
            broken |= m->form_ends[form] && used && !told;
            told = m->form_offsets[form] && used;
        }
        any |= m->form_compressed[form] && used;
    }
    x->packed[t] = any;
    return broken;
}

static uint64_t reason(int64_t bit, int wrong) { return wrong && bit >= 0 ? (uint64_t)1 << bit : 0; }

/* Bounds, fan-out, order of the formats and metadata for skipping (10): reasons. */
uint64_t checked(const Model *m, Design *x) {
    uint64_t found = 0;
    int busy[DIMS];
    for (int d = 0; d < m->D; d++) {
        double product = x->bound[0][d];
        busy[d] = x->bound[0][d] > 1.0;
        for (int g = 1; g < m->L; g++) {
            product *= x->bound[g][d];
            busy[d] += x->bound[g][d] > 1.0;
        }
        found |= reason(m->factor_bit[d], product != m->sizes[d]);
    }
    for (int g = 0; g < m->L; g++) {
        x->product[g] = x->bound[g][0];
        for (int d = 1; d < m->D; d++) x->product[g] *= x->bound[g][d];
        found |= reason(m->fanout_bit[g], m->fanout_bit[g] >= 0 && x->product[g] > m->fanout[m->group_level[g]]);
    }
    for (int t = 0; t < m->T; t++) found |= reason(m->order_bit[t], broken_order(m, x, t, busy));
    for (int i = 0; i < m->needs; i++) {
        const int64_t *need = m->need + i * (3 + m->M); /* gene, tensor, its level there, by candidate */
        found |= reason(m->place_bit[need[0]], need[3 + x->gene[need[0]]] && !x->packed[need[1]]);
    }
    return found;
}

/* Loops end with the data (remainders.py): of the index vectors of some loops of dimension d, bits by group, the share that
 * begins before the end; loops that are left out stay at their first turn. */
static double share_of(const Model *m, const Design *x, int d, unsigned among) {
    double some = 1.0, every = 1.0;
    for (int i = 0; i < m->L; i++) {
        int group = (int)m->inwards[i];
        double turn = x->turn[group][d];
        if (among >> group & 1) {
            some = turn * every + some;
            every = every * x->bound[group][d];
        } else if (turn > 0.0)
            some = every;
    }
    return some / every;
}

/* Of every dimension that ends early, which loops in time up to those of `link` tensor t does not stay over, in `leads`. */
static void led(const Model *m, Design *x, int t, int link) {
    int still = link < m->S - 1;
    for (int d = 0; d < m->D; d++) x->leads[t][link][d] = 0;
    for (int block = link; block >= 0; block--) {
        int group = (int)m->temporal[block];
        for (int p = m->D - 1; p >= 0; p--) {
            int dim = x->order[group][p];
            still = still && !(m->relevant[t * m->D + dim] && x->bound[group][dim] > 1.0);
            if (!still) x->leads[t][link][dim] |= 1u << group;
        }
    }
}

/* Of the words that `link` exchanges for an instance of `level`, the share that there are, on average; `mean`: the same of
 * dimensions that do not move the tensor. */
static double there(const Model *m, const Design *x, int t, int link, int level, double *mean) {
    double found = 1.0;
    for (int d = 0; d < m->D; d++) {
        if (!(m->last[d] < m->sizes[d])) continue;
        if (m->relevant[t * m->D + d]) {
            found = found * (m->cut[t * m->D + d] ? m->last[d] / m->sizes[d] : 1.0);
            continue;
        }
        mean[d] = share_of(m, x, d, (link < 0 ? 0 : x->leads[t][link][d]) | x->outside[level]);
        found = found * mean[d];
    }
    return found;
}

/* Of these the instance with the most has so many times the mean. */
static double fullest(const Model *m, const Design *x, int t, int link, int level, const double *mean) {
    double found = 1.0;
    for (int d = 0; d < m->D; d++) {
        if (!(m->last[d] < m->sizes[d])) continue;
        if (m->relevant[t * m->D + d])
            found = found * x->own[level][d];
        else if (x->outside[level])
            found = found * (share_of(m, x, d, link < 0 ? 0 : x->leads[t][link][d]) / mean[d]);
    }
    return found;
}

/* Computes, iterations and compute units of a run whose loops end with the data. */
static void remain(const Model *m, Design *x) {
    unsigned time = 0;
    x->outside[0] = 0;
    for (int s = 0; s < m->S; s++) {
        time |= 1u << m->temporal[s];
        x->outside[s + 1] = x->outside[s] | (m->spatial[s] < 0 ? 0 : 1u << m->spatial[s]);
    }
    x->computes = m->last[m->D];
    for (int d = 0; d < m->D; d++) {
        if (!(m->last[d] < m->sizes[d])) continue;
        double rest = m->last[d] - 1.0;
        for (int i = 0; i < m->L; i++) {
            int group = (int)m->inwards[i];
            double above = floor(rest / x->bound[group][d]);
            x->turn[group][d] = rest - above * x->bound[group][d];
            rest = above;
        }
        x->turns = x->turns * share_of(m, x, d, time);
        for (int s = 0; s < m->S; s++)
            x->own[s][d] = x->outside[s] ? share_of(m, x, d, ~x->outside[s]) / (m->last[d] / m->sizes[d]) : 1.0;
    }
    x->turns = floor(x->turns + 0.5);
    x->units = x->units * (x->computes / (x->turns * x->units));
}

void nest(const Model *m, Design *x) {
    int D = m->D, S = m->S;
    for (int d = 0; d < D; d++) x->extent[S][d] = 1.0;
    for (int s = S - 1; s >= 0; s--) {
        const double *temporal = x->bound[m->temporal[s]];
        const double *spatial = m->spatial[s] < 0 ? NULL : x->bound[m->spatial[s]];
        for (int d = 0; d < D; d++) {
            double extent = x->extent[s + 1][d] * temporal[d];
            x->below_spatial[s][d] = spatial ? x->extent[s + 1][d] * spatial[d] : x->extent[s + 1][d];
            x->extent[s][d] = spatial ? extent * spatial[d] : extent;
        }
    }
    for (int t = 0; t < m->T; t++) {
        for (int s = 0; s < S; s++) {
            int count = box(m, t, x->extent[m->spans[t * S + s]], x->width[t][s]);
            x->words[t][s] = x->width[t][s][0];
            for (int r = 1; r < count; r++) x->words[t][s] *= x->width[t][s][r];
        }
        x->words[t][S] = 1.0;
    }
    for (int t = 0; m->option[STAY] && t < m->T; t++)
        for (int s = 0; s < S; s++) {
            int child = (int)m->child[t * S + s];
            x->moves[t][s] = child < 0;
            for (int block = s; block < child; block++)
                for (int d = 0; d < D; d++) x->moves[t][s] |= m->relevant[t * D + d] && x->bound[m->temporal[block]][d] > 1.0;
        }
    x->used[0] = 1.0;
    for (int s = 0; s < S; s++) {
        x->used[s + 1] = m->spatial[s] < 0 ? x->used[s] : x->used[s] * x->product[m->spatial[s]];
        x->steps[s] = s ? x->steps[s - 1] * x->product[m->temporal[s]] : x->product[m->temporal[s]];
    }
    x->computes = x->used[S] * x->steps[S - 1];
    x->turns = x->steps[S - 1];
    x->units = x->used[S];
    if (m->ragged) remain(m, x);
    x->loops = 0;
    for (int i = 0; i < m->L; i++) {
        int group = (int)m->inwards[i], block = (int)m->block[group];
        for (int p = D - 1; p >= 0; p--) {
            int d = x->order[group][p];
            if (!(x->bound[group][d] > 1.0)) continue;
            x->loop_dim[x->loops] = d;
            x->loop_bound[x->loops] = x->bound[group][d];
            x->loop_block[x->loops] = block;
            x->loop_spatial[x->loops++] = m->spatial[block] == group;
        }
    }
}

/* 4.4 where loops end with the data; of the output, words at their first visit are told apart. */
static void end(const Model *m, Design *x, int t, int s) {
    int child = (int)m->child[t * m->S + s], link = (child < 0 ? m->S : child) - 1;
    double serving[DIMS], coming[DIMS] = {0}, seeing[DIMS];
    led(m, x, t, link);
    if (s && m->parent[t * m->S + s] < 0) led(m, x, t, s - 1);
    double serves = there(m, x, t, link, s, serving), comes = s ? there(m, x, t, s - 1, s, coming) : 0.0;
    x->gives[t][s] = fullest(m, x, t, link, s, serving);
    x->gets[t][s] = s ? fullest(m, x, t, s - 1, s, coming) : 1.0;
    if (t != m->output) {
        x->reads[t][s] *= serves;
        x->fills[t][s] *= comes;
        return;
    }
    double seen = there(m, x, t, -1, s, seeing), before = x->updates[t][s] - x->reads[t][s];
    double drained = x->leaving[s] - x->fills[t][s];
    x->updates[t][s] *= serves;
    x->leaving[s] *= comes;
    x->reads[t][s] = max2(0.0, x->updates[t][s] - before * seen);
    x->fills[t][s] = max2(0.0, x->leaving[s] - drained * seen);
}

/* 4.1 without windows: the run of irrelevant loops that lies innermost above the tile is not repeated. */
static void plain_delivered(const Model *m, const Design *x, int t, double *delivered) {
    const int64_t *relevant = m->relevant + t * m->D;
    double outside = 1.0;
    for (int s = 0; s < m->S - 1; s++) {
        int group = (int)m->temporal[s], still = 1;
        double run = 1.0;
        for (int p = m->D - 1; p >= 0; p--) {
            int d = x->order[group][p];
            double bound = x->bound[group][d];
            still = still && !(relevant[d] && bound > 1.0);
            if (still) run = run * bound;
        }
        outside = still ? run * outside : run;
        delivered[s] = x->words[t][s + 1] * (x->steps[s] / outside);
    }
}

/* 4.1 with windows: overlap is kept along the innermost moving loop, and while the step stays the same. */
static double window_delivered(const Model *m, const Design *x, int t, int s) {
    int ranks = (int)m->ranks[t], seen = 0;
    double words = x->words[t][s + 1], total = words, outside = x->steps[s], first_delta = words;
    double moved[DIMS] = {0}, first_step[DIMS] = {0};
    const double *widths = x->width[t][s + 1];
    for (int block = s; block >= 0; block--) {
        int group = (int)m->temporal[block];
        for (int p = m->D - 1; p >= 0; p--) {
            int dim = x->order[group][p], same = seen;
            double bound = x->bound[group][dim];
            if (!(bound > 1.0)) continue;
            outside = outside / bound;
            double overlap = 1.0, step[DIMS];
            for (int r = 0; r < ranks; r++) {
                const int64_t *term = m->terms + (t * m->D + r) * 5;
                step[r] = 0.0;
                for (int i = 0; i < term[0]; i++)
                    if (term[1 + 2 * i] == dim) step[r] = (double)term[2 + 2 * i] * x->below_spatial[block][dim];
                double vector = step[r] - moved[r];
                if (!seen) first_step[r] = vector;
                same = same && vector == first_step[r];
                overlap = overlap * max2(0.0, widths[r] - fabs(vector));
            }
            if (!seen) first_delta = words - overlap;
            double delta = !seen || same ? first_delta : words;
            total = total + (bound - 1.0) * outside * delta;
            for (int r = 0; r < ranks; r++) moved[r] = moved[r] + step[r];
            seen = 1;
        }
    }
    return total;
}

static int64_t common(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* 4.2: different tiles among the children of one instance. */
static double distinct_children(const Model *m, Design *x, int t, int s) {
    double found = 1.0;
    if (m->spatial[s] < 0) return found;
    const double *spatial = x->bound[m->spatial[s]], *inner = x->extent[s + 1];
    for (int r = 0; r < m->ranks[t]; r++) {
        const int64_t *term = m->terms + (t * m->D + r) * 5;
        if (term[0] == 1) {
            found = found * spatial[term[1]];
            continue;
        }
        double n1 = spatial[term[1]], n2 = spatial[term[3]], count = n1 * n2;
        if (n1 > 1.0 && n2 > 1.0) {
            double one = (double)term[2] * inner[term[1]], other = (double)term[4] * inner[term[3]];
            if (!(one < 9e18 && other < 9e18 && one >= 1.0 && other >= 1.0)) {
                x->odd = 1;
                return found;
            }
            int64_t a = (int64_t)one, b = (int64_t)other, g = common(a, b);
            count = count - max2(0.0, n1 - (double)(b / g)) * max2(0.0, n2 - (double)(a / g));
        }
        found = found * count;
    }
    return found;
}

/* 4.3: words of the output that one instance ever sees. */
static void partition(const Model *m, const Design *x, int t, double *part) {
    part[0] = x->words[t][0];
    for (int s = 1; s < m->S; s++) {
        if (s <= m->home[t]) {
            part[s] = part[0];
            continue;
        }
        double spread = volume(m, t, x->below_spatial[s - 1]);
        if (m->windowed[t] || m->strided[t])
            part[s] = floor(part[s - 1] * x->words[t][s] / spread);
        else
            part[s] = floor(part[s - 1] / (spread / x->words[t][s]));
    }
}

/* Of what the children of level s get of tensor t from level `outer`, the share of words (`holes`, charges/holes.py). */
static double word_share(const Model *m, Run *run, Design *x, int t, int s, int outer) {
    int axis = -1, goes_on = 1, D = m->D;
    double reach = 1.0, count = 1.0, found = 1.0;
    if (s < m->S - 1)
        for (int block = s; block >= 0; block--) {
            int group = (int)m->temporal[block];
            for (int p = D - 1; p >= 0; p--) {
                int dim = x->order[group][p];
                double bound = x->bound[group][dim], step = x->below_spatial[block][dim];
                int busy = bound > 1.0, first = busy && axis < 0;
                int more = busy && goes_on && axis == dim && count == 2.0 && step == 2.0 * reach;
                goes_on = goes_on && (!busy || first || more);
                if (first) axis = dim, reach = step;
                count = first ? bound : more ? count * bound : count;
            }
        }
    for (int r = 0; r < m->ranks[t]; r++) {
        if (!m->gaps[t * D + r]) continue;
        const int64_t *term = m->terms + (t * D + r) * 5;
        int terms = (int)term[0];
        double key[9] = {0.0}, width = 0.0, *tile = key + 3, *step = key + 3 + terms, along = 0.0, least = INFINITY;
        for (int i = 0; i < terms; i++) {
            tile[i] = x->extent[s + 1][term[1 + 2 * i]];
            width = width + (double)term[2 + 2 * i] * (tile[i] - 1.0);
        }
        width = 1.0 + width;
        for (int i = 0; i < terms; i++) {
            if (axis == term[1 + 2 * i] && (double)term[2 + 2 * i] * reach < width) along = i + 1.0;
            double spread = 1.0;
            for (int b = s; b >= outer; b--)
                if (m->spatial[b] >= 0) spread *= x->bound[m->spatial[b]][term[1 + 2 * i]];
            least = min2(least, spread);
        }
        for (int b = s, taken = 0; least > 1.0 && b >= outer; b--) { /* children along one dimension share no words */
            int some = 0;
            for (int i = 0; m->spatial[b] >= 0 && i < terms; i++) {
                double n = x->bound[m->spatial[b]][term[1 + 2 * i]];
                if (n == 1.0) continue;
                some = 1;
                step[2 * i] = x->extent[b + 1][term[1 + 2 * i]];
                step[2 * i + 1] = n;
            }
            x->odd |= some && taken; /* children of two blocks are left to NumPy */
            taken |= some;
        }
        key[0] = along;
        key[1] = along == 0.0 ? 1.0 : reach;
        key[2] = along == 0.0 ? 1.0 : count;
        found = found * number(run, x, &run->gap[t][r], key, 3 + 3 * terms);
    }
    return found;
}

/* 4.4, 4.5 */
void traffic(const Model *m, Run *run, Design *x) {
    int S = m->S;
    memset(x->reads, 0, sizeof x->reads);
    memset(x->fills, 0, sizeof x->fills);
    memset(x->updates, 0, sizeof x->updates);
    memset(x->brought, 0, sizeof x->brought);
    memset(x->leaving, 0, sizeof x->leaving);
    for (int t = 0; t < m->T; t++) {
        double delivered[LEVELS], accesses[LEVELS], part[LEVELS];
        if (m->windowed[t])
            for (int s = 0; s < S - 1; s++) delivered[s] = window_delivered(m, x, t, s);
        else
            plain_delivered(m, x, t, delivered);
        delivered[S - 1] = x->steps[S - 1];
        for (int s = 0; s < S; s++) {
            x->distinct[t][s] = distinct_children(m, x, t, s);
            accesses[s] = delivered[s] * x->distinct[t][s];
        }
        for (int s = S - 1; s > 0; s--)
            if (!m->stored[t * S + s]) accesses[s - 1] = accesses[s - 1] * accesses[s] / delivered[s - 1];
        if (t == m->output) partition(m, x, t, part);
        for (int s = 0; s < S; s++) {
            if (!m->stored[t * S + s]) continue;
            int outermost = m->parent[t * S + s] < 0;
            if (t != m->output) {
                x->reads[t][s] = floor(accesses[s] + 0.5);
                if (!outermost) x->fills[t][s] = trunc(delivered[s - 1]);
                if (m->ragged) end(m, x, t, s);
                continue;
            }
            x->updates[t][s] = floor(accesses[s] + 0.5);
            x->reads[t][s] = max2(0.0, floor(accesses[s] - part[s] + 0.5));
            if (!outermost) {
                x->fills[t][s] = max2(0.0, floor(delivered[s - 1] - part[s] + 0.5));
                x->leaving[s] = floor(delivered[s - 1] + 0.5);
            }
            if (m->ragged) end(m, x, t, s);
            if (m->option[DRAINS]) x->reads[t][s] += x->leaving[s];
        }
    }
    memcpy(x->brought, x->fills, sizeof x->fills);
    if (!m->option[HOLES]) return;
    for (int t = 0; t < m->T; t++) {
        int any = 0;
        for (int r = 0; r < m->ranks[t]; r++) any |= (int)m->gaps[t * m->D + r];
        for (int s = 0; any && s < S; s++) {
            if (!m->stored[t * S + s]) continue;
            int child = (int)m->child[t * S + s];
            x->reads[t][s] *= word_share(m, run, x, t, (child < 0 ? S : child) - 1, s);
            if (s) x->fills[t][s] *= word_share(m, run, x, t, s - 1, S);
        }
    }
}
