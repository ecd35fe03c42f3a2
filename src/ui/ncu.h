/* Hardware counters of a kernel, through NVIDIA's ncu.
 *
 * ncu puts a library of its own into the process it looks at, which needs files and sockets that
 * our sandbox denies; so the kernel is run once more by `cutepilot profile-run`, a process that is
 * not confined and does nothing else: it loads the cubin, makes the stated inputs, launches the
 * plan and ends. That is why counters are taken only where somebody asked for them by name. What
 * ncu writes is read as data. */
#ifndef UI_NCU_H
#define UI_NCU_H

#include "base/json.h"
#include "kernel/candidate.h"

struct ncu_metric {
    const char *name;  /* ncu's, and the key in the JSON */
    const char *label; /* for people */
    const char *unit;  /* "B", "s", "%", "" */
    double scale;      /* from ncu's base unit */
};
extern const struct ncu_metric ncu_metrics[]; /* ends with name == NULL */

struct ncu_run {
    const struct inst *inst;
    const struct bound_plan *plan;
    str cubin;
    int ordinal;
    const char *program; /* NULL: ncu in PATH, or of the CUDA toolkit */
};

/* Writes what profile-run needs to a folder, which is made where there is none. */
bool ncu_folder(const struct ncu_run *r, const char *dir, struct err *err);

/* [{"kernel": NAME, METRIC: number, …}], one a launch in order. err says what to do where ncu is
 * missing or may not read counters. */
bool ncu_profile(const struct ncu_run *r, json **out, struct err *err);

/* The same from what ncu --csv wrote. */
bool ncu_parse(str text, json **out, struct err *err);

/* The role: `cutepilot profile-run DIR ORDINAL`; argv holds the two words. */
int profile_run_main(int argc, char **argv);

#endif
