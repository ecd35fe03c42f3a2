/* What is found about a task by evaluating a small instance that stands in for a large one: which
 * trivial outputs would pass and whether errors of a recurrence leave anything to judge
 * (trivial.h), and how large data may be.
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
#include "spec/bounds.h"
#include "spec/data.h"
#include "spec/reference.h"
#include "spec/tally.h"
#include "spec/task.h"
#include "spec/trivial.h"
#include "spec/value.h"
#include <float.h>
#include <math.h>

enum {
    SAMPLE_ELEMENTS = 1 << 16,
    SAMPLE_POINTS = 1 << 18,
};

/* How many points an evaluation visits: those that a guard rejects, too. */
static double points_of(const struct ranges *r, const struct expr *e, double points) {
    struct ranges inner = *r;
    double sum = points;
    if (e->kind == EXPR_REDUCE) {
        if (!ranges_enter(&inner, e->reduce))
            return points;
        for (size_t i = 0; i < e->reduce->nvars; i++) {
            struct range v = inner.index[e->reduce->vars[i].var];
            points *= (double)(v.hi - v.lo) + 1;
        }
    }
    for (size_t i = 0; i < e->nargs; i++)
        if (expr_reads(e->args[i]) && e->kind != EXPR_READ)
            sum += points_of(&inner, e->args[i], points);
    return sum;
}

/* Whether evaluating it on one kind of data takes a few milliseconds. */
static bool inst_is_small(const struct inst *in) {
    const struct task *t = in->task;
    int64_t elements = 0;
    double points = 0;
    for (size_t i = 0; i < t->ntensors; i++)
        elements += in->tensors[i].count;
    for (size_t i = 0; i < t->nstatements && elements <= SAMPLE_ELEMENTS; i++) {
        struct ranges r = ranges_of(in, &t->statements[i]);
        double count = (double)in->tensors[t->statements[i].tensor].count;
        points += points_of(&r, t->statements[i].body, count) / 4;
    }
    return elements <= SAMPLE_ELEMENTS && points <= SAMPLE_POINTS;
}

/* What counts the steps of a recurrence is such a dimension, or follows from it. */
static bool counts_steps(const struct task *t, const struct expr *e, size_t dim) {
    if (e->kind == EXPR_DIM &&
        (e->ref == dim || (t->dims[e->ref].derived && counts_steps(t, t->dims[e->ref].value, dim))))
        return true;
    for (size_t i = 0; i < e->nargs; i++)
        if (counts_steps(t, e->args[i], dim))
            return true;
    return false;
}

static bool is_of_steps(const struct task *t, size_t dim) {
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        if (s->recurs.number && counts_steps(t, t->tensors[s->tensor].extent[s->recurs.axis], dim))
            return true;
    }
    return false;
}

/* whole_steps: what counts the steps of a recurrence is not cut: values may grow with every one. */
static struct inst *cut_to(const struct inst *in, int64_t most, bool whole_steps, struct arena *a) {
    const struct task *t = in->task;
    struct binding set[TASK_MAX_DIMS];
    struct inst *small;
    size_t n = 0;
    for (size_t i = 0; i < t->ndims; i++) {
        bool cut = in->dims[i] > most && !(whole_steps && is_of_steps(t, i));
        if (!t->dims[i].derived)
            set[n++] = (struct binding){t->dims[i].name, cut ? most : in->dims[i]};
    }
    return task_bind(t, set, n, a, &small, NULL) ? small : NULL;
}

static bool has_recurrence(const struct task *t) {
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->statements[i].recurs.number)
            return true;
    return false;
}

/* The instance itself, its dimensions cut, or a `check` shape: the first that is small. Where none
 * is, the check shape of fewest elements. What is made lies in the arena. */
static const struct inst *inst_sample(const struct inst *in, struct arena *a) {
    const struct inst *least = in;
    int64_t fewest = INT64_MAX;
    if (inst_is_small(in))
        return in;
    for (int64_t cut = 512; cut >= 1 && has_recurrence(in->task); cut /= 2) {
        const struct inst *small = cut_to(in, cut, true, a);
        if (small && inst_is_small(small))
            return small;
    }
    for (int64_t cut = 512; cut >= 4; cut /= 2) {
        const struct inst *small = cut_to(in, cut, false, a);
        if (small && inst_is_small(small))
            return small;
    }
    for (size_t i = 0; i < in->task->nchecks; i++) {
        struct inst *small;
        int64_t total = 0;
        if (!task_bind_check(in->task, i, a, &small, NULL))
            continue;
        for (size_t k = 0; k < in->task->ntensors; k++)
            total += small->tensors[k].count;
        if (total < fewest) {
            fewest = total;
            least = small;
        }
    }
    return least;
}

