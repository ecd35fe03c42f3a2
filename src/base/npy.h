/* NumPy's .npy, version 1.0, C order, little endian. Types by NumPy's descriptor ("<f4", "<f8",
 * "<f2", "|i1", "|u1", "<i4", "<i8", "|b1"); bf16 travels as "<V2". */
#ifndef BASE_NPY_H
#define BASE_NPY_H

#include "base/arena.h"
#include "base/err.h"

#define NPY_MAX_RANK 16

struct npy {
    char descr[8];
    size_t item; /* bytes an element */
    size_t rank;
    int64_t shape[NPY_MAX_RANK];
    const void *data; /* in the arena when read; borrowed when written */
    size_t bytes;
};

bool npy_read(const char *path, size_t max, struct arena *a, struct npy *out, struct err *err);
bool npy_parse(str content, struct npy *out, struct err *err); /* data points into content */
bool npy_write(const char *path, const struct npy *in, struct err *err);

#endif
