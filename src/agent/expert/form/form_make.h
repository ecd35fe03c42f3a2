/* Between the files that make forms. Private to them. */
#ifndef AGENT_EXPERT_FORM_MAKE_H
#define AGENT_EXPERT_FORM_MAKE_H

#include "agent/expert/form/form.h"

enum { SWAPS_MOST = 16 };

/* How to copy a tree. */
struct copier {
    struct arena *a;
    struct expr *map[TASK_MAX_VARS]; /* what stands for a variable; NULL: itself */
    bool renumber;                   /* variables of reductions: from `next` on, as they appear */
    size_t next;
    struct {
        const struct expr *from;
        struct expr *to;
    } swaps[SWAPS_MOST]; /* nodes to replace, by address */
    size_t nswaps;
};
struct expr *copier_copy(struct copier *c, const struct expr *e);
size_t expr_size(const struct expr *e); /* nodes */

#endif
