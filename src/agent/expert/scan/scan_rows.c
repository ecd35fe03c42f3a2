/* Scans along the innermost axis. A row goes to a block (or a warp) in chunks: each thread scans
 * its vectors, shuffles scan over the lanes, shared memory over the warps, and the total is carried
 * to the next chunk. Long rows are cut: into parts whose totals a first kernel makes, or into
 * single chunks that look back at those before them. */
#include "agent/expert/scan/scan.h"

static uint32_t kept_vars(const struct scan *s) {
    return ((UINT32_C(1) << s->fold->nindex) - 1) & ~(UINT32_C(1) << s->shape.axis);
}

static str axis_extent(struct scan *s) {
    const struct tensor *y = &s->in->task->tensors[s->fold->tensor];
    return scope_int(&s->k, y->extent[s->shape.axis]);
}

static str axis_plan(struct scan *s) {
    return sheet_plan(s->sh, s->in->task->tensors[s->fold->tensor].extent[s->shape.axis]);
}

/* Threads that share a row. */
static int64_t threads(const struct scan *s) {
    return s->warp ? 32 : s->block;
}
static int64_t chunk_size(const struct scan *s) {
    return threads(s) * s->items * s->width;
}

/* ---- loads ---- */

/* Loads of a whole chunk that begins at `chunk`. */
static str chunk_loads(struct scan *s, bool next, str chunk) {
    str m = slots_get(&s->names, "m"), p = slots_get(&s->names, "p");
    str first = slots_get(&s->names, "first"), end = slots_get(&s->names, "range_end");
    str condition = sheet_printf(s->sh, "%.*s < %.*s", STR_ARG(p), STR_ARG(end));
    str loads = scan_loads(s, next, condition);
    struct slots t = s->names;
    if (s->nstreams == 0)
        return S("");
    slots_put(&t, "loads", loads);
    bool start = str_is(chunk, "0");
    slots_put(&t, "position",
              sheet_printf(s->sh, "%.*s%s%.*s + %.*s * %lld", STR_ARG(start ? S("") : chunk),
                           start ? "" : " + ", STR_ARG(first), STR_ARG(m),
                           (long long)32 * s->width));
    slots_put(&t, "index", str_view(scope_index_type(&s->k)));
    return sheet_lines(s->sh, "scan/load.cu", &t);
}

static void put_loads(struct scan *s, struct slots *t) {
    str chunk = slots_get(&s->names, "chunk");
    str after = sheet_printf(s->sh, "%.*s + %lld", STR_ARG(chunk), (long long)chunk_size(s));
    slots_put(t, "load_first",
              s->prefetch ? chunk_loads(s, false, slots_get(&s->names, "range_begin")) : S(""));
    slots_put(t, "load", chunk_loads(s, s->prefetch, s->prefetch ? after : chunk));
    slots_put(t, "declare", scan_declare(s));
}

/* ---- where a block works ---- */

/* Rows and parts of them, by block; the names of begin and end are known before anything else. */
static str place_text(struct scan *s, str used) {
    struct sheet *sh = s->sh;
    const char *type = scope_index_type(&s->k);
    str row = slots_get(&s->names, "row"), part = slots_get(&s->names, "part");
    str rows = place_count(sh, s->in, s->fold, kept_vars(s)), head;
    if (s->warp) {
        str warp = slots_get(&s->names, "warp"), n = scope_int_plan(&s->k, "rows", rows);
        head = sheet_printf(sh,
                            "const %s %.*s = (%s)blockIdx.x * %lld + %.*s;\n"
                            "if (%.*s >= %.*s)\n    return;\n",
                            type, STR_ARG(row), type, (long long)s->block / 32, STR_ARG(warp),
                            STR_ARG(row), STR_ARG(n));
    } else if (s->split > 1) {
        str begin = slots_get(&s->names, "begin"), end = slots_get(&s->names, "end");
        str axis = axis_plan(s);
        str length =
            sheet_printf(sh, "ceil_div(ceil_div(%.*s, %lld), %lld)*%lld", STR_ARG(axis),
                         (long long)s->split, (long long)chunk_size(s), (long long)chunk_size(s));
        str n = scope_int_plan(&s->k, "length", length), extent = axis_extent(s);
        head = sheet_printf(sh,
                            "const int %.*s = blockIdx.x / %lld;\n"
                            "const int %.*s = blockIdx.x %% %lld;\n"
                            "const %s %.*s = %.*s * %.*s;\n"
                            "const %s %.*s = min(%.*s + %.*s, %.*s);\n",
                            STR_ARG(row), (long long)s->split, STR_ARG(part), (long long)s->split,
                            type, STR_ARG(begin), STR_ARG(part), STR_ARG(n), type, STR_ARG(end),
                            STR_ARG(begin), STR_ARG(n), STR_ARG(extent));
    } else {
        head = sheet_printf(sh, "const int %.*s = blockIdx.x;\n", STR_ARG(row));
    }
    for (size_t v = 0; v < s->fold->nindex; v++)
        s->k.var[v] = scope_variable(&s->k, v);
    str coordinates = s->warp ? place_coordinates(&s->k, s->fold, kept_vars(s), row, used)
                              : place_int_coordinates(&s->k, s->fold, kept_vars(s), row, used);
    return sheet_printf(sh, "%.*s%.*s", STR_ARG(head), STR_ARG(coordinates));
}

