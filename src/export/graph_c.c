/* A package for C of a module of several tasks: each task as an operation of its own
 * (assets/export/c/part.c, operation.c), and after them their order (graph.c): what flows between
 * uses lies in the workspace, in slots that serve others once nobody reads them any more. */
#include "export/export_private.h"
#include "export/graph.h"
#include <inttypes.h>

#define TEXT_MOST (256u << 20)

struct writer {
    const struct export_package *p;
    const struct export_graph *g;
    struct arena *mem;
    struct err *err;
    struct c_operation *parts; /* as order.tasks */
    size_t *slot;              /* of each flow; NO_SLOT: it lies where the caller says */
    size_t nslots;
    bool prepares, copies;
};
#define NO_SLOT SIZE_MAX

/* ---- sizes ---- */

/* The module's dimensions as constants. */
static bool sizes_text(const struct writer *w, str *out) {
    const struct order *o = &w->g->order;
    struct buf b;
    bool ok = true;
    buf_init(&b, TEXT_MOST);
    for (int derived = 0; derived < 2; derived++)
        for (size_t i = 0; i < o->ndims && ok; i++) {
            const struct order_dim *d = &o->dims[i];
            if ((d->is.n > 0) != (derived == 1))
                continue;
            str value =
                d->is.n ? size_text(d->is, EXPORT_C, w->mem)
                        : arena_printf(w->mem, "dims->%.*s", STR_ARG(member_name(d->name, w->mem)));
            ok = value.n > 0;
            buf_printf(&b, "const int64_t dim_%.*s = %.*s;\n", STR_ARG(d->name), STR_ARG(value));
            if (!ok)
                err_set(w->err, ERR_INPUT, "dimension %.*s is no expression that can be exported",
                        STR_ARG(d->name));
        }
    buf_puts(&b, S("(void)dims, (void)bad"));
    for (size_t i = 0; i < o->ndims; i++)
        buf_printf(&b, ", (void)dim_%.*s", STR_ARG(o->dims[i].name));
    buf_puts(&b, S(";"));
    *out = kept(w->mem, &b);
    buf_release(&b);
    return ok;
}

static str over_text(const struct writer *w, const struct order_use *u) {
    return size_text(u->over, EXPORT_C, w->mem);
}

static str extent_text(const struct writer *w, const struct export_flow *f, size_t i) {
    if (f->leaf)
        return size_text(f->leaf->extent[i], EXPORT_C, w->mem);
    const struct order_use *u = &w->g->order.uses[f->made];
    if (f->is_sequence && i == u->axis)
        return over_text(w, u);
    size_t at = f->is_sequence && i > u->axis ? i - 1 : i;
    return dims_text(f->tensor->extent[at], graph_part(w->g, u)->task, EXPORT_C, w->mem);
}

static str bytes_of_type(const struct writer *w, enum dtype t) {
    return arena_printf(w->mem, "%zu", dtype_info(t)->bytes);
}

/* Bytes of a flow; empty: its sizes cannot be exported. */
static str flow_bytes(const struct writer *w, const struct export_flow *f) {
    str factor[ORDER_MAX_RANK + 2];
    for (size_t i = 0; i < f->rank; i++) {
        factor[i] = extent_text(w, f, i);
        if (!factor[i].n)
            return S("");
    }
    factor[f->rank] = bytes_of_type(w, f->dtype);
    return product_text(factor, f->rank + 1, EXPORT_C, w->mem);
}

/* Elements of a task's tensor along its dimensions lo to hi, times `unit`. */
static str extents_text(const struct writer *w, const struct order_use *u, const struct tensor *t,
                        size_t lo, size_t hi, str unit) {
    str factor[TASK_MAX_RANK + 1];
    size_t n = 0;
    for (size_t i = lo; i < hi && i < t->rank; i++)
        factor[n++] = dims_text(t->extent[i], graph_part(w->g, u)->task, EXPORT_C, w->mem);
    if (unit.n)
        factor[n++] = unit;
    return product_text(factor, n, EXPORT_C, w->mem);
}

static str tensor_bytes(const struct writer *w, const struct order_use *u, const struct tensor *t) {
    return extents_text(w, u, t, 0, t->rank, bytes_of_type(w, t->dtype));
}

