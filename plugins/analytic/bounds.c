/* Steps of the lower bound over all tiles of a problem (bound*.py): what bound_uncompiled.py has in NumPy, to the last bit.
 *
 * Every function takes arrays that Python has made, and writes into some of them. It returns None where an array is not what it
 * knows. Sums and products are taken in NumPy's order; logarithms stay in Python. */
#define HELD 256
#include "../../sparsemap/native.h"

#include <math.h>

enum { DIMS = 16, TENSORS = 8, BLOCK = 32, TERMS = 64, ROWS = 256 };

/* Numbers are never NaN. */
static inline double least_of(double a, double b) { return b < a ? b : a; }
static inline double most_of(double a, double b) { return b > a ? b : a; }

/* An array of doubles, or whole numbers, or bools with this shape; NULL if it is none. */
static const void *shaped(Views *views, PyObject *array, const char *kinds, int ndim, Py_ssize_t rows, Py_ssize_t columns) {
    Py_buffer *found = view(views, array, kinds, ndim, 0);
    return found && found->shape[0] == rows && (ndim < 2 || found->shape[1] == columns) ? found->buf : NULL;
}

static PyObject *item(PyObject *tuple, Py_ssize_t i) { return PyTuple_GET_ITEM(tuple, i); }

static Py_ssize_t width(PyObject *tuple) { return PyTuple_Check(tuple) ? PyTuple_GET_SIZE(tuple) : -1; }

/* All tiles, in C order of `sizes` options: of dimension d `pairs` up to ends[d] have the place of an option and that of one
 * smaller by a prime factor, ascending. */
typedef struct {
    Py_ssize_t D, n;
    const int64_t *sizes, *pairs, *ends;
} Grid;

static int grid_of(Views *views, PyObject *const *args, Py_ssize_t n, Grid *grid) {
    Py_buffer *sizes = view(views, args[0], "lq", 1, 0), *pairs = view(views, args[1], "lq", 2, 0), *ends = view(views, args[2], "lq", 1, 0);
    if (!sizes || !pairs || !ends || pairs->shape[1] != 2 || ends->shape[0] != sizes->shape[0]) return 0;
    Grid found = {sizes->shape[0], n, sizes->buf, pairs->buf, ends->buf};
    Py_ssize_t tiles = 1;
    for (Py_ssize_t d = 0; d < found.D; d++) {
        int64_t first = d ? found.ends[d - 1] : 0;
        if (found.sizes[d] < 1 || found.sizes[d] > n || found.ends[d] < first || found.ends[d] > pairs->shape[0]) return 0;
        for (int64_t i = first; i < found.ends[d]; i++) {
            const int64_t *pair = found.pairs + 2 * i;
            if (pair[0] >= found.sizes[d] || pair[1] < 0 || pair[1] >= pair[0]) return 0;
        }
        tiles *= found.sizes[d];
        if (tiles > n) return 0;
    }
    *grid = found;
    return tiles == n;
}

/* The least of `whole` (n,) over all tiles inside each one, in place, where `taken` (D,) says that extents may be smaller and, along
 * `smaller` (-1: none), have to be; `less` (n,) is for that. */
static void least_inside(const Grid *grid, double *restrict whole, double *restrict less, const char *taken, long smaller) {
    Py_ssize_t n = grid->n, length = 1;
    for (Py_ssize_t d = 0; d < grid->D; length *= grid->sizes[d++]) {
        if (!taken[d]) continue;
        Py_ssize_t size = grid->sizes[d], run = n / length / size;
        for (Py_ssize_t i = 0; d == smaller && i < n; i++) less[i] = INFINITY;
        for (Py_ssize_t first = 0; first < n; first += size * run)
            for (int64_t i = d ? grid->ends[d - 1] : 0; i < grid->ends[d]; i++) {
                Py_ssize_t mine = first + grid->pairs[2 * i] * run, other = first + grid->pairs[2 * i + 1] * run;
                if (d != smaller)
                    for (Py_ssize_t k = 0; k < run; k++) whole[mine + k] = least_of(whole[mine + k], whole[other + k]);
                else
                    for (Py_ssize_t k = 0; k < run; k++) {
                        less[mine + k] = least_of(less[mine + k], whole[other + k]);
                        whole[mine + k] = least_of(whole[mine + k], less[mine + k]);
                    }
            }
        if (d == smaller) memcpy(whole, less, n * sizeof *less);
    }
}

