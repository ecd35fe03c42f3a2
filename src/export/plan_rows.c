/* A kernel's launch plan as the rows of a template (assets/export/c/operation.c, torch/plan.py):
 * what must hold of sizes, workspaces, tensor maps and steps, with their expressions in the
 * template's language. */
#include "export/export_private.h"
#include "spec/expr.h"
#include <inttypes.h>

#define TEXT_MOST (64u << 20)

static str expr_text(struct plan_writer *w, const struct expr *e) {
    return plan_text(e, w->c, w->language, w->mem);
}

size_t tensor_place(const struct task *t, size_t tensor) {
    size_t place = 0;
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < t->ntensors; i++) {
            const struct tensor *x = &t->tensors[i];
            if (!tensor_has_memory(x) || (x->role == TENSOR_OUT) != (pass == 1))
                continue;
            if (i == tensor)
                return place;
            place++;
        }
    return place;
}

/* C: tensor_x or work_part, the variable that holds an address. Python: ("tensor", 0). */
static str address(struct plan_writer *w, enum arg_kind of, size_t ref) {
    if (w->language == EXPORT_PYTHON)
        return arena_printf(w->mem, "(\"%s\", %zu)", of == ARG_TENSOR ? "tensor" : "workspace",
                            of == ARG_TENSOR ? tensor_place(w->c->task, ref) : ref);
    if (of == ARG_TENSOR)
        return arena_printf(w->mem, "tensor_%.*s",
                            STR_ARG(member_name(w->c->task->tensors[ref].name, w->mem)));
    return arena_printf(w->mem, "work_%.*s", STR_ARG(w->c->workspaces[ref].name));
}

/* An integer where C wants it in another type. */
static str cast(struct plan_writer *w, const char *type, str value) {
    return w->language == EXPORT_C ? arena_printf(w->mem, "(%s)%.*s", type, STR_ARG(value)) : value;
}

static str tensor_count(struct plan_writer *w, size_t tensor) {
    const struct tensor *t = &w->c->task->tensors[tensor];
    str extent[TASK_MAX_RANK];
    for (size_t i = 0; i < t->rank; i++)
        extent[i] = dims_text(t->extent[i], w->c->task, w->language, w->mem);
    return product_text(extent, t->rank, w->language, w->mem);
}

static str workspace_count(struct plan_writer *w, size_t workspace) {
    const struct plan_workspace *s = &w->c->workspaces[workspace];
    str extent[TASK_MAX_RANK];
    for (size_t i = 0; i < s->rank; i++)
        extent[i] = expr_text(w, s->extent[i]);
    return product_text(extent, s->rank, w->language, w->mem);
}

static str memory_count(struct plan_writer *w, enum arg_kind of, size_t ref) {
    return of == ARG_TENSOR ? tensor_count(w, ref) : workspace_count(w, ref);
}

/* ---- sizes: dimensions and lets as constants ---- */

/* Python's functions have the dimensions that can be set as parameters. */
static void put_size(struct plan_writer *w, const char *kind, str name, str value,
                     struct buf *out) {
    if (w->language == EXPORT_C)
        buf_puts(out, S("const int64_t "));
    buf_printf(out, "%s_%.*s = %.*s%s\n", kind, STR_ARG(name), STR_ARG(value),
               w->language == EXPORT_C ? ";" : "");
}

/* So that no compiler complains of those that a function does not use. */
static void put_uses(const struct plan_writer *w, struct buf *out) {
    buf_puts(out, S("(void)dims, (void)bad"));
    for (size_t i = 0; i < w->c->task->ndims; i++)
        buf_printf(out, ", (void)dim_%.*s", STR_ARG(w->c->task->dims[i].name));
    for (size_t i = 0; i < w->c->nlets; i++)
        buf_printf(out, ", (void)let_%.*s", STR_ARG(w->c->lets[i].name));
    buf_puts(out, S(";"));
}

