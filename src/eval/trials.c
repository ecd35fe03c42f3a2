#include "eval/trials.h"

#include "base/rng.h"
#include "eval/eval.h"
#include "spec/cost.h"
#include "spec/pattern.h"
#include "spec/scalar.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the two limits of a task on a GPU: the one to strive for, and the one nobody passes ---- */

static double contraction_rate(const struct gpu *g, enum accuracy a) {
    switch (a) {
    case ACCURACY_TF32:
        return g->tf32_flops;
    case ACCURACY_F16:
    case ACCURACY_BF16:
        return g->bf16_flops;
    default:
        return g->fp32_tensor_flops;
    }
}

struct roofline task_limit(const struct gpu *g, const struct inst *in) {
    struct cost c;
    cost_of(in, &c);
    double rate = contraction_rate(g, in->task->accuracy), rest = c.flops - c.flops_contraction;
    double seconds = c.flops_contraction / rate + rest / g->fp32_flops;
    double mixed = seconds > 0 ? c.flops / seconds : g->fp32_flops;
    return gpu_roofline(g, c.reach_read_bytes, c.reach_write_bytes, c.flops, mixed);
}

double task_floor(const struct gpu *g, const struct inst *in) {
    struct cost c;
    cost_of(in, &c);
    double stays = c.write_bytes < (double)g->l2_bytes ? c.write_bytes : (double)g->l2_bytes;
    double memory = (c.compulsory_bytes - stays) / g->dram_bytes_s;
    /* fp8 runs at twice bf16's rate; datasheets promise up to a third more than was measured. */
    double compute = c.flops_contraction / (2 * 1.33 * g->bf16_flops);
    return memory > compute ? memory : compute;
}

/* ---- does a block fit an SM, and a grid whose blocks wait for each other the GPU? ----
 *
 * A cluster lies within a group of SMs, of whose sizes the driver says nothing; of cooperative
 * grids in clusters this lets through what fits if there were one group, and the driver has the
 * last word where there is one. */

struct fitting {
    const struct gpu *g;
    const struct build *b;
    const struct ptx_module *m;
    struct err *why;
};

#define REFUSE(f, v, ...) (err_set((f)->why, ERR_NO, __VA_ARGS__), (v))

static const struct kernel_facts *facts_of(const struct build *b, str kernel) {
    for (size_t i = 0; i < b->nkernels; i++)
        if (str_eq(b->kernels[i].name, kernel))
            return &b->kernels[i];
    return NULL;
}

static uint32_t volume(const uint32_t n[3]) {
    return (n[0] ? n[0] : 1) * (n[1] ? n[1] : 1) * (n[2] ? n[2] : 1);
}

/* The blocks of a cluster: by the launch or else by the kernel. */
static uint32_t cluster_of(const struct fitting *f, const struct bound_launch *l) {
    const struct ptx_entry *e = ptx_find_entry(f->m, l->kernel);
    uint32_t blocks = volume(l->cluster);
    return blocks == 1 && e ? volume(e->cluster) : blocks;
}

static enum verdict grid_fits(const struct fitting *f, const struct bound_launch *l,
                              uint32_t cluster, const struct occupancy *o) {
    const struct gpu *g = f->g;
    uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    uint64_t room = (uint64_t)g->sms * (uint64_t)o->blocks_sm / cluster * cluster;
    char clusters[48] = "";
    if (!l->cooperative || blocks <= room)
        return VERDICT_ACCEPTED;
    if (cluster > 1)
        snprintf(clusters, sizeof clusters, ", in whole clusters of %" PRIu32, cluster);
    return REFUSE(f, VERDICT_LAUNCH_ERROR,
                  "kernel %.*s: a cooperative grid of %" PRIu64 " blocks, of which the %s holds "
                  "%" PRIu64 " at a time (%d on each of %d SMs%s; more are stopped by: %s)\n"
                  "hint: launch at most that many and let each do more",
                  STR_ARG(l->kernel), blocks, g->title, room, o->blocks_sm, g->sms, clusters,
                  o->limiter);
}

static enum verdict launch_fits(const struct fitting *f, struct bound_launch *l) {
    const struct gpu *g = f->g;
    const struct kernel_facts *k = facts_of(f->b, l->kernel);
    struct occupancy o = launch_occupancy(g, k, l);
    uint32_t cluster = cluster_of(f, l);
    size_t shared = (k ? k->shared_static : 0) + l->shared;
    if (cluster > 1 && g->has.cluster_most == 1)
        return REFUSE(f, VERDICT_UNSUPPORTED, "this GPU has no clusters (compute capability 9.0)");
    if (o.blocks_sm < 1 || shared > g->shared_block)
        return REFUSE(f, VERDICT_LAUNCH_ERROR,
                      "kernel %.*s: a block of %" PRIu32 " threads with %d registers each and %zu "
                      "bytes of shared memory does not fit an SM of the %s",
                      STR_ARG(l->kernel), volume(l->block), k ? k->registers : 0, shared, g->title);
    l->blocks_sm = (uint32_t)o.blocks_sm;
    return grid_fits(f, l, cluster, &o);
}

enum verdict plan_fits_gpu(const struct gpu *g, const struct build *b, const struct ptx_module *m,
                           struct bound_plan *p, struct err *why) {
    struct fitting f = {g, b, m, why};
    enum verdict v = VERDICT_ACCEPTED;
    if (p->nmaps && !g->has.tma)
        return REFUSE(&f, VERDICT_UNSUPPORTED,
                      "this GPU has no tensor maps (compute capability 9.0)");
    for (size_t i = 0; v == VERDICT_ACCEPTED && i < p->nlaunches; i++)
        v = launch_fits(&f, &p->launches[i]);
    return v;
}

