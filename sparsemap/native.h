/* What the modules in C share: arrays as buffers, and the module itself (`native.py`). */
#ifndef SPARSEMAP_NATIVE_H
#define SPARSEMAP_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A function for several numbers at a time, compiled for two kinds of processor. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define WIDE __attribute__((target_clones("avx2", "default"))) /* without fused operations: the same numbers */
#else
#define WIDE
#endif

#ifndef HELD
#define HELD 64 /* arrays of a call */
#endif

typedef struct {
    Py_buffer held[HELD];
    int count;
} Views;

static inline void release(Views *views) {
    while (views->count > 0) PyBuffer_Release(&views->held[--views->count]);
}

/* The buffer of an array of one of the `kinds` (formats of buffers) with so many dimensions, any if 0; NULL if it is none. */
static inline Py_buffer *buffer(Views *views, PyObject *array, const char *kinds, int ndim, int flags) {
    if (views->count == HELD) return NULL;
    Py_buffer *found = &views->held[views->count];
    if (PyObject_GetBuffer(array, found, flags | PyBUF_FORMAT) < 0) {
        PyErr_Clear();
        return NULL;
    }
    views->count++;
    const char *kind = found->format;
    if (!kind || !kind[0] || kind[1] || !strchr(kinds, kind[0]) || (ndim && found->ndim != ndim)) return NULL;
    return strchr("bhf?", kind[0]) || found->itemsize == 8 ? found : NULL;
}

/* The same of one in one piece. */
static inline Py_buffer *view(Views *views, PyObject *array, const char *kinds, int ndim, int writes) {
    return buffer(views, array, kinds, ndim, PyBUF_C_CONTIGUOUS | (writes ? PyBUF_WRITABLE : 0));
}

static inline PyObject *none(Views *views) {
    release(views);
    Py_RETURN_NONE;
}

static inline PyObject *done(Views *views, Py_ssize_t number) {
    release(views);
    return PyLong_FromSsize_t(number);
}

#ifndef SOURCES
#define SOURCES "" /* else their checksum, see native.py */
#endif

#define DOOR(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

/* The module NAME with its doors. */
#define MODULE(name, ...)                                                                             \
    static PyMethodDef doors[] = {__VA_ARGS__, {0}};                                                  \
    static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, #name, NULL, -1, doors};               \
    PyMODINIT_FUNC PyInit_##name(void) {                                                              \
        PyObject *made = PyModule_Create(&module);                                                    \
        if (made && PyModule_AddStringConstant(made, "sources", SOURCES) < 0) Py_CLEAR(made);         \
        return made;                                                                                  \
    }

#endif
