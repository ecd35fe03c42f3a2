/* Two clocks on the same two instants. */
#include "device/cuda_time.h"

#include <time.h>

/* Queueing a step takes the host 2 to 5 microseconds, some of which pass during the flush. */
#define HOLD_NS      5000
#define HOLD_STEP_NS 5000

static double host_now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool cuda_timer_init(const struct cuda *c, struct cuda_timer *t, struct err *err) {
    return cuda_try(c, c->event_create(&t->start, CU_EVENT_DEFAULT), err, "an event") &&
           cuda_try(c, c->event_create(&t->stop, CU_EVENT_DEFAULT), err, "an event");
}

int cuda_timer_start(const struct cuda *c, struct harness *h, const struct cuda_timer *t,
                     size_t steps) {
    int code = c->facts.persisting_l2_bytes ? c->reset_persisting_l2() : CU_OK;
    if (code == CU_OK)
        code = harness_flush(c, h);
    if (code == CU_OK)
        code = harness_hold(c, h, HOLD_NS + HOLD_STEP_NS * (uint32_t)steps);
    return code == CU_OK ? c->event_record(t->start, c->stream) : code;
}

int cuda_timer_stop(const struct cuda *c, const struct cuda_timer *t, double *device_s,
                    double *host_s) {
    float ms = 0;
    int code = c->event_record(t->stop, c->stream);
    if (code != CU_OK)
        return code;
    do
        code = c->event_query(t->start);
    while (code == CU_NOT_READY);
    double from = host_now_s();
    if (code == CU_OK)
        code = c->event_sync(t->stop);
    *host_s = host_now_s() - from;
    if (code == CU_OK)
        code = c->event_elapsed(&ms, t->start, t->stop);
    *device_s = 1e-3 * (double)ms;
    return code;
}
