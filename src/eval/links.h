/* The evaluator's workers: started, watched, replaced. A worker has one job at a time or, where it
 * is the only one, the next one too, so that it does not wait for us in between. One that dies with
 * a job in hand is started again and the job given to whoever is free; one that never says hello is
 * an environment that does not work. Nothing is sent before the task is set,
 * which every worker hears of first. */
#ifndef EVAL_LINKS_H
#define EVAL_LINKS_H

#include "base/frame.h"
#include "device/role.h"

struct links;

struct links_events {
    void *ctx;
    void (*idle)(void *ctx);                                /* a worker takes a job */
    void (*result)(void *ctx, void *job, const json *head); /* the job's WIRE_RESULT, _CEILED */
    void (*dumped)(void *ctx, void *job, const struct frame *f); /* WIRE_DUMPED; NULL: ignored */
    void (*lost)(void *ctx, void *job, str why);      /* worker died or failed: job is not done */
    void (*unbegun)(void *ctx, void *job);            /* …died over the one before; told first */
    void (*broken)(void *ctx, const struct err *why); /* no worker can be had; once */
};

/* commands: prefixes before `worker …`, NULL-terminated, of which workers take turns; NULL:
 * ourselves. */
struct links *links_new(struct loop *l, const struct device_name *d, unsigned n, unsigned threads,
                        const char *const *const *commands, const struct links_events *ev,
                        struct err *err);
void links_free(struct links *s);       /* kills them */
bool links_idle(const struct links *s); /* some worker takes a job */
/* The WIRE_TASK; head is taken, the blob copied. */
void links_set_task(struct links *s, json *head, str blob);
/* Gives the job (WIRE_JOB, WIRE_CEILINGS) to such a worker; false when there is none. head's "job"
 * is set here. */
bool links_send(struct links *s, uint32_t type, void *job, json *head, str blob);

#endif
