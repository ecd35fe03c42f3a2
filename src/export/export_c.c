/* A package for C: one header and one source file. Each kernel's plan becomes three functions
 * (which sizes it admits, how much workspace it needs, its launches in order) in
 * assets/export/c/source.c; here the expressions that stand in them are put together. */
#include "export/export_private.h"
#include <inttypes.h>

#define TEXT_MOST       (64u << 20)
#define WORKSPACE_ALIGN 256 /* of the address that the caller gives */

struct writer {
    const struct export_package *p;
    const struct export_kernel *k;
    const struct candidate *c;
    struct bound_plan bound; /* at the kernel's own shape */
    struct arena *mem;
    struct slots *slots; /* of this kernel */
    size_t first;        /* of its functions among those of the library */
};

static str plan_c(struct writer *w, const struct plan_expr *e) {
    return plan_text(e, w->c, EXPORT_C, w->mem);
}

/* "tensor_x" or "work_part": the variable that holds an address. */
static str address(struct writer *w, enum arg_kind of, size_t ref) {
    if (of == ARG_TENSOR)
        return arena_printf(w->mem, "tensor_%.*s",
                            STR_ARG(member_name(w->c->task->tensors[ref].name, w->mem)));
    return arena_printf(w->mem, "work_%.*s", STR_ARG(w->c->workspaces[ref].name));
}

static str tensor_count(struct writer *w, size_t tensor) {
    const struct tensor *t = &w->c->task->tensors[tensor];
    str extent[TASK_MAX_RANK];
    for (size_t i = 0; i < t->rank; i++)
        extent[i] = dims_text(t->extent[i], w->c->task, EXPORT_C, w->mem);
    return product_text(extent, t->rank, EXPORT_C, w->mem);
}

static str workspace_count(struct writer *w, size_t workspace) {
    const struct plan_workspace *s = &w->c->workspaces[workspace];
    str extent[TASK_MAX_RANK];
    for (size_t i = 0; i < s->rank; i++)
        extent[i] = plan_c(w, s->extent[i]);
    return product_text(extent, s->rank, EXPORT_C, w->mem);
}

static str memory_count(struct writer *w, enum arg_kind of, size_t ref) {
    return of == ARG_TENSOR ? tensor_count(w, ref) : workspace_count(w, ref);
}

/* ---- sizes: dimensions and lets as constants ---- */

static bool put_sizes(struct writer *w, struct err *err) {
    const struct task *t = w->c->task;
    struct buf b;
    buf_init(&b, TEXT_MOST);
    for (size_t i = 0; i < t->ndims; i++) {
        const struct dim *d = &t->dims[i];
        str value = d->derived
                        ? dims_text(d->value, t, EXPORT_C, w->mem)
                        : arena_printf(w->mem, "dims->%.*s", STR_ARG(member_name(d->name, w->mem)));
        if (value.n == 0) {
            buf_release(&b);
            return err_set(err, ERR_INPUT,
                           "dimension %.*s is made of more than integers: it "
                           "cannot be exported",
                           STR_ARG(d->name));
        }
        buf_printf(&b, "const int64_t dim_%.*s = %.*s;\n", STR_ARG(d->name), STR_ARG(value));
    }
    for (size_t i = 0; i < w->c->nlets; i++)
        buf_printf(&b, "const int64_t let_%.*s = %.*s;\n", STR_ARG(w->c->lets[i].name),
                   STR_ARG(plan_c(w, w->c->lets[i].value)));
    buf_puts(&b, S("(void)dims, (void)bad"));
    for (size_t i = 0; i < t->ndims; i++)
        buf_printf(&b, ", (void)dim_%.*s", STR_ARG(t->dims[i].name));
    for (size_t i = 0; i < w->c->nlets; i++)
        buf_printf(&b, ", (void)let_%.*s", STR_ARG(w->c->lets[i].name));
    buf_puts(&b, S(";"));
    slots_put(w->slots, "sizes", kept(w->mem, &b));
    buf_release(&b);
    return true;
}

/* ---- what must hold of sizes ---- */

static void put_check(struct writer *w, str holds, str text) {
    struct slots *row = slots_row(w->slots, "checks");
    slots_put(row, "holds", holds);
    slots_put(row, "text", text);
}

