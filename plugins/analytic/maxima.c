/* Rows of `charges/maxima.py`, to the last bit: expected maxima of the work of many units, and thresholds of a tile's work.
 * Sums are in order, logarithms, exponentials and powers NumPy's own loops. A function returns None where an array is not what
 * it knows, or where values are not in order. */
#include "../../sparsemap/native.h"

#include <math.h>

#include "../../sparsemap/loops.h"

enum { MERGED = 256, AT_ONCE = 4 }; /* values that are told apart, at most; numbers of units at once */

/* Values (n,) in ascending order with probabilities, neighbours as one where they are many (`Shares`). */
typedef struct {
    int count;
    double y[MERGED], reaches[MERGED], weight[MERGED];
} Shares;

static void shares_of(const double *p, const double *values, Py_ssize_t n, Shares *s) {
    Py_ssize_t size = (n + MERGED - 1) / MERGED;
    double share[MERGED], total = 0.0, most = -INFINITY;
    s->count = 0;
    for (Py_ssize_t start = 0; start < n; start += size, s->count++) {
        double sum = 0.0, mean = 0.0;
        for (Py_ssize_t i = start; i < start + size && i < n; i++) sum += p[i], mean += p[i] * values[i];
        double own = size > 1 && sum > 0.0 ? mean / sum : values[start];
        s->y[s->count] = most = size > 1 ? max2(most, own) : own;
        share[s->count] = sum;
    }
    for (int i = s->count - 1; i >= 0; i--) {
        total = total + share[i];
        s->reaches[i] = min2(total, 1.0);
    }
}

/* Expected maxima of `first`, twice as many, and so on: `lanes` numbers. */
static void maxima_of(Shares *s, double first, Py_ssize_t lanes, const Ufunc *log1p_of, const Ufunc *expm1_of, double *out) {
    double *w = s->weight, rise[MERGED];
    for (int i = 0; i < s->count; i++) w[i] = -s->reaches[i];
    all_one(log1p_of, w, s->count, rise);
    for (int i = 0; i < s->count; i++) rise[i] = first * rise[i];
    all_one(expm1_of, rise, s->count, w);
    for (int i = 0; i < s->count; i++) w[i] = -w[i], rise[i] = i ? s->y[i] - s->y[i - 1] : s->y[0];
    for (Py_ssize_t start = 0; start < lanes; start += AT_ONCE) {
        double sum[AT_ONCE] = {0.0};
        for (int i = 0; i < s->count; i++)
            for (int j = 0; j < AT_ONCE; j++) sum[j] += w[i] * rise[i], w[i] = w[i] * (2.0 - w[i]);
        for (int j = 0; j < AT_ONCE && start + j < lanes; j++) out[start + j] = sum[j];
    }
}

