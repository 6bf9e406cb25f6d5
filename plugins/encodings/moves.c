/* Moves, repair and codes of the segments (`tile_moves.py`, `choices.py`, `orders.py`), one genome at a time: the same genes. */
#include "../../sparsemap/native.h"

enum { GENES = 256, MOST_DIMS = 64, TRIES = 4 }; /* factors of a tiling, dimensions; ways to fill a level */
enum { KIND, FIRST, STEP, ONE, TWO, THREE, DRAWN }; /* rows of what is drawn, before the keys of the factors */

typedef struct {
    Py_ssize_t g, B, D;
    const int64_t *dims;
    const double *factors;
} Tiling;

/* The buffers of arrays, in their order: kind and number of dimensions of each; L: whole numbers that are written to. */
static int views_of(Views *views, PyObject *const *args, int count, const char *kinds, Py_buffer **found) {
    for (int i = 0; i < count; i++, kinds += 2) {
        const char *kind = *kinds == 'd' ? "d" : *kinds == '?' ? "?" : "lq";
        if (!(found[i] = view(views, args[i], kind, kinds[1] - '0', *kinds == 'L'))) return 0;
    }
    return 1;
}

/* A level takes factors while they fit, in ascending order of their keys; the fullest of several ways. */
static void fill(const Tiling *x, int64_t *row, int64_t here, double limit, int64_t away, const double *keys, Py_ssize_t width) {
    double best = -1.0;
    char comes[GENES], kept[GENES];
    for (Py_ssize_t i = 0; away && i < x->g; i++)
        if (row[i] == here) row[i] = away;
    for (int way = 0; way < TRIES; way++) {
        double used = 1.0, key[GENES];
        int order[GENES], waiting = 0;
        memset(comes, 0, sizeof comes);
        for (Py_ssize_t i = 0; i < x->g; i++) {
            if (row[i] == here) {
                used *= x->factors[i];
                continue;
            }
            double own = keys[x->dims[i] * width + way] + 0.3 * keys[(x->D + i) * width + way];
            int at = waiting++;
            for (; at && key[at - 1] > own; at--) key[at] = key[at - 1], order[at] = order[at - 1];
            key[at] = own, order[at] = (int)i;
        }
        for (int i = 0; i < waiting; i++)
            if (used * x->factors[order[i]] <= limit) used *= x->factors[order[i]], comes[order[i]] = 1;
        if (used > best) best = used, memcpy(kept, comes, sizeof kept);
    }
    for (Py_ssize_t i = 0; i < x->g; i++)
        if (kept[i]) row[i] = here;
}

static int tiling_of(Tiling *x, const Py_buffer *genes, const Py_buffer *dims, const Py_buffer *factors, Py_ssize_t D) {
    *x = (Tiling){genes->shape[0], genes->shape[1], D, dims->buf, factors->buf};
    if (x->g > GENES || D > MOST_DIMS || dims->shape[0] != x->g || factors->shape[0] != x->g) return 0;
    for (Py_ssize_t i = 0; i < x->g; i++)
        if (x->dims[i] < 0 || x->dims[i] >= D) return 0;
    return 1;
}

static void read_row(const Tiling *x, const int64_t *genes, Py_ssize_t b, int64_t *row) {
    for (Py_ssize_t i = 0; i < x->g; i++) row[i] = genes[i * x->B + b];
}

static void write_row(const Tiling *x, int64_t *genes, Py_ssize_t b, const int64_t *row) {
    for (Py_ssize_t i = 0; i < x->g; i++) genes[i * x->B + b] = row[i];
}

/* filled(genes, dims, factors, away, keys, here, limit): genes (g, B) are filled in place. */
static PyObject *filled(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *of[5];
    Tiling x;
    if (nargs != 7 || !views_of(&views, args, 5, "L2l1d1l1d2", of)) return none(&views);
    int64_t here = PyLong_AsLongLong(args[5]), row[GENES];
    double limit = PyFloat_AsDouble(args[6]);
    if (PyErr_Occurred()) PyErr_Clear();
    Py_ssize_t D = of[4]->shape[0] - of[0]->shape[0], width = of[4]->shape[1];
    if (!tiling_of(&x, of[0], of[1], of[2], D) || of[3]->shape[0] != x.B || width != TRIES * x.B) return none(&views);
    for (Py_ssize_t b = 0; b < x.B; b++) {
        read_row(&x, of[0]->buf, b, row);
        fill(&x, row, here, limit, ((const int64_t *)of[3]->buf)[b], (const double *)of[4]->buf + TRIES * b, width);
        write_row(&x, of[0]->buf, b, row);
    }
    return done(&views, x.B);
}

