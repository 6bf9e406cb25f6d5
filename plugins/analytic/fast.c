/* The loops of the tables over arrays for which NumPy needs many calls: the same numbers to the last bit.
 *
 * Every function takes arrays that Python has made, and writes into some of them. It returns None where an array is not
 * what it knows (type, dimensions, memory in one piece); the caller then does it in NumPy. Sums and products are taken in
 * NumPy's order; logarithms and powers stay in Python. Built without contraction of multiply and add (setup.py).
 */
#include "../../sparsemap/native.h"

#include <math.h>

#include "lookup.h"

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

/* The place of a key, or the first one that is free for it; -1: there is none. */
static int64_t placed(const int64_t *places, int64_t size, int bits, int64_t key) {
    uint64_t at = ((uint64_t)key * MIX) >> (64 - bits), mask = (uint64_t)size - 1;
    for (int64_t tries = 0; tries < size; tries++, at = (at + 1) & mask)
        if (places[2 * at] == key || !places[2 * at]) return (int64_t)at;
    return -1;
}

/* enter(keys, places, count, rows, new): the row of every key; those that are new get the next rows from `count` on, and `new` says
 * where each of them comes first. How many these are; where places got few, -1 less. */
static PyObject *enter(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    enum { SPARSE = 4 };
    Views views = {.count = 0};
    Py_buffer *keys, *places, *rows, *new;
    if (nargs != 5 || !(keys = view(&views, args[0], "lq", 1, 0)) || !(places = view(&views, args[1], "lq", 2, 1)) ||
        !(rows = view(&views, args[3], "lq", 1, 1)) || !(new = view(&views, args[4], "lq", 1, 1)))
        return none(&views);
    Py_ssize_t count = PyLong_AsSsize_t(args[2]), n = keys->shape[0], size = places->shape[0], found = 0;
    if (PyErr_Occurred()) PyErr_Clear();
    int bits = bits_of(size);
    if (!bits || places->shape[1] != 2 || count < 0 || rows->shape[0] != n || new->shape[0] > n) return none(&views);
    int64_t *place = places->buf;
    for (Py_ssize_t i = 0; i < n; i++) {
        int64_t key = ((const int64_t *)keys->buf)[i], at = placed(place, size, bits, key);
        if (at < 0) return done(&views, -1 - found);
        if (!place[2 * at]) {
            if ((count + found + 1) * SPARSE > size || found == new->shape[0]) return done(&views, -1 - found);
            place[2 * at] = key, place[2 * at + 1] = count + found;
            ((int64_t *)new->buf)[found++] = i;
        }
        ((int64_t *)rows->buf)[i] = place[2 * at + 1];
    }
    return done(&views, found);
}

/* place(pairs, places): keys with their rows (n, 2) find their places. */
static PyObject *place(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *pairs, *places;
    if (nargs != 2 || !(pairs = view(&views, args[0], "lq", 2, 0)) || !(places = view(&views, args[1], "lq", 2, 1))) return none(&views);
    Py_ssize_t n = pairs->shape[0], size = places->shape[0];
    int bits = bits_of(size);
    if (!bits || places->shape[1] != 2 || pairs->shape[1] != 2) return none(&views);
    for (Py_ssize_t i = 0; i < n; i++) {
        const int64_t *own = (const int64_t *)pairs->buf + 2 * i;
        int64_t at = placed(places->buf, size, bits, own[0]);
        if (at < 0) return none(&views);
        memcpy((int64_t *)places->buf + 2 * at, own, 2 * sizeof *own);
    }
    return done(&views, n);
}

/* classes(out, bounds, order, sizes, options, ends, index): the class (B,) of every design (bound_classes.py): its tile next to the
 * outermost level among `options`, those of dimension d up to ends[d], ascending, and the loop innermost around it. */
