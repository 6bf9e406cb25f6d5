/* Forecasts (`forecast.py`, `screening.py`), the same as those of `plain_forecast.py` to the last bit: every number has its sums in
 * NumPy's order. */
#include "../../sparsemap/native.h"
#include "../../sparsemap/loops.h"

#include <math.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno") /* several numbers at a time */
#endif

enum { TOGETHER = 4 }; /* rows that are handled at once */
enum { LEVELS = 32, DIMS = 64, TENSORS = 16, KNOWN = 1024 };

/* row -= x * column, from one entry to another. */
static inline void less(double *restrict row, double x, const double *restrict column, Py_ssize_t from, Py_ssize_t to) {
    for (Py_ssize_t j = from; j < to; j++) row[j] -= x * column[j];
}

/* The same of four rows after entry k, each times its own. */
static inline void four(double *restrict a, double *restrict b, double *restrict c, double *restrict d, Py_ssize_t k,
                        const double *restrict column, Py_ssize_t to) {
    double w = a[k], x = b[k], y = c[k], z = d[k];
    for (Py_ssize_t j = k + 1; j < to; j++) {
        a[j] -= w * column[j];
        b[j] -= x * column[j];
        c[j] -= y * column[j];
        d[j] -= z * column[j];
    }
}

/* Rows (m, n), of which the first n are a positive definite L L', times the inverse of L'; what is above their diagonal changes as
 * well. `factor` has room for n * n + n numbers. */
WIDE static void eliminate(double *rows, double *factor, Py_ssize_t m, Py_ssize_t n) {
    double *root = factor + n * n;
    for (Py_ssize_t i = 0; i < n; i += TOGETHER) {
        Py_ssize_t some = i + TOGETHER < n ? TOGETHER : n - i;
        double *own[TOGETHER];
        for (int r = 0; r < TOGETHER; r++) own[r] = rows + (i + (r < some ? r : 0)) * n;
        for (Py_ssize_t k = 0; k < i; k++) {
            double *column = factor + k * n; /* of L */
            for (int r = 0; r < some; r++) column[i + r] = own[r][k] = own[r][k] / root[k];
            if (some == TOGETHER)
                four(own[0], own[1], own[2], own[3], k, column, i + some);
            else
                for (int r = 0; r < some; r++) less(own[r], own[r][k], column, k + 1, i + some);
        }
        for (int r = 0; r < some; r++) {
            Py_ssize_t at = i + r;
            root[at] = sqrt(own[r][at]);
            own[r][at] = own[r][at] / root[at];
            for (int s = r + 1; s < some; s++) {
                factor[at * n + i + s] = own[s][at] = own[s][at] / root[at];
                less(own[s], own[s][at], factor + at * n, at + 1, i + s + 1);
            }
        }
    }
    for (Py_ssize_t i = n; i < m; i += TOGETHER) {
        Py_ssize_t some = i + TOGETHER < m ? TOGETHER : m - i;
        double *own[TOGETHER];
        for (int r = 0; r < TOGETHER; r++) own[r] = rows + (i + (r < some ? r : 0)) * n;
        for (Py_ssize_t k = 0; k < n; k++) {
            for (int r = 0; r < some; r++) own[r][k] = own[r][k] / root[k];
            if (some == TOGETHER)
                four(own[0], own[1], own[2], own[3], k, factor + k * n, n);
            else
                for (int r = 0; r < some; r++) less(own[r], own[r][k], factor + k * n, k + 1, n);
        }
    }
}

/* NumPy's sum of numbers in one piece. */
static double summed(const double *a, Py_ssize_t n) {
    double sums[8], total = -0.0;
    if (n < 8) {
        for (Py_ssize_t i = 0; i < n; i++) total += a[i];
        return total;
    }
    if (n > 128) {
        Py_ssize_t half = n / 2 - n / 2 % 8;
        return summed(a, half) + summed(a + half, n - half);
    }
    for (int j = 0; j < 8; j++) sums[j] = a[j];
    for (Py_ssize_t i = 8; i < n - n % 8; i += 8)
        for (int j = 0; j < 8; j++) sums[j] += a[i + j];
    total = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (Py_ssize_t i = n - n % 8; i < n; i++) total += a[i];
    return total;
}

