/* How parents become children (`variation.py`, `operators/segments.py`), by the same random numbers as in `plain_breeding.py`. */
#include "../../sparsemap/native.h"
#include "../../sparsemap/draws.h"
#include "../../sparsemap/loops.h"

/* times(times, first, ends, again, rng): how often each of n genomes goes through each of m mutations, `times` (m, n) from 0 on, and
 * which one comes `first` (n,). `ends` (m,): where the shares of mutations end, of a number below 1. */
static PyObject *times(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *out, *used, *shares;
    const Bits *bits;
    if (nargs != 5 || !(out = view(&views, args[0], "lq", 2, 1)) || !(used = view(&views, args[1], "lq", 1, 1)) ||
        !(shares = view(&views, args[2], "d", 1, 0)) || !(bits = stream_of(args[4])))
        return none(&views);
    double again = PyFloat_AsDouble(args[3]);
    if (PyErr_Occurred()) PyErr_Clear();
    Py_ssize_t m = out->shape[0], n = out->shape[1], active = n;
    const double *ends = shares->buf;
    if (used->shape[0] != n || shares->shape[0] != m || !m || !(ends[m - 1] >= 1.0) || !(again >= 0.0 && again < 1.0)) return none(&views);
    int64_t *count = out->buf, *first = used->buf;
    Py_ssize_t *rows = malloc((size_t)(n + 1) * sizeof *rows);
    if (!rows) return none(&views);
    for (Py_ssize_t b = 0; b < n; b++) rows[b] = b;
    for (int begun = 0; active; begun = 1) {
        for (Py_ssize_t k = 0; k < active; k++) {
            double u = bits->next_double(bits->state);
            Py_ssize_t now = 0;
            while (now < m - 1 && ends[now] <= u) now++;
            if (!begun) first[k] = now;
            count[now * n + rows[k]]++;
        }
        Py_ssize_t left = 0;
        for (Py_ssize_t k = 0; k < active; k++)
            if (bits->next_double(bits->state) < again) rows[left++] = rows[k];
        active = left;
    }
    free(rows);
    return done(&views, n);
}

/* cross(children, pairs, ends, rng): children (n, G) of pairs (n, 2, G), by segments, which end at `ends` (s,), or by genes. */
static PyObject *cross(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *out, *pairs, *given;
    const Bits *bits;
    if (nargs != 4 || !(out = view(&views, args[0], "lq", 2, 1)) || !(pairs = view(&views, args[1], "lq", 3, 0)) ||
        !(given = view(&views, args[2], "lq", 1, 0)) || !(bits = stream_of(args[3])))
        return none(&views);
    Py_ssize_t n = out->shape[0], G = out->shape[1], s = given->shape[0];
    const int64_t *ends = given->buf;
    if (pairs->shape[0] != n || pairs->shape[1] != 2 || pairs->shape[2] != G || !s || ends[s - 1] != G) return none(&views);
    double *u = malloc((size_t)((s + G + 1) * n + 1) * sizeof *u), *by_gene = u + s * n, *whole = by_gene + n * G;
    if (!u) return none(&views);
    uniform(bits, u, (s + G + 1) * n);
    for (Py_ssize_t b = 0; b < n; b++)
        for (Py_ssize_t g = 0, part = 0; g < G; g++) {
            while (part < s - 1 && g >= ends[part]) part++;
            double chance = whole[b] < 0.5 ? u[part * n + b] : by_gene[b * G + g];
            ((int64_t *)out->buf)[b * G + g] = ((const int64_t *)pairs->buf)[(2 * b + !(chance < 0.5)) * G + g];
        }
    free(u);
    return done(&views, n);
}

/* pick(pairs, genomes, greed, power, rng): pairs (n, 2, G) of genomes (k, G), each at a place u ** greed of them. */
static PyObject *pick(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *out, *given;
    Ufunc power;
    const Bits *bits;
    if (nargs != 5 || !(out = view(&views, args[0], "lq", 3, 1)) || !(given = view(&views, args[1], "lq", 2, 0)) ||
        !ufunc(args[3], 2, &power) || !(bits = stream_of(args[4])))
        return none(&views);
    Py_ssize_t known = given->shape[0], n = out->shape[0], G = out->shape[2];
    double greed = PyFloat_AsDouble(args[2]);
    if (PyErr_Occurred()) PyErr_Clear();
    if (known < 1 || given->shape[1] != G || out->shape[1] != 2 || !(greed > 2.0)) return none(&views); /* NumPy has loops of its own for other powers */
    double *u = malloc((size_t)(4 * n + 1) * sizeof *u), *to = u + 2 * n;
    if (!u) return none(&views);
    uniform(bits, u, 2 * n);
    all_two(&power, u, greed, 2 * n, to);
    for (Py_ssize_t k = 0; k < 2 * n; k++) {
        Py_ssize_t at = (Py_ssize_t)((double)known * to[k]);
        const int64_t *own = (const int64_t *)given->buf + (at < known ? at : known - 1) * G;
        memcpy((int64_t *)out->buf + (2 * (k % n) + k / n) * G, own, (size_t)G * sizeof *own);
    }
    free(u);
    return done(&views, n);
}

MODULE(breeding, DOOR(times), DOOR(cross), DOOR(pick))
