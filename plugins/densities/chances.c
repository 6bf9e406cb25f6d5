/* Hypergeometric probabilities of `hypergeometric.py`, to the last bit: in long double, as NumPy has them, or in double by
 * NumPy's own loops; and sums of independent values (`joined`, `placed`, `gathered`, `fullest`). A function returns None where an array is not what
 * it knows. */
#include "../../sparsemap/native.h"

#include <math.h>

#include "../../sparsemap/loops.h"

typedef long double Long;

enum { LONG_TERMS = 20, TERMS = 15 };
static const double NEVER = 1e-22; /* `atoms.py` */

/* `_excess`: sum of u^j / (j (j + 1)), by so many terms where u is small. */
static Long excess_long(Long u) {
    if (!(u < (Long)0.1)) return 1 + (1 - u) * log1pl(-u) / u;
    Long series = 1 / ((Long)LONG_TERMS * (LONG_TERMS + 1));
    for (int j = LONG_TERMS - 1; j > 0; j--) series = series * u, series += 1 / ((Long)j * (j + 1));
    return series * u;
}

static double excess(const Ufunc *log1p_of, double u) {
    if (!(u < 0.1)) return 1.0 + (1.0 - u) * one(log1p_of, -u) / u;
    double series = 1.0 / (TERMS * (TERMS + 1));
    for (int j = TERMS - 1; j > 0; j--) series = series * u, series += 1.0 / (j * (j + 1));
    return series * u;
}

/* `_log_none` in long double .. */
static Long log_none_long(Long total, Long marked, Long taken) {
    Long a = total - marked + 0.5L, b = total + 0.5L, first = 0, second = 0, third = 0;
    Long inside = taken * (log1pl(-marked / b) + excess_long(taken / b) - excess_long(taken / a));
    Long inverses[4] = {1 / (a - taken), -1 / (b - taken), -1 / a, 1 / b};
    for (int i = 0; i < 4; i++) {
        Long inverse = inverses[i], square = inverse * inverse;
        first = first + inverse, second = second + inverse * square, third = third + inverse * square * square;
    }
    return inside + first / 24 - 7 * second / 2880 + 31 * third / 40320;
}

/* .. and in double. */
static double log_none(const Ufunc *log1p_of, double total, double marked, double taken) {
    double a = total - marked + 0.5, b = total + 0.5, first = 0.0, second = 0.0, third = 0.0;
    double inside = taken * (one(log1p_of, -marked / b) + excess(log1p_of, taken / b) - excess(log1p_of, taken / a));
    double inverses[4] = {1.0 / (a - taken), -1.0 / (b - taken), -1.0 / a, 1.0 / b};
    for (int i = 0; i < 4; i++) {
        double inverse = inverses[i], square = inverse * inverse;
        first = first + inverse, second = second + inverse * square, third = third + inverse * square * square;
    }
    return inside + first / 24.0 - 7.0 * second / 2880.0 + 31.0 * third / 40320.0;
}

/* `_none_many` of one. */
static Long none_of(const Ufunc *log1p_of, int64_t total, int64_t marked, int64_t taken) {
    int64_t few = marked < taken ? marked : taken, many = marked < taken ? taken : marked;
    if (few <= 0) return 1;
    if (few + many > total || !((double)few * one(log1p_of, (double)-many / (double)total) >= -800.0)) return 0;
    if (few + many <= total - 256) return expl(log_none_long((Long)total, (Long)many, (Long)few));
    Long found = 1;
    for (int64_t i = 0; i < few; i++) found *= (Long)(total - many - i) / (Long)(total - i);
    return found;
}

typedef struct {
    Ufunc exp, log1p;
    const void *column[4];
    double *out;
    Py_ssize_t n, room;
} Given;

