/* The functions and kernels of a group.
 *
 * A tile of block × items × width consecutive elements goes to a block; each thread takes `items`
 * vectors of `width`, a block apart, so that a warp's accesses stay contiguous. The last tile, and
 * rows whose length does not divide by the width, go element by element. With one element a thread
 * and no loop the kernel is the naive one. The mathematics of an element stands once, in a device
 * function that both ways call. */
#include "agent/expert/write.h"

static const char *index_type(const struct pw_group *g) {
    return g->wide ? "long long" : "int";
}

static const char *value_type(enum value_kind k) {
    return k == VALUE_REAL ? "float" : k == VALUE_INT ? "long long" : "bool";
}

static enum dtype read_dtype(const struct writer *w, const struct expr *e) {
    return w->p.task->tensors[e->ref].dtype;
}

/* ---- an output's function ---- */

static void put_comma(struct buf *out) {
    if (out->n && out->p[out->n - 1] != '(')
        buf_puts(out, S(", "));
}

static void put_function_parameters(struct writer *w, struct pw_group *g, struct pw_output *o,
                                    struct buf *out) {
    for (size_t i = 0; i < g->nreads; i++) {
        if (!o->reads[i])
            continue;
        put_comma(out);
        buf_printf(out, "%s %.*s", value_type(g->reads[i].e->value_kind),
                   STR_ARG(g->reads[i].name));
    }
    for (size_t i = 0; i < w->p.task->ntensors; i++) {
        if (!o->gathers[i])
            continue;
        put_comma(out);
        buf_printf(out, "const %s *%.*s", dtype_info(w->p.task->tensors[i].dtype)->cuda,
                   STR_ARG(w->p.gather_name[i]));
    }
    for (size_t i = 0; i < g->shape->rank; i++) {
        if (!o->coordinates[i])
            continue;
        put_comma(out);
        buf_printf(out, "long long %.*s", STR_ARG(g->coordinate[i]));
    }
    for (size_t i = 0; i < g->nparams; i++) {
        if (!o->params[i])
            continue;
        put_comma(out);
        buf_printf(out, "long long %.*s", STR_ARG(g->params[i].name));
    }
}

static bool put_locals(struct place *at, struct buf *out) {
    const struct task *t = at->w->p.task;
    for (size_t i = 0; i < at->o->nlocals; i++) {
        const struct pw_local *l = &at->o->locals[i];
        enum dtype type = t->tensors[l->tensor].dtype;
        char kind = dtype_info(type)->kind;
        enum value_kind value = kind == 'f' ? VALUE_REAL : kind == 'b' ? VALUE_BOOL : VALUE_INT;
        buf_printf(out, "const %s %.*s = ", value_type(value), STR_ARG(l->name));
        if (!write_let(at, type, l->body, out))
            return false;
        buf_puts(out, S(";\n"));
    }
    return true;
}

/* The task's own text of a definition, on one line that no backslash continues. */
static str definition(struct writer *w, const struct statement *s) {
    str text = str_cut(w->p.task->text, s->at, s->len);
    char *line = arena_cstr(w->p.mem, str_cut(text, 0, 400));
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == '\\')
            *c = ' ';
    return str_view(line);
}

static bool write_function(struct writer *w, struct pw_group *g, struct pw_output *o) {
    struct place at = {w, g, o, false};
    struct buf b;
    buf_init(&b, EXPERT_SOURCE_MAX);
    bool ok = put_locals(&at, &b);
    str locals = write_keep(w, &b);
    ok = ok && write_expr(&at, o->body, &b);
    str plain = write_keep(w, &b);
    write_packed(o->tensor->dtype, o->body->value_kind, plain, &b);
    str value = write_keep(w, &b);
    put_function_parameters(w, g, o, &b);
    str parameters = write_keep(w, &b);
    buf_release(&b);
    struct slot slots[] = {
        {"definition", definition(w, o->statement)},
        {"type", str_view(dtype_info(o->tensor->dtype)->cuda)},
        {"function", o->function},
        {"parameters", parameters},
        {"locals", locals},
        {"value", value},
    };
    ok = ok && WRITE_TEMPLATE(w, "pointwise_function.cu", slots, &w->functions);
    buf_putc(&w->functions, '\n');
    return ok;
}

