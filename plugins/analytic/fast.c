/* The loops of the model over arrays for which NumPy needs many calls: the same numbers to the last bit.
 *
 * Every function takes arrays that Python has made, and writes into some of them. It returns None where an array is not
 * what it knows (type, dimensions, memory in one piece); the caller then does it in NumPy. Sums and products are taken in
 * NumPy's order; logarithms and powers stay in Python. Built without contraction of multiply and add (setup.py).
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define MOST 64 /* arrays of a call; dimensions */

typedef struct {
    Py_buffer held[MOST];
    int count;
} Views;

static void release(Views *views) {
    while (views->count > 0) PyBuffer_Release(&views->held[--views->count]);
}

/* The buffer of an array, of one of the `kinds` (formats of buffers), with so many dimensions. */
static Py_buffer *buffer(Views *views, PyObject *array, const char *kinds, int ndim, int flags) {
    if (views->count == MOST) return NULL;
    Py_buffer *found = &views->held[views->count];
    if (PyObject_GetBuffer(array, found, flags | PyBUF_FORMAT) < 0) {
        PyErr_Clear();
        return NULL;
    }
    views->count++;
    const char *kind = found->format;
    if (!kind || !kind[0] || kind[1] || !strchr(kinds, kind[0]) || found->ndim != ndim) return NULL;
    if ((kind[0] == 'l' || kind[0] == 'q' || kind[0] == 'd') && found->itemsize != 8) return NULL;
    return found;
}

/* The same of one in one piece. */
static Py_buffer *view(Views *views, PyObject *array, const char *kinds, int ndim, int writes) {
    return buffer(views, array, kinds, ndim, PyBUF_C_CONTIGUOUS | (writes ? PyBUF_WRITABLE : 0));
}

/* One number of an array with one dimension, whatever lies between them. */
#define AT(type, of, i) (*(const type *)((const char *)(of)->buf + (Py_ssize_t)(i) * (of)->strides[0]))

static PyObject *none(Views *views) {
    release(views);
    Py_RETURN_NONE;
}

static PyObject *done(Views *views, Py_ssize_t number) {
    release(views);
    return PyLong_FromSsize_t(number);
}

/* fingerprint(out, odd, first, parts): keys of rows of whole numbers (lookup.py). */
static PyObject *fingerprint(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *out, *odd;
    if (nargs != 4 || !(out = view(&views, args[0], "lq", 1, 1)) || !(odd = view(&views, args[1], "lq", 1, 0)))
        return none(&views);
    Py_ssize_t first = PyLong_AsSsize_t(args[2]), n = out->shape[0], parts = PySequence_Size(args[3]);
    if (PyErr_Occurred()) PyErr_Clear();
    if (first < 0 || parts < 1 || first + parts > odd->shape[0] || !(PyList_Check(args[3]) || PyTuple_Check(args[3])))
        return none(&views);
    int64_t *keys = out->buf;
    const int64_t *factors = (const int64_t *)odd->buf + first;
    memset(keys, 0, n * sizeof *keys);
    for (Py_ssize_t j = 0; j < parts; j++) {
        Py_buffer *part = view(&views, PySequence_Fast_GET_ITEM(args[3], j), "dlqb?", 1, 0);
        if (!part || part->shape[0] != n) return none(&views);
        uint64_t factor = (uint64_t)factors[j];
        if (part->format[0] == 'd') {
            const double *values = part->buf;
            for (Py_ssize_t i = 0; i < n; i++) {
                /* numbers that no int64 holds are NumPy's business */
                if (!(values[i] > -9.2e18 && values[i] < 9.2e18)) return none(&views);
                keys[i] = (int64_t)((uint64_t)keys[i] + (uint64_t)(int64_t)values[i] * factor);
            }
        } else if (part->itemsize == 8) {
            const int64_t *values = part->buf;
            for (Py_ssize_t i = 0; i < n; i++) keys[i] = (int64_t)((uint64_t)keys[i] + (uint64_t)values[i] * factor);
        } else {
            const int8_t *values = part->buf;
            for (Py_ssize_t i = 0; i < n; i++)
                keys[i] = (int64_t)((uint64_t)keys[i] + (uint64_t)(int64_t)values[i] * factor);
        }
        PyBuffer_Release(&views.held[--views.count]);
    }
    for (Py_ssize_t i = 0; i < n; i++) keys[i] |= 1;
    return done(&views, n);
}

