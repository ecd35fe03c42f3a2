/* The time of one run on a GPU. Nothing of an earlier run is left to gain from, and the host is
 * ahead of the device when the clock starts:
 *
 *     persisting L2 lines reset | L2 flushed | stream held | start | the plan's steps | stop
 *
 * `start` and `stop` are events on the device's own clock. The host's clock watches the same two
 * instants: it polls the first event and waits for the second, so the two times agree to within the
 * latency of looking. A candidate cannot touch either clock; that they agree is checked all the
 * same (eval/record.c), by their medians, since the host may be put to sleep in any one run. */
#ifndef DEVICE_CUDA_TIME_H
#define DEVICE_CUDA_TIME_H

#include "device/harness.h"

struct cuda_timer {
    cu_event start, stop;
};

bool cuda_timer_init(const struct cuda *c, struct cuda_timer *t, struct err *err);
/* Up to and with `start`; `steps` are about to be queued. */
int cuda_timer_start(const struct cuda *c, struct harness *h, const struct cuda_timer *t,
                     size_t steps);
/* Queues `stop`, waits for it. */
int cuda_timer_stop(const struct cuda *c, const struct cuda_timer *t, double *device_s,
                    double *host_s);

#endif