static bool put_sizes(struct plan_writer *w, struct err *err) {
    const struct task *t = w->c->task;
    struct buf b;
    buf_init(&b, TEXT_MOST);
    for (size_t i = 0; i < t->ndims; i++) {
        const struct dim *d = &t->dims[i];
        str value = d->derived
                        ? dims_text(d->value, t, w->language, w->mem)
                        : arena_printf(w->mem, "dims->%.*s", STR_ARG(member_name(d->name, w->mem)));
        if (value.n == 0) {
            buf_release(&b);
            return err_set(err, ERR_INPUT,
                           "dimension %.*s is made of more than integers: it cannot be exported",
                           STR_ARG(d->name));
        }
        if (d->derived || w->language == EXPORT_C)
            put_size(w, "dim", d->name, value, &b);
    }
    for (size_t i = 0; i < w->c->nlets; i++)
        put_size(w, "let", w->c->lets[i].name, expr_text(w, w->c->lets[i].value), &b);
    if (w->language == EXPORT_C)
        put_uses(w, &b);
    slots_put(w->slots, "sizes", str_trim(kept(w->mem, &b)));
    buf_release(&b);
    return true;
}

/* ---- what must hold of sizes ---- */

static void put_check(struct plan_writer *w, str holds, str text) {
    struct slots *row = slots_row(w->slots, "checks");
    slots_put(row, "holds", holds);
    slots_put(row, "text", text);
}

static void put_range(struct plan_writer *w, str value, int64_t least, int64_t most, str text) {
    const char *form = w->language == EXPORT_C ? "is_within(%.*s, %" PRId64 ", INT64_C(%" PRId64
                                                 "))"
                                               : "in_range(%.*s, %" PRId64 ", %" PRId64 ")";
    put_check(w, arena_printf(w->mem, form, STR_ARG(value), least, most), text);
}

static void put_launch_checks(struct plan_writer *w, const struct plan_launch *l,
                              const size_t *parameter_bytes) {
    static const int64_t most[3] = {INT32_MAX, 65535, 65535};
    for (int i = 0; i < 3; i++)
        if (l->grid[i] && l->grid[i]->kind != EXPR_NUMBER)
            put_range(w, expr_text(w, l->grid[i]), 1, most[i], S("a grid that a GPU can launch"));
    if (l->shared && l->shared->kind != EXPR_NUMBER)
        put_range(w, expr_text(w, l->shared), 0, 227 << 10,
                  S("shared memory that a block can have"));
    for (size_t i = 0; i < l->nargs; i++)
        if (l->args[i].kind == ARG_INTEGER && parameter_bytes[i] == 4 &&
            l->args[i].value->kind != EXPR_NUMBER)
            put_range(w, expr_text(w, l->args[i].value), INT32_MIN, INT32_MAX,
                      S("an argument that fits an int"));
}

static str map_extent(struct plan_writer *w, const struct plan_tensormap *m, size_t i) {
    const struct tensor *t = &w->c->task->tensors[m->ref];
    const struct plan_workspace *s = &w->c->workspaces[m->ref];
    if (m->shape[0])
        return expr_text(w, m->shape[i]);
    return m->of == ARG_TENSOR
               ? dims_text(t->extent[t->rank - 1 - i], w->c->task, w->language, w->mem)
               : expr_text(w, s->extent[s->rank - 1 - i]);
}

/* Bytes from one element of dimension `i` to the next; i > 0. */
static str map_stride(struct plan_writer *w, const struct plan_tensormap *m, size_t i) {
    str factor[TENSORMAP_MAX_RANK + 1];
    enum dtype type = plan_memory_dtype(w->c, m->of, m->ref);
    for (size_t k = 0; k < i; k++)
        factor[k] = map_extent(w, m, k);
    factor[i] = arena_printf(w->mem, "%zu", dtype_info(type)->bytes);
    return product_text(factor, i + 1, w->language, w->mem);
}

static void put_map_checks(struct plan_writer *w, const struct plan_tensormap *m) {
    for (size_t i = 0; i < m->rank; i++)
        put_range(w, map_extent(w, m, i), 1, UINT32_MAX, S("an extent that a tensor map can have"));
    for (size_t i = 1; i < m->rank; i++)
        put_check(w, arena_printf(w->mem, "%.*s %% 16 == 0", STR_ARG(map_stride(w, m, i))),
                  S("a stride that a tensor map can have"));
}

