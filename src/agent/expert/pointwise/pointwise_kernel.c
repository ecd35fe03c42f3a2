/* The kernel of a pointwise step.
 *
 * A tile of block × items × width consecutive elements goes to a block; each thread takes `items`
 * vectors of `width`, a block apart, so that a warp's accesses stay contiguous. The last tile, and
 * rows whose length does not divide by the width, go element by element. With one element a thread
 * and no loop the kernel is the naive one. */
#include "agent/expert/pointwise/pointwise.h"

static enum dtype dtype_of(const struct pw *p, size_t tensor) {
    return sheet_dtype(p->sh, p->st, tensor);
}

static size_t inner(const struct pw *p) {
    return p->space->nindex - 1;
}

/* ---- coordinates ---- */

/* Variables that some function, offset or place of an output needs. */
static uint32_t coordinates_used(const struct pw *p) {
    uint32_t used = 0;
    for (size_t i = 0; i < p->noutputs; i++) {
        used |= p->outputs[i].coordinates;
        if (!p->outputs[i].flat)
            used |= p->space->nindex ? (UINT32_C(1) << p->space->nindex) - 1 : 0;
    }
    for (size_t i = 0; i < p->nreads; i++)
        if (p->reads[i].access != PW_FLAT)
            used |= expr_uses(p->reads[i].e);
    return used;
}

static void put_coordinates(struct pw *p, struct buf *out) {
    scope_coordinates(&p->k, p->e, coordinates_used(p), out);
}

/* ---- one element ---- */

/* A stored element in memory, at the flat index or at the read's own offset. */
static void put_element(struct pw *p, const struct pw_read *r, struct buf *out) {
    str name = scope_pointer(&p->k, r->e->ref, false);
    bool flat = r->access == PW_FLAT;
    if (flat && p->naive && p->hint) {
        bool truth = dtype_of(p, r->e->ref) == DTYPE_BOOL;
        buf_printf(out,
                   truth ? "__ldcs(reinterpret_cast<const unsigned char *>(%.*s) + %.*s) != 0"
                         : "__ldcs(%.*s + %.*s)",
                   STR_ARG(name), STR_ARG(p->e));
        return;
    }
    buf_printf(out, "%.*s[", STR_ARG(name));
    if (flat)
        buf_puts(out, p->space->nindex ? p->e : S("0"));
    else
        scope_offset(&p->k, r->e, out);
    buf_putc(out, ']');
}

/* One argument of a function for a value the kernel loads. */
static str value_text(struct pw *p, const struct pw_read *r, bool vector) {
    struct buf b;
    if (vector && r->access == PW_SPLAT)
        return r->vector;
    buf_init(&b, 64u << 10);
    if (!vector)
        put_element(p, r, &b);
    else if (p->cute && r->access == PW_FLAT)
        buf_printf(&b, "%.*s(%.*s, %.*s)", STR_ARG(r->vector), STR_ARG(p->v), STR_ARG(p->item));
    else if (p->cute)
        buf_printf(&b, "%.*s(%.*s)", STR_ARG(r->vector), STR_ARG(p->v));
    else if (r->access == PW_FLAT)
        buf_printf(&b, "%.*s[%.*s].at[%.*s]", STR_ARG(r->vector), STR_ARG(p->item), STR_ARG(p->v));
    else
        buf_printf(&b, "%.*s.at[%.*s]", STR_ARG(r->vector), STR_ARG(p->v));
    str text = scope_unpacked(&p->k, r->e->ref, sheet_keep(p->sh, &b));
    buf_release(&b);
    return text;
}

static void put_comma(struct buf *out) {
    if (out->n && out->p[out->n - 1] != '(')
        buf_puts(out, S(", "));
}

/* The pointers and integers a function takes, in the order of its parameters. */
static void put_rest(struct pw *p, const struct pw_output *o, struct buf *out) {
    const struct scope *f = &o->f;
    for (size_t i = 0; i < p->st->inst->task->ntensors; i++)
        if (f->tensors >> i & 1) {
            put_comma(out);
            buf_puts(out, scope_pointer(&p->k, i, false));
        }
    for (size_t i = 0; i < f->nints; i++) {
        str name = scope_int_plan(&p->k, arena_cstr(p->sh->mem, f->ints[i].name), f->ints[i].plan);
        put_comma(out);
        buf_puts(out, name);
        for (size_t k = 0; k < p->k.nints; k++)
            if (str_eq(p->k.ints[k].plan, f->ints[i].plan))
                p->k.ints[k].size |= f->ints[i].size;
    }
}