/* ---- the kernel ---- */

static bool coordinate_used(const struct pw_group *g, size_t variable) {
    for (size_t i = 0; i < g->noutputs; i++)
        if (g->outputs[i].coordinates[variable])
            return true;
    for (size_t i = 0; i < g->nreads; i++)
        if (g->reads[i].access != PW_FLAT && pw_moves_with(g->reads[i].e, variable))
            return true;
    return false;
}

static bool any_coordinate(const struct pw_group *g) {
    for (size_t i = 0; i < g->shape->rank; i++)
        if (coordinate_used(g, i))
            return true;
    return false;
}

/* Coordinates of element e, those that are used: e / J / K % I. */
static bool put_coordinates(struct writer *w, struct pw_group *g, struct buf *out) {
    struct place at = {w, g, NULL, false};
    size_t rank = g->shape->rank;
    for (size_t i = 0; i < rank; i++) {
        if (!coordinate_used(g, i))
            continue;
        buf_printf(out, "const %s %.*s = %.*s", index_type(g), STR_ARG(g->coordinate[i]),
                   STR_ARG(w->e));
        for (size_t k = rank; k-- > i + 1;) {
            buf_puts(out, S(" / "));
            if (!write_integer(&at, g->shape->extent[k], out))
                return false;
        }
        buf_puts(out, i > 0 ? S(" % ") : S(""));
        if (i > 0 && !write_integer(&at, g->shape->extent[i], out))
            return false;
        buf_puts(out, S(";\n"));
    }
    return true;
}

/* A stored element in memory, at the flat index or at the read's own offset. */
static bool put_element(struct writer *w, struct pw_group *g, const struct pw_read *r,
                        struct buf *out) {
    struct place at = {w, g, NULL, false};
    str name = w->p.tensor_name[r->e->ref];
    bool flat = r->access == PW_FLAT;
    if (flat && w->naive && w->hint) {
        bool truth = read_dtype(w, r->e) == DTYPE_BOOL;
        buf_printf(out,
                   truth ? "__ldcs(reinterpret_cast<const unsigned char *>(%.*s) + %.*s) != 0"
                         : "__ldcs(%.*s + %.*s)",
                   STR_ARG(name), STR_ARG(w->e));
        return true;
    }
    buf_printf(out, "%.*s[", STR_ARG(name));
    if (flat)
        buf_puts(out, w->e);
    else if (!write_offset(&at, r->e, out))
        return false;
    buf_putc(out, ']');
    return true;
}

/* One argument of a function for a value the kernel loads. */
static bool put_value(struct writer *w, struct pw_group *g, const struct pw_read *r, bool vector,
                      struct buf *out) {
    enum dtype t = read_dtype(w, r->e);
    if (vector && r->access == PW_SPLAT) {
        buf_puts(out, r->vector);
        return true;
    }
    buf_printf(out, "%s", write_unpack(t));
    if (!vector && !put_element(w, g, r, out))
        return false;
    if (vector && r->access == PW_FLAT)
        buf_printf(out, "%.*s[%.*s].at[%.*s]", STR_ARG(r->vector), STR_ARG(w->k), STR_ARG(w->v));
    if (vector && r->access == PW_ROW)
        buf_printf(out, "%.*s.at[%.*s]", STR_ARG(r->vector), STR_ARG(w->v));
    buf_printf(out, "%s", write_unpack_end(t));
    return true;
}

