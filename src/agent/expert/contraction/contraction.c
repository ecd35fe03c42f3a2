/* The family of matrix products: what it takes, and the order in which a step is written. What to
 * choose for its decisions: assets/openings/contraction.openings. */
#include "agent/expert/contraction/contraction.h"
#include "spec/pattern.h"
#include <string.h>

/* ---- claims ---- */

/* The statement defines all elements of a tensor like that of the fold, in the order of its own
 * variables. */
static bool same_space(const struct task *t, const struct statement *fold,
                       const struct statement *s) {
    return statement_is_whole(t, s) &&
           extents_same(&t->tensors[fold->tensor], &t->tensors[s->tensor]);
}

/* Types that a tile of f32, f16 or bf16 holds. A let without a type is f32 in memory. */
static bool can_load(const struct tensor *t) {
    const struct dtype_info *d = dtype_info(t->dtype);
    return d->bytes == 1 || (d->kind == 'f' && (t->dtype != DTYPE_F64 || t->role == TENSOR_LET));
}

static bool can_load_operands(const struct contraction *c) {
    for (size_t i = 0; i < c->noperands; i++)
        if (!can_load(&c->in->task->tensors[c->operands[i].read->ref]))
            return false;
    return true;
}

struct claim {
    const struct form *f;
    const bool *done;
    bool *take;
    struct contraction c;
    const struct statement *first;
};

static bool operands_read(const struct claim *c, size_t tensor) {
    for (size_t i = 0; i < c->c.noperands; i++)
        if (expr_reads_tensor(c->c.operands[i].factor, tensor))
            return true;
    return false;
}

/* Every read in a map is of something that is there, or at the map's own index of what is made
 * beside it. `missing`: a fold that is not taken yet, or -1. */
static bool reads_fit(const struct claim *c, const struct statement *s, const struct expr *e,
                      bool *any, int *missing) {
    const struct task *t = c->f->task;
    if (e->kind == EXPR_READ) {
        bool own = expr_is_own(s, e), let = t->tensors[e->ref].role == TENSOR_LET;
        if (form_definition_in(c->f->task, c->take, e->ref)) {
            *any = true;
            if (!own)
                return false;
        } else if (e->ref == s->tensor && !own) {
            return false;
        } else if (let && !form_defined_by(c->f->task, c->done, e->ref)) {
            if (!own || (*missing >= 0 && *missing != (int)e->ref))
                return false;
            *missing = (int)e->ref;
        }
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (!reads_fit(c, s, expr_part(e, i), any, missing))
            return false;
    return true;
}

static bool take_fold(struct claim *c, size_t tensor) {
    const struct task *t = c->f->task;
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        if (s->tensor != tensor || c->done[i] || !same_space(t, c->first, s) || !con_add(&c->c, s))
            continue;
        c->take[i] = can_load_operands(&c->c);
        for (size_t k = 0; k < c->c.noperands; k++)
            if (form_definition_in(c->f->task, c->take, c->c.operands[k].read->ref))
                c->take[i] = false;
        return c->take[i];
    }
    return false;
}

/* Takes a map that finishes what is taken; with it, a fold beside the first. */
static bool take_map(struct claim *c, size_t i) {
    const struct task *t = c->f->task;
    const struct statement *s = &t->statements[i];
    bool any = false;
    int missing = -1;
    if (c->done[i] || c->take[i] || !form_is_map(s) || !same_space(t, c->first, s) ||
        operands_read(c, s->tensor) || !reads_fit(c, s, s->body, &any, &missing) || !any)
        return false;
    if (missing >= 0 && !take_fold(c, (size_t)missing))
        return false;
    c->take[i] = true;
    return true;
}

static bool contraction_claim(const struct briefing *b, const struct form *f, const bool *done,
                              size_t first, bool *take) {
    struct arena *a = arena_new(16u << 20);
    struct claim *c = arena_new_of(a, struct claim);
    c->f = f;
    c->done = done;
    c->take = take;
    c->first = &f->task->statements[first];
    (void)b;
    bool ok = con_match(f->inst, c->first, a, &c->c) && can_load_operands(&c->c);
    take[first] = ok;
    for (bool more = ok; more;) {
        more = false;
        for (size_t i = first + 1; i < f->task->nstatements; i++)
            more |= take_map(c, i);
    }
    arena_free(a);
    return ok;
}

