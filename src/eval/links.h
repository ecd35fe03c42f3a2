/* The evaluator's workers: started, watched, replaced. Each has a place: a command before
 * `worker …`, which may lead to another machine, and a device there. A worker has one job at a time
 * or, where it is the only one, the next one too, so that it does not wait for us in between.
 *
 * One that dies is started again, and its job given to whoever is free. One that fails MAX_STARTS
 * times in a row before its hello (no hello in time, no frames, an end) is tried again only now and
 * then, as long as another works; one that is of another version, or has another GPU, is left out.
 * Each of these is said once, with the place and the end of what the command printed on stderr.
 * When no worker is left, `broken` is called. What a worker prints after its hello is passed on, up
 * to a limit. Nothing is sent before the task is set, which every worker hears of first. */
#ifndef EVAL_LINKS_H
#define EVAL_LINKS_H

#include "base/frame.h"
#include "device/role.h"

#define LINKS_HELLO_MS 120000 /* a device has WORKER_START_MS, a login and a queue the rest */

struct links;

/* Where an answer comes from; borrowed. */
struct worker_where {
    str node; /* the machine's name; empty: it did not say */
    str gpu;  /* the GPU's name and UUID; empty on the simulator */
};

struct links_events {
    void *ctx;
    void (*idle)(void *ctx); /* a worker takes a job */
    void (*result)(void *ctx, void *job, const struct worker_where *where,
                   const json *head);                            /* WIRE_RESULT, _CEILED */
    void (*dumped)(void *ctx, void *job, const struct frame *f); /* WIRE_DUMPED; NULL: ignored */
    void (*lost)(void *ctx, void *job, str why); /* worker died or failed: job is not done */
    void (*not_started)(void *ctx, void *job);   /* it died on the previous job; called first */
    void (*broken)(void *ctx, const struct err *why); /* no worker can be had; once */
    /* Whether a worker that says this hello will do; NULL: any of this version. */
    bool (*fits)(void *ctx, const json *hello, struct err *why);
};

struct links_options {
    const struct worker_place *places; /* workers take turns */
    size_t nplaces;
    unsigned workers;
    unsigned threads;  /* of a device */
    unsigned hello_ms; /* 0: LINKS_HELLO_MS */
};

struct links *links_new(struct loop *l, const struct links_options *o,
                        const struct links_events *ev, struct err *err);
void links_free(struct links *s);       /* kills them; a process that does not die is left behind */
bool links_idle(const struct links *s); /* some worker takes a job */
/* The WIRE_TASK; head is taken, the blob copied. */
void links_set_task(struct links *s, json *head, str blob);
/* The jobs in hand are forgotten; workers that have one are replaced. */
void links_abandon(struct links *s);
/* Gives the job (WIRE_JOB, WIRE_CEILINGS) to such a worker; false when there is none. head: a JSON
 * object, whose "job" is links_next. */
bool links_send(struct links *s, uint32_t type, void *job, str head, str blob);
int64_t links_next(const struct links *s); /* the number of the job that is sent next */

#endif