/* Arguments of all: so many columns (n,) of one of the `kinds`, NumPy's exp and log1p, and where results go. */
static int given(Views *views, PyObject *const *args, Py_ssize_t nargs, int columns, const char *kinds, Given *g) {
    if (nargs != columns + 2 || !PyTuple_Check(args[columns]) || PyTuple_GET_SIZE(args[columns]) != 2 ||
        !ufunc(PyTuple_GET_ITEM(args[columns], 0), 1, &g->exp) || !ufunc(PyTuple_GET_ITEM(args[columns], 1), 1, &g->log1p))
        return 0;
    for (int i = 0; i < columns; i++) {
        const Py_buffer *column = view(views, args[i], kinds, 1, 0);
        if (!column || (i && column->shape[0] != g->n)) return 0;
        g->n = column->shape[0];
        g->column[i] = column->buf;
    }
    const Py_buffer *out = view(views, args[columns + 1], "d", 1, 1);
    if (!out) return 0;
    g->out = out->buf;
    g->room = out->shape[0];
    return 1;
}

/* Whether numbers are such that nothing overflows. */
static int fits(int64_t total, int64_t marked, int64_t taken) {
    const int64_t most = (int64_t)1 << 62;
    return total > 0 && total <= most && marked >= 0 && marked <= most && taken >= 0 && taken <= most;
}

/* many(total, marked, taken, loops, out): `none_many`. */
static PyObject *many(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Given g;
    if (!given(&views, args, nargs, 3, "lq", &g) || g.room != g.n) return none(&views);
    const int64_t *total = g.column[0], *marked = g.column[1], *taken = g.column[2];
    for (Py_ssize_t i = 0; i < g.n; i++) {
        if (!fits(total[i], marked[i], taken[i])) return none(&views);
        g.out[i] = (double)none_of(&g.log1p, total[i], marked[i], taken[i]);
    }
    return done(&views, g.n);
}

/* runs(total, marked, first, count, loops, out): `none_runs`. */
static PyObject *runs(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Given g;
    if (!given(&views, args, nargs, 4, "lq", &g)) return none(&views);
    const int64_t *total = g.column[0], *marked = g.column[1], *first = g.column[2], *count = g.column[3];
    Py_ssize_t at = 0;
    for (Py_ssize_t i = 0; i < g.n; i++) {
        if (!fits(total[i], marked[i], first[i]) || count[i] < 0 || count[i] > g.room - at) return none(&views);
        Long chance = none_of(&g.log1p, total[i], marked[i], first[i]);
        for (int64_t k = first[i], stop = k + count[i]; k < stop; k++) {
            g.out[at++] = (double)chance;
            int64_t left = total[i] - marked[i] - k, of = total[i] - k;
            chance *= (Long)(left > 0 ? left : 0) / (Long)(of > 1 ? of : 1);
        }
    }
    return at == g.room ? done(&views, g.n) : none(&views);
}

/* real(total, marked, taken, loops, out): `none_real`. */
static PyObject *real(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Given g;
    if (!given(&views, args, nargs, 3, "d", &g) || g.room != g.n) return none(&views);
    const double *total = g.column[0], *marked = g.column[1], *taken = g.column[2];
    for (Py_ssize_t i = 0; i < g.n; i++) {
        double few = min2(marked[i], taken[i]), many = max2(marked[i], taken[i]), room = total[i] - few - many;
        double found = few > 0.0 ? 0.0 : 1.0;
        if (few > 0.0 && room >= 0.0 && few * one(&g.log1p, -many / total[i]) > -40.0) {
            if (room >= 64.0) found = one(&g.exp, log_none(&g.log1p, total[i], many, few));
            else {
                found = 1.0;
                for (double j = 0.0; j < marked[i]; j += 1.0) found *= (total[i] - taken[i] - j) / (total[i] - j);
            }
        }
        g.out[i] = found;
    }
    return done(&views, g.n);
}

/* Values and their probabilities, `Atoms` in Python: one's own, or those of two arrays. */
typedef struct {
    int64_t *x;
    double *p;
    Py_ssize_t n, room;
    int parts; /* that have been put together */
} Atoms;