/* inside(values, sizes, pairs, ends, taken, smaller): `least_inside` of `values` (n,), in place (bound_tiles.py). */
static PyObject *inside(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *out;
    Grid grid;
    const char *taken;
    if (nargs != 6 || !(out = view(&views, args[0], "d", 1, 1)) || !grid_of(&views, args + 1, out->shape[0], &grid) ||
        !(taken = shaped(&views, args[4], "?", 1, grid.D, 0)))
        return none(&views);
    long smaller = PyLong_AsLong(args[5]);
    if (PyErr_Occurred()) PyErr_Clear();
    double *less = smaller < 0 ? NULL : malloc(grid.n * sizeof *less);
    if (smaller >= 0 && !less) return none(&views);
    least_inside(&grid, out->buf, less, taken, smaller);
    free(less);
    return done(&views, grid.n);
}

/* in_classes(found, energy, tile, loop, again, own, still, moves, sizes, pairs, ends): the least (K, N) by class, its `tile` (N,)
 * and the `loop` around it, of `energy` (K, D, n) of the tiles inside (InnerTiles.in_classes). Of T tensors, pJ `again` (T, n) if they come
 * with every tile of the level, and `own` (T, N) if they stay; `still` (D, T) is what `energy` has of them where loop d inside does
 * not move them, `moves` (T, D). */
static PyObject *in_classes(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *out, *energies;
    Grid grid;
    if (nargs != 11 || !(out = view(&views, args[0], "d", 2, 1)) || !(energies = view(&views, args[1], "d", 3, 0)) ||
        !grid_of(&views, args + 8, energies->shape[2], &grid))
        return none(&views);
    Py_ssize_t K = out->shape[0], N = out->shape[1], D = grid.D, n = grid.n, T = PySequence_Size(args[4]);
    if (PyErr_Occurred()) PyErr_Clear();
    const int64_t *tile = shaped(&views, args[2], "lq", 1, N, 0), *loop = shaped(&views, args[3], "lq", 1, N, 0);
    const double *again = shaped(&views, args[4], "d", 2, T, n), *own = shaped(&views, args[5], "d", 2, T, N);
    const double *still = shaped(&views, args[6], "d", 2, D, T);
    const char *moves = shaped(&views, args[7], "?", 2, T, D);
    if (!tile || !loop || !again || !own || !still || !moves || D > DIMS || energies->shape[0] != K || energies->shape[1] != D)
        return none(&views);
    for (Py_ssize_t j = 0; j < N; j++)
        if (tile[j] < 0 || tile[j] >= n || loop[j] < 0 || loop[j] >= D) return none(&views);
    double *whole = malloc(4 * n * sizeof *whole), *less = whole + n, *best = less + n, *more = best + n;
    if (!whole) return none(&views);
    for (Py_ssize_t k = 0; k < K; k++) {
        double *found = (double *)out->buf + k * N;
        for (Py_ssize_t i = 0; i < n; i++) best[i] = INFINITY;
        for (Py_ssize_t d = 0; d < D; d++) {
            const double *here = (const double *)energies->buf + (k * D + d) * n;
            char every[DIMS];
            memset(every, 1, sizeof every);
            memset(more, 0, n * sizeof *more);
            for (Py_ssize_t t = 0; t < T; t++)
                for (Py_ssize_t i = 0; !moves[t * D + d] && i < n; i++) more[i] += most_of(0.0, again[t * n + i] - still[d * T + t]);
            memcpy(whole, here, n * sizeof *whole);
            least_inside(&grid, whole, less, every, (long)d);
            for (Py_ssize_t i = 0; i < n; i++) best[i] = least_of(best[i], whole[i] + more[i]);
        }
        for (Py_ssize_t j = 0; j < N; j++)
            found[j] = least_of(((const double *)energies->buf)[(k * D + loop[j]) * n + tile[j]], best[tile[j]]);
        for (Py_ssize_t d = 0; d < D; d++)
            for (Py_ssize_t t = 0; t < T; t++) {
                char along[DIMS];
                if (moves[t * D + d]) continue;
                for (Py_ssize_t e = 0; e < D; e++) along[e] = !moves[t * D + e];
                memcpy(whole, (const double *)energies->buf + (k * D + d) * n, n * sizeof *whole);
                least_inside(&grid, whole, less, along, (long)d);
                for (Py_ssize_t j = 0; j < N; j++)
                    found[j] = least_of(found[j], whole[tile[j]] + most_of(0.0, own[t * N + j] - still[d * T + t]));
            }
    }
    free(whole);
    return done(&views, N);
}

