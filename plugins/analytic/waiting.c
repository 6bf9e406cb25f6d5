/* What compute units and levels wait for: `imbalance` (charges/imbalance.py), `overlap` (overlap.py, uneven.py). */
#include "kernel.h"

#include <string.h>

static const double NEAR = 0.1, ROOT_OF_PI = 1.7724538509055159, ROOT_OF_TWO_PI = 2.5066282746310002;

/* What a design does between two points at which units wait (maxima.py). */
typedef struct {
    int depth, grows;
    double turns, units, points, pitch;
    double box[TENSORS][DIMS], lanes[TENSORS], pairs[TENSORS][TENSORS]; /* by operand */
} Work;

static int widths_of(const Model *m, int t) { return m->by_shape[t] && m->ranks[t] ? (int)m->ranks[t] : 1; }

void thinned(const Model *m, Design *x) {
    Thinned *found = &x->thin;
    for (int i = 0; i < m->operands; i++) {
        int t = (int)m->operand[i];
        found->looks[i] = INFINITY;
        for (int j = 0; j < x->effects; j++) {
            const Effect *e = &x->effect[j];
            if (e->action->target == m->output || !saves(m, e) || !(e->share > 0.0)) continue;
            for (int l = 0; l < e->action->leaders; l++)
                if (e->action->leader[l] == t) found->looks[i] = min2(found->looks[i], e->words[l]);
        }
        if (unit_kind(m, x) == SKIP && x->packed[t]) found->looks[i] = 1.0;
    }
    /* bounds of the loops that leave the tile inside in its place, and the dimension of the next one */
    for (int s = 0; s < m->S - 1; s++)
        for (int t = 0; t < m->T; t++) {
            const double *here = x->bound[m->temporal[s]];
            const int *order = x->order[m->temporal[s]];
            int last = -1;
            for (int p = 0; p < m->D; p++)
                if (here[order[p]] > 1.0 && m->relevant[t * m->D + order[p]]) last = p;
            for (int p = 0; p < m->D; p++) {
                int d = order[p];
                double inner = p > last ? here[d] : 1.0;
                found->held[s][t][d] = last < 0 && s ? inner * found->held[s - 1][t][d] : inner;
            }
            found->grows[s][t] = last >= 0 ? order[last] : s ? found->grows[s - 1][t] : -1;
        }
}

/* A box of work with these extents, done by units along loops with these bounds over these dimensions. */
static void boxed(const Model *m, const double *extent, const double *loop, const int *dim, int loops, Work *w) {
    for (int i = 0; i < m->operands; i++) {
        int t = (int)m->operand[i], count = box(m, t, extent, w->box[i]);
        for (int r = 1; !m->by_shape[t] && r < count; r++) w->box[i][0] = w->box[i][0] * w->box[i][r];
        w->lanes[i] = 1.0;
        for (int k = 0; k < loops; k++)
            if (m->relevant[t * m->D + dim[k]]) w->lanes[i] *= loop[k];
    }
    for (int i = 0; i < m->operands; i++)
        for (int j = i + 1; j < m->operands; j++) {
            double both = 1.0;
            for (int k = 0; k < loops; k++)
                if (m->relevant[m->operand[i] * m->D + dim[k]] && m->relevant[m->operand[j] * m->D + dim[k]]) both *= loop[k];
            w->pairs[i][j] = min2(both, min2(w->lanes[i], w->lanes[j]));
        }
    w->units = w->points = 1.0;
    for (int k = 0; k < loops; k++) w->units *= loop[k];
    for (int d = 0; d < m->D; d++) w->points *= extent[d];
}

