/* What a step is like, for those who choose its strategy: facts by name, which the conditions of
 * assets/openings ask for. A family finds its own from the step alone, and writes nothing. */
#ifndef AGENT_EXPERT_STEP_FACTS_H
#define AGENT_EXPERT_STEP_FACTS_H

#include "agent/expert/sheet/sheet.h"

enum step_fact {
#define STEP_FACT(family, id, name, what) STEP_##id,
#include "agent/expert/plan/step_facts.def"
#undef STEP_FACT
    STEP_FACTS
};
struct step_facts {
    int64_t value[STEP_FACTS];
};

/* A value of a product that an opening leaves to the shape: of tile-m and tile-n the least that
 * covers the side, at most 128; of tile-k rows of 128 bytes; of split-k the parts that give every
 * SM its blocks, unless sums become too short, for the path and the tiles that the strategy has
 * already. */
int64_t contraction_fitting(const struct briefing *b, const struct step *st,
                            const struct strategy *s, const char *decision);

#endif
