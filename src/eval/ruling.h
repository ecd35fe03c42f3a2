/* What a judge says about a batch: the first thing that is wrong, in words for the author, and of
 * every case before it how far off it was. The functions return false, as the check that found
 * something does. */
#ifndef EVAL_RULING_H
#define EVAL_RULING_H

#include "device/wire.h"
#include "spec/reference.h"

#define RULING_MOST 4096 /* cases */

struct ruling {
    struct wire_judged say; /* whole after ruling_end; what it refers to is here and in `mem` */
    char why[1024];
    size_t cases;      /* looked at so far; the last one is what the verdict is about */
    double worst, rms; /* of the case at hand, error over estimate */
    struct arena *mem;
};

void ruling_init(struct ruling *r, struct arena *mem);
void ruling_next(struct ruling *r);    /* the next case begins */
void ruling_forgive(struct ruling *r); /* takes back what was found */
void ruling_end(struct ruling *r);

bool rule(struct ruling *r, enum verdict v, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool rule_unwritten(struct ruling *r, const struct inst *in, size_t tensor, uint64_t n,
                    int64_t first);
bool rule_no_bool(struct ruling *r, const struct inst *in, size_t tensor, int64_t at,
                  unsigned byte);
/* True where the comparison passes. */
bool rule_values(struct ruling *r, const struct inst *in, size_t tensor,
                 const struct comparison *cmp);

#endif