/* compute_y(…), for element e or for element e + v of a vector. */
static bool put_call(struct writer *w, struct pw_group *g, const struct pw_output *o, bool vector,
                     struct buf *out) {
    buf_printf(out, "%.*s(", STR_ARG(o->function));
    for (size_t i = 0; i < g->nreads; i++) {
        if (!o->reads[i])
            continue;
        put_comma(out);
        if (!put_value(w, g, &g->reads[i], vector, out))
            return false;
    }
    for (size_t i = 0; i < w->p.task->ntensors; i++) {
        if (!o->gathers[i])
            continue;
        put_comma(out);
        buf_puts(out, w->p.tensor_name[i]);
    }
    for (size_t i = 0; i < g->shape->rank; i++) {
        if (!o->coordinates[i])
            continue;
        put_comma(out);
        buf_puts(out, g->coordinate[i]);
        if (vector && i + 1 == g->shape->rank)
            buf_printf(out, " + %.*s", STR_ARG(w->v));
    }
    for (size_t i = 0; i < g->nparams; i++) {
        if (!o->params[i])
            continue;
        put_comma(out);
        buf_puts(out, g->params[i].name);
    }
    buf_putc(out, ')');
    return true;
}

static bool put_assignment(struct writer *w, struct pw_group *g, const struct pw_output *o,
                           struct buf *out) {
    str name = w->p.tensor_name[o->index];
    bool truth = o->tensor->dtype == DTYPE_BOOL, stream = w->naive && w->hint;
    if (stream)
        buf_printf(out,
                   truth ? "__stcs(reinterpret_cast<unsigned char *>(%.*s) + %.*s, (unsigned char)"
                         : "__stcs(%.*s + %.*s, ",
                   STR_ARG(name), STR_ARG(w->e));
    else
        buf_printf(out, "%.*s[%.*s] = ", STR_ARG(name), STR_ARG(w->e));
    bool ok = put_call(w, g, o, false, out);
    buf_puts(out, stream ? S(");\n") : S(";\n"));
    return ok;
}

/* Everything for one element e. */
static bool element_text(struct writer *w, struct pw_group *g, str *out) {
    struct buf b;
    buf_init(&b, EXPERT_SOURCE_MAX);
    bool ok = put_coordinates(w, g, &b);
    for (size_t i = 0; i < g->noutputs && ok; i++)
        ok = put_assignment(w, g, &g->outputs[i], &b);
    *out = write_keep(w, &b);
    buf_release(&b);
    return ok;
}

static str parameters_text(struct writer *w, const struct pw_group *g) {
    const struct task *t = w->p.task;
    struct buf b;
    buf_init(&b, 64u << 10);
    for (size_t i = 0; i < t->ntensors; i++) {
        if (!g->inputs[i])
            continue;
        put_comma(&b);
        buf_printf(&b, "const %s *__restrict__ %.*s", dtype_info(t->tensors[i].dtype)->cuda,
                   STR_ARG(w->p.tensor_name[i]));
    }
    for (size_t i = 0; i < g->noutputs; i++) {
        put_comma(&b);
        buf_printf(&b, "%s *__restrict__ %.*s", dtype_info(g->outputs[i].tensor->dtype)->cuda,
                   STR_ARG(w->p.tensor_name[g->outputs[i].index]));
    }
    put_comma(&b);
    buf_printf(&b, "%s %.*s", index_type(g), STR_ARG(w->total));
    for (size_t i = 0; i < g->nparams; i++)
        buf_printf(&b, ", %s %.*s", index_type(g), STR_ARG(g->params[i].name));
    str s = write_keep(w, &b);
    buf_release(&b);
    return s;
}

/* ---- full tiles ---- */

