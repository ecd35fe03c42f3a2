/* Several kernels on one task: each verified on its own, then all that are right timed in turns. */
#include "eval/eval.h"

#include "eval/record.h"

struct contest {
    struct evaluator *e;
    struct record **records; /* by id; NULL until there is one */
    size_t n, open, ncontenders;
    const struct evaluator_options *o;
    uint64_t ids[EVALUATOR_MAX_DUEL]; /* of those that are timed together */
    struct err broken;
    bool ended;
};

static void on_done(void *ctx, uint64_t id, struct outcome *o) {
    struct contest *c = ctx;
    c->records[id] = record_copy(o->record);
    c->open--;
    outcome_free(o);
}

static void on_broken(void *ctx, const struct err *why) {
    struct contest *c = ctx;
    c->broken = *why;
}

/* The duel's times replace those of each kernel alone, and what was wrong in it is wrong. */
static void settle(struct contest *c, const struct result *result) {
    struct roofline limit = task_limit(c->o->device.gpu, c->o->inst);
    struct record_input in = {
        .options = c->o, .limit = &limit, .floor_s = task_floor(c->o->device.gpu, c->o->inst)};
    for (size_t i = 0; i < result->ntimes && i < c->ncontenders; i++) {
        struct record *r = c->records[c->ids[i]];
        if (!result->times[i].nsamples_s)
            continue;
        record_times(r, &in, &result->times[i]);
        if (!result->clocks)
            continue;
        r->clocks = arena_new_of(r->mem, struct wire_clocks);
        fields_copy(&wire_clocks_fields, result->clocks, r->mem, r->clocks);
    }
    if (result->verdict != VERDICT_ACCEPTED)
        record_set_verdict(c->records[c->ids[0]], result->verdict, result->why);
    for (size_t i = 0; i < result->nrivals; i++) {
        const struct result_rival *v = &result->rivals[i];
        if (v->module > 0 && v->module < c->ncontenders)
            record_set_verdict(c->records[c->ids[v->module]], v->verdict, v->why);
    }
}

static void on_duel(void *ctx, const struct result *result, str why) {
    struct contest *c = ctx;
    c->ended = true;
    if (result)
        settle(c, result);
    else
        err_set(&c->broken, ERR_ENV, "the kernels could not be timed together: %.*s", STR_ARG(why));
}

static bool step(struct loop *l, struct contest *c, struct err *err) {
    if (!loop_step(l, -1, err))
        return false;
    if (c->broken.kind)
        *err = c->broken;
    return !c->broken.kind;
}

static bool run(struct loop *l, struct contest *c, const struct source_file *files,
                struct err *err) {
    for (size_t i = 0; i < c->n; i++)
        evaluator_submit(c->e, i, files[i].file, files[i].text);
    while (c->open)
        if (!step(l, c, err))
            return false;
    for (size_t i = 0; i < c->n && c->ncontenders < EVALUATOR_MAX_DUEL; i++)
        if (c->records[i]->accepted)
            c->ids[c->ncontenders++] = i;
    if (c->ncontenders < 2 || c->o->device.kind != DEVICE_CUDA)
        return true;
    evaluator_duel(c->e, c->ids, c->ncontenders, on_duel, c);
    while (!c->ended)
        if (!step(l, c, err))
            return false;
    return true;
}

bool evaluate_duel(const struct evaluator_options *given, const struct source_file *files, size_t n,
                   struct record **out, struct err *err) {
    struct evaluator_options o = *given;
    struct contest c = {.o = &o, .records = out, .n = n, .open = n};
    struct loop *l = loop_new(err);
    o.keep = true;
    o.duel = false; /* with the fastest so far: here all of them meet, and none is only screened */
    for (size_t i = 0; i < n; i++)
        out[i] = NULL;
    c.e = l ? evaluator_new(l, &o, on_done, on_broken, &c, err) : NULL;
    bool ok = c.e && run(l, &c, files, err);
    evaluator_free(c.e);
    loop_free(l);
    for (size_t i = 0; i < n; i++) {
        if (ok)
            out[i]->file = arena_str(out[i]->mem, files[i].file);
        else
            record_free(out[i]);
    }
    return ok;
}