static bool is_constant(const struct expr *e) {
    return !e || (!expr_has(e, EXPR_DIM) && !expr_has(e, EXPR_INDEX));
}

static bool is_constant_workspace(const struct plan_workspace *s) {
    bool constant = true;
    for (size_t i = 0; i < s->rank; i++)
        constant = constant && is_constant(s->extent[i]);
    return constant;
}

/* Texts of tasks and plans stand in comments: they cannot end them. */
str comment_text(str text, struct arena *mem) {
    char *s = arena_cstr(mem, text);
    for (char *p = s; *p; p++)
        if ((unsigned char)*p < ' ' || (p[0] == '*' && p[1] == '/'))
            *p = ' ';
    return str_view(s);
}

static void put_checks(struct plan_writer *w) {
    const struct task *t = w->c->task;
    slots_list(w->slots, "checks");
    for (size_t i = 0; i < t->ndims; i++)
        put_check(w, arena_printf(w->mem, "dim_%.*s >= 1", STR_ARG(t->dims[i].name)),
                  arena_printf(w->mem, "%.*s >= 1", STR_ARG(t->dims[i].name)));
    for (size_t i = 0; i < w->c->nrequires; i++)
        put_check(w, expr_text(w, w->c->requires_[i].condition),
                  comment_text(w->c->requires_[i].text, w->mem));
    for (size_t i = 0; i < w->c->nworkspaces; i++)
        if (!is_constant_workspace(&w->c->workspaces[i]))
            put_check(w, arena_printf(w->mem, "%.*s >= 1", STR_ARG(workspace_count(w, i))),
                      S("a workspace that is not empty"));
    for (size_t i = 0; i < w->c->nmaps; i++)
        put_map_checks(w, &w->c->maps[i]);
    for (size_t i = 0; i < w->c->nlaunches; i++)
        put_launch_checks(w, &w->c->launches[i], w->k->parameter_bytes[i]);
}

/* ---- memory ---- */

static bool launch_has(const struct candidate *c, const struct plan_launch *l, enum arg_kind kind,
                       size_t ref) {
    for (size_t i = 0; i < l->nargs; i++) {
        const struct plan_arg *a = &l->args[i];
        if (a->kind == kind && a->ref == ref)
            return true;
        if (a->kind == ARG_TENSORMAP && c->maps[a->ref].of == kind && c->maps[a->ref].ref == ref)
            return true;
    }
    return false;
}

/* Whether a launch that is done once, or one that is not, is given it, itself or by a map. */
static bool plan_has(const struct candidate *c, bool once, enum arg_kind kind, size_t ref) {
    for (size_t i = 0; i < c->nlaunches; i++)
        if (c->launches[i].once == once && launch_has(c, &c->launches[i], kind, ref))
            return true;
    return false;
}

static void put_address(struct plan_writer *w, const char *list, size_t tensor) {
    struct slots *row = slots_row(w->slots, list);
    slots_put(row, "tensor", member_name(w->c->task->tensors[tensor].name, w->mem));
    slots_number(row, "align", w->c->align[tensor]);
}

/* Those that steps which are done once read. Python: their places. */
static void put_parameters(struct plan_writer *w) {
    const struct task *t = w->c->task;
    struct buf places;
    buf_init(&places, TEXT_MOST);
    slots_list(w->slots, "parameters");
    for (size_t i = 0; i < t->ntensors; i++) {
        if (!tensor_has_memory(&t->tensors[i]) || !plan_has(w->c, true, ARG_TENSOR, i))
            continue;
        put_address(w, "parameters", i);
        put_item(&places, arena_printf(w->mem, "%zu", tensor_place(t, i)));
    }
    slots_put(w->slots, "parameter_places", kept(w->mem, &places));
    buf_release(&places);
}

