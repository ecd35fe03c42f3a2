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
 * there are others that it could belong to. */
#include "agent/expert/expert.h"
#include "eval/outcome.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static bool starts(const char *form, const char *with) {
    return strncmp(form, with, strlen(with)) == 0;
}

/* "ld.global.nc.128": bits a lane at the end. */
static void look_at_access(const char *form, struct traces *t) {
    const char *last = strrchr(form, '.');
    int64_t bytes = last ? strtol(last + 1, NULL, 10) / 8 : 0;
    t->widest = bytes > t->widest ? bytes : t->widest;
    t->streaming |= strstr(form, ".cs") != NULL;
}

/* Whether it is a matrix instruction. */
static bool look_at_form(const char *form, struct traces *t) {
    static const char wait[] = "cp.async.wait_group ";
    bool mma = starts(form, "mma") || starts(form, "wmma"), wgmma = starts(form, "wgmma");
    if (starts(form, "ld.global") || starts(form, "st.global"))
        look_at_access(form, t);
    if (starts(form, wait)) {
        int64_t n = strtol(form + strlen(wait), NULL, 10);
        t->waits = n > t->waits ? n : t->waits;
    }
    t->mma |= mma;
    t->wgmma |= wgmma;
    t->copies |= starts(form, "cp.async");
    t->cluster |= strstr(form, "cluster") != NULL;
    t->approximate |= strstr(form, ".approx") || strstr(form, ".full");
    t->atomics |= starts(form, "atom") || starts(form, "red.");
    t->barriers |= starts(form, "bar");
    return mma || wgmma;
}

/* The name of a kernel with matrix instructions goes to `product`. */
static void look_at_kernel(const struct record_kernel *k, struct traces *t, str *product) {
    for (size_t i = 0; k->census && i < k->census->nforms; i++) {
        char form[128];
        snprintf(form, sizeof form, "%.*s", STR_ARG(k->census->forms[i].name));
        if (look_at_form(form, t))
            *product = k->name;
    }
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

/* Of a decision with this value; STRATEGY_UNSET: nothing that contradicts it. */
#define SHOWN(name)                                                                                \
    static int64_t name(const struct briefing *b, const struct traces *t, int64_t value)
#define KEEP STRATEGY_UNSET

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
/* Copies to shared memory have their width in an operand, which is not counted. */
SHOWN(shown_width) {
    int64_t width = t->widest / smallest_bytes(b);
    bool narrow = value > 1 && t->widest > 0 && t->widest < 16 && width < value && !t->copies;
    return narrow ? (width ? width : 1) : KEEP;
}
SHOWN(shown_path) {
    (void)b;
    int64_t path = t->wgmma ? 2 : t->mma ? 1 : 0;
    return path != value ? path : KEEP;
}
/* All buffers but the one in use and the one being waited for may be on their way. */
SHOWN(shown_stages) {
    (void)b;
    return t->mma && !t->wgmma && t->waits >= 0 && t->waits + 2 != value ? t->waits + 2 : KEEP;
}
SHOWN(shown_warps) {
    (void)b;
    return t->mma && !t->wgmma && t->product && t->product != 32 * value ? t->product / 32 : KEEP;
}
SHOWN(shown_queries) { /* 16 a warp */
    (void)b;
    return t->product && t->product != 2 * value ? t->product / 2 : KEEP;
}
SHOWN(shown_cluster) {
    (void)b;
    if (t->launches)
        return t->widest_cluster != value ? t->widest_cluster : KEEP;
    return value > 1 && !t->cluster ? 1 : KEEP;
}
SHOWN(shown_block) {
    (void)b;
    return t->threads && t->threads != value ? t->threads : KEEP;
}
SHOWN(shown_hint) {
    (void)b;
    return value && !t->streaming ? 0 : KEEP;
}
SHOWN(shown_fast) {
    (void)b;
    return value && !t->approximate ? 0 : KEEP;
}
SHOWN(shown_halo) {
    (void)b;
    return value && t->launches && !t->copies && !t->shared ? 0 : KEEP;
}
SHOWN(shown_lookback) {
    (void)b;
    return value && !t->atomics ? 0 : KEEP;
}
SHOWN(shown_warp_scan) {
    (void)b;
    return value && t->launches == 1 && t->barriers ? 0 : KEEP;
}
/* Without barriers rows lie within warps, where it means nothing. */
SHOWN(shown_reduction) {
    (void)b;
    return value && t->barriers && !t->shuffles ? 0 : KEEP;
}
SHOWN(shown_lanes) {
    (void)b;
    int64_t lanes = t->shuffles ? 32 : 1;
    return t->launches == 1 && lanes != value ? lanes : KEEP;
}
/* Parts want a kernel that adds them up, a copy one that makes it. */
SHOWN(shown_parts) {
    (void)b;
    return value > 1 && t->launches == 1 ? 1 : KEEP;
}
SHOWN(shown_pack) {
    (void)b;
    return value && t->launches == 1 ? 0 : KEEP;
}

static int64_t shown_dialect(const struct briefing *b, const struct traces *t, int64_t value) {
    (void)b;
    return t->cute >= 0 && t->cute != value ? t->cute : STRATEGY_UNSET;
}

static const struct {
    const char *decision;
    int64_t (*shown)(const struct briefing *b, const struct traces *t, int64_t value);
    const char *why;
} rules[] = {
    {"dialect", shown_dialect, "by the headers that the source includes"},
    {"block", shown_block, "by the threads of the launch"},
    {"cache-hint", shown_hint, "no streaming access in the code"},
    {"fast-math", shown_fast, "no approximate function in the code"},
    {"generic-lanes", shown_lanes, "by the shuffles in the code"},
    {"halo", shown_halo, "no tile in shared memory"},
    {"pack", shown_pack, "one kernel, and none that copies"},
    {"query-tile", shown_queries, "by the threads of the launch"},
    {"reduce-kind", shown_reduction, "by barriers and shuffles in the code"},
    {"row-cluster", shown_cluster, "no such cluster"},
    {"row-split", shown_parts, "one kernel, and none that adds parts up"},
    {"scan-lookback", shown_lookback, "no atomic access in the code"},
    {"scan-split", shown_parts, "one kernel, and none that adds parts up"},
    {"scan-warp", shown_warp_scan, "barriers in the code"},
    {"split-k", shown_parts, "one kernel, and none that adds parts up"},
    {"stages", shown_stages, "by the copies that a wait leaves on their way"},
    {"tensor-path", shown_path, "by the matrix instructions in the code"},
    {"vector-width", shown_width, "the widest access is narrower"},
    {"warps", shown_warps, "by the threads of the launch"},
};

void aligner_align(const struct briefing *b, const struct strategy *s, const struct record *record,
                   struct strategy *out, struct buf *reason) {
    const struct catalogue *c = b->catalogue;
    struct traces t = traces_of(record);
    *out = *s;
    for (size_t i = 0; record->nkernels && i < sizeof rules / sizeof *rules; i++) {
        int64_t value = strategy_get(c, s, rules[i].decision);
        int64_t shown = value == STRATEGY_UNSET ? value : rules[i].shown(b, &t, value);
        if (shown == STRATEGY_UNSET || !strategy_put(c, out, rules[i].decision, shown))
            continue;
        buf_printf(reason, "%s%s=%lld, not %lld: %s", reason->n ? "; " : "", rules[i].decision,
                   (long long)shown, (long long)value, rules[i].why);
    }
    if (t.spilled > 0)
        buf_printf(reason, "%sspills %lld bytes a thread", reason->n ? "; " : "",
                   (long long)t.spilled);
}
