/* Our own kernels: where one of them does not compile, the environment is broken, not a candidate
 * wrong. */
#include "eval/support.h"

#include "base/asset.h"
#include "kernel/oracle.h"

static void got(struct support *s, const struct build *b, const char *what, str *out) {
    struct err err = {0};
    if (b->verdict != VERDICT_ACCEPTED) {
        err_set(&err, ERR_ENV, "the %s does not compile: %.*s", what, STR_ARG(b->log));
        s->events.broken(s->events.ctx, &err);
        return;
    }
    *out = arena_str(s->arena, b->cubin);
    if (--s->open == 0)
        s->events.ready(s->events.ctx);
}

static void oracle_built(void *ctx, const struct build *b) {
    struct support *s = ctx;
    got(s, b, "judge's reference", &s->oracle);
}

static void harness_built(void *ctx, const struct build *b) {
    struct support *s = ctx;
    got(s, b, "device's harness", &s->harness);
}

bool support_build(struct support *s, struct build_pool *pool, const struct task *t,
                   const char *arch, const struct support_events *ev, struct err *err) {
    struct buf unit;
    str harness = {0};
    buf_init(&unit, 8u << 20);
    s->events = *ev;
    s->arena = arena_new(256u << 20);
    s->open = 2;
    struct build_request oracle = {.arch = arch}, tools = {.arch = arch, .fmad = true};
    bool ok =
        oracle_unit(t, &unit, err) && asset_get(NULL, "device/harness.cu", s->arena, &harness, err);
    oracle.unit = buf_str(&unit);
    tools.unit = harness;
    ok = ok && build_submit(pool, &oracle, oracle_built, s, err) &&
         build_submit(pool, &tools, harness_built, s, err);
    buf_release(&unit);
    return ok;
}

void support_release(struct support *s) {
    arena_free(s->arena);
}