/* C has the prepared workspaces in a list of their own; in Python they are told by a flag. */
static void put_memory(struct plan_writer *w) {
    const struct task *t = w->c->task;
    slots_list(w->slots, "workspaces");
    slots_list(w->slots, "prepared");
    slots_list(w->slots, "addresses");
    for (size_t i = 0; i < t->ntensors; i++)
        if (tensor_has_memory(&t->tensors[i]))
            put_address(w, "addresses", i);
    put_parameters(w);
    for (size_t i = 0; i < w->c->nworkspaces; i++) {
        const struct plan_workspace *s = &w->c->workspaces[i];
        bool apart = s->prepared && w->language == EXPORT_C;
        struct slots *row = slots_row(w->slots, apart ? "prepared" : "workspaces");
        slots_put(row, "kept", s->prepared ? S("True") : S("False"));
        str factors[2] = {workspace_count(w, i),
                          arena_printf(w->mem, "%zu", dtype_info(s->dtype)->bytes)};
        slots_put(row, "workspace", s->name);
        slots_number(row, "align", s->align > PLAN_ALIGN ? s->align : PLAN_ALIGN);
        slots_put(row, "bytes", product_text(factors, 2, w->language, w->mem));
    }
}

/* CUtensorMapDataType. */
static int map_type(enum dtype t) {
    static const int types[DTYPE_COUNT] = {[DTYPE_I32] = 3, [DTYPE_I64] = 5, [DTYPE_F16] = 6,
                                           [DTYPE_F32] = 7, [DTYPE_F64] = 8, [DTYPE_BF16] = 9};
    return types[t];
}

static void put_map(struct plan_writer *w, const char *list, size_t i) {
    const struct plan_tensormap *m = &w->c->maps[i];
    const struct bound_tensormap *bound = &w->bound.maps[i];
    struct slots *row = slots_row(w->slots, list);
    struct buf extents, strides, box, steps;
    struct buf *all[] = {&extents, &strides, &box, &steps};
    for (size_t k = 0; k < 4; k++)
        buf_init(all[k], TEXT_MOST);
    for (size_t k = 0; k < m->rank; k++) {
        put_item(&extents, cast(w, "uint64_t", map_extent(w, m, k)));
        put_item(&box, cast(w, "uint32_t", expr_text(w, m->box[k])));
        put_item(&steps, m->step[0] ? expr_text(w, m->step[k]) : S("1"));
        if (k)
            put_item(&strides, cast(w, "uint64_t", map_stride(w, m, k)));
    }
    if (m->rank == 1)
        put_item(&strides, S("0")); /* not looked at */
    slots_put(row, "map", m->name);
    slots_put(row, "of", address(w, m->of, m->ref));
    slots_put(row, "extents", kept(w->mem, &extents));
    slots_put(row, "strides", kept(w->mem, &strides));
    slots_put(row, "box", kept(w->mem, &box));
    slots_put(row, "steps", kept(w->mem, &steps));
    slots_number(row, "type", map_type(bound->dtype));
    slots_number(row, "rank", bound->rank);
    slots_number(row, "swizzle",
                 bound->swizzle == 128  ? 3
                 : bound->swizzle == 64 ? 2
                                        : bound->swizzle == 32);
    slots_number(row, "fill", bound->fill_nan);
    for (size_t k = 0; k < 4; k++)
        buf_release(all[k]);
}

/* ---- steps ---- */

static str three(struct plan_writer *w, struct expr *const e[3]) {
    struct buf b;
    buf_init(&b, TEXT_MOST);
    for (int i = 0; i < 3; i++)
        put_item(&b, e[i] ? cast(w, "unsigned", expr_text(w, e[i])) : S("1"));
    str s = kept(w->mem, &b);
    buf_release(&b);
    return s;
}

static str parameter_c(struct plan_writer *w, struct slots *row, const struct plan_arg *a,
                       size_t i) {
    if (a->kind == ARG_TENSORMAP)
        return arena_printf(w->mem, "&map_%.*s", STR_ARG(w->c->maps[a->ref].name));
    if (a->kind != ARG_INTEGER)
        return arena_printf(w->mem, "&%.*s", STR_ARG(address(w, a->kind, a->ref)));
    struct slots *integer = slots_row(row, "integers");
    slots_number(integer, "at", (int64_t)i);
    slots_put(integer, "value", expr_text(w, a->value));
    return arena_printf(w->mem, "&argument_%zu", i);
}