static str tiles_plan(struct scan *s) {
    str axis = axis_plan(s);
    return sheet_printf(s->sh, "ceil_div(%.*s, %lld)", STR_ARG(axis), (long long)chunk_size(s));
}

/* A block takes the next chunk of all, so that the chunks before its own are under way. */
static str ticket_text(struct scan *s, str tickets, str states, str used) {
    struct sheet *sh = s->sh;
    const char *type = scope_index_type(&s->k);
    struct slots t = s->names;
    str rows = place_count(sh, s->in, s->fold, kept_vars(s));
    str tiles = tiles_plan(s);
    slots_put(&t, "rows", scope_int_plan(&s->k, "rows", rows));
    slots_put(&t, "tiles", scope_int_plan(&s->k, "tiles", tiles));
    slots_put(&t, "extent", axis_extent(s));
    slots_put(&t, "index", str_view(type));
    slots_put(&t, "tickets", tickets);
    slots_put(&t, "state", states);
    slots_number(&t, "chunk_size", chunk_size(s));
    str head = sheet_lines(sh, "scan/ticket.cu", &t);
    for (size_t v = 0; v < s->fold->nindex; v++)
        s->k.var[v] = scope_variable(&s->k, v);
    str coordinates =
        place_int_coordinates(&s->k, s->fold, kept_vars(s), slots_get(&s->names, "row"), used);
    return sheet_printf(sh, "%.*s\n%.*s", STR_ARG(head), STR_ARG(coordinates));
}

/* ---- common to the kernels ---- */

static void put_common(struct scan *s, struct slots *t) {
    struct sheet *sh = s->sh;
    str warp = slots_get(&s->names, "warp"), lane = slots_get(&s->names, "lane");
    str p = slots_get(&s->names, "p"), end = slots_get(t, "range_end");
    slots_put(t, "kernel", s->k.name);
    slots_put(t, "index", str_view(scope_index_type(&s->k)));
    slots_number(t, "chunk_size", chunk_size(s));
    slots_number(t, "step", 32 * s->width);
    slots_put(t, "first_value",
              s->warp ? sheet_printf(sh, "%.*s * %lld", STR_ARG(lane), (long long)s->width)
                      : sheet_printf(sh, "(%.*s * %lld + %.*s) * %lld", STR_ARG(warp),
                                     (long long)s->items * 32, STR_ARG(lane), (long long)s->width));
    slots_put(t, "term_value",
              scan_term(s, p, sheet_printf(sh, "%.*s < %.*s", STR_ARG(p), STR_ARG(end))));
    slots_put(t, "begin", slots_get(t, "range_begin"));
    slots_put(t, "end", end);
}

/* Where positions begin and end: names, or the whole axis. */
static void put_range(struct scan *s) {
    bool part = s->split > 1 || s->lookback;
    slots_put(&s->names, "range_begin", part ? slots_get(&s->names, "begin") : S("0"));
    slots_put(&s->names, "range_end", part ? slots_get(&s->names, "end") : axis_extent(s));
}

static str value_text(struct scan *s) {
    struct sheet *sh = s->sh;
    str combine = slots_get(&s->names, "combine"), base = slots_get(&s->names, "base");
    str sum = slots_get(&s->names, "sum"), m = slots_get(&s->names, "m");
    str e = slots_get(&s->names, "e"), p = slots_get(&s->names, "p");
    str value;
    if (!s->shape.exclusive)
        value = sheet_printf(sh, "%.*s(%.*s, %.*s[%.*s][%.*s])", STR_ARG(combine), STR_ARG(base),
                             STR_ARG(sum), STR_ARG(m), STR_ARG(e));
    else if (s->width == 1)
        value = base;
    else
        value = sheet_printf(sh, "%.*s == 0 ? %.*s : %.*s(%.*s, %.*s[%.*s][%.*s - 1])", STR_ARG(e),
                             STR_ARG(base), STR_ARG(combine), STR_ARG(base), STR_ARG(sum),
                             STR_ARG(m), STR_ARG(e));
    if (s->fold->body->reduce->op != REDUCTION_MEAN)
        return value;
    return sheet_printf(sh, "(%.*s) / float(%.*s + %.*s%s)", STR_ARG(value), STR_ARG(p), STR_ARG(e),
                        s->shape.exclusive ? "" : " + 1");
}

