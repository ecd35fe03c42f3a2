/* What the expert tries first: for each family and regime of the roofline a few settings, best
 * guess first, each with its reason. Knowledge only; the planner makes strategies of it. Private to
 * the room. */
#ifndef AGENT_EXPERT_OPENINGS_H
#define AGENT_EXPERT_OPENINGS_H

#include "agent/expert/sheet/sheet.h"

struct opening {
    const char *family;
    unsigned regimes;                                              /* bits; 0: any */
    bool (*when)(const struct briefing *b, const struct step *st); /* NULL: always */
    /* "items=2 block=256"; `vector-width=*`: 16 bytes of its largest tensor; tiles and split-k with
     * a `*`: contraction_fitting. */
    const char *values;
    const char *why;
};
/* The i-th opening of a step's family that fits it and the GPU; NULL: there are no more. */
const struct opening *opening_of(const struct briefing *b, const struct step *st,
                                 enum regime regime, size_t i);
/* Its values put into the strategy. What the catalogue does not have is left out. */
void opening_put(const struct briefing *b, const struct step *st, const struct opening *o,
                 struct strategy *s);

#endif
