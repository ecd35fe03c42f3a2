/* How large data may be.
 *
 * The exponents of kinds with large numbers are held back until no intermediate value of
 * the reference leaves fp32 (integers: what fp64 holds exactly), found by evaluating a small
 * instance that stands in for a large one. The sum of all terms' magnitudes counts as an
 * intermediate, so that any order of summation fits.
 *
 * A stand-in must leave room. Sums grow with their length: the fullest of the whole instance may
 * have every term that its ranges and guards admit, while a small shape may hold little but
 * borders, so what counts of it is the average (or a single term). And the few terms it has may all
 * be near the lower end of their range. */
#include "spec/data.h"

#include "spec/reference.h"
#include "spec/sample.h"
#include "spec/tally.h"
#include <float.h>
#include <math.h>

/* fp32 ends at 3.4e38; float data at 3e38. */
#define FLOAT_PEAK   3.2e38
#define INTEGER_PEAK 0x1p53
/* Values of one kind lie within a factor of two: a product of two is up to four times another. */
#define STAND_IN_ROOM 4
/* A kernel may add up in another way than the reference, through larger numbers: the square of a
 * difference of means before it is divided. */
#define SUM_ROOM 16

enum {
    STEPS = 128, /* a factor is a multiple of 1/128: of one power of two, for fp32 */
    CHUNK = 1024,
};

static bool all_finite(enum dtype t, const void *data, size_t n) {
    double chunk[CHUNK];
    for (size_t at = 0; at < n; at += CHUNK) {
        size_t some = n - at < CHUNK ? n - at : CHUNK;
        data_load(t, (const char *)data + at * dtype_info(t)->bytes, some, chunk);
        for (size_t i = 0; i < some; i++)
            if (!isfinite(chunk[i]))
                return false;
    }
    return true;
}

static bool peak_of(const struct inst *in, const struct data_scale *scale, enum data_kind kind,
                    uint64_t seed, unsigned threads, double *peak, struct err *err) {
    const struct task *t = in->task;
    void *inputs[TASK_MAX_TENSORS] = {0};
    struct reference *refs = NULL;
    size_t n = 0;
    bool ok = true, finite = true;
    for (size_t i = 0; i < t->ntensors && ok; i++) {
        if (!tensor_is_input(&t->tensors[i]))
            continue;
        inputs[i] = mem_try_resize(NULL, in->tensors[i].bytes);
        ok = inputs[i] || err_set(err, ERR_ENV, "no memory for %zu bytes of '%.*s'",
                                  in->tensors[i].bytes, STR_ARG(t->tensors[i].name));
        if (!ok)
            break;
        data_fill_all(in, scale, i, kind, seed, threads, inputs[i]);
        finite = finite && all_finite(t->tensors[i].dtype, inputs[i], (size_t)in->tensors[i].count);
    }
    if (ok && finite)
        ok = reference_eval(in, (const void *const *)inputs, threads, &refs, &n, peak, err);
    else
        *peak = INFINITY;
    reference_release(refs, n);
    for (size_t i = 0; i < t->ntensors; i++)
        mem_free(inputs[i]);
    return ok;
}

/* Of a kind whose rows differ in size the few of a sample may all be small: they are held at either
 * end as well. */
static bool peak_of_rows(const struct inst *in, struct data_scale *scale, enum data_kind kind,
                         uint64_t seed, unsigned threads, double most, double *peak,
                         struct err *err) {
    bool ends = kind == DATA_OFFSET || kind == DATA_FAR, ok = true;
    *peak = 0;
    for (int end = ends ? -1 : 0; ok && end <= (ends ? 1 : 0) && *peak < most; end++) {
        double now = 0;
        scale->end = end;
        ok = peak_of(in, scale, kind, seed, threads, &now, err);
        *peak = fmax(*peak, now);
    }
    scale->end = 0;
    return ok;
}

/* Data at `low` steps fit, at `high` they do not; each with the logarithm of its peak, where that
 * is known and finite. At 0 they are of the stated size. */
struct bracket {
    int low, high;
    double low_log, high_log;
};

/* Peaks grow about as powers do, so the place where they pass `most` is found on a straight line
 * through their logarithms; where one is not known, in the middle. */
static int next_step(const struct bracket *b, double most) {
    double share = (log2(most) - b->low_log) / (b->high_log - b->low_log);
    int at = (b->low + b->high) / 2;
    if (isfinite(b->low_log) && isfinite(b->high_log) && share >= 0 && share <= 1)
        at = b->low + (int)(share * (b->high - b->low) + 0.5);
    return at <= b->low ? b->low + 1 : at >= b->high ? b->high - 1 : at;
}

/* The large kind goes as far as it may; for the others a few powers of two less will do. */
static int slack_of(enum data_kind kind) {
    return kind == DATA_LARGE ? 1 : 4;
}