/* probe(keys, table_keys, row_of, bits, mix, rows, missing): the row of every key, and which keys have none. */
static PyObject *probe(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *parts[7];
    if (nargs != 7) return none(&views);
    for (int i = 0; i < 7; i++)
        if (i != 3 && i != 4 && !(parts[i] = i > 4 ? view(&views, args[i], "lq", 1, 1)
                                                   : buffer(&views, args[i], "lq", 1, i ? PyBUF_STRIDES : PyBUF_C_CONTIGUOUS)))
            return none(&views);
    long bits = PyLong_AsLong(args[3]);
    int64_t mix = PyLong_AsLongLong(args[4]);
    if (PyErr_Occurred()) PyErr_Clear();
    Py_ssize_t n = parts[0]->shape[0], size = parts[1]->shape[0], count = 0;
    if (bits < 1 || bits > 40 || size != (Py_ssize_t)1 << bits || parts[2]->shape[0] != size || parts[5]->shape[0] != n ||
        parts[6]->shape[0] != n)
        return none(&views);
    const int64_t *keys = parts[0]->buf;
    const Py_buffer *table = parts[1], *row_of = parts[2];
    int64_t *rows = parts[5]->buf, *missing = parts[6]->buf;
    uint64_t mask = (uint64_t)size - 1;
    for (Py_ssize_t i = 0; i < n; i++) {
        uint64_t place = ((uint64_t)keys[i] * (uint64_t)mix) >> (64 - bits);
        while (AT(int64_t, table, place) != keys[i] && AT(int64_t, table, place)) place = (place + 1) & mask;
        rows[i] = AT(int64_t, row_of, place);
        if (AT(int64_t, table, place) != keys[i]) missing[count++] = i;
    }
    return done(&views, count);
}

/* gather(out, rows, columns): out (k, n), some entries of k columns of float64. */
static PyObject *gather(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *out, *at;
    if (nargs != 3 || !(out = view(&views, args[0], "d", 2, 1)) || !(at = view(&views, args[1], "lq", 1, 0)) ||
        !PyTuple_Check(args[2]) || PyTuple_GET_SIZE(args[2]) != out->shape[0] || out->shape[1] != at->shape[0])
        return none(&views);
    const int64_t *rows = at->buf;
    Py_ssize_t n = at->shape[0];
    for (Py_ssize_t j = 0; j < out->shape[0]; j++) {
        Py_buffer *column = buffer(&views, PyTuple_GET_ITEM(args[2], j), "d", 1, PyBUF_STRIDES);
        if (!column) return none(&views);
        double *to = (double *)out->buf + j * n;
        for (Py_ssize_t i = 0; i < n; i++) {
            if (rows[i] < 0 || rows[i] >= column->shape[0]) return none(&views);
            to[i] = AT(double, column, rows[i]);
        }
        PyBuffer_Release(&views.held[--views.count]);
    }
    return done(&views, n);
}

/* region(dim, bound, spatial, searched, relevant, inside, outermost; target, target_spatial, R, e, f): `Region.of`. */
static PyObject *region(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    static const char *kinds[] = {"b", "d", "?", "?", "?", "d", "", "lq", "?", "?", "d", "d"};
    static const int dims[] = {2, 2, 1, 1, 1, 2, 0, 1, 1, 2, 2, 2};
    Views views = {.count = 0};
    Py_buffer *part[12];
    if (nargs != 12) return none(&views);
    for (int i = 0; i < 12; i++)
        if (i != 6 && !(part[i] = view(&views, args[i], kinds[i], dims[i], i > 6))) return none(&views);
    Py_ssize_t outermost = PyLong_AsSsize_t(args[6]);
    if (PyErr_Occurred()) PyErr_Clear();
    Py_ssize_t P = part[0]->shape[0], n = part[0]->shape[1], D = part[5]->shape[0];
    int fits = outermost >= 0 && outermost < P && D <= MOST && part[4]->shape[0] == D && part[2]->shape[0] == P &&
               part[3]->shape[0] == P && part[7]->shape[0] == n && part[8]->shape[0] == n;
    for (int i = 0; i < 12; i++)
        if (dims[i] == 2 && (part[i]->shape[1] != n || part[i]->shape[0] != (i == 5 || i > 9 ? D : P))) fits = 0;
    if (!fits) return none(&views);
    const int8_t *dim = part[0]->buf, *spatial = part[2]->buf, *searched = part[3]->buf, *relevant = part[4]->buf;
    const double *bound = part[1]->buf, *inside = part[5]->buf;
    int64_t *target = part[7]->buf;
    int8_t *target_spatial = part[8]->buf, *R = part[9]->buf;
    double *e = part[10]->buf, *f = part[11]->buf, to_target[MOST], to_region[MOST];
    for (Py_ssize_t k = 0; k < P * n; k++)
        if (dim[k] < 0 || dim[k] >= D) return none(&views);
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t at = outermost;
        int found = 0, moved = 0;
        for (Py_ssize_t p = 0; p < P && !found; p++)
            if (bound[p * n + i] > 1.0 && relevant[dim[p * n + i]] && searched[p]) at = p, found = 1;
        int first = found && spatial[at];
        for (Py_ssize_t d = 0; d < D; d++) to_target[d] = to_region[d] = 1.0;
        for (Py_ssize_t p = 0; p < P; p++) {
            Py_ssize_t k = p * n + i;
            int busy = bound[k] > 1.0, moves = relevant[dim[k]], outside = p > at && busy;
            moved |= outside && !spatial[p] && moves;
            int spans = outside && (spatial[p] || (!moves && !moved && first));
            if (p <= at) to_target[dim[k]] *= bound[k];
            if (p <= at || spans) to_region[dim[k]] *= bound[k];
            R[k] = spans || (p == at && found);
        }
        target[i] = at;
        target_spatial[i] = first;
        for (Py_ssize_t d = 0; d < D; d++) {
            e[d * n + i] = inside[d * n + i] * to_target[d];
            f[d * n + i] = inside[d * n + i] * to_region[d];
        }
    }
    return done(&views, n);
}