/* ---- trivial outputs ---- */

enum { SHAPES_MOST = 65, SEED = 1, CHUNK = 1024 };

/* The kinds whose size must be found come last; most tasks end at the first. */
static const enum data_kind tried_kinds[] = {
    DATA_SIGNED, DATA_STATED,    DATA_SORTED,   DATA_ONEHOT,   DATA_CONSTANT,  DATA_TILE,
    DATA_ZEROS,  DATA_SUBNORMAL, DATA_LITERALS, DATA_INFINITE, DATA_NONFINITE, DATA_SPIKES,
    DATA_OFFSET, DATA_WIDE,      DATA_FAR,      DATA_LARGE};
enum { KINDS = sizeof tried_kinds / sizeof *tried_kinds, KINDS_UNSCALED = 11 };

struct interval {
    double lo, hi;
    bool nan; /* passes too */
};

/* What still passes, of one output. */
struct suspect {
    struct interval constants;
    uint64_t means;  /* a bit an input: its mean in every element */
    bool tell_means; /* it has had several elements: one number may well be a mean */
};

struct search {
    const struct inst *in; /* as the caller has it */
    unsigned threads;
    const struct inst *shapes[SHAPES_MOST];
    struct data_scale scale[SHAPES_MOST];
    size_t nshapes;
    struct suspect of[TASK_MAX_TENSORS]; /* by tensor */
    struct arena *labels;
};

static bool holds(struct interval i, double v) {
    return isnan(v) ? i.nan : v >= i.lo && v <= i.hi;
}

static bool is_empty(struct interval i) {
    return !(i.lo <= i.hi) && !i.nan;
}

static struct interval meet(struct interval a, struct interval b) {
    return (struct interval){fmax(a.lo, b.lo), fmin(a.hi, b.hi), a.nan && b.nan};
}

/* The indices that pass for an element, none left out; those between may not. */
static struct interval with_ties(const struct reference *ref, size_t i, struct interval v) {
    for (size_t k = 0; ref->ties && k < 64 * ref->tie_words; k++)
        if (ref->ties[i * ref->tie_words + k / 64] >> k % 64 & 1) {
            double at = (double)(ref->tie_lo + (int64_t)k);
            v = (struct interval){fmin(v.lo, at), fmax(v.hi, at), false};
        }
    return v;
}

/* The constants that pass for one element. */
static struct interval allowed_by(const struct reference *ref, size_t i, double limit) {
    double v = ref->value[i], estimate = ref->estimate[i], room = limit * estimate;
    if (isinf(estimate))
        return (struct interval){-INFINITY, INFINITY, true};
    if (isnan(v))
        return (struct interval){INFINITY, -INFINITY, true};
    if (isinf(v))
        return (struct interval){v, v, estimate > 0};
    return with_ties(ref, i, (struct interval){v - room, v + room, false});
}

static struct interval allowed(const struct inst *in, const struct reference *ref) {
    double limit = accuracy_limits(in->task->accuracy).worst;
    struct interval all = {-INFINITY, INFINITY, true};
    for (size_t i = 0; i < ref->count && !is_empty(all); i++)
        all = meet(all, allowed_by(ref, i, limit));
    return all;
}

static double mean_of(enum dtype t, const void *data, int64_t count) {
    double chunk[CHUNK], sum = 0;
    for (int64_t at = 0; at < count; at += CHUNK) {
        size_t n = count - at < CHUNK ? (size_t)(count - at) : CHUNK;
        data_load(t, (const char *)data + (size_t)at * dtype_info(t)->bytes, n, chunk);
        for (size_t i = 0; i < n; i++)
            sum += chunk[i];
    }
    return sum / (double)count;
}

static void narrow(struct search *s, const struct inst *at, const struct reference *ref,
                   void *const *inputs) {
    struct suspect *x = &s->of[ref->tensor];
    struct interval now = allowed(at, ref);
    x->constants = meet(x->constants, now);
    if (ref->count < 2)
        return;
    x->tell_means = true;
    for (size_t i = 0; i < at->task->ntensors; i++)
        if (x->means >> i & 1 &&
            !holds(now, mean_of(at->task->tensors[i].dtype, inputs[i], at->tensors[i].count)))
            x->means &= ~(UINT64_C(1) << i);
}

