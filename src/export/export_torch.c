/* A package for PyTorch: assets/export/torch. plan.py is each kernel's plan as arithmetic, init.py
 * the operator with its checks, its shapes and its fallback; runtime.py, the same in every package,
 * launches. Here the operator's interface is read off the task: sizes come from the shapes of what
 * is read, a size that no shape states is an argument. */
#include "base/file.h"
#include "export/export_private.h"
#include "spec/bind.h"
#include <inttypes.h>

#define TEXT_MOST (4u << 20)

struct interface {
    str name; /* of the operator */
    const struct inst *inst;
    const struct task *t;
    struct arena *mem;
    struct slots *slots;
    str from[TASK_MAX_DIMS]; /* of each dimension: "x.shape[0]"; empty: no shape states it */
};

const char *torch_dtype(enum dtype t) {
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

/* A number of a distribution: over the sizes of the call where it is an integer, at the kernel's
 * own otherwise. */
static str dist_text(const struct interface *f, const struct expr *e) {
    str text = dims_text(e, f->t, EXPORT_PYTHON, f->mem);
    double value = 0;
    if (text.n)
        return text;
    expr_eval_real(e, f->inst->dims, &value);
    return arena_printf(f->mem, "%.17g", value);
}

/* Integers that are defined from others, at random within what they can be at the kernel's own
 * sizes. */
static str integers_text(const struct interface *f, const struct bound_tensor *b, str shape) {
    return arena_printf(f->mem, "torch.randint(%" PRId64 ", %" PRId64 ", (%.*s), **_how)",
                        b->lo > -100 ? b->lo : -100, b->hi < 100 ? b->hi + 1 : 100, STR_ARG(shape));
}

/* Values as the task states them, for tests and timing. */
static str values_text(const struct interface *f, const struct tensor *t) {
    const struct bound_tensor *bound = &f->inst->tensors[t - f->t->tensors];
    str shape = shape_text(f, t), a = t->dist.a ? dist_text(f, t->dist.a) : S(""),
        b = t->dist.b ? dist_text(f, t->dist.b) : S("");
    switch (t->dist.kind) {
    case DIST_UNIFORM:
        return arena_printf(f->mem, "torch.rand((%.*s), **_how) * (%.*s - %.*s) + %.*s",
                            STR_ARG(shape), STR_ARG(b), STR_ARG(a), STR_ARG(a));
    case DIST_NORMAL:
        return arena_printf(f->mem, "torch.randn((%.*s), **_how) * %.*s + %.*s", STR_ARG(shape),
                            STR_ARG(b), STR_ARG(a));
    case DIST_RANDINT:
        return arena_printf(f->mem, "torch.randint(%.*s, %.*s, (%.*s), **_how)", STR_ARG(a),
                            STR_ARG(b), STR_ARG(shape));
    case DIST_BERNOULLI:
        return arena_printf(f->mem, "torch.rand((%.*s), **_how) < %.*s", STR_ARG(shape),
                            STR_ARG(a));
    case DIST_ONES:
    case DIST_ZEROS:
        return arena_printf(f->mem, "torch.%s((%.*s), device=device)",
                            t->dist.kind == DIST_ONES ? "ones" : "zeros", STR_ARG(shape));
    case DIST_DEFINED:
        if (t->dtype == DTYPE_BOOL)
            return arena_printf(f->mem, "torch.rand((%.*s), **_how) < 0.5", STR_ARG(shape));
        if (dtype_info(t->dtype)->kind != 'f')
            return integers_text(f, bound, shape);
    }
    return arena_printf(f->mem, "torch.rand((%.*s), **_how)", STR_ARG(shape));
}

static str example_text(const struct interface *f, const struct tensor *t) {
    return arena_printf(f->mem, "(%.*s).to(%s)", STR_ARG(values_text(f, t)), torch_dtype(t->dtype));
}

struct lists {
    struct buf arguments, signature, names, strings, mutated, example, targets, results;
};

static void put_input(struct interface *f, struct lists *l, const struct tensor *t) {
    struct slots *row = slots_row(f->slots, "inputs");
    slots_put(row, "tensor", t->name);
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
    slots_number(row, "number", (int64_t)n);
    slots_put(row, "shape", shape_text(f, t));
    put_item(&l->targets, arena_printf(f->mem, "_outputs_made[%zu]", n));
    put_item(&l->results, S("torch.Tensor"));
    return n + 1;
}

static void put_tensors(struct interface *f, struct lists *l) {
    size_t inputs = 0, outputs = 0, mutated = 0;
    slots_list(f->slots, "inputs");
    slots_list(f->slots, "outputs");
    for (size_t i = 0; i < f->t->ntensors; i++) {
        const struct tensor *t = &f->t->tensors[i];
        mutated += t->role == TENSOR_INOUT;
        inputs += tensor_is_input(t);
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
                           STR_ARG(f->name), STR_ARG(f->name), STR_ARG(buf_str(&l->arguments))));
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
    slots_put(f->slots, "input_list", arena_str(f->mem, buf_str(&l->names)));
    slots_put(f->slots, "input_names", tuple(f->mem, &l->names, inputs));
    slots_put(f->slots, "input_strings", tuple(f->mem, &l->strings, inputs));
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

/* Something of each tensor that has memory: what is read, then what is only written, as the runtime
 * is given them; `pass`: of both (-1), of the former (0), of the latter (1). */
typedef str tensor_fact(const struct task *t, const struct candidate *c, size_t tensor,
                        struct arena *mem);

static str align_fact(const struct task *t, const struct candidate *c, size_t tensor,
                      struct arena *mem) {
    (void)t;
    return arena_printf(mem, "%u", c->align[tensor]);
}

static str type_fact(const struct task *t, const struct candidate *c, size_t tensor,
                     struct arena *mem) {
    (void)mem, (void)c;
    return str_view(torch_dtype(t->tensors[tensor].dtype));
}

/* `c`: NULL where only what the task says is asked for. */
static str tensor_facts(const struct task *task, const struct candidate *c, tensor_fact *fact,
                        int which, struct arena *mem) {
    struct buf b;
    size_t n = 0;
    buf_init(&b, TEXT_MOST);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < task->ntensors; i++) {
            const struct tensor *t = &task->tensors[i];
            if (!tensor_has_memory(t) || (t->role == TENSOR_OUT) != (pass == 1) ||
                (which >= 0 && which != pass))
                continue;
            put_item(&b, fact(task, c, i, mem));
            n++;
        }
    str s = tuple(mem, &b, n);
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
    slots_put(w->slots, "aligns", tensor_facts(t, w->c, align_fact, -1, w->mem));
    slots_put(w->slots, "types", tensor_facts(t, w->c, type_fact, -1, w->mem));
    slots_put(w->slots, "time", comment_text(w->k->time, w->mem));
    buf_release(&own);
    buf_release(&settable);
    return true;
}

