/* The elimination of `forecast.py`, the same to the last bit: every number has its subtractions in NumPy's order. */
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
        Py_ssize_t last = i + TOGETHER < m ? i + TOGETHER : m;
        for (Py_ssize_t k = 0; k < n; k++)
            for (Py_ssize_t r = i; r < last; r++) {
                double *row = rows + r * n;
                row[k] = row[k] / root[k];
                less(row, row[k], factor + k * n, k + 1, n);
            }
    }
    free(factor);
    return done(&views, m);
}

MODULE(gaussian, DOOR(reduced))