typedef struct {
    double *at; /* zeros */
    int64_t room;
} Dense;

static int add(Atoms *to, int64_t x, double p) {
    if (to->n == to->room) {
        Py_ssize_t room = to->room ? 2 * to->room : 64;
        int64_t *more_x = realloc(to->x, room * sizeof(int64_t));
        if (more_x) to->x = more_x;
        double *more_p = realloc(to->p, room * sizeof(double));
        if (more_p) to->p = more_p;
        if (!more_x || !more_p) return 0;
        to->room = room;
    }
    to->x[to->n] = x;
    to->p[to->n++] = p;
    return 1;
}

/* Zeros up to the value `most`. */
static int reach(Dense *dense, int64_t most) {
    if (most < 0 || most > (int64_t)1 << 26) return 0;
    if (most < dense->room) return 1;
    double *more = calloc(2 * most + 1, sizeof(double));
    if (!more) return 0;
    free(dense->at);
    *dense = (Dense){more, 2 * most + 1};
    return 1;
}

/* What `merged` leaves of the values from `least` on up to `most`, and zeros again. */
static int taken_out(Dense *dense, int64_t least, int64_t most, Atoms *to) {
    int fits = 1;
    for (int64_t x = least; x <= most; x++) {
        if (dense->at[x] > NEVER) fits &= add(to, x, dense->at[x]);
        dense->at[x] = 0.0;
    }
    return fits;
}

/* `merged`, in place. */
static int merged(Atoms *a, Dense *dense) {
    if (!a->n) return 1;
    int64_t least = a->x[0], most = a->x[0];
    for (Py_ssize_t i = 1; i < a->n; i++) least = a->x[i] < least ? a->x[i] : least, most = a->x[i] > most ? a->x[i] : most;
    if (least < 0 || !reach(dense, most)) return 0;
    for (Py_ssize_t i = 0; i < a->n; i++) dense->at[a->x[i]] += a->p[i];
    a->n = 0;
    return taken_out(dense, least, most, a);
}

/* Appends the `added` of `first`, its probabilities times `chance`, and `second`, ascending. */
static int add_sums(const Atoms *first, double chance, const Atoms *second, Dense *dense, Atoms *to) {
    int fits = 1;
    to->parts++;
    if (!first->n || !second->n) return 0;
    if (first->n == 1 || second->n == 1) {
        for (Py_ssize_t i = 0; i < first->n; i++)
            for (Py_ssize_t j = 0; j < second->n; j++)
                fits &= add(to, first->x[i] + second->x[j], first->p[i] * chance * second->p[j]);
        return fits;
    }
    int64_t least = first->x[0] + second->x[0], most = first->x[first->n - 1] + second->x[second->n - 1];
    if (least < 0 || !reach(dense, most)) return 0;
    for (Py_ssize_t i = 0; i < first->n; i++) {
        double p = first->p[i] * chance, *at = dense->at + first->x[i];
        for (Py_ssize_t j = 0; j < second->n; j++) at[second->x[j]] += p * second->p[j];
    }
    return taken_out(dense, least, most, to);
}

/* The arrays of a tuple (values, probabilities, ..), as long as it lives. */
static int atoms(PyObject *pair, Atoms *found) {
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) < 2) return 0;
    intptr_t n, m;
    const void *x = numbers(PyTuple_GET_ITEM(pair, 0), 1, &n), *p = numbers(PyTuple_GET_ITEM(pair, 1), 0, &m);
    if (!x || !p || n != m) return 0;
    *found = (Atoms){(int64_t *)x, (double *)p, n, 0, 0};
    return 1;
}

enum { BLOCKS = 4096 }; /* the most kept ones */

