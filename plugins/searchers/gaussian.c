/* Features, kernel and elimination of `forecast.py`, the same to the last bit: every number has its sums in NumPy's order. */
#include "../../sparsemap/native.h"

#include <math.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno") /* several numbers at a time */
#endif
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define WIDE __attribute__((target_clones("avx2", "default"))) /* without fused operations: the same numbers */
#else
#define WIDE
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

/* `factor` has room for n * n + n numbers. */
WIDE static void eliminate(double *rows, double *factor, Py_ssize_t m, Py_ssize_t n) {
    double *root = factor + n * n;
    for (Py_ssize_t i = 0; i < n; i++) {
        double *row = rows + i * n;
        for (Py_ssize_t k = 0; k < i; k++) {
            double *column = factor + k * n; /* of L */
            column[i] = row[k] = row[k] / root[k];
            less(row, row[k], column, k + 1, i + 1);
        }
        root[i] = sqrt(row[i]);
        row[i] = row[i] / root[i];
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

/* reduced(rows): rows (m, n), the first n symmetric and positive definite, A = L L': all are multiplied by the inverse of L'.
 * What lies above the diagonal of the first ones is left as it is. */
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

/* What `alike` compares: N designs, of which the first n are `known` columns of features (F, n). */
typedef struct {
    Py_ssize_t N, n, F, G;
    const double *features, *columns, *lengths;
    const int16_t *genes;
    double apart, reach, *far, *product;
} Compared;

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
static inline void apart(double *restrict far, const double *restrict product, const double *restrict lengths,
                         const int16_t *restrict others, double own, double gene, double reach, Py_ssize_t n) {
    for (Py_ssize_t j = 0; j < n; j++) {
        double squared = own + lengths[j] - 2.0 * product[j] + gene * (double)others[j];
        far[j] = -(sqrt(squared > 0.0 ? squared : 0.0) / reach);
    }
}

static inline void differing(int16_t *restrict others, const int16_t *restrict gene, int16_t own, Py_ssize_t n) {
    for (Py_ssize_t j = 0; j < n; j++) others[j] += gene[j] != own;
}

WIDE static void compare(const Compared *x) {
    for (Py_ssize_t i = 0; i < x->N; i += TOGETHER) {
        Py_ssize_t rows = i + TOGETHER < x->N ? TOGETHER : x->N - i;
        const double *own[TOGETHER];
        double *into[TOGETHER], spare[TOGETHER][KNOWN];
        for (int r = 0; r < TOGETHER; r++) {
            own[r] = x->features + (i + (r < rows ? r : 0)) * x->F;
            into[r] = r < rows ? x->product + (i + r) * x->n : spare[r];
            for (Py_ssize_t j = 0; j < x->n; j++) into[r][j] = 0.0;
        }
        for (Py_ssize_t f = 0; f < x->F; f++)
            products(into[0], into[1], into[2], into[3], own[0][f], own[1][f], own[2][f], own[3][f], x->columns + f * x->n, x->n);
        for (Py_ssize_t at = i; at < i + rows; at++) {
            int16_t others[KNOWN] = {0};
            for (Py_ssize_t g = 0; g < x->G; g++) differing(others, x->genes + g * x->N, x->genes[g * x->N + at], x->n);
            apart(x->far + at * x->n, x->product + at * x->n, x->lengths, others, x->lengths[at], x->apart, x->reach, x->n);
        }
    }
}

/* alike(far, product, features, lengths, genes, apart, reach): distances below 0 and products (N, n) of designs with the first n;
 * features (N, F), their squared lengths (N,), genes (G, N). */
static PyObject *alike(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *far, *product, *features, *lengths, *genes;
    if (nargs != 7 || !(far = view(&views, args[0], "d", 2, 1)) || !(product = view(&views, args[1], "d", 2, 1)) ||
        !(features = view(&views, args[2], "d", 2, 0)) || !(lengths = view(&views, args[3], "d", 1, 0)) ||
        !(genes = view(&views, args[4], "h", 2, 0)))
        return none(&views);
    double by_gene = PyFloat_AsDouble(args[5]), reach = PyFloat_AsDouble(args[6]);
    if (PyErr_Occurred()) PyErr_Clear();
    Compared x = {far->shape[0], far->shape[1], features->shape[1], genes->shape[0], features->buf, NULL, lengths->buf, genes->buf,
                  by_gene, reach, far->buf, product->buf};
    if (x.n > x.N || product->shape[0] != x.N || product->shape[1] != x.n || features->shape[0] != x.N ||
        lengths->shape[0] != x.N || genes->shape[1] != x.N || !x.F || !x.n || x.n > KNOWN)
        return none(&views);
    double *columns = malloc((size_t)(x.F * x.n) * sizeof *columns);
    if (!columns) return none(&views);
    for (Py_ssize_t j = 0; j < x.n; j++)
        for (Py_ssize_t f = 0; f < x.F; f++) columns[f * x.n + j] = x.features[j * x.F + f];
    x.columns = columns;
    compare(&x);
    free(columns);
    return done(&views, x.N);
}

/* told(out, bounds, order, moves, spatial): out (F, n) of logarithms (L, D, n) of loop bounds and orders (L, D, n); moves (T, D),
 * spatial (L,). */
static PyObject *told(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *out, *bounds, *orders, *moves, *spatials;
    if (nargs != 5 || !(out = view(&views, args[0], "d", 2, 1)) || !(bounds = view(&views, args[1], "d", 3, 0)) ||
        !(orders = view(&views, args[2], "b", 3, 0)) || !(moves = view(&views, args[3], "?", 2, 0)) ||
        !(spatials = view(&views, args[4], "?", 1, 0)))
        return none(&views);
    Py_ssize_t L = bounds->shape[0], D = bounds->shape[1], n = bounds->shape[2], T = moves->shape[0], times = 0;
    const char *moved = moves->buf, *spatial = spatials->buf;
    const int8_t *order = orders->buf;
    for (Py_ssize_t l = 0; l < spatials->shape[0]; l++) times += !spatial[l];
    if (L > LEVELS || D > DIMS || T > TENSORS || orders->shape[0] != L || orders->shape[1] != D || orders->shape[2] != n ||
        moves->shape[1] != D || spatials->shape[0] != L || out->shape[1] != n || !times ||
        out->shape[0] != L * D + (L - times) + (2 * times - 1) * T)
        return none(&views);
    for (Py_ssize_t i = 0; i < L * D * n; i++)
        if (order[i] < 0 || order[i] >= D) return none(&views);
    for (Py_ssize_t b = 0; b < n; b++) {
        const double *own = (const double *)bounds->buf + b;
        double *put = (double *)out->buf + b, over[TENSORS][LEVELS], words[TENSORS][LEVELS];
        for (Py_ssize_t i = 0; i < L * D; i++, put += n) *put = own[i * n] / 2.0;
        for (Py_ssize_t l = 0; l < L; l++) {
            if (!spatial[l]) continue;
            double sum = 0.0;
            for (Py_ssize_t d = 0; d < D; d++) sum += own[(l * D + d) * n];
            *put = sum, put += n;
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
                if (level < L) put[t * n] = words[t][level], brought += words[t][level];
                put[(level < L ? T + t : t) * n] = brought;
            }
            put += (level < L ? 2 * T : T) * n;
        }
    }
    return done(&views, n);
}

MODULE(gaussian, DOOR(reduced), DOOR(alike), DOOR(told))