static bool loads_text(struct writer *w, struct pw_group *g, str *out) {
    struct buf declare, load, all;
    buf_init(&declare, EXPERT_SOURCE_MAX);
    buf_init(&load, EXPERT_SOURCE_MAX);
    buf_init(&all, EXPERT_SOURCE_MAX);
    for (size_t i = 0; i < g->nreads; i++) {
        const struct pw_read *r = &g->reads[i];
        if (r->access != PW_FLAT)
            continue;
        enum dtype t = read_dtype(w, r->e);
        w->use[t].any = true;
        *(w->hint ? &w->use[t].stream : &w->use[t].load) = true;
        buf_printf(&declare, "%.*s %.*s[%.*s];\n", STR_ARG(w->vector_type[t]), STR_ARG(r->vector),
                   STR_ARG(w->items_name));
        str function = w->hint ? w->stream[t] : w->load[t];
        buf_printf(&load, "%.*s[%.*s] = %.*s(%.*s + %.*s);\n", STR_ARG(r->vector), STR_ARG(w->k),
                   STR_ARG(function), STR_ARG(w->p.tensor_name[r->e->ref]), STR_ARG(w->e));
    }
    bool some = declare.n > 0, ok = true;
    struct slot slots[] = {{"declarations", write_keep(w, &declare)},
                           {"k", w->k},
                           {"items", w->items_name},
                           {"index", str_view(index_type(g))},
                           {"e", w->e},
                           {"tile", w->tile},
                           {"block", w->block_name},
                           {"width", w->width_name},
                           {"loads", write_keep(w, &load)}};
    if (some)
        ok = WRITE_TEMPLATE(w, "pointwise_loads.cu", slots, &all);
    *out = write_keep(w, &all);
    buf_release(&declare);
    buf_release(&load);
    buf_release(&all);
    return ok;
}

/* Coordinates of a vector's first element, and what the vector shares or has along its row. */
static bool prepare_text(struct writer *w, struct pw_group *g, str *out) {
    struct place at = {w, g, NULL, false};
    struct buf b;
    buf_init(&b, EXPERT_SOURCE_MAX);
    bool ok = put_coordinates(w, g, &b);
    for (size_t i = 0; i < g->nreads && ok; i++) {
        const struct pw_read *r = &g->reads[i];
        enum dtype t = read_dtype(w, r->e);
        str name = w->p.tensor_name[r->e->ref];
        if (r->access == PW_ROW) {
            w->use[t].any = w->use[t].load = true;
            buf_printf(&b, "const %.*s %.*s = %.*s(%.*s + ", STR_ARG(w->vector_type[t]),
                       STR_ARG(r->vector), STR_ARG(w->load[t]), STR_ARG(name));
            ok = write_offset(&at, r->e, &b);
            buf_puts(&b, S(");\n"));
        } else if (r->access == PW_SPLAT) {
            buf_printf(&b, "const %s %.*s = %s", value_type(r->e->value_kind), STR_ARG(r->vector),
                       write_unpack(t));
            ok = put_element(w, g, r, &b);
            buf_printf(&b, "%s;\n", write_unpack_end(t));
        }
    }
    *out = write_keep(w, &b);
    buf_release(&b);
    return ok;
}

struct vector_text {
    str results, compute, stores;
};

static bool vector_text(struct writer *w, struct pw_group *g, struct vector_text *out) {
    struct buf results, compute, stores;
    buf_init(&results, EXPERT_SOURCE_MAX);
    buf_init(&compute, EXPERT_SOURCE_MAX);
    buf_init(&stores, EXPERT_SOURCE_MAX);
    bool ok = true;
    for (size_t i = 0; i < g->noutputs && ok; i++) {
        const struct pw_output *o = &g->outputs[i];
        enum dtype t = o->tensor->dtype;
        w->use[t].any = w->use[t].store = true;
        buf_printf(&results, "%.*s %.*s;\n", STR_ARG(w->vector_type[t]), STR_ARG(o->vector));
        buf_printf(&compute, "%.*s.at[%.*s] = ", STR_ARG(o->vector), STR_ARG(w->v));
        ok = put_call(w, g, o, true, &compute);
        buf_puts(&compute, S(";\n"));
        buf_printf(&stores, "%.*s(%.*s + %.*s, %.*s);\n", STR_ARG(w->store[t]),
                   STR_ARG(w->p.tensor_name[o->index]), STR_ARG(w->e), STR_ARG(o->vector));
    }
    *out = (struct vector_text){write_keep(w, &results), write_keep(w, &compute),
                                write_keep(w, &stores)};
    buf_release(&results);
    buf_release(&compute);
    buf_release(&stores);
    return ok;
}

/* Must a vector lie within one row? Where coordinates are used in a space of several rows, or a row
 * of an input must be aligned. */