/* Cycles of the run over the cycles of the mean unit (`Maxima.ratios`). */
static double ratio_of(const Model *m, Run *run, Design *x, const Work *w, const double *looks) {
    double key[FACTORS + 1], asked[FACTORS + 1];
    int thins = 0, count = 0;
    for (int i = 0; i < m->operands; i++) thins |= looks[i] < INFINITY && w->lanes[i] > 1.0;
    if (!thins) return 1.0;
    int needed = 4;
    for (int i = 0; i < m->operands; i++) needed += 4 + widths_of(m, (int)m->operand[i]);
    if (needed + m->operands * (m->operands - 1) / 2 > FACTORS) {
        x->odd = 1;
        return 1.0;
    }
    key[0] = asked[0] = w->depth;
    key[1] = min2(w->turns, 1 << 20);
    asked[1] = w->turns;
    key[2] = asked[2] = w->units;
    key[3] = asked[3] = w->points;
    count = 4;
    for (int i = 0; i < m->operands; i++) {
        int t = (int)m->operand[i], there = looks[i] < INFINITY;
        int growth = w->grows >= 0 && m->relevant[t * m->D + w->grows] ? 1 + (int)m->rank_of[t * m->D + w->grows] : 0;
        asked[count] = looks[i];
        key[count++] = there ? looks[i] : 0.0;
        asked[count] = growth;
        key[count++] = there ? growth : 0.0;
        asked[count] = key[count] = min2(w->pitch, 1.0);
        count++;
        asked[count] = w->lanes[i];
        key[count++] = there ? w->lanes[i] : 1.0;
        for (int r = 0; r < widths_of(m, t); r++) {
            asked[count] = w->box[i][r];
            key[count++] = there ? w->box[i][r] : 1.0;
        }
    }
    for (int i = 0; i < m->operands; i++)
        for (int j = i + 1; j < m->operands; j++) {
            asked[count] = key[count] = w->pairs[i][j];
            count++;
        }
    uint64_t print = fingerprint(run, x, key, count, 0);
    int64_t row = x->odd ? -1 : row_of(&run->ratio, print);
    if (row >= 0) return cell(&run->ratio, 0, row);
    lacks(run, x, &run->ratio, print, asked, count);
    return 1.0;
}

/* np.interp over the numbers of lanes that are tabulated. */
static double between(const Model *m, const Run *run, double units, const double *ys) {
    double at = one(&run->log2, max2(units, 1.0));
    const double *xs = m->lane_logs;
    int count = m->lanes, j = 0;
    if (at <= xs[0]) return ys[0];
    if (at >= xs[count - 1]) return ys[count - 1];
    while (xs[j + 1] <= at) j++;
    if (xs[j] == at) return ys[j];
    double slope = (ys[j + 1] - ys[j]) / (xs[j + 1] - xs[j]);
    return slope * (at - xs[j]) + ys[j];
}

/* A point at which units wait: how long, in how many turns, and along which loops. */
typedef struct {
    double ratio, turns, units, loop[LOOPS];
} Point;

/* The largest ratio, where some of the units wait for each other already at another point, as often or more often. */
static double together(const Model *m, const Run *run, const Point *point, int points, int loops) {
    double found = 1.0;
    for (int i = 0; i < points; i++) {
        const Point *outer = &point[i];
        found = max2(found, outer->ratio);
        for (int j = 0; j < points; j++) {
            const Point *inner = &point[j];
            int within = outer->units > inner->units && inner->units > 1.0 && inner->turns >= outer->turns &&
                         outer->ratio > 1.0 && inner->ratio > 1.0;
            for (int k = 0; k < loops; k++) within = within && (inner->loop[k] == 1.0 || inner->loop[k] == outer->loop[k]);
            if (!within) continue;
            double groups = between(m, run, outer->units / inner->units, m->normal_means);
            double less_so = between(m, run, inner->units, m->normal_deviations) * groups / between(m, run, outer->units, m->normal_means);
            found = max2(found, inner->ratio + (outer->ratio - 1.0) * less_so);
        }
    }
    return found;
}

/* `imbalance`: the largest ratio of the fullest unit's work to the mean, of all points at which units wait; NAN: nothing
 * thins the work. */