static PyObject *classes(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Py_buffer *out, *bounds, *orders, *sizes, *options, *stops, *indices;
    if (nargs != 7 || !(out = view(&views, args[0], "lq", 1, 1)) || !(bounds = view(&views, args[1], "d", 3, 0)) ||
        !(orders = view(&views, args[2], "b", 3, 0)) || !(sizes = view(&views, args[3], "d", 1, 0)) ||
        !(options = view(&views, args[4], "d", 1, 0)) || !(stops = view(&views, args[5], "lq", 1, 0)) ||
        !(indices = view(&views, args[6], "lq", 2, 0)))
        return none(&views);
    Py_ssize_t D = bounds->shape[1], B = bounds->shape[2];
    const double *bound = bounds->buf, *size = sizes->buf, *option = options->buf;
    const int64_t *ends = stops->buf, *index = indices->buf;
    const int8_t *order = orders->buf;
    if (!bounds->shape[0] || !orders->shape[0] || orders->shape[1] != D || orders->shape[2] != B || out->shape[0] != B ||
        sizes->shape[0] != D || stops->shape[0] != D || indices->shape[1] != D)
        return none(&views);
    for (Py_ssize_t d = 0; d < D; d++)
        if (ends[d] <= (d ? ends[d - 1] : 0) || ends[d] > options->shape[0]) return none(&views);
    for (Py_ssize_t b = 0; b < B; b++) {
        int64_t place = 0, loop = 0;
        int right = 1;
        for (Py_ssize_t d = 0; d < D; d++) {
            double inside = size[d] / bound[d * B + b];
            int64_t first = d ? ends[d - 1] : 0, low = first, high = ends[d];
            while (low < high) {
                int64_t middle = (low + high) / 2;
                if (option[middle] < inside) low = middle + 1;
                else high = middle;
            }
            low = low < ends[d] ? low : ends[d] - 1;
            right &= option[low] == inside;
            place = place * (ends[d] - first) + low - first;
        }
        for (Py_ssize_t p = 0; p < D; p++) {
            int64_t d = order[p * B + b];
            if (d < 0 || d >= D) return none(&views);
            if (bound[d * B + b] > 1.0) loop = d;
        }
        if (place >= indices->shape[0]) return none(&views);
        ((int64_t *)out->buf)[b] = right ? index[place * D + loop] : -1;
    }
    return done(&views, B);
}

/* How often a prime divides a whole number, which is divided by it. */
static int64_t exponent(int64_t *number, int64_t prime) {
    int64_t count = 0;
    for (; *number % prime == 0; count++) *number /= prime;
    return count;
}

/* moved(bounds, order, sizes, wanted, loop, primes, ends, giving): bounds and order (L, D, B) of `sizes` (D, B) get into classes
 * (bound_classes.py), in place: the tiles `wanted` (D, B) with `loop` (B,) around them. `primes` of dimension d are those up to ends[d]; `giving` (L - 1,):
 * the levels in the order in which factors leave them, of which the first takes what comes. */
static PyObject *moved(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    enum { LEVELS = 64 };
    Views views = {.count = 0};
    Py_buffer *bounds, *orders, *sizes, *tiles, *loops, *factors, *stops, *levels;
    if (nargs != 8 || !(bounds = view(&views, args[0], "d", 3, 1)) || !(orders = view(&views, args[1], "b", 3, 1)) ||
        !(sizes = view(&views, args[2], "d", 2, 0)) || !(tiles = view(&views, args[3], "d", 2, 0)) ||
        !(loops = view(&views, args[4], "lq", 1, 0)) || !(factors = view(&views, args[5], "lq", 1, 0)) ||
        !(stops = view(&views, args[6], "lq", 1, 0)) || !(levels = view(&views, args[7], "lq", 1, 0)))
        return none(&views);
    Py_ssize_t L = bounds->shape[0], D = bounds->shape[1], B = bounds->shape[2];
    const double *size = sizes->buf, *wanted = tiles->buf;
    const int64_t *loop = loops->buf, *prime = factors->buf, *ends = stops->buf, *giving = levels->buf;
    if (L < 2 || L > LEVELS || orders->shape[0] != L || orders->shape[1] != D || orders->shape[2] != B || sizes->shape[0] != D ||
        sizes->shape[1] != B || tiles->shape[0] != D || tiles->shape[1] != B || loops->shape[0] != B || stops->shape[0] != D || levels->shape[0] != L - 1)
        return none(&views);
    for (Py_ssize_t d = 0; d < D; d++)
        if (ends[d] < (d ? ends[d - 1] : 0) || ends[d] > factors->shape[0]) return none(&views);
    for (Py_ssize_t i = 0; i < factors->shape[0]; i++)
        if (prime[i] < 2) return none(&views);
    for (Py_ssize_t g = 0; g < L - 1; g++)
        if (giving[g] < 1 || giving[g] >= L) return none(&views);
    for (Py_ssize_t i = 0; i < L * D * B; i++) { /* what does not divide its size is NumPy's */
        double whole = ((double *)bounds->buf)[i], of = size[i % (D * B)];
        if (!(whole >= 1.0 && of < 9e15) || of / whole != floor(of / whole) || whole != floor(whole)) return none(&views);
    }
    for (Py_ssize_t b = 0; b < B; b++) {
        for (Py_ssize_t d = 0; d < D; d++) {
            double *bound = (double *)bounds->buf + d * B + b, inside = 1.0;
            int64_t rest[LEVELS], made[LEVELS], tile = (int64_t)wanted[d * B + b];
            for (Py_ssize_t g = 1; g < L; g++) rest[g] = (int64_t)bound[g * D * B], made[g] = 1;
            for (int64_t i = d ? ends[d - 1] : 0; tile > 0 && i < ends[d]; i++) {
                int64_t held[LEVELS], spare = -exponent(&tile, prime[i]);
                for (Py_ssize_t g = 1; g < L; g++) spare += held[g] = exponent(&rest[g], prime[i]);
                if (spare < 0) held[giving[0]] -= spare, spare = 0;
                for (Py_ssize_t at = 0; at < L - 1; at++) {
                    int64_t *own = &held[giving[at]], gone = spare < *own ? spare : *own;
                    *own -= gone, spare -= gone;
                }
                for (Py_ssize_t g = 1; g < L; g++)
                    for (int64_t k = 0; k < held[g]; k++) made[g] *= prime[i];
            }
            for (Py_ssize_t g = 1; g < L; g++) bound[g * D * B] = (double)made[g], inside *= (double)made[g];
            bound[0] = size[d * B + b] / inside;
        }
        int8_t *order = (int8_t *)orders->buf + b;
        for (Py_ssize_t p = 0, found = 0; p < D; p++) {
            found |= order[p * B] == loop[b];
            if (found) order[p * B] = p + 1 < D ? order[(p + 1) * B] : (int8_t)loop[b];
        }
    }
    return done(&views, B);
}