/* The sum of products of two rows (n,), for which there is room. */
static double dot(const double *a, const double *b, double *room, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++) room[i] = a[i] * b[i];
    return summed(room, n);
}

/* What is compared: N designs, of which the first n are known, with F features and G other genes. */
typedef struct {
    Py_ssize_t N, n, F, G;
    double *features, *columns, *lengths, *kernel; /* (N, F), (F, n) of the known ones, (N,), (N + 1, n) */
    int16_t *genes;                                /* (G, N) */
    double reach, apart;
    Ufunc exp;
} Compared;

/* Features in standard deviations of the known ones, over the root of their number. */
static void standardized(const Compared *x, double *mean, double *spread) {
    for (Py_ssize_t f = 0; f < x->F; f++) mean[f] = spread[f] = 0.0;
    for (Py_ssize_t i = 0; i < x->n; i++)
        for (Py_ssize_t f = 0; f < x->F; f++) mean[f] += x->features[i * x->F + f];
    for (Py_ssize_t f = 0; f < x->F; f++) mean[f] /= (double)x->n;
    for (Py_ssize_t i = 0; i < x->n; i++)
        for (Py_ssize_t f = 0; f < x->F; f++) {
            double off = x->features[i * x->F + f] - mean[f];
            spread[f] += off * off;
        }
    for (Py_ssize_t f = 0; f < x->F; f++) spread[f] = positive(sqrt(spread[f] / (double)x->n)) * sqrt((double)x->F);
    for (Py_ssize_t i = 0; i < x->N; i++)
        for (Py_ssize_t f = 0; f < x->F; f++) x->features[i * x->F + f] = (x->features[i * x->F + f] - mean[f]) / spread[f];
}

static void columns_of(const Compared *x) {
    for (Py_ssize_t i = 0; i < x->n; i++)
        for (Py_ssize_t f = 0; f < x->F; f++) x->columns[f * x->n + i] = x->features[i * x->F + f];
}

/* Four rows += each its own number times a column. */
static inline void products(double *restrict a, double *restrict b, double *restrict c, double *restrict d, double w, double x,
                            double y, double z, const double *restrict column, Py_ssize_t n) {
    for (Py_ssize_t j = 0; j < n; j++) {
        a[j] += w * column[j];
        b[j] += x * column[j];
        c[j] += y * column[j];
        d[j] += z * column[j];
    }
}

/* From products, lengths and how many genes differ to the distance. */
static inline void distances(double *restrict far, const double *restrict product, const double *restrict lengths,
                             const int16_t *restrict others, double own, double gene, double reach, Py_ssize_t n) {
    for (Py_ssize_t j = 0; j < n; j++) {
        double squared = own + lengths[j] - 2.0 * product[j] + gene * (double)others[j];
        far[j] = -(sqrt(squared > 0.0 ? squared : 0.0) / reach);
    }
}

static inline void differing(int16_t *restrict others, const int16_t *restrict gene, int16_t own, Py_ssize_t n) {
    for (Py_ssize_t j = 0; j < n; j++) others[j] += gene[j] != own;
}

static inline void likeness(double *restrict kernel, const double *restrict far, Py_ssize_t n) {
    for (Py_ssize_t j = 0; j < n; j++) kernel[j] = kernel[j] * (1.0 - far[j]);
}

static inline void linear(double *restrict kernel, const double *restrict product, double F, Py_ssize_t n) {
    for (Py_ssize_t j = 0; j < n; j++) kernel[j] = kernel[j] + (product[j] + 1.0) / F;
}