/* Once for each set of types that are read. */
static bool put_types(struct torch_operator *o, struct err *err) {
    struct arena *mem = o->p->mem;
    slots_list(&o->slots, "types");
    for (size_t i = 0; i < o->n || i == 0; i++) {
        const struct task *t = o->n ? o->kernels[i].task : o->task;
        str read = tensor_facts(t, NULL, type_fact, 0, mem),
            written = tensor_facts(t, NULL, type_fact, 1, mem);
        bool known = false;
        for (size_t k = 0; k < i && !known; k++) {
            const struct task *other = o->kernels[k].task;
            known = str_eq(read, tensor_facts(other, NULL, type_fact, 0, mem));
            if (known && !str_eq(written, tensor_facts(other, NULL, type_fact, 1, mem)))
                return err_set(err, ERR_INPUT,
                               "two kernels read the same types and write others: "
                               "they cannot be one operation");
        }
        if (!str_eq(t->torch, o->task->torch))
            return err_set(err, ERR_INPUT,
                           "the tasks have different torch lines: the operation could "
                           "fall back to one of them only");
        if (known)
            continue;
        struct slots *row = slots_row(&o->slots, "types");
        slots_put(row, "read", read);
        slots_put(row, "written", written);
    }
    return true;
}

bool torch_operator_make(struct torch_operator *o, struct err *err) {
    const struct export_package *p = o->p;
    slots_init(&o->plans, p->mem);
    slots_list(&o->plans, "kernels");
    for (size_t i = 0; i < o->n; i++) {
        struct plan_writer w = {.language = EXPORT_PYTHON,
                                .k = &o->kernels[i],
                                .c = o->kernels[i].candidate,
                                .mem = p->mem,
                                .slots = slots_row(&o->plans, "kernels")};
        if (!put_kernel(&w, i, err))
            return false;
    }
    slots_put(&o->plans, "name", o->name);
    slots_put(&o->plans, "code", str_view(o->code));
    slots_put(&o->plans, "origin", package_origin(p, ""));
    slots_init(&o->slots, p->mem);
    struct interface f = {
        .name = o->name, .inst = o->inst, .t = o->task, .mem = p->mem, .slots = &o->slots};
    put_interface(&f);
    slots_put(&o->slots, "name", o->name);
    slots_put(&o->slots, "title", comment_text(f.t->title, p->mem));
    slots_put(&o->slots, "origin", package_origin(p, ""));
    slots_flag(&o->slots, "hub", p->hub);
    slots_put(&o->slots, "qualified",
              arena_printf(p->mem,
                           p->hub ? "add_op_namespace_prefix(\"%.*s\")" : "\"cutepilot::%.*s\"",
                           STR_ARG(o->name)));
    slots_put(&o->slots, "version", S("1.0.0"));
    slots_put(&o->slots, "plan", str_view(o->plan));
    slots_flag(&o->slots, "backward", p->nbackward > 0);
    return put_types(o, err);
}

