/* What a judge answers; cpu_judge.c serves the messages. */
#ifndef EVAL_JUDGE_PRIVATE_H
#define EVAL_JUDGE_PRIVATE_H

#include "device/wire.h"
#include "eval/judge.h"
#include "spec/reference.h"

/* What a judge says about a batch: the first thing that is wrong, in words for the author, and of
 * every case before it how far off it was. The functions return false, as the check that found
 * something does. */
#define RULING_MOST 4096 /* cases */

struct ruling {
    struct wire_judged say; /* whole after ruling_end; what it refers to is here and in `mem` */
    char why[1024];
    size_t cases;      /* looked at so far; the last one is what the verdict is about */
    double worst, rms; /* of the case at hand, error over estimate */
    struct arena *mem;
};

void ruling_next(struct ruling *r);    /* the next case begins */
void ruling_forgive(struct ruling *r); /* takes back what was found */

bool rule(struct ruling *r, enum verdict v, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool rule_unwritten(struct ruling *r, const struct inst *in, size_t tensor, uint64_t n,
                    int64_t first);
bool rule_no_bool(struct ruling *r, const struct inst *in, size_t tensor, int64_t at,
                  unsigned byte);
/* True where the comparison passes. */
bool rule_values(struct ruling *r, const struct inst *in, size_t tensor,
                 const struct comparison *cmp);

#define JUDGE_MAX_BATCH 64 /* cases */

/* The seed that the parameters of a case are made from. */
static inline uint64_t judge_params(const struct job_case *c) {
    return c->has_params ? c->params : c->seed;
}

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
bool gpu_judge_start(int ordinal, unsigned threads, struct judge_ops *out, struct err *err);

#endif