/* How alike the scores of all designs and the known ones are; of these, up to the diagonal. `sloped`: with a linear kernel. */
WIDE static void compare(const Compared *x, int sloped) {
    double product[TOGETHER][KNOWN], far[KNOWN];
    for (Py_ssize_t i = 0; i < x->N; i += TOGETHER) {
        Py_ssize_t rows = i + TOGETHER < x->N ? TOGETHER : x->N - i, n = i + rows < x->n ? i + rows : x->n;
        const double *own[TOGETHER];
        for (int r = 0; r < TOGETHER; r++) own[r] = x->features + (i + (r < rows ? r : 0)) * x->F;
        for (int r = 0; r < TOGETHER; r++)
            for (Py_ssize_t j = 0; j < n; j++) product[r][j] = 0.0;
        for (Py_ssize_t f = 0; f < x->F; f++)
            products(product[0], product[1], product[2], product[3], own[0][f], own[1][f], own[2][f], own[3][f],
                     x->columns + f * x->n, n);
        for (Py_ssize_t r = 0, at = i; r < rows; r++, at++) {
            int16_t others[KNOWN] = {0};
            for (Py_ssize_t g = 0; g < x->G; g++) differing(others, x->genes + g * x->N, x->genes[g * x->N + at], n);
            distances(far, product[r], x->lengths, others, x->lengths[at], x->apart, x->reach, n);
            all_one(&x->exp, far, n, x->kernel + at * x->n);
            likeness(x->kernel + at * x->n, far, n);
            if (sloped) linear(x->kernel + at * x->n, product[r], (double)x->F, n);
        }
    }
}

/* alike(kernel, features, lengths, genes, reach, apart, exp): kernel (n, n) of designs with features (n, F), their squared lengths
 * (n,) and genes (G, n). */
static PyObject *alike(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *kernel, *features, *lengths, *genes;
    Compared x;
    if (nargs != 7 || !(kernel = view(&views, args[0], "d", 2, 1)) || !(features = view(&views, args[1], "d", 2, 0)) ||
        !(lengths = view(&views, args[2], "d", 1, 0)) || !(genes = view(&views, args[3], "h", 2, 0)) || !ufunc(args[6], 1, &x.exp))
        return none(&views);
    x.reach = PyFloat_AsDouble(args[4]), x.apart = PyFloat_AsDouble(args[5]);
    if (PyErr_Occurred()) PyErr_Clear();
    x.N = x.n = kernel->shape[0], x.F = features->shape[1], x.G = genes->shape[0];
    if (kernel->shape[1] != x.n || features->shape[0] != x.n || lengths->shape[0] != x.n || genes->shape[1] != x.n || x.n > KNOWN)
        return none(&views);
    x.features = features->buf, x.lengths = lengths->buf, x.kernel = kernel->buf, x.genes = genes->buf;
    if (!(x.columns = malloc((size_t)(x.F * x.n + 1) * sizeof *x.columns))) return none(&views);
    columns_of(&x);
    compare(&x, 0);
    free(x.columns);
    for (Py_ssize_t i = 0; i < x.n; i++)
        for (Py_ssize_t j = 0; j < i; j++) x.kernel[j * x.n + i] = x.kernel[i * x.n + j];
    return done(&views, x.n);
}

/* reduced(rows): rows (m, n) in place, see `eliminate`. */
static PyObject *reduced(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *given = nargs == 1 ? view(&views, args[0], "d", 2, 1) : NULL;
    if (!given || given->shape[0] < given->shape[1] || !given->shape[1]) return none(&views);
    Py_ssize_t m = given->shape[0], n = given->shape[1];
    double *factor = malloc((size_t)(n * n + n) * sizeof *factor);
    if (!factor) return none(&views);
    eliminate(given->buf, factor, m, n);
    free(factor);
    return done(&views, m);
}

/* Loops: logarithms of bounds (L, D, n), orders (L, D, n), which dimensions move a tensor (T, D), levels over instances (L,). */
typedef struct {
    Py_buffer *bounds, *orders, *moves, *spatials;
    Py_ssize_t n, F;
} Loops;

static int loops_of(Loops *x, Views *views, PyObject *const *args) {
    if (!(x->bounds = view(views, args[0], "d", 3, 0)) || !(x->orders = view(views, args[1], "b", 3, 0)) ||
        !(x->moves = view(views, args[2], "?", 2, 0)) || !(x->spatials = view(views, args[3], "?", 1, 0)))
        return 0;
    Py_ssize_t L = x->bounds->shape[0], D = x->bounds->shape[1], T = x->moves->shape[0], times = 0;
    x->n = x->bounds->shape[2];
    if (L > LEVELS || D > DIMS || T > TENSORS || x->orders->shape[0] != L || x->orders->shape[1] != D || x->orders->shape[2] != x->n ||
        x->moves->shape[1] != D || x->spatials->shape[0] != L)
        return 0;
    for (Py_ssize_t l = 0; l < L; l++) times += !((const char *)x->spatials->buf)[l];
    for (Py_ssize_t i = 0; i < L * D * x->n; i++)
        if (((const int8_t *)x->orders->buf)[i] < 0 || ((const int8_t *)x->orders->buf)[i] >= D) return 0;
    x->F = L * D + (L - times) + (2 * times - 1) * T;
    return times > 0;
}

