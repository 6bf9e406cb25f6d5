/* Steps of the built-in segments (`joint.py`) for whole genomes, the same genes as those of their twins in NumPy. */
#include "../../sparsemap/native.h"
#include "../../sparsemap/draws.h"

enum { PARTS = 4, GENES = 256, MOST_DIMS = 64, LEVELS = 64, ORDERED = 20, TABLED = 8, TRIES = 4 }; /* segments .. ways to fill a level */
enum { KIND, FIRST, STEP, ONE, TWO, THREE, DRAWN }; /* rows of what is drawn for a tiling, before the keys of the factors */
enum { SWAPS, FILLS, STAYS, MOVES, FILLED, STAYING };

/* A segment: `g` genes from gene `at` on, each from `low` to `high`. */
typedef struct {
    char kind; /* (o)rders, (t)iling, (f)ormats, (m)echanisms */
    Py_ssize_t at, g, L, D, T, R, F;
    int64_t low, high;
    const int64_t *dims, *spatial, *temporal, *storage, *terms, *alike;
    const double *factors, *shares, *limits, *fanouts, *rooms, *stored;
    const char *moves, *parallel, *compressed, *strict, *needs;
    Py_ssize_t spatials, times, fanned, bounded, summed;
} Part;

typedef struct {
    Part parts[PARTS];
    Py_ssize_t count, G;
    Views views;
} Plan;

typedef struct {
    int64_t *data;
    Py_ssize_t n, down, right; /* to the next genome, to the next gene */
} Genomes;

static inline int64_t *gene(const Genomes *x, Py_ssize_t b, Py_ssize_t i) { return x->data + b * x->down + i * x->right; }

static void read_row(const Genomes *x, const Part *p, Py_ssize_t b, int64_t *row) {
    for (Py_ssize_t i = 0; i < p->g; i++) row[i] = *gene(x, b, p->at + i);
}

static void write_row(const Genomes *x, const Part *p, Py_ssize_t b, const int64_t *row) {
    for (Py_ssize_t i = 0; i < p->g; i++) *gene(x, b, p->at + i) = row[i];
}

/* Orders ------------------------------------------------------------------------------------------------------------- */

static int8_t *known[TABLED + 1]; /* all orders of so many dimensions (D!, D), once they are asked for */

/* The order (D,), from the outermost loop, of a Cantor code. */
static void order_of(int64_t code, Py_ssize_t D, int8_t *order) {
    if (D <= TABLED && known[D]) {
        for (Py_ssize_t i = 0; i < D; i++) order[i] = known[D][(code - 1) * D + i];
        return;
    }
    int64_t weights[ORDERED] = {1}, rest = code - 1;
    for (Py_ssize_t i = 1; i < D; i++) weights[i] = weights[i - 1] * i;
    for (Py_ssize_t i = 0; i < D; i++) order[i] = (int8_t)(rest / weights[D - 1 - i]), rest %= weights[D - 1 - i];
    for (Py_ssize_t i = D - 2; i >= 0; i--)
        for (Py_ssize_t j = i + 1; j < D; j++) order[j] = (int8_t)(order[j] + (order[j] >= order[i]));
}

static int64_t code_of(const int8_t *order, Py_ssize_t D) {
    int64_t code = 0;
    for (Py_ssize_t i = 0; i < D; i++) {
        int64_t smaller = 0;
        for (Py_ssize_t j = i + 1; j < D; j++) smaller += order[j] < order[i];
        code = code * (D - i) + smaller;
    }
    return code + 1;
}

/* Two loops of a level swap places; or it takes the order of another level. `drawn` (3 n,), `u` (n,). */
static void vary_orders(const Part *p, const Genomes *x, const Py_ssize_t *rows, Py_ssize_t n, const Bits *bits, int64_t *drawn, double *u) {
    if (p->D < 2) return;
    int64_t *level = drawn, *first = drawn + n, *second = drawn + 2 * n;
    wholes(bits, level, n, 0, p->L - 1);
    wholes(bits, first, n, 0, p->D - 1);
    wholes(bits, second, n, 1, p->D - 2);
    uniform(bits, u, n);
    for (Py_ssize_t k = 0; k < n; k++) {
        int64_t *own = gene(x, rows[k], p->at + level[k]), other = (first[k] + second[k]) % p->D;
        if (u[k] < 0.2) {
            *own = *gene(x, rows[k], p->at + whole(bits, (uint32_t)(p->L - 1)));
            continue;
        }
        int8_t order[ORDERED], loop;
        order_of(*own, p->D, order);
        loop = order[first[k]], order[first[k]] = order[other], order[other] = loop;
        *own = code_of(order, p->D);
    }
}

/* Tilings ------------------------------------------------------------------------------------------------------------ */

/* A level takes factors while they fit, in ascending order of their keys; the fullest of several ways. */
static void fill(const Part *p, int64_t *row, int64_t here, double limit, int64_t away, const double *keys, Py_ssize_t width) {
    double best = -1.0;
    char comes[GENES], kept[GENES] = {0};
    for (Py_ssize_t i = 0; away && i < p->g; i++)
        if (row[i] == here) row[i] = away;
    for (int way = 0; way < TRIES; way++) {
        double used = 1.0, key[GENES];
        int order[GENES], waiting = 0;
        memset(comes, 0, sizeof comes);
        for (Py_ssize_t i = 0; i < p->g; i++) {
            if (row[i] == here) {
                used *= p->factors[i];
                continue;
            }
            double own = keys[p->dims[i] * width + way] + 0.3 * keys[(p->D + i) * width + way];
            int at = waiting++;
            for (; at && key[at - 1] > own; at--) key[at] = key[at - 1], order[at] = order[at - 1];
            key[at] = own, order[at] = (int)i;
        }
        for (int i = 0; i < waiting; i++)
            if (used * p->factors[order[i]] <= limit) used *= p->factors[order[i]], comes[order[i]] = 1;
        if (used > best) best = used, memcpy(kept, comes, sizeof kept);
    }
    for (Py_ssize_t i = 0; i < p->g; i++)
        if (kept[i]) row[i] = here;
}

