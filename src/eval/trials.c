#include "eval/trials.h"

#include "base/rng.h"
#include "spec/cost.h"

#include <string.h>

#define FULL_BYTES   (160ull << 20) /* of all tensors: what is simulated whole */
#define FULL_FLOPS   4e8
#define SMALL_BYTES  (1ull << 20) /* of all tensors of a made shape */
#define SMALL_FLOPS  1e7
#define SMALL_PLANES 1024 /* … on the simulator: of all axes but the last two, a block each */
#define MAX_SMALL    (TRIALS_MAX_SHAPES - 3)
#define ATTEMPTS     4000
#define ODD_ATTEMPTS 8 /* the first ones, at most 1003, 503, … 9 */
#define COUNTED_SEED 0 /* public: counts are the same in every run */
#define MADE_SHAPES  3 /* one odd in all dimensions, two with a short one */
#define TIMED_CASES  8
#define MAX_ORDER    9999 /* a number that is easily typed */
#define LARGE_CASE   (1ull << 30)

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

/* Of the shape alone: what a candidate launches must not choose the shapes it meets. */
static bool few_planes(const struct inst *in) {
    for (size_t i = 0; i < in->task->ntensors; i++) {
        const struct tensor *t = &in->task->tensors[i];
        int64_t planes = 1;
        for (size_t k = 0; tensor_has_memory(t) && k + 2 < t->rank; k++)
            planes *= in->tensors[i].extent[k];
        if (planes > SMALL_PLANES)
            return false;
    }
    return true;
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

static struct trial_batch *add_batch(struct trials *t, size_t shape) {
    BUG_IF(t->nbatches == TRIALS_MAX_BATCHES);
    struct trial_batch *b = &t->batches[t->nbatches++];
    *b = (struct trial_batch){.shape = shape};
    return b;
}

static void add_case(struct trial_batch *b, enum data_kind data, uint64_t seed) {
    BUG_IF(b->n == TRIALS_MAX_CASES);
    b->cases[b->n++] = (struct trial_case){data, seed};
}

/* Cases of a shape that the GPU has room for at a time, beside what else is kept there. */
static size_t room_for(const struct inst *in, const struct trials_options *o) {
    return o->memory / 2 / (inst_bytes(in) + 1);
}

/* The kinds on the shape that came last: together, where there is room, or one by one. */
static void add_kinds(struct trials *t, const bool kinds[DATA_COUNT],
                      const struct trials_options *o) {
    size_t most = o->gpu ? room_for(t->shapes[t->n - 1].inst, o) : 1;
    struct trial_batch *b = NULL;
    for (size_t k = 0; k < DATA_COUNT; k++) {
        if (!kinds[k])
            continue;
        if (!b || b->n >= most)
            b = add_batch(t, t->n - 1);
        add_case(b, (enum data_kind)k, o->secret);
    }
}

/* The first kind is the stated one, which the checkers watch in the first order. */
static void watch_small(struct trials *t, size_t first, const struct trials_options *o) {
    struct rng r = rng_stream(o->secret, S("orders"));
    t->batches[first].checked = true;
    t->batches[first].order = o->order;
    for (size_t i = first + 1; i < t->nbatches; i++) {
        t->batches[i].order = o->order ? o->order : 1 + (uint32_t)rng_below(r, i, MAX_ORDER);
        t->batches[i].checked_drawn = i == first + 1;
    }
}

/* On one of the small shapes the checkers watch a second kind, whose values send a kernel other
 * ways than the stated ones do. */
static void check_second(struct trials *t, const struct trials_options *o) {
    static const enum data_kind kinds[] = {DATA_SIGNED, DATA_SORTED, DATA_ONEHOT, DATA_NONFINITE};
    struct rng r = rng_stream(o->secret, S("second kind"));
    enum data_kind kind = kinds[rng_below(r, 0, sizeof kinds / sizeof *kinds)];
    size_t shape = t->n ? (size_t)rng_below(r, 1, t->n) : 0;
    for (size_t i = 0; i < t->nbatches; i++)
        if (t->batches[i].shape == shape && t->batches[i].cases[0].data == kind)
            t->batches[i].checked = true;
}

static bool add_small(const struct candidate *c, const struct inst *in,
                      const struct trials_options *o, struct arena *a, struct trials *t,
                      struct err *err) {
    bool all[DATA_COUNT];
    str which, label = inst_label(in, a);
    bool fits;
    if (t->n >= MAX_SMALL || seen(t, label))
        return true;
    if (!plan_fits(c, in, &fits, &which, err))
        return err_wrap(err, "at %.*s", STR_ARG(label));
    if (!fits)
        return true;
    memset(all, true, sizeof all);
    if (!add_shape(c, in, a, t, err))
        return false;
    size_t first = t->nbatches;
    add_kinds(t, all, o);
    if (!o->gpu)
        watch_small(t, first, o);
    return true;
}

/* At first anything odd, so that no kernel can know the shape and tails are met that a product of
 * any sizes mostly hides, ever smaller until it is small enough to judge; then anything, and sizes
 * that divide, that are prime, that are tiny: whatever a require line asks for, some are likely to
 * satisfy it. */
static int64_t draw_size(struct rng r, uint64_t attempt, size_t dim, int64_t own) {
    static const int64_t sizes[] = {1,  2,  3,  4,   5,   7,   8,   12,  16,  17,   31,   32,  48,
                                    64, 96, 97, 128, 192, 256, 257, 384, 512, 1024, 2048, 4096};
    uint64_t n = sizeof sizes / sizeof *sizes, at = attempt * TASK_MAX_DIMS + dim;
    if (attempt < ODD_ATTEMPTS)
        return 5 + 2 * (int64_t)rng_below(r, at, 500 >> attempt);
    if (attempt % 2 == 0)
        return 1 + (int64_t)rng_below(r, at, 1000 >> attempt / 2 % 8);
    uint64_t i = rng_below(r, at, n + 1);
    return i == n ? own : sizes[i];
}

/* One dimension of the `which`-th such shape, another one each time: few terms of a sum or a
 * maximum show a wrong beginning, which many hide. */
static void shorten(struct rng r, uint64_t attempt, size_t which, struct binding *set, size_t n) {
    struct rng s = rng_sub(r, 0);
    if (n > 1)
        set[(rng_below(s, 0, n) + which) % n].value = 1 + (int64_t)rng_below(s, 1 + attempt, 4);
}

static bool same_dims(const struct inst *a, const struct inst *b) {
    return memcmp(a->dims, b->dims, a->task->ndims * sizeof *a->dims) == 0;
}

static bool make_shapes(const struct candidate *c, const struct inst *own,
                        const struct trials_options *o, size_t wanted, struct arena *a,
                        struct trials *t, struct err *err) {
    const struct task *task = own->task;
    struct rng r = rng_stream(o->secret, S("shapes"));
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
        if (t->n + MADE_SHAPES > wanted && attempt < ODD_ATTEMPTS)
            shorten(r, attempt, wanted - t->n, set, n);
        struct arena *scratch = arena_new(16u << 20);
        bool usable = task_bind(task, set, n, scratch, &in, &ignored) && !same_dims(in, own) &&
                      plan_fits(c, in, &fits, &which, &ignored) && fits &&
                      within(in, SMALL_BYTES, SMALL_FLOPS) && (o->gpu || few_planes(in));
        arena_free(scratch);
        if (usable && (!task_bind(task, set, n, a, &in, err) || !add_small(c, in, o, a, t, err)))
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

/* Where it counts, first on the public seed. */
static void count_own(struct trials *t) {
    struct trial_batch *b = add_batch(t, t->n - 1);
    b->counted = true;
    add_case(b, DATA_STATED, COUNTED_SEED);
}

/* Contents in rotation: as many as memory holds, each kind from several seeds. Where it holds fewer
 * than three, one after the other. */
static void time_own(const struct inst *own, const struct trials_options *o, struct trials *t) {
    static const enum data_kind kinds[] = {DATA_STATED, DATA_SIGNED, DATA_SPIKES};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    size_t fit = room_for(own, o);
    size_t n = inst_bytes(own) > LARGE_CASE || fit < TIMED_CASES ? KINDS : TIMED_CASES;
    struct trial_batch *b = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!b || fit < KINDS)
            b = add_batch(t, t->n - 1);
        b->timed = true;
        add_case(b, kinds[i % KINDS], o->secret + i / KINDS);
    }
}

