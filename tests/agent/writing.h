/* The expert's text for a task and a strategy, and that its plan binds. */
#ifndef TESTS_AGENT_WRITING_H
#define TESTS_AGENT_WRITING_H

#include "agent/agent.h"
#include "kernel/candidate.h"
#include "tap.h"
#include <string.h>

static struct arena *mem;
static struct catalogue *catalogue;
static struct agent expert;
static struct err err;

static struct inst *bind(const char *text) {
    struct task *t;
    struct inst *in = NULL;
    str whole = arena_printf(mem, "task t \"T\"\n%s", text);
    if (!task_parse(S("test.task"), whole, mem, &t, &err) || !task_bind(t, NULL, 0, mem, &in, &err))
        return NULL;
    return in;
}

struct written {
    str source;
    struct strategy strategy; /* with what its decisions became */
    bool ok;
};

static void on_code(void *ctx, str source, const struct strategy *written, const struct err *e) {
    struct written *w = ctx;
    w->ok = !e;
    if (e)
        err = *e;
    else
        w->source = arena_str(mem, source);
    if (!e)
        w->strategy = *written;
}

static bool parses(const struct briefing *b, str source) {
    struct candidate *c;
    struct bound_plan plan;
    bool fits = false;
    str which;
    return candidate_parse(S("kernel.cu"), source, b->inst->task, mem, &c, &err) &&
           plan_fits(c, b->inst, &fits, &which, &err) && fits &&
           plan_bind(c, b->inst, mem, &plan, &err);
}

/* Empty: it cannot be written, or its plan does not bind. */
static inline str write_with(const struct briefing *b, const struct strategy *s) {
    struct written w = {0};
    expert.code(expert.self, b, s, on_code, &w);
    return w.ok && parses(b, w.source) ? w.source : S("");
}

static bool brief_for(const char *task, const char *gpu, struct briefing *b) {
    struct inst *in = bind(task);
    return in && briefing_make(in, catalogue, gpu_find(str_view(gpu)), b, &err);
}
static inline bool brief(const char *task, struct briefing *b) {
    return brief_for(task, "h200", b);
}

static int writing_main(const struct tap_case *cases, size_t n) {
    mem = arena_new((size_t)2 << 30);
    if (!catalogue_load(NULL, mem, &catalogue, &err) || !expert_new(NULL, &expert, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    int rc = tap_main(cases, n);
    expert.release(expert.self);
    arena_free(mem);
    return rc;
}

#endif
