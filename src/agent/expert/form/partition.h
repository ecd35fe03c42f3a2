/* Which family writes which part of a task. Families are asked in order for the first statement
 * nobody has taken; what one takes becomes a step, a task of its own (form.h). The last of them,
 * generic, takes anything. Steps come in an order in which everything read has been written. */
#ifndef AGENT_EXPERT_PARTITION_H
#define AGENT_EXPERT_PARTITION_H

#include "agent/expert/sheet/sheet.h"

#define PARTITION_STEPS 64
struct partition {
    struct step steps[PARTITION_STEPS];
    const struct family *family[PARTITION_STEPS];
    size_t n;
    /* By number of a let: the output that is the same, in whose memory it is kept; SIZE_MAX: none.
     * The output's own statement is gone then. */
    size_t stored[TASK_MAX_TENSORS];
};
bool partition_make(const struct briefing *b, const struct family *const *families,
                    size_t nfamilies, struct arena *a, struct partition *out, struct err *err);

#endif