/* One footprint of `joined`: from the states `before`, by kept blocks, to those `after`. */
static int footprint(PyObject *one, PyObject *draws, long long left, long long keep, int last, Atoms *before, Atoms *after,
                     Dense *dense) {
    long long count, step;
    PyObject *powers, *blocks;
    if (!PyArg_ParseTuple(one, "LLOO", &count, &step, &powers, &blocks)) return 0;
    int fits = 1;
    for (long long taken = 0; fits && taken <= keep; taken++) {
        Atoms *from = &before[taken], draw, block;
        if (!from->parts) continue;
        PyObject *table = PyObject_CallFunction(draws, "LLL", left, keep - taken, count);
        const double *of = NULL;
        intptr_t room = 0;
        fits = table && (from->parts == 1 || merged(from, dense)) && atoms(table, &draw) && draw.n &&
               (powers == Py_None ? PyList_Check(blocks) : (of = numbers(powers, 0, &room)) != NULL) &&
               draw.x[draw.n - 1] - draw.x[0] == draw.n - 1 && draw.x[0] >= 0 &&
               draw.x[draw.n - 1] < (of ? room : PyList_GET_SIZE(blocks)) && taken + draw.x[draw.n - 1] <= keep;
        if (fits && of && last) {
            after[0].parts++;
            for (Py_ssize_t i = 0; i < from->n; i++)
                for (Py_ssize_t j = 0; j < draw.n; j++)
                    fits &= add(&after[0], from->x[i] + draw.x[j] * step, from->p[i] * (draw.p[j] * of[draw.x[j]]));
        } else {
            for (Py_ssize_t j = 0; fits && j < draw.n; j++) {
                int64_t kept = draw.x[j], x = kept * step;
                double surely = 1.0;
                block = (Atoms){&x, &surely, 1, 0, 0};
                fits = (of || atoms(PyList_GET_ITEM(blocks, kept), &block)) &&
                       add_sums(from, draw.p[j] * (of ? of[kept] : 1.0), &block, dense, &after[last ? 0 : taken + kept]);
            }
        }
        Py_XDECREF(table);
    }
    return fits;
}

/* joined(footprints, blocks, keep, none, draws): `joined` of `chances_numpy.py`, the probabilities of 0, 1, .. as bytes. */
static PyObject *joined(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 5 || !PyList_Check(args[0])) Py_RETURN_NONE;
    long long left = PyLong_AsLongLong(args[1]), keep = PyLong_AsLongLong(args[2]);
    double none = PyFloat_AsDouble(args[3]);
    if (PyErr_Occurred()) return NULL;
    Py_ssize_t n = PyList_GET_SIZE(args[0]);
    if (keep < 0 || keep > BLOCKS || !n) Py_RETURN_NONE;
    Atoms *states = calloc(2 * (keep + 1), sizeof(Atoms)), *before = states, *after = states + keep + 1;
    Dense dense = {NULL, 0};
    int fits = states && add(&before[0], 0, none);
    if (fits) before[0].parts = 1;
    for (Py_ssize_t i = 0; fits && i < n; i++) {
        PyObject *one = PyList_GET_ITEM(args[0], i);
        fits = footprint(one, args[4], left, keep, i == n - 1, before, after, &dense);
        if (fits) left -= PyLong_AsLongLong(PyTuple_GET_ITEM(one, 0));
        for (long long j = 0; j <= keep; j++) before[j].n = before[j].parts = 0;
        Atoms *other = before;
        before = after, after = other;
    }
    PyObject *found = NULL;
    int64_t most = -1;
    for (Py_ssize_t i = 0; fits && i < before[0].n; i++) {
        most = before[0].x[i] > most ? before[0].x[i] : most;
        fits = before[0].x[i] >= 0;
    }
    if (fits && most >= 0 && most < (int64_t)1 << 26 && (found = PyBytes_FromStringAndSize(NULL, (most + 1) * 8))) {
        double *p = (double *)PyBytes_AS_STRING(found);
        memset(p, 0, (most + 1) * 8);
        for (Py_ssize_t i = 0; i < before[0].n; i++) p[before[0].x[i]] += before[0].p[i];
    }
    for (long long j = 0; states && j < 2 * (keep + 1); j++) free(states[j].x), free(states[j].p);
    free(states);
    free(dense.at);
    if (found || PyErr_Occurred()) return found;
    Py_RETURN_NONE;
}

