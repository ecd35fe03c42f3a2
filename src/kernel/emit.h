/* Expressions as CUDA text, for the generators: one statement's body, for one element. Functions
 * are spelled so that the class fp32 accepts the result; NaN goes through maximum and minimum as
 * PyTorch has it. Literals carry all the digits that fp32 needs. Reductions are loops of the
 * generator's own making and are refused; padded reads are written by the generator, or refused. */
#ifndef KERNEL_EMIT_H
#define KERNEL_EMIT_H

#include "spec/task.h"

/* How the generator names what an expression refers to. */
struct emit_names {
    void *ctx;
    /* Text of a tensor read at this node, e.g. "x4.y" or "bias[j]". */
    void (*read)(void *ctx, const struct expr *e, struct buf *out);
    void (*index)(void *ctx, size_t variable, struct buf *out);
    void (*dim)(void *ctx, size_t dimension, struct buf *out);
    /* What follows may be absent. */
    /* A padded read, as a primary. Absent: refused. */
    void (*pad)(void *ctx, const struct expr *e, struct buf *out);
    /* The text of a value that stands somewhere already, as a primary; empty: it does not. */
    str (*held)(void *ctx, const struct expr *e);
    /* Whether an integer expression and all its parts fit an int. Leaves of those that do not are
     * widened to long long. Absent: nothing is widened. */
    bool (*narrow)(void *ctx, const struct expr *e);
    /* Whether a division (or remainder) of integers has a numerator that is never negative and a
     * positive divisor: then C's own is the same. Absent: none has. */
    bool (*plain_division)(void *ctx, const struct expr *e);
    bool fast;         /* approximate special functions, those that class fp32 accepts */
    uint64_t *helpers; /* the helper functions called are added; see emit_helper */
};
bool emit_expr(const struct task *t, const struct expr *e, const struct emit_names *names,
               struct buf *out, struct err *err);

/* The bit of the helper cp_NAME ("maximum", "quotient", …), and the text of several. */
uint64_t emit_helper(const char *name);
void emit_helper_texts(uint64_t helpers, struct buf *out);
/* A number as an fp32 literal. */
void emit_float(double number, struct buf *out);

#endif