/* The features (count, F) of designs at some rows. */
static void tell(const Loops *x, const int64_t *rows, Py_ssize_t count, double *out) {
    Py_ssize_t L = x->bounds->shape[0], D = x->bounds->shape[1], T = x->moves->shape[0], n = x->n;
    const char *moved = x->moves->buf, *spatial = x->spatials->buf;
    const int8_t *order = x->orders->buf;
    for (Py_ssize_t at = 0; at < count; at++) {
        Py_ssize_t b = rows[at];
        const double *own = (const double *)x->bounds->buf + b;
        double *put = out + at * x->F, over[TENSORS][LEVELS], words[TENSORS][LEVELS];
        for (Py_ssize_t i = 0; i < L * D; i++) *put++ = own[i * n] / 2.0;
        for (Py_ssize_t l = 0; l < L; l++) {
            if (!spatial[l]) continue;
            double sum = 0.0;
            for (Py_ssize_t d = 0; d < D; d++) sum += own[(l * D + d) * n];
            *put++ = sum;
        }
        for (Py_ssize_t t = 0; t < T; t++)
            for (Py_ssize_t l = L - 1; l >= 0; l--) {
                over[t][l] = 0.0;
                for (Py_ssize_t d = 0; d < D; d++) over[t][l] += moved[t * D + d] ? own[(l * D + d) * n] : 0.0;
                words[t][l] = l < L - 1 ? words[t][l + 1] + over[t][l] : over[t][l];
            }
        for (Py_ssize_t level = 0, first = 1; level <= L; level++) {
            if (level < L && (spatial[level] || first)) {
                first = first && spatial[level];
                continue;
            }
            for (Py_ssize_t t = 0; t < T; t++) {
                double brought = 0.0, shared = 0.0;
                int goes = 0;
                for (Py_ssize_t l = level - 1; l >= 0; l--)
                    for (Py_ssize_t p = D - 1; !spatial[l] && p >= 0; p--) {
                        Py_ssize_t d = order[(l * D + p) * n + b];
                        double steps = own[(l * D + d) * n];
                        goes |= moved[t * D + d] && steps > 0.0;
                        if (goes) brought += steps;
                    }
                for (Py_ssize_t l = 0; l < level; l++)
                    if (spatial[l]) shared += over[t][l];
                brought += shared;
                if (level < L) put[t] = words[t][level], brought += words[t][level];
                put[level < L ? T + t : t] = brought;
            }
            put += level < L ? 2 * T : T;
        }
    }
}

/* Rows (count,) of designs that there are; NULL if they are none. */
static const int64_t *rows_of(Views *views, PyObject *array, const Loops *x, Py_ssize_t *count) {
    Py_buffer *given = view(views, array, "lq", 1, 0);
    *count = given ? given->shape[0] : 0;
    const int64_t *rows = given ? given->buf : NULL;
    for (Py_ssize_t i = 0; i < *count; i++)
        if (rows[i] < 0 || rows[i] >= x->n) return NULL;
    return rows;
}

/* told(out, rows, bounds, orders, moves, spatials): out (n, F) of the designs at `rows` (n,). */
static PyObject *told(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Loops loops;
    Py_buffer *out;
    Py_ssize_t n;
    const int64_t *rows;
    if (nargs != 6 || !(out = view(&views, args[0], "d", 2, 1)) || !loops_of(&loops, &views, args + 2) ||
        !(rows = rows_of(&views, args[1], &loops, &n)) || out->shape[0] != n || out->shape[1] != loops.F)
        return none(&views);
    tell(&loops, rows, n, out->buf);
    return done(&views, n);
}

/* promise(out, rows, features, genes, scores, bounds, orders, moves, spatials, genomes, rest, figures, exp): out (n,) of the designs
 * at `rows` (n,), from the features (k, F), genes (k, g) and scores (k,) of known ones; the genes are those at `rest` (g,) of
 * `genomes` (all designs, G). `figures`: reach, apart, noise, daring, and what promises are whole numbers of. */