/* ---- writing ---- */

/* Extents inside k are small and stand in the text: places are then computed without division. */
#define FIXED_MOST 64

static void fix_extents(struct con_writer *w) {
    struct con_group *k = &w->c->group[CON_K];
    for (size_t i = w->c->taps ? 0 : 1; i < k->n; i++) {
        int64_t v = con_value(w->c->in, k->at[i].extent);
        bool tap = i < w->c->taps;
        if (k->at[i].extent->kind == EXPR_NUMBER || (w->c->taps ? !tap : v > FIXED_MOST))
            continue;
        str plan = sheet_plan(w->sh, k->at[i].extent);
        sheet_require(w->sh, "%.*s == %lld", STR_ARG(plan), (long long)v);
        k->at[i].extent = expr_number(w->sh->mem, v);
    }
}

/* ---- the head ---- */

static void note_tiles(struct con_writer *w) {
    const struct con_config *g = &w->g;
    str names = S("");
    for (size_t i = 0; i < w->c->nfolds; i++)
        names = sheet_join(w->sh, names, ", ",
                           w->c->in->task->tensors[w->c->folds[i].statement->tensor].name);
    static const char *const through[] = {"", " through mma.sync", " through wgmma"};
    sheet_note(w->sh,
               "contraction: %.*s: tiles of %d x %d, %d of k at a time, %d on their way; %s%s",
               STR_ARG(names), g->tile_m, g->tile_n, g->tile_k, g->stages - 1,
               con_formats[g->format].note, through[g->tensor_path]);
}

/* Why class fp32 is in six products where the strategy has three. */
static void note_refused(struct con_writer *w) {
    const char *why = w->g.format == CON_BF16X6 && sheet_decision(w->sh, "split-parts", 3) == 2
                          ? con_refuse_parts(&w->g)
                          : NULL;
    if (why)
        sheet_note(w->sh, "  not in f16 parts: %s", why);
}

static void note_used(struct con_writer *w) {
    const struct con_config *g = &w->g;
    bool packed = false;
    for (size_t i = 0; i < w->c->noperands; i++)
        packed |= g->tile[i].packed;
    const struct used all[] = {
        {"tensor-path", g->tensor_path},
        {"tile-m", g->tile_m},
        {"tile-n", g->tile_n},
        {"tile-k", g->tile_k},
        {"stages", g->stages},
        {"split-k", g->split},
        {"pack", packed},
        {"skip", w->skips},
        {"split-parts", g->format == CON_F16X3 ? 2 : 3},
        {"warps", g->threads / 32},
    };
    sheet_used(w->sh, all, sizeof all / sizeof *all - (g->producers > 0));
}

static bool contraction_write(struct sheet *sh, const struct step *st) {
    struct contraction *c = arena_new_of(sh->mem, struct contraction);
    struct con_writer *w = arena_new_of(sh->mem, struct con_writer);
    if (!con_match_all(st->inst, sh->mem, c))
        return err_set(sh->err, ERR_INPUT, "task %.*s: a fold that was claimed does not match",
                       STR_ARG(st->inst->task->name));
    c->summed = st->summed;
    if (sheet_decision(sh, "skip", 0) && sheet_decision(sh, "tensor-path", 0) != 0)
        con_split_strided(c);
    con_lay_out(c);
    w->sh = sh;
    w->step = st;
    w->c = c;
    fix_extents(w);
    con_configure(sh, c, &w->g);
    note_tiles(w);
    note_refused(w);
    if (!con_kernels(w))
        return false;
    note_used(w);
    return true;
}

const struct family family_contraction = {
    .name = "contraction",
    .workload = WORKLOAD_CONTRACTION,
    .cute = true,
    .check = con_check_ranks,
    .facts = con_facts,
    .claim = contraction_claim,
    .write = contraction_write,
};
