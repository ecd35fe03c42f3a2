/* `evolve` with agents that take their time: a population of strategies, generation by generation
 * (cuPilot's way). Planner and crossover reason about strategies, the coder translates them, the
 * debugger repairs what is rejected, the aligner rewrites strategies to what became of them.
 *
 * A generation goes through these roles phase by phase; within a phase all questions are in flight
 * at once, and what has been written is evaluated while the rest is still being written. Questions
 * are asked and results taken in order of their slots, whatever comes back first, so the run is a
 * deterministic function of its seed, the agent's answers and the outcomes, and resumes by replay.
 * (search.h's own driver asks one question at a time: right for an expert that answers at once,
 * slow for a model.) */
#ifndef SEARCH_GENERATIONS_H
#define SEARCH_GENERATIONS_H

#include "search/search.h"

/* The agent has the role debugger. */
bool search_generations(struct loop *l, const struct search_options *o,
                        const struct evaluator_options *eo, struct arena *a,
                        struct search_best *out, struct err *err);

#endif
