/* Any statement at all: one kernel, an element a thread or a warp, reductions as loops.
 *
 * What no other family takes comes here: reductions inside conditions or inside each other's terms,
 * guards and bounds of every kind, arg-reductions, pieces, tensors written in place. Correct for
 * every task, fast for none in particular. Loops stand before the expression that uses their value;
 * those on one side of an `if` run only where the condition says so, because only there their reads
 * are known to stay inside. Long sums are kept in parts, so that fp32 stays fp32.
 *
 * Decisions: block 256; generic-lanes 0 (by the shape). */
#include "agent/expert/generic/loops.h"
#include "agent/expert/sheet/sheet.h"
#include "spec/bounds.h"
#include "spec/pattern.h"
#include <string.h>

#define LONG_ENOUGH 64 /* terms worth a warp */

struct generic {
    struct scope k;
    struct buf *out;
    bool warp; /* lanes share an element */
};

/* ---- the kernel ---- */

static bool wants_warp(const struct sheet *sh, const struct step *st, const struct statement *s) {
    int64_t lanes = sheet_decision(sh, "generic-lanes", 0);
    const struct gpu *gpu = sh->briefing->gpu;
    struct ranges r = ranges_of(st->inst, s);
    double elements = 1;
    if (!expr_has(s->body, EXPR_REDUCE))
        return false;
    for (size_t i = 0; i < s->nindex; i++)
        elements *= (double)(r.index[i].hi + 1);
    return lanes == 32 || (lanes == 0 && loops_longest(st, s, s->body) >= LONG_ENOUGH &&
                           elements < (double)gpu->sms * gpu->max_threads_sm);
}

static bool put_kernel(struct generic *g, struct slots *s) {
    struct sheet *sh = g->k.sh;
    int64_t block = sheet_decision(sh, "block", 256), each = g->warp ? block / 32 : block;
    str elements = scope_plan_elements(&g->k, scope_variables(&g->k));
    slots_put(s, "definition", sheet_definition(sh, g->k.step, g->k.statement));
    slots_number(s, "block", block);
    slots_put(s, "kernel", g->k.name);
    slots_put(s, "index", str_view(scope_index_type(&g->k)));
    slots_put(s, "total", scope_int_plan(&g->k, "total", elements));
    slots_put(s, "parameters", scope_params(&g->k));
    slots_flag(s, "warp", g->warp);
    str most = sheet_number(sh, sh->briefing->gpu->sms * INT64_C(16));
    scope_launch(&g->k, TEXT(sh, "min(ceil_div($, $), $)", elements, sheet_number(sh, each), most),
                 sheet_number(sh, block));
    sheet_note(sh, "generic: %.*s: a %s an element.", STR_ARG(g->k.name),
               g->warp ? "warp" : "thread");
    const struct used all[] = {{"block", block}, {"generic-lanes", g->warp ? 32 : 1}};
    sheet_used(sh, all, sizeof all / sizeof *all);
    return sheet_put(sh, "generic/kernel.cu", s, &sh->kernels);
}

static bool write_statement(struct sheet *sh, const struct step *st, const struct statement *s) {
    const struct task *t = st->inst->task;
    struct slots *slots = sheet_slots(sh);
    struct buf b;
    struct generic g = {.out = &b, .warp = wants_warp(sh, st, s)};
    bool copy = s->len == 0 && s->body->kind == EXPR_READ; /* of step_detach */
    if (!scope_init(&g.k, sh, st,
                    TEXT(sh, copy ? "$_copy" : "$_kernel", t->tensors[s->tensor].name).p))
        return false;
    g.k.statement = s;
    uint32_t all = scope_variables(&g.k);
    /* The flat index is the element's offset where the statement defines all of its tensor. */
    bool whole = statement_is_whole(t, s);
    buf_init(&b, 256u << 10);
    str places = scope_coordinates(&g.k, S("element"), all, whole ? expr_vars(s->body) : all);
    struct loops loops = {.k = &g.k, .out = &b, .warp = g.warp};
    loops_hoist(&loops, s->body);
    slots_put(slots, "body", sheet_join(sh, places, "\n", sheet_keep(sh, &b)));
    slots_put(slots, "pointer", scope_pointer(&g.k, s->tensor, true));
    slots_put(slots, "place", whole && s->nindex ? S("element") : scope_place_text(&g.k));
    str value = scope_text(&g.k, s->body);
    slots_put(slots, "value", scope_packed(&g.k, s->tensor, s->body->value_kind, value));
    return !sheet_failed(sh) && put_kernel(&g, slots);
}