/* compute_y(…), for element e or for element e + v of a vector. */
static str call_text(struct pw *p, const struct pw_output *o, bool vector) {
    struct buf b;
    buf_init(&b, 256u << 10);
    buf_printf(&b, "%.*s(", STR_ARG(o->f.name));
    for (size_t i = 0; i < p->nreads; i++) {
        if (!o->reads[i])
            continue;
        put_comma(&b);
        buf_puts(&b, value_text(p, &p->reads[i], vector));
    }
    for (size_t i = 0; i < p->space->nindex; i++) {
        if (!(o->coordinates >> i & 1))
            continue;
        put_comma(&b);
        buf_puts(&b, p->k.var[i]);
        if (vector && i == inner(p))
            buf_printf(&b, " + %.*s", STR_ARG(p->v));
    }
    put_rest(p, o, &b);
    buf_putc(&b, ')');
    str text = sheet_keep(p->sh, &b);
    buf_release(&b);
    return text;
}

static void put_store(struct pw *p, const struct pw_output *o, str value, struct buf *out) {
    str name = scope_pointer(&p->k, o->s->tensor, true);
    bool truth = dtype_of(p, o->s->tensor) == DTYPE_BOOL;
    if (o->flat && p->naive && p->hint && p->space->nindex) {
        buf_printf(out,
                   truth ? "__stcs(reinterpret_cast<unsigned char *>(%.*s) + %.*s, (unsigned "
                           "char)%.*s);\n"
                         : "__stcs(%.*s + %.*s, %.*s);\n",
                   STR_ARG(name), STR_ARG(p->e), STR_ARG(value));
        return;
    }
    buf_printf(out, "%.*s[", STR_ARG(name));
    p->k.statement = o->s;
    if (o->flat && p->space->nindex)
        buf_puts(out, p->e);
    else
        scope_place(&p->k, out);
    p->k.statement = p->space;
    buf_printf(out, "] = %.*s;\n", STR_ARG(value));
}

/* Everything for one element e. What is written in place is stored after everyone has read it. */
static str element_text(struct pw *p) {
    struct buf b, stores;
    buf_init(&b, 256u << 10);
    buf_init(&stores, 256u << 10);
    put_coordinates(p, &b);
    for (size_t i = 0; i < p->noutputs; i++) {
        struct pw_output *o = &p->outputs[i];
        str value = call_text(p, o, false);
        if (p->inplace && p->noutputs > 1) {
            str tensor = p->st->inst->task->tensors[o->s->tensor].name;
            str name = scope_name(&p->k, sheet_printf(p->sh, "%.*s_new", STR_ARG(tensor)).p);
            buf_printf(&b, "const %s %.*s = %.*s;\n", dtype_info(dtype_of(p, o->s->tensor))->cuda,
                       STR_ARG(name), STR_ARG(value));
            value = name;
        }
        put_store(p, o, value, &stores);
    }
    buf_puts(&b, buf_str(&stores));
    str text = sheet_keep(p->sh, &b);
    buf_release(&b);
    buf_release(&stores);
    return text;
}

/* ---- full tiles ---- */

/* What declares the vectors of a tile and what loads them; in CUDA all of it is in `loads`. */
struct load_text {
    str declarations, loads;
};

static struct load_text loads_text(struct pw *p) {
    struct buf declare, load, all;
    buf_init(&declare, 64u << 10);
    buf_init(&load, 64u << 10);
    buf_init(&all, 64u << 10);
    for (size_t i = 0; i < p->nreads; i++) {
        const struct pw_read *r = &p->reads[i];
        enum dtype t = dtype_of(p, r->e->ref);
        if (r->access != PW_FLAT)
            continue;
        if (p->cute) {
            pw_cute_load(p, r, &declare, &load);
            continue;
        }
        str type = pw_vector_type(p, t), function = pw_vector_load(p, t, p->hint);
        str name = scope_pointer(&p->k, r->e->ref, false);
        buf_printf(&declare, "%.*s %.*s[%.*s];\n", STR_ARG(type), STR_ARG(r->vector),
                   STR_ARG(p->items_name));
        buf_printf(&load, "%.*s[%.*s] = %.*s(%.*s + %.*s);\n", STR_ARG(r->vector), STR_ARG(p->item),
                   STR_ARG(function), STR_ARG(name), STR_ARG(p->e));
    }
    struct load_text text = {sheet_keep(p->sh, &declare), S("")};
    struct slot slots[] = {{"declarations", text.declarations},
                           {"k", p->item},
                           {"items", p->items_name},
                           {"index", str_view(scope_index_type(&p->k))},
                           {"e", p->e},
                           {"tile", p->tile},
                           {"block", p->block_name},
                           {"width", p->width_name},
                           {"loads", sheet_keep(p->sh, &load)}};
    if (slots[0].text.n && !p->cute)
        sheet_template(p->sh, "pointwise/loads.cu", slots, sizeof slots / sizeof *slots, &all);
    text.loads = p->cute ? slots[sizeof slots / sizeof *slots - 1].text : sheet_keep(p->sh, &all);
    buf_release(&declare);
    buf_release(&load);
    buf_release(&all);
    return text;
}