/* What filters leave of a tensor, by the leader tiles in the tiles of children (LeastAccesses.kept_in_tiles). */
typedef struct {
    const int64_t *plan; /* actions: their count, of each the leaders: table, whether it has all words over which the tensor stays,
                            and ranks: of each the dimensions, and where their bounds are among those of a way */
    const double *table[TERMS], *log_words;
    Py_ssize_t length[TERMS];
    double log_computes;
} Filters;

/* One tensor that children get. */
typedef struct {
    const double *ways;              /* (W, C): pJ of a bit for the copies of a word, copies - 1, log2 of bounds of loops */
    const double *pj, *bits, *child; /* (D, n) as `Handed` has them .. */
    const double *all_pj, *all_bits, *all_child; /* .. and without filters; NULL: there are none */
    const char *moves;                                    /* (D,) */
    Filters filters;
    Py_ssize_t C, count;
    int64_t *which, *first, *alike; /* (W,) which of `count` distinct rows a way has, the first way of each, and the first row for which
                                       filters leave as much */
    double *term, *share, *whole;   /* (count, BLOCK) pJ, and what filters leave of what moves */
} Shared;

/* Reads the plan of filters; 0: it does not fit what it speaks of. */
static int filters_of(Views *views, PyObject *given, PyObject *tables, Py_ssize_t D, Py_ssize_t C, Filters *filters) {
    Py_buffer *plan = view(views, given, "lq", 1, 0);
    Py_ssize_t count = width(tables), at = 1;
    if (!plan || count < 0 || count > TERMS) return 0;
    for (Py_ssize_t c = 0; c < count; c++) {
        Py_buffer *table = view(views, item(tables, c), "d", 1, 0);
        if (!table || !table->shape[0]) return 0;
        filters->table[c] = table->buf, filters->length[c] = table->shape[0];
    }
    const int64_t *p = filters->plan = plan->buf;
    Py_ssize_t end = plan->shape[0];
#define NEXT(low, high) (at < end && p[at] >= (low) && p[at] < (high))
    if (end < 1 || p[0] < 0) return 0;
    for (int64_t action = 0; action < p[0]; action++) {
        if (!NEXT(0, TERMS)) return 0;
        for (int64_t leader = p[at++]; leader > 0; leader--) {
            if (!NEXT(0, count)) return 0;
            at++;
            if (!NEXT(0, 2)) return 0;
            at++;
            if (!NEXT(0, TERMS)) return 0;
            for (int64_t rank = p[at++]; rank > 0; rank--) {
                if (!NEXT(1, TERMS)) return 0;
                for (int64_t dim = p[at++]; dim > 0; dim--) {
                    if (!NEXT(0, D)) return 0;
                    at++;
                    if (!NEXT(2, C)) return 0;
                    at++;
                }
            }
        }
    }
    return at == end;
}

/* A block of one array, filled up with zeros. */
static void block(double *restrict to, const double *restrict from, Py_ssize_t count) {
    if (count == BLOCK) {
        memcpy(to, from, BLOCK * sizeof *to);
        return;
    }
    for (Py_ssize_t b = 0; b < BLOCK; b++) to[b] = b < count ? from[b] : 0.0;
}

/* The same of whole numbers. */
static void block_of_int(int32_t *restrict to, const int64_t *restrict from, Py_ssize_t count) {
    for (int b = 0; count == BLOCK && b < BLOCK; b++) to[b] = (int32_t)from[b];
    for (Py_ssize_t b = 0; count < BLOCK && b < BLOCK; b++) to[b] = b < count ? (int32_t)from[b] : 0;
}

