/* family_recurrence: lets that read their own earlier steps, or each other's (spec/recur.h), and
 * the maps that follow from them element by element. The steps are made one after the other.
 *
 * Where every read of a step before is of the reader's own line, lines are independent: a thread a
 * line, with what later steps read in registers, and the other reads of the next steps loaded ahead
 * (lines.cu). Otherwise a block makes all lines that may read each other, with a barrier after each
 * let of a step (block.cu): an index that all of them pass on as it is, as a batch is, tells blocks
 * apart. What is read by others of the block is kept in shared memory, so many steps of it as the
 * reads go back, or, where that has no room, in global memory. Long reductions get a warp an
 * element.
 *
 * What does not read the steps was taken out before (form.h): the products with the weights of an
 * LSTM's inputs are a step of their own.
 *
 * Decisions: block 256; items 8 (steps loaded ahead). */
#include "agent/expert/generic/loops.h"
#include "agent/expert/sheet/pieces.h"
#include "spec/recur.h"

enum {
    MAPS_WITH_IT = 16, /* that a recurrence takes along */
    STREAMS = 12,
    LARGE_BODY = 400,   /* nodes of a step, beyond which fewer are unrolled */
    LONG_ENOUGH = 32,   /* terms worth a warp */
    STATIC_MOST = 1024, /* threads of a block */
};

/* A let of the recurrence, or a map. */
struct part {
    const struct statement *s;
    bool map;
    int64_t lags; /* so many steps back it is read */
    str now;      /* the value that is being made */
    str before;   /* lines: the registers of the steps before are this, this2, … */
    bool kept;    /* block: others of the block read it */
    str memory;   /* block: where it is kept in shared memory */
    str count;    /* … so many elements a step */
    bool made;    /* block: in the loop that is being written */
};

struct recur {
    struct sheet *sh;
    const struct step *st;
    const struct task *t;
    struct scope k;
    struct part part[TASK_MAX_TENSORS];
    size_t n, nlets;
    size_t axis;
    bool backwards, lines, shared, warp;
    uint32_t batch; /* variables that tell blocks apart */
    int64_t block;
    str steps; /* their number, as text */
    str at;    /* the variable that counts them */
    const struct statement *reader;
    struct buf body;
};

/* ---- recognition ---- */

/* All that a map reads of the recurrence, and of maps taken before, is its own element. */
static bool may_follow(const struct form *f, const bool *done, const bool *take,
                       const struct statement *s, const struct expr *e, bool padded, bool *some) {
    const struct task *t = f->task;
    if (e->kind == EXPR_READ && form_definition_in(t, take, e->ref)) {
        *some = true;
        return expr_is_own(s, e) && !padded &&
               extents_same(&t->tensors[s->tensor], &t->tensors[e->ref]);
    }
    if (e->kind == EXPR_READ && t->tensors[e->ref].role == TENSOR_LET &&
        !form_defined_by(t, done, e->ref))
        return false;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (!may_follow(f, done, take, s, expr_part(e, i), e->kind == EXPR_PAD && i == 0, some))
            return false;
    return true;
}

static bool claim(const struct briefing *b, const struct form *f, const bool *done, size_t first,
                  bool *take) {
    const struct task *t = f->task;
    size_t n = recurrence_length(t, first), maps = 0;
    (void)b;
    for (size_t i = first; i < first + n; i++)
        take[i] = true;
    for (size_t i = first + n; n && i < t->nstatements && maps < MAPS_WITH_IT; i++) {
        const struct statement *s = &t->statements[i];
        bool some = false;
        if (done[i] || s->recurs.number || !form_is_map(s) || !maps_plain_left(t, s) ||
            t->tensors[s->tensor].role == TENSOR_INOUT || form_definitions(t, s->tensor) != 1 ||
            !may_follow(f, done, take, s, s->body, false, &some) || !some)
            continue;
        take[i] = true;
        maps++;
    }
    return n > 0;
}

/* ---- what the step is like ---- */

static struct part *part_of(struct recur *r, size_t tensor) {
    for (size_t i = 0; i < r->n; i++)
        if (r->part[i].s->tensor == tensor)
            return &r->part[i];
    return NULL;
}