/* "outer, extent, inner" of slices along an axis. */
static str slice_text(const struct writer *w, const struct order_use *u, const struct tensor *t,
                      size_t axis, str extent) {
    str outer = extents_text(w, u, t, 0, axis, S("")),
        inner = extents_text(w, u, t, axis, t->rank, bytes_of_type(w, t->dtype));
    return arena_printf(w->mem, "(size_t)(%.*s), (size_t)(%.*s), (size_t)(%.*s)", STR_ARG(outer),
                        STR_ARG(extent), STR_ARG(inner));
}

/* ---- slots of the workspace ---- */

/* At the module's own sizes; what a slot is chosen by. */
static double own_bytes(const struct writer *w, const struct export_flow *f) {
    const struct order_use *u = &w->g->order.uses[f->made];
    const struct export_part *part = graph_part(w->g, u);
    const struct bound_tensor *b = &part->inst->tensors[f->tensor - part->task->tensors];
    const struct order_dim *d = order_dim(&w->g->order, u->over);
    int64_t n = 1;
    if (f->is_sequence && !str_to_i64(u->over, &n))
        n = d ? d->value : 1;
    return (double)b->bytes * (double)n;
}

/* Each result goes where nothing lies that is still read, preferably something as large. */
static void choose_slots(struct writer *w) {
    size_t *free_after = arena_array(w->mem, size_t, w->g->nflows + 1);
    double *bytes = arena_array(w->mem, double, w->g->nflows + 1);
    w->slot = arena_array(w->mem, size_t, w->g->nflows + 1);
    for (size_t i = 0; i < w->g->nflows; i++) {
        const struct export_flow *f = &w->g->flows[i];
        size_t best = NO_SLOT;
        w->slot[i] = NO_SLOT;
        if (f->leaf || f->is_output)
            continue;
        double own = own_bytes(w, f), off = 0;
        for (size_t s = 0; s < w->nslots; s++) {
            double by = bytes[s] > own ? bytes[s] - own : own - bytes[s];
            if (free_after[s] < f->made && (best == NO_SLOT || by < off)) {
                best = s;
                off = by;
            }
        }
        if (best == NO_SLOT)
            best = w->nslots++;
        bytes[best] = bytes[best] > own ? bytes[best] : own;
        free_after[best] = f->used;
        w->slot[i] = best;
    }
}

static int64_t flow_number(const struct writer *w, str name) {
    return graph_flow(w->g, name) - w->g->flows;
}

/* ---- a use ---- */

struct use_writer {
    struct writer *w;
    const struct order_use *u;
    const struct export_part *part;
    struct slots *row;
    bool each_any;
};

static void put_call(struct use_writer *x, const char *list, str call) {
    slots_put(slots_row(x->row, list), "call", call);
}

static str put_stage(struct use_writer *x, str tensor, const char *what, str bytes) {
    struct slots *row = slots_row(x->row, "stages");
    str name = arena_printf(x->w->mem, "%.*s_%s", STR_ARG(tensor), what);
    slots_put(row, "stage", name);
    slots_put(row, "bytes", bytes);
    return name;
}

static str flow_text(const struct use_writer *x, str flow) {
    return arena_printf(x->w->mem, "flows->at[%" PRId64 "]", flow_number(x->w, flow));
}

/* A slice, and what reads it. */
static void put_get(struct use_writer *x, const struct order_link *l, const struct tensor *t,
                    const char *list, str into, str index) {
    struct writer *w = x->w;
    const struct export_flow *f = graph_flow(w->g, l->flow);
    size_t axis = l->each ? x->u->axis : l->axis;
    str name = member_name(t->name, w->mem);
    str stage = put_stage(x, name, "slice", tensor_bytes(w, x->u, t));
    str how = slice_text(w, x->u, t, axis, extent_text(w, f, axis)), from = flow_text(x, l->flow);
    w->copies = true;
    put_call(x, list,
             arena_printf(w->mem, "get_slice(&%.*s, %.*s, %.*s, %.*s, %.*s, stream)", STR_ARG(into),
                          STR_ARG(from), STR_ARG(stage), STR_ARG(how), STR_ARG(index)));
}

static str index_text(const struct use_writer *x, const struct order_link *l) {
    return arena_printf(x->w->mem, "%" PRId64, l->index);
}