static bool needs_rows(const struct pw_group *g) {
    for (size_t i = 0; i < g->nreads; i++)
        if (g->reads[i].access == PW_ROW)
            return true;
    return g->shape->rank > 1 && any_coordinate(g);
}

static bool full_text(struct writer *w, struct pw_group *g, str *full, str *rest) {
    struct place at = {w, g, NULL, false};
    struct buf b;
    buf_init(&b, 4096);
    bool ok = true, rows = w->width > 1 && needs_rows(g);
    buf_printf(&b, "%.*s + %.*s <= %.*s", STR_ARG(w->tile), STR_ARG(w->tile_name),
               STR_ARG(w->total));
    if (rows) {
        buf_puts(&b, S(" && "));
        ok = write_integer(&at, g->shape->extent[g->shape->rank - 1], &b);
        buf_printf(&b, " %% %.*s == 0", STR_ARG(w->width_name));
    }
    *full = write_keep(w, &b);
    *rest = rows ? S("The last tile, and rows that vectors would cross") : S("The last tile");
    buf_release(&b);
    return ok;
}

static bool tile_text(struct writer *w, struct pw_group *g, str element, str *out) {
    str full, rest, loads, prepare;
    struct vector_text vector;
    if (!full_text(w, g, &full, &rest) || !loads_text(w, g, &loads) ||
        !prepare_text(w, g, &prepare) || !vector_text(w, g, &vector))
        return false;
    struct slot slots[] = {{"full", full},
                           {"rest", rest},
                           {"loads", loads},
                           {"prepare", prepare},
                           {"results", vector.results},
                           {"compute", vector.compute},
                           {"stores", vector.stores},
                           {"element", element},
                           {"index", str_view(index_type(g))},
                           {"k", w->k},
                           {"v", w->v},
                           {"e", w->e},
                           {"end", w->end},
                           {"tile", w->tile},
                           {"total", w->total},
                           {"items", w->items_name},
                           {"block", w->block_name},
                           {"width", w->width_name},
                           {"tile_size", w->tile_name}};
    struct buf b;
    buf_init(&b, EXPERT_SOURCE_MAX);
    bool ok = WRITE_TEMPLATE(w, "pointwise_tile.cu", slots, &b);
    *out = write_keep(w, &b);
    buf_release(&b);
    return ok;
}

static bool write_naive(struct writer *w, struct pw_group *g, str element) {
    struct slot slots[] = {{"block", write_number(w, w->block)},
                           {"kernel", g->kernel},
                           {"parameters", parameters_text(w, g)},
                           {"index", str_view(index_type(g))},
                           {"e", w->e},
                           {"total", w->total},
                           {"element", element}};
    return WRITE_TEMPLATE(w, "pointwise_naive.cu", slots, &w->kernels);
}

static bool write_tiled(struct writer *w, struct pw_group *g, str element) {
    str body;
    if (!tile_text(w, g, element, &body))
        return false;
    struct slot slots[] = {{"block", w->block_name},
                           {"kernel", g->kernel},
                           {"parameters", parameters_text(w, g)},
                           {"index", str_view(index_type(g))},
                           {"tile", w->tile},
                           {"tile_size", w->tile_name},
                           {"body", body},
                           {"total", w->total}};
    size_t n = sizeof slots / sizeof *slots;
    /* Only the loop looks at the total. */
    return w->persistent
               ? write_template(w, "expert/pointwise_persistent.cu", slots, n, &w->kernels)
               : write_template(w, "expert/pointwise_once.cu", slots, n - 1, &w->kernels);
}

bool write_group(struct writer *w, struct pw_group *g) {
    for (size_t i = 0; i < g->noutputs; i++)
        if (!write_function(w, g, &g->outputs[i]))
            return false;
    str element;
    if (!element_text(w, g, &element))
        return false;
    bool ok = w->naive ? write_naive(w, g, element) : write_tiled(w, g, element);
    buf_putc(&w->kernels, '\n');
    return ok;
}