/* How far steps are read back, and which indices every read passes on as they are. */
static void look_at(struct recur *r, const struct statement *s, const struct expr *e) {
    int64_t lag;
    if (e->kind == EXPR_READ && recurrence_lag(r->t, s, e, &lag)) {
        struct part *p = part_of(r, e->ref);
        bool own = recurrence_is_own_line(r->t, s, e);
        p->lags = lag > p->lags ? lag : p->lags;
        r->lines &= own;
        for (size_t i = 0; i < TASK_MAX_RANK; i++)
            if (i >= e->nargs || i >= s->nindex || e->args[i]->kind != EXPR_INDEX ||
                e->args[i]->ref != i ||
                !expr_same(r->t->tensors[s->tensor].extent[i], r->t->tensors[e->ref].extent[i]))
                r->batch &= ~(UINT32_C(1) << i);
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        look_at(r, s, expr_part(e, i));
}

static bool start(struct recur *r, struct sheet *sh, const struct step *st) {
    *r = (struct recur){.sh = sh, .st = st, .t = st->inst->task, .lines = true};
    for (size_t i = 0; i < r->t->nstatements; i++) {
        const struct statement *s = &r->t->statements[i];
        r->part[r->n++] = (struct part){.s = s, .map = !s->recurs.number};
        r->nlets += s->recurs.number > 0;
    }
    const struct statement *first = r->part[0].s;
    r->axis = first->recurs.axis;
    r->backwards = first->recurs.backwards;
    r->batch = (UINT32_C(1) << TASK_MAX_RANK) - 1;
    for (size_t i = 0; i < r->nlets; i++) {
        const struct statement *s = r->part[i].s;
        look_at(r, s, s->body);
        r->lines &= s->recurs.axis == r->axis &&
                    extents_same(&r->t->tensors[s->tensor], &r->t->tensors[first->tensor]);
        for (size_t v = 0; v < TASK_MAX_RANK; v++)
            if (v >= s->nindex || v >= first->nindex || v == s->recurs.axis ||
                !expr_same(statement_extent(r->t, s, v), statement_extent(r->t, first, v)))
                r->batch &= ~(UINT32_C(1) << v);
    }
    for (size_t i = r->nlets; i < r->n; i++)
        r->lines &=
            extents_same(&r->t->tensors[r->part[i].s->tensor], &r->t->tensors[first->tensor]);
    return scope_init(&r->k, sh, st, TEXT(sh, "$_steps", r->t->tensors[first->tensor].name).p);
}

static str step_place(struct recur *r, str step) {
    return r->backwards ? TEXT(r->sh, "$ - 1 - ($)", r->steps, step) : step;
}

/* ---- lines of the body ---- */

static void put_line(struct recur *r, int indent, str text) {
    buf_printf(&r->body, "%*s%.*s\n", 4 * indent, "", STR_ARG(text));
}
#define LINE(r, indent, ...) put_line(r, indent, TEXT((r)->sh, __VA_ARGS__))

/* Lines of a text, each with the indent. */
static void put_lines(struct recur *r, int indent, str text) {
    while (text.n) {
        size_t end = str_find(text, S("\n"));
        put_line(r, indent, str_cut(text, 0, end));
        text = end < text.n ? str_cut(text, end + 1, text.n) : S("");
    }
}

/* The value of the part at its element, and its store. */
static void put_value(struct recur *r, struct part *p, int indent, bool warp) {
    struct scope *k = &r->k;
    struct loops loops = {.k = k, .out = &r->body, .indent = indent, .warp = warp};
    bool memory = r->t->tensors[p->s->tensor].role != TENSOR_LET || (p->kept && !r->shared);
    k->statement = r->reader = p->s;
    loops_hoist(&loops, p->s->body);
    enum value_kind kind = p->s->body->value_kind;
    str name = scope_name(k, TEXT(r->sh, "$_now", r->t->tensors[p->s->tensor].name).p);
    str packed = scope_packed(k, p->s->tensor, kind, scope_text(k, p->s->body));
    LINE(r, indent, "const $ $ = $;", value_type(kind), name,
         scope_unpacked(k, p->s->tensor, packed));
    p->now = name;
    str lead = warp ? S("if (lane == 0) ") : S("");
    if (memory)
        LINE(r, indent, "$$[$] = $;", lead, scope_pointer(k, p->s->tensor, true),
             scope_place_text(k), scope_packed(k, p->s->tensor, kind, name));
}

/* ---- a thread a line ---- */

static str register_of(struct recur *r, const struct part *p, int64_t lag) {
    return lag == 1 ? p->before
                    : sheet_printf(r->sh, "%.*s%lld", STR_ARG(p->before), (long long)lag);
}

static str line_elsewhere(void *ctx, const struct expr *e) {
    struct recur *r = ctx;
    const struct part *p = part_of(r, e->ref);
    int64_t lag = 0;
    if (!p)
        return S("");
    if (r->reader->recurs.number)
        recurrence_lag(r->t, r->reader, e, &lag);
    return lag ? register_of(r, p, lag) : p->now;
}

static void put_states(struct recur *r, struct slots *s) {
    slots_list(s, "states");
    for (size_t i = 0; i < r->nlets; i++) {
        struct part *p = &r->part[i];
        if (p->lags)
            p->before =
                scope_name(&r->k, TEXT(r->sh, "$_before", r->t->tensors[p->s->tensor].name).p);
        for (int64_t lag = 1; lag <= p->lags; lag++) {
            struct slots *one = slots_row(s, "states");
            slots_put(one, "type", value_type(p->s->body->value_kind));
            slots_put(one, "before", register_of(r, p, lag));
        }
    }
}

struct streams {
    const struct expr *read[STREAMS];
    size_t n;
};

/* Reads that a step does in any case, or could: inside their tensors whatever the conditions. */
static void find_streams(struct recur *r, const struct statement *s, const struct expr *e,
                         struct streams *all) {
    bool known = false;
    if (e->kind == EXPR_REDUCE)
        return;
    for (size_t i = 0; i < all->n; i++)
        known |= expr_same(all->read[i], e);
    if (e->kind == EXPR_READ && !known && all->n < STREAMS && !part_of(r, e->ref) &&
        r->t->tensors[e->ref].role != TENSOR_INOUT && e->nargs > 0 &&
        (expr_vars(e) >> r->axis & 1) && place_is_sure(r->st->inst, s, e))
        all->read[all->n++] = e;
    for (size_t i = 0; i < expr_nparts(e); i++)
        find_streams(r, s, expr_part(e, i), all);
}

static void put_streams(struct recur *r, struct slots *s) {
    struct streams all = {.n = 0};
    struct scope *k = &r->k;
    for (size_t i = 0; i < r->n; i++)
        find_streams(r, r->part[i].s, r->part[i].s->body, &all);
    slots_list(s, "streams");
    for (size_t i = 0; i < all.n; i++) {
        const struct expr *e = all.read[i];
        struct slots *one = slots_row(s, "streams");
        str name = scope_name(k, TEXT(r->sh, "$_ahead", r->t->tensors[e->ref].name).p);
        slots_put(one, "type", value_type(e->value_kind));
        slots_put(one, "ahead", name);
        slots_put(one, "load", scope_text(k, e));
        all.read[i] = e;
        scope_hold(k, e, TEXT(r->sh, "$[item]", name));
    }
}

static size_t body_size(const struct expr *e) {
    size_t n = 1;
    for (size_t i = 0; i < expr_nparts(e); i++)
        n += body_size(expr_part(e, i));
    return n;
}

static int64_t items_of(const struct recur *r) {
    size_t size = 0;
    int64_t items = sheet_decision(r->sh, "items", 8);
    for (size_t i = 0; i < r->n; i++)
        size += body_size(r->part[i].s->body);
    while (items > 1 && size * (size_t)items > LARGE_BODY)
        items /= 2;
    return items < 1 ? 1 : items;
}

/* Smaller blocks where there are few lines, so that all SMs have some. */
static int64_t block_for_lines(const struct recur *r, uint32_t over) {
    int64_t lines = 1, block = sheet_decision(r->sh, "block", 256);
    for (size_t v = 0; v < r->part[0].s->nindex; v++)
        if (over >> v & 1)
            lines *= r->st->inst->tensors[r->part[0].s->tensor].extent[v];
    while (block > 32 && lines < block * r->sh->briefing->gpu->sms)
        block /= 2;
    return block;
}

static void put_shifts(struct recur *r) {
    for (size_t i = 0; i < r->nlets; i++) {
        const struct part *p = &r->part[i];
        for (int64_t lag = p->lags; lag > 0; lag--)
            LINE(r, 0, "$ = $;", register_of(r, p, lag),
                 lag > 1 ? register_of(r, p, lag - 1) : p->now);
    }
}

static str definitions(struct recur *r) {
    str all = S("");
    for (size_t i = 0; i < r->nlets; i++)
        all = sheet_join(r->sh, all, "; ", sheet_definition(r->sh, r->st, r->part[i].s));
    return all;
}

static bool write_lines(struct recur *r) {
    struct slots *s = sheet_slots(r->sh);
    struct scope *k = &r->k;
    int64_t items = items_of(r);
    k->statement = r->reader = r->part[0].s;
    uint32_t over = scope_variables(k) & ~(UINT32_C(1) << r->axis);
    r->block = block_for_lines(r, over);
    str lines = scope_plan_elements(k, over), number = sheet_number(r->sh, items);
    r->steps = scope_int(k, scope_extent(k, r->axis));
    slots_put(s, "coordinates", scope_coordinates(k, S("line"), over, over));
    slots_put(s, "axis", k->var[r->axis] = scope_variable(k, r->axis));
    slots_put(s, "place", step_place(r, S("chunk + item")));
    slots_put(s, "clamped", step_place(r, TEXT(r->sh, "min(chunk + item, $ - 1)", r->steps)));
    put_states(r, s);
    put_streams(r, s);
    k->elsewhere = line_elsewhere;
    k->elsewhere_ctx = r;
    for (size_t i = 0; i < r->n; i++)
        put_value(r, &r->part[i], 0, false);
    put_shifts(r);
    slots_put(s, "definition", definitions(r));
    slots_number(s, "block", r->block);
    slots_put(s, "items", number);
    slots_put(s, "steps", r->steps);
    slots_put(s, "kernel", k->name);
    slots_put(s, "index", str_view(scope_index_type(k)));
    slots_put(s, "lines", scope_int_plan(k, "lines", lines));
    slots_put(s, "body", sheet_keep(r->sh, &r->body));
    slots_put(s, "parameters", scope_params(k));
    str block = sheet_number(r->sh, r->block);
    scope_launch(k, TEXT(r->sh, "ceil_div($, $)", lines, block), block);
    sheet_note(r->sh, "recurrence: %.*s: a thread a line, %lld steps loaded ahead.",
               STR_ARG(k->name), (long long)items);
    const struct used all[] = {{"block", r->block}, {"items", items}};
    sheet_used(r->sh, all, sizeof all / sizeof *all);
    return !sheet_failed(r->sh) && sheet_put(r->sh, "recurrence/lines.cu", s, &r->sh->kernels);
}

/* ---- a block for lines that depend on each other ---- */

static uint32_t inner_of(const struct recur *r, const struct statement *s) {
    return ((UINT32_C(1) << s->nindex) - 1) & ~r->batch & ~(UINT32_C(1) << s->recurs.axis);
}

/* The read's place among the elements that a block makes of a let in one step. */
static str inner_place(struct recur *r, const struct part *p, const struct expr *e) {
    str at = S("");
    for (size_t v = 0; v < p->s->nindex; v++) {
        if (!(inner_of(r, p->s) >> v & 1))
            continue;
        str one = TEXT(r->sh, "($)", scope_text(&r->k, e->args[v]));
        at = at.n ? TEXT(r->sh, "($ * $ + $)", at,
                         scope_int(&r->k, statement_extent(r->t, p->s, v)), one)
                  : one;
    }
    return at.n ? at : S("0");
}

static str slot_place(struct recur *r, const struct part *p, int64_t lag, str at) {
    if (p->lags == 0)
        return TEXT(r->sh, "$[$]", p->memory, at);
    return TEXT(r->sh, "$[(step + $) % $ * $ + $]", p->memory,
                sheet_number(r->sh, p->lags + 1 - lag), sheet_number(r->sh, p->lags + 1), p->count,
                at);
}

static str block_elsewhere(void *ctx, const struct expr *e) {
    struct recur *r = ctx;
    const struct part *p = part_of(r, e->ref);
    int64_t lag = 0;
    if (!p)
        return S("");
    if (r->reader->recurs.number)
        recurrence_lag(r->t, r->reader, e, &lag);
    if (lag == 0 && p->made)
        return p->now;
    return r->shared ? slot_place(r, p, lag, inner_place(r, p, e)) : S("");
}

/* The last part that a map reads: in its loop the map is made. */
static const struct part *last_read(struct recur *r, const struct part *map) {
    const struct part *last = NULL;
    for (size_t i = 0; i < r->n; i++) {
        const struct part *p = &r->part[i];
        if (p == map || !expr_reads_tensor(map->s->body, p->s->tensor))
            continue;
        const struct part *at = p->map ? last_read(r, p) : p;
        last = !last || at > last ? at : last;
    }
    return last;
}

static void put_barrier(struct recur *r) {
    put_line(r, 0, S("__syncthreads();"));
}

/* The elements of one let, and the maps that follow from it. */
static void put_loop(struct recur *r, struct part *p) {
    struct scope *k = &r->k;
    uint32_t inner = inner_of(r, p->s);
    k->statement = r->reader = p->s;
    int64_t each = r->warp ? r->block / 32 : r->block;
    bool warp = r->warp && loops_longest(r->st, p->s, p->s->body) >= LONG_ENOUGH;
    str element = scope_name(k, "element"), from = warp ? S("warp") : S("(int)threadIdx.x");
    each = warp ? each : r->block;
    LINE(r, 0, "for ($ $ = $; $ < $; $ += $) {", str_view(scope_index_type(k)), element, from,
         element, p->count, element, sheet_number(r->sh, each));
    put_lines(r, 1, scope_coordinates(k, element, inner, inner));
    k->var[p->s->recurs.axis] = r->at;
    size_t nheld = k->nheld;
    for (size_t i = 0; i < r->n; i++) {
        struct part *q = &r->part[i];
        if (q != p && !(q->map && last_read(r, q) == p))
            continue;
        put_value(r, q, 1, warp);
        q->made = true;
    }
    if (p->kept && r->shared)
        LINE(r, 1, "$$ = $;", warp ? S("if (lane == 0) ") : S(""), slot_place(r, p, 0, element),
             p->now);
    for (size_t i = 0; i < r->n; i++)
        r->part[i].made = false;
    k->nheld = nheld;
    put_line(r, 0, S("}"));
    put_barrier(r);
}

/* Bytes of shared memory, here and as the plan has them. */
static int64_t shared_bytes(struct recur *r, str *plan) {
    int64_t sum = 0;
    *plan = S("");
    for (size_t i = 0; i < r->nlets; i++) {
        const struct part *p = &r->part[i];
        uint32_t inner = inner_of(r, p->s);
        int64_t size = (p->lags + 1) * (p->s->body->value_kind == VALUE_REAL ? 4 : 8);
        r->k.statement = p->s;
        str count = scope_plan_elements(&r->k, inner);
        *plan = sheet_join(r->sh, *plan, " + ",
                           TEXT(r->sh, "ceil_div($, 4)*4*$", count, sheet_number(r->sh, size)));
        int64_t n = 1;
        for (size_t v = 0; v < p->s->nindex; v++)
            n *= inner >> v & 1 ? r->st->inst->tensors[p->s->tensor].extent[v] : 1;
        sum += (n + 3) / 4 * 4 * size;
    }
    return sum;
}

/* One behind the other, each from a multiple of 16 bytes. */
static void put_memories(struct recur *r, struct slots *s) {
    str start = S("step_memory");
    slots_list(s, "kept");
    for (size_t i = 0; i < r->nlets; i++) {
        struct part *p = &r->part[i];
        struct slots *one = slots_row(s, "kept");
        int64_t size = (p->lags + 1) * (p->s->body->value_kind == VALUE_REAL ? 4 : 8);
        p->memory = scope_name(&r->k, TEXT(r->sh, "$_kept", r->t->tensors[p->s->tensor].name).p);
        slots_put(one, "type", value_type(p->s->body->value_kind));
        slots_put(one, "name", p->memory);
        slots_put(one, "start", start);
        start = TEXT(r->sh, "$ + ($ + 3) / 4 * 4 * $", start, p->count, sheet_number(r->sh, size));
    }
}

/* Threads for the largest let of a step. */
static int64_t block_for_step(struct recur *r) {
    int64_t want = 32, most = sheet_decision(r->sh, "block", 256);
    for (size_t i = 0; i < r->nlets; i++) {
        const struct statement *s = r->part[i].s;
        bool warp = loops_longest(r->st, s, s->body) >= LONG_ENOUGH;
        int64_t n = warp ? 32 : 1;
        r->warp |= warp;
        for (size_t v = 0; v < s->nindex; v++)
            n *= inner_of(r, s) >> v & 1 ? r->st->inst->tensors[s->tensor].extent[v] : 1;
        while (want < n && want < most && want < STATIC_MOST)
            want *= 2;
    }
    return want;
}

static bool write_block(struct recur *r) {
    struct slots *s = sheet_slots(r->sh);
    struct scope *k = &r->k;
    struct sheet *sh = r->sh;
    str bytes;
    r->block = block_for_step(r);
    int64_t total = shared_bytes(r, &bytes), most = sheet_shared_most(sh);
    r->shared = total <= most;
    k->statement = r->reader = r->part[0].s;
    str blocks = scope_plan_elements(k, r->batch);
    r->steps = scope_int(k, scope_extent(k, r->axis));
    slots_put(s, "coordinates", scope_coordinates(k, S("(int)blockIdx.x"), r->batch, r->batch));
    slots_put(s, "axis", r->at = scope_variable(k, r->axis));
    slots_put(s, "place", step_place(r, S("step")));
    for (size_t i = 0; i < r->nlets; i++) {
        struct part *p = &r->part[i];
        k->statement = p->s;
        p->kept = true;
        p->count = scope_int_plan(k, "elements", scope_plan_elements(k, inner_of(r, p->s)));
        if (!r->shared)
            k->written |= UINT64_C(1) << p->s->tensor;
    }
    if (r->shared) {
        put_memories(r, s);
        sheet_require_for(sh, "The values of a step stay in shared memory.", "%.*s <= %lld",
                          STR_ARG(bytes), (long long)most);
    }
    k->elsewhere = block_elsewhere;
    k->elsewhere_ctx = r;
    for (size_t i = 0; i < r->nlets; i++)
        put_loop(r, &r->part[i]);
    slots_put(s, "definition", definitions(r));
    slots_put(s, "where", r->shared ? S(" from shared memory") : S(""));
    slots_number(s, "block", r->block);
    slots_put(s, "steps", r->steps);
    slots_put(s, "kernel", k->name);
    slots_put(s, "index", str_view(scope_index_type(k)));
    slots_flag(s, "shared", r->shared);
    slots_flag(s, "warp", r->warp);
    slots_put(s, "body", sheet_keep(sh, &r->body));
    slots_put(s, "parameters", scope_params(k));
    str block = sheet_number(sh, r->block);
    scope_launch(k, blocks, r->shared ? TEXT(sh, "$, $", block, bytes) : block);
    sheet_note(sh, "recurrence: %.*s: a block of %lld threads for lines that read each other, %s.",
               STR_ARG(k->name), (long long)r->block,
               r->shared ? "states in shared memory" : "states in global memory");
    const struct used all[] = {{"block", r->block}};
    sheet_used(sh, all, sizeof all / sizeof *all);
    return !sheet_failed(sh) && sheet_put(sh, "recurrence/block.cu", s, &sh->kernels);
}

static bool recurrence_write(struct sheet *sh, const struct step *st) {
    struct recur *r = arena_new_of(sh->mem, struct recur);
    if (!start(r, sh, st))
        return false;
    buf_init(&r->body, 256u << 10);
    return r->lines ? write_lines(r) : write_block(r);
}

const struct family family_recurrence = {
    .name = "recurrence",
    .workload = WORKLOAD_SCAN,
    .recurs = true,
    .claim = claim,
    .write = recurrence_write,
};
