/* A package for PyTorch: assets/export/torch. plan.py is each kernel's plan as arithmetic, init.py
 * the operator with its checks, its shapes and its fallback; runtime.py, the same in every package,
 * launches. Here the operator's interface is read off the task: sizes come from the shapes of what
 * is read, a size that no shape states is an argument. */
#include "base/asset.h"
#include "base/file.h"
#include "export/export_private.h"
#include <inttypes.h>

#define TEXT_MOST (4u << 20)

struct interface {
    const struct export_package *p;
    const struct task *t;
    struct arena *mem;
    struct slots *slots;
    str from[TASK_MAX_DIMS]; /* of each dimension: "x.shape[0]"; empty: no shape states it */
};

static const char *torch_dtype(enum dtype t) {
    static const char *const names[DTYPE_COUNT] = {
        [DTYPE_F64] = "torch.float64", [DTYPE_F32] = "torch.float32",
        [DTYPE_F16] = "torch.float16", [DTYPE_BF16] = "torch.bfloat16",
        [DTYPE_I8] = "torch.int8",     [DTYPE_U8] = "torch.uint8",
        [DTYPE_I32] = "torch.int32",   [DTYPE_I64] = "torch.int64",
        [DTYPE_BOOL] = "torch.bool"};
    return names[t];
}

/* A tuple's inside: "2, 3", "2,", "". */
static str tuple(struct arena *mem, struct buf *items, size_t n) {
    if (n == 1)
        buf_putc(items, ',');
    return kept(mem, items);
}

static str shape_text(const struct interface *f, const struct tensor *t) {
    struct buf b;
    buf_init(&b, TEXT_MOST);
    for (size_t i = 0; i < t->rank; i++)
        put_item(&b, dims_text(t->extent[i], f->t, EXPORT_PYTHON, f->mem));
    str s = tuple(f->mem, &b, t->rank);
    buf_release(&b);
    return s;
}

/* ---- sizes ---- */

static void find_sizes(struct interface *f) {
    for (size_t i = 0; i < f->t->ntensors; i++) {
        const struct tensor *t = &f->t->tensors[i];
        for (size_t k = 0; k < t->rank && tensor_is_input(t); k++) {
            const struct expr *e = t->extent[k];
            if (e->kind == EXPR_DIM && !f->t->dims[e->ref].derived && f->from[e->ref].n == 0)
                f->from[e->ref] = arena_printf(f->mem, "%.*s.shape[%zu]", STR_ARG(t->name), k);
        }
    }
}

/* The names of dimensions without their dim_, for the torch line. */
static str plain_names(const struct interface *f, str text) {
    struct buf b;
    buf_init(&b, TEXT_MOST);
    (void)f;
    while (text.n) {
        size_t at = str_find(text, S("dim_"));
        buf_puts(&b, str_cut(text, 0, at));
        text = str_from(text, at < text.n ? at + 4 : at);
    }
    str s = kept(f->mem, &b);
    buf_release(&b);
    return s;
}

static void put_sizes(struct interface *f) {
    struct buf settable, arguments;
    size_t n = 0;
    buf_init(&settable, TEXT_MOST);
    buf_init(&arguments, TEXT_MOST);
    slots_list(f->slots, "inferred");
    slots_list(f->slots, "given");
    slots_list(f->slots, "derived");
    for (size_t i = 0; i < f->t->ndims; i++) {
        const struct dim *d = &f->t->dims[i];
        str value = dims_text(d->value, f->t, EXPORT_PYTHON, f->mem);
        struct slots *row = slots_row(f->slots, d->derived     ? "derived"
                                                : f->from[i].n ? "inferred"
                                                               : "given");
        slots_put(row, "dim", d->name);
        slots_put(row, "from", f->from[i]);
        slots_put(row, "value", value);
        slots_put(row, "plain", plain_names(f, value));
        if (d->derived)
            continue;
        n++;
        put_item(&settable, arena_printf(f->mem, "dim_%.*s", STR_ARG(d->name)));
        put_item(&arguments, arena_printf(f->mem, "dim_%.*s", STR_ARG(d->name)));
    }
    slots_put(f->slots, "example_arguments",
              n ? arena_printf(f->mem, "%.*s, ", STR_ARG(buf_str(&arguments))) : S(""));
    put_item(&arguments, S("device"));
    slots_put(f->slots, "settable", tuple(f->mem, &settable, n));
    slots_put(f->slots, "dims_arguments", kept(f->mem, &arguments));
    buf_release(&settable);
    buf_release(&arguments);
}

/* ---- arguments and results ---- */

/* Values of the kind that the task states, for tests and timing. */
static str example_text(const struct interface *f, const struct tensor *t) {
    const struct bound_tensor *b = &f->p->kernels[0].inst->tensors[t - f->t->tensors];
    str shape = shape_text(f, t);
    if (t->dtype == DTYPE_BOOL)
        return arena_printf(f->mem, "torch.rand((%.*s), **_how) < 0.5", STR_ARG(shape));
    if (dtype_info(t->dtype)->kind != 'f')
        return arena_printf(f->mem,
                            "torch.randint(%" PRId64 ", %" PRId64 ", (%.*s), **_how).to(%s)",
                            b->lo > -100 ? b->lo : -100, b->hi < 100 ? b->hi + 1 : 100,
                            STR_ARG(shape), torch_dtype(t->dtype));
    bool normal = t->dist.kind == DIST_NORMAL;
    return arena_printf(f->mem, "torch.%s((%.*s), **_how).to(%s)", normal ? "randn" : "rand",
                        STR_ARG(shape), torch_dtype(t->dtype));
}

