/* What the expert tries first: assets/openings/FAMILY.openings, tables of kinds of steps and of a
 * few settings for each, best guess first, with their reasons (its README is the manual). The
 * planner makes strategies of them. Private to the room; the fuzzer and the tests use it too. */
#ifndef AGENT_EXPERT_OPENINGS_H
#define AGENT_EXPERT_OPENINGS_H

#include "agent/expert/plan/step_facts.h"

#define OPENINGS_MAX_BYTES (64u << 10)

struct opening_value {
    const char *decision;
    bool open; /* a `*`: the shape decides */
    int64_t number;
};
enum { OPENING_VALUES = 16 };
struct opening {
    str kind, why;
    struct opening_value values[OPENING_VALUES];
    size_t nvalues;
};
struct opening_kind {
    str name;
    struct condition all[RULE_MAX_CONDITIONS]; /* `which` is a step_fact */
    size_t n;
};
struct openings {
    const char *family;
    struct opening_kind *kinds; /* a step is of the first whose conditions hold */
    struct opening *at;         /* in order of the file */
    size_t nkinds, n;
};
/* `text` and what `out` points to live in the arena. */
bool openings_parse(str file, const char *family, str text, const struct catalogue *c,
                    struct arena *a, struct openings *out, struct err *err);

/* The tables of all families. */
struct opening_book {
    struct openings *tables;
    size_t n;
};
bool openings_load(const char *assets, struct arena *a, struct opening_book *out, struct err *err);
/* The openings of the step's kind that the GPU can have, best first, `max` at the most. */
size_t openings_of(const struct opening_book *book, const struct briefing *b, const struct step *st,
                   enum regime regime, const struct opening **out, size_t max);
/* Its values put into the strategy. */
void opening_put(const struct briefing *b, const struct step *st, const struct opening *o,
                 struct strategy *s);

#endif
