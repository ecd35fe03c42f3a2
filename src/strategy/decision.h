/* One file of assets/strategies/: the text of a decision (its README is the manual). Private to the
 * room; the fuzzer and the tests use it too. */
#ifndef STRATEGY_DECISION_H
#define STRATEGY_DECISION_H

#include "strategy/strategy.h"

#define DECISION_MAX_BYTES  (64u << 10)
#define DECISION_MAX_VALUES 64

/* `name` is the file's name without folder and ending; `file` is for messages. What `out` points to
 * lives in the arena, copied from the text. */
bool decision_parse(str file, str name, str text, struct arena *a, struct decision *out,
                    struct err *err);
const char *regime_name(enum regime r);

#endif