/* The share of words' accesses in a block of tiles with these `log_extents` (D, BLOCK), for a way with these columns. */
WIDE static void kept(const Filters *filters, const double *way, double (*log_extents)[BLOCK], const double *restrict log_words, double *restrict found) {
    const int64_t *p = filters->plan;
    double there[BLOCK], words[BLOCK], wide[BLOCK];
    for (int b = 0; b < BLOCK; b++) found[b] = 1.0;
    for (int64_t action = *p++; action > 0; action--) {
        for (int b = 0; b < BLOCK; b++) there[b] = 1.0;
        for (int64_t leader = *p++; leader > 0; leader--) {
            const double *table = filters->table[*p];
            const double last = (double)(filters->length[*p++] - 1), all = *p++ ? filters->log_computes : -INFINITY;
            for (int b = 0; b < BLOCK; b++) words[b] = most_of(0.0, all - log_words[b]);
            for (int64_t rank = *p++; rank > 0; rank--) {
                for (int b = 0; b < BLOCK; b++) wide[b] = 0.0;
                for (int64_t dim = *p++; dim > 0; dim--, p += 2) {
                    const double *restrict extents = log_extents[p[0]], most = way[p[1]];
                    for (int b = 0; b < BLOCK; b++) wide[b] = most_of(wide[b], extents[b] - most);
                }
                for (int b = 0; b < BLOCK; b++) words[b] += wide[b];
            }
            for (int b = 0; b < BLOCK; b++) words[b] = least_of(last, 8.0 * most_of(0.0, words[b] - 1e-6));
            for (int b = 0; b < BLOCK; b++) there[b] *= table[(int32_t)words[b]];
        }
        for (int b = 0; b < BLOCK; b++) found[b] = least_of(found[b], there[b]);
    }
}

/* The terms of a tensor, for the tiles from `first` on with loop d around them. */
WIDE static void fill(Shared *one, double (*log_extents)[BLOCK], Py_ssize_t d, Py_ssize_t first, Py_ssize_t count) {
    const int filtered = one->all_pj != NULL, moved = filtered && one->moves[d];
    double pj[BLOCK], bits[BLOCK], child[BLOCK], all[BLOCK], all_bits[BLOCK], all_child[BLOCK], log_words[BLOCK], least[BLOCK];
    block(bits, one->bits + first, count), block(child, one->child + first, count);
    if (filtered) {
        block(pj, one->pj + first, count), block(all, one->all_pj + first, count), block(all_bits, one->all_bits + first, count);
        block(all_child, one->all_child + first, count), block(log_words, one->filters.log_words + first, count);
        for (int b = 0; b < BLOCK; b++) least[b] = least_of(1.0, pj[b] / most_of(all[b], 1e-300));
    }
    for (Py_ssize_t q = 0; q < one->count; q++) {
        const double *way = one->ways + one->first[q] * one->C, wires = way[0], others = way[1];
        double *restrict term = one->term + q * BLOCK, *restrict share = one->share + q * BLOCK, *restrict whole = one->whole + q * BLOCK;
        if (moved) {
            for (int b = 0; b < BLOCK; b++) whole[b] = all[b] + (all_bits[b] * wires + others * all_child[b]);
            if (one->alike[q] < q) memcpy(share, one->share + one->alike[q] * BLOCK, sizeof least);
            else {
                kept(&one->filters, way, log_extents, log_words, share);
                for (int b = 0; b < BLOCK; b++) share[b] = least_of(1.0, most_of(share[b], least[b]));
            }
        }
        if (moved)
            for (int b = 0; b < BLOCK; b++) term[b] = share[b] * whole[b];
        else
            for (int b = 0; b < BLOCK; b++) term[b] = bits[b] * wires + others * child[b];
    }
}

