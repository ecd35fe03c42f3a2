#include "candidates.h"

#include "base/template.h"
#include "eval/eval.h"

#include <stdio.h>

/* A block is a tile of columns; its rows share the reduced dimension and meet in shared memory. */
static const char reduction_text[] =
    "//! launch reduce<<<[ceil_div(N, ${width}), B], [${width}, ${rows}]>>>(x, y, M, N)\n"
    "static __device__ float combine(float a, float b) { return ${combine}; }\n"
    "extern \"C\" __global__ void reduce(const float *x, float *y, int M, int N) {\n"
    "    __shared__ float part[${rows}][${width}];\n"
    "    int n = blockIdx.x * ${width} + threadIdx.x;\n"
    "    const float *from = x + (size_t)blockIdx.y * M * N + n;\n"
    "    float sum = ${start};\n"
    "    if (n < N) {\n"
    "#pragma unroll ${unroll}\n"
    "        for (int m = threadIdx.y; m < M; m += ${rows})\n"
    "            sum = combine(sum, from[(size_t)m * N]);\n"
    "    }\n"
    "    part[threadIdx.y][threadIdx.x] = sum;\n"
    "    __syncthreads();\n"
    "    if (threadIdx.y == 0 && n < N) {\n"
    "        for (int r = 1; r < ${rows}; r++)\n"
    "            sum = combine(sum, part[r][threadIdx.x]);\n"
    "        y[(size_t)blockIdx.y * N + n] = ${finish};\n"
    "    }\n"
    "}\n";

/* Tasks of x[B,M,N] over M, by their names; maxima and minima let NaN through. */
static const struct reduction_row {
    const char *task, *combine, *start, *finish;
} reductions[] = {
    {"sum_reduction", "a + b", "0", "sum"},
    {"mean_reduction", "a + b", "0", "sum / M"},
    {"max_reduction", "a != a || a > b ? a : b", "-INFINITY", "sum"},
    {"min_reduction", "a != a || a < b ? a : b", "INFINITY", "sum"},
};

static const struct reduction_row *find_reduction(const struct task *t) {
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (str_is(t->name, reductions[i].task))
            return &reductions[i];
    return NULL;
}

bool candidates_open(struct candidates *c, const struct inst *in, const struct gpu *g,
                     struct arena *a, struct err *err) {
    *c = (struct candidates){.reduction = find_reduction(in->task),
                             .rng = rng_stream(1, in->task->name)};
    if (!catalogue_load(NULL, a, &c->catalogue, err) || !expert_new(NULL, &c->agent, err))
        return false;
    if (!briefing_make(in, c->catalogue, g, &c->briefing, err))
        return false;
    return true;
}

void candidates_close(struct candidates *c) {
    if (c->agent.release)
        c->agent.release(c->agent.self);
}

enum { NUMBER = 16 };

static str power(struct rng r, uint64_t position, unsigned least, unsigned most, char *space) {
    unsigned shift = least + (unsigned)rng_below(r, position, most - least + 1);
    return (str){space, (size_t)snprintf(space, NUMBER, "%u", 1u << shift)};
}

static bool write_reduction(const struct candidates *c, uint64_t n, struct buf *out,
                            struct err *err) {
    char width[NUMBER], rows[NUMBER], unroll[NUMBER];
    struct rng r = rng_sub(c->rng, n);
    const struct slot slots[] = {
        {"width", power(r, 0, 5, 7, width)},      {"rows", power(r, 1, 0, 3, rows)},
        {"unroll", power(r, 2, 0, 4, unroll)},    {"combine", str_view(c->reduction->combine)},
        {"start", str_view(c->reduction->start)}, {"finish", str_view(c->reduction->finish)},
    };
    return template_render(S("reduction"), str_view(reduction_text), slots,
                           sizeof slots / sizeof *slots, out, err);
}

struct coded {
    struct buf *out;
    struct err *err;
    bool ok;
};

static void take_code(void *ctx, str source, const struct strategy *written,
                 const struct err *err) {
    (void)written;
    struct coded *w = ctx;
    w->ok = !err;
    if (err)
        *w->err = *err;
    else
        buf_puts(w->out, source);
}

bool candidates_write(struct candidates *c, uint64_t n, struct buf *out, struct err *err) {
    struct coded w = {out, err, false};
    buf_clear(out);
    if (c->reduction) {
        w.ok = write_reduction(c, n, out, err);
    } else {
        struct strategy s;
        strategy_random(c->catalogue, &c->briefing.ground, rng_sub(c->rng, n), &s);
        c->agent.code(c->agent.self, &c->briefing, &s, take_code, &w);
    }
    buf_printf(out, "// candidate %llu\n", (unsigned long long)n);
    return w.ok && (!out->failed || err_set(err, ERR_ENV, "a candidate is too large"));
}
