/* The ceilings of a GPU, measured once by its own harness kernels. */
#include "eval/eval.h"

#include "base/asset.h"
#include "device/wire.h"
#include "eval/links.h"

#define HARNESS "device/harness.cu"
#define TRIES   8 /* of measuring, when a process dies meanwhile */

struct measuring {
    struct links *links;
    json *answer;
    struct err broken;
    bool sent;
    int lost;
    const struct evaluator_options *o;
};

static void built(void *ctx, const struct build *b) {
    struct measuring *m = ctx;
    if (b->verdict != VERDICT_ACCEPTED) {
        err_set(&m->broken, ERR_ENV, "the device's harness does not compile: %.*s",
                STR_ARG(b->log));
        return;
    }
    struct wire_task none = {.harness = b->cubin.n};
    links_set_task(m->links, fields_to_json(&wire_task_fields, &none), b->cubin);
}

static void on_idle(void *ctx) {
    struct measuring *m = ctx;
    json *head = json_object();
    if (m->links && !m->sent)
        m->sent = links_send(m->links, WIRE_CEILINGS, m, head, (str){0});
    json_free(head);
}

/* What died is replaced, and measures again: at once, or when it says that it takes a job. */
static void on_lost(void *ctx, void *job, str why) {
    struct measuring *m = ctx;
    (void)job;
    m->sent = false;
    if (++m->lost >= TRIES)
        err_set(&m->broken, ERR_ENV, "%.*s", STR_ARG(why));
    else
        on_idle(m);
}

static void on_result(void *ctx, void *job, const json *head) {
    struct measuring *m = ctx;
    str why;
    if (json_get_str(head, "why", &why) && why.n)
        on_lost(ctx, job, why);
    else
        m->answer = json_copy(head);
}

static void on_broken(void *ctx, const struct err *why) {
    struct measuring *m = ctx;
    m->broken = *why;
}

static bool run(struct loop *l, struct build_pool *pool, struct measuring *m, struct err *err) {
    struct arena *a = arena_new(1 << 20);
    struct build_request r = {.arch = m->o->device.gpu->arch, .fmad = true};
    bool ok = asset_get(NULL, HARNESS, a, &r.unit, err) && build_submit(pool, &r, built, m, err);
    while (ok && !m->answer && !m->broken.kind)
        ok = loop_step(l, -1, err);
    arena_free(a);
    if (ok && m->broken.kind)
        *err = m->broken;
    return ok && !m->broken.kind;
}

bool evaluate_ceilings(const struct evaluator_options *o, json **out, struct err *err) {
    struct measuring m = {.o = o};
    struct links_events ev = {&m, on_idle, on_result, NULL, on_lost, NULL, on_broken};
    struct build_pool_options po = {.jobs = 1, .cache = o->cache};
    const char *const *const first[] = {o->worker_command, NULL};
    struct loop *l = loop_new(err);
    struct build_pool *pool = l ? build_pool_new(l, &o->nvrtc, &po, err) : NULL;
    if (pool)
        m.links = links_new(l, &o->device, 1, 1, first, &ev, err);
    bool ok = m.links && run(l, pool, &m, err);
    links_free(m.links);
    build_pool_free(pool);
    loop_free(l);
    if (ok)
        *out = m.answer;
    else
        json_free(m.answer);
    return ok || err_wrap(err, "measure the ceilings of %s", o->device.text);
}
