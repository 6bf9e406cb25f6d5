/* What compute units and levels wait for: `imbalance` (charges/imbalance.py), `overlap` (overlap.py, uneven.py). */
#include "kernel.h"

#include <string.h>

static const double NEAR = 0.1, ROOT_OF_PI = 1.7724538509055159, ROOT_OF_TWO_PI = 2.5066282746310002;

/* What a design does between two points at which units wait (charges/ratios.py). */
typedef struct {
    int depth, grows;
    double turns, units, points, pitch;
    double box[TENSORS][DIMS], wide[TENSORS][DIMS], least[TENSORS], lanes[TENSORS], pairs[TENSORS][TENSORS]; /* by operand */
} Work;

/* Loops along which units work: bounds, dimensions, and by how much one step moves the dimension. */
typedef struct {
    int count, dim[LOOPS];
    double bound[LOOPS], stride[LOOPS];
} Spread;

static int widths_of(const Model *m, int t) { return m->by_shape[t] && m->ranks[t] ? (int)m->ranks[t] : 1; }

/* Whether tiles of operand i are alike within blocks; then their words in each rank. */
static const int64_t *alike_of(const Model *m, int i) { return m->alike + i * (m->D + 1); }

/* Words of tiles of operand i of its alike ones, so many as are empty together as often, were each empty by itself. */
static double told_apart(const Model *m, const Run *run, int i, double words, double empty) {
    if (!(empty > 0.0 && empty < 1.0 && words < INFINITY)) return words;
    return min2(max2(rint(one(&run->log, empty) / m->rare[i]), 1.0), words);
}