#define FULL_BYTES    (160ull << 20) /* of all tensors: what is simulated whole */
#define FULL_FLOPS    4e8
#define SMALL_BYTES   (1ull << 20) /* of all tensors of a made shape */
#define SMALL_FLOPS   1e7
#define SMALL_PLANES  1024 /* … on the simulator: of all axes but the last two, a block each */
#define LONG_BYTES    (16ull << 20) /* … of one that resembles a task's own shape */
#define LONG_FLOPS    2e8
#define HUGE_FLOPS    2.5e9 /* … of some of them, which are tried when nothing smaller will do */
#define LONG_PLANES   8192
#define MAX_SMALL     (TRIALS_MAX_SHAPES - 3 - EXTRA_SHAPES)
#define ATTEMPTS      4000
#define TAIL_ATTEMPTS 64
#define ODD_ATTEMPTS  8 /* the first ones, at most 1003, 503, … 9 */
#define COUNTED_SEED  0 /* public: counts are the same in every run */
#define MADE_SHAPES   3 /* one odd in all dimensions, two with a short one */
#define TAIL_SHAPES   5 /* each dimension 2, 4, 8 times, and 16 or 32 times something odd, … */
#define TAIL_MANY     3 /* … which this one is; */
#define TAIL_THREE    4 /* … and 3 more than a multiple of four: check shapes often are one more */
#define SQUARE_TRIES  32 /* of the attempts at the first of them, whose dimensions are equal */
#define STRETCHED     2  /* shapes with one dimension longer than any other that is tried */
#define LONG_LEAST    1025
#define LONG_MOST     5000
#define FAR_MOST      80000
#define FAR_WORK      (64ull << 20) /* of workspaces */
#define FAR_CELLS     2e6           /* of one tensor, lets included, that the reference makes */
#define FAR_TERMS     2e7           /* … and terms of a sum that leaves some out */
#define BITS_16       65536
#define EXTRA_SHAPES  10 /* at most; the first of them is always run */
#define FEW           16 /* dimensions up to this are often part of what a kernel is made for */
#define TIMED_CASES   8
#define MAX_ORDER     9999 /* a number that is easily typed */
#define LARGE_CASE    (1ull << 30)
#define DRAWN_KINDS   4 /* kinds of data, of those that a large own shape does not meet all of */
#define OWN_BYTES     (2ull << 20) /* of an own shape that the simulator runs with every kind */

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
static bool few_planes(const struct inst *in, int64_t most) {
    for (size_t i = 0; i < in->task->ntensors; i++) {
        const struct tensor *t = &in->task->tensors[i];
        int64_t planes = 1;
        for (size_t k = 0; tensor_has_memory(t) && k + 2 < t->rank; k++)
            planes *= in->tensors[i].extent[k];
        if (planes > most)
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

static struct job_batch *add_batch(struct trials *t, size_t shape) {
    BUG_IF(t->nbatches == TRIALS_MAX_BATCHES);
    struct job_batch *b = &t->batches[t->nbatches++];
    *b = (struct job_batch){.shape = shape,
                            .cases = arena_array(t->mem, struct job_case, TRIALS_MAX_CASES)};
    return b;
}

static void add_case(struct job_batch *b, enum data_kind data, uint64_t seed) {
    BUG_IF(b->ncases == TRIALS_MAX_CASES);
    b->cases[b->ncases++] = (struct job_case){data, seed};
}

/* Cases of a shape that the GPU has room for at a time, beside what else is kept there. */
static size_t room_for(const struct inst *in, const struct trials_options *o) {
    return o->memory / 2 / (inst_bytes(in) + 1);
}

/* The same of the task's own shape, where it is known what that takes. */
static struct memory_plan room_for_own(const struct inst *own, const struct trials_options *o,
                                       size_t workspaces) {
    if (o->gpu && o->need)
        return memory_plan_of(o->need, o->memory, workspaces, TRIALS_MAX_CASES);
    return (struct memory_plan){.contents = room_for(own, o)};
}

static size_t workspaces_of(const struct bound_plan *p) {
    size_t sum = 0;
    for (size_t i = 0; i < p->nworkspaces; i++)
        sum += p->workspaces[i].bytes;
    return sum;
}

/* What the memory does not hold of a batch at the task's own shape. NULL: it is of another. */
static void set_room(struct job_batch *b, const struct memory_plan *room) {
    b->remade = room && room->remade;
    b->sampled = room && room->sampled;
}

/* The kinds on a shape: together, where there is room, or one by one. */
static void add_kinds(struct trials *t, size_t shape, const bool kinds[DATA_COUNT],
                      const struct trials_options *o, const struct memory_plan *room) {
    size_t most = !o->gpu || o->one_by_one ? 1
                  : room                   ? room->contents
                                           : room_for(t->shapes[shape].inst, o);
    struct job_batch *b = NULL;
    for (size_t k = 0; k < DATA_COUNT; k++) {
        if (!kinds[k])
            continue;
        if (!b || b->ncases >= most)
            b = add_batch(t, shape);
        set_room(b, room);
        add_case(b, (enum data_kind)k, o->secret);
    }
}

/* The checkers watch the stated kind, in the first order. */
static void watch_small(struct trials *t, size_t first, const struct trials_options *o) {
    struct rng r = rng_stream(o->secret, S("orders"));
    for (size_t i = first; i < t->nbatches; i++) {
        struct job_batch *b = &t->batches[i];
        b->checked = b->cases[0].data == DATA_STATED;
        b->order = o->order || b->checked ? o->order : 1 + (uint32_t)rng_below(r, i, MAX_ORDER);
        b->checked_drawn = b->cases[0].data == DATA_SIGNED && (b->shape + o->secret) % 3 == 0;
    }
}

static bool sends_other_ways(enum data_kind k) {
    return k == DATA_SIGNED || k == DATA_SORTED || k == DATA_ONEHOT || k == DATA_NONFINITE;
}

static bool has_ties(enum data_kind k) {
    return k == DATA_CONSTANT;
}

/* The checkers watch a second kind on one of the small shapes, whose values send a kernel other
 * ways than the stated ones do, and a third, where threads of several warps have the same. */
static void check_further(struct trials *t, const struct trials_options *o) {
    static bool (*const kinds[])(enum data_kind k) = {sends_other_ways, has_ties};
    for (uint64_t k = 0; k < 2; k++) {
        struct rng r = rng_sub(rng_stream(o->secret, S("further kinds")), k);
        size_t n = 0, chosen = 0;
        for (size_t i = 0; i < t->nbatches; i++)
            if (kinds[k](t->batches[i].cases[0].data) && !rng_below(r, i, ++n))
                chosen = i;
        if (n)
            t->batches[chosen].checked = true;
    }
}

/* Of these, two at a time take turns from small shape to small shape, in a drawn order: all of them
 * on every shape would cost a third more. */
static const enum data_kind in_turns[] = {DATA_OFFSET, DATA_LITERALS, DATA_FAR, DATA_INFINITE};
enum { IN_TURNS = sizeof in_turns / sizeof *in_turns, AT_A_TIME = 2 };
/* With fewer small shapes than this, a kind could be met but once: all shapes meet all. */
enum { SHAPES_FOR_TURNS = 3 };

static void set_turns(bool kinds[DATA_COUNT], size_t shape, uint64_t secret) {
    size_t order[IN_TURNS];
    rng_order(rng_stream(secret, S("turns")), IN_TURNS, order);
    for (size_t i = 0; i < AT_A_TIME; i++)
        kinds[in_turns[order[(shape * AT_A_TIME + i) % IN_TURNS]]] = true;
}

/* All others, but for the mixed one: its rows are of these kinds. */
static void small_kinds(bool kinds[DATA_COUNT], size_t shape, uint64_t secret) {
    for (size_t k = 0; k < DATA_COUNT; k++)
        kinds[k] = k != DATA_MIXED;
    for (size_t i = 0; i < IN_TURNS; i++)
        kinds[in_turns[i]] = false;
    set_turns(kinds, shape, secret);
}

static void complete_turns(struct trials *t, const struct trials_options *o) {
    for (size_t i = 0; i < t->n && t->n < SHAPES_FOR_TURNS; i++) {
        bool kinds[DATA_COUNT] = {false};
        set_turns(kinds, i + 1, o->secret);
        add_kinds(t, i, kinds, o, NULL);
    }
}

/* How many kinds of data a small shape meets, for the sake of time. */
enum kinds { KINDS_MOST, KINDS_ONE, KINDS_LARGE };

static void kinds_of(enum kinds which, bool kinds[DATA_COUNT], size_t shape,
                     const struct trials_options *o) {
    small_kinds(kinds, shape, o->secret);
    for (size_t i = 0; i < IN_TURNS && o->gpu && !o->thorough; i++)
        kinds[in_turns[i]] = false; /* of many candidates only the winner meets them there */
    for (size_t k = 0; k < DATA_COUNT && (o->watch || which != KINDS_MOST); k++)
        kinds[k] = k == (which == KINDS_LARGE ? DATA_LARGE : DATA_SIGNED) ||
                   (k == DATA_STATED && which == KINDS_MOST);
}

static bool add_small(const struct candidate *c, const struct inst *in,
                      const struct trials_options *o, enum kinds which, struct arena *a,
                      struct trials *t, struct err *err) {
    bool kinds[DATA_COUNT];
    str require, label = inst_label(in, a);
    bool fits;
    if (t->n >= MAX_SMALL || seen(t, label))
        return true;
    if (!plan_fits(c, in, &fits, &require, err))
        return err_wrap(err, "at %.*s", STR_ARG(label));
    if (!fits)
        return true;
    if (!add_shape(c, in, a, t, err))
        return false;
    size_t first = t->nbatches;
    kinds_of(which, kinds, t->n - 1, o);
    add_kinds(t, t->n - 1, kinds, o, NULL);
    if (!o->gpu && which == KINDS_MOST)
        watch_small(t, first, o);
    return true;
}

/* ---- what is done once ---- */

/* Two cases with the same parameters: the steps that are done once are done for the first, and the
 * second is judged on what they left. */
static void keep_prepared(struct trials *t, size_t shape, enum data_kind data,
                          const struct trials_options *o) {
    struct rng r = rng_stream(o->secret, S("other inputs"));
    struct job_batch *b = add_batch(t, shape);
    b->keeps = true;
    add_case(b, data, o->secret);
    add_case(b, data, rng_u64(r, shape) >> 1);
    fields_set(&b->cases[1], params, o->secret);
}

/* At the first small shapes, and at the task's own where it is run whole: on a GPU that holds two
 * cases, and on the simulator, where a run takes long, when thorough. */
static void keep_all_prepared(struct trials *t, size_t small, bool own,
                              const struct trials_options *o) {
    static const enum data_kind kinds[] = {DATA_SIGNED, DATA_STATED};
    if (!t->task_plan.once_steps || o->one_by_one)
        return;
    for (size_t i = 0; i < small && i < sizeof kinds / sizeof *kinds; i++)
        keep_prepared(t, i, kinds[i], o);
    if (own && (o->gpu ? t->room.contents >= 2 && !t->room.sampled : o->thorough)) {
        keep_prepared(t, t->n - 1, DATA_SIGNED, o);
        set_room(&t->batches[t->nbatches - 1], &t->room);
    }
}

/* At first anything odd, so that no kernel can know the shape and tails are met that a product of
 * any sizes mostly hides, ever smaller until it is small enough to judge; then anything, and sizes
 * that divide, that are prime, that are tiny: whatever a require line asks for, some are likely to
 * satisfy it. */
static int64_t draw_size(struct rng r, uint64_t attempt, size_t dim, int64_t own, bool all) {
    static const int64_t sizes[] = {1,  2,  3,  4,   5,   7,   8,   12,  16,  17,   31,   32,  48,
                                    64, 96, 97, 128, 192, 256, 257, 384, 512, 1024, 2048, 4096};
    uint64_t n = sizeof sizes / sizeof *sizes, at = attempt * TASK_MAX_DIMS + dim;
    if (!(all && attempt < ODD_ATTEMPTS) && own <= FEW && rng_below(rng_sub(r, 2), at, 2))
        return own;
    if (attempt < ODD_ATTEMPTS)
        return 5 + 2 * (int64_t)rng_below(r, at, 500 >> attempt);
    if (attempt % 2 == 0)
        return 1 + (int64_t)rng_below(r, at, 1000 >> attempt / 2 % 8);
    uint64_t i = rng_below(r, at, n + 1);
    return i == n ? own : sizes[i];
}

/* Of the tail shapes each dimension is once twice, once four times, once eight times something odd,
 * in the fourth one 16 or 32 times, and in the last one 3 more than a multiple of four: what
 * kernels do with vectors and tiles that do not divide shows in its own way for each. In the first
 * one all are equal, where that can be: rows taken for columns show elsewhere, and what is done for
 * squares alone shows there. */
static int64_t draw_tail(struct rng r, uint64_t attempt, size_t dim, int64_t own, size_t which) {
    uint64_t at = attempt * TASK_MAX_DIMS + dim;
    struct rng turns = rng_sub(r, 3);
    uint64_t turn = which ? 1 + (rng_below(turns, dim, 2) + which) % 2 : 0;
    uint64_t twos = 1 + (rng_below(turns, TASK_MAX_DIMS, 3) + turn) % 3;
    if (which == TAIL_MANY)
        twos = 4 + rng_below(turns, 2 * TASK_MAX_DIMS + dim, 2);
    if (own <= FEW && rng_below(rng_sub(r, 2), at, 2))
        return own;
    if (which == TAIL_THREE)
        return 3 + 4 * (int64_t)rng_below(rng_sub(r, 5), at, 1 + (50 >> attempt % 8));
    if (!which && attempt < SQUARE_TRIES)
        at = attempt * TASK_MAX_DIMS;
    uint64_t most = (200 >> attempt % 8 >> twos) + 1, least = most / 3; /* tails of something */
    return (int64_t)(1 + 2 * (least + rng_below(r, at, most - least))) << twos;
}

/* Any size up to FAR_MOST, as likely as half of it; or one of more than 16 bits. */
static int64_t draw_far(struct rng r, uint64_t at, bool more) {
    double unit = (double)rng_below(r, at, 1024) / 1024;
    if (more)
        return BITS_16 + 1 + (int64_t)(unit * (FAR_MOST - BITS_16));
    return (int64_t)exp2(log2(LONG_MOST) + unit * (log2(FAR_MOST) - log2(LONG_MOST)));
}

/* One dimension is long, and of another parity than the others, which are small and above 4; where
 * they are many they are less. Where `far` is not 0 it is very long, and the others are `far`
 * or, for their parity, one more. */
static int64_t draw_stretched(struct rng r, uint64_t attempt, size_t dim, int64_t own, bool is_long,
                              bool odd, int64_t far) {
    uint64_t at = attempt * TASK_MAX_DIMS + dim;
    if (!is_long && own <= FEW && rng_below(rng_sub(r, 1), at, 2))
        return own;
    if (far && is_long)
        return (draw_far(r, at, far == 1) | 1) - !odd;
    if (far)
        return far > 1 && odd ? far + 1 : far;
    if (!is_long && attempt % 8 < 4)
        return (odd ? 6 : 5) + 2 * (int64_t)rng_below(r, at, 1 + (8 >> attempt % 4));
    if (!is_long)
        return (odd ? 2 : 1) + 2 * (int64_t)rng_below(r, at, 2);
    int64_t least = own >= LONG_LEAST && own < LONG_MOST ? own + 1 : LONG_LEAST;
    int64_t v =
        least + (int64_t)rng_below(r, at, own < LONG_LEAST ? LONG_LEAST : LONG_MOST - least + 1);
    return v + ((v % 2 != 0) != odd);
}

/* One dimension of the `which`-th such shape, another one each time: few terms of a sum or a
 * maximum show a wrong beginning, which many hide. The last one, where it is not short, is such
 * that vectors divide it: that way, too, meets all kinds of data. */
static void shorten(struct rng r, uint64_t attempt, size_t which, struct binding *set, size_t n) {
    struct rng s = rng_sub(r, 0);
    if (n > 1)
        set[(rng_below(s, 0, n) + which) % n].value = 1 + (int64_t)rng_below(s, 1 + attempt, 4);
    if (n > 0 && set[n - 1].value > 4)
        set[n - 1].value = (set[n - 1].value + 7) / 8 * 8;
}

static bool same_dims(const struct inst *a, const struct inst *b) {
    return memcmp(a->dims, b->dims, a->task->ndims * sizeof *a->dims) == 0;
}

/* A made shape that the candidate admits and that is small enough to judge, in *out. */
static bool is_small(const struct candidate *c, const struct inst *own, const struct binding *set,
                     size_t n, const struct trials_options *o, struct arena *a, struct inst **out) {
    struct err ignored = {0};
    struct arena *scratch = arena_new(16u << 20);
    bool fits;
    str which;
    bool usable = task_bind(own->task, set, n, scratch, out, &ignored) && !same_dims(*out, own) &&
                  plan_fits(c, *out, &fits, &which, &ignored) && fits &&
                  within(*out, SMALL_BYTES, SMALL_FLOPS) &&
                  (o->gpu || few_planes(*out, SMALL_PLANES));
    arena_free(scratch);
    return usable && task_bind(own->task, set, n, a, out, &ignored);
}

static bool make_shapes(const struct candidate *c, const struct inst *own,
                        const struct trials_options *o, size_t wanted, struct arena *a,
                        struct trials *t, struct err *err) {
    const struct task *task = own->task;
    struct rng r = rng_stream(o->secret, S("shapes"));
    struct binding set[TASK_MAX_DIMS];
    for (uint64_t attempt = 0; attempt < ATTEMPTS && t->n < wanted; attempt++) {
        struct inst *in;
        size_t n = 0;
        bool first = t->n + MADE_SHAPES == wanted;
        for (size_t d = 0; d < task->ndims; d++)
            if (!task->dims[d].derived)
                set[n++] = (struct binding){task->dims[d].name,
                                            draw_size(r, attempt, d, own->dims[d], first)};
        if (!first && attempt < ODD_ATTEMPTS)
            shorten(r, attempt, wanted - t->n, set, n);
        if (is_small(c, own, set, n, o, a, &in) && !add_small(c, in, o, KINDS_MOST, a, t, err))
            return false;
    }
    return true;
}

/* Two of several dimensions are one size: either stride would do there. */
static void equal_pair(struct rng r, struct binding *set, size_t n) {
    struct rng pair = rng_sub(r, 4);
    uint64_t a = rng_below(pair, 0, n), b = (a + 1 + rng_below(pair, 1, n - 1)) % n;
    set[a].value = set[b].value;
}

/* Values tell a tail that is wrong on any data: few kinds will do. */
static bool make_tail_shapes(const struct candidate *c, const struct inst *own,
                             const struct trials_options *o, struct arena *a, struct trials *t,
                             struct err *err) {
    const struct task *task = own->task;
    struct rng r = rng_stream(o->secret, S("tails"));
    struct binding set[TASK_MAX_DIMS];
    for (size_t which = 0; which < TAIL_SHAPES; which++) {
        size_t before = t->n;
        for (uint64_t attempt = 0; attempt < TAIL_ATTEMPTS && t->n == before; attempt++) {
            struct inst *in;
            size_t n = 0;
            for (size_t d = 0; d < task->ndims; d++)
                if (!task->dims[d].derived)
                    set[n++] = (struct binding){task->dims[d].name,
                                                draw_tail(r, attempt, d, own->dims[d], which)};
            if (which == TAIL_MANY && n > 2)
                equal_pair(r, set, n);
            if (is_small(c, own, set, n, o, a, &in) && !add_small(c, in, o, KINDS_ONE, a, t, err))
                return false;
        }
    }
    return true;
}

/* The dimensions that may be the long one: few of something are rarely many of it. */
static size_t stretchable(const struct inst *own, size_t list[TASK_MAX_DIMS]) {
    const struct task *task = own->task;
    size_t n = 0;
    for (int64_t least = FEW + 1; !n && least > 0; least -= FEW)
        for (size_t d = 0; d < task->ndims; d++)
            if (!task->dims[d].derived && own->dims[d] >= least)
                list[n++] = d;
    return n;
}

/* The reference takes one step a result. */
static bool goes_by_steps(const struct task *t, const struct expr *e) {
    struct recurrence steps;
    struct exponentials scaled;
    struct segments segments;
    return pattern_is_recurrence(e, &steps) || pattern_is_exponentials(e, &scaled) ||
           pattern_is_segments(t, e, &segments);
}

/* Ranges that vary and guards leave out terms, and a cost without them; but the reference looks at
 * all of them, and keeps a let whole. A prefix is summed once. */
static bool leaves_terms_out(const struct task *t, const struct expr *e) {
    bool out = false;
    if (e->kind == EXPR_REDUCE && goes_by_steps(t, e))
        return false;
    if (e->kind == EXPR_REDUCE && !pattern_is_prefix(e)) {
        out = e->reduce->guard != NULL;
        for (size_t i = 0; i < e->reduce->nvars; i++)
            out |= expr_vars(e->reduce->vars[i].lo) || expr_vars(e->reduce->vars[i].hi);
    }
    for (size_t i = 0; i < e->nargs && !out; i++)
        out = leaves_terms_out(t, e->args[i]);
    return out;
}

static bool is_soon_judged(const struct inst *in) {
    const struct task *t = in->task;
    int64_t longest = 1;
    for (size_t d = 0; d < t->ndims; d++)
        longest = in->dims[d] > longest ? in->dims[d] : longest;
    for (size_t i = 0; i < t->nstatements; i++) {
        double cells = (double)in->tensors[t->statements[i].tensor].count;
        bool all = leaves_terms_out(t, t->statements[i].body);
        if (cells > FAR_CELLS || (all && cells * (double)longest > FAR_TERMS))
            return false;
    }
    return true;
}

/* A size beyond what a grid holds, or memory that grows with its square, is no fault of a kernel
 * that nobody will use there. */
static bool can_launch(const struct candidate *c, const struct inst *in) {
    struct err ignored = {0};
    struct arena *a = arena_new(1u << 20);
    struct bound_plan plan;
    uint64_t bytes = 0;
    bool can = plan_bind(c, in, a, &plan, &ignored);
    for (size_t i = 0; can && i < plan.nworkspaces; i++)
        bytes += plan.workspaces[i].bytes;
    arena_free(a);
    return can && bytes <= FAR_WORK;
}

/* Integers and truth values are added up: large ones reach what a narrow sum does not hold. */
static bool counts(const struct task *t) {
    bool any = false;
    for (size_t i = 0; i < t->ntensors; i++)
        any |= tensor_is_input(&t->tensors[i]) && !t->tensors[i].indexes &&
               dtype_info(t->tensors[i].dtype)->kind != 'f';
    return any;
}

/* One kind of data: a kernel that leaves out what is far along a dimension is wrong on any. The far
 * shape is given up where it takes long. */
static bool make_stretched_shapes(const struct candidate *c, const struct inst *own,
                                  const struct trials_options *o, struct arena *a, struct trials *t,
                                  struct err *err) {
    const struct task *task = own->task;
    struct rng r = rng_stream(o->secret, S("stretched"));
    bool odd = rng_below(rng_sub(r, 2), 0, 2);
    size_t list[TASK_MAX_DIMS], nlist = stretchable(own, list);
    uint64_t first = rng_below(rng_sub(r, 2), 1, nlist ? nlist : 1);
    struct binding set[TASK_MAX_DIMS];
    for (size_t which = 0; which < STRETCHED && nlist; which++) {
        size_t before = t->n, batches = t->nbatches;
        int64_t far = which < STRETCHED - 1 ? 0 : rng_below(rng_sub(r, 2), 2, 4) ? 5 : 1;
        for (uint64_t attempt = 0; attempt < TAIL_ATTEMPTS && t->n == before; attempt++) {
            size_t n = 0, is_long = list[(first + which + attempt / 8) % nlist];
            struct inst *in;
            for (size_t d = 0; d < task->ndims; d++)
                if (!task->dims[d].derived)
                    set[n++] = (struct binding){
                        task->dims[d].name,
                        draw_stretched(r, attempt, d, own->dims[d], d == is_long, odd, far)};
            if (is_small(c, own, set, n, o, a, &in) &&
                (!far || (is_soon_judged(in) && can_launch(c, in))) &&
                !add_small(c, in, o, far && counts(task) ? KINDS_LARGE : KINDS_ONE, a, t, err))
                return false;
        }
        for (size_t i = batches; i < t->nbatches; i++)
            t->batches[i].patience_ms = far > 0 ? TRIALS_PATIENCE_MS : 0;
    }
    return true;
}

/* ---- shapes like the task's own ---- */

/* The place of a dimension among the settable ones, by size at the task's own shape. */
static size_t rank_of(const struct inst *own, size_t dim) {
    size_t rank = 0;
    for (size_t d = 0; d < own->task->ndims; d++)
        rank += !own->task->dims[d].derived &&
                (own->dims[d] > own->dims[dim] || (d < dim && own->dims[d] == own->dims[dim]));
    return rank;
}

/* A few tiles of the usual sizes, or a little more or less, at most `cap`. */
static int64_t draw_tiles(struct rng r, uint64_t at, int64_t cap) {
    static const int64_t more[] = {0, 1, -1, 2, -2, 4, -4};
    int64_t v = (cap > 512 ? 256 : 16) << rng_below(r, 4 * at, 4);
    v = v * (1 + (int64_t)rng_below(r, 4 * at + 1, 3)) +
        more[rng_below(r, 4 * at + 2, sizeof more / sizeof *more)];
    while (v > cap)
        v = (v + 1) / 2;
    return v < 1 ? 1 : v;
}

/* What is as it is in the task's own shape. */
struct likeness {
    size_t n;         /* settable dimensions */
    uint64_t number;  /* of the shape that is wanted */
    int64_t cap;      /* of the other dimensions */
    double flops;     /* at most */
    uint64_t attempt; /* of all */
};

/* First each dimension by itself, the longest one first; then two at a time; then none, and any. */
static bool stays(const struct likeness *k, struct rng r, size_t rank) {
    uint64_t turn = k->number / k->n, first = k->number % k->n;
    if (turn == 0)
        return rank == first;
    if (turn == 1 && k->n > 2)
        return rank == first || rank == (first + 1) % k->n;
    return k->number % 2 && rng_below(r, k->attempt * TASK_MAX_DIMS + rank, 2);
}

static int64_t draw_long(struct rng r, const struct likeness *k, const struct inst *own,
                         size_t dim) {
    int64_t size = own->dims[dim];
    if (size <= FEW || stays(k, r, rank_of(own, dim)))
        return size;
    return draw_tiles(rng_sub(r, 1), k->attempt * TASK_MAX_DIMS + dim,
                      k->cap < size ? k->cap : size);
}

/* The first of them, which is always run, meets the smallest and the largest numbers and what is
 * not finite as well: what a kernel does with them late in a long row no small shape shows. */
static void add_long_kinds(struct trials *t, const struct trials_options *o, bool extra) {
    static const enum data_kind others[] = {DATA_STATED, DATA_SORTED, DATA_ONEHOT, DATA_TILE};
    struct rng r = rng_stream(o->secret, S("kinds"));
    uint64_t which = rng_below(r, t->n, sizeof others / sizeof *others);
    const enum data_kind kinds[] = {DATA_SIGNED,    others[which], DATA_SUBNORMAL,
                                    DATA_NONFINITE, DATA_INFINITE, DATA_LARGE};
    size_t n = !o->thorough ? 1 : extra ? 2 : sizeof kinds / sizeof *kinds;
    for (size_t i = 0; i < n; i++) {
        struct job_batch *b = add_batch(t, t->n - 1);
        add_case(b, kinds[i], o->secret);
        b->extra = extra;
        b->patience_ms = TRIALS_PATIENCE_MS;
    }
}

static bool is_like_own(const struct candidate *c, const struct inst *own, const struct inst *in,
                        double flops, const struct trials *t, struct arena *a) {
    struct err ignored = {0};
    bool fits;
    str which;
    return !same_dims(in, own) && !seen(t, inst_label(in, a)) &&
           plan_fits(c, in, &fits, &which, &ignored) && fits && within(in, LONG_BYTES, flops) &&
           few_planes(in, LONG_PLANES);
}

static struct likeness likeness_of(const struct task *t) {
    struct likeness k = {0};
    for (size_t d = 0; d < t->ndims; d++)
        k.n += !t->dims[d].derived;
    return k;
}

/* True with *in where there is such a shape. */
static bool make_long(const struct candidate *c, const struct inst *own, const struct likeness *k,
                      const struct trials *t, struct rng r, struct arena *a, struct inst **in) {
    const struct task *task = own->task;
    struct binding set[TASK_MAX_DIMS];
    struct err ignored = {0};
    size_t n = 0;
    for (size_t d = 0; d < task->ndims; d++)
        if (!task->dims[d].derived)
            set[n++] = (struct binding){task->dims[d].name, draw_long(r, k, own, d)};
    struct arena *scratch = arena_new(16u << 20);
    bool usable = task_bind(task, set, n, scratch, in, &ignored) &&
                  is_like_own(c, own, *in, k->flops, t, scratch);
    arena_free(scratch);
    return usable && task_bind(task, set, n, a, in, &ignored);
}

/* Each as large as may be. */
static bool make_long_shapes(const struct candidate *c, const struct inst *own,
                             const struct trials_options *o, struct arena *a, struct trials *t,
                             struct err *err) {
    struct rng r = rng_stream(o->secret, S("long shapes"));
    struct likeness k = likeness_of(own->task);
    size_t first = t->n;
    for (; k.n && k.number < 2 * EXTRA_SHAPES && t->n < first + EXTRA_SHAPES; k.number++) {
        struct inst *in;
        bool found = false, huge = k.number > k.n && k.number % 3 == 0;
        k.flops = huge ? HUGE_FLOPS : LONG_FLOPS;
        for (k.cap = huge ? 2048 : 512; k.cap && !found; k.cap /= 2)
            for (int i = 0; i < 4 && !found; i++, k.attempt++)
                found = make_long(c, own, &k, t, r, a, &in);
        if (!found)
            continue;
        if (!add_shape(c, in, a, t, err))
            return false;
        add_long_kinds(t, o, t->n > first + 1);
    }
    return true;
}

/* Every check shape of the task is tried or listed. One that is another one, or the same as one
 * made before, is tried there. */
static bool add_checks(const struct candidate *c, const struct inst *own,
                       const struct trials_options *o, struct arena *a, struct trials *t,
                       bool *launch, struct err *err) {
    const struct task *task = own->task;
    t->skipped = arena_array(a, struct trial_skipped, task->nchecks);
    for (size_t i = 0; i < task->nchecks; i++) {
        struct inst *in;
        str require = S("");
        bool fits;
        if (!task_bind_check(task, i, a, &in, err) || !add_small(c, in, o, KINDS_MOST, a, t, err))
            return false;
        str label = inst_label(in, a);
        if (seen(t, label))
            continue;
        if (!plan_fits(c, in, &fits, &require, err))
            return err_wrap(err, "at %.*s", STR_ARG(label));
        *launch = fits || !o->must_admit;
        if (!*launch)
            return err_set(err, ERR_INPUT,
                           "the check shape %.*s does not satisfy 'require %.*s', and every check "
                           "shape must be served (--must-admit)",
                           STR_ARG(label), STR_ARG(require));
        t->skipped[t->nskipped++] = (struct trial_skipped){label, require};
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
    struct job_batch *b = add_batch(t, t->n - 1);
    b->counted = true;
    add_case(b, DATA_STATED, COUNTED_SEED);
}

/* Contents in rotation: as many as memory holds, each kind from several seeds. Where it holds fewer
 * than three, one after the other. */
static void time_own(const struct inst *own, const struct trials_options *o, struct trials *t) {
    static const enum data_kind kinds[] = {DATA_STATED, DATA_SIGNED, DATA_SPIKES};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    size_t fit = t->room.contents;
    t->wanted = inst_bytes(own) > LARGE_CASE ? KINDS : TIMED_CASES;
    size_t n = t->contents = fit < t->wanted ? KINDS : t->wanted;
    struct job_batch *b = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!b || fit < KINDS)
            b = add_batch(t, t->n - 1);
        b->timed = true;
        set_room(b, &t->room);
        add_case(b, kinds[i % KINDS], o->secret + i / KINDS);
    }
}

/* Where it is thorough, the kinds that only small shapes meet else. A case of a large shape takes
 * long: there mixed rows stand for most of them, and a GPU meets some that are drawn; all, where a
 * kernel admits few small shapes. */
static void further_kinds(const struct inst *own, const struct trials_options *o, bool few,
                          bool kinds[DATA_COUNT]) {
    static const enum data_kind further[] = {DATA_ZEROS,    DATA_ONEHOT, DATA_SORTED,
                                             DATA_CONSTANT, DATA_TILE,   DATA_OFFSET,
                                             DATA_LITERALS, DATA_FAR,    DATA_INFINITE};
    enum { FURTHER = sizeof further / sizeof *further };
    struct rng r = rng_stream(o->secret, S("kinds of data"));
    bool all =
        few || (o->gpu ? inst_bytes(own) <= LARGE_CASE : within(own, OWN_BYTES, SMALL_FLOPS));
    size_t order[FURTHER], n = all ? FURTHER : o->gpu ? DRAWN_KINDS : 0;
    rng_order(r, FURTHER, order);
    kinds[DATA_MIXED] = !all;
    for (size_t i = 0; i < n; i++)
        kinds[further[order[i]]] = true;
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
    if (o->thorough)
        further_kinds(own, o, small < 2, kinds);
    if (t->room.sampled)
        kinds[DATA_NONFINITE] = false; /* tiles are not judged on it */
    add_kinds(t, t->n - 1, kinds, o, &t->room);
    if (o->check_own && !o->gpu)
        t->batches[first].checked = true;
    for (size_t i = first; i < t->nbatches && !o->gpu; i++)
        t->batches[i].order = o->order;
    if (o->measure && o->gpu)
        time_own(own, o, t);
    return true;
}

void trials_timed(const struct inst *own, const struct trials_options *o, struct arena *a,
                  struct trials *t) {
    memset(t, 0, sizeof *t);
    t->mem = a;
    t->n = 1;
    t->room = room_for_own(own, o, o->workspaces);
    time_own(own, o, t);
}

/* Can the device run the task's own shape whole? */
static bool runs_whole(const struct inst *own, const struct trials_options *o,
                       const struct memory_plan *room) {
    if (o->gpu)
        return o->need ? room->contents > 0 : inst_bytes(own) <= o->memory;
    return !o->watch && within(own, FULL_BYTES, FULL_FLOPS);
}

/* What the memory did not hold, where it did not. */
static str left_out(const struct trials *t, const struct trials_options *o, struct arena *a) {
    struct buf b;
    buf_init(&b, 256);
    if (o->gpu && o->need && t->contents && t->contents < t->wanted)
        buf_printf(&b, "; timed on %zu contents, as the GPU's memory does not hold %zu",
                   t->contents, t->wanted);
    if (t->room.sampled)
        buf_puts(&b, S("; there tiles alone are compared, drawn by a secret, as the GPU's memory "
                       "does not hold what is expected of all"));
    if (o->gpu && o->need && t->contents && t->room.contents < t->contents)
        buf_puts(&b, S(", and those one after the other"));
    str text = arena_str(a, buf_str(&b));
    buf_release(&b);
    return text;
}

static str scope_of(const struct trials *t, const struct trials_options *o, size_t checks,
                    size_t small, struct arena *a) {
    size_t made = small - checks;
    str of = t->nskipped ? arena_printf(a, " of %zu", checks + t->nskipped) : S("");
    str stated = arena_printf(a, "%zu%.*s check shape%s", checks, STR_ARG(of),
                              checks + t->nskipped == 1 ? "" : "s");
    if (checks + t->nskipped == 0)
        stated = S("no check shapes (the task states none)");
    return arena_printf(a, "%.*s, %zu made at random%s%s%.*s", STR_ARG(stated), made,
                        t->covers && t->n > small ? ", a long one" : "",
                        t->task_shape_run ? " and the task's own shape"
                        : o->gpu          ? "; the task's own shape does not fit the GPU's memory"
                        : o->watch ? ", under the simulator's checkers; of the task's own shape"
                                   : "; the task's own shape is too large to simulate whole",
                        STR_ARG(left_out(t, o, a)));
}

bool trials_make(const struct candidate *c, const struct inst *own, const struct trials_options *o,
                 struct arena *a, struct trials *t, bool *launch, struct err *err) {
    memset(t, 0, sizeof *t);
    t->mem = a;
    if (!own_shape(c, own, a, t, launch, err))
        return false;
    t->room = room_for_own(own, o, workspaces_of(&t->task_plan));
    t->task_shape_run = runs_whole(own, o, &t->room);
    t->scope = S("nothing was judged");
    if (o->observe)
        return true;
    if (!add_checks(c, own, o, a, t, launch, err))
        return false;
    size_t checks = t->n, wanted = checks + MADE_SHAPES;
    if (!make_shapes(c, own, o, wanted, a, t, err))
        return false;
    if (!o->watch && (!o->gpu || o->thorough))
        complete_turns(t, o);
    if (o->thorough && !make_tail_shapes(c, own, o, a, t, err))
        return false;
    if (!o->gpu)
        check_further(t, o);
    if (o->thorough && !o->watch && !make_stretched_shapes(c, own, o, a, t, err))
        return false;
    size_t small = t->n;
    bool own_too = t->task_shape_run && !o->small_only;
    if (own_too && !add_own(c, own, o, small, a, t, err))
        return false;
    keep_all_prepared(t, small, own_too, o);
    t->covers = !o->gpu && !o->small_only && !t->task_shape_run;
    t->watches = own_too && !o->gpu && o->thorough;
    if (t->covers && !make_long_shapes(c, own, o, a, t, err))
        return false;
    if (!t->n && !t->covers)
        return err_set(err, ERR_INPUT,
                       "no shape that the require lines admit is small enough to simulate: loosen "
                       "them, or verify on a GPU");
    t->scope = o->small_only ? arena_printf(a, "%zu small shapes", small)
                             : scope_of(t, o, checks, small, a);
    return true;
}
