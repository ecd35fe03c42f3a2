/* What a judge answers; judge.c serves the messages. */
#ifndef EVAL_JUDGE_PRIVATE_H
#define EVAL_JUDGE_PRIVATE_H

#include "device/wire.h"
#include "eval/judge.h"
#include "eval/ruling.h"

#define JUDGE_MAX_BATCH 64 /* cases */

/* What answers refer to is in the arena, which is as long as the message. */
struct judge_ops {
    void *ctx;
    bool (*task)(void *ctx, const struct wire_task *m, str cubins, struct err *err);
    bool (*prepare)(void *ctx, const struct wire_prepare *m, struct arena *a,
                    struct wire_cases *out, struct err *err); /* sends buffers */
    bool (*compare)(void *ctx, struct ruling *r, struct err *err);
    bool (*dump)(void *ctx, struct buf *blob, struct err *err);
    /* Of a shape too large for cases. NULL where everything is run whole. */
    bool (*parts)(void *ctx, const struct wire_parts *m, str contents, struct ruling *r,
                  struct err *err);
};

/* Sandboxed, hello said, ready to serve. */
bool cpu_judge_start(unsigned threads, struct judge_ops *out, struct err *err);
bool gpu_judge_start(int ordinal, struct judge_ops *out, struct err *err);

#endif
