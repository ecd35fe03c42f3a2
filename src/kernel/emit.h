/* Expressions as CUDA text, for the generators: one statement's body, for one element. Functions
 * are spelled so that the class fp32 accepts the result; NaN goes through maximum and minimum as
 * PyTorch has it. Literals carry all the digits that fp32 needs. Reductions and padded reads are
 * loops and branches of the generator's own making and are refused. */
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
};
bool emit_expr(const struct task *t, const struct expr *e, const struct emit_names *names,
               struct buf *out, struct err *err);
/* Device helper functions the emitted text may call (only those used by the expression). */
void emit_helpers(const struct task *t, const struct expr *e, struct buf *out);

#endif
