/* The elimination of `forecast.py`, the same to the last bit: every number has its subtractions in NumPy's order; and how many
 * genes differ. */
#include "../../sparsemap/native.h"

#include <math.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* two numbers at a time */
#endif

enum { TOGETHER = 4 }; /* rows that pass over the factor at once */

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

/* reduced(rows): rows (m, n), the first n symmetric and positive definite, A = L L': all are multiplied by the inverse of L'.
 * What lies above the diagonal of the first ones is left as it is. */
static PyObject *reduced(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *given = nargs == 1 ? view(&views, args[0], "d", 2, 1) : NULL;
    if (!given || given->shape[0] < given->shape[1] || !given->shape[1]) return none(&views);
    Py_ssize_t m = given->shape[0], n = given->shape[1];
    double *rows = given->buf, *factor = malloc((size_t)(n * n + n) * sizeof *factor), *root = factor + n * n;
    if (!factor) return none(&views);
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
    free(factor);
    return done(&views, m);
}

/* differing(out, genes): out (N, n) int16, in how many genes (G, N) int16 designs differ from the first n. */
static PyObject *differing(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *out, *genes;
    if (nargs != 2 || !(out = view(&views, args[0], "h", 2, 1)) || !(genes = view(&views, args[1], "h", 2, 0)) ||
        out->shape[0] != genes->shape[1] || out->shape[1] > out->shape[0])
        return none(&views);
    Py_ssize_t N = out->shape[0], n = out->shape[1];
    memset(out->buf, 0, out->len);
    for (Py_ssize_t g = 0; g < genes->shape[0]; g++) {
        const int16_t *gene = (const int16_t *)genes->buf + g * N;
        for (Py_ssize_t i = 0; i < N; i++) {
            int16_t *restrict row = (int16_t *)out->buf + i * n, own = gene[i];
            for (Py_ssize_t j = 0; j < n; j++) row[j] += gene[j] != own;
        }
    }
    return done(&views, N);
}

MODULE(gaussian, DOOR(reduced), DOOR(differing))
