/* From a bound plan to launches. What does not fit the kernel that was really loaded is refused
 * here, with a reason for the kernel's author: the driver's own answer is a number. */
#include "device/cuda_plan.h"

#include <inttypes.h>
#include <string.h>

#define STATIC_SHARED_MOST 49152 /* dynamic shared memory beyond this is asked for by a setting */

struct ready_step {
    enum step_kind kind;
    struct cuda_launch launch; /* LAUNCH */
    str kernel;
    const struct bound_memset *set; /* MEMSET */
    cu_address to;
};

struct maker {
    const struct cuda *c;
    cu_module module;
    const struct cuda_memory *m;
    struct arena *a;
    struct ready_plan *out;
    struct cu_tensor_map *maps;
    enum verdict *verdict;
    struct err *why;
};

#define REFUSE(k, v, ...) (*(k)->verdict = (v), err_set((k)->why, ERR_NO, __VA_ARGS__))

/* A driver's answer about a candidate. */
static bool judge_code(struct maker *k, int code, const char *what, str name) {
    if (code == CU_OK)
        return true;
    *k->verdict = cuda_verdict(code);
    return cuda_fail(k->c, k->why, code, "%s %.*s", what, STR_ARG(name));
}

static struct cuda_span span_of(const struct maker *k, enum arg_kind of, size_t ref) {
    if (of == ARG_TENSOR && ref < TASK_MAX_TENSORS)
        return k->m->tensors[ref];
    if (of == ARG_WORKSPACE && ref < k->out->plan->nworkspaces)
        return k->out->workspaces[ref];
    return (struct cuda_span){0};
}

/* ---- memory ---- */

/* The slot may be larger, made for a rival: then its end is used, behind which nothing is mapped.
 */
static bool place_workspaces(struct maker *k) {
    const struct bound_plan *p = k->out->plan;
    for (size_t i = 0; i < p->nworkspaces; i++) {
        struct cuda_span slot = k->m->workspaces[i];
        uint64_t bytes = p->workspaces[i].bytes;
        if (!slot.at || slot.bytes < bytes)
            return err_set(k->why, ERR_ENV, "bad message: workspace %zu has no memory", i);
        uint64_t align = p->workspaces[i].align ? p->workspaces[i].align : PLAN_ALIGN;
        cu_address at = (slot.at + slot.bytes - bytes) / align * align;
        k->out->workspaces[i] = (struct cuda_span){at > slot.at ? at : slot.at, bytes};
    }
    return true;
}

static int map_type(enum dtype t) {
    switch (t) {
    case DTYPE_F64:
        return CU_MAP_F64;
    case DTYPE_F32:
        return CU_MAP_F32;
    case DTYPE_F16:
        return CU_MAP_F16;
    case DTYPE_BF16:
        return CU_MAP_BF16;
    case DTYPE_I32:
        return CU_MAP_I32;
    case DTYPE_I64:
        return CU_MAP_I64;
    default:
        return CU_MAP_U8;
    }
}

static int map_swizzle(unsigned bytes) {
    return bytes == 128  ? CU_SWIZZLE_128
           : bytes == 64 ? CU_SWIZZLE_64
           : bytes == 32 ? CU_SWIZZLE_32
                         : CU_SWIZZLE_NONE;
}

static bool encode_map(struct maker *k, size_t i) {
    const struct bound_tensormap *t = &k->out->plan->maps[i];
    struct cuda_span s = span_of(k, t->of, t->ref);
    if (!s.at)
        return err_set(k->why, ERR_ENV, "bad message: tensor map %zu has no memory", i);
    if (!k->c->facts.tensor_map)
        return REFUSE(k, VERDICT_UNSUPPORTED,
                      "this GPU has no tensor maps (compute capability 9.0)");
    int code = k->c->tensor_map_tiled(
        &k->maps[i], map_type(t->dtype), t->rank, (void *)(uintptr_t)s.at, t->extent, t->stride,
        t->box, t->step, CU_MAP_NO_INTERLEAVE, map_swizzle(t->swizzle), CU_MAP_L2_PROMOTION_128B,
        t->fill_nan ? CU_FILL_NAN : CU_FILL_ZERO);
    if (code == CU_INVALID_VALUE)
        return REFUSE(k, VERDICT_LAUNCH_ERROR,
                      "tensor map %zu: the driver refuses it: check box, swizzle and strides", i);
    return judge_code(k, code, "tensor map of",
                      t->of == ARG_TENSOR ? S("a tensor") : S("a workspace"));
}

static bool encode_maps(struct maker *k) {
    size_t n = k->out->plan->nmaps;
    k->maps = arena_array(k->a, struct cu_tensor_map, n);
    for (size_t i = 0; i < n; i++)
        if (!encode_map(k, i))
            return false;
    return true;
}

/* ---- launches ---- */