struct lists {
    struct buf arguments, signature, names, strings, mutated, example, targets, results;
};

static void put_input(struct interface *f, struct lists *l, const struct tensor *t) {
    struct slots *row = slots_row(f->slots, "inputs");
    slots_put(row, "tensor", t->name);
    slots_put(row, "dtype", str_view(torch_dtype(t->dtype)));
    slots_number(row, "rank", (int64_t)t->rank);
    slots_put(row, "shape", shape_text(f, t));
    slots_put(row, "make", example_text(f, t));
    put_item(&l->arguments, t->name);
    put_item(&l->signature, arena_printf(f->mem, "%.*s: torch.Tensor", STR_ARG(t->name)));
    put_item(&l->names, t->name);
    put_item(&l->strings, arena_printf(f->mem, "\"%.*s\"", STR_ARG(t->name)));
    if (t->role == TENSOR_INOUT) {
        put_item(&l->mutated, arena_printf(f->mem, "\"%.*s\"", STR_ARG(t->name)));
        put_item(&l->targets, t->name);
    }
}

static size_t put_output(struct interface *f, struct lists *l, const struct tensor *t, size_t n) {
    struct slots *row = slots_row(f->slots, "outputs");
    slots_put(row, "dtype", str_view(torch_dtype(t->dtype)));
    slots_put(row, "shape", shape_text(f, t));
    put_item(&l->targets, arena_printf(f->mem, "_outputs_made[%zu]", n));
    put_item(&l->results, S("torch.Tensor"));
    return n + 1;
}

static void put_tensors(struct interface *f, struct lists *l) {
    size_t outputs = 0, mutated = 0;
    slots_list(f->slots, "inputs");
    slots_list(f->slots, "outputs");
    for (size_t i = 0; i < f->t->ntensors; i++) {
        const struct tensor *t = &f->t->tensors[i];
        mutated += t->role == TENSOR_INOUT;
        if (tensor_is_input(t))
            put_input(f, l, t);
        else if (t->role == TENSOR_OUT)
            outputs = put_output(f, l, t, outputs);
    }
    for (size_t i = 0; i < f->t->ndims; i++)
        if (!f->t->dims[i].derived && f->from[i].n == 0) {
            put_item(&l->arguments, f->t->dims[i].name);
            put_item(&l->signature, arena_printf(f->mem, "%.*s: int", STR_ARG(f->t->dims[i].name)));
        }
    slots_put(f->slots, "example",
              arena_printf(f->mem, "%s%.*s.%.*s(%.*s)", outputs ? "result = " : "",
                           STR_ARG(f->p->name), STR_ARG(f->p->name),
                           STR_ARG(buf_str(&l->arguments))));
    slots_put(f->slots, "returns",
              outputs == 0   ? S("None")
              : outputs == 1 ? S("torch.Tensor")
                             : arena_printf(f->mem, "tuple[%.*s]", STR_ARG(buf_str(&l->results))));
    slots_put(f->slots, "give_back",
              outputs == 0   ? S("return None")
              : outputs == 1 ? S("return _outputs_made[0]")
                             : S("return tuple(_outputs_made)"));
    slots_put(f->slots, "arguments", kept(f->mem, &l->arguments));
    slots_put(f->slots, "signature", kept(f->mem, &l->signature));
    slots_put(f->slots, "input_names", kept(f->mem, &l->names));
    slots_put(f->slots, "input_strings", kept(f->mem, &l->strings));
    slots_put(f->slots, "mutated", tuple(f->mem, &l->mutated, mutated));
    slots_put(f->slots, "targets", kept(f->mem, &l->targets));
}

static void put_interface(struct interface *f) {
    struct lists l;
    struct buf *all = &l.arguments;
    for (size_t i = 0; i < sizeof l / sizeof *all; i++)
        buf_init(&all[i], TEXT_MOST);
    find_sizes(f);
    put_sizes(f);
    put_tensors(f, &l);
    for (size_t i = 0; i < sizeof l / sizeof *all; i++)
        buf_release(&all[i]);
    for (size_t i = 0; i < f->t->ntensors; i++)
        if (tensor_is_input(&f->t->tensors[i])) {
            slots_put(f->slots, "first", f->t->tensors[i].name);
            break;
        }
    slots_flag(f->slots, "torch_ready", f->t->torch.n > 0);
    slots_put(f->slots, "torch",
              f->t->torch.n ? f->t->torch : S("an exception: the task has no torch line"));
}

/* ---- plans ---- */