/* ---- gradients ---- */

/* The tensor whose gradient goes by this name; NULL: none. */
static const struct tensor *gradient_of(const struct task *t, str name) {
    str of = str_starts(name, S("grad_")) ? str_from(name, 5)
             : str_starts(name, S("d"))   ? str_from(name, 1)
                                          : S("");
    int i = of.n ? tensor_find(t, of) : -1;
    return i >= 0 ? &t->tensors[i] : NULL;
}

static const struct tensor *tensor_named(const struct task *t, str name) {
    int i = tensor_find(t, name);
    return i >= 0 ? &t->tensors[i] : NULL;
}

static bool gradient_fails(const struct tensor *x, const char *why, struct err *err) {
    return err_set(err, ERR_INPUT, "the backward task's tensor %.*s %s", STR_ARG(x->name), why);
}

/* Fills `arguments` with the backward operator's arguments and `saved` with those that the forward
 * one keeps. */
static bool put_backward_inputs(const struct task *forward, const struct task *backward,
                                struct slots *s, struct arena *mem, struct err *err) {
    struct buf arguments, saved;
    size_t n = 0;
    bool ok = true;
    buf_init(&arguments, TEXT_MOST);
    buf_init(&saved, TEXT_MOST);
    for (size_t i = 0; ok && i < backward->ntensors; i++) {
        const struct tensor *x = &backward->tensors[i];
        if (!tensor_is_input(x))
            continue;
        const struct tensor *same = tensor_named(forward, x->name),
                            *of = gradient_of(forward, x->name);
        put_item(&arguments, x->name);
        if (same && tensor_has_memory(same)) {
            put_item(&saved, x->name);
            n++;
        } else if (!of || of->role != TENSOR_OUT) {
            ok = gradient_fails(x,
                                "is neither a tensor of the operation nor the gradient of one that "
                                "it writes",
                                err);
        } else if (of->dtype != x->dtype) {
            ok = gradient_fails(x, "has another type than what it is the gradient of", err);
        }
    }
    slots_put(s, "backward_arguments", kept(mem, &arguments));
    slots_put(s, "saved", arena_str(mem, buf_str(&saved)));
    slots_put(s, "saved_tuple", n ? tuple(mem, &saved, n) : S("()"));
    buf_release(&arguments);
    buf_release(&saved);
    return ok;
}