double waiting_ratio(const Model *m, Run *run, Design *x) {
    int S = m->S, D = m->D, any = 0, loops = 0, dim[LOOPS], block[LOOPS];
    double spatial[LOOPS], loop[LOOPS], temporal[LEVELS][DIMS], extent[DIMS];
    Point point[LEVELS * TENSORS + 1];
    int points = 0;
    const Thinned *thin = &x->thin;
    Work w;
    for (int i = 0; i < m->operands; i++) any |= thin->looks[i] < INFINITY;
    if (!any || !(x->used[S] > 1.0)) return NAN;
    for (int s = 0; s < S; s++)
        for (int d = 0; m->spatial[s] >= 0 && !m->steals[s] && d < D; d++) {
            if (!(x->bound[m->spatial[s]][d] > 1.0)) continue;
            block[loops] = s;
            dim[loops] = d;
            spatial[loops++] = x->bound[m->spatial[s]][d];
        }
    for (int s = S - 1; s >= 0; s--)
        for (int d = 0; d < D; d++)
            temporal[s][d] = s < S - 1 ? temporal[s + 1][d] * x->bound[m->temporal[s]][d] : x->bound[m->temporal[s]][d];
    for (int h = 0; h < S; h++) { /* 0: the end of the run */
        double pace[TENSORS];
        for (int u = 0; h && u < m->T; u++) {
            double product = thin->held[h - 1][u][0];
            for (int d = 1; d < D; d++) product *= thin->held[h - 1][u][d];
            pace[u] = x->steps[h - 1] / product;
        }
        for (int t = 0; t < (h ? m->T : 1); t++) {
            int outermost = 0;
            const double *stays = NULL;
            w.depth = 1;
            w.grows = -1;
            w.turns = 1.0;
            if (h) {
                int shared = 0;
                if (!m->stored[t * S + h] || m->parent[t * S + h] < 0) continue;
                outermost = (int)m->parent[t * S + h];
                for (int k = 0; k < loops; k++) shared |= block[k] >= outermost && !m->relevant[t * D + dim[k]];
                if (!shared) continue;
                for (int k = 0; k < loops; k++) {
                    int couples = 0;
                    for (int u = 0; u < m->T; u++)
                        couples |= m->stored[u * S + h] && m->parent[u * S + h] >= 0 && block[k] >= outermost &&
                                   !m->relevant[u * D + dim[k]] && pace[u] >= pace[t];
                    loop[k] = couples ? spatial[k] : 1.0;
                }
                w.depth = (int)m->depth[h * m->T + t];
                w.grows = thin->grows[h - 1][t];
                w.turns = pace[t];
                stays = thin->held[h - 1][t];
            } else {
                memcpy(loop, spatial, loops * sizeof *loop);
            }
            w.pitch = 1.0;
            for (int d = 0; d < D; d++) {
                double apart = temporal[h][d];
                extent[d] = stays ? apart * stays[d] : apart;
                for (int s = outermost; s < S; s++)
                    if (m->spatial[s] >= 0) {
                        apart = apart * x->bound[m->spatial[s]][d];
                        if (m->steals[s]) extent[d] = extent[d] * x->bound[m->spatial[s]][d];
                    }
                if (d == w.grows) w.pitch = stays ? apart * stays[d] : apart;
            }
            boxed(m, extent, loop, dim, loops, &w);
            Point *here = &point[points++];
            here->ratio = ratio_of(m, run, x, &w, thin->looks);
            here->turns = w.turns;
            here->units = w.units;
            memcpy(here->loop, loop, loops * sizeof *loop);
        }
    }
    return together(m, run, point, points, loops);
}

/* The row of what is known of the work with a tile of operand i (`WorkTiles.rows`). */
static int64_t work_row(const Model *m, Run *run, Design *x, int i, double looks, const double *widths) {
    double key[DIMS + 1];
    int count = 1 + widths_of(m, (int)m->operand[i]);
    key[0] = looks;
    memcpy(key + 1, widths, (count - 1) * sizeof *key);
    uint64_t print = fingerprint(run, x, key, count, 0);
    int64_t row = x->odd ? -1 : row_of(&run->work[i], print);
    if (row >= 0 && row < run->work_rows[i]) return row;
    lacks(run, x, &run->work[i], print, key, count);
    return -1;
}

static double product_of(const double *widths, int count) {
    double found = widths[0];
    for (int r = 1; r < count; r++) found = found * widths[r];
    return found;
}

