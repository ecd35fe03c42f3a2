/* The winner of a run, from the run's folder, ready to be exported: its files are held against each
 * other (the kernel against the hash in its evidence, the task against the run's fingerprint), and
 * it is compiled once more. Half of a folder, a kernel that was not accepted and one that was
 * changed since are refused, each with a sentence that says so. */
#ifndef EXPORT_RUN_H
#define EXPORT_RUN_H

#include "export/export.h"

/* `task_file`: for runs that do not hold their task (of versions before it was kept); otherwise
 * NULL. `sampled`: also a kernel of which only samples were judged at the run's own shape, which is
 * too large to be run whole on the simulator. Everything in *out lives in the arena. */
bool export_run_load(const char *folder, const char *task_file, bool sampled,
                     const struct nvrtc_root *nvrtc, const char *cache, struct arena *a,
                     struct export_kernel *out, struct err *err);

/* The task of a run, and its shape, whether or not it came to a kernel. */
bool export_run_task(const char *folder, struct arena *a, struct export_kernel *out,
                     struct err *err);

#endif