/* Where the value of an argument lies, little endian, at least as long as the parameter. */
static void *value_of(struct maker *k, const struct bound_arg *arg) {
    if (arg->kind == ARG_TENSORMAP)
        return arg->ref < k->out->plan->nmaps ? &k->maps[arg->ref] : NULL;
    uint64_t *v = arena_new_of(k->a, uint64_t);
    *v = arg->kind == ARG_INTEGER ? (uint64_t)arg->value : span_of(k, arg->kind, arg->ref).at;
    return arg->kind == ARG_INTEGER || *v ? v : NULL;
}

static bool fits(struct maker *k, const struct bound_launch *l, size_t i, size_t bytes) {
    const struct bound_arg *arg = &l->args[i];
    switch (arg->kind) {
    case ARG_TENSORMAP:
        if (bytes == TENSORMAP_BYTES)
            return true;
        break;
    case ARG_INTEGER:
        if (bytes == 4 && (arg->value < INT32_MIN || arg->value > INT32_MAX))
            return REFUSE(k, VERDICT_LAUNCH_ERROR,
                          "kernel %.*s, argument %zu: %" PRId64 " does not fit an int of 4 bytes\n"
                          "hint: make the parameter 64 bits",
                          STR_ARG(l->kernel), i + 1, arg->value);
        if (bytes == 4 || bytes == 8)
            return true;
        break;
    default:
        if (bytes == 8)
            return true;
    }
    return REFUSE(k, VERDICT_BAD_PLAN, "kernel %.*s, argument %zu: a parameter of %zu bytes",
                  STR_ARG(l->kernel), i + 1, bytes);
}

static bool lay_out(struct maker *k, const struct bound_launch *l, struct cuda_launch *out) {
    size_t at, bytes;
    out->params = arena_array(k->a, void *, l->nargs + 1);
    for (size_t i = 0; i < l->nargs; i++) {
        if (k->c->function_param(out->function, i, &at, &bytes) != CU_OK)
            return REFUSE(k, VERDICT_BAD_PLAN,
                          "kernel %.*s takes %zu arguments, the plan passes %zu",
                          STR_ARG(l->kernel), i, l->nargs);
        if (!fits(k, l, i, bytes))
            return false;
        out->params[i] = value_of(k, &l->args[i]);
        if (!out->params[i])
            return err_set(k->why, ERR_ENV, "bad message: argument %zu has no memory", i + 1);
    }
    if (k->c->function_param(out->function, l->nargs, &at, &bytes) == CU_OK)
        return REFUSE(k, VERDICT_BAD_PLAN,
                      "kernel %.*s takes more arguments than the %zu that the plan passes",
                      STR_ARG(l->kernel), l->nargs);
    return true;
}

/* The setting belongs to the function, so it only ever grows. */
static bool allow_shared(struct maker *k, const struct bound_launch *l, cu_function f) {
    int now = 0;
    size_t most = k->c->facts.shared_block;
    if (l->shared > most)
        return REFUSE(k, VERDICT_LAUNCH_ERROR,
                      "kernel %.*s: %" PRIu64 " bytes of dynamic shared memory, this GPU gives a "
                      "block %zu",
                      STR_ARG(l->kernel), l->shared, most);
    if (l->shared <= STATIC_SHARED_MOST)
        return true;
    if (k->c->function_get(&now, CU_FN_MAX_DYNAMIC_SHARED, f) == CU_OK &&
        (uint64_t)now >= l->shared)
        return true;
    int code = k->c->function_set(f, CU_FN_MAX_DYNAMIC_SHARED, (int)l->shared);
    if (code == CU_INVALID_VALUE)
        return REFUSE(k, VERDICT_LAUNCH_ERROR,
                      "kernel %.*s: %" PRIu64
                      " bytes of dynamic shared memory and what it declares "
                      "are more than the %zu of a block",
                      STR_ARG(l->kernel), l->shared, most);
    return judge_code(k, code, "shared memory of kernel", l->kernel);
}

static bool check_block(struct maker *k, const struct bound_launch *l, cu_function f) {
    int most = 0, registers = 0;
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    if (k->c->function_get(&most, CU_FN_MAX_THREADS, f) != CU_OK || threads <= (uint64_t)most)
        return true;
    k->c->function_get(&registers, CU_FN_REGISTERS, f);
    return REFUSE(k, VERDICT_LAUNCH_ERROR,
                  "kernel %.*s: a block of %" PRIu64 " threads, but with %d registers a thread and "
                  "its launch bounds it can have %d",
                  STR_ARG(l->kernel), threads, registers, most);
}

static void note_local(struct maker *k, cu_function f) {
    int bytes = 0;
    if (k->c->function_get(&bytes, CU_FN_LOCAL_BYTES, f) == CU_OK && bytes > 0 &&
        (size_t)bytes > k->out->local_bytes)
        k->out->local_bytes = (size_t)bytes;
}