/* leader(dim, bound, R, target, target_spatial, moves_t, moves_c, g, apart; f, ineffective): `Region.leader_tile`; f holds
 * the extents of the region and gets those of the tile. */
static PyObject *leader(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    static const char *kinds[] = {"b", "d", "?", "lq", "?", "?", "?", "d", "", "d", "?"};
    static const int dims[] = {2, 2, 2, 1, 1, 1, 1, 1, 0, 2, 1};
    Views views = {.count = 0};
    Py_buffer *part[11];
    if (nargs != 11) return none(&views);
    for (int i = 0; i < 11; i++)
        if (i != 8 && !(part[i] = view(&views, args[i], kinds[i], dims[i], i > 8))) return none(&views);
    int apart = PyObject_IsTrue(args[8]);
    Py_ssize_t P = part[0]->shape[0], n = part[0]->shape[1], D = part[9]->shape[0];
    int fits = D <= MOST && part[5]->shape[0] == D && part[6]->shape[0] == D && part[9]->shape[1] == n;
    for (int i = 1; i < 3; i++) fits = fits && part[i]->shape[0] == P && part[i]->shape[1] == n;
    for (int i = 3; i < 11; i++)
        if (dims[i] == 1 && i != 5 && i != 6 && part[i]->shape[0] != n) fits = 0;
    if (!fits) return none(&views);
    const int8_t *dim = part[0]->buf, *R = part[2]->buf, *first = part[4]->buf, *moves_t = part[5]->buf,
                 *moves_c = part[6]->buf;
    const double *bound = part[1]->buf, *volume = part[7]->buf;
    const int64_t *target = part[3]->buf;
    double *f = part[9]->buf, factor[MOST];
    int8_t *ineffective = part[10]->buf;
    for (Py_ssize_t k = 0; k < P * n; k++)
        if (dim[k] < 0 || dim[k] >= D) return none(&views);
    for (Py_ssize_t i = 0; i < n; i++) {
        int before = 0, several = 0;
        double shared = 1.0;
        if (target[i] < 0 || target[i] >= P) return none(&views);
        for (Py_ssize_t d = 0; d < D; d++) factor[d] = 1.0;
        ineffective[i] = 0;
        for (Py_ssize_t p = 0; p < P; p++) {
            Py_ssize_t k = p * n + i;
            int both = R[k] && moves_t[dim[k]] && moves_c[dim[k]];
            int again = R[k] && moves_c[dim[k]] && before && first[i];
            if (both && !again) {
                shared *= bound[k];
                factor[dim[k]] *= bound[k];
            }
            ineffective[i] |= again;
            before |= both;
        }
        double ratio = volume[i] / shared, need = ratio >= 1.0 ? 1.0 : ceil(1.0 / ratio);
        for (Py_ssize_t d = 0; apart && d < D; d++) several += moves_t[d] && moves_c[d] && factor[d] > 1.0;
        if (several > 1) need = 1.0;
        for (Py_ssize_t d = 0; d < D; d++)
            if (moves_t[d] && moves_c[d] && factor[d] > 1.0) {
                f[d * n + i] = ceil(f[d * n + i] / (factor[d] / need));
                if (several <= 1) need = need / factor[d];
            }
        if (need > 1.0) {
            Py_ssize_t d = dim[target[i] * n + i];
            f[d * n + i] = trunc(f[d * n + i] * need);
        }
    }
    return done(&views, n);
}

/* sums(rank, p, columns, out): per rank the sum of p times a column (k, P), in the order of the points. */
static PyObject *sums(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *which, *chance, *column, *out;
    if (nargs != 4 || !(which = view(&views, args[0], "lq", 1, 0)) || !(chance = view(&views, args[1], "d", 1, 0)) ||
        !(column = view(&views, args[2], "d", 2, 0)) || !(out = view(&views, args[3], "d", 2, 1)))
        return none(&views);
    Py_ssize_t n = which->shape[0], k = column->shape[0], count = out->shape[1];
    if (chance->shape[0] != n || column->shape[1] != n || out->shape[0] != k) return none(&views);
    const int64_t *rank = which->buf;
    const double *p = chance->buf, *values = column->buf;
    double *found = out->buf;
    for (Py_ssize_t i = 0; i < n; i++)
        if (rank[i] < 0 || rank[i] >= count) return none(&views);
    memset(found, 0, k * count * sizeof *found);
    for (Py_ssize_t j = 0; j < k; j++)
        for (Py_ssize_t i = 0; i < n; i++) found[j * count + rank[i]] += p[i] * values[j * n + i];
    return done(&views, n);
}

#define DOOR(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

static PyMethodDef doors[] = {DOOR(fingerprint), DOOR(probe), DOOR(gather), DOOR(region), DOOR(leader), DOOR(sums), {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast", NULL, -1, doors};

PyMODINIT_FUNC PyInit_fast(void) { return PyModule_Create(&module); }