/* bounds(out, genes, dims, factors): out (L, D, B), the products of the factors at each level. */
static PyObject *bounds(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *out, *of[3];
    Tiling x;
    if (nargs != 4 || !(out = view(&views, args[0], "d", 3, 1)) || !views_of(&views, args + 1, 3, "l2l1d1", of)) return none(&views);
    if (!tiling_of(&x, of[0], of[1], of[2], out->shape[1]) || out->shape[2] != x.B) return none(&views);
    double *found = out->buf;
    for (Py_ssize_t i = 0; i < out->len / out->itemsize; i++) found[i] = 1.0;
    for (Py_ssize_t i = 0; i < x.g; i++) {
        const int64_t *genes = (const int64_t *)of[0]->buf + i * x.B;
        for (Py_ssize_t b = 0; b < x.B; b++) {
            if (genes[b] < 1 || genes[b] > out->shape[0]) return none(&views);
            found[((genes[b] - 1) * x.D + x.dims[i]) * x.B + b] *= x.factors[i];
        }
    }
    return done(&views, x.B);
}

/* The factor with the largest key of those on a level (or, `but`, not on it) that are not of dimension `dim`; -1: none. */
static Py_ssize_t largest(const Tiling *x, const int64_t *row, const double *keys, int64_t level, int but, int64_t dim) {
    Py_ssize_t found = -1;
    for (Py_ssize_t i = 0; i < x->g; i++)
        if ((row[i] == level) != but && x->dims[i] != dim && (found < 0 || keys[i * x->B] > keys[found * x->B])) found = i;
    return found;
}

/* vary(genes, dims, factors, drawn, keys, ends, spatial, limits, temporal, moves, levels): genes (g, B) change in place. */
static PyObject *vary(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *of[10];
    Tiling x;
    if (nargs != 11 || !views_of(&views, args, 10, "L2l1d1d2d2d1l1d1l1?2", of)) return none(&views);
    int64_t levels = PyLong_AsLongLong(args[10]), row[GENES];
    if (PyErr_Occurred()) PyErr_Clear();
    Py_ssize_t D = of[9]->shape[1], T = of[9]->shape[0], width = of[4]->shape[1], spatials = of[6]->shape[0], times = of[8]->shape[0];
    const double *ends = of[5]->buf, *limits = of[7]->buf, *fills = of[4]->buf;
    const int64_t *spatial = of[6]->buf, *temporal = of[8]->buf;
    const char *moves = of[9]->buf;
    if (!tiling_of(&x, of[0], of[1], of[2], D) || of[3]->shape[0] != DRAWN + x.g || of[3]->shape[1] != x.B || levels < 2 || !x.g ||
        of[4]->shape[0] != D + x.g || of[5]->shape[0] != 4 || of[7]->shape[0] != spatials || !times || !T)
        return none(&views);
    for (Py_ssize_t b = 0, filling = 0; b < x.B; b++) {
        const double *u = (const double *)of[3]->buf + b, *keys = u + DRAWN * x.B;
        double kind = u[KIND * x.B], one = u[ONE * x.B], two = u[TWO * x.B], three = u[THREE * x.B];
        read_row(&x, of[0]->buf, b, row);
        Py_ssize_t first = (Py_ssize_t)(u[FIRST * x.B] * (double)x.g), second;
        int64_t before = row[first], dim = x.dims[first];
        int64_t target = 1 + (before + (int64_t)(u[STEP * x.B] * (double)(levels - 1))) % levels;
        if (kind < ends[0] && (second = largest(&x, row, keys, before, 1, -1)) >= 0) {
            row[first] = row[second];
            row[second] = before;
        } else if (kind >= ends[0] && kind < ends[1] && spatials) {
            if ((filling + 1) * TRIES > width) return none(&views);
            Py_ssize_t which = (Py_ssize_t)(one * (double)spatials);
            int64_t away = two < 0.3 ? 1 + (int64_t)(three * (double)levels) : 0;
            fill(&x, row, spatial[which] + 1, limits[which], away, fills + TRIES * filling++, width);
        } else if (kind >= ends[1] && kind < ends[2]) {
            const char *moved = moves + (Py_ssize_t)(one * (double)T) * D;
            Py_ssize_t at = (Py_ssize_t)(two * (double)times);
            int outwards = (three < 0.4 && at > 0) || at == times - 1;
            Py_ssize_t next = at + (outwards ? -1 : 1);
            int64_t here = temporal[at], other = temporal[next < 0 ? 0 : next];
            for (Py_ssize_t i = 0; i < x.g; i++) {
                int mine = moved[x.dims[i]];
                if (mine && row[i] == here) row[i] = other;
                else if (!mine && row[i] == other && !outwards && three > 0.7) row[i] = here;
            }
        } else if (kind >= ends[3]) { /* all factors of the dimension here; those of it, or of another one, come back */
            Py_ssize_t found = largest(&x, row, keys, target, 0, dim);
            int64_t other = found < 0 ? -1 : x.dims[found];
            for (Py_ssize_t i = 0; i < x.g; i++) {
                int own = x.dims[i] == dim, returns = own ? two < 0.3 : x.dims[i] == other && two >= 0.3 && two < 0.8;
                row[i] = own && row[i] == before ? target : row[i] == target && returns ? before : row[i];
            }
        } else {
            row[first] = target;
        }
        write_row(&x, of[0]->buf, b, row);
    }
    return done(&views, x.B);
}