/* `spreads`: deviation of the longest work of the units that use a tile, over the mean; and the chance that there is any. */
static void spread_of(const Model *m, Run *run, Design *x, const Work *w, const double *looks, double *spread, double *there) {
    double different = w->units, square = 1.0, some = 1.0, share = 1.0, pairs = w->points * w->units, apart = w->points;
    int single = 1, finite = 0;
    for (int i = 0; i < m->operands; i++) {
        if (!(looks[i] < INFINITY)) continue;
        finite++;
        single &= looks[i] == 1.0;
        different = finite == 1 ? w->lanes[i] : w->units;
        int64_t row = work_row(m, run, x, i, looks[i], w->box[i]);
        if (row < 0) continue;
        double mean = run->work_maxima[i][row * m->lane_count + m->lane_one], moment = run->work_moments[i][2 * row];
        double chance = run->work_moments[i][2 * row + 1];
        square *= w->lanes[i] == 1.0 && mean > 0.0 ? moment / (mean * mean) : 1.0;
        double any_of = 1.0 - power(run, 1.0 - min2(chance, 1.0), w->lanes[i]);
        some *= any_of;
        double words = max2(product_of(w->box[i], widths_of(m, (int)m->operand[i])), looks[i]);
        double open = 1.0 - moment / positive(mean);
        share *= min2(max2(open / (words > 1.0 ? 1.0 - 1.0 / words : 1.0), 0.0), 1.0);
        pairs *= mean / positive(any_of);
        apart /= words;
    }
    double longest = between(m, run, different, m->deviations) * (ratio_of(m, run, x, w, looks) - 1.0);
    apart = single && finite > 1 ? 1.0 - min2(apart, 1.0) : 0.0;
    double met = w->units == 1.0 ? share * apart / max2(pairs * some, 1e-300) : 0.0;
    double relative = square * (1.0 + longest * longest + met) - 1.0;
    some = some * (1.0 - apart * one(&run->exp, -pairs));
    *spread = sqrt(max2(relative, 0.0));
    *there = min2(max2(some, 1.0 / (1.0 + relative)), 1.0);
}

/* What the lanes that use one tile of t at level h do with it (`tile_work`). */
static void tile_work(const Model *m, const Design *x, const Thinned *thin, int t, int h, Work *w) {
    int loops = 0, dim[LOOPS];
    double loop[LOOPS], extent[DIMS];
    for (int s = (int)m->parent[t * m->S + h]; s < m->S; s++)
        for (int d = 0; m->spatial[s] >= 0 && d < m->D; d++) {
            double bound = x->bound[m->spatial[s]][d];
            if (!(bound > 1.0) || (s < h && m->relevant[t * m->D + d])) continue;
            dim[loops] = d;
            loop[loops++] = bound;
        }
    for (int d = 0; d < m->D; d++) {
        double inside = x->bound[m->temporal[h]][d];
        for (int s = h + 1; s < m->S; s++) inside = inside * x->bound[m->temporal[s]][d];
        extent[d] = inside * thin->held[h - 1][t][d];
    }
    w->depth = 1;
    w->grows = -1;
    w->turns = w->pitch = 1.0;
    boxed(m, extent, loop, dim, loops, w);
}

/* Deviation, over the mean, of the words that come with a tile of operand t at level h, 0 where it is left out. */
static double uneven_words(const Model *m, Run *run, Design *x, int t, int h) {
    double left = 1.0 - x->comes[t][h], square = 0.0;
    if (x->packed[t]) {
        int i = 0, count = m->ranks[t] ? (int)m->ranks[t] : 1;
        while (m->operand[i] != t) i++;
        double whole_of = product_of(x->width[t][h], count);
        int64_t row = work_row(m, run, x, i, 1.0, m->by_shape[t] ? x->width[t][h] : &whole_of);
        if (row >= 0) {
            const double *maxima = run->work_maxima[i] + row * m->lane_count;
            double mean = maxima[m->lane_one], deviation = ROOT_OF_PI * (maxima[m->lane_two] - mean) / positive(mean);
            square = deviation * deviation;
        }
    }
    return sqrt(max2((1.0 + square) / max2(left, 1e-12) - 1.0, 0.0));
}

/* The chance that a normal number is above a >= 0. */
static double above(const Run *run, double a) {
    double k = 1.0 / (1.0 + 0.33267 * a);
    return one(&run->exp, -0.5 * (a * a)) / ROOT_OF_TWO_PI *
           (0.4361836 * k - 0.1201676 * (k * k) + 0.9372980 * two(&run->power, k, 3.0));
}

