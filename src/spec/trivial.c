#include "spec/trivial.h"

#include "spec/data.h"
#include "spec/reference.h"
#include "spec/sample.h"
#include "spec/value.h"
#include <math.h>

enum { SHAPES_MOST = 65, SEED = 1, CHUNK = 1024 };

/* The kinds whose size must be found come last; most tasks end at the first. */
static const enum data_kind kinds[] = {DATA_SIGNED,   DATA_STATED,   DATA_SORTED,    DATA_ONEHOT,
                                       DATA_CONSTANT, DATA_TILE,     DATA_ZEROS,     DATA_SUBNORMAL,
                                       DATA_LITERALS, DATA_INFINITE, DATA_NONFINITE, DATA_SPIKES,
                                       DATA_OFFSET,   DATA_WIDE,     DATA_FAR,       DATA_LARGE};
enum { KINDS = sizeof kinds / sizeof *kinds, KINDS_UNSCALED = 11 };

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
            if (!try_data(s, shape, kinds[k], err))
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

bool task_check_trivial(const struct inst *in, unsigned threads, struct err *err) {
    struct arena *a = arena_new((size_t)64 << 20);
    struct search *s = mem_alloc(sizeof *s);
    s->in = in;
    s->threads = threads;
    bool ok = prepare(s, a, err) && run(s, err);
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