void thinned(const Model *m, const Run *run, Design *x) {
    Thinned *found = &x->thin;
    for (int i = 0; i < m->operands; i++) {
        int t = (int)m->operand[i];
        found->looks[i] = INFINITY;
        for (int j = 0; j < x->effects; j++) {
            const Effect *e = &x->effect[j];
            if (e->action->target == m->output || !saves(m, e) || !(e->share > 0.0)) continue;
            for (int l = 0; l < e->action->leaders; l++) {
                if (e->action->leader[l] != t) continue;
                double words = *alike_of(m, i) ? told_apart(m, run, i, e->words[l], e->empty[l]) : e->words[l];
                found->looks[i] = min2(found->looks[i], words);
            }
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

static double stride_of(const Model *m, const Design *x, int s, int d) {
    double found = 1.0;
    for (s++; s < m->S; s++) {
        found *= x->bound[m->temporal[s]][d];
        if (m->spatial[s] >= 0) found *= x->bound[m->spatial[s]][d];
    }
    return found;
}

/* Of so many lanes with parts of operand i of their own, those that are as different as independent ones. */
static double independent(const Model *m, int i, double lanes, const Spread *along) {
    const int64_t t = m->operand[i], *alike = alike_of(m, i) + 1;
    double different = 1.0;
    for (int r = 0; r < m->ranks[t]; r++) {
        const int64_t *terms = m->terms + (t * m->D + r) * 5;
        double places = 1.0, span = 1.0;
        for (int j = 0; j < terms[0]; j++)
            for (int k = 0; k < along->count; k++) {
                if (along->dim[k] != terms[1 + 2 * j]) continue;
                places *= along->bound[k];
                span += (along->bound[k] - 1.0) * along->stride[k] * (double)terms[2 + 2 * j];
            }
        different *= min2(places, ceil(span / (double)alike[r]));
    }
    return min2(lanes, different);
}

/* A box of work with these extents (alike operands: `wide`), done by units along loops. */
static void boxed(const Model *m, const double *extent, const Spread *along, Work *w) {
    for (int i = 0; i < m->operands; i++) {
        int t = (int)m->operand[i], alike = (int)*alike_of(m, i), count = box(m, t, alike ? w->wide[i] : extent, w->box[i]);
        for (int r = 1; !m->by_shape[t] && r < count; r++) w->box[i][0] = w->box[i][0] * w->box[i][r];
        w->lanes[i] = 1.0;
        for (int k = 0; k < along->count; k++)
            if (m->relevant[t * m->D + along->dim[k]]) w->lanes[i] *= along->bound[k];
        w->least[i] = min2(w->pitch, w->grows < 0 ? 1.0 : (double)alike_of(m, i)[1 + m->rank_of[t * m->D + w->grows]]);
        if (alike && w->lanes[i] > 1.0) w->lanes[i] = independent(m, i, w->lanes[i], along);
    }
    for (int i = 0; i < m->operands; i++)
        for (int j = i + 1; j < m->operands; j++) {
            const int64_t *a = m->relevant + m->operand[i] * m->D, *b = m->relevant + m->operand[j] * m->D;
            double both = 1.0;
            for (int k = 0; k < along->count; k++)
                if (a[along->dim[k]] && b[along->dim[k]]) both *= along->bound[k];
            w->pairs[i][j] = min2(both, min2(w->lanes[i], w->lanes[j]));
        }
    w->units = w->points = 1.0;
    for (int k = 0; k < along->count; k++) w->units *= along->bound[k];
    for (int d = 0; d < m->D; d++) w->points *= extent[d];
}

/* `bound` pieces of operand i of `reach` each that begin `apart`: each counts as far as it goes until the next one begins, or
 * its block ends (`piece_of`). */
static double piece_of(const Model *m, int i, int d, double reach, double bound, double apart) {
    return bound * (bound > 1.0 ? max2(reach, min2(apart, m->blocks_of[i * m->D + d])) : reach);
}

/* Extents of what a lane has of the loops from level h inwards, and of those outside that leave it in its place. */
static void widened(const Model *m, const Design *x, int h, const double *stays, const double *begins, Work *w) {
    for (int i = 0; i < m->operands; i++)
        for (int d = 0; *alike_of(m, i) && d < m->D; d++) {
            double apart = 1.0, reach = 1.0;
            for (int s = m->S - 1; s >= h; s--) {
                double here = x->bound[m->temporal[s]][d];
                if (m->spatial[s] >= 0) apart = apart * x->bound[m->spatial[s]][d];
                reach = piece_of(m, i, d, reach, here, apart);
                apart = apart * here;
            }
            w->wide[i][d] = piece_of(m, i, d, reach, stays ? stays[d] : 1.0, begins[d]);
        }
}

/* np.interp: the line through the points (xs, ys) at x; `j`: a place before which x is not. */
static double line(const double *xs, const double *ys, int count, int j, double x) {
    if (x <= xs[0]) return ys[0];
    if (x >= xs[count - 1]) return ys[count - 1];
    while (xs[j + 1] <= x) j++;
    if (xs[j] == x) return ys[j];
    double slope = (ys[j + 1] - ys[j]) / (xs[j + 1] - xs[j]);
    return slope * (x - xs[j]) + ys[j];
}

/* Of the numbers of lanes that are tabulated. */
static double between(const Model *m, const Run *run, double units, const double *ys) {
    return line(m->lane_logs, ys, m->lanes, 0, one(&run->log2, max2(units, 1.0)));
}

/* The row of what is known of the work with a tile of operand i (`WorkTiles.rows`). */
static int64_t work_row(const Model *m, Run *run, Design *x, int i, double looks, const double *widths) {
    double key[DIMS + 1];
    int count = 1 + widths_of(m, (int)m->operand[i]);
    key[0] = looks;
    memcpy(key + 1, widths, (count - 1) * sizeof *key);
    uint64_t print = fingerprint(run, x, key, count, 0);
    int64_t row = x->odd ? -1 : row_of(&run->work[i].known, print);
    if (row >= 0) return row;
    lacks(run, x, &run->work[i], print, key, count);
    return -1;
}

static double product_of(const double *widths, int count) {
    double found = widths[0];
    for (int r = 1; r < count; r++) found = found * widths[r];
    return found;
}

/* Of operand i, 1 + the tensor rank that the next part is another piece of; 0: it uses this one again. */
static int growth_of(const Model *m, const Work *w, int i) {
    const int64_t at = m->operand[i] * m->D + w->grows;
    return w->grows >= 0 && m->relevant[at] ? 1 + (int)m->rank_of[at] : 0;
}

/* 1 - E[y^2] / E[y] of the share y of nonzeros, over what one in `volume` positions leaves of it (`loose`). */
static double loose(double mean, double moment, double volume) {
    double open = 1.0 - moment / positive(mean);
    return min2(max2(open / (volume > 1.0 ? 1.0 - 1.0 / volume : 1.0), 0.0), 1.0);
}

/* Maxima of n numbers of units, on the line between those of LANES (`_at`). */
static void maxima_at(const Model *m, const Run *run, const double *maxima, const double *units, int n, double *found) {
    enum { ONCE = 64 };
    const double first = 0.25, most = m->lane_count - 1.000001;
    double least[ONCE], logs[ONCE];
    for (int from = 0; from < n; from += ONCE) {
        int some = n - from < ONCE ? n - from : ONCE;
        for (int j = 0; j < some; j++) least[j] = max2(units[from + j], first);
        all_one(&run->log2, least, some, logs);
        for (int j = 0; j < some; j++) {
            double place = min2(max2(logs[j] - m->lane_logs[0], 0.0), most);
            int low = place > 0.0 ? (int)place : 0;
            double part = place - low;
            found[from + j] = (maxima[low] * (1.0 - part) + maxima[low + 1] * part) * min2(units[from + j] / first, 1.0);
        }
    }
}

/* Of thresholds that about as many units reach, the one of the largest product (`_best_of_tails`). */
static int best_of_tails(double *product, double *reached, int count) {
    double best[2 * TAILS], of[2 * TAILS];
    int sums = count / TAILS + TAILS - 1;
    for (int sum = 0; sum < sums; sum++) best[sum] = -1.0;
    for (int a = 0; a < count; a++) {
        int sum = a / TAILS + a % TAILS;
        if (product[a] > best[sum]) best[sum] = product[a], of[sum] = reached[a];
    }
    memcpy(product, best, sums * sizeof *best);
    memcpy(reached, of, sums * sizeof *of);
    return sums;
}

/* The most of the last operand among units that have at least a threshold of each other one, the best of these. */
static double in_order(const Model *m, const Run *run, const Work *w, const int *first, int firsts, int last, const double **known) {
    double product[2 * TAILS * TAILS] = {1.0}, reached[2 * TAILS * TAILS] = {w->lanes[last]}, maxima[2 * TAILS * TAILS];
    int count = 1;
    for (int place = 0; place < firsts; place++) {
        int i = first[place];
        const double *values = known[i] + m->lane_count + 2, *shares = values + TAILS;
        double there[TAILS], left[TAILS];
        for (int j = 0; j < TAILS; j++) left[j] = 1.0 - min2(shares[j], 1.0);
        all_two(&run->power, left, w->lanes[i] / w->pairs[i < last ? i : last][i < last ? last : i], TAILS, there);
        for (int a = count - 1; a >= 0; a--)
            for (int j = TAILS - 1; j >= 0; j--) {
                product[a * TAILS + j] = product[a] * values[j];
                reached[a * TAILS + j] = reached[a] * (1.0 - there[j]);
            }
        count *= TAILS;
        if (0 < place && place < firsts - 1) count = best_of_tails(product, reached, count);
    }
    maxima_at(m, run, known[last], reached, count, maxima);
    double found = product[0] * maxima[0];
    for (int a = 1; a < count; a++) found = max2(found, product[a] * maxima[a]);
    return found;
}

/* `excess` with what varies because nonzero positions meet by chance; `share`: how far the numbers of nonzeros leave their
 * positions open, `apart`: places over the volumes of the tiles. */
static double with_meetings(const Model *m, Run *run, Design *x, double places, double units, double chance, double excess,
                            double share, double apart) {
    double asked[2] = {places, chance}, met;
    int64_t bits[2];
    if (!(apart > 0.0 && chance > 0.0 && chance < 1.0)) return excess;
    memcpy(bits, asked, sizeof bits);
    uint64_t key = ((uint64_t)bits[0] * (uint64_t)run->factors[0] + (uint64_t)bits[1] * (uint64_t)run->factors[1]) | 1;
    int64_t row = row_of(&run->meeting.known, key);
    if (row < 0) {
        lacks(run, x, &run->meeting, key, asked, 2);
        return excess;
    }
    maxima_at(m, run, run->meeting.known.data + row * m->lane_count, &units, 1, &met);
    double deviation = met - chance;
    share = share / (1.0 - chance) * apart;
    double spread = max2(two(&run->hypot, excess, sqrt(share) * deviation), 1e-300);
    double fuller = 1.0 + excess / chance * excess / spread;
    return sqrt(excess * excess + share * fuller * (deviation * deviation));
}

/* The longest work of so many consecutive parts over the mean (`_maximum`). */
static double longest_of(const Model *m, Run *run, Design *x, const Work *w, const double *looks, double grown) {
    const double *known[TENSORS];
    double mean = 1.0, alike = 1.0, share = 1.0, volume = 1.0, places = w->points * grown;
    int apart[TENSORS], aparts = 0, finite = 0, single = 1, lacking = 0;
    for (int i = 0; i < m->operands; i++) {
        if (!(looks[i] < INFINITY)) continue;
        double widths[DIMS];
        int count = widths_of(m, (int)m->operand[i]), growth = growth_of(m, w, i);
        memcpy(widths, w->box[i], count * sizeof *widths);
        if (growth && grown > 1.0) widths[growth - 1] = max2(widths[growth - 1], w->least[i]) * grown;
        for (int r = 0; r < count; r++) widths[r] = min2(widths[r], m->limits[i * m->D + r]);
        int64_t row = work_row(m, run, x, i, looks[i], widths);
        if (row < 0) {
            lacking = 1;
            continue;
        }
        known[i] = run->work[i].known.data + row * work_width(m);
        double own = known[i][m->lane_one], words = max2(product_of(widths, count), looks[i]);
        mean = mean * own;
        share = share * loose(own, known[i][m->lane_count], words);
        volume = volume * words;
        finite++;
        single &= looks[i] == 1.0;
        if (w->lanes[i] > 1.0)
            apart[aparts++] = i;
        else
            alike = alike * own;
    }
    if (lacking) return 1.0;
    double most = mean;
    for (int j = 0; j < aparts; j++) {
        int first[TENSORS], firsts = 0;
        for (int k = 0; k < aparts; k++)
            if (k != j) first[firsts++] = apart[k];
        most = max2(most, alike * in_order(m, run, w, first, firsts, apart[j], known));
    }
    if (finite > 1) {
        double excess = most - mean, loosely = 1.0 - min2(places / volume, 1.0);
        most = mean + (single ? with_meetings(m, run, x, places, w->units, mean, excess, share, loosely) : excess);
    }
    return max2(most / positive(mean), 1.0);
}

/* Cycles per part of units that may be some parts ahead of the slowest, over those of the mean unit (`pace`); `most` of 1, 2,
 * 4 .. consecutive parts, `count` of them. */
static double pace(const Model *m, const Run *run, const double *most, int count, int depth, double units) {
    enum { NEWTON = 6, GROWTHS = 4 };
    double mean[GROWTHS], deviation[GROWTHS], chain[GROWTHS], least = 1.0, relative = between(m, run, units, m->deviations);
    for (int j = 0; j < count; j++) {
        double grown = 1 << j;
        chain[j] = grown + depth - 1;
        mean[j] = most[j] * grown;
        deviation[j] = relative * (most[j] - 1.0) * grown;
        least = j || count < GROWTHS ? max2(least, mean[j] / chain[j]) : mean[j] / chain[j];
    }
    if (count < 2 || !(deviation[0] > 0.0)) return least;
    double tau = least;
    for (int step = 0; step < NEWTON; step++) {
        double mid = mean[0] - chain[0] * tau, s = deviation[0], slope = chain[0];
        for (int j = 1; j < count; j++) {
            double other = mean[j] - chain[j] * tau, spread = two(&run->hypot, s, deviation[j]), apart = (mid - other) / spread;
            double width = (m->normals - 1) / (m->normal_at[m->normals - 1] - m->normal_at[0]);
            double near = min2((apart - m->normal_at[0]) * width - 1.0, m->normals - 2.0);
            double before = line(m->normal_at, m->normal_below, m->normals, near > 0.0 ? (int)near : 0, apart), after = 1.0 - before;
            double bell = one(&run->exp, -0.5 * (apart * apart)) / ROOT_OF_TWO_PI;
            double joint = mid * before + other * after + spread * bell;
            double square = (mid * mid + s * s) * before + (other * other + deviation[j] * deviation[j]) * after +
                            (mid + other) * spread * bell;
            s = sqrt(max2(square - joint * joint, 1e-18));
            mid = joint;
            slope = slope * before + chain[j] * after;
        }
        tau = min2(max2(tau + mid / slope, least), most[0]);
    }
    return max2(least, tau);
}

/* Cycles of the run over the cycles of the mean unit (`ratios_of`); new ones are noted with their keys. */
static double ratio_of(const Model *m, Run *run, Design *x, const Work *w, const double *looks) {
    double key[FACTORS + 1], most[4];
    int thins = 0, count = 4, needed = 4, parts = 0, finite = 0;
    double units = w->units;
    for (int i = 0; i < m->operands; i++) {
        thins |= looks[i] < INFINITY && w->lanes[i] > 1.0;
        needed += 4 + widths_of(m, (int)m->operand[i]);
    }
    if (!thins) return 1.0;
    if (needed + m->operands * (m->operands - 1) / 2 > FACTORS) {
        x->odd = 1;
        return 1.0;
    }
    key[0] = w->depth;
    key[1] = min2(w->turns, 1 << 20);
    key[2] = w->units;
    key[3] = w->points;
    for (int i = 0; i < m->operands; i++) {
        int there = looks[i] < INFINITY;
        if (there && !finite++) units = w->lanes[i];
        key[count++] = there ? looks[i] : 0.0;
        key[count++] = there ? growth_of(m, w, i) : 0.0;
        key[count++] = w->least[i];
        key[count++] = there ? w->lanes[i] : 1.0;
        for (int r = 0; r < widths_of(m, (int)m->operand[i]); r++) key[count++] = there ? w->box[i][r] : 1.0;
    }
    for (int i = 0; i < m->operands; i++)
        for (int j = i + 1; j < m->operands; j++) key[count++] = w->pairs[i][j];
    uint64_t print = fingerprint(run, x, key, count, 0);
    int64_t row = x->odd ? -1 : row_of(&run->ratio.known, print);
    if (row >= 0) return cell(&run->ratio.known, 0, row);
    int lacked = x->lacking;
    x->lacking = 0;
    for (; parts < 4 && w->turns >= 1 << parts && (!parts || w->depth > 1); parts++) {
        most[parts] = longest_of(m, run, x, w, looks, 1 << parts);
        if (parts) most[parts] = min2(most[parts], most[parts - 1]); /* two parts take no longer than each by itself */
    }
    key[count] = pace(m, run, most, parts, w->depth, finite > 1 ? w->units : units);
    if (!x->lacking) noted(run, x, &run->ratio, print, key, count + 1);
    x->lacking |= lacked;
    return key[count];
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
    int S = m->S, D = m->D, any = 0, loops = 0, block[LOOPS];
    double spatial[LOOPS], temporal[LEVELS][DIMS], extent[DIMS], apart[DIMS];
    Spread along;
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
            along.dim[loops] = d;
            along.stride[loops] = m->alikes ? stride_of(m, x, s, d) : 1.0;
            spatial[loops++] = x->bound[m->spatial[s]][d];
        }
    along.count = loops;
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
                for (int k = 0; k < loops; k++) shared |= block[k] >= outermost && !m->relevant[t * D + along.dim[k]];
                if (!shared) continue;
                for (int k = 0; k < loops; k++) {
                    int couples = 0;
                    for (int u = 0; u < m->T; u++)
                        couples |= m->stored[u * S + h] && m->parent[u * S + h] >= 0 && block[k] >= outermost &&
                                   !m->relevant[u * D + along.dim[k]] && pace[u] >= pace[t];
                    along.bound[k] = couples ? spatial[k] : 1.0;
                }
                w.depth = (int)m->depth[h * m->T + t];
                w.grows = thin->grows[h - 1][t];
                w.turns = pace[t];
                stays = thin->held[h - 1][t];
            } else {
                memcpy(along.bound, spatial, loops * sizeof *spatial);
            }
            w.pitch = 1.0;
            for (int d = 0; d < D; d++) {
                apart[d] = temporal[h][d];
                extent[d] = stays ? apart[d] * stays[d] : apart[d];
                for (int s = outermost; s < S; s++)
                    if (m->spatial[s] >= 0) {
                        apart[d] = apart[d] * x->bound[m->spatial[s]][d];
                        if (m->steals[s]) extent[d] = extent[d] * x->bound[m->spatial[s]][d];
                    }
                if (d == w.grows) w.pitch = stays ? apart[d] * stays[d] : apart[d];
            }
            if (!m->shares) widened(m, x, h, stays, apart, &w);
            for (int i = 0; m->shares && i < m->operands; i++) memcpy(w.wide[i], extent, D * sizeof *extent);
            boxed(m, extent, &along, &w);
            Point *here = &point[points++];
            here->ratio = ratio_of(m, run, x, &w, thin->looks);
            here->turns = w.turns;
            here->units = w.units;
            memcpy(here->loop, along.bound, loops * sizeof *spatial);
        }
    }
    return together(m, run, point, points, loops);
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
        const double *known = run->work[i].known.data + row * work_width(m);
        double mean = known[m->lane_one], moment = known[m->lane_count], chance = known[m->lane_count + 1];
        square *= w->lanes[i] == 1.0 && mean > 0.0 ? moment / (mean * mean) : 1.0;
        double any_of = 1.0 - power(run, 1.0 - min2(chance, 1.0), w->lanes[i]);
        some *= any_of;
        double words = max2(product_of(w->box[i], widths_of(m, (int)m->operand[i])), looks[i]);
        share *= loose(mean, moment, words);
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
    Spread along;
    double extent[DIMS], apart[DIMS];
    along.count = 0;
    for (int d = 0; d < m->D; d++) {
        double inside = x->bound[m->temporal[h]][d];
        for (int s = h + 1; s < m->S; s++) inside = inside * x->bound[m->temporal[s]][d];
        extent[d] = inside * thin->held[h - 1][t][d];
        apart[d] = inside;
    }
    for (int s = (int)m->parent[t * m->S + h]; s < m->S; s++)
        for (int d = 0; m->spatial[s] >= 0 && d < m->D; d++) {
            double bound = x->bound[m->spatial[s]][d];
            apart[d] = apart[d] * bound;
            if (!(bound > 1.0) || (s < h && m->relevant[t * m->D + d])) continue;
            along.dim[along.count] = d;
            along.stride[along.count] = m->alikes ? stride_of(m, x, s, d) : 1.0;
            along.bound[along.count++] = bound;
        }
    w->depth = 1;
    w->grows = -1;
    w->turns = w->pitch = 1.0;
    widened(m, x, h, thin->held[h - 1][t], apart, w);
    boxed(m, extent, &along, w);
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
            const double *maxima = run->work[i].known.data + row * work_width(m);
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
        double one_copy = max2(both, each + stalls(m, x, f, h, tensors) / items);
        if (!x->lacking) between = min2(later(run, each, both, worked, sqrt(square), some), one_copy);
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