/* Words that a level needs for its tiles. `terms` (n, 4): tensor, rank, dimension and factor, in this order; `stored` (T, 3):
 * words of a tensor that resides there or NAN, nonzeros, and copies, 0 if the level does not store it. */
static double needed(const int64_t *terms, Py_ssize_t count, const double *stored, Py_ssize_t T, const double *extent,
                     const char *packed, Py_ssize_t B) {
    double total = 0.0, words[MOST_DIMS], width = 1.0;
    for (Py_ssize_t t = 0; t < T; t++) words[t] = 1.0;
    for (Py_ssize_t i = 0; i < count; i++) {
        const int64_t *term = terms + 4 * i;
        width = width + (double)term[3] * (extent[term[2]] - 1.0);
        if (i + 1 < count && term[4] == term[0] && term[5] == term[1]) continue;
        words[term[0]] = words[term[0]] * width;
        width = 1.0;
    }
    for (Py_ssize_t t = 0; t < T; t++) {
        const double *about = stored + 3 * t;
        if (!about[2]) continue;
        double own = about[0] == about[0] ? about[0] : words[t];
        if (packed && packed[t * B] && about[1] < own) own = about[1];
        total = total + own * about[2];
    }
    return total;
}

/* fit(genes, dims, factors, order, fanouts, spatial, storage, rooms, terms, stored, packed, D): genes (g, B) change in place.
 * `fanouts` (n, 3): gene, limit, gene of the loops in time; `rooms` (n, 3): level, words, gene of the loops in time outside. */