/* x / step, in 32 bits if that will do: it is quicker. */
static int64_t quotient(int64_t x, int64_t step) {
    return step == 1 ? x : (x | step) >> 32 ? x / step : (int64_t)((uint32_t)x / (uint32_t)step);
}

/* placed(bands, step, out): `placed` of `chances_numpy.py`. */
static PyObject *placed(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    const Py_buffer *out = nargs == 3 && PyList_Check(args[0]) ? view(&views, args[2], "d", 2, 1) : NULL;
    long long step = out ? PyLong_AsLongLong(args[1]) : 0;
    if (step < 1) {
        PyErr_Clear();
        return none(&views);
    }
    int64_t kinds = out->shape[0], size = out->shape[1];
    double *found = out->buf, *next = calloc(kinds * size + 1, sizeof(double)); /* what goes to the next place */
    int fits = next && !(size & (size - 1));
    for (Py_ssize_t i = 0; fits && i < PyList_GET_SIZE(args[0]); i++) {
        PyObject *band = PyList_GET_ITEM(args[0], i), *pair;
        Atoms one;
        long long height, kind;
        double share;
        fits = PyArg_ParseTuple(band, "OLLd", &pair, &height, &kind, &share) && atoms(pair, &one) && kind >= 0 &&
               kind < kinds;
        double *to = found + kind * size, *to_next = next + kind * size;
        for (Py_ssize_t j = 0; fits && j < one.n; j++) {
            int64_t x = one.x[j] * height, place = quotient(x, step), rest = x - place * step;
            double p = one.p[j] * share;
            if (!(fits = x >= 0)) break;
            if (rest) {
                double part = (double)rest / (double)step;
                to[place & (size - 1)] += p * (1.0 - part);
                to_next[(place + 1) & (size - 1)] += p * part;
            } else to[place & (size - 1)] += p;
        }
    }
    for (int64_t i = 0; fits && i < kinds * size; i++) found[i] += next[i];
    if (!fits) memset(found, 0, kinds * size * sizeof(double));
    free(next);
    if (PyErr_Occurred()) {
        release(&views);
        return NULL;
    }
    return fits ? done(&views, kinds) : none(&views);
}

/* gathered(shares, height, inner, known, ask): `gathered` of `chances_numpy.py`. */
static PyObject *gathered(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 5 || !PyList_Check(args[0]) || !PyDict_Check(args[3])) Py_RETURN_NONE;
    Py_ssize_t n = PyList_GET_SIZE(args[0]);
    PyObject *found = PyList_New(n), *name = PyUnicode_FromString("_joined"), *none = PyLong_FromLong(0), *one = PyLong_FromLong(1);
    int fits = found && name && none && one;
    for (Py_ssize_t i = 0; fits && i < n; i++) {
        PyObject *at, *classes, *share, *known = NULL;
        int partial, certain;
        fits = PyArg_ParseTuple(PyList_GET_ITEM(args[0], i), "OOOpp", &at, &classes, &share, &partial, &certain);
        if (!fits) break;
        PyObject *asked = PyTuple_Pack(3, classes, partial ? args[1] : one, certain ? none : args[2]);
        PyObject *key = asked ? PyTuple_Pack(2, name, asked) : NULL;
        if (key && (known = PyDict_GetItemWithError(args[3], key))) Py_INCREF(known);
        else if (key && !PyErr_Occurred()) known = PyObject_CallObject(args[4], asked);
        PyObject *band = known ? PyTuple_Pack(4, known, partial ? one : args[1], at, share) : NULL;
        if (band) PyList_SET_ITEM(found, i, band);
        fits = band != NULL;
        Py_XDECREF(known), Py_XDECREF(key), Py_XDECREF(asked);
    }
    Py_XDECREF(name), Py_XDECREF(none), Py_XDECREF(one);
    if (!fits) Py_CLEAR(found);
    return found;
}