static void put_range(struct writer *w, str value, int64_t least, int64_t most, str text) {
    put_check(w,
              arena_printf(w->mem, "is_within(%.*s, %" PRId64 ", INT64_C(%" PRId64 "))",
                           STR_ARG(value), least, most),
              text);
}

static void put_launch_checks(struct writer *w, const struct plan_launch *l,
                              const size_t *parameter_bytes) {
    static const int64_t most[3] = {INT32_MAX, 65535, 65535};
    for (int i = 0; i < 3; i++)
        if (l->grid[i] && l->grid[i]->op != PLAN_NUMBER)
            put_range(w, plan_c(w, l->grid[i]), 1, most[i], S("a grid that a GPU can launch"));
    if (l->shared && l->shared->op != PLAN_NUMBER)
        put_range(w, plan_c(w, l->shared), 0, 227 << 10, S("shared memory that a block can have"));
    for (size_t i = 0; i < l->nargs; i++)
        if (l->args[i].kind == ARG_INTEGER && parameter_bytes[i] == 4 &&
            l->args[i].value->op != PLAN_NUMBER)
            put_range(w, plan_c(w, l->args[i].value), INT32_MIN, INT32_MAX,
                      S("an argument that fits an int"));
}

static str map_extent(struct writer *w, const struct plan_tensormap *m, size_t i) {
    const struct tensor *t = &w->c->task->tensors[m->ref];
    const struct plan_workspace *s = &w->c->workspaces[m->ref];
    if (m->shape[0])
        return plan_c(w, m->shape[i]);
    return m->of == ARG_TENSOR ? dims_text(t->extent[t->rank - 1 - i], w->c->task, EXPORT_C, w->mem)
                               : plan_c(w, s->extent[s->rank - 1 - i]);
}

/* Bytes from one element of dimension `i` to the next; i > 0. */
static str map_stride(struct writer *w, const struct plan_tensormap *m, size_t i) {
    str factor[TENSORMAP_MAX_RANK + 1];
    enum dtype type = plan_memory_dtype(w->c, m->of, m->ref);
    for (size_t k = 0; k < i; k++)
        factor[k] = map_extent(w, m, k);
    factor[i] = arena_printf(w->mem, "%zu", dtype_info(type)->bytes);
    return product_text(factor, i + 1, EXPORT_C, w->mem);
}

static void put_map_checks(struct writer *w, const struct plan_tensormap *m) {
    for (size_t i = 0; i < m->rank; i++)
        put_range(w, map_extent(w, m, i), 1, UINT32_MAX, S("an extent that a tensor map can have"));
    for (size_t i = 1; i < m->rank; i++)
        put_check(w, arena_printf(w->mem, "%.*s %% 16 == 0", STR_ARG(map_stride(w, m, i))),
                  S("a stride that a tensor map can have"));
}

static bool is_constant(const struct plan_expr *e) {
    return !e || (e->op != PLAN_DIM && e->op != PLAN_LET && is_constant(e->a) && is_constant(e->b));
}

static bool is_constant_workspace(const struct plan_workspace *s) {
    bool constant = true;
    for (size_t i = 0; i < s->rank; i++)
        constant = constant && is_constant(s->extent[i]);
    return constant;
}

/* Texts of tasks and plans stand in comments: they cannot end them. */
static str comment(struct writer *w, str text) {
    char *s = arena_cstr(w->mem, text);
    for (char *p = s; *p; p++)
        if ((unsigned char)*p < ' ' || (p[0] == '*' && p[1] == '/'))
            *p = ' ';
    return str_view(s);
}