static bool try_data(struct search *s, size_t shape, enum data_kind kind, struct err *err) {
    const struct inst *at = s->shapes[shape];
    const struct task *t = at->task;
    void *inputs[TASK_MAX_TENSORS] = {0};
    struct reference *refs = NULL;
    size_t n = 0;
    for (size_t i = 0; i < t->ntensors; i++) {
        if (!tensor_is_input(&t->tensors[i]))
            continue;
        inputs[i] = mem_alloc(at->tensors[i].bytes);
        data_fill(at, &s->scale[shape], i, kind, SEED, 0, at->tensors[i].count, inputs[i]);
    }
    bool ok = reference_eval(at, (const void *const *)inputs, s->threads, &refs, &n, NULL, err);
    for (size_t r = 0; ok && r < n; r++)
        narrow(s, at, &refs[r], inputs);
    reference_release(refs, n);
    for (size_t i = 0; i < t->ntensors; i++)
        mem_free(inputs[i]);
    return ok;
}

/* The means of an output that is one number at the task's own shape are not looked at. */
static bool is_settled(const struct search *s) {
    for (size_t i = 0; i < s->in->task->ntensors; i++) {
        const struct suspect *x = &s->of[i];
        if (tensor_is_output(&s->in->task->tensors[i]) &&
            (!is_empty(x->constants) || (x->means && s->in->tensors[i].count > 1)))
            return false;
    }
    return true;
}

static bool run(struct search *s, struct err *err) {
    for (size_t k = 0; k < KINDS; k++)
        for (size_t shape = 0; shape < s->nshapes; shape++) {
            if (k == KINDS_UNSCALED &&
                !data_scale_find(s->shapes[shape], SEED, &s->scale[shape], err))
                return false;
            if (!try_data(s, shape, tried_kinds[k], err))
                return false;
            if (is_settled(s))
                return true;
        }
    return true;
}

static int64_t elements_of(const struct inst *in) {
    int64_t n = 0;
    for (size_t i = 0; i < in->task->ntensors; i++)
        n += in->tensors[i].count;
    return n;
}

static void insert_shape(struct search *s, const struct inst *in) {
    size_t at = s->nshapes++;
    for (; at > 0 && elements_of(s->shapes[at - 1]) > elements_of(in); at--)
        s->shapes[at] = s->shapes[at - 1];
    s->shapes[at] = in;
}

/* Nothing is held back. */
static struct data_scale data_scale_none(void) {
    struct data_scale s = {.largest = false};
    for (int i = 0; i < DATA_COUNT; i++)
        s.factor[i] = 1;
    return s;
}

static bool prepare(struct search *s, struct arena *a, struct err *err) {
    const struct task *t = s->in->task;
    uint64_t inputs = 0;
    for (size_t c = 0; c < t->nchecks && s->nshapes < SHAPES_MOST - 1; c++) {
        struct inst *in;
        if (!task_bind_check(t, c, a, &in, err))
            return false;
        if (inst_is_small(in))
            insert_shape(s, in);
    }
    s->shapes[s->nshapes++] = inst_sample(s->in, a);
    for (size_t i = 0; i < s->nshapes; i++)
        s->scale[i] = data_scale_none();
    for (size_t i = 0; i < t->ntensors; i++)
        inputs |= (uint64_t)tensor_is_input(&t->tensors[i]) << i;
    for (size_t i = 0; i < t->ntensors; i++)
        s->of[i] = (struct suspect){{-INFINITY, INFINITY, true}, inputs, false};
    return true;
}

/* Of the constants that pass, the one to name: zero, an end, the middle. */
static double example_of(struct interval i) {
    if (holds(i, 0))
        return 0;
    if (!(i.lo <= i.hi))
        return NAN;
    return isinf(i.lo) ? i.hi : isinf(i.hi) ? i.lo : i.lo / 2 + i.hi / 2;
}

static bool complain(const struct search *s, size_t tensor, struct err *err) {
    const struct task *t = s->in->task;
    const struct tensor *out = &t->tensors[tensor];
    const struct suspect *x = &s->of[tensor];
    static const char hint[] = "a kernel that computes nothing would be accepted: scale the task "
                               "so that its results differ by more than their error, or add a "
                               "check shape at which they do";
    if (!is_empty(x->constants))
        return err_at(err, t->file, t->text, out->at, out->len, hint,
                      "'%.*s' passes on every kind of data when all its elements are %g",
                      STR_ARG(out->name), example_of(x->constants));
    size_t i = (size_t)__builtin_ctzll(x->means);
    return err_at(err, t->file, t->text, out->at, out->len, hint,
                  "'%.*s' passes on every kind of data when all its elements are the mean of "
                  "'%.*s'",
                  STR_ARG(out->name), STR_ARG(t->tensors[i].name));
}

