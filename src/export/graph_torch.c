/* A package for PyTorch of a module of several tasks: each task as an operator of its own
 * (export_torch.c), and one function that calls them in their order (assets/export/torch/graph.py).
 * Here its body is written, a line for each call, in which whatever nobody reads any more is let
 * go. */
#include "base/file.h"
#include "export/export_private.h"
#include "export/graph.h"
#include <inttypes.h>

#define TEXT_MOST (64u << 20)

struct writer {
    const struct export_package *p;
    const struct export_graph *g;
    struct arena *mem;
    struct buf body;
    struct err *err;
};

static str id_of(const struct writer *w, str flow) {
    return graph_flow(w->g, flow)->id;
}

/* ---- sizes ---- */

/* Where a size of a task can be read off: a tensor that it is given, which is no state of zeros. */
static str dim_source(const struct writer *w, const struct order_use *u, str dim) {
    const struct task *t = graph_part(w->g, u)->task;
    for (size_t i = 0; i < u->nin; i++) {
        const struct order_link *l = &u->in[i];
        const struct tensor *x = graph_tensor(w->g, u, l->tensor);
        for (size_t k = 0; k < x->rank && l->flow.n; k++) {
            size_t axis = l->each ? u->axis : l->axis, slice = l->each || l->picked;
            size_t at = k + (slice && k >= axis);
            if (x->extent[k]->kind == EXPR_DIM && str_eq(t->dims[x->extent[k]->ref].name, dim))
                return arena_printf(w->mem, "%.*s.shape[%zu]", STR_ARG(id_of(w, l->flow)), at);
        }
    }
    return S("");
}

/* … or of another input or parameter of the module, or the module's own value. */
static str dim_anywhere(const struct writer *w, const struct order_use *u, str dim) {
    str from = dim_source(w, u, dim);
    for (size_t i = 0; i < w->g->nflows && !from.n; i++) {
        const struct export_flow *f = &w->g->flows[i];
        for (size_t k = 0; f->leaf && k < f->rank && !from.n; k++)
            if (str_eq(f->leaf->extent[k], dim) && f->used >= (size_t)(u - w->g->order.uses))
                from = arena_printf(w->mem, "%.*s.shape[%zu]", STR_ARG(f->id), k);
    }
    const struct order_dim *d = order_dim(&w->g->order, dim);
    return from.n ? from : arena_printf(w->mem, "%" PRId64, d ? d->value : 1);
}

