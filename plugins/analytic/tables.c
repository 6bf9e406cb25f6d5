/* Look-ups in the tables of `occupancy.lookup`, and lists of what they lack. */
#include "kernel.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t MIX = 0x9E3779B97F4A7C15u;

uint64_t fingerprint(const Run *run, Design *x, const double *values, int count, int first) {
    uint64_t key = 0;
    if (first + count > FACTORS) {
        x->odd = 1;
        return 1;
    }
    for (int i = 0; i < count; i++) {
        if (!(values[i] > -9.2e18 && values[i] < 9.2e18)) {
            x->odd = 1; /* numbers that no int64 holds are NumPy's business */
            return 1;
        }
        key += (uint64_t)(int64_t)values[i] * (uint64_t)run->factors[first + i];
    }
    return key | 1;
}

int64_t row_of(const Table *table, uint64_t key) {
    if (!table->size) return -1;
    uint64_t mask = (uint64_t)table->size - 1, place = (key * MIX) >> (64 - table->bits);
    for (int64_t tries = 0; tries < table->size; tries++, place = (place + 1) & mask) {
        uint64_t there = *(const uint64_t *)(table->keys + place * table->key_step);
        if (there == key) {
            int64_t row = *(const int64_t *)(table->rows + place * table->row_step);
            return row >= 0 && row < table->count ? row : -1;
        }
        if (!there) return -1;
    }
    return -1;
}

/* A key will be looked up soon. */
void coming(const Table *table, uint64_t key) {
    if (table->size) prefetch(table->keys + ((key * MIX) >> (64 - table->bits)) * table->key_step);
}

/* Whether a key of a table is on no list yet; it is from then on. */
static int fresh(Run *run, uint64_t key) {
    if (4 * (run->asked_count + 1) > 3 * ((int64_t)1 << run->asked_bits)) {
        int bits = run->asked_bits + 1;
        uint64_t *more = calloc((size_t)1 << bits, sizeof *more);
        if (!more) return run->failed = 1, 0;
        for (int64_t i = 0; i < (int64_t)1 << run->asked_bits; i++) {
            uint64_t old = run->asked[i], place = (old * MIX) >> (64 - bits);
            if (!old) continue;
            while (more[place]) place = (place + 1) & (((uint64_t)1 << bits) - 1);
            more[place] = old;
        }
        free(run->asked);
        run->asked = more;
        run->asked_bits = bits;
    }
    uint64_t place = (key * MIX) >> (64 - run->asked_bits), mask = ((uint64_t)1 << run->asked_bits) - 1;
    for (; run->asked[place]; place = (place + 1) & mask)
        if (run->asked[place] == key) return 0;
    run->asked[place] = key;
    run->asked_count++;
    return 1;
}

/* Puts a row on the list of a table. */
void noted(Run *run, Design *x, Table *table, uint64_t key, const double *values, int count) {
    if (x->odd || !fresh(run, (key ^ (uint64_t)(uintptr_t)table * 0x2545F4914F6CDD1Du) | 1)) return;
    if (count != table->width) {
        x->odd = 1;
        return;
    }
    if (table->lacks == table->room) {
        int64_t room = table->room ? 2 * table->room : 64;
        double *more = realloc(table->lacking, (size_t)room * count * sizeof *more);
        if (!more) {
            run->failed = 1;
            return;
        }
        table->lacking = more;
        table->room = room;
    }
    memcpy(table->lacking + table->lacks++ * count, values, count * sizeof *values);
}

void lacks(Run *run, Design *x, Table *table, uint64_t key, const double *values, int count) {
    x->lacking = 1;
    noted(run, x, table, key, values, count);
}

/* The number of a table of single numbers for these whole ones; 1 where it has none yet. */
double number(Run *run, Design *x, Table *table, const double *values, int count) {
    uint64_t key = fingerprint(run, x, values, count, 0);
    int64_t row = x->odd ? -1 : row_of(table, key);
    if (row >= 0) return cell(table, 0, row);
    lacks(run, x, table, key, values, count);
    return 1.0;
}
