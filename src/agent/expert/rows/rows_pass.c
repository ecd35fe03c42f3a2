/* Passes of a team over the columns of its row, for rows that are contiguous in memory or at least
 * in runs. Packs are kVec columns; a thread has kItems of them in flight. Where rows begin at any
 * element, packs are aligned in memory all the same: the row is seen as beginning `shift` elements
 * earlier, and columns outside of it do not count. */
#include "agent/expert/rows/rows.h"

/* ---- elements ---- */

/* "col + v", or just the column. */
static str column_text(struct rows *r) {
    return r->shape.vec == 1
               ? r->n.col
               : sheet_printf(r->sh, "(%.*s + %.*s)", STR_ARG(r->n.col), STR_ARG(r->n.v));
}

static str inside_text(struct rows *r) {
    str c = column_text(r);
    return r->shape.shifted ? sheet_printf(r->sh, "%.*s >= 0 && %.*s < %.*s", STR_ARG(c),
                                           STR_ARG(c), STR_ARG(r->n.cols))
                            : S("");
}

/* ---- loads ---- */

struct place {
    str pointer, offset;
};

/* Where the pack of this column begins. */
static struct place pack_place(struct rows *r, const struct rows_read *q, bool write) {
    size_t end = r->g.nkept + r->g.ncols;
    if (q->run == r->g.ncols)
        return (struct place){q->pointer, r->n.col};
    str offset = rows_run_offset(r, q);
    str run = rows_size_text(r, rows_product(r, end - q->run, end), r->short_cols);
    str pointer = rows_pointer(r, q->e->ref, write);
    return (struct place){pointer, sheet_printf(r->sh, "%.*s + %.*s %% %.*s", STR_ARG(offset),
                                                STR_ARG(r->n.col), STR_ARG(run))};
}

/* Pack k from or to the place of this column in what the block keeps. */
static str kept_line(struct rows *r, const struct rows_read *q, bool load) {
    str slot = r->bounded
                   ? sheet_printf(r->sh, "(%.*s - %.*s)", STR_ARG(r->n.col), STR_ARG(r->n.from))
                   : r->n.col;
    if (r->shape.cute)
        return rows_cute_kept(r, q, slot, load);
    str kept =
        sheet_printf(r->sh, r->shape.vec == 1 ? "*(%.*s + %.*s)" : "cp_kept<kVec>(%.*s + %.*s)",
                     STR_ARG(q->cache), STR_ARG(slot));
    str pack = sheet_printf(r->sh, "%.*s[%.*s]", STR_ARG(q->name), STR_ARG(r->n.k));
    return sheet_printf(r->sh, "%.*s = %.*s;", STR_ARG(load ? pack : kept),
                        STR_ARG(load ? kept : pack));
}

static str load_text(struct rows *r, const struct rows_read *q, size_t pass) {
    if (q->cached && r->shape.cache == 2 && !rows_is_first_use(q, pass))
        return kept_line(r, q, true);
    if (r->shape.shifted && r->shape.cute)
        return rows_cute_edge(r, q);
    if (r->shape.shifted)
        return sheet_printf(r->sh, "%.*s[%.*s] = cp_load_edge<kVec>(%.*s, %.*s, %.*s);",
                            STR_ARG(q->name), STR_ARG(r->n.k), STR_ARG(q->pointer),
                            STR_ARG(r->n.col), STR_ARG(r->n.cols));
    struct place p = pack_place(r, q, false);
    return rows_load_line(r, q, p.pointer, p.offset);
}

/* What was loaded in this pass and is kept in shared memory: after all loads are under way. */
static str keeps_text(struct rows *r, size_t pass) {
    str all = S("");
    for (size_t i = 0; i < r->nreads && r->shape.cache == 2; i++) {
        const struct rows_read *q = &r->reads[i];
        if (!q->cached || !rows_is_loaded(r, q, pass) || !rows_is_first_use(q, pass))
            continue;
        all = rows_lines(r, all, kept_line(r, q, false));
    }
    return all;
}

static str loads_text(struct rows *r, size_t pass) {
    uint32_t used = 0;
    str all = S("");
    for (size_t i = 0; i < r->nreads; i++)
        if (rows_is_loaded(r, &r->reads[i], pass))
            used |= rows_run_columns(r, &r->reads[i]);
    str columns = rows_column_text(r, used, r->n.col, r->n.col);
    for (size_t i = 0; i < r->nreads; i++)
        if (rows_is_loaded(r, &r->reads[i], pass))
            all = rows_lines(r, all, load_text(r, &r->reads[i], pass));
    return all.n ? rows_lines(r, columns, all) : all;
}

/* ---- passes ---- */

