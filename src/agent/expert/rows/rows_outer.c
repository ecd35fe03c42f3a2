/* Passes over columns that are far apart in memory while neighbouring rows are neighbours: a lane
 * has kVec rows, kTeam threads share their columns, and a thread has kItems of these in flight. */
#include "agent/expert/rows/rows.h"

static str row_index(struct rows *r) {
    return r->shape.vec == 1 ? S("") : sheet_printf(r->sh, "[%.*s]", STR_ARG(r->n.v));
}

/* The lane's variable: its first row's, or that of row v. */
static void set_lane(struct rows *r, str first, bool element) {
    size_t var = (size_t)rows_lane_var(&r->g);
    r->k.var[var] = element && r->shape.vec > 1
                        ? sheet_printf(r->sh, "(%.*s + %.*s)", STR_ARG(first), STR_ARG(r->n.v))
                        : first;
}

static str items_text(struct rows *r, str body) {
    str guard = sheet_printf(r->sh, "%.*s < %.*s", STR_ARG(r->n.col), STR_ARG(r->n.end));
    struct slot inner[] = {{"inside", guard}, {"body", body}};
    struct slot slots[] = {{"k", r->n.k},
                           {"col", r->n.col},
                           {"at", r->n.at},
                           {"type", str_view(rows_col_type(r))},
                           {"body", body.n ? ROWS_RENDER(r, "rows/if.cu", inner) : S("")}};
    return body.n ? ROWS_RENDER(r, "rows/outer_items.cu", slots) : S("");
}

static str loads_text(struct rows *r, size_t pass) {
    uint32_t used = 0;
    str all = S("");
    for (size_t i = 0; i < r->nreads; i++)
        if (rows_is_loaded(r, &r->reads[i], pass))
            used |= expr_uses(r->reads[i].e) & ~((UINT32_C(1) << r->g.nkept) - 1);
    str columns = rows_column_text(r, used, r->n.col, r->n.col);
    for (size_t i = 0; i < r->nreads; i++) {
        const struct rows_read *q = &r->reads[i];
        if (!rows_is_loaded(r, q, pass))
            continue;
        str pointer = rows_pointer(r, q->e->ref, false), offset = rows_offset(r, q->e);
        all = rows_lines(r, all, rows_load_line(r, q, pointer, offset));
    }
    if (!all.n)
        return all;
    all = rows_lines(r, columns, all);
    if (r->shape.cache == 1) /* a thread may have no column at all */
        return items_text(r, all);
    struct slot slots[] = {{"k", r->n.k},
                           {"col", r->n.col},
                           {"at", r->n.at},
                           {"end", r->n.end},
                           {"type", str_view(rows_col_type(r))},
                           {"body", all}};
    return ROWS_RENDER(r, "rows/outer_loads.cu", slots);
}

static str pass_text(struct rows *r, size_t pass, str loads, str body) {
    str declare = rows_declarations(r, pass, false);
    str inner = rows_lines(r, declare, rows_lines(r, loads, body));
    struct slot block[] = {{"body", inner}};
    if (r->shape.cache == 1)
        return declare.n ? ROWS_RENDER(r, "rows/block.cu", block) : inner;
    struct slot slots[] = {{"at", r->n.at},
                           {"first", r->first},
                           {"end", r->n.end},
                           {"body", inner},
                           {"type", str_view(rows_col_type(r))}};
    return ROWS_RENDER(r, "rows/outer_stream.cu", slots);
}

static str rows_loop(struct rows *r, str body) {
    struct slot slots[] = {{"v", r->n.v}, {"body", body}};
    return r->shape.vec == 1 ? body : ROWS_RENDER(r, "rows/elements.cu", slots);
}

str rows_outer_level_text(struct rows *r, size_t level) {
    str lane = r->k.var[rows_lane_var(&r->g)], index = row_index(r);
    str part = sheet_printf(r->sh, "%.*s%.*s", STR_ARG(r->n.part), STR_ARG(index));
    str loads = loads_text(r, level);
    rows_hold_reads(r, level);
    set_lane(r, lane, true);
    str columns = rows_column_text(r, rows_level_columns(r, level), r->n.col, r->n.col);
    str inside = sheet_printf(r->sh, "%.*s < %.*s", STR_ARG(r->n.col), STR_ARG(r->n.end));
    str place = r->g.ncols == 1 ? r->k.var[r->g.nkept] : r->n.col;
    str terms = rows_terms_text(r, level, inside, place, r->n.k);
    set_lane(r, lane, false);
    struct slot slots[] = {{"k", r->n.k},
                           {"col", r->n.col},
                           {"at", r->n.at},
                           {"type", str_view(rows_col_type(r))},
                           {"body", rows_lines(r, columns, terms)}};
    str body = rows_lines(r, rows_declare_terms(r, level, "kItems"),
                          ROWS_RENDER(r, "rows/outer_items.cu", slots));
    body = rows_loop(r, rows_lines(r, body, rows_add_call(r, level, part)));
    return pass_text(r, level, loads, body);
}

/* ---- maps ---- */

static str map_element(struct rows *r, size_t map) {
    const struct rows_map *m = &r->g.maps[map];
    const struct rows_read *q = &r->stores[map];
    str value = scope_text(&r->k, m->body);
    value = scope_packed(&r->k, m->s->tensor, m->body->value_kind, value);
    if (q->kind == READ_PACK && r->shape.vec > 1)
        return sheet_printf(r->sh, "%.*s = %.*s;", STR_ARG(rows_result_element(r, q)),
                            STR_ARG(value));
    str pointer = scope_pointer(&r->k, m->s->tensor, true), offset = rows_offset(r, m->place);
    return rows_store_line(r, m->s->tensor, pointer, offset, value, false);
}

static uint32_t map_columns(const struct rows *r) {
    uint32_t used = 0;
    for (size_t i = 0; i < r->g.nmaps; i++)
        if (r->g.maps[i].whole)
            used |= rows_columns_used(r, r->g.maps[i].body) | expr_uses(r->g.maps[i].place);
    return used & ~((UINT32_C(1) << r->g.nkept) - 1);
}

str rows_outer_maps_text(struct rows *r) {
    size_t pass = rows_maps_pass(r);
    str lane = r->k.var[rows_lane_var(&r->g)], loads = loads_text(r, pass), elements = S("");
    rows_hold_reads(r, pass);
    str body = rows_column_text(r, map_columns(r), r->n.col, r->n.col), stores = S("");
    for (size_t i = 0; i < r->g.nmaps; i++) {
        const struct rows_read *q = &r->stores[i];
        if (!r->g.maps[i].whole)
            continue;
        set_lane(r, lane, true);
        elements = rows_lines(r, elements, map_element(r, i));
        set_lane(r, lane, false);
        if (q->kind != READ_PACK || r->shape.vec == 1)
            continue;
        str pointer = rows_pointer(r, q->e->ref, true);
        body = rows_lines(r, body, rows_result_pack(r, q));
        stores = rows_lines(
            r, stores, rows_store_line(r, q->e->ref, pointer, rows_offset(r, q->e), q->name, true));
    }
    body = rows_lines(r, body, rows_lines(r, rows_loop(r, elements), stores));
    return pass_text(r, pass, loads, items_text(r, body));
}