/* The factor with the largest key of those on a level (or, `but`, not on it) that are not of dimension `dim`; -1: none. */
static Py_ssize_t largest(const Part *p, const int64_t *row, const double *keys, Py_ssize_t width, int64_t level, int but, int64_t dim) {
    Py_ssize_t found = -1;
    for (Py_ssize_t i = 0; i < p->g; i++)
        if ((row[i] == level) != but && p->dims[i] != dim && (found < 0 || keys[i * width] > keys[found * width])) found = i;
    return found;
}

/* A tensor stays during the loops in time of a level: those that move it go outwards, or inwards, where others may return. */
static void stay(const Part *p, int64_t *row, double one, double two, double three) {
    const char *moved = p->moves + (Py_ssize_t)(one * (double)p->T) * p->D;
    Py_ssize_t at = (Py_ssize_t)(two * (double)p->times);
    int outwards = (three < 0.4 && at > 0) || at == p->times - 1;
    Py_ssize_t next = at + (outwards ? -1 : 1);
    int64_t here = p->temporal[at], other = p->temporal[next < 0 ? 0 : next];
    for (Py_ssize_t i = 0; i < p->g; i++) {
        int mine = moved[p->dims[i]];
        if (mine && row[i] == here) row[i] = other;
        else if (!mine && row[i] == other && !outwards && three > 0.7) row[i] = here;
    }
}

/* Each draws DRAWN + g numbers, and those that fill a level TRIES * (D + g) more. */
static void vary_tiling(const Part *p, const Genomes *x, const Py_ssize_t *rows, Py_ssize_t n, const Bits *bits, double *drawn) {
    if (!p->g || p->L < 2) return;
    const double *ends = p->shares;
    double *ways = drawn + (DRAWN + p->g) * n;
    Py_ssize_t fills = 0, filling = 0;
    uniform(bits, drawn, (DRAWN + p->g) * n);
    for (Py_ssize_t k = 0; k < n; k++) fills += drawn[k] >= ends[SWAPS] && drawn[k] < ends[FILLS];
    uniform(bits, ways, (p->D + p->g) * TRIES * fills);
    for (Py_ssize_t k = 0; k < n; k++) {
        const double *u = drawn + k, *keys = u + DRAWN * n;
        double kind = u[KIND * n], one = u[ONE * n], two = u[TWO * n], three = u[THREE * n];
        int64_t row[GENES];
        read_row(x, p, rows[k], row);
        Py_ssize_t first = (Py_ssize_t)(u[FIRST * n] * (double)p->g), second;
        int64_t before = row[first], dim = p->dims[first];
        int64_t target = 1 + (before + (int64_t)(u[STEP * n] * (double)(p->L - 1))) % p->L;
        if (kind < ends[SWAPS] && (second = largest(p, row, keys, n, before, 1, -1)) >= 0) {
            row[first] = row[second];
            row[second] = before;
        } else if (kind >= ends[SWAPS] && kind < ends[FILLS] && p->spatials) {
            Py_ssize_t which = (Py_ssize_t)(one * (double)p->spatials);
            int64_t away = two < 0.3 ? 1 + (int64_t)(three * (double)p->L) : 0;
            fill(p, row, p->spatial[which] + 1, p->limits[which], away, ways + TRIES * filling++, TRIES * fills);
        } else if (kind >= ends[FILLS] && kind < ends[STAYS]) {
            stay(p, row, one, two, three);
        } else if (kind >= ends[MOVES]) { /* all factors of the dimension here; those of it, or of another one, come back */
            Py_ssize_t found = largest(p, row, keys, n, target, 0, dim);
            int64_t other = found < 0 ? -1 : p->dims[found];
            for (Py_ssize_t i = 0; i < p->g; i++) {
                int own = p->dims[i] == dim, returns = own ? two < 0.3 : p->dims[i] == other && two >= 0.3 && two < 0.8;
                row[i] = own && row[i] == before ? target : row[i] == target && returns ? before : row[i];
            }
        } else {
            row[first] = target;
        }
        write_row(x, p, rows[k], row);
    }
}

static void guess_tiling(const Part *p, const Genomes *x, const Bits *bits, int64_t *few, double *u, Py_ssize_t *rows) {
    Py_ssize_t n = x->n, some;
    int64_t row[GENES];
    wholes(bits, few, 3 * p->D * n, 1, p->L - 1); /* the same one twice: on fewer levels */
    for (Py_ssize_t i = 0; i < p->g; i++)
        for (Py_ssize_t b = 0; b < n; b++) *gene(x, b, p->at + i) = few[(whole(bits, 2) * p->D + p->dims[i]) * n + b];
    for (Py_ssize_t l = 0; l < p->fanned; l++) {
        uniform(bits, u, n);
        some = 0;
        for (Py_ssize_t b = 0; b < n; b++)
            if (u[b] < p->shares[FILLED]) rows[some++] = b;
        wholes(bits, few, some, 1, p->L - 1);
        uniform(bits, u, (p->D + p->g) * TRIES * some);
        for (Py_ssize_t k = 0; k < some; k++) {
            read_row(x, p, rows[k], row);
            fill(p, row, (int64_t)p->fanouts[3 * l], p->fanouts[3 * l + 1], few[k], u + TRIES * k, TRIES * some);
            write_row(x, p, rows[k], row);
        }
    }
    uniform(bits, u, n);
    some = 0;
    for (Py_ssize_t b = 0; b < n; b++)
        if (u[b] < p->shares[STAYING]) rows[some++] = b;
    uniform(bits, u, 3 * some);
    for (Py_ssize_t k = 0; k < some; k++) {
        read_row(x, p, rows[k], row);
        stay(p, row, u[k], u[some + k], u[2 * some + k]);
        write_row(x, p, rows[k], row);
    }
}

