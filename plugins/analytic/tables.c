/* Look-ups in the tables of `occupancy.lookup`, and lists of what they lack. */
#include "kernel.h"

#include <stdlib.h>
#include <string.h>

uint64_t fingerprint(const Run *run, Design *x, const double *values, int count, int first) {
    uint64_t key = 0;
    if (first + count > FACTORS) {
        x->odd = 1;
        return 1;
    }
    for (int i = 0; i < count; i++)
        if (!component(&key, values[i], (uint64_t)run->factors[first + i])) {
            x->odd = 1; /* which is NumPy's business */
            return 1;
        }
    return key | 1;
}

/* A key will be looked up soon. */
void coming(const Table *table, uint64_t key) {
    const Lookup *known = &table->known;
    if (known->size) prefetch((const char *)(known->places + 2 * ((key * MIX) >> (64 - known->bits))));
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
    int64_t row = x->odd ? -1 : row_of(&table->known, key);
    if (row >= 0) return cell(&table->known, 0, row);
    lacks(run, x, table, key, values, count);
    return 1.0;
}