/* ---- recurrences whose errors grow until results say nothing ---- */

/* Where a step rounds to a type, single elements may be off by a step of that type anywhere. */
enum { MEANINGLESS_SHARE = 16, MEANINGLESS_ROUNDED = 2 };

static size_t share_that_counts(const struct task *t) {
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->statements[i].recurs.number &&
            t->tensors[t->statements[i].tensor].dtype != DTYPE_F64)
            return MEANINGLESS_ROUNDED;
    return MEANINGLESS_SHARE;
}

/* Elements that pass whatever they are, within the size of what the output holds. */
static size_t meaningless(const struct inst *in, const struct reference *ref) {
    double limit = accuracy_limits(in->task->accuracy).worst, largest = 0;
    size_t n = 0;
    for (size_t i = 0; i < ref->count; i++)
        if (isfinite(ref->value[i]))
            largest = fmax(largest, fabs(ref->value[i]));
    for (size_t i = 0; i < ref->count; i++)
        n += !(limit * ref->estimate[i] < largest) && ref->estimate[i] > 0;
    return n;
}

/* On stated data. An output that says little for other reasons is no matter of steps: with a single
 * step it says as little. */
static bool check_growth(const struct search *s, struct err *err) {
    static const char hint[] =
        "a step that makes more of what the step before is off by, as h[t] = 4*h[t-1]*(1 - h[t-1]) "
        "does, cannot be judged for long: fewer steps, or a step that forgets";
    const struct inst *in = s->shapes[s->nshapes - 1];
    const struct task *t = in->task;
    void *inputs[TASK_MAX_TENSORS] = {0};
    struct reference *refs = NULL;
    size_t n = 0;
    struct data_scale scale = data_scale_stated();
    for (size_t i = 0; i < t->ntensors; i++) {
        if (!tensor_is_input(&t->tensors[i]))
            continue;
        inputs[i] = mem_alloc(in->tensors[i].bytes);
        data_fill(in, &scale, i, DATA_STATED, SEED, 0, in->tensors[i].count, inputs[i]);
    }
    bool ok = reference_eval(in, (const void *const *)inputs, s->threads, &refs, &n, NULL, err);
    for (size_t r = 0; ok && r < n; r++) {
        const struct tensor *out = &t->tensors[refs[r].tensor];
        size_t many = meaningless(in, &refs[r]);
        if (many * share_that_counts(t) > refs[r].count)
            ok =
                err_at(err, t->file, t->text, out->at, out->len, hint,
                       "%zu of %zu elements of '%.*s' may be anything (with %.*s): the errors of "
                       "its recurrence grow until they are as large as its values",
                       many, refs[r].count, STR_ARG(out->name), STR_ARG(inst_label(in, s->labels)));
    }
    reference_release(refs, n);
    for (size_t i = 0; i < t->ntensors; i++)
        mem_free(inputs[i]);
    return ok;
}

bool task_check_trivial(const struct inst *in, unsigned threads, struct err *err) {
    struct arena *a = arena_new((size_t)64 << 20);
    struct search *s = mem_alloc(sizeof *s);
    s->in = in;
    s->threads = threads;
    s->labels = a;
    bool ok = prepare(s, a, err);
    if (ok && has_recurrence(in->task))
        ok = check_growth(s, err);
    ok = ok && run(s, err);
    for (size_t i = 0; ok && i < in->task->ntensors; i++) {
        const struct suspect *x = &s->of[i];
        if (tensor_is_output(&in->task->tensors[i]) &&
            (!is_empty(x->constants) || (x->tell_means && x->means)))
            ok = complain(s, i, err);
    }
    mem_free(s);
    arena_free(a);
    return ok;
}

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
    if (!integral && all.fullest_sum > 1) /* of one term there is no other way */
        most /= SUM_ROOM;
    if (in == sample)
        return most;
    /* What grows by a factor a step differs from line to line by powers of those factors: the few
     * lines of a sample say little of the largest. */
    if (has_recurrence(in->task) && !integral)
        return sqrt(most);
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
