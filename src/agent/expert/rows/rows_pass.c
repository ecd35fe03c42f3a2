/* Passes over the columns of rows: loads, terms, maps and stores as slots of pass.cu and
 * outer_pass.cu.
 *
 * Inner: rows are contiguous in memory, or at least in runs. A team has a row, packs are kVec of
 * its columns, and a thread has kItems of them in flight. Where rows begin at any element, packs
 * are aligned in memory all the same: the row is seen as beginning `shift` elements earlier, and
 * columns outside of it do not count.
 *
 * Outer: columns are far apart in memory while neighbouring rows are neighbours. A lane has kVec
 * rows, kTeam threads share their columns, and a thread has kItems of these in flight.
 *
 * In CuTe packs are fragments of (neighbour, pack), which copies of their layout move between
 * registers, global and shared memory; at the ends of a row they are predicated. */
#include "agent/expert/rows/rows.h"

static void add_line(struct rows *r, str *all, str line) {
    *all = sheet_join(r->sh, *all, "\n", line);
}

static str offset_in_brackets(struct rows *r, str offset) {
    return str_find(offset, S(" ")) < offset.n ? TEXT(r->sh, "($)", offset) : offset;
}

/* ---- packs in registers ---- */

static str element_type(const struct rows *r, size_t tensor) {
    return str_view(dtype_info(r->st->inst->task->tensors[tensor].dtype)->cuda);
}

/* CuTe packs truth values to bits: they are moved as bytes. */
static str fragment_type(const struct rows *r, size_t tensor) {
    bool truth = r->st->inst->task->tensors[tensor].dtype == DTYPE_BOOL;
    return truth ? S("unsigned char") : element_type(r, tensor);
}

static str pack_type(struct rows *r, size_t tensor) {
    str type = element_type(r, tensor);
    return r->shape.vec == 1 ? type : TEXT(r->sh, "cp_pack<$, kVec>", type);
}

/* All packs of a read. */
static str declare_packs(struct rows *r, const struct rows_read *q) {
    size_t tensor = q->e->ref;
    if (r->shape.cute)
        return TEXT(r->sh, "auto $ = cp_packs<$, kVec, kItems>();", q->name,
                    fragment_type(r, tensor));
    return TEXT(r->sh, "$ $[kItems];", pack_type(r, tensor), q->name);
}

/* The pack that a map fills. */
static str declare_result(struct rows *r, const struct rows_read *q) {
    size_t tensor = q->e->ref;
    if (r->shape.cute)
        return TEXT(r->sh, "auto $ = cute::make_tensor<$>(cute::Shape<cute::Int<kVec>>{});",
                    q->name, fragment_type(r, tensor));
    return TEXT(r->sh, "$ $;", pack_type(r, tensor), q->name);
}

static str item_text(struct rows *r, const struct rows_read *q) {
    return TEXT(r->sh, r->shape.cute ? "$(cute::_, item)" : "$[item]", q->name);
}

/* Element `slot` of pack `item`. */
static str element_text(struct rows *r, const struct rows_read *q) {
    bool one = r->shape.vec == 1;
    return TEXT(r->sh,
                r->shape.cute ? one ? "$(0, item)" : "$(slot, item)"
                : one         ? "$[item]"
                              : "$[item].at[slot]",
                q->name);
}

static bool is_used(const struct rows_read *q, size_t pass) {
    return q->kind == READ_PACK && (q->passes >> pass & 1);
}

static bool is_first_use(const struct rows_read *q, size_t pass) {
    return !(q->passes & ((UINT32_C(1) << pass) - 1));
}

/* Is there something to load in this pass? What registers keep is loaded once. */
static bool is_loaded(const struct rows *r, const struct rows_read *q, size_t pass) {
    return is_used(q, pass) && !(q->cached && r->shape.cache == 1 && !is_first_use(q, pass));
}

static void hold_reads(struct rows *r, size_t pass) {
    for (size_t i = 0; i < r->nreads; i++) {
        const struct rows_read *q = &r->reads[i];
        if (is_used(q, pass))
            scope_hold(&r->k, q->e, scope_unpacked(&r->k, q->e->ref, element_text(r, q)));
        else if (q->kind == READ_ROW)
            scope_hold(&r->k, q->e, q->name);
    }
}

/* Arrays of packs: those of a pass, or those that registers keep for all. */
static str declarations(struct rows *r, size_t pass, bool kept) {
    str all = S("");
    for (size_t i = 0; i < r->nreads; i++) {
        const struct rows_read *q = &r->reads[i];
        bool lives = q->cached && r->shape.cache == 1;
        if (kept ? lives : !lives && is_used(q, pass))
            add_line(r, &all, declare_packs(r, q));
    }
    return all;
}

