/* Agents: who plans and who writes. One interface of roles, several implementations; the search
 * does not know which it drives. The expert answers from rules and code generators. An answer comes
 * through a callback, exactly once, possibly before the call returns. Agents know nothing of
 * archives; what they need of history is handed to them. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "base/json.h"
#include "eval/outcome.h"
#include "strategy/strategy.h"
#include "target/gpu.h"

struct parent { /* a strategy that was tried */
    struct strategy strategy;
    double time_s;      /* INFINITY: not accepted */
    uint64_t candidate; /* its number in the run */
};

/* A strategy that was tried in this run, for the crossover role, or on another task before. */
struct tried {
    struct strategy strategy; /* as its code has it */
    double time_s; /* INFINITY: not accepted. Of history: relative, 1 is the best of its run */
    str where;     /* its time goes, on one line, or of history: which task that was; empty: not to
                      be told */
    const struct strategy *asked; /* what it was written for; NULL: the same */
};

struct sibling { /* a child that is asked for at the same moment */
    struct parent x, y;
};

#define NO_CANDIDATE UINT64_MAX
#define NO_BUDGET    UINT64_MAX

/* How far the run may still go, for those who plan what to spend it on. */
struct outlook {
    uint64_t candidates; /* that the budget has left, repairs among them; NO_BUDGET: no such end */
    size_t stale;        /* rounds, or generations, without gain until it ends; 0: not told */
};

/* What every role is told. */
struct briefing {
    const struct inst *inst;
    const struct catalogue *catalogue;
    const struct gpu *gpu;
    struct features features;
    struct roofline roofline;
    struct ground ground;
    bool blind;                  /* planners are not to go by the roofline (--roofline off) */
    const struct tried *history; /* what did well on tasks like this one, the most alike first */
    size_t nhistory;
    bool in_turn; /* planner: one strategy is written; the next where that does not get right */
    const struct tried *tried; /* crossover: what a child must differ from */
    size_t ntried;
    const struct sibling *siblings; /* crossover: all that are asked for together, … */
    size_t nsiblings, place;        /* … and which of them this one is */
    bool by_rule;                   /* … of which some are made by rule, without directions */
    struct outlook outlook;
    uint64_t candidate; /* whose making is asked for, for accounts; NO_CANDIDATE: no single one's */
};
/* All of it, from the first three; no history, and no end in sight. */
bool briefing_make(const struct inst *inst, const struct catalogue *c, const struct gpu *gpu,
                   struct briefing *out, struct err *err);

/* What the task is a matter of on this GPU, by its roofline. */
enum regime briefing_regime(const struct briefing *b);
/* The least time that a kernel can have. The simulator's estimates have a launch in them, which the
 * roofline's limit has not. */
double briefing_floor(const struct briefing *b, bool estimated);

struct attempt { /* a candidate that was tried, for the roles that go on from it */
    const struct strategy *strategy;
    str source;
    const struct outcome *outcome;
    size_t repairs; /* debugger: how many may follow this one */
};

/* Optimization goes from the coarse to the fine. */
enum stage { STAGE_STRUCTURE, STAGE_DETAILS, STAGE_PARAMETERS, STAGE_COUNT };
const char *stage_name(enum stage s);
struct guidance {
    enum stage stage;
    bool facts;    /* profile facts may be shown */
    str tried;     /* what was tried and how it ended, a line each; empty: nothing yet */
    size_t rounds; /* without gain until the stage ends; … */
    bool spent;    /* … candidates, whatever they gain: its share of the budget ends before */
    double gain;   /* the least share of the time that counts as one */
};

/* An err tells the search how to go on. ERR_NO: the agent cannot answer any more (its means are
 * used up, or who answers for it is gone); the run ends, and may be resumed. Any other: this one
 * cannot be written; another may. */

/* Reasons are short sentences that are recorded with the candidate. */
typedef void agent_plan_fn(void *ctx, const struct strategy *s, size_t n, str reason,
                           const struct err *err);
/* written: the strategy with what shape and hardware made of its decisions when it was written. */
typedef void agent_code_fn(void *ctx, str source, const struct strategy *written,
                           const struct err *err);
typedef void agent_edit_fn(void *ctx, str source, str idea, const struct err *err);

struct agent {
    const char *name; /* "expert" */
    void *self;
    /* planner: `n` strategies for a first generation, best guess first, the fallback among them. */
    void (*plan)(void *self, const struct briefing *b, size_t n, struct rng r, agent_plan_fn *done,
                 void *ctx);
    /* crossover: a child of two parents. */
    void (*cross)(void *self, const struct briefing *b, const struct parent *x,
                  const struct parent *y, struct rng r, agent_plan_fn *done, void *ctx);
    /* coder: strategy to candidate source. err where the strategy cannot be written. */
    void (*code)(void *self, const struct briefing *b, const struct strategy *s,
                 agent_code_fn *done, void *ctx);
    /* aligner: the strategy as the compiled code has it, and what was corrected. `written` is the
     * coder's answer, `record` the candidate's, of an accepted one. */
    void (*align)(void *self, const struct briefing *b, const struct strategy *s,
                  const struct strategy *written, const struct record *record, agent_plan_fn *done,
                  void *ctx);
    void (*release)(void *self);
    /* What the author of a source wrote beyond the strategy, for the candidate's record; in the
     * arena. NULL: there never is anything. */
    str (*remarks)(void *self, const char *source_hash, struct arena *a);
    /* The two below may be NULL: what the agent writes is right at once, or not at all.
     * debugger: a rejected candidate repaired. `earlier`: what repairs of it were tried. */
    void (*debug)(void *self, const struct briefing *b, const struct attempt *a, str earlier,
                  agent_edit_fn *done, void *ctx);
    /* optimizer: an accepted candidate improved. An empty source: nothing of the stage is left that
     * should gain; the idea says why. */
    void (*improve)(void *self, const struct briefing *b, const struct attempt *a,
                    const struct guidance *g, agent_edit_fn *done, void *ctx);
};

/* The strategy as the compiled code of a candidate's record has it, by rule and without asking
 * anybody; reason: what was corrected. */
void aligner_align(const struct briefing *b, const struct strategy *s, const struct record *record,
                   struct strategy *out, struct buf *reason);

/* assets: folder that overrides the embedded ones, or NULL. */
bool expert_new(const char *assets, struct agent *out, struct err *err);

#endif
