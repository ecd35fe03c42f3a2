/* Attention: what a chain of statements amounts to, however it is written. For this folder.
 *
 *     score  = sum(d) q[…, i, d] * k[…, j, d]          two reads of one 16-bit type
 *     weight = exp(F(score) - top)                      top: the largest F of the row, or nothing
 *     norm   = sum(j) weight
 *     mixed  = sum(j) weight * v[…, j, e]
 *     maps of mixed, of norm and of top                 what is stored
 *
 * The matcher brings every phrasing into one set of variables, the *canonical* ones: those of the
 * score's left side by their numbers, then `d`, then `e`. Every expression of `struct attention` is
 * in them. The sum of products, top, norm and mixed are *registers* of the kernel, whatever the
 * task calls them and whether it has them or not: reads that are like no other. The kernel's top is
 * the largest F, also where the task subtracts nothing or a logarithm of the sum: the factor
 * exp(top) that comes in has to cancel in all that is stored. */
#ifndef AGENT_EXPERT_ATTENTION_H
#define AGENT_EXPERT_ATTENTION_H

#include "agent/expert/sheet/pieces.h"

enum { ATTENTION_BOUNDS = 8, ATTENTION_STORES = 16 };

/* Which keys a query has: max(low) <= j < min(high), and the guard. */
struct keys {
    const struct expr *low[ATTENTION_BOUNDS], *high[ATTENTION_BOUNDS];
    size_t nlow, nhigh;
    struct expr *guard; /* what is no bound of j; NULL: nothing */
};
/* Takes the condition in. Comparisons that bound `key` become bounds, also through `key // W` and
 * abs(); everything else goes to the guard. False: more bounds than there is room for. */
bool interval_add(struct keys *v, const struct expr *condition, bool truth, size_t key,
                  struct arena *a);
bool interval_add_low(struct keys *v, const struct expr *e);
bool interval_add_high(struct keys *v, const struct expr *e);
bool interval_same(const struct keys *a, const struct keys *b);

struct attention {
    const struct inst *in;
    const struct statement *score;
    size_t rank;           /* variables of the score's left side */
    size_t row, key, d, e; /* canonical variables; row SIZE_MAX: one query a batch */
    const struct expr *q, *k, *v;
    const struct expr *size, *out_size;    /* of a head: of q and k, of v */
    const struct expr *nrows, *nkeys;      /* extents; nrows NULL without a row */
    struct expr *raw, *top, *norm, *mixed; /* registers */
    struct expr *f;                        /* F, in terms of raw */
    struct keys keys;
    /* Queries that share their keys and values: a tile may have several heads of a group. */
    size_t member;            /* the variable that counts them; SIZE_MAX: none */
    const struct expr *group; /* how many there are in a group */
    bool member_divides;      /* k and v are read at member // group, not without member */
    struct {
        const struct statement *s;
        struct expr *value;
        size_t var[TASK_MAX_RANK]; /* of the left side, as canonical ones */
        bool of_row;               /* without e */
        /* A variable of the left side that stands for its canonical one times `by` plus e;
         * SIZE_MAX: none. */
        size_t merged;
        const struct expr *by;
    } stores[ATTENTION_STORES];
    size_t nstores;
};

/* Whether statement `first` of the task is the scores of such a chain. take[nstatements]: the
 * statements of it. `done`: those of other steps that are computed, NULL: all. */
bool attention_match(const struct inst *in, size_t first, const bool *done, struct arena *a,
                     struct attention *out, bool *take);

/* The rows of an operand along `var`: what one step adds to the offset, as an expression over
 * dimensions; NULL: no constant. */
struct expr *attention_stride(const struct attention *m, const struct expr *read, size_t var,
                              struct arena *a);
/* F is the score times a positive constant: that constant, over dimensions; NULL: it is not. */
struct expr *attention_scale(const struct attention *m, struct arena *a);

/* Signed terms of a sum. */
enum { TERMS_MOST = 24 };
struct terms {
    const struct expr *e[TERMS_MOST];
    bool minus[TERMS_MOST];
    size_t n;
};
bool terms_of(const struct expr *e, bool minus, struct terms *out);
struct expr *terms_sum(const struct terms *t, struct arena *a);

#endif
