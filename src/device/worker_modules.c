/* The modules of a job: which of them the device has, and in which place.
 *
 * Candidate and rivals are on the device together and take turns within a batch. When something
 * happens that cannot be ascribed to one of them (the process dies, the memory does not suffice for
 * all), they go apart: one a round, alone on the device as in a job of its own, so that what
 * happens then is that one's doing. A rival that failed is left out, and the others go on. */
#include "device/worker.h"

#include <string.h>

/* Where a module lies in the job's blob; empty where the message does not add up. */
static str module_bytes(const struct job_walk *j, size_t module) {
    str rest = j->frame.blob;
    for (size_t i = 0; i <= module; i++) {
        if (j->asked.modules[i] > rest.n)
            return (str){0};
        if (i < module)
            rest = str_from(rest, j->asked.modules[i]);
    }
    return str_cut(rest, 0, j->asked.modules[module]);
}

bool modules_init(struct job_walk *j, struct err *why) {
    bool none = j->frame.type == WIRE_CEILINGS;
    size_t n = none ? 1 : j->asked.nmodules;
    for (size_t i = 0; i < n; i++) {
        if (!none && !module_bytes(j, i).n)
            return err_set(why, ERR_NO, "bad message: modules");
        j->live[i] = i;
    }
    j->nmodules = j->nlive = n;
    return n || err_set(why, ERR_NO, "bad message: no modules");
}

size_t modules_on_device(const struct job_walk *j) {
    return j->apart ? 1 : j->nlive;
}

size_t module_at(const struct job_walk *j, size_t place) {
    if (j->apart) /* and the candidate's turn again where it has to be looked at twice */
        return j->live[j->rechecks ? 0 : j->round % j->nlive];
    return j->live[place < j->nlive ? place : 0];
}

static void load_again(struct job_walk *j) {
    j->loaded = false;
    memset(j->tries, 0, sizeof j->tries);
}

bool modules_part(struct job_walk *j) {
    if (modules_on_device(j) == 1)
        return false;
    j->apart = true;
    load_again(j);
    return true;
}

void module_drop(struct job_walk *j, size_t module, enum verdict verdict, str why) {
    size_t n = 0;
    j->found.rivals[j->found.nrivals++] =
        (struct result_rival){module, verdict, arena_str(j->mem, why)};
    for (size_t i = 0; i < j->nlive; i++)
        if (j->live[i] != module)
            j->live[n++] = j->live[i];
    j->nlive = n;
    j->apart = j->apart && n > 1;
    j->timed[module].n = j->prepared_times[module].n = 0;
    load_again(j);
}

/* ---- what is said of them ---- */

struct wire_load modules_load(const struct job_walk *j, struct buf *blob, struct arena *a) {
    struct wire_load m = {.modules = arena_array(a, size_t, modules_on_device(j))};
    for (; m.nmodules < modules_on_device(j); m.nmodules++) {
        str bytes = module_bytes(j, module_at(j, m.nmodules));
        m.modules[m.nmodules] = bytes.n;
        buf_puts(blob, bytes);
    }
    return m;
}

struct bound_plan *modules_plans(const struct job_walk *j, const struct job_shape *s, size_t *n,
                                 struct arena *a) {
    struct bound_plan *plans = arena_array(a, struct bound_plan, modules_on_device(j));
    for (*n = 0; *n < modules_on_device(j); ++*n)
        plans[*n] = s->plans[module_at(j, *n)];
    return plans;
}

int64_t *modules_workspaces(const struct job_walk *j, const struct job_shape *s, size_t *n,
                            struct arena *a) {
    int64_t *sizes = arena_array(a, int64_t, PLAN_MAX_WORKSPACES);
    *n = 0;
    for (size_t i = 0; i < modules_on_device(j); i++) {
        const struct bound_plan *p = &s->plans[module_at(j, i)];
        for (size_t k = 0; k < p->nworkspaces; k++)
            if ((int64_t)p->workspaces[k].bytes > sizes[k])
                sizes[k] = (int64_t)p->workspaces[k].bytes;
        *n = p->nworkspaces > *n ? p->nworkspaces : *n;
    }
    return sizes;
}