/* ---- loads and stores ---- */

static str pointer_of(struct rows *r, size_t tensor, bool write) {
    return scope_pointer(&r->k, tensor, write || (r->k.written >> tensor & 1));
}

/* Truth values have no streaming access of their own. */
static bool is_streamed(const struct rows *r, size_t tensor) {
    return r->shape.hint && r->st->inst->task->tensors[tensor].dtype != DTYPE_BOOL;
}

static bool has_gather(const struct expr *e) {
    for (size_t i = 0; i < e->nargs; i++)
        if (expr_has(e->args[i], EXPR_READ))
            return true;
    return false;
}

/* Read by one row only, and by no later pass: the others stay in the caches. */
static bool is_read_once(const struct rows *r, const struct expr *e, uint32_t passes) {
    uint32_t kept = (UINT32_C(1) << r->g.nkept) - 1;
    bool again = r->shape.cache == 0 && (passes & (passes - 1));
    return (expr_vars(e) & kept) == kept && !has_gather(e) && !again;
}

static str load_line(struct rows *r, const struct rows_read *q, str pointer, str offset) {
    bool stream = is_streamed(r, q->e->ref) && is_read_once(r, q->e, q->passes);
    str item = item_text(r, q);
    if (r->shape.vec == 1 && !stream && !r->shape.cute)
        return TEXT(r->sh, "$ = $[$];", item, pointer, offset);
    offset = offset_in_brackets(r, offset);
    if (r->shape.cute)
        return TEXT(r->sh, "cp_get($ + $, $);", pointer, offset, item);
    return TEXT(r->sh,
                r->shape.vec == 1          ? "$ = __ldcs($ + $);"
                : r->shape.hint && !stream ? "$ = cp_reload<kVec>($ + $);"
                                           : "$ = cp_load<kVec>($ + $);",
                item, pointer, offset);
}

static str store_line(struct rows *r, size_t tensor, str pointer, str offset, str value,
                      bool pack) {
    if (!pack && !is_streamed(r, tensor))
        return TEXT(r->sh, "$[$] = $;", pointer, offset, value);
    return TEXT(r->sh,
                !pack           ? "__stcs($ + $, $);"
                : r->shape.cute ? "cp_put($ + $, $);"
                                : "cp_store($ + $, $);",
                pointer, offset_in_brackets(r, offset), value);
}

struct place {
    str pointer, offset;
};

/* Where the pack of this column begins. */
static struct place pack_place(struct rows *r, const struct rows_read *q, bool write) {
    size_t end = r->g.nkept + r->g.ncols;
    if (q->run == r->g.ncols)
        return (struct place){q->pointer, S("col")};
    str offset = rows_run_offset(r, q);
    str run = rows_size_text(r, rows_product(r, end - q->run, end), r->short_cols);
    str pointer = pointer_of(r, q->e->ref, write);
    return (struct place){pointer, TEXT(r->sh, "$ + col % $", offset, run)};
}

/* Pack `item` from or to the place of this column in what the block keeps. */
static str kept_line(struct rows *r, const struct rows_read *q, bool load) {
    str slot = r->bounded ? S("(col - from)") : S("col"), pack = item_text(r, q);
    if (r->shape.cute) {
        str kept = TEXT(r->sh, "cp_kept_pack($ + $, $)", q->cache, slot, pack);
        return TEXT(r->sh, "cute::copy(cp_vectors_of($), $, $);", pack, load ? kept : pack,
                    load ? pack : kept);
    }
    str kept = TEXT(r->sh, r->shape.vec == 1 ? "*($ + $)" : "cp_kept<kVec>($ + $)", q->cache, slot);
    return TEXT(r->sh, "$ = $;", load ? pack : kept, load ? kept : pack);
}

static str inner_load(struct rows *r, const struct rows_read *q, size_t pass) {
    if (q->cached && r->shape.cache == 2 && !is_first_use(q, pass))
        return kept_line(r, q, true);
    if (r->shape.shifted && r->shape.cute)
        return TEXT(r->sh, "cp_get_edge($, col, cols, $);", q->pointer, item_text(r, q));
    if (r->shape.shifted)
        return TEXT(r->sh, "$ = cp_load_edge<kVec>($, col, cols);", item_text(r, q), q->pointer);
    struct place p = pack_place(r, q, false);
    return load_line(r, q, p.pointer, p.offset);
}