/* Words that a level needs for its tiles. `terms` (n, 4): tensor, rank, dimension and factor, in this order; `stored` (T, 3):
 * words of a tensor that resides there or NAN, nonzeros, and copies, 0 if the level does not store it. */
static double needed(const Part *p, const double *stored, const double *extent, const char *packed) {
    double total = 0.0, words[MOST_DIMS], width = 1.0;
    for (Py_ssize_t t = 0; t < p->T; t++) words[t] = 1.0;
    for (Py_ssize_t i = 0; i < p->summed; i++) {
        const int64_t *term = p->terms + 4 * i;
        width = width + (double)term[3] * (extent[term[2]] - 1.0);
        if (i + 1 < p->summed && term[4] == term[0] && term[5] == term[1]) continue;
        words[term[0]] = words[term[0]] * width;
        width = 1.0;
    }
    for (Py_ssize_t t = 0; t < p->T; t++) {
        const double *about = stored + 3 * t;
        if (!about[2]) continue;
        double own = about[0] == about[0] ? about[0] : words[t];
        if (packed[t] && about[1] < own) own = about[1];
        total = total + own * about[2];
    }
    return total;
}

/* Factors leave levels over instances and buffers that they overflow, in this order. `fanouts` (n, 3): gene, limit, gene of the
 * loops in time; `rooms` (n, 3): level, words, gene of the loops in time outside. */
static void fit(const Part *p, int64_t *row, const int64_t *order, const char *packed) {
    double extent[MOST_DIMS];
    for (Py_ssize_t i = 0; i < p->fanned; i++) {
        int64_t here = (int64_t)p->fanouts[3 * i];
        double used = 1.0;
        for (Py_ssize_t j = 0; j < p->g; j++) used *= row[j] == here ? p->factors[j] : 1.0;
        for (Py_ssize_t j = 0; j < p->g && used > p->fanouts[3 * i + 1]; j++)
            if (row[order[j]] == here) row[order[j]] = (int64_t)p->fanouts[3 * i + 2], used /= p->factors[order[j]];
    }
    for (Py_ssize_t i = 0; i < p->bounded; i++) {
        const double *room = p->rooms + 3 * i, *stored = p->stored + 3 * p->T * i;
        for (Py_ssize_t d = 0; d < p->D; d++) extent[d] = 1.0;
        for (Py_ssize_t j = 0; j < p->g; j++)
            if (p->storage[row[j] - 1] >= (int64_t)room[0]) extent[p->dims[j]] *= p->factors[j];
        double words = needed(p, stored, extent, packed);
        for (int parallel = 0; parallel < 2; parallel++) /* loops in time go first */
            for (Py_ssize_t j = 0; j < p->g && words > room[1]; j++) {
                int64_t *own = row + order[j];
                if (p->storage[*own - 1] < (int64_t)room[0] || (p->parallel[*own - 1] != 0) != parallel) continue;
                *own = (int64_t)room[2];
                extent[p->dims[order[j]]] /= p->factors[order[j]];
                words = needed(p, stored, extent, packed);
            }
    }
}

/* Formats ------------------------------------------------------------------------------------------------------------ */

static void vary_formats(const Part *p, const Genomes *x, const Py_ssize_t *rows, Py_ssize_t n, const Bits *bits, int64_t *drawn, double *u) {
    uniform(bits, u, n);
    int64_t *chosen = drawn, *position = drawn + n, *value = drawn + 2 * n, *step = drawn + 3 * n;
    wholes(bits, chosen, n, 0, p->T - 1);
    wholes(bits, position, n, 0, p->R - 1);
    wholes(bits, value, n, 0, p->F - 1);
    wholes(bits, step, n, 1, p->T > 2 ? p->T - 2 : 0);
    for (Py_ssize_t k = 0; k < n; k++)
        for (Py_ssize_t r = 0; r < p->R; r++) {
            int64_t *mine = gene(x, rows[k], p->at + chosen[k] * p->R + r);
            int inside = r >= position[k], filled = p->compressed[value[k]] ? inside : !inside || position[k] == 0;
            if (u[k] > 0.9) *mine = *gene(x, rows[k], p->at + (chosen[k] + step[k]) % p->T * p->R + r);
            else if (u[k] < 0.4 ? r == position[k] : filled) *mine = value[k];
        }
}