static str parameter_python(struct plan_writer *w, const struct plan_arg *a) {
    if (a->kind == ARG_TENSORMAP)
        return arena_printf(w->mem, "(\"map\", %zu)", a->ref);
    if (a->kind == ARG_INTEGER)
        return arena_printf(w->mem, "(\"integer\", %.*s)", STR_ARG(expr_text(w, a->value)));
    return address(w, a->kind, a->ref);
}

size_t plan_function(const struct candidate *c, str kernel) {
    size_t n = 0;
    for (size_t i = 0; i < c->nlaunches && !str_eq(c->launches[i].kernel, kernel); i++) {
        bool before = false;
        for (size_t k = 0; k < i; k++)
            before |= str_eq(c->launches[k].kernel, c->launches[i].kernel);
        n += !before;
    }
    return n;
}

static void put_launch(struct plan_writer *w, struct slots *row, const struct plan_launch *l) {
    struct buf params;
    buf_init(&params, TEXT_MOST);
    slots_list(row, "integers");
    for (size_t i = 0; i < l->nargs; i++)
        put_item(&params, w->language == EXPORT_C ? parameter_c(w, row, &l->args[i], i)
                                                  : parameter_python(w, &l->args[i]));
    if (l->nargs == 0 && w->language == EXPORT_C)
        put_item(&params, S("NULL"));
    slots_put(row, "grid", three(w, l->grid));
    slots_put(row, "block", three(w, l->block));
    slots_put(row, "cluster", three(w, l->cluster));
    slots_put(row, "shared", l->shared ? cast(w, "unsigned", expr_text(w, l->shared)) : S("0"));
    slots_number(row, "cooperative", l->cooperative);
    slots_put(row, "kernel", l->kernel);
    slots_number(row, "function", (int64_t)(w->first + plan_function(w->c, l->kernel)));
    slots_put(row, "params", kept(w->mem, &params));
    buf_release(&params);
}

static bool put_step(struct plan_writer *w, const char *list, const struct plan_step *s,
                     struct err *err) {
    struct slots *row = slots_row(w->slots, list);
    slots_flag(row, "memset", s->kind == PLAN_MEMSET);
    if (s->kind == PLAN_LAUNCH) {
        put_launch(w, row, &w->c->launches[s->index]);
        return true;
    }
    const struct plan_memset *m = &w->c->memsets[s->index];
    if (!is_constant(m->value))
        return err_set(err, ERR_INPUT,
                       "%s: a memset to a value that depends on sizes cannot be exported",
                       w->k->run);
    slots_put(row, "of", address(w, m->of, m->ref));
    slots_put(row, "pattern",
              arena_printf(w->mem, "0x%" PRIx64, w->bound.memsets[s->index].pattern));
    slots_number(row, "size", w->bound.memsets[s->index].size);
    slots_put(row, "count", memory_count(w, m->of, m->ref));
    return true;
}

/* ---- the whole ---- */

bool put_plan_rows(struct plan_writer *w, struct err *err) {
    if (!plan_bind(w->c, w->k->inst, w->mem, &w->bound, err) || !put_sizes(w, err))
        return false;
    slots_put(w->slots, "source_hash", str_view(w->k->source_hash));
    slots_put(w->slots, "arch", w->k->arch);
    put_checks(w);
    put_memory(w);
    slots_list(w->slots, "maps");
    slots_list(w->slots, "once_maps");
    for (size_t i = 0; i < w->c->nmaps; i++) {
        bool once = w->language == EXPORT_C && plan_has(w->c, true, ARG_TENSORMAP, i);
        if (once)
            put_map(w, "once_maps", i);
        if (!once || plan_has(w->c, false, ARG_TENSORMAP, i))
            put_map(w, "maps", i);
    }
    slots_list(w->slots, "steps");
    slots_list(w->slots, "once");
    slots_number(w->slots, "once_steps", (int64_t)w->c->once_steps);
    for (size_t i = 0; i < w->c->nsteps; i++) {
        bool once = w->language == EXPORT_C && i < w->c->once_steps;
        if (!put_step(w, once ? "once" : "steps", &w->c->steps[i], err))
            return false;
    }
    return true;
}