static bool add_own(const struct candidate *c, const struct inst *own,
                    const struct trials_options *o, size_t small, struct arena *a, struct trials *t,
                    struct err *err) {
    bool kinds[DATA_COUNT] = {false};
    if (!add_shape(c, own, a, t, err))
        return false;
    if (o->measure && !o->gpu)
        count_own(t);
    size_t first = t->nbatches;
    kinds[DATA_SIGNED] = kinds[DATA_SPIKES] = !(o->measure && o->gpu);
    if (o->thorough || small < 2)
        kinds[DATA_NONFINITE] = kinds[DATA_WIDE] = kinds[DATA_LARGE] = kinds[DATA_SUBNORMAL] = true;
    add_kinds(t, kinds, o);
    if (o->check_own && !o->gpu)
        t->batches[first].checked = true;
    for (size_t i = first; i < t->nbatches && !o->gpu; i++)
        t->batches[i].order = o->order;
    if (o->measure && o->gpu)
        time_own(own, o, t);
    return true;
}

void trials_timed(const struct inst *own, const struct trials_options *o, struct trials *t) {
    memset(t, 0, sizeof *t);
    t->n = 1;
    time_own(own, o, t);
}

/* Can the device run the task's own shape whole? */
static bool runs_whole(const struct inst *own, const struct trials_options *o) {
    return o->gpu ? inst_bytes(own) <= o->memory : within(own, FULL_BYTES, FULL_FLOPS);
}