/* What was loaded in this pass and is kept in shared memory: after all loads are under way. */
static str keeps_text(struct rows *r, size_t pass) {
    str all = S("");
    for (size_t i = 0; i < r->nreads && r->shape.cache == 2; i++) {
        const struct rows_read *q = &r->reads[i];
        if (q->cached && is_loaded(r, q, pass) && is_first_use(q, pass))
            add_line(r, &all, kept_line(r, q, false));
    }
    return all;
}

/* Reduced variables; those that are kept stand in the setup. */
static uint32_t only_columns(const struct rows *r, uint32_t used) {
    return used & ~((UINT32_C(1) << r->g.nkept) - 1);
}

static str loads_text(struct rows *r, size_t pass) {
    uint32_t used = 0;
    str all = S("");
    for (size_t i = 0; i < r->nreads; i++) {
        const struct rows_read *q = &r->reads[i];
        if (is_loaded(r, q, pass))
            used |= r->shape.outer ? only_columns(r, expr_vars(q->e)) : rows_run_columns(r, q);
    }
    str columns = rows_column_text(r, used, S("col"), S("col"));
    for (size_t i = 0; i < r->nreads; i++) {
        const struct rows_read *q = &r->reads[i];
        if (!is_loaded(r, q, pass))
            continue;
        if (!r->shape.outer) {
            add_line(r, &all, inner_load(r, q, pass));
            continue;
        }
        str pointer = pointer_of(r, q->e->ref, false);
        add_line(r, &all, load_line(r, q, pointer, scope_offset_text(&r->k, q->e)));
    }
    return all.n ? sheet_join(r->sh, columns, "\n", all) : all;
}

/* ---- passes ---- */

/* "col + slot", or just the column. */
static str column_text(struct rows *r) {
    return r->shape.vec == 1 || r->shape.outer ? S("col") : S("(col + slot)");
}

/* A column before the row is a huge unsigned number. */
static str inside_text(struct rows *r) {
    str c = column_text(r), wide = r->short_cols ? S("") : S(" long long");
    return r->shape.outer     ? TEXT(r->sh, "col < $", r->end)
           : r->shape.shifted ? TEXT(r->sh, "(unsigned$)$ < (unsigned$)cols", wide, c, wide)
                              : S("");
}

str rows_set_lane(struct rows *r) {
    int var = rows_lane_var(&r->g);
    str first = var >= 0 ? r->k.var[var] : S("");
    if (r->shape.outer && r->shape.vec > 1)
        r->k.var[var] = TEXT(r->sh, "($ + slot)", first);
    return first;
}

void rows_reset_lane(struct rows *r, str first) {
    int var = rows_lane_var(&r->g);
    if (var >= 0)
        r->k.var[var] = first;
}

void rows_put_loop(struct rows *r, struct slots *s) {
    slots_put(s, "col_type", str_view(rows_col_type(r)));
    slots_put(s, "first", r->first);
    slots_put(s, "end", r->end);
    slots_flag(s, "in_registers", r->shape.cache == 1);
}

/* A pass that does nothing. */
static struct slots *new_pass(struct rows *r, size_t pass) {
    static const char *const empty[] = {"columns", "elements", "results", "inside", "finish"};
    struct slots *s = sheet_slots(r->sh);
    rows_put_loop(r, s);
    if (r->until && pass < r->nlevels)
        slots_put(s, "end", S("until"));
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
        slots_put(s, empty[i], S(""));
    slots_list(s, "arrays");
    slots_list(s, "brings");
    slots_flag(s, "by_elements", r->shape.vec > 1);
    slots_put(s, "index", r->shape.vec == 1 ? S("0") : S("slot"));
    slots_put(s, "packs", declarations(r, pass, false));
    return s;
}

/* Kernels take sizes in the order in which text names them, so an inner pass says its loads last.
 */
static str finished_pass(struct rows *r, size_t pass, struct slots *s) {
    if (r->shape.outer)
        return sheet_lines(r->sh, "rows/outer_pass.cu", s);
    slots_put(s, "loads", loads_text(r, pass));
    slots_put(s, "keeps", keeps_text(r, pass));
    return sheet_lines(r->sh, "rows/pass.cu", s);
}

static uint32_t level_columns(const struct rows *r, size_t level) {
    uint32_t used = 0;
    for (size_t i = 0; i < r->levels[level].nunits; i++) {
        const struct rows_fold *f = &r->g.folds[r->levels[level].units[i].fold];
        used |= rows_columns_used(r, f->term) | (f->guard ? rows_columns_used(r, f->guard) : 0);
    }
    return used;
}

