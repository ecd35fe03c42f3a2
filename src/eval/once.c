#include "eval/eval.h"

#define POLL_MS 50 /* how late the end of the time, or a flag that is set, may be noticed */

bool evaluator_options_watching(const struct evaluator_options *gpu, struct arena *a,
                                struct evaluator_options *out, struct err *err) {
    *out = *gpu;
    out->watch = out->thorough = true;
    out->verify_only = out->duel = out->keep = false;
    out->nplaces = 0; /* here: GPU hosts are for what needs a GPU */
    out->workers = 0;
    out->run_limit_ms = 0;
    return device_name_parse("sim", a, &out->device, err);
}

struct many {
    struct evaluator *e;
    const struct source_file *files;
    evaluate_each_fn *each;
    void *ctx;
    size_t n, repeat, submitted, open;
    struct err broken;
};

static void feed(struct many *m) {
    for (; m->open < evaluator_capacity(m->e) && m->submitted < m->n * m->repeat; m->open++) {
        const struct source_file *f = &m->files[m->submitted % m->n];
        evaluator_submit(m->e, m->submitted++ % m->n, f->file, f->text);
    }
}

static void on_done(void *ctx, uint64_t id, struct outcome *o) {
    struct many *m = ctx;
    m->open--;
    if (o->verdict == VERDICT_UNJUDGED)
        err_set(&m->broken, ERR_ENV, "%s", o->why);
    else
        m->each(m->ctx, &m->files[id], o);
    outcome_free(o);
}

static void on_broken(void *ctx, const struct err *why) {
    struct many *m = ctx;
    m->broken = *why;
}

static bool wait_a_little(struct loop *l, const struct evaluator_options *o, uint64_t since_ms,
                          struct err *err) {
    if (o->hurry && *o->hurry)
        return err_set(err, ERR_ENV, "it was interrupted");
    if (o->give_up_ms && clock_ms() - since_ms >= o->give_up_ms)
        return err_set(err, ERR_ENV, "it took longer than %.1f s", o->give_up_ms / 1000.0);
    if (o->tick)
        o->tick(o->tick_ctx);
    return loop_step(l, o->hurry || o->give_up_ms || o->tick ? POLL_MS : -1, err);
}

bool evaluate_many(const struct evaluator_options *o, const struct source_file *files, size_t n,
                   size_t repeat, evaluate_each_fn *each, void *ctx, struct err *err) {
    struct many m = {.files = files, .n = n, .repeat = repeat, .each = each, .ctx = ctx};
    struct loop *l = loop_new(err);
    m.e = l ? evaluator_new(l, o, on_done, on_broken, &m, err) : NULL;
    bool ok = m.e != NULL;
    uint64_t since_ms = clock_ms();
    if (ok)
        feed(&m);
    while (ok && m.open && !m.broken.kind) {
        ok = wait_a_little(l, o, since_ms, err);
        feed(&m);
    }
    evaluator_free(m.e);
    loop_free(l);
    if (ok && m.broken.kind)
        *err = m.broken;
    return ok && !m.broken.kind;
}

static void take_outcome(void *ctx, uint64_t id, struct outcome *o) {
    struct outcome **out = ctx;
    (void)id;
    *out = o;
}

bool evaluate_again(struct evaluator *e, struct loop *l, const struct evaluator_options *o,
                    str file, str source, struct outcome **out, struct err *err) {
    uint64_t since_ms = clock_ms();
    bool ok = true;
    *out = NULL;
    evaluator_submit_again(e, file, source, take_outcome, out);
    while (ok && !*out && !evaluator_broken(e))
        ok = wait_a_little(l, o, since_ms, err);
    if (!*out && ok)
        return false;
    if (!*out)
        evaluator_abandon(e); /* what was asked for here must not come later */
    return ok;
}

static void take_record(void *ctx, const struct source_file *f, const struct outcome *o) {
    struct record **record = ctx;
    (void)f;
    *record = record_copy(o->record);
}

bool evaluate_once(const struct evaluator_options *o, str file, str source, struct outcome **out,
                   struct err *err) {
    struct source_file f = {file, source};
    struct record *record = NULL;
    bool ok = evaluate_many(o, &f, 1, 1, take_record, &record, err);
    if (ok)
        *out = outcome_of(record);
    else
        record_free(record);
    return ok;
}