static void guess_formats(const Part *p, const Genomes *x, const Bits *bits, int64_t *drawn, double *u) {
    Py_ssize_t m = p->T * x->n, plain = 0;
    int64_t *inner = drawn, *above = drawn + m, *first = drawn + 2 * m, dense[GENES];
    for (Py_ssize_t f = 0; f < p->F; f++)
        if (!p->compressed[f]) dense[plain++] = f;
    wholes(bits, inner, m, 0, p->F - 1);
    if (plain) wholes(bits, above, m, 0, plain - 1);
    uniform(bits, u, m);
    wholes(bits, first, m, 0, p->R - 1);
    for (Py_ssize_t k = 0; k < m; k++)
        for (Py_ssize_t r = 0; r < p->R; r++) {
            int inside = r >= (u[k] < 0.5 ? p->R - 1 : first[k]) || !plain;
            *gene(x, k % x->n, p->at + k / x->n * p->R + r) = inside ? inner[k] : dense[above[k]];
        }
}

/* None is below another one where that is invalid: slots above become its like. */
static void order_formats(const Part *p, int64_t *row) {
    for (Py_ssize_t t = 0; t < p->T; t++) {
        int64_t *slot = row + t * p->R + p->R - 1, inner = *slot;
        for (Py_ssize_t r = 1; r < p->R; r++) {
            slot--;
            if (p->compressed[*slot] && p->strict[inner]) *slot = inner;
            if (!p->strict[inner] || p->strict[*slot]) inner = *slot;
        }
    }
}

/* Mechanisms --------------------------------------------------------------------------------------------------------- */

/* One gene gets another value. */
static void vary_mechanisms(const Part *p, const Genomes *x, const Py_ssize_t *rows, Py_ssize_t n, const Bits *bits, int64_t *drawn, double *u) {
    if (!p->g || p->high == p->low) return;
    wholes(bits, drawn, n, 0, p->g - 1);
    uniform(bits, u, n);
    for (Py_ssize_t k = 0; k < n; k++) {
        int64_t *own = gene(x, rows[k], p->at + drawn[k]), others = p->high - p->low;
        *own = p->low + (*own - p->low + 1 + (int64_t)(u[k] * (double)others)) % (others + 1);
    }
}

static int lacks(const Part *p, Py_ssize_t place, int64_t mechanism, const char *packed) {
    const char *needs = p->needs + (place * p->F + mechanism) * p->T;
    for (Py_ssize_t t = 0; t < p->T; t++)
        if (needs[t] && !packed[t]) return 1;
    return 0;
}

/* What needs metadata of a tensor without any gives way to another one. `packed` (n, T). */
static void repair_mechanisms(const Part *p, const Genomes *x, const char *packed, const Bits *bits, double *u, Py_ssize_t *rows) {
    for (Py_ssize_t place = 0; place < p->g; place++) {
        Py_ssize_t some = 0;
        for (Py_ssize_t b = 0; b < x->n; b++)
            if (lacks(p, place, *gene(x, b, p->at + place), packed + b * p->T)) rows[some++] = b;
        uniform(bits, u, p->F * some);
        for (Py_ssize_t k = 0; k < some; k++) {
            double best = -1.0;
            for (Py_ssize_t m = 0; m < p->F; m++)
                if (u[m * some + k] > best && !lacks(p, place, m, packed + rows[k] * p->T))
                    best = u[m * some + k], *gene(x, rows[k], p->at + place) = m;
        }
    }
}

/* Plans -------------------------------------------------------------------------------------------------------------- */

/* The buffers of the arrays of a record, from its second item on: kind and number of dimensions of each. */
static int arrays_of(Views *views, PyObject *record, const char *kinds, Py_buffer **found) {
    Py_ssize_t count = (Py_ssize_t)strlen(kinds) / 2;
    if (PyTuple_GET_SIZE(record) != count + 1) return 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        const char *kind = kinds[2 * i] == 'd' ? "d" : kinds[2 * i] == '?' ? "?" : "lq";
        if (!(found[i] = view(views, PyTuple_GET_ITEM(record, i + 1), kind, kinds[2 * i + 1] - '0', 0))) return 0;
    }
    return 1;
}

static int within(const Py_buffer *numbers, Py_ssize_t step, int64_t low, int64_t high) {
    for (Py_ssize_t i = 0; i < numbers->len / 8; i += step)
        if (((const int64_t *)numbers->buf)[i] < low || ((const int64_t *)numbers->buf)[i] > high) return 0;
    return 1;
}

/* The same of a column of numbers (n, 3) that are whole. */
static int indices(const Py_buffer *table, Py_ssize_t column, double low, double high) {
    for (Py_ssize_t i = 0; i < table->shape[0]; i++) {
        double x = ((const double *)table->buf)[3 * i + column];
        if (!(x >= low && x <= high)) return 0;
    }
    return 1;
}

/* ("orders", sizes (2,): levels, dimensions) */
static int orders_of(Part *p, Views *views, PyObject *record) {
    Py_buffer *of[1];
    if (!arrays_of(views, record, "l1", of) || of[0]->shape[0] != 2) return 0;
    p->g = p->L = ((const int64_t *)of[0]->buf)[0], p->D = ((const int64_t *)of[0]->buf)[1];
    if (p->L < 1 || p->L > LEVELS || p->D < 1 || p->D > ORDERED) return 0;
    p->low = p->high = 1;
    for (Py_ssize_t i = 2; i <= p->D; i++) p->high *= i;
    int8_t *table = p->D <= TABLED && !known[p->D] ? malloc((size_t)(p->high * p->D)) : NULL;
    for (int64_t code = 1; table && code <= p->high; code++) order_of(code, p->D, table + (code - 1) * p->D);
    if (table) known[p->D] = table;
    return 1;
}

/* ("tiling", dims (g,), factors (g,), shares (6,), spatial, limits, temporal, moves (T, D), fanouts (n, 3), parallel (L,),
 * storage (L,), rooms (n, 3), terms (n, 4), stored (n, T, 3)) */
