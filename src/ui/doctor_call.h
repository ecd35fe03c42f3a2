/* doctor's test of a model provider: one tiny call. */
#ifndef UI_DOCTOR_CALL_H
#define UI_DOCTOR_CALL_H

#include "agent/llm/provider.h"

/* `found`: who answered what, how fast, at what cost. */
bool doctor_call(const struct provider_options *o, char *found, size_t n, struct err *err);

#endif