static str scope_of(const struct trials *t, const struct trials_options *o, size_t checks,
                    size_t small, struct arena *a) {
    size_t made = small - checks;
    return arena_printf(a, "%zu check shape%s, %zu made at random%s", checks,
                        checks == 1 ? "" : "s", made,
                        t->task_shape_run ? " and the task's own shape"
                        : o->gpu          ? "; the task's own shape does not fit the GPU's memory"
                                 : "; the task's own shape is too large to simulate whole");
}

bool trials_make(const struct candidate *c, const struct inst *own, const struct trials_options *o,
                 struct arena *a, struct trials *t, bool *launch, struct err *err) {
    memset(t, 0, sizeof *t);
    if (!own_shape(c, own, a, t, launch, err))
        return false;
    t->task_shape_run = runs_whole(own, o);
    t->scope = S("nothing was judged");
    if (o->observe)
        return true;
    for (size_t i = 0; i < own->task->nchecks; i++) {
        struct inst *in;
        if (!task_bind_check(own->task, i, a, &in, err) || !add_small(c, in, o, a, t, err))
            return false;
    }
    size_t checks = t->n, wanted = checks + MADE_SHAPES;
    if (!make_shapes(c, own, o, wanted, a, t, err))
        return false;
    size_t small = t->n;
    if (!o->gpu)
        check_second(t, o);
    bool own_too = t->task_shape_run && !o->small_only;
    if (own_too && !add_own(c, own, o, small, a, t, err))
        return false;
    if (!t->n)
        return err_set(err, ERR_INPUT,
                       "no shape that the require lines admit is small enough to simulate: loosen "
                       "them, or verify on a GPU");
    t->scope = o->small_only ? arena_printf(a, "%zu small shapes", small)
                             : scope_of(t, o, checks, small, a);
    return true;
}
