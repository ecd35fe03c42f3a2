#include "device/job.h"

#include <string.h>

static json *dims3_to_json(const uint32_t d[3]) {
    json *a = json_array();
    for (int i = 0; i < 3; i++)
        json_push_i64(a, d[i]);
    return a;
}

static bool dims3_from_json(const json *j, uint32_t d[3]) {
    if (json_len(j) != 3)
        return false;
    for (size_t i = 0; i < 3; i++) {
        int64_t v;
        if (!json_to_i64(json_at(j, i), &v) || v < 1 || v > INT32_MAX)
            return false;
        d[i] = (uint32_t)v;
    }
    return true;
}

/* An argument is a number, or {"tensor": i}. */
static json *launch_to_json(const struct bound_launch *l) {
    json *j = json_object(), *args = json_array();
    json_set_str(j, "kernel", l->kernel);
    json_set(j, "grid", dims3_to_json(l->grid));
    json_set(j, "block", dims3_to_json(l->block));
    json_set_i64(j, "shared", (int64_t)l->shared);
    for (size_t i = 0; i < l->nargs; i++) {
        if (l->args[i].tensor < 0) {
            json_push_i64(args, l->args[i].value);
            continue;
        }
        json *t = json_object();
        json_set_i64(t, "tensor", l->args[i].tensor);
        json_push(args, t);
    }
    json_set(j, "args", args);
    return j;
}

json *launches_to_json(const struct bound_plan *p) {
    json *a = json_array();
    for (size_t i = 0; i < p->nlaunches; i++)
        json_push(a, launch_to_json(&p->launches[i]));
    return a;
}

static bool arg_from_json(const json *j, struct bound_arg *out) {
    int64_t tensor;
    out->tensor = -1;
    if (json_to_i64(j, &out->value))
        return true;
    if (!json_get_i64(j, "tensor", &tensor) || tensor < 0 || tensor >= TASK_MAX_TENSORS)
        return false;
    out->tensor = (int)tensor;
    return true;
}

static bool launch_from_json(const json *j, struct arena *a, struct bound_launch *out) {
    const json *args = json_get(j, "args");
    int64_t shared;
    str kernel;
    if (!json_get_str(j, "kernel", &kernel) || !json_get_i64(j, "shared", &shared) || shared < 0 ||
        !dims3_from_json(json_get(j, "grid"), out->grid) ||
        !dims3_from_json(json_get(j, "block"), out->block) || json_len(args) > CANDIDATE_MAX_ARGS)
        return false;
    out->kernel = arena_str(a, kernel);
    out->shared = (uint64_t)shared;
    out->nargs = json_len(args);
    out->args = arena_array(a, struct bound_arg, out->nargs);
    for (size_t i = 0; i < out->nargs; i++)
        if (!arg_from_json(json_at(args, i), &out->args[i]))
            return false;
    return true;
}

bool launches_from_json(const json *j, struct arena *a, struct bound_plan *out, struct err *err) {
    out->nlaunches = json_len(j);
    if (out->nlaunches > CANDIDATE_MAX_LAUNCHES)
        return err_set(err, ERR_ENV, "bad message: %zu launches", out->nlaunches);
    out->launches = arena_array(a, struct bound_launch, out->nlaunches);
    for (size_t i = 0; i < out->nlaunches; i++)
        if (!launch_from_json(json_at(j, i), a, &out->launches[i]))
            return err_set(err, ERR_ENV, "bad message: launch %zu", i);
    return true;
}

json *set_to_json(const struct inst *in) {
    json *j = json_object();
    for (size_t i = 0; i < in->task->ndims; i++) {
        char name[256];
        str s = in->task->dims[i].name;
        if (in->task->dims[i].derived || s.n >= sizeof name)
            continue;
        memcpy(name, s.p, s.n);
        name[s.n] = 0;
        json_set_i64(j, name, in->dims[i]);
    }
    return j;
}

struct set_reader {
    struct arena *a;
    struct binding *set;
    size_t n;
    bool bad;
};

static void read_binding(void *ctx, const char *key, const json *value) {
    struct set_reader *r = ctx;
    r->set[r->n].name = arena_str(r->a, str_view(key));
    if (!json_to_i64(value, &r->set[r->n].value))
        r->bad = true;
    r->n++;
}

bool set_from_json(const json *j, struct arena *a, struct binding **out, size_t *n,
                   struct err *err) {
    if (!json_is_object(j) || json_len(j) > TASK_MAX_DIMS)
        return err_set(err, ERR_ENV, "bad message: dimensions");
    struct set_reader r = {.a = a, .set = arena_array(a, struct binding, json_len(j))};
    json_each(j, read_binding, &r);
    if (r.bad)
        return err_set(err, ERR_ENV, "bad message: a dimension is no integer");
    *out = r.set;
    *n = r.n;
    return true;
}

/* A counter missing from the list would be lost on the way; the sizes tell. */
#define COUNTER(type, name) +sizeof(type)
_Static_assert(0
#include "sim/counters.def"
                   == sizeof(struct sim_counters),
               "counters.def lists every member of struct sim_counters");
#undef COUNTER

json *counters_to_json(const struct sim_counters *c) {
    json *j = json_object();
#define COUNTER(type, name) json_set_i64(j, #name, (int64_t)c->name);
#include "sim/counters.def"
#undef COUNTER
    return j;
}

bool counters_from_json(const json *j, struct sim_counters *out) {
    int64_t v;
    memset(out, 0, sizeof *out);
#define COUNTER(type, name)                                                                        \
    if (!json_get_i64(j, #name, &v) || v < 0)                                                      \
        return false;                                                                              \
    out->name = (type)v;
#include "sim/counters.def"
#undef COUNTER
    return true;
}