static int tiling_of(Part *p, Views *views, PyObject *record) {
    Py_buffer *of[13];
    if (!arrays_of(views, record, "l1d1d1l1d1l1?2d2?1l1d2l2d3", of)) return 0;
    p->g = of[0]->shape[0], p->L = of[8]->shape[0], p->T = of[6]->shape[0], p->D = of[6]->shape[1], p->low = 1, p->high = p->L;
    p->spatials = of[3]->shape[0], p->times = of[5]->shape[0], p->fanned = of[7]->shape[0], p->bounded = of[10]->shape[0];
    p->summed = of[11]->shape[0];
    p->dims = of[0]->buf, p->factors = of[1]->buf, p->shares = of[2]->buf, p->spatial = of[3]->buf, p->limits = of[4]->buf;
    p->temporal = of[5]->buf, p->moves = of[6]->buf, p->fanouts = of[7]->buf, p->parallel = of[8]->buf, p->storage = of[9]->buf;
    p->rooms = of[10]->buf, p->terms = of[11]->buf, p->stored = of[12]->buf;
    for (Py_ssize_t i = 0; i < of[1]->shape[0]; i++)
        if (!(p->factors[i] >= 1.0 && p->factors[i] < 9e15)) return 0;
    double L = (double)p->L;
    if (p->g > GENES || p->L < 1 || p->L > LEVELS || p->D > MOST_DIMS || p->T < 1 || p->T > MOST_DIMS || of[1]->shape[0] != p->g ||
        of[2]->shape[0] != STAYING + 1 || of[4]->shape[0] != p->spatials || !p->times || of[7]->shape[1] != 3 ||
        of[9]->shape[0] != p->L || of[10]->shape[1] != 3 || of[11]->shape[1] != 4 || of[12]->shape[0] != p->bounded ||
        of[12]->shape[1] != p->T || of[12]->shape[2] != 3)
        return 0;
    for (Py_ssize_t i = 0; i < p->summed; i++)
        if (p->terms[4 * i] < 0 || p->terms[4 * i] >= p->T || p->terms[4 * i + 2] < 0 || p->terms[4 * i + 2] >= p->D) return 0;
    return within(of[0], 1, 0, p->D - 1) && within(of[3], 1, 0, p->L - 1) && within(of[5], 1, 1, p->L) &&
           indices(of[7], 0, 1.0, L) && indices(of[7], 2, 1.0, L) && indices(of[10], 2, 1.0, L);
}

/* ("formats", slots (1,), compressed (F,), strict (F,), moves (T, D)) */
static int formats_of(Part *p, Views *views, PyObject *record) {
    Py_buffer *of[4];
    if (!arrays_of(views, record, "l1?1?1?2", of) || of[0]->shape[0] != 1) return 0;
    p->R = ((const int64_t *)of[0]->buf)[0], p->F = of[1]->shape[0], p->T = of[3]->shape[0], p->D = of[3]->shape[1];
    p->compressed = of[1]->buf, p->strict = of[2]->buf, p->moves = of[3]->buf, p->high = p->F - 1;
    if (p->R < 1 || p->R > GENES || p->F < 1 || p->F > GENES || p->T < 1 || p->T > MOST_DIMS || p->D > MOST_DIMS) return 0;
    p->g = p->T * p->R;
    return p->g <= GENES && of[2]->shape[0] == p->F;
}

/* ("mechanisms", needs (A, M, T), alike (A, M)) */
static int mechanisms_of(Part *p, Views *views, PyObject *record) {
    Py_buffer *of[2];
    if (!arrays_of(views, record, "?3l2", of)) return 0;
    p->g = of[0]->shape[0], p->F = of[0]->shape[1], p->T = of[0]->shape[2], p->needs = of[0]->buf, p->alike = of[1]->buf;
    p->high = p->F - 1;
    return p->g <= GENES && p->F >= 1 && p->T <= MOST_DIMS && of[1]->shape[0] == p->g && of[1]->shape[1] == p->F &&
           within(of[1], 1, 0, p->high);
}

static void dropped(PyObject *capsule) {
    Plan *plan = PyCapsule_GetPointer(capsule, "sparsemap plan");
    release(&plan->views);
    free(plan);
}

/* plan(records): what the other doors ask for, of segments in a row; each record is a tuple, a name and arrays. */
static PyObject *plan(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 1 || !PyTuple_Check(args[0]) || PyTuple_GET_SIZE(args[0]) > PARTS) Py_RETURN_NONE;
    Plan *made = calloc(1, sizeof *made);
    int fine = made != NULL;
    for (Py_ssize_t i = 0; fine && i < PyTuple_GET_SIZE(args[0]); i++) {
        PyObject *record = PyTuple_GET_ITEM(args[0], i);
        PyObject *name = PyTuple_Check(record) && PyTuple_GET_SIZE(record) ? PyTuple_GET_ITEM(record, 0) : NULL;
        const char *kind = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
        Part *p = &made->parts[made->count++];
        p->kind = kind ? kind[0] : 0, p->at = made->G;
        switch (p->kind) {
        case 'o': fine = orders_of(p, &made->views, record); break;
        case 't': fine = tiling_of(p, &made->views, record); break;
        case 'f': fine = formats_of(p, &made->views, record); break;
        case 'm': fine = mechanisms_of(p, &made->views, record); break;
        default: fine = 0;
        }
        made->G += p->g;
    }
    for (Py_ssize_t i = 0; fine && i < made->count; i++) /* all of one problem */
        for (Py_ssize_t j = 0; j < i; j++) {
            const Part *a = &made->parts[i], *b = &made->parts[j];
            fine &= a->kind != b->kind && (!a->D || !b->D || a->D == b->D) && (!a->T || !b->T || a->T == b->T) && (!a->L || !b->L || a->L == b->L);
        }
    PyObject *capsule = fine ? PyCapsule_New(made, "sparsemap plan", dropped) : NULL;
    if (capsule) return capsule;
    PyErr_Clear();
    if (made) release(&made->views);
    free(made);
    Py_RETURN_NONE;
}

