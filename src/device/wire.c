#include "device/wire.h"

/* ---- names of enums ---- */

static const char *verdict_text(unsigned v) {
    return verdict_name((enum verdict)v);
}

static const char *data_text(unsigned v) {
    return data_name((enum data_kind)v);
}

static const char *dtype_text(unsigned v) {
    return dtype_info((enum dtype)v)->name;
}

static const char *arg_text(unsigned v) {
    static const char *const names[] = {[ARG_INTEGER] = "integer",
                                        [ARG_TENSOR] = "tensor",
                                        [ARG_WORKSPACE] = "workspace",
                                        [ARG_TENSORMAP] = "map"};
    return names[v];
}

static const char *step_text(unsigned v) {
    return v == PLAN_LAUNCH ? "launch" : "memset";
}

const struct field_names verdict_names = {verdict_text, VERDICT_COUNT};
const struct field_names data_names = {data_text, DATA_COUNT};
static const struct field_names dtype_names = {dtype_text, DTYPE_COUNT};
static const struct field_names arg_names = {arg_text, 4}, step_names = {step_text, 2};

/* ---- structs of other rooms ---- */

#define FIELDS_AS_TABLES
#include "base/fields_as.h"

/* There may be thousands of them in a job, so they are told in few words. */
BEGIN(bound_arg)
NAMED(kind, arg_names)
RANGE_OR_0(ref, 0, TASK_MAX_TENSORS - 1)
RANGE_OR_0(value, INT64_MIN, INT64_MAX)
END(bound_arg)

BEGIN(bound_launch)
FIELD(TEXT, kernel, )
FIXED_RANGE(grid, 3, 1, INT32_MAX)
FIXED_RANGE(block, 3, 1, 1024)
FIXED_RANGE(cluster, 3, 1, 16)
FIELD(FLAG, cooperative, )
FIELD(FLAG, once, )
RANGE(shared, 0, INT32_MAX)
RANGE_OR_0(blocks_sm, 0, 1024)
MANY(bound_arg, args, CANDIDATE_MAX_ARGS, )
END(bound_launch)

/* The pattern of 64 bits travels as the integer that has them. */
BEGIN(bound_memset)
NAMED(of, arg_names)
RANGE(ref, 0, TASK_MAX_TENSORS - 1)
RANGE(pattern, INT64_MIN, INT64_MAX)
RANGE(size, 1, 8)
RANGE(count, 1, INT64_MAX / 8)
END(bound_memset)

BEGIN(bound_workspace)
FIELD(TEXT, name, )
NAMED(dtype, dtype_names)
RANGE(bytes, 1, INT64_MAX)
RANGE(align, PLAN_ALIGN, PLAN_MAX_ALIGN)
FIELD(FLAG, prepared, )
END(bound_workspace)

BEGIN(bound_tensormap)
NAMED(of, arg_names)
RANGE(ref, 0, TASK_MAX_TENSORS - 1)
NAMED(dtype, dtype_names)
RANGE(rank, 1, TENSORMAP_MAX_RANK)
FIXED_RANGE(extent, TENSORMAP_MAX_RANK, 0, UINT32_MAX)
FIXED_RANGE(stride, TENSORMAP_MAX_RANK - 1, 0, (INT64_C(1) << 40) - 1)
FIXED_RANGE(box, TENSORMAP_MAX_RANK, 0, 256)
FIXED_RANGE(step, TENSORMAP_MAX_RANK, 0, 8)
RANGE(swizzle, 0, 128)
FIELD(FLAG, fill_nan, )
END(bound_tensormap)

BEGIN(bound_step)
NAMED(kind, step_names)
RANGE(index, 0, PLAN_MAX_STEPS)
END(bound_step)

BEGIN(bound_plan)
MANY(bound_step, steps, PLAN_MAX_STEPS, )
RANGE_OR_0(once_steps, 0, PLAN_MAX_STEPS)
MANY(bound_launch, launches, CANDIDATE_MAX_LAUNCHES, )
MANY(bound_memset, memsets, PLAN_MAX_MEMSETS, )
MANY(bound_workspace, workspaces, PLAN_MAX_WORKSPACES, )
MANY(bound_tensormap, maps, PLAN_MAX_MAPS, )
FIXED_RANGE(align, TASK_MAX_TENSORS, PLAN_ALIGN, PLAN_MAX_ALIGN)
END(bound_plan)

/* A counter missing from the list would be lost on the way; the sizes tell. */
#define COUNTER(type, name) +sizeof(type)
_Static_assert(0
#include "sim/counters.def"
                   == sizeof(struct sim_counters),
               "counters.def lists every member of struct sim_counters");
#undef COUNTER
#define COUNTER(type, name) RANGE(name, 0, sizeof(type) == 4 ? UINT32_MAX : INT64_MAX)
BEGIN(sim_counters)
#include "sim/counters.def"
END(sim_counters)
#undef COUNTER

