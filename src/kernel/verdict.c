/* The names and meanings of verdict.def as tables. */
#include "kernel/verdict.h"

#include "base/err.h"

static const struct {
    const char *name, *meaning;
} verdicts[VERDICT_COUNT] = {
#define VERDICT(id, name, what) [VERDICT_##id] = {name, what},
#include "kernel/verdict.def"
#undef VERDICT
};

const char *verdict_name(enum verdict v) {
    BUG_IF((unsigned)v >= VERDICT_COUNT);
    return verdicts[v].name;
}

const char *verdict_meaning(enum verdict v) {
    BUG_IF((unsigned)v >= VERDICT_COUNT);
    return verdicts[v].meaning;
}

bool verdict_find(str name, enum verdict *out) {
    for (int v = 0; v < VERDICT_COUNT; v++)
        if (str_is(name, verdicts[v].name)) {
            *out = (enum verdict)v;
            return true;
        }
    return false;
}
