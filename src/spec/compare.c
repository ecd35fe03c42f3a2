/* What came back against the reference.
 *
 * Classes first (NaN, infinities and their signs), values after. Work is cut into blocks of a fixed
 * size whose sums are added in order, so the result is the same for any number of threads. Every
 * comparison is written so that NaN fails it.
 *
 * Where all of a stretch is finite and within its limits, quotients are made in vectors and added
 * in the same order; any other stretch is judged element by element. */
#include "base/wide.h"

#include "spec/compare.h"

#include "base/parallel.h"
#include "spec/data.h"
#include "spec/value.h"
#include <float.h>
#include <math.h>

enum { BLOCK = 4096, STRETCH = 256 };

/* The looser test widens every rounding to bf16's, but a kernel in that class rounds its inputs
 * too, which the estimate does not carry; where inputs cancel that is more. One element in so many
 * may therefore miss it, by no more than this part of the tensor's largest magnitude, and no more
 * elements than a share of those that are off: a kernel of a looser class is off in many places. An
 * element that is plainly wrong is never excused. */
enum { LOOSER_RARE = 100, LOOSER_SHARE = 2 };
#define LOOSER_MISS 0x1p-4

struct comparing {
    const struct reference *ref;
    const void *got;
    enum dtype dtype;
    struct allowance allowance;
    struct compare_sum *blocks;
};

static void keep(struct compare_sum *t, int64_t index, double expected, double got,
                 double estimate) {
    if (t->nfirst < MISMATCH_KEPT)
        t->first[t->nfirst++] = (struct mismatch){index, expected, got, estimate};
}

/* Another index that is as good as the first one. */
static bool is_tie(const struct reference *ref, int64_t i, double g) {
    double k = g - (double)ref->tie_lo;
    if (!ref->ties || !(k >= 0 && k < 64.0 * (double)ref->tie_words))
        return false;
    uint64_t word = ref->ties[(size_t)i * ref->tie_words + (uint64_t)k / 64];
    return word >> (uint64_t)k % 64 & 1;
}

static void judge(const struct comparing *c, struct compare_sum *t, int64_t i, double g) {
    double v = c->ref->value[i], estimate = c->ref->estimate[i];
    if (!isinf(estimate) && is_tie(c->ref, i, g))
        g = v;
    if (!compare_one(&t->all, &c->allowance, v, estimate, g))
        keep(t, i, v, g, estimate);
}

static void judge_truths(const struct comparing *c, struct compare_sum *t, int64_t at, size_t n) {
    const unsigned char *got = (const unsigned char *)c->got + at;
    for (size_t k = 0; k < n; k++) {
        int64_t i = at + (int64_t)k;
        if (!compare_truth(&t->all, got[k]))
            keep(t, i, c->ref->value[i], got[k], c->ref->estimate[i]);
    }
}

struct quotients {
    double r[STRETCH], looser[STRETCH];
};

/* deviation_of without branches; returns how many elements are not finite, or outside a limit. */
WIDE static uint64_t divide(const struct comparing *c, const double *restrict v,
                            const double *restrict estimate, const double *restrict g, size_t n,
                            struct quotients *restrict q) {
    double limit = c->allowance.worst, scale = c->allowance.scale;
    double relative = c->allowance.relative, least = c->allowance.least;
    uint64_t odd = 0;
    for (size_t k = 0; k < n; k++) {
        double error = fabs(g[k] - v[k]);
        double loose = estimate[k] * scale + fabs(v[k]) * relative + least;
        double none = error == 0 ? 1.0 : 0.0; /* 0/0 is no error */
        double r = error / (estimate[k] + none), looser = error / (loose + none);
        bool good = (error <= DBL_MAX) & (estimate[k] >= 0) & (estimate[k] <= DBL_MAX) &
                    (r <= limit) & (looser <= limit);
        q->r[k] = r;
        q->looser[k] = looser;
        odd += good ? 0 : 1;
    }
    return odd;
}

static double largest_of(const double *v, size_t n) {
    double most = 0;
    for (size_t k = 0; k < n; k++)
        most = fabs(v[k]) > most ? fabs(v[k]) : most;
    return most;
}

/* Elements at … at + n - 1, at most STRETCH. False: something is out of the ordinary, and nothing
 * was added. */