/* An expression over a task's dimensions, with what each dimension is of. */
static str size_of(const struct writer *w, const struct order_use *u, const struct expr *e) {
    const struct task *t = graph_part(w->g, u)->task;
    str text = dims_text(e, t, EXPORT_PYTHON, w->mem);
    for (size_t i = 0; i < t->ndims; i++) {
        str name = arena_printf(w->mem, "dim_%.*s", STR_ARG(t->dims[i].name));
        str from = t->dims[i].derived ? size_of(w, u, t->dims[i].value)
                                      : dim_anywhere(w, u, t->dims[i].name);
        struct buf b;
        buf_init(&b, TEXT_MOST);
        while (text.n) {
            size_t at = str_find(text, name), end = at + name.n;
            char next = end < text.n ? text.p[end] : ' ';
            bool whole = !((next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') ||
                           (next >= '0' && next <= '9') || next == '_');
            buf_puts(&b, str_cut(text, 0, at));
            if (at < text.n)
                buf_puts(&b, whole ? from : name);
            text = str_from(text, end);
        }
        text = kept(w->mem, &b);
        buf_release(&b);
    }
    return text;
}

static str zeros_text(const struct writer *w, const struct order_use *u, const struct tensor *t) {
    struct buf b;
    buf_init(&b, TEXT_MOST);
    for (size_t i = 0; i < t->rank; i++)
        put_item(&b, size_of(w, u, t->extent[i]));
    str device = S("cpu");
    for (size_t i = 0; i < u->nin; i++)
        if (u->in[i].flow.n) {
            device = id_of(w, u->in[i].flow);
            break;
        }
    str s = arena_printf(w->mem, "torch.zeros((%.*s%s), dtype=%s, device=%.*s.device)",
                         STR_ARG(buf_str(&b)), t->rank == 1 ? "," : "", torch_dtype(t->dtype),
                         STR_ARG(device));
    buf_release(&b);
    return s;
}

/* ---- a call ---- */

/* What a tensor of the task is, in the call. */
static str argument(const struct writer *w, const struct order_link *l) {
    if (l->each)
        return arena_printf(w->mem, "_each_%.*s[_step]", STR_ARG(l->tensor));
    if (l->state)
        return arena_printf(w->mem, "_state_%.*s", STR_ARG(l->tensor));
    if (l->picked)
        return arena_printf(w->mem, "_runtime.one_slice(%.*s, %zu, %" PRId64 ")",
                            STR_ARG(id_of(w, l->flow)), l->axis, l->index);
    return id_of(w, l->flow);
}

/* Whether a tensor that is read states a dimension: it is then no argument of the operator. */
static bool is_stated(const struct task *t, size_t dim) {
    for (size_t i = 0; i < t->ntensors; i++)
        for (size_t k = 0; k < t->tensors[i].rank && tensor_is_input(&t->tensors[i]); k++)
            if (t->tensors[i].extent[k]->kind == EXPR_DIM && t->tensors[i].extent[k]->ref == dim)
                return true;
    return false;
}

/* "_part_lstm.mod_lstm(…)", in the order of the task's tensors. */
static str call_text(const struct writer *w, const struct order_use *u) {
    const struct export_part *part = graph_part(w->g, u);
    const struct task *t = part->task;
    struct buf b;
    buf_init(&b, TEXT_MOST);
    for (size_t i = 0; i < t->ntensors; i++)
        if (tensor_is_input(&t->tensors[i]))
            put_item(&b, argument(w, graph_link(u->in, u->nin, t->tensors[i].name)));
    for (size_t i = 0; i < t->ndims; i++)
        if (!t->dims[i].derived && !is_stated(t, i))
            put_item(&b, dim_anywhere(w, u, t->dims[i].name));
    str s = arena_printf(w->mem, "_part_%.*s.%.*s_%.*s(%.*s)", STR_ARG(part->name),
                         STR_ARG(w->p->name), STR_ARG(part->name), STR_ARG(buf_str(&b)));
    buf_release(&b);
    return s;
}

/* What the call's results are put into: "a, b". */
static str targets(const struct writer *w, const struct order_use *u) {
    const struct task *t = graph_part(w->g, u)->task;
    struct buf b;
    buf_init(&b, TEXT_MOST);
    for (size_t i = 0; i < t->ntensors; i++) {
        const struct tensor *x = &t->tensors[i];
        if (x->role != TENSOR_OUT)
            continue;
        const struct order_link *l = graph_link(u->out, u->nout, x->name);
        put_item(&b, u->repeats || !l->flow.n ? arena_printf(w->mem, "_made_%.*s", STR_ARG(x->name))
                                              : id_of(w, l->flow));
    }
    str s = kept(w->mem, &b);
    buf_release(&b);
    return s;
}

static void put_loop(struct writer *w, const struct order_use *u) {
    struct buf *b = &w->body;
    str counted = {0};
    for (size_t i = 0; i < u->nin; i++) {
        const struct order_link *l = &u->in[i];
        if (l->each) {
            buf_printf(b, "_each_%.*s = _runtime.slices(%.*s, %zu)\n", STR_ARG(l->tensor),
                       STR_ARG(id_of(w, l->flow)), u->axis);
            counted = counted.n ? counted : l->tensor;
        }
        if (l->state) {
            const struct tensor *t = graph_tensor(w->g, u, l->tensor);
            struct order_link first = *l;
            first.state = false;
            str value = l->flow.n ? argument(w, &first) : zeros_text(w, u, t);
            buf_printf(b, "_state_%.*s = %.*s\n", STR_ARG(l->tensor), STR_ARG(value));
        }
    }
    for (size_t i = 0; i < u->nout; i++)
        if (u->out[i].each)
            buf_printf(b, "_all_%.*s = []\n", STR_ARG(u->out[i].tensor));
    buf_printf(b, "for _step in %srange(len(_each_%.*s))%s:\n", u->reverse ? "reversed(" : "",
               STR_ARG(counted), u->reverse ? ")" : "");
    buf_printf(b, "    %.*s = %.*s\n", STR_ARG(targets(w, u)), STR_ARG(call_text(w, u)));
    for (size_t i = 0; i < u->nout; i++)
        if (u->out[i].each)
            buf_printf(b, "    _all_%.*s.append(_made_%.*s)\n", STR_ARG(u->out[i].tensor),
                       STR_ARG(u->out[i].tensor));
    for (size_t i = 0; i < u->nin; i++)
        if (u->in[i].state)
            buf_printf(b, "    _state_%.*s = _made_%.*s\n", STR_ARG(u->in[i].tensor),
                       STR_ARG(u->in[i].next));
}

/* What the loop's results are, and an end to what it needed itself. */
static void put_loop_results(struct writer *w, const struct order_use *u) {
    struct buf *b = &w->body, gone;
    buf_init(&gone, TEXT_MOST);
    for (size_t i = 0; i < u->nout; i++) {
        const struct order_link *l = &u->out[i];
        if (l->each) {
            buf_printf(b, "%.*s = torch.stack(_all_%.*s%s, %zu)\n", STR_ARG(id_of(w, l->flow)),
                       STR_ARG(l->tensor), u->reverse ? "[::-1]" : "", u->axis);
            put_item(&gone, arena_printf(w->mem, "_all_%.*s", STR_ARG(l->tensor)));
        }
        if (l->last.n)
            buf_printf(b, "%.*s = _made_%.*s\n", STR_ARG(id_of(w, l->last)), STR_ARG(l->tensor));
        put_item(&gone, arena_printf(w->mem, "_made_%.*s", STR_ARG(l->tensor)));
    }
    for (size_t i = 0; i < u->nin; i++)
        if (u->in[i].each || u->in[i].state)
            put_item(&gone, arena_printf(w->mem, "_%s_%.*s", u->in[i].each ? "each" : "state",
                                         STR_ARG(u->in[i].tensor)));
    buf_printf(b, "del %.*s\n", STR_ARG(buf_str(&gone)));
    buf_release(&gone);
}

static void put_use(struct writer *w, size_t number) {
    const struct order_use *u = &w->g->order.uses[number];
    struct buf gone;
    if (u->module.n)
        buf_printf(&w->body, "# %.*s\n", STR_ARG(comment_text(u->module, w->mem)));
    if (u->repeats) {
        put_loop(w, u);
        put_loop_results(w, u);
    } else {
        buf_printf(&w->body, "%.*s = %.*s\n", STR_ARG(targets(w, u)), STR_ARG(call_text(w, u)));
    }
    buf_init(&gone, TEXT_MOST);
    for (size_t i = 0; i < w->g->nflows; i++) {
        const struct export_flow *f = &w->g->flows[i];
        if (!f->leaf && !f->is_output && f->used == number)
            put_item(&gone, f->id);
    }
    if (gone.n)
        buf_printf(&w->body, "del %.*s\n", STR_ARG(buf_str(&gone)));
    buf_release(&gone);
}

/* A result that is an input is a copy of it, as an operator's result would be. */
static str results_text(const struct writer *w) {
    const struct order *o = &w->g->order;
    struct buf b;
    buf_init(&b, TEXT_MOST);
    for (size_t i = 0; i < o->noutputs; i++) {
        const struct export_flow *f = graph_flow(w->g, o->outputs[i]);
        put_item(&b, f->leaf ? arena_printf(w->mem, "%.*s.clone()", STR_ARG(f->id)) : f->id);
    }
    str s = arena_printf(w->mem, "return %.*s", STR_ARG(buf_str(&b)));
    buf_release(&b);
    return s;
}

/* ---- the files ---- */

static str shape_text(const struct writer *w, const struct order_leaf *l) {
    struct buf b;
    buf_init(&b, TEXT_MOST);
    for (size_t i = 0; i < l->rank; i++)
        put_item(&b, size_text(l->extent[i], EXPORT_PYTHON, w->mem));
    if (l->rank == 1)
        buf_putc(&b, ',');
    str s = kept(w->mem, &b);
    buf_release(&b);
    return s;
}

static void put_leaves(struct writer *w, struct slots *s) {
    struct buf arguments, inputs;
    buf_init(&arguments, TEXT_MOST);
    buf_init(&inputs, TEXT_MOST);
    slots_list(s, "inputs");
    slots_list(s, "parameters");
    slots_list(s, "buffers");
    for (size_t i = 0; i < w->g->order.nleaves; i++) {
        const struct export_flow *f = &w->g->flows[i];
        struct slots *row = slots_row(s, f->leaf->parameter ? "parameters" : "inputs");
        slots_put(row, "path", f->name);
        slots_put(row, "dtype", str_view(torch_dtype(f->dtype)));
        if (f->leaf->buffer)
            slots_put(slots_row(s, "buffers"), "path", f->name);
        slots_put(row, "shape", shape_text(w, f->leaf));
        slots_put(row, "make",
                  arena_printf(w->mem, "torch.%s((%.*s))",
                               dtype_info(f->dtype)->kind == 'f' ? "rand" : "zeros",
                               STR_ARG(shape_text(w, f->leaf))));
        put_item(&arguments, f->id);
        if (!f->leaf->parameter)
            put_item(&inputs, f->id);
    }
    slots_put(s, "arguments", kept(w->mem, &arguments));
    slots_put(s, "input_arguments", kept(w->mem, &inputs));
    buf_release(&arguments);
    buf_release(&inputs);
}

static bool put_dims(const struct writer *w, struct slots *s) {
    slots_list(s, "dims");
    slots_list(s, "derived");
    for (size_t i = 0; i < w->g->order.ndims; i++) {
        const struct order_dim *d = &w->g->order.dims[i];
        struct slots *row = slots_row(s, d->is.n ? "derived" : "dims");
        str value = d->is.n ? size_text(d->is, EXPORT_PYTHON, w->mem)
                            : arena_printf(w->mem, "%" PRId64, d->value);
        if (!value.n)
            return err_set(w->err, ERR_INPUT,
                           "dimension %.*s is no expression that can be exported",
                           STR_ARG(d->name));
        slots_put(row, "dim", d->name);
        slots_put(row, "value", value);
    }
    return true;
}

static str left_out(const struct writer *w) {
    struct buf b;
    buf_init(&b, TEXT_MOST);
    for (size_t i = 0; i < w->g->order.nleft_out; i++)
        put_item(&b, comment_text(w->g->order.left_out[i], w->mem));
    str s = kept(w->mem, &b);
    buf_release(&b);
    return s;
}

static bool make_parts(const struct writer *w, struct torch_operator *ops, struct slots *s) {
    slots_list(s, "parts");
    for (size_t i = 0; i < w->g->order.ntasks; i++) {
        const struct export_part *part = &w->g->parts[i];
        struct slots *row = slots_row(s, "parts");
        const char *name = arena_cstr(w->mem, part->name);
        if (!part->n && !part->task->torch.n)
            return err_set(
                w->err, ERR_NO,
                "its task %s has neither an accepted kernel nor a torch line to fall back "
                "to: search longer for it, or import the module again with this version, "
                "which writes the line",
                name);
        ops[i] = (struct torch_operator){
            .p = w->p,
            .name = arena_printf(w->mem, "%.*s_%s", STR_ARG(w->p->name), name),
            .task = part->task,
            .inst = part->inst,
            .kernels = part->kernels,
            .n = part->n,
            .plan = arena_printf(w->mem, "_plan_%s", name).p,
            .module = arena_printf(w->mem, "_part_%s", name).p,
            .code = name};
        if (!torch_operator_make(&ops[i], w->err))
            return false;
        slots_put(row, "part", part->name);
        slots_number(row, "nkernels", (int64_t)part->n);
        slots_number(row, "uses", (int64_t)w->g->order.tasks[i].uses);
    }
    return true;
}

static bool put_files(const struct writer *w, const struct torch_operator *ops,
                      const struct slots *s) {
    const struct export_package *p = w->p;
    struct err *err = w->err;
    bool ok = dir_make(arena_printf(p->mem, "%s/%s", p->folder, torch_inside(p, "", "")).p, err) &&
              dir_make(arena_printf(p->mem, "%s/tests", p->folder).p, err);
    for (size_t i = 0; i < w->g->order.ntasks && ok; i++)
        ok = torch_operator_write(&ops[i], err);
    return ok &&
           package_part(p, torch_inside(p, "_runtime", ".py"), "export/torch/runtime.py", s, err) &&
           package_part(p, torch_inside(p, "_graph", ".py"), "export/torch/graph.py", s, err) &&
           package_part(p, torch_inside(p, "__init__", ".py"), "export/torch/graph_init.py", s,
                        err) &&
           package_part(p, "pyproject.toml", "export/torch/pyproject.toml", s, err) &&
           package_part(p, "tests/test_module.py", "export/torch/graph_test.py", s, err);
}

bool export_graph_torch(const struct export_package *p, struct err *err) {
    struct writer w = {.p = p, .g = p->graph, .mem = p->mem, .err = err};
    struct torch_operator *ops = arena_array(p->mem, struct torch_operator, w.g->order.ntasks + 1);
    struct slots s;
    slots_init(&s, p->mem);
    if (!make_parts(&w, ops, &s) || !put_dims(&w, &s))
        return false;
    put_leaves(&w, &s);
    buf_init(&w.body, TEXT_MOST);
    for (size_t i = 0; i < w.g->order.nuses; i++)
        put_use(&w, i);
    buf_puts(&w.body, results_text(&w));
    slots_put(&s, "body", kept(p->mem, &w.body));
    buf_release(&w.body);
    slots_put(&s, "name", p->name);
    slots_put(&s, "title", comment_text(w.g->order.title, p->mem));
    slots_put(&s, "origin", package_origin(p, ""));
    slots_put(&s, "left_out", left_out(&w));
    slots_put(&s, "version", S("1.0.0"));
    return package_begin(p, err) && (put_files(&w, ops, &s) || package_undo(p));
}
