/* Prompts: what each role is told, from the files of assets/prompts/. A prompt has a system part,
 * the same for all requests of a kind, and a user part about the task at hand. What a role does not
 * need is not in it: strategists see no code form, writers no catalogue, facts come by stage. */
#ifndef AGENT_LLM_PROMPT_H
#define AGENT_LLM_PROMPT_H

#include "agent/llm/notebook.h"

#define PROMPT_MAX (1u << 20)

struct prompt_options {
    const char *assets; /* folder that overrides the embedded ones, or NULL */
    bool cute;          /* kernels are written in CuTe */
};

struct prompt {
    str system, user;   /* in the arena */
    bool remarks_count; /* of strategies that it asks for, those behind `#` are a difference */
};

struct prompter {
    const struct prompt_options *o;
    const struct briefing *b;
    struct arena *mem;
    const struct notebook *notes; /* what strategists said about strategies; NULL: nothing */
};

/* fallback: the strategy with every decision at its default is tried beside the n. */
bool prompt_planner(const struct prompter *p, size_t n, bool fallback, struct prompt *out,
                    struct err *err);
bool prompt_crossover(const struct prompter *p, const struct parent *x, const struct parent *y,
                      struct prompt *out, struct err *err);
struct aligning {
    const struct strategy *strategy;
    str source;
    str instead; /* what its author says; empty: nothing */
    str against; /* what the compiled code contradicts; empty: nothing */
};
bool prompt_aligner(const struct prompter *p, const struct aligning *a, struct prompt *out,
                    struct err *err);
/* parents: two kernels to write one from, when crossover is one of code; or NULL. */
bool prompt_coder(const struct prompter *p, const struct strategy *s,
                  const struct notebook_parent *parents, struct prompt *out, struct err *err);
bool prompt_debugger(const struct prompter *p, const struct attempt *a, str earlier,
                     struct prompt *out, struct err *err);
bool prompt_optimizer(const struct prompter *p, const struct attempt *a, const struct guidance *g,
                      struct prompt *out, struct err *err);
/* The prompt again, with what was wrong with the reply. */
bool prompt_again(const struct prompter *p, const struct prompt *first, str complaint, str reply,
                  struct prompt *out, struct err *err);

/* ---- parts ---- */

/* How far the run may still go, and a blank; empty: nothing is known. `unit`: what wears it down,
 * "round" or "generation", with `each` candidates and more; empty: that is not to be told. Of two
 * limits one that cannot be reached before the other is left out. */
str prompt_outlook(const struct prompter *p, const char *unit, size_t each);
/* What each of its decisions means for the code. */
str prompt_strategy(const struct prompter *p, const struct strategy *s);
/* The lines of a menu without those that begin with `?WORD|@FACT…` where the source has one of the
 * words, or one of the facts holds of the compiled code (facts_hold): it does that already. */
str prompt_menu(const struct prompter *p, str lines, const struct attempt *a);

#endif
