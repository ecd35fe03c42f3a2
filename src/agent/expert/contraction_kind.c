#include "agent/expert/contraction_kind.h"
#include "agent/expert/contraction.h"

enum { WIDE_LEAST = 256, EXACT_SUM = 32, TILE = 128, LONG_SUM = 1024 };

static bool match_all(const struct step *st, struct arena *a, struct contraction *c) {
    const struct task *t = st->inst->task;
    bool first = true;
    for (size_t i = 0; i < t->nstatements; i++) {
        if (!form_is_fold(&t->statements[i]))
            continue;
        if (!(first ? contraction_match(st->inst, &t->statements[i], a, c)
                    : contraction_add(c, &t->statements[i])))
            return false;
        first = false;
    }
    if (!first)
        contraction_settle(c);
    return !first;
}

static bool all_dense(const struct contraction *c) {
    bool dense = true;
    for (size_t i = 0; i < c->noperands; i++)
        dense &= c->operands[i].dense;
    return dense;
}

/* f32 operands that no tensor core may round. */
static bool is_exact(const struct contraction *c) {
    const struct task *t = c->in->task;
    bool half = true;
    for (size_t i = 0; i < c->noperands; i++)
        half &= dtype_info(t->tensors[c->operands[i].read->ref].dtype)->bytes <= 2;
    return !half && t->accuracy == ACCURACY_FP32;
}

/* On a copy: it is the coder's decision whether they are left out. */
static bool has_gaps(const struct contraction *c) {
    struct contraction *apart = arena_new_of(c->mem, struct contraction);
    *apart = *c;
    contraction_phase(apart);
    return apart->nhits > 0;
}

static enum contraction_kind kind_of(const struct briefing *b, const struct contraction *c) {
    int64_t m = c->group[CON_M].count, n = c->group[CON_N].count, k = c->group[CON_K].count,
            batch = c->group[CON_BATCH].count, least = m < n ? m : n;
    int64_t tiles = batch * ((m + TILE - 1) / TILE) * ((n + TILE - 1) / TILE);
    if (c->k_lo || c->k_hi)
        return CONTRACTION_TRIANGLE;
    if (has_gaps(c))
        return least <= 32 ? CONTRACTION_GAPS_THIN : CONTRACTION_GAPS;
    if (tiles < b->gpu->sms && k > LONG_SUM && batch == 1)
        return CONTRACTION_SPLIT;
    bool wide = least >= WIDE_LEAST && all_dense(c);
    if (wide && k >= WIDE_LEAST && !is_exact(c))
        return c->nfolds > 1 ? CONTRACTION_PAIR : CONTRACTION_WIDE;
    if (wide && k >= EXACT_SUM && c->nfolds == 1 && is_exact(c))
        return CONTRACTION_EXACT;
    if (least <= 32)
        return CONTRACTION_THIN;
    if (least <= 64)
        return CONTRACTION_HALF;
    return tiles >= 2 * b->gpu->sms ? CONTRACTION_LARGE : CONTRACTION_SMALL;
}

enum contraction_kind contraction_kind_of(const struct briefing *b, const struct step *st) {
    struct arena *a = arena_new((size_t)16 << 20);
    struct contraction *c = arena_new_of(a, struct contraction);
    enum contraction_kind kind = match_all(st, a, c) ? kind_of(b, c) : CONTRACTION_NONE;
    arena_free(a);
    return kind;
}