/* Expected larger one of two times with these means and deviations (uneven.py). */
static double later(const Run *run, double a, double b, double spread_a, double spread_b, double some) {
    double of_a = spread_a / a, of_b = spread_b / b;
    double there_a = 2.0 / (1.0 + max2(of_a * of_a, 1.0)), there_b = 2.0 / (1.0 + max2(of_b * of_b, 1.0));
    if (some < 1.0) there_a = some;
    double part_a = a / there_a, part_b = b / there_b;
    double rest_a = sqrt(max2((a * a + spread_a * spread_a) / there_a - part_a * part_a, 0.0));
    double rest_b = sqrt(max2((b * b + spread_b * spread_b) / there_b - part_b * part_b, 0.0));
    double spread = two(&run->hypot, rest_a, rest_b), apart = spread > 0.0 ? fabs(part_a - part_b) / spread : 9.0;
    double bell = one(&run->exp, -0.5 * (apart * apart)) / ROOT_OF_TWO_PI;
    double normal = min2(part_a, part_b) - spread * max2(bell - apart * above(run, apart), 0.0);
    return a + b - there_a * there_b * max2(normal, 1.0 / (1.0 / part_a + 1.0 / part_b));
}

/* Words of time of one instance, by direction (`Transfers`). */
typedef struct {
    double filled[TENSORS][LEVELS], drained[TENSORS][LEVELS], sent[TENSORS][LEVELS], got[TENSORS][LEVELS];
} Transfers;

static void transfers_of(const Model *m, const Design *x, Transfers *f) {
    int output = m->output, drains = m->option[DRAINS];
    memset(f, 0, sizeof *f);
    for (int s = 0; s < m->S; s++)
        for (int t = 0; t < m->T; t++) {
            double share = x->active[t][s] / x->used[s];
            f->filled[t][s] = share * x->demand_filled[t][s];
            f->sent[t][s] = share * x->demand_read[t][s];
            if (t == output) {
                double leaving = x->leaving[s];
                if (drains) {
                    double part = x->timed->leaving[s] / positive(x->timed->read[t][s]);
                    leaving = min2(max2(part, 0.0), 1.0) * x->demand_read[t][s];
                }
                f->drained[t][s] = share * leaving;
                if (drains) f->sent[t][s] -= f->drained[t][s];
            }
            f->got[t][s] = share * x->demand_written[t][s];
            f->got[t][s] -= f->filled[t][s];
            f->sent[t][s] = max2(f->sent[t][s], 0.0);
            f->got[t][s] = max2(f->got[t][s], 0.0);
        }
}

/* Cycles of the words that level s reads and writes of some tensors (a bit for each). */
static double cycles_of(const Model *m, int s, const double (*read)[LEVELS], const double (*written)[LEVELS], int tensors) {
    double out = 0.0, in = 0.0, found = 0.0;
    int first = 1;
    for (int t = 0; t < m->T; t++) {
        if (!(tensors >> t & 1)) continue;
        out = first ? read[t][s] : out + read[t][s];
        in = first ? written[t][s] : in + written[t][s];
        first = 0;
    }
    if (first) return 0.0;
    if (m->read_bandwidth[s] != INFINITY) found = max2(found, out / m->read_bandwidth[s]);
    if (m->write_bandwidth[s] != INFINITY) found = max2(found, in / m->write_bandwidth[s]);
    if (m->bandwidth[s] != INFINITY) found = max2(found, (out + in) / m->bandwidth[s]);
    return found;
}

static double serving(const Model *m, const Transfers *f, int s, int tensors) { return cycles_of(m, s, f->sent, f->got, tensors); }

/* Cycles of the words between level h and the parents of these tensors. */
static double exchange(const Model *m, const Transfers *f, int h, int tensors) {
    double own = cycles_of(m, h, f->drained, f->filled, tensors);
    for (int p = 0; p < h; p++) {
        int from = 0;
        for (int t = 0; t < m->T; t++)
            if (tensors >> t & 1 && m->parent[t * m->S + h] == p) from |= 1 << t;
        if (from) own = max2(own, serving(m, f, p, from));
    }
    return own;
}

/* Cycles in which an instance of level h waits for tiles of these tensors. */
static double stalls(const Model *m, const Design *x, const Transfers *f, int h, int tensors) {
    double own = cycles_of(m, h, f->drained, f->filled, tensors), apart = 0.0;
    for (int t = 0; t < m->T; t++) {
        if (!(tensors >> t & 1)) continue;
        int parent = (int)m->parent[t * m->S + h];
        double served = 1.0;
        for (int block = parent; block < h; block++) served = served * x->distinct[t][block];
        apart = apart + serving(m, f, parent, 1 << t) / served;
    }
    return max2(own, min2(apart, exchange(m, f, h, tensors)));
}

