/* What every role is told, made in one place. */
#include "agent/agent.h"
#include "agent/expert/expert.h"
#include "eval/eval.h"
#include <math.h>

#define SMALL_LAUNCH 1.0 /* a limit under this many launch times is a matter of latency */

enum regime briefing_regime(const struct briefing *b) {
    if (b->roofline.limit_s < SMALL_LAUNCH * b->gpu->launch_s)
        return REGIME_LATENCY;
    return b->roofline.memory_bound ? REGIME_MEMORY : REGIME_COMPUTE;
}

double briefing_floor(const struct briefing *b, bool estimated) {
    return b->roofline.limit_s + (estimated ? b->gpu->launch_s : 0);
}

const char *stage_name(enum stage s) {
    static const char *const names[STAGE_COUNT] = {"structure", "details", "parameters"};
    BUG_IF((unsigned)s >= STAGE_COUNT);
    return names[s];
}

bool briefing_make(const struct inst *inst, const struct catalogue *c, const struct gpu *gpu,
                   struct briefing *out, struct err *err) {
    if (!gpu)
        return err_set(err, ERR_INPUT, "the expert knows nothing about this GPU");
    *out = (struct briefing){.inst = inst,
                             .catalogue = c,
                             .gpu = gpu,
                             .outlook = {.candidates = NO_BUDGET},
                             .candidate = NO_CANDIDATE};
    features_of(inst, &out->features);
    out->roofline = task_limit(gpu, inst);
    const struct features *f = &out->features;
    int64_t *fact = out->ground.fact;
    fact[FACT_ARCH] = gpu_capability(gpu);
    fact[FACT_MMA] = gpu->has.mma;
    fact[FACT_WGMMA] = gpu->has.wgmma && gpu->has.tma;
    fact[FACT_CLUSTER_MOST] = gpu->has.cluster_most;
    fact[FACT_BYTES] = (int64_t)dtype_info(f->dtype)->bytes;
    fact[FACT_ACCURACY] = (int64_t)inst->task->accuracy;
    fact[FACT_ELEMENTS] = (int64_t)floor(f->log2_elements);
    fact[FACT_REDUCED] = (int64_t)floor(f->log2_reduced);
    fact[FACT_FOLDS] = (int64_t)f->folds;
    fact[FACT_PASSES] = (int64_t)(f->folds + f->rereads);
    fact[FACT_SPECIAL] = f->special;
    fact[FACT_BY_INDEX] = f->by_index;
    fact[FACT_OUTPUTS] = (int64_t)f->outputs;
    return expert_workloads(out, &out->ground, err);
}
