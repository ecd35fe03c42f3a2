/* What came back against the reference.
 *
 * Classes first (NaN, infinities and their signs), values after. Work is cut into blocks of a fixed
 * size whose sums are added in order, so the result is the same for any number of threads. Every
 * comparison is written so that NaN fails it. */
#include "spec/reference.h"

#include "spec/data.h"
#include "spec/parallel.h"
#include "spec/program.h"
#include <math.h>

enum { BLOCK = 4096 };

/* The looser test widens every rounding of the arithmetic to bf16's, but a kernel in that class
 * rounds its inputs too, which the estimate does not carry; where inputs cancel that is more. One
 * element in so many may therefore miss it. */
enum { LOOSER_RARE = 100 };

struct tally {
    uint64_t judged, wrong, nonfinite;
    double worst, squares;
    uint64_t looser_wrong;
    double looser_squares;
    struct mismatch first[MISMATCH_KEPT];
    size_t nfirst;
};

struct comparing {
    const struct reference *ref;
    const void *got;
    enum dtype dtype;
    double worst_limit;
    double looser_scale;    /* from the class's unit to bf16's */
    double looser_relative; /* bf16's own rounding of the result */
    struct tally *blocks;
};

static void keep(struct tally *t, int64_t index, double expected, double got, double estimate) {
    if (t->nfirst < MISMATCH_KEPT)
        t->first[t->nfirst++] = (struct mismatch){index, expected, got, estimate};
}

/* Error over allowance; no error is 0 even where nothing is allowed. */
static double ratio(double error, double allowed) {
    return error == 0 ? 0 : allowed > 0 ? error / allowed : INFINITY;
}

static void judge_value(const struct comparing *c, struct tally *t, int64_t i, double v, double g,
                        double estimate) {
    double error = fabs(g - v), r = ratio(error, estimate);
    double looser = ratio(error, estimate * c->looser_scale + fabs(v) * c->looser_relative);
    t->judged++;
    t->squares += r * r;
    t->looser_squares += looser * looser;
    t->worst = r > t->worst ? r : t->worst;
    t->looser_wrong += !(looser <= c->worst_limit);
    if (!(r <= c->worst_limit)) {
        t->wrong++;
        keep(t, i, v, g, estimate);
    }
}

static void judge(const struct comparing *c, struct tally *t, int64_t i, double g) {
    double v = c->ref->value[i], estimate = c->ref->estimate[i];
    if (isinf(estimate))
        return;
    bool finite = isfinite(v) && isfinite(g);
    if (finite)
        judge_value(c, t, i, v, g, estimate);
    else if (isnan(v) ? !isnan(g) : !(v == g)) {
        t->nonfinite++;
        keep(t, i, v, g, estimate);
    }
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
        for (size_t k = 0; k < n; k++)
            judge(c, &c->blocks[b], at + (int64_t)k, got[k]);
    }
}

static void add_tally(struct tally *sum, const struct tally *t) {
    sum->judged += t->judged;
    sum->wrong += t->wrong;
    sum->nonfinite += t->nonfinite;
    sum->squares += t->squares;
    sum->looser_squares += t->looser_squares;
    sum->worst = t->worst > sum->worst ? t->worst : sum->worst;
    sum->looser_wrong += t->looser_wrong;
    for (size_t i = 0; i < t->nfirst && sum->nfirst < MISMATCH_KEPT; i++)
        sum->first[sum->nfirst++] = t->first[i];
}

static double root_mean(double squares, uint64_t n) {
    return n ? sqrt(squares / (double)n) : 0;
}

static void conclude(const struct tally *t, enum accuracy accuracy, struct comparison *out) {
    struct limits limits = accuracy_limits(accuracy);
    *out = (struct comparison){.judged = t->judged,
                               .wrong = t->wrong,
                               .nonfinite = t->nonfinite,
                               .worst = t->worst,
                               .rms = root_mean(t->squares, t->judged),
                               .worst_limit = limits.worst,
                               .rms_limit = limits.rms,
                               .nfirst = t->nfirst};
    for (size_t i = 0; i < t->nfirst; i++)
        out->first[i] = t->first[i];
    out->pass = out->wrong == 0 && out->nonfinite == 0 && out->worst <= limits.worst &&
                out->rms <= limits.rms;
    out->pass_looser =
        out->pass || (out->nonfinite == 0 && t->looser_wrong <= t->judged / LOOSER_RARE &&
                      root_mean(t->looser_squares, t->judged) <= limits.rms);
}

void reference_compare(const struct inst *in, const struct reference *ref, const void *got,
                       unsigned threads, struct comparison *out) {
    const struct task *t = in->task;
    enum dtype dtype = t->tensors[ref->tensor].dtype;
    bool real = dtype_info(dtype)->kind == 'f';
    double bf16 = accuracy_unit(ACCURACY_BF16);
    size_t nblocks = (ref->count + BLOCK - 1) / BLOCK;
    /* Pointwise arithmetic is fp32 in every class (vector.c), so that is the unit to widen. */
    struct comparing c = {.ref = ref,
                          .got = got,
                          .dtype = dtype,
                          .worst_limit = accuracy_limits(t->accuracy).worst,
                          .looser_scale = real ? bf16 / accuracy_unit(ACCURACY_FP32) : 1,
                          .looser_relative = real ? bf16 : 0,
                          .blocks = mem_alloc(nblocks * sizeof *c.blocks)};
    struct tally sum = {0};
    parallel_for(threads, (int64_t)nblocks, compare_piece, &c);
    for (size_t i = 0; i < nblocks; i++)
        add_tally(&sum, &c.blocks[i]);
    mem_free(c.blocks);
    conclude(&sum, t->accuracy, out);
}