BEGIN(sim_line)
FIELD(TEXT, file, )
RANGE(line, 0, UINT32_MAX)
RANGE(warp_instrs, 0, INT64_MAX)
RANGE(lane_instrs, 0, INT64_MAX)
RANGE(flops, 0, INT64_MAX)
RANGE(tensor_flops, 0, INT64_MAX)
RANGE(divergent_branches, 0, INT64_MAX)
RANGE(requests, 0, INT64_MAX)
RANGE(sectors, 0, INT64_MAX)
RANGE(bytes, 0, INT64_MAX)
RANGE(shared_requests, 0, INT64_MAX)
RANGE(shared_wavefronts, 0, INT64_MAX)
RANGE(shared_conflicts, 0, INT64_MAX)
END(sim_line)

#include "device/wire.def"

/* ---- messages ---- */

bool wire_read(const struct fields *of, const json *head, struct arena *a, void *to,
               struct err *err) {
    if (fields_from_json(of, head, a, to, err))
        return true;
    err->kind = ERR_ENV;
    return err_wrap(err, "bad message");
}

bool wire_write(int fd, enum wire type, const struct fields *of, const void *message, str blob,
                struct err *err) {
    json *head = fields_to_json(of, message);
    bool ok = frame_write(fd, type, head, blob, NULL, 0, err);
    json_free(head);
    return ok;
}

/* ---- plans ---- */

static bool is_power(uint64_t v) {
    return v > 0 && (v & (v - 1)) == 0;
}

/* One of the kinds up to `last`, and within what the plan has of it. */
static bool refers(const struct bound_plan *p, enum arg_kind kind, size_t ref, enum arg_kind last) {
    return kind != ARG_INTEGER && kind <= last &&
           ref < (kind == ARG_TENSOR      ? TASK_MAX_TENSORS
                  : kind == ARG_WORKSPACE ? p->nworkspaces
                                          : p->nmaps);
}

/* A workspace that is set is set whole: no count runs past it. Of a tensor, the reader looks. */
static bool memset_fits(const struct bound_plan *p, const struct bound_memset *m) {
    return refers(p, m->of, m->ref, ARG_WORKSPACE) && is_power(m->size) &&
           (m->of == ARG_TENSOR || m->count * m->size == p->workspaces[m->ref].bytes);
}

static bool map_fits(const struct bound_plan *p, const struct bound_tensormap *m) {
    bool ok = refers(p, m->of, m->ref, ARG_WORKSPACE) &&
              (m->swizzle == 0 || (m->swizzle >= 32 && is_power(m->swizzle)));
    for (unsigned k = 0; ok && k < m->rank; k++)
        ok = m->extent[k] && m->box[k] && m->step[k] && (k + 1 == m->rank || m->stride[k]);
    return ok;
}

static bool args_fit(const struct bound_plan *p, const struct bound_launch *l) {
    for (size_t i = 0; i < l->nargs; i++)
        if (l->args[i].kind != ARG_INTEGER &&
            !refers(p, l->args[i].kind, l->args[i].ref, ARG_TENSORMAP))
            return false;
    return true;
}

bool plan_check(const struct bound_plan *p, struct err *err) {
    bool ok = p->once_steps <= p->nsteps;
    for (size_t i = 0; ok && i < TASK_MAX_TENSORS; i++)
        ok = is_power(p->align[i]);
    for (size_t i = 0; ok && i < p->nworkspaces; i++)
        ok = is_power(p->workspaces[i].align);
    for (size_t i = 0; ok && i < p->nmaps; i++)
        ok = map_fits(p, &p->maps[i]);
    for (size_t i = 0; ok && i < p->nmemsets; i++)
        ok = memset_fits(p, &p->memsets[i]);
    for (size_t i = 0; ok && i < p->nlaunches; i++)
        ok = args_fit(p, &p->launches[i]);
    for (size_t i = 0; ok && i < p->nsteps; i++)
        ok = p->steps[i].index < (p->steps[i].kind == PLAN_LAUNCH ? p->nlaunches : p->nmemsets);
    return ok || err_set(err, ERR_ENV, "bad message: a plan that does not hold together");
}

/* ---- shapes ---- */

struct binding *set_of(const struct inst *in, struct arena *a, size_t *n) {
    struct binding *set = arena_array(a, struct binding, in->task->ndims);
    *n = 0;
    for (size_t i = 0; i < in->task->ndims; i++)
        if (!in->task->dims[i].derived)
            set[(*n)++] = (struct binding){in->task->dims[i].name, in->dims[i]};
    return set;
}

static bool has_binding(const struct binding *set, size_t n, str name, int64_t value) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(set[i].name, name))
            return set[i].value == value;
    return false;
}

bool set_is(const struct binding *set, size_t n, const struct inst *in) {
    size_t settable = 0;
    for (size_t i = 0; i < in->task->ndims; i++) {
        if (in->task->dims[i].derived)
            continue;
        settable++;
        if (!has_binding(set, n, in->task->dims[i].name, in->dims[i]))
            return false;
    }
    return settable == n;
}