/* The sum of NumPy: of up to 128 numbers eight at once, of more by halves. */
static double total(const double *x, Py_ssize_t n) {
    if (n > 128) {
        Py_ssize_t half = n / 2 - n / 2 % 8;
        return total(x, half) + total(x + half, n - half);
    }
    double eight[8], sum = -0.0;
    Py_ssize_t i = 8;
    if (n >= 8) {
        memcpy(eight, x, sizeof(eight));
        for (; i < n - n % 8; i += 8)
            for (int j = 0; j < 8; j++) eight[j] += x[i + j];
        sum = ((eight[0] + eight[1]) + (eight[2] + eight[3])) + ((eight[4] + eight[5]) + (eight[6] + eight[7]));
    } else i = 0;
    for (; i < n; i++) sum += x[i];
    return sum;
}

/* Adds count * x of all (count, x) of a list to the n numbers of `to`. */
static int add_times(PyObject *list, double *to, Py_ssize_t n) {
    if (!PyList_Check(list)) return 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        long long count;
        intptr_t m = 0;
        PyObject *array;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "LO", &count, &array)) return 0;
        const double *x = numbers(array, 0, &m);
        if (!x || m != n) return 0;
        for (Py_ssize_t j = 0; j < n; j++) to[j] += (double)count * x[j];
    }
    return 1;
}

/* fullest(bands, loops): `fullest` of `chances_numpy.py`, NaN where none is. */
static PyObject *fullest(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Ufunc exp_of;
    if (nargs != 2 || !PyList_Check(args[0]) || !PyTuple_Check(args[1]) || PyTuple_GET_SIZE(args[1]) < 1 ||
        !ufunc(PyTuple_GET_ITEM(args[1], 0), 1, &exp_of))
        Py_RETURN_NONE;
    double *whole = NULL, top = -INFINITY, found = NAN;
    Py_ssize_t n = 0;
    int fits = 1;
    for (int pass = 0; fits && pass < 2; pass++) { /* how many numbers, then what they are */
        Py_ssize_t at = 0;
        for (Py_ssize_t i = 0; fits && i < PyList_GET_SIZE(args[0]); i++) {
            PyObject *first, *all, *inside;
            intptr_t m = 0;
            const double *x = NULL;
            fits = PyArg_ParseTuple(PyList_GET_ITEM(args[0], i), "OOO", &first, &all, &inside) && (x = numbers(first, 0, &m));
            if (fits && pass) {
                memcpy(whole + at, x, m * sizeof(double));
                fits = add_times(all, whole + at, m);
                memcpy(whole + n + at, whole + at, m * sizeof(double));
                fits = fits && add_times(inside, whole + n + at, m);
            }
            at += m;
        }
        if (pass) break;
        n = at;
        fits = fits && n && (whole = malloc(4 * n * sizeof(double)));
    }
    for (Py_ssize_t i = 0; fits && i < n; i++) top = whole[i] > top ? whole[i] : top;
    if (fits && top > -INFINITY) {
        for (Py_ssize_t i = 0; i < 2 * n; i++) whole[i] -= top;
        all_one(&exp_of, whole, 2 * n, whole + 2 * n);
        found = total(whole + 3 * n, n) / total(whole + 2 * n, n);
    }
    free(whole);
    if (PyErr_Occurred()) return NULL;
    if (!fits) Py_RETURN_NONE;
    return PyFloat_FromDouble(found);
}

MODULE(chances, DOOR(many), DOOR(runs), DOOR(real), DOOR(joined), DOOR(placed), DOOR(gathered), DOOR(fullest))
