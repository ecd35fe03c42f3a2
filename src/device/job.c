#include "device/job.h"

#include <stdio.h>
#include <string.h>

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

bool set_is(const json *j, const struct inst *in) {
    size_t settable = 0;
    for (size_t i = 0; i < in->task->ndims; i++) {
        char name[256];
        int64_t value;
        if (in->task->dims[i].derived)
            continue;
        settable++;
        snprintf(name, sizeof name, "%.*s", STR_ARG(in->task->dims[i].name));
        if (!json_get_i64(j, name, &value) || value != in->dims[i])
            return false;
    }
    return json_len(j) == settable;
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

/* Of a struct sim_line, but for where it is. */
#define LINE_COUNTS(COUNT)                                                                         \
    COUNT(warp_instrs)                                                                             \
    COUNT(lane_instrs)                                                                             \
    COUNT(flops)                                                                                   \
    COUNT(tensor_flops)                                                                            \
    COUNT(divergent_branches)                                                                      \
    COUNT(requests)                                                                                \
    COUNT(sectors)                                                                                 \
    COUNT(bytes)                                                                                   \
    COUNT(shared_requests)                                                                         \
    COUNT(shared_wavefronts)                                                                       \
    COUNT(shared_conflicts)

json *lines_to_json(const struct sim_result *r) {
    json *list = json_array();
    for (size_t i = 0; i < r->nlines; i++) {
        const struct sim_line *l = &r->lines[i];
        json *j = json_object();
        json_set_str(j, "file", l->file);
        json_set_i64(j, "line", l->line);
#define COUNT(name) json_set_i64(j, #name, (int64_t)l->name);
        LINE_COUNTS(COUNT)
#undef COUNT
        json_push(list, j);
    }
    return list;
}

bool line_from_json(const json *j, struct sim_line *out) {
    int64_t v;
    *out = (struct sim_line){0};
    if (!json_get_str(j, "file", &out->file) || !json_get_i64(j, "line", &v))
        return false;
    out->line = (uint32_t)v;
#define COUNT(name)                                                                                \
    if (!json_get_i64(j, #name, &v) || v < 0)                                                      \
        return false;                                                                              \
    out->name = (uint64_t)v;
    LINE_COUNTS(COUNT)
#undef COUNT
    return true;
}

json *findings_to_json(const struct sim_findings *f) {
    json *list = json_array();
    for (size_t i = 0; i < f->n; i++) {
        const struct sim_finding *k = &f->list[i];
        json *j = json_object();
        json_set_str(j, "check",
                     k->check == SIM_CHECK_RACE            ? S("race")
                     : k->check == SIM_CHECK_UNINITIALISED ? S("uninitialised")
                                                           : S("sync"));
        json_set_i64(j, "line", k->src_line);
        if (k->other_line)
            json_set_i64(j, "other_line", k->other_line);
        json_set_str(j, "text", str_view(k->text));
        json_push(list, j);
    }
    return list;
}