static bool scale_kind(const struct inst *sample, enum data_kind kind, uint64_t seed,
                       unsigned threads, double most, struct data_scale *out, struct err *err) {
    struct bracket b = {0, STEPS + 1, NAN, NAN};
    for (int at = STEPS; b.high - b.low > slack_of(kind); at = next_step(&b, most)) {
        double peak;
        out->factor[kind] = (double)at / STEPS;
        if (!peak_of_rows(sample, out, kind, seed, threads, most, &peak, err))
            return false;
        if (peak < most) {
            b.low = at;
            b.low_log = log2(peak);
        } else {
            b.high = at;
            b.high_log = log2(peak);
        }
    }
    out->factor[kind] = (double)b.low / STEPS;
    return true;
}

/* Integers are computed from integers: they have no rounding to hide in. */
static bool is_integral(const struct task *t) {
    bool in = false, out = false;
    for (size_t i = 0; i < t->ntensors; i++) {
        char kind = dtype_info(t->tensors[i].dtype)->kind;
        bool whole = kind == 'i' || kind == 'u';
        in |= whole && tensor_is_input(&t->tensors[i]) && !t->tensors[i].indexes;
        out |= whole && tensor_is_output(&t->tensors[i]);
    }
    return in && out;
}

static double most_allowed(const struct inst *in, const struct inst *sample) {
    struct tally all, some;
    bool integral = is_integral(in->task);
    double most = integral ? INTEGER_PEAK : FLOAT_PEAK;
    tally_of(in, &all);
    if (!integral && all.fullest_sum > 0)
        most /= SUM_ROOM;
    if (in == sample)
        return most;
    tally_of(sample, &some);
    if (all.fullest_sum == 0) /* the largest element of a large sample is as good as any */
        return most;
    return most / STAND_IN_ROOM / fmax(1, all.fullest_sum / fmax(1, some.longest_sum));
}

static const enum data_kind scaled[] = {DATA_WIDE,   DATA_LARGE,    DATA_SPIKES,
                                        DATA_OFFSET, DATA_LITERALS, DATA_FAR};
/* Mixed rows are as large as the largest of them. */
static const enum data_kind in_mixed[] = {DATA_OFFSET, DATA_FAR};
#define SCALED (sizeof scaled / sizeof *scaled)

/* Whether the largest number itself fits, which leaves no room for a sum: where nothing is added up
 * the sample is as good as the whole. */
static bool find_largest(const struct inst *in, const struct inst *sample, uint64_t seed,
                         unsigned threads, struct data_scale *out, struct err *err) {
    struct tally all;
    double peak;
    tally_of(in, &all);
    if (out->factor[DATA_LARGE] < 1 || is_integral(in->task) ||
        (in != sample && all.fullest_sum > 0))
        return true;
    out->largest = true;
    if (!peak_of(sample, out, DATA_LARGE, seed, threads, &peak, err))
        return false;
    out->largest = peak <= FLT_MAX;
    return true;
}

static bool find(const struct inst *in, const enum data_kind *kinds, size_t n, uint64_t seed,
                 unsigned threads, struct data_scale *out, struct err *err) {
    struct arena *a = arena_new((size_t)64 << 20);
    const struct inst *sample = inst_sample(in, a);
    double most = most_allowed(in, sample);
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        ok = scale_kind(sample, kinds[i], seed, threads, most, out, err);
        if (ok && kinds[i] == DATA_LARGE)
            ok = find_largest(in, sample, seed, threads, out, err);
    }
    out->factor[DATA_MIXED] = fmin(out->factor[DATA_OFFSET], out->factor[DATA_FAR]);
    arena_free(a);
    return ok;
}

struct data_scale data_scale_none(void) {
    struct data_scale s = {.largest = false};
    for (int i = 0; i < DATA_COUNT; i++)
        s.factor[i] = 1;
    return s;
}

struct data_scale data_scale_stated(void) {
    return (struct data_scale){.largest = false};
}

bool data_scale_find(const struct inst *in, uint64_t seed, struct data_scale *out,
                     struct err *err) {
    *out = data_scale_none();
    return find(in, scaled, SCALED, seed, 1, out, err);
}

bool data_scale_find_for(const struct inst *in, enum data_kind kind, uint64_t seed,
                         unsigned threads, struct data_scale *out, struct err *err) {
    size_t i = 0;
    *out = data_scale_none();
    if (kind == DATA_MIXED)
        return find(in, in_mixed, sizeof in_mixed / sizeof *in_mixed, seed, threads, out, err);
    while (i < SCALED && scaled[i] != kind)
        i++;
    return i == SCALED || find(in, &kind, 1, seed, threads, out, err);
}