static str aligns(const struct plan_writer *w) {
    struct buf b;
    size_t n = 0;
    buf_init(&b, TEXT_MOST);
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < w->c->task->ntensors; i++) {
            const struct tensor *t = &w->c->task->tensors[i];
            if (!tensor_has_memory(t) || (t->role == TENSOR_OUT) != (pass == 1))
                continue;
            put_item(&b, arena_printf(w->mem, "%u", w->c->align[i]));
            n++;
        }
    str s = tuple(w->mem, &b, n);
    buf_release(&b);
    return s;
}

static bool put_kernel(struct plan_writer *w, size_t number, struct err *err) {
    const struct task *t = w->c->task;
    struct buf own, settable;
    size_t n = 0, memory = 0;
    if (!put_plan_rows(w, err))
        return false;
    buf_init(&own, TEXT_MOST);
    buf_init(&settable, TEXT_MOST);
    for (size_t i = 0; i < t->ndims; i++) {
        if (t->dims[i].derived)
            continue;
        put_item(&own, arena_printf(w->mem, "%" PRId64, w->k->inst->dims[i]));
        put_item(&settable, arena_printf(w->mem, "dim_%.*s", STR_ARG(t->dims[i].name)));
        n++;
    }
    for (size_t i = 0; i < t->ntensors; i++)
        memory += tensor_has_memory(&t->tensors[i]);
    slots_number(w->slots, "number", (int64_t)number);
    slots_number(w->slots, "ntensors", (int64_t)memory);
    slots_put(w->slots, "own", tuple(w->mem, &own, n));
    slots_put(w->slots, "settable", kept(w->mem, &settable));
    slots_put(w->slots, "aligns", aligns(w));
    slots_put(w->slots, "time", comment_text(w->k->time, w->mem));
    buf_release(&own);
    buf_release(&settable);
    return true;
}

static bool make_plans(const struct export_package *p, struct slots *plans, struct err *err) {
    slots_init(plans, p->mem);
    slots_list(plans, "kernels");
    for (size_t i = 0; i < p->n; i++) {
        struct plan_writer w = {.language = EXPORT_PYTHON,
                                .k = &p->kernels[i],
                                .c = p->kernels[i].candidate,
                                .mem = p->mem,
                                .slots = slots_row(plans, "kernels")};
        if (!put_kernel(&w, i, err))
            return false;
    }
    slots_put(plans, "name", p->name);
    slots_put(plans, "origin", package_origin(p, ""));
    return true;
}

/* ---- files ---- */

static bool put_code(const struct export_package *p, struct err *err) {
    bool ok = true;
    for (size_t i = 0; ok && i < p->n; i++) {
        str name = arena_printf(p->mem, "%.*s/kernel_%zu", STR_ARG(p->name), i);
        ok = package_file(p, arena_printf(p->mem, "%.*s.cubin", STR_ARG(name)).p,
                          p->kernels[i].cubin, err) &&
             package_file(p, arena_printf(p->mem, "%.*s.cu", STR_ARG(name)).p, p->kernels[i].unit,
                          err);
    }
    return ok;
}

static bool put_template(const struct export_package *p, const char *name, const char *template,
                         const struct slots *all, struct err *err) {
    struct slots used;
    str text;
    if (!asset_get(p->assets, template, p->mem, &text, err))
        return false;
    slots_init(&used, p->mem);
    for (size_t i = 0; i < all->n; i++)
        if (template_mentions(text, all->at[i].name))
            used.at[used.n++] = all->at[i];
    return package_template(p, name, template, &used, err);
}

static bool put_files(const struct export_package *p, const struct slots *plans,
                      const struct slots *operator_, struct err *err) {
    const char *folder = arena_cstr(p->mem, p->name);
#define INSIDE(file) arena_printf(p->mem, "%s/%s", folder, file).p
    return dir_make(arena_printf(p->mem, "%s/%s", p->folder, folder).p, err) &&
           dir_make(arena_printf(p->mem, "%s/tests", p->folder).p, err) && put_code(p, err) &&
           put_template(p, INSIDE("_plan.py"), "export/torch/plan.py", plans, err) &&
           put_template(p, INSIDE("_runtime.py"), "export/torch/runtime.py", plans, err) &&
           put_template(p, INSIDE("__init__.py"), "export/torch/init.py", operator_, err) &&
           put_template(p, "pyproject.toml", "export/torch/pyproject.toml", operator_, err) &&
           put_template(p, "tests/test_op.py", "export/torch/test_op.py", operator_, err) &&
           put_template(p, "tests/time_op.py", "export/torch/time_op.py", operator_, err);
#undef INSIDE
}

bool export_torch(const struct export_package *p, struct err *err) {
    struct slots plans, operator_;
    slots_init(&operator_, p->mem);
    struct interface f = {.p = p, .t = p->kernels[0].task, .mem = p->mem, .slots = &operator_};
    put_interface(&f);
    slots_put(&operator_, "name", p->name);
    slots_put(&operator_, "title", comment_text(f.t->title, p->mem));
    slots_put(&operator_, "origin", package_origin(p, ""));
    slots_put(&operator_, "version", S("1.0.0"));
    return make_plans(p, &plans, err) && package_begin(p, err) &&
           (put_files(p, &plans, &operator_, err) || package_undo(p));
}