static PyObject *promise(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Loops loops;
    Compared x;
    Py_ssize_t n;
    const int64_t *rows;
    Py_buffer *out, *features, *genes, *scores, *genomes, *rest, *figures;
    if (nargs != 13 || !(out = view(&views, args[0], "d", 1, 1)) || !loops_of(&loops, &views, args + 5) ||
        !(rows = rows_of(&views, args[1], &loops, &n)) || !(features = view(&views, args[2], "d", 2, 0)) || !(genes = view(&views, args[3], "lq", 2, 0)) ||
        !(scores = view(&views, args[4], "d", 1, 0)) ||
        !(genomes = view(&views, args[9], "lq", 2, 0)) || !(rest = view(&views, args[10], "lq", 1, 0)) ||
        !(figures = view(&views, args[11], "d", 1, 0)) || !ufunc(args[12], 1, &x.exp))
        return none(&views);
    const double *figure = figures->buf;
    const int64_t *places = rest->buf;
    Py_ssize_t k = x.n = features->shape[0], F = x.F = loops.F, all = genomes->shape[1];
    x.N = k + n, x.G = rest->shape[0];
    if (k < 1 || k > KNOWN || features->shape[1] != F || scores->shape[0] != k || genes->shape[0] != k || genes->shape[1] != x.G ||
        out->shape[0] != n || genomes->shape[0] != loops.n || figures->shape[0] != 5)
        return none(&views);
    for (Py_ssize_t g = 0; g < x.G; g++)
        if (places[g] < 0 || places[g] >= all) return none(&views);
    x.reach = figure[0], x.apart = figure[1];
    double *room = malloc((size_t)(x.N * F + F * k + x.N + (x.N + 1) * k + k * k + k + 2 * F + k + F) * sizeof *room);
    x.genes = malloc((size_t)(x.G * x.N + 1) * sizeof *x.genes);
    if (room && x.genes) {
        x.features = room, x.columns = x.features + x.N * F, x.lengths = x.columns + F * k, x.kernel = x.lengths + x.N;
        double *factor = x.kernel + (x.N + 1) * k, *mean = factor + k * k + k, *spread = mean + F, *spare = spread + F;
        memcpy(x.features, features->buf, (size_t)features->len);
        tell(&loops, rows, n, x.features + k * F);
        standardized(&x, mean, spread);
        for (Py_ssize_t i = 0; i < x.N; i++) x.lengths[i] = dot(x.features + i * F, x.features + i * F, spare, F);
        for (Py_ssize_t g = 0; g < x.G; g++)
            for (Py_ssize_t i = 0; i < x.N; i++)
                x.genes[g * x.N + i] = (int16_t)(i < k ? ((const int64_t *)genes->buf)[i * x.G + g]
                                                       : ((const int64_t *)genomes->buf)[rows[i - k] * all + places[g]]);
        columns_of(&x);
        compare(&x, 1);
        for (Py_ssize_t i = 0; i < k; i++) x.kernel[i * k + i] += figure[2];
        double *last = x.kernel + x.N * k, middle = summed(scores->buf, k) / (double)k;
        for (Py_ssize_t i = 0; i < k; i++) last[i] = ((const double *)scores->buf)[i] - middle;
        double deviation = positive(sqrt(dot(last, last, spare, k) / (double)k));
        for (Py_ssize_t i = 0; i < k; i++) last[i] = last[i] / deviation;
        eliminate(x.kernel, factor, x.N + 1, k);
        for (Py_ssize_t i = k; i < x.N; i++) {
            const double *own = x.kernel + i * k;
            double expected = dot(own, last, spare, k), known = dot(own, own, spare, k);
            double left = 1.0 + (x.lengths[i] + 1.0) / (double)F - known;
            expected -= figure[3] * sqrt(left > 0.0 ? left : 0.0);
            ((double *)out->buf)[i - k] = rint(expected * figure[4]) / figure[4];
        }
    }
    int fine = room && x.genes;
    free(room), free(x.genes);
    return fine ? done(&views, n) : none(&views);
}

MODULE(gaussian, DOOR(told), DOOR(promise), DOOR(alike), DOOR(reduced))