str rows_level_text(struct rows *r, size_t level, str part) {
    struct slots *s = new_pass(r, level);
    str column = column_text(r);
    if (r->shape.outer)
        slots_put(s, "loads", loads_text(r, level));
    hold_reads(r, level);
    str first = rows_set_lane(r);
    slots_put(s, "columns", rows_column_text(r, level_columns(r, level), column, S("col")));
    str place = r->g.ncols == 1 ? r->k.var[r->g.nkept] : column;
    rows_put_terms(r, level, s, inside_text(r), place);
    rows_reset_lane(r, first);
    slots_put(s, "finish", rows_add_call(r, level, part));
    return finished_pass(r, level, s);
}

/* ---- maps ---- */

/* Does the map fill a pack that is stored as a whole? */
static bool fills_pack(const struct rows *r, size_t map) {
    return r->g.maps[map].whole && r->stores[map].kind == READ_PACK && r->shape.vec > 1;
}

/* One element of a map: into its pack, or where it belongs. */
static str map_element(struct rows *r, size_t map) {
    const struct rows_map *m = &r->g.maps[map];
    const struct rows_read *q = &r->stores[map];
    str value = scope_text(&r->k, m->body);
    value = scope_packed(&r->k, m->s->tensor, m->body->value_kind, value);
    if (fills_pack(r, map))
        return TEXT(r->sh, r->shape.cute ? "$(slot) = $;" : "$.at[slot] = $;", q->name, value);
    if (q->kind == READ_PACK && !r->shape.outer)
        return store_line(r, m->s->tensor, q->pointer, S("col"), value, false);
    str pointer = scope_pointer(&r->k, m->s->tensor, true);
    return store_line(r, m->s->tensor, pointer, scope_offset_text(&r->k, m->place), value, false);
}

static uint32_t maps_columns(const struct rows *r) {
    uint32_t used = 0;
    for (size_t i = 0; i < r->g.nmaps; i++) {
        const struct rows_map *m = &r->g.maps[i];
        if (m->whole)
            used |= rows_columns_used(r, m->body);
        if (m->whole && (r->shape.outer || r->stores[i].kind != READ_PACK))
            used |= expr_vars(m->place);
    }
    return only_columns(r, used);
}

static str store_pack(struct rows *r, const struct rows_read *q) {
    if (r->shape.shifted)
        return TEXT(r->sh,
                    r->shape.cute ? "cp_put_edge($, col, cols, $);"
                                  : "cp_store_edge($, col, cols, $);",
                    q->pointer, q->name);
    struct place p;
    if (r->shape.outer) {
        p.pointer = pointer_of(r, q->e->ref, true);
        p.offset = scope_offset_text(&r->k, q->e);
    } else {
        p = pack_place(r, q, true);
    }
    return store_line(r, q->e->ref, p.pointer, p.offset, q->name, true);
}

/* Columns that the places of packs name, where the elements' own are of another scope. */
static str store_columns(struct rows *r) {
    uint32_t used = 0;
    for (size_t i = 0; i < r->g.nmaps; i++)
        if (fills_pack(r, i))
            used |= rows_run_columns(r, &r->stores[i]);
    return r->shape.outer ? S("") : rows_column_text(r, used, S("col"), S("col"));
}

/* ---- divisors of a row ---- */

struct divisors {
    struct {
        const struct expr *e;
        str name;
    } at[ROWS_MAPS];
    size_t n;
    str lines; /* that declare them, before the loop */
};

/* The variable of a divisor; nothing where there are too many. */
static str divisor_name(struct rows *r, struct divisors *d, const struct expr *e) {
    for (size_t i = 0; i < d->n; i++)
        if (expr_same(d->at[i].e, e))
            return d->at[i].name;
    if (d->n == sizeof d->at / sizeof *d->at)
        return S("");
    str name = scope_name(&r->k, "divisor");
    add_line(r, &d->lines,
             TEXT(r->sh, "const cp_divisor $ = cp_divisor_of($);", name, scope_text(&r->k, e)));
    d->at[d->n].e = e;
    d->at[d->n++].name = name;
    return name;
}

/* Quotients by what is the same along a row become products, from the innermost on. */
static void hold_quotients(struct rows *r, struct divisors *d, const struct expr *e) {
    for (size_t i = 0; i < e->nargs; i++)
        hold_quotients(r, d, e->args[i]);
    if (e->kind != EXPR_DIV || only_columns(r, expr_vars(e->args[1])) ||
        !expr_has(e->args[1], EXPR_READ))
        return;
    str name = divisor_name(r, d, e->args[1]);
    if (name.n)
        scope_hold(&r->k, e, TEXT(r->sh, "cp_divide($, $)", scope_text(&r->k, e->args[0]), name));
}

