/* The agents of a run, from the command line: who plans and who writes (--agents), in which way
 * (--workflow), and what the roles are told. Owns the agents and the provider behind them. */
#ifndef UI_AGENTS_H
#define UI_AGENTS_H

#include "agent/llm/llm.h"
#include "search/search.h"
#include "ui/ui.h"

struct agents {
    struct agent expert, llm, hybrid;
    struct provider provider, archived;
    struct agent *chosen; /* one of the three; NULL before agents_open */
    bool refine;          /* the workflow; evolve otherwise */
    struct refine_options refine_options;
};

/* What the options say, and whether they fit together; nothing is started. */
bool agents_read(struct agents *a, struct ui *ui, struct err *err);
/* Adds what makes two runs the same one, beyond the expert's. */
void agents_fingerprint(const struct agents *a, struct ui *ui, const struct evaluator_options *eo,
                        json *out);
/* Does the expert write the kernel with every decision at its default? Then that is the naive one;
 * a model's may be anything. */
bool agents_expert_first(const struct ui *ui);
/* Where a model alone writes, and writes CuTe, strategies say so. */
void agents_ask_dialect(struct ui *ui, const struct evaluator_options *eo, struct briefing *b);
/* Opens the provider, where one is needed: model, key and price are looked at, and nobody is asked.
 * Before the run has a folder, so that an option that is wrong leaves none. */
bool agents_connect(struct agents *a, struct ui *ui, struct loop *l, llm_notice_fn *notice,
                    void *notice_ctx, struct err *err);
/* What agents are made for. Everything outlives them. */
struct agents_ground {
    const struct briefing *briefing;
    const struct evaluator_options *eo;
    struct archive *archive;
};
/* After agents_connect. */
bool agents_open(struct agents *a, struct ui *ui, const struct agents_ground *g, struct err *err);
/* What the model was asked and what it cost; NULL without one. Owned by the caller. */
json *agents_account(const struct agents *a);
void agents_release(struct agents *a);

#endif
