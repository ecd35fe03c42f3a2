#include "eval/eval.h"

struct once {
    struct outcome *outcome;
    struct err broken;
};

static void on_done(void *ctx, uint64_t id, struct outcome *o) {
    struct once *w = ctx;
    (void)id;
    w->outcome = o;
}

static void on_broken(void *ctx, const struct err *why) {
    struct once *w = ctx;
    w->broken = *why;
}

bool evaluate_once(const struct evaluator_options *o, str file, str source, struct outcome **out,
                   struct err *err) {
    struct once w = {0};
    struct loop *l = loop_new(err);
    struct evaluator *e = l ? evaluator_new(l, o, on_done, on_broken, &w, err) : NULL;
    bool ok = e != NULL;
    if (ok)
        evaluator_submit(e, 0, file, source);
    while (ok && !w.outcome && !w.broken.kind)
        ok = loop_step(l, -1, err);
    evaluator_free(e);
    loop_free(l);
    if (ok && !w.outcome) {
        *err = w.broken;
        return false;
    }
    if (!ok)
        outcome_free(w.outcome);
    *out = w.outcome;
    return ok;
}
