/* What a kernel begins with: which row and which columns of it a thread has. */
#include "agent/expert/rows/rows.h"

static str row_count(struct rows *r) {
    return rows_size_text(r, rows_product(r, 0, r->g.nkept), r->short_rows);
}

bool rows_has_spare_teams(const struct rows *r) {
    return r->g.nkept > 0 && (r->shape.outer || r->shape.team < r->shape.block);
}

/* How many columns the row has; none where there is no row. */
str rows_columns_text(struct rows *r) {
    struct sheet *sh = r->sh;
    size_t var = r->g.nkept;
    const char *type = rows_col_type(r);
    str n;
    if (r->g.ragged) {
        str lo = scope_text(&r->k, r->g.lo[var]), hi = scope_text(&r->k, r->g.extent[var]);
        n = str_is(lo, "0") ? hi : sheet_printf(sh, "%.*s - (%.*s)", STR_ARG(hi), STR_ARG(lo));
    } else {
        n = rows_size_text(r, rows_product(r, var, var + r->g.ncols), r->short_cols);
    }
    if (!rows_has_spare_teams(r))
        return sheet_printf(sh, "const %s %.*s = %.*s;", type, STR_ARG(r->n.cols), STR_ARG(n));
    str live = r->n.live;
    return sheet_printf(sh, "const %s %.*s = %.*s ? %.*s : 0;", type, STR_ARG(r->n.cols),
                        STR_ARG(live), STR_ARG(n));
}

/* The row's number, and whether there is such a row. */
str rows_team_text(struct rows *r) {
    struct sheet *sh = r->sh;
    const struct rows_shape *s = &r->shape;
    const char *type = rows_row_type(r);
    str lane = r->n.lane, row = r->n.row, all;
    if (s->team >= s->block) {
        all = sheet_printf(sh, "const int %.*s = threadIdx.x;", STR_ARG(lane));
        if (s->cluster > 1)
            all = rows_lines(
                r, all,
                sheet_printf(sh, "const int %.*s = blockIdx.x %% kCluster;", STR_ARG(r->n.rank)));
        if (r->g.nkept)
            all = rows_lines(r, all,
                             sheet_printf(sh, "const %s %.*s = blockIdx.x%s;", type, STR_ARG(row),
                                          s->cluster > 1 ? " / kCluster" : ""));
        return all;
    }
    str count = row_count(r);
    return sheet_printf(sh,
                        "const int %.*s = threadIdx.x %% kTeam;\n"
                        "const %s %.*s = (%s)blockIdx.x * %lld + threadIdx.x / kTeam;\n"
                        "const bool %.*s = %.*s < %.*s;",
                        STR_ARG(lane), type, STR_ARG(row), type, (long long)(s->block / s->team),
                        STR_ARG(r->n.live), STR_ARG(row), STR_ARG(count));
}

static str outer_team_text(struct rows *r) {
    const char *type = rows_row_type(r);
    str count = row_count(r);
    return sheet_printf(r->sh,
                        "const int %.*s = threadIdx.x %% kLanes, %.*s = threadIdx.x / kLanes;\n"
                        "const %s %.*s = ((%s)blockIdx.x * kLanes + %.*s) * kVec;\n"
                        "const bool %.*s = %.*s < %.*s;",
                        STR_ARG(r->n.lane), STR_ARG(r->n.rank), type, STR_ARG(r->n.row), type,
                        STR_ARG(r->n.lane), STR_ARG(r->n.live), STR_ARG(r->n.row), STR_ARG(count));
}