/* What a state is before the first step: what is given, a slice of such, or zeros. */
static void put_state(struct use_writer *x, const struct order_link *l, const struct tensor *t) {
    struct writer *w = x->w;
    str name = member_name(t->name, w->mem), first;
    struct slots *row;
    if (!l->flow.n) {
        str bytes = tensor_bytes(w, x->u, t);
        first = put_stage(x, name, "zeros", bytes);
        put_call(x, "before",
                 arena_printf(w->mem, "put_zeros(%.*s, (size_t)(%.*s), stream)", STR_ARG(first),
                              STR_ARG(bytes)));
        w->copies = true;
    } else if (l->picked) {
        first = arena_printf(w->mem, "tensors.%.*s", STR_ARG(name));
        put_get(x, l, t, "before", first, index_text(x, l));
    } else {
        first = flow_text(x, l->flow);
    }
    row = slots_row(x->row, "states");
    slots_put(row, "tensor", name);
    slots_put(row, "first", first);
    slots_put(row, "next", member_name(l->next, w->mem));
}

static void put_whole(struct use_writer *x, str tensor, str flow) {
    struct slots *row = slots_row(x->row, "whole");
    slots_put(row, "tensor", member_name(tensor, x->w->mem));
    slots_number(row, "flow", flow_number(x->w, flow));
}

static void put_input(struct use_writer *x, const struct order_link *l) {
    struct writer *w = x->w;
    const struct tensor *t = graph_tensor(w->g, x->u, l->tensor);
    str into = arena_printf(w->mem, "tensors.%.*s", STR_ARG(member_name(t->name, w->mem)));
    if (l->state)
        put_state(x, l, t);
    else if (l->each)
        put_get(x, l, t, "gets", into, S("at"));
    else if (l->picked)
        put_get(x, l, t, "before", into, index_text(x, l));
    else
        put_whole(x, t->name, l->flow);
    x->each_any |= l->each;
}

/* A result of a step is read by the next one, or kept: it lies in one of two places by turns. */
static void put_step_result(struct use_writer *x, const struct order_link *l,
                            const struct tensor *t) {
    struct writer *w = x->w;
    str name = member_name(t->name, w->mem), bytes = tensor_bytes(w, x->u, t);
    put_stage(x, name, "a", bytes);
    put_stage(x, name, "b", bytes);
    slots_put(slots_row(x->row, "pairs"), "tensor", name);
    w->copies = true;
    if (l->flow.n) {
        str how = slice_text(w, x->u, t, x->u->axis, over_text(w, x->u)),
            to = flow_text(x, l->flow);
        put_call(x, "puts",
                 arena_printf(w->mem, "put_slice(%.*s, tensors.%.*s, %.*s, at, stream)",
                              STR_ARG(to), STR_ARG(name), STR_ARG(how)));
        x->each_any = true;
    }
    if (l->last.n)
        put_call(x, "lasts",
                 arena_printf(w->mem, "put_whole(%.*s, tensors.%.*s, (size_t)(%.*s), stream)",
                              STR_ARG(flow_text(x, l->last)), STR_ARG(name), STR_ARG(bytes)));
}

static void put_result(struct use_writer *x, const struct order_link *l) {
    struct writer *w = x->w;
    const struct tensor *t = graph_tensor(w->g, x->u, l->tensor);
    if (x->u->repeats) {
        put_step_result(x, l, t);
    } else if (l->flow.n) {
        put_whole(x, t->name, l->flow);
    } else {
        str name = member_name(t->name, w->mem);
        str stage = put_stage(x, name, "unread", tensor_bytes(w, x->u, t));
        put_call(x, "before",
                 arena_printf(w->mem, "(tensors.%.*s = %.*s, 0)", STR_ARG(name), STR_ARG(stage)));
    }
}

/* The sizes of the task, as the module has them. */
static str own_dims(const struct use_writer *x) {
    const struct task *t = x->part->task;
    struct buf b;
    buf_init(&b, 1 << 20);
    for (size_t i = 0; i < t->ndims; i++)
        if (!t->dims[i].derived)
            put_item(&b, arena_printf(x->w->mem, ".%.*s = dim_%.*s",
                                      STR_ARG(member_name(t->dims[i].name, x->w->mem)),
                                      STR_ARG(t->dims[i].name)));
    if (b.n == 0)
        put_item(&b, S("0"));
    str s = kept(x->w->mem, &b);
    buf_release(&b);
    return s;
}

