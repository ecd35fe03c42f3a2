/* What a judge answers; judge.c serves the messages. */
#ifndef EVAL_JUDGE_PRIVATE_H
#define EVAL_JUDGE_PRIVATE_H

#include "base/frame.h"
#include "eval/judge.h"

#define JUDGE_MAX_BATCH 64 /* cases */

struct judge_ops {
    void *ctx;
    bool (*task)(void *ctx, const struct frame *f, struct err *err);
    bool (*prepare)(void *ctx, const json *head, json *out, struct err *err); /* sends buffers */
    bool (*compare)(void *ctx, json *out, struct err *err);
    bool (*dump)(void *ctx, json *out, struct buf *blob, struct err *err);
    /* Of a shape too large for cases: WIRE_PARTS. NULL where everything is run whole. */
    bool (*parts)(void *ctx, const struct frame *f, json *out, struct err *err);
};

/* Sandboxed, hello said, ready to serve. */
bool cpu_judge_start(unsigned threads, struct judge_ops *out, struct err *err);
bool gpu_judge_start(int ordinal, struct judge_ops *out, struct err *err);

#endif