/* What is read of the next row. */
static void put_brings(struct rows *r, struct slots *s) {
    slots_put(s, "rows", rows_size_text(r, rows_product(r, 0, r->g.nkept), r->short_rows));
    for (size_t i = 0; i < r->nreads; i++)
        if (rows_is_dense(r, &r->reads[i]))
            slots_put(slots_row(s, "brings"), "pointer", r->reads[i].pointer);
}

str rows_maps_text(struct rows *r) {
    size_t pass = r->nlevels;
    struct slots *s = new_pass(r, pass);
    str results = S(""), elements = S(""), stores = S("");
    if (r->shape.outer)
        slots_put(s, "loads", loads_text(r, pass));
    hold_reads(r, pass);
    slots_put(s, "columns", rows_column_text(r, maps_columns(r), column_text(r), S("col")));
    struct divisors divisors = {0};
    for (size_t i = 0; i < r->g.nmaps && r->sh->fast && !r->shape.outer; i++)
        if (r->g.maps[i].whole)
            hold_quotients(r, &divisors, r->g.maps[i].body);
    str first = rows_set_lane(r);
    for (size_t i = 0; i < r->g.nmaps; i++) {
        if (fills_pack(r, i))
            add_line(r, &results, declare_result(r, &r->stores[i]));
        if (r->g.maps[i].whole)
            add_line(r, &elements, map_element(r, i));
    }
    rows_reset_lane(r, first);
    str columns = store_columns(r);
    for (size_t i = 0; i < r->g.nmaps; i++)
        if (fills_pack(r, i))
            add_line(r, &stores, store_pack(r, &r->stores[i]));
    slots_put(s, "results", results);
    slots_put(s, "elements", elements);
    slots_put(s, "inside", inside_text(r));
    if (r->shape.ahead)
        put_brings(r, s);
    slots_put(s, "finish", stores.n ? sheet_join(r->sh, columns, "\n", stores) : stores);
    return sheet_join(r->sh, divisors.lines, "\n", finished_pass(r, pass, s));
}

/* ---- what a row begins with ---- */

static str row_read_text(struct rows *r, const struct rows_read *q) {
    static const struct {
        const char *type, *none;
    } kinds[] = {[VALUE_INT] = {"long long", "0"},
                 [VALUE_REAL] = {"float", "0.0f"},
                 [VALUE_BOOL] = {"bool", "false"}};
    str value = scope_text(&r->k, q->e), type = str_view(kinds[q->e->value_kind].type);
    if (rows_has_spare_teams(r))
        value = TEXT(r->sh, "live ? $ : $", value, str_view(kinds[q->e->value_kind].none));
    return TEXT(r->sh, "const $ $ = $;", type, q->name, value);
}

static str pointer_text(struct rows *r, const struct rows_read *q, bool write) {
    str start = pointer_of(r, q->e->ref, write);
    if (!str_is(q->base, "0"))
        start = TEXT(r->sh, "$ + $", start, q->base);
    return TEXT(r->sh, "$$ *$ = $;", write ? S("") : S("const "), element_type(r, q->e->ref),
                q->pointer, start);
}

/* Pointers into shared memory, one behind the other. */
static str cache_text(struct rows *r) {
    str all = S(""), start = S("cp_row_memory");
    for (size_t i = 0; i < r->nreads; i++) {
        const struct rows_read *q = &r->reads[i];
        if (!q->cached || r->shape.cache != 2)
            continue;
        str type = element_type(r, q->e->ref);
        add_line(r, &all,
                 TEXT(r->sh, "$ *$ = reinterpret_cast<$ *>($);", type, q->cache, type, start));
        start = TEXT(r->sh, "$ + $", q->cache, r->chunk);
    }
    return all;
}

str rows_pointers_text(struct rows *r) {
    str all = S("");
    if (r->shape.outer)
        return declarations(r, 0, true);
    for (size_t i = 0; i < r->nreads; i++) {
        const struct rows_read *q = &r->reads[i];
        if (q->kind == READ_ROW && q->passes)
            add_line(r, &all, row_read_text(r, q));
        if (q->kind == READ_PACK && q->run == r->g.ncols)
            add_line(r, &all, pointer_text(r, q, false));
    }
    for (size_t i = 0; i < r->g.nmaps; i++) {
        const struct rows_read *q = &r->stores[i];
        if (r->g.maps[i].whole && q->kind == READ_PACK && q->run == r->g.ncols)
            add_line(r, &all, pointer_text(r, q, true));
    }
    add_line(r, &all, cache_text(r));
    add_line(r, &all, declarations(r, 0, true));
    return all;
}
