/* Tables of `occupancy/lookup.py`: keys of rows of whole numbers, and where the rows are. */
#ifndef SPARSEMAP_LOOKUP_H
#define SPARSEMAP_LOOKUP_H

#include <stdint.h>

static const uint64_t MIX = 0x9E3779B97F4A7C15u;
enum { FACTORS = 64 }; /* components of a fingerprint */

typedef struct {
    const int64_t *places; /* a key and its row each; key 0: none */
    const double *data;    /* rows of `width` numbers */
    int64_t size, rows, width;
    int bits;
} Lookup;

/* The power of two that a number is; 0 if it is none from 2 to 2^40. */
static inline int bits_of(int64_t size) {
    int bits = 0;
    while (bits < 40 && ((int64_t)1 << bits) < size) bits++;
    return ((int64_t)1 << bits) == size ? bits : 0;
}

/* Adds the components of a key; whether they are numbers that an int64 holds. */
static inline int component(uint64_t *key, double value, uint64_t factor) {
    if (!(value > -9.2e18 && value < 9.2e18)) return 0;
    *key += (uint64_t)(int64_t)value * factor;
    return 1;
}

/* The row of a key; -1: it has none yet. */
static inline int64_t row_of(const Lookup *table, uint64_t key) {
    if (!table->size) return -1;
    uint64_t mask = (uint64_t)table->size - 1, place = (key * MIX) >> (64 - table->bits);
    for (int64_t tries = 0; tries < table->size; tries++, place = (place + 1) & mask) {
        uint64_t there = (uint64_t)table->places[2 * place];
        if (there == key) {
            int64_t row = table->places[2 * place + 1];
            return row >= 0 && row < table->rows ? row : -1;
        }
        if (!there) return -1;
    }
    return -1;
}

static inline double cell(const Lookup *table, int column, int64_t row) { return table->data[row * table->width + column]; }

#ifdef Py_PYTHON_H
/* A table from (places, data); whether it is one, with `width` columns unless that is 0. */
static inline int lookup(Views *views, PyObject *places, PyObject *data, int64_t width, Lookup *found) {
    Py_buffer *at = view(views, places, "lq", 2, 0), *rows = at ? view(views, data, "d", 2, 0) : NULL;
    if (!rows || at->shape[1] != 2 || (width && rows->shape[1] != width)) return 0;
    *found = (Lookup){at->buf, rows->buf, at->shape[0], rows->shape[0], rows->shape[1], bits_of(at->shape[0])};
    return found->bits > 0;
}
#endif

#endif