/* Coordinates of a vector's first element, and what the vector shares or has along its row. */
static str prepare_text(struct pw *p) {
    struct buf b;
    buf_init(&b, 64u << 10);
    put_coordinates(p, &b);
    for (size_t i = 0; i < p->nreads; i++) {
        const struct pw_read *r = &p->reads[i];
        enum dtype t = dtype_of(p, r->e->ref);
        if (r->access == PW_ROW) {
            str type = p->cute ? S("auto") : pw_vector_type(p, t);
            str function = p->cute ? pw_cute_row(p, t) : pw_vector_load(p, t, false);
            str name =
                p->cute ? pw_cute_pointer(p, r->e->ref) : scope_pointer(&p->k, r->e->ref, false);
            buf_printf(&b, "const %.*s %.*s = %.*s(%.*s + ", STR_ARG(type), STR_ARG(r->vector),
                       STR_ARG(function), STR_ARG(name));
            scope_offset(&p->k, r->e, &b);
            buf_puts(&b, S(");\n"));
        } else if (r->access == PW_SPLAT) {
            str value = value_text(p, r, false);
            buf_printf(&b, "const auto %.*s = %.*s;\n", STR_ARG(r->vector), STR_ARG(value));
        }
    }
    str text = sheet_keep(p->sh, &b);
    buf_release(&b);
    return text;
}

struct vector_text {
    str results, compute, stores;
};

/* A piece of a tensor is stored element by element. */
static void put_piece(struct pw *p, const struct pw_output *o, struct buf *compute) {
    str first = p->space->nindex ? p->k.var[inner(p)] : S("");
    if (p->space->nindex)
        p->k.var[inner(p)] = sheet_printf(p->sh, "(%.*s + %.*s)", STR_ARG(first), STR_ARG(p->v));
    struct buf place;
    buf_init(&place, 64u << 10);
    p->k.statement = o->s;
    scope_place(&p->k, &place);
    p->k.statement = p->space;
    if (p->space->nindex)
        p->k.var[inner(p)] = first;
    str name = scope_pointer(&p->k, o->s->tensor, true), value = call_text(p, o, true);
    buf_printf(compute, "%.*s[%.*s] = %.*s;\n", STR_ARG(name), STR_ARG(buf_str(&place)),
               STR_ARG(value));
    buf_release(&place);
}

static struct vector_text vector_text(struct pw *p) {
    struct buf results, compute, stores;
    buf_init(&results, 64u << 10);
    buf_init(&compute, 256u << 10);
    buf_init(&stores, 64u << 10);
    for (size_t i = 0; i < p->noutputs; i++) {
        const struct pw_output *o = &p->outputs[i];
        enum dtype t = dtype_of(p, o->s->tensor);
        if (!o->flat) {
            put_piece(p, o, &compute);
            continue;
        }
        str value = call_text(p, o, true), name = scope_pointer(&p->k, o->s->tensor, true);
        if (p->cute) {
            pw_cute_store(p, o, value, &results, &compute, &stores);
            continue;
        }
        str type = pw_vector_type(p, t), store = pw_vector_store(p, t);
        buf_printf(&results, "%.*s %.*s;\n", STR_ARG(type), STR_ARG(o->vector));
        buf_printf(&compute, "%.*s.at[%.*s] = %.*s;\n", STR_ARG(o->vector), STR_ARG(p->v),
                   STR_ARG(value));
        buf_printf(&stores, "%.*s(%.*s + %.*s, %.*s);\n", STR_ARG(store), STR_ARG(name),
                   STR_ARG(p->e), STR_ARG(o->vector));
    }
    struct vector_text text = {sheet_keep(p->sh, &results), sheet_keep(p->sh, &compute),
                               sheet_keep(p->sh, &stores)};
    buf_release(&results);
    buf_release(&compute);
    buf_release(&stores);
    return text;
}