/* work(k, p, looks, words, first, lanes, tails, (power, log1p, expm1), out): `WorkTiles._row`. */
static PyObject *work(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *ks, *ps, *tails, *to;
    Ufunc power, log1p_of, expm1_of;
    if (nargs != 9 || !(ks = view(&views, args[0], "d", 1, 0)) || !(ps = view(&views, args[1], "d", 1, 0)) ||
        !(tails = view(&views, args[6], "d", 1, 0)) || !PyTuple_Check(args[7]) || PyTuple_GET_SIZE(args[7]) != 3 ||
        !ufunc(PyTuple_GET_ITEM(args[7], 0), 2, &power) || !ufunc(PyTuple_GET_ITEM(args[7], 1), 1, &log1p_of) ||
        !ufunc(PyTuple_GET_ITEM(args[7], 2), 1, &expm1_of) || !(to = view(&views, args[8], "d", 1, 1)))
        return none(&views);
    double looks = PyFloat_AsDouble(args[2]), words = PyFloat_AsDouble(args[3]), first = PyFloat_AsDouble(args[4]);
    Py_ssize_t lanes = PyLong_AsSsize_t(args[5]), n = ks->shape[0], few = tails->shape[0];
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return none(&views);
    }
    if (n < 1 || ps->shape[0] != n || lanes < 0 || to->shape[0] != lanes + 2 + 2 * few) return none(&views);
    double *room = malloc(3 * n * sizeof *room), *values = room, *left = room + n, *drawn = left + n, *out = to->buf;
    if (!room) return none(&views);
    const double *k = ks->buf, *p = ps->buf, *tail = tails->buf;
    for (Py_ssize_t i = 0; i < n; i++) {
        left[i] = 1.0 - min2(max2(looks, k[i]) / words, 1.0);
        drawn[i] = min2(looks, k[i]);
    }
    if (looks == 1.0) {
        for (Py_ssize_t i = 0; i < n; i++) values[i] = k[i] > 0.0 ? 1.0 - (1.0 - min2(k[i] / words, 1.0)) : 0.0;
    } else {
        char *at[3] = {(char *)left, (char *)drawn, (char *)values};
        intptr_t steps[3] = {8, 8, 8}, count = n;
        power.loop(at, &count, steps, power.data);
        for (Py_ssize_t i = 0; i < n; i++) values[i] = 1.0 - values[i];
    }
    double square = 0.0, there = 0.0;
    int ordered = 1;
    for (Py_ssize_t i = 0; i < n; i++) {
        ordered &= !i || values[i] >= values[i - 1];
        square += p[i] * (values[i] * values[i]);
        there += values[i] > 0.0 ? p[i] : 0.0;
    }
    if (ordered) {
        Shares s;
        shares_of(p, values, n, &s);
        maxima_of(&s, first, lanes, &log1p_of, &expm1_of, out);
        out += lanes;
        *out++ = square, *out++ = there;
        for (Py_ssize_t j = 0; j < few; j++) {
            int at = 0;
            while (at + 1 < s.count && s.reaches[at + 1] >= tail[j]) at++;
            out[j] = s.y[at];
            while (at > 0 && s.y[at - 1] == s.y[at]) at--; /* all that have this value reach it */
            out[few + j] = s.reaches[at];
        }
    }
    free(room);
    return ordered ? done(&views, n) : none(&views);
}

/* met(trials, log_odds, low, high, first, lanes, (exp, log, log1p, expm1), out): `MetPlaces._row`, of the successes from low to high;
 * log_odds: the logarithms of the chance and of what is left of it. */
static PyObject *met(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Ufunc loop[4];
    Py_buffer *to;
    double given[5], chance, rest;
    if (nargs != 8 || !PyArg_ParseTuple(args[1], "dd", &chance, &rest) || !PyTuple_Check(args[6]) || PyTuple_GET_SIZE(args[6]) != 4 ||
        !(to = view(&views, args[7], "d", 1, 1))) {
        PyErr_Clear();
        return none(&views);
    }
    for (int i = 0; i < 4; i++)
        if (!ufunc(PyTuple_GET_ITEM(args[6], i), 1, &loop[i])) return none(&views);
    for (int i = 0; i < 5; i++)
        if (i != 1) given[i] = PyFloat_AsDouble(args[i]);
    Py_ssize_t lanes = PyLong_AsSsize_t(args[5]);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return none(&views);
    }
    double trials = given[0], low = given[2], span = given[3] - low;
    if (!(span >= 0.0 && span < 1e7) || lanes != to->shape[0]) return none(&views);
    Py_ssize_t n = (Py_ssize_t)span + 1;
    double *room = malloc(2 * n * sizeof *room), *p = room, *values = room + n, sum = 0.0, most = 0.0, total = 0.0;
    if (!room) return none(&views);
    for (Py_ssize_t i = 0; i + 1 < n; i++) p[i] = (trials - (low + (double)i)) / (low + (double)i + 1.0);
    all_one(&loop[1], p, n - 1, values);
    p[0] = 0.0;
    for (Py_ssize_t i = 1; i < n; i++) {
        double ratio = values[i - 1] + chance - rest;
        p[i] = sum = i > 1 ? sum + ratio : ratio;
        most = max2(most, sum);
    }
    for (Py_ssize_t i = 0; i < n; i++) values[i] = p[i] - most;
    all_one(&loop[0], values, n, p);
    for (Py_ssize_t i = 0; i < n; i++) total += p[i], values[i] = (low + (double)i) / trials;
    for (Py_ssize_t i = 0; i < n; i++) p[i] = p[i] / total;
    Shares s;
    shares_of(p, values, n, &s);
    maxima_of(&s, given[4], lanes, &loop[2], &loop[3], to->buf);
    free(room);
    return done(&views, n);
}

MODULE(maxima, DOOR(work), DOOR(met))
