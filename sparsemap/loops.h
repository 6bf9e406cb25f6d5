/* NumPy's own loops, and its ways with numbers: so that the last bits of results are NumPy's. */
#ifndef SPARSEMAP_LOOPS_H
#define SPARSEMAP_LOOPS_H

#include <stdint.h>
#include <string.h>

typedef void (*Inner)(char **, const intptr_t *, const intptr_t *, void *);
typedef struct {
    Inner loop;
    void *data;
} Ufunc;

static inline double max2(double a, double b) { return a > b || a != a ? a : b; }
static inline double min2(double a, double b) { return a < b || a != a ? a : b; }
static inline double positive(double a) { return a > 0.0 ? a : 1.0; }

static inline double two(const Ufunc *f, double a, double b) {
    double out;
    char *at[3] = {(char *)&a, (char *)&b, (char *)&out};
    intptr_t one = 1, steps[3] = {8, 8, 8};
    f->loop(at, &one, steps, f->data);
    return out;
}
static inline double one(const Ufunc *f, double a) {
    double out;
    char *at[2] = {(char *)&a, (char *)&out};
    intptr_t n = 1, steps[2] = {8, 8};
    f->loop(at, &n, steps, f->data);
    return out;
}
/* The same of n numbers a, with one b for all. */
static inline void all_two(const Ufunc *f, const double *a, double b, intptr_t n, double *out) {
    char *at[3] = {(char *)a, (char *)&b, (char *)out};
    intptr_t steps[3] = {8, 0, 8};
    f->loop(at, &n, steps, f->data);
}
static inline void all_one(const Ufunc *f, const double *a, intptr_t n, double *out) {
    char *at[2] = {(char *)a, (char *)out};
    intptr_t steps[2] = {8, 8};
    f->loop(at, &n, steps, f->data);
}

#ifdef Py_PYTHON_H
/* The beginning of NumPy's ufunc objects, which its ABI fixes. */
typedef struct {
    PyObject_HEAD
    int nin, nout, nargs, identity;
    Inner *functions;
    void *const *data;
    int ntypes, reserved;
    const char *name, *types;
} NumpyUfunc;

/* NumPy's loop over doubles of a function of `inputs` numbers: the last bits of its results are those of NumPy. */
static inline int ufunc(PyObject *of, int inputs, Ufunc *found) {
    enum { DOUBLE = 12 };
    const NumpyUfunc *f = (const NumpyUfunc *)of;
    if (strcmp(Py_TYPE(of)->tp_name, "numpy.ufunc") || f->nin != inputs || f->nout != 1 || f->nargs != inputs + 1) return 0;
    for (int i = 0; i < f->ntypes; i++) {
        int fits = 1;
        for (int j = 0; j < f->nargs; j++) fits &= f->types[i * f->nargs + j] == DOUBLE;
        if (!fits) continue;
        *found = (Ufunc){f->functions[i], f->data ? f->data[i] : NULL};
        return 1;
    }
    return 0;
}

/* The beginning of NumPy's arrays and of their types, which its ABI fixes. */
typedef struct {
    PyObject_HEAD
    PyTypeObject *type;
    char kind, letter, order, flags;
    int number;
} NumpyType;
typedef struct {
    PyObject_HEAD
    char *data;
    int ndim;
    intptr_t *shape, *strides;
    PyObject *base;
    const NumpyType *type;
    int flags;
} NumpyArray;

/* The numbers of an array (n,) in one piece of doubles, or of int64 if `whole`; NULL if it is none. A buffer (`native.h`)
 * of it takes longer than few numbers themselves. */
static inline const void *numbers(PyObject *array, int whole, intptr_t *n) {
    enum { LONG = 7, LONGLONG = 9, DOUBLE = 12, ONE_PIECE = 0x101 }; /* and aligned */
    const NumpyArray *a = (const NumpyArray *)array;
    if (strcmp(Py_TYPE(array)->tp_name, "numpy.ndarray") || a->ndim != 1 || (a->flags & ONE_PIECE) != ONE_PIECE) return NULL;
    int number = a->type->number, fits = number == LONGLONG || (number == LONG && sizeof(long) == 8);
    if (a->type->order != '=' || !(whole ? fits : number == DOUBLE)) return NULL;
    *n = a->shape[0];
    return a->data;
}
#endif

#endif
