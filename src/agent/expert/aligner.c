/* The expert's aligner: a strategy rewritten to what the compiled code does.
 *
 * A decision may come to nothing: rows that do not divide take no vectors, a tile that does not fit
 * is cut back, a compiler turns a copy into something else. Credit must go to what ran, so the
 * decisions that leave a trace in the PTX or in the plan are read off them. The facts are those of
 * the candidate's record: the instruction census and ptxas's numbers of every kernel, the launches
 * at the task's shape, and whether the source is in CuTe.
 *
 * A rule corrects a decision only where the facts contradict it. Several kernels may follow the
 * same decision each in its own way, so what one launch alone would show counts for nothing where
 * there are others that it could belong to; and of a decision that single steps have values of
 * their own for, the facts, which are of all steps together, say nothing. */
#include "agent/expert/expert.h"
#include "eval/outcome.h"

struct traces {
    int64_t widest; /* bytes a lane, of a global load or store */
    int64_t waits;  /* copies still on their way at the least patient wait; -1: none waits */
    bool mma, wgmma, copies, cluster, streaming, approximate, atomics, barriers, shuffles;
    int cute; /* the source is in CuTe; -1: the record does not say */
    int64_t spilled;
    size_t launches; /* 0: not known */
    int64_t threads; /* of a block: the same for all launches, 0 where they differ */
    int64_t product; /* … of the launch of the kernel with matrix instructions */
    int64_t widest_cluster, shared;
};

/* ---- the census ---- */

static bool has(str form, str what) {
    return str_find(form, what) < form.n;
}

/* "ld.global.nc.128": bits a lane at the end. */
static void look_at_access(str form, struct traces *t) {
    int64_t bits = 0;
    size_t last = form.n;
    while (last && form.p[last - 1] != '.')
        last--;
    str_to_i64(str_from(form, last), &bits);
    t->widest = bits / 8 > t->widest ? bits / 8 : t->widest;
    t->streaming |= has(form, S(".cs"));
}

/* Whether it is a matrix instruction. */
static bool look_at_form(str form, struct traces *t) {
    const str wait = S("cp.async.wait_group ");
    bool mma = str_starts(form, S("mma")) || str_starts(form, S("wmma"));
    bool wgmma = str_starts(form, S("wgmma"));
    int64_t n = 0;
    if (str_starts(form, S("ld.global")) || str_starts(form, S("st.global")))
        look_at_access(form, t);
    if (str_starts(form, wait) && str_to_i64(str_from(form, wait.n), &n))
        t->waits = n > t->waits ? n : t->waits;
    t->mma |= mma;
    t->wgmma |= wgmma;
    t->copies |= str_starts(form, S("cp.async"));
    t->cluster |= has(form, S("cluster"));
    t->approximate |= has(form, S(".approx")) || has(form, S(".full"));
    t->atomics |= str_starts(form, S("atom")) || str_starts(form, S("red."));
    t->barriers |= str_starts(form, S("bar"));
    return mma || wgmma;
}

/* The name of a kernel with matrix instructions goes to `product`. */
static void look_at_kernel(const struct record_kernel *k, struct traces *t, str *product) {
    for (size_t i = 0; k->census && i < k->census->nforms; i++)
        if (look_at_form(k->census->forms[i].name, t))
            *product = k->name;
    t->shuffles |= k->census && census_group_count(k->census, S("shuffle")) > 0;
    t->spilled += k->spill_bytes;
}

/* ---- the launches ---- */

static int64_t product_of(const uint32_t n[3]) {
    int64_t all = 1;
    for (int d = 0; d < 3; d++)
        all *= n[d] ? n[d] : 1; /* 0: the record does not say */
    return all;
}

static void look_at_launch(const struct record_launch *l, str product, struct traces *t) {
    int64_t threads = product_of(l->block), cluster = product_of(l->cluster);
    t->threads = t->launches == 0 || t->threads == threads ? threads : 0;
    t->launches++;
    t->widest_cluster = cluster > t->widest_cluster ? cluster : t->widest_cluster;
    t->shared = l->shared_dynamic > t->shared ? l->shared_dynamic : t->shared;
    if (product.n && str_eq(l->kernel, product))
        t->product = threads;
}

static struct traces traces_of(const struct record *r) {
    struct traces t = {.waits = -1, .cute = r->has_cute ? r->cute : -1};
    str product = {0};
    for (size_t i = 0; i < r->nkernels; i++)
        look_at_kernel(&r->kernels[i], &t, &product);
    for (size_t i = 0; i < r->nlaunches; i++)
        look_at_launch(&r->launches[i], product, &t);
    return t;
}

/* ---- what they show ---- */

/* Of the task's smallest element: an access of that many bytes may be a vector of those. */
static int64_t smallest_bytes(const struct briefing *b) {
    const struct task *task = b->inst->task;
    size_t bytes = 16;
    for (size_t i = 0; i < task->ntensors; i++)
        if (tensor_has_memory(&task->tensors[i]) &&
            dtype_info(task->tensors[i].dtype)->bytes < bytes)
            bytes = dtype_info(task->tensors[i].dtype)->bytes;
    return (int64_t)bytes;
}

void aligner_align(const struct briefing *b, const struct strategy *s, const struct record *record,
                   struct strategy *out, struct buf *reason) {
    const struct traces t = traces_of(record);
    bool one = t.launches == 1, warps = t.mma && !t.wgmma;
    int64_t width = t.widest / smallest_bytes(b), value;
    *out = *s;
#define RULE(decision, contradicted, shown, why)                                                   \
    value = strategy_get(b->catalogue, s, decision);                                               \
    if (record->nkernels && value != STRATEGY_UNSET && (contradicted) &&                           \
        strategy_is_shared(b->catalogue, s, decision) &&                                           \
        strategy_put(b->catalogue, out, decision, shown))                                          \
        buf_printf(reason, "%s%s=%lld, not %lld: %s", reason->n ? "; " : "", decision,             \
                   (long long)(shown), (long long)value, why);
#include "agent/expert/aligner.def"
#undef RULE
    if (t.spilled > 0)
        buf_printf(reason, "%sspills %lld bytes a thread", reason->n ? "; " : "",
                   (long long)t.spilled);
}