static bool judge_stretch(const struct comparing *c, struct compare_sum *t, int64_t at,
                          const double *g, size_t n) {
    const double *v = c->ref->value + at;
    struct quotients q;
    if (c->ref->ties || divide(c, v, c->ref->estimate + at, g, n, &q) > 0)
        return false;
    for (size_t k = 0; k < n; k++) {
        t->all.squares += q.r[k] * q.r[k];
        t->all.looser_squares += q.looser[k] * q.looser[k];
        t->all.worst = q.r[k] > t->all.worst ? q.r[k] : t->all.worst;
    }
    double largest = largest_of(v, n);
    t->all.largest = largest > t->all.largest ? largest : t->all.largest;
    t->all.judged += n;
    return true;
}

static void compare_piece(void *ctx, unsigned part, int64_t first, int64_t last) {
    const struct comparing *c = ctx;
    size_t size = dtype_info(c->dtype)->bytes;
    double got[BLOCK];
    (void)part;
    for (int64_t b = first; b < last; b++) {
        int64_t at = b * BLOCK, rest = (int64_t)c->ref->count - at;
        size_t n = rest < BLOCK ? (size_t)rest : BLOCK;
        data_load(c->dtype, (const char *)c->got + (size_t)at * size, n, got);
        for (size_t k = 0; k < n; k += STRETCH) {
            size_t some = n - k < STRETCH ? n - k : STRETCH;
            if (!judge_stretch(c, &c->blocks[b], at + (int64_t)k, got + k, some))
                for (size_t l = k; l < k + some; l++)
                    judge(c, &c->blocks[b], at + (int64_t)l, got[l]);
        }
        if (c->dtype == DTYPE_BOOL)
            judge_truths(c, &c->blocks[b], at, n);
    }
}

static void add_tally(struct compare_sum *sum, const struct compare_sum *t) {
    compared_join(&sum->all, &t->all);
    for (size_t i = 0; i < t->nfirst && sum->nfirst < MISMATCH_KEPT; i++)
        sum->first[sum->nfirst++] = t->first[i];
}

static double root_mean(double squares, uint64_t n) {
    return n ? sqrt(squares / (double)n) : 0;
}

/* The root mean square of few elements scatters more. */
static double rms_limit(const struct limits *l, uint64_t n) {
    return n ? l->rms * sqrt(1 + 8 / (double)n) : l->rms;
}

void compare_conclude(const struct compare_sum *sum, enum accuracy accuracy,
                      struct comparison *out) {
    const struct compared *t = &sum->all;
    struct limits limits = accuracy_limits(accuracy);
    *out = (struct comparison){.judged = t->judged,
                               .wrong = t->wrong,
                               .nonfinite = t->nonfinite,
                               .worst = t->worst,
                               .rms = root_mean(t->squares, t->judged),
                               .worst_limit = limits.worst,
                               .rms_limit = rms_limit(&limits, t->judged),
                               .nfirst = sum->nfirst};
    for (size_t i = 0; i < sum->nfirst; i++)
        out->first[i] = sum->first[i];
    out->pass = out->wrong == 0 && out->nonfinite == 0 && out->worst <= limits.worst &&
                out->rms <= out->rms_limit;
    bool rare = t->looser_wrong <= t->judged / LOOSER_RARE &&
                t->looser_wrong <= t->wrong / LOOSER_SHARE &&
                t->looser_miss <= LOOSER_MISS * t->largest;
    out->pass_looser = out->pass || (out->nonfinite == 0 && rare &&
                                     root_mean(t->looser_squares, t->judged) <= out->rms_limit);
}

void reference_compare(const struct inst *in, const struct reference *ref, const void *got,
                       unsigned threads, struct comparison *out) {
    const struct task *t = in->task;
    enum dtype dtype = t->tensors[ref->tensor].dtype;
    size_t nblocks = (ref->count + BLOCK - 1) / BLOCK;
    struct comparing c = {.ref = ref,
                          .got = got,
                          .dtype = dtype,
                          .allowance = allowance_of(dtype_info(dtype)->kind == 'f',
                                                    accuracy_unit(t->accuracy),
                                                    accuracy_limits(t->accuracy).worst),
                          .blocks = mem_alloc(nblocks * sizeof *c.blocks)};
    struct compare_sum sum = {0};
    parallel_for(threads, (int64_t)nblocks, compare_piece, &c);
    for (size_t i = 0; i < nblocks; i++)
        add_tally(&sum, &c.blocks[i]);
    mem_free(c.blocks);
    compare_conclude(&sum, t->accuracy, out);
}
