#include "eval/trials.h"

#include "base/rng.h"
#include "spec/cost.h"

#include <string.h>

#define FULL_BYTES  (160ull << 20) /* of all tensors: what is simulated whole */
#define FULL_FLOPS  4e8
#define SMALL_BYTES (1ull << 20) /* of all tensors of a made shape */
#define SMALL_FLOPS 2e7
#define MAX_SMALL   (TRIALS_MAX_SHAPES - 3)
#define ATTEMPTS    4000

static size_t inst_bytes(const struct inst *in) {
    size_t sum = 0;
    for (size_t i = 0; i < in->task->ntensors; i++)
        if (tensor_has_memory(&in->task->tensors[i]))
            sum += in->tensors[i].bytes;
    return sum;
}

static bool within(const struct inst *in, size_t bytes, double flops) {
    struct cost c;
    if (inst_bytes(in) > bytes)
        return false;
    cost_of(in, &c);
    return c.flops <= flops;
}

static bool seen(const struct trials *t, str label) {
    for (size_t i = 0; i < t->n; i++)
        if (str_eq(t->shapes[i].label, label))
            return true;
    return false;
}

/* Adds a shape that the candidate admits. False with err: a plan whose arithmetic or limits fail at
 * a shape it claims to serve. */
static struct trial_shape *add_shape(const struct candidate *c, const struct inst *in,
                                     struct arena *a, struct trials *t, struct err *err) {
    BUG_IF(t->n == TRIALS_MAX_SHAPES);
    struct trial_shape *s = &t->shapes[t->n];
    *s = (struct trial_shape){.inst = in, .label = inst_label(in, a)};
    if (!plan_bind(c, in, a, &s->plan, err)) {
        err_wrap(err, "at %.*s", STR_ARG(s->label));
        return NULL;
    }
    t->n++;
    return s;
}

static bool add_small(const struct candidate *c, const struct inst *in, struct arena *a,
                      struct trials *t, struct err *err) {
    str which, label = inst_label(in, a);
    bool fits;
    if (t->n >= MAX_SMALL || seen(t, label))
        return true;
    if (!plan_fits(c, in, &fits, &which, err))
        return err_wrap(err, "at %.*s", STR_ARG(label));
    if (!fits)
        return true;
    struct trial_shape *s = add_shape(c, in, a, t, err);
    for (size_t k = 0; s && k < DATA_COUNT; k++)
        s->kinds[k] = true;
    return s != NULL;
}

/* At first anything, so that no kernel can know the shape; then sizes that divide, that are prime,
 * that are tiny: whatever a require line asks for, some are likely to satisfy it. */
static int64_t draw_size(struct rng r, uint64_t attempt, size_t dim, int64_t own) {
    static const int64_t sizes[] = {1,  2,  3,  4,   5,   7,   8,   12,  16,  17,   31,   32,  48,
                                    64, 96, 97, 128, 192, 256, 257, 384, 512, 1024, 2048, 4096};
    uint64_t n = sizeof sizes / sizeof *sizes, at = attempt * TASK_MAX_DIMS + dim;
    if (attempt % 2 == 0)
        return 1 + (int64_t)rng_below(r, at, 1000 >> attempt / 2 % 8);
    uint64_t i = rng_below(r, at, n + 1);
    return i == n ? own : sizes[i];
}

static bool same_dims(const struct inst *a, const struct inst *b) {
    return memcmp(a->dims, b->dims, a->task->ndims * sizeof *a->dims) == 0;
}

static bool make_shapes(const struct candidate *c, const struct inst *own, uint64_t secret,
                        size_t wanted, struct arena *a, struct trials *t, struct err *err) {
    const struct task *task = own->task;
    struct rng r = rng_stream(secret, S("shapes"));
    struct binding set[TASK_MAX_DIMS];
    for (uint64_t attempt = 0; attempt < ATTEMPTS && t->n < wanted; attempt++) {
        struct err ignored = {0};
        struct inst *in;
        bool fits;
        str which;
        size_t n = 0;
        for (size_t d = 0; d < task->ndims; d++)
            if (!task->dims[d].derived)
                set[n++] =
                    (struct binding){task->dims[d].name, draw_size(r, attempt, d, own->dims[d])};
        struct arena *scratch = arena_new(16u << 20);
        bool usable = task_bind(task, set, n, scratch, &in, &ignored) && !same_dims(in, own) &&
                      plan_fits(c, in, &fits, &which, &ignored) && fits &&
                      within(in, SMALL_BYTES, SMALL_FLOPS);
        arena_free(scratch);
        if (usable && (!task_bind(task, set, n, a, &in, err) || !add_small(c, in, a, t, err)))
            return false;
    }
    return true;
}

static bool own_shape(const struct candidate *c, const struct inst *own, struct arena *a,
                      struct trials *t, bool *launch, struct err *err) {
    str which;
    bool fits;
    *launch = false;
    if (!plan_fits(c, own, &fits, &which, err))
        return false;
    if (!fits)
        return err_set(err, ERR_INPUT,
                       "the task's own shape (%.*s) does not satisfy 'require %.*s'",
                       STR_ARG(inst_label(own, a)), STR_ARG(which));
    *launch = true;
    return plan_bind(c, own, a, &t->task_plan, err);
}

/* Twice where it counts: the counted run's seed is public, the other's is not. */
static bool add_own(const struct candidate *c, const struct inst *own,
                    const struct trials_options *o, size_t small, struct arena *a, struct trials *t,
                    struct err *err) {
    struct trial_shape *s = NULL;
    if (o->count) {
        s = add_shape(c, own, a, t, err);
        if (!s)
            return false;
        s->kinds[DATA_STATED] = s->counted = true;
    }
    s = add_shape(c, own, a, t, err);
    if (!s)
        return false;
    s->kinds[DATA_SIGNED] = s->kinds[DATA_SPIKES] = true;
    if (o->thorough || small < 2)
        s->kinds[DATA_NONFINITE] = s->kinds[DATA_WIDE] = s->kinds[DATA_LARGE] =
            s->kinds[DATA_SUBNORMAL] = true;
    return true;
}

static str scope_of(const struct trials *t, size_t checks, size_t small, struct arena *a) {
    size_t made = small - checks;
    return arena_printf(
        a, "%zu check shape%s, %zu made at random%s", checks, checks == 1 ? "" : "s", made,
        t->task_shape_run ? " and the task's own shape"
                          : "; the task's own shape is too large to simulate whole");
}

bool trials_make(const struct candidate *c, const struct inst *own, const struct trials_options *o,
                 struct arena *a, struct trials *t, bool *launch, struct err *err) {
    memset(t, 0, sizeof *t);
    if (!own_shape(c, own, a, t, launch, err))
        return false;
    for (size_t i = 0; i < own->task->nchecks; i++) {
        struct inst *in;
        if (!task_bind_check(own->task, i, a, &in, err) || !add_small(c, in, a, t, err))
            return false;
    }
    size_t checks = t->n, wanted = checks ? checks + 1 : 2;
    if (!make_shapes(c, own, o->secret, wanted, a, t, err))
        return false;
    size_t small = t->n;
    t->task_shape_run = within(own, FULL_BYTES, FULL_FLOPS);
    if (t->task_shape_run && !add_own(c, own, o, small, a, t, err))
        return false;
    if (!t->n)
        return err_set(err, ERR_INPUT,
                       "no shape that the require lines admit is small enough to simulate: loosen "
                       "them, or verify on a GPU");
    t->scope = scope_of(t, checks, small, a);
    return true;
}