static const Part *part_of(const Plan *plan, char kind) {
    for (Py_ssize_t i = 0; i < plan->count; i++)
        if (plan->parts[i].kind == kind) return &plan->parts[i];
    return NULL;
}

/* The plan and the genomes (n, G) that a call begins with; NULL unless all genes are within bounds, if it `reads` them. */
static const Plan *begun(Views *views, PyObject *const *args, Genomes *x, int reads, int writes) {
    const Plan *plan = PyCapsule_IsValid(args[0], "sparsemap plan") ? PyCapsule_GetPointer(args[0], "sparsemap plan") : NULL;
    Py_buffer *given = plan ? buffer(views, args[1], "lq", 2, writes ? PyBUF_STRIDED : PyBUF_STRIDES) : NULL;
    if (!given || given->shape[1] != plan->G || given->strides[0] % 8 || given->strides[1] % 8) return NULL;
    *x = (Genomes){given->buf, given->shape[0], given->strides[0] / 8, given->strides[1] / 8};
    for (Py_ssize_t i = 0; reads && i < plan->count; i++)
        for (Py_ssize_t j = plan->parts[i].at; j < plan->parts[i].at + plan->parts[i].g; j++)
            for (Py_ssize_t b = 0; b < x->n; b++)
                if (*gene(x, b, j) < plan->parts[i].low || *gene(x, b, j) > plan->parts[i].high) return NULL;
    return plan;
}

/* Room for what is drawn for n genomes: numbers, whole numbers, rows. */
typedef struct {
    double *u;
    int64_t *i;
    Py_ssize_t *rows;
} Room;

static int room_of(Room *room, const Plan *plan, Py_ssize_t n) {
    Py_ssize_t most = 8;
    for (Py_ssize_t i = 0; i < plan->count; i++) {
        const Part *p = &plan->parts[i];
        Py_ssize_t own = DRAWN + p->g + TRIES * (p->D + p->g) + 3 * p->D + 3 * p->T + p->F;
        if (own > most) most = own;
    }
    *room = (Room){malloc((size_t)(most * (n + 1)) * 8), malloc((size_t)(most * (n + 1)) * 8), malloc((size_t)(n + 1) * 8)};
    return room->u && room->i && room->rows;
}

static PyObject *finished(Views *views, Room *room, int fine, Py_ssize_t n) {
    free(room->u), free(room->i), free(room->rows);
    return fine ? done(views, n) : none(views);
}

/* holds(plan, genomes): the number of genomes if they are of this plan and within bounds. */
static PyObject *holds(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Genomes x;
    return nargs == 2 && begun(&views, args, &x, 1, 0) ? done(&views, x.n) : none(&views);
}

/* vary(plan, genomes, times, rng): genomes change in place so many `times` (segments, n) by moves of each segment. */
static PyObject *vary(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Genomes x;
    Room room = {NULL, NULL, NULL};
    const Bits *bits;
    const Plan *plan = nargs == 4 ? begun(&views, args, &x, 1, 1) : NULL;
    Py_buffer *given = plan ? view(&views, args[2], "lq", 2, 0) : NULL;
    if (!given || given->shape[0] != plan->count || given->shape[1] != x.n || !(bits = stream_of(args[3]))) return none(&views);
    int fine = room_of(&room, plan, x.n);
    for (Py_ssize_t i = 0; fine && i < plan->count; i++) {
        const Part *p = &plan->parts[i];
        const int64_t *times = (const int64_t *)given->buf + i * x.n;
        for (int64_t again = 0;; again++) {
            Py_ssize_t n = 0;
            for (Py_ssize_t b = 0; b < x.n; b++)
                if (times[b] > again) room.rows[n++] = b;
            if (!n) break;
            if (p->kind == 'o') vary_orders(p, &x, room.rows, n, bits, room.i, room.u);
            if (p->kind == 't') vary_tiling(p, &x, room.rows, n, bits, room.u);
            if (p->kind == 'f') vary_formats(p, &x, room.rows, n, bits, room.i, room.u);
            if (p->kind == 'm') vary_mechanisms(p, &x, room.rows, n, bits, room.i, room.u);
        }
    }
    return finished(&views, &room, fine, x.n);
}

/* guess(plan, genomes, rng): genomes to start with; those given are not read. */
static PyObject *guess(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Genomes x;
    Room room = {NULL, NULL, NULL};
    const Bits *bits;
    const Plan *plan = nargs == 3 ? begun(&views, args, &x, 0, 1) : NULL;
    if (!plan || !(bits = stream_of(args[2]))) return none(&views);
    int fine = room_of(&room, plan, x.n);
    for (Py_ssize_t i = 0; i < plan->count; i++) fine &= plan->parts[i].high <= UINT32_MAX;
    for (Py_ssize_t i = 0; fine && i < plan->count; i++) {
        const Part *p = &plan->parts[i];
        if (p->kind == 't') guess_tiling(p, &x, bits, room.i, room.u, room.rows);
        else if (p->kind == 'f') guess_formats(p, &x, bits, room.i, room.u);
        else
            for (Py_ssize_t b = 0; b < x.n; b++)
                for (Py_ssize_t j = 0; j < p->g; j++) *gene(&x, b, p->at + j) = p->low + whole(bits, (uint32_t)(p->high - p->low));
    }
    return finished(&views, &room, fine, x.n);
}

