/* Several kernels on one task: each verified on its own, then all that are right timed in turns. */
#include "eval/eval.h"

#include "eval/record.h"

struct contest {
    struct evaluator *e;
    json **records; /* by id; NULL until there is one */
    size_t n, open;
    json *result; /* of the duel */
    struct err broken;
    bool ended;
};

static void on_done(void *ctx, uint64_t id, struct outcome *o) {
    struct contest *c = ctx;
    c->records[id] = json_copy(o->record);
    c->open--;
    outcome_free(o);
}

static void on_broken(void *ctx, const struct err *why) {
    struct contest *c = ctx;
    c->broken = *why;
}

static void on_duel(void *ctx, const json *result, str why) {
    struct contest *c = ctx;
    c->ended = true;
    if (result)
        c->result = json_copy(result);
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

static size_t contenders(const struct contest *c, uint64_t *ids) {
    size_t n = 0;
    for (size_t i = 0; i < c->n && n < EVALUATOR_MAX_DUEL; i++) {
        bool accepted = false;
        json_get_bool(c->records[i], "accepted", &accepted);
        if (accepted)
            ids[n++] = i;
    }
    return n;
}

static void reject(json *record, const json *from) {
    str verdict = S("crash"), why = {0};
    json_get_str(from, "verdict", &verdict);
    json_get_str(from, "why", &why);
    record_reject(record, verdict, why);
}

/* The duel's times replace those of each kernel alone, and what was wrong in it is wrong. */
static void settle(struct contest *c, const struct evaluator_options *o, const uint64_t *ids,
                   size_t n) {
    struct roofline limit = task_limit(o->device.gpu, o->inst);
    struct record_input in = {
        .options = o, .limit = &limit, .floor_s = task_floor(o->device.gpu, o->inst)};
    const json *rivals = json_get(c->result, "rivals");
    str verdict = {0};
    for (size_t i = 0; i < n; i++) {
        const json *times = json_at(json_get(c->result, "times"), i);
        if (times && record_spread(times).n)
            record_times(c->records[ids[i]], &in, times);
    }
    json_get_str(c->result, "verdict", &verdict);
    if (!str_is(verdict, verdict_name(VERDICT_ACCEPTED)))
        reject(c->records[ids[0]], c->result);
    for (size_t i = 0; i < json_len(rivals); i++) {
        int64_t failed = 0;
        json_get_i64(json_at(rivals, i), "module", &failed);
        if (failed > 0 && (size_t)failed < n)
            reject(c->records[ids[failed]], json_at(rivals, i));
    }
}

static bool run(struct loop *l, struct contest *c, const struct evaluator_options *o,
                const struct source_file *files, struct err *err) {
    uint64_t ids[EVALUATOR_MAX_DUEL];
    for (size_t i = 0; i < c->n; i++)
        evaluator_submit(c->e, i, files[i].file, files[i].text);
    while (c->open)
        if (!step(l, c, err))
            return false;
    size_t n = contenders(c, ids);
    if (n < 2 || o->device.kind != DEVICE_CUDA)
        return true;
    evaluator_duel(c->e, ids, n, on_duel, c);
    while (!c->ended)
        if (!step(l, c, err))
            return false;
    settle(c, o, ids, n);
    return true;
}

static json *contest_json(struct contest *c, const struct source_file *files) {
    json *j = json_object(), *list = json_array();
    for (size_t i = 0; i < c->n; i++) {
        json_set_str(c->records[i], "file", files[i].file);
        json_push(list, c->records[i]);
        c->records[i] = NULL;
    }
    json_set(j, "kernels", list);
    if (json_get(c->result, "clocks"))
        json_set(j, "clocks", json_copy(json_get(c->result, "clocks")));
    return j;
}

bool evaluate_duel(const struct evaluator_options *given, const struct source_file *files, size_t n,
                   json **out, struct err *err) {
    struct evaluator_options o = *given;
    struct contest c = {.records = mem_alloc((n + 1) * sizeof *c.records), .n = n, .open = n};
    struct loop *l = loop_new(err);
    o.keep = true;
    o.duel = false; /* with the fastest so far: here all of them meet, and none is only screened */
    c.e = l ? evaluator_new(l, &o, on_done, on_broken, &c, err) : NULL;
    bool ok = c.e && run(l, &c, &o, files, err);
    if (ok)
        *out = contest_json(&c, files);
    evaluator_free(c.e);
    loop_free(l);
    for (size_t i = 0; i < n; i++)
        json_free(c.records[i]);
    mem_free(c.records);
    json_free(c.result);
    return ok;
}