/* The loop over a thread's packs around `body`. */
static str items_text(struct rows *r, str body) {
    struct slot slots[] = {{"k", r->n.k},  {"col", r->n.col}, {"at", r->n.at},
                           {"body", body}, {"end", r->n.end}, {"type", str_view(rows_col_type(r))}};
    return body.n ? ROWS_RENDER(r, "rows/items.cu", slots) : S("");
}

static str elements_text(struct rows *r, str body) {
    struct slot slots[] = {{"v", r->n.v}, {"body", body}};
    if (r->shape.vec == 1)
        return r->g.ncols == 1 ? body : sheet_render(r->sh, "rows/block.cu", slots + 1, 1);
    return ROWS_RENDER(r, "rows/elements.cu", slots);
}

/* What is in registers for good needs no loop: one batch is all of the row. */
static str pass_text(struct rows *r, size_t pass, str body) {
    str declare = rows_declarations(r, pass, false), loads = items_text(r, loads_text(r, pass));
    str work = items_text(r, rows_lines(r, keeps_text(r, pass), body));
    str inner = rows_lines(r, declare, rows_lines(r, loads, work));
    struct slot block[] = {{"body", inner}};
    if (r->shape.cache == 1)
        return declare.n ? ROWS_RENDER(r, "rows/block.cu", block) : inner;
    struct slot slots[] = {{"at", r->n.at},
                           {"first", r->first},
                           {"end", r->n.end},
                           {"body", inner},
                           {"type", str_view(rows_col_type(r))}};
    return ROWS_RENDER(r, "rows/stream.cu", slots);
}

static str index_text(struct rows *r) {
    return r->shape.vec == 1 ? S("0") : r->n.v;
}

uint32_t rows_level_columns(const struct rows *r, size_t level) {
    uint32_t used = 0;
    for (size_t i = 0; i < r->levels[level].nunits; i++) {
        const struct rows_fold *f = &r->g.folds[r->levels[level].units[i].fold];
        used |= rows_columns_used(r, f->term) | (f->guard ? rows_columns_used(r, f->guard) : 0);
    }
    return used;
}

str rows_level_text(struct rows *r, size_t level) {
    str column = column_text(r);
    rows_hold_reads(r, level);
    str add = rows_add_call(r, level, r->n.part);
    str columns = rows_column_text(r, rows_level_columns(r, level), column, r->n.col);
    str place = r->g.ncols == 1 ? r->k.var[r->g.nkept] : column;
    str terms = rows_terms_text(r, level, inside_text(r), place, index_text(r));
    str body = rows_declare_terms(r, level, "kVec");
    body = rows_lines(r, body, elements_text(r, rows_lines(r, columns, terms)));
    return pass_text(r, level, rows_lines(r, body, add));
}

/* ---- maps ---- */

static str store_text(struct rows *r, const struct rows_read *q) {
    struct sheet *sh = r->sh;
    if (r->shape.shifted)
        return sheet_printf(sh, "%s(%.*s, %.*s, %.*s, %.*s);",
                            r->shape.cute ? "cp_put_edge" : "cp_store_edge", STR_ARG(q->pointer),
                            STR_ARG(r->n.col), STR_ARG(r->n.cols), STR_ARG(q->name));
    struct place p = pack_place(r, q, true);
    return rows_store_line(r, q->e->ref, p.pointer, p.offset, q->name, r->shape.vec > 1);
}

/* One element of a map: into its pack, or where it belongs. */
static str map_element(struct rows *r, size_t map) {
    struct sheet *sh = r->sh;
    const struct rows_map *m = &r->g.maps[map];
    const struct rows_read *q = &r->stores[map];
    str value = scope_text(&r->k, m->body);
    value = scope_packed(&r->k, m->s->tensor, m->body->value_kind, value);
    if (q->kind == READ_PACK && r->shape.vec == 1)
        return rows_store_line(r, m->s->tensor, q->pointer, r->n.col, value, false);
    if (q->kind == READ_PACK)
        return sheet_printf(sh, "%.*s = %.*s;", STR_ARG(rows_result_element(r, q)), STR_ARG(value));
    str pointer = scope_pointer(&r->k, m->s->tensor, true), offset = rows_offset(r, m->place);
    return rows_store_line(r, m->s->tensor, pointer, offset, value, false);
}

static uint32_t map_columns(const struct rows *r, size_t map) {
    const struct rows_map *m = &r->g.maps[map];
    uint32_t used = rows_columns_used(r, m->body);
    if (r->stores[map].kind != READ_PACK)
        used |= expr_uses(m->place) & ~((UINT32_C(1) << r->g.nkept) - 1);
    return used;
}

