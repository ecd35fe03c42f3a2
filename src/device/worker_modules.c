/* The modules of a job: which of them the device has, and in which place.
 *
 * Candidate and rivals are on the device together and take turns within a batch. When something
 * happens that cannot be ascribed to one of them (the process dies, the memory does not suffice for
 * all), they go apart: one a round, alone on the device as in a job of its own, so that what
 * happens then is that one's doing. A rival that failed is left out, and the others go on. */
#include "device/worker.h"

#include "device/wire.h"

#include <string.h>

/* Where a module lies in the job's blob; empty where the message does not add up. */
static str module_bytes(const struct job *j, size_t module) {
    const json *sizes = json_get(j->frame.head, "modules");
    str rest = j->frame.blob;
    for (size_t i = 0;; i++) {
        int64_t n = 0;
        if (!json_to_i64(json_at(sizes, i), &n) || n < 0 || (uint64_t)n > rest.n)
            return (str){0};
        if (i == module)
            return str_cut(rest, 0, (size_t)n);
        rest = str_from(rest, (size_t)n);
    }
}

bool modules_init(struct job *j, struct err *why) {
    bool none = j->frame.type == WIRE_CEILINGS;
    size_t n = none ? 1 : json_len(json_get(j->frame.head, "modules"));
    if (n > WORKER_MAX_MODULES)
        return err_set(why, ERR_NO, "too many modules in one job");
    for (size_t i = 0; i < n; i++) {
        if (!none && !module_bytes(j, i).n)
            return err_set(why, ERR_NO, "bad message: modules");
        j->live[i] = i;
    }
    j->nmodules = j->nlive = n;
    return n || err_set(why, ERR_NO, "bad message: no modules");
}

size_t modules_on_device(const struct job *j) {
    return j->apart ? 1 : j->nlive;
}

size_t module_at(const struct job *j, size_t place) {
    if (j->apart) /* and the candidate's turn again where it has to be looked at twice */
        return j->live[j->rechecks ? 0 : j->round % j->nlive];
    return j->live[place < j->nlive ? place : 0];
}

static void load_again(struct job *j) {
    j->loaded = false;
    memset(j->tries, 0, sizeof j->tries);
}

bool modules_part(struct job *j) {
    if (modules_on_device(j) == 1)
        return false;
    j->apart = true;
    load_again(j);
    return true;
}

void module_drop(struct job *j, size_t module, str verdict, str why) {
    json *note = json_object();
    size_t n = 0;
    json_set_i64(note, "module", (int64_t)module);
    json_set_str(note, "verdict", verdict);
    json_set_str(note, "why", why);
    json_push(j->rivals, note);
    for (size_t i = 0; i < j->nlive; i++)
        if (j->live[i] != module)
            j->live[n++] = j->live[i];
    j->nlive = n;
    j->apart = j->apart && n > 1;
    j->timed[module].n = 0;
    load_again(j);
}

/* ---- what is said of them ---- */

json *modules_sizes(const struct job *j, struct buf *blob) {
    json *sizes = json_array();
    for (size_t i = 0; i < modules_on_device(j); i++) {
        str bytes = module_bytes(j, module_at(j, i));
        json_push_i64(sizes, (int64_t)bytes.n);
        buf_puts(blob, bytes);
    }
    return sizes;
}

json *modules_plans(const struct job *j, const json *all) {
    json *plans = json_array();
    for (size_t i = 0; i < modules_on_device(j); i++)
        if (json_at(all, module_at(j, i)))
            json_push(plans, json_copy(json_at(all, module_at(j, i))));
    return plans;
}

json *modules_workspaces(const struct job *j, const json *all) {
    json *sizes = json_array();
    for (size_t k = 0;; k++) {
        int64_t most = 0;
        for (size_t i = 0; i < modules_on_device(j); i++) {
            const json *list = json_get(json_at(all, module_at(j, i)), "workspaces");
            int64_t bytes = 0;
            json_get_i64(json_at(list, k), "bytes", &bytes);
            most = bytes > most ? bytes : most;
        }
        if (!most)
            return sizes;
        json_push_i64(sizes, most);
    }
}