/* ---- inout tensors that cannot be written where they are read from ---- */
/* A tensor is read as it was before the task. In place is right where one statement writes all of
 * it, reads it at no other element than the one it writes, and no other statement of the step reads
 * it. Otherwise the statements write to a tensor made here, and copies come last. */

static bool reads_own_only(const struct statement *s, const struct expr *e) {
    if (e->kind == EXPR_READ && e->ref == s->tensor)
        return expr_is_own(s, e);
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (!reads_own_only(s, expr_part(e, i)))
            return false;
    return true;
}

static bool in_place(const struct task *t, size_t tensor) {
    size_t writers = 0, readers = 0;
    bool own = true;
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        writers += s->tensor == tensor;
        readers += expr_reads_tensor(s->body, tensor);
        own &= !expr_reads_tensor(s->body, tensor) ||
               (s->tensor == tensor && reads_own_only(s, s->body));
    }
    return writers == 0 || readers == 0 || (writers == 1 && own);
}

/* to[i, j] = from[i, j] */
static struct statement copy_statement(struct arena *a, const struct task *t, size_t to,
                                       size_t from) {
    size_t rank = t->tensors[from].rank;
    struct statement s = {.tensor = from, .nindex = rank, .nvars = rank};
    char kind = dtype_info(t->tensors[from].dtype)->kind;
    for (size_t i = 0; i < rank; i++) {
        s.index[i] = arena_printf(a, "i%zu", i);
        s.position[i] = (int)i;
    }
    s.body = &(struct expr){.value_kind = kind == 'f'   ? VALUE_REAL
                                          : kind == 'b' ? VALUE_BOOL
                                                        : VALUE_INT};
    s.body = expr_own(t, &s, a);
    s.tensor = to;
    return s;
}

/* The tensor's statements write to a new one, and a copy follows. */
static bool detach(struct sheet *sh, struct task *t, struct inst *in, size_t tensor) {
    size_t made = t->ntensors + sh->made;
    if (made >= TASK_MAX_TENSORS || t->nstatements == TASK_MAX_STATEMENTS)
        return err_set(sh->err, ERR_INPUT, "task %.*s: too many tensors written in place",
                       STR_ARG(t->name));
    t->tensors[made] = t->tensors[tensor];
    t->tensors[made].role = TENSOR_LET;
    in->tensors[made] = in->tensors[tensor];
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->statements[i].tensor == tensor)
            t->statements[i].tensor = made;
    t->statements[t->nstatements++] = copy_statement(sh->mem, t, tensor, made);
    sh->made++;
    return true;
}

static bool step_detach(struct sheet *sh, const struct step *st, struct step *out) {
    const struct task *from = st->inst->task;
    struct task *t = arena_new_of(sh->mem, struct task);
    struct inst *in = arena_new_of(sh->mem, struct inst);
    size_t n = from->ntensors;
    *t = *from;
    *in = *st->inst;
    in->task = t;
    t->tensors = arena_array(sh->mem, struct tensor, TASK_MAX_TENSORS);
    memcpy(t->tensors, from->tensors, n * sizeof *t->tensors);
    t->statements = arena_array(sh->mem, struct statement, TASK_MAX_STATEMENTS);
    memcpy(t->statements, from->statements, t->nstatements * sizeof *t->statements);
    in->tensors = arena_array(sh->mem, struct bound_tensor, TASK_MAX_TENSORS);
    memcpy(in->tensors, st->inst->tensors, n * sizeof *in->tensors);
    *out = (struct step){.inst = in, .family = st->family};
    size_t before = sh->made;
    for (size_t i = 0; i < n; i++)
        if (t->tensors[i].role == TENSOR_INOUT && !in_place(from, i) && !detach(sh, t, in, i))
            return false;
    /* Numbers that other steps' tensors have are nothing here. */
    for (size_t i = n; i < n + before; i++)
        t->tensors[i].role = TENSOR_RAND;
    t->ntensors = n + sh->made;
    return true;
}

/* ---- the family ---- */

static bool generic_claim(const struct briefing *b, const struct form *f, const bool *done,
                          size_t first, bool *take) {
    (void)b, (void)f, (void)done;
    take[first] = true;
    return true;
}

static bool generic_write(struct sheet *sh, const struct step *st) {
    struct step own;
    if (!step_detach(sh, st, &own))
        return false;
    for (size_t i = 0; i < own.inst->task->nstatements; i++)
        if (!write_statement(sh, &own, &own.inst->task->statements[i]))
            return false;
    return true;
}

const struct family family_generic = {
    .name = "generic",
    .workload = WORKLOAD_GATHER,
    .claim = generic_claim,
    .write = generic_write,
};