/* A size that the width must divide, once. */
static void put_divides(struct pw *p, const struct expr *e, struct buf *out) {
    struct buf b;
    str size = scope_int(&p->k, e);
    buf_init(&b, 4096);
    buf_printf(&b, " && %.*s %% %.*s == 0", STR_ARG(size), STR_ARG(p->width_name));
    if (str_find(buf_str(out), buf_str(&b)) == out->n)
        buf_puts(out, buf_str(&b));
    buf_release(&b);
}

/* Must a vector lie within one row? Where coordinates are used in a space of several rows. */
static bool needs_rows(const struct pw *p) {
    return p->space->nindex > 1 && coordinates_used(p) != 0;
}

static str full_text(struct pw *p, str *rest) {
    struct buf b;
    buf_init(&b, 64u << 10);
    buf_printf(&b, "%.*s + %.*s <= %.*s", STR_ARG(p->tile), STR_ARG(p->tile_name),
               STR_ARG(p->total));
    size_t plain = b.n;
    if (p->width > 1 && needs_rows(p))
        put_divides(p, scope_extent(&p->k, inner(p)), &b);
    for (size_t i = 0; i < p->nreads && p->width > 1; i++)
        for (size_t k = 0; p->reads[i].access == PW_ROW && k < p->reads[i].ndivisors; k++)
            put_divides(p, p->reads[i].divisor[k], &b);
    *rest =
        b.n > plain ? S("The last tile, and rows that vectors would cross") : S("The last tile");
    str text = sheet_keep(p->sh, &b);
    buf_release(&b);
    return text;
}

static str tile_text(struct pw *p, str element) {
    str rest, full = full_text(p, &rest), prepare;
    struct load_text loads = loads_text(p);
    prepare = prepare_text(p);
    if (p->cute)
        prepare = pw_cute_place(p, prepare);
    struct vector_text vector = vector_text(p);
    str declarations = sheet_printf(p->sh, "%.*s%s%.*s", STR_ARG(loads.declarations),
                                    loads.declarations.n ? "\n" : "", STR_ARG(vector.results));
    struct slot slots[] = {
        {"full", full},
        {"rest", rest},
        {"loads", loads.loads},
        {"prepare", prepare},
        {p->cute ? "declarations" : "results", p->cute ? declarations : vector.results},
        {"compute", vector.compute},
        {"stores", vector.stores},
        {"element", element},
        {"index", str_view(scope_index_type(&p->k))},
        {"k", p->item},
        {"v", p->v},
        {"e", p->e},
        {"end", p->end},
        {"tile", p->tile},
        {"total", p->total},
        {"items", p->items_name},
        {"block", p->block_name},
        {"width", p->width_name},
        {"tile_size", p->tile_name}};
    struct buf b;
    buf_init(&b, 512u << 10);
    sheet_template(p->sh, p->cute ? "pointwise/cute_tile.cu" : "pointwise/tile.cu", slots,
                   sizeof slots / sizeof *slots, &b);
    str text = sheet_keep(p->sh, &b);
    buf_release(&b);
    return text;
}

/* ---- the kernel ---- */

static bool write_naive(struct pw *p, str element) {
    struct slot slots[] = {{"block", sheet_printf(p->sh, "%lld", (long long)p->block)},
                           {"kernel", p->k.name},
                           {"parameters", scope_params(&p->k)},
                           {"index", str_view(scope_index_type(&p->k))},
                           {"e", p->e},
                           {"total", p->total},
                           {"element", element}};
    return sheet_template(p->sh, "pointwise/naive.cu", slots, sizeof slots / sizeof *slots,
                          &p->sh->kernels);
}

static bool write_tiled(struct pw *p, str element) {
    str body = tile_text(p, element);
    struct slot slots[] = {{"block", p->block_name},
                           {"kernel", p->k.name},
                           {"parameters", scope_params(&p->k)},
                           {"index", str_view(scope_index_type(&p->k))},
                           {"tile", p->tile},
                           {"tile_size", p->tile_name},
                           {"body", body},
                           {"total", p->total}};
    size_t n = sizeof slots / sizeof *slots;
    /* Only the loop looks at the total. */
    return p->persistent
               ? sheet_template(p->sh, "pointwise/persistent.cu", slots, n, &p->sh->kernels)
               : sheet_template(p->sh, "pointwise/once.cu", slots, n - 1, &p->sh->kernels);
}

bool pw_write_kernel(struct pw *p) {
    str element = element_text(p);
    bool ok = p->naive ? write_naive(p, element) : write_tiled(p, element);
    buf_putc(&p->sh->kernels, '\n');
    return ok && !sheet_failed(p->sh);
}
