/* Which GPU, and what it can do: the facts of the one that `--device cuda` names, asked of the
 * driver where the worker runs, and its ceilings, measured once and kept in the cache folder. */
#ifndef EVAL_GPU_H
#define EVAL_GPU_H

#include "device/cuda.h"
#include "eval/eval.h"

struct gpu_here {
    struct cuda_facts facts;
    struct gpu gpu; /* with measured ceilings, once there are any */
    bool measured;
    bool absent; /* not found, and whoever was asked said that there is none */
};

/* Facts alone, of a GPU here or behind the worker's command. */
bool gpu_here_find(const struct device_name *d, const char *const *command, struct gpu_here *out,
                   struct err *err);
/* The same of a place for workers, within a limit; 0: of two minutes. */
bool gpu_here_ask(const struct worker_place *place, unsigned limit_ms, struct gpu_here *out,
                  struct err *err);
/* Of the first place that answers. Fills o->device, o->facts and o->memory_bytes; measures the
 * ceilings where the cache has none (o->cache, o->nvrtc must be set). *out lives as long as o is
 * used. */
bool gpu_here_use(struct evaluator_options *o, struct gpu_here *out, struct err *err);

/* The role `cutepilot probe cuda:N`: prints the facts as JSON; how another machine is asked. */
int gpu_probe_main(int argc, char **argv);

#endif
