/* A bound plan as JSON, and back. What is read is a message from another process: every reference
 * and every number is checked against what plan_bind could have made, so that whoever runs the plan
 * need not. Numbers are int64; a pattern of 64 bits travels as one. */
#include "device/job.h"

#include <string.h>

/* ---- writing ---- */

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

/* A step is {"launch": i} or {"memset": i}. */
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

json *plan_to_json(const struct bound_plan *p) {
    json *j = json_object();
    json_set(j, "steps", steps_to_json(p));
    LIST_TO_JSON(j, "launches", p->launches, p->nlaunches, launch_to_json);
    LIST_TO_JSON(j, "memsets", p->memsets, p->nmemsets, memset_to_json);
    LIST_TO_JSON(j, "workspaces", p->workspaces, p->nworkspaces, workspace_to_json);
    LIST_TO_JSON(j, "maps", p->maps, p->nmaps, map_to_json);
    json_set(j, "align", numbers32(p->align, TASK_MAX_TENSORS));
    return j;
}

/* ---- reading ---- */

static bool number_within(const json *j, int64_t least, int64_t most, int64_t *out) {
    return json_to_i64(j, out) && *out >= least && *out <= most;
}

static bool get_within(const json *j, const char *key, int64_t least, int64_t most, int64_t *out) {
    return number_within(json_get(j, key), least, most, out);
}

static bool read_numbers32(const json *j, size_t n, int64_t most, uint32_t *out) {
    for (size_t i = 0; i < n; i++) {
        int64_t v;
        if (!number_within(json_at(j, i), 1, most, &v))
            return false;
        out[i] = (uint32_t)v;
    }
    return json_len(j) == n;
}

static bool read_numbers64(const json *j, size_t n, int64_t most, uint64_t *out) {
    for (size_t i = 0; i < n; i++) {
        int64_t v;
        if (!number_within(json_at(j, i), 1, most, &v))
            return false;
        out[i] = (uint64_t)v;
    }
    return json_len(j) == n;
}

static bool read_dtype(const json *j, enum dtype *out) {
    str name;
    return json_get_str(j, "dtype", &name) && dtype_find(name, out);
}

/* How many things of a kind the plan has. */
static int64_t refs_of(const struct bound_plan *p, enum arg_kind kind) {
    return kind == ARG_TENSOR      ? TASK_MAX_TENSORS
           : kind == ARG_WORKSPACE ? (int64_t)p->nworkspaces
                                   : (int64_t)p->nmaps;
}

/* One of the kinds up to `last`. */
static bool read_ref(const json *j, const struct bound_plan *p, enum arg_kind last,
                     enum arg_kind *kind, size_t *ref) {
    for (int k = ARG_TENSOR; k <= (int)last; k++) {
        int64_t v;
        *kind = (enum arg_kind)k;
        if (!json_get(j, kind_names[k]))
            continue;
        if (!get_within(j, kind_names[k], 0, refs_of(p, *kind) - 1, &v))
            return false;
        *ref = (size_t)v;
        return true;
    }
    return false;
}

static bool is_power(int64_t v) {
    return v > 0 && (v & (v - 1)) == 0;
}

static bool read_align(const json *j, uint32_t *out) {
    int64_t v;
    if (!number_within(j, PLAN_ALIGN, PLAN_MAX_ALIGN, &v) || !is_power(v))
        return false;
    *out = (uint32_t)v;
    return true;
}

static bool read_workspace(const json *j, struct arena *a, const struct bound_plan *p, void *to) {
    struct bound_workspace *out = to;
    int64_t bytes;
    str name;
    (void)p;
    if (!json_get_str(j, "name", &name) || !read_dtype(j, &out->dtype) ||
        !get_within(j, "bytes", 1, INT64_MAX, &bytes) ||
        !read_align(json_get(j, "align"), &out->align))
        return false;
    out->name = arena_str(a, name);
    out->bytes = (uint64_t)bytes;
    return true;
}

static bool read_map(const json *j, struct arena *a, const struct bound_plan *p, void *to) {
    struct bound_tensormap *out = to;
    size_t rank = json_len(json_get(j, "extent"));
    int64_t swizzle;
    (void)a;
    if (rank < 1 || rank > TENSORMAP_MAX_RANK ||
        !read_ref(j, p, ARG_WORKSPACE, &out->of, &out->ref))
        return false;
    out->rank = (unsigned)rank;
    if (!read_dtype(j, &out->dtype) ||
        !read_numbers64(json_get(j, "extent"), rank, UINT32_MAX, out->extent) ||
        !read_numbers64(json_get(j, "stride"), rank - 1, (INT64_C(1) << 40) - 1, out->stride) ||
        !read_numbers32(json_get(j, "box"), rank, 256, out->box) ||
        !read_numbers32(json_get(j, "step"), rank, 8, out->step) ||
        !get_within(j, "swizzle", 0, 128, &swizzle) ||
        !json_get_bool(j, "fill_nan", &out->fill_nan))
        return false;
    out->swizzle = (unsigned)swizzle;
    return swizzle == 0 || (swizzle >= 32 && is_power(swizzle));
}