/* cheapest(found, drawn, at, within, counts, sizes, energy, way): of some tiles inside another one the cheapest (B,), the first of
 * equal ones (bound_classes.py). Numbers `drawn` (D, B, n) from 0 to 1 pick a divisor of each extent `at` (D, B): `within` has places
 * of divisors of an option, one option after the other, `counts` how many, `sizes` (D,) how many options a dimension has. */
static PyObject *cheapest(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    enum { DIMS = 64 };
    Views views = {.count = 0};
    Py_buffer *out, *numbers, *places, *tables, *lengths, *shape, *prices, *ways;
    if (nargs != 8 || !(out = view(&views, args[0], "lq", 1, 1)) || !(numbers = view(&views, args[1], "d", 3, 0)) ||
        !(places = view(&views, args[2], "lq", 2, 0)) || !(tables = view(&views, args[3], "lq", 1, 0)) ||
        !(lengths = view(&views, args[4], "lq", 1, 0)) || !(shape = view(&views, args[5], "lq", 1, 0)) ||
        !(prices = view(&views, args[6], "f", 2, 0)) || !(ways = view(&views, args[7], "lq", 1, 0)))
        return none(&views);
    Py_ssize_t D = numbers->shape[0], B = numbers->shape[1], n = numbers->shape[2], K = prices->shape[0], tiles = 1;
    const double *drawn = numbers->buf;
    const int64_t *at = places->buf, *within = tables->buf, *counts = lengths->buf, *sizes = shape->buf, *way = ways->buf;
    const float *energy = prices->buf;
    if (D < 1 || D > DIMS || n < 1 || out->shape[0] != B || places->shape[0] != D || places->shape[1] != B ||
        shape->shape[0] != D || ways->shape[0] != B)
        return none(&views);
    Py_ssize_t options = 0, entries = 0;
    for (Py_ssize_t d = 0; d < D; d++) {
        if (sizes[d] < 1 || sizes[d] > 1 << 20) return none(&views);
        options += sizes[d], entries += sizes[d] * sizes[d], tiles *= sizes[d];
        if (tiles > prices->shape[1]) return none(&views);
    }
    if (lengths->shape[0] != options || tables->shape[0] != entries || prices->shape[1] != tiles) return none(&views);
    for (Py_ssize_t d = 0, first = 0, start = 0; d < D; start += sizes[d] * sizes[d], first += sizes[d++])
        for (int64_t i = 0; i < sizes[d] * sizes[d]; i++)
            if (within[start + i] < 0 || within[start + i] >= sizes[d] || counts[first + i / sizes[d]] < 1 ||
                counts[first + i / sizes[d]] > sizes[d])
                return none(&views);
    for (Py_ssize_t b = 0; b < B; b++) {
        const int64_t *own[DIMS];
        double many[DIMS];
        if (way[b] < 0 || way[b] >= K) return none(&views);
        for (Py_ssize_t d = 0, first = 0, start = 0; d < D; start += sizes[d] * sizes[d], first += sizes[d++]) {
            int64_t i = at[d * B + b];
            if (i < 0 || i >= sizes[d]) return none(&views);
            own[d] = within + start + i * sizes[d], many[d] = (double)counts[first + i];
        }
        const float *price = energy + way[b] * tiles;
        int64_t best = -1;
        for (Py_ssize_t k = 0; k < n; k++) {
            int64_t place = 0;
            for (Py_ssize_t d = 0; d < D; d++) {
                double number = drawn[(d * B + b) * n + k];
                if (!(number >= 0.0 && number < 1.0)) return none(&views);
                place = place * sizes[d] + own[d][(int64_t)(number * many[d])];
            }
            if (best < 0 || price[place] < price[best]) best = place;
        }
        ((int64_t *)out->buf)[b] = best;
    }
    return done(&views, B);
}

MODULE(fast, DOOR(fingerprint), DOOR(enter), DOOR(place), DOOR(classes), DOOR(moved), DOOR(cheapest))