static PyObject *fit(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *of[11];
    Tiling x;
    if (nargs != 12 || !views_of(&views, args, 11, "L2l1d1l1d2?1l1d2l2d3?2", of)) return none(&views);
    Py_ssize_t D = PyLong_AsSsize_t(args[11]), T = of[10]->shape[0], terms = of[8]->shape[0], levels = of[6]->shape[0];
    if (PyErr_Occurred()) PyErr_Clear();
    int64_t row[GENES];
    double extent[MOST_DIMS];
    const int64_t *order = of[3]->buf, *storage = of[6]->buf, *term = of[8]->buf;
    const double *fanouts = of[4]->buf, *rooms = of[7]->buf;
    const char *spatial = of[5]->buf, *packed = of[10]->buf;
    int packs = of[10]->shape[1] > 0;
    if (!tiling_of(&x, of[0], of[1], of[2], D) || of[3]->shape[0] != x.g || of[4]->shape[1] != 3 || of[5]->shape[0] != levels ||
        of[7]->shape[1] != 3 || of[8]->shape[1] != 4 || of[9]->shape[0] != of[7]->shape[0] || of[9]->shape[1] != T ||
        of[9]->shape[2] != 3 || T > MOST_DIMS || (packs && of[10]->shape[1] != x.B))
        return none(&views);
    for (Py_ssize_t i = 0; i < terms; i++)
        if (term[4 * i] < 0 || term[4 * i] >= T || term[4 * i + 2] < 0 || term[4 * i + 2] >= D) return none(&views);
    for (Py_ssize_t i = 0; i < x.g; i++)
        if (order[i] < 0 || order[i] >= x.g) return none(&views);
    for (Py_ssize_t b = 0; b < x.B; b++) {
        read_row(&x, of[0]->buf, b, row);
        for (Py_ssize_t i = 0; i < of[4]->shape[0]; i++) {
            int64_t here = (int64_t)fanouts[3 * i];
            double used = 1.0;
            for (Py_ssize_t j = 0; j < x.g; j++) used *= row[j] == here ? x.factors[j] : 1.0;
            for (Py_ssize_t j = 0; j < x.g && used > fanouts[3 * i + 1]; j++)
                if (row[order[j]] == here) row[order[j]] = (int64_t)fanouts[3 * i + 2], used /= x.factors[order[j]];
        }
        for (Py_ssize_t i = 0; i < of[7]->shape[0]; i++) {
            const double *room = rooms + 3 * i, *stored = (const double *)of[9]->buf + 3 * T * i;
            const char *mine = packs ? packed + b : NULL;
            for (Py_ssize_t d = 0; d < D; d++) extent[d] = 1.0;
            for (Py_ssize_t j = 0; j < x.g; j++) {
                if (row[j] < 1 || row[j] > levels) return none(&views);
                if (storage[row[j] - 1] >= (int64_t)room[0]) extent[x.dims[j]] *= x.factors[j];
            }
            double words = needed(term, terms, stored, T, extent, mine, x.B);
            for (int parallel = 0; parallel < 2; parallel++) /* loops in time go first */
                for (Py_ssize_t j = 0; j < x.g && words > room[1]; j++) {
                    int64_t *gene = row + order[j];
                    if (storage[*gene - 1] < (int64_t)room[0] || (spatial[*gene - 1] != 0) != parallel) continue;
                    *gene = (int64_t)room[2];
                    extent[x.dims[order[j]]] /= x.factors[order[j]];
                    words = needed(term, terms, stored, T, extent, mine, x.B);
                }
        }
        write_row(&x, of[0]->buf, b, row);
    }
    return done(&views, x.B);
}

/* varied(genes, flags, kind, chosen, position, value, step, T): formats (T * R, B) change in place; `flags` (F,): compressed. */
static PyObject *varied(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *of[7];
    if (nargs != 8 || !views_of(&views, args, 7, "L2?1d1l1l1l1l1", of)) return none(&views);
    Py_ssize_t T = PyLong_AsSsize_t(args[7]), B = of[0]->shape[1], R = T > 0 ? of[0]->shape[0] / T : 0;
    if (PyErr_Occurred()) PyErr_Clear();
    const int64_t *chosen = of[3]->buf, *position = of[4]->buf, *value = of[5]->buf, *step = of[6]->buf;
    const double *kind = of[2]->buf;
    const char *flags = of[1]->buf;
    for (int i = 2; i < 7; i++)
        if (of[i]->shape[0] != B) return none(&views);
    for (Py_ssize_t b = 0; b < B; b++)
        if (chosen[b] < 0 || chosen[b] >= T || value[b] < 0 || value[b] >= of[1]->shape[0] || step[b] < 0) return none(&views);
    for (Py_ssize_t b = 0; b < B; b++) {
        int64_t *mine = (int64_t *)of[0]->buf + chosen[b] * R * B + b;
        const int64_t *other = (const int64_t *)of[0]->buf + (chosen[b] + step[b]) % T * R * B + b;
        for (Py_ssize_t r = 0; r < R; r++) {
            int inside = r >= position[b], filled = flags[value[b]] ? inside : !inside || position[b] == 0;
            if (kind[b] > 0.9) mine[r * B] = other[r * B];
            else if (kind[b] < 0.4 ? r == position[b] : filled) mine[r * B] = value[b];
        }
    }
    return done(&views, B);
}