/* What the gradient function returns: for each argument of the operation its gradient, or None. */
static bool put_backward_outputs(const struct task *forward, const struct task *backward,
                                 struct slots *s, struct arena *mem, struct err *err) {
    struct buf made, returned;
    size_t n = 0, arguments = 0;
    bool ok = true;
    buf_init(&made, TEXT_MOST);
    buf_init(&returned, TEXT_MOST);
    for (size_t i = 0; ok && i < backward->ntensors; i++) {
        const struct tensor *x = &backward->tensors[i], *of = gradient_of(forward, x->name);
        if (x->role == TENSOR_INOUT)
            ok = gradient_fails(x, "is written in place, which a gradient cannot be", err);
        if (x->role != TENSOR_OUT)
            continue;
        if (!of || !tensor_is_input(of))
            ok =
                gradient_fails(x, "is not the gradient of something that the operation reads", err);
        put_item(&made, x->name);
        n++;
    }
    for (size_t i = 0; ok && i < forward->ntensors; i++) {
        const struct tensor *t = &forward->tensors[i];
        str name = S("None");
        for (size_t k = 0; k < backward->ntensors; k++)
            if (backward->tensors[k].role == TENSOR_OUT &&
                gradient_of(forward, backward->tensors[k].name) == t)
                name = backward->tensors[k].name;
        if (tensor_is_input(t)) {
            put_item(&returned, name);
            arguments++;
        }
    }
    slots_put(s, "made_tuple", n == 1 ? S("(_made,)") : S("_made"));
    slots_put(s, "backward_tuple", tuple(mem, &made, n));
    slots_put(s, "returned", tuple(mem, &returned, arguments));
    buf_release(&made);
    buf_release(&returned);
    return ok;
}

static void put_forward_names(const struct task *forward, const struct task *backward,
                              struct slots *s, struct arena *mem) {
    struct buf inputs, outputs, gradients;
    size_t nin = 0, nout = 0;
    buf_init(&inputs, TEXT_MOST);
    buf_init(&outputs, TEXT_MOST);
    buf_init(&gradients, TEXT_MOST);
    slots_list(s, "gradients");
    for (size_t i = 0; i < forward->ntensors; i++) {
        const struct tensor *t = &forward->tensors[i];
        if (tensor_is_input(t)) {
            put_item(&inputs, t->name);
            nin++;
        } else if (t->role == TENSOR_OUT) {
            str name = arena_printf(mem, "_unused_%zu", nout);
            put_item(&outputs, t->name);
            for (size_t k = 0; k < backward->ntensors; k++)
                if (tensor_is_input(&backward->tensors[k]) &&
                    gradient_of(forward, backward->tensors[k].name) == t &&
                    !tensor_named(forward, backward->tensors[k].name))
                    name = backward->tensors[k].name;
            put_item(&gradients, name);
            if (!str_starts(name, S("_unused_"))) {
                struct slots *row = slots_row(s, "gradients");
                slots_put(row, "gradient", name);
                slots_put(row, "of", t->name);
            }
            nout++;
        }
    }
    slots_put(s, "unpack_inputs", tuple(mem, &inputs, nin));
    slots_put(s, "unpack_outputs", tuple(mem, &outputs, nout));
    slots_put(s, "output_tuple", nout == 1 ? S("(output,)") : S("output"));
    slots_put(s, "gradient_arguments", kept(mem, &gradients));
    buf_release(&inputs);
    buf_release(&outputs);
    buf_release(&gradients);
}

static bool put_gradients(const struct export_package *p, struct torch_operator *forward,
                          struct err *err) {
    const struct task *f = p->kernels[0].task, *b = p->backward[0].task;
    struct slots *s = &forward->slots;
    for (size_t i = 0; i < f->ntensors; i++)
        if (f->tensors[i].role == TENSOR_INOUT)
            return err_set(err, ERR_INPUT,
                           "%.*s is written in place: an operation with gradients cannot do that",
                           STR_ARG(f->tensors[i].name));
    if (slots_has_rows(s, "given"))
        return err_set(err, ERR_INPUT,
                       "an operation with gradients takes its sizes from the shapes "
                       "of its tensors, which do not state all of them");
    put_forward_names(f, b, s, p->mem);
    return put_backward_inputs(f, b, s, p->mem, err) && put_backward_outputs(f, b, s, p->mem, err);
}

