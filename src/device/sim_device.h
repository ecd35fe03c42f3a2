/* Private to the device on the simulator: what its two files share. sim_device.c loads candidates
 * and runs them over the judge's memory; sim_part.c runs a part of a shape that is too large to run
 * whole.
 */
#ifndef DEVICE_SIM_DEVICE_H
#define DEVICE_SIM_DEVICE_H

#include "base/rng.h"
#include "device/buffers.h"
#include "device/wire.h"
#include "kernel/inspect.h"
#include "sim/model.h"

#define RARE_BLOCKS 8

struct server {
    const struct gpu *gpu; /* whose limits hold */
    unsigned threads;
    struct sim_machine *machine;
    struct arena *task_arena;
    struct task *task;
    struct arena *module_arena; /* of the loaded candidate */
    struct ptx_module *module;
    struct sim_program **programs; /* by entry; NULL until first launched */
    /* By entry, sim_places bytes each: what became of choices at the task's own shape, and in runs
     * that are judged. `covering` is the one that is added to; NULL: neither. */
    uint8_t **own, **judged, **covering;
    struct rare {
        uint64_t gangs[RARE_BLOCKS];
        size_t n;
    } * rare; /* by entry: blocks of the task's own shape in which rare comparisons will be met */
    bool seeks_rare;
    uint64_t bytes;  /* of the buffers at hand */
    unsigned checks; /* of enum sim_check */
    uint32_t order;  /* of the run, for programs that have several */
    bool repeats;    /* counts have to: nothing is drawn from the secret */
    struct rng secret;
    uint64_t drawn; /* from it, so far */
    uint64_t grids; /* launched so far, and before that */
    struct sim_findings findings;
    struct buffers buffers;
};

struct answer {
    struct wire_answer say; /* what it refers to is in `mem` */
    struct err why;
    struct arena *mem;
    bool counts, lines; /* are wanted */
    struct buf *blob;   /* NULL: none */
};

/* How much of a launch is run. */
struct extent {
    uint64_t ctas; /* about so many blocks; 0: all */
    uint64_t key;  /* that they are drawn by; 0: spread evenly */
    enum sim_draw draw;
    uint64_t budget;      /* of warp instructions; 0: what no kernel with an end needs */
    uint64_t patience_ms; /* of processor time, after which it is given up; 0: never */
};

/* Where the plan's memory is: tensors by the case, workspaces made here for each run. */
struct places {
    uint64_t tensors[TASK_MAX_TENSORS], workspaces[PLAN_MAX_WORKSPACES];
    char *workspace_host[PLAN_MAX_WORKSPACES];
    struct rng noise[PLAN_MAX_WORKSPACES];
};

/* After each launch of a plan; NULL: nothing is to be done. */
typedef void launch_done_fn(void *ctx, const struct sim_result *result);

/* Sets the verdict; returns false. */
bool simdev_refuse(struct answer *out, enum verdict v);
/* Takes it back: it was the simulator's limit, not the kernel's fault. */
void simdev_forgive(struct answer *out);
/* Adds what is not covered to the answer. */
void simdev_answer_coverage(const struct server *s, struct answer *out);
/* Forgets all buffers, and moves where the next ones lie. */
void simdev_move_memory(struct server *s);

bool simdev_run_launch(struct server *s, const struct bound_launch *l,
                       const struct launch_memory *memory, const struct extent *extent,
                       struct sim_result *result, struct answer *out);
bool simdev_run_memset(struct server *s, const struct bound_memset *m, const struct places *at,
                       struct answer *out);
bool simdev_encode_maps(const struct bound_plan *p, const struct places *at,
                        uint8_t (*maps)[TENSORMAP_BYTES], struct answer *out);
bool simdev_run_plan(struct server *s, const struct bound_plan *p, const struct places *at,
                     const struct extent *extent, struct sim_result *last, launch_done_fn *done,
                     void *ctx, struct answer *out);

/* For sim_buffer.touch; the context of noise is a struct rng. */
void simdev_touch_noise(void *ctx, size_t offset, size_t n, void *dst);
void simdev_touch_zeros(void *ctx, size_t offset, size_t n, void *dst);
bool simdev_add_workspaces(struct server *s, const struct bound_plan *p, struct places *at,
                           bool noise, struct answer *out);
void simdev_free_workspaces(const struct bound_plan *p, struct places *at);

bool simdev_measure(struct server *s, const struct job_measure *m, struct answer *out);
bool simdev_sample(struct server *s, const struct job_sample *m, struct answer *out);

#endif
