/* What a product is like, for openings, and the values that they leave to its shape. */
#include "agent/expert/contraction/contraction.h"
#include "agent/expert/plan/step_facts.h"
#include <string.h>

enum {
    GROUPS_SUM = 256, /* of k: less does not feed warp groups */
    TILE = 128,
    PART = 512,       /* of k: less is not worth a second kernel */
    COPY_LEAST = 288, /* rows that share a copy, so that it pays */
};
#define COPY_WORK  5e8 /* products that make up for the kernels that copy */
#define PARTS_WORK 1e9 /* … for those that look for tiles that f16 does not hold */

static bool match_all(const struct step *st, struct arena *a, struct contraction *c) {
    bool ok = con_match_all(st->inst, a, c);
    if (ok)
        con_lay_out(c);
    return ok;
}

static bool all_dense(const struct contraction *c) {
    bool dense = true;
    for (size_t i = 0; i < c->noperands; i++)
        dense &= c->operands[i].dense;
    return dense;
}

static size_t operand_bytes(const struct contraction *c, const struct con_operand *o) {
    return dtype_info(c->in->task->tensors[o->read->ref].dtype)->bytes;
}

static bool are_half(const struct contraction *c) {
    bool half = true;
    for (size_t i = 0; i < c->noperands; i++)
        half &= operand_bytes(c, &c->operands[i]) <= 2;
    return half;
}

/* f32 operands that no tensor core may round. */
static bool is_exact(const struct contraction *c) {
    return !are_half(c) && c->in->task->accuracy == ACCURACY_FP32;
}

/* On a copy: it is the coder's decision whether they are left out. */
static bool has_gaps(const struct contraction *c) {
    struct contraction *apart = arena_new_of(c->mem, struct contraction);
    *apart = *c;
    con_split_strided(apart);
    return apart->ntap_conditions > 0;
}

static double products(const struct contraction *c) {
    double work = 1;
    for (size_t i = 0; i < CON_AXES; i++)
        work *= (double)c->group[i].count;
    return work;
}

/* Class fp32 in f16 parts pays. */
static bool suits_parts(const struct contraction *c) {
    return is_exact(c) && c->group[CON_K].count >= GROUPS_SUM && products(c) >= PARTS_WORK;
}

/* Warp groups read rows along k of 16-bit numbers; anything else is copied first. Bytes are copied
 * for warps too. */
static bool suits_groups(const struct contraction *c) {
    double work = products(c);
    bool suits =
        all_dense(c) && c->group[CON_K].count >= GROUPS_SUM && (c->nfolds == 1 || !is_exact(c));
    for (size_t i = 0; i < c->noperands; i++) {
        const struct con_operand *o = &c->operands[i];
        enum con_axis other = o->side == CON_M ? CON_N : CON_M;
        suits &= (c->group[other].count >= COPY_LEAST && work >= COPY_WORK) ||
                 con_is_direct(c, o) || con_is_direct_across(c, o) || operand_bytes(c, o) == 1;
    }
    return suits;
}

static int64_t tile_for(int64_t count) {
    int64_t tile = 32;
    while (tile < TILE && tile < count)
        tile *= 2;
    return tile;
}

static int64_t parts_for(const struct briefing *b, const struct contraction *c,
                         const struct strategy *s) {
    bool groups = strategy_get(b->catalogue, s, "tensor-path") == 2;
    int64_t tile_m = strategy_get(b->catalogue, s, "tile-m"),
            tile_n = strategy_get(b->catalogue, s, "tile-n");
    int64_t blocks = c->group[CON_BATCH].count * ((c->group[CON_M].count + tile_m - 1) / tile_m) *
                     ((c->group[CON_N].count + tile_n - 1) / tile_n);
    int64_t held = groups ? 1 : TILE * TILE / (tile_m * tile_n), parts = 1; /* held: by an SM */
    while (parts < 64 && 2 * parts * blocks <= held * b->gpu->sms &&
           2 * parts * PART <= c->group[CON_K].count)
        parts *= 2;
    return parts;
}

int64_t contraction_fitting(const struct briefing *b, const struct step *st,
                            const struct strategy *s, const char *decision) {
    struct arena *a = arena_new((size_t)16 << 20);
    struct contraction *c = arena_new_of(a, struct contraction);
    bool matched = match_all(st, a, c);
    BUG_IF(!matched);
    int64_t v = strcmp(decision, "tile-m") == 0        ? tile_for(c->group[CON_M].count)
                : strcmp(decision, "tile-n") == 0      ? tile_for(c->group[CON_N].count)
                : strcmp(decision, "tile-k") == 0      ? (are_half(c) ? 64 : 32)
                : strcmp(decision, "split-parts") == 0 ? (suits_parts(c) ? 2 : 3)
                                                       : parts_for(b, c, s);
    arena_free(a);
    return v;
}

bool con_facts(const struct briefing *b, const struct step *st, struct step_facts *out) {
    struct arena *a = arena_new((size_t)16 << 20);
    struct contraction *c = arena_new_of(a, struct contraction);
    bool matched = match_all(st, a, c);
    if (matched) {
        int64_t m = c->group[CON_M].count, n = c->group[CON_N].count, sms = b->gpu->sms;
        int64_t batch = c->group[CON_BATCH].count;
        int64_t tiles = batch * ((m + TILE - 1) / TILE) * ((n + TILE - 1) / TILE);
        out->value[STEP_BOUNDED] = c->k_lo || c->k_hi;
        out->value[STEP_GAPS] = has_gaps(c);
        out->value[STEP_GROUPS] = suits_groups(c);
        out->value[STEP_DENSE] = all_dense(c);
        out->value[STEP_EXACT] = is_exact(c);
        out->value[STEP_RESULTS] = (int64_t)c->nfolds;
        out->value[STEP_BATCH] = batch;
        out->value[STEP_SIDE_N] = n;
        out->value[STEP_SIDE_K] = c->group[CON_K].count;
        out->value[STEP_LEAST] = m < n ? m : n;
        out->value[STEP_TILES_PER_SM] = tiles / sms;
        out->value[STEP_SMS_PER_TILE] = sms / tiles;
    }
    arena_free(a);
    return matched;
}