/* One tensor of `shared`; 0: it is not what is known. */
static int shared_of(Views *views, PyObject *given, Py_ssize_t W, Py_ssize_t D, Py_ssize_t n, Shared *one) {
    Py_ssize_t length = width(given);
    Py_buffer *ways = length == 4 || length == 12 ? view(views, item(given, 0), "d", 2, 0) : NULL;
    if (!ways || ways->shape[0] != W || ways->shape[1] < 2 || ways->shape[1] > TERMS) return 0;
    one->ways = ways->buf, one->C = ways->shape[1];
    const double **columns[] = {&one->pj, &one->bits, &one->child, &one->all_pj, &one->all_bits, &one->all_child, &one->filters.log_words};
    for (int c = 0; c < (length == 4 ? 3 : 7); c++)
        if (!(*columns[c] = shaped(views, item(given, 1 + c), "d", 2, D, n))) return 0;
    if (length == 12) {
        if (!(one->moves = shaped(views, item(given, 8), "?", 1, D, 0)) ||
            !filters_of(views, item(given, 9), item(given, 10), D, one->C, &one->filters))
            return 0;
        one->filters.log_computes = PyFloat_AsDouble(item(given, 11));
        if (PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
    }
    if (!(one->which = malloc(3 * W * sizeof *one->which))) return 0;
    one->first = one->which + W, one->alike = one->first + W;
    for (Py_ssize_t w = 0; w < W; w++) {
        Py_ssize_t q = 0, like = 0;
        while (q < one->count && memcmp(one->ways + w * one->C, one->ways + one->first[q] * one->C, one->C * sizeof(double))) q++;
        one->which[w] = q;
        if (q < one->count) continue;
        one->first[one->count++] = w;
        while (memcmp(one->ways + w * one->C + 2, one->ways + one->first[like] * one->C + 2, (one->C - 2) * sizeof(double))) like++;
        one->alike[q] = like;
    }
    one->term = calloc(3 * one->count * BLOCK, sizeof(double));
    one->share = one->term + one->count * BLOCK, one->whole = one->share + one->count * BLOCK;
    return one->term != NULL;
}

/* The accesses next to the compute units (LeastUnits). */
typedef struct {
    const double *widths, *alone, *told, *log_words, *cut; /* tables, and (2, n), (W, 2) */
    const int64_t *shape, *logs, *each;                    /* (D + 2,), (D, n), (W, D) */
} Units;

static int units_of(Views *views, PyObject *given, Py_ssize_t W, Py_ssize_t D, Py_ssize_t n, Units *units) {
    Py_ssize_t length = width(given);
    Py_buffer *shape = length == 4 || length == 8 ? view(views, item(given, 1), "lq", 1, 0) : NULL;
    if (!shape || shape->shape[0] != (length == 4 ? D : D + 2)) return 0;
    units->shape = shape->buf;
    Py_ssize_t size = 1, told = 1;
    for (Py_ssize_t d = 0; d < shape->shape[0]; d++) {
        Py_ssize_t *of = d < D ? &size : &told;
        if (units->shape[d] < 1 || units->shape[d] > 1 << 20 || (*of *= units->shape[d]) > 1 << 28) return 0;
    }
    units->widths = shaped(views, item(given, 0), "d", 1, size, 0);
    units->logs = shaped(views, item(given, 2), "lq", 2, D, n), units->each = shaped(views, item(given, 3), "lq", 2, W, D);
    if (!units->widths || !units->logs || !units->each) return 0;
    if (length == 4) return 1;
    units->alone = shaped(views, item(given, 4), "d", 1, told, 0), units->told = shaped(views, item(given, 5), "d", 1, told, 0);
    units->log_words = shaped(views, item(given, 6), "d", 2, 2, n), units->cut = shaped(views, item(given, 7), "d", 2, W, 2);
    return units->alone && units->told && units->log_words && units->cut;
}

/* pJ of a block of tiles, with `logs` (D, BLOCK) and `log_words` (2, BLOCK), in way w; 0 without tables. */
WIDE static void unit_pj(const Units *units, Py_ssize_t D, Py_ssize_t w, int32_t (*logs)[BLOCK], double (*log_words)[BLOCK], double *restrict pj) {
    int32_t at[BLOCK] = {0}, place[BLOCK] = {0};
    for (Py_ssize_t d = 0; units->widths && d < D; d++) {
        const int32_t *restrict log = logs[d], each = (int32_t)units->each[w * D + d], size = (int32_t)units->shape[d];
        for (int b = 0; b < BLOCK; b++) {
            int32_t wide = log[b] - each;
            wide = wide < 0 ? 0 : wide;
            at[b] = at[b] * size + (wide < size ? wide : size - 1);
        }
    }
    for (int b = 0; b < BLOCK; b++) pj[b] = units->widths ? units->widths[at[b]] : 0.0;
    if (!units->told) return;
    for (Py_ssize_t t = 0; t < 2; t++) {
        const double *restrict words = log_words[t], cut = units->cut[2 * w + t], most = (double)(units->shape[D + t] - 1);
        int32_t size = (int32_t)units->shape[D + t];
        for (int b = 0; b < BLOCK; b++) place[b] = place[b] * size + (int32_t)least_of(most, most_of(0.0, 2.0 * (words[b] - cut - 1e-9)));
    }
    for (int b = 0; b < BLOCK; b++) pj[b] = most_of(pj[b] + units->alone[place[b]], units->told[place[b]]);
}

WIDE static void least_sum(double *restrict least, const double *restrict from, const double *restrict own, const double *restrict first,
                      const double *restrict second, const double *restrict third) {
    for (int b = 0; b < BLOCK; b++) least[b] = least_of(least[b], from[b] + own[b] + first[b] + second[b] + third[b]);
}

/* shared(energy, tiles, possible, base, tier, rows, places, fits, log_extents, units, tensors): into `energy` (K, D, N), for those
 * `tiles` (n,) of all N which the children of a level hold together, with each loop that is `possible` (D, n) as the innermost around them, the
 * least pJ over W ways to share the fan-out (InnerTiles.least): `base` (D, n) and what the way adds by `units` and `tensors`. A way
 * counts for its `tier` (W,), and where the sum over d of places[rows[w, d]] is a tile that `fits` (N,). */
static PyObject *shared(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *out, *base, *ways, *places, *fitting;
    Py_ssize_t T = nargs == 11 ? width(args[10]) : -1, made = 0;
    Shared all[TENSORS] = {{0}};
    Units units = {0};
    double(*memory)[BLOCK] = NULL;
    const double none_of[BLOCK] = {0};
    int64_t furthest[ROWS] = {0};
    if (T < 0 || T > TENSORS || !(out = view(&views, args[0], "d", 3, 1)) || !(base = view(&views, args[3], "d", 2, 0)) ||
        !(ways = view(&views, args[5], "lq", 2, 0)) || !(places = view(&views, args[6], "lq", 2, 0)) ||
        !(fitting = view(&views, args[7], "?", 1, 0)))
        return none(&views);
    Py_ssize_t K = out->shape[0], D = out->shape[1], N = out->shape[2], n = base->shape[1], W = ways->shape[0];
    const int64_t *tiles = shaped(&views, args[1], "lq", 1, n, 0), *tier = shaped(&views, args[4], "lq", 1, W, 0);
    const char *possible = shaped(&views, args[2], "?", 2, D, n), *fits = fitting->buf;
    const double *extents = shaped(&views, args[8], "d", 2, D, n), *start = base->buf;
    const int64_t *rows = ways->buf, *place = places->buf;
    Py_ssize_t E = places->shape[0];
    if (!tiles || !tier || !possible || !extents || E > ROWS || D > DIMS || base->shape[0] != D || ways->shape[1] != D || places->shape[1] != n ||
        W < 1 || (args[9] != Py_None && !units_of(&views, args[9], W, D, n, &units)))
        return none(&views);
    for (Py_ssize_t i = 0; i < E * n; i++) {
        if (place[i] < 0 || place[i] >= fitting->shape[0]) return none(&views);
        if (place[i] > furthest[i / n]) furthest[i / n] = place[i];
    }
    for (Py_ssize_t w = 0; w < W; w++) {
        int64_t sum = 0;
        if (tier[w] < 0 || tier[w] >= K) return none(&views);
        for (Py_ssize_t d = 0; d < D; d++) {
            if (rows[w * D + d] < 0 || rows[w * D + d] >= E) return none(&views);
            sum += furthest[rows[w * D + d]];
        }
        if (sum >= fitting->shape[0]) return none(&views);
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (tiles[i] < 0 || tiles[i] >= N) return none(&views);
    while (made < T && shared_of(&views, item(args[10], made), W, D, n, &all[made])) made++;
    if (made == T) memory = malloc((W + K) * sizeof *memory);
    char *some = memory ? malloc(W) : NULL;
    double(*unit)[BLOCK] = memory, (*best)[BLOCK] = memory + W;
    for (Py_ssize_t first = 0; some && first < n; first += BLOCK) {
        Py_ssize_t count = n - first < BLOCK ? n - first : BLOCK;
        double log_extents[DIMS][BLOCK], log_words[2][BLOCK], from[BLOCK], sum[BLOCK];
        int32_t logs[DIMS][BLOCK], at[ROWS][BLOCK];
        for (Py_ssize_t d = 0; d < D; d++) {
            block(log_extents[d], extents + d * n + first, count);
            if (units.logs) block_of_int(logs[d], units.logs + d * n + first, count);
        }
        for (Py_ssize_t t = 0; units.told && t < 2; t++) block(log_words[t], units.log_words + t * n + first, count);
        for (Py_ssize_t e = 0; e < E; e++) block_of_int(at[e], place + e * n + first, count);
        for (Py_ssize_t w = 0; w < W; w++) {
            int32_t held[BLOCK] = {0};
            for (Py_ssize_t d = 0; d < D; d++) {
                const int32_t *restrict one = at[rows[w * D + d]];
                for (int b = 0; b < BLOCK; b++) held[b] += one[b];
            }
            some[w] = 0;
            for (Py_ssize_t b = 0; b < count; b++) some[w] |= fits[held[b]];
            if (!some[w]) continue;
            unit_pj(&units, D, w, logs, log_words, unit[w]);
            for (int b = 0; b < BLOCK; b++) unit[w][b] = fits[held[b]] ? unit[w][b] : INFINITY;
        }
        for (Py_ssize_t d = 0; d < D; d++) {
            if (!memchr(possible + d * n + first, 1, count)) continue;
            block(from, start + d * n + first, count);
            for (Py_ssize_t t = 0; t < T; t++) fill(&all[t], log_extents, d, d * n + first, count);
            for (Py_ssize_t k = 0; k < K; k++)
                for (int b = 0; b < BLOCK; b++) best[k][b] = INFINITY;
            for (Py_ssize_t w = 0; w < W; w++) {
                if (!some[w]) continue;
                double *restrict least = best[tier[w]];
                const double *own = unit[w], *term[TENSORS];
                for (Py_ssize_t t = 0; t < TENSORS; t++) term[t] = t < T ? all[t].term + all[t].which[w] * BLOCK : none_of;
                if (T <= 3) {
                    least_sum(least, from, own, term[0], term[1], term[2]);
                    continue;
                }
                for (int b = 0; b < BLOCK; b++) sum[b] = from[b] + own[b];
                for (Py_ssize_t t = 0; t < T; t++)
                    for (int b = 0; b < BLOCK; b++) sum[b] += term[t][b];
                for (int b = 0; b < BLOCK; b++) least[b] = least_of(least[b], sum[b]);
            }
            for (Py_ssize_t k = 0; k < K; k++)
                for (Py_ssize_t b = 0; b < count; b++)
                    if (possible[d * n + first + b]) ((double *)out->buf)[(k * D + d) * N + tiles[first + b]] = best[k][b];
        }
    }
    int right = some != NULL;
    for (Py_ssize_t t = 0; t < T; t++) free(all[t].which), free(all[t].term);
    free(memory), free(some);
    return right ? done(&views, n) : none(&views);
}

/* delivered(found, words, widths, extents, loops, turns, ranks, moves, single): what comes at least (D, n) by the innermost loop, as
 * bound_tiles.py says. `words`, `widths` (R, n) of the tiles with `extents` and `loops` around them, and `turns` of these, (D, n);
 * `ranks` (R, 4): of two terms dimension and coefficient, -1 for none; `moves` (D,) the tensor. */
static PyObject *delivered(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *out, *terms;
    if (nargs != 9 || !(out = view(&views, args[0], "d", 2, 1)) || !(terms = view(&views, args[6], "lq", 2, 0))) return none(&views);
    Py_ssize_t D = out->shape[0], n = out->shape[1], R = terms->shape[0];
    double *found = out->buf;
    const double *words = shaped(&views, args[1], "d", 1, n, 0), *widths = shaped(&views, args[2], "d", 2, R, n);
    const double *extents = shaped(&views, args[3], "d", 2, D, n), *loops = shaped(&views, args[4], "d", 2, D, n);
    const double *turns = shaped(&views, args[5], "d", 2, D, n);
    const char *moves = shaped(&views, args[7], "?", 1, D, 0);
    const int64_t *ranks = terms->buf;
    int single = args[8] == Py_True;
    if (!words || !widths || !extents || !loops || !turns || !moves || terms->shape[1] != 4) return none(&views);
    for (Py_ssize_t r = 0; r < R; r++)
        if (ranks[4 * r] < 0 || ranks[4 * r] >= D || ranks[4 * r + 2] < -1 || ranks[4 * r + 2] >= D) return none(&views);
    for (Py_ssize_t i = 0; i < n; i++) {
        double anew = 1.0, every = 1.0;
        for (Py_ssize_t r = 0; r < R; r++) {
            const int64_t *rank = ranks + 4 * r;
            double all = loops[rank[0] * n + i], idlest = all;
            int none = 0;
            if (rank[2] >= 0) {
                double other = loops[rank[2] * n + i];
                idlest = other < all ? other : all, all *= other;
                none = idlest > 1.0 &&
                       (!single || (double)rank[1] * extents[rank[0] * n + i] == (double)rank[3] * extents[rank[2] * n + i]);
            }
            anew *= none ? idlest : all;
        }
        for (Py_ssize_t d = 0; d < D; d++) every *= moves[d] ? loops[d * n + i] : turns[d * n + i];
        for (Py_ssize_t d = 0; d < D; d++) found[d * n + i] = words[i] * anew;
        for (Py_ssize_t r = 0; r < R; r++)
            for (int term = 0; term < 4; term += 2) {
                int64_t d = ranks[4 * r + term], c = ranks[4 * r + term + 1], o = ranks[4 * r + 2 - term], other = ranks[4 * r + 3 - term];
                if (d < 0) continue;
                double along = loops[d * n + i], own = (double)c * extents[d * n + i];
                if (o >= 0 && !(single && along > 1.0 && (double)other * extents[o * n + i] != 2.0 * own)) along *= loops[o * n + i];
                double uncovered = words[i] * least_of(1.0, own / widths[r * n + i]);
                found[d * n + i] = every / along * (words[i] + (along - 1.0) * uncovered);
            }
    }
    return done(&views, n);
}

/* beaten(found, rows): which of the columns (n,) of `rows` (m, n) another one is below in all, or an earlier one equals. */
static PyObject *beaten(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *out, *given;
    if (nargs != 2 || !(out = view(&views, args[0], "?", 1, 1)) || !(given = view(&views, args[1], "d", 2, 0))) return none(&views);
    Py_ssize_t m = given->shape[0], n = given->shape[1];
    const double *rows = given->buf;
    char *found = out->buf;
    if (out->shape[0] != n) return none(&views);
    for (Py_ssize_t i = 0; i < n; i++) {
        found[i] = 0;
        for (Py_ssize_t j = 0; !found[i] && j < n; j++) {
            Py_ssize_t r = 0, less = j < i;
            for (; r < m && rows[r * n + j] <= rows[r * n + i]; r++) less |= rows[r * n + j] < rows[r * n + i];
            found[i] = r == m && less;
        }
    }
    return done(&views, n);
}

/* Pairs by the first number, then by the second. */
static int by_both(const void *one, const void *other) {
    const double *a = one, *b = other;
    return a[0] != b[0] ? (a[0] > b[0]) - (a[0] < b[0]) : (a[1] > b[1]) - (a[1] < b[1]);
}

/* front(found, energy, cycles): into `found` (2, m) the pairs of `energy` and `cycles` (n,) that no other beats in both, ascending; how many
 * there are. Neighbours are merged, to the least of each, where these are more than m (bound.py). */
static PyObject *front(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *out, *first, *second;
    if (nargs != 3 || !(out = view(&views, args[0], "d", 2, 1)) || !(first = view(&views, args[1], "d", 1, 0)) ||
        !(second = view(&views, args[2], "d", 1, 0)))
        return none(&views);
    Py_ssize_t n = first->shape[0], most = out->shape[1], left = 0, count = 0, fast = 0, cheap = 0;
    const double *energy = first->buf, *cycles = second->buf;
    double *found = out->buf, least = INFINITY;
    if (out->shape[0] != 2 || second->shape[0] != n || n < 1 || most < 1) return none(&views);
    double(*pairs)[2] = malloc(n * sizeof *pairs);
    if (!pairs) return none(&views);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (energy[i] != energy[i] || cycles[i] != cycles[i]) left = -1;
        if (cycles[i] < cycles[fast] || (cycles[i] == cycles[fast] && energy[i] < energy[fast])) fast = i;
        if (energy[i] < energy[cheap] || (energy[i] == energy[cheap] && cycles[i] < cycles[cheap])) cheap = i;
    }
    for (Py_ssize_t i = 0; left >= 0 && i < n; i++)  /* beyond these two all are beaten */
        if (energy[i] <= energy[fast] && cycles[i] <= cycles[cheap]) pairs[left][0] = energy[i], pairs[left++][1] = cycles[i];
    if (left > 0) qsort(pairs, left, sizeof *pairs, by_both);
    for (Py_ssize_t i = 0; i < left; i++)
        if (pairs[i][1] < least) least = pairs[i][1], pairs[count][0] = pairs[i][0], pairs[count++][1] = least;
    Py_ssize_t groups = most < count ? most : count, size = groups ? count / groups : 0, more = groups ? count % groups : 0;
    for (Py_ssize_t g = 0, start = 0; g < groups; g++) {
        Py_ssize_t end = start + size + (g < more);
        found[g] = pairs[start][0], found[most + g] = pairs[end - 1][1];
        start = end;
    }
    free(pairs);
    return left < 0 ? none(&views) : done(&views, groups);
}

MODULE(bounds, DOOR(beaten), DOOR(delivered), DOOR(front), DOOR(inside), DOOR(in_classes), DOOR(shared))