static void put_use(struct writer *w, size_t number, struct slots *all) {
    static const char *const lists[] = {"stages", "whole", "before", "states",
                                        "pairs",  "gets",  "puts",   "lasts"};
    const struct order_use *u = &w->g->order.uses[number];
    const struct c_operation *o = &w->parts[u->task];
    struct use_writer x = {
        .w = w, .u = u, .part = graph_part(w->g, u), .row = slots_row(all, "uses")};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        slots_list(x.row, lists[i]);
    for (size_t i = 0; i < u->nin; i++)
        put_input(&x, &u->in[i]);
    for (size_t i = 0; i < u->nout; i++)
        put_result(&x, &u->out[i]);
    slots_number(x.row, "use", (int64_t)number);
    slots_put(x.row, "module", comment_text(u->module.n ? u->module : S("the module"), w->mem));
    slots_put(x.row, "part", x.part->name);
    slots_put(x.row, "op", o->name);
    slots_put(x.row, "own", own_dims(&x));
    slots_flag(x.row, "prepares", o->prepares);
    slots_flag(x.row, "repeats", u->repeats);
    slots_flag(x.row, "each_any", x.each_any);
    slots_put(x.row, "often",
              u->repeats ? arena_printf(w->mem, ", %.*s times", STR_ARG(u->over)) : S(""));
    slots_put(x.row, "steps", u->repeats ? over_text(w, u) : S("1"));
    slots_put(x.row, "at", u->reverse ? S("steps - 1 - step") : S("step"));
}

/* ---- what is given and what is returned ---- */

static void put_tensor(const struct writer *w, struct slots *header, str member, bool written,
                       const struct export_flow *f) {
    struct slots *row = slots_row(header, "tensors");
    struct buf b;
    buf_init(&b, 1 << 20);
    for (size_t i = 0; i < f->rank; i++) {
        const struct order_use *u = &w->g->order.uses[f->made];
        size_t at = f->is_sequence && i > u->axis ? i - 1 : i;
        put_item(&b, f->leaf ? f->leaf->extent[i]
                     : f->is_sequence && i == u->axis
                         ? u->over
                         : str_cut(graph_part(w->g, u)->task->text, f->tensor->extent[at]->at,
                                   f->tensor->extent[at]->len));
    }
    slots_put(row, "tensor", member);
    slots_put(row, "const", written ? S("") : S("const "));
    slots_put(row, "what",
              comment_text(arena_printf(w->mem, "%.*s: %s, [%.*s], %s", STR_ARG(f->name),
                                        dtype_info(f->dtype)->name, STR_ARG(buf_str(&b)),
                                        written ? "written" : "read"),
                           w->mem));
    buf_release(&b);
}

static void put_flow(struct slots *all, const char *list, int64_t flow, str tensor) {
    struct slots *row = slots_row(all, list);
    slots_number(row, "flow", flow);
    slots_put(row, "tensor", tensor);
}

static bool member_taken(const struct writer *w, str name) {
    for (size_t i = 0; i < w->g->nflows; i++)
        if (str_eq(w->g->flows[i].id, name))
            return true;
    return false;
}

static bool put_sized(const struct writer *w, struct slots *all) {
    for (size_t i = 0; i < w->g->nflows; i++) {
        const struct export_flow *f = &w->g->flows[i];
        str bytes = flow_bytes(w, f);
        if (!bytes.n)
            return err_set(w->err, ERR_INPUT, "%.*s has a size that cannot be exported",
                           STR_ARG(f->name));
        if (w->slot[i] == NO_SLOT)
            continue;
        struct slots *row = slots_row(all, "sized");
        slots_number(row, "flow", (int64_t)i);
        slots_number(row, "slot", (int64_t)w->slot[i]);
        slots_put(row, "bytes", bytes);
        slots_put(row, "what", comment_text(f->name, w->mem));
    }
    for (size_t i = 0; i < w->nslots; i++)
        slots_number(slots_row(all, "slots"), "slot", (int64_t)i);
    return true;
}