static bool put_body(struct scan *s, struct slots *t) {
    struct scan_results r;
    if (!scan_write_results(s, slots_get(&s->names, "value"), &r))
        return false;
    put_loads(s, t);
    slots_put(t, "rotate", scan_rotate(s));
    slots_put(t, "value_text", value_text(s));
    slots_put(t, "packs", r.packs);
    slots_put(t, "element", r.element);
    slots_put(t, "stores", r.stores);
    return true;
}

/* ---- kernels ---- */

/* Everything in which coordinates may be mentioned. */
static str mentioned(struct scan *s, const struct slots *t) {
    static const char *const where[] = {"load_first", "load", "term_value", "element", "stores"};
    struct buf b;
    buf_init(&b, 1u << 20);
    for (size_t i = 0; i < sizeof where / sizeof *where; i++)
        for (size_t k = 0; k < t->n; k++)
            if (str_eq(str_view(t->at[k].name), str_view(where[i]))) {
                buf_puts(&b, t->at[k].text);
                buf_putc(&b, '\n');
            }
    str all = sheet_keep(s->sh, &b);
    buf_release(&b);
    return all;
}

static bool finish_kernel(struct scan *s, struct slots *t, const char *template, str extra) {
    str params = scope_params(&s->k);
    slots_put(t, "params", sheet_printf(s->sh, "%.*s%.*s", STR_ARG(params), STR_ARG(extra)));
    return sheet_put(s->sh, template, t, &s->sh->kernels);
}

static void launch(struct scan *s, str grid, str extra) {
    str args = scope_args(&s->k);
    sheet_step(s->sh, "launch %.*s<<<%.*s, %lld>>>(%.*s%.*s)", STR_ARG(s->k.name), STR_ARG(grid),
               (long long)s->block, STR_ARG(args), STR_ARG(extra));
}

static str rows_plan(struct scan *s, int64_t times) {
    str rows = place_count(s->sh, s->in, s->fold, kept_vars(s));
    return times == 1 ? rows : sheet_printf(s->sh, "%.*s*%lld", STR_ARG(rows), (long long)times);
}

/* The first of two kernels: the total of each part of each row. */
static bool write_totals(struct scan *s, str parts) {
    bool prefetch = s->prefetch;
    s->totals = true;
    s->prefetch = false;
    scan_begin(s, "_totals");
    put_range(s);
    struct slots t = s->names;
    put_common(s, &t);
    put_loads(s, &t);
    slots_put(&t, "parts", parts);
    slots_put(&t, "place", place_text(s, mentioned(s, &t)));
    slots_put(&t, "headline",
              sheet_printf(s->sh, "Totals of the %lld parts of each row.", (long long)s->split));
    str extra = sheet_printf(s->sh, ", %s *%.*s", s->type, STR_ARG(parts));
    bool ok = finish_kernel(s, &t, "scan/totals.cu", extra);
    launch(s, rows_plan(s, s->split), sheet_printf(s->sh, ", %.*s", STR_ARG(parts)));
    s->totals = false;
    s->prefetch = prefetch;
    return ok;
}

/* The carry of a part: the totals of those before it. */
static str start_text(struct scan *s, str parts) {
    struct slots t = s->names;
    if (s->split == 1)
        return S("");
    slots_put(&t, "parts", parts);
    slots_number(&t, "split", s->split);
    slots_put(&t, "index", str_view(scope_index_type(&s->k)));
    return sheet_lines(s->sh, "scan/start.cu", &t);
}

static str shared_text(struct scan *s) {
    str totals = slots_get(&s->names, "totals"), turn = slots_get(&s->names, "turn");
    if (s->warp)
        return S("");
    if (s->lookback)
        return sheet_printf(s->sh, "__shared__ %s %.*s[%lld]; // of the warps", s->type,
                            STR_ARG(totals), (long long)s->block / 32);
    return sheet_printf(s->sh, "__shared__ %s %.*s[2][%lld]; // of the warps\nint %.*s = 0;",
                        s->type, STR_ARG(totals), (long long)s->block / 32, STR_ARG(turn));
}

static void put_across(struct scan *s, struct slots *t) {
    str carry = slots_get(&s->names, "carry"), total = slots_get(&s->names, "total");
    str combine = slots_get(&s->names, "combine");
    if (s->warp) {
        slots_put(t, "offset", carry);
        slots_put(t, "across", S(""));
        slots_put(t, "advance",
                  sheet_printf(s->sh, "%.*s = %.*s(%.*s, %.*s);", STR_ARG(carry), STR_ARG(combine),
                               STR_ARG(carry), STR_ARG(total)));
        return;
    }
    const char *across = s->lookback ? "scan/across_lookback.cu" : "scan/across_block.cu";
    slots_put(t, "across", sheet_lines(s->sh, across, t));
    slots_put(t, "advance", s->lookback ? S("") : sheet_lines(s->sh, "scan/advance_block.cu", t));
}