static bool make_launch(struct maker *k, const struct bound_launch *l, struct ready_step *out) {
    struct cuda_launch *d = &out->launch;
    char *name = arena_cstr(k->a, l->kernel);
    int code = k->c->module_function(&d->function, k->module, name);
    if (code == CU_NOT_FOUND)
        return REFUSE(k, VERDICT_BAD_PLAN, "kernel '%s' is not in the module", name);
    if (!judge_code(k, code, "kernel", l->kernel) ||
        !judge_code(k, k->c->function_load(d->function), "load kernel", l->kernel))
        return false;
    note_local(k, d->function);
    memcpy(d->grid, l->grid, sizeof d->grid);
    memcpy(d->block, l->block, sizeof d->block);
    memcpy(d->cluster, l->cluster, sizeof d->cluster);
    d->cooperative = l->cooperative;
    d->shared = l->shared;
    out->kernel = l->kernel;
    if (!k->c->facts.cluster && l->cluster[0] * l->cluster[1] * l->cluster[2] > 1)
        return REFUSE(k, VERDICT_UNSUPPORTED, "this GPU has no clusters (compute capability 9.0)");
    return lay_out(k, l, d) && check_block(k, l, d->function) && allow_shared(k, l, d->function);
}

static bool make_memset(struct maker *k, const struct bound_memset *s, struct ready_step *out) {
    struct cuda_span to = span_of(k, s->of, s->ref);
    if (!to.at || s->count > to.bytes / s->size)
        return err_set(k->why, ERR_ENV, "bad message: a memset beyond its memory");
    out->set = s;
    out->to = to.at;
    return true;
}

static bool make_step(struct maker *k, const struct bound_step *s, struct ready_step *out) {
    const struct bound_plan *p = k->out->plan;
    out->kind = s->kind;
    if (s->kind == PLAN_LAUNCH && s->index < p->nlaunches)
        return make_launch(k, &p->launches[s->index], out);
    if (s->kind == PLAN_MEMSET && s->index < p->nmemsets)
        return make_memset(k, &p->memsets[s->index], out);
    return err_set(k->why, ERR_ENV, "bad message: a step of nothing");
}

bool ready_plan_make(const struct cuda *c, cu_module module, const struct bound_plan *p,
                     const struct cuda_memory *m, struct arena *a, struct ready_plan *out,
                     enum verdict *verdict, struct err *why) {
    struct maker k = {
        .c = c, .module = module, .m = m, .a = a, .out = out, .verdict = verdict, .why = why};
    *verdict = VERDICT_ACCEPTED;
    *out = (struct ready_plan){.plan = p, .nsteps = p->nsteps};
    out->steps = arena_array(a, struct ready_step, p->nsteps);
    if (p->nworkspaces > PLAN_MAX_WORKSPACES || !place_workspaces(&k) || !encode_maps(&k))
        return false;
    for (size_t i = 0; i < p->nsteps; i++)
        if (!make_step(&k, &p->steps[i], &out->steps[i]))
            return false;
    return true;
}

/* ---- running ---- */

int ready_plan_poison(const struct cuda *c, struct harness *h, const struct ready_plan *r,
                      bool keeps) {
    int code = CU_OK;
    for (size_t i = 0; i < r->plan->nworkspaces && code == CU_OK; i++)
        if (!keeps || !r->plan->workspaces[i].prepared)
            code = harness_poison(c, h, r->workspaces[i].at, r->workspaces[i].bytes);
    return code;
}

static int queue_memset(const struct cuda *c, const struct harness *h, const struct ready_step *s) {
    uint64_t v = s->set->pattern, n = s->set->count;
    switch (s->set->size) {
    case 1:
        return c->set_d8(s->to, (unsigned char)v, n, c->stream);
    case 2:
        return c->set_d16(s->to, (unsigned short)v, n, c->stream);
    case 4:
        return c->set_d32(s->to, (unsigned)v, n, c->stream);
    default:
        return harness_fill64(c, h, s->to, v, n);
    }
}

int ready_plan_queue(const struct cuda *c, const struct harness *h, const struct ready_plan *r,
                     size_t first, size_t end, bool waits, size_t *at) {
    for (*at = first; *at < end; ++*at) {
        const struct ready_step *s = &r->steps[*at];
        int code = s->kind == PLAN_LAUNCH ? cuda_launch(c, &s->launch) : queue_memset(c, h, s);
        if (code == CU_OK && waits)
            code = c->stream_sync(c->stream);
        if (code != CU_OK)
            return code;
    }
    return CU_OK;
}

void ready_plan_name(const struct ready_plan *r, size_t step, struct buf *out) {
    if (step < r->nsteps) {
        const struct ready_step *s = &r->steps[step];
        if (s->kind == PLAN_LAUNCH)
            buf_printf(out, "kernel %.*s", STR_ARG(s->kernel));
        else
            buf_printf(out, "memset of %s %zu", s->set->of == ARG_TENSOR ? "tensor" : "workspace",
                       s->set->ref);
        return;
    }
    const char *before = r->plan->nlaunches > 1 ? "one of the kernels " : "kernel ";
    for (size_t i = 0; i < r->nsteps; i++)
        if (r->steps[i].kind == PLAN_LAUNCH) {
            buf_printf(out, "%s%.*s", before, STR_ARG(r->steps[i].kernel));
            before = ", ";
        }
}
