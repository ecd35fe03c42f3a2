#include "eval/eval.h"

bool evaluator_options_watching(const struct evaluator_options *gpu, struct arena *a,
                                struct evaluator_options *out, struct err *err) {
    *out = *gpu;
    out->watch = out->thorough = true;
    out->verify_only = out->duel = out->keep = false;
    out->worker_command = NULL; /* here: GPU hosts are for what needs a GPU */
    out->worker_commands = NULL;
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
    m->each(m->ctx, &m->files[id], o);
    outcome_free(o);
}

static void on_broken(void *ctx, const struct err *why) {
    struct many *m = ctx;
    m->broken = *why;
}

bool evaluate_many(const struct evaluator_options *o, const struct source_file *files, size_t n,
                   size_t repeat, evaluate_each_fn *each, void *ctx, struct err *err) {
    struct many m = {.files = files, .n = n, .repeat = repeat, .each = each, .ctx = ctx};
    struct loop *l = loop_new(err);
    m.e = l ? evaluator_new(l, o, on_done, on_broken, &m, err) : NULL;
    bool ok = m.e != NULL;
    if (ok)
        feed(&m);
    while (ok && m.open && !m.broken.kind) {
        ok = loop_step(l, -1, err);
        feed(&m);
    }
    evaluator_free(m.e);
    loop_free(l);
    if (ok && m.broken.kind)
        *err = m.broken;
    return ok && !m.broken.kind;
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