/* repair(plan, genomes, packed, rng): genomes change in place; `packed` (T, n): which designs compress a tensor, None: as their
 * formats say, if the plan has any. */
static PyObject *repair(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Genomes x;
    Room room = {NULL, NULL, NULL};
    Py_buffer *given = NULL;
    const Bits *bits;
    const Plan *plan = nargs == 4 ? begun(&views, args, &x, 1, 1) : NULL;
    if (!plan || !(bits = stream_of(args[3])) || (args[2] != Py_None && !(given = view(&views, args[2], "?", 2, 0)))) return none(&views);
    const Part *formats = part_of(plan, 'f'), *tiling = part_of(plan, 't'), *mechanisms = part_of(plan, 'm');
    Py_ssize_t T = tiling ? tiling->T : mechanisms ? mechanisms->T : 0;
    if ((given && (given->shape[0] != T || given->shape[1] != x.n)) || (mechanisms && !given && !formats)) return none(&views);
    int fine = room_of(&room, plan, x.n);
    char *packed = calloc((size_t)(T * x.n + 1), 1);
    fine = fine && packed;
    for (Py_ssize_t t = 0; fine && t < T; t++)
        for (Py_ssize_t b = 0; b < x.n; b++) {
            if (given) packed[b * T + t] = ((const char *)given->buf)[t * x.n + b];
            else if (formats) packed[b * T + t] = formats->compressed[*gene(&x, b, formats->at + (t + 1) * formats->R - 1)];
        }
    for (Py_ssize_t i = 0; fine && i < plan->count; i++) {
        const Part *p = &plan->parts[i];
        int64_t row[GENES];
        if (p->kind == 't') permutation(bits, room.i, p->g);
        for (Py_ssize_t b = 0; b < x.n && (p->kind == 't' || p->kind == 'f'); b++) {
            read_row(&x, p, b, row);
            if (p->kind == 't') fit(p, row, room.i, packed + b * T);
            else order_formats(p, row);
            write_row(&x, p, b, row);
        }
        if (p->kind == 'm') repair_mechanisms(p, &x, packed, bits, room.u, room.rows);
    }
    free(packed);
    return finished(&views, &room, fine, x.n);
}

/* canonical(plan, genomes, bounds): genomes change in place to one of those that mean the same; `bounds` (L, D, n) of loops, None:
 * as their tilings say. */
static PyObject *canonical(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Genomes x;
    Py_buffer *given = NULL;
    const Plan *plan = nargs == 3 ? begun(&views, args, &x, 1, 1) : NULL;
    if (!plan || (args[2] != Py_None && !(given = view(&views, args[2], "d", 3, 0)))) return none(&views);
    const Part *orders = part_of(plan, 'o'), *formats = part_of(plan, 'f'), *tiling = part_of(plan, 't'), *mechanisms = part_of(plan, 'm');
    Py_ssize_t L = given ? given->shape[0] : tiling ? tiling->L : 0, D = given ? given->shape[1] : tiling ? tiling->D : 0;
    if (((orders || formats) && !given && !tiling) || (orders && (orders->L != L || orders->D != D)) || (formats && formats->D != D) ||
        (given && (given->shape[2] != x.n || L > LEVELS || D > MOST_DIMS)))
        return none(&views);
    for (Py_ssize_t b = 0; b < x.n; b++) {
        char busy[LEVELS * MOST_DIMS] = {0}; /* whether the bound of a loop is above one */
        int64_t row[GENES];
        for (Py_ssize_t i = 0; given && i < L * D; i++) busy[i] = ((const double *)given->buf)[i * x.n + b] > 1.0;
        if (tiling) {
            const Part *p = tiling;
            read_row(&x, p, b, row);
            for (Py_ssize_t i = 0; i < p->g; i++) {
                if (!given) busy[(row[i] - 1) * D + p->dims[i]] |= p->factors[i] > 1.0;
                for (Py_ssize_t j = i; j && p->dims[j] == p->dims[j - 1] && p->factors[j] == p->factors[j - 1] && row[j] < row[j - 1]; j--) {
                    int64_t own = row[j];
                    row[j] = row[j - 1], row[j - 1] = own;
                }
            }
            write_row(&x, p, b, row);
        }
        for (Py_ssize_t l = 0; orders && l < L; l++) { /* loops with bound one come last, by dimension */
            int8_t order[ORDERED], sorted[ORDERED];
            Py_ssize_t some = 0;
            order_of(*gene(&x, b, orders->at + l), D, order);
            for (Py_ssize_t i = 0; i < D; i++)
                if (busy[l * D + order[i]]) sorted[some++] = order[i];
            for (Py_ssize_t d = 0; d < D; d++)
                if (!busy[l * D + d]) sorted[some++] = (int8_t)d;
            *gene(&x, b, orders->at + l) = code_of(sorted, D);
        }
        for (Py_ssize_t t = 0; formats && t < formats->T; t++) { /* slots further out than there are ranks are 0 */
            Py_ssize_t ranks = 0;
            for (Py_ssize_t i = 0; i < L * D; i++) ranks += busy[i] && formats->moves[t * D + i % D];
            for (Py_ssize_t r = 0; r < formats->R - ranks; r++) *gene(&x, b, formats->at + t * formats->R + r) = 0;
        }
        for (Py_ssize_t i = 0; mechanisms && i < mechanisms->g; i++) {
            int64_t *own = gene(&x, b, mechanisms->at + i);
            *own = mechanisms->alike[i * mechanisms->F + *own];
        }
    }
    return done(&views, x.n);
}