/* A workspace that is set is set whole: no count runs past it. Of a tensor, the reader looks. */
static bool read_memset(const json *j, struct arena *a, const struct bound_plan *p, void *to) {
    struct bound_memset *out = to;
    int64_t size, count, pattern;
    (void)a;
    if (!read_ref(j, p, ARG_WORKSPACE, &out->of, &out->ref) ||
        !get_within(j, "size", 1, 8, &size) || !is_power(size) ||
        !get_within(j, "count", 1, INT64_MAX / 8, &count) || !json_get_i64(j, "pattern", &pattern))
        return false;
    out->size = (unsigned)size;
    out->count = (uint64_t)count;
    out->pattern = (uint64_t)pattern;
    return out->of == ARG_TENSOR || out->count * out->size == p->workspaces[out->ref].bytes;
}

static bool read_arg(const json *j, const struct bound_plan *p, struct bound_arg *out) {
    out->kind = ARG_INTEGER;
    return json_to_i64(j, &out->value) || read_ref(j, p, ARG_TENSORMAP, &out->kind, &out->ref);
}

static bool read_launch(const json *j, struct arena *a, const struct bound_plan *p, void *to) {
    struct bound_launch *out = to;
    const json *args = json_get(j, "args");
    int64_t shared;
    str kernel;
    if (!json_get_str(j, "kernel", &kernel) || !get_within(j, "shared", 0, INT32_MAX, &shared) ||
        !read_numbers32(json_get(j, "grid"), 3, INT32_MAX, out->grid) ||
        !read_numbers32(json_get(j, "block"), 3, 1024, out->block) ||
        !read_numbers32(json_get(j, "cluster"), 3, 16, out->cluster) ||
        !json_get_bool(j, "cooperative", &out->cooperative) || !json_is_array(args) ||
        json_len(args) > CANDIDATE_MAX_ARGS)
        return false;
    out->kernel = arena_str(a, kernel);
    out->shared = (uint64_t)shared;
    out->nargs = json_len(args);
    out->args = arena_array(a, struct bound_arg, out->nargs);
    for (size_t i = 0; i < out->nargs; i++)
        if (!read_arg(json_at(args, i), p, &out->args[i]))
            return false;
    return true;
}

static bool read_step(const json *j, struct arena *a, const struct bound_plan *p, void *to) {
    struct bound_step *out = to;
    bool launch = json_get(j, "launch") != NULL;
    int64_t v;
    (void)a;
    if (!get_within(j, launch ? "launch" : "memset", 0,
                    (int64_t)(launch ? p->nlaunches : p->nmemsets) - 1, &v))
        return false;
    *out = (struct bound_step){launch ? PLAN_LAUNCH : PLAN_MEMSET, (size_t)v};
    return true;
}

/* ---- lists of them ---- */

struct list {
    const char *key;
    size_t most, size;
    bool (*read)(const json *j, struct arena *a, const struct bound_plan *p, void *to);
};

static bool read_list(const json *plan, const struct list *l, struct arena *a,
                      const struct bound_plan *p, void *items, size_t *n, struct err *err) {
    const json *j = json_get(plan, l->key);
    size_t count = json_len(j);
    if (!json_is_array(j) || count > l->most)
        return err_set(err, ERR_ENV, "bad message: the plan's %s", l->key);
    char *at = arena_array_bytes(a, count, l->size, _Alignof(max_align_t));
    for (size_t i = 0; i < count; i++)
        if (!l->read(json_at(j, i), a, p, at + i * l->size))
            return err_set(err, ERR_ENV, "bad message: the plan's %s, %zu", l->key, i);
    memcpy(items, &at, sizeof at);
    *n = count;
    return true;
}

/* Those that are referred to come first. */
bool plan_from_json(const json *j, struct arena *a, struct bound_plan *out, struct err *err) {
    static const struct list workspaces = {"workspaces", PLAN_MAX_WORKSPACES,
                                           sizeof(struct bound_workspace), read_workspace},
                             maps = {"maps", PLAN_MAX_MAPS, sizeof(struct bound_tensormap),
                                     read_map},
                             memsets = {"memsets", PLAN_MAX_MEMSETS, sizeof(struct bound_memset),
                                        read_memset},
                             launches = {"launches", CANDIDATE_MAX_LAUNCHES,
                                         sizeof(struct bound_launch), read_launch},
                             steps = {"steps", PLAN_MAX_STEPS, sizeof(struct bound_step),
                                      read_step};
    *out = (struct bound_plan){0};
    const json *align = json_get(j, "align");
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        if (!read_align(json_at(align, i), &out->align[i]))
            return err_set(err, ERR_ENV, "bad message: the plan's alignments");
    return read_list(j, &workspaces, a, out, &out->workspaces, &out->nworkspaces, err) &&
           read_list(j, &maps, a, out, &out->maps, &out->nmaps, err) &&
           read_list(j, &memsets, a, out, &out->memsets, &out->nmemsets, err) &&
           read_list(j, &launches, a, out, &out->launches, &out->nlaunches, err) &&
           read_list(j, &steps, a, out, &out->steps, &out->nsteps, err);
}
