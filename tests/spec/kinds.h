/* What tests of the kinds of data share: one task with a tensor of every type, a tensor under one
 * kind, and what is in it. */
#ifndef TESTS_SPEC_KINDS_H
#define TESTS_SPEC_KINDS_H

#include "fixture.h"

#define INPUTS                                                                                     \
    "task t \"T\"\ndim R = 9, C = 257\n"                                                           \
    "in x[R,C] : f32 ~ uniform(0,1)\nin h[R,C] : f16 ~ normal(1,2)\nin b[R,C] : bf16 ~ "           \
    "normal(0,1)\n"                                                                                \
    "in d[R,C] : f64 ~ normal(0,1)\nparam g[C] : f32 ~ ones\nparam z[C] : f32 ~ zeros\n"           \
    "in n[R,C] : i32 ~ randint(-5,5)\nin u[R,C] : u8 ~ randint(0,9)\nin c[R,C] : i8 ~ "            \
    "randint(0,9)\n"                                                                               \
    "in l[R,C] : i64 ~ randint(0,9)\nin m[R,C] : bool ~ bernoulli(0.25)\nin s : f32 ~ "            \
    "normal(0,1)\n"                                                                                \
    "out y : f32\ny = 1\n"

enum { MOST = 9 * 257 };

static inline size_t load(struct fixture *f, const char *name, enum data_kind kind, uint64_t seed,
                          double *out) {
    int t = tensor_find(f->task, str_view(name));
    size_t n = (size_t)f->in->tensors[t].count;
    uint64_t raw[MOST];
    data_fill(f->in, &f->scale, (size_t)t, kind, seed, 0, (int64_t)n, raw);
    data_load(f->task->tensors[t].dtype, raw, n, out);
    return n;
}

struct shape {
    size_t negative, zero, nan, inf, subnormal, huge, distinct_rows, ones;
    double least, most, mean;
    bool ascending;
};

static inline struct shape shape_of(const double *v, size_t n, size_t row) {
    struct shape s = {.least = INFINITY, .most = -INFINITY, .ascending = true};
    for (size_t i = 0; i < n; i++) {
        s.negative += v[i] < 0;
        s.zero += v[i] == 0;
        s.ones += v[i] == 1;
        s.nan += isnan(v[i]) != 0;
        s.inf += isinf(v[i]) != 0;
        s.subnormal += v[i] != 0 && fabs(v[i]) < 0x1p-126;
        s.huge += fabs(v[i]) > 1000;
        s.mean += v[i] / (double)n;
        s.least = v[i] < s.least ? v[i] : s.least;
        s.most = v[i] > s.most ? v[i] : s.most;
        if (i % row && !(v[i] >= v[i - 1]))
            s.ascending = false;
        if (i % row && v[i] != v[i - 1])
            s.distinct_rows++;
    }
    return s;
}

static inline size_t count_of(const double *v, size_t n, double number) {
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += v[i] == number;
    return found;
}

#endif