/* decode(plan, genomes, columns): columns, one of each segment: orders (L, D, n) int8, bounds (L, D, n) double, formats and
 * mechanisms (genes, n) int8 of any shape. */
static PyObject *decode(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Genomes x;
    Py_buffer *of[PARTS];
    const Plan *plan = nargs == 3 ? begun(&views, args, &x, 1, 0) : NULL;
    if (!plan || !PyTuple_Check(args[2]) || PyTuple_GET_SIZE(args[2]) != plan->count) return none(&views);
    for (Py_ssize_t i = 0; i < plan->count; i++) {
        const Part *p = &plan->parts[i];
        int bounds = p->kind == 't', loops = bounds || p->kind == 'o';
        of[i] = view(&views, PyTuple_GET_ITEM(args[2], i), bounds ? "d" : "b", 0, 1);
        if (!of[i] || of[i]->len / of[i]->itemsize != (loops ? p->L * p->D : p->g) * x.n) return none(&views);
    }
    for (Py_ssize_t i = 0; i < plan->count; i++) {
        const Part *p = &plan->parts[i];
        double *found = of[i]->buf;
        int8_t *out = of[i]->buf, order[ORDERED];
        for (Py_ssize_t k = 0; p->kind == 't' && k < p->L * p->D * x.n; k++) found[k] = 1.0;
        for (Py_ssize_t j = 0; j < p->g; j++)
            for (Py_ssize_t b = 0; b < x.n; b++) {
                int64_t own = *gene(&x, b, p->at + j);
                if (p->kind == 't') found[((own - 1) * p->D + p->dims[j]) * x.n + b] *= p->factors[j];
                else if (p->kind != 'o') out[j * x.n + b] = (int8_t)own;
                else {
                    order_of(own, p->D, order);
                    for (Py_ssize_t d = 0; d < p->D; d++) out[(j * p->D + d) * x.n + b] = order[d];
                }
            }
    }
    return done(&views, x.n);
}

/* encode(plan, genomes, column): genomes of a plan of orders, or of a tiling, that decode to the column; None: some cannot. Equal
 * factors have ascending levels. */
static PyObject *encode(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Genomes x;
    const Plan *plan = nargs == 3 ? begun(&views, args, &x, 0, 1) : NULL;
    const Part *p = plan && plan->count == 1 ? &plan->parts[0] : NULL;
    Py_buffer *given = p && (p->kind == 'o' || p->kind == 't') ? view(&views, args[2], p->kind == 't' ? "d" : "b", 3, 0) : NULL;
    if (!given || given->shape[0] != p->L || given->shape[1] != p->D || given->shape[2] != x.n) return none(&views);
    for (Py_ssize_t b = 0; b < x.n; b++) {
        for (Py_ssize_t l = 0; p->kind == 'o' && l < p->L; l++) {
            int8_t order[ORDERED];
            unsigned seen = 0;
            for (Py_ssize_t i = 0; i < p->D; i++) {
                order[i] = ((const int8_t *)given->buf)[(l * p->D + i) * x.n + b];
                if (order[i] < 0 || order[i] >= p->D) return none(&views);
                seen |= 1u << order[i];
            }
            if (seen != (1u << p->D) - 1) return none(&views);
            *gene(&x, b, l) = code_of(order, p->D);
        }
        for (Py_ssize_t d = 0; p->kind == 't' && d < p->D; d++) {
            int64_t row[GENES] = {0};
            for (Py_ssize_t l = 0; l < p->L; l++) {
                double rest = ((const double *)given->buf)[(l * p->D + d) * x.n + b];
                if (!(rest >= 1.0 && rest < 9e15) || rest != (double)(int64_t)rest) return none(&views);
                int64_t left = (int64_t)rest;
                for (Py_ssize_t i = 0; i < p->g && left > 1; i++) {
                    int64_t factor = (int64_t)p->factors[i];
                    if (p->dims[i] == d && !row[i] && left % factor == 0) left /= factor, row[i] = l + 1;
                }
                if (left != 1) return none(&views);
            }
            for (Py_ssize_t i = 0; i < p->g; i++) {
                if (p->dims[i] != d) continue;
                if (!row[i]) return none(&views);
                *gene(&x, b, i) = row[i];
            }
        }
    }
    return done(&views, x.n);
}

/* drawn(wholes, most, order, rng): `rng.integers(0, most, endpoint=True)` (n,), then a permutation (k,): whether they are NumPy's. */
static PyObject *drawn(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *out, *most, *order;
    const Bits *bits;
    if (nargs != 4 || !(out = view(&views, args[0], "lq", 1, 1)) || !(most = view(&views, args[1], "lq", 1, 0)) ||
        !(order = view(&views, args[2], "lq", 1, 1)) || !(bits = stream_of(args[3])) || most->shape[0] != out->shape[0])
        return none(&views);
    for (Py_ssize_t i = 0; i < out->shape[0]; i++) wholes(bits, (int64_t *)out->buf + i, 1, 0, ((const int64_t *)most->buf)[i]);
    permutation(bits, order->buf, order->shape[0]);
    return done(&views, out->shape[0]);
}

MODULE(moves, DOOR(drawn), DOOR(plan), DOOR(holds), DOOR(vary), DOOR(guess), DOOR(repair), DOOR(canonical), DOOR(decode), DOOR(encode))