static str map_elements(struct rows *r) {
    uint32_t used = 0;
    str all = S("");
    for (size_t i = 0; i < r->g.nmaps; i++)
        used |= r->g.maps[i].whole ? map_columns(r, i) : 0;
    str columns = rows_column_text(r, used, column_text(r), r->n.col);
    for (size_t i = 0; i < r->g.nmaps; i++)
        if (r->g.maps[i].whole)
            all = rows_lines(r, all, map_element(r, i));
    str inside = inside_text(r);
    if (inside.n) {
        struct slot slots[] = {{"inside", inside}, {"body", all}};
        all = ROWS_RENDER(r, "rows/if.cu", slots);
    }
    return rows_lines(r, columns, all);
}

static str map_stores(struct rows *r) {
    uint32_t used = 0;
    str all = S("");
    if (r->shape.vec == 1)
        return all;
    for (size_t i = 0; i < r->g.nmaps; i++)
        if (r->g.maps[i].whole && r->stores[i].kind == READ_PACK)
            used |= rows_run_columns(r, &r->stores[i]);
    str columns = rows_column_text(r, used, r->n.col, r->n.col);
    for (size_t i = 0; i < r->g.nmaps; i++)
        if (r->g.maps[i].whole && r->stores[i].kind == READ_PACK)
            all = rows_lines(r, all, store_text(r, &r->stores[i]));
    return all.n ? rows_lines(r, columns, all) : all;
}

str rows_maps_text(struct rows *r) {
    size_t pass = rows_maps_pass(r);
    str body = S("");
    rows_hold_reads(r, pass);
    for (size_t i = 0; i < r->g.nmaps; i++) {
        const struct rows_read *q = &r->stores[i];
        if (!r->g.maps[i].whole || q->kind != READ_PACK || r->shape.vec == 1)
            continue;
        body = rows_lines(r, body, rows_result_pack(r, q));
    }
    body = rows_lines(r, body, elements_text(r, map_elements(r)));
    body = rows_lines(r, body, map_stores(r));
    return pass_text(r, pass, body);
}

/* ---- what a row begins with ---- */

static str row_read_text(struct rows *r, const struct rows_read *q, str live) {
    static const struct {
        const char *type, *none;
    } kinds[] = {[VALUE_INT] = {"long long", "0"},
                 [VALUE_REAL] = {"float", "0.0f"},
                 [VALUE_BOOL] = {"bool", "false"}};
    str value = scope_text(&r->k, q->e);
    const char *type = kinds[q->e->value_kind].type;
    if (live.n == 0)
        return sheet_printf(r->sh, "const %s %.*s = %.*s;", type, STR_ARG(q->name), STR_ARG(value));
    return sheet_printf(r->sh, "const %s %.*s = %.*s ? %.*s : %s;", type, STR_ARG(q->name),
                        STR_ARG(live), STR_ARG(value), kinds[q->e->value_kind].none);
}

static str pointer_text(struct rows *r, const struct rows_read *q, bool write) {
    str pointer = rows_pointer(r, q->e->ref, write);
    str start = str_is(q->base, "0")
                    ? pointer
                    : sheet_printf(r->sh, "%.*s + %.*s", STR_ARG(pointer), STR_ARG(q->base));
    return sheet_printf(r->sh, "%s%s *%.*s = %.*s;", write ? "" : "const ",
                        rows_element_type(r, q->e->ref), STR_ARG(q->pointer), STR_ARG(start));
}

/* Pointers into shared memory, one behind the other. */
static str cache_text(struct rows *r) {
    str all = S(""), before = S("");
    for (size_t i = 0; i < r->nreads; i++) {
        const struct rows_read *q = &r->reads[i];
        if (!q->cached || r->shape.cache != 2)
            continue;
        str start = before.n ? before : S("cp_row_memory");
        all = rows_lines(r, all,
                         sheet_printf(r->sh, "%s *%.*s = reinterpret_cast<%s *>(%.*s);",
                                      rows_element_type(r, q->e->ref), STR_ARG(q->cache),
                                      rows_element_type(r, q->e->ref), STR_ARG(start)));
        before = sheet_printf(r->sh, "%.*s + %.*s", STR_ARG(q->cache), STR_ARG(r->chunk));
    }
    return all;
}

str rows_pointers_text(struct rows *r, str live) {
    str all = S("");
    for (size_t i = 0; i < r->nreads; i++) {
        const struct rows_read *q = &r->reads[i];
        if (q->kind == READ_ROW && q->passes)
            all = rows_lines(r, all, row_read_text(r, q, live));
        if (q->kind == READ_PACK && q->run == r->g.ncols)
            all = rows_lines(r, all, pointer_text(r, q, false));
    }
    for (size_t i = 0; i < r->g.nmaps; i++) {
        const struct rows_read *q = &r->stores[i];
        if (r->g.maps[i].whole && q->kind == READ_PACK && q->run == r->g.ncols)
            all = rows_lines(r, all, pointer_text(r, q, true));
    }
    all = rows_lines(r, all, cache_text(r));
    if (r->shape.cache == 1)
        all = rows_lines(r, all, rows_declarations(r, 0, true));
    return all;
}