/* A result that is an input, or that is returned twice, is copied in the end. */
static void put_outputs(struct writer *w, struct slots *all, struct slots *header) {
    const struct order *o = &w->g->order;
    for (size_t i = 0; i < o->noutputs; i++) {
        const struct export_flow *f = graph_flow(w->g, o->outputs[i]);
        bool again = f->leaf != NULL;
        for (size_t k = 0; k < i; k++)
            again |= str_eq(o->outputs[k], f->name);
        str member = again ? arena_printf(w->mem, "output_%zu", i) : f->id;
        while (again && member_taken(w, member))
            member = arena_printf(w->mem, "%.*s_", STR_ARG(member));
        put_tensor(w, header, member, true, f);
        if (!again) {
            put_flow(all, "given", f - w->g->flows, member);
            continue;
        }
        struct slots *row = slots_row(all, "repeated");
        slots_put(row, "tensor", member);
        slots_number(row, "flow", f - w->g->flows);
        slots_put(row, "bytes", flow_bytes(w, f));
        w->copies = true;
    }
}

static bool put_memory(struct writer *w, struct slots *all, struct slots *header) {
    static const char *const lists[] = {"sized", "slots", "given", "parameters", "repeated"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        slots_list(all, lists[i]);
    slots_list(header, "tensors");
    choose_slots(w);
    for (size_t i = 0; i < w->g->nflows; i++) {
        const struct export_flow *f = &w->g->flows[i];
        if (!f->leaf)
            continue;
        put_tensor(w, header, f->id, false, f);
        put_flow(all, "given", (int64_t)i, f->id);
        if (f->leaf->parameter)
            put_flow(all, "parameters", (int64_t)i, f->id);
    }
    put_outputs(w, all, header);
    slots_number(all, "nslots", (int64_t)w->nslots);
    slots_number(all, "nflows", (int64_t)w->g->nflows);
    return put_sized(w, all);
}

/* ---- parts ---- */

static void put_part_types(const struct writer *w, const struct export_part *part,
                           struct slots *s) {
    slots_list(s, "dims");
    slots_list(s, "tensors");
    for (size_t i = 0; i < part->task->ndims; i++)
        if (!part->task->dims[i].derived)
            slots_put(slots_row(s, "dims"), "dim", member_name(part->task->dims[i].name, w->mem));
    for (size_t i = 0; i < part->task->ntensors; i++) {
        const struct tensor *t = &part->task->tensors[i];
        if (!tensor_has_memory(t))
            continue;
        struct slots *row = slots_row(s, "tensors");
        slots_put(row, "tensor", member_name(t->name, w->mem));
        slots_put(row, "const", tensor_is_output(t) ? S("") : S("const "));
        slots_put(row, "what", str_view(dtype_info(t->dtype)->name));
    }
    slots_put(s, "part", part->name);
    slots_put(s, "what", comment_text(part->task->title, w->mem));
}

static bool make_parts(struct writer *w, struct slots *all, struct slots *header) {
    slots_list(all, "parts");
    slots_list(header, "parts");
    for (size_t i = 0; i < w->g->order.ntasks; i++) {
        const struct export_part *part = &w->g->parts[i];
        str name = arena_printf(w->mem, "%.*s_%.*s", STR_ARG(w->p->name), STR_ARG(part->name));
        w->parts[i] = (struct c_operation){.p = w->p,
                                           .name = name,
                                           .prefix = arena_printf(w->mem, "%.*s_", STR_ARG(name)),
                                           .linkage = S("PLAN_FUNCTION "),
                                           .kernels = part->kernels,
                                           .n = part->n};
        if (!c_operation_make(&w->parts[i], w->err))
            return false;
        w->prepares |= w->parts[i].prepares;
        struct slots *both[] = {slots_row(all, "parts"), slots_row(header, "parts")};
        for (int k = 0; k < 2; k++) {
            slots_put(both[k], "part", part->name);
            slots_put(both[k], "op", name);
        }
        slots_put(both[1], "what", comment_text(part->task->title, w->mem));
        slots_number(both[1], "nkernels", (int64_t)part->n);
        slots_number(both[1], "nfunctions", (int64_t)w->parts[i].functions);
    }
    return true;
}

static bool render_parts(const struct writer *w, struct buf *to) {
    bool ok = true;
    for (size_t i = 0; i < w->g->order.ntasks && ok; i++) {
        struct slots types;
        slots_init(&types, w->mem);
        put_part_types(w, &w->g->parts[i], &types);
        slots_put(&types, "name", w->parts[i].name);
        ok = package_render(w->p, "export/c/part.c", &types, to, w->err) &&
             package_render(w->p, "export/c/operation.c", &w->parts[i].slots, to, w->err);
    }
    return ok;
}

/* ---- the whole ---- */

static void put_head(const struct writer *w, struct slots *header) {
    const struct order *o = &w->g->order;
    struct buf dims;
    buf_init(&dims, TEXT_MOST);
    slots_list(header, "dims");
    for (size_t i = 0; i < o->ndims; i++) {
        str name = member_name(o->dims[i].name, w->mem);
        if (o->dims[i].is.n)
            continue;
        slots_put(slots_row(header, "dims"), "dim", name);
        put_item(&dims, arena_printf(w->mem, ".%.*s = %" PRId64, STR_ARG(name), o->dims[i].value));
    }
    slots_put(header, "example_dims", kept(w->mem, &dims));
    slots_put(header, "name", w->p->name);
    slots_put(header, "guard", upper_case(w->p->name, w->mem));
    slots_put(header, "title", comment_text(o->title, w->mem));
    slots_put(header, "origin", package_origin(w->p, " * "));
    slots_flag(header, "prepares", w->prepares);
    uint32_t align = PLAN_ALIGN;
    for (size_t i = 0; i < w->p->n; i++)
        for (size_t t = 0; t < w->p->kernels[i].task->ntensors; t++)
            if (w->p->kernels[i].candidate->align[t] > align)
                align = w->p->kernels[i].candidate->align[t];
    slots_number(header, "align", align);
    buf_release(&dims);
}

static bool write_files(const struct writer *w, const struct slots *all, const struct slots *header,
                        const struct slots *driver) {
    const struct export_package *p = w->p;
    struct buf source;
    buf_init(&source, TEXT_MOST);
    str h = arena_printf(w->mem, "%.*s.h", STR_ARG(p->name)),
        c = arena_printf(w->mem, "%.*s.c", STR_ARG(p->name));
    bool ok = package_render(p, "export/c/driver.c", driver, &source, w->err) &&
              render_parts(w, &source) &&
              package_render(p, "export/c/graph.c", all, &source, w->err);
    if (ok && source.failed)
        ok = err_set(w->err, ERR_INPUT, "the module's source is too large");
    ok = ok && package_begin(p, w->err) &&
         ((package_template(p, h.p, "export/c/graph.h", header, w->err) &&
           package_file(p, c.p, buf_str(&source), w->err)) ||
          package_undo(p));
    buf_release(&source);
    return ok;
}

bool export_graph_c(const struct export_package *p, struct err *err) {
    struct writer w = {.p = p, .g = p->graph, .mem = p->mem, .err = err};
    struct slots all, header, driver;
    str sizes;
    bool maps = false, memsets = false;
    w.parts = arena_array(w.mem, struct c_operation, w.g->order.ntasks + 1);
    slots_init(&all, p->mem);
    slots_init(&header, p->mem);
    slots_init(&driver, p->mem);
    slots_list(&all, "uses");
    if (!package_all_kernels(p, err) || !make_parts(&w, &all, &header) ||
        !put_memory(&w, &all, &header) || !sizes_text(&w, &sizes))
        return false;
    for (size_t i = 0; i < w.g->order.nuses; i++)
        put_use(&w, i, &all);
    for (size_t i = 0; i < w.g->order.ntasks; i++) {
        maps |= w.parts[i].maps;
        memsets |= w.parts[i].memsets;
    }
    put_head(&w, &header);
    slots_put(&all, "sizes", sizes);
    slots_put(&all, "name", p->name);
    slots_flag(&all, "prepares", w.prepares);
    slots_flag(&all, "copies", w.copies);
    slots_flag(&driver, "copies", w.copies);
    slots_flag(&driver, "maps", maps);
    slots_flag(&driver, "memsets", memsets);
    slots_put(&driver, "name", p->name);
    slots_put(&driver, "title", slots_get(&header, "title"));
    slots_put(&driver, "origin", slots_get(&header, "origin"));
    return write_files(&w, &all, &header, &driver);
}