/* ---- files ---- */

const char *torch_inside(const struct export_package *p, const char *name, const char *ending) {
    return arena_printf(p->mem, "%s%.*s/%s%s", p->hub ? "torch-ext/" : "", STR_ARG(p->name), name,
                        ending)
        .p;
}

bool torch_operator_write(const struct torch_operator *o, struct err *err) {
    const struct export_package *p = o->p;
    bool ok = true;
    for (size_t i = 0; ok && i < o->n; i++) {
        const char *name = arena_printf(p->mem, "%s_%zu", o->code, i).p;
        ok = package_file(p, torch_inside(p, name, ".cubin"), o->kernels[i].cubin, err) &&
             package_file(p, torch_inside(p, name, ".cu"), o->kernels[i].unit, err);
    }
    return ok &&
           package_part(p, torch_inside(p, o->plan, ".py"), "export/torch/plan.py", &o->plans,
                        err) &&
           package_part(p, torch_inside(p, o->module, ".py"), "export/torch/operator.py", &o->slots,
                        err);
}

/* For kernel-builder; the folder torch-ext is made here. */
static bool put_hub(const struct export_package *p, struct slots *s, struct err *err) {
    char *name = arena_cstr(p->mem, p->name);
    for (char *c = name; *c; c++)
        *c = *c == '_' ? '-' : *c;
    slots_put(s, "hub_name", str_view(name));
    return dir_make(arena_printf(p->mem, "%s/torch-ext", p->folder).p, err) &&
           package_part(p, "build.toml", "export/torch/hub/build.toml", s, err) &&
           package_part(p, "flake.nix", "export/torch/hub/flake.nix", s, err) &&
           package_part(p, "CARD.md", "export/torch/hub/CARD.md", s, err);
}

static bool put_files(const struct export_package *p, struct torch_operator *forward,
                      const struct torch_operator *backward, struct err *err) {
    struct slots *s = &forward->slots;
    return (!p->hub || put_hub(p, s, err)) &&
           dir_make(arena_printf(p->mem, "%s/%s", p->folder, torch_inside(p, "", "")).p, err) &&
           dir_make(arena_printf(p->mem, "%s/tests", p->folder).p, err) &&
           torch_operator_write(forward, err) &&
           (!p->nbackward || torch_operator_write(backward, err)) &&
           package_part(p, torch_inside(p, "_runtime", ".py"), "export/torch/runtime.py", s, err) &&
           package_part(p, torch_inside(p, "__init__", ".py"), "export/torch/init.py", s, err) &&
           (p->hub || package_part(p, "pyproject.toml", "export/torch/pyproject.toml", s, err)) &&
           package_part(p, "tests/test_op.py", "export/torch/test_op.py", s, err) &&
           package_part(p, "tests/time_op.py", "export/torch/time_op.py", s, err);
}

bool export_torch(const struct export_package *p, struct err *err) {
    struct torch_operator forward = {.p = p,
                                     .name = p->name,
                                     .task = p->kernels[0].task,
                                     .inst = p->kernels[0].inst,
                                     .kernels = p->kernels,
                                     .n = p->n,
                                     .plan = "_plan",
                                     .module = "_operator",
                                     .code = "kernel"};
    struct torch_operator backward = {.p = p,
                                      .name =
                                          arena_printf(p->mem, "%.*s_backward", STR_ARG(p->name)),
                                      .task = p->nbackward ? p->backward[0].task : NULL,
                                      .inst = p->nbackward ? p->backward[0].inst : NULL,
                                      .kernels = p->backward,
                                      .n = p->nbackward,
                                      .plan = "_backward_plan",
                                      .module = "_backward",
                                      .code = "backward"};
    if (!torch_operator_make(&forward, err) ||
        (p->nbackward &&
         (!torch_operator_make(&backward, err) || !put_gradients(p, &forward, err))))
        return false;
    return package_begin(p, err) && (put_files(p, &forward, &backward, err) || package_undo(p));
}