static str headline(struct scan *s) {
    const char *way = s->shape.reverse ? "from its end" : "from its start";
    if (s->warp)
        return sheet_printf(s->sh, "A warp scans a row %s, %lld elements at a time.", way,
                            (long long)chunk_size(s));
    if (s->lookback)
        return sheet_printf(s->sh,
                            "A block scans %lld elements of a row %s, behind the chunks before.",
                            (long long)chunk_size(s), way);
    return sheet_printf(s->sh, "A block scans %s %s, %lld elements at a time.",
                        s->split > 1 ? "a part of a row" : "a row", way, (long long)chunk_size(s));
}

static bool write_scan(struct scan *s, str parts, str tickets, str states) {
    struct sheet *sh = s->sh;
    str extra = S(""), passed = S("");
    scan_begin(s, "");
    put_range(s);
    struct slots t = s->names;
    put_common(s, &t);
    if (!put_body(s, &t))
        return false;
    put_across(s, &t);
    str used = mentioned(s, &t);
    slots_put(&t, "place",
              s->lookback ? ticket_text(s, tickets, states, used) : place_text(s, used));
    slots_put(&t, "start", start_text(s, parts));
    slots_put(&t, "shared", shared_text(s));
    slots_put(&t, "headline", headline(s));
    if (s->split > 1) {
        extra = sheet_printf(sh, ", const %s *%.*s", s->type, STR_ARG(parts));
        passed = sheet_printf(sh, ", %.*s", STR_ARG(parts));
    }
    if (s->lookback) {
        extra = sheet_printf(sh, ", int *%.*s, long long *%.*s", STR_ARG(tickets), STR_ARG(states));
        passed = sheet_printf(sh, ", %.*s, %.*s", STR_ARG(tickets), STR_ARG(states));
    }
    bool ok = finish_kernel(s, &t, "scan/rows.cu", extra);
    str rows = rows_plan(s, s->split), tiles = tiles_plan(s);
    str grid =
        s->warp ? sheet_printf(sh, "ceil_div(%.*s, %lld)", STR_ARG(rows), (long long)s->block / 32)
        : s->lookback ? sheet_printf(sh, "%.*s*%.*s", STR_ARG(rows), STR_ARG(tiles))
                      : rows;
    launch(s, grid, passed);
    return ok;
}

static void put_note(struct scan *s) {
    str name = s->in->task->tensors[s->fold->tensor].name;
    sheet_note(s->sh, "scan: %.*s: %lld threads a block, %lld vector%s of %lld a thread%s%s",
               STR_ARG(name), (long long)s->block, (long long)s->items, s->items > 1 ? "s" : "",
               (long long)s->width, s->prefetch ? ", the next chunk loaded ahead" : "",
               s->warp        ? ", a warp a row"
               : s->lookback  ? ", chunks look back"
               : s->split > 1 ? ", rows in parts"
                              : ", a block a row");
    scan_note_used(s);
}

bool scan_write_rows(struct scan *s) {
    struct sheet *sh = s->sh;
    str rows = place_count(sh, s->in, s->fold, kept_vars(s));
    str parts = S(""), tickets = S(""), states = S("");
    put_note(s);
    if (s->split > 1) {
        parts = sheet_name(sh, S("parts"));
        sheet_memory(sh, "workspace %.*s[%.*s, %lld] : %s", STR_ARG(parts), STR_ARG(rows),
                     (long long)s->split, s->memory);
        if (!write_totals(s, parts))
            return false;
    }
    if (s->lookback) {
        str tiles = tiles_plan(s);
        tickets = sheet_name(sh, S("tickets"));
        states = sheet_name(sh, S("progress"));
        sheet_memory(sh, "workspace %.*s[1] : i32", STR_ARG(tickets));
        sheet_memory(sh, "workspace %.*s[%.*s, %.*s] : i64", STR_ARG(states), STR_ARG(rows),
                     STR_ARG(tiles));
        sheet_step(sh, "memset %.*s = 0", STR_ARG(tickets));
        sheet_step(sh, "memset %.*s = 0", STR_ARG(states));
        struct slots none = {.mem = sh->mem};
        if (str_find(buf_str(&sh->functions), S("cp_publish")) == sh->functions.n &&
            !sheet_put(sh, "scan/state.cu", &none, &sh->functions))
            return false;
    }
    return write_scan(s, parts, tickets, states);
}