/* ordered(genes, compressed, strict, T): formats (T * R, B) change in place, so that none is invalid below another one. */
static PyObject *ordered(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *of[3];
    if (nargs != 4 || !views_of(&views, args, 3, "L2?1?1", of)) return none(&views);
    Py_ssize_t T = PyLong_AsSsize_t(args[3]), B = of[0]->shape[1], R = T > 0 ? of[0]->shape[0] / T : 0, F = of[1]->shape[0];
    if (PyErr_Occurred()) PyErr_Clear();
    const char *compressed = of[1]->buf, *strict = of[2]->buf;
    int64_t *genes = of[0]->buf;
    if (of[2]->shape[0] != F || R < 1) return none(&views);
    for (Py_ssize_t i = 0; i < T * R * B; i++)
        if (genes[i] < 0 || genes[i] >= F) return none(&views);
    for (Py_ssize_t t = 0; t < T; t++)
        for (Py_ssize_t b = 0; b < B; b++) {
            int64_t *slot = genes + (t * R + R - 1) * B + b, inner = *slot;
            for (Py_ssize_t r = 1; r < R; r++) {
                slot -= B;
                if (compressed[*slot] && strict[inner]) *slot = inner;
                if (!strict[inner] || strict[*slot]) inner = *slot;
            }
        }
    return done(&views, B);
}

/* used(genes, bounds, moving): slots (T * R, B) are 0 further out than there are ranks: loops of `bounds` (L, D, B) above one that
 * move the tensor, `moving` (T, D). */
static PyObject *used(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *of[3];
    if (nargs != 3 || !views_of(&views, args, 3, "L2d3?2", of)) return none(&views);
    Py_ssize_t L = of[1]->shape[0], D = of[1]->shape[1], B = of[1]->shape[2], T = of[2]->shape[0];
    Py_ssize_t R = T > 0 ? of[0]->shape[0] / T : 0;
    if (of[2]->shape[1] != D || of[0]->shape[1] != B || of[0]->shape[0] != T * R) return none(&views);
    const double *bounds = of[1]->buf;
    const char *moving = of[2]->buf;
    for (Py_ssize_t t = 0; t < T; t++)
        for (Py_ssize_t b = 0; b < B; b++) {
            Py_ssize_t ranks = 0;
            for (Py_ssize_t i = 0; i < L * D; i++) ranks += moving[t * D + i % D] && bounds[i * B + b] > 1.0;
            for (Py_ssize_t r = 0; r < R - ranks; r++) ((int64_t *)of[0]->buf)[(t * R + r) * B + b] = 0;
        }
    return done(&views, B);
}

/* codes(codes, order, bounds, factorials): Cantor codes (L, B) of orders (L, D, B); `bounds` (L, D, B) or None: loops with bound
 * one come last, by dimension. */
static PyObject *codes(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *out, *orders, *weights, *bounds = NULL;
    if (nargs != 4 || !(out = view(&views, args[0], "lq", 2, 1)) || !(orders = view(&views, args[1], "b", 3, 0)) ||
        (args[2] != Py_None && !(bounds = view(&views, args[2], "d", 3, 0))) || !(weights = view(&views, args[3], "lq", 1, 0)))
        return none(&views);
    Py_ssize_t L = orders->shape[0], D = orders->shape[1], B = orders->shape[2];
    const int64_t *weight = weights->buf;
    if (out->shape[0] != L || out->shape[1] != B || weights->shape[0] != D || D > MOST_DIMS ||
        (bounds && (bounds->shape[0] != L || bounds->shape[1] != D || bounds->shape[2] != B)))
        return none(&views);
    for (Py_ssize_t l = 0; l < L; l++)
        for (Py_ssize_t b = 0; b < B; b++) {
            const int8_t *order = (const int8_t *)orders->buf + l * D * B + b;
            const double *bound = bounds ? (const double *)bounds->buf + l * D * B + b : NULL;
            int8_t dims[MOST_DIMS];
            Py_ssize_t busy = 0;
            int64_t code = 1;
            for (Py_ssize_t i = 0; i < D; i++) {
                if (order[i * B] < 0 || order[i * B] >= D) return none(&views);
                if (!bound || bound[order[i * B] * B] > 1.0) dims[busy++] = order[i * B];
            }
            for (Py_ssize_t d = 0; busy < D && d < D; d++)
                if (!(bound[d * B] > 1.0)) dims[busy++] = (int8_t)d;
            for (Py_ssize_t i = 0; i < D; i++) {
                int smaller = 0;
                for (Py_ssize_t j = i + 1; j < D; j++) smaller += dims[j] < dims[i];
                code += smaller * weight[i];
            }
            ((int64_t *)out->buf)[l * B + b] = code;
        }
    return done(&views, L * B);
}

MODULE(moves, DOOR(vary), DOOR(filled), DOOR(fit), DOOR(bounds), DOOR(codes), DOOR(varied), DOOR(ordered), DOOR(used))