/* Cycles of computing for `time` with tiles that come while others are worked on, and results that leave so. */
static double pipelined(const Model *m, Run *run, Design *x, const Transfers *f, int h, int tensors, double time, double mean,
                        const Thinned *thin) {
    int output = m->output, results = tensors & 1 << output, operands = tensors & ~(1 << output), any = 0;
    double turns[TENSORS], each_of[TENSORS], most = 0.0, single = 0.0;
    for (int t = 0; t < m->T; t++) {
        if (!(tensors >> t & 1)) continue;
        double moved = t == output ? x->leaving[h] : x->brought[t][h];
        turns[t] = max2(1.0, moved / x->words[t][h]);
        most = any++ ? max2(most, turns[t]) : turns[t];
        each_of[t] = exchange(m, f, h, 1 << t);
        if (t != output) single = single + each_of[t] / turns[t];
    }
    double items = most > 1.0 ? max2(most, 2.0) : 1.0;
    double come = exchange(m, f, h, operands), leave = exchange(m, f, h, results), moved = exchange(m, f, h, tensors);
    double first = min2(come, single), last = results ? leave / turns[output] : leave, others = max2(items - 1.0, 1.0);
    double loaded = (come - first) / others, drained = (leave - last) / others, each = time / items;
    double both = (loaded + drained) * moved / positive(come + leave), between = max2(each, both);
    if (thin && items > 2.0 && min2(each, both) > NEAR * between) {
        double square = 0.0, worked = 0.0, some = 1.0;
        for (int t = 0; t < m->T; t++) {
            if (!(tensors >> t & 1) || !(turns[t] > 0.99 * most)) continue; /* others come bit by bit */
            Work w;
            double spread, there, more = (double)m->depth[h * m->T + t] - 1.0, copies = sqrt(more);
            tile_work(m, x, thin, t, h, &w);
            spread_of(m, run, x, &w, thin->looks, &spread, &there);
            worked = max2(worked, spread * mean / most / copies);
            double working = min2(mean / most / each, 1.0); /* empty positions are passed always */
            double none = more == 2.0 ? (1.0 - there) * (1.0 - there) : power(run, 1.0 - there, more);
            some = min2(some, 1.0 - none * working);
            if (t == output) continue;
            double own = uneven_words(m, run, x, t, h) * each_of[t] / most / copies;
            square = square + own * own;
        }
        if (!x->lacking) between = later(run, each, both, worked, sqrt(square), some);
    }
    between = max2(each, loaded) + max2(items - 2.0, 0.0) * between;
    return first + last + (items > 1.0 ? between + max2(each, drained) : time);
}

/* `overlap`: cycles of the whole run; a level that is not double-buffered adds the time of its transfers. */
double overlapped(const Model *m, Run *run, Design *x, double mean, double compute, const double *level) {
    Transfers f;
    double time = compute, goes[TENSORS][LEVELS];
    transfers_of(m, x, &f);
    along(m, x, x->saving, x->comes, goes);
    for (int s = 0; s < m->S; s++) {
        int to_units = 0;
        for (int t = 0; t < m->T; t++) to_units |= (m->stored[t * m->S + s] && m->child[t * m->S + s] < 0) << t;
        time = max2(time, serving(m, &f, s, to_units));
    }
    for (int h = m->S - 1; h > 0; h--) {
        int doubled = 0, single = 0;
        for (int t = 0; t < m->T; t++) {
            if (!m->stored[t * m->S + h] || m->parent[t * m->S + h] < 0) continue;
            if (m->depth[h * m->T + t] > 1)
                doubled |= 1 << t;
            else
                single |= 1 << t;
        }
        if (doubled) time = pipelined(m, run, x, &f, h, doubled, time, mean, m->option[IMBALANCE] ? &x->thin : NULL);
        time = max2(time + stalls(m, x, &f, h, single), exchange(m, &f, h, single));
        time = max2(time, level[h]);
    }
    return whole(time);
}
