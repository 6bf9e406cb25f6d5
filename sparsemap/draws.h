/* Random numbers as NumPy's Generator draws them, from the same stream and in the same order. */
#ifndef SPARSEMAP_DRAWS_H
#define SPARSEMAP_DRAWS_H

#include <stdint.h>

typedef struct { /* numpy/random/bitgen.h */
    void *state;
    uint64_t (*next_uint64)(void *);
    uint32_t (*next_uint32)(void *);
    double (*next_double)(void *);
    uint64_t (*next_raw)(void *);
} Bits;

/* The stream of a Generator, which has to stay meanwhile; NULL if it is another one, whose numbers may be its own. */
static inline const Bits *stream_of(PyObject *rng) {
    if (strcmp(Py_TYPE(rng)->tp_name, "numpy.random._generator.Generator")) return NULL;
    PyObject *source = PyObject_GetAttrString(rng, "bit_generator");
    PyObject *capsule = source ? PyObject_GetAttrString(source, "capsule") : NULL;
    const Bits *found = capsule ? PyCapsule_GetPointer(capsule, "BitGenerator") : NULL;
    PyErr_Clear();
    Py_XDECREF(capsule);
    Py_XDECREF(source);
    return found;
}

/* `rng.random(count)` */
static inline void uniform(const Bits *bits, double *out, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) out[i] = bits->next_double(bits->state);
}

/* A number of `rng.integers(0, most, endpoint=True)`: Lemire's method on 32 bits (ACM Trans. Model. Comput. Simul. 2019). */
static inline int64_t whole(const Bits *bits, uint32_t most) {
    if (!most) return 0;
    if (most == UINT32_MAX) return bits->next_uint32(bits->state);
    uint32_t count = most + 1;
    uint64_t drawn = (uint64_t)bits->next_uint32(bits->state) * count;
    if ((uint32_t)drawn < count)
        for (uint32_t least = (UINT32_MAX - most) % count; (uint32_t)drawn < least;)
            drawn = (uint64_t)bits->next_uint32(bits->state) * count;
    return (int64_t)(drawn >> 32);
}

/* `low + rng.integers(0, most, size=count, endpoint=True)` */
static inline void wholes(const Bits *bits, int64_t *out, Py_ssize_t count, int64_t low, int64_t most) {
    for (Py_ssize_t i = 0; i < count; i++) out[i] = low + whole(bits, (uint32_t)most);
}

/* `rng.permutation(count)`, which draws bits until they are a number up to i. */
static inline void permutation(const Bits *bits, int64_t *out, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) out[i] = i;
    for (uint32_t i = (uint32_t)count - 1, mask, j; count && i > 0; i--) {
        for (mask = i; mask & (mask + 1);) mask |= mask >> 1;
        while ((j = bits->next_uint32(bits->state) & mask) > i) {}
        int64_t other = out[j];
        out[j] = out[i], out[i] = other;
    }
}

#endif
