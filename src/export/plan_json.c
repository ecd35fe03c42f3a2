/* A bound plan as JSON, for whoever launches cubins: steps in order, launches, memsets, workspaces,
 * tensor maps, and how tensors must be aligned. Numbers are int64; a pattern of 64 bits is one,
 * too. */
#include "export/export_private.h"

static json *numbers32(const uint32_t *v, size_t n) {
    json *a = json_array();
    for (size_t i = 0; i < n; i++)
        json_push_i64(a, v[i]);
    return a;
}

static json *numbers64(const uint64_t *v, size_t n) {
    json *a = json_array();
    for (size_t i = 0; i < n; i++)
        json_push_i64(a, (int64_t)v[i]);
    return a;
}

static const char *const kind_names[] = {
    [ARG_TENSOR] = "tensor", [ARG_WORKSPACE] = "workspace", [ARG_TENSORMAP] = "map"};

/* An argument is a number, or {"tensor": i}, {"workspace": i}, {"map": i}. */
static json *launch_to_json(const struct bound_launch *l) {
    json *j = json_object(), *args = json_array();
    json_set_str(j, "kernel", l->kernel);
    json_set(j, "grid", numbers32(l->grid, 3));
    json_set(j, "block", numbers32(l->block, 3));
    json_set(j, "cluster", numbers32(l->cluster, 3));
    json_set_bool(j, "cooperative", l->cooperative);
    json_set_bool(j, "once", l->once);
    json_set_i64(j, "shared", (int64_t)l->shared);
    for (size_t i = 0; i < l->nargs; i++) {
        if (l->args[i].kind == ARG_INTEGER) {
            json_push_i64(args, l->args[i].value);
            continue;
        }
        json *ref = json_object();
        json_set_i64(ref, kind_names[l->args[i].kind], (int64_t)l->args[i].ref);
        json_push(args, ref);
    }
    json_set(j, "args", args);
    return j;
}

static json *memset_to_json(const struct bound_memset *m) {
    json *j = json_object();
    json_set_i64(j, kind_names[m->of], (int64_t)m->ref);
    json_set_i64(j, "pattern", (int64_t)m->pattern);
    json_set_i64(j, "size", m->size);
    json_set_i64(j, "count", (int64_t)m->count);
    return j;
}

static json *workspace_to_json(const struct bound_workspace *w) {
    json *j = json_object();
    json_set_str(j, "name", w->name);
    json_set_str(j, "dtype", str_view(dtype_info(w->dtype)->name));
    json_set_i64(j, "bytes", (int64_t)w->bytes);
    json_set_i64(j, "align", w->align);
    json_set_bool(j, "prepared", w->prepared);
    return j;
}

static json *map_to_json(const struct bound_tensormap *m) {
    json *j = json_object();
    json_set_i64(j, kind_names[m->of], (int64_t)m->ref);
    json_set_str(j, "dtype", str_view(dtype_info(m->dtype)->name));
    json_set(j, "extent", numbers64(m->extent, m->rank));
    json_set(j, "stride", numbers64(m->stride, m->rank - 1));
    json_set(j, "box", numbers32(m->box, m->rank));
    json_set(j, "step", numbers32(m->step, m->rank));
    json_set_i64(j, "swizzle", m->swizzle);
    json_set_bool(j, "fill_nan", m->fill_nan);
    return j;
}

/* A step is {"launch": i} or {"memset": i}; the first `once_steps` of them need not be done again
 * for the same parameters, as long as the prepared workspaces are kept. */
static json *steps_to_json(const struct bound_plan *p) {
    json *a = json_array();
    for (size_t i = 0; i < p->nsteps; i++) {
        json *step = json_object();
        json_set_i64(step, p->steps[i].kind == PLAN_LAUNCH ? "launch" : "memset",
                     (int64_t)p->steps[i].index);
        json_push(a, step);
    }
    return a;
}

#define LIST_TO_JSON(j, key, items, n, to_json)                                                    \
    do {                                                                                           \
        json *list = json_array();                                                                 \
        for (size_t i = 0; i < (n); i++)                                                           \
            json_push(list, to_json(&(items)[i]));                                                 \
        json_set((j), (key), list);                                                                \
    } while (0)

json *plan_to_json(const struct bound_plan *p, size_t ntensors) {
    json *j = json_object();
    json_set(j, "steps", steps_to_json(p));
    json_set_i64(j, "once_steps", (int64_t)p->once_steps);
    LIST_TO_JSON(j, "launches", p->launches, p->nlaunches, launch_to_json);
    LIST_TO_JSON(j, "memsets", p->memsets, p->nmemsets, memset_to_json);
    LIST_TO_JSON(j, "workspaces", p->workspaces, p->nworkspaces, workspace_to_json);
    LIST_TO_JSON(j, "maps", p->maps, p->nmaps, map_to_json);
    json_set(j, "align", numbers32(p->align, ntensors));
    return j;
}