str rows_constants_text(struct rows *r, bool loops) {
    const struct rows_shape *s = &r->shape;
    str all = sheet_printf(r->sh, "constexpr int kTeam = %lld", (long long)s->team);
    if (s->outer)
        all = sheet_printf(r->sh, "%.*s, kLanes = %lld", STR_ARG(all),
                           (long long)(s->block / s->team));
    if (s->cluster > 1)
        all = sheet_printf(r->sh, "%.*s, kCluster = %lld", STR_ARG(all), (long long)s->cluster);
    if (loops)
        all = sheet_printf(r->sh, "%.*s, kVec = %lld, kItems = %lld", STR_ARG(all),
                           (long long)s->vec, (long long)s->items);
    return sheet_printf(r->sh, "%.*s;", STR_ARG(all));
}

/* The columns this block has of the row: [from, end), in packs. */
static str bounds_text(struct rows *r) {
    struct sheet *sh = r->sh;
    const struct rows_shape *s = &r->shape;
    const char *type = rows_col_type(r);
    bool shared = s->cluster > 1 || s->split > 1;
    str all = S(""), which = s->split > 1 ? S("(int)blockIdx.y") : r->n.rank;
    if (s->shifted)
        all = sheet_printf(sh, "const int %.*s = (int)((%.*s) %% kVec);", STR_ARG(r->n.shift),
                           STR_ARG(r->shift_base));
    if (shared || s->cache == 2) {
        str name = scope_int_plan(&r->k, "chunk", rows_chunk_plan(r));
        r->chunk = r->short_cols && r->k.wide ? sheet_printf(sh, "(int)%.*s", STR_ARG(name)) : name;
    }
    r->bounded = shared || s->shifted;
    if (!r->bounded) {
        r->n.end = r->n.cols;
        return all;
    }
    str from = shared ? sheet_printf(sh, "%.*s * %.*s", STR_ARG(which), STR_ARG(r->chunk)) : S("");
    if (s->shifted)
        from = sheet_printf(sh, shared ? "%.*s - %.*s" : "%.*s-%.*s", STR_ARG(from),
                            STR_ARG(r->n.shift));
    all = rows_lines(
        r, all, sheet_printf(sh, "const %s %.*s = %.*s;", type, STR_ARG(r->n.from), STR_ARG(from)));
    if (!shared) {
        r->n.end = r->n.cols;
        return all;
    }
    return rows_lines(r, all,
                      sheet_printf(sh, "const %s %.*s = min(%.*s, %.*s + %.*s);", type,
                                   STR_ARG(r->n.end), STR_ARG(r->n.cols), STR_ARG(r->n.from),
                                   STR_ARG(r->chunk)));
}

static str first_column_text(struct rows *r) {
    str from = r->bounded ? sheet_printf(r->sh, "%.*s + ", STR_ARG(r->n.from)) : S("");
    return r->shape.outer
               ? sheet_printf(r->sh, "%.*s%.*s", STR_ARG(from), STR_ARG(r->n.rank))
               : sheet_printf(r->sh, "%.*s%.*s * kVec", STR_ARG(from), STR_ARG(r->n.lane));
}

str rows_setup_text(struct rows *r) {
    str kept = rows_kept_text(r); /* offsets of reads are in these variables */
    rows_make_reads(r);
    if (!r->cache_settled)
        rows_settle_cache(r);
    r->cache_settled = true;
    str all = rows_lines(r, r->shape.outer ? outer_team_text(r) : rows_team_text(r), kept);
    all = rows_lines(r, all, rows_lines(r, rows_columns_text(r), bounds_text(r)));
    r->first = first_column_text(r);
    if (r->shape.cache == 2)
        all =
            rows_lines(r, all, S("extern __shared__ __align__(16) unsigned char cp_row_memory[];"));
    str live = rows_has_spare_teams(r) ? r->n.live : S("");
    all = rows_lines(r, all,
                     r->shape.outer ? rows_declarations(r, 0, true) : rows_pointers_text(r, live));
    if (r->shape.cache == 1)
        all = rows_lines(r, all,
                         sheet_printf(r->sh, "const %s %.*s = %.*s;", rows_col_type(r),
                                      STR_ARG(r->n.at), STR_ARG(r->first)));
    return all;
}