static void put_checks(struct writer *w) {
    const struct task *t = w->c->task;
    slots_list(w->slots, "checks");
    for (size_t i = 0; i < t->ndims; i++)
        put_check(w, arena_printf(w->mem, "dim_%.*s >= 1", STR_ARG(t->dims[i].name)),
                  arena_printf(w->mem, "%.*s >= 1", STR_ARG(t->dims[i].name)));
    for (size_t i = 0; i < w->c->nrequires; i++)
        put_check(w, plan_c(w, w->c->requires_[i].condition), comment(w, w->c->requires_[i].text));
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

static void put_memory(struct writer *w) {
    const struct task *t = w->c->task;
    slots_list(w->slots, "workspaces");
    slots_list(w->slots, "addresses");
    for (size_t i = 0; i < t->ntensors; i++) {
        if (!tensor_has_memory(&t->tensors[i]))
            continue;
        struct slots *row = slots_row(w->slots, "addresses");
        slots_put(row, "tensor", member_name(t->tensors[i].name, w->mem));
        slots_number(row, "align", w->c->align[i]);
    }
    for (size_t i = 0; i < w->c->nworkspaces; i++) {
        const struct plan_workspace *s = &w->c->workspaces[i];
        struct slots *row = slots_row(w->slots, "workspaces");
        str factors[2] = {workspace_count(w, i),
                          arena_printf(w->mem, "%zu", dtype_info(s->dtype)->bytes)};
        slots_put(row, "workspace", s->name);
        slots_number(row, "align", s->align > PLAN_ALIGN ? s->align : PLAN_ALIGN);
        slots_put(row, "bytes", product_text(factors, 2, EXPORT_C, w->mem));
    }
}

/* CUtensorMapDataType. */
static int map_type(enum dtype t) {
    static const int types[DTYPE_COUNT] = {[DTYPE_I32] = 3, [DTYPE_I64] = 5, [DTYPE_F16] = 6,
                                           [DTYPE_F32] = 7, [DTYPE_F64] = 8, [DTYPE_BF16] = 9};
    return types[t];
}

static void put_map(struct writer *w, size_t i) {
    const struct plan_tensormap *m = &w->c->maps[i];
    const struct bound_tensormap *bound = &w->bound.maps[i];
    struct slots *row = slots_row(w->slots, "maps");
    struct buf extents, strides, box, steps;
    struct buf *all[] = {&extents, &strides, &box, &steps};
    for (size_t k = 0; k < 4; k++)
        buf_init(all[k], TEXT_MOST);
    for (size_t k = 0; k < m->rank; k++) {
        put_item(&extents, arena_printf(w->mem, "(uint64_t)%.*s", STR_ARG(map_extent(w, m, k))));
        put_item(&box, arena_printf(w->mem, "(uint32_t)%.*s", STR_ARG(plan_c(w, m->box[k]))));
        put_item(&steps, m->step[0] ? plan_c(w, m->step[k]) : S("1"));
        if (k)
            put_item(&strides,
                     arena_printf(w->mem, "(uint64_t)%.*s", STR_ARG(map_stride(w, m, k))));
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

static str three(struct writer *w, struct plan_expr *const e[3]) {
    struct buf b;
    buf_init(&b, TEXT_MOST);
    for (int i = 0; i < 3; i++)
        put_item(&b,
                 e[i] ? arena_printf(w->mem, "(unsigned)%.*s", STR_ARG(plan_c(w, e[i]))) : S("1"));
    str s = kept(w->mem, &b);
    buf_release(&b);
    return s;
}

static str parameter(struct writer *w, struct slots *row, const struct plan_arg *a, size_t i) {
    if (a->kind == ARG_TENSORMAP)
        return arena_printf(w->mem, "&map_%.*s", STR_ARG(w->c->maps[a->ref].name));
    if (a->kind != ARG_INTEGER)
        return arena_printf(w->mem, "&%.*s", STR_ARG(address(w, a->kind, a->ref)));
    struct slots *integer = slots_row(row, "integers");
    slots_number(integer, "at", (int64_t)i);
    slots_put(integer, "value", plan_c(w, a->value));
    return arena_printf(w->mem, "&argument_%zu", i);
}

static size_t function_of(const struct candidate *c, str kernel) {
    size_t n = 0;
    for (size_t i = 0; i < c->nlaunches && !str_eq(c->launches[i].kernel, kernel); i++) {
        bool before = false;
        for (size_t k = 0; k < i; k++)
            before |= str_eq(c->launches[k].kernel, c->launches[i].kernel);
        n += !before;
    }
    return n;
}

static void put_launch(struct writer *w, struct slots *row, const struct plan_launch *l) {
    struct buf params;
    buf_init(&params, TEXT_MOST);
    slots_list(row, "integers");
    for (size_t i = 0; i < l->nargs; i++)
        put_item(&params, parameter(w, row, &l->args[i], i));
    if (l->nargs == 0)
        put_item(&params, S("NULL"));
    slots_put(row, "grid", three(w, l->grid));
    slots_put(row, "block", three(w, l->block));
    slots_put(row, "cluster", three(w, l->cluster));
    slots_put(row, "shared",
              l->shared ? arena_printf(w->mem, "(unsigned)%.*s", STR_ARG(plan_c(w, l->shared)))
                        : S("0"));
    slots_number(row, "cooperative", l->cooperative);
    slots_number(row, "function", (int64_t)(w->first + function_of(w->c, l->kernel)));
    slots_put(row, "params", kept(w->mem, &params));
    buf_release(&params);
}

static bool put_step(struct writer *w, const struct plan_step *s, struct err *err) {
    struct slots *row = slots_row(w->slots, "steps");
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

/* ---- a kernel ---- */

static str cubin_bytes(struct writer *w) {
    struct buf b;
    buf_init(&b, TEXT_MOST);
    for (size_t i = 0; i < w->k->cubin.n; i++)
        buf_printf(&b, "%s%d,%s", i % 24 ? "" : "    ", (unsigned char)w->k->cubin.p[i],
                   i % 24 == 23 || i + 1 == w->k->cubin.n ? "\n" : "");
    str s = kept(w->mem, &b);
    buf_release(&b);
    return s;
}

/* "sm_90a": 9, 0 and that it is of this architecture alone. */
static void put_arch(struct writer *w) {
    str digits = str_from(w->k->arch, 3);
    bool exact = digits.n && (digits.p[digits.n - 1] < '0' || digits.p[digits.n - 1] > '9');
    int64_t version = 0;
    if (exact)
        digits.n--;
    str_to_i64(digits, &version);
    slots_put(w->slots, "arch", w->k->arch);
    slots_number(w->slots, "major", version / 10);
    slots_number(w->slots, "minor", version % 10);
    slots_number(w->slots, "exact", exact);
}

static str own_dims(const struct export_kernel *k, struct arena *mem) {
    struct buf b;
    buf_init(&b, 1 << 16);
    for (size_t i = 0; i < k->task->ndims; i++)
        if (!k->task->dims[i].derived)
            put_item(&b, arena_printf(mem, "%" PRId64, k->inst->dims[i]));
    if (b.n == 0)
        put_item(&b, S("0"));
    str s = kept(mem, &b);
    buf_release(&b);
    return s;
}

static size_t put_functions(struct writer *w, struct slots *library) {
    size_t n = 0;
    for (size_t i = 0; i < w->c->nlaunches; i++)
        if (function_of(w->c, w->c->launches[i].kernel) == n) {
            slots_put(slots_row(library, "functions"), "function", w->c->launches[i].kernel);
            n++;
        }
    return n;
}

static bool put_kernel(struct writer *w, size_t number, struct slots *library, size_t *functions,
                       struct err *err) {
    w->slots = slots_row(library, "kernels");
    w->first = *functions;
    if (!plan_bind(w->c, w->k->inst, w->mem, &w->bound, err) || !put_sizes(w, err))
        return false;
    slots_number(w->slots, "number", (int64_t)number);
    slots_put(
        w->slots, "about",
        comment(w, arena_printf(w->mem, "made for %.*s; %.*s",
                                STR_ARG(inst_label(w->k->inst, w->mem)), STR_ARG(w->k->time))));
    slots_put(w->slots, "source_hash", str_view(w->k->source_hash));
    slots_put(w->slots, "own", own_dims(w->k, w->mem));
    put_arch(w);
    put_checks(w);
    put_memory(w);
    slots_list(w->slots, "maps");
    for (size_t i = 0; i < w->c->nmaps; i++)
        put_map(w, i);
    slots_list(w->slots, "steps");
    for (size_t i = 0; i < w->c->nsteps; i++)
        if (!put_step(w, &w->c->steps[i], err))
            return false;
    slots_number(w->slots, "first", (int64_t)w->first);
    size_t n = put_functions(w, library);
    slots_number(w->slots, "functions", (int64_t)n);
    *functions += n;
    slots_put(w->slots, "bytes_of_cubin", cubin_bytes(w));
    return true;
}

/* ---- the interface ---- */

static str tensor_words(struct writer *w, const struct tensor *t) {
    struct buf b;
    buf_init(&b, 1 << 16);
    for (size_t i = 0; i < t->rank; i++)
        put_item(&b, str_cut(w->c->task->text, t->extent[i]->at, t->extent[i]->len));
    str role = t->role == TENSOR_OUT     ? S("written")
               : t->role == TENSOR_INOUT ? S("read and written")
                                         : S("read");
    uint32_t align = w->c->align[t - w->c->task->tensors];
    str s = arena_printf(w->mem, "%s, [%.*s], %.*s", dtype_info(t->dtype)->name,
                         STR_ARG(buf_str(&b)), STR_ARG(role));
    if (align > PLAN_ALIGN)
        s = arena_printf(w->mem, "%.*s; aligned to %u bytes", STR_ARG(s), align);
    buf_release(&b);
    return comment(w, s);
}

static void put_interface(struct writer *w, struct slots *s) {
    const struct task *t = w->c->task;
    struct buf dims, tensors;
    buf_init(&dims, TEXT_MOST);
    buf_init(&tensors, TEXT_MOST);
    slots_list(s, "dims");
    slots_list(s, "tensors");
    for (size_t i = 0; i < t->ndims; i++) {
        if (t->dims[i].derived)
            continue;
        str name = member_name(t->dims[i].name, w->mem);
        slots_put(slots_row(s, "dims"), "dim", name);
        put_item(&dims,
                 arena_printf(w->mem, ".%.*s = %" PRId64, STR_ARG(name), w->k->inst->dims[i]));
    }
    for (size_t i = 0; i < t->ntensors; i++) {
        if (!tensor_has_memory(&t->tensors[i]))
            continue;
        struct slots *row = slots_row(s, "tensors");
        str name = member_name(t->tensors[i].name, w->mem);
        slots_put(row, "tensor", name);
        slots_put(row, "const", tensor_is_output(&t->tensors[i]) ? S("") : S("const "));
        slots_put(row, "what", tensor_words(w, &t->tensors[i]));
        put_item(&tensors, arena_printf(w->mem, ".%.*s = …", STR_ARG(name)));
    }
    slots_put(s, "example_dims", kept(w->mem, &dims));
    slots_put(s, "example_tensors", kept(w->mem, &tensors));
    slots_number(s, "align", PLAN_ALIGN);
    buf_release(&dims);
    buf_release(&tensors);
}

static str upper(str name, struct arena *mem) {
    char *s = arena_cstr(mem, name);
    for (char *p = s; *p; p++)
        if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
    return str_view(s);
}

bool export_c(const struct export_package *p, struct err *err) {
    struct slots header, source;
    size_t functions = 0;
    bool maps = false, memsets = false;
    slots_init(&source, p->mem);
    slots_list(&source, "kernels");
    slots_list(&source, "functions");
    struct writer w = {.p = p, .mem = p->mem};
    for (size_t i = 0; i < p->n; i++) {
        w.k = &p->kernels[i];
        w.c = w.k->candidate;
        if (!put_kernel(&w, i, &source, &functions, err))
            return false;
        maps |= w.c->nmaps > 0;
        memsets |= w.c->nmemsets > 0;
    }
    slots_flag(&source, "maps", maps);
    slots_flag(&source, "memsets", memsets);
    slots_put(&source, "name", p->name);
    slots_put(&source, "title", comment(&w, p->kernels[0].task->title));
    slots_put(&source, "origin", package_origin(p, " * "));
    slots_init(&header, p->mem);
    w.k = &p->kernels[0];
    w.c = w.k->candidate;
    put_interface(&w, &header);
    slots_put(&header, "name", p->name);
    slots_put(&header, "guard", upper(p->name, p->mem));
    slots_put(&header, "title", slots_get(&source, "title"));
    slots_put(&header, "origin", slots_get(&source, "origin"));
    slots_number(&header, "nkernels", (int64_t)p->n);
    slots_number(&header, "nfunctions", (int64_t)functions);
    str h = arena_printf(p->mem, "%.*s.h", STR_ARG(p->name)),
        c = arena_printf(p->mem, "%.*s.c", STR_ARG(p->name));
    return package_begin(p, err) &&
           ((package_template(p, h.p, "export/c/header.h", &header, err) &&
             package_template(p, c.p, "export/c/source.c", &source, err)) ||
            package_undo(p));
}
