/* Hypergeometric probabilities of `hypergeometric.py`, to the last bit: in long double, as NumPy has them, or in double by
 * NumPy's own loops. A function returns None where an array is not what it knows. */
#include "../../sparsemap/native.h"

#include <math.h>

#include "../../sparsemap/loops.h"

typedef long double Long;

enum { LONG_TERMS = 20, TERMS = 15 };

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

MODULE(chances, DOOR(many), DOOR(runs), DOOR(real))
