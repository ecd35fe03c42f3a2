/* The expert's aligner: a strategy rewritten to what the compiled code does.
 *
 * A decision may come to nothing: rows that do not divide take no vectors, a tile that does not fit
 * is cut back, a compiler turns a copy into something else. Credit must go to what ran, so the
 * decisions that leave a trace in the PTX are read off it. The facts are those of the candidate's
 * record: the instruction census and ptxas's numbers of every kernel, and whether the source is in
 * CuTe. */
#include "agent/expert/expert.h"
#include <stdlib.h>
#include <string.h>

struct traces {
    int64_t widest; /* bytes a lane, of a global load or store */
    bool mma, wgmma, copies, bulk, cluster, streaming, approximate;
    int cute; /* the source is in CuTe; -1: the record does not say */
    int64_t spilled;
};

/* "ld.global.nc.128": bits a lane at the end. */
static void look_at_form(void *ctx, const char *form, const json *count) {
    (void)count;
    struct traces *t = ctx;
    bool global = strstr(form, ".global") && (!strncmp(form, "ld", 2) || !strncmp(form, "st", 2));
    const char *last = strrchr(form, '.');
    int64_t bytes = last ? strtol(last + 1, NULL, 10) / 8 : 0;
    if (global && bytes > t->widest)
        t->widest = bytes;
    t->streaming |= global && strstr(form, ".cs") != NULL;
    t->mma |= !strncmp(form, "mma", 3) || !strncmp(form, "wmma", 4);
    t->wgmma |= !strncmp(form, "wgmma", 5);
    t->bulk |= !strncmp(form, "cp.async.bulk", 13);
    t->copies |= !strncmp(form, "cp.async", 8);
    t->cluster |= strstr(form, "cluster") != NULL;
    t->approximate |= strstr(form, ".approx") != NULL;
}

static struct traces traces_of(const json *record) {
    bool cute;
    struct traces t = {.cute = json_get_bool(record, "cute", &cute) ? cute : -1};
    const json *kernels = json_get(record, "kernels");
    for (size_t i = 0; kernels && i < json_len(kernels); i++) {
        const json *k = json_at(kernels, i), *forms = json_get(json_get(k, "census"), "forms");
        int64_t spill = 0;
        if (forms)
            json_each(forms, look_at_form, &t);
        if (json_get_i64(k, "spill_bytes", &spill))
            t.spilled += spill;
    }
    return t;
}

/* What the code shows of a decision; STRATEGY_UNSET: nothing that contradicts it. */
static int64_t shown_width(const struct briefing *b, const struct traces *t, int64_t value) {
    int64_t width = t->widest / (int64_t)dtype_info(b->features.dtype)->bytes;
    return value > 1 && t->widest > 0 && width < value && t->widest < 16 ? (width ? width : 1)
                                                                         : STRATEGY_UNSET;
}
static int64_t shown_path(const struct briefing *b, const struct traces *t, int64_t value) {
    (void)b;
    int64_t path = t->wgmma ? 2 : t->mma ? 1 : 0;
    return path != value ? path : STRATEGY_UNSET;
}
static int64_t shown_cluster(const struct briefing *b, const struct traces *t, int64_t value) {
    (void)b;
    return value > 1 && !t->cluster ? 1 : STRATEGY_UNSET;
}
static int64_t shown_hint(const struct briefing *b, const struct traces *t, int64_t value) {
    (void)b;
    return value && !t->streaming ? 0 : STRATEGY_UNSET;
}
static int64_t shown_fast(const struct briefing *b, const struct traces *t, int64_t value) {
    (void)b;
    return value && !t->approximate ? 0 : STRATEGY_UNSET;
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
    {"vector-width", shown_width, "the widest access is narrower"},
    {"tensor-path", shown_path, "by the matrix instructions in the code"},
    {"row-cluster", shown_cluster, "no cluster barrier in the code"},
    {"cache-hint", shown_hint, "no streaming access in the code"},
    {"fast-math", shown_fast, "no approximate function in the code"},
};

void aligner_align(const struct briefing *b, const struct strategy *s, const json *record,
                   struct strategy *out, struct buf *reason) {
    const struct catalogue *c = b->catalogue;
    struct traces t = traces_of(record);
    *out = *s;
    for (size_t i = 0; json_get(record, "kernels") && i < sizeof rules / sizeof *rules; i++) {
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
